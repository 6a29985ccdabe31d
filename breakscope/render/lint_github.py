"""Possible breaks as GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from breakscope import catalog
from breakscope.render import github
from breakscope.render.lint import Options
from breakscope.render.lint_text import counted, function, shown_path
from breakscope.report.lint import Linted, Possible
from breakscope.view.text import harmless

_ANNOTATIONS = {"likely": "warning", "possible": "notice"}


def render(linted: Linted, options: Options) -> str:
    """An annotation for each, as many of a level as GitHub shows, likely ones first."""
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
    return "\n".join([*lines, f"breakscope lint: {counted(linted)}{more}"]) + "\n"


def _annotation(one: Possible, level: str, options: Options) -> str:
    place = one.location
    properties = {"file": shown_path(place.file, options), "line": str(place.line)}
    if place.end_line == place.line:
        properties |= {"col": str(place.column), "endColumn": str(place.end_column)}
    else:
        properties["endLine"] = str(place.end_line)
    entry = catalog.entry(one.code)
    properties["title"] = f"{one.code} {one.level}: {entry.title}"
    facts = [one.about] if one.about else []
    facts.append(f"in {function(one)}: {one.why}")
    facts.append(f"do this: {entry.fix}")
    return github.command(level, properties, "\n".join(map(harmless, facts)))
