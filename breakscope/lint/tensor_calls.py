"""Functions of torch and numpy: what they give, and which break."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from breakscope.lint import known
from breakscope.lint.kinds import (
    ARRAY,
    DATA,
    MASK,
    MAYBE,
    NONE,
    PLAIN,
    SURE_TENSOR,
    TENSOR,
    TENSORS,
    UNKNOWN,
    VALUE,
    Kind,
)

if TYPE_CHECKING:
    from breakscope.lint.evaluator import Evaluator


def torch_kind(ev: Evaluator, node: ast.Call, dotted: str, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    """A call of one of torch's own functions."""
    name = dotted.rpartition(".")[2]
    if dotted == "torch.where" and len(node.args) + len(node.keywords) == 1:
        ev.report("BS105", node, likely=True, about="torch.where of one argument")
        return TENSORS
    if name == "one_hot" and len(node.args) < 2 and "num_classes" not in named:
        ev.report("BS105", node, likely=True, about="one_hot without num_classes")
        return TENSOR
    if name == "repeat_interleave":
        repeat_interleave(ev, node, kinds[1:2] or [named.get("repeats", UNKNOWN)], named)
        return TENSOR
    if dotted == "torch.autograd.grad":
        ev.report("BS121", node, likely=False)
        return TENSORS
    if dotted.startswith("torch.testing.assert_"):
        ev.report("BS101", node, likely=True, about="compares tensors' values")
        return NONE
    sized = name in known.SIZED and dotted == f"torch.{name}"
    if sized or dotted in known.SIZED_FUNCTIONAL:
        # The second argument of full() is a value; the first of the others is what is padded or resized.
        sizes = kinds[:1] if name == "full" else kinds if sized else kinds[1:]
        read_sizes(ev, node, sizes, [*named.items()])
        return TENSOR
    if dotted in known.NN_WITH_PARAMETERS or dotted == "torch.nn.Parameter":
        ev.report("BS115", node, likely=dotted != "torch.nn.Parameter", about="parameters made here")
        return VALUE if dotted != "torch.nn.Parameter" else TENSOR
    submodule = dotted != f"torch.{name}"
    if submodule and not dotted.startswith(known.TENSOR_MODULES):
        return UNKNOWN
    if name in known.TORCH_VALUES or name[:1].isupper():
        return VALUE
    if name in known.TORCH_ARITHMETIC and all(kind in PLAIN for kind in kinds):
        return VALUE
    return _torch_result(name, node, kinds, named)


def _torch_result(name: str, node: ast.Call, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    if name in known.TORCH_SEQUENCES:
        return TENSORS
    if name in known.PAIR_METHODS and name not in known.ALWAYS_PAIR:
        reduced = "dim" in named or (len(node.args) > 1 and kinds[1] in PLAIN)
        return TENSORS if reduced else TENSOR
    return MASK if name in known.TORCH_MASKS else TENSOR


def repeat_interleave(ev: Evaluator, node: ast.Call, repeats: list[Kind], named: dict[str, Kind]) -> None:
    """Report repeats that are a tensor where the size of the result is not given."""
    if "output_size" in named:
        return
    kind = repeats[0] if repeats else UNKNOWN
    if kind in SURE_TENSOR or kind in (MAYBE, UNKNOWN):
        likely = kind in SURE_TENSOR
        ev.report(
            "BS105", node, likely=likely, about="repeat_interleave of tensor repeats without output_size"
        )


def read_sizes(
    ev: Evaluator, node: ast.Call, kinds: list[Kind], named: list[tuple[str, Kind]], *, first: int = 0
) -> None:
    """Report a tensor where a function wants Python numbers."""
    wanted = ("start", "end", "step", "size", "steps", "n", "m")
    found = any(kind in SURE_TENSOR for kind in kinds[first:])
    found = found or any(kind in SURE_TENSOR for name, kind in named if name in wanted)
    sequences = [arg for arg in node.args[first:] if isinstance(arg, ast.Tuple | ast.List)]
    sequences += [
        keyword.value for keyword in node.keywords if isinstance(keyword.value, ast.Tuple | ast.List)
    ]
    for sequence in sequences:
        found = found or any(ev.peek(element) in SURE_TENSOR for element in sequence.elts)
    if found:
        ev.report("BS102", node, likely=True, about="tensor as a size")


def numpy_kind(ev: Evaluator, node: ast.Call, dotted: str, kinds: list[Kind]) -> Kind:
    """A call of one of numpy's functions, which Dynamo traces where torch has a counterpart."""
    if dotted.startswith("numpy.random."):
        name = dotted.rpartition(".")[2]
        if name not in known.NUMPY_RANDOM_CLEAN:
            supported = name in known.NUMPY_RANDOM
            # A single number must be read out of what Dynamo traces as a tensor.
            code, likely = ("BS102", not node.args) if supported else ("BS110", True)
            ev.report(code, node, likely=likely, about="random number from numpy")
        return ARRAY
    if dotted in known.NUMPY_MISSING:
        ev.report("BS110", node, likely=True, about=f"Dynamo has no counterpart of {dotted}")
        return ARRAY
    name = dotted.rpartition(".")[2]
    if name in known.NUMPY_SCALAR and all(kind in PLAIN for kind in kinds):
        return VALUE
    return ARRAY if any(kind in DATA or kind is MAYBE for kind in kinds) or name.startswith("a") else UNKNOWN
