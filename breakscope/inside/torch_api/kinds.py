"""Of which kind the names of a function are while Dynamo traces it: what source alone can only guess at."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch

from breakscope.inside.torch_api import available, get

_MOST = 200  # of one function


def kinds_of(translator: Any) -> dict[str, str]:
    """The kinds of a traced function's locals, of attributes of them that its code names, and of globals.

    ``{"x": "tensor float32 2", "n": "int", "self.seen": "list of tensor int64 1"}``: a tensor with dtype and
    number of dimensions, ``numpy array`` or ``numpy float32``, a list or tuple with the kind of its first
    item, else the name of the type. Nothing is guarded, traced or kept by asking; a name that Dynamo does not
    tell of is left out.
    """
    found: dict[str, str] = {}
    if not available("no_torch_function"):
        return found
    asked = set(translator.f_code.co_names)
    # Without modes of torch functions: the script's own would see that dtypes are read.
    with get("no_torch_function")():
        for name, tracker in list(translator.symbolic_locals.items())[:_MOST]:
            with contextlib.suppress(Exception):  # a tracker says in whatever way that it cannot tell
                value = _value(tracker)
                found[name] = _of_tracker(tracker) if value is _UNKNOWN else _of_value(value)
                if value is not _UNKNOWN:
                    found.update((f"{name}.{attribute}", of) for attribute, of in _attributes(value, asked))
        for name in (asked & translator.f_globals.keys()) - found.keys():
            if issubclass(type(value := translator.f_globals[name]), _HOLDS):
                found[name] = _of_value(value)
    return found


_HOLDS = (torch.Tensor, list, tuple, dict, str)  # of what a module holds: what an index can pick from
_UNKNOWN = object()


def _value(tracker: Any) -> Any:
    """The real object behind a tracker that stands for one as it is."""
    # A lazy tracker realizes itself, which guards, where it is asked for what its class does not have.
    peek = getattr(type(tracker), "original_value", None)
    if peek is not None and not tracker.is_realized():
        return peek(tracker)
    held = tracker if peek is None else tracker.unwrap()
    is_itself = type(held).__name__.startswith(("UserDefinedObject", "Unspecialized", "FSDP"))
    return getattr(held, "value", _UNKNOWN) if is_itself else _UNKNOWN


def _of_tracker(tracker: Any) -> str:
    realized = tracker.unwrap() if hasattr(type(tracker), "unwrap") else tracker
    name = type(realized).__name__
    if name == "NumpyNdarrayVariable":
        return "numpy array"
    if name.startswith("Tensor"):
        return f"tensor {_short(getattr(realized, 'dtype', None))} {getattr(realized, 'ndim', None)}"
    kind = str(realized.python_type().__name__)
    items = getattr(realized, "items", None) if kind in ("list", "tuple") else None
    if isinstance(items, list) and items:
        first = _value(items[0])
        return f"{kind} of {_of_tracker(items[0]) if first is _UNKNOWN else _of_value(first)}"
    return kind


def _of_value(value: Any) -> str:
    # By its type alone: an object may have a __class__ that runs code, and a tensor of a class of its own
    # answers for its dtype and dimensions itself.
    if issubclass(type(value), torch.Tensor):
        own = type(value) not in (torch.Tensor, torch.nn.Parameter)
        return "tensor" if own else f"tensor {_short(value.dtype)} {value.ndim}"
    kind = type(value).__name__
    if type(value).__module__ == "numpy":
        return f"numpy {'array' if kind == 'ndarray' else kind}"
    if type(value) in (list, tuple) and value and type(value[0]) not in (list, tuple):
        return f"{kind} of {_of_value(value[0])}"
    return kind


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _attributes(value: Any, asked: set[str]) -> Iterator[tuple[str, str]]:
    """What an object holds itself, by name: nothing that asks its class or runs its code."""
    if issubclass(type(value), torch.Tensor | types.ModuleType | type):
        return
    try:
        held = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        return
    if issubclass(type(value), torch.nn.Module):
        for kept in ("_parameters", "_buffers", "_modules"):
            held.update(held.get(kept) or {})
    yield from ((name, _of_value(held[name])) for name in asked & held.keys())
