"""A source file as bytes and as the text that proposers see: encoding and line ends survive a change."""

from __future__ import annotations

import ast
import difflib
import hashlib
import io
import os
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from breakscope.fix.patch import Edit, Patch, apply, edits_by_file, in_order
from breakscope.report.model import SourceEdit

Parents = Mapping[ast.AST, ast.AST]

# The part of an installed file's path that differs from machine to machine.
INSTALLED = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")


class NotTextError(ValueError):
    """The bytes are not source that could be written back as they were; the message says why."""


@dataclass(frozen=True, slots=True)
class Source:
    r"""A source file.

    Attributes:
        text: with ``\n`` line ends and without a byte order mark.
        raw: the same as it is in the file. encoding: the file's own.
    """

    data: bytes
    text: str
    raw: str
    encoding: str

    @classmethod
    def of(cls, data: bytes) -> Source:
        """Read a file's content. Raises NotTextError, and SyntaxError for an unknown encoding."""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        try:
            raw = data.decode(encoding)
        except UnicodeDecodeError as error:
            raise NotTextError(f"it is not {encoding}") from error
        if raw.encode(encoding) != data:
            raise NotTextError(f"it does not come back the same from {encoding}")
        return cls(data, raw.replace("\r\n", "\n").replace("\r", "\n"), raw, encoding)

    @property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()

    def changed(self, edits: Iterable[Edit]) -> Source:
        """The file with edits of ``text`` made. Lines that come in end as the line does where they come in.

        Raises:
            NotTextError: the file's encoding has no such character.
            OverlappingEditsError: two edits touch the same text.
        """
        places = self._places()
        made = []
        for edit in edits:
            start, end = places[edit.start], places[edit.end]
            made.append(Edit(start, end, edit.text.replace("\n", _ending(self.raw, start))))
        try:
            return Source.of(apply(self.raw, made).encode(self.encoding))
        except UnicodeEncodeError as error:
            raise NotTextError(f"its encoding {self.encoding} lacks a character of the rewrite") from error

    def _places(self) -> list[int]:
        """Where each character of ``text`` is in ``raw``."""
        places = [i for i, c in enumerate(self.raw) if c != "\n" or i == 0 or self.raw[i - 1] != "\r"]
        return [*places, len(self.raw)]

    def diff(self, new: Source, name: str) -> str:
        """A unified diff that ``git apply`` takes, both sides named ``name``."""
        lines = difflib.unified_diff(lines_of(self.raw), lines_of(new.raw), f"a/{name}", f"b/{name}")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )

    def placed(self, edits: Iterable[Edit]) -> Iterator[SourceEdit]:
        """Edits as a report has them: in lines and columns; those that touch each other are one."""
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        joined: list[Edit] = []
        for edit in in_order(edits):
            if joined and joined[-1].end == edit.start:
                before = joined.pop()
                edit = Edit(before.start, edit.end, before.text + edit.text, edit.file)
            joined.append(edit)
        for edit in joined:
            first, last = bisect_right(starts, edit.start), bisect_right(starts, edit.end)
            column, end_column = edit.start - starts[first - 1] + 1, edit.end - starts[last - 1] + 1
            yield SourceEdit(edit.file, first, column, last, end_column, edit.text)


def read(file: str) -> Source:
    """A file's source. Raises OSError, SyntaxError and NotTextError."""
    return Source.of(Path(file).read_bytes())


def shown_name(file: str, root: Path) -> str:
    """A file's name in a diff: relative to the project, or to where libraries are installed."""
    try:
        return Path(file).relative_to(os.path.realpath(root)).as_posix()
    except ValueError:
        return INSTALLED.sub("", file).replace("\\", "/").lstrip("/")


def shown_diff(patch: Patch, sources: Mapping[str, Source], root: Path) -> str:
    """A patch as the user sees it: a diff of its files, or settings of Dynamo."""
    if not patch.edits:
        config = patch.rewrite.config.items()
        return "".join(f"+torch._dynamo.config.{name} = {value}\n" for name, value in config)
    return "".join(
        sources[file].diff(sources[file].changed(edits), shown_name(file, root))
        for file, edits in edits_by_file([patch]).items()
    )


def parents_of(tree: ast.AST) -> Parents:
    """What holds each node of a tree."""
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def lines_of(raw: str) -> list[str]:
    """Lines with their ends: only a line feed ends one of a patch; str.splitlines knows more line ends."""
    return [line for line in raw.replace("\n", "\n\0").split("\0") if line]


def _ending(raw: str, at: int) -> str:
    end = raw.find("\n", at)
    if end < 0:
        end = raw.rfind("\n", 0, at)
    return "\r\n" if end > 0 and raw[end - 1] == "\r" else "\n"
