"""What a recording run saw at the expressions of a function: the reason why no rule has to guess."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from breakscope.source.span import Span

Kind = Literal["tensor", "int", "float", "bool", "None", "str", "module", "callable", "other"]
Scalar = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class TensorSeen:
    """One combination of properties that a tensor had. ``dtype`` is ``float16``, ``device`` ``cuda``."""

    dtype: str
    shape: tuple[int, ...]
    device: str = "cpu"
    requires_grad: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What one expression evaluated to, over all calls of its function.

    Attributes:
        kinds: every kind of value. A tensor of a subclass (other than Parameter and Buffer) is "other".
        types: qualified names of the values' classes, for "module" and "other"; of a "callable" the
            name under which it can be imported.
        tensors: every distinct combination, in order of first sight.
        values: every distinct scalar, up to eight; ``more_values``: there were others.
        count: how often it was evaluated.
    """

    kinds: frozenset[Kind]
    types: tuple[str, ...] = ()
    tensors: tuple[TensorSeen, ...] = ()
    values: tuple[Scalar, ...] = ()
    more_values: bool = False
    count: int = 1

    def only(self, *kinds: Kind) -> bool:
        """Whether every value was of one of these kinds."""
        return self.kinds <= frozenset(kinds)

    @property
    def dtypes(self) -> frozenset[str]:
        """Every dtype that a tensor here had."""
        return frozenset(tensor.dtype for tensor in self.tensors)

    @property
    def shapes(self) -> frozenset[tuple[int, ...]]:
        """Every shape that a tensor here had."""
        return frozenset(tensor.shape for tensor in self.tensors)

    @property
    def devices(self) -> frozenset[str]:
        """Every type of device that a tensor here was on."""
        return frozenset(tensor.device for tensor in self.tensors)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients could flow to it in any call."""
        return any(tensor.requires_grad for tensor in self.tensors)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen in one function.

    Attributes:
        calls: how often the function ran; 0 means that nothing is known.
        expressions: by place. An expression that is missing was never evaluated.
        parameters: what the function was called with, by name.
        entry: what names and attributes (``x``, ``self.scale``) that a statement mentions were when it
            began, by the statement's place. Attributes are looked up without running any code of theirs:
            what is computed on access (a property) is not there.
        grad: whether autograd was on in any call. autocast: likewise for autocast.
    """

    calls: int = 0
    expressions: Mapping[Span, Seen] = field(default_factory=dict)
    parameters: Mapping[str, Seen] = field(default_factory=dict)
    entry: Mapping[Span, Mapping[str, Seen]] = field(default_factory=dict)
    grad: bool = True
    autocast: bool = False

    def dump(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "calls": self.calls,
            "grad": self.grad,
            "autocast": self.autocast,
            "parameters": {name: _dump(seen) for name, seen in self.parameters.items()},
            "expressions": {span.key(): _dump(seen) for span, seen in self.expressions.items()},
            "entry": {
                span.key(): {name: _dump(seen) for name, seen in names.items()}
                for span, names in self.entry.items()
            },
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Evidence:
        """Inverse of :meth:`dump`."""
        return cls(
            calls=data["calls"],
            grad=data["grad"],
            autocast=data["autocast"],
            parameters={name: _load(seen) for name, seen in data["parameters"].items()},
            expressions={Span.parse(key): _load(seen) for key, seen in data["expressions"].items()},
            entry={
                Span.parse(key): {name: _load(seen) for name, seen in names.items()}
                for key, names in data["entry"].items()
            },
        )


def _dump(seen: Seen) -> dict[str, Any]:
    return {
        "kinds": sorted(seen.kinds),
        "types": list(seen.types),
        "tensors": [[t.dtype, list(t.shape), t.device, t.requires_grad] for t in seen.tensors],
        # Text, because JSON has no inf and no NaN, and 1, 1.0 and True must stay apart.
        "values": [repr(value) for value in seen.values],
        "more_values": seen.more_values,
        "count": seen.count,
    }


def _load(data: Mapping[str, Any]) -> Seen:
    return Seen(
        kinds=frozenset(data["kinds"]),
        types=tuple(data["types"]),
        tensors=tuple(TensorSeen(d, tuple(s), device, grad) for d, s, device, grad in data["tensors"]),
        values=tuple(_scalar(text) for text in data["values"]),
        more_values=data["more_values"],
        count=data["count"],
    )


def _scalar(text: str) -> Scalar:
    if text.lstrip("-") in ("inf", "nan"):
        return float(text)
    value: Scalar = ast.literal_eval(text)
    return value
