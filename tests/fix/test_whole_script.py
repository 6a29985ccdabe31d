"""The whole script with patches: one that computes the same and says something else is found out and dropped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from warm_scanning import Warm

from breakscope.fix.from_rules import read_sources
from breakscope.fix.patch import Edit, Patch, Rewrite
from breakscope.fix.runs import Script, record
from breakscope.fix.side import Side
from breakscope.fix.together import check
from breakscope.fix.trials import Trials
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding
from breakscope.run import launch, warm
from breakscope.run.program import program

# Of the outermost calls' results no patch changes a bit.
SCRIPT = """\
import os
import warnings

import torch
from torch import nn


class Clip(nn.Module):
    def forward(self, x):
        if x.abs().max() > 2.5:
            x = x.clamp(-2.5, 2.5)
        self.seen = x
        return x * 2


class Noted(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            x = x / 2
        self.last = x
        return x + 1


class Used(nn.Module):
    def forward(self, x):
        if x.sum() > 100:
            x = x / 2
        return x + 1


class Warned(nn.Module):
    def forward(self, x):
        warnings.warn(f"only {x.shape[0]} rows")
        return x - 1


clip, noted, used, warned = Clip(), Noted(), Used(), Warned()
compiled = [torch.compile(net) for net in (clip, noted, used, warned)]
clipped = 0
with open("log.txt", "w") as log:
    for step in range(6):
        x = torch.full((3,), float(step))
        for net in compiled:
            net(x)
        clipped += clip.seen is not x
        print("kept" if noted.last is x else "copied", file=log)
print("process", os.getpid(), "saw", clipped)
"""
CONDITIONS = {
    "Clip.forward": ("x.abs().max() > 2.5", "x.clamp(-2.5, 2.5)"),
    "Noted.forward": ("x.sum() > 100", "x / 2"),
    "Used.forward": ("x.sum() > 100", "x / 2"),
}


def branch_to_where(function: str, finding: Finding) -> Patch:
    """The branch of a function as ``torch.where``, which always makes a tensor of its own."""
    condition, value = CONDITIONS[function]
    start = SCRIPT.index(f"if {condition}", SCRIPT.index(f"class {function.partition('.')[0]}"))
    end = SCRIPT.index(value, start + len(condition)) + len(value)
    file = finding.location.file
    edit = Edit(start, end, f"x = torch.where({condition}, {value}, x)", file)
    return Patch((finding,), "branch-to-where", Rewrite((edit,), "torch.where"), file, function)


def quiet(finding: Finding) -> Patch:
    text = 'warnings.warn(f"only {x.shape[0]} rows")'
    start = SCRIPT.index(text)
    file = finding.location.file
    quieter = f"if not torch.compiler.is_compiling():\n            {text}"
    edit = Edit(start, start + len(text), quieter, file)
    return Patch((finding,), "quiet-messages", Rewrite((edit,), "quiet"), file, "Warned.forward")


@pytest.mark.torch
@pytest.mark.slow
def test_patches_with_which_the_script_says_something_else_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, product: Warm
) -> None:
    monkeypatch.setattr(launch, "subprocess", product.forking())
    monkeypatch.chdir(tmp_path)
    work = tmp_path / ".run-test"
    work.mkdir()
    path = Path(os.path.realpath(tmp_path)) / "script.py"
    path.write_text(SCRIPT)
    script = Script(program(str(path), (), module=False), work, 120, 60)
    settings = Settings(compile="auto", cost=False)
    trials = Trials(script, settings, {})
    found = {one.location.function or "": one for one in trials.before.report.findings}
    trials.sources.update(read_sources(list(found.values()), {}))
    patches = [branch_to_where(name, found[name]) for name in CONDITIONS] + [quiet(found["Warned.forward"])]

    whole = check(trials, patches)

    assert dict(whole.dropped) == {
        0: whole.dropped[0],
        1: 'with it the script writes "copied" where it wrote "kept" (log.txt, line 1)',
    }
    # The number of the process differs from run to run; what stands behind it does not.
    assert whole.dropped[0].startswith('with it the script prints "process ')
    assert 'saw 6" where it printed "process ' in whole.dropped[0]
    assert whole.dropped[0].endswith('saw 3" (stdout, line 1)')
    assert whole.comparison is not None
    assert whole.comparison.bitwise
    words = whole.evidence["words"]
    assert (words["stdout_lines"], words["files"]) == (1, 1)
    stdout, stderr = words["left_out"]
    assert stdout.startswith("stdout: a part of 1 line, such as ")
    assert stderr == "stderr: 2 lines of messages that a patch leaves out while compiling"


DOUBLED = """\
import torch


@torch.compile
def doubled(x):
    torch._dynamo.graph_break()
    return x * 2


for size in (2, 3):
    print(doubled(torch.ones(size)).sum().item())
"""


@pytest.mark.torch
@pytest.mark.slow
def test_what_was_run_last_or_ahead_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where forks stand for each other; the outputs stay as long as somebody may compare with them."""
    monkeypatch.chdir(tmp_path)
    work = tmp_path / ".run-test"
    work.mkdir()
    path = Path(os.path.realpath(tmp_path)) / "script.py"
    path.write_text(DOUBLED)
    what = program(str(path), (), module=False)
    start = DOUBLED.index("torch._dynamo.graph_break()")
    edits = [
        Edit(start, start + len("torch._dynamo.graph_break()"), text, str(path))
        for text in ("pass", "...", "None")
    ]
    with warm.forking(what, [], work) as forks:
        script = Script(what, work, 120, 60, forks, jobs=2)
        record(script, {})
        side = Side(script)
        trials = Trials(script, Settings(compile="auto"), {}, side=side)
        finding = trials.before.report.findings[0]
        trials.sources.update(read_sources([finding], {}))
        patch, other, third = (
            Patch((finding,), "any", Rewrite((edit,), "gone"), str(path), "doubled") for edit in edits
        )
        dynamic = replace(patch, rewrite=Rewrite((), "any size", options={"dynamic": "true"}))
        trials.begin([patch], remedies=[dynamic])
        trials.begin([patch], remedies=[dynamic])  # is at work already
        with trials.with_patches([patch]) as ahead:
            assert ahead.report.totals.sites == 0
        with trials.with_patches([patch]) as again:
            assert again is ahead
        on_top = trials.on_top([patch])
        assert on_top.seen(dynamic)[0].run.asked["dynamic"] == "true"
        assert on_top.before is ahead
        assert forks.forks == 4  # as it is, with the patch, with the remedy too, and to compare the two
        with trials.with_patches([patch]) as ahead:
            pass
        with trials.with_patches([other]) as another:
            assert another is not ahead
        with trials.with_patches([third]):
            assert ahead.outputs.exists()  # one more is kept than may be at work at one time
        with trials.with_patches([third, dynamic]):
            assert another.outputs.exists()
            assert not ahead.outputs.exists()
        on_top = trials.on_top([other])
        assert on_top.before is another
        with trials.with_patches([patch]) as ran, trials.plainly(), trials.with_patches([patch]) as plain:
            assert ran not in (ahead, plain)
            assert another.outputs.exists()
            assert on_top.compared(another, ran).bitwise
        beside = [trials.begin_beside(lambda own: own.seen(third)) for _ in range(2)]
        seen = [one.result() for one in beside if one is not None]
        assert seen[0] is seen[1]  # made once for all who ask at one time
        assert seen[0][1].difference is None
        assert forks.plain is not None
        forks.plain = replace(forks.plain, writes=True)
        assert trials.begin_beside(lambda own: own.seen(third)) is None
        with trials.with_patches([patch]) as now:
            assert now is not ran
        side.close()


# Dynamo draws numpy's random numbers from torch's generator, and torch's numbers after them are others too.
DRAWN = """\
import numpy as np
import torch


@torch.compile
def f(x):
    share = np.random.rand(1).item()
    return torch.rand_like(x) + share


@torch.compiler.disable
def drawn():
    return np.random.rand(1).item()


for size in (2, 3):
    print(f(torch.ones(size)).sum().item())
"""


@pytest.mark.torch
@pytest.mark.slow
def test_what_only_the_compiled_script_computes_otherwise_is_held_against_the_uncompiled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, product: Warm
) -> None:
    trials, (right, wrong) = rewritten(
        DRAWN, "np.random.rand(1).item()", ("drawn()", "drawn() + 1e-3"), tmp_path, monkeypatch, product
    )
    with trials.with_patches([right]) as after:
        alone = trials.agreement(after, [right])
        seen = trials.agreement(after, [right], uncompiled=True)
        consented = trials.agreement(after, [right], consented=True, uncompiled=True)
    assert alone.difference is not None
    assert alone.difference.startswith("the outputs of the script differ")
    for one in (seen, consented):
        assert (one.difference, one.uncompiled) == (None, True)
        assert one.outputs is not None
        assert one.outputs.bitwise
    with trials.with_patches([wrong]) as after:
        assert trials.agreement(after, [wrong], uncompiled=True).difference is not None


def rewritten(
    source: str, at: str, texts: Sequence[str], folder: Path, monkeypatch: pytest.MonkeyPatch, product: Warm
) -> tuple[Trials, list[Patch]]:
    """Trials of a script, and patches that put each of some texts where it says ``at``."""
    monkeypatch.setattr(launch, "subprocess", product.forking())
    monkeypatch.chdir(folder)
    work = folder / ".run-test"
    work.mkdir()
    path = Path(os.path.realpath(folder)) / "script.py"
    path.write_text(source)
    script = Script(program(str(path), (), module=False), work, 120, 60)
    trials = Trials(script, Settings(compile="auto", cost=False), {})
    finding = trials.before.report.findings[0]
    trials.sources.update(read_sources([finding], {}))
    start = source.index(at)
    edits = [Edit(start, start + len(at), text, str(path)) for text in texts]
    return trials, [Patch((finding,), "any", Rewrite((one,), "other"), str(path), "f") for one in edits]


# Fails where it is compiled, as a limit on recompiles that raises does, or a dimension that must be dynamic.
FAILS = """\
import torch


@torch.compile
def f(x):
    with torch._dynamo.error_on_graph_break(True):
        if x.sum() > 100:
            x = x / 2
        return x + 1


for size in (2, 3):
    print(f(torch.ones(size)).sum().item())
"""


@pytest.mark.torch
@pytest.mark.slow
def test_what_fails_only_where_it_is_compiled_is_held_against_the_uncompiled_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, product: Warm
) -> None:
    """A patch that mends it was refused, because with it the script no longer failed."""
    branch = "if x.sum() > 100:\n            x = x / 2"
    texts = [f"x = torch.where(x.sum() > {limit}, x / 2, x)" for limit in (100, 2)] + [branch + " + 1"]
    trials, (right, wrong, fails) = rewritten(FAILS, branch, texts, tmp_path, monkeypatch, product)
    assert trials.before.ended.status == "script_error"
    whole = check(trials, [right])
    assert (dict(whole.dropped), whole.evidence["bitwise"], whole.evidence["fails"]) == ({}, True, True)
    assert list(check(trials, [wrong]).dropped.values()) == [
        "with it the script computes something else than without a compiler"
    ]
    assert check(trials, [fails]).dropped
