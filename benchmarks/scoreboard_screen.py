"""Which architectures break at all: every model, built and run under Dynamo in a fork of one process.

    python benchmarks/scoreboard_screen.py --jobs 8 --scripts scripts --out screen.jsonl
    python benchmarks/scoreboard.py --screened screen.jsonl --scripts scripts

Nothing of breakscope is used: what counts as a break is what torch records. Importing torch and transformers
once for all makes this a few seconds a row; it can be stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from scoreboard_check import break_place
from scoreboard_models import (
    Model,
    NotBuilt,
    timm_models,
    torchvision_models,
    transformers_models,
    write_script,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--scripts", type=Path, required=True, help="where the rows' scripts are written")
    parser.add_argument("--out", type=Path, default=Path("screen.jsonl"))
    parser.add_argument("--limit", type=int, default=90, help="seconds for a row")
    parser.add_argument(
        "--for", dest="whole", type=float, default=float("inf"), help="seconds for everything"
    )
    asked = parser.parse_args()
    os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    asked.scripts.mkdir(parents=True, exist_ok=True)
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = {(one["row"], one["mode"]) for one in map(json.loads, lines)}
    rows = [(row, mode) for row in models() for mode in row.modes if (row.name, mode) not in done]
    _screen(rows, asked)
    return 0


def models() -> list[Model]:
    """Models of all installed libraries."""
    found = []
    for several in (transformers_models, torchvision_models, timm_models):
        try:
            found += several()
        except (ImportError, RuntimeError) as error:
            print(f"{several.__name__}: {str(error).splitlines()[0]}", file=sys.stderr)
    return found


def script_name(name: str, mode: str) -> str:
    return f"{name.replace('/', '-')}-{mode}.py"


def _screen(rows: list[tuple[Model, str]], asked: argparse.Namespace) -> None:
    ends, running = time.monotonic() + asked.whole, {}
    waiting = rows[::-1]
    while (waiting and time.monotonic() < ends) or running:
        while waiting and len(running) < asked.jobs and time.monotonic() < ends:
            row, mode = waiting.pop()
            pid = os.fork()
            if pid == 0:
                _child(row, mode, asked)
            running[pid] = (row.name, mode)
        pid, status = os.wait()
        name, mode = running.pop(pid)
        if status != 0:
            _append(
                asked.out,
                {"row": name, "mode": mode, "trouble": f"ended by {os.waitstatus_to_exitcode(status)}"},
            )


def _child(row: Model, mode: str, asked: argparse.Namespace) -> None:
    signal.alarm(asked.limit)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    started = time.monotonic()
    path = (asked.scripts / script_name(row.name, mode)).resolve()
    found: dict[str, Any] = {"row": row.name, "mode": mode}
    try:
        write_script(row, mode, path)
        found["sites"] = sorted(_broken(path))
    except NotBuilt as error:
        found["trouble"] = f"not built: {error}"
    except Exception as error:
        found["trouble"] = f"{type(error).__name__}: {str(error)[:200]}"
    _append(asked.out, {**found, "seconds": round(time.monotonic() - started, 1)})
    os._exit(0)


def _broken(path: Path) -> set[str]:
    """Run a script; the places of the graph breaks that torch records."""
    places: set[str] = set()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            artifact = (getattr(record, "metadata", None) or {}).get("artifact") or {}
            if artifact.get("name") == "dynamo_graph_break_reason":
                file, line = break_place(record.payload)
                places.add("/".join(Path(file).parts[-2:]) + f":{line}")

    trace = logging.getLogger("torch.__trace")
    for handler in list(trace.handlers):
        trace.removeHandler(handler)
    trace.setLevel(logging.DEBUG)
    trace.addHandler(Listener())
    trace.propagate = False
    sys.argv = [str(path)]
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    return places


def _append(path: Path, found: dict[str, Any]) -> None:
    with path.open("ab", buffering=0) as file:  # one write, so that lines of several processes do not mix
        file.write((json.dumps(found) + "\n").encode())


if __name__ == "__main__":
    sys.exit(main())
