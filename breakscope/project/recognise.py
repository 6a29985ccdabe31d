"""Which findings a baseline knows, and what it knows that a run did not show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from breakscope.project.baseline import Accepted, Baseline, Known
from breakscope.project.sources import without_comment
from breakscope.project.verdict import Judged
from breakscope.report.model import Finding, Report
from breakscope.report.owners import stable_path


def known(finding: Finding, report: Report) -> Known:
    """A finding as a baseline keeps it."""
    place = finding.location
    whole = finding.kind == "recompile" or finding.code == "BS303"
    return Known(
        fingerprint=finding.fingerprint,
        code=finding.code,
        file=stable_path(place.file, (report.run.cwd,)),
        function=place.function or "",
        source="" if whole else " ".join(without_comment(place.source or "").split()),
    )


def states(
    findings: Sequence[Finding], report: Report, baseline: Baseline, suppressed: Mapping[str, str | None]
) -> list[Judged]:
    """Each finding with its state. Matched by fingerprint, and otherwise as :func:`_known_otherwise` says."""
    by_name = baseline.fingerprints
    judged: list[Judged] = []
    left: list[Finding] = []
    for finding in findings:
        if finding.fingerprint in suppressed:
            judged.append(Judged(finding, "suppressed", suppressed[finding.fingerprint]))
        elif finding.intended is not None:
            judged.append(Judged(finding, "meant", finding.intended))
        elif finding.expected is not None:
            judged.append(Judged(finding, "expected", finding.expected))
        elif finding.fingerprint in by_name:
            judged.append(Judged(finding, "known"))
        else:
            left.append(finding)
    return judged + _known_otherwise(left, findings, report, baseline)


def _known_otherwise(
    left: Sequence[Finding], findings: Sequence[Finding], report: Report, baseline: Baseline
) -> list[Judged]:
    """What another version of torch, or of breakscope, called otherwise at the same place is not new.

    Each known finding that the report does not show under its own name stands for one of these.
    """
    shown = {finding.fingerprint for finding in findings}
    waiting: dict[tuple[str, ...], list[str]] = {}
    for accepted in baseline.targets.values():
        versions = _other_versions(accepted, report)
        for one in accepted.findings if versions else ():
            if one.fingerprint not in shown:
                waiting.setdefault(_place(one), []).append(f"known as {one.code} with {versions}")
    judged = []
    for finding in left:
        names = waiting.get(_place(known(finding, report)))
        judged.append(Judged(finding, "known", names.pop()) if names else Judged(finding, "new"))
    return judged


def _place(one: Known) -> tuple[str, ...]:
    kind = "recompile" if one.code.startswith("BS2") else "break"
    return (kind, one.file, one.function, one.source)


def _other_versions(accepted: Accepted, report: Report) -> str:
    """The baseline's versions that are not the report's; empty where both are the same."""
    before, now = (_minor(version) for version in (accepted.torch, report.run.torch))
    found = [f"torch {before}"] if before != now and before else []
    if accepted.breakscope != report.tool.version:
        found.append(f"breakscope {accepted.breakscope}")
    return " and ".join(found)


def _minor(version: str | None) -> str | None:
    return None if version is None else ".".join(version.partition("+")[0].split(".")[:2])


def gone(target: str, report: Report, baseline: Baseline, judged: Sequence[Judged]) -> tuple[Known, ...]:
    """What the baseline knows of a target and a whole run of it did not show."""
    accepted = baseline.targets.get(target)
    if accepted is None:
        return ()
    shown = {finding.fingerprint for finding in report.findings}
    renamed = Counter(
        _place(known(one.finding, report)) for one in judged if one.state == "known" and one.why
    )
    missing = []
    for one in accepted.findings:
        if one.fingerprint in shown:
            continue
        if renamed[_place(one)]:
            renamed[_place(one)] -= 1
            continue
        missing.append(one)
    return tuple(missing)
