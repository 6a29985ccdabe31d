"""Which commands may answer what a report found."""

from __future__ import annotations

import shlex

from breakscope.report.model import Finding, Report
from breakscope.report.ranking import is_open
from breakscope.view.text import harmless


def answers(report: Report, report_argument: str) -> list[tuple[str, str]]:
    """(command, what it does) of those that would have something to try.

    Both run the script again, as one process: there is nothing to offer for an imported trace, for several
    ranks, or for a script that did not come to its end. One that failed may fail because it is compiled.

    Args:
        report_argument: how the report is named behind a command, with a blank in front; or nothing.
    """
    if report.run.status == "script_error" and report.run.world_size == 1:
        return _without_compile(report)
    if report.run.status != "ok" or report.run.world_size > 1:
        return []
    open_ = [finding for finding in report.findings if finding.suggestion is None and is_open(finding)]
    steps = []
    if any(map(_may_be_rewritten, open_)):
        steps.append((f"breakscope fix{report_argument}", "rewrites, each proved to compute the same"))
    if any(map(_may_be_remedied, open_)):
        steps.append((f"breakscope remedy{report_argument}", "keeps recompiles away, tried on the script"))
    return steps


def _without_compile(report: Report) -> list[tuple[str, str]]:
    run = report.run
    if not run.script.endswith(".py"):
        return []
    command = harmless(shlex.join(["python", run.script, *run.argv]))
    if report.reconciliation.vacuous:
        return [(command, "whether it fails without breakscope too: nothing was compiled")]
    if any(finding.effect == "ended" and "\nTried: " in finding.explanation for finding in report.findings):
        return []  # the scan made the call again in eager itself
    return [
        (f"TORCHDYNAMO_DISABLE=1 {command}", "whether it fails uncompiled too; if not, compiled code does")
    ]


def _may_be_rewritten(finding: Finding) -> bool:
    return finding.kind == "graph_break" or finding.code in ("BS301", "BS302")


def _may_be_remedied(finding: Finding) -> bool:
    return finding.kind == "recompile" or finding.code == "BS303"
