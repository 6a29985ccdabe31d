"""The arguments of a recorded call, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def leaves(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(path, kind, held) of all that is no list, tuple or dict: ``("args[0]['ids']", "tensor", {…})``."""
    for number, value in enumerate(args):
        yield from _walk(value, f"args[{number}]")
    for name, value in kwargs.items():
        yield from _walk(value, f"kwargs[{name!r}]")


def _walk(value: dict[str, Any], path: str) -> Iterator[tuple[str, str, Any]]:
    for kind, held in value.items():
        if kind in ("list", "tuple"):
            for number, item in enumerate(held):
                yield from _walk(item, f"{path}[{number}]")
        elif kind == "dict":
            for key, item in held.items():
                yield from _walk(item, f"{path}[{key!r}]")
        else:
            yield path, kind, held
