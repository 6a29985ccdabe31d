"""What ``breakscope check`` does with reports, from the baseline's file to the baseline's next state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from breakscope.errors import BaselineError, ReportError
from breakscope.project import baseline as baselines
from breakscope.project import suppressed
from breakscope.project.baseline import Baseline
from breakscope.project.config import Budgets, Config
from breakscope.project.judge import accept, judge
from breakscope.project.suppressed import Suppressed
from breakscope.project.verdict import Check, Policy, Verdict
from breakscope.report.model import Report
from breakscope.report.owners import stable_path


@dataclass(frozen=True, slots=True)
class Examined:
    """One target, judged.

    Attributes:
        comments: what the comments in its source left out; None where they were not asked.
    """

    verdict: Verdict
    comments: Suppressed | None


def policy(config: Config, budgets: Budgets, *, strict: bool) -> Policy:
    """What counts by the configuration, with the budgets of a target and of the command line."""
    return Policy(
        select=config.select,
        ignore=config.ignore,
        per_path_ignore=config.per_path_ignore,
        owners=config.owners,
        strict=strict or config.strict,
        budgets=budgets.over(config.budgets),
    )


def read_baseline(path: Path, *, required: bool) -> Baseline:
    """The baseline of a file; an empty one where there is none yet.

    Args:
        required: the user named the file and expects it to be there.

    Raises:
        BaselineError: it cannot be used.
    """
    try:
        return baselines.load(path)
    except FileNotFoundError:
        if required:
            raise BaselineError(
                f"there is no baseline {path}; breakscope check --update-baseline writes one"
            ) from None
        return Baseline()


def examine(
    target: str, report: Report, baseline: Baseline, policy: Policy, root: Path, *, suppress: bool
) -> Examined:
    """Judge one report.

    Args:
        root: folder of the repository here.
        suppress: whether comments in the source leave findings out.
    """
    comments = suppressed.apply(report, str(root)) if suppress else None
    verdict = judge(target, report, baseline, policy, comments.reasons if comments else None)
    return Examined(verdict, comments)


def conclude(examined: Iterable[Examined], baseline: str) -> Check:
    """The answer for all targets. A comment that any of them used is not unused."""
    every = list(examined)
    comments = [one.comments for one in every if one.comments is not None]
    used = frozenset[suppressed.Comment]().union(*(comment.used for comment in comments))
    unused = frozenset[suppressed.Comment]().union(*(comment.unused for comment in comments))
    malformed = frozenset[suppressed.Comment]().union(*(comment.malformed for comment in comments))
    return Check(
        verdicts=tuple(one.verdict for one in every),
        unused=tuple(sorted(unused - used)),
        malformed=tuple(sorted(malformed)),
        baseline=baseline,
    )


def update(baseline: Baseline, check: Check, path: Path) -> Baseline:
    """Write the baseline anew with what these targets show; what it knows of others stays.

    Raises:
        BaselineError: a run says nothing, so that what it does not show cannot be dropped.
        OutputError: the file cannot be written.
    """
    for verdict in check.verdicts:
        if verdict.outcome in ("died", "vacuous"):
            raise BaselineError(f"the baseline was not updated: {verdict.target}: {verdict.why[0]}")
    accepted = {verdict.target: accept(verdict.report, verdict) for verdict in check.verdicts}
    new = Baseline({**baseline.targets, **accepted})
    baselines.save(new, path)
    return new


def target_name(report: Report) -> str:
    """What a baseline calls the script of a report that was made without a configured target."""
    script = report.run.script
    if script.startswith("-m ") or not script.endswith(".py"):
        return script
    return stable_path(str(Path(report.run.cwd, script)), (report.run.cwd,))


def check_project(report: Report, path: Path, root: Path) -> None:
    """Make sure that a report that was not made just now is about this project.

    Raises:
        ReportError: neither its script nor any file of its findings is here.
    """
    named = [report.run.script] if report.run.script.endswith(".py") else []
    named += [finding.location.file for finding in report.findings if finding.location.owner == "project"]
    files = [file for file in dict.fromkeys(named) if not file.startswith("<")]
    if files and not any(suppressed.locate(file, report.run.cwd, str(root)) for file in files):
        raise ReportError(
            f"{path} is a report of another project: {report.run.script} of {report.run.cwd} is not in {root}"
        )
