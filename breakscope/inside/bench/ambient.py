"""The modes in which the script made a call, to make the same call again when the script has left them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch

_AUTOCAST_DEVICES = ("cuda", "cpu")


class Ambient(NamedTuple):
    """Gradient, inference and autocast modes. Made at every call that is timed: it must cost little."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, Any], ...]

    @classmethod
    def now(cls) -> Ambient:
        """Those of this moment."""
        autocast: tuple[tuple[str, Any], ...] = ()
        for device in _AUTOCAST_DEVICES:
            if torch.is_autocast_enabled(device):
                autocast += ((device, torch.get_autocast_dtype(device)),)
        return cls(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """With these modes."""
        with ExitStack() as stack:
            if self.inference:
                stack.enter_context(torch.inference_mode())
            else:
                stack.enter_context(torch.set_grad_enabled(self.grad))
            for device, dtype in self.autocast:
                stack.enter_context(torch.autocast(device, dtype=dtype))
            yield
