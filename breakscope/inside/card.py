"""What the driver's own library says of a card, and what room it has: read, never set.

A card at its power limit lowers its clock until it keeps to it. There time that the device no longer waits is
not all gained: what it rested before it now works, and needs power for.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

import torch

_LIBRARY = "libnvidia-ml.so.1"
_POWER_CAP, _POWER_BRAKE = 0x4, 0x80  # bits of what holds the clock down
_SHARED = 0  # the compute mode in which any number of processes may use the card
# What a run takes beside its tensors, for contexts and kernels, and how many times the peak of an eager run:
# a compiled one that is compared keeps outputs, and graphs that are recorded keep memory of their own.
_CONTEXT_BYTES, _PEAKS = 2**30, 3


class Card:
    """Asks about the card that is current when this is made.

    Raises:
        OSError: there is no such library, or it does not know the card.
    """

    def __init__(self) -> None:
        self._nvml: Any = ctypes.CDLL(_LIBRARY)
        self._card = ctypes.c_void_p()
        uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}".encode()
        if self._nvml.nvmlInit_v2() or self._nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(self._card)):
            raise OSError(f"{_LIBRARY} does not know the card")

    def at_power_limit(self) -> bool | None:
        """Whether the clock is lower than it could be, to save power; None where that is not told."""
        held = ctypes.c_ulonglong()
        if self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._card, ctypes.byref(held)):
            return None
        return bool(held.value & (_POWER_CAP | _POWER_BRAKE))

    def shared(self) -> bool:
        """Whether several processes may use the card at one time. No, where that is not told."""
        mode = ctypes.c_uint()
        return (
            not self._nvml.nvmlDeviceGetComputeMode(self._card, ctypes.byref(mode)) and mode.value == _SHARED
        )


def current() -> Card | None:
    """The current card; None without such a library, with an older one, or for a card without a name."""
    with suppress(OSError, AttributeError):
        return Card()
    return None


def room() -> int | None:
    """How many runs like this process the card has memory for, this one among them; None: it uses no card."""
    if not torch.cuda.is_initialized():
        return None
    card = current()
    if card is None or not card.shared():
        return 1
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved()
    each = _PEAKS * torch.cuda.max_memory_reserved() + _CONTEXT_BYTES
    return max(1, int(free // each))
