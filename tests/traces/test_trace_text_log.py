"""TORCH_LOGS text, as jobs leave it in their output."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from scanning import clean_environment
from trace_writer import imported

from breakscope.traces.one_file import import_file

pytestmark = pytest.mark.torch

JOB = """
    import torch

    @torch.compile(backend="eager")
    def scale(x, limit):
        y = x * 2
        if y.sum() > limit:
            y = y / limit
        return y

    @torch.compile(backend="eager")
    def name(x, language):
        return x * len(language)

    for batch in (4, 4, 6):
        scale(torch.ones(batch), 1.0)
        print("batch", batch)
    for number in range(10):
        name(torch.ones(2), "x" * number)
"""


def log_of(folder: Path, torch_logs: str | None) -> Path:
    (folder / "job.py").write_text(textwrap.dedent(JOB))
    environment = clean_environment(**({"TORCH_LOGS": torch_logs} if torch_logs else {}))
    with (folder / "job.log").open("wb") as stream:
        subprocess.run(
            [sys.executable, "job.py"], cwd=folder, env=environment, stdout=stream, stderr=stream, check=True
        )
    return folder / "job.log"


def test_a_log_of_graph_breaks_and_recompiles(tmp_path: Path) -> None:
    report = imported(log_of(tmp_path, "graph_breaks,recompiles"))
    found = {(f.code, f.location.function, f.counts.occurrences) for f in report.findings}
    assert found == {
        ("BS101", "scale", 2),  # the second time without its call path
        ("BS201", "scale", 1),  # of the function, and of what is left of it after the break
        ("BS208", "name", 7),
        ("BS303", "name", 1),
    }
    [site] = [finding for finding in report.findings if finding.code == "BS101"]
    assert site.location.line == 7
    assert site.stack[0].function == "<module>"
    assert site.counts.compile_ids == ("0/0", "0/1")
    assert report.totals.recompiles == 9
    assert (report.totals.regions, report.totals.ops, report.totals.crossings) == (None, None, None)
    assert not report.reconciliation.vacuous
    assert any("a text log" in note for note in report.run.notes)


def test_a_log_with_nothing_but_the_warning_of_the_limit(tmp_path: Path) -> None:
    """Without any TORCH_LOGS Dynamo says one thing: that it stopped compiling a function."""
    report = imported(log_of(tmp_path, None))
    [finding] = report.findings
    assert (finding.code, finding.location.function) == ("BS303", "name")
    assert "limit" in finding.reason


def prefixed(text: str, rank: int) -> str:
    """Messages as torch writes them in a process group."""
    return "".join(
        f"[rank{rank}]:{line}" if " torch/_dynamo/" in line else line for line in text.splitlines(True)
    )


def test_ranks_whose_lines_are_mixed(tmp_path: Path) -> None:
    text = log_of(tmp_path, "graph_breaks,recompiles").read_text()
    ranks = [prefixed(text, 0).splitlines(True), prefixed(text, 3).splitlines(True)]
    mixed = tmp_path / "mixed.log"
    mixed.write_text("".join(line for pair in zip(*ranks, strict=True) for line in pair))
    parts = import_file(str(mixed)).parts
    assert [part.rank for part in parts] == [0, 3]
    one, other = (part.report for part in parts)
    assert [f.fingerprint for f in one.findings] == [f.fingerprint for f in other.findings]
    assert len(one.findings) == 5


def test_a_log_that_begins_in_the_middle(tmp_path: Path) -> None:
    """A repeated break without its first time has a line but no call path: listed, not invented."""
    lines = log_of(tmp_path, "graph_breaks").read_text().splitlines(True)
    second = next(index for index, line in enumerate(lines) if "user stack suppressed" in line)
    (tmp_path / "tail.log").write_text("".join(lines[second:]))
    report = imported(tmp_path / "tail.log")
    assert all(finding.code != "BS101" for finding in report.findings)
    [lost] = report.reconciliation.unattributed
    assert lost.kind == "graph_break"
    assert f"job.py:7{os.linesep}" in lost.text
