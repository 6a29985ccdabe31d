"""``breakscope bench`` on a GPU, held against measurements of its own.

    python benchmarks/bench_gpu.py OUT [--smoke] [--models a,b] [--parts bench,again,events,ceilings,ncu]
                                       [--modes default,reduce-overhead] [--seconds 460] [--fixes DIR]
                                       [--again-modes reduce-overhead] [--cpu] [--ncu-controls none]

Writes every report, every log and ``summary.json`` to OUT, and after each part all of them to OUT/all.tgz.
The parts:

bench     one benchmark of each model, with --kernels: arms, accounted device time, own overhead
again     eager and the modes of --again-modes once more, without --kernels: do two runs agree within the
          intervals they claim, and what does a run cost beyond its compiles and timed windows?
events    between the rounds of bench, blocks of the same steps between CUDA events, in a program of its own
          and on the same kernels: do steps agree within 5%?
compiles  reduce-overhead compiled several times from empty caches: by how much do these compiles differ?
ceilings  a plain large copy and the best cuBLAS product against the ceilings that bench reports
own       does torch's own benchmark_all_kernels get through the first model?
ncu       Nsight Compute's time of the five longest exported kernels against the time alone that bench reports

A part that fails is in the summary with its traceback; one for which the time was out says so.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_models import SCRIPTS
from gpu_programs import CEILINGS, OWN
from own_blocks import Blocks

PARTS = ("bench", "events", "again", "compiles", "ceilings", "ncu", "own")
BESIDE = Path(__file__).resolve().parent / "bench_beside.py"
_KEPT = (".json", ".log", ".py")  # not the values of exported kernels, which are large

COMPILES = 5


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
        self.keep()
        print(f"{name}: {json.dumps(result)[:1500]}", flush=True)

    def keep(self) -> None:
        """The summary, and everything in one file: what was done so far survives the end of the session."""
        (self.out / "summary.json").write_text(json.dumps(self.summary, indent=1))
        partial = self.out / "all.tgz.part"
        with tarfile.open(partial, "w:gz") as archive:
            for file in sorted(self.out.rglob("*")):
                if file.suffix in _KEPT and file.is_file():
                    archive.add(file, file.relative_to(self.out))
        partial.replace(self.out / "all.tgz")

    def command(self, words: list[str], log: str, timeout_s: float | None = None) -> str:
        """Run and return stdout; both streams are kept."""
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.out,
            env={**os.environ, "COLUMNS": "220"},
        )
        try:
            stdout, stderr = process.communicate(timeout=timeout_s or max(10.0, self.left()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # bench then writes what it has measured
            stdout, stderr = process.communicate(timeout=20)
        (self.out / f"{log}.log").write_text(f"exit {process.returncode}\n{stdout}\n---\n{stderr}")
        if process.returncode not in (0, 1, 130):
            raise RuntimeError(f"{words[:6]} exited with {process.returncode}: {stderr[-1500:]}")
        return stdout

    def written(self, model: str) -> Path:
        """The model's script."""
        script = self.out / f"{model}.py"
        text = SCRIPTS[model]
        if self.options.cpu:
            text = re.sub(r"\.half\(\)|\.cuda\(\)|torch\.cuda\.synchronize\(\)", "", text)
            text = re.sub(r'(device|autocast)([=(])"cuda"', r'\1\2"cpu"', text)
        script.write_text(text)
        return script

    def bench(self, model: str, again: bool = False) -> dict[str, Any]:
        script = self.written(model)
        name = f"{model}-again" if again else model
        modes = self.options.again_modes if again else self.options.modes
        words = [sys.executable, "-m", "breakscope"]
        if "events" in self.options.parts.split(",") and not again:
            words = [sys.executable, str(BESIDE), str(self.out / f"blocks-{model}.json")]
        words += ["bench", "--modes", modes, "--timeout", str(max(60, int(self.left())))]
        words += ["--fixes", self.options.fixes] if self.options.fixes else []
        if not again:
            words += ["--kernels", "--export", str(self.out / f"export-{model}")]
        if self.options.smoke:
            words += ["--seconds", "1"]
        self.command([*words, "-o", str(self.out / f"{name}.json"), script.name], name)
        return summarised(self.report(name))

    def report(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.out / f"{name}.json").read_text())["benchmark"])

    def again(self, model: str) -> dict[str, Any]:
        cost = self.bench(model, again=True)
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
                "overlap": max(one["low"], two["low"]) <= min(one["high"], two["high"]),
                "within": apart <= max(one["high"] - one["low"], two["high"] - two["low"]),
            }
        return {
            "arms": rows,
            "all_within": all(row["within"] for row in rows.values()),
            "noisy": cost["noisy"],
            "notes": cost["notes"],
            "pace_ms": [self.report(model)["pace_ms"], self.report(f"{model}-again")["pace_ms"]],
            "spent": cost["spent"],
            "own_overhead": cost["own_overhead"],
        }

    def events(self, model: str) -> dict[str, Any]:
        """What the program of its own said between the rounds of this model's benchmark."""
        arms = {arm["name"]: arm for arm in self.report(model)["arms"] if arm["step"]}
        found = json.loads((self.out / f"blocks-{model}.json").read_text())
        rows: dict[str, dict[str, Any]] = {}
        for name, own in found["arms"].items():
            if name not in arms:
                continue
            step = arms[name]["step"]
            rows[name] = {
                "bench_ms": step["median"],
                "events_ms": own["ms"],
                "ratio": step["median"] / own["ms"],
                "each_ratio": step["median"] / own["each_ms"],
                "inside_interval": step["low"] <= own["ms"] <= step["high"],
                "device_busy_ms": [arms[name]["device_busy_ms"], own["busy_ms"]],
                "blocks": [own["blocks"], own["left_out"]],
                "events_range_ms": own["range_ms"],
            }
        good = bool(rows) and all(abs(row["ratio"] - 1) <= 0.05 for row in rows.values())
        return {"arms": rows, "failed": found["failed"], "all_within_5_percent": good}

    def compiles(self, model: str) -> dict[str, Any]:
        """How much do compiles of one model differ, each from a cache of its own, one after the other?"""
        script = self.written(model)
        blocks = Blocks(self.out, timeout_s=max(30.0, self.left()))
        try:
            for number in range(COMPILES):
                cache = self.out / f"cache-{model}-{number}"
                variables = {
                    "TORCHINDUCTOR_CACHE_DIR": str(cache),
                    "TRITON_CACHE_DIR": str(cache / "triton"),
                }
                blocks.start(f"compile {number}", script, "reduce-overhead", None, variables)
            blocks.compile()
            for _ in range(12):
                blocks.round()
            arms = blocks.end()
        finally:
            blocks.kill()
        times = sorted(arm["ms"] for arm in arms.values())
        pairs = [high / low - 1 for high in times for low in times if high > low]
        return {
            "arms": arms,
            "largest_difference": times[-1] / times[0] - 1,
            "typical_difference": statistics.median(pairs) if pairs else 0.0,
        }

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
        kernels = {
            one["name"]: one
            for table in tables
            for one in table["kernels"]
            if one["exported"] and one["alone_us"]
        }
        rows = {}
        # The longest: Nsight Compute adds about 2 us to any kernel, and the shorter ones drown in them.
        for one in sorted(kernels.values(), key=lambda kernel: -kernel["alone_us"])[:5]:
            script = self.out / f"export-{model}" / one["exported"]
            base = re.split(r"[<(]", one["name"].removeprefix("void "))[0].split("::")[-1]
            controls = self.options.ncu_controls.split(",")
            cold, floor, warm = None, None, None
            if "all" in controls:
                cold, floor = self.ncu_us(script, base, f"ncu-{len(rows)}", "all")
            if "none" in controls:
                warm, _ = self.ncu_us(script, base, f"ncu-{len(rows)}-own-flush", "none")
            rows[one["name"][:80]] = {
                "alone_us": one["alone_us"],
                "ncu_us": cold,
                "ncu_own_flush_us": warm,
                "ncu_floor_us": floor,
                "ratio": one["alone_us"] / cold if cold else None,
                "ratio_own_flush": one["alone_us"] / warm if warm else None,
            }
        return {"bench_floor_us": self.floor(model), "kernels": rows}

    def ncu_us(self, script: Path, base: str, log: str, control: str) -> tuple[float | None, float | None]:
        """(median of the kernel, of kernels of one block), by Nsight Compute.

        What it takes for a kernel that handles a single number is what it adds to any: its launches are apart
        from each other and find no code of theirs in a cache.

        Args:
            control: "all": it empties the caches itself; "none": the script's own flush is all there is.
        """
        words = ["ncu", "--clock-control", "none", "--cache-control", control]
        words += ["--metrics", "gpu__time_duration.sum", "--csv", "--kernel-name-base", "function"]
        words += ["--launch-count", "60", sys.executable, str(script), "--repeat", "5"]
        text = self.command(words, log, timeout_s=90)
        rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))
        units = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0}
        times = [
            (
                row["Kernel Name"],
                row["Grid Size"],
                float(row["Metric Value"].replace(",", "")) * units[row["Metric Unit"]],
            )
            for row in rows
        ]
        ours = [us for name, _, us in times if base in name][-5:]
        tiny = [us for name, grid, us in times if grid == "(1, 1, 1)" and base not in name]
        return statistics.median(ours) if ours else None, min(tiny, default=None)

    def floor(self, model: str) -> float | None:
        """What bench takes for the shortest kernel of this device."""
        found = [one["value"] for one in self.report(model)["ceilings"] if one["what"] == "launch"]
        return float(found[0]) if found else None


def summarised(benchmark: dict[str, Any]) -> dict[str, Any]:
    spent = benchmark["spent"]
    compiles = spent["compile_s"]
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
            "total_over_compiles_and_timed_steps": spent["total_s"] / (compiles + timed),
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
    parser.add_argument("--again-modes", default="reduce-overhead")
    parser.add_argument("--cpu", action="store_true", help="try this program without a GPU")
    parser.add_argument("--ncu-controls", default="all,none", help="cache control of Nsight Compute")
    options = parser.parse_args()
    if options.smoke:
        options.models, options.seconds = "mlp-eval", 85.0
    run = Run(options)
    parts = options.parts.split(",")
    models = options.models.split(",")
    if "bench" in parts:
        for model in models:
            run.part(f"bench {model}", 40, lambda model=model: run.bench(model))
            if "events" in parts:
                run.part(f"events {model}", 0, lambda model=model: run.events(model))
    if "ncu" in parts:
        run.part(f"ncu {models[0]}", 30, lambda: run.ncu(models[0]))
    for model in models:
        if "again" in parts:
            run.part(f"again {model}", 60, lambda model=model: run.again(model))
    if "compiles" in parts:
        run.part(f"compiles {models[0]}", 60, lambda: run.compiles(models[0]))
    if "ceilings" in parts:
        run.part("ceilings", 15, run.ceilings)
    if "own" in parts and "no_grad" in SCRIPTS[models[0]]:
        run.part(f"own {models[0]}", 30, lambda: run.own(models[0]))
    run.summary["took_s"] = round(time.monotonic() - run.began, 1)
    run.keep()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
