"""Whether a report passes: what is new in it, which budgets it exceeds. A pure function.

``judge`` answers for one target; the command line asks for each and exits with the worst answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from breakscope import globs
from breakscope.baseline import Accepted, Baseline, Known
from breakscope.config import Budgets
from breakscope.config.model import OWNERS
from breakscope.diagnose.budgets import Spent, spend
from breakscope.diagnose.build import worst_first
from breakscope.diagnose.owners import stable_path
from breakscope.diagnose.sources import without_comment
from breakscope.diagnose.suppressed import Comment
from breakscope.model import Finding, Owner, Report

Outcome = Literal["clean", "known", "new", "strict", "budget", "not_measured", "vacuous", "died"]
State = Literal["new", "known", "suppressed"]

# Worst first: a report that says nothing makes every other answer worthless.
_EXIT_CODES: dict[Outcome, int] = {
    "died": 3,
    "vacuous": 3,
    "new": 1,
    "strict": 1,
    "budget": 1,
    "not_measured": 2,
    "known": 0,
    "clean": 0,
}
_SEVERITY = tuple(_EXIT_CODES)


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts, and how much of it is too much.

    Attributes:
        select: codes, or prefixes of codes, that count; ignore: those of them that do not.
        per_path_ignore: codes that do not count in paths that match a pattern.
        owners: whose code findings count in.
        strict: whether known findings fail, too.
    """

    select: tuple[str, ...] = ("BS",)
    ignore: tuple[str, ...] = ()
    per_path_ignore: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    owners: tuple[Owner, ...] = OWNERS
    strict: bool = False
    budgets: Budgets = field(default_factory=Budgets)


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding that counts, and what is said of it.

    Attributes:
        why: the reason of its suppression, or as what it is known where that is not plain; None otherwise.
    """

    finding: Finding
    state: State
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one target.

    Attributes:
        target: its name; report: what was judged.
        judged: the findings that count, worst first.
        left_out: how many do not count, by select, ignore, paths and owners.
        gone: what the baseline knows of this target and the run, which came to its end, did not show.
        spent: each budget that is set.
        why: sentences that say what fails; empty where nothing does.
        strict: whether known findings fail, too.
    """

    target: str
    report: Report
    outcome: Outcome
    judged: tuple[Judged, ...]
    left_out: int
    gone: tuple[Known, ...]
    spent: tuple[Spent, ...]
    why: tuple[str, ...]
    strict: bool

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 cannot be judged as asked, 3 the run says nothing."""
        return _EXIT_CODES[self.outcome]

    def of(self, *states: State) -> tuple[Finding, ...]:
        """The findings in these states, worst first."""
        return tuple(one.finding for one in self.judged if one.state in states)


@dataclass(frozen=True, slots=True)
class Check:
    """The answer for all targets.

    Attributes:
        unused: comments that suppressed nothing in any of the runs; malformed: those not understood.
        baseline: the baseline's path as a user would type it.
    """

    verdicts: tuple[Verdict, ...]
    unused: tuple[Comment, ...]
    malformed: tuple[Comment, ...]
    baseline: str

    @property
    def exit_code(self) -> int:
        """That of the worst verdict."""
        worst = min((_SEVERITY.index(one.outcome) for one in self.verdicts), default=len(_SEVERITY) - 1)
        return _EXIT_CODES[_SEVERITY[worst]]


def judge(
    target: str,
    report: Report,
    baseline: Baseline,
    policy: Policy,
    suppressed: Mapping[str, str | None] | None = None,
) -> Verdict:
    """The verdict on one report.

    Args:
        target: name of the target, under which the baseline may know it.
        baseline: known findings. One that is known of any target is known: a site is a place in source,
            whichever script comes by.
        suppressed: reasons by fingerprint, of the findings that a comment in their source leaves out.
    """
    counting = [finding for finding in report.findings if _counts(finding, report, policy)]
    states = _states(counting, report, baseline, suppressed or {})
    judged = tuple(sorted(states, key=lambda one: worst_first(one.finding)))
    kept = [one.finding for one in judged if one.state != "suppressed"]
    spent = spend(report, kept, policy.budgets)
    outcome, why = _outcome(report, judged, spent, policy, baseline.targets.get(target))
    return Verdict(
        target=target,
        report=report,
        outcome=outcome,
        judged=judged,
        left_out=len(report.findings) - len(counting),
        gone=() if outcome in ("died", "vacuous") else _gone(target, report, baseline, judged),
        spent=spent,
        why=why,
        strict=policy.strict,
    )


def accept(report: Report, verdict: Verdict) -> Accepted:
    """What the baseline is to know of a target from now on: all that counts and is not suppressed."""
    return Accepted(
        torch=report.run.torch.partition("+")[0] if report.run.torch else None,
        breakscope=report.tool.version,
        compiled_by_script=_compiled_by_script(report),
        findings=tuple(known(finding, report) for finding in verdict.of("new", "known")),
    )


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


# ---- findings ----


def _counts(finding: Finding, report: Report, policy: Policy) -> bool:
    if not finding.code.startswith(policy.select) or (
        policy.ignore and finding.code.startswith(policy.ignore)
    ):
        return False
    if finding.location.owner not in policy.owners:
        return False
    path = stable_path(finding.location.file, (report.run.cwd,)).lstrip("/")
    return not any(
        codes and finding.code.startswith(codes) and globs.matches(pattern, path)
        for pattern, codes in policy.per_path_ignore.items()
    )


def _states(
    findings: Sequence[Finding], report: Report, baseline: Baseline, suppressed: Mapping[str, str | None]
) -> list[Judged]:
    by_name = baseline.fingerprints
    states: list[Judged] = []
    left: list[Finding] = []
    for finding in findings:
        if finding.fingerprint in suppressed:
            states.append(Judged(finding, "suppressed", suppressed[finding.fingerprint]))
        elif finding.fingerprint in by_name:
            states.append(Judged(finding, "known"))
        else:
            left.append(finding)
    return states + _known_otherwise(left, findings, report, baseline)


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


def _gone(target: str, report: Report, baseline: Baseline, judged: Sequence[Judged]) -> tuple[Known, ...]:
    accepted = baseline.targets.get(target)
    if accepted is None:
        return ()
    shown = {finding.fingerprint for finding in report.findings}
    renamed = Counter(
        _place(known(one.finding, report)) for one in judged if one.state == "known" and one.why
    )
    gone = []
    for one in accepted.findings:
        if one.fingerprint in shown:
            continue
        if renamed[_place(one)]:
            renamed[_place(one)] -= 1
            continue
        gone.append(one)
    return tuple(gone)


# ---- the whole ----


def _outcome(
    report: Report,
    judged: Sequence[Judged],
    spent: Sequence[Spent],
    policy: Policy,
    accepted: Accepted | None,
) -> tuple[Outcome, tuple[str, ...]]:
    """The outcome and every sentence that says why, the worst first."""
    counts = Counter(one.state for one in judged)
    said: list[tuple[Outcome, str]] = []
    if report.run.status != "ok" or report.run.exit_code:
        said.append(("died", _death(report)))
    if vacuous := _vacuous(report, accepted):
        said.append(("vacuous", vacuous))
    if counts["new"]:
        said.append(("new", f"{counts['new']} new finding{'s' * (counts['new'] != 1)}"))
    if policy.strict and counts["known"]:
        number = counts["known"]
        said.append(
            ("strict", f"{number} known finding{'s' * (number != 1)}, which --strict does not accept")
        )
    said += [("budget", one.sentence) for one in spent if one.exceeded]
    said += [("not_measured", one.sentence) for one in spent if one.actual is None]
    if not said:
        return ("known" if counts["known"] else "clean"), ()
    return said[0][0], tuple(sentence for _, sentence in said)


def _death(report: Report) -> str:
    run = report.run
    match run.status:
        case "timeout":
            ended = "did not come to its end in time"
        case "interrupted":
            ended = "was interrupted"
        case _:
            ended = "was killed" if run.status == "killed" else "failed"
            ended += "" if run.exit_code is None else f" with exit status {run.exit_code}"
    return f"the script {ended}, so the report holds only what was seen up to then"


def _vacuous(report: Report, accepted: Accepted | None) -> str | None:
    if report.reconciliation.vacuous:
        return "nothing was compiled, so a clean report means nothing"
    # An imported trace does not know who compiled, and lists nobody.
    ours = bool(report.run.targets) and not _compiled_by_script(report)
    if accepted is not None and accepted.compiled_by_script and ours:
        return (
            "the script compiled something itself when the baseline was made and compiles nothing now: what "
            "the report shows was compiled by breakscope"
        )
    return None


def _compiled_by_script(report: Report) -> bool:
    return any(one.by != "breakscope" for one in report.run.targets)
