"""Parts of a printed line: words, numbers with their units, times, addresses; and which of them are alike.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_RATE = r"(?:\d+(?:\.\d+)?|\?) ?(?:[A-Za-z]+/(?:s|sec|second)|s/[A-Za-z]+)\b"
_TOKEN = re.compile(
    rf"\s+|{_RATE}"
    r"|\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w:])"  # a date, a time of day
    r"|(?:(?<!\w)[-+])?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[^\W\d_]*(?!\w)"  # a number, and its unit
    r"|\w+|[^\w\s]"
)
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d$|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?$")
_SPEED = re.compile(rf"{_RATE}$")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}$")
_REAL = re.compile(
    r"(?P<number>[-+]?\d+(?:\.(?P<digits>\d+)(?P<power>[eE][-+]?\d+)?|(?P<exponent>[eE][-+]?\d+)))(?P<unit>[^\W\d_]*)$"
)
_ENOUGH_DIGITS = 3
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?P<unit>[^\W\d_]*)$")
_SECONDS = ("s", "ms", "us", "µs", "ns", "sec", "secs", "second", "seconds")
_LONGER = ("min", "mins", "minute", "minutes", "h")
_BYTES = ("kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB")
_UNITS = frozenset((*_SECONDS, *_LONGER, *_BYTES))
_TIMED = frozenset(("time", "elapsed", "took", "duration", "eta"))


def tokens_of(line: str) -> tuple[str, ...]:
    """A line's parts, which together are the line."""
    return tuple(_TOKEN.findall(line))


def shape(token: str) -> str:
    """What a token has in common with those that may stand in its place in another run."""
    if any(character.isdigit() for character in token):
        return "#"
    return " " if token.isspace() else token


def passing(tokens: Sequence[str], at: int) -> bool:
    """Whether a token is of this run alone: a time, a rate, an address, memory, the line of a warning."""
    token = tokens[at]
    if _CLOCK.match(token) or _SPEED.match(token) or _ADDRESS.match(token) or _warns_at(tokens, at):
        return True
    number = _NUMBER.match(token)
    if number is None:
        return False
    behind = [one for one in tokens[at + 1 : at + 3] if not one.isspace()]
    if (number["unit"] or (behind[0] if behind else "")) in _UNITS:
        return True
    before = [one for one in tokens[max(0, at - 4) : at] if not one.isspace() and one not in ":=(["]
    return bool(before) and before[-1].lower() in _TIMED


def _warns_at(tokens: Sequence[str], at: int) -> bool:
    """Whether a token is the line in ``model.py:304: UserWarning:``: a patch moves it, and so does Dynamo."""
    before, behind = tuple(tokens[max(0, at - 3) : at]), tuple(tokens[at + 1 : at + 4])
    return before == (".", "py", ":") and behind[:2] == (":", " ") and behind[-1].endswith("Warning")


def near(old: str, new: str, tolerance: float) -> bool:
    """Whether two tokens are numbers with a point, or exponent, that rounding may have set apart."""
    one, other = _REAL.match(old), _REAL.match(new)
    if not tolerance or one is None or other is None or one["unit"] != other["unit"]:
        return False
    a, b = float(one["number"]), float(other["number"])
    # What is printed with few digits may be one apart in the last of them.
    digits = min(len(one["digits"] or ""), len(other["digits"] or ""))
    last = 1.01 * 10.0**-digits if digits >= _ENOUGH_DIGITS and not (one["power"] or other["power"]) else 0.0
    return abs(a - b) <= max(tolerance * max(abs(a), abs(b)), last)
