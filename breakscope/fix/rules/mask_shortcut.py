"""Masks that leave nothing out: a short way without the mask is not taken while compiling."""

from __future__ import annotations

import ast

from breakscope.fix.layout import Layout
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import bound_before, enclosing_statement
from breakscope.source.names import dotted, names_in, own_nodes

_WHOLE = {"all", "any"}
_ANSWERS = ast.Compare | ast.UnaryOp | ast.Call | ast.Attribute | ast.Name | ast.Constant


class MaskShortcut(Rule):
    """``if mask.all(): mask = None`` -> ``if not torch.compiler.is_compiling() and mask.all(): …``."""

    name = "mask-shortcut"
    codes = ("BS101",)
    title = "the mask is kept while compiling, also where it leaves nothing out"
    does = "`if mask.all(): mask = None`: not asked while compiling, where the mask is used in every call"
    asks = "always: the way with the mask costs its time, and the last bits of results may differ"
    consent = True
    after = ("branch-to-cond",)
    needs = (
        "The condition is `all` or `any` of one name, or of a comparison of it with numbers.",
        "All that the branch does is to give that name None.",
        "The name is a tensor before it.",
    )
    hazards = (
        "Compiled code takes the way with the mask in every call.",
        "Results may differ in their last bits where the mask leaves nothing out.",
        "What None means to other code, that a mask may not: the proof compares both ways.",
    )
    rewritten = Example(
        """\
def f(x, mask):
    if mask.all():
        mask = None
    scores = x @ x.T
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1)
""",
        """\
def f(x, mask):
    if not torch.compiler.is_compiling() and mask.all():
        mask = None
    scores = x @ x.T
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1)
""",
        calls=(
            "torch.randn(3, 4), torch.tensor([True, True, False])",
            "torch.randn(3, 4), torch.tensor([True, True, True])",
        ),
        consent=True,
    )
    left_alone = Example(
        """\
def f(x, mask):
    if mask.all():
        mask, x = None, x + 1
    return x if mask is None else x * mask
""",
        why="the branch does more than leave `mask` out",
        calls=(
            "torch.randn(3, 4), torch.tensor([True, True, False, True])",
            "torch.randn(3, 4), torch.tensor([True, True, True, True])",
        ),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Let the condition at the site be asked outside of compiled code only."""
        branch = enclosing_statement(site, site.node)
        if not isinstance(branch, ast.If) or not _gives_none(branch.body):
            return None
        name = _mask_asked(site, branch.test)
        if name is None:
            return None
        match branch.body:
            case [ast.Assign(targets=[ast.Name(id=given)], value=ast.Constant(value=None))] if given == name:
                pass
            case _:
                raise Unsafe(f"the branch does more than leave `{name}` out")
        seen = site.seen_before(branch).get(name)
        if seen is None or not seen.only("tensor") or not bound_before(site, branch, name):
            raise Unsafe(f"`{name}` is not a tensor in every call")
        if site.text(branch).startswith("elif"):
            raise Unsafe("the short way is one of several branches")
        start, end = Layout(site).outer(branch.test)
        return Rewrite(
            edits=(
                Edit(start, end, f"not {site.torch}.compiler.is_compiling() and {site.source[start:end]}"),
            ),
            summary="the mask is kept while compiling",
            notes=(
                f"compiled code uses `{name}` in every call, also where it leaves nothing out",
                "the last bits of results may differ there",
            ),
            exact="rounded",
            consent=True,
            differs=True,
            branches=(site.span(branch.test),),
            compiled_only=True,
        )


def _gives_none(block: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Constant) and node.value is None
        for statement in block
        if isinstance(statement, ast.Assign)
        for node in ast.walk(statement.value)
    )


def _mask_asked(site: Site, test: ast.expr) -> str | None:
    """The one name of which a condition asks ``all`` or ``any``; None: it asks for something else."""
    if not all(isinstance(node, _ANSWERS) for node in ast.walk(test) if isinstance(node, ast.expr)):
        return None
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    if len(calls) != 1 or calls[0].keywords:
        return None
    function, names = calls[0].func, names_in([test])
    if isinstance(function, ast.Attribute) and dotted(site, function) is None:
        asked = function.attr if not calls[0].args else ""
    else:
        asked = (dotted(site, function) or "").removeprefix("torch.") if len(calls[0].args) == 1 else ""
        names -= names_in([function])
    own = {node.id for node in own_nodes(site.function) if isinstance(node, ast.Name)}
    return names.pop() if asked in _WHOLE and len(names) == 1 and names <= own else None
