"""Why nothing was compiled: what a person needs to know first of a run that shows nothing."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence

from breakscope.diagnose.collect import SLOT_CALLS, Collected, Event
from breakscope.diagnose.places import Places
from breakscope.report.model import Finding
from breakscope.report.ranking import worst_first

# Methods of nn.Module that people call on a model between two calls of it.
_OF_MODULES = frozenset(
    (
        *("train", "eval", "to", "cpu", "cuda", "half", "float", "double", "bfloat16", "type", "zero_grad"),
        *(
            "parameters",
            "named_parameters",
            "buffers",
            "modules",
            "named_modules",
            "children",
            "named_children",
        ),
        *(
            "state_dict",
            "load_state_dict",
            "requires_grad_",
            "apply",
            "compile",
            "forward",
            "register_buffer",
        ),
    )
)


def why(found: Collected, findings: Sequence[Finding], places: Places) -> str | None:
    """The end of a sentence that begins with "nothing was compiled: "; None where nothing can be told."""
    if found.slots is None:
        return None  # a trace says neither what was imported nor what was called
    if found.torch is None:
        return "the script never imported torch"
    given = [event for event in found.compiled if event["by"] != "breakscope"]
    called = found.count(SLOT_CALLS)
    if given and not called:
        return "; ".join(dict.fromkeys(_never_called(event, places) for event in given))
    if findings:
        worst = min(findings, key=worst_first)
        place = f"{os.path.basename(worst.location.file)}:{worst.location.line}"
        because = f"because of {worst.code} at {place} ({worst.title})"
        return f"every function that Dynamo tried runs eagerly, {because}"
    if given or found.compiled:
        names = ", ".join(dict.fromkeys(event["name"] for event in found.compiled))
        return f"{names} ran, and no tensor operation came into a graph"
    left = ", ".join(dict.fromkeys(event["name"] for event in found.left))
    if left:
        return (
            f"the script gives nothing to torch.compile, and the modules that it calls ({left}) have no "
            "parameters and were left alone; name what is to be compiled with --compile FUNCTION"
        )
    return (
        "the script gives nothing to torch.compile and calls no module; name what is to be compiled with "
        "--compile FUNCTION"
    )


def _never_called(event: Event, places: Places) -> str:
    file, line = event.get("file"), event.get("line")
    if file is None or line is None:
        return f"{event['name']} was given to torch.compile and never called"
    place = f"{os.path.basename(file)}:{line}"
    past = _called_past(file, line, places)
    if past is None:
        return f"{event['name']} was given to torch.compile at {place} and never called"
    name, method, where = past
    return (
        f"{event['name']} was given to torch.compile at {place}, which compiles {name}(…) alone; "
        f"{name}.{method}(…) in line {where} runs the module itself, past it: write {name}.compile() "
        f"instead, which holds for calls from inside, too, or compile {name}.{method}"
    )


def _called_past(file: str, line: int, places: Places) -> tuple[str, str, int] | None:
    """(variable, method, line) of a method that is called on what a line gives to torch.compile."""
    try:
        tree = ast.parse("\n".join(places.sources.lines(file)))
    except (SyntaxError, ValueError):
        return None
    names = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.lineno <= line <= (node.end_lineno or node.lineno)
        for target in node.targets
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, method = ast.unparse(node.func.value), node.func.attr
            if name in names and method not in _OF_MODULES:
                return name, method, node.lineno
    return None
