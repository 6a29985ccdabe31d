"""What ``--cost`` adds to a steady step: scans with it and without take turns over the same programs.

    python benchmarks/cost_overhead.py [--device cuda] [--pairs 3] [--programs host_bound ...] [--json FILE]

Two processes with the same program differ by up to a half on a shared host, so there are two kinds of ratios.
*Inside of a process*: steps that were sampled, and all steady steps, over those without marks beside them.
*Pairs*: the mean step of a scan with ``--cost`` over that of one without; "bare" is the same ratio of steps
without marks, which is what the two processes differ by anyway.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cost_truth import SOURCE, program_module, sampling, steady
from turns import Scan, scanned

BLOCKS = 8  # of 32 steps: in the first ones samples are taken most often
MOST_MEAN, MOST_SAMPLED = 1.05, 1.25


def scans(program: str, args: argparse.Namespace) -> tuple[list[Scan], list[Scan]]:
    """Scans with ``--cost`` and without, over."""
    kinds: tuple[list[Scan], list[Scan]] = ([], [])
    with ExitStack() as stack:
        for _ in range(args.pairs):
            for kind, cost in zip(kinds, (True, False), strict=True):
                words = [program, "--device", args.device]
                kind.append(stack.enter_context(scanned(SOURCE, words, args.backend, cost=cost)))
        everybody = [*kinds[0], *kinds[1]]
        for scan in everybody:
            scan.wait_until_ready()
        for _ in range(args.blocks):
            random.shuffle(everybody)
            for scan in everybody:
                scan.turn()
    return kinds


def figures(with_cost: Sequence[Scan], without: Sequence[Scan]) -> dict[str, list[float]]:
    """Each ratio, once for each process or pair of processes."""
    inside = [sampling(scan.recorded) for scan in with_cost]
    found = {
        f"inside_{name}": values
        for name in ("mean", "sample", "held", "glance")
        if (values := [one[name] for one in inside if name in one])
    }
    off = [steady(scan.recorded).values() for scan in without]
    on = [steady(scan.recorded).values() for scan in with_cost]

    def pairs(of: Callable[[Any], float]) -> list[float]:
        return [of(a) / of(b) for a, b in zip(on, off, strict=True)]

    bare = [one["bare_ms"] / statistics.median(b) for one, b in zip(inside, off, strict=True)]
    return {**found, "pairs_mean": pairs(statistics.fmean), "pairs_bare": bare}


def main() -> int:
    """Print every ratio: median, least and most. Exit code 1 if a bar is not met inside of the processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--backend", default="as-script")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--programs", nargs="*", default=["host_bound", "reduce_overhead"])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for program in args.programs:
        found = figures(*scans(program, args))
        results[program] = {name: [round(value, 4) for value in values] for name, values in found.items()}
        steps = args.blocks * program_module().BLOCK
        print(f"{program}, {args.device}, {steps} steps, {args.pairs} pairs of processes")
        for name, values in found.items():
            print(f"  {name:<15}{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})")
        sys.stdout.flush()
        if args.json:
            args.json.write_text(json.dumps(results, indent=1))
    over = [
        name
        for name, found in results.items()
        if statistics.median(found["inside_mean"]) >= MOST_MEAN
        or statistics.median(found["inside_sample"]) >= MOST_SAMPLED
    ]
    print(f"over the bar: {', '.join(over) or 'none'}")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
