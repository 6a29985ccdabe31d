"""Comprehensions in functions that run eagerly: a frame each before Python 3.12; a loop is none."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from breakscope.fix.layout import Layout
from breakscope.fix.patch import Edit, Rewrite, apply
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source import comprehensions
from breakscope.source.dominance import enclosing_statement


class Comprehension(Rule):
    """``found = {k: f(k) for k in names}`` -> ``found = {}``, and a loop that fills it."""

    name = "comprehension"
    codes = ("BS302",)
    title = "a loop instead of a comprehension that is a frame of its own"
    does = "`found = [f(k) for k in names]`, where Dynamo begins in the comprehension and gives it up: a loop"
    needs = (
        "It is the first that its statement evaluates: the value of a name, or the first argument of a call.",
        "Its loop names are used for nothing else in the function, or can be renamed.",
    )
    hazards = (
        "What would keep a turn's names (a lambda, a generator) or see them (`locals()`) is refused.",
        "Inside `try` or `with`, behind which a half filled value could be seen, it is left alone.",
        "The last element is held until the function returns.",
    )
    rewritten = Example(
        """\
def f(x, **options):
    flags = {f"use_{k}": options.get(k, False) for k in {"bias": 1, "scale": 2}}
    return x + len(flags)
""",
        """\
def f(x, **options):
    flags = {}
    for k in {"bias": 1, "scale": 2}:
        flags.update({f"use_{k}": options.get(k, False)})
    return x + len(flags)
""",
        site='{f"use_{k}": options.get(k, False) for k in {"bias": 1, "scale": 2}}',
        code="BS302",
    )
    left_alone = Example(
        """\
def f(x):
    steps = [lambda value: value * k for k in (1, 2, 3)]
    return x + steps[0](1)
""",
        why="a lambda or generator in it keeps `k`",
        site="[lambda value: value * k for k in (1, 2, 3)]",
        code="BS302",
    )

    def propose(self, site: Site) -> Rewrite | None:
        """Write the comprehension at the site as a loop."""
        node = site.node
        if site.code != "BS302" or not isinstance(node, comprehensions.Comprehension):
            return None
        statement = enclosing_statement(site, node)
        layout = Layout(site)
        name = comprehensions.filled_name(statement, node)
        rest = ""
        if not name:
            if comprehensions.called_before(node, statement, site.parents) is None:
                raise Unsafe("the comprehension is not the first that its statement evaluates")
            name = layout.unique("parts")
            rest = _with_name(site, statement, node, name)
        renamed = {
            one: layout.unique(one) for one in comprehensions.to_rename(site.function, node, site.parents)
        }
        why = comprehensions.why_no_loop(site.function, statement, node, name, site.parents, renamed)
        if why:
            raise Unsafe(why)
        start, _ = site.offsets(statement)
        return Rewrite(
            edits=(Edit(start, layout.end(statement), _loop(site, node, statement, name, rest, renamed)),),
            summary="a loop, which is no frame of its own, instead of the comprehension",
        )


def _with_name(site: Site, statement: ast.stmt, node: comprehensions.Comprehension, name: str) -> str:
    """A statement with a name in the place of the comprehension, and the comment behind it."""
    (first, last), (start, end) = site.offsets(statement), site.offsets(node)
    return f"{site.source[first:start]}{name}{site.source[end:last]}"


def _loop(
    site: Site,
    node: comprehensions.Comprehension,
    statement: ast.stmt,
    name: str,
    rest: str,
    renamed: Mapping[str, str],
) -> str:
    """The assignment of an empty value, the loop, and what is left of the statement."""
    layout = Layout(site)
    if layout.comments_in(statement) and not layout.trailing(statement):
        raise Unsafe("it holds comments")
    unit, column = " " * layout.unit, statement.col_offset
    if site.lines[statement.lineno - 1][:column].strip() or _shares_line(site, statement):
        raise Unsafe("it shares its line with another statement")
    if isinstance(node, ast.SetComp) and "set" in site.module.bound | site.module.imported:
        raise Unsafe("`set` is not Python's own here")
    method, _ = comprehensions.filling(node)
    if isinstance(node, ast.DictComp):
        element = f"{{{_text(site, node.key, renamed)}: {_text(site, node.value, renamed)}}}"
    else:
        element = _text(site, node.elt, renamed)
    heads: list[str] = []
    for generator in node.generators:
        heads.append(
            f"for {_text(site, generator.target, renamed)} in {_on_its_own(site, generator.iter, renamed)}:"
        )
        heads += [f"if {_on_its_own(site, test, renamed)}:" for test in generator.ifs]
    comment = layout.trailing(statement)
    lines = [f"{name} = {comprehensions.empty(node)}{'' if rest else comment}"]
    lines += [f"{' ' * column}{unit * depth}{head}" for depth, head in enumerate(heads)]
    lines.append(f"{' ' * column}{unit * len(heads)}{name}.{method}({element})")
    return "\n".join([*lines, f"{' ' * column}{rest}{comment}"] if rest else lines)


def _text(site: Site, node: ast.expr, renamed: Mapping[str, str]) -> str:
    """An expression's text with other names."""
    start, end = site.offsets(node)
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in renamed]
    places = [(*site.offsets(one), renamed[one.id]) for one in names]
    return apply(site.source[start:end], [Edit(at - start, to - start, new) for at, to, new in places])


def _on_its_own(site: Site, node: ast.expr, renamed: Mapping[str, str]) -> str:
    """An expression's text where no brackets are around it."""
    text = _text(site, node, renamed)
    return f"({text})" if "\n" in text else text


def _shares_line(site: Site, statement: ast.stmt) -> bool:
    line = site.span(statement).end_line
    rest = site.lines[line - 1][site.span(statement).end_column - 1 :].strip()
    return bool(rest) and not rest.startswith("#")
