"""From places in a syntax tree to what a reader sees: characters, source lines, names; comments honoured."""

from __future__ import annotations

import hashlib
import io
import os
import tokenize
from typing import NamedTuple

from breakscope.lint.graph import Placed
from breakscope.project import suppress as comments
from breakscope.report.lint import Possible, Remark
from breakscope.report.place import Location
from breakscope.source.span import characters


class Presented(NamedTuple):
    """Possible breaks as a reader sees them, and the comments that hold for them."""

    possible: tuple[Possible, ...]
    suppressed: int
    unused: tuple[Remark, ...]


def present(placed: list[Placed], contents: dict[str, bytes], root: str, *, suppress: bool) -> Presented:
    """Sort by place, take the text in, and leave out what a comment suppresses.

    Args:
        root: folder to which paths in fingerprints are relative.
        suppress: whether comments are honoured.
    """
    by_file: dict[str, list[Placed]] = {}
    for one in placed:
        by_file.setdefault(one.file, []).append(one)
    possible: list[Possible] = []
    unused: list[Remark] = []
    suppressed = 0
    marked = [path for path, content in contents.items() if b"breakscope:" in content]
    for path in sorted({*by_file, *(marked if suppress else ())}):
        text = _text(contents[path])
        found = _of_file(by_file.get(path, []), text, path, root)
        if suppress and b"breakscope:" in contents[path]:
            found, less, doubts = _suppressed(found, text, path)
            suppressed += less
            unused += doubts
        possible += found
    return Presented(tuple(possible), suppressed, tuple(unused))


def _of_file(placed: list[Placed], text: str, path: str, root: str) -> list[Possible]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found: dict[tuple[str, int, int], Possible] = {}
    order = sorted(
        placed,
        key=lambda one: (one.candidate.line, one.candidate.column, one.candidate.code, not _likely(one)),
    )
    for one in order:
        key = (one.candidate.code, one.candidate.line, one.candidate.column)
        if key not in found:
            found[key] = _possible(one, lines, path, root)
    return list(found.values())


def _likely(one: Placed) -> bool:
    return one.candidate.likely and one.reached.likely


def _possible(one: Placed, lines: list[str], path: str, root: str) -> Possible:
    candidate = one.candidate
    first = _line(lines, candidate.line)
    source = first.strip()
    location = Location(
        file=path,
        line=candidate.line,
        column=characters(first, candidate.column) + 1,
        end_line=candidate.end_line,
        end_column=characters(_line(lines, candidate.end_line), candidate.end_column) + 1,
        function=one.function,
        source=source,
        indent=len(first) - len(first.lstrip()),
    )
    reached = one.reached
    why = reached.why if reached.entry == one.function else f"called from {reached.entry}"
    return Possible(
        _fingerprint(candidate.code, path, one.function, source, root),
        candidate.code,
        "likely" if _likely(one) else "possible",
        location,
        candidate.about,
        why,
    )


def _fingerprint(code: str, path: str, function: str, source: str, root: str) -> str:
    """As a scan makes it; see ``diagnose.places``."""
    inside = os.path.relpath(path, root).replace(os.sep, "/")
    shown = path if inside.startswith("../") else inside
    parts = "\n".join((code, shown, function, " ".join(source.split()), ""))
    return hashlib.sha256(parts.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def _suppressed(found: list[Possible], text: str, path: str) -> tuple[list[Possible], int, list[Remark]]:
    """What no comment leaves out, how many one did, and which comments say nothing to breakscope."""
    known = comments.parse(text)
    kept = [one for one in found if known.find(one.code, one.location.line, one.location.end_line) is None]
    # A comment that suppresses nothing here may be for a scan, which sees more: only `check` can tell.
    doubts = [
        Remark(path, one.line, f"{one.text!r} suppresses nothing: {one.why}") for one in known.malformed
    ]
    return kept, len(found) - len(kept), doubts


def _text(content: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding, errors="replace")
    except (SyntaxError, LookupError):
        text = content.decode(errors="replace")
    return text.removeprefix("\ufeff")


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1] if number <= len(lines) else ""
