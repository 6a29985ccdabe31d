"""What a function on the way gets: which expression of its caller becomes which parameter."""

from __future__ import annotations

import ast

from breakscope.fix.hoist.chain import Step
from breakscope.fix.rule import Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.module import FunctionNode
from breakscope.source.names import defaults


def bound(call: ast.Call, following: Step) -> dict[str, ast.expr]:
    """The expression that each parameter of the next function gets; None is missing where it is left out.

    Raises:
        Unsafe: the call does not show it.
    """
    arguments = following.site.function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    if any(isinstance(one, ast.Starred) for one in call.args) or any(k.arg is None for k in call.keywords):
        raise Unsafe(f"a call hands on what it got by `*`: `{ast.unparse(call)[:60]}`")
    given: list[ast.expr] = list(call.args)
    if following.method:
        if any(
            isinstance(one, ast.Name) and one.id in ("staticmethod", "classmethod")
            for one in following.site.function.decorator_list
        ):
            raise Unsafe(f"{following.site.qualname} is no method of an object")
        given.insert(0, receiver(call, following))
    found = dict(zip(names, given, strict=False))
    found.update({str(keyword.arg): keyword.value for keyword in call.keywords})
    return found


def receiver(call: ast.Call, following: Step) -> ast.expr:
    """The object whose method, or forward, a call calls."""
    called = call.func
    name = following.site.function.name
    return called.value if isinstance(called, ast.Attribute) and called.attr == name else called


def may_be_none(step: Step, name: str) -> bool:
    """Whether a parameter may be None, by its default or by what was recorded."""
    seen: Seen | None = step.site.evidence.parameters.get(name)
    default = defaults(step.site.function.args).get(name)
    return (seen is not None and "None" in seen.kinds) or (
        isinstance(default, ast.Constant) and default.value is None
    )


def overriding(step: Step) -> list[str]:
    """Classes of the same file with a method of their own in its place that takes no argument more."""
    owner, _, name = step.site.qualname.rpartition(".")
    if not step.method:
        return []
    derived, found = {owner}, []
    for one in (node for node in step.site.tree.body if isinstance(node, ast.ClassDef)):
        if not {ast.unparse(base) for base in one.bases} & derived:
            continue
        derived.add(one.name)
        own = [part for part in one.body if isinstance(part, FunctionNode) and part.name == name]
        found += [one.name for part in own if part.args.kwarg is None]
    return found
