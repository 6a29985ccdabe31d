"""One module per format, each with a pure ``render(report, ...) -> str``.

:data:`FORMATS` is the one list of them. A format's module, and what that imports, loads when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from breakscope.errors import UsageError

if TYPE_CHECKING:
    from breakscope.render.html.sources import SourceReader
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
        links: whether a terminal's codes, ids and places are hyperlinks.
        sources: the source files that may be shown; None not to read any.
    """

    root: str | None = None
    known: frozenset[str] | None = None
    limit: int = 20
    everything: bool = False
    width: int = 100
    color: bool = False
    next_steps: Sequence[tuple[str, str]] = ()
    links: bool = False
    sources: SourceReader | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """A format: called with a report and options, it gives the text (bytes for Parquet).

    Attributes:
        name: of its module, which loads when the format is used.
        takes: the options that its ``render`` has.
        in_check: its part of ``breakscope check`` says what is new and known, for several targets. Else
            ``check`` writes the report of its one target.
    """

    name: str
    takes: tuple[str, ...] = ()
    in_check: bool = True

    def __call__(self, report: Report, options: Options) -> str | bytes:
        module = import_module(f"breakscope.render.{self.name}")
        chosen = {name: getattr(options, name) for name in self.takes}
        text: str | bytes = module.render(report, **chosen)
        return text


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("terminal", ("width", "color", "limit", "everything", "root", "next_steps", "links")),
        Format("json"),
        Format("markdown", ("root", "known")),
        Format("sarif", ("root", "known")),
        Format("github", ("root", "known")),
        Format("junit", ("root", "known")),
        Format("csv", ("root",)),
        Format("parquet", ("root",), in_check=False),
        Format("warmup", in_check=False),
        Format("perfetto", in_check=False),
        Format("speedscope", in_check=False),
        Format("issue", ("root", "limit", "sources"), in_check=False),
    )
}


def format_named(name: str) -> Format:
    """The format of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in FORMATS:
        raise UsageError(f"no format {name!r}: there are {', '.join(FORMATS)}")
    return FORMATS[name]
