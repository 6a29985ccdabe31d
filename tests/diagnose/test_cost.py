"""What a scan says of time: costs of sites, steps, compiles. Real scripts; sleeps that no noise can hide.

Nightly: one of the three reasons why nothing was measured.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned

from breakscope.report.model import Finding

pytestmark = pytest.mark.torch

SLEEPS = """
    import time
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            y = self.layer(x)
            if y.sum() > 1e6:
                y = y * 2
            y = y.relu()
            time.sleep(0.2)
            return y.cos()

    net = torch.compile(Net())
    with torch.no_grad():
        for step in range({steps}):
            net(torch.randn(5 if step == {other} else 4, 8))
"""


def at(scanned: Scanned, source: str) -> Finding:
    [found] = [one for one in scanned.report.findings if source in (one.location.source or "")]
    return found


def test_the_site_that_takes_the_time_is_the_worst(scan: Callable[..., Scanned]) -> None:
    scanned = scan(SLEEPS.format(steps=9, other=-1))
    timing = scanned.report.timing
    assert timing is not None
    assert (timing.steps, timing.bound) == (6, "host")
    sleep, branch = at(scanned, "time.sleep"), at(scanned, "y.sum()")
    assert scanned.report.findings[0] == sleep
    assert sleep.cost is not None
    assert branch.cost is not None
    assert sleep.cost.ms_per_step >= 200
    assert sleep.cost.ms_per_step > 5 * branch.cost.ms_per_step > 0
    assert sleep.cost.method == "replayed, 6 steps, backend eager"
    assert 0.5 < (sleep.cost.share or 0) <= 1
    assert (timing.step_ms or 0) >= sleep.cost.ms_per_step


RARE = """
    import time
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x, rare):
            y = self.layer(x).relu()
            if rare:
                time.sleep(0.05)
            return self.layer(y).cos()

    net = torch.compile(Net())
    with torch.no_grad():
        for step in range(2300):
            net(torch.randn(4, 8), step in (0, 100, 150, 2100, 2250))
"""


def test_a_break_that_few_steps_come_to_is_told_by_those_and_by_its_share_of_the_run(
    scan: Callable[..., Scanned],
) -> None:
    # No burst of samples is near those steps, and from step 2,000 on none has a row of its own.
    scanned = scan(RARE, quiet=False)
    sleep, timing = at(scanned, "time.sleep"), scanned.report.timing
    assert sleep.cost is not None
    assert timing is not None
    assert sleep.cost.steps == 4
    assert sleep.cost.ms_per_step >= 50
    assert timing.steady_ms is not None
    assert timing.steady_steps is not None
    assert timing.steady_steps > 2290
    assert sleep.cost.share == pytest.approx(4 * sleep.cost.ms_per_step / timing.steady_ms, rel=0.01)
    assert "ms in each of 4 steps" in scanned.text
    assert "repairing the one place would make the steady steps about" in " ".join(scanned.text.split())


TWO_MODELS = """
    import time
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, seconds):
            super().__init__()
            self.layer, self.seconds = nn.Linear(8, 8), seconds

    class Learner(Net):
        def forward(self, x):
            y = self.layer(x).relu()
            time.sleep(self.seconds)
            return self.layer(y).sum()

    class Judge(Net):
        def forward(self, x):
            y = self.layer(x).relu()
            time.sleep(self.seconds)
            return self.layer(y).sum()

    learner, judge = Learner(0.01), Judge(0.05)
    optimizer = torch.optim.SGD(learner.parameters(), lr=1e-3)
    learn, judged = torch.compile(learner), torch.compile(judge)
    for epoch in range(5):
        for _ in range(12):
            optimizer.zero_grad()
            learn(torch.randn(4, 8)).backward()
            optimizer.step()
        with torch.no_grad():
            judged(torch.randn(4, 8))
            judged(torch.randn(4, 8))
"""


def test_an_evaluation_by_another_model_is_told_apart_from_the_training_around_it(
    scan: Callable[..., Scanned],
) -> None:
    scanned = scan(TWO_MODELS, quiet=False)
    found = {one.location.function: one.cost for one in scanned.report.findings if one.cost is not None}
    learning, judging = found["Learner.forward"], found["Judge.forward"]
    assert learning.of_steps is not None
    # In each epoch but the last one step holds an evaluation; that of the first epoch compiles.
    assert (learning.steps, judging.steps) == (learning.of_steps, 3)
    # Sampled steps are scaled to those without marks, and so is the sleep in them.
    assert learning.ms_per_step >= 0.8 * 10
    assert judging.ms_per_step >= 0.8 * 2 * 50
    assert learning.share is not None
    assert judging.share is not None
    assert learning.share + judging.share > 0.5
    assert "ms in each of 3 steps" in scanned.text
    assert "would make the steady steps about" in " ".join(scanned.text.split())


def test_what_entering_a_region_takes_is_calibrated_when_the_script_is_over(
    scan: Callable[..., Scanned],
) -> None:
    timing = scan(SLEEPS.replace("0.2", "0").format(steps=12, other=-1)).report.timing
    assert timing is not None
    assert timing.entry_us
    assert timing.calibration_s
    assert scan(SLEEPS.replace("0.2", "0").format(steps=3, other=-1)).report.timing.entry_us is None  # type: ignore[union-attr]


OWN_BACKEND = """
    import torch

    def backend(graph, inputs):
        print("called")
        return graph.forward

    @torch.compile(backend=backend)
    def f(x):
        return x.cos() + 1

    for _ in range(30):
        f(torch.ones(3))
"""


def test_a_backend_of_the_scripts_own_is_called_for_the_scripts_graphs_alone(
    scan: Callable[..., Scanned],
) -> None:
    scanned = scan(OWN_BACKEND, "--backend", "as-script")
    assert scanned.stdout.count(b"called") == 1
    assert scanned.report.timing is not None
    assert scanned.report.timing.entry_us is None


def test_every_step_has_its_time_crossings_and_compiles(scan: Callable[..., Scanned]) -> None:
    report = scan(SLEEPS.format(steps=8, other=5)).report
    assert [step.index for step in report.steps] == list(range(8))
    assert all(step.ms is not None and step.ms >= 200 for step in report.steps)
    assert {step.crossings for step in report.steps} == {2}
    assert {step.launches for step in report.steps} == {3}
    assert [step.index for step in report.steps if step.compiles] == [0, 5]
    recompiles = [one for one in report.compiles if one.step == 5]
    assert {one.finding for one in recompiles} == {
        one.fingerprint for one in report.findings if one.kind == "recompile"
    }
    assert all(one.seconds and one.phases["dynamo"] > 0 for one in report.compiles)


def test_a_late_recompile_is_shown_at_its_step(scan: Callable[..., Scanned]) -> None:
    source = SLEEPS.replace("time.sleep(0.2)", "time.sleep(0)").format(steps=300, other=200)
    scanned = scan(source, quiet=False)
    late = next(one for one in scanned.report.findings if one.kind == "recompile")
    assert (late.first_step, late.last_step) == (200, 200)
    assert "compiled again at step 200:" in scanned.text
    assert [step.index for step in scanned.report.steps if step.compiles] == [0, 200]


def test_a_part_that_is_reached_late_was_not_compiled_before(scan: Callable[..., Scanned]) -> None:
    scanned = scan(
        """
        import torch

        def step(x):
            if x.sum() > 0:
                return x * 2
            return x - 1

        compiled = torch.compile(step)
        for at in range(40):
            compiled(torch.full((4,), 1.0 if at > 20 else -1.0))
        """,
        quiet=False,
    )
    assert scanned.report.totals.recompiles == 0
    assert "first compiled at step 21: 1 frame" in scanned.text
    assert "compiled again" not in scanned.text


TRAINING = """
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile
    def loss_of(x):
        y = net(x)
        if y.sum() > 1e6:
            y = y * 2
        return y.square().sum()

    with torch.no_grad():
        loss_of(torch.randn(3, 4))
    for _ in range(10):
        optimizer.zero_grad()
        for _ in range(2):
            loss_of(torch.randn(3, 4)).backward()
        optimizer.step()
"""


def test_steps_are_those_of_the_optimizer_where_there_is_one(scan: Callable[..., Scanned]) -> None:
    report = scan(TRAINING).report
    assert report.totals.steps == 10
    assert [step.index for step in report.steps] == list(range(10))
    # What ran before the first optimizer step is part of it.
    assert [step.crossings for step in report.steps] == [3, *[2] * 9]
    assert sum(step.launches or 0 for step in report.steps) == sum(one.calls or 0 for one in report.regions)


@pytest.mark.parametrize(
    ("steps", "options", "why"),
    [
        (1, (), "no steady steps after warm-up in a run of 1; 3 are needed"),
        pytest.param(
            5, (), "2 steady steps after warm-up in a run of 5; 3 are needed", marks=pytest.mark.nightly
        ),
        (9, ("--no-cost",), "the scan was made with --no-cost"),
    ],
)
def test_what_cannot_be_measured_says_why(
    scan: Callable[..., Scanned], steps: int, options: tuple[str, ...], why: str
) -> None:
    source = SLEEPS.replace("time.sleep(0.2)", "time.sleep(0)").format(steps=steps, other=-1)
    scanned = scan(source, *options, quiet=False)
    sites = [one for one in scanned.report.findings if one.kind == "graph_break"]
    assert [(one.cost, one.not_measured) for one in sites] == [(None, why)] * 2
    assert f"cost not measured: {why}" in " ".join(scanned.text.split())
    # The ranking falls back to crossings.
    assert [one.counts.crossings for one in sites] == [steps, steps]


TRAIN_STEP = """
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(net.parameters())
    scaler = torch.amp.GradScaler("cpu")

    @torch.compile
    def train_step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        if loss > 1e6:
            loss = loss * 0.1
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(8):
        train_step(torch.randn(3, 4))
"""


def test_what_torch_keeps_out_of_graphs_is_marked_and_ranks_last(scan: Callable[..., Scanned]) -> None:
    scanned = scan(TRAIN_STEP, quiet=False)
    findings = scanned.report.findings
    mine = [one.location.source for one in findings if one.intended is None]
    assert mine == ["if loss > 1e6:"]
    assert findings[0].intended is None
    assert len(findings) > 4
    text = scanned.text
    assert text.index("if loss > 1e6") < text.index("meant")
    # Who repairs all that can be repaired leaves the optimizer and the backward pass as torch has them.
    assert "repairing the one place" in text or "repairing the breaks would gain next to nothing" in text
    assert "gradient scaling reads its scale on the host by design" in " ".join(text.split())


FALLBACK = """
    import torch

    @torch.compile
    def f(x):
        seen = torch.nn.functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])
        return torch.linalg.eigvalsh(x @ x.T).sum() + seen.cos().sum()

    for _ in range(2):
        f(torch.randn(4, 4))
"""


@pytest.mark.slow
def test_ops_without_a_kernel_of_inductor_are_named(scan: Callable[..., Scanned]) -> None:
    [finding] = scan(FALLBACK, "--backend", "inductor").report.findings
    assert (finding.code, finding.kind, finding.reason) == ("BS308", "skip", "aten._linalg_eigh")
    assert finding.location.function == "f"
