"""Values and what a call came to, as a reader of a counterexample sees them: short, and on one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from breakscope.inside.prove.attempt import Outcome

_MOST = 240
_MOST_RESULTS = 6


def text_of(value: Any) -> str:
    """A value as text."""
    if isinstance(value, torch.nn.Module):
        return f"{type(value).__name__}(...)"
    try:
        text = _tensor(value) if isinstance(value, torch.Tensor) else repr(value)
    except Exception as error:  # noqa: BLE001 -- the user's own __repr__
        text = f"{type(value).__name__} (its repr raises {type(error).__name__})"
    return _short(text)


def shown(outcome: Outcome) -> list[str]:
    """What a call returned or raised, printed, and which gradients arrived."""
    from breakscope.inside.prove.picture import TensorEntry

    lines = [f"raises {outcome.raised}"] if outcome.raised else []
    results = [entry for entry in outcome.picture.entries if entry.path.startswith("result")]
    for result in results[:_MOST_RESULTS]:
        if isinstance(result.what, TensorEntry):
            aspects = f", stride={result.what.layout[8]}, requires_grad={result.what.layout[4]}"
            lines.append(_short(f"{result.path} = {_tensor(result.what.values)}{aspects}"))
        elif isinstance(result.what, tuple) and len(result.what) == 2 and isinstance(result.what[1], str):
            lines.append(_short(f"{result.path} = {result.what[1]}"))
    if outcome.printed:
        lines.append(_short(f"prints {outcome.printed!r}"))
    for index, gradient in enumerate(outcome.gradients, 1):
        if index <= _MOST_RESULTS:
            lines.append(f"gradient {index} = {text_of(gradient)}")
    if outcome.backward_failed:
        lines.append(_short(f"backward raises {outcome.backward_failed}"))
    return lines


def _tensor(value: torch.Tensor) -> str:
    values = value.detach()
    some = values.flatten()[:8].tolist() if values.numel() else []
    more = ", ..." if values.numel() > len(some) else ""
    numbers = ", ".join(f"{one:.6g}" if isinstance(one, float) else str(one) for one in some)
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{dtype}{list(value.shape)} [{numbers}{more}]"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST else text[: _MOST - 4] + " ..."
