"""Words and numbers as every plain-text format shows them. Text from a report is data: made harmless here."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from breakscope.report.model import Device
from breakscope.report.owners import cell_of

# Control, invisible and direction-changing characters, lone surrogates, line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
# Invisible too, but marks to Unicode: they make the character before them wider, or hide data.
_SELECTORS = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_TAB = " " * 4
_LIBRARY_FOLDERS = ("/site-packages/", "/dist-packages/")
_MINUTE = 60

NOT_MEASURED = "not measured"


def harmless_character(character: str) -> str:
    """The character, or an escape for one that would steer, hide in or reorder a terminal's line."""
    if character.isascii() and character.isprintable():
        return character
    if unicodedata.category(character) not in _UNSAFE and character not in _SELECTORS:
        return character
    return _TAB if character == "\t" else ascii(character)[1:-1]


def harmless(text: str) -> str:
    """Text on one line with every control, invisible and direction-changing character shown escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(harmless_character, text))


def first_line(text: str) -> str:
    """The first line that says something, harmless."""
    return harmless(next((line.strip() for line in text.splitlines() if line.strip()), ""))


def count(number: int | None, noun: str, plural: str | None = None) -> str:
    """``1 site``, ``1,234 sites``; ``sites not measured`` for None."""
    plural = plural or f"{noun}s"
    if number is None:
        return f"{plural} {NOT_MEASURED}"
    return f"{number:,} {noun if number == 1 else plural}"


def per_step(number: int, steps: int) -> str:
    """``6 a step``, ``0.5 a step``; never 0 for something that happened."""
    rate = f"{number / steps:,.1f}".removesuffix(".0")
    return "under 0.1 a step" if number and rate == "0" else f"{rate} a step"


def milliseconds(value: float) -> str:
    """Three digits that matter: ``0.0312``, ``1.42``, ``35.1``, ``1,420``."""
    if value == 0:
        return "0"
    for limit, digits in ((0.1, 4), (10, 2), (100, 1)):
        if abs(value) < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def seconds(value: float) -> str:
    """``8.1 s``, ``3 min 12 s``."""
    if value < _MINUTE:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), _MINUTE)
    return f"{minutes:,} min {rest} s"


def short_path(path: str, folders: Iterable[str]) -> str:
    """Relative to the first of the folders that holds it; from the package's name on for installed code."""
    installed = package_path(path)
    if installed is not None:
        return harmless(installed)
    if cell := cell_of(path):
        return cell
    plain = path.replace("\\", "/")
    for folder in folders:
        prefix = folder.replace("\\", "/").rstrip("/") + "/"
        if len(prefix) > 1 and plain.startswith(prefix):
            return harmless(plain[len(prefix) :])
    return harmless(path)


def package_path(file: str) -> str | None:
    """The part of an installed file's path from the package on; None for other files."""
    plain = file.replace("\\", "/")
    for marker in _LIBRARY_FOLDERS:
        _, found, inside = plain.rpartition(marker)
        if found and inside:
            return inside
    return None


def and_more(items: Iterable[str], most: int) -> str:
    """``a, b, c and 4 more``."""
    known = list(items)
    rest = len(known) - most
    return ", ".join(known[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def device_words(device: Device, joint: str = " ") -> str:
    """Kind and name of a device, the name once, and how many there are if there are several."""
    same = device.name.lower() == device.type.lower()
    name = device.type if same else f"{device.type}{joint}{device.name}"
    return f"{device.count} x {name}" if device.count > 1 else name
