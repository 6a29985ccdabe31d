"""``breakscope import --follow``: the view of a running job."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from breakscope.report.model import Finding, Report

POLL_S = 0.3


class View(Protocol):
    """Shows a report that grows."""

    def show(self, report: Report, state: str) -> None:
        """Show it as it is now; ``state`` is a line about the files."""


def follow(paths: Sequence[Path], *, quiet: bool) -> Report:
    """Show what a job writes until Ctrl-C, and return the report of it.

    Raises:
        TraceError: nothing was written that is a trace.
    """
    from breakscope.traces.follow import Follower

    follower = Follower(paths)
    began = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # how a scheduler says Ctrl-C
    try:
        with _view(quiet=quiet) as view:
            if not quiet:
                print("breakscope: following; Ctrl-C ends it and writes the report", file=sys.stderr)
            pause = POLL_S
            while True:
                if follower.poll():
                    started = time.monotonic()
                    report = follower.report()
                    if report is not None:
                        elapsed = time.monotonic() - began
                        view.show(
                            report, f"{follower.files} files, {follower.bytes / 1e6:,.1f} MB, {elapsed:.0f} s"
                        )
                    # A long report takes long to make: leave most of a core to the job.
                    pause = max(POLL_S, 2 * (time.monotonic() - started))
                time.sleep(pause)
    except KeyboardInterrupt:
        return follower.close()


@contextmanager
def _view(*, quiet: bool) -> Iterator[View]:
    if quiet:
        yield _Nothing()
    elif sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(), screen=True, auto_refresh=False) as live:
            yield _Screen(live)
    else:
        yield _Lines()


class _Nothing:
    def show(self, report: Report, state: str) -> None:
        """Nothing is shown."""


class _Screen:
    """The report itself, drawn again and again."""

    def __init__(self, live: Any) -> None:
        self._live = live

    def show(self, report: Report, state: str) -> None:
        from rich.text import Text

        from breakscope.cli import output
        from breakscope.render import terminal

        size = shutil.get_terminal_size((100, 24))
        text = terminal.render(
            report,
            width=size.columns,
            color=output.wants_color(),
            limit=50,
            everything=False,
            root=os.getcwd(),
            next_steps=[],
        )
        head = f"following {state}; Ctrl-C ends it and writes the report\n\n"
        lines = (head + text).split("\n")[: size.lines - 1]
        self._live.update(Text.from_ansi("\n".join(lines)), refresh=True)


class _Lines:
    """A line for each finding that is new or happened again, for logs and pipes."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def show(self, report: Report, state: str) -> None:
        del state  # lines are for logs, which have times of their own
        for finding in report.findings:
            count, before = finding.counts.occurrences, self._seen.get(finding.fingerprint, 0)
            if count != before:
                self._seen[finding.fingerprint] = count
                print(line(finding), flush=True)


def line(finding: Finding) -> str:
    """A finding in one line."""
    from breakscope.view.text import count, harmless, short_path

    place = finding.location
    ranks = ", ".join(map(str, finding.ranks))
    where = f"{short_path(place.file, (os.getcwd(),))}:{place.line} {place.function or ''}".rstrip()
    times = count(finding.counts.occurrences, "time")
    return harmless(f"rank {ranks}  {finding.code}  {where}  {finding.title}  ({times} so far)")
