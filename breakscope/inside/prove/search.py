"""The search for an input that tells the forms of a function apart."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from breakscope.inside.prove import among, inputs, python_state, rare, reach
from breakscope.inside.prove import kinds as kinds_of
from breakscope.inside.prove.attempt import Call, Conditions
from breakscope.inside.prove.bench import Bench, code_of, names_in
from breakscope.inside.prove.beyond import beyond
from breakscope.inside.prove.comparing import Comparing
from breakscope.inside.prove.novelty import Kinds
from breakscope.inside.prove.tally import TIME_IS_UP, Tally

# Larger sizes of tensors take too long, and may fill the memory.
MAX_SIZE = 1024
# Inputs that lead where no values of the tensors do: edge values are tried around so many.
MOST_LEADING = 4
MOST_TEXTS = 12
# Of tensors that the function makes for arguments that were left out.
MOST_MADE = 4
MOST_SIZES = 6
SEEDS, MANY_SEEDS = 6, 24
DRAWING = {"random", "randrange", "choice", "choices", "shuffle", "sample"}
_MOST_LISTED = 3
EDGES = "edge values"
BEHIND = "edge values where another input leads"


@dataclass(slots=True)
class Search:
    """Looks for inputs that tell the forms apart, and that drive the conditions of the old one."""

    tally: Tally
    comparing: Comparing
    _tried: set[str] = field(default_factory=set)

    def around(self, bench: Bench, constants: Iterable[float], *, again: bool) -> None:
        """Look for an input that tells the forms apart; ``again``: around a second call of one kind."""
        constants = tuple(constants)
        # No kind ends early for a patch of which nothing is believed.
        groups = self._kinds(bench, constants, again=again and not self.tally.anybody)
        self._note_written_out(bench)
        self._note_never_given(bench)
        self._note_square(bench)
        # In turns, so that a proof that runs out of time has seen something of every kind, and all edge
        # values: what is wrong on NaN alone must not be proved because the machine is slow.
        self.tally.untried = dict.fromkeys(kind for kind, *_ in groups if kind not in self._tried)
        learning = Kinds()
        while groups:
            for one in list(groups):
                kind, group, skip_raising, ends = one
                needed = kind == EDGES
                if not needed and self._time_is_up():
                    self.tally.notes[TIME_IS_UP] = None
                    groups.remove(one)
                    continue
                conditions = next(group, None)
                if conditions is not None and ends and learning.ended(kind) and self.tally.driven():
                    self.tally.left_out[kind] += 1 + sum(1 for _ in group)
                    conditions = None
                if conditions is None:
                    groups.remove(one)
                elif self.comparing.agree(bench, conditions, kind, skip_raising=skip_raising, needed=needed):
                    learning.note(kind, new=self.comparing.new)
                elif self.tally.mismatch or self.tally.trouble:
                    return
                else:  # the time was up right now, for this kind: the edge values go on
                    groups.remove(one)
                    continue
                self._tried.add(kind)
                self.tally.untried.pop(kind, None)
        for conditions in self._elsewhere(constants):
            needed = conditions.name.startswith(("NaN", "inf"))
            agreed = self.comparing.agree(bench, conditions, BEHIND, skip_raising=True, needed=needed)
            if not agreed and (self.tally.mismatch or self.tally.trouble):
                return
        count = len(bench.held)
        for conditions in itertools.chain(
            inputs.states_together() if count > 1 else (), inputs.states(count)
        ):
            if self.tally.driven() or not self.comparing.agree(bench, conditions, "values of parameters"):
                return

    def _kinds(
        self, bench: Bench, constants: Sequence[float], *, again: bool
    ) -> list[tuple[str, Iterator[Conditions], bool, bool]]:
        """Each kind of inputs.

        By its name: the inputs, whether those are left out on which the old form raises, whether it may end
        early, which edge values never do.
        """
        given, old = bench.given, bench.forms["old"]
        around = python_state.held(bench.world, self._labels(bench)) if self.tally.anybody else ()
        unlike = itertools.chain(
            around, _unfrozen(bench), _frozen(bench), beyond(old, bench.calls, names_in(bench.forms))
        )
        texts = self._texts(bench)
        state = python_state.states(bench.world, self._labels(bench), constants, texts)
        scalars = inputs.scalars(bench.calls, constants)
        both_ways = _both_ways if self.tally.anybody and _take_gradients(bench) else iter
        kinds: list[tuple[str, Iterator[Conditions], bool, bool]] = [
            (EDGES, inputs.values(given, constants, gradients=False), False, False),
            ("edge values with gradients", inputs.values(given, constants, gradients=True), True, again),
            ("other whole numbers", inputs.whole_numbers(given), True, again),
            ("random seeds", inputs.seeds(self._seeds(bench)), False, again),
            ("other shapes", self._shapes(bench, constants), True, again),
            ("other scalars", both_ways(scalars), True, again),
            ("other state in Python", both_ways(state), True, again),
            ("other dtypes", inputs.dtypes(old, bench.calls), True, False),
            ("inputs unlike the script's", unlike, True, again),
        ]
        if not self.tally.anybody:
            return kinds
        states = inputs.states(len(bench.held))
        held = itertools.chain(states, inputs.counted(bench.held, given, constants))
        unnamed = python_state.unnamed(bench.world, self._labels(bench))
        for kind, group in (
            ("fields that no form names", unnamed),
            ("items that are held", python_state.parts(bench.world, self._labels(bench))),
            ("lists that are held", python_state.lengths(bench.world, self._labels(bench), constants)),
            ("other defaults", both_ways(inputs.defaults(old, bench.calls, constants, texts))),
            ("other texts", both_ways(inputs.texts(bench.calls, texts))),
            ("other lengths", inputs.lengths(old, bench.calls, constants)),
            ("arguments of other kinds", both_ways(kinds_of.others(old, bench.calls, constants, texts))),
            ("two flags at once", both_ways(inputs.flags(old, bench.calls))),
            ("numbers at which is rounded", inputs.rounded(bench.calls)),
            ("all numbers at once", both_ways(inputs.numbers(bench.calls))),
            ("other orders", inputs.orders(bench.calls)),
            ("numbers in containers", both_ways(inputs.inside(bench.calls, constants))),
            ("values of what is held", held),
            ("rare layouts", itertools.chain(rare.laid_out(old), rare.kept_too(old, bench.calls[0]))),
            ("numbers on a limit", rare.near_limits(given, constants)),
            ("sums of whole numbers", rare.alike_in_sums(old, given)),
            *self._among(bench, constants),
            ("gradients that come in", inputs.flowing_back() if _take_gradients(bench) else iter(())),
        ):
            kinds.append((kind, group, True, False))
        return kinds

    def _among(self, bench: Bench, constants: Sequence[float]) -> Iterator[tuple[str, Iterator[Conditions]]]:
        """Values that stand among the script's own, and values at which something is rounded."""
        given, old, calls = bench.given, bench.forms["old"], bench.calls
        codes = [code_of(bench.forms[form]) for form in ("watched", "new")]
        written = [number for code in codes for number in reach.constants_in(code)]
        names = names_in(bench.forms) | {text for code in codes for text in reach.texts_in(code)}
        told = (*among.ignored(names, bench.world), *constants)
        both_ways = _both_ways if _take_gradients(bench) else iter
        whole = itertools.chain(among.all_bytes(old, given), among.cancelling_whole(given))
        yield "numbers of the code among others", itertools.chain(whole, among.numbers(given, told))
        yield "fractions at which is rounded", among.fractions(given, constants, names)
        yield "sizes at which is rounded", among.sizes(old, calls, written)
        yield "rows of masks", both_ways(among.rows_of_masks(given))
        yield "complex numbers", both_ways(among.complex_values(given))
        yield "edge values in half precision", among.in_half(given, exact=self.tally.claims.exact)

    def _seeds(self, bench: Bench) -> int:
        """How many: more for what may be drawn by Python, from a list of what is done."""
        drawn = self.tally.anybody and not DRAWING.isdisjoint(names_in(bench.forms))
        return MANY_SEEDS if drawn else SEEDS

    def _note_written_out(self, bench: Bench) -> None:
        """A limit where the new code alone has a number that is a size of what modules hold, or ``.data``."""
        if not self.tally.anybody:
            return
        new, old = (code_of(bench.forms[form]) for form in ("new", "watched"))
        if "data" in reach.names_in(new) and "data" not in reach.names_in(old):
            limit = "where autograd counts who writes to a tensor"
            self.tally.limits.setdefault(
                limit, f"{limit}: the new code goes through .data, which is not seen"
            )
        written, was = set(reach.constants_in(new)), set(reach.constants_in(old))
        sizes = {size for tensor in bench.held for size in tensor.shape if size > 1}
        if found := sorted(sizes & (written - was)):
            limit = f"with modules of other sizes than {', '.join(f'{size:g}' for size in found)}"
            self.tally.limits.setdefault(limit, f"{limit}: the new code has that written out")

    def _note_never_given(self, bench: Bench) -> None:
        """A limit for what the script never gives: no value of ours would be right for it."""
        new = code_of(bench.forms["new"])
        known = new.co_varnames[: new.co_argcount + new.co_kwonlyargcount]
        never = kinds_of.never_given(bench.forms["old"], bench.calls) if self.tally.anybody else ()
        if names := [f"`{name}`" for name in never if name in known]:
            more = f" or {len(names) - _MOST_LISTED} more" * (len(names) > _MOST_LISTED)
            limit = f"where {' or '.join(names[:_MOST_LISTED])}{more} is given"
            self.tally.limits.setdefault(limit, f"{limit}: None at every call of the script")

    def _note_square(self, bench: Bench) -> None:
        """A limit for what is held and square by chance, where a size is asked for: it may be either."""
        old = code_of(bench.forms["watched"])
        if not self.tally.anybody or not {"shape", "size"} & set(reach.names_in(old)):
            return
        names = self._labels(bench)
        for _, content in bench.world.content:
            for label, value in content:
                is_named = isinstance(label, str) and label in names and isinstance(value, torch.Tensor)
                if is_named and len(set(value.shape)) < value.dim():
                    limit = f"with `{label}` of sizes that differ"
                    size = max(value.shape, key=list(value.shape).count)
                    self.tally.limits.setdefault(limit, f"{limit}: two of them are {size} here")

    def _time_is_up(self) -> bool:
        """Whether it is, also for one who has not seen all that a proof needs."""
        budget = self.comparing.budget
        while budget.over():
            if (self.tally.enough_driven() and not self.tally.untried) or not budget.extend():
                return True
        return False

    def _elsewhere(self, constants: Sequence[float]) -> Iterator[Conditions]:
        """Edge values on ways to which no values lead: behind a dtype, a size, a flag, a number."""
        found = [one for one in self.tally.inputs_that_drive() if one.leads]
        yield from map(_with_gradients, found)
        for one, (name, fill) in itertools.product(found[:MOST_LEADING], inputs.fills(constants)):
            yield replace(one, name=f"{name}, {one.name}", mutate=fill)

    def give_arguments(self, bench: Bench) -> None:
        """Drive checks of what the function makes itself: few inputs, and no others drive those."""
        if self.tally.driven():
            return
        for conditions in self._given_instead(bench):
            if self.tally.driven() or not self.comparing.agree(bench, conditions, "arguments left out"):
                return

    def _given_instead(self, bench: Bench) -> Iterator[Conditions]:
        """Tensors for arguments that are None in the script, and that the function then makes itself.

        Each that it has under the name: what it made first, and what it put in its place.

        ``if lengths is None: lengths = ...``: what is asked of them further down, only such a call can drive.
        """
        code = code_of(bench.forms["old"])
        keys = inputs.left_out(inspect.unwrap(bench.forms["old"]), bench.calls)
        made: dict[tuple[str, torch.dtype, torch.Size], torch.Tensor] = {}

        def note(frame: Any, _event: str, _result: Any) -> None:
            # What is called in it, and what that returns to, comes by here as well.
            inside = frame if frame.f_code is code else frame.f_back
            if inside is None or inside.f_code is not code or len(made) >= MOST_MADE:
                return
            local = inside.f_locals
            tensors = {name: local[name] for name in keys if isinstance(local.get(name), torch.Tensor)}
            for name, tensor in tensors.items():
                if (name, tensor.dtype, tensor.shape) not in made:
                    made[name, tensor.dtype, tensor.shape] = tensor.detach().clone()

        if sys.getprofile() is not None:
            return  # the script is profiled, by what cannot be put back
        sys.setprofile(note)
        try:
            bench.run("old", Conditions("what the function makes"))
        finally:
            sys.setprofile(None)
        for (name, *_), tensor in made.items():
            yield from inputs.given(name, keys[name], tensor)

    def _labels(self, bench: Bench) -> frozenset[str]:
        """Names and keys under which the forms may read a number that is state."""
        names = names_in(bench.forms)
        if not self.tally.anybody:
            return names
        codes = [code_of(bench.forms[form]) for form in ("watched", "new")]
        return names | {text for code in codes for text in reach.texts_in(code)}

    def _texts(self, bench: Bench) -> list[str]:
        """Texts that a patch by anybody may decide by: those of the code, and keys of dicts."""
        if not self.tally.anybody:
            return []
        codes = [code_of(bench.forms[form]) for form in ("watched", "new")]
        keys = python_state.keys_of_dicts(bench.world)
        # Not sentences, nor what is nobody's name for anything.
        wanted = itertools.chain((text for code in codes for text in reach.texts_in(code)), keys)
        return list(dict.fromkeys(text for text in wanted if text.isidentifier()))[:MOST_TEXTS]

    def _shapes(self, bench: Bench, constants: Iterable[float]) -> Iterator[Conditions]:
        sizes, anybody = self._sizes(bench, constants), self.tally.anybody
        for conditions in inputs.shapes(bench.forms["old"], bench.calls, sizes, large=anybody):
            yield conditions
            if anybody and conditions.name.startswith("size 1 for"):  # what functions ask for most
                yield _with_gradients(conditions)

    def _sizes(self, bench: Bench, constants: Iterable[float]) -> list[int]:
        """Sizes that a patch by anybody may stop at: numbers of its code, and sizes of what modules hold."""
        if not self.tally.anybody:
            return []
        held = {size for tensor in bench.held for size in tensor.shape}
        written = {abs(int(one)) for one in constants if one == one // 1 and abs(one) < MAX_SIZE}
        return sorted({one for one in held | written if 1 < one < MAX_SIZE}, reverse=True)[:MOST_SIZES]


def _frozen(bench: Bench) -> Iterator[Conditions]:
    held = [one for one in bench.world.tensors if isinstance(one, torch.nn.Parameter)]
    if any(one.requires_grad for one in held):
        limit = "with frozen parameters"
        yield Conditions("all parameters frozen", mutate=_freeze, of_modules=True, beyond=limit)


def _freeze(held: list[torch.Tensor]) -> None:
    for tensor in held:
        if isinstance(tensor, torch.nn.Parameter):
            tensor.requires_grad_(False)


def _take_gradients(bench: Bench) -> bool:
    return any(tensor.is_floating_point() for tensor in bench.world.tensors)


def _both_ways(group: Iterable[Conditions]) -> Iterator[Conditions]:
    """Each input, and the gradients on it: a ``detach()`` may hang on a flag."""
    for conditions in group:
        yield conditions
        if not conditions.beyond:
            yield _with_gradients(conditions)


def _with_gradients(conditions: Conditions) -> Conditions:
    name, change = f"{conditions.name}, with gradients", inputs.to(torch.float64)
    return replace(conditions, name=name, change=change, gradients=True, other_dtypes=True)


def _unfrozen(bench: Bench) -> Iterator[Conditions]:
    if bench.world.frozen:
        limit = "with parameters that take gradients"
        yield Conditions("no parameter frozen", gradients=True, unfrozen=True, beyond=limit)


def numbers_in(bench: Bench, call: Call) -> Iterator[float]:
    """Numbers that the forms get or read: a value on such a limit tells as much as one in the code."""
    args, kwargs = call
    yield from (float(arg) for arg in (*args, *kwargs.values()) if type(arg) in (int, float))
    names = names_in(bench.forms)
    for _, content in bench.world.content:
        read = [value for name, value in content if name in names]
        listed = [one for value in read if type(value) in (list, tuple) for one in value[:_MOST_LISTED]]
        yield from (float(one) for one in (*read, *listed) if type(one) in (int, float))
