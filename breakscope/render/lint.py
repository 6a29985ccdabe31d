"""The formats of ``breakscope lint``. A format's module, and what that imports, loads when it is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from breakscope.report.lint import Linted

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may choose.

    Attributes:
        root: folder to which paths are shown relative.
        hidden: possible breaks that were found and are not shown, because of their level.
    """

    root: str
    width: int = 100
    color: bool = False
    hidden: int = 0


def _full(linted: Linted, options: Options) -> str:
    from breakscope.render import lint_text

    return lint_text.full(linted, options)


def _concise(linted: Linted, options: Options) -> str:
    from breakscope.render import lint_text

    return lint_text.concise(linted, options)


def _json(linted: Linted, options: Options) -> str:
    """Everything, for programs; paths as they are."""
    document = {
        "schema_version": SCHEMA_VERSION,
        **asdict(linted),
        "hidden": options.hidden,
    }
    return json.dumps(document, indent=1) + "\n"


def _sarif(linted: Linted, options: Options) -> str:
    from breakscope.render import lint_sarif

    return lint_sarif.render(linted, options)


def _github(linted: Linted, options: Options) -> str:
    from breakscope.render import lint_github

    return lint_github.render(linted, options)


FORMATS: dict[str, Callable[[Linted, Options], str]] = {
    "full": _full,
    "concise": _concise,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
