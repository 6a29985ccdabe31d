"""Asked before a kernel of a GPU runs: an index or a probability out of range ends all computation there.

On the CPU an operator raises for it. A GPU's kernel fails an assertion of its own ("device-side assert
triggered"), after which every further call of the process fails, and with it the proof.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

Arguments = Mapping[str, Any]


class OutOfRangeError(IndexError):
    """What an operator was given would have ended all computation on its device."""


def stops(raised: str | None) -> bool:
    """Whether an exception, as text, is one of these: nothing to compare, no program gets beyond it."""
    return raised is not None and raised.startswith(OutOfRangeError.__name__)


def checked() -> contextlib.AbstractContextManager[Any]:
    """Entered around test calls: raises in place of what would end them all, once CUDA is at work."""
    return InRange("cuda") if torch.cuda.is_initialized() else contextlib.nullcontext()


class InRange(TorchDispatchMode):  # type: ignore[misc]
    """Raises :class:`OutOfRangeError` before an operator of a device gets what it asserts it never gets."""

    supports_higher_order_operators = True  # torch.while_loop: what it calls comes here too

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "overloadpacket", func).__name__
        wanted = _WANTED.get(name) or _WANTED.get(name.strip("_"))
        if wanted is not None and getattr(func, "namespace", "") == "aten":
            names = [argument.name for argument in func._schema.arguments]
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            if any(
                isinstance(one, torch.Tensor) and one.device.type == self._device for one in given.values()
            ):
                wanted(given)
        return func(*args, **kwargs)


def _index(index: torch.Tensor, low: int, size: int) -> None:
    if bool(((index < low) | (index >= size)).any()):
        raise OutOfRangeError(f"an index is out of range for size {size}")


def _rows(given: Arguments) -> None:
    _index(given["indices"], 0, given["weight"].shape[0])


def _places(given: Arguments) -> None:
    """``x[i, :, j]``: a mask takes as many dimensions as it has, all else takes one."""
    indices: Sequence[torch.Tensor | None] = given["indices"]
    at = 0
    for index in indices:
        if index is None or index.dtype not in (torch.bool, torch.uint8):
            if index is not None:
                _index(index, -given["self"].shape[at], given["self"].shape[at])
            at += 1
        else:
            at += index.dim()


def _size(given: Arguments) -> int:
    """Of the dimension that is indexed; a number has one place."""
    source = given["self"]
    return int(source.shape[given["dim"]]) if source.dim() else 1


def _along(given: Arguments) -> None:
    """Along one dimension, from its beginning."""
    _index(given["index"], 0, _size(given))


def _from_either_end(given: Arguments) -> None:
    _index(given["index"], -_size(given), _size(given))


def _anywhere(given: Arguments) -> None:
    _index(given["index"], -given["self"].numel(), given["self"].numel())


def _classes(given: Arguments) -> None:
    target, scores = given["target"], given["self"]
    _index(target[target != given["ignore_index"]], 0, scores.shape[1 if scores.dim() > 1 else 0])


def _weights(given: Arguments) -> None:
    weights = given["self"]
    sums = weights.sum(-1)
    if not bool((weights >= 0).all() & torch.isfinite(sums).all() & (sums > 0).all()):
        raise OutOfRangeError("weights of a draw are negative, not finite, or all zero")


def _shares(shares: Any) -> None:
    if isinstance(shares, torch.Tensor) and not bool(((shares >= 0) & (shares <= 1)).all()):
        raise OutOfRangeError("a probability is not between 0 and 1")


def _holds(given: Arguments) -> None:
    if not bool(given["self"].all()):
        raise OutOfRangeError(str(given.get("assert_msg", "an assertion in the graph does not hold")))


# By the name of the operator; without the underscores around it, where those make no difference.
_WANTED: Mapping[str, Callable[[Arguments], None]] = {
    **dict.fromkeys(("embedding", "embedding_bag", "embedding_bag_forward_only"), _rows),
    **dict.fromkeys(("index", "index_put", "index_put_impl", "unsafe_index", "unsafe_index_put"), _places),
    **dict.fromkeys(("index_select", "index_add", "index_copy", "index_reduce", "gather"), _along),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), _along),
    "index_fill": _from_either_end,
    **dict.fromkeys(("take", "put"), _anywhere),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _classes),
    "multinomial": _weights,
    "bernoulli": lambda given: _shares(given.get("p", given["self"])),
    "bernoulli_": lambda given: _shares(given.get("p")),  # what was in it before says nothing
    "binary_cross_entropy": lambda given: _shares(given["self"]),
    "assert_async": _holds,
}
