"""What a person sees first of a report: the first line, and the first finding."""

from __future__ import annotations

import re

_FIRST = re.compile(r"^ 1  (BS\d{3}) .*?(?=^ 2  BS|^─|^note|^next|\Z)", re.MULTILINE | re.DOTALL)


def first_line(screen: str) -> str:
    return screen.split("\n", 1)[0]


def first_finding(screen: str) -> tuple[str, str]:
    """Its code, and all that is said of it, in one line; "none" and nothing where there is none."""
    found = _FIRST.search(screen)
    return (found[1], " ".join(found[0].split())) if found else ("none", "")
