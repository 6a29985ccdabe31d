"""The proof of one rewritten function, over all calls that the script makes of it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch

from breakscope.inside.prove import inputs, modes, python_state, reach, smaller
from breakscope.inside.prove.attempt import (
    Call,
    Conditions,
    Outcome,
    UnreadableError,
    attempt,
    compare,
    ended,
)
from breakscope.inside.prove.beyond import beyond
from breakscope.inside.prove.claims import Claims
from breakscope.inside.prove.conditions import Condition
from breakscope.inside.prove.copies import NotCopiedError
from breakscope.inside.prove.novelty import Kinds, novelty
from breakscope.inside.prove.paths import bare
from breakscope.inside.prove.patience import EndlessError, Patience
from breakscope.inside.prove.picture import CODE, Apart, Comparer, Difference, largest
from breakscope.inside.prove.showing import shown
from breakscope.inside.prove.smaller import SmallWorld
from breakscope.inside.prove.structure import means_it
from breakscope.inside.prove.surroundings import Surroundings
from breakscope.inside.prove.world import TooLargeError, World

MAX_CAPTURED = 8
# The first calls are searched around, and get most of the time; the others are compared as they are.
SHARES = (0.5, 0.25)
SEARCHED = len(SHARES)
REST_SHARE = 0.25 / (MAX_CAPTURED - SEARCHED)
# Calls of one shape and the same scalars, whose values differ: most scripts have only one shape.
ALIKE = 3
# Of tensors that a call can reach; several copies of it exist at once.
MAX_BYTES = 4 * 2**30
# Each is compiled anew.
EDGES_COMPILED = 16
# Larger sizes of tensors take too long, and may fill the memory.
MAX_SIZE = 1024
# Inputs that lead where no values of the tensors do: edge values are tried around so many.
MOST_LEADING = 4
MOST_TEXTS = 8
MOST_SIZES = 6
# Relative to a tensor's largest value, where sums are taken in another order.
REASSOCIATED = 1e-5
# How long a test call may take: so many seconds, and so many times what the script's own arguments take. The
# new form gets more, because it is wrong where it does not end.
PATIENCE_S: Mapping[str, float] = {"watched": 2.0, "new": 20.0}
PATIENCE_TIMES = 20.0
EDGES = "edge values"
# Kinds that are only tried in small around a call like one around which they were tried in full size.
AS_BEFORE = ("gradients", "sequences")
ENDLESS = "inputs on which the old code does not end were left out"
TIME_IS_UP = "the time for the proof was up before every test input had been compared"

_TRUTHS = (bool, int, float, complex, str, bytes, type(None), list, tuple, dict, set)

Form = Literal["old", "watched", "new"]


def clock() -> float:
    """Seconds for the budget of a proof: those that this thread is at work, and an eighth of those that pass.

    So a machine that others use as well leaves a proof nearly all of its inputs, and one that waits does end.
    """
    return time.thread_time() + time.monotonic() / 8


@dataclass(slots=True)
class _Running:
    """Which form of all functions is being called for a comparison; None while the script runs.

    Attributes:
        inside: how many compared functions the script is in.
    """

    form: Form | None = None
    inside: int = 0


# One for all sessions: a function that calls another changed one calls its own form of it.
RUNNING = _Running()


@dataclass(slots=True)
class Session:
    """Compares the forms of one function.

    Attributes:
        calls: of the script. captured: of them, taken as test inputs. compared: pairs of test calls.
        rejected: test inputs that the old code itself does not take.
        apart: where the new form leaves a tensor of its own instead of one that is held elsewhere.
        asks: code that it can reach and that asks which tensor it has, by what it asks: ``id``, ``data_ptr``.
        surroundings: who called the function, and who listens to messages.
        limits: where what a rewrite relies on does not hold, and the forms differ, by what that is.
        untried: kinds of inputs of which none was tried when the time was up.
        mismatch: the first difference: the rewrite is wrong. breaks: it is that only the new code raises, or
            another one that no consent makes right.
        trouble: why it could not be compared.
        shared: conditions of functions that are compared through this one and others.
        only: the number of a captured call and the name of an input: nothing else is compared.
        found: where the forms part, for a reader: the input, and what each form gives.
        anybody: the patch is none of ours: a size may be written out in it.
        outside: calls of it that no compared function made: file and line.
        relies_on: global names that, meaning what they say, make the forms the same outside of compiled
            code, as their text shows; None: it does not show that.
        by_structure: that holds, and nothing was searched.
        left_out: test inputs that were not tried because those before them had nothing new to show, by kind.
    """

    name: str
    conditions: list[Condition]
    claims: Claims
    budget_s: float
    save: Callable[[], None]
    relies_on: frozenset[str] | None = None
    forms: dict[str, Callable[..., Any]] = field(default_factory=dict)
    calls: int = 0
    captured: int = 0
    compared: int = 0
    rejected: int = 0
    raising: int = 0
    mismatch: str | None = None
    breaks: bool = False
    trouble: str | None = None
    apart: dict[Apart, None] = field(default_factory=dict)
    asks: dict[str, str] = field(default_factory=dict)
    surroundings: Surroundings = field(default_factory=Surroundings)
    limits: dict[str, str] = field(default_factory=dict)
    untried: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    max_difference: float = 0.0
    shared: list[Condition] = field(default_factory=list)
    only: tuple[int, str] | None = None
    found: dict[str, Any] | None = None
    outside: dict[tuple[str, int], None] = field(default_factory=dict)
    anybody: bool = False
    by_structure: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    _seen: Counter[Any] = field(default_factory=Counter)
    _earlier: list[Call] = field(default_factory=list)
    _driving: dict[tuple[int, bool], Conditions] = field(default_factory=dict)
    _tried: set[str] = field(default_factory=set)
    _apart_paths: set[str] = field(default_factory=set)
    _saved: dict[str, set[str]] = field(default_factory=lambda: {"old": set(), "new": set()})
    _deadline: float = 0.0
    _spare_s: float = 0.0
    _shown: set[Any] = field(default_factory=set)
    _classes: Counter[Any] = field(default_factory=Counter)
    _new: bool = False
    _rows: set[Any] = field(default_factory=set)
    _small: int = 0
    _cut: dict[int, int] = field(default_factory=dict)
    _patience: Patience = field(default_factory=Patience)
    _usual_s: float = math.inf
    _endless: int = 0

    # -- what the paired module calls ------------------------------------------------------------

    def checked(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """What stands under the function's name in the proof run."""
        forms = {**self.forms, "old": old}
        # Mutable defaults are state that both forms share, as they would had there been only one.
        plain: Any = inspect.unwrap(old)
        for form in forms.keys() - {"old"}:
            function: Any = inspect.unwrap(forms[form])
            function.__defaults__ = plain.__defaults__
            function.__kwdefaults__ = plain.__kwdefaults__

        @functools.wraps(old)
        def call(*args: Any, **kwargs: Any) -> Any:
            if RUNNING.form is None and not torch.compiler.is_compiling():
                self._note_outside(sys._getframe(1))
                self.examine(forms, args, kwargs)
                RUNNING.inside += 1
                try:
                    return old(*args, **kwargs)
                finally:
                    RUNNING.inside -= 1
            return forms["new" if RUNNING.form == "new" else "old"](*args, **kwargs)

        call.__breakscope_old__ = old  # type: ignore[attr-defined]
        return call

    def through(self, old: Callable[..., Any]) -> Callable[..., Any]:
        """What stands under the name of a function that is compared through its callers."""
        forms = {**self.forms, "old": old}
        _note_watched(forms)

        @functools.wraps(old)
        def call(*args: Any, **kwargs: Any) -> Any:
            if RUNNING.form is None and not torch.compiler.is_compiling():
                self.calls += 1
                self._note_outside(sys._getframe(1))
                return old(*args, **kwargs)
            if RUNNING.form == "new":
                return forms["new" if torch.compiler.is_compiling() else "new_watched"](*args, **kwargs)
            return forms["watched" if RUNNING.form == "watched" else "old"](*args, **kwargs)

        call.__breakscope_old__ = old  # type: ignore[attr-defined]
        return call

    def limited(self, form: Form) -> contextlib.AbstractContextManager[None]:
        """Ends a test call that takes much longer than the script's own arguments do."""
        most = PATIENCE_S.get(form, math.inf)
        if form == "watched":
            most /= 1 + self._endless  # where one input has no end, others like it have none
        return self._patience.within(most + PATIENCE_TIMES * self._usual_s)

    def _note_outside(self, caller: Any) -> None:
        if not RUNNING.inside and len(self.outside) < 8:
            self.outside[caller.f_code.co_filename, caller.f_lineno] = None

    def condition(self, index: int, value: Any) -> Any:
        """Note which way a condition of the old form goes; hand it back."""
        condition = self.conditions[index]
        if isinstance(value, torch.Tensor):
            condition.kept |= condition.computed  # of elements: no way that code goes
            if value.numel() == 1 and not value.is_meta:
                condition.taken[bool(value.detach())] += 1
        elif type(value) in _TRUTHS:
            condition.taken[bool(value)] += 1
        else:
            condition.unknown = True
        return value

    # -- one call --------------------------------------------------------------------------------

    def examine(
        self, forms: dict[str, Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Compare the forms on one call of the script, unless it is like others that were compared."""
        self.calls += 1
        self.surroundings.note(sys._getframe(2))
        if self.mismatch or self.trouble or self.captured >= MAX_CAPTURED:
            return
        signature = _signature((args, kwargs))
        if self._seen[signature] >= ALIKE:
            return
        self._seen[signature] += 1
        self.captured += 1
        share = SHARES[self.captured - 1] if self.captured <= SEARCHED else REST_SHARE
        self._deadline, self._usual_s = clock() + self.budget_s * share + self._spare_s, math.inf
        try:
            with self._patience.looking():
                self._compare_all(forms, args, kwargs)
        except (NotCopiedError, TooLargeError) as error:
            self.trouble = f"its inputs cannot be copied: {error}"
        except (Exception, EndlessError) as error:  # noqa: BLE001 -- a failed proof must not end the script
            self.trouble = f"the proof failed: {type(error).__name__}: {error}"
        finally:
            RUNNING.form = None
        self._spare_s = max(0.0, self._deadline - clock())  # for the calls after it
        self.save()

    def _compare_all(
        self, forms: dict[str, Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        here: Call = (args, kwargs)
        old, new = forms["watched"], forms["new"]
        _note_watched(forms)
        ways = set(self._driving)
        roots = [*forms.values(), args, kwargs, *self._earlier]
        bench = _Bench(self, forms, [here], World(roots, MAX_BYTES))
        self.notes.update(
            {f"state that cannot be copied is left alone: {one}": None for one in bench.world.opaque}
        )
        plain = Conditions("the script's own arguments")
        self.asks.update(bench.world.asks)
        begin = time.monotonic()
        first = bench.run("watched", plain)
        self._usual_s = time.monotonic() - begin
        large = not self.anybody and bench.world.bytes > smaller.LARGE
        before = self._taken()
        with smaller.steps(large) as path:
            second = bench.run("watched", plain)
        # Not what is printed: torch says some things only once.
        unstable = compare(_quiet(first), _quiet(second), Comparer(0.0))
        if unstable is not None and unstable.aspect == CODE:
            self.trouble = unstable.text
            return
        if unstable is not None:
            self.trouble = f"the function does not do the same when it is called again: {unstable.text}"
            return
        if not self._agree(bench, plain, "captured", done=(before, second)):
            return
        alike = _classified(here)
        self._classes[alike] += 1
        again = self._classes[alike] > 1
        known = self._classes[alike] > ALIKE and not self.anybody
        same = self.relies_on is not None and means_it(inspect.unwrap(new), self.relies_on)
        self.by_structure = same and (self.by_structure or self.captured == 1)
        # What the script did not give is tried in small; what it did, and the first of a kind, as it is.
        invented = replace(bench, small=self._in_small(bench, roots, second, path)) if large else bench
        if same:
            self._by_structure(bench, invented, plain, again=again)
            return
        for double in (False,) if known else (False, True):
            if not self._gradients(invented if again else bench, double=double):
                break
        self._sequences(invented, here)
        if self.captured <= SEARCHED:
            constants = (*reach.constants_in(_code(old)), *reach.constants_in(_code(new)))
            constants = (*constants, *_numbers(bench, here))
            self._give_arguments(bench)
            self._search(invented, constants, again=again)
            if invented.small is not None and not self._enough_driven():
                self._search(bench, constants, again=again)
        if known and self._driving.keys() == ways:  # no new way to see in the compiled form
            self.left_out["calls of a kind that was compiled before"] += 1
        else:
            self._saves(invented if again else bench, plain)
            self._compiled(bench, plain)
        self._earlier = [*self._earlier, _kept(here)][-2:]

    def _by_structure(self, bench: _Bench, invented: _Bench, plain: Conditions, *, again: bool) -> None:
        """What is left to compare where both forms are the same by their text: how the new one compiles."""
        self._gradients(invented, double=False)
        if not again:
            self._compiled(bench, plain)

    def _gradients(self, bench: _Bench, *, double: bool) -> bool:
        """In the script's dtype, or in float64. False if nothing more is to be compared.

        In the script's own dtype they are what it asks for itself, where it trains.
        """
        name, change = (" in float64", inputs.to(torch.float64)) if double else ("", torch.clone)
        if torch.is_grad_enabled() and not double:
            bench = replace(bench, small=None)
        conditions = Conditions(f"gradients{name}", change, gradients=True, other_dtypes=double)
        return self._agree(bench, conditions, "gradients", skip_raising=True)

    def _sequences(self, bench: _Bench, here: Call) -> None:
        """Several calls, one after the other, to see what one leaves behind for the next."""
        orders = [[here, here], *([one, here, one] for one in self._earlier)]
        orders += [[here, one, here] for one in self._earlier]
        for order in orders:
            kinds = tuple(map(_signature, order))
            row = replace(bench, calls=order, small=bench.small if kinds in self._rows else None)
            self._rows.add(kinds)
            if not self._agree(row, Conditions(f"{len(order)} calls in a row"), "sequences"):
                return

    def _search(self, bench: _Bench, constants: Iterable[float], *, again: bool) -> None:
        """Look for an input that tells the forms apart; ``again``: around a second call of one kind."""
        given = [tensor for tensor in bench.world.tensors if id(tensor) in bench.world.given]
        constants = tuple(constants)
        # Kind, inputs, whether those are left out on which the old form raises, whether the kind may end
        # early. Edge values never do, and no kind does for a patch of which nothing is believed.
        again = again and not self.anybody
        around = python_state.held(bench.world, self._labels(bench)) if self.anybody else ()
        unlike = itertools.chain(
            around, _unfrozen(bench), beyond(bench.forms["old"], bench.calls, _names(bench.forms))
        )
        texts = self._texts(bench)
        state = python_state.states(bench.world, self._labels(bench), constants, texts)
        groups: list[tuple[str, Iterator[Conditions], bool, bool]] = [
            (EDGES, inputs.values(given, constants, gradients=False), False, False),
            ("edge values with gradients", inputs.values(given, constants, gradients=True), True, again),
            ("random seeds", inputs.seeds(), False, again),
            ("other shapes", self._shapes(bench, constants), True, again),
            ("other scalars", inputs.scalars(bench.calls), True, again),
            ("other state in Python", state, True, again),
            ("other dtypes", inputs.dtypes(), True, False),
            ("inputs unlike the script's", unlike, True, again),
        ]
        if self.anybody:
            held = inputs.states(len(bench.world.tensors) - len(given))
            defaults = inputs.defaults(bench.forms["old"], bench.calls)
            groups.append(("other defaults", defaults, True, False))
            groups.append(("other texts", inputs.texts(bench.calls, texts), True, False))
            groups.append(("other lengths", inputs.lengths(bench.forms["old"], bench.calls), True, False))
            groups.append(("numbers in containers", inputs.inside(bench.calls), True, False))
            groups.append(("values of what is held", held, True, False))
        # In turns, so that a proof that runs out of time has seen something of every kind, and all edge
        # values: what is wrong on NaN alone must not be proved because the machine is slow.
        self.untried = dict.fromkeys(kind for kind, *_ in groups if kind not in self._tried)
        learning = Kinds()
        while groups:
            for one in list(groups):
                kind, group, skip_raising, ends = one
                needed = kind == EDGES
                if not needed and clock() > self._deadline:
                    self.notes[TIME_IS_UP] = None
                    groups.remove(one)
                    continue
                conditions = next(group, None)
                if conditions is not None and ends and learning.ended(kind) and self._driven():
                    self.left_out[kind] += 1 + sum(1 for _ in group)
                    conditions = None
                if conditions is None:
                    groups.remove(one)
                elif self._agree(bench, conditions, kind, skip_raising=skip_raising, needed=needed):
                    learning.note(kind, new=self._new)
                else:
                    return
                self._tried.add(kind)
                self.untried.pop(kind, None)
        for conditions in self._elsewhere(constants):
            if not self._agree(bench, conditions, "edge values where another input leads", skip_raising=True):
                return
        count = len(bench.world.tensors) - len(given)
        for conditions in itertools.chain(
            inputs.states_together() if count > 1 else (), inputs.states(count)
        ):
            if self._driven() or not self._agree(bench, conditions, "values of parameters"):
                return

    def _elsewhere(self, constants: Sequence[float]) -> Iterator[Conditions]:
        """Edge values on ways to which no values lead: behind a dtype, a size, a flag, a number."""
        found = [one for one in self._inputs_that_drive() if one.leads]
        for one, (name, fill) in itertools.product(found[:MOST_LEADING], inputs.fills(constants)):
            yield replace(one, name=f"{name}, {one.name}", mutate=fill)

    def _give_arguments(self, bench: _Bench) -> None:
        """Drive checks of what the function makes itself: few inputs, and no others drive those."""
        if self._driven():
            return
        for conditions in self._given_instead(bench):
            if self._driven() or not self._agree(bench, conditions, "arguments left out"):
                return

    def _given_instead(self, bench: _Bench) -> Iterator[Conditions]:
        """Tensors for arguments that are None in the script, and that the function then makes itself.

        ``if lengths is None: lengths = ...``: what is asked of them further down, only such a call can drive.
        """
        code = _code(bench.forms["old"])
        keys = inputs.left_out(inspect.unwrap(bench.forms["old"]), bench.calls)
        made: dict[str, torch.Tensor] = {}

        def note(frame: Any, event: str, _result: Any) -> None:
            if event == "return" and frame.f_code is code:
                local = frame.f_locals
                found = {name: local[name] for name in keys if isinstance(local.get(name), torch.Tensor)}
                made.update({name: tensor.detach().clone() for name, tensor in found.items()})

        if sys.getprofile() is not None:
            return  # the script is profiled, by what cannot be put back
        sys.setprofile(note)
        try:
            bench.run("old", Conditions("what the function makes"))
        finally:
            sys.setprofile(None)
        for name, tensor in made.items():
            yield from inputs.given(name, keys[name], tensor)

    def _labels(self, bench: _Bench) -> frozenset[str]:
        """Names and keys under which the forms may read a number that is state."""
        names = _names(bench.forms)
        if not self.anybody:
            return names
        codes = [_code(bench.forms[form]) for form in ("watched", "new")]
        return names | {text for code in codes for text in reach.texts_in(code)}

    def _texts(self, bench: _Bench) -> list[str]:
        """Texts of the code that a patch by anybody may decide by."""
        if not self.anybody:
            return []
        codes = [_code(bench.forms[form]) for form in ("watched", "new")]
        # Not sentences, nor what is nobody's name for anything.
        found = dict.fromkeys(text for code in codes for text in reach.texts_in(code) if text.isidentifier())
        return list(found)[:MOST_TEXTS]

    def _shapes(self, bench: _Bench, constants: Iterable[float]) -> Iterator[Conditions]:
        return inputs.shapes(bench.calls, self._sizes(bench, constants), large=self.anybody)

    def _sizes(self, bench: _Bench, constants: Iterable[float]) -> list[int]:
        """Sizes that a patch by anybody may stop at: numbers of its code, and sizes of what modules hold."""
        if not self.anybody:
            return []
        held = [
            size
            for tensor in bench.world.tensors
            if id(tensor) not in bench.world.given
            for size in tensor.shape
        ]
        wanted = [
            *(
                int(constant)
                for constant in constants
                if constant == constant // 1 and abs(constant) < MAX_SIZE
            ),
            *held,
        ]
        return sorted({one for one in wanted if 1 < one < MAX_SIZE}, reverse=True)[:MOST_SIZES]

    def _saves(self, bench: _Bench, plain: Conditions) -> None:
        """Compare what the forms save for the way back: who writes to it gets an exception.

        What either branch of the old form saves, its caller has to leave alone anyway. Where autograd is off
        nothing is saved, if the rewrite relies on that.
        """
        if self.claims.no_gradients and not torch.is_grad_enabled():
            return
        world, known = bench.small, {form: set(paths) for form, paths in self._saved.items()}
        before = self._taken()
        here = bench if world is None else _small(bench, world)
        for conditions in [plain, *self._inputs_that_drive()]:
            if self.mismatch:
                return
            if self._too_late("what the way back needs"):
                return
            noting = replace(conditions, gradients=True, saved=True)
            noting = noting if world is None else world.translated(noting)
            with contextlib.suppress(UnreadableError):
                old, new = here.run("watched", noting), here.run("new", noting)
                if not old.raised:
                    self._saved["old"] |= old.saved
                    self._saved["new"] |= new.saved
        more = sorted(self._saved["new"] - self._saved["old"])
        if world is not None:
            self._saved = known
            self._forget(before)
            if more:
                self._saves(replace(bench, small=None), plain)
        elif more:
            self.mismatch = (
                f"the way back now needs `{more[0]}` as it is at the call: who writes to it between the call "
                "and backward() gets an exception"
            )
            self._show(bench, plain, None, None)

    def _show(
        self,
        bench: _Bench,
        conditions: Conditions,
        old: Outcome | None,
        new: Outcome | None,
        *,
        compiled: bool = False,
    ) -> None:
        """Keep what tells the forms apart for a reader."""
        look: list[str] = []
        with contextlib.suppress(Exception):  # it was called in this way before: only the looking is new
            bench.run("old", replace(conditions, look=look))
        name = f"compiled: {conditions.name}" if compiled else conditions.name
        self.found = {
            "call": self.captured,
            "input": name,
            "arguments": look,
            "old": shown(old) if old is not None else [],
            "new": shown(new) if new is not None else [],
        }

    def _comparer(self, conditions: Conditions) -> Comparer:
        unwanted = self.claims.no_gradients and conditions.gradients
        tolerance = 0.0 if self.claims.exact else REASSOCIATED
        return Comparer(tolerance, self.claims.unaliased, self.claims.zeros, unwanted)

    @property
    def _watched(self) -> list[Condition]:
        return [*self.conditions, *self.shared]

    def _driven(self) -> bool:
        return all(condition.driven for condition in self._watched)

    def _enough_driven(self) -> bool:
        """As :meth:`_driven`, but for operands without which there is a proof too, as fix.judge has it."""
        left = {condition.text for condition in self._watched if not condition.driven}
        whole = {condition.text for condition in self._watched} - left
        return all(one.driven or (one.operand_of in whole and one.taken) for one in self._watched)

    def _agree(
        self,
        bench: _Bench,
        conditions: Conditions,
        kind: str,
        *,
        skip_raising: bool = False,
        needed: bool = False,
        done: tuple[Sequence[Counter[bool]], Outcome] | None = None,
    ) -> bool:
        """Compare under some conditions. False if nothing more is to be compared.

        Args:
            done: what the old form came to, where it was called so before, and the ways taken until then.
            skip_raising: the old code may not take these inputs at all; then nothing is compared.
            needed: there is no proof without it.
        """
        self._new = False
        if self.mismatch or conditions.beyond in self.limits:
            return not self.mismatch
        if self._too_late(kind, needed):
            return False
        left_out = self.only is not None and self.only != (self.captured, conditions.name)
        if left_out or self._agree_in_small(bench, conditions, kind):
            return True
        before, old = done or (self._taken(), self._old(bench, conditions))
        if old is None:
            return self._rejected(before)
        shown = novelty(old, self._ways(before))
        self._new = self._new or shown not in self._shown
        self._shown.add(shown)
        if old.raised and skip_raising:
            return self._rejected(before)
        new = self._new_form(bench, conditions, old)
        if new is None:
            return False
        if conditions.beyond and not conditions.words:
            # What is printed is left out: torch says some things only once.
            old, new = _quiet(old), _quiet(new)
        comparer = self._comparer(conditions)
        found = compare(old, new, comparer)
        if found is not None and self._found_apart(comparer):
            return self._agree(bench, conditions, kind, skip_raising=skip_raising, needed=needed)
        if found is not None and (limit := self._limit(conditions, found)):
            text = found.text.splitlines()[0][:160]
            self._new = self._new or limit not in self.limits
            self.limits.setdefault(limit, f"{limit} ({conditions.name}): {text}")
            self._forget(before)
            return True
        if found is not None and found.aspect == CODE:
            self.trouble = found.text
            return False
        if found is not None:
            self.mismatch, self.breaks = f"on {conditions.name}: {found.text}", found.aspect == "raised"
            self._show(bench, conditions, old, new)
            return False
        self.limits |= {**self._limits_beyond(conditions, old, new), **self.limits}
        self._count(old, new, comparer, kind)
        self._note_driving(before, conditions)
        return True

    def _in_small(
        self, bench: _Bench, roots: Sequence[Any], full: Outcome, path: set[tuple[int, int]]
    ) -> SmallWorld | None:
        """The world of a call in small, in which the old form does what it does in full size."""
        plain = Conditions("the script's own arguments")
        before = self._taken()
        own = id(_code(bench.forms["watched"]))
        for world in smaller.worlds(bench.world, roots) if own in dict(path) else ():
            with contextlib.suppress(Exception, EndlessError), smaller.steps() as steps:
                found = _small(bench, world).run("watched", plain)
                if steps == path and smaller.alike(full, found, world.sizes):
                    self._forget(before)
                    return world
        self._forget(before)
        return None

    def _agree_in_small(self, bench: _Bench, conditions: Conditions, kind: str) -> bool:
        """Compare in small, where that can be. False: look at it in full size.

        So it is with the first input that takes a way, raises, leaves a result of a new kind or meets a
        limit, and with all on which the forms differ, be it in small alone.
        """
        if bench.small is None:
            return False
        world, before = bench.small, self._taken()
        agree = False
        try:
            agree = self._alike_in_small(_small(bench, world), world.translated(conditions), before, kind)
        except (Exception, EndlessError):  # noqa: BLE001 -- in full size it is told what that is
            agree = False
        if not agree:
            self._forget(before)
            return False
        self._small += 1
        self._cut = {**world.sizes, **self._cut}
        return True

    def _alike_in_small(
        self, small: _Bench, conditions: Conditions, before: Sequence[Counter[bool]], kind: str
    ) -> bool:
        old = small.run("watched", conditions)
        shown = novelty(old, self._ways(before))
        self._new = shown not in self._shown
        self._shown.add(shown)
        unseen = any(one.taken.keys() - was.keys() for one, was in zip(self._watched, before, strict=True))
        if unseen or old.raised or (self._new and kind not in AS_BEFORE):
            return False
        new = small.run("new", conditions)
        if conditions.beyond and not conditions.words:
            old, new = _quiet(old), _quiet(new)
        comparer = self._comparer(conditions)
        if compare(old, new, comparer) is not None:
            return False
        apart = {path for one in comparer.apart for path in (one.path, one.holder)}
        limits = self._limits_beyond(conditions, old, new)
        if not apart <= self._apart_paths or not limits.keys() <= self.limits.keys():
            return False
        self._count(old, new, comparer, kind)
        return True

    def _limits_beyond(self, conditions: Conditions, old: Outcome, new: Outcome) -> dict[str, str]:
        """Limits where somebody beyond the call can tell which tensor was written to, or is in its place."""
        found: dict[str, str] = {}
        for path in sorted(new.written - old.written)[:1]:
            # Autograd counts a write as a change, whatever is written.
            limit = f"where an earlier call waits for its backward(): the new code writes to `{bare(path)}`"
            found["written"] = (
                f"{limit} where the old one does not ({conditions.name}), and that raises there"
            )
        places = new.picture.kept
        for path in [at for at, tensor in old.picture.kept.items() if places.get(at) != tensor][:1]:
            limit = f"where somebody else holds `{bare(path)}` itself: the new code leaves another there"
            found["replaced"] = f"{limit} ({conditions.name})"
        return found

    def _old(self, bench: _Bench, conditions: Conditions) -> Outcome | None:
        """What the old form came to; None where that cannot be looked at, or where it does not end."""
        try:
            return bench.run("watched", conditions)
        except UnreadableError:
            return None
        except EndlessError:
            self.notes[ENDLESS] = None
            self._endless += 1
            return None

    def _new_form(self, bench: _Bench, conditions: Conditions, old: Outcome) -> Outcome | None:
        """What the new form came to; None where it does not end, which the old one did."""
        try:
            return bench.run("new", conditions)
        except EndlessError:
            self.mismatch = f"on {conditions.name}: the old code {ended(old)}, the new one does not end"
            self.breaks = True
            self._show(bench, conditions, old, None)
            return None

    def _taken(self) -> list[Counter[bool]]:
        """Which ways test calls have taken up to now, by condition."""
        return [Counter(condition.taken) for condition in self._watched]

    def _note_driving(self, before: Sequence[Counter[bool]], conditions: Conditions) -> None:
        """Remember the first input that drove each condition each way."""
        for index, condition in enumerate(self._watched):
            for way in (True, False):
                if condition.taken[way] > before[index][way]:
                    self._driving.setdefault((index, way), conditions)

    def _ways(self, before: Sequence[Counter[bool]]) -> tuple[tuple[bool, bool], ...]:
        """Which ways a test call took, condition by condition."""
        pairs = zip(self._watched, before, strict=True)
        return tuple((one.taken[True] > was[True], one.taken[False] > was[False]) for one, was in pairs)

    def _found_apart(self, comparer: Comparer) -> bool:
        """Take up where the forms leave different objects; whether any place is new."""
        before = len(self._apart_paths)
        self._apart_paths |= {path for one in comparer.apart for path in (one.path, one.holder)}
        return len(self._apart_paths) > before

    def _count(self, old: Outcome, new: Outcome, comparer: Comparer, kind: str) -> None:
        """Count a pair of calls that agree."""
        self.apart.update(dict.fromkeys(comparer.apart))
        self.compared += 1
        self.raising += bool(old.raised)
        self.kinds[kind] += 1
        self.max_difference = max(self.max_difference, largest(old.picture.entries, new.picture.entries))
        if any(gradient is not None for gradient in old.gradients):
            self.kinds["calls with gradients"] += 1

    def _limit(self, conditions: Conditions, found: Difference) -> str:
        """What does not hold in a test, if it is something that the rewrite relies on; else ""."""
        if conditions.other_dtypes and found.aspect == "dtype" and self.claims.conditional:
            return "in other dtypes"
        if found.aspect == "requires_grad" and self.claims.sums and "True, now False" in found.text:
            return "where nothing that is added takes gradients"
        if found.aspect == "raised" and conditions.number in self.claims.numbers:
            return f"with another `{conditions.number}`"
        return conditions.beyond

    def _rejected(self, before: Sequence[Counter[bool]]) -> bool:
        """Leave an input out that the old form does not take."""
        self.rejected += 1
        self._forget(before)
        return True

    def _forget(self, before: Sequence[Counter[bool]]) -> None:
        """The ways that an input took count for nothing."""
        for condition, taken in zip(self._watched, before, strict=True):
            condition.taken = taken

    def _compiled(self, bench: _Bench, plain: Conditions) -> None:
        """The new form under Dynamo against the old one as it is, on inputs that go every way."""
        compiled = _compiling(torch.compile(bench.forms["new"], backend="eager"))
        driving = len(self._inputs_that_drive())
        needed = 1 + driving + (1 + driving if self.claims.compiled_only else 0)
        for number, conditions in enumerate(self._to_compile(bench, plain)):
            if self.mismatch or (conditions is not plain and self._too_late("compiled", number < needed)):
                return
            if self.only is not None and self.only != (self.captured, f"compiled: {conditions.name}"):
                continue
            try:
                old = bench.run("watched", conditions)
            except UnreadableError:
                continue
            if conditions.gradients and (old.raised or old.backward_failed):
                continue
            torch.compiler.reset()
            new = bench.run("new", conditions, compiled)
            # What is printed while compiling is what the rewrite's notes are about.
            comparer = self._comparer(conditions)
            raised = bool(old.raised and new.raised)
            if raised and not self.claims.raises:
                self.kinds["compiled by Dynamo"] += 1
                continue
            # The exception of a check in the graph is of another type: that is for the caller to know.
            found = compare(_quiet(old, raised=raised), _quiet(new, raised=raised), comparer)
            if found is not None and self.by_structure:
                # Where Python runs them both forms are the same: it may be the compiler that does otherwise.
                torch.compiler.reset()
                same = _compiling(torch.compile(bench.forms["old"], backend="eager"))
                compiled_old = bench.run("old", conditions, same)
                found = compare(_quiet(compiled_old), _quiet(new), comparer) and found
            if found is not None:
                when = ", after its exception" if raised else ""
                self.mismatch = f"compiled by Dynamo, on {conditions.name}{when}: {found.text}"
                # Nothing but gradients of zero is what a rewrite for compiled code asks consent to.
                self.breaks = found.aspect == "raised" or self.claims.compiled_only
                self._show(bench, conditions, old, new, compiled=True)
                return
            self.apart.update(dict.fromkeys(comparer.apart))
            self.kinds["compiled by Dynamo"] += 1
            if conditions.gradients and any(gradient is not None for gradient in old.gradients):
                self.kinds["calls with gradients"] += 1

    def _inputs_that_drive(self) -> list[Conditions]:
        """Inputs that take the conditions of the old form every way that was found."""
        return list({id(one): one for one in self._driving.values()}.values())

    def _too_late(self, what: str, needed: bool = True) -> bool:
        """Whether the time is up for a comparison. The search may have used all of it.

        What is needed for a proof gets as much time again; where that does not do either, there is no proof.
        """
        if clock() <= self._deadline + (self.budget_s if needed else 0):
            return False
        self.notes[TIME_IS_UP] = None
        if needed:
            self.untried[what] = None
        return True

    def _to_compile(self, bench: _Bench, plain: Conditions) -> Iterator[Conditions]:
        searched = self.captured <= SEARCHED
        driving = self._inputs_that_drive() if searched else []
        yield plain
        yield from (one for one in driving if not one.gradients)
        if not self.claims.compiled_only:
            return
        for one in [plain, *driving]:
            name = one.name if one.gradients else f"{one.name}, with gradients"
            yield replace(one, name=name, gradients=True)
        if searched:
            given = [tensor for tensor in bench.world.tensors if id(tensor) in bench.world.given]
            yield from itertools.islice(inputs.values(given, (), gradients=False), EDGES_COMPILED)

    # -- what came of it -------------------------------------------------------------------------

    def result(self) -> dict[str, Any]:
        """For the report."""
        return {
            "function": self.name,
            "calls": self.calls,
            "captured": self.captured,
            "compared": self.compared,
            "rejected": self.rejected,
            "raising": self.raising,
            "kinds": dict(self.kinds),
            "max_difference": self.max_difference,
            "conditions": [
                {
                    "text": condition.text,
                    "operand_of": condition.operand_of,
                    "unknown": condition.unknown,
                    "true": condition.taken[True],
                    "false": condition.taken[False] or int(condition.block),
                }
                for condition in self.conditions
                if not condition.kept and not self.by_structure  # both forms have it, or a message has
            ],
            "mismatch": self.mismatch,
            "breaks": self.breaks,
            "ran_out": TIME_IS_UP in self.notes,
            "trouble": self.trouble,
            "by_structure": self.by_structure,
            "left_out": dict(self.left_out),
            "limits": [*self.limits.values(), *self._never()],
            "found": self.found,
            "outside": [list(place) for place in self.outside],
            "untried": list(self.untried),
            "apart": [[one.path, one.holder] for one in self.apart][:20],
            "asks": self.asks,
            **self.surroundings.result(),
            "notes": [*self.notes, *self._told_of_small()],
        }

    def _told_of_small(self) -> Iterator[str]:
        if self._small:
            sizes = ", ".join(f"{less} for {size}" for size, less in sorted(self._cut.items()))
            yield f"{self._small} inputs that the script did not give were tried in small: sizes {sizes}"

    def _never(self) -> list[str]:
        """Code that both forms have and that no input drove: what the patch does to it is not known."""
        ways = [
            (condition.text, way)
            for condition in self.conditions
            # What is computed of elements goes no way.
            if condition.kept and (condition.taken or not condition.computed)
            for way in condition.ways_left
        ]
        return [f"`{text}` was never {str(way).lower()}: nothing was compared there" for text, way in ways]


@dataclass(slots=True)
class _Bench:
    """Where test calls of one captured call are made; ``small``: with what the script did not give."""

    session: Session
    forms: dict[str, Callable[..., Any]]
    calls: Sequence[Call]
    world: World
    small: SmallWorld | None = None

    def run(self, form: Form, conditions: Conditions, function: Callable[..., Any] | None = None) -> Outcome:
        RUNNING.form = form
        try:
            return attempt(
                function or self.forms.get(f"{form}_watched", self.forms[form]),
                self.world,
                self.calls,
                conditions,
                self.session.claims.early,
                self.session._apart_paths,
                # What is compiled takes its time, and ends where the old form does.
                partial(self.session.limited, form) if function is None else contextlib.nullcontext,
            )
        finally:
            RUNNING.form = None


def _small(bench: _Bench, world: SmallWorld) -> _Bench:
    return replace(bench, world=world, calls=[world.cut(call) for call in bench.calls], small=None)


def _compiling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Dynamo compiles, in a run that is eager.

    Asked for inside the call: a function that calls a compiled one can reach the stance, and what can be
    reached is put back before the call.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("default"):
            return function(*args, **kwargs)

    return call


def _unfrozen(bench: _Bench) -> Iterator[Conditions]:
    if bench.world.frozen:
        limit = "with parameters that take gradients"
        yield Conditions("no parameter frozen", gradients=True, unfrozen=True, beyond=limit)


def _quiet(outcome: Outcome, *, raised: bool = False) -> Outcome:
    """Without what is printed, as torch says some things only once; ``raised``: without the exception."""
    outcome = replace(outcome, printed="", modes=modes.lasting(outcome.modes))
    return replace(outcome, raised=None, error=()) if raised else outcome


def _names(forms: Mapping[str, Callable[..., Any]]) -> frozenset[str]:
    """Every name that the forms of a function mention."""
    return frozenset(name for form in ("watched", "new") for name in reach.names_in(_code(forms[form])))


def _numbers(bench: _Bench, call: Call) -> Iterator[float]:
    """Numbers that the forms get or read: a value on such a limit tells as much as one in the code."""
    args, kwargs = call
    yield from (float(arg) for arg in (*args, *kwargs.values()) if type(arg) in (int, float))
    names = _names(bench.forms)
    for _, content in bench.world.content:
        yield from (float(one) for name, one in content if name in names and type(one) in (int, float))


def _note_watched(forms: Mapping[str, Callable[..., Any]]) -> None:
    """Functions that a watched form makes are those that it would make unwatched."""
    for watched, plain in (("watched", "old"), ("new_watched", "new")):
        if watched in forms:
            reach.note_watched(_code(forms[watched]), _code(forms[plain]))


def _code(function: Callable[..., Any]) -> Any:
    return inspect.unwrap(function).__code__


def _kept(call: Call) -> Call:
    """A call to be made again later: its tensors as they are now."""
    with torch.inference_mode(False), torch.no_grad():
        args, kwargs = inputs.rebuilt(call, lambda tensor: tensor.detach().clone())
    return args, kwargs


def _classified(value: Any) -> Any:
    """What makes two calls of one kind: as :func:`_signature`, with sizes only told 0 and 1 from more."""
    if isinstance(value, torch.Tensor):
        sizes = tuple(min(size, 2) for size in value.shape)
        return (value.dtype, sizes, value.device.type, value.requires_grad)
    if isinstance(value, dict):
        return tuple((key, _classified(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_classified(item) for item in value)
    return _signature(value)


def _signature(value: Any) -> Any:
    """What makes two calls alike: the shapes, dtypes and flags of tensors, and all scalars."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.device.type, value.requires_grad)
    if isinstance(value, dict):
        return tuple((key, _signature(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_signature(item) for item in value)
    if isinstance(value, torch.nn.Module):
        return (type(value), value.training)
    return (type(value), repr(value)) if reach.is_scalar(value) else type(value)
