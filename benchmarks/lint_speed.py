"""How fast ``breakscope lint`` is, on the source tree of transformers, and TorchFix beside it.

    python benchmarks/lint_speed.py [--repeat 3] [--torchfix PYTHON] [--torchfix-files 40]

Bars: at least 300 files/s on 2 cores from cold, ten times that from the cache, one file in under 0.25 s
for the whole process. A run is a real child process, best of ``--repeat``; *cold* is without our cache
(the operating system has the files in memory for all). CPU seconds are those of all processes: on a busy
machine they say more than the wall clock. As installed by pip, modules have their bytecode: the first run
leaves it in a folder that goes when this ends.

``--torchfix`` names a Python in which TorchFix is installed (``pip install torchfix`` in an environment
of its own). It takes minutes for the whole tree, so it gets every n-th file of those with a forward(),
and the same for both.

Needs transformers 4.52.4 (the extra ``models``).
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Timed:
    """One child process."""

    wall: float
    cpu: float
    output: str


def run(command: list[str], cwd: Path) -> Timed:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(cwd / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stderr[-500:]}")
    return Timed(wall, cpu, done.stdout)


def best(repeat: int, command: list[str], cwd: Path) -> Timed:
    return min((run(command, cwd) for _ in range(repeat)), key=lambda one: one.wall)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--torchfix", help="a Python that has TorchFix")
    parser.add_argument("--torchfix-files", type=int, default=40)
    arguments = parser.parse_args()
    spec = find_spec("transformers")
    if spec is None or spec.origin is None:
        raise SystemExit("transformers is not installed: pip install 'torch-breakscope[models]'")
    tree = Path(spec.origin).parent
    lint = [sys.executable, "-m", "breakscope", "lint", "--format", "concise"]
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, best of {arguments.repeat}")
    print("| what | files | wall | CPU | files/s |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([*lint, "--no-cache", str(ROOT / "fixtures" / "gan.py")], folder)  # leaves the bytecode
        cold = best(arguments.repeat, [*lint, "--no-cache", "--jobs", "2", str(tree)], folder)
        files = len(list(tree.rglob("*.py")))
        row("breakscope lint, cold, 2 processes", files, cold)
        one_process = best(1, [*lint, "--no-cache", "--jobs", "1", str(tree)], folder)
        row("breakscope lint, cold, 1 process", files, one_process)
        run([*lint, str(tree)], folder)
        row("breakscope lint, from the cache", files, best(arguments.repeat, [*lint, str(tree)], folder))
        sample = tree / "models" / "bart" / "modeling_bart.py"
        single = best(max(arguments.repeat, 7), [*lint, "--no-cache", str(sample)], folder)
        row(f"breakscope lint, one file of {len(sample.read_text().splitlines()):,} lines", 1, single)
        small = best(
            max(arguments.repeat, 7), [*lint, "--no-cache", str(ROOT / "fixtures" / "gan.py")], folder
        )
        row("breakscope lint, one small file", 1, small)
        start = best(max(arguments.repeat, 7), [sys.executable, "-c", "pass"], folder)
        row("python -c pass", 0, start)
        if arguments.torchfix:
            models = sorted(path for path in tree.rglob("*.py") if "def forward" in path.read_text())
            chosen = [str(path) for path in models[:: max(1, len(models) // arguments.torchfix_files)]]
            other = run([arguments.torchfix, "-m", "torchfix", "--select", "ALL", *chosen], folder)
            row("TorchFix, models", len(chosen), other)
            row(
                "breakscope lint, the same",
                len(chosen),
                run([*lint, "--no-cache", "--jobs", "2", *chosen], folder),
            )


def row(name: str, files: int, timed: Timed) -> None:
    rate = f"{files / timed.wall:,.0f}" if files > 1 else "-"
    print(f"| {name} | {files:,} | {timed.wall:.2f} s | {timed.cpu:.2f} s | {rate} |", flush=True)


if __name__ == "__main__":
    main()
