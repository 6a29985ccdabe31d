"""Crossings and launches are what programs counted themselves: see ``crossing_programs``."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from crossing_programs import PRELUDE, PROGRAMS
from warm_scanning import Warm

import breakscope
from breakscope.report.model import Finding

pytestmark = pytest.mark.torch

# Dynamo never gets the frame of the site, so only the calls of a caller that it gave up on can be counted:
# of a property that is the same. A generator is resumed in the middle and cannot be exchanged for a copy.
CALLS_ONLY = {
    "layers under checkpoint": "Net.forward",
    "a property": "f",
    "a generator that breaks itself": "f",
}
FEWER_CALLS = ("layers under checkpoint", "a generator that breaks itself")  # than passes of the line
MARKED = re.compile(r'hit\(\s*"([A-F])"|# ([A-F])$', re.MULTILINE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_crossings_are_what_the_program_counted(name: str, product: Warm, tmp_path: Path) -> None:
    source = PRELUDE + PROGRAMS[name]
    (tmp_path / "script.py").write_text(source)
    code = product.commands(
        [["scan", "-q", "--backend", "as-script", "script.py"]], tmp_path, tmp_path / "log"
    )
    assert code == 0, (tmp_path / "log.err").read_text()
    counted = json.loads((tmp_path / "counted.json").read_text())
    report = breakscope.load(tmp_path / ".breakscope" / "latest.json")
    assert report.reconciliation.unattributed == ()
    assert not [note for note in report.run.notes if "not counted" in note or "calls of the frame" in note]

    crossings = Counter[str]()
    for finding in report.findings:
        if finding.kind != "recompile":
            crossings[mark(finding, source)] += finding.counts.crossings or 0
            assert finding.calls_of == CALLS_ONLY.get(name)
    if name not in FEWER_CALLS:
        assert crossings == counted["counts"]
    assert report.totals.crossings == crossings.total()
    assert sum(step.crossings or 0 for step in report.steps) == crossings.total()
    assert sum(region.calls or 0 for region in report.regions) == counted["launches"]
    assert sum(step.launches or 0 for step in report.steps) == counted["launches"]


def mark(finding: Finding, source: str) -> str:
    """The letter of the site at which a finding is."""
    at = finding.location
    text = "\n".join(source.splitlines()[at.line - 1 : at.end_line])
    found = MARKED.search(text)
    assert found is not None, finding
    return found[1] or found[2]
