"""What the commands share when they print."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from breakscope.report.model import Report


def relative(path: Path) -> str:
    """A path as one would type it from here."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def draw(text: str) -> None:
    """Draw the line on the terminal again that says what is done now; no text wipes it. Nothing in a pipe."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        try:  # its own: stdout may be a pipe
            width = os.get_terminal_size(2).columns or 100
        except OSError:
            width = 100
        sys.stderr.write(f"\r\x1b[2K{text if len(text) < width else text[: width - 2] + '…'}")
        sys.stderr.flush()


def wants_color() -> bool:
    """NO_COLOR and FORCE_COLOR decide; else a terminal gets colour."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


# What terminals that know hyperlinks say of themselves. FORCE_HYPERLINK decides, as elsewhere.
_LINKING_VARIABLES = ("WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM")
_LINKING_PROGRAMS = frozenset(("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "zed"))
_LINKING_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour")
_FIRST_VTE = 5000  # 0.50, without the faults of the first release that had them


def wants_links() -> bool:
    """Whether standard output is a terminal that shows hyperlinks; never in a pipe."""
    if not sys.stdout.isatty() or not wants_color():
        return False
    told = os.environ
    if forced := told.get("FORCE_HYPERLINK"):
        return forced != "0"
    version = told.get("VTE_VERSION", "")
    return (
        any(map(told.get, _LINKING_VARIABLES))
        or told.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or told.get("TERM", "").startswith(_LINKING_TERMS)
        or (version.isdecimal() and int(version) >= _FIRST_VTE)
    )


def next_steps(report: Report, report_argument: str) -> list[tuple[str, str]]:
    """The commands that go on from a report, with what they do."""
    from breakscope.view import report_view
    from breakscope.view.next_steps import answers

    steps = []
    if groups := report_view.build(report, limit=1, all=False, root=None).groups:
        code = groups[0].code
        steps.append((f"breakscope explain {code}", "why it breaks there, with an example of what to do"))
    steps += answers(report, report_argument)
    steps.append((f"breakscope report{report_argument} --html", "the same as a page, with the source"))
    steps.append((f"breakscope report{report_argument} --all", "this report again, every finding"))
    return steps


def terminal(report: Report, *, limit: int, everything: bool, next_steps: Sequence[tuple[str, str]]) -> None:
    """Print a report to stdout, as wide as the terminal; plain text where stdout is none."""
    from breakscope.render import terminal as renderer

    width = shutil.get_terminal_size((100, 24)).columns
    text = renderer.render(
        report,
        width=width,
        color=wants_color(),
        limit=limit,
        everything=everything,
        root=os.getcwd(),
        next_steps=next_steps,
        links=wants_links(),
    )
    write(text)


def write(text: str) -> None:
    """Write text to stdout, whatever its encoding can hold."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, errors="replace").decode(encoding))
    if not text.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()
