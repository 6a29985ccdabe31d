"""Records script.py with the torch of an interpreter: ``python tests/recorded/record.py 2.13 PYTHON``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(version: str, python: str) -> None:
    """Scan in a repository of its own, so that paths begin there, and take the machine out of the report."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder).resolve() / "project"
        (project / ".git").mkdir(parents=True)
        (project / "script.py").write_text((HERE / "script.py").read_text())
        subprocess.run(
            [python, "-m", "breakscope", "scan", "-q", "-o", "report.json", "script.py"],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        text = (project / "report.json").read_text().replace(str(project), "/project")
    text = re.sub(r'"[^"]*/(site-packages/[^"]*)"', r'"/venv/lib/\1"', text)
    report = json.loads(text)
    report["run"]["device"] = None
    (HERE / f"report-torch-{version}.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
