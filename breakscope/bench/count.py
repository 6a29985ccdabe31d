"""A short scan in a process of its own, to run beside another: a scan needs the signals of its process.

Run as a program: the program, the settings and the report's place as one line of JSON.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from breakscope.inside.settings import Settings
from breakscope.report import schema
from breakscope.report.model import Report
from breakscope.run import interpreter
from breakscope.run.launch import Program
from breakscope.run.observe import observe


def start(program: Program, settings: Settings, folder: Path, timeout_s: float) -> subprocess.Popen[bytes]:
    """Begin to scan.

    Args:
        folder: for the scan's own files; made here. :func:`finish` finds the report in it.
    """
    folder.mkdir()
    order = {
        "program": dataclasses.asdict(program),
        "settings": settings.dumps(),
        "folder": str(folder),
        "timeout_s": timeout_s,
        "python": interpreter.executable(),
    }
    command = [sys.executable, "-m", "breakscope.bench.count", json.dumps(order)]
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path},
        )


def finish(scan: subprocess.Popen[bytes], folder: Path) -> Report | None:
    """The report, once the scan is over; None where there is none."""
    scan.wait()
    return schema.load(folder / "report.json") if (folder / "report.json").exists() else None


def main(text: str) -> int:
    """Scan as ordered."""
    order = json.loads(text)
    interpreter.use(Path(order["python"]))
    fields = order["program"]
    program = Program(fields["script"], fields["module"], tuple(fields["args"]), fields["path"])
    folder = Path(order["folder"])
    seen = observe(
        program, Settings.loads(order["settings"]), folder, order["timeout_s"], stdout=sys.stdout.fileno()
    )
    schema.save(seen.report, folder / "report.json")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
