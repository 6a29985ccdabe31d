"""Possible breaks and the baseline of ``breakscope check``: what is accepted there does not fail here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from breakscope.project.baseline import Accepted, Baseline, Known
from breakscope.project.sources import without_comment
from breakscope.report.lint import Linted, Possible
from breakscope.report.owners import stable_path

TARGET = "lint"  # its name in a baseline, beside those of scripts


def leave_out(linted: Linted, baseline: Baseline, root: str) -> Linted:
    """Without what a scan or lint was told to accept at the same place, by whatever code it knows it."""
    names = baseline.fingerprints
    places = {
        _place(finding)
        for accepted in baseline.targets.values()
        for finding in accepted.findings
        if finding.source
    }
    new = tuple(
        one
        for one in linted.possible
        if one.fingerprint not in names and _place(_known(one, root)) not in places
    )
    return replace(linted, possible=new, known=len(linted.possible) - len(new))


def accept(linted: Linted, baseline: Baseline, root: str, files: Collection[str]) -> Baseline:
    """The baseline with what lint shows now.

    Args:
        linted: before anything was left out.
        files: what was linted; what is known of other files stays.
    """
    others = Baseline({name: one for name, one in baseline.targets.items() if name != TARGET})
    here = {stable_path(file, (root,)) for file in files}
    before = baseline.targets[TARGET].findings if TARGET in baseline.targets else ()
    kept = [one for one in before if one.file not in here]
    new = [_known(one, root) for one in leave_out(linted, others, root).possible]
    accepted = Accepted(None, linted.tool.version, compiled_by_script=False, findings=(*kept, *new))
    return Baseline({**others.targets, TARGET: accepted})


def _known(one: Possible, root: str) -> Known:
    place = one.location
    source = " ".join(without_comment(place.source or "").split())
    return Known(one.fingerprint, one.code, stable_path(place.file, (root,)), place.function or "", source)


def _place(one: Known) -> tuple[str, str, str]:
    return one.file, one.function, one.source
