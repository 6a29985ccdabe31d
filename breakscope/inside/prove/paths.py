"""Names of what a call can reach: how the proof writes them, and what they say to whoever reads them."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"(?:\.(?P<attribute>\w+)|_(?:buffers|parameters)\['(?P<entry>\w+)'\])$")
_SUBMODULE = re.compile(r"\._modules\['[^']*'\]")
_INDEXED = (dict, list, tuple, set)


def join(path: str, label: Any, owner: Any) -> str:
    """The path of a part of ``owner``, which ``path`` leads to."""
    if label == "" or label in ("__class__", "__func__"):
        return path
    if isinstance(owner, _INDEXED) or not isinstance(label, str):
        return f"{path}[{label!r}]"
    return f"{path}.{label}"


def bare(path: str) -> str:
    """A path without the words in front of it, which say of which call it is."""
    return path.rpartition(": ")[2]


def attribute(path: str) -> str | None:
    """The name of the attribute or buffer of a module that a path leads to; None: it is something else."""
    place = _SUBMODULE.sub("", bare(path))
    found = _NAME.search(place)
    if found is None or place.startswith(".") or "[" in place[: found.start()]:
        return None
    return found["attribute"] or found["entry"]
