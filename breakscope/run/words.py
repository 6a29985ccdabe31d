"""What the script itself says: its two streams and the files that it writes. Two runs of it, compared.

Pure functions, the same for rewrites and remedies. A difference becomes one sentence, which shows the first
line that differs. What the script does not repeat by itself is left out, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from breakscope.run.lines import Agreement, Difference, agree, shown
from breakscope.run.notices import script_lines
from breakscope.run.written import NOTHING, Files, Written

Numbered = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Said:
    """What one run said."""

    stdout: bytes
    stderr: bytes
    files: Files = NOTHING


@dataclass(frozen=True, slots=True)
class Silenced:
    """A message that a patch is expected to leave out.

    Attributes:
        lines: what its lines look like, one pattern for each line that it writes.
        warning: it is a warning, behind which the line of source is shown.
    """

    lines: tuple[re.Pattern[str], ...]
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """What came of a comparison.

    Attributes:
        stdout_lines, stderr_lines, files: how many were compared.
        left_out: what was not compared, and why, as short texts.
        difference: one sentence that names the first difference; None if there is none.
    """

    stdout_lines: int
    stderr_lines: int
    files: int
    left_out: tuple[str, ...] = ()
    difference: str | None = None

    @property
    def compared(self) -> bool:
        """Whether there was anything to compare."""
        return bool(self.stdout_lines or self.stderr_lines or self.files)

    @property
    def evidence(self) -> dict[str, Any]:
        """For a suggestion's evidence."""
        return {
            "stdout_lines": self.stdout_lines,
            "stderr_lines": self.stderr_lines,
            "files": self.files,
            "left_out": list(self.left_out),
        }


@dataclass(slots=True)
class _Found:
    tolerance: float
    left_out: list[str] = field(default_factory=list)
    difference: str | None = None

    def take(self, where: str, agreement: Agreement) -> Difference | None:
        """Note what was left out; the difference, if it is the first."""
        self.left_out += [f"{where}: {one}" for one in agreement.left_out]
        return agreement.difference if self.difference is None else None


def compare_words(
    before: Said,
    again: Callable[[], Said],
    after: Said,
    silenced: Sequence[Silenced] = (),
    tolerance: float = 0.0,
) -> Words:
    """Hold what a run with patches says against what one without says.

    Args:
        again: what a second run without patches says; asked at most once, where there is a difference.
        silenced: messages that are not compared, since leaving them out is what a patch is for.
        tolerance: how far apart two numbers may be, where a patch is known to round otherwise.
    """
    second = cache(again)
    found = _Found(tolerance)
    counts = [_compare_stream(name, before, second, after, silenced, found) for name in ("stdout", "stderr")]
    files = _compare_files(before, second, after, found)
    return Words(counts[0], counts[1], files, tuple(found.left_out), found.difference)


# ---- streams ----


@dataclass(frozen=True, slots=True)
class _Stream:
    r"""The script's own lines on one stream.

    Attributes:
        lines: with the number of the line that they stand on; parts that ``\r`` overwrites are lines too.
        overwritten: how many such parts there are. silenced: lines that were taken out.
    """

    lines: list[Numbered]
    overwritten: int
    silenced: int

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.lines]

    def last(self) -> _Stream:
        """Without what was overwritten."""
        behind = [*(number for number, _ in self.lines[1:]), None]
        kept = [one for one, after in zip(self.lines, behind, strict=True) if one[0] != after]
        return _Stream(kept, 0, self.silenced)


def _compare_stream(
    name: str,
    before: Said,
    again: Callable[[], Said],
    after: Said,
    silenced: Sequence[Silenced],
    found: _Found,
) -> int:
    """How many lines were compared."""
    old, new = _stream(before, name, silenced), _stream(after, name, silenced)
    if amount := max(old.silenced, new.silenced):
        lines = "1 line" if amount == 1 else f"{amount} lines"
        found.left_out.append(f"{name}: {lines} of messages that a patch leaves out while compiling")
    if old.texts == new.texts:
        return len(old.lines)
    repeated = _stream(again(), name, silenced)
    if old.texts != repeated.texts and (old.overwritten or repeated.overwritten or new.overwritten):
        # A progress bar writes as often as there is time for: what stays on the screen is compared.
        found.left_out.append(f"{name}: {old.overwritten} parts of lines that were overwritten")
        old, repeated, new = old.last(), repeated.last(), new.last()
    one = found.take(name, agreement := agree(old.lines, lambda: repeated.lines, new.lines, found.tolerance))
    if one is not None:
        found.difference = _sentence(one, name)
    return agreement.compared


def _stream(said: Said, name: str, silenced: Sequence[Silenced]) -> _Stream:
    numbered = numbered_lines(said.stdout if name == "stdout" else said.stderr)
    if name == "stderr":
        numbered = script_lines(numbered)
    kept = _without_silenced(numbered, silenced)
    overwritten = len(kept) - len({number for number, _ in kept})
    return _Stream(kept, overwritten, len(numbered) - len(kept))


def numbered_lines(data: bytes) -> list[Numbered]:
    """A stream's lines that are not empty, numbered from 1."""
    text = data.decode(errors="replace").replace("\r\n", "\n")
    return [
        (number, part.rstrip())
        for number, line in enumerate(text.split("\n"), start=1)
        for part in line.split("\r")
        if part.strip()
    ]


def _without_silenced(lines: list[Numbered], silenced: Sequence[Silenced]) -> list[Numbered]:
    kept: list[Numbered] = []
    at = 0
    while at < len(lines):
        length = next((n for one in silenced if (n := _silenced_here(lines, at, one))), 0)
        kept += [] if length else [lines[at]]
        at += length or 1
    return kept


def _silenced_here(lines: list[Numbered], at: int, one: Silenced) -> int:
    """How many lines from here on are this message's; 0 if it does not begin here."""
    texts = [text for _, text in lines[at : at + len(one.lines)]]
    if len(texts) < len(one.lines) or not all(
        pattern.fullmatch(text) for pattern, text in zip(one.lines, texts, strict=True)
    ):
        return 0
    end = at + len(one.lines)
    source = one.warning and end < len(lines) and lines[end][1].startswith("  ")
    return len(one.lines) + int(source)


def _sentence(one: Difference, where: str) -> str:
    now, past, plain = ("prints", "printed", "print") if where == "stdout" else ("writes", "wrote", "write")
    place = f"({where}, line {one.line})"
    if one.old is None:
        return f"with it the script also {now} {shown(one.new or '')} {place}"
    if one.new is None:
        return f"with it the script does not {plain} {shown(one.old)} any more {place}"
    return f"with it the script {now} {shown(one.new)} where it {past} {shown(one.old)} {place}"


# ---- files ----


def _compare_files(before: Said, again: Callable[[], Said], after: Said, found: _Found) -> int:
    """How many files were compared."""
    old, new = before.files.written, after.files.written
    names = agree(_names(before), lambda: _names(again()), _names(after))
    if (one := found.take("files", names)) is not None:
        found.difference = _other_files(one)
    for limit in dict.fromkeys((*before.files.limits, *after.files.limits)):
        found.left_out.append(limit)
    compared = 0
    for name in sorted(old.keys() & new.keys()):
        compared += _compare_file(name, old[name], again, new[name], found)
    return compared


def _other_files(one: Difference) -> str:
    if one.old is None:
        return f"with it the script also writes the file {one.new}"
    instead = f" but {one.new}" if one.new is not None else ""
    return f"with it the script does not write the file {one.old}{instead}"


def _names(said: Said) -> list[Numbered]:
    return [(number, name) for number, name in enumerate(sorted(said.files.written), start=1)]


def _compare_file(name: str, old: Written, again: Callable[[], Said], new: Written, found: _Found) -> bool:
    if _same(old, new):
        return True
    repeated = again().files.written.get(name)
    if repeated is None:
        found.left_out.append(f"files: {name}, which is not written in every run")
        return False
    if old.data is None or new.data is None or repeated.data is None:
        if not _same(old, repeated):
            found.left_out.append(f"files: {name}, which differs from run to run")
            return False
        if found.tolerance:
            found.left_out.append(f"files: {name}, of which numbers may be rounded otherwise")
            return False
        size = f"{new.size:,} bytes instead of {old.size:,}" if new.size != old.size else "of the same size"
        found.difference = found.difference or f"with it the script writes another {name} ({size})"
        return True
    views = [_text(one, added=_only_added(old, repeated)) for one in (old, repeated, new)]
    if (one := found.take(name, agree(views[0], lambda: views[1], views[2], found.tolerance))) is not None:
        found.difference = _sentence(one, name)
    return True


def _same(one: Written, other: Written) -> bool:
    return one.digest == other.digest or (one.added is not None and one.added == other.added)


def _only_added(one: Written, other: Written) -> bool:
    """Whether two runs are to be compared by what they appended: the whole grows from run to run."""
    if one.added is None or other.added is None:
        return False
    return len(_text(one, added=False)) != len(_text(other, added=False))


def _text(one: Written, *, added: bool) -> list[Numbered]:
    data = one.data or b""
    return numbered_lines(data[one.start :] if added else data)
