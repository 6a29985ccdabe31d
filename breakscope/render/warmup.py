"""The warm-up plan of a report as Python that a service can run at its start."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from breakscope.diagnose.warmup import Entry, Group, plan, repeated, tensors
from breakscope.report.model import Report, Signature
from breakscope.view.reproducer import call_contexts
from breakscope.view.warmup_values import NotMadeError, expression, plain

_INDENT = "    "
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|\W+")


def render(report: Report) -> str:
    """A module with one function, ``warm_up``, which takes what is compiled."""
    entries = plan(report)
    names = _names(entries)
    run = report.run
    versions = f"torch {run.torch}, backend {run.backend}" + (f", mode {run.mode}" if run.mode else "")
    lines = [
        f'"""Warm-up: compiles at start-up what {plain(run.script)} compiled while it ran.',
        "",
        f"Made by breakscope from a run with {plain(versions)}. Values are zeros; bool tensors are true.",
        'Afterwards torch.compiler.set_stance("fail_on_recompile") shows any call that still compiles.',
        '"""',
        "",
    ]
    if not entries:
        return "\n".join([*lines, "# Nothing was compiled in this run: there is nothing to warm up.", ""])
    lines += ["import torch", "", "", f"def warm_up({', '.join(names)}):"]
    lines += [f'{_INDENT}"""Call each of the compiled objects as the traffic does.', ""]
    for entry, name in zip(entries, names, strict=True):
        lines.append(f"{_INDENT}{name}: {_what(entry)}, {_counted(entry)}")
    lines.append(f'{_INDENT}"""')
    lines.append(f"{_INDENT}with torch.random.fork_rng():  # the traffic's random numbers stay the same")
    for entry, name in zip(entries, names, strict=True):
        lines += [f"{_INDENT * 2}{line}" if line else "" for line in _calls(entry, name)]
    return "\n".join([*lines, ""])


def _names(entries: tuple[Entry, ...]) -> list[str]:
    """A parameter for each entry: ``TextEncoder`` -> ``text_encoder``; no two alike."""
    names: list[str] = []
    for entry in entries:
        last = entry.name.rpartition("<locals>.")[2]
        name = "_".join(filter(None, _WORDS.split(last))).lower() or "compiled"
        if not name.isidentifier() or keyword.iskeyword(name) or name in ("torch", "warm_up"):
            name = f"compiled_{name}" if f"compiled_{name}".isidentifier() else "compiled"
        while name in names:
            found = re.fullmatch(r"(.+?)_(\d+)", name)
            name = f"{found[1]}_{int(found[2]) + 1}" if found else f"{name}_2"
        names.append(name)
    return names


def _what(entry: Entry) -> str:
    kind = "module" if entry.module else "method" if entry.method else "function"
    bound = ", bound to its object" if entry.method else ""
    return f"the compiled {kind} {plain(entry.name)}{bound}"


def _counted(entry: Entry) -> str:
    compiles = sum(group.compiles for group in entry.groups)
    calls = sum(len(group.calls) for group in entry.groups)
    return f"{compiles} compile{'s' * (compiles != 1)} from {calls} distinct call{'s' * (calls != 1)}"


def _calls(entry: Entry, name: str) -> list[str]:
    modes = {call.training for group in entry.groups for call in group.calls}
    switches = len(modes) > 1
    lines = [f"was_training = {name}.training"] if switches else []
    for group in entry.groups:
        first = group.calls[0]
        lines += [f"# {plain(text)}" for text in _comments(group)]
        if switches:
            lines.append(f"{name}.train({first.training})")
        try:
            contexts = call_contexts(first)
        except NotMadeError as error:
            lines.append(f"# Left out: {len(group.calls)} calls of {name} with {plain(str(error))}.")
            continue
        inner = []
        for number, call in enumerate(group.calls):
            inner += _call(entry, call, name, group.varying if number == 0 else ())
        if contexts and any(not line.startswith("#") for line in inner):
            lines.append(f"with {', '.join(contexts)}:")
            inner = [f"{_INDENT}{line}" for line in inner]
        lines += inner
    if switches:
        lines.append(f"{name}.train(was_training)")
    return lines if any(not line.startswith("#") for line in lines) else [*lines, "pass"]


def _comments(group: Group) -> list[str]:
    lines = []
    if group.varying:
        differs = ", ".join(
            f"dimension {dimension} of {_argument(group.calls[0], path)} ({', '.join(map(str, sizes))})"
            for path, dimension, sizes in group.varying
        )
        lines.append(f"One dynamic graph can cover these {len(group.calls)}: they differ in {differs}.")
    if group.calls[0].training and group.calls[0].grad:
        lines.append("In training mode, with gradients: buffers such as BatchNorm's averages change.")
    return lines


def _argument(call: Signature, path: str) -> str:
    """The parameter's name for ``args[0]['text']``."""
    found = re.match(r"args\[(\d+)\](.*)$", path)
    if found is None:
        return re.sub(r"^kwargs\['(\w+)'\]", r"\1", path)
    index = int(found[1])
    return (call.parameters[index] if index < len(call.parameters) else f"argument {index}") + found[2]


def _call(
    entry: Entry, call: Signature, name: str, marks: Sequence[tuple[str, int, tuple[int, ...]]]
) -> list[str]:
    """One call; tensors with marked dimensions, and those that are passed twice, are made in front of it."""
    known = dict(tensors(call))
    paths = dict.fromkeys((*(path for path, _, _ in marks), *repeated(call)))
    made: dict[str, str] = {}
    lines: list[str] = []
    try:
        for path in paths:
            text = expression({"tensor": known[path]}, path, {}, inference=call.inference)
            made[path] = f"x{len(made)}"
            lines.append(f"{made[path]} = {text}")
        # "maybe": where the code turns out to need the size itself, the next call compiles for its own.
        lines += [f"torch._dynamo.maybe_mark_dynamic({made[path]}, {at})" for path, at, _ in marks]
        shown = []
        for at, value in enumerate(call.arguments["args"]):
            if at >= entry.method:
                shown.append(expression(value, f"args[{at}]", made, inference=call.inference))
        for key, value in call.arguments["kwargs"].items():
            if not key.isidentifier() or keyword.iskeyword(key):
                raise NotMadeError(f"an argument called {key!r}")
            shown.append(f"{key}={expression(value, f'kwargs[{key!r}]', made, inference=call.inference)}")
    except NotMadeError as error:
        return [f"# Left out: a call of {name} with {plain(str(error))}, which only your program can make."]
    return [*lines, f"{name}({', '.join(shown)})"]
