"""What a service must call at start-up, so that its traffic compiles nothing: from a report's signatures.

Repeating the outermost calls of which compiles came, in their order, makes the same compiled code again.
Calls that differ in sizes alone are put together: where the first of them has those dimensions marked as
dynamic, its graph usually covers the others too, and they cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from breakscope.diagnose.arguments import leaves
from breakscope.report.model import Report, Signature

# Sizes 0 and 1 are compiled apart, whatever else is dynamic.
_APART = (0, 1)


@dataclass(frozen=True, slots=True)
class Group:
    """Distinct calls of one thing that differ in sizes alone, in the order in which they first compiled.

    Attributes:
        varying: (argument, dimension, sizes seen) of what differs; empty where there is one call.
        compiles: how many compiles came of these calls.
    """

    calls: tuple[Signature, ...]
    varying: tuple[tuple[str, int, tuple[int, ...]], ...]
    compiles: int


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was compiled and called.

    Attributes:
        method: whether it is called as a method: its first argument is the object.
    """

    name: str
    module: bool
    method: bool
    groups: tuple[Group, ...]


def plan(report: Report) -> tuple[Entry, ...]:
    """What to call, by what was compiled, in the order of first calls."""
    entries: dict[tuple[Any, ...], list[Signature]] = {}
    for signature in report.signatures:
        if signature.rank == 0:
            entries.setdefault(
                (signature.entry, signature.module, signature.entry_file, signature.entry_line), []
            ).append(signature)
    return tuple(_entry(same) for same in entries.values())


def _entry(signatures: list[Signature]) -> Entry:
    first = signatures[0]
    method = not first.module and first.parameters[:1] in (("self",), ("cls",))
    alike: dict[str, list[Signature]] = {}
    for signature in signatures:
        alike.setdefault(_key(signature, sizes=False), []).append(signature)
    return Entry(first.entry, first.module, method, tuple(_group(same) for same in alike.values()))


def _group(signatures: list[Signature]) -> Group:
    distinct: dict[str, Signature] = {}
    for signature in signatures:
        distinct.setdefault(_key(signature, sizes=True), signature)
    calls = tuple(distinct.values())
    sizes: dict[tuple[str, int], list[int]] = {}
    for call in calls:
        for path, tensor in tensors(call):
            for dimension, size in enumerate(tensor["shape"]):
                sizes.setdefault((path, dimension), []).append(size)
    varying = tuple(
        (path, dimension, tuple(dict.fromkeys(seen)))
        for (path, dimension), seen in sizes.items()
        if len(set(seen)) > 1
    )
    return Group(calls, varying, len(signatures))


def _key(signature: Signature, *, sizes: bool) -> str:
    arguments = signature.arguments if sizes else _without_sizes(signature.arguments)
    modes = [signature.training, signature.grad, signature.inference, signature.autocast]
    return json.dumps([arguments, modes], sort_keys=True)


def _without_sizes(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_sizes(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(shape := value.get("shape"), list):
        # Strides of another size are other numbers; what matters is that there are some.
        rest = {key: key == "stride" or item for key, item in value.items()}
        return {**rest, "shape": [size if size in _APART else "*" for size in shape]}
    return {key: _without_sizes(item) for key, item in value.items()}


def tensors(signature: Signature) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tensor of a call's arguments with its path; one that is passed twice comes once."""
    return ((path, held) for path, kind, held in _leaves(signature) if kind == "tensor")


def repeated(signature: Signature) -> tuple[str, ...]:
    """Paths of the tensors that are passed again at another place."""
    return tuple(dict.fromkeys(held for _, kind, held in _leaves(signature) if kind == "same"))


def _leaves(signature: Signature) -> Iterator[tuple[str, str, Any]]:
    return leaves(signature.arguments.get("args", ()), signature.arguments.get("kwargs", {}))
