"""What every format for files says of one finding: the terminal's words, for one finding at a time."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

from breakscope.report.model import Finding, Frame, Location, Report
from breakscope.view import report_view
from breakscope.view.finding import Detail, Maker, severity
from breakscope.view.following import following
from breakscope.view.report_view import View
from breakscope.view.text import harmless, package_path

__all__ = [
    "Said",
    "about_run",
    "absolute_path",
    "clip",
    "is_new",
    "lines",
    "project_place",
    "relative_path",
    "said",
    "severity",
]


@dataclass(frozen=True, slots=True)
class Said:
    """A finding in words. Every text is harmless and without a line break.

    Attributes:
        amount: what it costs, else how often it happened.
        counts: how often and when, beyond ``amount``.
        details: (label, lines) pairs: reason, guard, also, via or used at, expected, meant, do this.
    """

    title: str
    amount: str
    where: str
    function: str
    counts: str
    details: tuple[Detail, ...]

    @property
    def advice(self) -> str:
        """What to do; empty where nothing is known."""
        return " ".join(dict(self.details).get("do this", ()))


def said(report: Report, finding: Finding, root: str | None) -> Said:
    """The words for one finding of a report."""
    links = following(report.findings)
    group = Maker(report, _folders(report, root), False, links).group(1, [finding], [finding])
    place = group.places[0]
    return Said(
        group.title, group.amount, place.where, place.function, place.counts, (*place.details, *group.details)
    )


def about_run(report: Report, root: str | None) -> View:
    """The words for the run as a whole; holds no finding."""
    return report_view.build(report, limit=0, all=False, root=root)


def is_new(finding: Finding, known: Collection[str] | None) -> bool:
    """Whether a finding is not among the known ones; without any, nothing is called new."""
    return known is not None and finding.fingerprint not in known


def project_place(finding: Finding) -> Location | Frame:
    """Where a finding shows in the user's own repository, as far as its call path reaches it."""
    if finding.location.owner == "project" or finding.called_from is None:
        return finding.location
    return finding.called_from


def relative_path(file: str, report: Report, root: str | None) -> str | None:
    """A path with ``/`` from the root or from where the script ran; None for one outside, or installed."""
    full = absolute_path(file, report)
    if full is None or package_path(full) is not None:
        return None
    for folder in _folders(report, root):
        prefix = folder.replace("\\", "/").rstrip("/") + "/"
        if full.startswith(prefix):
            return full[len(prefix) :]
    return None


def absolute_path(file: str, report: Report) -> str | None:
    """A path with ``/`` from the top of the file system; None for what is no file, such as ``<string>``."""
    if not file or file.startswith("<"):
        return None
    return posixpath.normpath(posixpath.join(report.run.cwd.replace("\\", "/"), file.replace("\\", "/")))


def lines(text: str) -> str:
    """Text of several lines, each harmless; every line break is one line feed."""
    return "\n".join(harmless(line) for line in text.replace("\r\n", "\n").split("\n"))


def clip(text: str, most: int) -> str:
    """At most ``most`` characters, and how many were left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def _folders(report: Report, root: str | None) -> tuple[str, ...]:
    return tuple(folder for folder in (root, report.run.cwd) if folder)
