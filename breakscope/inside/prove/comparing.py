"""One comparison of the forms of a function, in small or in full size, and what is made of a difference."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from breakscope.inside.prove import in_range, outcomes, smaller
from breakscope.inside.prove.attempt import Conditions, Outcome, UnreadableError
from breakscope.inside.prove.bench import Bench, code_of
from breakscope.inside.prove.budget import Allowance, Budget
from breakscope.inside.prove.inputs import UNEVEN
from breakscope.inside.prove.novelty import novelty
from breakscope.inside.prove.paths import bare
from breakscope.inside.prove.patience import EndlessError
from breakscope.inside.prove.picture import CODE, Comparer, Difference
from breakscope.inside.prove.showing import shown
from breakscope.inside.prove.smaller import SmallWorld
from breakscope.inside.prove.tally import ENDLESS, TIME_IS_UP, Tally

# Relative to a tensor's largest value, where sums are taken in another order.
REASSOCIATED = 1e-5
# Kinds that are only tried in small around a call like one around which they were tried in full size.
AS_BEFORE = ("gradients", "sequences")
_REFUSED = "on inputs that the old code refuses"
_MAY_BE_REFUSED = ("", UNEVEN, "with other strides")
_MOST_REFUSED = 12  # of a kind on which the new form is called as well


@dataclass(slots=True)
class Comparing:
    """Calls the forms under conditions, compares what they come to, and notes it in the tally.

    Attributes:
        new: the latest input showed something that none had shown.
    """

    tally: Tally
    budget: Budget
    allowance: Allowance
    new: bool = False
    _shown: set[Any] = field(default_factory=set)
    _refused: Counter[str] = field(default_factory=Counter)

    def agree(
        self,
        bench: Bench,
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
        self.new = False
        if self.tally.mismatch or conditions.beyond in self.tally.limits:
            return not self.tally.mismatch
        if self.too_late(kind, needed):
            return False
        left_out = self.tally.only is not None and self.tally.only != (self.tally.captured, conditions.name)
        if left_out or self._agree_in_small(bench, conditions, kind):
            return True
        before, old = done or (self.tally.taken(), self._old(bench, conditions))
        if old is None:
            return self.tally.reject(before)
        self._note_shown(old, before)
        if old.raised and (skip_raising or in_range.stops(old.raised)):
            self._note_refused(bench, conditions, old, kind)
            return self.tally.reject(before)
        new = self._new_form(bench, conditions, old)
        if new is None:
            return False
        if conditions.beyond and not conditions.words:
            # What is printed is left out: torch says some things only once.
            old, new = outcomes.quiet(old), outcomes.quiet(new)
        comparer = self.comparer(conditions)
        found = outcomes.compare(old, new, comparer)
        if found is not None and self.tally.found_apart(comparer):
            return self.agree(bench, conditions, kind, skip_raising=skip_raising, needed=needed)
        if found is not None and (limit := self._limit(conditions, found)):
            text = found.text.splitlines()[0][:160]
            self.new = self.new or limit not in self.tally.limits
            self.tally.limits.setdefault(limit, f"{limit} ({conditions.name}): {text}")
            self.tally.forget(before)
            return True
        if found is not None and found.aspect == CODE:
            self.tally.trouble = found.text
            return False
        if found is not None:
            self.tally.mismatch = f"on {conditions.name}: {found.text}"
            self.tally.breaks = found.aspect == "raised"
            self.show(bench, conditions, old, new)
            return False
        self.tally.limits |= {**self._limits_beyond(conditions, old, new), **self.tally.limits}
        self.tally.count(old, new, comparer, kind)
        self.tally.note_driving(before, conditions)
        return True

    def _note_refused(self, bench: Bench, conditions: Conditions, old: Outcome, kind: str) -> None:
        """A limit where the new form takes what the old one refuses, or leaves something else behind then."""
        known = _REFUSED in self.tally.limits or self._refused[kind] >= _MOST_REFUSED
        if known or not self.tally.anybody or conditions.beyond not in _MAY_BE_REFUSED:
            return
        self._refused[kind] += 1
        if in_range.stops(old.raised):
            return
        try:
            new = bench.run("new", conditions)
        except (UnreadableError, EndlessError):
            return
        apart = self.comparer(conditions).difference(old.picture.entries, new.picture.entries)
        found = f"both raise, and then {apart.text}" if apart is not None else ""
        if not new.raised:
            found = f"the old code raises {old.raised}, the new one returns"
        if found and not in_range.stops(new.raised):
            text = found.splitlines()[0][:160]
            self.tally.limits[_REFUSED] = f"{_REFUSED} ({conditions.name}): {text}"

    def find_small(
        self, bench: Bench, roots: Sequence[Any], full: Outcome, path: set[tuple[int, int]]
    ) -> SmallWorld | None:
        """The world of a call in small, in which the old form does what it does in full size."""
        plain = Conditions("the script's own arguments")
        before = self.tally.taken()
        own = id(code_of(bench.forms["watched"]))
        for world in smaller.worlds(bench.world, roots) if own in dict(path) else ():
            with contextlib.suppress(Exception, EndlessError), smaller.steps() as steps:
                found = bench.cut(world).run("watched", plain)
                if steps == path and smaller.alike(full, found, world.sizes):
                    self.tally.forget(before)
                    return world
        self.tally.forget(before)
        return None

    def _agree_in_small(self, bench: Bench, conditions: Conditions, kind: str) -> bool:
        """Compare in small, where that can be. False: look at it in full size.

        So it is with the first input that takes a way, raises, leaves a result of a new kind or meets a
        limit, and with all on which the forms differ, be it in small alone.
        """
        if bench.small is None:
            return False
        world, before = bench.small, self.tally.taken()
        agree = False
        try:
            agree = self._alike_in_small(bench.cut(world), world.translated(conditions), before, kind)
        except (Exception, EndlessError):  # noqa: BLE001 -- in full size it is told what that is
            agree = False
        if not agree:
            self.tally.forget(before)
            return False
        self.tally.small += 1
        self.tally.cut = {**world.sizes, **self.tally.cut}
        return True

    def _alike_in_small(
        self, small: Bench, conditions: Conditions, before: Sequence[Counter[bool]], kind: str
    ) -> bool:
        old = small.run("watched", conditions)
        self._note_shown(old, before)
        unseen = any(
            one.taken.keys() - was.keys() for one, was in zip(self.tally.watched, before, strict=True)
        )
        if unseen or old.raised or (self.new and kind not in AS_BEFORE):
            return False
        new = small.run("new", conditions)
        if conditions.beyond and not conditions.words:
            old, new = outcomes.quiet(old), outcomes.quiet(new)
        comparer = self.comparer(conditions)
        if outcomes.compare(old, new, comparer) is not None:
            return False
        apart = {path for one in comparer.apart for path in (one.path, one.holder)}
        limits = self._limits_beyond(conditions, old, new)
        if not apart <= self.tally.apart_paths or not limits.keys() <= self.tally.limits.keys():
            return False
        self.tally.count(old, new, comparer, kind)
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
        for path in sorted(new.moved - old.moved)[:1]:
            limit = f"where somebody else looks at the memory of `{bare(path)}`: the new code leaves it"
            found["moved"] = f"{limit} ({conditions.name})"
        return found

    def _old(self, bench: Bench, conditions: Conditions) -> Outcome | None:
        """What the old form came to; None where that cannot be looked at, or where it does not end."""
        try:
            return bench.run("watched", conditions)
        except UnreadableError:
            return None
        except EndlessError:
            self.tally.notes[ENDLESS] = None
            self.allowance.endless += 1
            return None

    def _new_form(self, bench: Bench, conditions: Conditions, old: Outcome) -> Outcome | None:
        """What the new form came to; None where it does not end, which the old one did."""
        try:
            return bench.run("new", conditions)
        except EndlessError:
            self.tally.mismatch = (
                f"on {conditions.name}: the old code {outcomes.ended(old)}, the new one does not end"
            )
            self.tally.breaks = True
            self.show(bench, conditions, old, None)
            return None

    def _limit(self, conditions: Conditions, found: Difference) -> str:
        """What does not hold in a test, if it is something that the rewrite relies on; else ""."""
        if conditions.other_dtypes and found.aspect == "dtype" and self.tally.claims.conditional:
            return "in other dtypes"
        if found.aspect == "requires_grad" and self.tally.claims.sums and "True, now False" in found.text:
            return "where nothing that is added takes gradients"
        if found.aspect == "raised" and conditions.number in self.tally.claims.numbers:
            return f"with another `{conditions.number}`"
        return conditions.beyond

    def comparer(self, conditions: Conditions) -> Comparer:
        unwanted = self.tally.claims.no_gradients and conditions.gradients
        tolerance = 0.0 if self.tally.claims.exact else REASSOCIATED
        return Comparer(tolerance, self.tally.claims.unaliased, self.tally.claims.zeros, unwanted)

    def show(
        self,
        bench: Bench,
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
        self.tally.found = {
            "call": self.tally.captured,
            "input": name,
            "arguments": look,
            "old": shown(old, new),
            "new": shown(new, old),
        }

    def too_late(self, what: str, needed: bool = True) -> bool:
        """Whether the time is up for a comparison. The search may have used all of it.

        What is needed for a proof gets as much time again, and what there is on top of the budget; where that
        does not do either, there is no proof.
        """
        while needed and self.budget.over(needed=True) and self.budget.extend():
            continue
        if not self.budget.over(needed=needed):
            return False
        self.tally.notes[TIME_IS_UP] = None
        if needed:
            self.tally.untried[what] = None
        return True

    def _note_shown(self, old: Outcome, before: Sequence[Counter[bool]]) -> None:
        showing = novelty(old, self.tally.ways(before))
        self.new = self.new or showing not in self._shown
        self._shown.add(showing)
