"""What a run has used up of its budgets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from breakscope.project.config import Budgets
from breakscope.report.model import Finding, Report
from breakscope.report.ranking import is_site

_STEPS = "the run has no steps: it neither stepped an optimizer nor called anything compiled"
_CROSSINGS = "crossings were not measured, as in an imported trace"


@dataclass(frozen=True, slots=True)
class Spent:
    """One budget and what was used of it.

    Attributes:
        name: as in the configuration, ``max-sites``.
        noun: what is counted, with its unit, as in "3 sites".
        actual: None where it was not measured.
        why: why it was not measured; None where it was.
    """

    name: str
    noun: str
    limit: float
    actual: float | None
    why: str | None = None

    @property
    def exceeded(self) -> bool:
        """Whether more was used than allowed. What was not measured is not known to exceed anything."""
        return self.actual is not None and self.actual > self.limit

    @property
    def sentence(self) -> str:
        """In words, for either case."""
        if self.actual is None:
            return f"{self.name} cannot be judged: {self.why}"
        return f"{_number(self.actual)} {self.noun}, at most {_number(self.limit)} allowed ({self.name})"


def spend(report: Report, kept: Sequence[Finding], budgets: Budgets) -> tuple[Spent, ...]:
    """Every budget that is set, and what was used of it.

    Args:
        kept: the findings of the report that count; what the others had is not counted.
    """
    spent = []
    if budgets.max_sites is not None:
        sites = sum(map(is_site, kept))
        spent.append(Spent("max-sites", "sites" if sites != 1 else "site", budgets.max_sites, sites))
    if budgets.max_recompiles is not None:
        recompiles = _recompiles(report, kept)
        noun = "recompiles" if recompiles != 1 else "recompile"
        spent.append(Spent("max-recompiles", noun, budgets.max_recompiles, recompiles))
    if budgets.max_crossings_per_step is not None:
        crossings, why = _crossings_per_step(report, kept)
        limit = budgets.max_crossings_per_step
        spent.append(Spent("max-crossings-per-step", "crossings a step", limit, crossings, why))
    if budgets.max_compile_seconds is not None:
        seconds, why = _compile_seconds(report)
        spent.append(
            Spent("max-compile-seconds", "s of compiling", budgets.max_compile_seconds, seconds, why)
        )
    if budgets.max_ms_per_step is not None:
        ms, why = _ms_per_step(report)
        spent.append(Spent("max-ms-per-step", "ms a step", budgets.max_ms_per_step, ms, why))
    return tuple(spent)


def _recompiles(report: Report, kept: Sequence[Finding]) -> int:
    """All of the run, without those of findings that do not count."""
    names = {finding.fingerprint for finding in kept}
    left_out = sum(
        finding.counts.occurrences
        for finding in report.findings
        if finding.kind == "recompile" and finding.fingerprint not in names
    )
    return report.totals.recompiles - left_out


def _crossings_per_step(report: Report, kept: Sequence[Finding]) -> tuple[float | None, str | None]:
    counts = [finding.counts.crossings for finding in kept if is_site(finding)]
    if None in counts:
        return None, _CROSSINGS
    crossings = sum(count for count in counts if count is not None)
    if not report.totals.steps:
        return (0.0, None) if not crossings else (None, _STEPS)
    return crossings / report.totals.steps, None


def _compile_seconds(report: Report) -> tuple[float | None, str | None]:
    by_rank: dict[int, float] = defaultdict(float)
    for one in report.compiles:
        if one.seconds is not None:
            by_rank[one.rank] += one.seconds
    if not by_rank and report.regions:
        return None, "the report holds no compile times"
    return max(by_rank.values(), default=0.0), None


def _ms_per_step(report: Report) -> tuple[float | None, str | None]:
    timing = report.timing
    if timing is not None and timing.step_ms is not None:
        return timing.step_ms, None
    return None, timing.method if timing is not None else "the report holds no time of a steady step"


def _number(value: float) -> str:
    return f"{value:,.6g}" if value % 1 else f"{value:,.0f}"
