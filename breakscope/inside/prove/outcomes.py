"""Where the outcomes of two test calls part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from breakscope.inside.prove import modes, picture
from breakscope.inside.prove.attempt import Outcome
from breakscope.inside.prove.picture import Comparer, Difference
from breakscope.inside.tensors import same_bits

# Gradients are sums; one rewrite may take them in another order than autograd took the old ones.
GRADIENT_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def compare(old: Outcome, new: Outcome, comparer: Comparer) -> Difference | None:
    """Where two outcomes part; None where they agree."""
    if old.raised != new.raised:
        aspect = "raised" if old.raised is None else ""
        return Difference(f"the old code {ended(old)}, the new one {ended(new)}", aspect=aspect)
    if old.error != new.error:
        return Difference(f"both raise {old.raised}, which is {old.error}, now {new.error}")
    found = comparer.difference(old.picture.entries, new.picture.entries)
    if found is not None:
        return found
    for path, value in old.picture.early.items():
        other = new.picture.early.get(path)
        if other is None or other.dtype is not value.dtype or not same_bits(value, other):
            return Difference(f"{path}: the new code leaves another value, or none")
    if old.printed != new.printed:
        return Difference(f"the old code prints {old.printed[:80]!r}, the new one {new.printed[:80]!r}")
    if not _same_draws(old.randomness, new.randomness):
        return Difference("they draw different random numbers")
    for name, mode in old.modes.items():
        if new.modes.get(name) != mode:
            was, now = str(mode)[:80], str(new.modes.get(name))[:80]
            return Difference(f"the old code leaves {name} {was}, the new one {now}")
    if _kind_of(old.backward_failed) != _kind_of(new.backward_failed):
        was, now = (_first_line(one.backward_failed) or "works" for one in (old, new))
        return Difference(f"backward: {was}, now {now}")
    zeros = [comparer.zeros or (comparer.zeros_unwanted and not own) for own in old.own]
    return _compare_gradients(old.gradients, new.gradients, zeros)


def _kind_of(failed: str | None) -> str | None:
    """The exception's type: its text may count what autograd had saved, which is no result."""
    return None if failed is None else failed.partition(":")[0]


def _first_line(failed: str | None) -> str:
    return (failed or "").partition("\n")[0]


def _same_draws(old: Sequence[torch.Tensor], new: Sequence[torch.Tensor]) -> bool:
    return len(old) == len(new) and all(torch.equal(a, b) for a, b in zip(old, new, strict=True))


def _compare_gradients(
    old: Sequence[torch.Tensor | None], new: Sequence[torch.Tensor | None], zeros: Sequence[bool]
) -> Difference | None:
    """The first gradient that differs; ``zeros``: which may be zero where there was none."""
    if not old and any(zeros):
        old = [None] * len(new)
    if len(old) != len(new):
        return Difference("gradients flow in only one of them")
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        if zeros[index] and before is None and after is not None and not after.count_nonzero():
            continue
        found = _compare_gradient(f"gradient {index + 1}", before, after)
        if found is not None:
            return found
    return None


def _compare_gradient(name: str, old: torch.Tensor | None, new: torch.Tensor | None) -> Difference | None:
    if old is None or new is None:
        if old is new:
            return None
        # An optimizer skips a parameter without a gradient, and decays one whose gradient is zero.
        given = "only the new" if old is None else "only the old"
        return Difference(f"{name}: {given} code gives one")
    # + 0.0: gradients are sums, in which the sign of a zero says nothing.
    return picture.values_differ(name, old + 0.0, new + 0.0, GRADIENT_TOLERANCE.get(old.dtype, 0.0))


def ended(outcome: Outcome) -> str:
    """How a call ended, for a sentence."""
    return f"raises {outcome.raised[:120]}" if outcome.raised else "returns"


def quiet(outcome: Outcome, *, raised: bool = False) -> Outcome:
    """Without what is printed, as torch says some things only once; ``raised``: without the exception."""
    outcome = replace(outcome, printed="", modes=modes.lasting(outcome.modes))
    return replace(outcome, raised=None, error=()) if raised else outcome
