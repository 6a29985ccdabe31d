"""What findings did to the run itself: which ended it, and which hide what would have come after them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from breakscope.diagnose.collect import Collected, Event
from breakscope.report.model import Effect, Finding

_UNFINISHED = "BS404"
_LIMIT = ("BS303", "FailOnRecompileLimitHit")
_TEXT = "GB0021"
_NO_TEXT = re.compile(r"sequence item \d+: expected str instance, (int|float|bool) found")
# Torch 2.13: what stands in a text in front of a break in it is not formatted behind it.
_RAISES = (
    "Compiled code raises the TypeError here that ended the script: torch joins the parts of the text, and a"
    " number that has become symbolic is none. Read the tensor before the text, v = loss.item(), and write v."
)
_COMPARED = 200  # characters of two texts of one exception: one of them may be cut


def mark(found: Collected, findings: Sequence[Finding], *, vacuous: bool) -> list[Finding]:
    """The findings with their effects."""
    ended_by = fatal(found)
    marked = [
        replace(finding, effect=_effect(found, finding, ended_by, vacuous=vacuous)) for finding in findings
    ]
    ended = _of_text(found, marked)
    return [one if one is not ended else _ended_by_text(one) for one in marked]


def _of_text(found: Collected, findings: Sequence[Finding]) -> Finding | None:
    """What broke in the f-string whose compiled form ended the script, which passes uncompiled; else None."""
    for error in (one for event in found.raised for one in event["errors"]):
        if error["type"] == "TypeError" and _NO_TEXT.match(error["text"]):
            place = error.get("file"), error.get("line")
            there = [
                one
                for one in findings
                if (one.location.file, one.location.line) == place and one.kind in ("graph_break", "skip")
            ]
            return max(there, key=lambda one: one.gb_id == _TEXT, default=None)
    return None


def _ended_by_text(finding: Finding) -> Finding:
    return replace(finding, effect="ended", advice=f"{_RAISES} {finding.advice or ''}".rstrip())


def _effect(found: Collected, finding: Finding, ended_by: str | None, *, vacuous: bool) -> Effect | None:
    if finding.kind == "recompile":
        return finding.effect
    # How long a function's compiles took ended nothing, also where one of them failed.
    if ended_by is not None and ended_by in finding.counts.compile_ids and finding.kind != "compile":
        return "ended"
    code, raised = _LIMIT
    if finding.code == code and any(
        one["type"] == raised for event in found.raised for one in event["errors"]
    ):
        return "ended"
    hides = finding.code == _UNFINISHED or (vacuous and finding.kind == "skip")
    return "incomplete" if hides else finding.effect


def fatal(found: Collected) -> str | None:
    """The compile that failed with the exception that ended the script; None where another one did."""
    failed = [event for event in found.metrics if event["metrics"].get("fail_type")]
    ended = (event for event in reversed(failed) if any(_is_of(one, event) for one in found.raised))
    last = next(ended, None)
    return None if last is None else last["cid"]


def _is_of(raised: Event, failed: Event) -> bool:
    metrics = failed["metrics"]
    said = str(metrics.get("fail_reason") or "").strip()[:_COMPARED]
    return any(
        one["type"] == metrics["fail_type"] and one["text"].strip().startswith(said)
        for one in raised["errors"]
    )
