"""The report as tables, for notebooks and spreadsheets. Imports pandas where it is asked for one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from breakscope import catalog
from breakscope.errors import UsageError
from breakscope.report.model import Finding, Guard, Report
from breakscope.report.owners import display_path
from breakscope.report.ranking import worst_first

if TYPE_CHECKING:
    import pandas as pd

# Column -> dtype. All can hold "not known". Names and order are a contract: new columns go to the end.
_TEXT, _COUNT, _NUMBER = "string", "Int64", "Float64"
FINDINGS: dict[str, str] = {
    "fingerprint": _TEXT,
    "code": _TEXT,
    "kind": _TEXT,
    "severity": _TEXT,
    "title": _TEXT,
    "file": _TEXT,
    "line": _COUNT,
    "column": _COUNT,
    "end_line": _COUNT,
    "end_column": _COUNT,
    "function": _TEXT,
    "source": _TEXT,
    "owner": _TEXT,
    "called_from_file": _TEXT,
    "called_from_line": _COUNT,
    "occurrences": _COUNT,
    "crossings": _COUNT,
    "cost_ms_per_step": _NUMBER,
    "cost_share": _NUMBER,
    "cost_method": _TEXT,
    "first_step": _COUNT,
    "last_step": _COUNT,
    "ranks": _TEXT,
    "compile_ids": _TEXT,
    "gb_id": _TEXT,
    "reason": _TEXT,
    "guard_cause": _TEXT,
    "guard_source": _TEXT,
    "guard_expected": _TEXT,
    "guard_actual": _TEXT,
    "suggestion_rule": _TEXT,
    "suggestion_status": _TEXT,
    "suggestion_summary": _TEXT,
    "expected": _TEXT,
    "intended": _TEXT,
    "effect": _TEXT,
}
REGIONS: dict[str, str] = {
    "compile_id": _TEXT,
    "function": _TEXT,
    "ops": _COUNT,
    "calls": _COUNT,
    "ms": _NUMBER,
    "ended_by": _TEXT,
}
GUARDS: dict[str, str] = {
    "fingerprint": _TEXT,
    "code": _TEXT,
    "function": _TEXT,
    "cause": _TEXT,
    "source": _TEXT,
    "dimension": _COUNT,
    "expected": _TEXT,
    "actual": _TEXT,
    "values": _TEXT,
    "expression": _TEXT,
}
SKIPPED: dict[str, str] = {
    "fingerprint": _TEXT,
    "code": _TEXT,
    "function": _TEXT,
    "file": _TEXT,
    "line": _COUNT,
    "why": _TEXT,
    "calls": _COUNT,
    "since": _COUNT,
}

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def frames(report: Report, *, root: str | None = None) -> dict[str, pd.DataFrame]:
    """The tables ``findings``, ``regions``, ``guards`` and ``skipped``; the last two join on ``fingerprint``.

    Findings stand worst first, and so do their guards and skipped functions. Times are in milliseconds,
    ``cost_share`` is a fraction of a step, lists (ranks, compile ids, values) are joined by spaces or by
    ``"; "`` for values. What is not known is ``pd.NA``.

    Args:
        report: what to tabulate.
        root: folder to which files are relative, besides that in which the script ran.
    """
    folders = _folders(report, root)
    ordered = sorted(report.findings, key=worst_first)
    return {
        "findings": table(FINDINGS, (_finding(finding, folders) for finding in ordered)),
        "regions": table(
            REGIONS,
            (
                (region.compile_id, region.function, region.ops, region.calls, region.ms, region.ended_by)
                for region in report.regions
            ),
        ),
        "guards": table(
            GUARDS,
            (
                (finding.fingerprint, finding.code, finding.location.function, *_guard(guard))
                for finding in ordered
                for guard in (*((finding.guard,) if finding.guard else ()), *finding.guards)
            ),
        ),
        "skipped": table(
            SKIPPED,
            (
                (
                    finding.fingerprint,
                    finding.code,
                    one.function,
                    display_path(one.file, folders),
                    one.line,
                    one.why,
                    one.calls,
                    one.since,
                )
                for finding in ordered
                for one in finding.skipped
            ),
        ),
    }


def findings(report: Report, *, root: str | None = None) -> list[list[Any]]:
    """The rows of the table ``findings`` without pandas; what is not known is None."""
    folders = _folders(report, root)
    ordered = sorted(report.findings, key=worst_first)
    return [[_storable(value) for value in _finding(finding, folders)] for finding in ordered]


def _folders(report: Report, root: str | None) -> tuple[str, ...]:
    return tuple(folder for folder in (root, report.run.cwd) if folder)


def _finding(finding: Finding, folders: tuple[str, ...]) -> tuple[Any, ...]:
    place, caller, cost = finding.location, finding.called_from, finding.cost
    guard, suggestion = finding.guard, finding.suggestion
    return (
        finding.fingerprint,
        finding.code,
        finding.kind,
        catalog.severity(finding),
        finding.title,
        display_path(place.file, folders),
        place.line,
        place.column,
        place.end_line,
        place.end_column,
        place.function,
        place.source,
        place.owner,
        display_path(caller.file, folders) if caller else None,
        caller.line if caller else None,
        finding.counts.occurrences,
        finding.counts.crossings,
        cost.ms_per_step if cost else None,
        cost.share if cost else None,
        cost.method if cost else None,
        finding.first_step,
        finding.last_step,
        " ".join(map(str, finding.ranks)),
        " ".join(finding.counts.compile_ids),
        finding.gb_id,
        finding.reason,
        guard.cause if guard else None,
        guard.source if guard else None,
        guard.expected if guard else None,
        guard.actual if guard else None,
        suggestion.rule if suggestion else None,
        suggestion.status if suggestion else None,
        suggestion.summary if suggestion else None,
        finding.expected,
        finding.intended,
        finding.effect,
    )


def _guard(guard: Guard) -> tuple[Any, ...]:
    values = "; ".join(guard.values)
    return (
        guard.cause,
        guard.source,
        guard.dimension,
        guard.expected,
        guard.actual,
        values,
        guard.expression,
    )


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Rows as a table with the given columns (name to dtype), also where there is no row."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise UsageError("tables need pandas: pip install 'torch-breakscope[tables]'") from None

    data = [[_storable(value) for value in row] for row in rows]
    # By position: an empty report has the same columns, with the same types.
    series = {
        name: pd.Series([row[index] for row in data], dtype=kind)
        for index, (name, kind) in enumerate(columns.items())
    }
    return pd.DataFrame(series)


def _storable(value: Any) -> Any:
    """Text without lone surrogates, which no file can hold: they become escapes."""
    if not isinstance(value, str):
        return value
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
