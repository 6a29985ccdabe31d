"""``h.requires_grad = True`` in the middle of a function: a leaf that compiled code cannot make."""

from __future__ import annotations

import ast

from breakscope.fix.layout import Layout
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import own_nodes, parameters, reads_of, rebound_elsewhere, stores
from breakscope.source.syntax import shown

# What looks at a leaf's own gradient, or computes one, so that the flag matters by itself.
_LOOKS = {
    "grad", "backward", "register_hook", "retain_grad", "is_leaf", "requires_grad",
    "register_post_accumulate_grad_hook",
}  # fmt: skip
_EXAMPLE = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x):
        h = x[:, :]
        if self.training:
            {line}
        h = self.first(h)
        {use}return h"""


class EagerLeaf(Rule):
    """``h.requires_grad = True`` -> ``if not torch.compiler.is_compiling(): h.requires_grad = True``."""

    name = "eager-leaf"
    codes = ("BS115",)
    title = "a tensor becomes a leaf in eager code only"
    does = "`h.requires_grad = True` on a tensor of the function's own: not while compiling"
    asks = "always: in compiled code `h` takes no gradient"
    consent = True
    after = ("requires-grad",)
    needs = (
        "The tensor is one of the function's own: no parameter, no attribute.",
        "Nothing in the function looks at its flag, its gradient or its hooks.",
    )
    hazards = (
        "In compiled code the results take gradients only if a parameter of what follows does.",
        "Checkpointing that is reentrant gives no gradients to parameters if no input takes any.",
    )
    rewritten = Example(
        _EXAMPLE.format(line="h.requires_grad = True", use=""),
        _EXAMPLE.format(
            line="if not torch.compiler.is_compiling():\n                h.requires_grad = True", use=""
        ),
        calls=("torch.randn(2, 4)", "torch.randn(3, 4)"),
        consent=True,
    )
    left_alone = Example(
        _EXAMPLE.format(
            line="h.requires_grad = True",
            use="h = torch.autograd.grad(h.sum(), self.first.weight)[0]\n        ",
        ),
        why="looks at gradients",
        calls=("torch.randn(2, 4)", "torch.randn(3, 4)"),
        site="h.requires_grad = True",
        code="BS115",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Put the assignment at the site under a condition."""
        statement = enclosing_statement(site, site.node)
        name = _leaf(statement)
        if name is None:
            return None
        seen = site.seen_before(statement).get(name)
        if seen is None or not seen.only("tensor") or seen.requires_grad:
            return None
        _own_tensor(site, name)
        _not_looked_at(site, name, statement)
        layout = Layout(site)
        start, _ = site.offsets(statement)
        if site.source[site.starts[statement.lineno - 1] : start].strip():
            raise Unsafe("the assignment stands behind another statement on its line")
        inner = " " * (statement.col_offset + layout.unit)
        text = f"if not {site.torch}.compiler.is_compiling():\n{inner}{site.text(statement)}"
        return Rewrite(
            edits=(Edit(*site.offsets(statement), text),),
            summary="the tensor becomes a leaf in eager code only",
            notes=(
                f"in compiled code `{name}` takes no gradient, and its results only if a parameter does",
                "reentrant checkpointing there gives no gradients to parameters",
            ),
            consent=True,
            differs=True,
        )


def _leaf(statement: ast.stmt) -> str | None:
    """The name of ``name.requires_grad = True``."""
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(id=name), attr="requires_grad")],
            value=ast.Constant(value=True),
        ):
            return name
    return None


def _own_tensor(site: Site, name: str) -> None:
    """Whether nobody outside of the function holds the tensor.

    Raises:
        Unsafe: somebody may.
    """
    if name in parameters(site.function) or rebound_elsewhere(site.function, name):
        raise Unsafe(f"`{name}` is held outside of the function too: set the flag before the compiled call")
    for value in stores(site, name):
        if isinstance(value, ast.Name | ast.Attribute):
            raise Unsafe(f"`{name}` may be `{site.text(value)}`, which is held elsewhere too")


def _not_looked_at(site: Site, name: str, statement: ast.stmt) -> None:
    """Whether the function only computes with the tensor.

    Raises:
        Unsafe: it may do more.
    """
    inside = {id(node) for node in ast.walk(statement)}
    for node in own_nodes(site.function):
        if isinstance(node, ast.Attribute) and node.attr in _LOOKS and id(node) not in inside:
            raise Unsafe(f"the function looks at gradients: `{site.text(node)}`")
    for read in reads_of(site, name):
        parent = site.parents[read]
        if id(read) in inside or isinstance(parent, ast.Return):
            continue  # what a function returns under a name is compared by the proof
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.List | ast.Tuple | ast.Dict | ast.Set):
            raise Unsafe(f"`{name}` is kept: `{shown(site, parent)}`")
