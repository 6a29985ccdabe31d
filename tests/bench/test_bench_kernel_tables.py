"""The profiler's trace, read; kernels against the ceilings; what to try."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_samples import CEILINGS, MATMUL, TRITON
from scanning import run_python

from breakscope.bench import kernels
from breakscope.bench.advice import advise
from breakscope.bench.conducted import Conducted
from breakscope.bench.kernels import judged
from breakscope.bench.players import Player
from breakscope.inside.bench import export_text, trace
from breakscope.inside.bench.fragments import fragment
from breakscope.inside.bench.origins import origins
from breakscope.inside.bench.plan import Arm
from breakscope.report.benchmark import KernelTable


def event(name: str, category: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": category, "ts": ts, "dur": dur, "tid": tid, "args": args}


def kernel(name: str, ts: float, dur: float, correlation: int, **more: Any) -> dict[str, Any]:
    return event(name, "kernel", ts, dur, tid=7, correlation=correlation, **more)


# Two steps. Thread 2 is autograd's. Each step: a marked matmul, a marked kernel of two launches on another
# stream that overlap, and a fill that nothing launched.
EVENTS = [
    event(trace.STEP, "user_annotation", 0, 100),
    event(trace.STEP, "user_annotation", 200, 100),
    event("aten::mm", "cpu_op", 5, 20),
    event("breakscope#0", "user_annotation", 6, 15),
    event("cudaLaunchKernel", "cuda_runtime", 8, 2, correlation=1),
    event("breakscope#1", "user_annotation", 10, 10, tid=2),
    event("cuLaunchKernel", "cuda_driver", 12, 2, tid=2, correlation=2),
    kernel(
        "gemm",
        20,
        30,
        1,
        grid=[4, 1, 1],
        block=[128, 1, 1],
        **{"registers per thread": 64, "shared memory": 1024},
    ),
    kernel("triton_poi", 40, 20, 2, grid=[9, 1, 1], block=[64, 1, 1]),
    event("Memset (Unknown)", "gpu_memset", 80, 5, tid=7, correlation=3),
    event("autograd::engine::evaluate_function: CompiledFunctionBackward", "cpu_op", 206, 10),
    event("cudaLaunchKernel", "cuda_runtime", 208, 2, correlation=4),
    event("aten::mm", "cpu_op", 205, 20),
    kernel("gemm", 220, 50, 4, grid=[4, 1, 1], block=[128, 1, 1]),
    kernel("gemm", 150, 50, 9, grid=[4, 1, 1], block=[128, 1, 1]),  # between the steps
]


def test_steps_are_found_in_order() -> None:
    assert trace.steps(EVENTS) == [(0.0, 100.0), (200.0, 300.0)]


def test_each_launch_knows_who_launched_it() -> None:
    found = {(one.name, one.begin): one for one in trace.device_launches(EVENTS)}
    assert found["gemm", 20.0].marker == 0
    assert found["triton_poi", 40.0].marker == 1
    assert found["Memset", 80.0].marker is None  # in a CUDA graph nobody knows which memory it fills
    assert (found["gemm", 220.0].marker, found["gemm", 220.0].op) == (None, "aten::mm")
    assert (found["gemm", 20.0].registers, found["gemm", 20.0].shared) == (64, 1024)


def test_busy_time_counts_what_overlaps_once() -> None:
    launches = trace.within(trace.device_launches(EVENTS), [(0.0, 100.0)])
    assert trace.busy_us(launches) == (60 - 20) + 5
    assert trace.busy_us([]) == 0.0


def test_groups_are_per_step_and_leave_out_what_is_between() -> None:
    records = {one["name"]: one for one in trace.grouped(trace.device_launches(EVENTS), trace.steps(EVENTS))}
    assert records["gemm"]["calls"] == 1.0
    assert records["gemm"]["us"] == 40.0  # the median of 30 and 50
    assert records["triton_poi"]["calls"] == 0.5
    assert records["gemm"]["grid"] == [4, 1, 1]


def test_on_a_cpu_an_operation_has_its_own_time_only() -> None:
    events = [
        event("aten::linear", "cpu_op", 0, 100),
        event("aten::addmm", "cpu_op", 10, 80),
        event("aten::copy_", "cpu_op", 20, 30),
        event("Torch-Compiled Region: 0/0", "cpu_op", 200, 60),
        event("breakscope#3", "user_annotation", 205, 50),
        event("graph_0_cpp_fused_add_0", "cpu_op", 210, 40),
        event("autograd::engine::evaluate_function: X", "cpu_op", 300, 40),
    ]
    found = {one.name: (one.us, one.marker) for one in trace.cpu_launches(events)}
    assert found == {
        "aten::linear": (20.0, None),
        "aten::addmm": (50.0, None),
        "aten::copy_": (30.0, None),
        "graph_0_cpp_fused_add_0": (40.0, 3),
    }


def test_a_script_that_ended_before_its_kernels_could_be_looked_into_says_so() -> None:
    player = Player(Arm("compiled"), 0, None, Path(), None, None, 1.0)  # type: ignore[arg-type]
    record = {"name": "gemm", "category": "kernel", "grid": [4, 1, 1], "block": [64, 1, 1], "us": 30.0}
    player.profile = {"kernels": [{**record, "calls": 1.0, "op": None, "registers": 8, "shared": 0}]}
    found = Conducted(players=[player])

    def why() -> str | None:
        known = kernels._known(found)
        return kernels._table(found, player.arm, 1.0, CEILINGS, known, True).kernels[0].alone_why

    assert why() == "it was not seen in the step that was looked into"
    player.last = {"ended": True}
    assert why() == "the script ended before a step could be looked into: let it make more"


# ---- ceilings ----


def test_a_kernel_near_the_copy_ceiling_is_memory_bound() -> None:
    # 20 MB in 10 us are 2,000 GB/s; 30 MB in 10 us are 3,000 of 4,200.
    far, near = judged(TRITON, CEILINGS), judged(replace(TRITON, bytes=30_000_000), CEILINGS)
    assert far.bandwidth == pytest.approx(2_000)
    assert far.bandwidth_share == pytest.approx(2.0 / 4.2)
    assert (far.bound, near.bound) == ("latency", "memory")
    assert far.give_back_us == pytest.approx(6 * (10 - 20 / 4.2))


def test_a_product_is_held_against_the_rate_of_its_dtype() -> None:
    found = judged(MATMUL, CEILINGS)
    assert found.tflops == pytest.approx(483.18, rel=1e-3)
    assert found.tflops_share == pytest.approx(483.18 / 700, rel=1e-3)
    assert found.bound == "compute"
    other = judged(replace(MATMUL, inputs=("bfloat16[8, 8] stride [8, 1]",)), CEILINGS)
    assert other.tflops is not None
    assert other.tflops_share is None  # that rate was not measured


def test_an_op_of_two_kernels_has_one_rate_for_both() -> None:
    main = replace(MATMUL, op_kernels=2, op_alone_us=25.0)  # 20 us of its own, 5 us of the one that adds up
    found = judged(main, CEILINGS)
    assert found.tflops == pytest.approx(9_663_676_416 / 25.0 / 1e6)
    floor = 9_663_676_416 / 700e6
    assert found.give_back_us == pytest.approx(12 * (20 - floor * 20 / 25))
    rest = judged(replace(main, alone_us=5.0, step_us=60.0), CEILINGS)
    assert found.give_back_us + rest.give_back_us == pytest.approx(12 * (25 - floor))
    assert judged(replace(main, op_alone_us=None), CEILINGS).tflops is None


def test_a_kernel_too_short_to_matter_is_bound_by_its_launch() -> None:
    tiny = judged(replace(TRITON, alone_us=2.0, step_us=12.0, bytes=1_000), CEILINGS)
    assert tiny.bound == "launch"


def test_without_bytes_and_flops_nothing_is_claimed() -> None:
    plain = judged(replace(TRITON, bytes=None), CEILINGS)
    assert (plain.bandwidth, plain.bound, plain.give_back_us) == (None, None, None)
    assert judged(replace(TRITON, alone_us=None, calls=0.0), CEILINGS).bandwidth is None


def test_what_was_not_run_alone_gives_nothing_back() -> None:
    found = judged(replace(TRITON, alone_us=None), CEILINGS)
    assert found.bandwidth == pytest.approx(2_000)  # from the step
    assert found.give_back_us is None


def test_advice_is_for_what_could_give_back_most_and_only_where_measured() -> None:
    kernels = (
        judged(MATMUL, CEILINGS),
        judged(TRITON, CEILINGS),
        judged(replace(TRITON, name="spilling", spills=40), CEILINGS),
        replace(TRITON, name="unknown"),
        judged(replace(TRITON, name="rare", share=0.0001), CEILINGS),
    )
    found = advise([KernelTable("compiled", 0.9, 0.99, 0.0, kernels)])
    assert [one.kernel for one in found] == [MATMUL.name, TRITON.name, "spilling"]
    assert found[0].give_back_us == pytest.approx(12 * (20 - 9_663_676_416 / 700e6))
    assert "spills 40 registers" in found[2].text
    assert all("of the ceiling" in one.text for one in found)


def test_what_was_tried_is_not_advised() -> None:
    kernels = (judged(MATMUL, CEILINGS), judged(TRITON, CEILINGS))
    tables = [KernelTable("compiled · max-autotune", 0.9, 1.0, 0.0, kernels)]
    before = advise(tables, [None, "default"])
    assert [one.kernel for one in before] == [MATMUL.name, TRITON.name]
    assert all("max-autotune" in one.text for one in before)
    for mode in ("max-autotune", "max-autotune-no-cudagraphs"):
        [left] = advise(tables, [None, "default", mode])  # nothing else can be said of the other one
        assert left.kernel == MATMUL.name
        assert "max-autotune" not in left.text
        assert "a small or narrow product: a larger batch or sizes that are multiples of 64" in left.text


def test_a_kernel_cut_off_by_a_break_says_from_which() -> None:
    cut = judged(replace(TRITON, cut_from="triton_poi_fused_relu_0"), CEILINGS)
    [found] = advise([KernelTable("compiled", 0.9, 1.0, 0.0, (cut,))], ["max-autotune"])
    assert "it begins a graph where triton_poi_fused_relu_0 ended one: in one graph" in found.text


def test_a_kernel_of_several_arms_is_advised_once() -> None:
    small, large = (judged(replace(MATMUL, calls=calls), CEILINGS) for calls in (6, 12))
    narrow = judged(replace(MATMUL, inputs=("float16[8, 8] stride [8, 1]",)), CEILINGS)
    found = advise(
        [
            KernelTable("eager", 0.9, 1.0, 0.0, (small, narrow)),
            KernelTable("compiled", 0.9, 1.0, 0.0, (large,)),
            KernelTable("fixed", 0.9, 1.0, 0.0, (small,)),
        ]
    )
    assert [one.arm for one in found] == ["compiled", "eager"]  # of other inputs, it is another kernel
    assert found[0].give_back_us == large.give_back_us


def test_attention_is_no_narrow_product() -> None:
    op = "aten._scaled_dot_product_cudnn_attention.default"
    [found] = advise([KernelTable("a", 0.9, 1.0, 0.0, (judged(replace(MATMUL, op=op), CEILINGS),))])
    assert "attention over too little data" in found.text
    assert "product:" not in found.text
    op = "aten.convolution.default"
    [found] = advise([KernelTable("a", 0.9, 1.0, 0.0, (judged(replace(MATMUL, op=op), CEILINGS),))])
    assert "channels_last" in found.text


GENERATED = """
# kernel path: /tmp/x.py
# Topologically Sorted Source Nodes: [y, z], Original ATen: [aten.add, aten.relu]
# Graph fragment:
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''
# Original ATen: [aten.mul]
''', device_str='cuda')


cpp_fused_sum_1 = async_compile.cpp_pybinding(['float*'], r'''
''')
"""


FRAGMENT = """
# Topologically Sorted Source Nodes: [y], Original ATen: [aten.addmm, aten.gelu]
# Source node to ATen node mapping:
#   y => add, mul
# Graph fragment:
#   %mm : Tensor "f32[4, 8][8, 1]cpu" = PlaceHolder[target=mm]
#   %arg1_1 : Tensor "f32[8][1]cpu" = PlaceHolder[target=arg1_1]
#   %add : Tensor "f32[4, 8][8, 1]cpu"[num_users=2] = call_function[target=torch.ops.aten.add.Tensor](args = (%mm, %arg1_1), kwargs = {})
#   %sum_1 : Tensor "f32[4][1]cpu"[num_users=1] = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%add, [1]), kwargs = {dtype: torch.float32})
#   return %add,%sum_1
triton_red_0 = async_compile.triton('triton_red_0', \'\'\'
\'\'\')
"""


@pytest.mark.torch
def test_a_graph_fragment_becomes_eager_code() -> None:
    import torch

    found = fragment(origins([("out.py", FRAGMENT)])["triton_red_0"].fragment)
    assert found is not None
    assert found.inputs == (((4, 8), (8, 1)), ((8,), (1,)))
    namespace: dict[str, Any] = {"torch": torch}
    exec(found.source, namespace)
    x, bias = torch.randn(4, 8), torch.randn(8)
    total, sums = namespace["eager"](x, bias)
    assert torch.equal(total, x + bias)
    assert torch.equal(sums, (x + bias).sum(1))


@pytest.mark.torch
@pytest.mark.parametrize(("wrong", "expected"), [("", True), (" * 1.5", False)])
def test_an_exported_kernel_is_held_against_its_eager_code(
    tmp_path: Path, wrong: str, expected: bool
) -> None:
    """A function that changes its argument in place stands in for a Triton kernel."""
    found = fragment(origins([("out.py", FRAGMENT)])["triton_red_0"].fragment)
    assert found is not None
    definition = f"""
def kernel(bias, total, sums):
    total.copy_((total + bias){wrong})
    sums.copy_(total.sum(1))
"""
    make = "tensor(torch.float32, {}, {}, 'cpu')".format
    arguments = f"({make((8,), (1,))}, {make((4, 8), (8, 1))}, {make((4,), (1,))}), {{}}"
    eager = f"{found.source}\n\n\nREADS = {list(found.inputs)!r}"
    script = tmp_path / "kernel.py"
    body = export_text.KERNEL.format(
        definition=definition, eager=eager, arguments=arguments, values="", checks=False, bytes=0, flops=0
    )
    script.write_text(export_text.HEAD.format(what="A kernel") + body + export_text.FOOT)
    ran = run_python(str(script), "--repeat", "1", check=True)
    difference = float(ran.stdout.partition("against eager: relative difference ")[2].split()[0])
    assert (difference < 1e-6) is expected
    assert "us a call" in ran.stdout


@pytest.mark.parametrize(
    "line",
    [
        "%c : [num_users=1] = call_module[target=sub](args = (%mm,), kwargs = {})",
        "%c : [num_users=1] = call_function[target=os.system](args = (%mm,), kwargs = {})",
        "%c : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%gone, 1), kwargs = {})",
        "%c : [num_users=1] = call_function[target=torch.ops.aten.div.Tensor_mode](args = (%mm, 2), kwargs = {rounding_mode: trunc})",
    ],
)
def test_what_is_not_understood_makes_no_code(line: str) -> None:
    lines = origins([("out.py", FRAGMENT)])["triton_red_0"].fragment
    assert fragment((*lines[:-1], line, lines[-1])) is None
    assert fragment(()) is None


def test_the_comment_above_a_kernel_says_where_it_comes_from() -> None:
    found = origins([("out.py", GENERATED)])
    assert found["triton_poi_fused_add_relu_0"].nodes == ("y", "z")
    assert found["triton_poi_fused_add_relu_0"].ops == ("aten.add", "aten.relu")
    assert found["cpp_fused_sum_1"].nodes == ()
