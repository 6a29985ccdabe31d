"""The text under a record, held against the checksum that the record names."""

from __future__ import annotations

import hashlib
from typing import Any

from breakscope.traces.damage import Damage


def payload_text(raw: bytes, checksum: Any, damage: Damage) -> tuple[str, bool]:
    """A payload's text, and whether it is what was written.

    Args:
        raw: its lines as they stand in the file, each after a tab.
        checksum: md5 of the text in UTF-8, from the envelope.
    """
    body = raw.replace(b"\n\t", b"\n")[1:].removesuffix(b"\n")
    if _md5(body) == checksum:
        return body.decode("utf-8", errors="replace"), True
    if b"\r" in body and _md5(unix := body.replace(b"\r\n", b"\n").removesuffix(b"\r")) == checksum:
        return unix.decode("utf-8", errors="replace"), True  # written on Windows
    if not _is_utf8(body):
        text = body.decode("latin-1")  # what torch writes under a locale that is not UTF-8
        if _md5(text.encode()) == checksum:
            damage.add("locale")
            return text, True
    recovered = _beginning(body, checksum)
    if recovered is not None:
        return recovered.decode("utf-8", errors="replace"), True
    return body.decode("utf-8", errors="replace"), False


def _beginning(body: bytes, checksum: Any) -> bytes | None:
    """The lines from the first that have the checksum: those after them are of another writer's record."""
    running = hashlib.md5(usedforsecurity=False)
    length = 0
    for line in body.split(b"\n"):
        if length:
            running.update(b"\n")
        running.update(line)
        length += len(line) + 1
        if running.hexdigest() == checksum:
            return body[: length - 1]
    return None


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
