"""The parent side: runs the script with an agent in it, outlives it, and never imports torch."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType

from breakscope.inside.start import ENV_TOLD, Agent, with_agent
from breakscope.report.model import Status
from breakscope.run import interpreter, surroundings
from breakscope.run.relay import Relay, relayed
from breakscope.run.warm import Forked, Warm
from breakscope.run.workspace import workspace

__all__ = ["Ended", "Program", "run", "signal_name", "spawn", "workspace"]

TIMEOUT_EXIT = 124
_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a script or a module, as the user wrote it.

    Attributes:
        path: file of the script, or of the module where it is known; what runs as ``__main__``.
    """

    script: str
    module: bool
    args: tuple[str, ...]
    path: str

    @property
    def command(self) -> list[str]:
        """As one would type it after ``python``."""
        return [*(["-m"] if self.module else []), self.script, *self.args]


@dataclass(frozen=True, slots=True)
class Ended:
    """How the child ended.

    Attributes:
        exit_code: its own, or 128 + n for signal n, or 124 for a timeout.
        signal: name of what killed it, if a signal did.
    """

    status: Status
    exit_code: int
    signal: str | None
    started_at: str
    duration_s: float
    timeout_s: float | None


def run(
    program: Program,
    agent: Agent,
    timeout_s: float | None = None,
    *,
    status: Callable[[], str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    warm: Warm | None = None,
) -> Ended:
    """Run the program to its end, whatever the end is.

    Args:
        status: gives the live line, drawn while the script is silent and where there is a terminal for
            it; None for no line.
        stdout: where the script's output goes, as for Popen; None for our own.
        stderr: where its errors go; None for where its output goes.
        warm: forks it, if it can and ``stdout`` is given; else it is started as usual.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    began = time.monotonic()
    child: subprocess.Popen[bytes] | Forked | None = None
    interrupted = False

    def forward(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        # Ctrl-C at a terminal reaches the child by itself, being in the same process group.
        if child is not None and not (number == signal.SIGINT and _terminal_is_ours()):
            child.send_signal(number)

    with (
        _handling((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), forward),
        relayed(status if stdout is None else None) as relay,
    ):
        if warm is not None and stdout is not None:
            child = warm.fork(agent, stdout, stderr if stderr is not None else stdout)
        child = child or subprocess.Popen(
            [interpreter.executable(), *surroundings.options(), *program.command],
            env=_environment(agent),
            close_fds=False,  # what we were given is the script's as well; our own are not inherited
            stdout=relay.stdout if relay else stdout,
            stderr=relay.stderr if relay else stderr if stderr is not None else stdout,
        )
        timed_out = _wait(child, timeout_s, relay)
    code = child.wait()
    outcome: Status = "ok"
    if timed_out:
        outcome = "timeout"
    elif interrupted or code == -signal.SIGINT:
        outcome = "interrupted"
    elif code < 0:
        outcome = "killed"
    elif code > 0:
        outcome = "script_error"
    return Ended(
        status=outcome,
        exit_code=TIMEOUT_EXIT if timed_out else code if code >= 0 else 128 - code,
        signal=signal_name(-code) if code < 0 else None,
        started_at=started,
        duration_s=round(time.monotonic() - began, 3),
        timeout_s=timeout_s,
    )


def spawn(program: Program, agent: Agent, log: int, keep: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start the program and return at once: for several of them side by side.

    It has a session of its own, so that whoever ends it can end its workers with it.

    Args:
        log: descriptor that takes its output and errors.
        keep: descriptors that it inherits.
    """
    return subprocess.Popen(
        [interpreter.executable(), *program.command],
        env=_environment(agent),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=tuple(keep),
        start_new_session=True,
    )


def _environment(agent: Agent) -> dict[str, str]:
    told = {ENV_TOLD: "1"} if surroundings.sitecustomize_failed() else {}
    return {**with_agent({**surroundings.environment(), **agent.environment}, agent), **told}


def _wait(child: subprocess.Popen[bytes] | Forked, timeout_s: float | None, relay: Relay | None) -> bool:
    """Wait for the child; True if it had to be ended because its time was up."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def expired() -> bool:
        return deadline is not None and time.monotonic() >= deadline

    if relay is not None:
        relay.child_started()
        relay.copy_until(lambda: child.poll() is not None or expired())
    else:
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout_s)
    if child.poll() is not None:
        return False
    child.terminate()
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    return True


def signal_name(number: int) -> str:
    """``SIGKILL``; real-time signals, of which few have a name, by their place: ``SIGRTMIN+3``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        first = getattr(signal, "SIGRTMIN", number)
        return f"SIGRTMIN+{number - first}" if number > first else f"signal {number}"


def _terminal_is_ours() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _handling(numbers: Sequence[signal.Signals], handler: object) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's, which waits for the others
        return
    # What is ignored (nohup, a job of a shell in the background) stays ignored, in the child too: a handler
    # of ours would be reset to the default there.
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in heard}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
