"""What bench says of a script against what the script itself measures, unmodified, with events of its own.

    python benchmarks/bench_against_script.py OUT [--programs A,B] [--rounds N] [--seconds S] [--variants A,B]
                                              [--fill first|only|not]

Each program compiles its model as it says (default mode or reduce-overhead) and makes steps in a plain loop.
Run by itself it times them as anybody would: an event before and after each step, the host running ahead, and
one wait at the end. bench measures the same file. Both take turns, ROUNDS times.
OUT/against_script.json holds, for each program and arm, the medians of both and their ratio. What tells apart
why they differ:

- inside: the script's own events around each step, in the very processes and steps that bench times (not in
  the first round, for bench finds those events between its own).
- mhz: the clock of the card right after the steps, from a kernel that counts cycles.
- quiet_ms: of the script's own steps those before and after which a fixed piece of work was not slow; bench
  leaves out turns by the same rule. "ratio" is of these, "ratio_of_all" of all steps in blocks.
- straight_ms: steps in a row without a pause, before all others; "ratio_straight" is of these. They are what
  counts where the device sets the pace: a pause lets a card at its power limit rest.
- after_a_rest_ramp: steps after a rest, a tenth of them at a time: for how long a rest is seen.
- variants (of the compiled script, in turn in one process, in blocks as short as those of bench): a pause of
  the host between two steps, the mark of a step, inputs made anew, outputs let go or copied between steps,
  without the garbage collector, a wait for the device after each step, blocks right after the card rested.
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
import functools, gc, json, os, random, statistics, time
import torch
from torch import nn

from breakscope.inside.bench import pace

GPU = torch.cuda.is_available()
DEVICE, HALF = ("cuda", torch.float16) if GPU else ("cpu", torch.float32)
torch.manual_seed(0)
TIMES = os.environ.get("OWN_TIMES")
INSIDE = os.environ.get("OWN_INSIDE")
EAGER = os.environ.get("OWN_EAGER") == "1"
VARIANTS = os.environ.get("OWN_VARIANTS") == "1"
BEST_PACE = float(os.environ.get("OWN_BEST_PACE", "0"))
CYCLES, REST = 1_000_000, 0.3
RAMP = 200
BLOCK, SETTLE = 25, 5  # before each block one looks how fast the CPU is; a host-bound device idles meanwhile
if GPU:
    torch.cuda._sleep(1)  # the first one loads its kernel


def synchronize():
    if GPU:
        torch.cuda.synchronize()


class Meter:
    # Marks before and after steps, read later.

    def __init__(self):
        self.marks = []
        self.host = []

    def mark(self):
        if not GPU:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def time(self, step):
        first, began = self.mark(), time.perf_counter()
        step()
        self.host.append((time.perf_counter() - began) * 1e3)
        self.marks.append((first, self.mark()))

    def spans(self):
        synchronize()
        if GPU:
            return [first.elapsed_time(last) for first, last in self.marks]
        return [(last - first) * 1e3 for first, last in self.marks]


def mhz():
    # How fast the clock of the card is just now.
    if not GPU:
        return None
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    torch.cuda._sleep(CYCLES)
    last.record()
    torch.cuda.synchronize()
    return CYCLES / first.elapsed_time(last) / 1e3


def wait_on_the_host(us):
    until = time.perf_counter() + us / 1e6
    while time.perf_counter() < until:
        pass


def variants(step):
    def fresh():
        if step.x is not None:
            step.x = step.x.clone()

    def let_go():
        step.out = None

    def copy():
        step.copy = None if step.out is None else step.out.clone()

    between = {
        "plain": int,
        "pause_10us": functools.partial(wait_on_the_host, 10),
        "pause_30us": functools.partial(wait_on_the_host, 30),
        "pause_100us": functools.partial(wait_on_the_host, 100),
        "fresh_inputs": fresh,
        "outputs_let_go": let_go,
        "outputs_copied": copy,
        "no_gc": int,
        "synchronized": synchronize,
        "after_a_rest": int,
    }
    # Once a step was marked, calls that are not marked are no steps of their own any more: that comes last.
    orders = [random.sample(sorted(between), len(between)) for _ in range(8)] + [["marked"]] * 8
    between["marked"] = lambda: (torch.compiler.cudagraph_mark_step_begin(), setattr(step, "out", None))
    found = {name: {"ms": [], "mhz": []} for name in between}
    for names in orders:
        for name in names:
            synchronize()
            if name == "after_a_rest":
                time.sleep(REST)
            else:
                until = time.perf_counter() + 0.06
                while time.perf_counter() < until:
                    if name == "marked":
                        between[name]()
                    step()
            synchronize()
            if name == "no_gc":
                gc.disable()
            meter = Meter()
            for _ in range(23):
                between[name]()
                meter.time(step)
            gc.enable()
            found[name]["ms"] += meter.spans()[3:]
            found[name]["mhz"].append(mhz())
    return {
        name: {"ms": statistics.median(one["ms"]), "mhz": GPU and statistics.median(one["mhz"])}
        for name, one in found.items()
    }


def run(step, warm_up=30, steps=600):
    if TIMES is None:
        meter = Meter()
        try:
            for _ in range(70 if INSIDE is None else 1500):
                step() if INSIDE is None else meter.time(step)
        finally:
            if INSIDE is not None:
                from torch._dynamo.utils import counters

                kind = "compiled" if counters["stats"]["unique_graphs"] else "eager"
                spans = meter.spans()
                half = len(spans) // 2
                told = {"spans": spans[half:], "host": meter.host[half:], "mhz": mhz()}
                with open(os.path.join(INSIDE, f"{kind}-{os.getpid()}.json"), "w") as file:
                    json.dump(told, file)
        return
    began = time.perf_counter()
    while warm_up > 0 or time.perf_counter() - began < 3:  # a card that idled is slow at first
        step()
        warm_up -= 1
    synchronize()
    straight = Meter()
    for _ in range(steps // 2):
        straight.time(step)
    told = {"straight": straight.spans(), "straight_mhz": mhz()}
    meter, paces = Meter(), []
    for _ in range(steps // BLOCK):
        before = pace.settle_on_a_fast_cpu(BEST_PACE)
        for _ in range(BLOCK):
            meter.time(step)
        paces.append((before, pace.probe_ms()))
    own = max(BEST_PACE, min(after for _, after in paces))  # threads of the step may still be awake
    fast = [before <= pace.SLOW * BEST_PACE and after <= pace.SLOW * own for before, after in paces]
    quiet = [number for number in range(steps) if number % BLOCK >= SETTLE and fast[number // BLOCK]]
    spans = meter.spans()
    told |= {"spans": spans, "quiet": [spans[number] for number in quiet], "host": meter.host, "mhz": mhz()}
    told["pace_ms"] = statistics.median(before for before, _ in paces)
    time.sleep(REST)
    rested = Meter()
    for _ in range(RAMP):
        rested.time(step)
    told["after_a_rest"] = rested.spans()
    told["variants"] = variants(step) if VARIANTS else {}
    with open(TIMES, "w") as file:
        json.dump(told, file)


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
            step.out = call(step.x)

    step.x = x
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


step.x = step.out = None
run(step)
""",
}


def own(script: Path, cache: Path, *, eager: bool, variants: bool = False) -> dict[str, Any]:
    """The script's own times, in ms."""
    from breakscope.inside.bench import pace

    times = script.with_suffix(".times.json")
    environment = {**os.environ, "OWN_TIMES": str(times), "OWN_EAGER": str(int(eager))}
    environment |= {"OWN_VARIANTS": str(int(variants)), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment |= {"PYTHONPATH": with_package(), "OWN_BEST_PACE": str(pace.best_of_all_ms())}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    return summed_up(json.loads(times.read_text()))


def with_package() -> str:
    """PYTHONPATH with this checkout in it."""
    return os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))


def summed_up(told: dict[str, Any]) -> dict[str, Any]:
    """Medians in the place of all steps, and from the tenth to the ninetieth of a hundred."""
    spans, host = told.pop("spans"), told.pop("host")
    tenths = statistics.quantiles(spans, n=10)
    for name in ("straight", "after_a_rest"):
        steps = told.pop(name, spans)
        told |= {f"{name}_ms": statistics.median(steps), f"{name}_ramp": every(steps, 10)}
    quiet = told.pop("quiet", None) or spans
    told |= {"quiet_steps": len(quiet), "quiet_ms": statistics.median(quiet)}
    return {**told, "ms": statistics.median(spans), "tenths": tenths, "host_ms": statistics.median(host)}


def every(values: list[float], groups: int) -> list[float]:
    """Medians of so many parts, in order: how a card that rested becomes slower."""
    size = -(-len(values) // groups)
    return [round(statistics.median(values[at : at + size]), 5) for at in range(0, len(values), size)]


def bench(script: Path, cache: Path, seconds: float, inside: Path | None = None) -> dict[str, Any]:
    """What bench measures of the same file; and with `inside`, the script in bench's processes."""
    report = script.with_suffix(".report.json")
    words = ["bench", "--processes", "1", "--seconds", str(seconds), "-q", "-o", str(report), str(script)]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment["PYTHONPATH"] = with_package()
    if inside is not None:
        inside.mkdir(exist_ok=True)
        environment["OWN_INSIDE"] = str(inside)
    subprocess.run(
        [sys.executable, "-m", "breakscope", *words], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    found: dict[str, Any] = json.loads(report.read_text())["benchmark"]
    return found


def fill_caches(scripts: list[Path], rounds: int) -> None:
    """Compile all programs at the same time, so that taking turns is not waiting for compilers."""
    running = []
    for script in scripts:
        for number in range(rounds):
            cache = script.parent / f"cache-{number}"
            environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache), "PYTHONPATH": with_package()}
            running.append(subprocess.Popen([sys.executable, str(script)], env=environment))
    for process in running:
        process.wait()


def inside_of(folder: Path) -> dict[str, Any]:
    """What the script saw in the processes of bench."""
    found = {}
    for path in folder.glob("*.json"):
        found[path.name.partition("-")[0]] = summed_up(json.loads(path.read_text()))
    return found


def compare(script: Path, options: argparse.Namespace, row: dict[str, Any]) -> None:
    """Measure one program both ways."""
    for number in range(options.rounds):
        cache = script.parent / f"cache-{number}"  # two compiles do not always take the same kernels
        for arm in ("eager", "compiled"):
            wanted = arm == "compiled" and number == 0 and script.stem in options.variants.split(",")
            row["own"][arm].append(own(script, cache, eager=arm == "eager", variants=wanted))
        inside = script.parent / f"{script.stem}-inside-{number}" if number else None
        measured = bench(script, cache, options.seconds, inside)
        for told in measured["arms"]:
            row["bench"][told["name"]].append(told["step"]["median"] if told["step"] else None)
            row["host"][told["name"]].append(told["host"]["median"] if told["host"] else None)
            row.setdefault("notes", {})[told["name"]] = told["notes"]
        row["inside"] += [inside_of(inside)] if inside is not None else []
        row["noisy"] = measured["noisy"]
        row["bench_notes"], row["gpu"] = measured["notes"], measured["gpu"]
        row["pace_ms"].append(measured["pace_ms"])
    # Bench leaves out turns on a slow CPU, so that steps of the script on a slow CPU are left out too. Where
    # the device sets the pace, the host's speed is nothing, and pauses to look at it let the card rest.
    for ratio, which in (("ratio", "quiet_ms"), ("ratio_straight", "straight_ms"), ("ratio_of_all", "ms")):
        row[ratio] = {
            arm: statistics.median(row["bench"][arm])
            / statistics.median(one[which] for one in row["own"][arm])
            for arm in ("eager", "compiled")
        }


def show(name: str, row: dict[str, Any]) -> None:
    """One program's figures."""
    print(name, row.get("ratio"), "without pauses", row.get("ratio_straight"), row.get("failed", ""))
    print("  of all steps", row.get("ratio_of_all"))
    print("  noisy:", row.get("noisy"), "pace of bench", row["pace_ms"])
    for arm in ("eager", "compiled"):
        print(f"  {arm}: bench {row['bench'][arm]}, of the host {row['host'][arm]}")
        told = [("alone", one) for one in row["own"][arm]]
        for where, one in told + [("inside of bench", one[arm]) for one in row["inside"] if arm in one]:
            tenths = f"{one['tenths'][0]:.4f} to {one['tenths'][-1]:.4f}"
            tenths += f"; {one['quiet_ms']:.4f} in {one['quiet_steps']} on a quiet CPU"
            tenths += f" (pace {one.get('pace_ms', 0):.2f})"
            rest = f"of the host {one['host_ms']:.4f}, at {one['mhz'] or 0:.0f} MHz"
            print(f"    {where}: {one['ms']:.4f} ({tenths}), {rest}")
            straight = f"{one['straight_ms']:.4f} at {one.get('straight_mhz') or 0:.0f} MHz"
            print(f"      without pauses {straight}, by tenths {one['straight_ramp']}")
            print(f"      after a rest, by tenths {one['after_a_rest_ramp']}")
    for one in row["own"]["compiled"]:
        for variant, told in one["variants"].items():
            print(f"    {variant:<16}{told['ms']:.4f} ms at {told['mhz'] or 0:.0f} MHz")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--variants", default="narrow_graphs,narrow_default")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument(
        "--fill", choices=("first", "only", "not"), default="first", help="compile all before measuring"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    scripts = {name: options.out.resolve() / f"{name}.py" for name in options.programs.split(",")}
    for name, script in scripts.items():
        script.write_text(HEAD + "\n\n" + PROGRAMS[name].strip() + "\n")
    if options.fill != "not":
        fill_caches(list(scripts.values()), options.rounds)
    if options.fill == "only":
        return
    for name, script in scripts.items():
        row: dict[str, Any] = {
            **{kind: {"eager": [], "compiled": []} for kind in ("own", "bench")},
            "host": {"eager": [], "compiled": []},
            "inside": [],
            "pace_ms": [],
        }
        results[name] = row
        try:
            compare(script, options, row)
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"
        (options.out / "against_script.json").write_text(json.dumps(results, indent=1))
        show(name, row)


if __name__ == "__main__":
    main()
