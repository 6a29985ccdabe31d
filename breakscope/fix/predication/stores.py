"""``if``/``elif``/``else`` whose branches all store into the same attributes: each is stored once.

A test that Python decides stays one, as a conditional expression inside of ``torch.where``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from breakscope.fix.predication.condition import enclosed, split
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Unsafe


@dataclass(frozen=True, slots=True)
class Arm:
    """One branch: its test (None for ``else``) and what it stores, by path, in order."""

    test: ast.expr | None
    values: dict[str, ast.expr]


def arms(top: ast.If) -> tuple[Arm, ...] | None:
    """The branches, if each does nothing but store into the same attributes in the same order."""
    found: list[Arm] = []
    node: ast.If | None = top
    while node is not None:
        found.append(Arm(node.test, _values(node.body)))
        rest = node.orelse
        node = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
        if node is None and rest:
            found.append(Arm(None, _values(rest)))
    paths = list(found[0].values)
    if not paths or any(list(arm.values) != paths for arm in found):
        return None
    return tuple(found)


def _values(block: list[ast.stmt]) -> dict[str, ast.expr]:
    """What a block stores, by path; empty if it does anything else, or stores twice into one."""
    values: dict[str, ast.expr] = {}
    for statement in block:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if (
            not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or not isinstance(target, ast.Attribute)
            or not isinstance(target.value, ast.Name)
            or ast.unparse(target) in values
        ):
            return {}
        values[ast.unparse(target)] = statement.value
    return values


def render_arms(
    branches: Branches,
    top: ast.If,
    found: tuple[Arm, ...],
    mask: str,
    indent: int,
    writable: Callable[[Branches, str], None],
) -> list[str]:
    """Lines for the branches, ``mask`` being the first one's condition.

    Raises:
        Unsafe: they must stay branches.
    """
    paths = list(found[0].values)
    _independent(found, paths)
    lines, masks = _masks(branches, found[1:])
    comments = branches.layout.comments_in(top)
    own = branches.layout.header_comments(top)
    lines = [*(one for one in comments if one not in own), *lines]  # the header's are put in front already
    for path in paths:
        writable(branches, path)
        old = branches.evaluate(ast.parse(path, mode="eval").body)
        text, value = (path, old)
        for arm, (static, condition) in reversed(list(zip(found, [(False, mask), *masks], strict=True))):
            node = arm.values[path]
            new, written = branches.evaluate(node), _written(branches, node)
            if not condition:
                text, value = written, new
                continue
            value = branches.choose(new, value)
            text = (
                f"{written} if {condition} else {text}"
                if static
                else branches.where(condition, written, text, indent + len(path) + 3)
            )
        lines.append(f"{path} = {text}")
        branches.findings.notes[f"`{path}` is stored in every call, as a tensor of its own"] = None
        branches.evaluate.names[path] = value
    return lines


def _written(branches: Branches, node: ast.expr) -> str:
    return branches.layout.value(node, node.col_offset)


def _independent(found: tuple[Arm, ...], paths: list[str]) -> None:
    """Refuse values and tests that read what was stored before them."""
    for number, path in enumerate(paths):
        nodes = [arm.values[path] for arm in found] + [arm.test for arm in found[1:] if arm.test is not None]
        read = {
            ast.unparse(one) for node in nodes for one in ast.walk(node) if isinstance(one, ast.Attribute)
        }
        for earlier in paths[:number]:
            if earlier in read:
                raise Unsafe(
                    f"what is stored into `{path}` depends on `{earlier}`, which is stored before it"
                )


def _masks(branches: Branches, rest: tuple[Arm, ...]) -> tuple[list[str], list[tuple[bool, str]]]:
    """Lines before the stores, and for each later branch whether Python decides it, and its condition."""
    lines: list[str] = []
    masks: list[tuple[bool, str]] = []
    for arm in rest:
        if arm.test is None:
            masks.append((False, ""))
            continue
        seen = branches.site.seen(arm.test)
        if seen is not None and seen.only("bool", "int", "None", "str"):
            masks.append((True, enclosed(branches.site, arm.test)))
            continue
        condition = split(branches.site, branches.evaluate, arm.test, ran=False)
        name = branches.layout.unique("nested")
        lines.append(f"{name} = {condition.text}")
        masks.append((False, name))
    return lines, masks
