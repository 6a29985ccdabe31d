"""What a ``fix`` runs, and what it takes from an earlier one. A script that tells forks apart gets no forks."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scanning import Scanned, clean_environment, command

from breakscope.cli import main
from breakscope.errors import UsageError
from breakscope.fix import engine, proofs

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

SCRIPT = """\
import os, sys
print("loaded", "torch" in sys.modules)
with open("runs.txt", "a") as file:
    file.write("run ")
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if not torch.isfinite(y).all():
            y = torch.clamp(y, -9, 9)
        return y * 2


net = Net()
for _ in range(3):
    net(torch.randn(2, 4))
"""
KEPT = "nothing was run"


def fix(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("fix", "--no-inductor", "--all", "--select", "BS1", *options),
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def runs(folder: Path) -> int:
    return (folder / "runs.txt").read_text().count("run")


def test_a_second_fix_of_the_same_runs_nothing_and_says_the_same(
    scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script prints whether torch is loaded at its first line: in a fork it is, so that runs are plain ones."""
    folder = scan(SCRIPT).folder
    first = fix(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "proved  BS101" in first.stdout
    before = runs(folder)

    second = fix(folder)
    assert (second.stdout, second.returncode) == (first.stdout, first.returncode)
    assert KEPT in second.stderr
    assert KEPT not in first.stderr
    assert runs(folder) == before

    # A file that another fix writes at this moment does not get edits that were made for the old one.
    digests = proofs.digests

    def written_meanwhile(files: Any) -> dict[str, str]:
        found = digests(files)
        if isinstance(files, dict):  # those of the kept answer
            (folder / "script.py").write_text("# one line more\n" + SCRIPT)
        return found

    def begins_anew(*_: object) -> None:
        raise UsageError("nothing kept is taken")

    monkeypatch.setattr(proofs, "digests", written_meanwhile)
    monkeypatch.setattr(engine.from_rules, "read_sources", begins_anew)
    monkeypatch.chdir(folder)
    main(["fix", "--write", "--no-inductor", "--all", "--select", "BS1"])
    assert (folder / "script.py").read_text() == "# one line more\n" + SCRIPT
    monkeypatch.undo()
    (folder / "script.py").write_text(SCRIPT)

    # What was asked for, and every file, is part of what an answer depends on.
    assert KEPT not in fix(folder, "--ignore", "BS101").stderr
    (folder / "script.py").write_text(SCRIPT + "\n")
    assert KEPT not in fix(folder).stderr
