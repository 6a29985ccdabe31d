"""The report as SARIF 2.1.0, for code scanning and editors."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from breakscope import catalog
from breakscope.catalog.entry import Severity
from breakscope.catalog.links import help_page, torch_page
from breakscope.render import sarif_places
from breakscope.render.sarif_places import MAX_TEXT, Places, message
from breakscope.report.model import Finding, Report
from breakscope.report.ranking import worst_first
from breakscope.view.text import harmless
from breakscope.view.words import about_run, clip, is_new, said, severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "breakscopeFingerprint/v1"

LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_PROBLEMS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}


def render(report: Report, *, root: str | None = None, known: frozenset[str] | None = None) -> str:
    """The report as SARIF text, in ASCII; worst finding first. What nothing is to be done about is a note.

    Args:
        report: what to show.
        root: folder of the repository, to which locations are relative, besides that in which the script
            ran. A finding in library code stands at the line of the project that called it, and its own
            place is a related location.
        known: fingerprints that are not new; with them, every result says ``new`` or ``unchanged``.
    """
    findings = sorted(report.findings, key=worst_first)
    codes = sorted({finding.code for finding in findings})
    places = Places(report, root)
    script = sarif_places.quoted(places.relative(report.run.script) or report.run.script)
    run = {
        "tool": {"driver": _driver(report, findings, codes)},
        # One category for each script: GitHub replaces the results of a category, not those of another.
        "automationDetails": {"id": f"breakscope/{script.strip('/')}/"},
        "invocations": [_invocation(report, root)],
        "originalUriBaseIds": sarif_places.BASES,
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, finding, codes, places, root, known) for finding in findings],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1) + "\n"


# ---- rules ----


def _driver(report: Report, findings: list[Finding], codes: list[str]) -> dict[str, Any]:
    return {
        "name": "breakscope",
        "version": harmless(report.tool.version),
        "rules": [_rule([finding for finding in findings if finding.code == code]) for code in codes],
    }


def _rule(findings: list[Finding]) -> dict[str, Any]:
    worst = findings[0]
    ids = {finding.gb_id for finding in findings}
    level = severity(replace(worst, intended=None, expected=None))
    return rule_of(worst.code, worst.title, level, ids.pop() if len(ids) == 1 else None)


def rule_of(code: str, title: str, level: Severity, gb_id: str | None = None) -> dict[str, Any]:
    """The rule of a code; the catalog speaks, or ``title`` where the code is not in it."""
    entry = catalog.find(code)
    rule = {
        "id": harmless(code),
        "helpUri": help_page(code, gb_id),
        "shortDescription": {"text": entry.title if entry else clip(harmless(title), MAX_TEXT)},
        "defaultConfiguration": {"level": LEVELS[level]},
        "properties": {"tags": ["torch.compile", "performance"], "problem.severity": _PROBLEMS[level]},
    }
    if entry:
        rule["fullDescription"] = {"text": entry.why}
        rule["help"] = {
            "text": f"{entry.why}\n\n{entry.fix}\n\n{entry.more}\n",
            "markdown": f"{entry.why}\n\n**{entry.fix}**\n\n```python\n{entry.more}\n```\n",
        }
    return rule


# ---- results ----


def _result(
    report: Report,
    finding: Finding,
    codes: list[str],
    places: Places,
    root: str | None,
    known: frozenset[str] | None,
) -> dict[str, Any]:
    words = said(report, finding, root)
    where = f" in {words.function}" if words.function else ""
    numbers = ", ".join(text for text in (words.amount, words.counts) if text)
    sentences = [f"{words.title}{where}: {numbers}", *([words.advice] if words.advice else [])]
    fingerprint = harmless(finding.fingerprint)
    result: dict[str, Any] = {
        "ruleId": harmless(finding.code),
        "ruleIndex": codes.index(finding.code),
        "level": LEVELS[severity(finding)],
        "message": message(".\n".join(text.removesuffix(".") for text in sentences) + "."),
        "locations": [places.primary(finding)],
        # GitHub matches alerts by the second; its own would merge two causes that share a line.
        "partialFingerprints": {FINGERPRINT: fingerprint, "primaryLocationLineHash": fingerprint},
        "properties": _properties(finding),
    }
    related = places.related(finding)
    flow = places.flow(finding)
    fixes = places.fixes(finding)
    if related:
        result["relatedLocations"] = related
    if flow:
        result["codeFlows"] = [flow]
    if fixes:
        result["fixes"] = fixes
    if known is not None:
        result["baselineState"] = "new" if is_new(finding, known) else "unchanged"
    return result


def _properties(finding: Finding) -> dict[str, Any]:
    """The numbers, for programs; what is not known is left out."""
    cost, guard, suggestion = finding.cost, finding.guard, finding.suggestion
    values = {
        "kind": finding.kind,
        "torchId": finding.gb_id,
        "torchPage": torch_page(finding.gb_id),
        "reason": finding.reason or None,
        "occurrences": finding.counts.occurrences,
        "crossings": finding.counts.crossings,
        "millisecondsPerStep": cost.ms_per_step if cost else None,
        "costMethod": cost.method if cost else None,
        "guard": guard.expression if guard else None,
        "suggestion": suggestion.status if suggestion else None,
        "expected": finding.expected,
        "effect": finding.effect,
    }
    return {
        name: clip(harmless(value), MAX_TEXT) if isinstance(value, str) else value
        for name, value in values.items()
        if value is not None
    }


# ---- the run ----


def _invocation(report: Report, root: str | None) -> dict[str, Any]:
    run = report.run
    view = about_run(report, root)
    notes = [("note", f"{label}: {text}" if label else text) for label, text in view.notes]
    alarms = [("error", view.alarm)] if view.alarm else []
    invocation: dict[str, Any] = {
        "executionSuccessful": run.status in ("ok", "unknown") and not report.reconciliation.vacuous,
        "toolExecutionNotifications": [
            {"level": level, "message": message(text)} for level, text in (*alarms, *notes)
        ],
        "properties": {
            name: harmless(value)
            for name, value in (("torch", run.torch), ("backend", run.backend), ("mode", run.mode))
            if value is not None
        },
    }
    if run.exit_code is not None:
        invocation["exitCode"] = run.exit_code
    invocation.update(_times(run.started_at, run.duration_s))
    return invocation


def _times(started_at: str, duration_s: float) -> dict[str, str]:
    try:
        start = datetime.fromisoformat(started_at).astimezone(UTC)
        end = start + timedelta(seconds=duration_s)
    except (ValueError, OverflowError):  # a report is data, and its times may be anything
        return {}
    names = {"startTimeUtc": start, "endTimeUtc": end}
    return {name: f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z" for name, time in names.items()}
