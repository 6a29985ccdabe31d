"""Findings of reports, drawn at random and printed for reading: source, cause and advice.

    python benchmarks/findings_sample.py 100 .breakscope/*.json

Advice is right or wrong only to a reader: count how many are good, half right, generic and wrong.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import breakscope
from breakscope import catalog
from breakscope.report.model import Finding


def lines(finding: Finding) -> Iterator[str]:
    """What a reader must know to judge the advice of one finding."""
    place = finding.location
    yield f"{finding.code} {finding.gb_id or ''} {finding.title}"
    yield f"  {place.file}:{place.line} {place.function} ({place.owner}): {place.source}"
    if finding.called_from is not None:
        yield f"  from   {finding.called_from.file}:{finding.called_from.line} {finding.called_from.source}"
    yield f"  reason {' '.join(finding.reason.split())[:200]}"
    if finding.guard is not None:
        guard = finding.guard
        yield f"  guard  {guard.source}: {guard.expected} -> {guard.actual} ({', '.join(guard.values)})"
    for hint in finding.hints[:2]:
        yield f"  torch  {' '.join(hint.split())[:200]}"
    yield f"  do     {finding.advice or catalog.entry(finding.code).fix}"
    if finding.caused_by is not None:
        yield "  (shown with its cause only)"


def main(most: int, paths: list[str]) -> None:
    findings = [finding for path in paths for finding in breakscope.load(path).findings]
    drawn = random.Random(0).sample(findings, min(most, len(findings)))
    for number, finding in enumerate(drawn, 1):
        first, *rest = lines(finding)
        print(f"[{number}] {first}", *rest, sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
