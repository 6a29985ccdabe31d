"""Every fixture is scanned for real: the report must say what is true of it, and so must its run's trace."""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from trace_writer import assert_only_what_a_trace_knows, imported
from truth import FIXTURES, TrueFinding, TrueRecompile, Truth, all_fixtures, line_number, read
from warm_scanning import run_command

import breakscope
from breakscope.report.model import Finding, Report

pytestmark = pytest.mark.torch

SITE_CODES = ("BS301", "BS302", "BS306")
TORCH = tuple(int(number) for number in version("torch").split(".")[:2])
COLUMNS_SINCE = (2, 13)  # torch underlines the broken expression in its records
# torch 2.9 does not record this break; a live scan finds it on the graph.
NOT_RECORDED = {(2, 9): {"lock"}}


def scan(fixture: Path, folder: Path, **environment: str) -> tuple[Truth, Report]:
    """What is true of a fixture, and the report of its scan, in a fork of a process that has imported torch."""
    truth = read(fixture, torch=version("torch"), python=platform.python_version())
    output = folder / "report.json"
    words = ["scan", "-q", *truth.options, "-o", str(output), str(fixture), *truth.args]
    root = fixture.parent.parent
    done = run_command(*words, folder=root, torch=True, **environment)
    assert output.exists(), done.stderr
    assert done.returncode == truth.exit_code
    return truth, breakscope.load(output)


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


def told(finding: Finding) -> tuple[object, ...]:
    """What a trace and a live scan both know of a finding."""
    location, guard = finding.location, finding.guard
    return (
        finding.fingerprint,
        finding.code,
        finding.gb_id,
        finding.reason,
        location.file,
        location.line,
        location.function,
        location.column if TORCH >= COLUMNS_SINCE else None,
        finding.counts.occurrences,
        finding.counts.compile_ids,
        [(skip.function, skip.line) for skip in finding.skipped],
        guard and (guard.cause, guard.source, guard.dimension, guard.expected),
        [guard.source for guard in finding.guards],
    )


@pytest.mark.parametrize("fixture", all_fixtures(), ids=lambda path: path.stem)
def test_a_scan_tells_the_truth_and_so_does_its_trace(fixture: Path, tmp_path: Path) -> None:
    truth, report = scan(fixture, tmp_path, TORCH_TRACE=str(tmp_path / "trace"))
    assert_true(report, truth, fixture)
    traces = list((tmp_path / "trace").glob("*.log"))
    if not traces:
        assert truth.vacuous
    elif fixture.stem not in NOT_RECORDED.get(TORCH, ()):
        assert_same(imported(traces[0]), report)


# What the fixtures show, each once: a site, a skip, causes of recompiles, the limit.
@pytest.mark.parametrize("name", ["recompile_limit", "shared_layer", "two_breaks", "varying_batch"])
def test_a_scan_without_a_trace_tells_the_truth(name: str, tmp_path: Path) -> None:
    fixture = FIXTURES / f"{name}.py"
    truth, report = scan(fixture, tmp_path)
    assert_true(report, truth, fixture)


def assert_true(report: Report, truth: Truth, fixture: Path) -> None:
    """The report of a scan says what is true of the fixture, and nothing else."""
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


def assert_same(trace: Report, live: Report) -> None:
    """A trace of the run that was scanned says the same, as far as a trace goes."""
    assert sorted(map(told, trace.findings)) == sorted(map(told, live.findings))
    ends = {finding.fingerprint: finding.location.end_column for finding in live.findings}
    for finding in trace.findings:
        assert finding.location.end_column in (None, ends[finding.fingerprint])
    assert trace.reconciliation.unattributed == live.reconciliation.unattributed == ()
    assert trace.reconciliation.vacuous == live.reconciliation.vacuous
    for name in ("graph_break_records", "recompile_records", "compilation_metrics"):
        assert trace.reconciliation.dynamo[name] == live.reconciliation.dynamo[name]
    for name in ("sites", "occurrences", "recompiles", "skips", "regions", "ops"):
        assert getattr(trace.totals, name) == getattr(live.totals, name), name
    regions = [(r.compile_id, r.function, r.ops, r.ended_by) for r in trace.regions]
    assert regions == [(r.compile_id, r.function, r.ops, r.ended_by) for r in live.regions]
    assert_only_what_a_trace_knows(trace)
