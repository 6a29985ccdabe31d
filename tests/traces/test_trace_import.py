"""Traces of jobs that nobody scanned, imported. Those of scanned ones are in ``test_fixtures``."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from scanning import run_cold, run_python
from trace_writer import Writer, assert_only_what_a_trace_knows, imported, run_job

import breakscope

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


@pytest.mark.torch
def test_a_job_that_nobody_scanned(tmp_path: Path) -> None:
    trace = run_job(tmp_path, JOB)
    done = run_cold("import", str(trace), folder=tmp_path, check=True)
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


@pytest.mark.torch
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
    done = run_python("-c", program, folder=tmp_path, check=True)
    code, loaded = json.loads(done.stdout)
    assert code == 0
    assert not {"torch", "pandas", "libcst", "jinja2", "rich"} & set(loaded)
