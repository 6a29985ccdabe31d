"""What may be tried for each cause of a recompile, the least invasive first."""

from __future__ import annotations

from collections.abc import Callable

from breakscope.fix.patch import Refusal
from breakscope.fix.remedies import limits, scalars, shapes, states
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import Proposal, Subject
from breakscope.report.model import GuardCause

Proposer = Callable[[Subject, Files], list[Proposal]]


def _refusing(why: str) -> Proposer:
    def propose(subject: Subject, _files: Files) -> list[Proposal]:
        guard = subject.guard
        seen = ", ".join(guard.values) or "several"
        return [Refusal(why.format(source=guard.source or "it", seen=seen))]

    return propose


def _size(subject: Subject, files: Files) -> list[Proposal]:
    return [*shapes.size(subject, files), *scalars.parameter_size(subject, files)]


PROPOSERS: dict[GuardCause, Proposer] = {
    "size": _size,
    "symbolic_shape": _size,
    "stride": shapes.stride,
    "rank": shapes.rank,
    "requires_grad": shapes.requires_grad,
    "dispatch_keys": states.dispatch_keys,
    "int_value": scalars.int_value,
    "float_value": scalars.float_value,
    "module_attribute": scalars.module_attribute,
    "global_state": states.global_state,
    "aliasing": states.aliasing,
    "identity": states.kinds,
    "type": states.kinds,
    "dtype": _refusing(
        "each dtype is a program of its own ({seen}), and converting {source} changes what is computed: "
        "convert it where you know that one dtype is enough"
    ),
    "device": _refusing("each device is a program of its own ({seen}): move {source} before the call"),
    "constant_value": _refusing(
        "{source} decides which code runs ({seen}): each value has to be compiled, once; "
        "compile them at start-up"
    ),
    "container": _refusing(
        "a container is compiled item by item ({seen}): pass {source} always with the same items, or as one "
        "stacked tensor, whose size can be dynamic"
    ),
    "item_value": _refusing(
        "the {source} was read from a tensor at a graph break: repair that break (breakscope fix), and no "
        "number enters the code after it"
    ),
    "other": _refusing(
        "the guard is not one that breakscope knows: keep what it names the same between calls"
    ),
}


def propose(subject: Subject, files: Files) -> list[Proposal]:
    """Patches in the order in which to try them; refusals say what was left out and why."""
    finding = subject.finding
    if finding.code == "BS303":
        return limits.limit(subject, files)
    if finding.guard is None:
        return [Refusal("there is no guard to keep from failing")]
    return PROPOSERS[finding.guard.cause](subject, files)
