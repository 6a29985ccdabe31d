"""``breakscope bench`` on a GPU, held against measurements of its own.

    python benchmarks/bench_gpu.py OUT [--smoke] [--models a,b] [--parts bench,again,events,ceilings,ncu]
                                       [--modes default,reduce-overhead] [--seconds 460] [--fixes DIR]

Writes every report, every log and ``summary.json`` to OUT and prints the summary. Parts:

bench     one benchmark of each model, with --kernels: arms, accounted device time, own overhead
again     the same once more: do the two agree within the intervals that they claim?
events    the same calls timed with CUDA events in a script of its own: do the steps agree within 5%?
ceilings  a plain large copy and the best cuBLAS product against the ceilings that bench reports
own       does torch's own benchmark_all_kernels get through the first model?
ncu       Nsight Compute's time of up to five exported kernels against the time alone that bench reports

A part that fails is in the summary with its traceback; one for which the time was out says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_models import SCRIPTS

PARTS = ("bench", "again", "events", "ceilings", "ncu", "own")

EVENTS = """
import json, statistics, sys, torch
source = open(sys.argv[1]).read()
head = source.partition("\\nwith torch.no_grad():\\n    for")[0]
namespace = {}
exec(head, namespace)
call = source.partition("        model(")[2].partition(")\\n")[0]
model = namespace["model"]
run = eval(f"lambda model: model({call})", namespace)
found = {}
for mode in sys.argv[2].split(","):
    torch.compiler.reset()
    used = model if mode == "eager" else torch.compile(model, mode=None if mode == "default" else mode)
    with torch.no_grad():
        for _ in range(60):
            torch.compiler.cudagraph_mark_step_begin()
            run(used)
        torch.cuda.synchronize()
        pairs = []
        for _ in range(200):
            torch.compiler.cudagraph_mark_step_begin()
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record(); run(used); last.record()
            pairs.append((first, last))
        torch.cuda.synchronize()
    found[mode] = statistics.median(a.elapsed_time(b) for a, b in pairs)
print(json.dumps(found))
"""

# What torch's own tool says of the same model's kernels, if it gets that far.
OWN = """
import os, sys
os.environ["TORCHINDUCTOR_BENCHMARK_KERNEL"] = "1"
import torch
source = open(sys.argv[1]).read()
namespace = {}
exec(source.partition("\\nwith torch.no_grad():\\n    for")[0], namespace)
call = source.partition("        model(")[2].partition(")\\n")[0]
model = torch.compile(namespace["model"])
with torch.no_grad():
    eval(f"lambda model: model({call})", namespace)(model)
from torch._inductor.wrapper_benchmark import benchmark_all_kernels
benchmark_all_kernels("model", None)
"""

CEILINGS = """
import json, statistics, torch
def ms(action):
    for _ in range(3): action()
    times = []
    for _ in range(9):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record(); action(); b.record(); torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
    return statistics.median(times)
x = torch.randn(1 << 31, dtype=torch.float16, device="cuda"); y = torch.empty_like(x)
found = {"copy": 2 * x.nbytes / ms(lambda: y.copy_(x)) / 1e9}
del x, y
for dtype in (torch.float16, torch.bfloat16):
    best = 0.0
    for side in (4096, 6144, 8192, 12288):
        a, b = (torch.randn(side, side, dtype=dtype, device="cuda") for _ in range(2))
        best = max(best, 2 * side ** 3 / ms(lambda: a @ b) / 1e9)
    found[str(dtype).removeprefix("torch.")] = best
print(json.dumps(found))
"""


class Run:
    """One call of this program."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.out = Path(options.out).absolute()
        self.out.mkdir(parents=True, exist_ok=True)
        self.began = time.monotonic()
        self.summary: dict[str, Any] = {"command": sys.argv, "parts": {}}

    def left(self) -> float:
        return float(self.options.seconds) - (time.monotonic() - self.began)

    def part(self, name: str, least_s: float, action: Callable[[], Any]) -> None:
        if self.left() < least_s:
            self.summary["parts"][name] = {"not_run": f"only {self.left():.0f} s were left"}
            return
        began = time.monotonic()
        try:
            result = action()
        except Exception:
            result = {"failed": traceback.format_exc()[-3000:]}
        if isinstance(result, dict):
            result["took_s"] = round(time.monotonic() - began, 1)
        self.summary["parts"][name] = result
        (self.out / "summary.json").write_text(json.dumps(self.summary, indent=1))
        print(f"{name}: {json.dumps(result)[:1500]}", flush=True)

    def command(self, words: list[str], log: str, timeout_s: float | None = None) -> str:
        """Run and return stdout; both streams are kept."""
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=timeout_s or max(10.0, self.left()),
            check=False,
            cwd=self.out,
            env={**os.environ, "COLUMNS": "220"},
        )
        (self.out / f"{log}.log").write_text(f"exit {done.returncode}\n{done.stdout}\n---\n{done.stderr}")
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{words[:6]} exited with {done.returncode}: {done.stderr[-1500:]}")
        return done.stdout

    def bench(self, model: str, again: str = "") -> dict[str, Any]:
        script = self.out / f"{model}.py"
        script.write_text(SCRIPTS[model])
        name = f"{model}{again}"
        words = [
            sys.executable,
            "-m",
            "breakscope",
            "bench",
            "--modes",
            self.options.modes,
            "--timeout",
            "300",
        ]
        if not again:
            words += ["--kernels", "--export", str(self.out / f"export-{model}")]
        if self.options.fixes:
            words += ["--fixes", self.options.fixes]
        if self.options.smoke:
            words += ["--seconds", "1"]
        self.command([*words, "-o", str(self.out / f"{name}.json"), script.name], name)
        return summarised(self.report(name))

    def report(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.out / f"{name}.json").read_text())["benchmark"])

    def again(self, model: str) -> dict[str, Any]:
        self.bench(model, again="-again")
        first = {arm["name"]: arm["step"] for arm in self.report(model)["arms"] if arm["step"]}
        second = {arm["name"]: arm["step"] for arm in self.report(f"{model}-again")["arms"] if arm["step"]}
        rows = {}
        for name in first.keys() & second.keys():
            one, two = first[name], second[name]
            apart = abs(one["median"] - two["median"])
            rows[name] = {
                "first_ms": one["median"],
                "second_ms": two["median"],
                "apart_ms": apart,
                "interval_ms": one["high"] - one["low"],
                "within": apart <= max(one["high"] - one["low"], two["high"] - two["low"]),
            }
        return {"arms": rows, "all_within": all(row["within"] for row in rows.values())}

    def events(self, model: str) -> dict[str, Any]:
        program = self.out / "events.py"
        program.write_text(EVENTS)
        arms = {arm["name"]: arm["step"] for arm in self.report(model)["arms"] if arm["step"]}
        modes = {"eager": "eager", **{mode: f"compiled · {mode}" for mode in self.options.modes.split(",")}}
        modes = {mode: name for mode, name in modes.items() if name in arms}
        words = [sys.executable, str(program), str(self.out / f"{model}.py"), ",".join(modes)]
        theirs = json.loads(self.command(words, f"events-{model}").strip().splitlines()[-1])
        rows = {
            name: {
                "bench": arms[name],
                "events_ms": theirs[mode],
                "ratio": arms[name]["median"] / theirs[mode],
            }
            for mode, name in modes.items()
        }
        good = all(abs(row["ratio"] - 1) <= 0.05 for row in rows.values())
        return {"arms": rows, "all_within_5_percent": good}

    def own(self, model: str) -> dict[str, Any]:
        program = self.out / "own.py"
        program.write_text(OWN)
        words = [sys.executable, str(program), str(self.out / f"{model}.py")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.left(), check=False)
        (self.out / f"own-{model}.log").write_text(f"{done.stdout}\n---\n{done.stderr}")
        lines = [line for line in done.stdout.splitlines() if "ms" in line]
        last = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        return {"exit_code": done.returncode, "kernels_listed": len(lines), "error": last}

    def ceilings(self) -> dict[str, Any]:
        text = self.command([sys.executable, "-c", CEILINGS], "ceilings")
        plain = json.loads(text.strip().splitlines()[-1])
        ours: dict[str, float] = {}
        for report in self.out.glob("*.json"):
            for one in json.loads(report.read_text()).get("benchmark", {}).get("ceilings", []):
                key = "copy" if one["what"] == "copy" else one["dtype"] if one["what"] == "matmul" else None
                if key:
                    ours[key] = max(ours.get(key, 0.0), one["value"])
        rows = {
            key: {"plain": value, "bench": ours.get(key), "ratio": ours[key] / value if key in ours else None}
            for key, value in plain.items()
        }
        good = all(row["ratio"] is not None and abs(row["ratio"] - 1) <= 0.05 for row in rows.values())
        return {"rows": rows, "all_within_5_percent": good}

    def ncu(self, model: str) -> dict[str, Any]:
        if shutil.which("ncu") is None:
            return {"not_run": "there is no ncu"}
        tables = [table for table in self.report(model)["kernels"] if table["arm"].startswith("compiled")]
        kernels = [one for table in tables for one in table["kernels"] if one["exported"] and one["alone_us"]]
        rows = {}
        for one in sorted(kernels, key=lambda kernel: -kernel["step_us"])[:5]:
            script = self.out / f"export-{model}" / one["exported"]
            words = [
                "ncu",
                "--clock-control",
                "none",
                "--metrics",
                "gpu__time_duration.sum",
                "--csv",
                "--kernel-name-base",
                "function",
                "--launch-count",
                "60",
                sys.executable,
                str(script),
                "--repeat",
                "5",
            ]
            text = self.command(words, f"ncu-{len(rows)}", timeout_s=90)
            base = re.split(r"[<(]", one["name"].removeprefix("void "))[0].split("::")[-1]
            values = [
                float(row.split('","')[-1].strip('"\n').replace(",", ""))
                for row in text.splitlines()
                if row.startswith('"') and base in row
            ]
            unit = 1e-3 if '"ns"' in text or '"nsecond"' in text else 1.0
            theirs = statistics.median(values[-5:]) * unit if values else None
            rows[one["name"][:80]] = {
                "alone_us": one["alone_us"],
                "ncu_us": theirs,
                "ratio": one["alone_us"] / theirs if theirs else None,
            }
        return {"kernels": rows}


def summarised(benchmark: dict[str, Any]) -> dict[str, Any]:
    spent = benchmark["spent"]
    compiles = sum(process["compile_s"] for arm in benchmark["arms"] for process in arm["processes"])
    timed = sum(
        process["step"]["median"] * process["step"]["samples"] / 1e3
        for arm in benchmark["arms"]
        for process in arm["processes"]
        if process["step"]
    )
    return {
        "device": benchmark["device"],
        "arms": {
            arm["name"]: {
                "status": arm["status"],
                "reason": arm["reason"],
                "step": arm["step"],
                "busy_ms": arm["device_busy_ms"],
                "host_ms": arm["host"] and arm["host"]["median"],
                "peak_mib": arm["peak_memory_mib"],
                "crossings": arm["crossings_per_step"],
                "graphs": arm["graphs"],
                "outputs": arm["outputs"]
                and [arm["outputs"]["status"], arm["outputs"]["error"], arm["outputs"]["why"]],
                "compile_s": [process["compile_s"] for process in arm["processes"]],
                "first_steps_ms": arm["processes"][0]["first_steps_ms"] if arm["processes"] else None,
                "processes_ms": [
                    process["step"] and process["step"]["median"] for process in arm["processes"]
                ],
                "break_even": [arm["break_even_steps"], arm["warm_break_even_steps"]],
                "discarded": arm["discarded"],
                "notes": arm["notes"],
            }
            for arm in benchmark["arms"]
        },
        "verdicts": benchmark["verdicts"],
        "recommendation": benchmark["recommendation"] and benchmark["recommendation"]["why"],
        "kernels": {
            table["arm"]: {
                "kernels": len(table["kernels"]),
                "device_ms": table["device_ms"],
                "accounted": table["accounted"],
                "alone": sum(one["alone_us"] is not None for one in table["kernels"]),
                "alone_share": sum(one["share"] for one in table["kernels"] if one["alone_us"] is not None),
                "not_measured": table["not_measured"],
            }
            for table in benchmark["kernels"]
        },
        "noisy": benchmark["noisy"],
        "notes": benchmark["notes"],
        "spent": spent,
        "own_overhead": {
            "compiles_s": compiles,
            "timed_s": timed,
            "windows_s": spent["timed_s"],
            "total_over_compiles_and_windows": spent["total_s"] / (compiles + spent["timed_s"]),
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--models", default=",".join(SCRIPTS))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--modes", default="default,reduce-overhead")
    parser.add_argument("--seconds", type=float, default=460.0)
    parser.add_argument("--fixes")
    options = parser.parse_args()
    if options.smoke:
        options.models, options.seconds = "mlp-eval", 85.0
    run = Run(options)
    parts = options.parts.split(",")
    models = options.models.split(",")
    if "bench" in parts:
        for model in models:
            run.part(f"bench {model}", 40, lambda model=model: run.bench(model))
    if "ceilings" in parts:
        run.part("ceilings", 15, run.ceilings)
    if "ncu" in parts:
        run.part(f"ncu {models[0]}", 30, lambda: run.ncu(models[0]))
    if "own" in parts and "no_grad" in SCRIPTS[models[0]]:
        run.part(f"own {models[0]}", 30, lambda: run.own(models[0]))
    for model in [one for one in models if "no_grad" in SCRIPTS[one]]:
        if "events" in parts:
            run.part(f"events {model}", 40, lambda model=model: run.events(model))
    for model in models:
        if "again" in parts:
            run.part(f"again {model}", 60, lambda model=model: run.again(model))
    run.summary["took_s"] = round(time.monotonic() - run.began, 1)
    (run.out / "summary.json").write_text(json.dumps(run.summary, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
