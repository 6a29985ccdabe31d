"""With what a compile was called: the arguments of the outermost compiled call, and where it stands.

Remedies are applied at that call, and a warm-up plan repeats it. Nothing of a tensor's contents is kept.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from breakscope.inside.capture.alike import alike_layers, function_of
from breakscope.inside.capture.live_values import describe
from breakscope.inside.torch_api.state import entry_call
from breakscope.inside.tracebacks import innermost_of_user, is_plumbing
from breakscope.report.owners import owner_of

if TYPE_CHECKING:
    from breakscope.inside.capture.frames import Compile

_ITEMS = 64
_OBJECTS = 512
_DEPTH = 6
_TEXT = 200
_CALLERS = 16
_MODULE_CALLS = ("_call_impl", "_wrapped_call_impl", "__call__")


def of_compile(compile_: Compile) -> dict[str, Any]:
    """The fields of a signature event, for the frame that Dynamo is compiling at this moment.

    Empty where no compiled call is under way, or where this torch hides it.
    """
    entry = entry_call()
    if entry is None:
        return {}
    module, args = owner_called(entry.function, entry.args)
    return {
        "entry": _entry(entry.function, module),
        **_arguments(args, entry.kwargs),
        "held": _held_by_objects(args, entry.kwargs),
        "origins": _origins(compile_.frame.f_locals, args, entry.kwargs),
        "caller": _caller(entry.frame),
        "callers": _callers(entry.frame),
        "within": (within := _within(compile_, entry.frame)),
        **({} if within else _layers(module)),
        "modes": compile_.modes,
    }


def owner_called(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Whose method a call of ``function`` calls, or None, and the arguments without it."""
    owner = getattr(function, "__self__", None)
    if owner is None and _is_of_torch(function):  # its wrapper of a module whose forward is decorated
        inner = getattr(function, "__wrapped__", None)
        owner = inner if isinstance(inner, torch.nn.Module) else None
    if owner is None and getattr(function, "__name__", "") in _MODULE_CALLS and args:
        return args[0], args[1:]  # --compile auto compiles the class's call, and passes the module
    return owner, args


def _layers(module: Any) -> dict[str, Any]:
    """The layers of a compiled module that are alike, and its forward; empty where there are none."""
    if not isinstance(module, torch.nn.Module) or not (layers := alike_layers(module)):
        return {}
    return {"alike": layers, "forward": function_of(type(module).forward)}


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    seen: dict[int, str] = {}
    return {
        "args": [describe_argument(value, f"args[{at}]", seen) for at, value in enumerate(args)],
        "kwargs": {
            name: describe_argument(value, f"kwargs[{name!r}]", seen) for name, value in kwargs.items()
        },
    }


def describe_argument(value: Any, path: str, seen: dict[int, str], depth: int = 0) -> dict[str, Any]:
    """One argument as JSON, under its kind: ``{"tensor": {…}}``, ``{"int": 3}``, ``{"list": […]}``.

    Args:
        path: which argument it is.
        seen: tensors met so far; one that is passed again is ``{"same": "args[0]"}``.
    """
    if isinstance(value, torch.Tensor):
        first = seen.setdefault(id(value), path)
        return {"tensor": _tensor(value)} if first == path else {"same": first}
    if value is None:
        return {"none": True}
    if type(value) is str and len(value) > _TEXT:
        return {"object": f"str of {len(value)} characters"}
    for kind in (bool, int, float, str):
        if type(value) is kind:
            # JSON has no NaN and no infinity.
            return {kind.__name__: repr(value) if kind is float else value}
    if depth < _DEPTH:
        if type(value) in (list, tuple) and len(value) <= _ITEMS:
            items = enumerate(value)
            return {
                type(value).__name__: [
                    describe_argument(v, f"{path}[{i}]", seen, depth + 1) for i, v in items
                ]
            }
        if type(value) is dict and len(value) <= _ITEMS and all(type(key) is str for key in value):
            pairs = value.items()
            return {"dict": {k: describe_argument(v, f"{path}[{k!r}]", seen, depth + 1) for k, v in pairs}}
    if isinstance(value, torch.dtype | torch.device):
        return {type(value).__name__: str(value)}
    return {"object": describe(value)}


def _held_by_objects(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The tensors in arguments that are objects, under what reaches them: ``args[0].ids``.

    Those of modules and optimizers are left out: their sizes are theirs, and stay.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()
    given = [(f"args[{number}]", value) for number, value in enumerate(args)]
    for path, value in (*given, *((f"kwargs[{name!r}]", value) for name, value in kwargs.items())):
        for place, tensor in _tensors_in(value, path, seen, within_object=False):
            if len(found) < _ITEMS:
                found.setdefault(place, _tensor(tensor))
    return found


_LEFT_OUT = (torch.nn.Module, torch.optim.Optimizer, type, types.ModuleType, types.FunctionType)


def _tensors_in(
    value: Any, path: str, seen: set[int], *, within_object: bool, depth: int = 0
) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors that an object holds, by its attributes and items; none of them is asked by its own code.

    Args:
        seen: what was looked into, each once and no more than some: objects know each other in rings.
    """
    if isinstance(value, torch.Tensor):
        if within_object:
            yield path, value
        return
    if depth > _DEPTH or isinstance(value, _LEFT_OUT):
        return
    if id(value) in seen or len(seen) >= _OBJECTS or isinstance(value, str | bytes | int | float | None):
        return
    seen.add(id(value))
    is_plain = type(value) in (list, tuple, dict)
    items: list[tuple[str, Any]] = []
    if isinstance(value, list | tuple):
        names = getattr(type(value), "_fields", ())  # of a named tuple
        held = [f".{names[at]}" if at < len(names) else f"[{at}]" for at in range(_ITEMS)]
        items = [(path + place, item) for place, item in zip(held, _items(value), strict=False)]
    elif isinstance(value, dict):
        some = itertools.islice(dict.items(value), _ITEMS)
        items = [(f"{path}[{key!r}]", item) for key, item in some if isinstance(key, str)]
    elif isinstance(kept := _attributes(value), dict) and len(kept) <= _ITEMS:
        items = [(_attribute(value, path, name), item) for name, item in kept.items()]
    for place, item in items:
        yield from _tensors_in(
            item, place, seen, within_object=within_object or not is_plain, depth=depth + 1
        )


def _items(value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    """As the built-in type holds them: a subclass may iterate in its own way."""
    return tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)


def _attributes(value: Any) -> Any:
    """What an object keeps by name; None where it keeps nothing so. Its own ``__getattr__`` is not asked."""
    with contextlib.suppress(AttributeError):
        return object.__getattribute__(value, "__dict__")
    return None


def _attribute(value: Any, path: str, name: str) -> str:
    """How an attribute is reached; of one that is private, by the items of its object where it has such."""
    is_private = name.startswith("_") or name == "data"
    is_mapping = hasattr(type(value), "__getitem__") and hasattr(type(value), "keys")
    return path if is_private and is_mapping else f"{path}.{name}"


def _tensor(value: torch.Tensor) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "shape": [int(size) for size in value.shape],
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": str(value.device),
        "requires_grad": bool(value.requires_grad),
    }
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        fields["subclass"] = type(value).__qualname__
    elif value.layout is not torch.strided:
        fields["layout"] = str(value.layout)
    elif not value.is_contiguous():
        fields["stride"] = [int(step) for step in value.stride()]
    if value.is_inference():
        fields["inference"] = True
    return fields


def _entry(function: Any, owner: Any) -> dict[str, Any]:
    """What was compiled: a function, a method, or the module that it is the call of."""
    is_called = getattr(function, "__name__", "") in (*_MODULE_CALLS, "forward")
    is_method = isinstance(function, types.MethodType) and not is_called  # of a module: ``net.encode``
    module = owner if isinstance(owner, torch.nn.Module) and not is_method else None
    inner, bound = _unwrapped(function if module is None else type(module).forward)
    code: types.CodeType | None = getattr(inner, "__code__", None)
    parameters = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else []
    return {
        "name": _name(function) if module is None else type(module).__name__,
        "module": module is not None,
        "training": bool(owner.training) if isinstance(owner, torch.nn.Module) else None,
        "file": code.co_filename if code else None,
        "line": code.co_firstlineno if code else None,
        "parameters": parameters[1:] if bound or owner is not None else parameters,
    }


def _unwrapped(function: Any) -> tuple[Any, bool]:
    """A function without torch's own wrappers (``no_grad``), and whether one of them was given a method."""
    bound = isinstance(function, types.MethodType)
    while _is_of_torch(function) and (inner := getattr(function, "__wrapped__", None)) is not None:
        function, bound = inner, bound or isinstance(inner, types.MethodType)
    is_module = isinstance(function, torch.nn.Module)
    called = type(function).forward if is_module else type(function).__call__
    if not hasattr(function, "__code__") and isinstance(called, types.FunctionType):
        return _unwrapped(called)[0], True  # an object that can be called
    return function, bound


def _is_of_torch(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and owner_of(code.co_filename, ()) == "torch"


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _origins(local: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    """For what the compiled frame holds of the outermost arguments: which of them it is."""
    known: dict[int, str] = {}
    for number, value in enumerate(args):
        for path, item in _walk(value, f"args[{number}]"):
            known.setdefault(id(item), path)
    for name, value in kwargs.items():
        for path, item in _walk(value, f"kwargs[{name!r}]"):
            known.setdefault(id(item), path)
    return {
        path: known[id(item)]
        for name, value in dict(local).items()
        for path, item in _walk(value, name)
        if id(item) in known
    }


def _walk(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    # Small ints, None and the like are one object everywhere: only what has an identity of its own.
    if isinstance(value, torch.Tensor) or depth == 0:
        if not isinstance(value, bool | int | float | str | bytes | None):
            yield path, value
    elif isinstance(value, list | tuple | dict):
        yield path, value
    if depth < _DEPTH and isinstance(value, list | tuple) and len(value) <= _ITEMS:
        for number, item in enumerate(value):
            yield from _walk(item, f"{path}[{number}]", depth + 1)
    elif depth < _DEPTH and isinstance(value, dict) and len(value) <= _ITEMS:
        for key, item in value.items():
            if isinstance(key, str):
                yield from _walk(item, f"{path}[{key!r}]", depth + 1)


def _caller(frame: types.FrameType | None) -> dict[str, Any] | None:
    """The expression that called, in the innermost frame that is neither torch's nor ours."""
    frame = innermost_of_user(frame)
    if frame is None:
        return None
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = positions
    return {
        "file": frame.f_code.co_filename,
        "function": frame.f_code.co_qualname,
        "line": line or frame.f_lineno,
        "end_line": end_line,
        "column": column,
        "end_column": end_column,
    }


def _callers(frame: types.FrameType | None) -> list[dict[str, Any]]:
    """The way out from the outermost call, innermost first: a library may stand between it and the script."""
    found: list[dict[str, Any]] = []
    frame = innermost_of_user(frame)
    while frame is not None and len(found) < _CALLERS:
        code = frame.f_code
        found.append({"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name})
        frame = innermost_of_user(frame.f_back)
    return found


def _within(compile_: Compile, entry: types.FrameType) -> list[dict[str, Any]]:
    """The functions at work between the outermost call and the compiled frame, innermost first.

    It is compiled by itself because one of them broke, or was given up.
    """
    found: list[dict[str, Any]] = []
    frame = compile_.caller
    while frame is not None and frame is not entry and len(found) < _CALLERS:
        code = frame.f_code
        if not is_plumbing(code.co_filename) and code is not compile_.frame.f_code:
            found.append({"file": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back
    return found


def modes() -> dict[str, Any]:
    """Settings of this thread that code is compiled for."""
    device = next((kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)), None)
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": None if device is None else [device, str(torch.get_autocast_dtype(device))],
    }
