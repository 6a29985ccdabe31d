"""The parent side of a scan: runs the script, outlives it, and never imports torch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from breakscope.capture import events
from breakscope.capture.relay import Relay, relayed
from breakscope.capture.settings import Settings
from breakscope.errors import OutputError
from breakscope.model import Status

BOOT = Path(__file__).resolve().parent / "boot"
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
        signal: what killed it, if a signal did.
    """

    status: Status
    exit_code: int
    signal: signal.Signals | None
    started_at: str
    duration_s: float
    timeout_s: float | None


@contextmanager
def workspace(beside: Path) -> Iterator[Path]:
    """A folder for the run's own files, next to where the report goes, removed in the end.

    Raises:
        OutputError: if nothing can be written there.
    """
    try:
        beside.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".run-", dir=beside))
        events.Counters.create(folder / "counters")
    except OSError as error:
        raise OutputError(f"cannot write to {beside}: {error.strerror}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    program: Program, settings: Settings, folder: Path, timeout_s: float | None, *, live: bool = False
) -> Ended:
    """Run the program to its end, whatever the end is.

    Args:
        settings: what the agent is to do; its file names are filled in here.
        folder: where the agent writes ``events`` and counts in ``counters``.
        live: draw a live line while the script is silent, where there is a terminal for it.
    """
    settings = replace(settings, events=str(folder / "events"), counters=str(folder / "counters"))
    started = datetime.now(UTC).isoformat(timespec="seconds")
    began = time.monotonic()
    child: subprocess.Popen[bytes] | None = None
    interrupted = False

    def forward(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        # Ctrl-C at a terminal reaches the child by itself, being in the same process group.
        if child is not None and not (number == signal.SIGINT and _terminal_is_ours()):
            child.send_signal(number)

    progress = Progress(folder, began)
    with (
        _handling((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), forward),
        relayed(live, progress.line) as relay,
    ):
        child = subprocess.Popen(
            [sys.executable, *program.command],
            env=_environment(settings),
            stdout=relay.stdout if relay else None,
            stderr=relay.stderr if relay else None,
        )
        timed_out = _wait(child, timeout_s, relay)
    code = child.returncode
    status: Status = "ok"
    if timed_out:
        status = "timeout"
    elif interrupted or code == -signal.SIGINT:
        status = "interrupted"
    elif code < 0:
        status = "killed"
    elif code > 0:
        status = "script_error"
    return Ended(
        status=status,
        exit_code=TIMEOUT_EXIT if timed_out else code if code >= 0 else 128 - code,
        signal=signal.Signals(-code) if code < 0 else None,
        started_at=started,
        duration_s=round(time.monotonic() - began, 3),
        timeout_s=timeout_s,
    )


def _environment(settings: Settings) -> dict[str, str]:
    environment = dict(os.environ)
    path = environment.get("PYTHONPATH")
    if path is not None:
        environment[events.ENV_PREFIX + "PYTHONPATH"] = path
    environment["PYTHONPATH"] = os.pathsep.join([str(BOOT), *([path] if path else [])])
    environment[events.ENV_SETTINGS] = settings.dumps()
    return environment


def _wait(child: subprocess.Popen[bytes], timeout_s: float | None, relay: Relay | None) -> bool:
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


class Progress:
    """What a run has come to so far, read from its own files.

    Args:
        began: ``time.monotonic()`` at the start.
    """

    def __init__(self, folder: Path, began: float) -> None:
        self._folder = folder
        self._began = began
        self._read = 0
        self._counts = {events.METRICS: 0, events.GRAPH_BREAK: 0}

    def line(self) -> str:
        """One line: seconds, compiled frames, reported breaks, steps."""
        with suppress(OSError), (self._folder / "events").open("rb") as stream:
            stream.seek(self._read)
            new = stream.read()
            self._read += len(new)
            for kind in self._counts:
                self._counts[kind] += new.count(b'{"t":"%s"' % kind.encode())
        with suppress(OSError):
            slots = events.Counters.read(self._folder / "counters")
            steps = slots[events.SLOT_STEPS] or slots[events.SLOT_CALLS]
            frames, breaks = self._counts.values()
            elapsed = time.monotonic() - self._began
            return (
                f"breakscope: {elapsed:.0f} s, {frames} frames compiled, "
                f"{breaks} breaks reported, {steps} steps"
            )
        return "breakscope"


def _terminal_is_ours() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _handling(numbers: Sequence[signal.Signals], handler: object) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
