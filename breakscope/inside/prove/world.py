"""Everything that a call can reach: taken aside before a test, swapped for copies, put back afterwards.

Objects keep their identity; only tensors are exchanged for copies, in the places that hold them. So a test
runs on the user's real objects, never touches a real tensor, and leaves no trace but in what Python cannot
see (an open file, a running generator), which is listed.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch

from breakscope.inside.prove import reach
from breakscope.inside.prove.compat import memory_of
from breakscope.inside.prove.copies import Copies
from breakscope.inside.prove.reach import Holder
from breakscope.report.owners import is_packaged

MAX_OBJECTS = 300_000


class TooLargeError(Exception):
    """More is reachable than can be walked, copied or varied; the message says what."""


class World:
    """What is reachable from some roots, as it is now.

    Args:
        roots: functions and arguments.
        max_bytes: of tensors.

    Attributes:
        tensors: every distinct tensor, in the order of the walk. given: those that do not belong to a
            module: a function's own inputs.
        opaque: classes whose state could not be taken aside. unseen: their objects.
        caches: ``lru_cache`` objects that may be called.
        code: what functions and classes hold: defaults, closures, globals and attributes that they mention.
        content: every holder with what it held when the world was taken.
        asks: functions of the user's, or of the changed file, that can be reached and ask which object they
            have, by what they ask: ``id``.

    Raises:
        TooLargeError: too many objects, or too many bytes of tensors.
    """

    def __init__(self, roots: list[Any], max_bytes: int) -> None:
        self.tensors: list[torch.Tensor] = []
        self.given: set[int] = set()
        self.opaque: set[str] = set()
        self.unseen: set[int] = set()
        self.caches: list[Any] = []
        self.code: list[Holder] = []
        self.asks: dict[str, str] = {}
        self.content: list[tuple[Holder, list[tuple[Any, Any]]]] = []
        self._names: set[str] = set()
        self._stored: set[str] = set()
        self._classes: dict[type, dict[str, list[types.FunctionType]]] = {}  # with their methods
        forms = (inspect.unwrap(root) for root in roots if isinstance(root, types.FunctionType))
        self._files = {form.__code__.co_filename for form in forms}
        self._walk(roots)
        self._swapped = [(holder, content) for holder, content in self.content if _has_tensor(content)]
        memories = {memory_of(one): one.untyped_storage() for one in self._strided()}
        self.bytes = sum(storage.nbytes() for storage in memories.values())
        if self.bytes > max_bytes:
            raise TooLargeError(f"what it can reach holds {self.bytes / 2**20:.0f} MiB of tensors")

    @property
    def frozen(self) -> set[int]:
        """Ids of parameters that take no gradients."""
        held = (one for one in self.tensors if isinstance(one, torch.nn.Parameter))
        return {id(one) for one in held if not one.requires_grad and one.is_floating_point()}

    def _strided(self) -> list[torch.Tensor]:
        return [tensor for tensor in self.tensors if tensor.layout is torch.strided]

    def _walk(self, roots: list[Any]) -> None:
        seen: set[int] = set()
        alive: list[Any] = []
        # Depth first, in order; the flag says whether one has passed through a module or code on the way.
        stack: list[tuple[Any, bool]] = [(root, False) for root in reversed(roots)]
        held: dict[type, set[tuple[str, bool]]] = {}
        while True:
            while stack:
                value, inside = stack.pop()
                if isinstance(value, torch.Tensor) and not inside:
                    self.given.add(id(value))
                if value is reach.MISSING or reach.is_atom(value) or id(value) in seen:
                    continue
                seen.add(id(value))
                alive.append(value)
                if len(alive) > MAX_OBJECTS:
                    raise TooLargeError(f"it can reach more than {MAX_OBJECTS} objects")
                if reach.is_array(value):
                    raise TooLargeError("it can reach an array of numpy's, in which no others are tried")
                if isinstance(value, torch.Tensor):
                    self.tensors.append(value)
                    # Its gradient is copied with it; what else it carries may be written to by the call.
                    stack += [(item, inside) for name, item in reach.carried(value) if name != "grad"]
                    continue
                code = isinstance(value, types.FunctionType | type | types.CellType)
                inside = inside or code or isinstance(value, torch.nn.Module)
                stack += [(item, inside) for item in reversed(self._below(value))]
            # Class attributes last, when every name that code mentions is known.
            mentioned = {(name, name in self._stored) for name in self._names}
            for cls in self._classes:
                new = mentioned - held.get(cls, set())
                if new:
                    held[cls] = held.get(cls, set()) | new
                    names = frozenset(name for name, _ in new)
                    stored = frozenset(name for name, is_stored in new if is_stored)
                    found = self._content(reach.of_class(cls, names, stored), code=True)
                    stack += [(item, True) for item in found]
            if not stack:
                return

    def _below(self, value: Any) -> list[Any]:
        """What is one step away from a value."""
        below = [item for _, item in reach.related(value)]
        if isinstance(value, types.FunctionType) and not reach.foreign(value.__module__):
            self.caches += reach.caches_of(value)
            # A library is known by names only here, and most of what a name may lead to is never called.
            file = value.__code__.co_filename
            if file in self._files or not is_packaged(file):
                for asked in reach.asked_in(value):
                    self.asks.setdefault(asked, value.__qualname__)
            below += reach.mentioned(value)
            new = [name for name in reach.names_in(value.__code__) if name not in self._names]
            self._names.update(new)
            self._stored |= reach.stored_in(value.__code__)
            for members in self._classes.values() if new else ():
                below += (function for name in new if name in members for function in members[name])
        elif isinstance(value, type):
            below += self._of_class(value)
        elif not isinstance(value, types.CellType | types.ModuleType | tuple):
            below.append(type(value))
        code = isinstance(value, types.FunctionType | types.CellType)
        try:
            for holder in reach.holders(value):
                below += self._content(holder, code=code)
        except reach.Opaque as error:
            self.opaque.add(str(error))
            self.unseen.add(id(value))
        return below

    def _of_class(self, cls: type) -> list[Any]:
        found: list[Any] = []
        for base in cls.__mro__:
            if not reach.foreign(base.__module__) and base not in self._classes:
                members = self._classes[base] = reach.methods(base)
                named = [name for name in members if not name or name in self._names]
                found += (function for name in named for function in members[name])
        return found

    def _content(self, holder: Holder, *, code: bool) -> list[Any]:
        content = holder.read()
        self.content.append((holder, content))
        if code:
            self.code.append(holder)
        return [item for _, item in content]

    def swap(self, copies: Copies) -> None:
        """Put copies where the tensors are."""
        for holder, content in self._swapped:
            holder.write([(label, swapped(value, copies)) for label, value in content])

    def restore(self) -> None:
        """Give everything the content that it had when the world was taken."""
        for holder, content in self.content:
            holder.write(content)


def _has_tensor(content: list[tuple[Any, Any]]) -> bool:
    """Whether there is a tensor among what a holder holds, or in a tuple of it."""
    values = [value for _, value in content]
    for value in values:
        if isinstance(value, torch.Tensor):
            return True
        if isinstance(value, tuple):
            values += value
    return False


def swapped(value: Any, copies: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A value with copies for its tensors: tuples are rebuilt, all else holds them itself."""
    if isinstance(value, torch.Tensor):
        return copies(value)
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        items = [swapped(item, copies) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
