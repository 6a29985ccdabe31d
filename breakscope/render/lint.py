"""Possible breaks as text for people and programs: one function for each format of ``breakscope lint``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import breakscope
from breakscope.catalog_entry import Severity
from breakscope.lint_model import Linted, Possible
from breakscope.render import github, sarif, sarif_places
from breakscope.render.excerpt import excerpt
from breakscope.render.text import count, harmless
from breakscope.render.words import clip, entry_of

SCHEMA_VERSION = 1
_SEVERITIES: dict[str, Severity] = {"likely": "warning", "possible": "info"}
_ANNOTATIONS = {"likely": "warning", "possible": "notice"}
_BOLD, _DIM, _RED, _YELLOW, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_INDENT = "   "


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


def concise(linted: Linted, options: Options) -> str:
    """One line for each, ``file:line:column: CODE level text``, and one about them all."""
    lines = [
        f"{_where(one, options)}: {one.code} {one.level}: {_title(one)} [{harmless(_function(one))}]"
        for one in linted.possible
    ]
    return "\n".join([*lines, summary(linted, options)]) + "\n"


def full(linted: Linted, options: Options) -> str:
    """Each with its source line and what to do, and a line about them all."""
    paint = _Paint(options.color)
    blocks = []
    for one in linted.possible:
        level = paint(one.level, _RED if one.level == "likely" else _YELLOW)
        lines = [f"{paint(_where(one, options), _BOLD)}  {one.code} {level}  {_title(one)}"]
        shown = excerpt(one.location, options.width - len(_INDENT))
        if shown is not None:
            lines.append(_INDENT + shown.text)
            if shown.mark is not None:
                start, width = shown.mark
                lines.append(_INDENT + " " * start + paint("^" * width, _RED))
        lines.append(paint(f"{_INDENT}in       {harmless(_function(one))}: {harmless(one.why)}", _DIM))
        entry = entry_of(one.code)
        if entry:
            lines.append(paint(f"{_INDENT}do this  {entry.fix}", _DIM))
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, summary(linted, options)]) + "\n"


def as_json(linted: Linted, options: Options) -> str:
    """Everything, for programs; paths as they are."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "breakscope", "version": breakscope.__version__},
        **asdict(linted),
        "hidden": options.hidden,
    }
    return json.dumps(document, indent=1) + "\n"


def as_sarif(linted: Linted, options: Options) -> str:
    """SARIF 2.1.0. Likely ones are warnings, possible ones notes."""
    codes = sorted({one.code for one in linted.possible})
    run = {
        "tool": {
            "driver": {
                "name": "breakscope lint",
                "version": breakscope.__version__,
                "rules": [sarif.rule_of(code, code, "warning") for code in codes],
            }
        },
        "automationDetails": {"id": "breakscope-lint/"},
        "invocations": [
            {
                "executionSuccessful": not linted.unreadable,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": sarif_places.message(f"{_shown(one.file, options)}: {harmless(one.text)}"),
                    }
                    for one in linted.unreadable
                ],
            }
        ],
        "originalUriBaseIds": sarif_places.BASES,
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(one, codes, options) for one in linted.possible],
    }
    return json.dumps({"$schema": sarif.SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def as_github(linted: Linted, options: Options) -> str:
    """Workflow commands: an annotation for each, as many as GitHub shows, likely ones first."""
    ordered = sorted(linted.possible, key=lambda one: one.level != "likely")
    lines = []
    room = dict.fromkeys(_ANNOTATIONS.values(), github.MOST)
    for one in ordered:
        level = _ANNOTATIONS[one.level]
        if room[level]:
            room[level] -= 1
            lines.append(_annotation(one, level, options))
    hidden = len(ordered) - len(lines)
    more = f", of which {hidden:,} have no annotation here" if hidden else ""
    return "\n".join([*lines, f"breakscope lint: {_counted(linted)}{more}"]) + "\n"


FORMATS: dict[str, Callable[[Linted, Options], str]] = {
    "full": full,
    "concise": concise,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}


def summary(linted: Linted, options: Options) -> str:
    """What was looked at and what came of it, in one line."""
    parts = [_counted(linted), f"{count(linted.files, 'file')}, {linted.read:,} with code that may be compiled"]
    if options.hidden:
        parts.append(f"{options.hidden:,} less likely: --level possible")
    if linted.suppressed:
        parts.append(f"{linted.suppressed:,} suppressed by comments")
    parts.append("nothing was run: breakscope scan knows")
    return " · ".join(parts)


def _counted(linted: Linted) -> str:
    likely = sum(one.level == "likely" for one in linted.possible)
    if not linted.possible:
        return "no possible breaks"
    return f"{count(len(linted.possible), 'possible break')}, {likely:,} likely"


class _Paint:
    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if self._color else text


def _title(one: Possible) -> str:
    entry = entry_of(one.code)
    title = entry.title if entry else one.code
    return f"{title}: {harmless(one.about)}" if one.about else title


def _function(one: Possible) -> str:
    return one.location.function or "?"


def _shown(path: str, options: Options) -> str:
    relative = os.path.relpath(path, options.root)
    return harmless(path if relative.startswith("..") else relative)


def _where(one: Possible, options: Options) -> str:
    return f"{_shown(one.location.file, options)}:{one.location.line}:{one.location.column}"


def _sarif_result(one: Possible, codes: list[str], options: Options) -> dict[str, Any]:
    place = one.location
    text = f"{one.level.capitalize()}: {_title(one)}, in {_function(one)} ({one.why})."
    relative = os.path.relpath(place.file, options.root).replace(os.sep, "/")
    outside = relative.startswith("../")
    artifact = (
        {"uri": "file://" + sarif_places.quoted(place.file.replace(os.sep, "/"))}
        if outside
        else {"uri": sarif_places.quoted(relative), "uriBaseId": "SRCROOT"}
    )
    return {
        "ruleId": one.code,
        "ruleIndex": codes.index(one.code),
        "level": sarif.LEVELS[_SEVERITIES[one.level]],
        "message": sarif_places.message(harmless(text)),
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": {
                        "startLine": place.line,
                        "startColumn": place.column,
                        "endLine": place.end_line,
                        "endColumn": place.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {sarif.FINGERPRINT: one.fingerprint},
        "properties": {"level": one.level},
    }


def _annotation(one: Possible, level: str, options: Options) -> str:
    place = one.location
    properties = {"file": _shown(place.file, options), "line": str(place.line)}
    if place.end_line == place.line:
        properties |= {"col": str(place.column), "endColumn": str(place.end_column)}
    else:
        properties["endLine"] = str(place.end_line)
    entry = entry_of(one.code)
    properties["title"] = clip(f"{one.code} {one.level}: {entry.title if entry else one.code}", 200)
    facts = [one.about] if one.about else []
    facts.append(f"in {_function(one)}: {one.why}")
    if entry:
        facts.append(f"do this: {entry.fix}")
    return github.command(level, properties, "\n".join(map(harmless, facts)))
