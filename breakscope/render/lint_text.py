"""Possible breaks as text: with their source lines, or one line each."""

from __future__ import annotations

import os

from breakscope import catalog
from breakscope.render.lint import Options
from breakscope.report.lint import Linted, Possible
from breakscope.view.excerpt import excerpt
from breakscope.view.text import count, harmless

_BOLD, _DIM, _RED, _YELLOW, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_INDENT = "   "


def concise(linted: Linted, options: Options) -> str:
    """One line for each, ``file:line:column: CODE level text``, and one about them all."""
    lines = [
        f"{_where(one, options)}: {one.code} {one.level}: {title(one)} [{harmless(function(one))}]"
        for one in linted.possible
    ]
    return "\n".join([*lines, summary(linted, options)]) + "\n"


def full(linted: Linted, options: Options) -> str:
    """Each with its source line and what to do, and a line about them all."""
    paint = _Paint(options.color)
    blocks = []
    for one in linted.possible:
        level = paint(one.level, _RED if one.level == "likely" else _YELLOW)
        lines = [f"{paint(_where(one, options), _BOLD)}  {one.code} {level}  {title(one)}"]
        shown = excerpt(one.location, options.width - len(_INDENT))
        if shown is not None:
            lines.append(_INDENT + shown.text)
            if shown.mark is not None:
                start, width = shown.mark
                lines.append(_INDENT + " " * start + paint("^" * width, _RED))
        lines.append(paint(f"{_INDENT}in       {harmless(function(one))}: {harmless(one.why)}", _DIM))
        lines.append(paint(f"{_INDENT}do this  {catalog.entry(one.code).fix}", _DIM))
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, summary(linted, options)]) + "\n"


def summary(linted: Linted, options: Options) -> str:
    """What was looked at and what came of it, in one line."""
    parts = [
        counted(linted),
        f"{count(linted.files, 'file')}, {linted.read:,} with code that may be compiled",
    ]
    if options.hidden:
        parts.append(f"{options.hidden:,} less likely: --level possible")
    if linted.suppressed:
        parts.append(f"{linted.suppressed:,} suppressed by comments")
    if linted.known:
        parts.append(f"{linted.known:,} in the baseline")
    parts.append("static analysis only; confirm with breakscope scan")
    return " · ".join(parts)


def counted(linted: Linted) -> str:
    """``28 possible breaks, 24 likely``."""
    likely = sum(one.level == "likely" for one in linted.possible)
    if not linted.possible:
        return "no possible breaks"
    return f"{count(len(linted.possible), 'possible break')}, {likely:,} likely"


class _Paint:
    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, style: str) -> str:
        return f"{style}{text}{_RESET}" if self._color else text


def title(one: Possible) -> str:
    """What it is, in a few words."""
    words = catalog.entry(one.code).title
    return f"{words}: {harmless(one.about)}" if one.about else words


def function(one: Possible) -> str:
    """In which function it is."""
    return one.location.function or "?"


def shown_path(path: str, options: Options) -> str:
    """A path as one would type it from the root."""
    relative = os.path.relpath(path, options.root)
    return harmless(path if relative.startswith("..") else relative)


def _where(one: Possible, options: Options) -> str:
    return f"{shown_path(one.location.file, options)}:{one.location.line}:{one.location.column}"
