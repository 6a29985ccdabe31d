"""Which findings a comment in the user's source leaves out, and which comments leave out nothing.

The only part of judging that reads files: :mod:`breakscope.project.suppress` says what a comment is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from breakscope.project import suppress
from breakscope.project.sources import Sources
from breakscope.project.suppress import Suppression, Suppressions
from breakscope.report.model import Finding, Frame, Location, Report
from breakscope.report.owners import owner_of


@dataclass(frozen=True, slots=True, order=True)
class Comment:
    """A comment and what is to be said of it.

    Attributes:
        file: path as it can be opened from here.
        said: its codes for one that suppresses nothing; for a malformed one what is wrong with it.
    """

    file: str
    line: int
    said: str


@dataclass(frozen=True, slots=True)
class Suppressed:
    """What the comments in the files of one report come to.

    Attributes:
        reasons: by fingerprint, of the findings that are left out; None for a comment without a reason.
        used: the comments that left something out.
        unused: those that left nothing out of this report.
        malformed: those that are not understood.
    """

    reasons: dict[str, str | None]
    used: frozenset[Comment] = frozenset()
    unused: frozenset[Comment] = frozenset()
    malformed: frozenset[Comment] = frozenset()


def apply(report: Report, root: str) -> Suppressed:
    """Read the files of the project that a report names, and match their comments with its findings.

    A finding in a library counts as standing at the line of the project that called it.

    Args:
        root: folder of the repository here, for a report of another machine.
    """
    files = _Files(report, root)
    reasons: dict[str, str | None] = {}
    used: set[Comment] = set()
    for finding in report.findings:
        found = files.comment_for(finding)
        if found is not None:
            file, entry = found
            reasons[finding.fingerprint] = entry.reason
            used.add(_comment(file, entry))
    entries, malformed = set(), set()
    for file in sorted(files.named()):
        comments = files.comments(file)
        entries |= {_comment(file, entry) for entry in comments.entries}
        malformed |= {Comment(file, one.line, f"`{one.text}`: {one.why}") for one in comments.malformed}
    return Suppressed(reasons, frozenset(used), frozenset(entries - used), frozenset(malformed))


def locate(file: str, cwd: str, root: str) -> str | None:
    """The path here of a file that a report names; None where it is not here.

    Args:
        cwd: where the script ran, perhaps on another machine.
        root: folder of the repository here. The longest end of the path that it holds is taken.
    """
    if file.startswith("<"):
        return None
    full = os.path.join(cwd, file)
    if os.path.isfile(full):
        return full
    parts = Path(os.path.normpath(full)).parts[1:]
    ends = (os.path.join(root, *parts[start:]) for start in range(len(parts)))
    return next((path for path in ends if os.path.isfile(path)), None)


def _comment(file: str, entry: Suppression) -> Comment:
    return Comment(file, entry.line, f"ignore[{', '.join(entry.codes)}]")


class _Files:
    """The project's files that a report names, each found and read once."""

    def __init__(self, report: Report, root: str) -> None:
        self._report = report
        self._root = root
        self.find = cache(self._find)
        self.comments = cache(self._comments)
        self._sources = Sources()

    def named(self) -> set[str]:
        """Every file of the project that the run is known to have compiled, as it can be opened from here."""
        report = self._report
        places: Iterable[Sequence[str | None]] = (
            [finding.location.file for finding in report.findings],
            [frame.file for finding in report.findings for frame in finding.stack],
            [target.file for target in report.run.targets],
            [one.file for one in report.compiles],
            [report.run.script],
        )
        found = {self.find(file) for group in places for file in set(group) if file}
        return {file for file in found if file is not None and owner_of(file, (self._root,)) == "project"}

    def comment_for(self, finding: Finding) -> tuple[str, Suppression] | None:
        """The comment that suppresses a finding, and its file."""
        places: list[Location | Frame] = [finding.location]
        if finding.location.owner != "project":
            places = [finding.called_from] if finding.called_from is not None else []
        for place in places:
            file = self.find(place.file)
            last = place.end_line if isinstance(place, Location) else None
            if file is None:
                continue
            lines = self._sources.lines(file)
            if self._is_stale(place, lines):
                # Edited since the scan: the line as it was is all that can be relied on.
                entry = suppress.parse(place.source or "").find(finding.code, 1)
            else:
                entry = self.comments(file).find(finding.code, place.line, last)
            if entry is not None:
                return file, self._as_written(file, entry, place)
        return None

    def _is_stale(self, place: Location | Frame, lines: Sequence[str]) -> bool:
        if place.source is None:
            return False
        return not (0 < place.line <= len(lines) and lines[place.line - 1].strip() == place.source.strip())

    def _as_written(self, file: str, entry: Suppression, place: Location | Frame) -> Suppression:
        """The comment as it stands in the file now, if it does: it has been used."""
        same = [
            one
            for one in self.comments(file).entries
            if (one.codes, one.reason) == (entry.codes, entry.reason)
        ]
        return min(same, key=lambda one: abs(one.line - place.line), default=entry)

    def _find(self, file: str) -> str | None:
        return locate(file, self._report.run.cwd, self._root)

    def _comments(self, file: str) -> Suppressions:
        try:
            return suppress.read(file)
        except (OSError, SyntaxError, ValueError):
            return Suppressions()  # what cannot be read has no comments, as far as Python can tell
