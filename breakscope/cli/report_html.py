"""``breakscope report --html`` and ``breakscope diff --html``: write a page, and open it if asked to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from breakscope.diagnose.compare import Comparison
from breakscope.errors import OutputError
from breakscope.report import schema
from breakscope.report.model import Report
from breakscope.report.secrets import NOTE

DEFAULT_NAME = "breakscope.html"
DEFAULT_DIFF_NAME = "diff.html"


def write(
    report: Report, report_path: Path, output: Path | None, open_: bool, known: frozenset[str] | None = None
) -> Path:
    """Write the page of a report and return where it is.

    Args:
        report: what to show.
        report_path: the report file; by default the page stands beside it.
        output: where else to write the page; None for the default.
        open_: whether to show the page in the user's browser.
        known: fingerprints of the findings that are not new; None not to tell new from known.

    Raises:
        OutputError: the page cannot be written.
    """
    from breakscope.cli.trust import own_projects
    from breakscope.inside.capture.artifacts import FOLDER, Store
    from breakscope.render import html

    target = output if output is not None else report_path.parent / DEFAULT_NAME
    _spare((report_path,), target)
    kept = Store(report_path.parent / FOLDER).get
    sources = html.OnDisk(html.evidenced(report, own_projects(report, report_path)))
    for finding in report.findings:
        sources.lines(finding.location.file)
    if sources.masks and NOTE not in report.run.notes:
        report = replace(report, run=replace(report.run, notes=(*report.run.notes, NOTE)))
    return _publish(html.render(report, sources=sources, known=known, artifacts=kept), target, open_)


def write_diff(
    comparison: Comparison, paths: tuple[Path, Path], output: Path | None, open_: bool, root: str
) -> Path:
    """Write the page of a comparison and return where it is.

    Args:
        comparison: what to show.
        paths: the old and the new report file; by default the page stands beside the new one.
        output: where else to write the page; None for the default.
        open_: whether to show the page in the user's browser.
        root: folder to which paths are shown relative.

    Raises:
        OutputError: the page cannot be written.
    """
    from breakscope.render import html

    target = output if output is not None else paths[1].parent / DEFAULT_DIFF_NAME
    _spare(paths, target)
    return _publish(html.render_diff(comparison, root=root), target, open_)


def _spare(reports: Sequence[Path], target: Path) -> None:
    """Refuse to write over a report that the page is made of."""
    if any(target.exists() and report.exists() and target.samefile(report) for report in reports):
        raise OutputError(
            f"cannot write the page to {target}: that is the report itself; name another file with -o"
        )


def _publish(text: str, target: Path, open_: bool) -> Path:
    schema.write(text.encode("utf-8", errors="backslashreplace"), target)
    if open_:
        import webbrowser

        webbrowser.open(target.resolve().as_uri())
    return target
