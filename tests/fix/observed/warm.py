"""The side of the tests of :mod:`warm_server`: starts it, asks it, ends it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import warm_server
from warm_server import Forked

# Seconds that a fork gets before it is killed.
LIMIT_S = 60.0
KILLED = 124


class Warm:
    """A process that has imported torch, and packages if any, and forks on request.

    Args:
        torch: whether it imports torch. Without it, what a command starts is a fresh process.
    """

    def __init__(self, *packages: str, torch: bool = True) -> None:
        # One seed for the hashes of strings: the order of a set is not what is looked for.
        self._environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        for name in [one for one in self._environment if one.startswith(("BREAKSCOPE", "TORCH", "COV_"))]:
            del self._environment[name]
        self._folder = tempfile.mkdtemp()  # short: the path of a socket has 100 characters at most
        self._place = os.path.join(self._folder, "warm")
        self._process = subprocess.Popen(
            [sys.executable, warm_server.HERE, self._place, *[warm_server.TORCH] * torch, *packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**warm_server.LARGE_PAGES, **self._environment},
        )
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            if not answers.readline():
                raise RuntimeError(f"the warm process ended with {self._process.wait()}")

    def python(
        self,
        script: str,
        folder: Path,
        stdout: Path,
        stderr: Path,
        environment: Mapping[str, str] | None = None,
        limit_s: float = LIMIT_S,
    ) -> int:
        """Run `python SCRIPT` in a folder. Returns the exit status; 124 if it was killed for its time."""
        variables = {**self._environment, **(environment or {})}
        request = {"words": [script], "cwd": str(folder), "environment": variables}
        return self._ask(request, stdout, stderr, limit_s)

    def commands(
        self,
        commands: Sequence[Sequence[str]],
        folder: Path,
        log: Path,
        faults: Sequence[tuple[str, str]] = (),
        environment: Mapping[str, str] | None = None,
        limit_s: float = 4 * LIMIT_S,
    ) -> int:
        """Run command lines of breakscope in a folder. Returns the exit status of the last.

        Args:
            faults: pairs of a place, ``module:Class.attribute``, and the function of :mod:`planted_faults` that
                makes what is put there for these commands.
        """
        planted = json.dumps([list(one) for one in faults])
        variables = {**self._environment, **(environment or {}), warm_server.FAULTS: planted}
        return self._ask(self._request(commands, folder, variables), log, log.with_suffix(".err"), limit_s)

    def command(
        self, *words: str, folder: Path, limit_s: float = 4 * LIMIT_S, **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command line of breakscope in a folder."""
        request = self._request([words], folder, {**self._environment, **environment}, bare=True)
        with tempfile.TemporaryDirectory() as said:
            out, err = Path(said, "out"), Path(said, "err")
            code = self._ask(request, out, err, limit_s)
            return subprocess.CompletedProcess(list(words), code, out.read_bytes(), err.read_bytes())

    @staticmethod
    def _request(
        commands: Sequence[Sequence[str]], folder: Path, variables: Mapping[str, str], *, bare: bool = False
    ) -> dict[str, Any]:
        """Bare: without lines in between that say what is run, and how it ended."""
        lines = [list(words) for words in commands]
        return {"commands": lines, "cwd": str(folder), "environment": variables, "bare": bare}

    def forking(self) -> warm_server.ForkingSubprocess:
        """What stands in the place of the module `subprocess` where each Python that is started is to be a fork."""
        return warm_server.ForkingSubprocess(self._place, (None, None))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        shutil.rmtree(self._folder)

    def _ask(self, request: dict[str, Any], stdout: Path, stderr: Path, limit_s: float) -> int:
        with stdout.open("wb") as out, stderr.open("wb") as err:
            child = Forked(self._place, request, out.fileno(), err.fileno())
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            return KILLED
