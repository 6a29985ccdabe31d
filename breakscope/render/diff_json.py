"""A comparison as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from breakscope.diagnose.compare import Change, Comparison, Difference, Pair
from breakscope.report.codec import encode
from breakscope.report.model import Finding, Report, Run, Tool, Totals

# 1: the first layout. Additions are free, changes bump the number.
SCHEMA_VERSION = 1


def render(comparison: Comparison) -> str:
    """The comparison as JSON in ASCII that ends with a newline.

    ``new``, ``fixed`` and ``unseen`` hold findings as a report does; ``changed``, ``moved`` and
    ``unchanged`` hold ``{"old": finding, "new": finding, "moved", "changes"}``.
    """
    data = {
        "schema_version": SCHEMA_VERSION,
        "before": _about(comparison.before),
        "after": _about(comparison.after),
        "settings": [encode(setting, Difference) for setting in comparison.settings],
        "doubts": list(comparison.doubts),
        "new": _findings(comparison.new),
        "fixed": _findings(comparison.fixed),
        "unseen": _findings(comparison.unseen),
        "changed": _pairs(comparison.changed),
        "moved": _pairs(comparison.moved),
        "unchanged": _pairs(comparison.unchanged),
        "compile_time": asdict(comparison.compile_time) if comparison.compile_time else None,
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _about(report: Report) -> dict[str, Any]:
    return {
        "tool": encode(report.tool, Tool),
        "run": encode(report.run, Run),
        "totals": encode(report.totals, Totals),
        "benchmark": report.benchmark,
    }


def _findings(findings: tuple[Finding, ...]) -> list[Any]:
    return [encode(finding, Finding) for finding in findings]


def _pairs(pairs: tuple[Pair, ...]) -> list[Any]:
    return [
        {
            "old": encode(pair.old, Finding),
            "new": encode(pair.new, Finding),
            "moved": pair.moved,
            "changes": [encode(change, Change) for change in pair.changes],
        }
        for pair in pairs
    ]
