"""One module per format, each with a pure ``render(report, ...) -> str``.

:data:`FORMATS` is the one list of them. A format's module, and what that imports, loads when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from breakscope.report.model import Report


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose; a format takes what it has a use for.

    Attributes:
        root: folder of the repository, to which paths are shown relative; None for where the script ran.
        known: fingerprints that are not new; None where nothing is known about that.
        limit: findings to show on a terminal, unless ``everything``.
        width: columns of the terminal.
        color: whether to use ANSI styles.
        next_steps: (command, what it does) lines for the end.
    """

    root: str | None = None
    known: frozenset[str] | None = None
    limit: int = 20
    everything: bool = False
    width: int = 100
    color: bool = False
    next_steps: Sequence[tuple[str, str]] = ()


Format = Callable[["Report", Options], "str | bytes"]


def _terminal(report: Report, options: Options) -> str:
    from breakscope.render import terminal

    return terminal.render(
        report,
        width=options.width,
        color=options.color,
        limit=options.limit,
        all=options.everything,
        root=options.root,
        next_steps=options.next_steps,
    )


def _json(report: Report, _: Options) -> str:
    from breakscope.render import json

    return json.render(report)


def _markdown(report: Report, options: Options) -> str:
    from breakscope.render import markdown

    return markdown.render(report, root=options.root, known=options.known)


def _sarif(report: Report, options: Options) -> str:
    from breakscope.render import sarif

    return sarif.render(report, root=options.root, known=options.known)


def _github(report: Report, options: Options) -> str:
    from breakscope.render import github

    return github.render(report, root=options.root, known=options.known)


def _junit(report: Report, options: Options) -> str:
    from breakscope.render import junit

    return junit.render(report, root=options.root, known=options.known)


def _csv(report: Report, options: Options) -> str:
    from breakscope.render import csv

    return csv.render(report, root=options.root)


def _warmup(report: Report, _: Options) -> str:
    from breakscope.render import warmup

    return warmup.render(report)


def _parquet(report: Report, options: Options) -> bytes:
    from breakscope.render import parquet

    return parquet.render(report, root=options.root)


def _perfetto(report: Report, _: Options) -> str:
    from breakscope.render import perfetto

    return perfetto.render(report)


FORMATS: dict[str, Format] = {
    "terminal": _terminal,
    "json": _json,
    "markdown": _markdown,
    "sarif": _sarif,
    "github": _github,
    "junit": _junit,
    "csv": _csv,
    "parquet": _parquet,
    "warmup": _warmup,
    "perfetto": _perfetto,
}
