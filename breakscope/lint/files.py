"""Which files to lint: what was named, less what git ignores and what was excluded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from breakscope.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

# Folders of tools, which hold no code of the project's.
_NEVER = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".eggs",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        "site-packages",
        ".breakscope",
        ".ipynb_checkpoints",
    }
)


def collect(
    paths: Sequence[str], exclude: Sequence[str], configured: tuple[Sequence[str], str] = ((), "")
) -> list[str]:
    """Absolute paths of the Python files, sorted. A file that was named is in it whatever git says.

    Links to folders are not followed, so that a circle of them has an end.

    Args:
        exclude: patterns relative to the current folder; configured: patterns, and their folder.

    Raises:
        UsageError: a path does not exist or cannot be looked into, or a pattern makes no sense.
    """
    found: dict[str, None] = {}
    specs = (_spec(exclude, os.getcwd()), _spec(*configured))
    excluded = _Ignored(tuple(spec for spec in specs if spec is not None))
    for path in paths:
        full = os.path.abspath(path)
        if Path(full).is_dir():
            for file in _walk(full, _Ignored.above(full), excluded):
                found[file] = None
        elif os.path.isfile(full):
            if not excluded.holds(full, folder=False):
                found[full] = None
        elif os.path.lexists(full):
            raise UsageError(f"cannot lint {path}: it is neither a file nor a folder")
        else:
            raise UsageError(f"cannot lint {path}: there is no such file or folder")
    return sorted(found)


class _Spec(NamedTuple):
    """Patterns in the manner of .gitignore, relative to a folder."""

    folder: str
    patterns: GitIgnoreSpec

    def verdict(self, path: str, *, folder: bool) -> bool | None:
        """True: ignored; False: taken in again by a pattern with ``!``; None: nothing is said of it."""
        relative = os.path.relpath(path, self.folder).replace(os.sep, "/")
        if relative.startswith("../"):
            return None
        return self.patterns.check_file(relative + "/" if folder else relative).include

    def holds(self, path: str, *, folder: bool) -> bool:
        return self.verdict(path, folder=folder) is True


class _Ignored(NamedTuple):
    """The .gitignore files that are in force in a folder, outermost first."""

    specs: tuple[_Spec, ...] = ()

    @classmethod
    def above(cls, folder: str) -> _Ignored:
        """Those above a folder, as far as its repository reaches."""
        chain = [folder]
        while not Path(chain[-1], ".git").exists():
            parent = os.path.dirname(chain[-1])
            if parent == chain[-1]:
                return cls()  # no repository
            chain.append(parent)
        ignored = cls()
        for one in reversed(chain[1:]):
            ignored = ignored.within(one)
        return ignored

    def within(self, folder: str) -> _Ignored:
        """These, and what the folder's own file adds."""
        try:
            with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return self
        spec = _spec(lines, folder)
        return self if spec is None else _Ignored((*self.specs, spec))

    def holds(self, path: str, *, folder: bool) -> bool:
        for spec in reversed(self.specs):
            verdict = spec.verdict(path, folder=folder)
            if verdict is not None:
                return verdict
        return False


def _spec(lines: Sequence[str], folder: str) -> _Spec | None:
    if not lines:
        return None
    # Loaded here: it is slow to import, and a single file needs it rarely.
    from pathspec import GitIgnoreSpec

    try:
        return _Spec(folder, GitIgnoreSpec.from_lines(lines))
    except ValueError as error:
        raise UsageError(f"cannot read a pattern of {folder}: {error}") from None


def _walk(folder: str, ignored: _Ignored, excluded: _Ignored) -> Iterator[str]:
    ignored = ignored.within(folder)
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise UsageError(f"cannot look into {folder}: {error.strerror}") from None
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            if entry.name in _NEVER or _left_out(entry.path, ignored, excluded, folder=True):
                continue
            yield from _walk(entry.path, ignored, excluded)
        elif (
            entry.name.endswith(".py")
            and entry.is_file()
            and not _left_out(entry.path, ignored, excluded, folder=False)
        ):
            yield entry.path


def _left_out(path: str, ignored: _Ignored, excluded: _Ignored, *, folder: bool) -> bool:
    return ignored.holds(path, folder=folder) or (
        excluded is not None and excluded.holds(path, folder=folder)
    )
