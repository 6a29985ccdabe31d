"""Running the script with a remedy, and judging what came of it by what the remedy is for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from breakscope.fix.evidence import NOTHING_SEEN, Evidence
from breakscope.fix.patch import Patch, clash
from breakscope.fix.remedies.subject import GRADIENTS, WRITES
from breakscope.fix.trials import Agreement, Trials
from breakscope.report.model import Finding, Report
from breakscope.run.trial import Comparison
from breakscope.run.words import Words

_FORBIDDEN = {
    GRADIENTS: "gradients flow back through the compiled calls, so they are wanted",
    WRITES: "a compiled call writes to an argument, and would write to the copy",
}


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trial of a remedy showed.

    Attributes:
        why: how it was proved, or what stands against it, as a sentence without its full stop.
        proved: whether it did what it must, and nothing else.
        helped: whether the outputs stayed and recompiles became fewer, but not as few as they must.
    """

    patch: Patch
    why: str
    evidence: Evidence = NOTHING_SEEN
    proved: bool = False
    helped: bool = False


def try_remedy(patch: Patch, finding: Finding, trials: Trials) -> Tried:
    """Run the script with a remedy, and judge it by what it promises.

    Args:
        finding: of the run without it.
    """
    before = trials.before
    forbidden = patch.rewrite.forbids
    if forbidden and (before.outputs / forbidden).exists():
        return Tried(patch, _FORBIDDEN[forbidden])
    if clash([*trials.base, patch]):
        return Tried(patch, "it changes text that a rewrite of a break changes")
    after, seen = trials.seen(patch)
    evidence = Evidence(
        recompiles_before=before.report.totals.recompiles, recompiles_after=after.totals.recompiles
    )
    agrees = agreeing(patch, seen, evidence)
    if not agrees.proved:
        return agrees
    return _counted(patch, finding, before.report, after, agrees.evidence, agrees.why)


def agreeing(patch: Patch, seen: Agreement, evidence: Evidence = NOTHING_SEEN) -> Tried:
    """Whether the script with a change computes and says the same; how, or what differs, is its reason."""
    outputs, said = seen.outputs, seen.words
    if outputs is not None:
        evidence = replace(
            evidence,
            calls_compared=outputs.calls,
            tensors_compared=outputs.tensors,
            bitwise=outputs.bitwise,
            max_abs=outputs.max_abs,
            max_rel=outputs.max_rel,
        )
        if not outputs.calls:
            return Tried(patch, "no outermost call of a compiled function could be compared", evidence)
    if said is not None:
        evidence = replace(evidence, printed_the_same=said.difference is None, words=said.evidence)
    if seen.difference is not None:
        return Tried(patch, seen.difference, evidence)
    assert outputs is not None
    assert said is not None
    if not outputs.tensors and not said.compared:
        why = "the compiled calls return no tensors and the script prints nothing that could be compared"
        return Tried(patch, why, evidence)
    held = " as without a compiler: compiled as it is, the script fails" if seen.uncompiled else ""
    return Tried(patch, f"{_equal(outputs, said)}{held}", evidence, proved=True)


def _counted(
    patch: Patch, finding: Finding, before: Report, after: Report, evidence: Evidence, equal: str
) -> Tried:
    """Whether the recompiles went, and nothing came instead; ``equal`` says how the outputs agree."""
    old, new = before.totals, after.totals
    known = {f.fingerprint for f in before.findings}
    # How long a compile took depends on who else uses the machine.
    fresh = [f for f in after.findings if f.fingerprint not in known and f.kind != "compile"]
    left = [f for f in after.findings if f.fingerprint == finding.fingerprint]
    # A second size that torch then takes as any size is what a healthy script has.
    there = any(f.expected is None for f in left)
    meant = sum(f.counts.occurrences for f in left if f.expected is not None)
    worse = [f for f in fresh if f.kind != "recompile"]
    # Behind a limit that was reached nothing broke, for nothing was compiled.
    gave_up = any(f.code == "BS303" for f in before.findings)
    if ((new.crossings or 0) > (old.crossings or 0) and not gave_up) or new.skips > old.skips:
        return Tried(patch, "compiled code would be left more often", evidence)
    # A function that exhausted the limit has to stop doing so; how many versions it needs is another matter.
    limit = finding.code == "BS303"
    fewest = old.recompiles - finding.counts.occurrences + meant
    fewer = new.recompiles <= fewest and new.recompiles < old.recompiles
    if not there and not worse and (limit or fewer):
        expected = f" ({left[0].expected})" if meant else ""
        why = f"{old.recompiles} -> {new.recompiles} recompiles{expected}, {equal}"
        return Tried(patch, why, evidence, proved=True, helped=True)
    why = f"{new.recompiles} of {old.recompiles} recompiles remain"
    if fresh and not there:
        why = f"instead there would be: {fresh[0].title}"
    return Tried(patch, why, evidence, helped=new.recompiles < old.recompiles and not worse)


def _equal(outputs: Comparison, said: Words) -> str:
    equal = "bitwise equal" if outputs.bitwise else f"equal within {outputs.max_rel:.0e}"
    calls = f"{outputs.calls} call" + ("s" if outputs.calls != 1 else "")
    printed = ", the same output printed" if said.compared else ""
    if not outputs.tensors:
        return f"no tensors returned by {calls}{printed}"
    return f"{equal} in {calls}{printed}"
