"""What a run of the script has loaded, so that its later runs can begin with that (:mod:`.warm`)."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from typing import Any

from breakscope.inside.tracebacks import PACKAGE
from breakscope.report.owners import is_packaged

# The module whose import decides what of the environment counts.
_MAIN = "torch"


class Noticing:
    """Stands in front of ``sys.meta_path``, finds nothing, and notes the environment at each first import.

    Libraries read variables while they are imported, and a script may set them just before. What was imported
    under other variables than torch was, is not loaded beforehand.
    """

    def __init__(self) -> None:
        self._began = dict(os.environ)
        self._changed: dict[str, dict[str, str | None]] = {}
        self._own: set[str] = set()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        """As import asks."""
        if path is None and fullname not in self._changed:
            self._changed[fullname] = _changes(self._began, os.environ)

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
        tops = {name for name, changed in self._changed.items() if self._of_the_script(changed) == wanted}
        folders = _installed()
        modules = {}
        for name, module in list(sys.modules.items()):
            file = getattr(getattr(module, "__spec__", None), "origin", None)
            if name.partition(".")[0] in tops and isinstance(file, str) and name != "__main__":
                real = os.path.realpath(file)
                if (real.startswith(folders) or is_packaged(real)) and not real.startswith(PACKAGE):
                    modules[name] = file
        return {"modules": modules if _MAIN in modules else {}, "environment": wanted}

    def _of_the_script(self, changed: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: value for name, value in changed.items() if name not in self._own}


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
    return tuple(os.path.realpath(path) + os.sep for path in paths if path)


def own_files() -> list[str]:
    """Source files of the user's own modules: neither Python's, nor installed, nor ours."""
    python = os.path.dirname(os.__file__) + os.sep
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return sorted(
        file
        for file in map(os.path.abspath, filter(None, files))
        if file.endswith(".py") and not file.startswith((python, PACKAGE)) and not is_packaged(file)
    )
