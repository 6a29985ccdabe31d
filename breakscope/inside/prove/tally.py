"""What the proof of one function counts and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from breakscope.inside.prove.attempt import Conditions, Outcome
from breakscope.inside.prove.claims import Claims
from breakscope.inside.prove.conditions import Condition
from breakscope.inside.prove.picture import Apart, Comparer, largest
from breakscope.inside.prove.surroundings import Surroundings

ENDLESS = "inputs on which the old code does not end were left out"
TIME_IS_UP = "the time for the proof was up before every test input had been compared"

_TRUTHS = (bool, int, float, complex, str, bytes, type(None), list, tuple, dict, set)


@dataclass(slots=True)
class Tally:
    """The ways that the conditions of one function went, and what came of its proof.

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
        by_structure: the forms are the same by their text, and nothing was searched.
        left_out: test inputs that were not tried because those before them had nothing new to show, by kind.
        driving: the first input that drove each condition each way.
        apart_paths: places where the forms leave different objects.
        small: inputs that were tried in small. cut: the sizes that were cut for it.
    """

    name: str
    conditions: list[Condition]
    claims: Claims
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
    driving: dict[tuple[int, bool], Conditions] = field(default_factory=dict)
    apart_paths: set[str] = field(default_factory=set)
    small: int = 0
    cut: dict[int, int] = field(default_factory=dict)

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

    @property
    def watched(self) -> list[Condition]:
        return [*self.conditions, *self.shared]

    def driven(self) -> bool:
        return all(condition.driven for condition in self.watched)

    def enough_driven(self) -> bool:
        """As :meth:`driven`, but for operands without which there is a proof too, as fix.judge has it."""
        left = {condition.text for condition in self.watched if not condition.driven}
        whole = {condition.text for condition in self.watched} - left
        return all(one.driven or (one.operand_of in whole and one.taken) for one in self.watched)

    def taken(self) -> list[Counter[bool]]:
        """Which ways test calls have taken up to now, by condition."""
        return [Counter(condition.taken) for condition in self.watched]

    def ways(self, before: Sequence[Counter[bool]]) -> tuple[tuple[bool, bool], ...]:
        """Which ways a test call took, condition by condition."""
        pairs = zip(self.watched, before, strict=True)
        return tuple((one.taken[True] > was[True], one.taken[False] > was[False]) for one, was in pairs)

    def note_driving(self, before: Sequence[Counter[bool]], conditions: Conditions) -> None:
        """Remember the first input that drove each condition each way.

        Rather one that does so by its dtype alone than one that has other values in it, too: those that lead
        somewhere get edge values.
        """
        for index, condition in enumerate(self.watched):
            for way in (True, False):
                if condition.taken[way] > before[index][way]:
                    first = self.driving.setdefault((index, way), conditions)
                    if conditions.leads and first.other_dtypes and not first.leads:
                        self.driving[index, way] = conditions

    def inputs_that_drive(self) -> list[Conditions]:
        """Inputs that take the conditions of the old form every way that was found."""
        return list({id(one): one for one in self.driving.values()}.values())

    def found_apart(self, comparer: Comparer) -> bool:
        """Take up where the forms leave different objects; whether any place is new."""
        before = len(self.apart_paths)
        self.apart_paths |= {path for one in comparer.apart for path in (one.path, one.holder)}
        return len(self.apart_paths) > before

    def count(self, old: Outcome, new: Outcome, comparer: Comparer, kind: str) -> None:
        """Count a pair of calls that agree."""
        self.apart.update(dict.fromkeys(comparer.apart))
        self.compared += 1
        self.raising += bool(old.raised)
        self.kinds[kind] += 1
        self.max_difference = max(self.max_difference, largest(old.picture.entries, new.picture.entries))
        if any(gradient is not None for gradient in old.gradients):
            self.kinds["calls with gradients"] += 1

    def reject(self, before: Sequence[Counter[bool]]) -> bool:
        """Leave an input out that the old form does not take."""
        self.rejected += 1
        self.forget(before)
        return True

    def forget(self, before: Sequence[Counter[bool]]) -> None:
        """The ways that an input took count for nothing."""
        for condition, taken in zip(self.watched, before, strict=True):
            condition.taken = taken

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
                    # A way that it need not go counts as gone.
                    "true": condition.taken[True] or int(True not in condition.needed),
                    "false": condition.taken[False] or int(False not in condition.needed),
                }
                for condition in self.conditions
                # What both forms have, or a message, counts where it keeps from what is changed.
                if not (condition.kept and condition.driven) and not self.by_structure
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
        if self.small:
            sizes = ", ".join(f"{less} for {size}" for size, less in sorted(self.cut.items()))
            yield f"{self.small} inputs that the script did not give were tried in small: sizes {sizes}"

    def _never(self) -> list[str]:
        """Code that both forms have and that no input drove: what the patch does to it is not known."""
        ways = [
            (condition.text, way)
            for condition in self.conditions
            # What is computed of elements goes no way.
            if condition.kept and (condition.taken or not condition.computed)
            for way in condition.ways
            if not condition.taken[way]
        ]
        return [f"`{text}` was never {str(way).lower()}: nothing was compared there" for text, way in ways]
