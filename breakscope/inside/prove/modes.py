"""The modes of torch that a call may leave entered: grad mode, autocast, default dtype and their like."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from breakscope.inside.prove.compat import modes_entered

_AUTOCAST = ("cpu", "cuda")


def now() -> Mapping[str, Any]:
    """Every mode as it is, by the name that a reader knows it by."""
    found: dict[str, Any] = {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "the default dtype": torch.get_default_dtype(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the number of function modes": modes_entered(),
    }
    for device in _AUTOCAST:
        found[f"autocast on {device}"] = torch.is_autocast_enabled(device)
        found[f"the dtype of autocast on {device}"] = torch.get_autocast_dtype(device)
    return found


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Put back what a call leaves otherwise: a test must not change the script."""
    before = now()
    try:
        yield
    finally:
        after = now()
        if after["grad mode"] != before["grad mode"]:
            torch.set_grad_enabled(before["grad mode"])
        if after["the default dtype"] is not before["the default dtype"]:
            torch.set_default_dtype(before["the default dtype"])
        if after["deterministic algorithms"] != before["deterministic algorithms"]:
            torch.use_deterministic_algorithms(before["deterministic algorithms"])
        for device in _AUTOCAST:
            torch.set_autocast_enabled(device, before[f"autocast on {device}"])
            torch.set_autocast_dtype(device, before[f"the dtype of autocast on {device}"])
