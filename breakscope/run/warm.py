"""Further runs of a script that begin with its modules loaded: forks of a process that waits.

Importing torch and a library or two is most of what a small script takes, and the same each time. The first
run of a script is a plain ``python SCRIPT``. It tells what it has loaded, and :mod:`breakscope.inside.warm`
loads that, waits where Python is about to run the script, and forks. Where no fork can be made, ``trouble``
says why, and runs start as they always did.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.inside.start import Agent, with_agent
from breakscope.run import interpreter, surroundings

if TYPE_CHECKING:
    from breakscope.run.launch import Program

_AGENT = "breakscope.inside.warm"
_FIRST = "torch"
# As the boot file names what an agent is.
_FIELDS = ("MODULE", "SETTINGS", "EVENTS", "AHEAD")
_LOADING_S = 120.0


@dataclass(frozen=True, slots=True)
class Plain:
    """What the first run came to, which was a plain one: what forks are held against.

    Attributes:
        stdout: what it printed. writes: it wrote files into its folder.
        calls: of the functions that were looked at, by file and name. seen: what their expressions
        evaluated to. files: of the user's own modules that it loaded.
        room: for how many such runs at a time the card has memory; None: it used no card.
    """

    exit_code: int
    stdout: bytes
    writes: bool
    calls: Mapping[tuple[str, str], int]
    seen: str
    files: Sequence[str]
    room: int | None = None


class Forked:
    """As much of Popen as a parent asks for that waits. The fork's own parent says how it ended."""

    def __init__(self, channel: socket.socket, pid: int) -> None:
        self.returncode: int | None = None
        self.pid = pid
        self._channel = channel

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; below zero: the signal that killed it."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._channel], [], [], timeout)[0]:
            said = self._channel.recv(64)
            # Nothing is said if the process that waits was killed: nobody knows how its forks end.
            self.returncode = int(said) if said else -9
            self._channel.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """As for Popen."""
        self.send_signal(15)

    def kill(self) -> None:
        """As for Popen."""
        self.send_signal(9)


class Warm:
    """Forks of one program.

    Args:
        excluded: files that are patched or watched in some runs, and so are loaded by each run itself, as the
        script is.
        folder: for requests; the caller removes it.

    Attributes:
        told: the pipe by which the first run may tell what it has loaded, while it still runs; "": none.
        trouble: why no forks are made; "" if they are, or nothing is known yet.
        forks: that were made. plain: the first run, once it is over. over: nobody waits for any run any more.
    """

    def __init__(self, program: Program, excluded: Sequence[str], folder: Path) -> None:
        self._program, self._folder = program, folder
        self.excluded = frozenset(map(os.path.realpath, (*excluded, program.path)))
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._loading = 0  # requests that are not answered yet
        self._first: dict[str, None] = {_FIRST: None}  # loaded beside the first run
        self._later: dict[str, None] = {}
        self._asking = threading.Lock()
        self._wanted: list[Agent] = []  # by threads that wait for their turn to ask
        self._running: list[Forked] = []
        self.told = ""
        self.trouble = "" if hasattr(os, "pidfd_open") else "this system has no pidfd"
        self.forks = 0
        self.over = False
        self.plain: Plain | None = None

    @property
    def started(self) -> bool:
        """Whether the first run is over."""
        return self.plain is not None

    def begin(self) -> None:
        """Start the process that waits, with torch and what else was asked for, beside the first run.

        Returns at once.
        """
        if not self.trouble and self._process is None:
            with suppress(OSError):  # not every file system has pipes
                os.mkfifo(self._folder / "told")
                self.told = str(self._folder / "told")
            self._start({})
            self._ask(self._first)

    def load(self, modules: Mapping[str, str], environment: Mapping[str, str | None]) -> None:
        """Have the process load what a plain run has loaded, and return at once.

        Args:
            modules: file by name.
            environment: variables that the script changes before it imports torch.
        """
        if _FIRST not in modules:
            self.close("the script imports no torch, or not as an installed package")
        if self.trouble:
            return
        if environment or self._process is None:
            self._end()
            self._start(environment)
            self._ask({**modules, **{name: None for name in self._first if name not in modules}})
        else:
            self._ask(modules)

    def load_first(self, modules: Sequence[str]) -> None:
        """Have the process load what later runs need beside the first run; called before that begins."""
        self._first |= dict.fromkeys(modules)

    def load_also(self, modules: Sequence[str]) -> None:
        """Have the process load what later runs need, once it has made the forks that are wanted by then."""
        self._later = dict.fromkeys(modules)

    def _start(self, environment: Mapping[str, str | None]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {
            "control": theirs.fileno(),
            "excluded": sorted(self.excluded),
            "environment": dict(environment),
            "told": self.told,
        }
        self._process = subprocess.Popen(
            [interpreter.executable(), *surroundings.options(), *self._program.command],
            env=with_agent(surroundings.environment(), Agent(_AGENT, json.dumps(settings), patient=True)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        self._control = ours

    def _ask(self, modules: Mapping[str, str | None]) -> None:
        with suppress(OSError):  # one that has ended answers nothing, which is told when a fork is wanted
            self._send({"modules": dict(modules)})
        self._loading += 1

    def fork(self, agent: Agent, stdout: int, stderr: int) -> Forked | None:
        """Start a run of the program; None if it has to be started as usual.

        Args:
            stdout: descriptor for its output; stderr: for its errors.
        """
        self._wanted.append(agent)
        with self._asking:
            self._wanted.remove(agent)
            forked = self._forked(agent, stdout, stderr) if self._ready() else None
            if forked is not None and self._later and not self._wanted:
                self._ask(self._later)
                self._later = {}
            return forked

    def _forked(self, agent: Agent, stdout: int, stderr: int) -> Forked | None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {
            "agent": dict(
                zip(_FIELDS, (agent.module, agent.settings, agent.events, agent.ahead), strict=True)
            ),
            "environment": {**surroundings.environment(), **agent.environment},
        }
        try:
            self._send(request, (stdout, stderr, theirs.fileno()))
            said = ours.recv(64)
        except OSError:
            said = b""
        theirs.close()
        if not said:
            ours.close()
            self.trouble = "the process that forks has ended"
            return None
        self.forks += 1
        forked = Forked(ours, int(said))
        self._running = [one for one in self._running if one.returncode is None] + [forked]
        return forked

    def close(self, why: str = "it was closed") -> None:
        """End the process that waits: from now on every run is started as usual."""
        for one in self._running:
            if one.returncode is None:
                with suppress(OSError):
                    os.kill(one.pid, 9)
        self.trouble = self.trouble or why
        self._end()

    def _end(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None
        self._loading = 0

    def _ready(self) -> bool:
        while self._loading and not self.trouble:
            self._loading -= 1
            assert self._control is not None
            self._control.settimeout(_LOADING_S)
            try:
                said = self._control.recv(1 << 16)
                ended = "an import ended the process that forks"
                self.trouble = json.loads(said)["trouble"] if said else ended
            except OSError:
                self.trouble = "loading the script's modules takes too long"
        return self._process is not None and not self.trouble

    def _send(self, request: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        assert self._control is not None
        handle, place = tempfile.mkstemp(dir=self._folder, prefix="request-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(request, file)
        data = json.dumps({"request": place}).encode()
        socket.send_fds(self._control, [data], descriptors)


@contextmanager
def forking(
    program: Program, excluded: Sequence[str], folder: Path, *, allowed: bool = True
) -> Iterator[Warm]:
    """Forks of a program, as long as the block lasts; none, if they are not allowed."""
    warm = Warm(program, excluded, folder)
    warm.trouble = warm.trouble if allowed else "forks are switched off"
    try:
        yield warm
    finally:
        warm.over = True
        warm.close()
