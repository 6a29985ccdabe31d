"""``breakscope report --html``: writes the page, and opens it if asked to."""

from __future__ import annotations

from pathlib import Path

from breakscope import schema
from breakscope.errors import OutputError
from breakscope.model import Report

DEFAULT_NAME = "breakscope.html"


def write(report: Report, report_path: Path, output: Path | None, open_: bool) -> Path:
    """Write the page of a report and return where it is.

    Args:
        report: what to show.
        report_path: the report file; by default the page stands beside it.
        output: where else to write the page; None for the default.
        open_: whether to show the page in the user's browser.

    Raises:
        OutputError: the page cannot be written.
    """
    from breakscope.render import html

    target = output if output is not None else report_path.parent / DEFAULT_NAME
    if target.exists() and report_path.exists() and target.samefile(report_path):
        raise OutputError(
            f"cannot write the page to {target}: that is the report itself; name another file with -o"
        )
    text = html.render(report, sources=html.OnDisk())
    schema.write(text.encode("utf-8", errors="backslashreplace"), target)
    if open_:
        import webbrowser

        webbrowser.open(target.resolve().as_uri())
    return target
