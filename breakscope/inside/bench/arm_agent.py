"""The child side of one arm: started before the script, it waits until the script imports torch."""

from __future__ import annotations

import atexit
import faulthandler
import os
import random
import socket
import sys
import time
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from breakscope.inside import imports, overlay
from breakscope.inside.bench.plan import ArmSettings
from breakscope.inside.bench.wire import Channel
from breakscope.inside.capture import targets

if TYPE_CHECKING:
    from breakscope.inside.bench.arm_hooks import ArmHooks
    from breakscope.inside.bench.turns import Turns


def start(settings_text: str) -> None:
    """Begin to be an arm. Called once, by the boot file."""
    began = time.perf_counter()
    faulthandler.enable()  # into the arm's log: a process that crashes says where
    settings = ArmSettings.loads(settings_text)
    os.set_inheritable(settings.channel, False)
    channel = Channel(socket.socket(fileno=settings.channel))
    arm = _Arm(settings, channel, began)
    if settings.fixes is not None:
        overlay.install(settings.fixes, settings.script)
    if settings.function is not None:
        target = targets.Target.parse(settings.function)
        asked = [targets.Decorated(target, arm.measure_function)]
        targets.install(asked, settings.script, arm.no_such_function)
    imports.after_import("torch", arm.hook_torch)
    imports.after_import("numpy.random", arm.seed_numpy)
    atexit.register(arm.script_without_torch)


class _Arm:
    """What happens before there is a torch, and the way to what happens after."""

    def __init__(self, settings: ArmSettings, channel: Channel, began: float) -> None:
        self._settings = settings
        self._channel = channel
        self._began = began
        self._hooks: ArmHooks | None = None

    def hook_torch(self) -> None:
        """The script has just imported torch."""
        from breakscope.inside.bench.arm_hooks import ArmHooks
        from breakscope.inside.bench.turns import Turns

        random.seed(self._settings.seed)
        turns = Turns(self._settings, self._channel, self._began)
        self._hooks = ArmHooks(self._settings, turns)
        self._hooks.install()
        sys.excepthook = _telling(turns, sys.excepthook)

    def seed_numpy(self) -> None:
        """The script has just imported numpy."""
        sys.modules["numpy.random"].seed(self._settings.seed)

    def measure_function(self, function: object) -> object:
        """The decorator of ``--function``."""
        import torch  # noqa: F401 -- the hooks come with it, and the function needs it anyway

        if self._hooks is None:
            raise RuntimeError("torch was imported before the agent could be told")
        return self._hooks.measured(function)

    def no_such_function(self, names: list[str]) -> None:
        """The module of ``--function`` has no function of that name."""
        there = ", ".join(names) or "none"
        self._channel.send(
            "failed", error=f"there is no function {self._settings.function}; its module has: {there}"
        )

    def script_without_torch(self) -> None:
        """The script is over."""
        if self._hooks is None:
            self._channel.send("failed", error="the script ended without importing torch")


def _telling(turns: Turns, hook: Callable[..., Any]) -> Callable[..., Any]:
    """``sys.excepthook`` that also says what ended the script."""

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        turns.died(error)
        hook(kind, error, trace)

    return excepthook
