"""Being told when the script has imported a module, without importing it ourselves.

The boot file loads this one before the script's first line, and so it imports nothing.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any


def after_import(name: str, callback: "Callable[[], None]") -> None:
    """Call ``callback`` once module ``name`` is loaded; at once if it is."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        callback()
        return
    sys.meta_path.insert(0, _Watcher(name, callback))


class _Watcher:
    def __init__(self, name: str, callback: "Callable[[], None]") -> None:
        self._name = name
        self._callback = callback

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None", target: "types.ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if fullname != self._name:
            return None
        # It stays: who asks for the spec (``importlib.util.find_spec``) may import the module only later.
        at = sys.meta_path.index(self) if self in sys.meta_path else -1
        for finder in sys.meta_path[at + 1 :]:
            spec = finder.find_spec(fullname, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None

    def loaded(self) -> None:
        """The module is there: what waited for it is called, once."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        callback, self._callback = self._callback, _nothing
        callback()


def _nothing() -> None:
    pass


class _Loader:
    """The real loader, which leaves the module as if it had been alone."""

    def __init__(self, real: "Any", watcher: _Watcher) -> None:
        self._real = real
        self._watcher = watcher

    def create_module(self, spec: "ModuleSpec") -> "types.ModuleType | None":
        return self._real.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: "types.ModuleType") -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        self._watcher.loaded()

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._real, name)


def _part_of_import(method: "Callable[..., Any]") -> None:
    """Have a frame taken for one of Python's own import system.

    Python leaves those out of a traceback, and warnings that point to the importer skip them: a torch that
    fails to load, or warns, says what it says without us.
    """
    method.__code__ = method.__code__.replace(co_filename="<frozen importlib._bootstrap>")


_part_of_import(_Watcher.find_spec)
_part_of_import(_Loader.exec_module)
