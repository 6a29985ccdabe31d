"""What a call can reach, and so change: one step of the walk over objects.

Both the world that is copied before a call and the picture that is taken after it are walks of this kind, so
they cannot disagree about what counts as state. Code is followed by name: from a function to what its code
mentions, and to methods of that name of every class whose instances, or which itself, can be reached.
"""

from __future__ import annotations

import argparse
import array
import builtins
import collections
import contextlib
import contextvars
import dis
import enum
import functools
import inspect
import io
import pickle
import queue
import random
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch

MISSING = object()
_OWN = __name__.partition(".")[0]
_SCALARS = (int, float, bool, complex, str, bytes, type(None), type(...), range)
# An operator holds torch's own tables, which grow when it is first called.
_OPERATORS = (type(torch.ops.aten.add), type(torch.ops.aten.add.default))
_ATOMS = (
    torch.dtype, torch.device, torch.memory_format, torch.layout, torch.Size, slice, *_OPERATORS
)  # fmt: skip
# Answers of is_atom by class, which is kept so that its id stays its own; not every class can be a key.
_ATOMIC: dict[int, tuple[bool, type]] = {}
_SLOTS: dict[int, tuple[list[str], type]] = {}
# The class whose text says which value an object of a class is, by that class.
_VALUED: dict[int, tuple[type | None, type]] = {}
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Equal to others by what they hold, which is walked.
_HOLDING = (tuple, frozenset, types.MethodType, weakref.ref, slice)
# Of Python's own classes those that keep what they are given in a dict, as a user's do.
_PLAIN_OBJECTS = (
    types.SimpleNamespace,
    argparse.Namespace,
    collections.UserDict,
    collections.UserList,
    collections.ChainMap,
    queue.Queue,
    threading.Event,
    threading.Condition,
    threading.Semaphore,
    threading.local,
)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
_CODE = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
_CALLED = (types.FunctionType, types.MethodType, type, functools.partial)
_CONTAINERS = (dict, list, set, collections.deque)
# What asks which tensor it has, not what is in it: no copy gives the same answer.
_ASKING = frozenset({"data_ptr", "untyped_storage", "is_set_to", "getrefcount"})
_STORING = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"})
# Called for a text or for a copy of an object, not by code that computes.
_SHOWING = frozenset(
    {"__repr__", "__str__", "__format__", "__copy__", "__deepcopy__", "__reduce__", "__dir__"}
)
_WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)


def is_scalar(value: Any) -> bool:
    """Whether a value is what its text says."""
    return type(value) in _SCALARS


def is_atom(value: Any) -> bool:
    """Whether a value cannot change and holds nothing that can."""
    cls = type(value)
    known = _ATOMIC.get(id(cls))
    if known is None:
        # A member of a user's enum is an object that may count.
        enumerated = issubclass(cls, enum.Enum) and foreign(cls.__module__)
        known = _ATOMIC[id(cls)] = (cls in _SCALARS or issubclass(cls, _ATOMS) or enumerated, cls)
    return known[0]


def is_array(value: Any) -> bool:
    """Whether it is an array of numpy's."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def shown(value: Any) -> str:
    """The text of an object of Python's own, without the address that two equal ones differ in."""
    return _ADDRESS.sub("", repr(value))


def value_of(value: Any) -> str | None:
    """Which value an object is that is equal to others by what it says: a Decimal, a date, a subclass of int.

    None: it is what it holds, which is walked.
    """
    cls = type(value)
    known = _VALUED.get(id(cls))
    if known is None:
        known = _VALUED[id(cls)] = (_valued(cls), cls)
    shows: Any = known[0]
    return None if shows is None else _ADDRESS.sub("", shows.__repr__(value))


def _valued(cls: type) -> type | None:
    for base in cls.__mro__:
        own = vars(base)
        if foreign(base.__module__) and base is not object and "__eq__" in own and own.get("__hash__"):
            return None if issubclass(base, _HOLDING) else base
    return None


def foreign(module: str | None) -> bool:
    """Whether a module is torch's, Python's or ours: no state of the user's is in its functions."""
    top = (module or "").partition(".")[0]
    return top in sys.stdlib_module_names or top in ("torch", "numpy", "builtins", "_operator", _OWN, "")


def is_data(value: Any) -> bool:
    """Whether a global or class attribute is data rather than code."""
    # What nearly all globals are; asked of a function's globals at every picture.
    if type(value) in _SCALARS or type(value) in _CODE:
        return type(value) in _SCALARS
    code = (types.ModuleType, type, *_FUNCTIONS, staticmethod, classmethod, property)
    return not isinstance(value, code) and not inspect.isroutine(value) and not hasattr(value, "__get__")


@functools.cache
def names_in(code: types.CodeType) -> tuple[str, ...]:
    """Every global or attribute name that a function's code, or one nested in it, mentions; sorted."""
    nested = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return tuple(sorted({*code.co_names, *(name for one in nested for name in names_in(one))}))


def asked_in(function: types.FunctionType) -> Sequence[str]:
    """What a function's code asks of an object that tells it from an equal one: ``id``, ``data_ptr``."""
    return () if function.__name__ in _SHOWING else _asked_in(function.__code__)


@functools.cache
def _asked_in(function: types.CodeType) -> Sequence[str]:
    asked: list[str] = []
    codes = [function]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for instruction in dis.get_instructions(code):
            # An attribute called id is no question.
            called = instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and instruction.argval == "id"
            if called or (instruction.argval in _ASKING and instruction.opname.startswith("LOAD_")):
                asked.append(instruction.argval)
    return asked


@functools.cache
def stored_in(code: types.CodeType) -> frozenset[str]:
    """Globals and attributes that a function's code, or one nested in it, gives a value to or deletes."""
    codes = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    own = (one.argval for one in dis.get_instructions(code) if one.opname in _STORING)
    return frozenset(own).union(*map(stored_in, codes))


# What code means, by the code, which is kept so that its id stays its own: to hash code takes long.
_MEANINGS: dict[int, tuple[tuple[Any, ...], types.CodeType]] = {}


def note_watched(watched: types.CodeType, plain: types.CodeType) -> None:
    """Note that functions made by code whose conditions are watched are those made by the plain code."""
    _MEANINGS[id(watched)] = meaning_of(plain), watched
    others = _nested(plain)
    for inner in _nested(watched):
        # Watched conditions keep code that the compiler leaves out of the plain form.
        same = [n for n, one in enumerate(others) if one.co_firstlineno == inner.co_firstlineno]
        if same:
            note_watched(inner, others[same[0]])
            del others[: same[0] + 1]


def _nested(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def meaning_of(code: types.CodeType) -> tuple[Any, ...]:
    """What a function does, but for its globals and closure: equal for equal source, wherever it stands."""
    known = _MEANINGS.get(id(code))
    if known is None:
        consts = tuple(
            meaning_of(one) if isinstance(one, types.CodeType) else (type(one), repr(one))
            for one in code.co_consts
        )
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_kwonlyargcount, code.co_flags)
        known = _MEANINGS[id(code)] = (code.co_code, counts, names, consts), code
    return known[0]


def texts_in(code: types.CodeType) -> Iterator[str]:
    """Every text that stands in a function's code: keys of dicts among them."""
    yield from (constant for constant in _constants(code) if isinstance(constant, str))


def constants_in(code: types.CodeType) -> Iterator[float]:
    """Every number that stands in a function's code."""
    yield from (float(constant) for constant in _constants(code) if type(constant) in (int, float))


def _constants(code: types.CodeType) -> Iterator[Any]:
    """The constants of a function's code, also those of one nested in it, and items of constant tuples."""
    left: list[Any] = [*code.co_consts]
    for constant in left:
        if isinstance(constant, types.CodeType):
            left += constant.co_consts
        elif isinstance(constant, tuple | frozenset):
            left += constant
        else:
            yield constant


class Opaque(Exception):  # noqa: N818 -- an answer, not an error
    """The value holds state that can be neither copied nor compared."""


class Holder:
    """Something mutable, with its content as a list of (label, value).

    Args:
        owner: the object; keeps it alive, so that its id stays its own.
        read: its content now.
        write: give it a content that ``read`` returned, values replaced.
    """

    __slots__ = ("owner", "read", "write")

    def __init__(
        self,
        owner: Any,
        read: Callable[[], list[tuple[Any, Any]]],
        write: Callable[[list[tuple[Any, Any]]], None],
    ) -> None:
        self.owner, self.read, self.write = owner, read, write


def holders(value: Any) -> Iterator[Holder]:
    """What of a value can change. Nothing for atoms, and for tuples, whose items are walked by the caller.

    Raises:
        Opaque: it has state that Python cannot see.
    """
    if isinstance(value, types.FunctionType):
        yield from _of_function(value)
    elif isinstance(value, type | types.ModuleType) or is_atom(value):
        return
    elif isinstance(value, types.CellType):
        yield Holder(value, lambda: [("", _cell(value))], lambda content: _set_cell(value, content[0][1]))
    elif isinstance(value, _WEAK):
        yield _of_weak(value)
    elif isinstance(value, _CONTAINERS):
        yield _of_container(value)
        if hasattr(value, "__dict__"):
            yield _of_mapping(value.__dict__, value)
    elif isinstance(value, torch.Generator):
        yield Holder(
            value,
            lambda: [("state", value.get_state())],
            lambda content: _set_generator(value, content[0][1]),
        )
    elif isinstance(value, bytearray | array.array):
        yield _of_bytes(value)
    else:
        yield from _of_object(value)


def _of_function(function: types.FunctionType) -> Iterator[Holder]:
    if foreign(function.__module__):
        return

    def read_defaults() -> list[tuple[Any, Any]]:
        return [("defaults", function.__defaults__), ("kwdefaults", function.__kwdefaults__)]

    def write_defaults(content: list[tuple[Any, Any]]) -> None:
        function.__defaults__, function.__kwdefaults__ = content[0][1], content[1][1]

    if function.__defaults__ or function.__kwdefaults__:
        yield Holder(function, read_defaults, write_defaults)
    names = names_in(function.__code__)
    stored = stored_in(function.__code__)
    yield _of_names(function.__globals__, names, stored, function)
    for name in names:
        module = function.__globals__.get(name)
        if isinstance(module, types.ModuleType) and not foreign(module.__name__):
            yield _of_names(vars(module), names, stored, module)


def _of_names(scope: dict[str, Any], names: Sequence[str], stored: Collection[str], owner: Any) -> Holder:
    # Names of functions are not state unless they are given others, but that there is nothing under a name
    # is: "global cache" makes it.
    kept = [n for n in names if n not in vars(builtins) and (n in stored or is_data(scope.get(n, MISSING)))]

    def read() -> list[tuple[Any, Any]]:
        return [(name, scope.get(name, MISSING)) for name in kept]

    def write(content: list[tuple[Any, Any]]) -> None:
        for name, value in content:
            if value is MISSING:
                scope.pop(name, None)
            else:
                scope[name] = value

    return Holder(owner, read, write)


def of_class(cls: type, names: Collection[str], stored: Collection[str]) -> Holder:
    """Attributes of a class, as far as somebody mentions their names: data, and what somebody stores."""

    def read() -> list[tuple[Any, Any]]:
        return [
            (name, value)
            for name, value in vars(cls).items()
            if name in names and (name in stored or is_data(value))
        ]

    def write(content: list[tuple[Any, Any]]) -> None:
        wanted = dict(content)
        for name, _value in read():
            if name not in wanted:
                delattr(cls, name)
        for name, value in content:
            if vars(cls).get(name, MISSING) is not value:
                setattr(cls, name, value)

    return Holder(cls, read, write)


def _of_container(value: Any) -> Holder:
    if isinstance(value, dict):
        return _of_mapping(value, value)
    if isinstance(value, list):
        return Holder(
            value,
            lambda: list(enumerate(list.__iter__(value))),
            lambda content: list.__setitem__(value, slice(None), [item for _, item in content]),
        )

    def write(content: list[tuple[Any, Any]]) -> None:
        value.clear()
        if isinstance(value, set):
            value.update(item for _, item in content)
        else:
            value.extend(item for _, item in content)

    return Holder(value, lambda: list(enumerate(_ordered(value))), write)


def _of_weak(value: Any) -> Holder:
    """A weak container: its keys are tensors as often as not, so they are content and not labels."""

    def read() -> list[tuple[Any, Any]]:
        return list(enumerate(value if isinstance(value, weakref.WeakSet) else value.items()))

    def write(content: list[tuple[Any, Any]]) -> None:
        value.clear()
        for _, item in content:
            if isinstance(value, weakref.WeakSet):
                value.add(item)
            else:
                value[item[0]] = item[1]

    return Holder(value, read, write)


def _ordered(value: Any) -> list[Any]:
    return sorted(value, key=repr) if isinstance(value, set) else list(value)


def _of_mapping(mapping: Any, owner: Any) -> Holder:
    # The base class's own methods: a subclass may do more on assignment than store.
    base: Any = collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict

    def read() -> list[tuple[Any, Any]]:
        items = list(base.items(mapping))
        # A tensor is a key by its identity: its copy has to stand in its place, so it is no label.
        if any(isinstance(key, torch.Tensor) for key, _ in items):
            return [(Pair(index), item) for index, item in enumerate(items)]
        return items

    def write(content: list[tuple[Any, Any]]) -> None:
        base.clear(mapping)
        for label, value in content:
            key, kept = value if isinstance(label, Pair) else (label, value)
            base.__setitem__(mapping, key, kept)

    return Holder(owner, read, write)


class Pair(int):
    """The label of a pair of key and value that is content as a whole."""


def _of_object(value: Any) -> Iterator[Holder]:
    numpy = sys.modules.get("numpy")
    if is_array(value):
        return
    if (own := _of_random(value, numpy) or _of_text(value)) is not None:
        yield own
    module = type(value).__module__
    if foreign(module) and module.partition(".")[0] != "torch":
        if isinstance(value, io.StringIO | io.BytesIO):
            return
        if hasattr(value, "__next__") or hasattr(value, "fileno"):
            raise Opaque(type(value).__qualname__)
        if isinstance(value, _PLAIN_OBJECTS):
            yield _of_attributes(value)
        return
    if hasattr(value, "__dict__"):
        yield _of_mapping(value.__dict__, value)
    if not foreign(module) and (slots := _slots_of(type(value))):
        yield _of_slots(value, slots)


def _of_bytes(value: Any) -> Holder:
    """An array of numbers that is no tensor, as its bytes."""

    def write(content: list[tuple[Any, Any]]) -> None:
        data = content[0][1]
        value[:] = data if isinstance(value, bytearray) else array.array(value.typecode, data)

    return Holder(value, lambda: [("bytes", bytes(value))], write)


def _of_random(value: Any, numpy: Any) -> Holder | None:
    """The state of a generator of random numbers that is an object of its own; None: it is none."""
    read: Callable[[], Any]
    write: Callable[[Any], None]
    if isinstance(value, random.Random) and type(value) is not random.SystemRandom:
        read, write = value.getstate, value.setstate
    elif numpy is not None and isinstance(value, numpy.random.RandomState):
        read, write = value.get_state, value.set_state
    elif numpy is not None and isinstance(value, numpy.random.Generator):
        bits = value.bit_generator
        read, write = (lambda: bits.state), functools.partial(setattr, bits, "state")
    else:
        return None
    return Holder(
        value,
        lambda: [("state", pickle.dumps(read()))],
        lambda content: write(pickle.loads(content[0][1])),  # noqa: S301 -- what was dumped above
    )


def _of_attributes(value: Any) -> Holder:
    """The attributes of an object that another thread may look at meanwhile: each is there all the time."""
    own = value.__dict__

    def write(content: list[tuple[Any, Any]]) -> None:
        wanted = dict(content)
        for name in own.keys() - wanted.keys():
            del own[name]
        for name, item in content:
            if own.get(name, MISSING) is not item:
                own[name] = item

    return Holder(value, lambda: list(own.items()), write)


def _of_text(value: Any) -> Holder | None:
    """What is written into memory, and what a variable of the context is set to."""
    if isinstance(value, io.StringIO | io.BytesIO):

        def write(content: list[tuple[Any, Any]]) -> None:
            for _, (text, place) in content:
                if (value.getvalue(), value.tell()) != (text, place):
                    value.seek(0)
                    value.truncate()
                    value.write(text)
                    value.seek(place)

        return Holder(value, lambda: [("text", (value.getvalue(), value.tell()))], write)
    if isinstance(value, contextvars.ContextVar):
        return Holder(
            value,
            lambda: [("value", value.get(MISSING))],
            lambda content: _set_variable(value, content[0][1]),
        )
    return None


def _set_variable(variable: contextvars.ContextVar[Any], value: Any) -> None:
    if value is MISSING and variable.get(MISSING) is not MISSING:
        # It cannot be unset: where it has a default, that is what it had.
        with contextlib.suppress(LookupError):
            variable.set(contextvars.Context().run(variable.get))
    elif value is not MISSING and variable.get(MISSING) is not value:
        variable.set(value)


def _slots_of(cls: type) -> list[str]:
    known = _SLOTS.get(id(cls))
    if known is None:
        slots = [
            name
            for base in cls.__mro__
            for name, slot in vars(base).items()
            if isinstance(slot, types.MemberDescriptorType)
        ]
        known = _SLOTS[id(cls)] = (slots, cls)
    return known[0]


def _of_slots(value: Any, slots: list[str]) -> Holder:
    def write(content: list[tuple[Any, Any]]) -> None:
        for name, item in content:
            if item is not MISSING:
                object.__setattr__(value, name, item)

    return Holder(value, lambda: [(name, getattr(value, name, MISSING)) for name in slots], write)


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _set_cell(cell: types.CellType, value: Any) -> None:
    if value is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _set_generator(generator: torch.Generator, state: torch.Tensor) -> None:
    generator.set_state(state)


def carried(tensor: torch.Tensor) -> Iterator[tuple[str, Any]]:
    """What a tensor carries besides its values: Python attributes, and a gradient. Not Dynamo's own marks."""
    for name, value in list(tensor.__dict__.items()):
        if not name.startswith("_dynamo"):
            yield name, value
    if (tensor.is_leaf or tensor.retains_grad) and tensor.grad is not None:
        yield "grad", tensor.grad


def related(value: Any) -> Iterator[tuple[int | str, Any]]:
    """What belongs to a value without being its own content: items of tuples, what a callable is made of."""
    if isinstance(value, tuple | frozenset) or type(value) in _VIEWS:
        yield from enumerate(value)
    elif isinstance(value, types.MappingProxyType):
        yield from enumerate(value.items())
    elif isinstance(value, memoryview):
        yield "bytes", value.tobytes()
    elif isinstance(value, weakref.ref):
        yield "()", MISSING if value() is None else value()
    elif isinstance(value, types.MethodType):
        yield "__self__", value.__self__
        yield "__func__", value.__func__
    elif isinstance(value, collections.defaultdict):
        yield "default_factory", value.default_factory
    elif isinstance(value, collections.deque):
        yield "maxlen", value.maxlen
    elif isinstance(value, functools.partial):
        yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
    elif isinstance(value, types.FunctionType):
        original = getattr(value, "__breakscope_old__", None)
        if original is not None:
            yield "", original
        if not foreign(value.__module__):
            yield from zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)


def mentioned(function: types.FunctionType) -> Iterator[Any]:
    """Functions and classes that a function's code names, and what it wraps."""
    for name in names_in(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, _CALLED):
            yield value
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped


def methods(cls: type) -> dict[str, list[types.FunctionType]]:
    """Functions of a class by the name under which they are reached when it is mentioned.

    Under "" those that can be reached in any case: operators, and ``forward``.
    """
    found: dict[str, list[types.FunctionType]] = {"": []}
    for name, member in vars(cls).items():
        functions = _functions_of(member)
        if functions:
            always = name == "forward" or (name.startswith("__") and name.endswith("__"))
            found.setdefault("" if always else name, []).extend(functions)
    return found


def _functions_of(member: Any) -> list[types.FunctionType]:
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    candidates = (member.fget, member.fset) if isinstance(member, property) else (member,)
    return [candidate for candidate in candidates if isinstance(candidate, types.FunctionType)]


def caches_of(function: types.FunctionType) -> Iterator[Any]:
    """The ``lru_cache`` objects that a function may call: by name, or as a method of a global."""
    if foreign(function.__module__):
        return
    names = names_in(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if is_scalar(value):
            continue
        # Not hasattr of a module: some load their parts when they are asked for, and would look for one.
        module = isinstance(value, types.ModuleType)
        if "cache_clear" in vars(value) if module else hasattr(value, "cache_clear"):
            yield value
        elif not module and not isinstance(value, type):
            yield from (
                method
                for attribute in names
                if hasattr(method := _of_mro(type(value), attribute), "cache_clear")
            )


def _of_mro(cls: type, name: str) -> Any:
    """What a class or a base of it has under a name, unbound; None if nothing."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
