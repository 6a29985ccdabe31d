"""Whether predicted costs are true: what a scan says of five breaks, and what the step gains without each.

    python benchmarks/cost_truth.py [--device cuda] [--mode MODE] [--backend NAME] [--rounds N] [--json FILE]

A scan of ``cost_model.py`` as it is takes turns (``turns.py``) with a process without breakscope, in which
the script as it is and the script without each break take turns on the same inputs. Medians are compared.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turns import Scan, keep, scanned

HERE = Path(__file__).resolve().parent
STEPS, WARM, PER_TURN = 8, 6, 4


def predicted(found: Any) -> dict[str, float]:
    """Cost of each break in milliseconds a step."""
    lines = (HERE / "cost_model.py").read_text().splitlines()
    costs: dict[str, float] = dict.fromkeys(breaks(), 0.0)
    for finding in found.findings:
        name = _named(lines[: finding.location.line])
        if name is not None and finding.cost:
            costs[name] += finding.cost.ms_per_step
    if found.timing is None or found.timing.step_ms is None:
        raise SystemExit(f"the scan measured no steps: {found.timing}")
    return costs


def _named(lines: list[str]) -> str | None:
    """The break in whose block the last of the lines stands."""
    for line in reversed(lines):
        if "self.breaks" in line:
            return next((name for name in breaks() if f'"{name}"' in line), None)
    return None


def breaks() -> tuple[str, ...]:
    """Names of the breaks."""
    return importlib.import_module("cost_model").BREAKS  # type: ignore[no-any-return]


def measured(
    device: str, mode: str, backend: str, rounds: int, scan: Scan
) -> tuple[dict[str, float], dict[str, float], dict[str, list[float]]]:
    """Median step in milliseconds ("" as it is), what each arm gains over it, and the times of all rounds.

    A gain is the median over the rounds of the difference within a round, which what slows the whole
    machine for a while does not change.
    """
    import torch

    model = importlib.import_module("cost_model")
    arms: dict[str, Callable[[], object]] = {}
    for without in ("", *model.BREAKS, "all"):
        left_out = model.BREAKS if without == "all" else (without,) if without else ()
        net, inputs = model.make(device, left_out)
        options = {"mode": mode} if mode != "default" else {}
        compiled = torch.compile(net, **({"backend": backend} if backend != "inductor" else options))
        arms[without] = lambda compiled=compiled, inputs=inputs: compiled(*inputs)
    torch._dynamo.config.recompile_limit = 64  # noqa: SLF001 - every arm is another instance of one class
    times: dict[str, list[float]] = {name: [] for name in arms}
    with torch.no_grad():
        for run in arms.values():
            for _ in range(WARM):
                run()
        for index in range(rounds):
            if index % PER_TURN == 0:
                scan.turn()
                _one_window(arms[""], device)  # threads and caches were the scan's: thrown away
            for name, run in arms.items():
                run()
                times[name].append(_one_window(run, device))
    steps = {name: statistics.median(values) for name, values in times.items()}
    gains = {
        name: statistics.median(whole - without for whole, without in zip(times[""], values, strict=True))
        for name, values in times.items()
    }
    return steps, gains, times


def _one_window(run: Callable[[], object], device: str) -> float:
    import torch

    if device == "cpu":
        begin = time.perf_counter()
        for _ in range(STEPS):
            run()
        return (time.perf_counter() - begin) / STEPS * 1e3
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / STEPS * 1e3


def main() -> int:
    """Print both, side by side. Exit code 1 if a prediction is off by more than 25% or the order differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    how = ["--device", args.device, "--mode", args.mode]
    backend = "as-script" if args.backend == "inductor" else args.backend
    with scanned(HERE / "cost_model.py", how, backend) as scan:
        real, gained, times = measured(args.device, args.mode, args.backend, args.rounds, scan)
    costs, timing = predicted(scan.report), scan.report.timing
    gains = {name: gained[name] for name in costs}
    print(f"{args.device}, mode {args.mode}, backend {args.backend}; {timing.method}, {timing.bound}-bound")
    print(f"step: {timing.step_ms:.3f} ms scanned, {real['']:.3f} alone, {real['all']:.3f} without breaks")
    print(f"{'break':<12}{'predicted ms':>14}{'gained ms':>12}{'ratio':>8}")
    off = []
    for name in sorted(costs, key=lambda name: -gains[name]):
        ratio = costs[name] / gains[name] if gains[name] > 0 else float("inf")
        off += [name] if not 0.75 <= ratio <= 1.25 else []
        print(f"{name:<12}{costs[name]:>14.4f}{gains[name]:>12.4f}{ratio:>8.2f}")
    total = gained["all"]
    print(f"{'together':<12}{sum(costs.values()):>14.4f}{total:>12.4f}{sum(costs.values()) / total:>8.2f}")
    ordered = sorted(costs, key=lambda name: -costs[name]) == sorted(gains, key=lambda name: -gains[name])
    print(f"order {'right' if ordered else 'WRONG'}; off by more than 25%: {', '.join(off) or 'none'}")
    if args.json:
        keep(args.json, scan, {"predicted": costs, "measured": real, "gained": gained, "rounds": times})
    return 1 if off or not ordered else 0


if __name__ == "__main__":
    sys.exit(main())
