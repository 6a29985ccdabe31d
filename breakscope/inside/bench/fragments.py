"""Eager code of one kernel of Inductor's, from the graph fragment in the comment above it. Pure text.

The comment lists what the kernel reads, the ATen calls that it does, and what it writes::

    %mm : Tensor "f32[64, 512][512, 1]cuda:0" = PlaceHolder[target=mm]
    %add : Tensor "f32[64, 512][512, 1]cuda:0" = call_function[target=torch.ops.aten.add.Tensor](…)
    return %add
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

_INPUT = re.compile(r'^%(\w+) : Tensor "\w+\[([\d, ]*)\]\[([\d, ]*)\][^"]*" = PlaceHolder\[')
_CALL = re.compile(
    r"^%(\w+) : .*= call_function\[target=([\w.]+)\]\(args = (\(.*\)), kwargs = \{(.*)\}\)$",
)
_RETURN = re.compile(r"^return (%\w+(?:,%\w+)*)$")
_NAME = re.compile(r"%(\w+)")
_KEY = re.compile(r"(?:(?<=^)|(?<=, ))(\w+): ")
_TARGETS = ("torch.ops.", "operator.", "torch.")


@dataclass(frozen=True, slots=True)
class Fragment:
    """A kernel as a function of eager code.

    Attributes:
        source: ``def eager(…)``, returning a list; inputs: (shape, stride) of each parameter.
    """

    source: str
    inputs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def fragment(lines: Sequence[str]) -> Fragment | None:
    """The function that the lines describe; None where they say something that is not understood."""
    inputs: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    body: list[str] = []
    returned: list[str] = []
    for line in lines:
        if found := _INPUT.match(line):
            inputs.setdefault(found[1], (_numbers(found[2]), _numbers(found[3])))
        elif found := _CALL.match(line):
            if not found[2].startswith(_TARGETS):
                return None
            arguments = _NAME.sub(r"v_\1", found[3])
            keywords = _KEY.sub(r"'\1': ", _NAME.sub(r"v_\1", found[4]))
            body.append(f"    v_{found[1]} = {found[2]}(*{arguments}, **{{{keywords}}})")
        elif found := _RETURN.match(line):
            returned = _NAME.findall(found[1])
        else:
            return None
    if not inputs or not body or not returned:
        return None
    parameters = ", ".join(f"v_{name}" for name in inputs)
    results = ", ".join(f"v_{name}" for name in returned)
    source = "\n".join([f"def eager({parameters}):", *body, f"    return [{results}]"])
    return Fragment(source, tuple(inputs.values())) if _closed(source) else None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word.strip())


def _closed(source: str) -> bool:
    """Whether it is Python, and every value that it uses is one that it has."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    function = tree.body[0]
    known = (
        {argument.arg for argument in function.args.args} if isinstance(function, ast.FunctionDef) else set()
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    used = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    return all(name in known for name in used if name.startswith("v_")) and used <= known | {
        "torch",
        "operator",
        "device",
        "inf",
        "nan",
    }
