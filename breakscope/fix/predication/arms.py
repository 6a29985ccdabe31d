"""``if``/``elif``/``else`` that do nothing but give values to the same places: each place is given one value.

A place is a name or an attribute. A test that Python decides stays one, as a conditional expression.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from breakscope.fix.predication.condition import Condition, enclosed, split
from breakscope.fix.predication.values import Value
from breakscope.fix.rule import Unsafe

if TYPE_CHECKING:
    from breakscope.fix.predication.where import Branches


@dataclass(frozen=True, slots=True)
class Arm:
    """One branch: the ``if`` that tests for it (None for ``else``), and what it assigns, by place."""

    tested: ast.If | None
    block: list[ast.stmt]
    values: dict[str, ast.expr]


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a place gets where a guard holds. ``static``: Python decides the guard."""

    guard: str
    text: str
    value: Value
    static: bool = False


def arms_of(top: ast.If) -> tuple[Arm, ...] | None:
    """The branches, if each does nothing but assign the same places in the same order.

    All places are attributes of names, or there is one and it is a name.
    """
    found: list[Arm] = []
    node: ast.If | None = top
    while node is not None:
        found.append(Arm(node, node.body, _values(node.body)))
        rest = node.orelse
        node = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
        if node is None and rest:
            found.append(Arm(None, rest, _values(rest)))
    places = list(found[0].values)
    if not places or any(list(arm.values) != places for arm in found):
        return None
    return tuple(found) if len(places) == 1 or all("." in place for place in places) else None


def _values(block: list[ast.stmt]) -> dict[str, ast.expr]:
    """What a block assigns, by place; empty if it does anything else, or assigns one place twice."""
    values: dict[str, ast.expr] = {}
    for statement in block:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        name = target.value if isinstance(target, ast.Attribute) else target
        if (
            not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or not isinstance(name, ast.Name)
            or ast.unparse(statement.targets[0]) in values
        ):
            return {}
        values[ast.unparse(statement.targets[0])] = statement.value
    return values


def select(
    branches: Branches, place: str, choices: Sequence[Choice], otherwise: tuple[str, Value], indent: int
) -> tuple[str, Value]:
    """Source and value of the first choice whose guard holds, else of ``otherwise``.

    Args:
        indent: columns before the source, for its width.

    Raises:
        Unsafe: ``torch.where`` of them is not what the branch gives.
    """
    text, value = otherwise
    for depth, choice in reversed(list(enumerate(choices))):
        value = branches.pick(place, choice.value, value)
        if choice.static:
            text = f"{choice.text} if {choice.guard} else {text}"
        else:
            text = branches.where(choice.guard, choice.text, text, indent + depth * branches.layout.unit)
    return text, value


def render_name(branches: Branches, arms: tuple[Arm, ...], condition: Condition, column: int) -> list[str]:
    """Lines for branches that assign one name, as one expression; ``condition`` is the first one's."""
    (name,) = arms[0].values
    layout, comments = branches.layout, list[str]()
    choices: list[Choice] = []
    otherwise: tuple[str, Value] | None = None
    for index, arm in enumerate(arms):
        if index and arm.tested is not None:
            above = arms[index - 1].tested
            assert above is not None
            comments += [*layout.comments(above.orelse, 0), *layout.header_comments(arm.tested)]
            condition = split(branches.site, branches.evaluate, arm.tested.test, ran=False)
        node, value = arm.values[name], branches.evaluate(arm.values[name])
        text = layout.value(node, arm.block[0].col_offset)
        trailing = layout.trailing(arm.block[0]).strip()
        comments += [*layout.comments(arm.block, 0), *([trailing] if trailing else [])]
        if arm.tested is None:
            otherwise = (text, value)
        else:
            choices.append(Choice(condition.text, text, value))
    if otherwise is None:
        current = branches.current(name)
        if current is None:
            raise Unsafe(f"`{name}` may have no value here")
        otherwise = (name, current)
    chosen, branches.evaluate.names[name] = select(branches, name, choices, otherwise, column + len(name) + 3)
    return [*comments, f"{name} = {chosen}"]


def render_attributes(branches: Branches, arms: tuple[Arm, ...], mask: str, column: int) -> list[str]:
    """Lines for branches that store into attributes, each once; ``mask`` is the first one's condition."""
    places = list(arms[0].values)
    _independent(arms, places)
    top = arms[0].tested
    assert top is not None
    own = branches.layout.header_comments(top)  # is put in front already
    lines = [comment for comment in branches.layout.comments_in(top) if comment not in own]
    guards = [(mask, False)]
    for arm in arms[1:]:
        if arm.tested is not None:
            more, guard, static = _guard(branches, arm.tested.test)
            lines += more
            guards.append((guard, static))
    for place in places:
        branches.refuse_unwritable(place)
        old = branches.evaluate(ast.parse(place, mode="eval").body)
        values = [arm.values[place] for arm in arms]
        texts = [(branches.layout.value(node, node.col_offset), branches.evaluate(node)) for node in values]
        otherwise = texts.pop() if arms[-1].tested is None else (place, old)
        choices = [
            Choice(guard, text, value, static)
            for (guard, static), (text, value) in zip(guards, texts, strict=True)
        ]
        text, value = select(branches, place, choices, otherwise, column + len(place) + 3)
        lines.append(branches.store(place, text, value))
    return lines


def _independent(arms: tuple[Arm, ...], places: list[str]) -> None:
    """Refuse values and tests that read what was stored before them."""
    for number, place in enumerate(places):
        nodes = [arm.values[place] for arm in arms]
        nodes += [arm.tested.test for arm in arms[1:] if arm.tested is not None]
        attributes = (one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Attribute))
        read = {ast.unparse(attribute) for attribute in attributes}
        for earlier in places[:number]:
            if earlier in read:
                raise Unsafe(
                    f"what is stored into `{place}` depends on `{earlier}`, which is stored before it"
                )


def _guard(branches: Branches, test: ast.expr) -> tuple[list[str], str, bool]:
    """Lines before the stores, the source of a later branch's test, and whether Python decides it."""
    seen = branches.site.seen(test)
    if seen is not None and seen.only("bool", "int", "None", "str"):
        return [], enclosed(branches.site, test), True
    condition = split(branches.site, branches.evaluate, test, ran=False)
    name = branches.layout.unique("nested")
    return [f"{name} = {condition.text}"], name, False
