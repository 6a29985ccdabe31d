"""The new form of a function under Dynamo, against the old one as it is."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from breakscope.inside.prove import asks, in_range, inputs, outcomes
from breakscope.inside.prove.attempt import Conditions, Outcome, UnreadableError
from breakscope.inside.prove.bench import Bench
from breakscope.inside.prove.budget import SEARCHED
from breakscope.inside.prove.comparing import Comparing
from breakscope.inside.prove.tally import Tally

# Each is compiled anew.
NOT_COMPILED = "smallest normal values"  # nor the edges after it
ENDS_ALL = "compiled, inputs for which the check fails were not tried: on a GPU that ends all computation"
OTHERWISE = "compiled, the old code too computes something else than uncompiled, and the same as the new one"


def compare_compiled(comparing: Comparing, bench: Bench, plain: Conditions) -> None:
    """The new form under Dynamo against the old one as it is, on inputs that go every way."""
    tally = comparing.tally
    compiled = compiling(torch.compile(bench.forms["new"], backend="eager"))
    _note_asking(tally, bench, plain)
    needed = _needed(tally)
    for number, conditions in enumerate(_to_compile(tally, bench, plain)):
        if tally.mismatch or (conditions is not plain and comparing.too_late("compiled", number < needed)):
            return
        if tally.only is not None and tally.only != (tally.captured, f"compiled: {conditions.name}"):
            continue
        before = tally.taken()
        try:
            old = bench.run("watched", conditions)
        except UnreadableError:
            continue
        if _left_out(tally, conditions, old, before):
            continue
        torch.compiler.reset()
        new = bench.run("new", conditions, compiled)
        # What is printed while compiling is what the rewrite's notes are about.
        comparer = comparing.comparer(conditions)
        raised = bool(old.raised and new.raised)
        if raised and not tally.claims.raises:
            tally.kinds["compiled by Dynamo"] += 1
            continue
        # The exception of a check in the graph is of another type: that is for the caller to know.
        found = outcomes.compare(
            outcomes.quiet(old, raised=raised), outcomes.quiet(new, raised=raised), comparer
        )
        if found is not None and (tally.by_structure or found.aspect != "raised"):
            # It may be the compiler that does otherwise, with the old form as with the new one.
            torch.compiler.reset()
            same = compiling(torch.compile(bench.forms["old"], backend="eager"))
            compiled_old = bench.run("old", conditions, same)
            if outcomes.compare(outcomes.quiet(compiled_old), outcomes.quiet(new), comparer) is None:
                if not tally.by_structure:
                    tally.notes[f"{OTHERWISE} ({conditions.name}): {found.text.splitlines()[0][:160]}"] = None
                found = None
        if found is not None:
            when = ", after its exception" if raised else ""
            tally.mismatch = f"compiled by Dynamo, on {conditions.name}{when}: {found.text}"
            # Nothing but gradients of zero is what a rewrite for compiled code asks consent to.
            tally.breaks = found.aspect == "raised" or tally.claims.compiled_only
            comparing.show(bench, conditions, old, new, compiled=True)
            return
        tally.apart.update(dict.fromkeys(comparer.apart))
        tally.kinds["compiled by Dynamo"] += 1
        if conditions.gradients and any(gradient is not None for gradient in old.gradients):
            tally.kinds["calls with gradients"] += 1


def _note_asking(tally: Tally, bench: Bench, plain: Conditions) -> None:
    """What asks whether it is compiled is searched around compiled, however it asks: `[x, other][f()]`."""
    if not tally.anybody or tally.claims.compiled_only:
        return
    if any(asks.whether_compiled(bench, one) for one in (plain, *tally.inputs_that_drive())):
        tally.claims = replace(tally.claims, compiled_only=True)


def _needed(tally: Tally) -> float:
    """How many of the inputs there is no proof without."""
    driving = 1 + len(tally.inputs_that_drive())
    if not tally.claims.compiled_only:
        return driving
    return math.inf if tally.captured == 1 else 2 * driving  # no search has seen what runs here


def _left_out(tally: Tally, conditions: Conditions, old: Outcome, before: Sequence[Counter[bool]]) -> bool:
    """Whether an input on which the old form raises is not given to the compiled one."""
    if old.raised and not tally.claims.raises:
        tally.forget(before)  # nothing is compared behind an exception
    if old.raised and tally.claims.raises and torch.cuda.is_initialized():
        tally.notes[ENDS_ALL] = None
        return True
    fails = conditions.gradients and (old.raised or old.backward_failed)
    return in_range.stops(old.raised) or bool(fails)


def _to_compile(tally: Tally, bench: Bench, plain: Conditions) -> Iterator[Conditions]:
    searched = tally.captured <= SEARCHED
    driving = tally.inputs_that_drive() if searched else []
    yield plain
    yield from (one for one in driving if not one.gradients)
    if not tally.claims.compiled_only:
        return
    for one in [plain, *driving]:
        name = one.name if one.gradients else f"{one.name}, with gradients"
        yield replace(one, name=name, gradients=True)
    if searched:
        edges = inputs.values(bench.given, (), gradients=False)
        yield from itertools.takewhile(lambda one: one.name != NOT_COMPILED, edges)


def compiling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Dynamo compiles, in a run that is eager.

    Asked for inside the call: a function that calls a compiled one can reach the stance, and what can be
    reached is put back before the call.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("default"):
            return function(*args, **kwargs)

    return call
