"""Source that is changed while Python loads it: fixes for libraries, and for a script, that edit no file.

``breakscope run --fixes`` and ``scan --fixes`` install a folder of fixes; ``fix --export-overlay`` writes
this very file with the fixes at its end. So it knows the standard library only, and nothing of breakscope.

A fix is applied only to the very bytes that it was made for. Where a file has changed since, it is loaded as
it is, and a warning says so.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import stat
import sys
import types
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
VERSION = 1

Parse = Callable[[bytes, str], ast.Module]
Wants = Callable[[str, str], bool]

# File (real path) or module name -> the fix of that file, once installed. Those of the script by path.
_installed: dict[str, Mapping[str, Any]] = {}
# The script itself is loaded by one of these: the last that was asked for it.
_mains: list[tuple[str, Parse]] = []


def install(folder: str | os.PathLike[str], script: str | None = None) -> None:
    """Apply the fixes of a folder to everything that is imported from now on.

    Args:
        script: path of the script that is about to run as ``__main__``, where it may be fixed too.

    Raises:
        OSError, ValueError: there is no manifest, or not one that this version reads.
    """
    install_fixes(check(folder), script)


def _wanted(module: str, origin: str) -> bool:
    place = os.path.realpath(origin)
    if module in _installed:
        # Installed elsewhere than where the fix was made: from now on it is known by its file here.
        _installed.setdefault(place, _installed[module])
    return place in _installed


def check(folder: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The manifest of a folder. Raises as :func:`install` does."""
    place = os.path.join(folder, MANIFEST)
    # A manifest holds code that is about to run.
    for part in (folder, place):
        status = os.lstat(part) if part == place else os.stat(part)
        if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
            raise ValueError(f"{os.fspath(part)} belongs to another user")
        if stat.S_ISLNK(status.st_mode):
            raise ValueError(f"{place} is a link")
    with open(place, encoding="utf-8") as file:
        manifest = json.load(file)
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        raise ValueError("not a manifest of fixes, or one of another version of breakscope")
    if not isinstance(manifest.get("files"), list) or not isinstance(manifest.get("config"), dict):
        raise ValueError("its manifest is damaged")
    for one in manifest["files"]:
        _check_fix(one)
    if not all(
        isinstance(value, bool | int) and name.isidentifier() for name, value in manifest["config"].items()
    ):
        raise ValueError("its manifest sets what fixes do not set")
    return manifest


def _check_fix(fix: Any) -> None:
    """Refuse what no fix of ours says. Raises ValueError."""
    if not isinstance(fix, dict) or not {"file", "module", "sha256", "edits"} <= fix.keys():
        raise ValueError("its manifest is damaged")
    file, module = fix["file"], fix["module"]
    if not isinstance(file, str) or not isinstance(module, str | None) or not isinstance(fix["sha256"], str):
        raise ValueError("its manifest is damaged")
    if not os.path.isabs(file) or os.path.normpath(file) != file:
        raise ValueError(f"its manifest names {file!r}, which is no plain absolute path")
    if Path(file).is_symlink():
        raise ValueError(f"its manifest names {file!r}, which is a link")
    if not isinstance(fix["edits"], list) or not all(map(_is_edit, fix["edits"])):
        raise ValueError("its manifest is damaged")


def _is_edit(edit: Any) -> bool:
    if not isinstance(edit, list) or list(map(type, edit)) != [int, int, str]:
        return False
    return bool(0 <= edit[0] <= edit[1])


def install_fixes(manifest: Mapping[str, Any], script: str | None = None) -> None:
    """As :func:`install`, from the manifest's content."""
    stems = set()
    for one in manifest["files"]:
        module = one["module"]
        loaded = sys.modules.get(module) if module else None
        if loaded is not None:
            warnings.warn(f"{module} was imported before its fix could be applied", stacklevel=2)
            continue
        _installed[os.path.realpath(one["file"])] = one
        if module:
            _installed[module] = one
        stems.add(_stem(module or "") or _stem_of_file(one["file"]))
    main = os.path.realpath(script) if script is not None else None
    watch(stems, _wanted, parse, script if main in _installed else None)
    if manifest["config"]:
        _configure(manifest["config"])


def parse(data: bytes, path: str) -> ast.Module:
    """A file's syntax tree with its fix applied, where it has one that fits.

    Nodes keep the line numbers of the file on disk: unchanged code its own, changed code those of what it
    replaces, so that tracebacks and profiles point into the file.
    """
    fix = _installed.get(os.path.realpath(path))
    if fix is None:
        return ast.parse(data, filename=path)
    if hashlib.sha256(data).hexdigest() != fix["sha256"]:
        warnings.warn(f"{path} has changed since its fix was made; it is loaded as it is", stacklevel=2)
        return ast.parse(data, filename=path)
    source = importlib.util.decode_source(data)
    # By place only: what several edits put in at one place comes in the order in which it was made.
    edits = sorted(((start, end, text) for start, end, text in fix["edits"]), key=lambda edit: edit[:2])
    tree = ast.parse(edited(source, edits), filename=path)
    _renumber(tree, _old_lines(source, edits))
    return tree


def edited(source: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """A source with pieces of it replaced: (start, end, text) in characters, sorted and disjoint."""
    pieces, last = [], 0
    for start, end, text in edits:
        pieces += [source[last:start], text]
        last = end
    return "".join([*pieces, source[last:]])


# ---- lines ----


def _old_lines(source: str, edits: Sequence[tuple[int, int, str]]) -> list[int]:
    """For each line of the edited source, the line of the old one that it stands for. Both count from 1."""
    lines, at, last = [0, 1], 1, 0
    for start, end, text in edits:
        for _ in range(source.count("\n", last, start)):
            at += 1
            lines.append(at)
        bottom = at + source.count("\n", start, end)
        for extra in range(text.count("\n")):
            lines.append(min(at + extra + 1, bottom))
        at, last = bottom, end
    for _ in range(source.count("\n", last)):
        at += 1
        lines.append(at)
    return lines


def _renumber(tree: ast.Module, old: Sequence[int]) -> None:
    for node in ast.walk(tree):
        if not hasattr(node, "lineno"):
            continue
        node.lineno = old[node.lineno]
        end = getattr(node, "end_lineno", None)
        if end is None:
            continue
        node.end_lineno = old[end]  # type: ignore[attr-defined]
        if node.end_lineno == node.lineno and node.end_col_offset < node.col_offset:  # type: ignore[attr-defined]
            # A node over several lines now stands on one: compile() wants its end behind its start.
            node.end_col_offset = node.col_offset  # type: ignore[attr-defined]


# ---- loading ----


def watch(stems: Collection[str], wants: Wants, parse: Parse, script: str | None = None) -> None:
    """Have modules, and the script, compiled from the tree that ``parse`` makes of their bytes.

    Of several watchers that want a module, the last one asked for gets it; it calls :func:`parse` here for
    the tree to begin with, and so keeps the fixes.

    Args:
        stems: last parts of the names of modules that may be wanted.
        wants: whether a module (name, file) is wanted.
        script: the file that Python is about to run as ``__main__``, if it is wanted.
    """
    if stems:
        sys.meta_path.insert(0, _Finder(frozenset(stems), wants, parse))
    if script is not None:
        if not _mains:
            sys.addaudithook(_main_hook)
        _mains.append((os.path.realpath(script), parse))


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a module from source, never from a .pyc."""

    tree: Parse = staticmethod(parse)

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        code: types.CodeType = compile(self.tree(self.get_data(path), path), path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, stems: frozenset[str], wants: Wants, parse: Parse) -> None:
        self._stems, self._wants, self._parse = stems, wants, parse

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As import asks; None for every module that is not wanted."""
        if _stem(fullname) not in self._stems and "__init__" not in self._stems:
            return None
        for finder in sys.meta_path:
            if isinstance(finder, _Finder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is None:
                continue
            real = spec.loader
            if not isinstance(real, importlib.machinery.SourceFileLoader) or spec.origin is None:
                return None
            if not self._wants(fullname, spec.origin):
                return None
            loader = _Loader(real.name, real.path)
            loader.tree = self._parse
            spec.loader = loader
            return spec
        return None


def _main_hook(event: str, args: tuple[Any, ...]) -> None:
    """Run the changed script where Python is about to run the one on disk.

    ``python SCRIPT`` has no hook between parsing and running, but it raises the audit event "exec" with the
    code that it is about to run. The changed code is run there, in the real ``__main__``, and Python is then
    told to stop where it would have begun.
    """
    if event != "exec" or not _mains:
        return
    code = args[0]
    script, tree = _mains[-1]
    if code.co_name != "<module>" or os.path.realpath(code.co_filename) != script or not _as_main():
        return
    _mains.clear()
    with open(script, "rb") as file:
        data = file.read()
    changed = compile(tree(data, code.co_filename), code.co_filename, "exec", dont_inherit=True)
    exec(changed, sys.modules["__main__"].__dict__)  # noqa: S102 -- the user's script
    raise SystemExit


def _as_main() -> bool:
    """Whether it is ``__main__`` that is about to be run: a spawned worker's script has another name."""
    frame = sys._getframe(1).f_back  # of runpy, for ``python -m``; none for ``python SCRIPT``
    return frame is None or frame.f_locals.get("mod_name", "__main__") == "__main__"


# Without this, Python runs a hook, and so the whole script, with tracing off: no debugger, no coverage.
_main_hook.__cantrace__ = True  # type: ignore[attr-defined]


def _stem(module: str) -> str:
    return module.rpartition(".")[2]


def _stem_of_file(file: str) -> str:
    path = Path(file)
    return path.parent.name if path.stem == "__init__" else path.stem


# ---- settings of Dynamo ----


def _configure(config: Mapping[str, Any]) -> None:
    def apply(module: Any) -> None:
        for name, value in config.items():
            setattr(module, name, value)

    loaded = sys.modules.get("torch._dynamo.config")
    if loaded is not None:
        apply(loaded)
    else:
        sys.meta_path.insert(0, _ConfigFinder(apply))


class _ConfigFinder(importlib.abc.MetaPathFinder):
    def __init__(self, apply: Callable[[Any], None]) -> None:
        self._apply = apply

    def find_spec(
        self,
        fullname: str,
        _path: Sequence[str] | None,
        _target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """The real spec of Dynamo's configuration, which sets its values once it has run."""
        if fullname != "torch._dynamo.config":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        real, apply = spec.loader.exec_module, self._apply

        def exec_module(module: types.ModuleType) -> None:
            real(module)
            apply(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
