"""A source file as bytes and as the text that rules see: encoding and line ends survive a change."""

from __future__ import annotations

import difflib
import hashlib
import io
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass

from breakscope.inside.overlay import edited

Edits = tuple[tuple[int, int, str], ...]


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

    def changed(self, edits: Iterable[tuple[int, int, str]]) -> Source:
        """The file with edits of ``text`` made. Lines that come in end as the line does where they come in.

        Raises:
            NotTextError: the file's encoding has no such character.
        """
        places = self._places()
        made = []
        for start, end, text in sorted(edits):
            ending = _ending(self.raw, places[start])
            made.append((places[start], places[end], text.replace("\n", ending)))
        raw = edited(self.raw, made)
        try:
            return Source.of(raw.encode(self.encoding))
        except UnicodeEncodeError as error:
            raise NotTextError(f"its encoding {self.encoding} lacks a character of the rewrite") from error

    def _places(self) -> list[int]:
        """Where each character of ``text`` is in ``raw``."""
        places = [i for i, c in enumerate(self.raw) if c != "\n" or i == 0 or self.raw[i - 1] != "\r"]
        return [*places, len(self.raw)]

    def diff(self, new: Source, name: str) -> str:
        """A unified diff that ``git apply`` takes, both sides named ``name``."""
        lines = difflib.unified_diff(_lines(self.raw), _lines(new.raw), f"a/{name}", f"b/{name}")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )


def _lines(raw: str) -> list[str]:
    # Only \n ends a line of a patch; str.splitlines knows more line ends than that.
    return [line for line in raw.replace("\n", "\n\0").split("\0") if line]


def _ending(raw: str, at: int) -> str:
    end = raw.find("\n", at)
    if end < 0:
        end = raw.rfind("\n", 0, at)
    return "\r\n" if end > 0 and raw[end - 1] == "\r" else "\n"
