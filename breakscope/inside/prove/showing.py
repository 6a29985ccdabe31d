"""Values and what a call came to, as a reader of a counterexample sees them: short, and on one line each."""

from __future__ import annotations

from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

import torch

from breakscope.inside.prove.picture import TensorEntry

if TYPE_CHECKING:
    from breakscope.inside.prove.attempt import Outcome

_MOST = 240
_MOST_RESULTS = 6
_MOST_NUMBERS = 8


def text_of(value: Any, first: int = 0) -> str:
    """A value as text; a tensor's numbers from ``first`` on."""
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__name__}(...)"
    try:
        text = _tensor(value, first) if isinstance(value, torch.Tensor) else repr(value)
    except Exception as error:  # noqa: BLE001 -- the user's own __repr__
        text = f"{type(value).__name__} (its repr raises {type(error).__name__})"
    return _short(text)


def shown(outcome: Outcome | None, other: Outcome | None) -> list[str]:
    """What a call returned or raised, printed, and which gradients arrived.

    Of many results those that differ from the other call's, and of each tensor the numbers from there on.
    """
    if outcome is None:
        return []
    lines = [f"raises {outcome.raised}"] if outcome.raised else []
    results, others = _results(outcome), _results(other)
    differ = {path: _first_difference(what, others.get(path)) for path, what in results.items()}
    first = sorted(results, key=lambda path: differ[path] is None)[:_MOST_RESULTS]
    for path, what in results.items():
        if path in first:
            lines.append(_short(f"{path} = {_result(what, differ[path] or 0)}"))
    if outcome.printed:
        lines.append(_short(f"prints {outcome.printed!r}"))
    beside = zip_longest(outcome.gradients, other.gradients if other is not None else ())
    for index, (gradient, its) in enumerate(islice(beside, len(outcome.gradients[:_MOST_RESULTS])), 1):
        lines.append(f"gradient {index} = {text_of(gradient, _first_difference(gradient, its) or 0)}")
    if outcome.backward_failed:
        lines.append(_short(f"backward raises {outcome.backward_failed}"))
    return lines


def _results(outcome: Outcome | None) -> dict[str, TensorEntry | tuple[str, str]]:
    """Of what was returned, the tensors and the plain values, by their paths."""
    found = {}
    for entry in outcome.picture.entries if outcome is not None else ():
        match entry:
            case (str(path), (TensorEntry() | tuple((_, str()))) as what) if path.startswith("result"):
                found[path] = what
    return found


def _result(what: TensorEntry | tuple[str, str], first: int) -> str:
    if not isinstance(what, TensorEntry):
        return what[1]
    return f"{_tensor(what.values, first)}, stride={what.layout[8]}, requires_grad={what.layout[4]}"


def _first_difference(mine: Any, other: Any) -> int | None:
    """The place of the first number that differs, counted through the tensor; None where none is found."""
    if isinstance(mine, TensorEntry) and isinstance(other, TensorEntry):
        mine, other = mine.values, other.values
    if not isinstance(mine, torch.Tensor) or not isinstance(other, torch.Tensor):
        return None if mine == other else 0
    if (mine.shape, mine.device) != (other.shape, other.device):
        return 0
    if mine.layout != torch.strided or other.layout != torch.strided:
        return 0
    with torch.no_grad():
        mine, other = mine.detach().flatten(), other.detach().flatten()
        differ = mine.ne(other) & ~(mine.ne(mine) & other.ne(other))  # NaN is NaN
        return int(differ.int().argmax()) if bool(differ.any()) else None


def _tensor(value: torch.Tensor, first: int = 0) -> str:
    """The numbers from the first that matters, with its indices where that is not the first of all."""
    values = value.detach()
    start = first if first >= _MOST_NUMBERS else 0
    some = values.flatten()[start : start + _MOST_NUMBERS].tolist() if values.numel() else []
    numbers = [f"{one:.6g}" if isinstance(one, float) else str(one) for one in some]
    more = ["..."] if values.numel() > start + len(some) else []
    dtype = str(value.dtype).removeprefix("torch.")
    where = (
        [int(index) for index in torch.unravel_index(torch.tensor(start, device="cpu"), value.shape)]
        if start
        else []
    )
    return f"{dtype}{list(value.shape)}{f' from {where}:' if start else ''} [{', '.join(numbers + more)}]"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST else text[: _MOST - 4] + " ..."
