"""Frozen dataclasses to plain JSON types and back, and the JSON Schema of what comes out.

Knows nothing of reports: it reads the annotations of whatever record it is given.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import re
import types
import typing
from collections.abc import Iterator
from itertools import repeat
from typing import Any

_SCALARS: dict[Any, tuple[str, str]] = {
    str: ("string", "a string"),
    bool: ("boolean", "true or false"),
    int: ("integer", "an integer"),
    float: ("number", "a finite number"),
}
_INTEGERS = 2**63  # tables, timelines and other readers of JSON hold no larger ones
_NUMBERS = 1e100  # no measurement is as large, and one of them may be multiplied
_SHOWN = 40  # characters of a wrong value that an error message quotes


class MismatchError(Exception):
    """A value is not what the model says; the path to it is added on the way out."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"{''.join(reversed(self.path)).lstrip('.') or 'the top level'} {self.problem}"


class NotFiniteError(ValueError):
    """A NaN or an infinity that no optional field around it can stand for."""


@functools.cache
def _fields(cls: type) -> tuple[tuple[str, Any, bool], ...]:
    """(name, type, has a default) of each field of a dataclass."""
    hints = typing.get_type_hints(cls)
    return tuple(
        (
            item.name,
            hints[item.name],
            item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING,
        )
        for item in dataclasses.fields(cls)
    )


@functools.cache
def _shape(kind: Any) -> tuple[str, tuple[Any, ...]]:
    """One of scalar, any, literal, optional, tuple, mapping, record; with its arguments."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in _SCALARS:
        return "scalar", (kind,)
    if kind is Any:
        return "any", ()
    if origin is typing.Literal:
        return "literal", arguments
    if origin in (types.UnionType, typing.Union) and arguments[1:] == (types.NoneType,):
        return "optional", (arguments[0],)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return "tuple", (arguments[0],)
    if origin is dict and arguments[0] is str:
        return "mapping", (arguments[1],)
    if dataclasses.is_dataclass(kind):
        return "record", (kind,)
    raise TypeError(f"the report format has no {kind}")


def encode(value: Any, kind: Any) -> Any:
    """A value of the annotated type as plain JSON types.

    A number that is not finite is not known: the smallest optional value that holds it becomes None;
    under ``Any`` it becomes a string. Raises NotFiniteError where nothing can stand for it.
    """
    shape, arguments = _shape(kind)
    if shape == "optional":
        try:
            return None if value is None else encode(value, arguments[0])
        except NotFiniteError:
            return None
    if shape == "record":
        return dict(encode_fields(value, kind))
    if shape == "tuple":
        return [encode(item, arguments[0]) for item in value]
    if shape == "mapping":
        return {str(key): encode(item, arguments[0]) for key, item in value.items()}
    if shape == "any":
        return _encode_free(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotFiniteError(f"a report cannot hold {value}")
    return value


def encode_fields(record: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """The fields of a record, each made plain when it is its turn: a large record is never held twice."""
    for name, inner, _ in _fields(kind):
        yield name, encode(getattr(record, name), inner)


def encode_in_parts(record: Any, kind: type) -> Iterator[tuple[str, Any]]:
    """As :func:`encode_fields`, but of a tuple only one item at a time: an iterator over them."""
    for name, inner, _ in _fields(kind):
        shape, arguments = _shape(inner)
        value = getattr(record, name)
        yield name, map(encode, value, repeat(arguments[0])) if shape == "tuple" else encode(value, inner)


def _encode_free(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _encode_free(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode_free(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@contextlib.contextmanager
def inside(step: str) -> Iterator[None]:
    """Add a step to the path of a mismatch that is found inside."""
    try:
        yield
    except MismatchError as error:
        error.path.append(step)
        raise


def decode(value: Any, kind: Any) -> Any:
    """The value that :func:`encode` was given. Unknown keys are ignored. Raises MismatchError."""
    shape, arguments = _shape(kind)
    if shape == "optional":
        return None if value is None else decode(value, arguments[0])
    if shape == "scalar":
        return _decode_scalar(value, kind)
    if shape == "literal":
        if not isinstance(value, str) or value not in arguments:
            raise MismatchError(f"must be one of {', '.join(arguments)}, not {_show(value)}")
        return value
    if shape == "any":
        return value
    if shape == "tuple":
        return tuple(_decode_items(enumerate(_typed(value, list, "a list")), "[{}]", arguments[0]))
    items = _typed(value, dict, "an object")
    if shape == "mapping":
        return dict(zip(items, _decode_items(items.items(), ".{}", arguments[0]), strict=True))
    known = {}
    for name, inner, has_default in _fields(kind):
        if name in items:
            with inside(f".{name}"):
                known[name] = decode(items[name], inner)
        elif not has_default:
            with inside(f".{name}"):
                raise MismatchError("is missing")
    return kind(**known)


def _decode_items(items: Any, step: str, kind: Any) -> Iterator[Any]:
    for key, item in items:
        try:
            yield decode(item, kind)
        except MismatchError as error:
            error.path.append(step.format(key))
            raise


def _decode_scalar(value: Any, kind: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int and is_number and value == value // 1 and abs(value) < _INTEGERS:
        return int(value)  # 3.0 is an integer in JSON
    if kind is float and is_number and math.isfinite(value) and abs(value) < _NUMBERS:
        return float(value)
    if kind in (str, bool) and isinstance(value, kind):
        return value
    raise MismatchError(f"must be {_SCALARS[kind][1]}, not {_show(value)}")


def _typed(value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind):
        raise MismatchError(f"must be {words}, not {_show(value)}")
    return value


def _show(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def describe(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type; that of each record in it is added to ``definitions`` by name."""
    shape, arguments = _shape(kind)
    if shape == "scalar":
        return {"type": _SCALARS[kind][0]}
    if shape == "literal":
        return {"enum": list(arguments)}
    if shape == "optional":
        return {"anyOf": [describe(arguments[0], definitions), {"type": "null"}]}
    if shape == "tuple":
        return {"type": "array", "items": describe(arguments[0], definitions)}
    if shape == "mapping":
        return {"type": "object", "additionalProperties": describe(arguments[0], definitions)}
    if shape == "any":
        return {}
    if kind.__name__ not in definitions:
        summary, attributes = _documentation(kind)
        definitions[kind.__name__] = {}  # taken, in case the record holds itself
        definitions[kind.__name__] = {
            "description": summary,
            "type": "object",
            "properties": {
                name: describe(inner, definitions) | attributes.get(name, {})
                for name, inner, _ in _fields(kind)
            },
            "required": [name for name, _, has_default in _fields(kind) if not has_default],
        }
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _documentation(kind: type) -> tuple[str, dict[str, dict[str, str]]]:
    """A dataclass's own words: its summary, and a description of each attribute that its docstring names."""
    summary, _, rest = (kind.__doc__ or "").partition("\n")
    found = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", rest, re.MULTILINE)
    return summary, {name: {"description": " ".join(text.split())} for name, text in found}
