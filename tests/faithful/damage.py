"""Reports and traces that were damaged at random, each the same for its seed."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from faithful.test_hostile_text import CORPUS

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e308, -1e308, 1e-320, 0.1, [], {}, ""),
    *(
        "0",
        "x",
        "NaN",
        [None],
        [[]],
        {"": None},
        {"a": 1},
        [0, 0],
        "2026-01-02T03:04:05+00:00",
        "ok",
        "killed",
    ),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in plain data."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def damaged(whole: dict[str, Any], seed: int) -> bytes:
    """A report as JSON, with one to four things in it that are not as we write them."""
    chance = random.Random(seed)
    data = copy.deepcopy(whole)
    for _ in range(chance.randint(1, 4)):
        path = chance.choice(places(data))
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        _change(holder, path[-1], chance)
    text = json.dumps(data)
    if chance.random() < 0.15:
        at = chance.randrange(len(text))
        text = (
            text[:at]
            + chance.choice(["", "\0", '"', "}", "]", ",", "\ufffd", text[:9]])
            + text[at + chance.randint(0, 9) :]
        )
    return text.encode("utf-8", errors="surrogatepass")


def _change(holder: Any, key: Any, chance: random.Random) -> None:
    kind = chance.random()
    old = holder[key]
    if kind < 0.15:
        del holder[key]
    elif kind < 0.3 and isinstance(old, list) and old:
        holder[key] = old * chance.choice([0, 2, 50])
    elif kind < 0.45 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[key] = old * chance.choice([-1, 0, 1e-9, 1e9, 1e300]) if abs(old) < 1e6 else -old
    elif kind < 0.6 and isinstance(old, str):
        holder[key] = chance.choice([*CORPUS, old * 100, old[::-1]])
    else:
        holder[key] = chance.choice(ODD)


def damaged_trace(whole: bytes, seed: int) -> bytes:
    """A trace with bytes lost, doubled, swapped or changed."""
    chance = random.Random(seed)
    data = bytearray(whole)
    for _ in range(chance.randint(1, 5)):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 8, 200])
        kind = chance.randrange(5)
        if kind == 0:
            del data[at : at + size]
        elif kind == 1:
            data[at:at] = data[at : at + size]
        elif kind == 2:
            data[at : at + size] = chance.randbytes(size)
        elif kind == 3:
            data[at:at] = json.dumps(chance.choice(ODD)).encode()
        else:
            other = chance.randrange(len(data))
            data[at : at + size] = data[other : other + size]
        if not data:
            data = bytearray(whole[:1])
    return bytes(data)
