"""DDP and FSDP2 training of a small GPT on two ranks, scanned, and what the reports must say.

    python benchmarks/ranks_gpu.py [--device cuda|cpu] [--backend inductor] [--nproc 2] [--keep FOLDER]

Prints one JSON object and exits with 1 if a check fails. With ``--device cuda`` it needs a GPU for each rank
and trains over NCCL; with ``--device cpu`` over gloo.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import breakscope
from breakscope.render import FORMATS, Options

HERE = Path(__file__).resolve().parent
RUNS = (("ddp",), ("ddp-outside",), ("fsdp2",), ("ddp", "die"))


def scan(words, args, folder):
    output = folder / f"{'-'.join(words)}.json"
    began = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "breakscope", "scan", "-q", "-o", str(output), "--backend", args.backend),
            *(
                "--nproc-per-node",
                str(args.nproc),
                str(HERE / "gpt_ranks.py"),
                words[0],
                args.device,
                *words[1:],
            ),
        ],
        capture_output=True,
        text=True,
        timeout=args.timeout,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
        },
    )
    if not output.exists():
        return {"error": done.stderr[-3000:], "checks": {"a report was written": False}}
    report = breakscope.load(output)
    trace = FORMATS["perfetto"](report, Options())
    (folder / f"{'-'.join(words)}.perfetto.json").write_text(trace)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "exit_code": done.returncode,
        "torch": report.run.torch,
        "device": report.run.device.name if report.run.device else None,
        "ranks": [
            {
                "rank": rank.rank,
                "status": rank.run.status,
                "ended": rank.ended,
                "steps": rank.totals.steps,
                "recompiles": rank.totals.recompiles,
                "regions": rank.totals.regions,
                "step_ms": rank.timing.step_ms if rank.timing else None,
                "compile_s": round(sum(c.seconds or 0 for c in report.compiles if c.rank == rank.rank), 2),
            }
            for rank in report.ranks
        ],
        "divergences": [(one.kind, one.text) for one in report.divergences],
        "findings": [
            (f.code, f.title, f.location.function, f.ranks, f.counts.crossings) for f in report.findings
        ],
        "splits": sorted({(r.function, r.split) for r in report.regions if r.split}),
        "notes": list(report.run.notes),
        "perfetto_events": len(json.loads(trace)["traceEvents"]),
        "stderr": done.stderr[-1500:] if done.returncode else "",
        "checks": checks(report, words, done.returncode),
    }


def checks(report, words, code):
    """What must hold, by name."""
    alone = [
        one
        for one in report.divergences
        if one.kind in ("finding", "values") and one.step == 3 and one.dimension == 0 and one.ranks == (1,)
    ]
    found = {
        "the frame, rank, dimension and step of the odd batch": bool(alone),
        "every rank has regions": {region.rank for region in report.regions}
        == {r.rank for r in report.ranks},
    }
    if "die" in words:
        ends = [one for one in report.divergences if one.kind == "ended"]
        found["the killed rank and its step"] = any(one.ranks == (1,) and one.step == 5 for one in ends)
        return found
    found["it ended well"] = code == 0 and {rank.run.status for rank in report.ranks} == {"ok"}
    found["steps were timed"] = any(step.ms is not None for step in report.steps)
    if words[0] == "ddp-outside":
        found["buckets are named"] = any(region.split for region in report.regions)
        found["no bucket is a break"] = not any("DDPOptimizer" in one.reason for one in report.findings)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=400)
    parser.add_argument("--keep", type=Path, help="folder for the reports and traces")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = {" ".join(words): scan(words, args, folder) for words in RUNS}
    print(json.dumps(results, indent=1))
    return 0 if all(ok for one in results.values() for ok in one["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
