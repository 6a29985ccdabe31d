"""The file set as one program: which module is which file, and what an imported name stands for."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from breakscope.lint.facts import Class, Facts, Function

_MOST_HOPS = 6  # re-exports from file to file
_NAMESPACE_LEVELS = 4  # folders without __init__.py above a module that an import may name


class Symbol(NamedTuple):
    """What a name stands for: a function, a class, a method or a table of one file."""

    file: str
    name: str
    kind: str  # "function", "class" or "table"


class Project:
    """All files, by path and by module name.

    Args:
        paths: absolute paths of every file of the set, whether read or not.
        facts: those that were read.
    """

    def __init__(self, paths: Iterable[str], facts: dict[str, Facts]) -> None:
        self.facts = facts
        self.functions: dict[str, dict[str, Function]] = {}
        self.classes: dict[str, dict[str, Class]] = {}
        self.others: dict[str, frozenset[str]] = {}
        for file, one in facts.items():
            self.functions[file] = {function.name: function for function in one.functions}
            self.classes[file] = {cls.name: cls for cls in one.classes}
            self.others[file] = frozenset(one.others)
        self._files = set(paths)
        self._packages = {
            os.path.dirname(path) for path in self._files if os.path.basename(path) == "__init__.py"
        }
        self._modules: dict[str, list[str]] = {}
        self._own: dict[str, str] = {}
        for path in self._files:
            for name in self._module_names(path):
                self._modules.setdefault(name, []).append(path)
                self._own.setdefault(path, name)
        # Files that were wanted and have not been read (whole).
        self.wanted: set[str] = set()
        self._resolved: dict[tuple[str, str], Symbol | None] = {}
        self._ancestors: dict[Symbol, list[Symbol]] = {}
        self._methods: dict[tuple[Symbol, str, bool], Symbol | None] = {}

    def _module_names(self, path: str) -> list[str]:
        """Names under which a file can be imported, its package's first."""
        folder, base = os.path.split(path)
        parts = [] if base == "__init__.py" else [base.removesuffix(".py").removesuffix(".pyi")]
        while folder in self._packages:
            folder, name = os.path.split(folder)
            parts.insert(0, name)
        names = [".".join(parts)] if parts else []
        for _ in range(_NAMESPACE_LEVELS):
            folder, name = os.path.split(folder)
            if not name.isidentifier():
                break
            parts.insert(0, name)
            names.append(".".join(parts))
        return names

    # ---- names ----

    def module(self, name: str, importer: str) -> str | None:
        """The file of a module; of several the one nearest to the importer."""
        files = self._modules.get(name)
        if not files:
            return None
        if len(files) == 1:
            return files[0]
        return max(files, key=lambda file: (len(os.path.commonpath([file, importer])), file))

    def absolute(self, name: str, importer: str) -> str:
        """A dotted name without leading dots."""
        if not name.startswith("."):
            return name
        bare = name.lstrip(".")
        parts = self._own.get(importer, "").split(".")
        up = len(name) - len(bare) - (os.path.basename(importer) == "__init__.py")
        kept = parts[: len(parts) - up] if up else parts
        return ".".join([*kept, bare] if bare else kept)

    def resolve(self, name: str, file: str, hops: int = 0) -> Symbol | None:
        """What a dotted name stands for in a file; None for anything outside the set."""
        key = (file, name)
        if key not in self._resolved:
            self._resolved[key] = None  # a cycle of re-exports
            self._resolved[key] = self._resolve(name, file, hops)
        return self._resolved[key]

    def _resolve(self, name: str, file: str, hops: int) -> Symbol | None:
        here = self._local(name, file)
        if here is not None or hops > _MOST_HOPS:
            return here
        full = self.absolute(name, file)
        parts = full.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            target = self.module(".".join(parts[:cut]), file)
            if target is None or target == file:
                continue
            rest = ".".join(parts[cut:])
            if target not in self.facts:
                self.wanted.add(target)
                return None
            found = self._local(rest, target)
            if found is not None:
                return found
            first, _, after = rest.partition(".")
            exported = self.facts[target].imports.get(first)
            if exported is None:
                continue
            return self.resolve(f"{exported}.{after}" if after else exported, target, hops + 1)
        return None

    def _local(self, name: str, file: str) -> Symbol | None:
        facts = self.facts.get(file)
        if facts is None:
            return None
        if name in self.functions[file]:
            return Symbol(file, name, "function")
        if name in self.others[file]:
            self.wanted.add(file)
            return Symbol(file, name, "function")
        if name in self.classes[file]:
            return Symbol(file, name, "class")
        if name in facts.tables:
            return Symbol(file, name, "table")
        head, _, method = name.rpartition(".")
        if head and head in self.classes[file]:
            return self.method(Symbol(file, head, "class"), method)
        return None

    # ---- classes ----

    def bases(self, symbol: Symbol) -> list[Symbol]:
        """Base classes that are in the set."""
        cls = self.classes[symbol.file].get(symbol.name)
        found = [self.resolve(base, symbol.file) for base in cls.bases] if cls else []
        return [base for base in found if base is not None and base.kind == "class" and base != symbol]

    def ancestors(self, symbol: Symbol) -> list[Symbol]:
        """A class and its bases in the set, nearest first."""
        known = self._ancestors.get(symbol)
        if known is not None:
            return known
        order = self._ancestors[symbol] = []
        queue = [symbol]
        while queue:
            one = queue.pop(0)
            if one not in order:
                order.append(one)
                queue += self.bases(one)
        return order

    def method(self, symbol: Symbol, name: str, *, skip_own: bool = False) -> Symbol | None:
        """Where a method of a class is defined."""
        key = (symbol, name, skip_own)
        if key not in self._methods:
            self._methods[key] = self._find_method(symbol, name, skip_own)
        return self._methods[key]

    def _find_method(self, symbol: Symbol, name: str, skip_own: bool) -> Symbol | None:
        for ancestor in self.ancestors(symbol)[1 if skip_own else 0 :]:
            cls = self.classes[ancestor.file][ancestor.name]
            if name in cls.methods:
                full = f"{ancestor.name}.{name}"
                if full in self.others[ancestor.file]:
                    self.wanted.add(ancestor.file)
                return Symbol(ancestor.file, full, "function")
        return None

    def all_classes(self) -> list[Symbol]:
        """Every class of the files that were read."""
        return [Symbol(file, name, "class") for file, found in self.classes.items() for name in found]
