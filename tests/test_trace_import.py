"""The same run, scanned live and imported from its trace: the same findings."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from scanning import clean_environment, command
from trace_writer import Writer, imported, run_job
from truth import all_fixtures, read

import breakscope
from breakscope.model import Finding, Report

# What the fixtures show, each once: a site, a skip, causes of recompiles, the limit.
ALWAYS = {"recompile_limit", "shared_layer", "two_breaks", "varying_batch"}
COLUMNS_SINCE = (2, 13)  # torch underlines the broken expression in its records
# torch 2.9 does not record this break; a live scan finds it on the graph.
NOT_RECORDED = {"2.9": {"lock"}}

TORCH = tuple(int(number) for number in version("torch").split(".")[:2])


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
        (location.column, location.end_column) if TORCH >= COLUMNS_SINCE else None,
        finding.counts.occurrences,
        finding.counts.compile_ids,
        [(skip.function, skip.line) for skip in finding.skipped],
        guard and (guard.cause, guard.source, guard.dimension, guard.expected),
        [guard.source for guard in finding.guards],
    )


def fixtures() -> list[object]:
    return [
        pytest.param(path, id=path.stem, marks=[] if path.stem in ALWAYS else [pytest.mark.slow])
        for path in all_fixtures()
    ]


@pytest.mark.parametrize("fixture", fixtures())
def test_a_trace_says_what_the_scan_of_the_same_run_says(fixture: Path, tmp_path: Path) -> None:
    if fixture.stem in NOT_RECORDED.get(".".join(map(str, TORCH)), set()):
        pytest.skip("this torch writes no record of it")
    truth = read(fixture, torch=version("torch"), python=platform.python_version())
    subprocess.run(
        command("scan", "-q", *truth.options, "-o", str(tmp_path / "live.json"), str(fixture), *truth.args),
        cwd=fixture.parent.parent,
        env=clean_environment(TORCH_TRACE=str(tmp_path / "trace")),
        capture_output=True,
        timeout=120,
        check=False,
    )
    live = breakscope.load(tmp_path / "live.json")
    traces = list((tmp_path / "trace").glob("*.log")) if (tmp_path / "trace").exists() else []
    if not traces:
        assert truth.vacuous
        return
    report = imported(traces[0])
    assert sorted(map(told, report.findings)) == sorted(map(told, live.findings))
    assert report.reconciliation.unattributed == live.reconciliation.unattributed == ()
    assert report.reconciliation.vacuous == live.reconciliation.vacuous
    for name in ("graph_break_records", "recompile_records", "compilation_metrics"):
        assert report.reconciliation.dynamo[name] == live.reconciliation.dynamo[name]
    for name in ("sites", "occurrences", "recompiles", "skips", "regions", "ops"):
        assert getattr(report.totals, name) == getattr(live.totals, name), name
    regions = [(r.compile_id, r.function, r.ops, r.ended_by) for r in report.regions]
    assert regions == [(r.compile_id, r.function, r.ops, r.ended_by) for r in live.regions]
    assert_only_what_a_trace_knows(report)


def assert_only_what_a_trace_knows(report: Report) -> None:
    """Nothing that only a live scan can measure, and no zero in its place."""
    assert report.run.status == "unknown"
    assert report.run.exit_code is None
    assert (report.totals.crossings, report.totals.steps) == (None, None)
    assert all(finding.counts.crossings is None for finding in report.findings)
    assert all((f.cost, f.first_step, f.last_step) == (None, None, None) for f in report.findings)
    assert all(skip.calls is None for finding in report.findings for skip in finding.skipped)
    assert all(region.calls is None and region.ms is None for region in report.regions)
    assert any("not measured" in note for note in report.run.notes)


JOB = """
    import torch

    @torch.compile(backend="eager")
    def scale(x, limit):
        y = x * 2
        if y.sum() > limit:
            y = y / limit
        return y

    @torch.compile(backend="eager")
    def total(rows):
        out = torch.zeros(())
        for row in rows:
            out = out + row.sum().item()
        return out

    for batch in (4, 4, 6):
        scale(torch.ones(batch), 1.0)
    total([torch.ones(3)])
"""


def test_a_job_that_nobody_scanned(tmp_path: Path) -> None:
    trace = run_job(tmp_path, JOB)
    done = subprocess.run(
        command("import", str(trace)), cwd=tmp_path, capture_output=True, text=True, check=True
    )
    report = breakscope.load(tmp_path / ".breakscope" / "latest.json")
    assert {(f.code, f.location.function) for f in report.findings} == {
        ("BS101", "scale"),
        ("BS301", "total"),
        ("BS201", "scale"),
    }
    sizes = [finding.guard for finding in report.findings if finding.guard]
    assert {(size.source, size.dimension, size.expected, size.actual) for size in sizes} == {
        ("x", 0, "4", "6"),
        ("y", 0, "4", "6"),  # in what is left of the function after the break
    }
    assert "job.py:7" in done.stdout
    assert "crossings not measured" in done.stdout
    assert len(list((tmp_path / ".breakscope").glob("*.json"))) == 2
    assert_only_what_a_trace_knows(report)


def test_a_trace_tells_the_phases_of_its_compiles(tmp_path: Path) -> None:
    report = imported(run_job(tmp_path, JOB))
    assert {compile_.function for compile_ in report.compiles} == {"scale", "total"}
    assert all(compile_.seconds and compile_.seconds > 0 for compile_ in report.compiles)
    assert all(compile_.step is None for compile_ in report.compiles)
    assert report.run.python == platform.python_version()
    assert report.run.device is not None
    assert report.run.device.type == "cpu"


def test_the_command_needs_no_torch(tmp_path: Path) -> None:
    writer = Writer()
    writer.compiled("0/0", "/job/model.py", "forward", 10, broke_at=12)
    writer.save(tmp_path / "dedicated_log_torch_trace_a.log")
    program = (
        "import sys, json; from breakscope.cli import main; code = main(['import', '-q', '.']);"
        "print(json.dumps([code, sorted({m.partition('.')[0] for m in sys.modules})]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    code, loaded = json.loads(done.stdout)
    assert code == 0
    assert not {"torch", "pandas", "libcst", "jinja2", "rich"} & set(loaded)
