"""``x.masked_fill(m, t.item())``: a number read from a tensor, for a method that takes the tensor as well.

The read ends the graph. ``masked_fill``, ``fill_`` and ``clamp`` do with a tensor without dimensions what
they do with its number.
"""

from __future__ import annotations

import ast

from breakscope.fix.alias import gives_own
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.condition import is_scalar_read
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.names import dotted
from breakscope.source.syntax import grouped
from breakscope.source.torch_facts import FLOATING

# How many arguments there are besides the tensor. clamp takes its bounds as tensors or as numbers, not mixed.
_TAKES_BOTH = {"masked_fill": 2, "masked_fill_": 2, "fill_": 1, "clamp": 1, "clamp_": 1}


class TensorArgument(Rule):
    """``x.masked_fill(m, t.item())`` -> ``x.masked_fill(m, t.detach())``."""

    name = "tensor-argument"
    codes = ("BS102",)
    title = "the tensor itself as an argument, instead of its number"
    does = "`x.masked_fill(m, t.item())`, `fill_`, `clamp` get the tensor"
    after = ("scalar-read",)
    before = ("capture-flag",)
    needs = ("The tensor that is read has no dimensions, and the floating dtype of the method's own tensor.",)
    hazards = (
        "Gradients flow through neither form to the tensor that is read.",
        "`clamp` with two bounds is refused: it takes both as tensors, or none.",
    )
    rewritten = Example(
        """\
def f(x, mask):
    return x.masked_fill(mask, x.min().item())
""",
        """\
def f(x, mask):
    return x.masked_fill(mask, x.min().detach())
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4) > 0",),
    )
    left_alone = Example(
        """\
def f(x):
    return x.clamp(0.0, x.mean().item())
""",
        why="`clamp` takes two bounds as tensors, or none",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the argument that is read from a tensor at the site."""
        for node in site.around():
            read = is_scalar_read(site, node)
            if read is None:
                continue
            call = site.parents[node]
            call = site.parents[call] if isinstance(call, ast.keyword) else call
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                return None
            method = call.func.attr
            if method not in _TAKES_BOTH or dotted(site, call.func) or not site.is_tensor(call.func.value):
                return None
            if len(call.args) + len(call.keywords) != _TAKES_BOTH[method]:
                raise Unsafe(f"`{method}` takes two bounds as tensors, or none")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id != "float":
                raise Unsafe(f"{node.func.id}() drops the fraction")
            tensor, x = _tensor(site, read, call.func.value), site.text(call.func.value)
            return Rewrite(
                edits=(Edit(*site.offsets(node), tensor),),
                summary="the tensor itself as an argument",
                assumes=(f"`{site.text(read)}` and `{x}` keep their dtype, as in the recorded run",),
            )
        return None


def _tensor(site: Site, read: ast.expr, receiver: ast.expr) -> str:
    """The source of the tensor, cut off from gradients as its number was."""
    seen, other = site.seen(read), site.seen(receiver)
    assert seen is not None
    assert other is not None
    text = site.text(read)
    if seen.shapes != {()}:
        raise Unsafe(f"`{text}` has dimensions")
    if len(seen.dtypes) != 1 or not seen.dtypes <= FLOATING or seen.dtypes != other.dtypes:
        raise Unsafe(f"`{text}` is not of the floating dtype of `{site.text(receiver)}`")
    if seen.devices != other.devices:
        raise Unsafe(f"`{text}` is on another device than `{site.text(receiver)}`")
    detached = f"{grouped(read, text)}.detach()"
    # Autograd may keep it for the way back, and who holds it may change it until then.
    return detached if gives_own(site, read) else f"{detached}.clone()"
