"""A scan that takes turns with a measurement, so that both see the machine in the same moments.

The speed of a shared machine changes by half from one minute to the next. A scan that runs before the
measurement would then be off by that, whatever its arithmetic. So the scanned script runs a block of steps,
waits for its next turn, and meanwhile the measurement runs one of its rounds.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Scan:
    """A scan under way.

    Attributes:
        report: what it found, once it is over.
        recorded, slots, outcome: what the report was made of.
    """

    def __init__(self, folder: Path) -> None:
        self._go, self._done = folder / "go", folder / "done"
        os.mkfifo(self._go)
        os.mkfifo(self._done)
        self.words = [str(self._go), str(self._done)]
        self.child: subprocess.Popen[bytes] | None = None
        self.report: Any = None
        self.recorded: list[dict[str, Any]] = []
        self.slots: list[int] = []
        self.outcome: dict[str, Any] = {}
        self._begin: Any = None
        self._end: Any = None

    def wait_until_ready(self) -> None:
        """Wait until the script is at its first turn."""
        while self._begin is None:
            try:
                self._begin = os.fdopen(os.open(self._go, os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0)
                os.set_blocking(self._begin.fileno(), True)
                self._end = self._done.open("rb", buffering=0)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                if self.child is not None and self.child.poll() is not None:
                    raise RuntimeError("the scanned script has ended before its first turn") from None
                time.sleep(0.05)

    def turn(self) -> None:
        """Let the script run its next block, and wait for the end of it."""
        self.wait_until_ready()
        self._begin.write(b"1")
        if not self._end.read(1):
            raise SystemExit("the scanned script has ended before its last turn")

    def end(self) -> None:
        """No more turns."""
        if self._begin is not None:
            self._begin.close()


class Quiet:
    """Moves this process to a CPU that is as fast as the best one seen: the others are lent to somebody."""

    def __init__(self) -> None:
        from breakscope.inside.bench import pace

        self._settle = pace.settle_on_a_fast_cpu
        self._best: float | None = None

    def settle(self) -> None:
        """Before something is timed."""
        found = self._settle(self._best)
        self._best = found if self._best is None else min(self._best, found)


def blocks(words: Sequence[str], block: Callable[[], None]) -> None:
    """The script's side: a block for every turn, until there are no more."""
    go, done = words
    quiet = Quiet()
    with Path(go).open("rb", buffering=0) as begin, Path(done).open("wb", buffering=0) as end:
        while begin.read(1):
            quiet.settle()
            block()
            end.write(b"1")


@contextmanager
def scanned(
    script: Path, args: Sequence[str], backend: str, *, profile: bool = False, cost: bool = True
) -> Iterator[Scan]:
    """Scan a script that takes turns; it gets ``--turns GO DONE`` behind its other arguments."""
    import breakscope

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scan = Scan(folder)
        words = [
            str(folder),
            backend,
            json.dumps({"profile": profile, "cost": cost}),
            str(script),
            *args,
            "--turns",
            *scan.words,
        ]
        child = scan.child = subprocess.Popen([sys.executable, __file__, *words])
        try:
            yield scan
        finally:
            scan.end()
        if child.wait() != 0:
            raise SystemExit("the scan failed")
        scan.report = breakscope.load(folder / "report.json")
        kept = json.loads((folder / "recorded.json").read_text())
        scan.recorded, scan.slots, scan.outcome = kept["recorded"], kept["slots"], kept["outcome"]


def diagnosed(recorded: list[dict[str, Any]], slots: list[int], outcome: dict[str, Any]) -> Any:
    """A scan of another day, with the diagnosis of this checkout."""
    from types import SimpleNamespace

    from breakscope.diagnose.build import build
    from breakscope.diagnose.outcome import Outcome

    whole = Outcome(**{name: tuple(v) if isinstance(v, list) else v for name, v in outcome.items()})
    return SimpleNamespace(report=build(recorded, slots, whole), recorded=recorded)


def keep(path: Path, scan: Scan, data: dict[str, Any]) -> None:
    """Write everything that another formula could be tried on."""
    with gzip.open(path, "wt") as file:
        json.dump({**data, "recorded": scan.recorded}, file)


def main() -> int:
    """Scan, and keep the events besides the report."""
    from breakscope.inside import events
    from breakscope.inside.settings import Settings
    from breakscope.report import schema
    from breakscope.run.launch import Program
    from breakscope.run.observe import observe

    place, backend, options, script, *args = sys.argv[1:]
    folder = Path(place)
    run = folder / "run"
    run.mkdir()
    what = Program(script, module=False, args=tuple(args), path=script)
    seen = observe(what, Settings(backend=backend, **json.loads(options)), run, None)
    schema.save(seen.report, folder / "report.json")
    slots = events.Counters.read(run / "counters").tolist()
    while slots and not slots[-1]:
        slots.pop()
    told = seen.report.run
    outcome = {name: getattr(told, name) for name in ("script", "argv", "cwd", "status", "exit_code")}
    outcome |= {
        "started_at": told.started_at,
        "duration_s": told.duration_s,
        "backend": backend,
        "mode": None,
    }
    kept = {"recorded": seen.recorded, "slots": slots, "outcome": {**outcome, "roots": [str(Path.cwd())]}}
    (folder / "recorded.json").write_text(json.dumps(kept))
    return seen.ended.exit_code


if __name__ == "__main__":
    sys.exit(main())
