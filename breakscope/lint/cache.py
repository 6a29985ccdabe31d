"""What was read before, by the content of the files: a copy, another branch or a new date change nothing.

Text files of JSON, written whole or not at all. What cannot be read is as good as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import breakscope
from breakscope.errors import OutputError
from breakscope.report.files import write

FOLDER = ".breakscope/cache"
_FACTS, _RUNS = "lint-facts.txt", "lint-run-"
_MOST_ENTRIES = 50_000  # then only those of this run are kept
_MOST_RUNS = 8


def digest(data: bytes) -> str:
    """A short name for content. SHA-256, which processors have instructions for."""
    return hashlib.sha256(data).hexdigest()[:32]


def engine() -> str:
    """A name for this version of lint, which changes when any of its modules does."""
    folder = os.path.dirname(__file__)
    with os.scandir(folder) as entries:
        parts = sorted(
            f"{entry.name}:{entry.stat().st_size}:{entry.stat().st_mtime_ns}"
            for entry in entries
            if entry.name.endswith(".py")
        )
    python = ".".join(map(str, sys.version_info[:2]))
    return digest("\n".join((breakscope.__version__, python, *parts)).encode())


class Cache:
    """The cache of one folder; with None, nothing is read or kept.

    Args:
        folder: where it is; made when first written, with a .gitignore of its own.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.engine = engine() if folder else ""
        self._facts: dict[str, str] | None = None

    def run(self, key: str) -> Any:
        """The result of a whole run with the same files; None if there was none."""
        if self.folder is None:
            return None
        try:
            text = self._run_file(key).read_text(encoding="utf-8")
            return json.loads(text)
        except (OSError, ValueError):
            return None

    def facts(self, key: str) -> str | None:
        """The facts of one file, as JSON text."""
        if self._facts is None:
            self._facts = self._load()
        return self._facts.get(key)

    def keep(self, key: str, result: Any, facts: dict[str, str]) -> None:
        """Keep the result of a run, and the facts that it used. A cache that cannot be written is none."""
        if self.folder is None:
            return
        merged = {**(self._facts or {}), **facts}
        if len(merged) > _MOST_ENTRIES:
            merged = facts
        with contextlib.suppress(OSError, OutputError):
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                write(b"*\n", ignore)
            if merged.keys() != (self._facts or {}).keys():
                lines = [self.engine, *(f"{name}\t{text}" for name, text in merged.items())]
                write("\n".join(lines).encode(), self.folder / _FACTS)
            write(json.dumps(result).encode(), self._run_file(key))
            self._forget(sorted(self.folder.glob(f"{_RUNS}*.json"), key=lambda path: path.stat().st_mtime))

    def _load(self) -> dict[str, str]:
        if self.folder is None:
            return {}
        try:
            lines = (self.folder / _FACTS).read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError):
            return {}
        if lines[0] != self.engine:
            return {}
        pairs = (line.partition("\t") for line in lines[1:])
        return {name: text for name, _, text in pairs}

    def _run_file(self, key: str) -> Path:
        assert_folder = self.folder or Path()
        return assert_folder / f"{_RUNS}{digest((self.engine + key).encode())}.json"

    @staticmethod
    def _forget(runs: list[Path]) -> None:
        for path in runs[:-_MOST_RUNS]:
            path.unlink(missing_ok=True)


def run_key(files: Iterable[tuple[str, str]]) -> str:
    """A name for a set of files with their contents."""
    return digest("\n".join(f"{content} {path}" for path, content in files).encode(errors="surrogatepass"))
