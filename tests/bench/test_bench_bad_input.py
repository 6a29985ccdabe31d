"""Bad input to ``breakscope bench``: one sentence, exit code 2, nothing run and nothing left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import report_samples
from faithful import planted
from scanning import run_cold

from breakscope.report import schema

SCRIPT = "raise SystemExit('the script ran')"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--modes", "fast"), "--modes has no 'fast': there are as-script, default, reduce-overhead"),
        (("--modes", "default,"), "--modes has no 'empty name'"),
        (("--dynamic", "maybe"), "--dynamic has no 'maybe': there are auto, true, false"),
        (("--device", "gpu"), "--device is cpu or cuda:N, not 'gpu'"),
        (("--device", "cuda:x"), "--device is cpu or cuda:N, not 'cuda:x'"),
        (("--export", "out"), "--export needs --kernels"),
        (("--fixes", "nowhere"), "holds no fixes"),
        (("--steps", "0"), "--steps"),
        (("--processes", "99"), "--processes"),
        (("--against", "nothing.json"), "nothing.json"),
        (("--function", "absent"), "script.py has no function absent; it has: none"),
        (("--step", "epoch"), "epoch"),
    ],
)
def test_one_sentence_and_2(bench: Callable[..., Any], options: tuple[str, ...], sentence: str) -> None:
    done = bench(SCRIPT, *options)
    assert done.exit_code == 2, done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("breakscope: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (done.folder / ".breakscope" / "bench.json").exists()


def test_a_budget_without_a_benchmark(bench: Callable[..., Any], tmp_path: Path) -> None:
    schema.save(report_samples.CLEAN, tmp_path / "scan.json")
    done = bench(SCRIPT, "--against", "scan.json")
    assert done.exit_code == 2
    assert "scan.json holds no benchmark" in done.stderr


def test_a_budget_that_is_no_report(bench: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps({"arms": []}))
    done = bench(SCRIPT, "--against", "old.json")
    assert done.exit_code == 2
    assert "old.json" in done.stderr


def test_no_script(tmp_path: Path) -> None:
    done = run_cold("bench", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "breakscope: name a script to measure\n")


@pytest.mark.torch
def test_a_secret_is_in_nothing_that_a_benchmark_prints_or_writes(bench: Callable[..., Any]) -> None:
    said, given = (planted.shaped()[kind][1] for kind in ("OpenAI key", "GitHub token"))
    done = bench(
        """
        import sys
        import torch

        class Net(torch.nn.Linear):
            def forward(self, x):
                raise RuntimeError(f"login failed for {sys.argv[1]}")

        Net(2, 2)(torch.ones(2))
        """,
        args=(f"key={said}", given),
    )
    assert done.exit_code == 3
    assert "nothing could be measured" in done.stderr
    assert "login failed for key=" in done.stderr
    left = [
        file.read_text(errors="replace")
        for file in (done.folder / ".breakscope").rglob("*")
        if file.is_file()
    ]
    for text in (done.stdout, done.stderr, *left):
        assert said not in text
        assert given not in text
