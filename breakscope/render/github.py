"""The report as GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from collections import Counter

from breakscope.catalog.entry import Severity
from breakscope.report.model import Finding, Report
from breakscope.report.ranking import is_open, worst_first
from breakscope.view.text import and_more, count, harmless, package_path
from breakscope.view.words import about_run, clip, is_new, project_place, relative_path, said, severity

# GitHub shows so many of each level a step and drops the rest without a word.
MOST = 10
# Bytes that the summary of one step may take.
SUMMARY_BYTES = 1024 * 1024

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_TITLE, _MESSAGE = 200, 4_000  # characters


def render(report: Report, *, root: str | None = None, known: frozenset[str] | None = None) -> str:
    """One line for each annotation, at most ``MOST`` of each level, and one about the rest.

    New findings come first, then the costly ones. What nothing is to be done about, because it is expected
    or meant to be so, has none: only the last line counts it.

    Args:
        report: what to show.
        root: folder of the repository, to which files are relative, besides that in which the script ran.
        known: fingerprints that are not new.
    """
    open_ = [one for one in report.findings if is_open(one)]
    ordered = sorted(open_, key=lambda one: (not is_new(one, known), worst_first(one)))
    room = Counter(dict.fromkeys(_LEVELS.values(), MOST))
    lines = []
    alarm = about_run(report, root).alarm
    if alarm:
        lines.append(command("warning", {"title": "breakscope"}, clip(alarm, _MESSAGE)))
        room["warning"] -= 1
    hidden = []
    for finding in ordered:
        level = _LEVELS[severity(finding)]
        if room[level]:
            room[level] -= 1
            lines.append(_annotation(report, finding, level, root, known))
        else:
            hidden.append(finding)
    lines.append(_closing(len(open_), len(report.findings) - len(open_), hidden))
    return "\n".join(lines) + "\n"


def _closing(shown: int, closed: int, hidden: list[Finding]) -> str:
    total = count(shown, "finding") + (f", and {closed:,} expected or meant to be so" if closed else "")
    if not hidden:
        return f"breakscope: {total}"
    codes = Counter(finding.code for finding in hidden).most_common()
    kinds = and_more((f"{number:,} {harmless(clip(code, 20))}" for code, number in codes), 5)
    return f"breakscope: {total}, of which {len(hidden):,} have no annotation here ({kinds})"


def _annotation(
    report: Report, finding: Finding, level: str, root: str | None, known: frozenset[str] | None
) -> str:
    words = said(report, finding, root)
    place = project_place(finding)
    file = relative_path(place.file, report, root)
    properties: dict[str, str] = {}
    if file is not None:
        properties |= {"file": harmless(file), "line": str(place.line)}
        # GitHub ignores columns of a place of several lines.
        location = finding.location
        if place is location and location.column and location.end_line in (None, location.line):
            properties["col"] = str(location.column)
            if location.end_column and location.end_column > location.column:
                properties["endColumn"] = str(location.end_column)
        elif place is location and location.end_line and location.end_line > location.line:
            properties["endLine"] = str(location.end_line)
    news = "new: " if is_new(finding, known) else ""
    properties["title"] = clip(f"{news}{harmless(finding.code)} {words.title} ({words.amount})", _TITLE)
    where = f"{words.where} {words.function}".strip()
    facts = [f"{label}: {'; '.join(texts)}" for label, texts in words.details]
    # The annotation stands at its line already, unless that is only the caller's.
    elsewhere = file is None or package_path(finding.location.file) is not None
    parts = [*([f"at {where}"] if elsewhere else []), *([words.counts] if words.counts else []), *facts]
    return command(level, properties, clip("\n".join(parts) or words.title, _MESSAGE))


def command(level: str, properties: dict[str, str], message: str) -> str:
    """One workflow command, such as ``::warning file=a.py,line=1::text``."""
    pairs = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {pairs}::{data(message)}"


def data(text: str) -> str:
    """Text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return data(text).replace(":", "%3A").replace(",", "%2C")
