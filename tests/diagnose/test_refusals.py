"""Inductor's words on CUDA graphs, as a GPU machine logged them, read on any machine."""

from __future__ import annotations

from pathlib import Path

from breakscope.diagnose.collect import Collected
from breakscope.diagnose.places import Places
from breakscope.diagnose.refusals import findings

MODEL = """
def step(cache, x):
    cache.add_(x)
    return cache.sum()
"""


def test_the_line_that_mutated_is_the_place(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    text = (
        "skipping cudagraphs due to mutated inputs (1 instances). Found from : \n"
        f'   File "{file}", line 3, in step\n    cache.add_(x)\n'
    )
    frame = {"file": str(file), "name": "step", "qualname": "step", "line": 2}
    event = {"t": "cudagraphs", "cid": "0/0", "text": text, "frame": frame, "step": 0}
    metrics = {"cid": "0/0", "metrics": {"cudagraph_skip_reason": text}, "frame": frame, "step": 0}
    found = Collected(cudagraphs=[event], metrics=[metrics])
    [finding] = findings(found, Places((str(tmp_path),), "/nowhere/"))
    assert (finding.code, finding.reason) == ("BS307", "mutated inputs (1 instances)")
    assert (finding.location.line, finding.location.source) == (3, "cache.add_(x)")
    assert finding.counts.occurrences == 1  # the same words, heard twice
    # A trace holds the metrics alone.
    [traced] = findings(Collected(metrics=[metrics]), Places((str(tmp_path),), "/nowhere/"))
    assert traced.fingerprint == finding.fingerprint


def test_without_a_line_the_function_is_the_place(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MODEL)
    frame = {"file": str(file), "name": "step", "qualname": "step", "line": 2}
    text = "skipping cudagraphs due to cpu device (arg0_1)"
    event = {"t": "cudagraphs", "cid": "0/0", "text": text, "frame": frame, "step": 4}
    [finding] = findings(Collected(cudagraphs=[event]), Places((str(tmp_path),), "/nowhere/"))
    assert (finding.reason, finding.location.line, finding.first_step) == ("cpu device (arg0_1)", 2, 4)
