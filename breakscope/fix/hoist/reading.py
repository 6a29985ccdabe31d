"""What Python reads at the end of a way into compiled code, said in the arguments at its beginning."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from breakscope.fix.hoist.binding import bound, may_be_none, overriding
from breakscope.fix.hoist.chain import Chain, Step
from breakscope.fix.hoist.expression import leaves, put_in
from breakscope.fix.hoist.reads import Read
from breakscope.fix.hoist.value import Follower
from breakscope.fix.hoist.writes import readers, refuse_writes
from breakscope.fix.rule import Site, Unsafe
from breakscope.report.model import Finding
from breakscope.source.names import builtin, defaults
from breakscope.source.torch_facts import AUTOCAST, FLOATING


def read_at(finding: Finding, chain: Chain) -> Read:
    """What is read at the end of a way, said at its beginning.

    Raises:
        Unsafe: it depends on what is computed on the way, or somebody may change it there.
    """
    node, cast = _asked(chain.steps[-1].site)
    value: ast.expr | None = None
    others: dict[str, None] = {}
    for step, following in zip(reversed(chain.steps), (None, *reversed(chain.steps[1:])), strict=True):
        value, names = _handed(value if value is not None else node, step, following)
        refuse_writes(step, names)
        others.update(dict.fromkeys(readers(step, names)))
    assert value is not None
    first = chain.steps[0]
    _refuse_strange(first, leaves(value))
    tested = {ast.unparse(one.left) for one in ast.walk(value) if isinstance(one, ast.Compare)}
    absent = tuple(one for one in leaves(value) if may_be_none(first, one) and one not in tested)
    _refuse_autocast(chain, value)
    limits = tuple(
        f"calls in which `{one}` writes into what `{ast.unparse(value)}` reads: in no compared one it did"
        for one in others
    )
    overridden = dict.fromkeys(
        f"{one}.{step.site.function.name}" for step in chain.steps[1:] for one in overriding(step)
    )
    limits += tuple(f"calls of {one}, which takes no such argument" for one in overridden)
    return Read(finding, chain, node, cast, value, absent, limits=limits)


def _asked(site: Site) -> tuple[ast.expr, str]:
    """The expression that Python needs the number of, and what makes one of it where it is a tensor."""
    node = site.node.test if isinstance(site.node, ast.If | ast.While) else site.node
    while isinstance(node, ast.expr):
        seen, above = site.seen(node), site.parents[node]
        if isinstance(above, ast.comprehension | ast.Lambda):
            raise Unsafe("it is read inside of a comprehension or a lambda")
        if seen is not None and seen.only("int", "float", "bool"):
            return node, ""
        if seen is not None and seen.only("tensor") and (cast := _cast(site, node, above)):
            return node, cast
        node = above  # type: ignore[assignment]
    raise Unsafe("what is read is not one number")


def _cast(site: Site, node: ast.expr, above: ast.AST) -> str:
    """``bool`` for a tensor that is a condition, ``int`` for one that is a size; empty for all else."""
    if isinstance(above, ast.If | ast.While | ast.IfExp) and above.test is node:
        return "bool"
    sized = isinstance(above, ast.Slice) or (
        isinstance(above, ast.Call) and builtin(site, above.func) == "range" and node in above.args
    )
    return "int" if sized else ""


def _handed(value: ast.expr, step: Step, following: Step | None) -> tuple[ast.expr, set[str]]:
    """A value in the parameters of a function, and the names that it was followed by there.

    Args:
        following: the function that has the value in its own parameters; None: it stands in this one.
    """
    follow = Follower(step.site)
    if following is None:
        return follow(value), follow.names
    found: dict[str, ast.expr] = {}
    for call in step.calls:
        given = bound(call, following)
        values = {}
        for leaf in leaves(value):
            if leaf in given:
                values[leaf] = follow(given[leaf])
            elif isinstance(default := defaults(following.site.function.args).get(leaf), ast.Constant):
                values[leaf] = default
            else:
                raise Unsafe(f"what `{ast.unparse(call)[:60]}` passes for `{leaf}` is not known")
        made = put_in(value, values)
        found[ast.dump(made)] = made
    if len(found) > 1:
        raise Unsafe(f"{following.site.qualname} gets another `{leaves(value)[0]}` at each of its calls")
    return next(iter(found.values())), follow.names


def _refuse_strange(first: Step, names: Sequence[str]) -> None:
    """Refuse arguments that were not always plain tensors or numbers."""
    if not names:
        raise Unsafe("it reads no argument of what is compiled")
    for name in names:
        seen = first.site.evidence.parameters.get(name)
        if seen is None:
            raise Unsafe(f"`{name}` is no argument that was recorded")
        if not seen.only("tensor", "int", "float", "bool", "None"):
            raise Unsafe(f"`{name}` is no plain tensor, and may compute something else when it is asked")


def _refuse_autocast(chain: Chain, value: ast.expr) -> None:
    """Refuse what autocast decides about where the call is, whatever it does where the value is read."""
    used = {one.attr for one in ast.walk(value) if isinstance(one, ast.Attribute)} & AUTOCAST
    around = any(signature.autocast for entry in chain.entries for signature in entry.signatures)
    seen = [chain.steps[0].site.evidence.parameters.get(leaf) for leaf in leaves(value)]
    if used and around and any(one is not None and not FLOATING.isdisjoint(one.dtypes) for one in seen):
        raise Unsafe(f"the call is under autocast, which decides the dtype of `{min(used)}`")
