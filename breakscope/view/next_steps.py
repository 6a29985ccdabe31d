"""Which commands may answer what a report found."""

from __future__ import annotations

from breakscope.report.model import Finding, Report
from breakscope.report.ranking import is_open


def answers(report: Report, report_argument: str) -> list[tuple[str, str]]:
    """(command, what it does) of those that would have something to try.

    Both run the script again, as one process: there is nothing to offer for an imported trace, for several
    ranks, or for a script that did not come to its end.

    Args:
        report_argument: how the report is named behind a command, with a blank in front; or nothing.
    """
    if report.run.status != "ok" or report.run.world_size > 1:
        return []
    open_ = [finding for finding in report.findings if finding.suggestion is None and is_open(finding)]
    steps = []
    if any(map(_may_be_rewritten, open_)):
        steps.append((f"breakscope fix{report_argument}", "rewrites, each proved to compute the same"))
    if any(map(_may_be_remedied, open_)):
        steps.append((f"breakscope remedy{report_argument}", "keeps recompiles away, tried on the script"))
    return steps


def _may_be_rewritten(finding: Finding) -> bool:
    return finding.kind == "graph_break" or finding.code in ("BS301", "BS302")


def _may_be_remedied(finding: Finding) -> bool:
    return finding.kind == "recompile" or finding.code == "BS303"
