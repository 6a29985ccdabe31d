"""A scan that takes turns with a measurement, so that both see the machine in the same moments.

The speed of a shared machine changes by half from one minute to the next. A scan that runs before the
measurement would then be off by that, whatever its arithmetic. So the scanned script runs a block of steps,
waits for its next turn, and meanwhile the measurement runs one of its rounds.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Scan:
    """A scan under way.

    Attributes:
        report: what it found, once it is over.
        recorded: the events that the report was made of.
    """

    def __init__(self, folder: Path) -> None:
        self._go, self._done = folder / "go", folder / "done"
        os.mkfifo(self._go)
        os.mkfifo(self._done)
        self.words = [str(self._go), str(self._done)]
        self.report: Any = None
        self.recorded: list[dict[str, Any]] = []
        self._begin: Any = None
        self._end: Any = None

    def turn(self) -> None:
        """Let the script run its next block, and wait for the end of it."""
        if self._begin is None:
            self._begin = self._go.open("wb", buffering=0)
            self._end = self._done.open("rb", buffering=0)
        self._begin.write(b"1")
        if not self._end.read(1):
            raise SystemExit("the scanned script has ended before its last turn")

    def end(self) -> None:
        """No more turns."""
        if self._begin is not None:
            self._begin.close()


def blocks(words: Sequence[str], block: Callable[[], None]) -> None:
    """The script's side: a block for every turn, until there are no more."""
    go, done = words
    with Path(go).open("rb", buffering=0) as begin, Path(done).open("wb", buffering=0) as end:
        while begin.read(1):
            block()
            end.write(b"1")


@contextmanager
def scanned(script: Path, args: Sequence[str], backend: str) -> Iterator[Scan]:
    """Scan a script that takes turns; it gets ``--turns GO DONE`` behind its other arguments."""
    import breakscope

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scan = Scan(folder)
        words = [str(folder), backend, str(script), *args, "--turns", *scan.words]
        child = subprocess.Popen([sys.executable, __file__, *words])
        try:
            yield scan
        finally:
            scan.end()
        if child.wait() != 0:
            raise SystemExit("the scan failed")
        scan.report = breakscope.load(folder / "report.json")
        scan.recorded = json.loads((folder / "recorded.json").read_text())


def keep(path: Path, scan: Scan, data: dict[str, Any]) -> None:
    """Write everything that another formula could be tried on."""
    with gzip.open(path, "wt") as file:
        json.dump({**data, "recorded": scan.recorded}, file)


def main() -> int:
    """Scan, and keep the events besides the report."""
    from breakscope.inside.settings import Settings
    from breakscope.report import schema
    from breakscope.run.launch import Program
    from breakscope.run.observe import observe

    place, backend, script, *args = sys.argv[1:]
    folder = Path(place)
    run = folder / "run"
    run.mkdir()
    what = Program(script, module=False, args=tuple(args), path=script)
    seen = observe(what, Settings(backend=backend), run, None)
    schema.save(seen.report, folder / "report.json")
    (folder / "recorded.json").write_text(json.dumps(seen.recorded))
    return seen.ended.exit_code


if __name__ == "__main__":
    sys.exit(main())
