"""The proof of one rewritten function, over all calls that the script makes of it."""

from __future__ import annotations

import functools
import inspect
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from breakscope.inside.prove import compiled, inputs, outcomes, reach, smaller
from breakscope.inside.prove.attempt import Call, Conditions
from breakscope.inside.prove.bench import RUNNING, Bench, code_of, note_watched
from breakscope.inside.prove.budget import MAX_CAPTURED, SEARCHED, Allowance, Budget
from breakscope.inside.prove.comparing import Comparing
from breakscope.inside.prove.copies import NotCopiedError
from breakscope.inside.prove.likeness import classified, signature
from breakscope.inside.prove.patience import EndlessError
from breakscope.inside.prove.picture import CODE, Comparer
from breakscope.inside.prove.search import Search, numbers_in
from breakscope.inside.prove.structure import means_it
from breakscope.inside.prove.tally import Tally
from breakscope.inside.prove.way_back import WayBack
from breakscope.inside.prove.world import TooLargeError, World

# Calls of one shape and the same scalars, whose values differ: most scripts have only one shape.
ALIKE = 3
MOST_IN_A_ROW = 128
# Of tensors that a call can reach; several copies of it exist at once.
MAX_BYTES = 4 * 2**30


@dataclass(slots=True)
class Session:
    """Compares the forms of one function.

    Attributes:
        save: called whenever a call of the script has been compared.
        relies_on: global names that, meaning what they say, make the forms the same outside of compiled
            code, as their text shows; None: it does not show that.
    """

    tally: Tally
    budget: Budget
    save: Callable[[], None]
    relies_on: frozenset[str] | None = None
    forms: dict[str, Callable[..., Any]] = field(default_factory=dict)
    allowance: Allowance = field(default_factory=Allowance)
    comparing: Comparing = field(init=False)
    search: Search = field(init=False)
    way_back: WayBack = field(init=False)
    _seen: Counter[Any] = field(default_factory=Counter)
    _earlier: list[Call] = field(default_factory=list)
    _classes: Counter[Any] = field(default_factory=Counter)
    _rows: set[Any] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.comparing = Comparing(self.tally, self.budget, self.allowance)
        self.search = Search(self.tally, self.comparing)
        self.way_back = WayBack(self.tally, self.comparing)

    @property
    def _is_first(self) -> bool:
        """Whether the first call is looked at, of which no proof leaves out a kind of comparison."""
        return self.tally.captured == 1

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
        note_watched(forms)

        @functools.wraps(old)
        def call(*args: Any, **kwargs: Any) -> Any:
            if RUNNING.form is None and not torch.compiler.is_compiling():
                self.tally.calls += 1
                self._note_outside(sys._getframe(1))
                return old(*args, **kwargs)
            if RUNNING.form == "new":
                return forms["new" if torch.compiler.is_compiling() else "new_watched"](*args, **kwargs)
            return forms["watched" if RUNNING.form == "watched" else "old"](*args, **kwargs)

        call.__breakscope_old__ = old  # type: ignore[attr-defined]
        return call

    def _note_outside(self, caller: Any) -> None:
        if not RUNNING.inside and len(self.tally.outside) < 8:
            self.tally.outside[caller.f_code.co_filename, caller.f_lineno] = None

    # -- one call --------------------------------------------------------------------------------

    def examine(
        self, forms: dict[str, Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Compare the forms on one call of the script, unless it is like others that were compared."""
        self.tally.calls += 1
        self.tally.surroundings.note(sys._getframe(2))
        if self.tally.mismatch or self.tally.trouble or self.tally.captured >= MAX_CAPTURED:
            return
        alike = signature((args, kwargs))
        if self._seen[alike] >= ALIKE:
            return
        self._seen[alike] += 1
        self.tally.captured += 1
        self.budget.begin(self.tally.captured)
        self.allowance.usual_s = math.inf
        try:
            with self.allowance.patience.looking():
                self._compare_all(forms, args, kwargs)
        except (NotCopiedError, TooLargeError) as error:
            self.tally.trouble = f"its inputs cannot be copied: {error}"
        except (Exception, EndlessError) as error:  # noqa: BLE001 -- a failed proof must not end the script
            self.tally.trouble = f"the proof failed: {type(error).__name__}: {error}"
        finally:
            RUNNING.form = None
        self.budget.end()
        self.save()

    def _compare_all(
        self, forms: dict[str, Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        here: Call = (args, kwargs)
        old, new = forms["watched"], forms["new"]
        note_watched(forms)
        ways = set(self.tally.driving)
        roots = [*forms.values(), args, kwargs, *self._earlier]
        bench = Bench(self.tally, self.allowance, forms, [here], World(roots, MAX_BYTES))
        self.tally.notes.update(
            {f"state that cannot be copied is left alone: {one}": None for one in bench.world.opaque}
        )
        plain = Conditions("the script's own arguments")
        self.tally.asks.update(bench.world.asks)
        begin = time.monotonic()
        first = bench.run("watched", plain)
        self.allowance.usual_s = time.monotonic() - begin
        large = not self.tally.anybody and bench.world.bytes > smaller.LARGE
        before = self.tally.taken()
        with smaller.steps(large) as path:
            second = bench.run("watched", plain)
        # Not what is printed: torch says some things only once.
        unstable = outcomes.compare(outcomes.quiet(first), outcomes.quiet(second), Comparer(0.0))
        if unstable is not None and unstable.aspect == CODE:
            self.tally.trouble = unstable.text
            return
        if unstable is not None:
            self.tally.trouble = f"the function does not do the same when it is called again: {unstable.text}"
            return
        done = (before, second)
        if not self.comparing.agree(bench, plain, "captured", needed=self._is_first, done=done):
            return
        alike = classified(here)
        self._classes[alike] += 1
        again = self._classes[alike] > 1
        known = self._classes[alike] > ALIKE and not self.tally.anybody
        same = self.relies_on is not None and means_it(inspect.unwrap(new), self.relies_on)
        self.tally.by_structure = same and (self.tally.by_structure or self.tally.captured == 1)
        # What the script did not give is tried in small; what it did, and the first of a kind, as it is.
        invented = (
            replace(bench, small=self.comparing.find_small(bench, roots, second, path)) if large else bench
        )
        if same:
            self._by_structure(bench, invented, plain, again=again)
            return
        for double in (False,) if known else (False, True):
            if not self._gradients(invented if again else bench, double=double):
                break
        constants = (*reach.constants_in(code_of(old)), *reach.constants_in(code_of(new)))
        self._sequences(invented, here, constants)
        if self.tally.captured <= SEARCHED:
            constants = (*constants, *numbers_in(bench, here))
            self.search.give_arguments(bench)
            self.search.around(invented, constants, again=again)
            if invented.small is not None and not self.tally.enough_driven():
                self.search.around(bench, constants, again=again)
        if known and self.tally.driving.keys() == ways:  # no new way to see in the compiled form
            self.tally.left_out["calls of a kind that was compiled before"] += 1
        else:
            self.way_back.compare(invented if again else bench, plain)
            compiled.compare_compiled(self.comparing, bench, plain)
        self._earlier = [*self._earlier, kept(here)][-2:]

    def _by_structure(self, bench: Bench, invented: Bench, plain: Conditions, *, again: bool) -> None:
        """What is left to compare where both forms are the same by their text: how the new one compiles."""
        self._gradients(invented, double=False)
        if not again:
            compiled.compare_compiled(self.comparing, bench, plain)

    def _gradients(self, bench: Bench, *, double: bool) -> bool:
        """In the script's dtype, or in float64. False if nothing more is to be compared.

        In the script's own dtype they are what it asks for itself, where it trains.
        """
        name, change = (" in float64", inputs.to(torch.float64)) if double else ("", torch.clone)
        if torch.is_grad_enabled() and not double:
            bench = replace(bench, small=None)
        conditions = Conditions(f"gradients{name}", change, gradients=True, other_dtypes=double)
        needed = self._is_first and not double
        return self.comparing.agree(bench, conditions, "gradients", skip_raising=True, needed=needed)

    def _sequences(self, bench: Bench, here: Call, constants: Collection[float]) -> None:
        """Several calls, one after the other, to see what one leaves behind for the next.

        More than a number of the code says, too: ``history[-100:]`` keeps all until then.
        """
        orders = [[here, here], *([one, here, one] for one in self._earlier)]
        orders += [[here, one, here] for one in self._earlier]
        many = [abs(int(one)) for one in constants if 3 < abs(one) <= MOST_IN_A_ROW and one == int(one)]
        if many and self.tally.anybody and self._is_first:
            orders.append([here] * (max(many) + 1))
        for number, order in enumerate(orders):
            kinds = tuple(map(signature, order))
            row = replace(bench, calls=order, small=bench.small if kinds in self._rows else None)
            self._rows.add(kinds)
            needed = self._is_first and number == 0
            conditions = Conditions(f"{len(order)} calls in a row")
            if not self.comparing.agree(row, conditions, "sequences", needed=needed):
                return


def kept(call: Call) -> Call:
    """A call to be made again later: its tensors as they are now."""
    with torch.inference_mode(False), torch.no_grad():
        args, kwargs = inputs.rebuilt(call, lambda tensor: tensor.detach().clone())
    return args, kwargs
