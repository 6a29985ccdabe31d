"""Findings about compile time, from events as an agent writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from breakscope.diagnose import effects
from breakscope.diagnose.collect import collect
from breakscope.diagnose.compile_time import findings, unfinished
from breakscope.diagnose.outcome import Outcome
from breakscope.diagnose.places import Places
from breakscope.report.model import Finding, Timing

SOURCE = """\
def run(cell, x, h):
    for step in x:
        h = cell(step, h)
    return h

def layers(blocks, x):
    for block in blocks:
        x = block(x)
    return x
"""


class Run:
    """A run of a script with the source above, and what its agent wrote."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "net.py"
        self.file.write_text(SOURCE)

    def compiling(self, name: str, line: int, times: int, ops: int, phase: str = "done") -> dict[str, Any]:
        lines = [[str(self.file), line, times], [str(self.file), 4, 1]]
        frame = self.frame(name)
        return {"t": "compiling", "number": 1, "phase": phase, "ops": ops, "seconds": 7.0, "at": 10.0} | {
            "frame": frame,
            "lines": lines,
        }

    def compiled(self, name: str, seconds: float) -> dict[str, Any]:
        metrics = {"duration_us": round(seconds * 1e6)}
        return {"t": "metrics", "cid": "0/0", "metrics": metrics, "frame": self.frame(name), "at": seconds}

    def frame(self, name: str) -> dict[str, Any]:
        return {"file": str(self.file), "name": name, "qualname": name, "line": 1 if name == "run" else 6}

    def findings(
        self,
        events: Sequence[dict[str, Any]],
        *,
        lasted: float = 100.0,
        step_ms: float | None = None,
        steps: int = 0,
    ) -> list[Finding]:
        outcome = Outcome("net.py", (), "/", "ok", 0, "", lasted, "eager", None, (str(self.file.parent),))
        timing = None if step_ms is None else Timing("measured", 20, step_ms)
        found = collect(events, [steps, steps])
        return findings(found, Places(outcome.roots, "/breakscope/"), outcome, timing)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_the_loop_that_was_unrolled_is_named_with_how_often(run: Run) -> None:
    [finding] = run.findings([run.compiling("run", 3, 2_000, 22_992)])
    assert (finding.code, finding.kind, finding.location.line) == ("BS401", "compile", 2)
    assert finding.location.function == "run"
    assert finding.reason == (
        "`for step in x` was unrolled 2,000 times: 22,992 ops in the graph of run, which took 7 s to compile"
    )


@pytest.mark.parametrize(("times", "ops"), [(48, 3_000), (120, 700)])
def test_a_loop_over_layers_and_a_short_graph_are_no_findings(run: Run, times: int, ops: int) -> None:
    assert run.findings([run.compiling("layers", 8, times, ops)]) == []


def test_a_compile_that_was_under_way_at_the_end_is_a_finding(run: Run) -> None:
    [finding] = run.findings([run.compiling("layers", 8, 12, 400, phase="backend")], lasted=95.0)
    assert (finding.code, finding.location.line) == ("BS404", 6)
    assert finding.reason == (
        "400 ops in the graph of layers, which was still compiled after 92 s, when the run ended"
    )


def test_what_was_said_later_of_a_compile_holds(run: Run) -> None:
    events = [run.compiling("layers", 8, 12, 400, phase="dynamo"), run.compiling("layers", 8, 12, 500)]
    assert run.findings(events) == []
    assert unfinished(collect(events, None)) is None
    assert unfinished(collect(events[:1], None)) is not None


def test_compile_time_is_held_against_the_steps_that_the_run_makes(run: Run) -> None:
    slow = [run.compiled("run", 80.0)]
    [finding] = run.findings(slow, step_ms=20.0, steps=300)
    assert finding.code == "BS402"
    assert finding.reason == (
        "compiling took 80 of 100 s; if compiled steps are twice as fast as eager ones, that is won back "
        "after 8,000 steps, and this run made 300"
    )
    asked = {"t": "note", "text": "stopped after 300 steps, as asked by --steps"}
    codes = [one.code for one in run.findings([*slow, asked], step_ms=20.0, steps=300)]
    assert codes == ["BS403"]  # the run was cut short: that says nothing about its steps
    assert [one.code for one in run.findings(slow, step_ms=20.0, steps=9_000)] == ["BS403"]
    assert run.findings([run.compiled("run", 20.0)], lasted=25.0, step_ms=20.0, steps=3) == []


@pytest.mark.parametrize(
    ("compiles", "said"),
    [
        ((("0/0", 60.0),), "Compile the blocks that repeat"),
        ((("0/0", 9.0), ("0/1", 30.0), ("0/2", 30.0)), "See to its recompiles first: 2 of its 3 compiles"),
        (
            (("0/0", 2.0), ("0/1", 58.0)),
            "See to its recompiles first: 1 of its 2 compiles are such, and took 58 of 60 s. The longest",
        ),
        ((("0/0", 30.0), ("1/0", 30.0)), "Repair its graph breaks first: it is compiled in 2 pieces."),
        (
            (("0/0", 30.0), ("0/1", 10.0), ("1/0", 20.0)),
            "Repair its graph breaks first: it is compiled in 2 pieces; 1 of its 3 compiles are recompiles (10 of 60 s).",
        ),
    ],
)
def test_what_a_function_is_compiled_often_for_comes_first(
    run: Run, compiles: tuple[tuple[str, float], ...], said: str
) -> None:
    slow = [run.compiled("run", seconds) | {"cid": cid} for cid, seconds in compiles]
    [finding] = run.findings(slow)
    assert finding.code == "BS403"
    assert str(finding.advice).startswith(said)


def test_a_function_is_told_with_all_of_its_compiles(run: Run) -> None:
    slow = [run.compiled("run", 30.0) | {"cid": cid} for cid in ("0/0", "0/1", "0/2")]
    [finding] = run.findings(slow)
    assert (finding.code, finding.counts.occurrences) == ("BS403", 3)
    assert finding.counts.compile_ids == ("0/0", "0/1", "0/2")


def test_what_took_long_ended_nothing(run: Run) -> None:
    """One of a function's compiles failed with what ended the script: that has a finding of its own."""
    slow = [run.compiled("run", 30.0) | {"cid": cid} for cid in ("0/0", "0/1")]
    slow[1]["metrics"] |= {"fail_type": "TorchRuntimeError", "fail_reason": "no such size"}
    raised = {"t": "raised", "errors": [{"type": "TorchRuntimeError", "text": "no such size"}]}
    [finding] = run.findings([*slow, raised])
    [marked] = effects.mark(collect([*slow, raised], [0, 0]), [finding], vacuous=False)
    assert (marked.code, marked.effect) == ("BS403", None)


def test_a_first_compile_that_ended_at_a_break_is_no_measure_of_the_others(run: Run) -> None:
    slow = [run.compiled("run", seconds) | {"cid": cid} for cid, seconds in (("0/0", 2.0), ("0/1", 58.0))]
    broken = {
        "t": "graph_break",
        "payload": "Graph break: not there",
        "cid": "0/0",
        "frame": run.frame("run"),
        "position": None,
        "inlined": 0,
        "site": None,
        "step": 0,
    }
    [finding] = run.findings([*slow, broken])
    assert "One took 58 s; the first of the same code had ended at a graph break (2.0 s)." in str(
        finding.advice
    )
    assert "The longest took" not in str(finding.advice)


def test_the_compile_cache_is_told_of_where_there_is_one(run: Run) -> None:
    slow = run.compiled("run", 80.0)
    [finding] = run.findings([slow], step_ms=20.0, steps=300)
    assert finding.code == "BS402"
    assert "compile cache" not in str(finding.advice)
    slow["metrics"]["inductor_cumulative_compile_time_us"] = 60_000_000
    [finding] = run.findings([slow], step_ms=20.0, steps=300)
    assert "keep the compile cache" in str(finding.advice)


def test_a_compile_of_layers_that_are_alike_is_told_sooner_and_says_what_it_holds(run: Run) -> None:
    layers = {"path": "blocks", "name": "Block", "count": 12, "function": "net.py:Block.forward"}
    call = {"t": "signature", "cid": "0/0", "alike": [layers]}
    slow = run.compiled("layers", 6.0)
    [finding] = run.findings([slow, call], lasted=10.0)
    assert (finding.code, finding.location.line) == ("BS403", 6)
    assert finding.reason == (
        "6 of the run's 10 s went into compiling it; it holds 12 alike Block in blocks: compiled by itself, one "
        "serves all that are called alike (breakscope remedy measures it)"
    )
    assert str(finding.advice).endswith(
        "serves all that are alike: for layer in model.blocks: layer.compile()."
    )
    again = [run.compiled("layers", seconds) | {"cid": f"0/{at}"} for at, seconds in enumerate((2.0, 5.0))]
    [finding] = run.findings([*again, call], lasted=10.0)
    assert str(finding.advice).startswith("See to its recompiles first: 1 of its 2")
    assert str(finding.advice).endswith("for layer in model.blocks: layer.compile().")
    assert run.findings([slow], lasted=10.0) == []
    assert run.findings([slow, call], lasted=15.0) == []


def test_two_functions_of_one_name_in_a_file_are_two(run: Run) -> None:
    run.file.write_text(
        "class A:\n    def forward(self, x):\n        return x\n\n\n"
        "class B:\n    def forward(self, x):\n        return x\n"
    )
    layers = {"path": "blocks", "name": "Block", "count": 12, "function": "net.py:Block.forward"}
    events = [
        run.compiled("forward", seconds)
        | {
            "cid": f"{number}/0",
            "frame": {**run.frame("forward"), "qualname": f"{name}.forward", "line": line},
        }
        for number, (name, line, seconds) in enumerate((("A", 2, 1.0), ("B", 7, 7.0)))
    ]
    [finding] = run.findings([*events, {"t": "signature", "cid": "1/0", "alike": [layers]}], lasted=10.0)
    assert (finding.location.function, finding.location.line) == ("B.forward", 7)
    assert finding.reason.startswith("7 of the run's 10 s")


def test_an_unrolled_loop_is_the_reason_and_no_second_finding(run: Run) -> None:
    events = [run.compiling("run", 3, 2_000, 22_992), run.compiled("run", 80.0)]
    assert [one.code for one in run.findings(events, step_ms=20.0, steps=3)] == ["BS401"]


def test_what_a_turn_calls_is_named_as_the_part_to_compile(run: Run) -> None:
    run.file.write_text(
        "class Flow:\n    def forward(self, x, n):\n        for _ in range(n):\n"
        "            x = self.update(x) + self.scale(x)\n        return x\n"
    )
    frame = {**run.frame("forward"), "qualname": "Flow.forward", "line": 2}
    slow = [run.compiled("forward", 30.0) | {"cid": f"0/{at}", "frame": frame} for at in range(2)]
    [whole] = run.findings([run.compiled("forward", 60.0) | {"frame": frame}])
    assert str(whole.advice).startswith("Its loop (line 3) is unrolled")
    [finding] = run.findings(
        [slow[0], slow[1], run.compiled("forward", 20.0) | {"cid": "0/2", "frame": frame}]
    )
    assert str(finding.advice).endswith(
        "Its loop (line 3) is unrolled: compile what a turn calls (self.update, self.scale) each on its own, and "
        "leave the loop to Python."
    )
