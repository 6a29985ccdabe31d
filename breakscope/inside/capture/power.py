"""Whether a card is at its power limit, asked of the driver's own library: read, never set.

A card at its limit lowers its clock until it keeps to it. There time that the device no longer waits is not
all gained: what it rested before it now works, and needs power for.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

_LIBRARY = "libnvidia-ml.so.1"
_POWER_CAP, _POWER_BRAKE = 0x4, 0x80  # bits of what holds the clock down


class PowerLimit:
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

    def reached(self) -> bool | None:
        """Whether the clock is lower than it could be, to save power; None where that is not told."""
        held = ctypes.c_ulonglong()
        if self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._card, ctypes.byref(held)):
            return None
        return bool(held.value & (_POWER_CAP | _POWER_BRAKE))
