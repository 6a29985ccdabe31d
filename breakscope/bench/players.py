"""The parent's side of one process of an arm: started, asked, ended; its failure is a sentence."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscope.bench import gpu_state, stats
from breakscope.inside.bench.plan import Arm, ArmSettings, Options
from breakscope.inside.bench.wire import DONE, END, FAILED, Channel, ClosedError, Message
from breakscope.inside.start import Agent
from breakscope.run.launch import Program, spawn

_LOG_TAIL = 400  # characters
_CRASH_FRAMES = 3
# As faulthandler writes them.
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+) in (.+)$', re.MULTILINE)
_GRACE_S = 3.0


class ArmFailedError(Exception):
    """An arm's process cannot go on; says why."""


@dataclass(slots=True)
class Player:
    """One process of an arm.

    Attributes:
        number: 0 for the first process of its arm, which meets an empty cache.
        rounds: timed samples (messages' dicts) by round, those thrown out left out.
        paces: by round, milliseconds of the piece of work of ``pace``, before and after its steps.
        warmup: the samples of the warm-up.
        compiled_why: why frames were compiled in timed steps, as Dynamo says.
        failed: why it cannot go on.
        measured: whether its steps are timed, and what comes now can cost it none of them.
        lost: why it cannot be asked any more, though its steps are measured.
    """

    arm: Arm
    number: int
    settings: ArmSettings
    folder: Path
    popen: subprocess.Popen[bytes]
    channel: Channel
    timeout_s: float
    startup_s: float = 0.0
    unit: str = "call"
    warmup: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    paces: list[tuple[float, float]] = field(default_factory=list)
    discarded: dict[str, int] = field(default_factory=dict)
    compiled_why: list[str] = field(default_factory=list)
    last: Message = field(default_factory=dict)
    warmed: Message = field(default_factory=dict)
    steady: bool = False
    failed: str | None = None
    measured: bool = False
    lost: str | None = None
    profile: Message = field(default_factory=dict)
    peak_mib: float | None = None

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.failed is None and self.lost is None

    @property
    def timed_steps(self) -> int:
        """Timed steps so far."""
        return sum(map(len, self.rounds))

    @property
    def out_of_memory(self) -> bool:
        """Whether it failed for want of memory, which company may have caused."""
        words = ("OutOfMemoryError", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "SIGKILL")
        return self.failed is not None and any(word in self.failed for word in words)

    def answer(self, timeout_s: float | None = None) -> Message:
        """Its next message. Raises ArmFailedError, and the process is then over."""
        limit = self.timeout_s if timeout_s is None else timeout_s
        try:
            message = self.channel.receive(limit)
        except TimeoutError:
            steps = self.last.get("steps", 0)
            raise self._failed(
                f"hang: no answer for {limit:g} s (--timeout) after {steps} steps; it was ended"
            ) from None
        except ClosedError:
            raise self._failed(self._how_it_ended()) from None
        if message["t"] == FAILED:
            raise self._failed(str(message["error"]))
        if message["t"] == DONE:
            self.last = {**self.last, **message}
            self.unit = message.get("unit", self.unit)
            if message.get("raised"):
                raise self._failed(f"the call raised {message['raised']}")
        return message

    def ask(self, kind: str, timeout_s: float | None = None, **fields: Any) -> Message:
        """Ask, and wait for the answer. Raises ArmFailedError."""
        try:
            self.channel.send(kind, **fields)
        except ClosedError:
            raise self._failed(self._how_it_ended()) from None
        return self.answer(timeout_s)

    def _failed(self, why: str) -> ArmFailedError:
        if self.measured:
            self.lost = why
        else:
            self.failed = why
        self.kill()
        return ArmFailedError(why)

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(_GRACE_S)
        code = self.popen.poll()
        if code is None:
            return "it closed its line to the benchmark"
        tail = self.log_tail()
        said = f"; its last words: {tail}" if tail else ""
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (the system's out-of-memory killer does this)" if name == "SIGKILL" else ""
            frames = " < ".join(self.crash_frames())
            return f"ended by {name}{hint}" + (f" in {frames}" if frames else said)
        if code == 0:
            said += "; what is compiled was not called often enough, and breakscope scan may say why"
        return f"it ended with exit status {code} before it had made its steps{said}"

    def log_tail(self) -> str:
        """The last thing that it printed."""
        lines = self._log().strip().splitlines()
        return lines[-1].strip()[-_LOG_TAIL:] if lines else ""

    def crash_frames(self) -> list[str]:
        """Where a signal met it, the innermost frame first; empty where faulthandler could not say."""
        current = self._log().rpartition("Fatal Python error")[2].partition("Current thread")[2]
        frames = _FRAME.findall(current.partition("\n\n")[0])
        return [f"{function} ({Path(file).name}:{line})" for file, line, function in frames[:_CRASH_FRAMES]]

    def _log(self) -> str:
        with suppress(OSError):
            return (self.folder / "log").read_text("utf-8", "replace")
        return ""

    def ask_to_end(self) -> None:
        """Tell the script to end by itself."""
        if self.alive:
            with suppress(ClosedError):
                self.channel.send(END)

    def end(self, grace_s: float) -> None:
        """End the script if it has not ended after a while."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """End the process and whatever it has started. It has a session of its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(_GRACE_S)
        self.channel.close()


def start(
    program: Program, arm: Arm, number: int, options: Options, settings: ArmSettings, folder: Path
) -> Player:
    """Start one process of an arm.

    Args:
        settings: what all arms share; the rest is filled in here.
        folder: for this process's own files; made here. The cache's folder is shared by the arm's processes.
    """
    (folder / "outputs").mkdir(parents=True)
    ours, theirs = socket.socketpair()
    settings = replace(
        settings,
        variant=arm.variant,
        mode=arm.mode,
        dynamic=arm.dynamic,
        fixes=options.fixes if arm.variant == "fixed" else None,
        channel=theirs.fileno(),
        outputs=str(folder / "outputs"),
    )
    agent = Agent(
        "breakscope.inside.bench.arm_agent", settings.dumps(), environment(options, folder.parent / "cache")
    )
    with (folder / "log").open("wb") as log:
        popen = spawn(program, agent, log.fileno(), [theirs.fileno()])
    theirs.close()
    return Player(arm, number, settings, folder, popen, Channel(ours), options.timeout_s)


def environment(options: Options, cache: Path) -> dict[str, str]:
    """Variables of an arm's process: an Inductor cache of its own, the device and the threads asked for."""
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(cache), "TRITON_CACHE_DIR": str(cache / "triton")}
    if options.device is not None:
        variables["CUDA_VISIBLE_DEVICES"] = gpu_state.visible(options.device)
    if options.threads is not None:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            variables[name] = str(options.threads)
    if options.kernels:
        # Triton kernels then carry their bytes and FLOPs in their metadata, and C++ kernels tell the profiler
        # of themselves (some nanoseconds a call while no profiler listens).
        variables["TORCHINDUCTOR_BENCHMARK_KERNEL"] = "1"
        variables["TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"] = "1"
    return variables


def wait_until_ready(player: Player, deadline: float) -> None:
    """Until it has reached its first step. Raises ArmFailedError."""
    message = player.answer(max(0.1, deadline - time.monotonic()))
    player.startup_s = float(message["startup_s"])
    player.unit = str(message["unit"])


def samples(player: Player, what: str) -> list[list[float]]:
    """One figure of every timed step, by round."""
    return [[sample[what] for sample in made] for made in player.rounds]


def compiled_by_inductor(player: Player) -> bool:
    """Whether Inductor made its kernels. A filled cache leaves out most phases, but kernels are awaited."""
    phases = player.warmed.get("phases", {})
    return not {"inductor_compile", "async_compile.wait", "code_gen"}.isdisjoint(phases)


def repeatability(player: Player) -> float:
    """By what share of a step another run of this arm may differ though nothing shows it in this one."""
    tuned = bool(player.last.get("on_gpu")) and compiled_by_inductor(player)
    return stats.TUNED_REPEATABILITY if tuned else stats.REPEATABILITY


def attempt(action: Callable[..., object], *arguments: object) -> None:
    """An arm's failure is kept by its player and stops nobody else."""
    try:
        action(*arguments)
    except ArmFailedError:
        return
