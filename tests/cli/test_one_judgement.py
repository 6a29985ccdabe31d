"""scan, lint and check say the same of one line: what is meant, what is suppressed, what is in the baseline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_scanning import run_command

import breakscope

# A compiled update, as in many reinforcement learning scripts: torch keeps backward and the optimizer's step out.
UPDATE = """\
import torch

net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

@torch.compile
def update(x, log):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step(){comment}
    if log:
        print(loss){silence}
    return loss

for _ in range(3):
    update(torch.randn(8, 4), {log})
"""


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A command of breakscope's, in a folder of its own."""
    torch = request.node.get_closest_marker("torch") is not None

    def run(*words: str, **fields: str) -> subprocess.CompletedProcess[str]:
        source = UPDATE.format(**{"comment": "", "silence": "", "log": "False", **fields})
        (tmp_path / "dqn.py").write_text(source)
        return run_command(*words, folder=tmp_path, torch=torch, COLUMNS="160")

    return run


@pytest.mark.torch
def test_what_scan_calls_meant_neither_fails_check_nor_is_likely_in_lint(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    checked = run("check", "--format", "json", "-o", "check.json", "--", "dqn.py")
    assert checked.returncode == 0, checked.stderr
    findings = json.loads((tmp_path / "check.json").read_text())["targets"][0]["findings"]
    assert {one["state"] for one in findings} == {"meant"}
    report = breakscope.load(tmp_path / ".breakscope" / "latest.json")
    meant = {one.location.line for one in report.findings if one.intended and one.location.owner == "project"}
    assert meant >= {9, 10}  # the step itself is a site of torch, or inlined
    linted = run("lint", "--format", "json", "--level", "possible", "dqn.py")
    levels = {one["location"]["line"]: one["level"] for one in json.loads(linted.stdout)["possible"]}
    assert {line: levels[line] for line in meant} == dict.fromkeys(meant, "possible")
    assert "BS107" not in run("lint", "dqn.py").stdout


@pytest.mark.torch
def test_a_comment_that_only_lint_needs_is_not_called_unused(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    comments = {
        "comment": "  # breakscope: ignore[BS107] -- steps here",
        # The run does not come here, so that only lint sees it.
        "silence": "  # breakscope: ignore[BS104] -- for debugging",
    }
    checked = run("check", "--", "dqn.py", **comments)
    assert checked.returncode == 0, checked.stderr
    assert "suppresses nothing" not in checked.stdout
    wrong = run("check", "--", "dqn.py", silence="  # breakscope: ignore[BS105]")
    assert "dqn.py:13 ignore[BS105] suppresses nothing here" in wrong.stdout


@pytest.mark.torch
def test_what_the_baseline_of_check_knows_does_not_fail_lint(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    possible = ("lint", "--level", "possible", "dqn.py")
    assert run("lint", "--level", "possible", "dqn.py", log="True").returncode == 1
    assert run("check", "--update-baseline", "--", "dqn.py", log="True").returncode == 0
    linted = run(*possible, log="True")
    assert "dqn.py:13" not in linted.stdout  # the print, which the run met
    assert " in the baseline" in linted.stdout


def test_lint_takes_what_it_finds_into_the_baseline_of_check(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    possible = ("lint", "--level", "possible", "dqn.py")
    assert run(*possible).returncode == 1
    updated = run(*possible, "--update-baseline")
    assert updated.returncode == 0
    assert "wrote .breakscope/baseline.json: 4 known, 4 of them added, 0 dropped" in updated.stderr
    assert run(*possible).returncode == 0
    baseline = json.loads((tmp_path / ".breakscope" / "baseline.json").read_text())
    assert {one["source"] for one in baseline["targets"]["lint"]["findings"]} == {
        *("optimizer.zero_grad()", "loss.backward()", "optimizer.step()", "print(loss)")
    }
    # Of files that are not linted now, nothing is forgotten.
    (tmp_path / "other.py").write_text("import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n")
    run("lint", "other.py", "--update-baseline")
    assert run(*possible).returncode == 0
    missing = run("lint", "--baseline", "nowhere.json", "dqn.py")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "there is no baseline nowhere.json" in missing.stderr
