"""The whole script again, with all accepted patches: are the findings gone, and is all else as it was?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix.evidence import Evidence, Verdict
from breakscope.fix.patch import Patch
from breakscope.fix.source_file import Source
from breakscope.fix.trials import Trials, recompiled
from breakscope.report.model import Finding, Report
from breakscope.run.trial import Comparison
from breakscope.run.words import Words

# Findings that rules are for.
FIXABLE = ("graph_break", "skip")
# Breaks where data is asked for, and frames given up for one.
_BY_DATA = ("BS101", "BS102", "BS103", "BS105", "BS106", "BS301", "BS302")


@dataclass(frozen=True, slots=True)
class Whole:
    """What became of the whole script.

    Attributes:
        dropped: patches that it does not work with, and why: by position among those tried.
        revealed: findings that were hidden behind the breaks that are gone now.
        comparison: of what the outermost calls returned; None if nothing was accepted.
        words: what came of comparing what the script says; None if it was not: nothing was accepted, or a
            patch with consent changes behaviour.
        tried: the patches that ``after`` is of.
        uncompiled: it was held against the script without a compiler.
        breaks: what was dropped leaves its own break, or makes another.
    """

    dropped: Mapping[int, str]
    revealed: tuple[Finding, ...]
    comparison: Comparison | None
    before: Report
    after: Report | None
    consented: bool = False
    words: Words | None = None
    tried: Sequence[Patch] = ()
    uncompiled: bool = False
    breaks: bool = False

    @property
    def evidence(self) -> dict[str, Any]:
        """For the evidence of a patch that is part of it."""
        assert self.comparison is not None
        assert self.after is not None
        before, after = self.before.totals, self.after.totals
        # Not compared where a patch changes behaviour with consent.
        words = {} if self.words is None else {"words": self.words.evidence}
        return {
            **words,
            "outermost_calls": self.comparison.calls,
            "tensors": self.comparison.tensors,
            "bitwise": self.comparison.bitwise,
            "consented": self.consented,
            **({"uncompiled": True} if self.uncompiled else {}),
            **({"fails": True} if self.before.run.status != self.after.run.status else {}),
            "max_difference": self.comparison.max_abs,
            "sites": [before.sites, after.sites],
            "revealed": len(self.revealed),
            "crossings": [before.crossings, after.crossings],
            "recompiles": [before.recompiles, after.recompiles],
            "regions": [before.regions, after.regions],
        }

    @property
    def gone(self) -> Verdict:
        """Of a finding that is gone without a patch of its own."""
        why = "in the whole script it is gone with the accepted rewrites of other places"
        evidence = Evidence(consent=self.consented, accepted=True, whole_script=self.evidence)
        return Verdict("needs consent" if self.consented else "proved", why, evidence)


def check(trials: Trials, patches: Sequence[Patch]) -> Whole:
    """Find the patches that work together: those with which it goes wrong are dropped, one at a time."""
    dropped: dict[int, str] = {}
    while True:
        kept = [(i, one) for i, one in enumerate(patches) if i not in dropped]
        if not kept:
            return Whole(dropped, (), None, trials.before.report, None)
        whole = _try(trials, [one for _, one in kept])
        if not whole.dropped:
            return replace(whole, dropped=dropped)
        if len(whole.dropped) == len(kept) > 1 and len(set(whole.dropped.values())) == 1:
            # Something is wrong with the whole: find out with whom.
            for index, one in kept:
                alone = _try(trials, [one])
                if alone.dropped:
                    dropped[index] = alone.dropped[0]
            if not any(index in dropped for index, _ in kept):
                dropped.update({index: f"together: {whole.dropped[0]}" for index, _ in kept})
            continue
        dropped.update({kept[place][0]: why for place, why in whole.dropped.items()})


def beside(trials: Trials, patches: Sequence[Patch], known: Report) -> tuple[str, Whole]:
    """Try patches, the last of them a remedy, together.

    Args:
        known: the report with all of them but the last.

    Returns:
        Why they do not work together, or "", and what was seen.
    """
    whole = _try(trials, patches)
    if whole.dropped:
        return f"beside the other fixes: {next(iter(whole.dropped.values()))}", whole
    assert whole.after is not None
    old, new = known.totals, whole.after.totals
    if new.recompiles > old.recompiles or new.sites > old.sites or new.skips > old.skips:
        return "with the other fixes there are more breaks, skips or recompiles", whole
    return "", whole


def only_moved(patches: Sequence[Patch], whole: Whole) -> dict[int, str]:
    """Settings that keep values in the graph, where as many places then break at which those are asked for.

    Returns:
        Which place breaks instead, by the setting's position.
    """
    moved: dict[int, str] = {}
    settings = {name for patch in patches if not patch.edits for name in patch.rewrite.config}
    for name in settings:
        having = {i: one for i, one in enumerate(patches) if not one.edits and name in one.rewrite.config}
        functions = {_functions(finding)[-1] for one in having.values() for finding in one.findings}
        before, after = (_asked_in(functions, report) for report in (whole.before, whole.after) if report)
        instead = [finding for finding in after if finding in whole.revealed]
        if instead and len(after) >= len(before):
            where = instead[0].location
            place = f"{Path(where.file).name}:{where.line} ({instead[0].title})"
            moved |= dict.fromkeys(having, f"with it as many places break, now at {place}")
    return moved


def _asked_in(functions: set[tuple[str, str | None]], report: Report) -> list[Finding]:
    """Sites in functions, or in what those call, at which data is asked for."""
    return [
        finding
        for finding in report.findings
        if finding.code in _BY_DATA and any(place in functions for place in _functions(finding))
    ]


def _functions(finding: Finding) -> list[tuple[str, str | None]]:
    """The functions at work, that of the finding last."""
    places = [(frame.file, frame.function) for frame in finding.stack]
    return [*places, (finding.location.file, finding.location.function)]


def _try(trials: Trials, patches: Sequence[Patch]) -> Whole:
    """The script with patches.

    What a forked run computes otherwise is asked of plain runs again; it breaks where they do.
    """
    whole = _tried(trials, patches)
    if whole.dropped and not whole.breaks and trials.forking:
        with trials.plainly():
            whole = _tried(trials, patches)
    return whole


def _tried(trials: Trials, patches: Sequence[Patch]) -> Whole:
    before = trials.before.report
    with trials.with_patches(patches) as after:
        report = after.report
        if trials.ended_otherwise(after) is None:
            dropped = _still_there(patches, before, report, trials.sources)
            if dropped:
                return Whole(dropped, (), None, before, report, breaks=True)
        consented = any(patch.rewrite.consent for patch in patches)
        seen = trials.agreement(after, patches, consented=consented, uncompiled=True)
        why = seen.difference
        if why is None:
            why = recompiled(before, report, (one for patch in patches for one in patch.findings))
        dropped = dict.fromkeys(range(len(patches)), why) if why is not None else {}
        revealed = () if dropped else _revealed(before, report)
        return Whole(
            dropped,
            revealed,
            seen.outputs,
            before,
            report,
            consented,
            seen.words,
            tuple(patches),
            seen.uncompiled,
        )


def _sites(report: Report) -> dict[tuple[str, int, int | None], Finding]:
    return {
        (finding.location.file, finding.location.line, finding.location.column): finding
        for finding in report.findings
        if finding.kind in FIXABLE
    }


def _still_there(
    patches: Sequence[Patch], before: Report, after: Report, sources: Mapping[str, Source]
) -> dict[int, str]:
    """Patches whose finding is still there, or whose new lines break: by position."""
    dropped: dict[int, str] = {}
    places = _sites(after)
    known = _sites(before)
    for index, patch in enumerate(patches):
        for finding in patch.findings:
            if not patch.function:  # a remedy
                if any(one.fingerprint == finding.fingerprint for one in after.findings):
                    dropped[index] = "it is still there"
                continue
            where = finding.location
            again = next((o for (f, n, _), o in places.items() if (f, n) == (where.file, where.line)), None)
            if again is not None:
                dropped[index] = f"the break is still there: {again.title} ({again.reason[:80]})"
        lines = _edited_lines(patch, sources)
        for place, finding in places.items():
            where = finding.location
            if place not in known and (os.path.realpath(where.file), where.line) in lines:
                dropped.setdefault(index, f"the new code breaks too: {finding.title}")
    return dropped


def _edited_lines(patch: Patch, sources: Mapping[str, Source]) -> set[tuple[str, int]]:
    lines: set[tuple[str, int]] = set()
    for edit in patch.edits:
        text = sources[edit.file].text
        first = text.count("\n", 0, edit.start) + 1
        last = first + text.count("\n", edit.start, max(edit.start, edit.end - 1))
        lines.update((edit.file, line) for line in range(first, last + 1))
    return lines


def _revealed(before: Report, after: Report) -> tuple[Finding, ...]:
    known = _sites(before)
    return tuple(finding for place, finding in _sites(after).items() if place not in known)
