"""Measures a device's limits. Run as a program, in a process of its own: ``… cuda|cpu [--name]``.

Prints one line of JSON. Data are random: a matrix product of zeros runs faster than any real one.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

_REPEATS = 7
_GPU_ELEMENTS = 1 << 30  # of two bytes: 2 GiB, dozens of times any L2
_GPU_SIDES = (4096, 6144, 8192, 12288)
_TRITON_SIDES = (4096, 8192)
_LAUNCHES = 200  # in the CUDA graph that tells what the shortest kernel takes
_CPU_BYTES = 256 * 1024**2
_CPU_SIDE = 1024
_CHECKED = 512  # rows of a product that are held against the vendor's

Item = dict[str, Any]


def name(kind: str) -> str:
    """What the ceilings depend on: the device, and the software that reaches them."""
    if kind == "cpu":
        return f"cpu {_cpu_model()} {torch.get_num_threads()} threads torch {torch.__version__}"
    properties = torch.cuda.get_device_properties(0)
    uuid = getattr(properties, "uuid", "")
    return f"{properties.name} {uuid} torch {torch.__version__} triton {_triton()}"


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            return next(line.partition(":")[2].strip() for line in stream if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _triton() -> str | None:
    for distribution in ("triton", "pytorch-triton"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


def measure(kind: str) -> tuple[list[Item], list[str]]:
    """(ceilings, what could not be measured)."""
    return _gpu() if kind == "cuda" else _cpu()


def _mm(left: Any, right: Any, out: Any) -> None:
    torch.mm(left, right, out=out)


def _add(first: Any, second: Any, out: Any) -> None:
    torch.add(first, second, alpha=3.0, out=out)


# ---- GPU ----


def _gpu_ms(action: Callable[..., object], *arguments: object) -> float:
    """Median over repeats, by events; the first runs compile and warm up."""
    for _ in range(3):
        action(*arguments)
    torch.cuda.synchronize()
    times = []
    for _ in range(_REPEATS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        action(*arguments)
        last.record()
        torch.cuda.synchronize()
        times.append(float(first.elapsed_time(last)))
    return statistics.median(times)


def _gpu() -> tuple[list[Item], list[str]]:
    free, _ = torch.cuda.mem_get_info()
    size = _GPU_ELEMENTS
    while 8 * size > free and size > 1 << 20:
        size //= 2
    found: list[Item] = []
    notes: list[str] = []
    first, second, third = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    moved = 2 * size * first.element_size()
    how = f"{moved / 2 / 1024**3:g} GiB to {moved / 2 / 1024**3:g} GiB, read + written"
    found.append(_rate("copy", "bytes", "vendor", moved, _gpu_ms(second.copy_, first), f"copy_, {how}"))
    try:
        found += _triton_bandwidth(first, second, third, moved, how)
    except Exception as error:  # noqa: BLE001 -- an architecture that Triton lacks; the vendor's numbers stand
        notes.append(f"Triton reaches nothing on this device: {_said(error)}")
    del first, second, third
    torch.cuda.empty_cache()
    found.append(_shortest())
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        try:
            found += _matmuls(dtype, notes)
        except Exception as error:  # noqa: BLE001 -- a dtype that the card lacks
            notes.append(f"no matmul rate of {dtype}: {_said(error)}")
    return found, notes


def _said(error: Exception) -> str:
    """The kind of an error and its first line: Triton's go on for pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200] if lines else 'no message'}"


def _shortest() -> Item:
    """What a kernel that does next to nothing takes where the host is out of the way: one after the other."""
    tiny = torch.zeros(1, device="cuda")
    tiny.add_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_LAUNCHES):
            tiny.add_(1)
    us = _gpu_ms(graph.replay) * 1e3 / _LAUNCHES
    how = f"{_LAUNCHES} additions to one number in a CUDA graph"
    return {"what": "launch", "dtype": "float32", "by": "vendor", "value": us, "unit": "us", "how": how}


def _rate(what: str, dtype: str, by: str, amount: float, ms: float, how: str) -> Item:
    """Bytes or FLOPs over a time, as TB/s or TFLOP/s."""
    unit = "TFLOP/s" if what == "matmul" else "TB/s"
    return {"what": what, "dtype": dtype, "by": by, "value": amount / ms / 1e9, "unit": unit, "how": how}


def _triton_bandwidth(first: Any, second: Any, third: Any, moved: float, how: str) -> list[Item]:
    from breakscope.inside.bench import ceiling_kernels

    best: dict[str, tuple[float, str]] = {}
    for block, warps in ((1024, 4), (4096, 8), (8192, 8)):
        config = f"blocks of {block}, {warps} warps"
        times = {
            "copy": _gpu_ms(ceiling_kernels.copy, first, second, block, warps),
            "triad": _gpu_ms(ceiling_kernels.triad, first, second, third, block, warps),
        }
        for what, ms in times.items():
            if what not in best or ms < best[what][0]:
                best[what] = (ms, config)
    second.zero_()
    ceiling_kernels.copy(first, second, 1024, 4)
    if not torch.equal(first, second):
        raise RuntimeError("the copy kernel did not copy")
    return [
        _rate(what, "bytes", "triton", moved * (1 if what == "copy" else 1.5), ms, f"{config}; {how}")
        for what, (ms, config) in best.items()
    ]


def _matmuls(dtype: torch.dtype, notes: list[str]) -> list[Item]:
    label = str(dtype).removeprefix("torch.")
    found: dict[str, Item] = {}
    for side in _GPU_SIDES:
        left, right = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
        out = torch.empty_like(left)
        flops = 2.0 * side**3
        ms = _gpu_ms(_mm, left, right, out)
        _better(found, _rate("matmul", label, "vendor", flops, ms, f"torch.mm, {side} cubed, random data"))
        if dtype is torch.float32 or side not in _TRITON_SIDES:
            continue  # what Triton's dot makes of float32 is TF32, another ceiling
        try:
            _better(found, _triton_matmul(left, right, out, label, flops))
        except Exception as error:  # noqa: BLE001 -- the vendor's number stands
            notes.append(f"Triton's matmul of {label}: {_said(error)}")
    return list(found.values())


def _better(found: dict[str, Item], item: Item) -> None:
    if item["by"] not in found or item["value"] > found[item["by"]]["value"]:
        found[item["by"]] = item


def _triton_matmul(left: Any, right: Any, out: Any, label: str, flops: float) -> Item:
    from breakscope.inside.bench import ceiling_kernels

    side = left.shape[0]
    reference = left[:_CHECKED].float() @ right.float()
    best: tuple[float, str] | None = None
    for blocks, warps in (((128, 256, 64), 8), ((128, 128, 64), 4)):
        ms = _gpu_ms(ceiling_kernels.matmul, left, right, out, blocks, warps)
        error = float((out[:_CHECKED].float() - reference).norm() / reference.norm())
        if not error < 0.02:
            raise RuntimeError(f"the matmul kernel is off by {error:.2g}")
        if best is None or ms < best[0]:
            best = (ms, f"blocks {blocks}, {warps} warps, {side} cubed, random data")
    assert best is not None
    return _rate("matmul", label, "triton", flops, best[0], best[1])


# ---- CPU ----


def _cpu_ms(action: Callable[..., object], *arguments: object) -> float:
    action(*arguments)
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        action(*arguments)
        times.append((time.perf_counter() - began) * 1e3)
    return min(times)  # a ceiling: what disturbs a CPU only ever slows it


def _cpu() -> tuple[list[Item], list[str]]:
    count = _CPU_BYTES // 4
    first, second, third = (torch.rand(count) for _ in range(3))
    threads = f"{torch.get_num_threads()} threads, {_CPU_BYTES // 1024**2} MiB a tensor"
    found = [
        _rate("copy", "bytes", "vendor", 8.0 * count, _cpu_ms(second.copy_, first), f"copy_, {threads}"),
        _rate(
            "triad",
            "bytes",
            "vendor",
            12.0 * count,
            _cpu_ms(_add, first, second, third),
            f"torch.add with alpha, {threads}",
        ),
    ]
    side = _CPU_SIDE
    for dtype in (torch.float32, torch.bfloat16):
        left, right = (torch.randn(side, side, dtype=dtype) for _ in range(2))
        out = torch.empty_like(left)
        ms = _cpu_ms(_mm, left, right, out)
        label = str(dtype).removeprefix("torch.")
        found.append(
            _rate("matmul", label, "vendor", 2.0 * side**3, ms, f"torch.mm, {side} cubed, {threads}")
        )
    return found, []


def main(words: list[str]) -> int:
    """``cuda|cpu [--name]``."""
    kind = words[0]
    answer: dict[str, Any] = {"name": name(kind)}
    if "--name" not in words:
        answer["ceilings"], answer["notes"] = measure(kind)
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
