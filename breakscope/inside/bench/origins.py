"""Where Inductor's kernels come from, as the comments in its generated code say. Pure text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_DEFINITION = re.compile(r"^(\w+) = async_compile\.(?:triton|cpp_pybinding|cpp|multi_kernel)\b", re.MULTILINE)
_NODES = re.compile(r"Topologically Sorted Source Nodes: \[([^\]]*)\]")
_OPS = re.compile(r"Original ATen: \[([^\]]*)\]")
_FRAGMENT = "# Graph fragment:"
_MOST_COMMENT_LINES = 400


@dataclass(frozen=True, slots=True)
class Origin:
    """What a kernel was made of.

    Attributes:
        nodes: names of the nodes in Dynamo's graph; ops: ATen ops; file: the generated module.
        fragment: lines of the graph fragment that it computes, without the comment's marks.
    """

    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    file: str
    fragment: tuple[str, ...] = ()


def origins(sources: Iterable[tuple[str, str]]) -> dict[str, Origin]:
    """By kernel name, from (file, text) of generated modules."""
    found: dict[str, Origin] = {}
    for file, text in sources:
        for match in _DEFINITION.finditer(text):
            comment = _comment_before(text, match.start())
            found[match[1]] = Origin(_names(_NODES, comment), _names(_OPS, comment), file, _fragment(comment))
    return found


def _comment_before(text: str, position: int) -> str:
    lines = text[:position].splitlines()
    comment = []
    for line in reversed(lines[-_MOST_COMMENT_LINES:]):
        if not line.startswith("#"):
            break
        comment.append(line)
    return "\n".join(reversed(comment))


def _fragment(comment: str) -> tuple[str, ...]:
    _, found, rest = comment.partition(_FRAGMENT)
    lines = (line.lstrip("#").strip() for line in rest.splitlines())
    return tuple(line for line in lines if line) if found else ()


def _names(pattern: re.Pattern[str], comment: str) -> tuple[str, ...]:
    names = [name.strip() for match in pattern.findall(comment) for name in match.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))
