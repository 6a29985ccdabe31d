"""What may be tried for each cause of a recompile, the least invasive first."""

from __future__ import annotations

from collections.abc import Callable

from breakscope.fix.patch import Refusal
from breakscope.fix.remedies import limits, scalars, shapes, states
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import Proposal, Subject
from breakscope.report.model import GuardCause

Proposer = Callable[[Subject, Files], list[Proposal]]


def _advised(subject: Subject, _files: Files) -> list[Proposal]:
    """Nothing that may be tried: what the finding's advice says is for a person to do."""
    finding = subject.finding
    return [Refusal(finding.advice or f"breakscope explain {finding.code} says what may be done by hand")]


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
    "dtype": _advised,
    "device": _advised,
    "constant_value": _advised,
    "container": _advised,
    "item_value": _advised,
    "other": _advised,
}


def propose(subject: Subject, files: Files) -> list[Proposal]:
    """Patches in the order in which to try them; refusals say what was left out and why."""
    finding = subject.finding
    if finding.code == "BS303":
        return limits.limit(subject, files)
    if finding.guard is None:
        return [Refusal("there is no guard to keep from failing")]
    return PROPOSERS[finding.guard.cause](subject, files)
