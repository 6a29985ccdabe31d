"""What bench says of a script against what the script itself measures, unmodified, with events of its own.

    python benchmarks/bench_against_script.py OUT [--programs A,B] [--rounds N] [--seconds S]

Each program compiles its model as it says (default mode or reduce-overhead) and makes steps in a plain loop.
Run by itself it times them as anybody would: an event before and after each step, the host running ahead, and
one wait at the end. bench measures the same file. Both take turns, ROUNDS times, on one compile cache.
OUT/against_script.json holds, for each program and arm, the medians of both and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]

HEAD = """
import functools, json, os, time
import torch
from torch import nn

GPU = torch.cuda.is_available()
DEVICE, HALF = ("cuda", torch.float16) if GPU else ("cpu", torch.float32)
torch.manual_seed(0)
TIMES = os.environ.get("OWN_TIMES")
EAGER = os.environ.get("OWN_EAGER") == "1"


def run(step, warm_up=30, steps=600):
    if TIMES is None:
        for _ in range(70):
            step()
        return
    began = time.perf_counter()
    while warm_up > 0 or time.perf_counter() - began < 3:  # a card that idled is slow at first
        step()
        warm_up -= 1
    if not GPU:
        spans = []
        for _ in range(steps):
            began = time.perf_counter()
            step()
            spans.append((time.perf_counter() - began) * 1e3)
    else:
        torch.cuda.synchronize()
        event = functools.partial(torch.cuda.Event, enable_timing=True)
        marks = [(event(), event()) for _ in range(steps)]
        for first, last in marks:
            first.record()
            step()
            last.record()
        torch.cuda.synchronize()
        spans = [first.elapsed_time(last) for first, last in marks]
    json.dump(spans, open(TIMES, "w"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x):
        h = self.norms[0](x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.second(torch.relu(self.first(self.norms[1](x))))


def tower(layers, width, heads):
    return nn.Sequential(*[Block(width, heads) for _ in range(layers)])


def inference(model, x, mode):
    model = model.to(DEVICE, HALF).eval()
    call = model if EAGER else torch.compile(model, mode=mode)

    def step():
        with torch.no_grad():
            step.out = call(x)

    run(step)
"""

NARROW = "inference(tower(6, 512, 8), torch.randn(16, 128, 512, device=DEVICE, dtype=HALF), {!r})"
WIDE = "inference(tower(6, 2048, 16), torch.randn(8, 512, 2048, device=DEVICE, dtype=HALF), {!r})"
PROGRAMS = {
    "narrow_graphs": NARROW.format("reduce-overhead"),
    "narrow_default": NARROW.format(None),
    "wide_graphs": WIDE.format("reduce-overhead"),
    "wide_default": WIDE.format(None),
    "training": """
model = tower(6, 1024, 16).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
call = model if EAGER else torch.compile(model)
x = torch.randn(8, 256, 1024, device=DEVICE)


def step():
    optimizer.zero_grad()
    call(x).square().mean().backward()
    optimizer.step()


run(step)
""",
}


def own(script: Path, cache: Path, eager: bool) -> list[float]:
    """The script's own times, in ms."""
    times = script.with_suffix(".times.json")
    environment = {**os.environ, "OWN_TIMES": str(times), "OWN_EAGER": str(int(eager))}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    spans: list[float] = json.loads(times.read_text())
    return spans


def bench(script: Path, cache: Path, seconds: float) -> dict[str, Any]:
    """What bench measures of the same file."""
    words = [
        "bench",
        "--processes",
        "1",
        "--seconds",
        str(seconds),
        "--json",
        "-q",
        "-o",
        str(script) + ".report",
        str(script),
    ]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), environment.get("PYTHONPATH")]))
    subprocess.run(
        [sys.executable, "-m", "breakscope", *words], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    found: dict[str, Any] = json.loads(Path(str(script) + ".report").read_text())["benchmark"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name in options.programs.split(","):
        script = options.out.resolve() / f"{name}.py"
        script.write_text(HEAD + "\n\n" + PROGRAMS[name].strip() + "\n")
        cache = options.out.resolve() / "cache"
        row: dict[str, Any] = {"own": {"eager": [], "compiled": []}, "bench": {"eager": [], "compiled": []}}
        try:
            for _ in range(options.rounds):
                for arm in ("eager", "compiled"):
                    row["own"][arm].append(statistics.median(own(script, cache, arm == "eager")))
                measured = bench(script, cache, options.seconds)
                for arm in measured["arms"]:
                    row["bench"][arm["name"]].append(arm["step"]["median"] if arm["step"] else None)
                    row.setdefault("notes", {})[arm["name"]] = arm["notes"]
                row["bench_notes"] = measured["notes"]
            row["ratio"] = {
                arm: statistics.median(row["bench"][arm]) / statistics.median(row["own"][arm])
                for arm in ("eager", "compiled")
            }
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"
        results[name] = row
        (options.out / "against_script.json").write_text(json.dumps(results, indent=1))
        print(name, row.get("ratio"), row.get("failed", ""), flush=True)


if __name__ == "__main__":
    main()
