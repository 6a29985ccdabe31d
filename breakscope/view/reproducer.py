"""A short script that shows a finding by itself, made of the source that was scanned and of its calls."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from breakscope.report.model import Finding, Report, Signature
from breakscope.source.standing_alone import NotAloneError, Standing, global_names
from breakscope.view.warmup_values import NotMadeError, dtype_name, expression, quoted

# Of what differs from call to call, that of which a signature holds the value.
_IN_SIGNATURES = (
    "size",
    "stride",
    "rank",
    "dtype",
    "requires_grad",
    "int_value",
    "float_value",
    "constant_value",
)
# Breaks after which Python goes on with what a tensor holds.
_READ_A_VALUE = ("BS101", "BS102", "BS103", "BS106")
_MOST_CALLS = 12
_ORDINARY = "float32"

ReadLines = Callable[[str], Sequence[str]]


def reproducer(report: Report, finding: Finding, lines: ReadLines) -> str:
    """The script.

    Args:
        lines: the source of a file as it was scanned; none where that cannot be told.

    Raises:
        NotAloneError, NotMadeError: why there is none, as the end of a sentence.
    """
    _can_be_shown(finding)
    calls = _calls(report, finding)
    entry = calls[0]
    source = lines(entry.entry_file or "")
    if not source:
        raise NotAloneError(f"the source of {entry.entry} is not at hand as it was when it was scanned")
    folders = {os.path.dirname(entry.entry_file or ""), report.run.cwd}
    standing = Standing(source, lambda module: _is_own(module, folders))
    _reached_by_any_value(report, finding, entry.entry_file, standing.tree)
    made, names = _made(standing, entry)
    body = standing.text(names)
    if finding.location.source is not None and finding.location.source.strip() not in body:
        raise NotAloneError("the line where it happens is in another file")
    log = "recompiles" if finding.kind == "recompile" else "graph_breaks"
    dynamic = str(report.run.asked.get("dynamic", "")).lower()
    options = f", dynamic={dynamic.capitalize()}" if dynamic in ("true", "false") else ""
    head = "" if any(line.rstrip() == "import torch" for line in body.split("\n")) else "import torch\n"
    parts = [f"{head}{body}\n", f"torch._logging.set_logs({log}=True)\n"]
    parts.append(f'compiled = torch.compile({made}, backend="eager"{options})\n')
    parts += [_call(call) for call in calls]
    return "".join(parts)


def _can_be_shown(finding: Finding) -> None:
    if finding.kind == "recompile":
        if finding.guard is None or finding.guard.cause not in _IN_SIGNATURES or finding.guard.resumed:
            raise NotAloneError("the calls alone do not bring about what differed")
    elif finding.gb_id is None:
        raise NotAloneError("torch has no id for what happened, by which a reproducer could be known")


def _reached_by_any_value(report: Report, finding: Finding, file: str | None, tree: ast.Module) -> None:
    """Refuse where a tensor's value decides whether the line is reached: the script's inputs are not kept."""
    path = [(frame.file, frame.line) for frame in finding.stack]
    path.append((finding.location.file, finding.location.line))
    lines = {line for where, line in path if where == file}
    deciding = {
        (other.location.function or "").rpartition(".")[2]
        for other in report.findings
        if other.code in _READ_A_VALUE and other.location.file == file and other is not finding
    }
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name in deciding:
            inside = {line for line in lines if function.lineno <= line <= (function.end_lineno or 0)}
            if any(_may_keep_from(node, line) for node in ast.walk(function) for line in inside):
                raise NotAloneError("a tensor's value decides whether it gets there")


def _may_keep_from(node: ast.AST, line: int) -> bool:
    """Whether a statement, by what it decides, may keep execution from a line of its function."""
    if isinstance(node, ast.Assert):
        return node.lineno < line
    if not isinstance(node, ast.If | ast.While | ast.For):
        return False
    if any(part.lineno <= line <= (part.end_lineno or part.lineno) for part in (*node.body, *node.orelse)):
        return True
    leaves = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return node.lineno < line and any(isinstance(part, leaves) for part in ast.walk(node))


def _calls(report: Report, finding: Finding) -> list[Signature]:
    """The calls up to the first one that shows the finding, without repetitions."""
    shown = next((one for one in report.signatures if one.compile_id in finding.counts.compile_ids), None)
    if shown is None:
        raise NotAloneError("no call of the compiled function was recorded for it")
    before = report.signatures[: report.signatures.index(shown)] if finding.kind == "recompile" else ()
    same = [one for one in before if (one.entry, one.entry_file) == (shown.entry, shown.entry_file)]
    calls: list[Signature] = []
    for call in (*same, shown):
        if not any(_alike(call, other) for other in calls):
            calls.append(call)
    if len(calls) > _MOST_CALLS:
        raise NotAloneError(f"it takes {len(calls)} different calls to get there")
    return calls


def _alike(call: Signature, other: Signature) -> bool:
    return (call.arguments, call.training, call.grad) == (other.arguments, other.training, other.grad)


def _is_own(module: str, folders: set[str]) -> bool:
    """Whether a module is a file beside the script: relative, or found there before what is installed."""
    top = module.partition(".")[0]
    return not top or any(
        Path(folder, top + end).exists() for folder in folders if folder for end in (".py", "")
    )


def _made(standing: Standing, entry: Signature) -> tuple[str, set[str]]:
    """What is compiled, as an expression, and the names of the module that it needs."""
    name = entry.entry
    if not name.isidentifier() or not standing.defined_at(name, entry.entry_line):
        raise NotAloneError(f"{name} is not defined at the top of its file")
    if not entry.module:
        return name, {name}
    for text in dict.fromkeys((*standing.calls_of(name), f"{name}()")):
        names = global_names(text)
        try:
            standing.text(names)
        except NotAloneError:
            continue
        return f"{text}{_moved(entry)}{'.train()' if entry.training else '.eval()'}", names
    raise NotAloneError(f"{name} is built from values that only the whole program has")


def _moved(entry: Signature) -> str:
    """Where a module goes to fit its arguments: nothing for ordinary ones on the CPU."""
    held = entry.arguments
    tensors = [value["tensor"] for value in (*held["args"], *held["kwargs"].values()) if "tensor" in value]
    devices = {str(tensor["device"]) for tensor in tensors} - {"cpu"}
    dtypes = {str(tensor["dtype"]) for tensor in tensors if "float" in str(tensor["dtype"])} - {_ORDINARY}
    asked = [quoted(device) for device in sorted(devices)[:1]]
    asked += [dtype_name(dtype) for dtype in sorted(dtypes)[:1] if entry.autocast is None]
    return f".to({', '.join(asked)})" if asked else ""


def _call(call: Signature) -> str:
    held = call.arguments
    shown = [
        expression(value, f"args[{at}]", {}, inference=call.inference)
        for at, value in enumerate(held["args"])
    ]
    for key, value in held["kwargs"].items():
        if not key.isidentifier():
            raise NotMadeError(f"an argument called {key!r}")
        shown.append(f"{key}={expression(value, f'kwargs[{key!r}]', {}, inference=call.inference)}")
    contexts = call_contexts(call)
    text = f"compiled({', '.join(shown)})\n"
    return f"with {', '.join(contexts)}:\n    {text}" if contexts else text


def call_contexts(call: Signature) -> list[str]:
    """The modes in which a call is made, as context managers. Raises NotMadeError."""
    contexts = []
    if call.inference:
        contexts.append("torch.inference_mode()")
    elif not call.grad:
        contexts.append("torch.no_grad()")
    if call.autocast is not None:
        device, _, dtype = call.autocast.partition(" ")
        contexts.append(f"torch.autocast({quoted(device)}, dtype={dtype_name(dtype)})")
    return contexts
