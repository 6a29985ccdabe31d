"""Which Python runs the user's script.

It is our own, where that has torch. breakscope may also be installed apart, as a tool (pipx, uvx): then it is
the Python of the environment that is active. That one needs nothing of ours: what runs in it is loaded from
our files and imports Python's own library and torch alone.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from breakscope.errors import UsageError

OLDEST = (3, 11)
_ASK_S = 60.0

# Said by the other Python of itself, as it is for a script of the current folder.
_ASK = """
import importlib.metadata, importlib.util, json, sys
try:
    torch = importlib.metadata.version("torch")
except importlib.metadata.PackageNotFoundError:
    torch = "" if importlib.util.find_spec("torch") else None
print(json.dumps([list(sys.version_info[:2]), torch, sys.path[1:], sys.executable]))
"""
# Runs a module of ours there, without putting what else lies beside our files on its path.
_RUN = """
import importlib.util, os, runpy, sys
package, name = sys.argv[1:3]
spec = importlib.util.spec_from_file_location(
    "breakscope", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
)
sys.modules["breakscope"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["breakscope"])
del sys.argv[1:3]
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a Python says of itself.

    Attributes:
        torch: version of its torch; empty for a build that does not say it, None without torch.
        path: where it looks for modules, beside the script's folder.
    """

    executable: str
    torch: str | None
    path: tuple[str, ...]


@dataclass(slots=True)
class _Chosen:
    path: str | None = None


_chosen = _Chosen()


def use(python: Path | None) -> None:
    """Run scripts with this Python; None for the usual one.

    Raises:
        UsageError: it cannot be run, or is too old.
    """
    _chosen.path = None
    if python is not None:
        found = shutil.which(python)
        if found is None:
            raise UsageError(f"--python {python}: there is no such program")
        _ask(found)
        _chosen.path = found


def executable() -> str:
    """The Python that runs the script."""
    return _chosen.path or _usual()


def facts() -> Facts:
    """What is known of that Python."""
    return _own() if executable() == sys.executable else _ask(executable())


def command(module: str) -> list[str]:
    """How to run a module of ours that needs torch."""
    if executable() == sys.executable:
        return [sys.executable, "-m", module]
    return [executable(), "-c", _RUN, str(Path(__file__).resolve().parents[1]), module]


@cache
def _usual() -> str:
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    active = os.environ.get("VIRTUAL_ENV")
    for name in (os.path.join(active, "bin", "python") if active else "python", "python", "python3"):
        found = shutil.which(name)
        if found and os.path.dirname(found) != os.path.dirname(sys.executable) and _has_torch(found):
            print(f"breakscope: note: the script runs under {found}", file=sys.stderr)
            return found
    return sys.executable


def _has_torch(python: str) -> bool:
    try:
        return _ask(python).torch is not None
    except UsageError:
        return False


@cache
def _own() -> Facts:
    try:
        torch: str | None = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = "" if importlib.util.find_spec("torch") is not None else None
    return Facts(sys.executable, torch, tuple(sys.path))


@cache
def _ask(python: str) -> Facts:
    try:
        done = subprocess.run(
            [python, "-c", _ASK], capture_output=True, text=True, timeout=_ASK_S, check=True
        )
        version, torch, path, real = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise UsageError(f"--python {python}: this is not a Python that can be run") from None
    if tuple(version) < OLDEST:
        there, needed = (".".join(map(str, one)) for one in (version, OLDEST))
        raise UsageError(f"--python {python}: it is Python {there}; breakscope needs {needed} or newer")
    return Facts(real, torch, tuple(path))
