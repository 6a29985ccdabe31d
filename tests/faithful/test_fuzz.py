"""No damaged input ends in an internal error: every command answers, or says in one sentence what is wrong.

200 tries in every run, 2,000 at night.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path

import pytest
from faithful.damage import damaged, damaged_trace
from report_samples import COSTS, FIXES, RANKS, RECOMPILES, SKIPS
from trace_writer import Writer

from breakscope.cli import main
from breakscope.render import FORMATS
from breakscope.report import schema

RECORDED = Path(__file__).parent.parent / "recorded"
WHOLE = [json.loads(schema.dumps(report)) for report in (COSTS, RECOMPILES, SKIPS, FIXES, RANKS)]
WHOLE += [json.loads((RECORDED.parent / "data" / "report-training.json").read_text())] * 3
WHOLE += [json.loads((RECORDED / f"report-torch-{version}.json").read_text()) for version in ("2.9", "2.15")]
COMMANDS = [
    *(["report", "BAD", "-f", name, "-o", "out"] for name in FORMATS),
    ["report", "BAD", "--all"],
    ["report", "BAD", "--html"],
    ["report", "BAD", "--known", "GOOD"],
    ["report", "GOOD", "--known", "BAD"],
    *(
        ["diff", *pair, "-f", name]
        for pair in (["BAD", "GOOD"], ["GOOD", "BAD"])
        for name in ("terminal", "markdown", "json")
    ),
    ["diff", "BAD", "GOOD", "--html"],
    ["merge", "BAD", "GOOD", "-o", "merged.json"],
    ["merge", "BAD", "BAD", "-o", "merged.json"],
    *(["check", "BAD", "-f", name] for name in FORMATS if FORMATS[name].in_check),
    ["check", "BAD", "--update-baseline"],
    ["show", "0/0", "BAD"],
    ["show", "forward", "BAD", "--guards"],
    ["fix", "BAD"],
    ["fix", "BAD", "--format", "json"],
    ["remedy", "BAD"],
    ["prove", "patch", "--report", "BAD"],
    ["merge", "BAD", "GOOD", "-o", "merged.json", "--parquet", "tables", "--jobs", "1"],
    ["check", "GOOD", "--baseline", "BAD"],
    ["check", "GOOD", "--baseline", "BAD", "--update-baseline"],
    ["lint", "module.py", "--baseline", "BAD", "--no-cache"],
]
TRACE = [
    ["import", "BAD", "-o", "out.json"],
    ["import", "BAD", "-q", "-o", "out.json"],
    ["import", "BAD", "--artifacts", "-q", "-o", "out.json", "--jobs", "1"],
]
PATCH = "--- a/module.py\n+++ b/module.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def trace() -> bytes:
    writer = Writer()
    writer.compiled("0/0", "/job/model.py", "forward", 10, broke_at=12)
    writer.recompiled("0/1", ["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6"])
    writer.compiled("0/1", "/job/model.py", "forward", 10)
    return "".join(writer.parts).encode()


def tries(folder: Path, seeds: range) -> list[str]:
    """What ended in an internal error, or in more than a sentence."""
    wrong = []
    (folder / "module.py").write_text("x = 1\n")
    (folder / "patch").write_text(PATCH)
    for seed in seeds:
        chance = random.Random(seed)
        if seed % 5 == 4:
            words, data = chance.choice(TRACE), damaged_trace(trace(), seed)
        else:
            words, data = chance.choice(COMMANDS), damaged(chance.choice(WHOLE), seed)
        (folder / "BAD").write_bytes(data)
        (folder / "GOOD").write_text(json.dumps(WHOLE[seed % len(WHOLE)]))
        said, answer = io.StringIO(), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(answer):
            code = main(words)
        if (
            code == 4
            or "internal error" in said.getvalue()
            or (code == 2 and said.getvalue().count("\n") != 1)
        ):
            wrong.append(f"{seed}: {' '.join(words)}: {code}: {said.getvalue()[-300:]}")
    return wrong


@pytest.mark.parametrize("part", range(4))
def test_damaged_reports_and_traces_get_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tries(tmp_path, range(part * 50, part * 50 + 50)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_many_more_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.chdir(tmp_path)
    assert tries(tmp_path, range(1000 + part * 100, 1100 + part * 100)) == []
