"""Whether a report passes: what is new in it, which budgets it exceeds. A pure function.

``judge`` answers for one target; the command line asks for each and exits with the worst answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from breakscope.project import globs, recognise
from breakscope.project.baseline import Accepted, Baseline
from breakscope.project.budgets import Spent, spend
from breakscope.project.verdict import Judged, Outcome, Policy, Verdict
from breakscope.report.model import Finding, Report
from breakscope.report.owners import stable_path
from breakscope.report.ranking import worst_first


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
    states = recognise.states(counting, report, baseline, suppressed or {})
    judged = tuple(sorted(states, key=lambda state: worst_first(state.finding)))
    kept = [one.finding for one in judged if one.state in ("new", "known")]
    spent = spend(report, kept, policy.budgets)
    outcome, why = _outcome(report, judged, spent, policy, baseline.targets.get(target))
    return Verdict(
        target=target,
        report=report,
        outcome=outcome,
        judged=judged,
        left_out=len(report.findings) - len(counting),
        gone=() if outcome in ("died", "vacuous") else recognise.gone(target, report, baseline, judged),
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
        findings=tuple(recognise.known(finding, report) for finding in verdict.of("new", "known")),
    )


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
        why = report.reconciliation.why
        return "nothing was compiled, so a clean report means nothing" + (f": {why}" if why else "")
    # An imported trace does not know who compiled, and lists nobody.
    ours = bool(report.run.targets) and not _compiled_by_script(report)
    if accepted is not None and accepted.compiled_by_script and ours:
        return (
            "the script compiled something itself when the baseline was made and compiles nothing now: what "
            "the report shows was compiled by breakscope"
        )
    return None


def _compiled_by_script(report: Report) -> bool:
    return any(target.by != "breakscope" for target in report.run.targets)
