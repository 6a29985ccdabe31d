"""The modes in which the script made a call, to make the same call again when the script has left them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

_AUTOCAST_DEVICES = ("cuda", "cpu")


@dataclass(frozen=True, slots=True)
class Ambient:
    """Gradient, inference and autocast modes."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, Any], ...]

    @classmethod
    def now(cls) -> Ambient:
        """Those of this moment."""
        return cls(
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            tuple(
                (device, torch.get_autocast_dtype(device))
                for device in _AUTOCAST_DEVICES
                if torch.is_autocast_enabled(device)
            ),
        )

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
