"""Every fixture is scanned for real, and the report must say what is true of it."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from scanning import clean_environment, command
from truth import TrueFinding, TrueRecompile, all_fixtures, line_number, read

import breakscope
from breakscope.model import Finding, Report

SITE_CODES = ("BS301", "BS302", "BS306")


def scan(fixture: Path, folder: Path, options: tuple[str, ...], args: tuple[str, ...]) -> tuple[int, Report]:
    output = folder / "report.json"
    done = subprocess.run(
        command("scan", "-q", *options, "-o", str(output), str(fixture), *args),
        cwd=fixture.parent.parent,
        capture_output=True,
        text=True,
        timeout=120,
        env=clean_environment(),
        check=False,
    )
    assert output.exists(), done.stderr
    return done.returncode, breakscope.load(output)


def described(finding: Finding) -> TrueFinding:
    """A finding in the words of the truth."""
    location = finding.location
    at_site = finding.kind == "graph_break" or finding.code in SITE_CODES
    return TrueFinding(
        code=finding.code,
        function=location.function or "",
        line=location.source if at_site else None,
        crossings=finding.counts.crossings if at_site else None,
    )


def expression(finding: Finding) -> str | None:
    """The text of a finding's columns, where they are on one line."""
    location = finding.location
    if location.source is None or location.indent is None or not location.column or not location.end_column:
        return None
    if location.end_line != location.line:
        return None
    return location.source[location.column - 1 - location.indent : location.end_column - 1 - location.indent]


def same_cause(finding: Finding, true: TrueRecompile) -> bool:
    """Whether a finding is what the truth names; what the truth leaves open is not compared."""
    guard = finding.guard
    assert guard is not None
    found = (finding.code, finding.location.function, finding.counts.occurrences, guard.dimension)
    told = (true.source, true.expected, true.actual)
    return found == (true.code, true.function, true.times, true.dimension) and all(
        wanted in (None, given)
        for wanted, given in zip(told, (guard.source, guard.expected, guard.actual), strict=True)
    )


@pytest.mark.parametrize("fixture", all_fixtures(), ids=lambda path: path.stem)
def test_a_scan_tells_the_truth(fixture: Path, tmp_path: Path) -> None:
    truth = read(fixture, torch=version("torch"), python=platform.python_version())
    exit_code, report = scan(fixture, tmp_path, truth.options, truth.args)
    assert exit_code == truth.exit_code
    assert report.run.exit_code == truth.exit_code
    assert report.reconciliation.unattributed == ()
    assert report.reconciliation.vacuous == truth.vacuous

    others = [finding for finding in report.findings if finding.kind != "recompile"]
    assert Counter(map(described, others)) == Counter(replace(t, expression=None) for t in truth.findings)
    for true in truth.findings:
        if true.line is None:
            continue
        number = line_number(fixture, true.line)
        [finding] = [f for f in others if f.location.line == number]
        # Where the truth leaves it open, the columns are the whole line or depend on the Python.
        assert expression(finding) == true.expression or true.expression is None
        assert finding.location.column is not None

    causes = [f for f in report.findings if f.kind == "recompile"]
    assert len(causes) == len(truth.recompile_causes)
    for cause in truth.recompile_causes:
        assert any(same_cause(finding, cause) for finding in causes), (cause, causes)

    skipped = {(s.function, s.calls) for f in report.findings for s in f.skipped}
    skipped |= {(f.location.function, f.counts.crossings) for f in report.findings if f.code == "BS303"}
    assert skipped == {(skip.function, skip.calls) for skip in truth.skipped}

    totals = report.totals
    assert (totals.sites, totals.crossings, totals.recompiles, totals.skips) == (
        truth.sites,
        truth.crossings,
        truth.recompiles,
        truth.skips,
    )
    if truth.occurrences is not None:
        assert totals.occurrences == truth.occurrences
        assert report.reconciliation.dynamo["graph_break_records"] == truth.occurrences
    if truth.regions is not None:
        assert totals.regions == truth.regions
        # Dynamo's counters are not there where Dynamo was never loaded.
        assert report.reconciliation.dynamo.get("counters.unique_graphs", 0) == truth.regions
