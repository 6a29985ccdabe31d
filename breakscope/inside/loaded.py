"""What a run of the script has loaded, so that its later runs can begin with that (:mod:`.warm`)."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from breakscope.inside.tracebacks import PACKAGE
from breakscope.report.owners import is_packaged

# The module whose import decides what of the environment counts.
_MAIN = "torch"
_TOLD_EVERY_S = 0.2


class Noticing:
    """Stands in front of ``sys.meta_path``, finds nothing, and notes the environment at each first import.

    Libraries read variables while they are imported, and a script may set them just before. What was imported
    under other variables than torch was, is not loaded beforehand.
    """

    def __init__(self) -> None:
        self._began = dict(os.environ)
        self._changed: dict[str, dict[str, str | None]] = {}
        self._own: set[str] = set()
        self._telling: _Telling | None = None

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        """As import asks."""
        if path is None and fullname not in self._changed:
            self._changed[fullname] = _changes(self._began, os.environ)
        if self._telling is not None:
            self._tell(self._telling, fullname)

    def tell(self, place: str, apart: Collection[str]) -> None:
        """Tell from now on what has been loaded, while the rest still is: to a process that loads it too.

        Nothing is told if the script had changed the environment before it imported torch.

        Args:
            place: the pipe by which names go, a line each.
            apart: files that this process must not load; from the first of them on nothing is told, because
                what imports one is not known before it is whole.
        """
        if not self._of_the_script(self._changed.get(_MAIN, {})):
            with suppress(OSError):  # nobody reads
                self._telling = _Telling(os.open(place, os.O_WRONLY | os.O_NONBLOCK), apart)

    def _tell(self, telling: _Telling, fullname: str) -> None:
        if telling.ends_at(fullname):
            self._telling = None
        elif telling.is_due():
            try:
                telling.send(self._modules({}))
            except Exception:  # noqa: BLE001 -- what a module does when it is looked at is no matter of this import
                self._telling = None

    def torch_is_there(self) -> None:
        """What has changed while torch was imported is torch's doing, or ours, and not the script's."""
        before = self._changed.get(_MAIN, {})
        now = _changes(self._began, os.environ)
        self._own = {name for name in now if name not in before or before[name] != now[name]}

    def result(self) -> dict[str, Any]:
        """What was loaded, and under which environment.

        Returns:
            ``modules``: file by name, of all that is installed; ``environment``: variables that the script
            had changed before it imported torch, None for one that it had taken away.
        """
        wanted = self._of_the_script(self._changed.get(_MAIN, {}))
        modules = dict(self._modules(wanted))
        return {"modules": modules if _MAIN in modules else {}, "environment": wanted}

    def _modules(self, wanted: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
        """Name and file of what is installed and was imported under an environment with these changes."""
        tops = {name for name, changed in self._changed.items() if self._of_the_script(changed) == wanted}
        folders = _installed()
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] not in tops or name == "__main__":
                continue
            file = None
            with suppress(Exception):  # what stands there need be no module
                file = module.__spec__.origin  # type: ignore[union-attr]
            if isinstance(file, str) and _is_library(file, folders):
                yield name, file

    def _of_the_script(self, changed: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: value for name, value in changed.items() if name not in self._own}


class _Telling:
    """What was told of the modules that are loaded."""

    def __init__(self, pipe: int, apart: Collection[str]) -> None:
        self._pipe, self._apart = pipe, {os.path.realpath(file) for file in apart}
        self._stems = {stem(file) for file in self._apart}
        self._told: set[str] = set()
        self._next = 0.0

    def ends_at(self, fullname: str) -> bool:
        """Whether nothing may be told from this import on."""
        if fullname.rpartition(".")[2] not in self._stems:
            return False
        os.close(self._pipe)
        return True

    def is_due(self) -> bool:
        """Whether it is time to tell more."""
        now = time.monotonic()
        due = now >= self._next
        self._next = now + _TOLD_EVERY_S if due else self._next
        return due

    def send(self, modules: Iterable[tuple[str, str]]) -> None:
        """Tell what is whole, and was not told before."""
        new = [name for name, _ in modules if name not in self._told and _is_whole(name)]
        self._told.update(new)
        with suppress(OSError):  # a full pipe, or nobody reads any more: the end of the run tells all
            os.write(self._pipe, "".join(f"{name}\n" for name in new).encode())


def _is_whole(name: str) -> bool:
    """Whether a module's import is over, and that of each package above it."""
    parts = name.split(".")
    above = (sys.modules.get(".".join(parts[: count + 1])) for count in range(len(parts)))
    return not any(getattr(getattr(one, "__spec__", None), "_initializing", False) for one in above)


def stem(file: str) -> str:
    """What a file's module is called in its package."""
    path = Path(file)
    return path.parent.name if path.stem == "__init__" else path.stem


def notice() -> Noticing:
    """Begin to notice imports. To be called before the script's first line."""
    found = Noticing()
    sys.meta_path.insert(0, found)
    return found


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    names = before.keys() | now.keys()
    return {name: now.get(name) for name in sorted(names) if before.get(name) != now.get(name)}


def _installed() -> tuple[str, ...]:
    """Folders of Python's own modules and of installed ones."""
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths.update(one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages"))
    if site.ENABLE_USER_SITE and site.USER_SITE:
        paths.add(site.USER_SITE)
    return tuple(sorted(os.path.realpath(path) + os.sep for path in paths if path))


@functools.cache  # asked of two thousand modules, five times a second
def _is_library(file: str, folders: tuple[str, ...]) -> bool:
    real = os.path.realpath(file)
    return (real.startswith(folders) or is_packaged(real)) and not real.startswith(PACKAGE)


def own_files() -> list[str]:
    """Source files of the user's own modules: neither Python's, nor installed, nor ours."""
    files = set()
    for module in list(sys.modules.values()):
        with suppress(Exception):  # what stands there need be no module
            files.add(module.__file__ or "")
    absolute = {file if os.path.isabs(file) else os.path.abspath(file) for file in files if file}
    return sorted({own for own in map(_own, absolute) if own})


@functools.cache  # asked of two thousand modules, several times a second
def _own(file: str) -> str:
    """The path in its usual form if it is source of the user's own, of all that is absolute; else ""."""
    python, path = os.path.dirname(os.__file__) + os.sep, os.path.normpath(file)
    outside = path.endswith(".py") and not path.startswith((python, PACKAGE)) and not is_packaged(path)
    return path if outside else ""
