"""One set of reports for the tests of every format. Each is small, and says what it is there for."""

from __future__ import annotations

from dataclasses import replace

from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.report.model import (
    Compiled,
    Cost,
    Counts,
    Device,
    Finding,
    Frame,
    Guard,
    Location,
    Reconciliation,
    Region,
    Report,
    Run,
    SkippedFrame,
    Suggestion,
    Tool,
    Totals,
    Unattributed,
)

PROJECT = "/home/ada/project"
LIBRARY = f"{PROJECT}/.venv/lib/python3.11/site-packages"

RUN = Run(
    script="train.py",
    argv=("train.py", "--epochs", "1"),
    cwd=PROJECT,
    status="ok",
    exit_code=0,
    started_at="2026-01-02T03:04:05+00:00",
    duration_s=8.07,
    backend="eager",
    mode=None,
    compiled=("Net",),
    world_size=1,
    python="3.11.9",
    torch="2.13.0",
    triton="3.6.0",
    device=Device("cuda", "NVIDIA H200", 1),
    targets=(Compiled("Net", "breakscope", f"{PROJECT}/model.py", 30),),
)
TOTALS = Totals(sites=0, occurrences=0, crossings=0, recompiles=0, skips=0, regions=1, ops=12, steps=4)

BRANCH = Finding(
    fingerprint="BS101:model.py:Block.forward:a1b2c3",
    code="BS101",
    kind="graph_break",
    gb_id="GB0170",
    title="branch on a tensor's value",
    reason="Data-dependent branching",
    explanation="Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).",
    hints=("Use `torch.cond` to express dynamic control flow.",),
    location=Location(
        file=f"{PROJECT}/model.py",
        line=41,
        column=12,
        end_line=41,
        end_column=31,
        function="Block.forward",
        source="if y.abs().max() > 1e4:",
        indent=8,
    ),
    stack=(
        Frame(f"{PROJECT}/train.py", 88, "main", "loss = step(net, batch)"),
        Frame(f"{PROJECT}/model.py", 60, "Net.forward", "x = self.blocks(x)"),
        Frame(f"{LIBRARY}/torch/nn/modules/module.py", 1780, "Module._call_impl", None, "torch"),
        Frame(f"{LIBRARY}/torch/nn/modules/container.py", 250, "Sequential.forward", None, "torch"),
        Frame(f"{PROJECT}/model.py", 41, "Block.forward", "if y.abs().max() > 1e4:"),
    ),
    counts=Counts(occurrences=5, crossings=24, compile_ids=("0/0", "1/0", "1/1")),
    cost=Cost(1.42, 0.346, "gaps between regions"),
    first_step=0,
    last_step=3,
)
ITEM = replace(
    BRANCH,
    fingerprint="BS102:model.py:Net.forward:d4e5f6",
    code="BS102",
    gb_id="GB0124",
    title="Python scalar read out of a tensor",
    reason="Unsupported Tensor.item() call with capture_scalar_outputs=False",
    location=Location(
        f"{PROJECT}/model.py", 62, 13, 62, 28, "Net.forward", "scale = x.mean().item() + eps", "project", 4
    ),
    stack=(),
    counts=Counts(1, 4, ("2/0",)),
    cost=Cost(0.48, 0.117, "gaps between regions"),
)
LOGGER = replace(
    BRANCH,
    fingerprint="BS104:transformers/modeling_t5.py:T5Stack.forward:778899",
    code="BS104",
    gb_id="GB0291",
    title="print, logging or warnings call",
    reason="logging.Logger method not supported for non-export cases",
    location=Location(
        f"{LIBRARY}/transformers/modeling_t5.py",
        1031,
        17,
        1033,
        18,
        "T5Stack.forward",
        "logger.warning_once(",
        "library",
        16,
    ),
    stack=(
        Frame(f"{PROJECT}/train.py", 88, "main", "loss = step(net, batch)"),
        Frame(f"{LIBRARY}/transformers/modeling_t5.py", 1031, "T5Stack.forward", None, "library"),
    ),
    called_from=Frame(f"{PROJECT}/train.py", 88, "main", "loss = step(net, batch)"),
    counts=Counts(1, 1, ("3/0",)),
    cost=Cost(0.0, 0.0, "gaps between regions"),
    last_step=0,
)
LOOP = replace(
    BRANCH,
    fingerprint="BS301:model.py:Net.forward:loop",
    code="BS301",
    kind="skip",
    gb_id="GB7000",
    title="frame skipped: break in a loop, try or with, whole function runs eagerly",
    reason="Attempted to call function marked as skipped\ntime.time",
    location=Location(
        f"{PROJECT}/model.py", 14, 17, 14, 28, "Net.forward", "start = time.time()", "project", 8
    ),
    stack=(Frame(f"{PROJECT}/train.py", 88, "main"), Frame(f"{PROJECT}/model.py", 14, "Net.forward")),
    counts=Counts(1, 4, ("0/0",)),
    cost=None,
    skipped=(SkippedFrame("Net.forward", f"{PROJECT}/model.py", 12, "graph break in loop", 4),),
    first_step=0,
    last_step=3,
)
SIZE = Finding(
    fingerprint="BS201:model.py:Net.forward:x:0",
    code="BS201",
    kind="recompile",
    gb_id=None,
    title="size of x, dimension 0: compiled for 3, got 4",
    reason="tensor 'x' size mismatch at index 0. expected 3, actual 4",
    explanation="",
    hints=(),
    location=Location(
        f"{PROJECT}/model.py", 30, function="Net.forward", source="def forward(self, x, scale):"
    ),
    stack=(),
    counts=Counts(3, None, ("0/1", "0/2", "0/3")),
    guard=Guard(
        "tensor 'x' size mismatch at index 0. expected 3, actual 4", "x", "3", "4", "size", 0, ("4", "7", "9")
    ),
    first_step=1,
    last_step=3,
)
FLOAT = replace(
    SIZE,
    fingerprint="BS207:model.py:Net.forward:scale",
    code="BS207",
    title="value of scale: compiled for 0.5, got 0.25",
    counts=Counts(1, None, ("0/4",)),
    guard=Guard("L['scale'] == 0.5", "scale", "0.5", "0.25", "float_value"),
)
OTHER_GUARD = replace(
    SIZE,
    fingerprint="BS299:model.py:Net.forward:other",
    code="BS299",
    title="other guard",
    counts=Counts(1, None, ("0/5",)),
    guard=Guard("___check_something(L['self'])", None, None, None, "other"),
)
LIMIT = replace(
    LOOP,
    fingerprint="BS303:model.py:Net.forward:limit",
    code="BS303",
    gb_id=None,
    title="recompile limit reached",
    reason="recompile limit of 8 reached",
    location=Location(
        f"{PROJECT}/model.py", 30, function="Net.forward", source="def forward(self, x, scale):"
    ),
    stack=(),
    counts=Counts(1, None, ("0/8",)),
    guards=tuple(
        Guard(f"L['scale'] == {value}", "scale", str(value), str(value + 1), "int_value")
        for value in range(8)
    ),
    skipped=(SkippedFrame("Net.forward", f"{PROJECT}/model.py", 30, "recompile limit reached", None),),
)

CLEAN = Report(
    tool=Tool("breakscope", "0.1.0"),
    run=RUN,
    totals=TOTALS,
    reconciliation=Reconciliation({"frames.total": 1, "frames.ok": 1}, (), vacuous=False),
    findings=(),
    regions=(Region("0/0", "Net.forward", 12, 4, 3.5, None),),
)
COSTS = replace(
    CLEAN,
    totals=replace(TOTALS, sites=3, occurrences=7, crossings=29, regions=4, ops=40),
    findings=(LOGGER, ITEM, BRANCH),
    regions=(
        Region("0/0", "Net.forward", 12, 4, 3.5, BRANCH.fingerprint),
        Region("1/0", "main", 2, None, None, None),
    ),
)
RECOMPILES = replace(
    CLEAN,
    totals=replace(TOTALS, recompiles=5, regions=6),
    findings=(FLOAT, OTHER_GUARD, SIZE),
)
# Two recompiles that a healthy script has, and a break that torch means to be there.
EVALUATION = replace(
    SIZE,
    fingerprint="BS212:model.py:Net.forward:grad_mode",
    code="BS212",
    title="global state changed: grad_mode",
    counts=Counts(1, None, ("0/6",)),
    guard=Guard("GLOBAL_STATE changed: grad_mode", "grad_mode", None, None, "global_state"),
    expected="one graph with gradients and one without",
)
LAST_BATCH = replace(
    SIZE,
    fingerprint="BS201:model.py:Net.forward:y:0",
    counts=Counts(1, None, ("0/7",)),
    expected="a smaller batch (3 after 4): compiled once more",
)
BACKWARD = replace(
    BRANCH,
    fingerprint="BS107:model.py:Net.step:backward",
    code="BS107",
    title="call of a function that is not compiled",
    intended="the backward pass is compiled on its own",
)
HEALTHY = replace(
    CLEAN,
    totals=replace(TOTALS, sites=1, recompiles=2, regions=3),
    findings=(EVALUATION, LAST_BATCH, BACKWARD),
)
SKIPS = replace(
    CLEAN,
    totals=replace(TOTALS, sites=1, occurrences=1, crossings=4, skips=2, regions=0, ops=0),
    findings=(LIMIT, LOOP),
)
VACUOUS = replace(
    CLEAN,
    run=replace(RUN, compiled=(), targets=(), device=None, notes=("the script never called a module",)),
    totals=replace(TOTALS, regions=0, ops=0, steps=None, crossings=None),
    reconciliation=Reconciliation({}, (), vacuous=True),
    regions=(),
)
KILLED = replace(
    COSTS,
    run=replace(RUN, status="killed", exit_code=-9, duration_s=192.4),
    totals=replace(COSTS.totals, steps=None, crossings=None),
    findings=(replace(ITEM, cost=None, counts=Counts(6, None)),),
    reconciliation=Reconciliation(
        {"graph_break": 7}, (Unattributed("graph_break", "4/0", "\nno frame was given\nmore"),), vacuous=False
    ),
)
IMPORTED_TRACE = replace(
    CLEAN,
    run=replace(
        RUN, script="traces/rank_0.log", torch=None, device=None, world_size=4, notes=("read from a trace",)
    ),
    totals=replace(TOTALS, sites=1, occurrences=6, crossings=None, steps=None),
    findings=(
        replace(BRANCH, cost=None, counts=Counts(6, None), ranks=(1, 3), first_step=None, last_step=None),
    ),
)
SUGGESTIONS = replace(
    COSTS,
    findings=(
        replace(
            BRANCH,
            suggestion=Suggestion(
                "tensor-branch",
                "torch.where instead of the branch",
                "--- a\n+++ b\n",
                "proved",
                "",
                {"inputs": 12, "largest_difference": 0.0},
            ),
        ),
        replace(
            ITEM,
            suggestion=Suggestion(
                "item", "keep the tensor", "", "refused", "the value is used as a list index"
            ),
        ),
    ),
    benchmark={"arms": [{"name": "eager", "ms": [1.5, 1.25]}], "note": None},
)
# A proved rewrite with a real diff: a line that becomes two, a line that goes, a line that is put in.
FIXES = replace(
    COSTS,
    findings=(
        replace(
            BRANCH,
            suggestion=Suggestion(
                "tensor-branch",
                "torch.where instead of the branch",
                """\
--- a/model.py
+++ b/model.py
@@ -1,2 +1,3 @@
 import os
+import torch
 import sys
@@ -40,4 +41,4 @@
         y = self.norm(x)
-        if y.abs().max() > 1e4:
-            y = y.clamp(-1e4, 1e4)
+        large = y.abs().max() > 1e4
+        y = torch.where(large, y.clamp(-1e4, 1e4), y)
         return y
@@ -70,3 +71,2 @@
     a = 1
-    b = 2
     c = 3
""",
                "proved",
                "",
                {"inputs": 12},
            ),
        ),
    ),
)

# Text as an attacker or an accident would write it: it must reach no terminal and no file as it is.
HOSTILE_TEXT = (
    "a\x1b[31mred\x1b]0;title\x07\x00b\u202egnp.\u2066x\u200b\r\n\tc\ud800\u2028d\x9b2J\ufeff<script>&"
)
HOSTILE = replace(
    CLEAN,
    run=replace(
        RUN,
        script=f"/tmp/{HOSTILE_TEXT}.py",
        notes=(HOSTILE_TEXT,),
        compiled=(HOSTILE_TEXT,),
        targets=(),
        torch=HOSTILE_TEXT,
        device=Device(HOSTILE_TEXT, HOSTILE_TEXT, 2),
        mode=HOSTILE_TEXT,
    ),
    reconciliation=Reconciliation(
        {HOSTILE_TEXT: 1}, (Unattributed(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT),), vacuous=False
    ),
    findings=(
        replace(
            LOOP,
            code=HOSTILE_TEXT,
            gb_id=HOSTILE_TEXT,
            title=HOSTILE_TEXT,
            reason=HOSTILE_TEXT,
            hints=(HOSTILE_TEXT,),
            location=Location(HOSTILE_TEXT, 1, 1, 1, 2, HOSTILE_TEXT, HOSTILE_TEXT),
            stack=(Frame(HOSTILE_TEXT, 1, HOSTILE_TEXT, HOSTILE_TEXT),),
            guards=(
                Guard(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, "other", None, (HOSTILE_TEXT,)),
            ),
            skipped=(SkippedFrame(HOSTILE_TEXT, HOSTILE_TEXT, 1, HOSTILE_TEXT, 1),),
        ),
        replace(
            SIZE,
            guard=Guard(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, "size", 0, (HOSTILE_TEXT,)),
            location=Location("\udcff.py", 3, 5, 3, 9, "f", "x = '\u202e' + a.item()"),
        ),
        replace(
            BRANCH,
            suggestion=Suggestion(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, "unproved", HOSTILE_TEXT),
        ),
    ),
)
# Text that is markup to some format: none of it may become a tag, a link, a cell, a mention or a command.
MARKUP_TEXT = (
    "``` `x` | @ada #12 ada/repo#3 <b onclick=x>b</b> <!-- --> </details> [k](http://evil.example) ![i](u)"
    " **s** _e_ ~~d~~ $m$ \\| &lt; %0A::error::no, a:b,c ]]> </script> https://evil.example www.evil.example {0}"
)
MARKUP = replace(
    CLEAN,
    run=replace(RUN, script=f"{MARKUP_TEXT}.py", notes=(MARKUP_TEXT,), compiled=(MARKUP_TEXT,), targets=()),
    totals=replace(TOTALS, sites=1, occurrences=1, crossings=4),
    findings=(
        replace(
            BRANCH,
            fingerprint=MARKUP_TEXT,
            title=f"# {MARKUP_TEXT}\nsecond line",
            reason=f"> {MARKUP_TEXT}\n::warning::second line",
            gb_id=MARKUP_TEXT,
            location=Location(
                f"{PROJECT}/{MARKUP_TEXT}", 3, 5, 3, 9, MARKUP_TEXT, f"````\n</details>{MARKUP_TEXT}"
            ),
            stack=(Frame(f"{PROJECT}/{MARKUP_TEXT}", 3, MARKUP_TEXT, MARKUP_TEXT),),
            guard=Guard(MARKUP_TEXT, None, None, None, "other"),
            suggestion=Suggestion(MARKUP_TEXT, MARKUP_TEXT, f"```\n{MARKUP_TEXT}\n", "refused", MARKUP_TEXT),
        ),
    ),
)
WIDE = replace(
    CLEAN,
    run=replace(
        RUN, script="訓練/学習.py", compiled=("モデル",), targets=(), notes=("出力は一部だけです。" * 12,)
    ),
    findings=(
        replace(
            BRANCH,
            cost=None,
            title="条件がテンソルの値に依存している " * 3,
            location=Location(
                f"{PROJECT}/模型/層.py",
                7,
                12,
                7,
                26,
                "ブロック.forward",
                "if 値['最大値'].max() > 限界値:  # 値が大きい場合は切り詰める",
            ),
            stack=(),
        ),
    ),
)
LONG_LINE = replace(
    CLEAN,
    findings=(
        replace(
            BRANCH,
            location=replace(
                BRANCH.location,
                source="table = [" + "first, " * 40 + "x.sum().item(), " + "last, " * 40 + "]",
                column=8 + 1 + len("table = [") + 7 * 40,
                end_column=8 + 1 + len("table = [") + 7 * 40 + len("x.sum().item()"),
            ),
        ),
    ),
)


def _layer(number: int) -> Finding:
    """One of many: four to a layer, two kinds in turn, each in a place of its own."""
    like = LOGGER if number % 2 else BRANCH
    file, line, function = (
        f"{PROJECT}/layers/layer_{number // 4}.py",
        number + 1,
        f"Layer{number // 4}.forward",
    )
    return replace(
        like,
        fingerprint=f"finding-{number}",
        cost=None,
        counts=Counts(1, number + 1),
        location=replace(
            like.location, file=file, line=line, end_line=line, function=function, owner="project"
        ),
        stack=(*like.stack[:-1], Frame(file, line, function)),
        called_from=None,
    )


HUNDRED = replace(
    CLEAN,
    totals=replace(TOTALS, sites=100, occurrences=100, crossings=5050),
    findings=tuple(_layer(number) for number in range(100)),
)

# A job of three ranks of which one recompiles alone and then dies, and one whose texts are hostile.
RANKS = merge(
    [
        as_rank(
            COSTS, Identity(0, "job", host="node1", ended="was stopped by torchrun after rank 2 had ended")
        ),
        as_rank(COSTS, Identity(1, "job", host="node1")),
        as_rank(
            replace(
                COSTS, findings=(*COSTS.findings, SIZE), run=replace(RUN, status="killed", exit_code=137)
            ),
            Identity(2, "job", host="node2"),
        ),
    ]
)
HOSTILE_RANKS = merge(
    [
        as_rank(HOSTILE, Identity(0, HOSTILE_TEXT, host=HOSTILE_TEXT, ended=HOSTILE_TEXT)),
        as_rank(MARKUP, Identity(1, HOSTILE_TEXT, host=MARKUP_TEXT)),
    ]
)

SAMPLES: dict[str, Report] = {
    "clean": CLEAN,
    "costs": COSTS,
    "recompiles": RECOMPILES,
    "skips": SKIPS,
    "healthy": HEALTHY,
    "vacuous": VACUOUS,
    "killed": KILLED,
    "imported_trace": IMPORTED_TRACE,
    "suggestions": SUGGESTIONS,
    "fixes": FIXES,
    "hostile": HOSTILE,
    "markup": MARKUP,
    "wide": WIDE,
    "long_line": LONG_LINE,
    "hundred": HUNDRED,
    "ranks": RANKS,
    "hostile_ranks": HOSTILE_RANKS,
}
