"""The side of the tests of :mod:`warm_server`: starts it, asks it, ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("warm_server.py")
# Seconds that a fork gets before it is killed.
LIMIT_S = 60.0


class Warm:
    """A process that has imported torch, and packages if any, and forks on request."""

    def __init__(self, *packages: str) -> None:
        # One seed for the hashes of strings: the order of a set is not what is looked for.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        for name in [one for one in environment if one.startswith(("BREAKSCOPE", "TORCH", "COV_"))]:
            del environment[name]
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), *packages],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._read()

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
        return self._ask(
            words=[script],
            cwd=str(folder),
            stdout=str(stdout),
            stderr=str(stderr),
            environment=dict(environment or {}),
            limit_s=limit_s,
        )

    def commands(
        self,
        commands: Sequence[Sequence[str]],
        folder: Path,
        log: Path,
        faults: Sequence[tuple[str, str]] = (),
        limit_s: float = 4 * LIMIT_S,
    ) -> int:
        """Run command lines of breakscope in a folder. Returns the exit status of the last.

        Args:
            faults: pairs of a place, ``module:Class.attribute``, and the function of :mod:`planted_faults` that
                makes what is put there for these commands.
        """
        return self._ask(
            commands=[list(words) for words in commands],
            cwd=str(folder),
            stdout=str(log),
            stderr=str(log.with_suffix(".err")),
            environment={},
            faults=[list(one) for one in faults],
            limit_s=limit_s,
        )

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _ask(self, **request: Any) -> int:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._read()["exit_code"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the warm process ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
