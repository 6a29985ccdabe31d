"""One test call: in a world of copies, with everything watched that it does besides returning."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import random
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from breakscope.inside.prove import modes, picture
from breakscope.inside.prove.compat import memory_of
from breakscope.inside.prove.copies import Change, Copies
from breakscope.inside.prove.patience import EndlessError
from breakscope.inside.prove.picture import Picture
from breakscope.inside.prove.reach import is_scalar
from breakscope.inside.prove.showing import text_of
from breakscope.inside.prove.world import World, swapped
from breakscope.inside.random_state import RandomState

Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a test differs from the captured call.

    Attributes:
        name: for the reader: "NaN in one element".
        change: of each piece of memory; dtype of floating memory may change in it.
        mutate: what is done to the copies before the call: gets those of the given tensors, or, with
            ``of_modules``, of all others: parameters, buffers, globals.
        prepare: done to the world before the call, once the copies are in it.
        other_dtypes: ``change`` changes dtypes.
        calls: makes other calls of the captured ones, after their tensors have been copied.
        gradients: compare them: every floating input gets one.
        seed: of every generator; None for the state at the captured call.
        mode: entered around the calls.
        saved: note what autograd saves for the way back, and compare nothing else.
        beyond: the limit that a difference would be, where the input is of another kind than the script's.
        look: gets the arguments of the calls as text, as they are made.
        number: the attribute to which ``prepare`` gives another value.
        words: what is written is compared, though the input is of another kind.
        unfrozen: parameters that take no gradients take part as well.
        twice: gradients are those of the gradients.
        flowing: what the gradients that come in are multiplied by.
    """

    name: str
    change: Change = torch.clone
    mutate: Callable[[list[torch.Tensor]], None] | None = None
    of_modules: bool = False
    prepare: Callable[[World], None] | None = None
    other_dtypes: bool = False
    calls: Callable[[Sequence[Call]], Sequence[Call]] | None = None
    gradients: bool = False
    seed: int | None = None
    mode: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    saved: bool = False
    beyond: str = ""
    look: list[str] | None = None
    number: str = ""
    words: bool = False
    unfrozen: bool = False
    twice: bool = False
    flowing: float = 1.0

    @property
    def leads(self) -> bool:
        """Whether it is another input than the script's in something else than values of tensors."""
        other = self.prepare is not None or self.calls is not None or self.other_dtypes
        return other and self.mutate is None and not self.gradients and not self.beyond


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test call came to.

    Attributes:
        picture: of results, arguments and state.
        raised: type and message, where it raised. printed: what it wrote, logged or warned.
        error: what the exception carries besides.
        randomness: state of the generators afterwards.
        gradients: one for each input; None where none arrived.
        modes: grad mode, autocast and their like afterwards, by name.
        own: for each gradient, whether the script itself wants it.
        saved: what was there before the call and is saved for the way back, by its first path.
        written: what was there before the call and was written to, by its first path.
        moved: what was there before the call and looks at other memory since, by its first path.
    """

    picture: Picture
    raised: str | None
    printed: str
    randomness: list[torch.Tensor]
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    backward_failed: str | None = None
    modes: Mapping[str, Any] = field(default_factory=dict)
    saved: frozenset[str] = frozenset()
    own: tuple[bool, ...] = ()
    error: tuple[Any, ...] = ()
    written: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()


class UnreadableError(RuntimeError):
    """What a call left behind cannot be looked at."""


def attempt(
    function: Callable[..., Any],
    world: World,
    calls: Sequence[Call],
    conditions: Conditions,
    early: Collection[str] = (),
    apart: Collection[str] = (),
    limited: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Outcome:
    """Call a function, once or several times, in a world of copies, and put the real one back.

    Args:
        early: names of attributes that may be there or not.
        apart: paths where one form leaves an input itself and the other a copy: nothing flows back from
            there, because there is nothing like it in the other form.
        limited: entered while the function is called; ends calls that take too long.

    Raises:
        EndlessError: the calls took too long.
        NotCopiedError: a tensor in the world cannot be copied.
        UnreadableError: what the call left behind cannot be looked at.
    """
    joining = {*world.given, *(world.frozen if conditions.unfrozen else ())} if conditions.gradients else ()
    copies = Copies(world.tensors, conditions.change, joining)
    originals = {id(copies(tensor)): tensor for tensor in world.tensors}
    for cache in world.caches:
        cache.cache_clear()
    try:
        world.swap(copies)
        calls = [(swapped(args, copies), kwargs) for args, kwargs in calls]
        if conditions.mutate is not None:
            with torch.inference_mode(False), torch.no_grad():
                of_modules = conditions.of_modules
                conditions.mutate([copies(t) for t in world.tensors if (id(t) in world.given) != of_modules])
        if conditions.prepare is not None:
            conditions.prepare(world)
        if conditions.calls is not None:
            with torch.set_grad_enabled(conditions.gradients):
                calls = list(conditions.calls(calls))
        if conditions.look is not None:
            conditions.look.extend(f"{name} = {text_of(value)}" for name, value in _named(function, calls))
        present = [copies(tensor) for tensor in world.tensors]
        versions, memories = _versions(present), _memories(present)
        saved: set[int] = set()
        with _watched(conditions.seed) as watched, conditions.mode(), modes.kept():
            noting = _noting(saved) if conditions.saved else contextlib.nullcontext()
            with noting, limited():
                results, raised, carried, left = _call(function, calls, conditions.gradients)
        shown = [*_named(function, calls), *(("", holder) for holder in world.code), *results]
        try:
            taken = picture.take(shown, originals, early, world.unseen)
        except RuntimeError as error:
            # as_strided makes tensors of negative sizes, which nothing can read.
            raise UnreadableError(str(error)) from error
        wanted = conditions.gradients and not raised and not conditions.saved
        gradients, failed = (
            _gradients([one for at, one in taken.floating if at not in apart], copies, conditions)
            if wanted
            else ([], None)
        )
        there = saved & set(map(memory_of, present)) if saved else saved
        changed = zip(present, versions, _versions(present), strict=True)
        written = {memory_of(tensor) for tensor, was, now in changed if was != now}
        return Outcome(
            taken,
            raised,
            watched.text,
            watched.randomness,
            gradients,
            failed,
            left,
            _paths(taken, there),
            tuple(copies.own),
            carried,
            _paths(taken, written),
            _paths(taken, set(_memories(present)) - set(memories)),
        )
    finally:
        world.restore()


def _versions(tensors: Iterable[torch.Tensor]) -> list[int]:
    """How often each tensor was written to: writing what is there already counts."""
    return [-1 if tensor.is_inference() else tensor._version for tensor in tensors]


def _memories(present: Iterable[torch.Tensor]) -> list[int]:
    return [memory_of(tensor) for tensor in present if tensor.layout is torch.strided]


def _paths(taken: Picture, memories: Collection[int]) -> frozenset[str]:
    """The first path to each piece of memory that can still be reached."""
    return frozenset(taken.holders[memory] for memory in memories if memory in taken.holders)


def _text_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _carried(error: BaseException) -> tuple[Any, ...]:
    """What an exception is besides its message: its class, its plain attributes, its cause."""
    plain = [(name, repr(value)) for name, value in vars(error).items() if is_scalar(value)]
    cause = error.__cause__
    return (type(error).__module__, type(error).__qualname__, plain, cause and _text_of(cause))


def _named(function: Callable[..., Any], calls: Sequence[Call]) -> Iterator[tuple[str, Any]]:
    """Arguments with the names of their parameters."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    for index, (args, kwargs) in enumerate(calls):
        prefix = f"call {index + 1}: " if len(calls) > 1 else ""
        for place, value in enumerate(args):
            yield prefix + (names[place] if place < len(names) else f"argument {place + 1}"), value
        for name, value in kwargs.items():
            yield prefix + name, value


def _call(
    function: Callable[..., Any], calls: Sequence[Call], gradients: bool
) -> tuple[list[tuple[str, Any]], str | None, tuple[Any, ...], Mapping[str, Any]]:
    """Results, what was raised and what that carries, and the modes that were entered afterwards."""
    results: list[tuple[str, Any]] = []
    mode = contextlib.ExitStack()
    if gradients:
        mode.enter_context(torch.inference_mode(False))
        mode.enter_context(torch.enable_grad())
    with mode:
        for index, (args, kwargs) in enumerate(calls):
            name = f"result of call {index + 1}" if len(calls) > 1 else "result"
            try:
                results.append((name, function(*args, **kwargs)))
            except (KeyboardInterrupt, EndlessError):
                raise
            except BaseException as error:  # noqa: BLE001 -- what it raises is part of what is compared
                return results, _text_of(error), _carried(error), modes.now()
        return results, None, (), modes.now()


@contextlib.contextmanager
def _noting(saved: set[int]) -> Iterator[None]:
    """Note the memory of what autograd saves: it must not be written to before backward()."""
    alive: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.layout is torch.strided:
            saved.add(memory_of(tensor))
            alive.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield


def _gradients(
    floating: Sequence[torch.Tensor], copies: Copies, conditions: Conditions
) -> tuple[list[torch.Tensor | None], str | None]:
    leaves = {id(leaf) for leaf in copies.leaves}
    outputs = [one for one in floating if one.requires_grad and id(one) not in leaves]
    try:
        twice = conditions.twice
        first = _flowing(outputs, copies.leaves, conditions.flowing, create_graph=twice)
        if not twice:
            return first, None
        again = _flowing(first, copies.leaves, 1.0) or [None] * len(leaves)
        # Whoever asks for them adds them to others: none is zero.
        pairs = zip(again, copies.leaves, strict=True)
        return [torch.zeros_like(leaf) if one is None else one for one, leaf in pairs], None
    except Exception as error:  # noqa: BLE001 -- what it raises is part of what is compared
        return [], f"{type(error).__name__}: {error}"


def _flowing(
    outputs: Sequence[torch.Tensor | None],
    leaves: Sequence[torch.Tensor],
    scale: float,
    create_graph: bool = False,
) -> list[torch.Tensor | None]:
    """The gradients of outputs, each weighted at random by its place; empty where there are none."""
    weighted: list[tuple[torch.Tensor, torch.Tensor]] = []
    for index, output in enumerate(outputs):
        if output is not None and output.requires_grad:
            generator = torch.Generator().manual_seed(index)
            weight = torch.randn(output.shape, generator=generator, dtype=torch.float64, device="cpu")
            weight *= scale
            weighted.append((output, weight.to(output.dtype).to(output.device)))
    if not weighted or not leaves:
        return []
    flowing, weights = zip(*weighted, strict=True)
    return list(torch.autograd.grad(flowing, leaves, weights, allow_unused=True, create_graph=create_graph))


class _Watched:
    text = ""
    randomness: list[torch.Tensor]


@contextlib.contextmanager
def _watched(seed: int | None) -> Iterator[_Watched]:
    """Note what is printed, logged, warned and drawn; leave the generators as they were."""
    watched, text = _Watched(), io.StringIO()
    start = before = RandomState.now()

    def handle(logger: Any, record: logging.LogRecord) -> None:
        if logger.name.partition(".")[0] == "torch":
            return  # what torch says of its own work, as the trace of a compile, is no effect of the function
        text.write(f"{logger.name} {record.levelname}: {record.getMessage()}\n")

    real = logging.Logger.handle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            logging.Logger.handle = handle  # type: ignore[method-assign, assignment]
            try:
                if seed is not None:
                    torch.manual_seed(seed)
                    random.seed(seed)
                    if "numpy" in sys.modules:
                        sys.modules["numpy"].random.seed(seed)
                    start = RandomState.now()
                yield watched
            finally:
                logging.Logger.handle = real  # type: ignore[method-assign]
                watched.randomness = RandomState.now().tensors(start)
                before.restore()
                warned = "".join(f"{one.category.__name__}: {one.message}\n" for one in caught)
                watched.text = text.getvalue() + warned
