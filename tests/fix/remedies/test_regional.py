"""Layers that are alike are compiled one by one, where that pays: both ways are run and timed, in turn."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from report_samples import SAMPLES
from test_remedy_edits import recompile, signature
from warm_scanning import run_command

import breakscope
from breakscope.fix.patch import Patch, apply
from breakscope.fix.remedies.regional import Pace, describe, is_worth_it, propose
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import subject
from breakscope.inside.settings import Settings
from breakscope.report.model import AlikeLayers, Compiled, Guard, Location, Report, Suggestion
from breakscope.run.launch import Program
from breakscope.run.trial import trial

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "alike_layers.py"
LAYERS = (AlikeLayers("layers", "Layer", 12, "/net.py:Layer.forward"),)


def asked(source: str, folder: Path) -> tuple[Suggestion, str, int]:
    """What ``remedy --regional`` answers for a script: the suggestion, the screen, the exit code."""
    (folder / "script.py").write_text(source)
    for words in (["scan", "-q", "script.py"], ["remedy", "--regional"]):
        done = run_command(*words, folder=folder, torch=True, timeout=280)
    [finding] = breakscope.load(folder / ".breakscope" / "latest.json").findings
    assert (finding.code, finding.location.function) == ("BS403", "Net.forward"), done.stderr
    assert finding.suggestion is not None
    return finding.suggestion, done.stdout, done.returncode


@pytest.mark.slow
@pytest.mark.torch
def test_both_ways_are_run_and_timed_so_that_the_user_can_decide(tmp_path: Path) -> None:
    suggestion, screen, code = asked(FIXTURE.read_text(), tmp_path)
    assert (suggestion.label, suggestion.rule, code) == ("needs consent", "regional-compile", 1)
    assert "+    for layer in net.layers:\n+        layer.compile(backend=thorough)\n" in suggestion.diff
    # 87 nodes of 40 ms, against those of one layer.
    whole, layers = suggestion.evidence["first_step_s"]
    assert whole - layers > 2
    assert len(suggestion.evidence["step_ms"]) == 2
    assert (suggestion.evidence["calls_compared"], suggestion.evidence["bitwise"]) == (8, True)
    assert f"{whole:.1f} -> {layers:.1f} s to the first step" in screen
    assert "ms a step (the better of 2 runs each, in turn, with empty caches)" in screen


@pytest.mark.torch
def test_what_computes_something_else_layer_by_layer_is_refused(tmp_path: Path) -> None:
    source = FIXTURE.read_text().replace(
        "return self.head(x)", "return self.head(x) * (2 if torch.compiler.is_compiling() else 1)"
    )
    suggestion, _, code = asked(source, tmp_path)
    assert (suggestion.status, code) == ("refused", 1)
    assert "by itself, and not Net as a whole: the outputs of the script differ" in suggestion.why


@pytest.mark.torch
def test_without_alike_layers_there_is_nothing_to_compile_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.compile(torch.nn.Linear(2, 2))(torch.ones(2))\n")
    run_command("scan", "-q", "script.py", folder=tmp_path, torch=True)
    done = run_command("remedy", "--regional", folder=tmp_path, torch=True)
    assert done.returncode == 2
    assert "nothing that was compiled holds three or more layers that are alike" in done.stderr


@pytest.mark.torch
def test_the_outputs_of_the_whole_are_kept_where_only_its_layers_are_compiled(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(FIXTURE.read_text().replace("net = torch.compile(net, backend=thorough)", "pass"))
    settings = Settings(compile=f"{script}:Layer.forward", watch=f"{script}:Net.forward", cost=False)
    ran = trial(Program(str(script), False, (), str(script)), settings, tmp_path)
    assert (ran.report.totals.regions, ran.report.totals.steps) == (1, 12 * 8)
    assert len(list(ran.outputs.glob("*.pt"))) == 8


@pytest.mark.torch
def test_layers_are_alike_where_one_graph_could_serve_them() -> None:
    from torch import nn

    from breakscope.inside.capture.alike import alike_layers

    def layer(width: int = 2) -> nn.Module:
        return nn.Sequential(nn.Linear(width, width), nn.ReLU())

    def numbered(**numbers: int) -> nn.Module:
        made = layer()
        for name, number in numbers.items():
            setattr(made, name, number)
        return made

    def found(**children: nn.Module) -> list[tuple[str, int]]:
        net = nn.Module()
        for name, child in children.items():
            net.add_module(name, child)
        return [(layers["path"], layers["count"]) for layers in alike_layers(net)]

    three = nn.ModuleList([layer(), layer(), layer()])
    assert found(layers=three) == [("layers", 3)]
    assert found(stages=nn.ModuleList([nn.Linear(1, 1), three])) == [("stages[1]", 3)]
    assert found(encoder=nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, batch_first=True), 3)) == [
        ("encoder.layers", 3)
    ]
    assert found(named=nn.ModuleDict({"a b": layer(), "c": layer(), "d": layer()})) == [("named.values()", 3)]
    assert found(two=nn.ModuleList([layer(), layer()])) == []
    assert found(widths=nn.ModuleList([layer(2), layer(3), layer(4)])) == []
    assert found(small=nn.ModuleList([nn.Linear(1, 1) for _ in range(5)])) == []
    assert found(periods=nn.ModuleList([numbered(period=n) for n in (2, 3, 5)])) == []
    assert found(places=nn.ModuleList([numbered(layer_idx=n) for n in (0, 1, 2)])) == [("places", 3)]

    class Runs(nn.Module):
        """What it runs is an argument, and a version for each."""

        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(2)

        def forward(self, x: Any, sublayer: Any) -> Any:
            return x + sublayer(self.norm(x))

    assert found(sublayers=nn.ModuleList([Runs(), Runs(), Runs()])) == []
    one = layer()
    assert found(shared=nn.ModuleList([one, one, one])) == []


def proposed(folder: Path, source: str, line: int, by: str = "script") -> tuple[object, str]:
    """What is proposed for the module ``Net`` that a line compiles, and the script's text with it."""
    path = folder / "script.py"
    path.write_text(dedent(source))
    report: Report = replace(
        SAMPLES["recompiles"],
        run=replace(SAMPLES["recompiles"].run, targets=(Compiled("Net", by, str(path), line),)),  # type: ignore[arg-type]
    )
    where = Location(str(path), 1)
    call = signature(
        where, None, (), 0, entry="Net", module=True, alike=LAYERS, forward="/net.py:Net.forward"
    )
    files = Files()
    about = subject(recompile(Guard("other", "x", None, None, None, "x"), where), report, str(path))
    proposal = propose(about, call, files)
    file = files.open(str(path))
    assert file is not None
    text = apply(file.text, proposal.edits) if isinstance(proposal, Patch) else file.text
    ast.parse(text)
    return proposal, text


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        ("net = torch.compile(net)\n", 1, "for layer in net.layers:\n    layer.compile()\n"),
        (
            "fast = torch.compile(Net().eval(), mode='max-autotune', dynamic=True)\nfast(x)\n",
            1,
            "fast = Net().eval()\nfor layer in fast.layers:\n    layer.compile(mode='max-autotune', dynamic=True)\nfast(x)\n",
        ),
        (
            "def main():\n    self.net.compile(fullgraph=True)\n    layer = 1\n",
            2,
            "def main():\n    for block in self.net.layers:\n        block.compile(fullgraph=True)\n    layer = 1\n",
        ),
    ],
)
def test_the_compile_of_the_whole_becomes_a_loop_over_its_layers(
    source: str, line: int, text: str, tmp_path: Path
) -> None:
    proposal, changed = proposed(tmp_path, source, line)
    assert isinstance(proposal, Patch)
    assert changed == text
    assert proposal.rewrite.consent
    assert proposal.rewrite.options == {"watch": "/net.py:Net.forward"}


@pytest.mark.parametrize(
    "source",
    [
        "net = torch.compile(net).cuda()\n",
        "train(torch.compile(net))\n",
        "net = torch.compile(net)  # the whole\n",
        "net = torch.compile(net, **options)\n",
        "if fast: net = torch.compile(net)\n",
        "@torch.compile\ndef f(): pass\n",
    ],
)
def test_a_compile_that_is_no_statement_of_its_own_is_left_to_the_person(source: str, tmp_path: Path) -> None:
    proposal, _ = proposed(tmp_path, source, 1)
    assert not isinstance(proposal, Patch)
    assert "compile each Layer of layers by itself instead" in proposal.reason  # type: ignore[attr-defined]


def test_where_breakscope_compiled_there_is_nothing_to_write_and_the_line_is_named(tmp_path: Path) -> None:
    proposal, _ = proposed(tmp_path, "net = Net()\n", 1, by="breakscope")
    assert isinstance(proposal, Patch)
    assert not proposal.applies
    assert proposal.rewrite.options == {"compile": "/net.py:Layer.forward", "watch": "/net.py:Net.forward"}
    assert proposal.rewrite.summary.endswith("for layer in model.layers: layer.compile()")


def test_it_is_worth_it_where_the_first_step_comes_sooner_by_a_second_and_by_a_fifth() -> None:
    assert is_worth_it(Pace(10.0, 4.0), Pace(6.0, 5.0))
    assert not is_worth_it(Pace(2.0, 4.0), Pace(1.2, 4.0))
    assert not is_worth_it(Pace(20.0, 4.0), Pace(17.0, 4.0))


def test_figures_that_are_not_known_are_not_shown() -> None:
    assert describe(Pace(10.0, 4.0), Pace(6.04, 5.25)).startswith(
        "10.0 -> 6.0 s to the first step, 4 -> 5.25 ms a step"
    )
    assert "too few steps to time them" in describe(Pace(10.0, None), Pace(6.0, None))
