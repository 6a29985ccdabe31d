"""What the user asked to run, checked before anything runs."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from breakscope.errors import ScriptNotFoundError, TorchMissingError
from breakscope.run import interpreter
from breakscope.run.launch import Program

MINIMUM_TORCH = (2, 9)


def program(script: str, args: Sequence[str], *, module: bool) -> Program:
    """What to run.

    Raises:
        ScriptNotFoundError: if there is no such script or module, or it is not Python.
    """
    if module:
        return Program(script, True, tuple(args), _module_path(script))
    path = Path(script)
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise ScriptNotFoundError(f"{script} is a directory; name a Python script in it")
        return Program(script, False, tuple(args), str((path / "__main__.py").resolve()))
    if script == "-":
        raise ScriptNotFoundError("a script on standard input cannot be run again; write it to a file")
    if not path.exists():
        raise ScriptNotFoundError(f"there is no file {script}")
    # What a pipe holds can be read once, and that is Python's to do.
    if path.is_file() and not _runs(path):
        raise ScriptNotFoundError(f"{script} is not a Python script")
    return Program(script, False, tuple(args), str(path.resolve()))


def _runs(path: Path) -> bool:
    """Whether Python would take a file for a script: source, compiled, or a zip archive."""
    from zipfile import is_zipfile

    try:
        with path.open("rb") as stream:
            start = stream.read(65536)
            compiled = path.suffix == ".pyc" or start.startswith(importlib.util.MAGIC_NUMBER)
            return b"\0" not in start or compiled or is_zipfile(stream)
    except OSError as error:
        raise ScriptNotFoundError(f"cannot read {path}: {error.strerror}") from error


def _module_path(module: str) -> str:
    # Only the outermost package is looked up: looking deeper would import, and so run, its parents.
    top = module.partition(".")[0]
    path = sys.path
    sys.path = [os.getcwd(), *interpreter.facts().path]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError) as error:
        raise ScriptNotFoundError(f"cannot find module {module}: {error}") from error
    finally:
        sys.path = path
    if spec is None:
        raise ScriptNotFoundError(f"there is no module named {top}")
    if spec.submodule_search_locations:
        base = Path(next(iter(spec.submodule_search_locations))).joinpath(*module.split(".")[1:])
        for candidate in (base.with_suffix(".py"), base / "__main__.py"):
            if candidate.is_file():
                return str(candidate.resolve())
    return str(Path(spec.origin).resolve()) if spec.origin else module


def check_torch() -> None:
    """Make sure that the script will find a torch that we know.

    Raises:
        TorchMissingError: if there is none, or it is older than 2.9.
    """
    version = interpreter.facts().torch
    if version is None:
        raise TorchMissingError(
            f"torch is not installed for {interpreter.executable()}; "
            "name the Python of your script with --python"
        )
    # A build without metadata says its version when it is imported.
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < MINIMUM_TORCH:
        raise TorchMissingError(f"torch {version} is too old; breakscope needs 2.9 or newer")


def project_roots(what: Program, cwd: Path) -> tuple[str, ...]:
    """The user's project: where they are, and where the script is."""
    folders = [str(cwd.resolve())]
    if os.path.isabs(what.path):
        folders.append(str(Path(what.path).resolve().parent))
    return tuple(dict.fromkeys(folders))
