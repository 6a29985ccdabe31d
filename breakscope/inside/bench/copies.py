"""Copies of inputs, to make a call again, and of outputs, before a CUDA graph overwrites them."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import is_dataclass
from typing import Any

import torch

from breakscope.inside.bench import arm_compat
from breakscope.inside.torch_api.state import writes

_ALIGNED = 16  # bytes: kernels are chosen by it
_KEEPS_ITSELF = (torch.Tensor, torch.nn.Module)
# No object of the call's own, or none that holds anything: told from others at every repeated call.
_HOLDS_NOTHING = (
    *_KEEPS_ITSELF,
    *(type, types.ModuleType, types.FunctionType),
    *(bool, int, float, str, bytes, types.NoneType),
)
_MOST_SHARED = 2  # times what the tensors that share a storage have together


def copied(value: Any) -> Any:
    """The same with every plain tensor in it copied: the next call cannot change it.

    It lies between two timed calls, so what results usually are made of does not take the long way.
    """
    kind = type(value)
    if kind is torch.Tensor:
        return _copy(value)
    if kind is tuple or kind is list:
        return kind(map(copied, value))
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, OrderedDict) and is_dataclass(kind):
        # A result of transformers, made by this call: to make another one takes longer than the copies.
        for key, item in value.items():
            value[key] = copied(item)
        return value
    if value is None:
        return None
    return arm_compat.tree_map(_copy, value)


def fresh(value: Any) -> Any:
    """Inputs like these for another call: every plain tensor copied.

    What was one tensor stays one, and what shared memory shares it: guards ask for both, and a call with
    other relations between its inputs would be another compile. Objects that hold tensors, such as a cache of
    keys and values, are copied as a whole.
    """
    by_memory: dict[tuple[torch.device, int], dict[int, torch.Tensor]] = {}

    def group(leaf: Any) -> Any:
        if _plain(leaf):
            memory = (leaf.device, leaf.untyped_storage().data_ptr())
            by_memory.setdefault(memory, {})[id(leaf)] = leaf
        elif id(leaf) not in copies:
            copies[id(leaf)] = _whole(leaf)
        return leaf

    copies: dict[int, Any] = {}
    arm_compat.tree_map(group, value)
    for sharing in by_memory.values():
        together = _copy_together(list(sharing.values())) or map(_copy, sharing.values())
        copies.update(zip(sharing, together, strict=True))
    return arm_compat.tree_map(lambda leaf: copies.get(id(leaf), leaf), value)


class Repeated:
    """The inputs of a call that is made again and again.

    Copies, and the same ones again as long as the call leaves them as they are: a copy is work for the device
    between two timed calls, behind which the launch of the second one hides.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._given = (args, kwargs)
        self._made: Any = None
        self._written: list[tuple[torch.Tensor, int | None]] | None = None

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """For one call."""
        if self._written is None or any(
            count is None or writes(tensor) != count for tensor, count in self._written
        ):
            self._made = fresh(self._given)
            leaves: list[Any] = []
            arm_compat.tree_map(leaves.append, self._made)
            tensors = [leaf for leaf in leaves if _plain(leaf)]
            if all(map(_changes_by_writes, leaves)):
                self._written = [(tensor, writes(tensor)) for tensor in tensors]
        return self._made  # type: ignore[no-any-return]


def _changes_by_writes(leaf: Any) -> bool:
    """Whether only a write to a tensor, which torch counts, can make an input another one."""
    if _plain(leaf):
        return not leaf.requires_grad  # a call could leave a gradient on it
    return isinstance(leaf, _HOLDS_NOTHING) or _whole(leaf) is leaf


def _plain(leaf: Any) -> bool:
    return type(leaf) is torch.Tensor and leaf.layout is torch.strided


def _copy(leaf: Any) -> Any:
    if not _plain(leaf):
        return leaf
    if not leaf.is_contiguous() and not _dense(leaf):
        return _sparsely_laid(leaf)
    if not torch.is_grad_enabled() and leaf.is_inference() == torch.is_inference_mode_enabled():
        copy = leaf.clone()
        return copy.requires_grad_() if leaf.requires_grad else copy
    # A normal tensor stays one in inference mode, and the other way round: guards would tell them apart.
    with torch.inference_mode(leaf.is_inference()):
        copy = leaf.detach().clone(memory_format=torch.preserve_format)
    return copy.requires_grad_(leaf.requires_grad)


def _held(leaf: Any, depth: int = 4) -> Iterator[Any]:
    """Tensors and modules in an object's attributes, and in what these hold; not those of modules."""
    if depth == 0 or isinstance(leaf, _HOLDS_NOTHING):
        return
    inner: Iterable[Any]
    if isinstance(leaf, (list, tuple)):
        inner = leaf
    else:
        inner = (leaf if isinstance(leaf, dict) else getattr(leaf, "__dict__", {})).values()
    for one in inner:
        if isinstance(one, _KEEPS_ITSELF):
            yield one
        else:
            yield from _held(one, depth - 1)


def _whole(leaf: Any) -> Any:
    """A copy of an object that holds tensors, with the same modules; any other object is itself."""
    held = list(_held(leaf))
    if not any(isinstance(one, torch.Tensor) for one in held):
        return leaf
    try:
        return deepcopy(leaf, {id(one): one for one in held if isinstance(one, torch.nn.Module)})
    except Exception:  # noqa: BLE001 -- a class of the script's may do anything; its call is made with itself
        return leaf


def _dense(leaf: torch.Tensor) -> bool:
    """Whether its elements fill their memory, so that ``clone`` keeps the strides, which guards ask for."""
    filled = 1
    for step, size in sorted(zip(leaf.stride(), leaf.shape, strict=True)):
        if size == 1:
            continue
        if step != filled:
            return False
        filled *= size
    return True


def _sparsely_laid(leaf: torch.Tensor) -> torch.Tensor:
    """A copy of a slice or of an expanded tensor, with its strides."""
    with torch.inference_mode(leaf.is_inference()), torch.no_grad():
        copy = torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device=leaf.device)
        to, source = copy, leaf.detach()
        for dimension, step in enumerate(leaf.stride()):
            if step == 0 and leaf.size(dimension) > 1:  # one element in memory
                to, source = to.narrow(dimension, 0, 1), source.narrow(dimension, 0, 1)
        try:
            to.copy_(source)
        except RuntimeError:  # windows that overlap
            copy = leaf.detach().clone(memory_format=torch.preserve_format)
    return copy.requires_grad_(leaf.requires_grad)


def _copy_together(sharing: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """Copies of tensors of one storage in one new one; None where that would copy far more than them."""
    own = sum(leaf.numel() * leaf.element_size() for leaf in sharing)
    if len(sharing) < 2 or not own or any(leaf.is_conj() or leaf.is_neg() for leaf in sharing):
        return None
    first = min(leaf.storage_offset() * leaf.element_size() for leaf in sharing) // _ALIGNED * _ALIGNED
    last = max((leaf.storage_offset() + _reach(leaf)) * leaf.element_size() for leaf in sharing)
    if last - first > _MOST_SHARED * own + _ALIGNED:
        return None
    some = sharing[0]
    with torch.inference_mode(some.is_inference()):
        whole = torch.empty(0, dtype=torch.uint8, device=some.device)
        memory = whole.set_(some.untyped_storage(), first, (last - first,), (1,)).clone().untyped_storage()
        copies = []
        for leaf in sharing:
            offset = leaf.storage_offset() - first // leaf.element_size()
            copy = torch.empty(0, dtype=leaf.dtype, device=leaf.device)
            copies.append(copy.set_(memory, offset, leaf.size(), leaf.stride()))
    return [copy.requires_grad_(leaf.requires_grad) for copy, leaf in zip(copies, sharing, strict=True)]


def _reach(leaf: torch.Tensor) -> int:
    """Elements of the storage from its first to its last one."""
    if not leaf.numel():
        return 0
    return 1 + sum((int(size) - 1) * int(step) for size, step in zip(leaf.shape, leaf.stride(), strict=True))
