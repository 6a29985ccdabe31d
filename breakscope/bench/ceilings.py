"""The device's own limits, measured once per device and kept in the user's cache. Never a datasheet's."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from breakscope.bench import gpu_state
from breakscope.report import codec, files
from breakscope.report.benchmark import Ceiling
from breakscope.run import interpreter

_TIMEOUT_S = 180
_LAYOUT = 2


def ceilings(kind: str, device: str | None, threads: int | None) -> tuple[tuple[Ceiling, ...], str | None]:
    """The ceilings of a device, and a note where they could not be measured or written down.

    Args:
        kind: "cuda" or "cpu".
        device: as ``--device`` names it; None for the first one.
        threads: CPU threads of the benchmark; a CPU's ceilings depend on them.
    """
    environment = dict(os.environ)
    if device is not None and device.startswith("cuda:"):
        environment["CUDA_VISIBLE_DEVICES"] = gpu_state.visible(device)
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    command = [*interpreter.command("breakscope.inside.bench.ceiling_probe"), kind]
    try:
        asked = _run([*command, "--name"], environment)
        place = folder() / f"ceilings-{hashlib.sha256(str(asked['name']).encode()).hexdigest()[:16]}.json"
        kept = _read(place, str(asked["name"]))
        if kept is not None:
            return kept, None
        measured = _run(command, environment)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return (), f"the device's ceilings could not be measured: {str(error)[-300:]}"
    found = tuple(_decode(item) for item in measured["ceilings"])
    notes = [str(text) for text in measured["notes"]]
    problem = _keep(place, str(asked["name"]), measured["ceilings"])
    return found, "; ".join([*notes, *([problem] if problem else [])]) or None


def folder() -> Path:
    """Where ceilings are kept: ``$XDG_CACHE_HOME/breakscope``, or ``~/.cache/breakscope``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "breakscope"


def _run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH")]))
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        env={**environment, "PYTHONPATH": path},
        check=False,
    )
    if done.returncode != 0:
        raise ValueError((done.stderr.strip().splitlines() or ["no message"])[-1])
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def _decode(item: Any) -> Ceiling:
    ceiling: Ceiling = codec.decode(item, Ceiling)
    return ceiling


def _read(place: Path, name: str) -> tuple[Ceiling, ...] | None:
    try:
        data = json.loads(place.read_text("utf-8"))
        if data["layout"] != _LAYOUT or data["name"] != name:
            return None
        return tuple(_decode(item) for item in data["ceilings"])
    except (OSError, ValueError, KeyError, TypeError, codec.MismatchError):
        return None  # missing or damaged: measured again


def _keep(place: Path, name: str, measured: Any) -> str | None:
    data = json.dumps({"layout": _LAYOUT, "name": name, "ceilings": measured}, indent=1)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        files.replace(place, data.encode())
    except OSError as error:
        return f"the ceilings could not be kept in {place.parent}: {error.strerror}"
    return None
