"""Whose code a file is."""

from __future__ import annotations

import os
import re
import sysconfig
from contextlib import suppress
from functools import cache
from pathlib import Path

from breakscope.report.model import Owner

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\](?P<rest>.*)$")
# The standard library of another Python, in a trace of another machine.
_STDLIB = re.compile(r"[/\\]lib[/\\]python3\.\d+[/\\]")
# A cell of a notebook: ipykernel names a file for it, which need not be there, in a folder of its process.
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")
_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\](?P<cell>\w+)\.py$")
_TORCH = re.compile(r"[/\\](?:site|dist)-packages[/\\]torch[/\\]")


@cache
def _standard_library() -> tuple[str, ...]:
    paths = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    return tuple(os.path.join(path, "") for path in paths if path)


def owner_of(file: str, roots: tuple[str, ...]) -> Owner:
    """Whether a file belongs to torch, to another library, or to the user's project.

    Args:
        file: path as Python knows it; ``<string>`` and its like count as the project's, and so do cells.
        roots: directories of the project.
    """
    if _TORCH.search(file) or _recorded_top(file) == "torch":
        return "torch"
    if is_installed(file):
        return "library"
    if file.startswith("<") or _CELL.search(file):
        return "project"
    full = os.path.abspath(file)
    return "project" if any(full.startswith(os.path.join(root, "")) for root in roots) else "library"


def cell_of(file: str) -> str | None:
    """What to call a cell of a notebook; None for other files. Its file has another name in each session."""
    cell = _CELL.search(file)
    return f"<cell {cell['cell']}>" if cell else None


def is_installed(file: str) -> bool:
    """Whether a file is of an installed package or of the standard library, of any Python."""
    return bool(is_packaged(file) or _STDLIB.search(file) or file.startswith(_standard_library()))


def is_packaged(file: str) -> bool:
    """Whether an installer put a file where it is: into ``site-packages``, or by ``pip install --target``."""
    return bool(_INSTALLED.search(file) or _recorded_top(file))


@cache
def _recorded_top(path: str) -> str:
    """The module or package at the top of an installation, that a file is in; "" where none is recorded."""
    folder, name = os.path.split(path)
    if not name or not os.path.isabs(path):
        return ""
    return name if name in _recorded(folder) else _recorded_top(folder)


@cache
def _recorded(folder: str) -> frozenset[str]:
    """What installers have put into a folder. The records of an editable install name none of its files."""
    names = set()
    for record in Path(folder).glob("*.dist-info/RECORD"):
        with suppress(OSError):
            lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
            names |= {re.split("[/,]", line, maxsplit=1)[0] for line in lines}
    return frozenset(names)


def is_standard(file: str) -> bool:
    """Whether a file is of Python's standard library."""
    return not is_packaged(file) and is_installed(file)


def path_in_package(file: str) -> str | None:
    """The path of a file from its installed package on: ``scipy/signal/windows.py``; None for others."""
    if found := _INSTALLED.search(file):
        return found["rest"].replace("\\", "/")
    top = _recorded_top(file)
    parts = file.replace("\\", "/").split("/")
    return "/".join(parts[len(parts) - 1 - parts[::-1].index(top) :]) if top else None


def display_path(file: str, roots: tuple[str, ...]) -> str:
    """A path that is the same on every machine: relative to the project, or from the package on."""
    installed = _INSTALLED.search(file)
    if installed:
        return installed["rest"].replace("\\", "/")
    if cell := cell_of(file):
        return cell
    full = os.path.abspath(file) if not file.startswith("<") else file
    for prefix in (*(os.path.join(root, "") for root in roots), *_standard_library()):
        if full.startswith(prefix):
            return full[len(prefix) :].replace("\\", "/")
    return file.replace("\\", "/")


def stable_path(file: str, roots: tuple[str, ...]) -> str:
    """A path that is the same wherever a script is started from: relative to the repository of the file.

    Without a repository it is that of :func:`display_path`, which depends on the folder of the run.
    """
    if file.startswith("<"):  # generated code, whose name may hold where it lies in memory
        return _ADDRESS.sub("0x", display_path(file, roots))
    if file.startswith(_standard_library()) or _INSTALLED.search(file) or _CELL.search(file):
        return display_path(file, roots)
    full = os.path.abspath(file)
    repository = repository_of(os.path.dirname(full))
    return display_path(full, (repository,) if repository else roots)


@cache
def repository_of(folder: str) -> str | None:
    """The innermost folder from here upwards that holds a ``.git``; None where there is none."""
    if Path(folder, ".git").exists():
        return folder
    parent = os.path.dirname(folder)
    return None if parent == folder else repository_of(parent)
