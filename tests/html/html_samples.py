"""Reports for the tests of the page, beside those that every format shares."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from report_samples import BRANCH, CLEAN, COSTS, FLOAT, HOSTILE_TEXT, ITEM, LIMIT, LOGGER, LOOP, SIZE, TOTALS

from breakscope.diagnose.compare import Comparison, compare
from breakscope.report.model import (
    Cost,
    Counts,
    Finding,
    Frame,
    Location,
    Region,
    Report,
    SkippedFrame,
    Suggestion,
)

MODEL = '''\
"""A model that breaks in every way that this page can show."""

import time

import torch
from torch import nn


class Block(nn.Module):
    """One layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        y = self.linear(x)
        # Half precision overflows here.
        if y.abs().max() > 1e4:
            y = y.clamp(-1e4, 1e4)
        return x + y


class Net(nn.Module):
    def __init__(self, width: int = 64, depth: int = 6) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])

    def forward(self, x, scale=0.5):
        for block in self.blocks:
            start = time.time()
            x = block(x)
        scale = (
            x.mean()
            .item()
        )
        return x * scale
'''
REWRITTEN = MODEL.replace(
    "        if y.abs().max() > 1e4:\n            y = y.clamp(-1e4, 1e4)\n",
    "        y = torch.where(y.abs().max() > 1e4, y.clamp(-1e4, 1e4), y)\n",
)
PATCH = "".join(
    difflib.unified_diff(
        MODEL.splitlines(keepends=True), REWRITTEN.splitlines(keepends=True), "a/model.py", "b/model.py"
    )
)


def place(file: Path, text: str, function: str, last: str | None = None) -> Location:
    """The location of an expression in MODEL, to where ``last`` ends if it has several lines."""
    at = MODEL.index(text)
    end = MODEL.index(last, at) + len(last) if last else at + len(text)
    before, upto = MODEL[:at], MODEL[:end]
    line, end_line = before.count("\n") + 1, upto.count("\n") + 1
    raw = MODEL.split("\n")[line - 1]
    return Location(
        file=str(file),
        line=line,
        column=at - before.rfind("\n"),
        end_line=end_line,
        end_column=end - upto.rfind("\n"),
        function=function,
        source=raw.strip(),
        indent=len(raw) - len(raw.lstrip()),
    )


def rich(folder: Path) -> Report:
    """A report with costs, a rewrite, recompiles, a skip, a benchmark, and its source on disk in a folder."""
    file = folder / "model.py"
    file.write_text(MODEL, encoding="utf-8")
    call = Frame(str(folder / "train.py"), 88, "main", "loss = step(net, batch)")
    branch_at = place(file, "y.abs().max() > 1e4", "Block.forward")
    branch = replace(
        BRANCH,
        location=branch_at,
        stack=(
            call,
            Frame(str(file), 31, "Net.forward", "x = block(x)"),
            Frame(str(file), branch_at.line, "Block.forward", branch_at.source),
        ),
        suggestion=Suggestion(
            "tensor-branch",
            "select with torch.where instead of branching",
            PATCH,
            "proved",
            "The clamp is cheap, and both sides have the same shape and dtype.",
            {"inputs": 12, "branches driven": "both", "bitwise equal": True, "breaks there now": 0},
        ),
    )
    item = replace(
        ITEM,
        location=place(file, "x.mean()", "Net.forward", last=".item()"),
        suggestion=Suggestion("item", "keep the tensor", "", "refused", "the value is used as a list index"),
    )
    loop = replace(
        LOOP,
        location=place(file, "time.time()", "Net.forward"),
        stack=(),
        cost=Cost(0.21, 0.051, "gaps between regions"),
        skipped=(SkippedFrame("Net.forward", str(file), 28, "graph break in loop", 4),),
    )
    head = place(file, "def forward(self, x, scale=0.5)", "Net.forward")
    head = replace(head, column=None, end_line=None, end_column=None)
    size, number, limit = (replace(one, location=head) for one in (SIZE, FLOAT, LIMIT))
    return replace(
        COSTS,
        run=replace(CLEAN.run, cwd=str(folder), notes=("backend eager: kernel time is not visible",)),
        totals=replace(
            TOTALS, sites=4, occurrences=12, crossings=33, recompiles=4, skips=2, regions=6, ops=58
        ),
        findings=(LOGGER, item, branch, loop, size, number, limit),
        regions=(
            Region("0/0", "Net.forward", 8, 4, 2.5, None),
            Region("1/0", "Block.forward", 6, 12, 4.5, branch.fingerprint),
            Region("1/1", "Block.forward", 8, 12, 2.5, branch.fingerprint),
            Region("2/0", "Block.forward", 4, 24, 1.5, None),
            Region("3/0", "Net.forward", 9, 4, 0.5, item.fingerprint),
            Region("4/0", "T5Stack.forward", 12, None, None, LOGGER.fingerprint),
        ),
        benchmark={
            "device": "NVIDIA H200",
            "arms": [
                {"name": "eager", "mode": None, "ms": [5.6, 5.5, 5.9]},
                {"name": "compiled as is", "mode": "default", "ms": [4.1, 4.2, 4.1]},
                {"name": "compiled with the fixes", "mode": "default", "ms": [2.6, 2.7, 2.6]},
            ],
            "kernels": [{"name": "triton_poi_fused_add_0", "calls": 24, "share_of_ceiling": 0.83}],
        },
    )


def compared(folder: Path) -> Comparison:
    """Two runs of which one finding each is new, fixed, changed, moved and unchanged."""
    report = rich(folder)
    logger, item, branch, loop, size, *_ = report.findings
    cheaper = replace(branch, cost=Cost(0.9, 0.3, "gaps"), counts=Counts(7, 30, ("0/0",)))
    moved = replace(logger, location=replace(logger.location, line=1040, end_line=1042))
    return compare(
        replace(report, findings=(logger, item, branch, size)),
        replace(
            report,
            run=replace(report.run, torch="2.15.0", backend="inductor"),
            totals=replace(report.totals, sites=3),
            findings=(moved, cheaper, loop, size),
        ),
    )


def many(folder: Path, findings: int = 2_000, files: int = 200) -> Report:
    """Findings spread over files that lie on disk, as a scan of a large project leaves them."""
    made: list[Finding] = []
    body = "".join(f"    y = x * {number} if x.sum() > {number} else x\n" for number in range(60))
    for number in range(files):
        (folder / f"layer_{number}.py").write_text(f"def forward(x):\n{body}    return y\n", encoding="utf-8")
    for number in range(findings):
        file, row = folder / f"layer_{number % files}.py", number // files * 5
        source = f"y = x * {row} if x.sum() > {row} else x"
        like = LOGGER if number % 3 == 0 else BRANCH
        start = source.index("x.sum()")
        made.append(
            replace(
                like,
                fingerprint=f"f{number:05}",
                cost=None,
                counts=Counts(1 + number % 7, 1 + number * 37 % 1_000, ("0/0",)),
                location=Location(
                    str(file),
                    row + 2,
                    start + 5,
                    row + 2,
                    start + 5 + len(f"x.sum() > {row}"),
                    "forward",
                    source,
                    "project" if number % 5 else "library",
                    4,
                ),
                called_from=None,
            )
        )
    return replace(
        CLEAN,
        run=replace(CLEAN.run, cwd=str(folder)),
        totals=replace(TOTALS, sites=findings, occurrences=findings, crossings=findings * 50),
        findings=tuple(made),
    )


EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked=1'>\"'`${hacked}&lt;"


def hostile(folder: Path) -> Report:
    """Markup, quotes, control characters and a line of a megabyte in every text there is."""
    text = EVIL + HOSTILE_TEXT
    report = rich(folder)
    line = "x = [" + "1, " * 350_000 + "y.item()]"
    file = folder / "evil.py"
    file.write_text(f"{line}\nz = '{EVIL}' + '\u202egnp'\n", encoding="utf-8")
    start = line.index("y.item()")
    wide = replace(
        BRANCH,
        fingerprint=f"{EVIL}#%zz",
        location=Location(str(file), 1, start + 1, 1, start + 9, text, line, "project", 0),
    )
    second = f"z = '{EVIL}' + '\u202egnp'"
    at = second.index("'\u202e")
    hidden = replace(
        BRANCH,
        fingerprint="hidden",
        location=Location(str(file), 2, at + 1, 2, len(second) + 1, text, second, "project", 0),
        reason=text * 20_000,
        explanation=text,
        hints=(text,),
        title=text,
        stack=(Frame(text, 1, text, text),),
        suggestion=Suggestion(
            text, text, f"--- a\n+++ b\n@@ -1 +1 @@\n-{second}\n+{EVIL}\n", "proved", text, {text: text}
        ),
    )
    return replace(
        report,
        run=replace(
            report.run, script=text, argv=(text,), notes=(text,), backend=text, python=text, started_at=text
        ),
        tool=replace(report.tool, name=text),
        findings=(wide, hidden, *report.findings),
        regions=(Region(text, text, 1, 1, 1.0, "hidden"),),
        benchmark={text: [{text: text, "ms": [1.0]}], "other": text},
    )
