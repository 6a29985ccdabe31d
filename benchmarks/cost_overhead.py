"""What ``--cost`` adds to a steady step: scans with it and without take turns over one script.

    python benchmarks/cost_overhead.py [--device cuda] [--backend as-script] [--pairs 3] [--json FILE]

Step times are those of the timeline, which both kinds of scan have. "sampled" is the steps that were marked.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import breakscope

SCRIPT = Path(__file__).resolve().parent / "cost_model.py"
WARM, STEPS = 25, 200


def steps(device: str, backend: str, option: str) -> list[float]:
    """Milliseconds of every step of one scan, in order."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        how = [option, "--backend", backend, "-o", str(report)]
        script = [str(SCRIPT), "--device", device, "--steps", str(STEPS)]
        subprocess.run([sys.executable, "-m", "breakscope", "scan", "-q", *how, *script], check=True)
        return [step.ms or 0.0 for step in breakscope.load(report).steps]


def main() -> int:
    """Print the medians and their ratios. Exit code 1 if a steady step takes 5% longer or more."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with_cost, without, sampled = [], [], []
    for _ in range(args.pairs):
        off = steps(args.device, args.backend, "--no-cost")
        on = steps(args.device, args.backend, "--cost")
        without.append(statistics.fmean(off[3:]))
        with_cost.append(statistics.fmean(on[3:]))
        sampled.append(statistics.median(on[4:WARM]) / statistics.median(on[WARM:]))
    ratio = statistics.median(a / b for a, b in zip(with_cost, without, strict=True))
    print(f"{args.device}, backend {args.backend}, {STEPS} steps, {args.pairs} pairs")
    on, off = statistics.median(with_cost), statistics.median(without)
    print(f"mean step {on:.4f} ms with --cost, {off:.4f} ms without")
    print(f"ratio {ratio:.3f}; a sampled step against one that is not: {statistics.median(sampled):.3f}")
    if args.json:
        args.json.write_text(json.dumps({"with": with_cost, "without": without, "sampled": sampled}))
    return int(ratio >= 1.05)


if __name__ == "__main__":
    sys.exit(main())
