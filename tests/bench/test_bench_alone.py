"""Kernels run again alone: on which inputs, and what is left when one of them ends its process.

Nightly: a kernel that ends its process, in a whole benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from bench_samples import BENCHMARK, CEILINGS
from test_bench_arms import NET

from breakscope.bench import afterwards, ceilings, kernels
from breakscope.bench.conducted import Conducted
from breakscope.bench.players import ArmFailedError, Player
from breakscope.inside.bench import export_text, records
from breakscope.inside.bench.alone import Again
from breakscope.inside.bench.arm_compat import CudaGraphSwitch, tree_map
from breakscope.inside.bench.attribution import Attribution
from breakscope.inside.bench.plan import Arm, Options
from breakscope.inside.bench.specs import Inputs, spec_with_values

pytestmark = pytest.mark.torch

aten = torch.ops.aten


# ---- inputs ----


@pytest.mark.parametrize(
    "cut", [(slice(None), slice(0, -1)), (slice(None), slice(1, None)), (slice(None), None)]
)
def test_indices_keep_their_values_and_their_strides(cut: Any) -> None:
    """A language model's inputs are rows of ``ids[:, :-1]``: contiguous ones would be read past their end."""
    ids = torch.arange(8 * 257).reshape(8, 257)[cut]
    made = Inputs(((spec_with_values(ids),), {}), tree_map)
    [fresh] = made.args
    assert (fresh.shape, fresh.stride()) == (ids.shape, ids.stride())
    assert torch.equal(fresh, ids)
    assert fresh.untyped_storage().size() >= 8 * made_reach(ids)


def made_reach(tensor: torch.Tensor) -> int:
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))


def test_an_index_that_a_run_counts_up_is_put_back() -> None:
    made = Inputs(((spec_with_values(torch.tensor([3])), spec_with_values(torch.ones(2))), {}), tree_map)
    made.args[0].add_(1)
    made.restore()
    assert made.args[0].tolist() == [3]


def test_integers_too_many_to_keep_are_an_index_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("breakscope.inside.bench.specs._KEPT_BYTES", 8)
    [fresh] = Inputs(((spec_with_values(torch.full((4,), 7)),), {}), tree_map).args
    assert fresh.tolist() == [0, 0, 0, 0]


def test_what_asserts_something_of_its_inputs_gets_the_real_ones() -> None:
    seen = Attribution(on_gpu=False)
    weights = torch.tensor([0.25, 0.75])
    seen.op(aten.multinomial.default, (weights, 1), {})
    seen.op(aten.add.Tensor, (weights, weights), {})
    seen.op(aten.multinomial.default, (weights, 1), {})
    first, add, second = (done.arguments[0][0].values for done in seen.done)
    assert torch.equal(first, weights)
    assert add is None  # any value will do
    assert second is None  # only the first of a kind is run again
    assert [done.particular for done in seen.done] == [True, False, True]


@pytest.mark.parametrize(
    ("op", "arguments", "expected"),
    [
        (aten.mm.default, (torch.ones(4, 8), torch.ones(8, 2)), 2 * 4 * 8 * 2),
        (aten.add.Tensor, (torch.ones(4), torch.ones(4)), None),
    ],
)
def test_flops_are_told_without_data(op: Any, arguments: Any, expected: int | None) -> None:
    seen = Attribution(on_gpu=False)
    seen.op(op, arguments, {})
    assert records._flops(seen.done[0]) == expected


def test_an_exported_script_keeps_strides_too() -> None:
    namespace: dict[str, Any] = {}
    exec(export_text.HEAD.format(what="A kernel"), namespace)
    ids = torch.arange(8 * 257).reshape(8, 257)[:, :-1]
    namespace["VALUES"] = {0: spec_with_values(ids).values}
    made = namespace["tensor"](torch.int64, tuple(ids.shape), ids.stride(), "cpu", values=0)
    assert torch.equal(made, ids)
    assert made.stride() == ids.stride()


def test_a_graph_runs_without_its_cuda_graph_only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import compile_fx

    monkeypatch.setattr(compile_fx, "cudagraphify", lambda model, **_: lambda _inputs: "recorded")
    switch = CudaGraphSwitch()
    switch.install()
    run = compile_fx.cudagraphify(lambda _inputs: "plain", device_index=0)
    assert run([]) == "recorded"
    switch.off = True
    assert run([]) == "plain"


# ---- what is lost with a process ----


def record(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "category": "kernel",
        "grid": [number, 1, 1],
        "block": [128, 1, 1],
        "us": 100.0 - number,
        "calls": 1,
        "kind": "triton",
        "op": "aten.add",
        "registers": 32,
        "shared": 0,
        "marker": number,
        "number": number,
        **more,
    }


def player(arm: Arm, profile: dict[str, Any]) -> Player:
    """A process that nobody asks anything."""
    made = Player(arm, 0, None, Path(), None, None, 1.0)  # type: ignore[arg-type]
    made.profile = profile
    return made


def steps(*records: dict[str, Any]) -> dict[str, Any]:
    return {"kernels": [{**one, "op": None} for one in records], "busy_ms": 0.3, "span_ms": 0.4}


@pytest.mark.parametrize("dies", ["context", "process"])
def test_a_kernel_that_ends_its_process_takes_no_other_group_with_it(dies: str) -> None:
    details = [record(0, "good"), record(1, "bad"), record(2, "same group"), record(3, "not reached")]
    groups = [
        {"records": [{**details[0], "alone_us": 5.0}], "left": 3, "lost": None},
        {
            "records": [{**details[1], "alone_why": "running it again raised X"}, details[2]],
            "left": 1,
            "lost": "bad, run alone, ended the CUDA context: device-side assert triggered",
        },
    ]

    def ask(_kind: str) -> dict[str, Any]:
        if dies == "process" and len(groups) == 1:
            fake.lost = "ended by SIGABRT"
            raise ArmFailedError(fake.lost)
        return groups.pop(0)

    arm = Arm("compiled", "default")
    fake = SimpleNamespace(
        arm=arm, alive=True, lost=None, ask=ask, profile={**steps(*details), "details": {"kernels": details}}
    )
    afterwards._alone(fake, lambda _line: None)  # type: ignore[arg-type]
    good, bad, same, rest = details
    assert good["alone_us"] == 5.0
    if dies == "process":
        why = "its process did not survive: ended by SIGABRT"
        assert bad["alone_why"] == same["alone_why"] == rest["alone_why"] == why
    else:
        assert bad["alone_why"] == "running it again raised X"
        assert "bad, run alone, ended the CUDA context" in same["alone_why"]
        assert rest["alone_why"] == same["alone_why"]


def test_once_steps_are_measured_a_process_is_lost_and_no_arm_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made = player(Arm("compiled"), {})
    monkeypatch.setattr(Player, "kill", lambda _self: None)
    made.measured = True
    made._failed("ended by SIGABRT")
    assert (made.failed, made.lost, made.alive) == (None, "ended by SIGABRT", False)


def tables(found: Conducted, monkeypatch: pytest.MonkeyPatch, modes: str) -> Any:
    monkeypatch.setattr(ceilings, "ceilings", lambda *_: (CEILINGS, None))
    made = kernels.add(BENCHMARK, found, Options(modes=tuple(modes.split(",")), kernels=True))
    return {table.arm: table for table in made.kernels}


def test_a_kernel_is_known_in_every_arm_by_name_and_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gemm = record(0, "gemm", kind="vendor", alone_us=4.0)
    plain, other = record(1, "triton_a", alone_us=3.0), record(9, "triton_a")
    eager = player(Arm("eager"), {"kernels": [{**record(5, "norm"), "op": "aten::norm"}], "span_ms": 1.0})
    default = player(
        Arm("compiled", "default"), {**steps(gemm, plain), "details": {"kernels": [gemm, plain]}}
    )
    fill = {**record(7, "Memset"), "category": "gpu_memset"}
    graphs = player(
        Arm("compiled", "reduce-overhead"), steps(gemm, other, record(6, "norm"), record(8, "custom"), fill)
    )
    for one in (eager, default, graphs):
        one.last = {"on_gpu": True}
    found = Conducted(players=[eager, default, graphs])
    table = tables(found, monkeypatch, "default,reduce-overhead")["compiled · reduce-overhead"]
    rows = {one.name: one for one in table.kernels}
    assert rows["gemm"].alone_us == 4.0  # from the other arm
    assert rows["triton_a"].alone_us is None  # of the same name, in another configuration
    assert rows["norm"].op == "aten::norm"  # what eager's profile says of it
    assert (rows["custom"].kind, rows["Memset"].kind) == ("other", "copy")
    whole = sum(one.step_us for one in table.kernels)
    assert table.accounted == pytest.approx(1 - rows["custom"].step_us / whole)
    assert rows["Memset"].bandwidth_share is None
    assert table.gaps_ms == pytest.approx(1.0 - 0.3)  # of the timed step, not of the profiled one


def test_kernels_survive_the_loss_of_their_process(monkeypatch: pytest.MonkeyPatch) -> None:
    gemm = record(0, "gemm", kind="vendor", alone_us=4.0)
    made = player(Arm("compiled"), {**steps(gemm), "details": {"kernels": [gemm]}})
    made.lost = "ended by SIGABRT"
    made.last = {"on_gpu": True}
    table = tables(Conducted(players=[made]), monkeypatch, "as-script")["compiled"]
    assert table.kernels[0].alone_us == 4.0
    assert table.not_measured == "details: ended by SIGABRT"
    made.profile.pop("details")  # it died when it was to say what it knows
    table = tables(Conducted(players=[made]), monkeypatch, "as-script")["compiled"]
    assert table.kernels[0].alone_why == "ended by SIGABRT"


def test_kernels_run_again_in_groups_the_particular_ones_last(tmp_path: Path) -> None:
    seen = Attribution(on_gpu=False)
    seen.op(aten.multinomial.default, (torch.tensor([0.5, 0.5]), 1), {})
    seen.op(aten.add.Tensor, (torch.ones(4), torch.ones(4)), {})
    made = [record(0, "multinomial", particular=True), record(1, "add"), record(2, "x", alone_why="copy")]
    again = Again(made, seen.done, tmp_path, on_gpu=False)
    first, second = again.next_group(), again.next_group()
    assert [one["name"] for one in (*first["records"], *second["records"])] == ["add", "multinomial"]
    assert (first["left"], second["left"], second["lost"]) == (1, 0, None)
    assert all(one["alone_us"] > 0 for one in made[:2])


PICKY = f"""{NET}
import os

@torch.library.custom_op("bench_test::picky", mutates_args=())
def picky(x: torch.Tensor) -> torch.Tensor:
    if bool((x < 0).any()):  # values that never were: what a device-side assertion is on a GPU
        os.abort()
    return x.clone()

@picky.register_fake
def _(x):
    return torch.empty_like(x)

class Deep(Net):
    def forward(self, x):
        return self.second(picky(self.first(x).relu()))

net = Deep()
with torch.no_grad():
    for _ in range(12):
        net(torch.randn(4, 32))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_kernel_that_aborts_when_run_alone_costs_the_arm_nothing(bench: Callable[..., Any]) -> None:
    done = bench(PICKY, "--processes", "1", "--steps", "10", "--kernels", "--export", "out")
    assert done.exit_code == 0, done.stderr
    compiled = done.arm("compiled")
    assert compiled.status == "ok"
    assert compiled.step is not None
    assert compiled.outputs is not None
    assert compiled.outputs.status == "same"
    assert any("was lost after its steps were measured: ended by SIGABRT" in note for note in compiled.notes)
    table = next(one for one in done.benchmark.kernels if one.arm == "compiled")
    rows = {one.name: one for one in table.kernels}
    picky = rows["bench_test::picky"]
    assert picky.alone_us is None
    assert picky.alone_why is not None
    assert picky.alone_why.startswith("its process did not survive: ended by SIGABRT")
    assert "not measured: details: ended by SIGABRT" in done.stdout
    assert any("picky" in name for name in done.benchmark.exported)  # the script for the bug report is there
