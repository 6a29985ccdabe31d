"""From what Dynamo names to locations, call paths and fingerprints that a user can follow."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from breakscope.diagnose import uses
from breakscope.diagnose.records import RawFrame
from breakscope.diagnose.statements import head_of
from breakscope.project.sources import Kinds, Position, Sources, without_comment
from breakscope.report.model import Finding, Frame, Location
from breakscope.report.owners import owner_of, stable_path

# How a call reaches a user's forward(): never what a user looks for in a call path.
_PLUMBING = re.compile(
    r"/torch/(?:_dynamo/|_compile\.py$|fx/_symbolic_trace\.py$|nn/modules/module\.py$)|^<frozen "
)


class Places:
    """Turns raw frames into the model's, with the sources of one report at hand.

    Args:
        roots: directories of the user's project.
        own: directory of breakscope itself, whose frames never show.
        seen: of which kind names were when their function broke.
    """

    def __init__(self, roots: tuple[str, ...], own: str, seen: Sequence[Kinds] = ()) -> None:
        self.sources = Sources(seen)
        self.roots = roots
        self._own = own

    def location(
        self, frame: RawFrame, position: tuple[int, int, int, int] | None, qualname: str | None = None
    ) -> Location:
        """Where a frame is, to the column where that is known."""
        extent: Position | tuple[int, int, None, None] | None = position
        if position is not None:
            extent = self.sources.narrow(frame.file, position)
        elif frame.carets is not None and frame.source:
            extent = self.sources.underlined(frame.file, frame.line, frame.source, frame.carets)
        line = extent[0] if extent else frame.line
        span = self.sources.function(frame.file, line, frame.name)
        if span is not None and line < span.line:
            line = span.line  # a code object begins at its first decorator
        source = self.sources.line(frame.file, line)
        column = end_line = end_column = None
        if extent is not None:
            column = self.sources.column(frame.file, line, extent[1])
            if extent[2] is not None:
                end_line = extent[2]
                end_column = self.sources.column(frame.file, end_line, extent[3])
        return Location(
            file=frame.file,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            function=span.qualname if span else qualname or frame.name,
            source=source.strip() if source is not None else frame.source,
            owner=owner_of(frame.file, self.roots),
            indent=len(source) - len(source.lstrip()) if source is not None else None,
        )

    def definition(self, file: str, line: int, name: str, qualname: str) -> Location:
        """The line of a function's ``def``, for findings that are about a function as a whole."""
        span = self.sources.function(file, line, name)
        at = span.line if span else line
        found = self.location(RawFrame(file, at, name, None), None, qualname)
        return replace(found, function=span.qualname if span else qualname)

    def stack(self, frames: Iterable[RawFrame], *, resumed: bool = False) -> tuple[Frame, ...]:
        """A call path without torch's and our own plumbing.

        Args:
            resumed: whether a resume function was being compiled. Its first half is on the path as well then:
                Dynamo folds the two only where they are neighbours, and our hook stands between them.
        """
        kept: list[RawFrame] = []
        hooked = False
        for frame in frames:
            if frame.file.startswith(self._own):
                hooked = True
            elif not self.is_plumbing(frame):
                if resumed and hooked and kept and _same_function(kept[-1], frame):
                    kept.pop()
                kept.append(frame)
                hooked = False
        return tuple(map(self._frame, kept))

    def is_plumbing(self, frame: RawFrame) -> bool:
        """Whether a frame is breakscope's, or one of torch's that only hands a call on."""
        return frame.file.startswith(self._own) or bool(_PLUMBING.search(frame.file.replace("\\", "/")))

    def call(self, frame: RawFrame, name: str) -> list[ast.AST]:
        """The nodes around the call of ``name``, or the read of a property, that a frame is at; else empty.

        By torch's carets, or by its name, where they underline an assert as a whole or a call of several
        lines in no way.
        """
        extent = None
        if frame.carets is not None and frame.source:
            extent = self.sources.underlined(frame.file, frame.line, frame.source, frame.carets)
        if extent is not None and extent[2] is not None:
            around = self.sources.around(frame.file, extent)
            if around and (isinstance(around[-1], ast.Call) or _is_read(around[-1], name)):
                return around
        around = self.sources.around_line(frame.file, frame.line)
        statement = uses.statement(around)
        asked = [] if statement is None else list(ast.walk(head_of(statement)))
        calls = [node for node in asked if isinstance(node, ast.Call) and uses.called(node) == name]
        named: Sequence[ast.expr] = calls or [node for node in asked if _is_read(node, name)]
        if len(named) != 1:
            return []
        call = named[0]
        whole = call.lineno, call.col_offset, call.end_lineno or call.lineno, call.end_col_offset or 0
        return self.sources.around(frame.file, whole)

    def _frame(self, frame: RawFrame) -> Frame:
        source = self.sources.line(frame.file, frame.line)
        span = self.sources.function(frame.file, frame.line, frame.name)
        return Frame(
            frame.file,
            frame.line,
            span.qualname if span else frame.name,
            source.strip() if source is not None else frame.source,
            owner_of(frame.file, self.roots),
        )

    def caller(self, location: Location, stack: tuple[Frame, ...]) -> Frame | None:
        """The innermost frame of the project, where the location itself is not in the project."""
        if location.owner == "project":
            return None
        return next((frame for frame in reversed(stack) if frame.owner == "project"), None)

    def short(self, file: str, line: int) -> str:
        """``model.py:142``."""
        return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"

    def fingerprint(
        self, code: str, location: Location, about: str = "", *, of_function: bool = False
    ) -> str:
        """A stable name: no line number, no count, the same on every machine.

        Args:
            about: what tells apart findings with the same code and place, such as a guard's source.
            of_function: whether the location is where a function begins, for findings that are about all of
                it. Its name says enough then: another parameter must not make them new.
        """
        path = stable_path(location.file, self.roots)
        source = "" if of_function else without_comment(location.source or "")
        parts = "\n".join((code, path, location.function or "", " ".join(source.split()), about))
        return hashlib.sha256(parts.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def _is_read(node: ast.AST, name: str) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)


def _same_function(one: RawFrame, other: RawFrame) -> bool:
    return (one.file, one.name) == (other.file, other.name)


def distinct(findings: list[Finding]) -> list[Finding]:
    """Give findings that are alike in all but their line (the same text twice) names of their own."""
    seen: Counter[str] = Counter()
    named: dict[int, str] = {}
    for finding in sorted(findings, key=lambda f: (f.location.line, f.location.column or 0)):
        seen[finding.fingerprint] += 1
        number = seen[finding.fingerprint]
        named[id(finding)] = finding.fingerprint if number == 1 else f"{finding.fingerprint}-{number}"
    return [replace(finding, fingerprint=named[id(finding)]) for finding in findings]
