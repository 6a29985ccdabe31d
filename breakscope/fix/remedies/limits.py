"""Remedies for a function that ran out of versions: several instances that share its code, or a value."""

from __future__ import annotations

from collections import Counter

from breakscope.fix.patch import Refusal
from breakscope.fix.remedies.scalars import config, unspecialised
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import Proposal, Subject

# Versions of one function that are worth having: each takes seconds to compile and is tried at each call.
_MOST = 64
_PER_INSTANCE = ("module_attribute", "identity")


def limit(subject: Subject, files: Files) -> list[Proposal]:
    """For the recompile limit: ints of modules made symbolic, or a version for each instance."""
    finding = subject.finding
    causes = {guard.cause for guard in finding.guards}
    if not causes:
        return [Refusal("no guard is known that used up the limit")]
    if not causes <= set(_PER_INSTANCE):
        named = ", ".join(dict.fromkeys(guard.source or guard.cause for guard in finding.guards))
        return [Refusal(f"a higher limit only moves the end: repair what it is compiled again for ({named})")]
    if not shares_code(subject):
        return [Refusal("the value changes from call to call: a higher limit only moves the end")]
    proposals: list[Proposal] = []
    if any(_counts(value) for guard in finding.guards for value in guard.values):
        proposals += unspecialised(subject, files)
    return [*proposals, *config(subject, files, "recompile_limit", str(_MOST), "raise-limit")]


def shares_code(subject: Subject) -> bool:
    """Whether the versions belong to instances of a module that run one code object.

    What differs is then something of ``self``, and differs within one outermost call: a counter of one
    instance takes its next value in the next call.
    """
    guards = subject.finding.guards
    of_self = all(guard.source is not None and guard.source.partition(".")[0] == "self" for guard in guards)
    calls = Counter(signature.number for signature in subject.signatures)
    return bool(guards) and of_self and max(calls.values(), default=0) > 1


def instances(subject: Subject) -> str | None:
    """What a reader must know where instances of one class used up the limit; None where they did not."""
    if not shares_code(subject):
        return None
    place = subject.finding.location
    breaks = [
        finding
        for finding in subject.report.findings
        if finding.kind == "graph_break"
        and (finding.location.function, finding.location.file) == (place.function, place.file)
    ]
    text = f"each instance needs its own version of {place.function}, and all of them share one code object"
    if breaks:
        at = breaks[0].location
        text += (
            f"; it is compiled apart from its caller because of the break in line {at.line}: without that "
            "break the instances are inlined and share nothing"
        )
    return text


def _counts(value: str) -> bool:
    return value.lstrip("-").isdigit()
