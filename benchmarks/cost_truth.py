"""Whether predicted costs are true: what a scan says of each break, and what the step gains without it.

    python benchmarks/cost_truth.py OUT [--device cuda] [--programs NAME ...] [--rounds N] [--profile]
    python benchmarks/cost_truth.py OUT --again      # the recorded events, with the formula of this checkout

For each of the programs in ``cost_programs.py`` a scan takes turns (``turns.py``) with a process without
breakscope, in which the program as it is and without each of its breaks take turns on the same inputs. All
that another formula could be tried on is written to OUT, one file a program.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import json
import random
import re
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from turns import Quiet, Scan, diagnosed, scanned

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "cost_programs.py"
STEPS, PER_TURN, NEAR_STEPS = 8, 4, 10
NEAR_MS, NEAR, NEAR_TOGETHER = 0.02, 0.25, 0.15


def program(name: str) -> Any:
    """What cost_programs says of one."""
    return _fresh().PROGRAMS[name]


def _fresh() -> Any:
    """The programs, with code objects that no other arm has: Dynamo keeps compiled code with them."""
    spec = importlib.util.spec_from_file_location("cost_programs", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cost_programs"] = module
    spec.loader.exec_module(module)
    return module


# ---- what is gained ----


class Arms:
    """A program as it is (""), without each break, and without all of them."""

    def __init__(self, name: str, device: str) -> None:
        self.device = program(name).device or device
        breaks = program(name).breaks
        without = {"": (), **{one: (one,) for one in breaks}, "all": breaks}
        self.steps = {arm: _fresh().steps_of(name, device, out) for arm, out in without.items()}
        # Each window has one of the whole program before it. One for all arms would make them wrong together.
        self.times: dict[str, list[float]] = {arm: [] for arm in without if arm}
        self.beside: dict[str, list[float]] = {arm: [] for arm in self.times}
        for step in self.steps.values():
            for _ in range(8):
                step()

    def take_turns(self, scan: Scan, rounds: int) -> None:
        """Time windows of all arms, in an order that changes."""
        order = list(self.times)
        chance, quiet = random.Random(0), Quiet()
        for number in range(rounds):
            if number % PER_TURN == 0:
                scan.turn()
                self._window(self.steps[""])  # threads and caches were the scan's: thrown away
            quiet.settle()
            chance.shuffle(order)
            for arm in order:
                self.beside[arm].append(self._window(self.steps[""]))
                self.times[arm].append(self._window(self.steps[arm]))

    def rounds(self) -> dict[str, dict[str, list[float]]]:
        """Windows without each break, and those of the whole program beside them."""
        return {"without": self.times, "beside": self.beside}

    def _window(self, step: Callable[[], object]) -> float:
        import torch

        step()  # its code has left the caches

        wait = torch.cuda.synchronize if self.device != "cpu" else int
        wait()
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        return (time.perf_counter() - begin) / STEPS * 1e3


def gains(rounds: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """For each arm the median gain of a round, and how far off that median may be.

    Differences within a round do not change with what slows the whole machine for a while.
    """
    found = {}
    for arm, values in rounds["without"].items():
        each = [whole - without for whole, without in zip(rounds["beside"][arm], values, strict=True)]
        low, middle, high = statistics.quantiles(each, n=4, method="inclusive")
        found[arm] = middle, 1.57 * (high - low) / len(each) ** 0.5
    return found


def alone(rounds: dict[str, Any]) -> float:
    """The whole program's step, where nobody scans it."""
    return statistics.median(ms for windows in rounds["beside"].values() for ms in windows)


def read(path: Path) -> dict[str, Any]:
    """A kept run. Older ones have a window of the whole program for each round."""
    with gzip.open(path, "rt") as file:
        kept: dict[str, Any] = json.load(file)
    rounds = kept["rounds"]
    if "" in rounds:
        whole = rounds.pop("")
        kept["rounds"] = {"without": rounds, "beside": dict.fromkeys(rounds, whole)}
    return kept


# ---- what is predicted ----


def predicted(name: str, report: Any) -> dict[str, Any]:
    """Cost of each break in milliseconds a step: [least, said, most]; "" is the step, "all" all of them."""
    lines = SOURCE.read_text().splitlines()
    breaks = program(name).breaks
    found: dict[str, Any] = {one: [0.0, 0.0, 0.0] for one in breaks}
    for finding in report.findings:
        at = _named(lines[: line_of(finding)], breaks)
        if at is not None and finding.cost is not None:
            cost = finding.cost
            least, most = getattr(cost, "least_ms", None), getattr(cost, "most_ms", None)
            each = (
                cost.ms_per_step if least is None else least,
                cost.ms_per_step,
                cost.ms_per_step if most is None else most,
            )
            found[at] = [old + new for old, new in zip(found[at], each, strict=True)]
    timing = report.timing
    found[""] = timing.step_ms
    gain = getattr(timing, "gain_ms", None)
    found["all"] = sum(found[one][1] for one in breaks) if gain is None else gain
    return found


def line_of(finding: Any) -> int:
    """The program's line at which a finding is, or from which a library was called that has it."""
    places = [*finding.stack, finding.location]
    return next(place.line for place in reversed(places) if Path(place.file).name == SOURCE.name)  # type: ignore[no-any-return]


def _named(lines: list[str], breaks: tuple[str, ...]) -> str | None:
    """The break in whose block the last of the lines stands."""
    for line in reversed(lines):
        if "self.breaks" in line:
            return next((name for name in breaks if f'"{name}"' in line), None)
    return None


def steady(recorded: list[dict[str, Any]]) -> dict[int, float]:
    """Milliseconds of every step after the warm-up, by its index."""
    plain = program_module()
    steps: dict[int, float] = {}
    for event in recorded:
        if event["t"] == "steps":
            steps = {} if event.get("restart") else steps
            steps.update({row[0]: row[2] / 1e6 for row in event["rows"]})
    # A block begins with the wait for its turn, and the first ones compile.
    first = plain.WARM
    return {i: ms for i, ms in steps.items() if i >= first + 2 and (i - first) % plain.BLOCK > 1}


def program_module() -> Any:
    """cost_programs, as any other module."""
    sys.path.insert(0, str(HERE))
    return importlib.import_module("cost_programs")


def sampling(recorded: list[dict[str, Any]]) -> dict[str, float]:
    """The mean of all steady steps, and the median of sampled ones, over those without marks beside them."""
    marked = {e["of"]: e["t"] for e in recorded if e["t"] in ("sample", "held", "glance")}
    kept = steady(recorded)
    touched = {i + after for i in marked for after in (0, 1)}  # what was seen is written in the step after

    def beside(index: int) -> float:
        """What steps near this one take that nothing was done to: the machine's speed drifts."""
        around = range(index - NEAR_STEPS, index + NEAR_STEPS)
        near = [kept[i] for i in around if i in kept and i not in touched]
        return statistics.median(near) if near else kept[index]

    ratios = {i: min(ms / beside(i), 20.0) for i, ms in kept.items()}
    bare = [ms for i, ms in kept.items() if i not in touched]
    if not bare or len(bare) == len(kept):
        return {}
    # The machine pauses in any step, and that is no doing of ours.
    usual = statistics.fmean(ratio for i, ratio in ratios.items() if i not in touched)
    extra = sum(ratio - usual for i, ratio in ratios.items() if i in touched)
    found = {"mean": 1 + extra / len(kept), "steps": len(kept), "bare_ms": statistics.median(bare)}
    for kind in ("sample", "held", "glance"):
        times = [ratio for i, ratio in ratios.items() if marked.get(i) == kind]
        found |= {kind: statistics.median(times)} if times else {}
    return found


# ---- side by side ----


def judged(
    name: str, said: dict[str, Any], gained: dict[str, tuple[float, float]], pace: float
) -> dict[str, Any]:
    """Prediction and gain of every break, and which bars are met.

    Args:
        pace: how much longer a step takes in the process that measures than in the one that was scanned: two
            processes with the same program differ by up to a half. Predictions are held to the
            measurement's pace.
    """
    rows = {}
    for one, (gain, spread) in gained.items():
        least, guess, most = (pace * ms for ms in (said[one] if one != "all" else (said["all"],) * 3))
        together = one == "all" and len(gained) > 2  # else it is the one break once more
        near = NEAR_TOGETHER if together else NEAR
        # A range that holds the gain is right; a point may be off by so much.
        off = max(least - gain, gain - most, 0.0) if least < most else abs(guess - gain)
        ok = off <= max(near * abs(gain), 0.0 if together else NEAR_MS)
        rows[one] = {
            "least": least, "predicted": guess, "most": most, "gained": gain, "spread": spread,
            "ratio": guess / gain if gain > 0 else None, "ok": ok, "unscaled": guess / pace,
        }  # fmt: skip
    breaks = [one for one in rows if one != "all"]
    wrong = [
        (a, b)
        for a in breaks
        for b in breaks
        if gained[a][0] - gained[b][0] > gained[a][1] + gained[b][1]
        and rows[a]["predicted"] < rows[b]["predicted"]
    ]
    return {"program": name, "step_ms": said[""], "pace": pace, "rows": rows, "wrong_order": wrong}


def show(found: dict[str, Any], timing: Any) -> None:
    """One program's table."""
    pace = f"{found.get('alone_ms', 0):.3f} alone (pace {found['pace']:.2f})"
    print(
        f"\n{found['program']}: step {found['step_ms']} ms scanned, {pace}; {timing.method}, {timing.bound}"
    )
    print(f"{'break':<14}{'least':>9}{'said':>9}{'most':>9}{'gained':>9}{'±':>8}{'ratio':>7}")
    for one, row in sorted(found["rows"].items(), key=lambda item: -item[1]["gained"]):
        ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else "-"
        numbers = "".join(f"{row[key]:>9.4f}" for key in ("least", "predicted", "most", "gained"))
        print(f"{one:<14}{numbers}{row['spread']:>8.4f}{ratio:>7}{'' if row['ok'] else '  OFF'}")
    print(f"wrong order: {found['wrong_order'] or 'none'}; sampling {found.get('sampling')}", flush=True)


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Scan and measure every program; one that fails is told and left."""
    results = []
    begun: dict[str, tuple[ExitStack, Scan, Arms]] = {}
    with ExitStack() as everything:
        scans: dict[str, tuple[ExitStack, Scan]] = {}
        for name in args.programs:  # all compile at the same time
            stack = everything.enter_context(ExitStack())
            words = [name, "--device", args.device]
            scans[name] = (
                stack,
                stack.enter_context(scanned(SOURCE, words, "as-script", profile=args.profile)),
            )
        for name, (stack, scan) in scans.items():
            try:
                begun[name] = stack, scan, Arms(name, args.device)
            except (Exception, SystemExit):
                traceback.print_exc()
        for name, (_, ready) in scans.items():
            try:
                ready.wait_until_ready()
            except RuntimeError:
                traceback.print_exc()
                begun.pop(name, None)
        print(f"compiled after {time.perf_counter() - BEGAN:.0f} s", flush=True)
        for _, scan, arms in begun.values():
            try:
                arms.take_turns(scan, args.rounds)
            except (Exception, SystemExit):
                traceback.print_exc()
        print(f"measured after {time.perf_counter() - BEGAN:.0f} s", flush=True)
        for name, (stack, scan, arms) in begun.items():
            try:
                stack.close()  # the scan ends, and is diagnosed
                results.append(_result(name, scan, arms.rounds()))
                keep(args.out / f"{name}.json.gz", scan, arms.rounds())
            except (Exception, SystemExit):
                traceback.print_exc()
    return results


BEGAN = time.perf_counter()


def _result(name: str, scan: Scan, rounds: dict[str, Any]) -> dict[str, Any]:
    alone_ms, sampled = alone(rounds), sampling(scan.recorded)
    pace = alone_ms / sampled["bare_ms"] if "bare_ms" in sampled else 1.0
    found = judged(name, predicted(name, scan.report), gains(rounds), pace)
    found["alone_ms"] = alone_ms
    found["sampling"] = sampled
    show(found, scan.report.timing)
    return found


def keep(path: Path, scan: Scan, rounds: dict[str, Any]) -> None:
    """Write everything that another formula could be tried on."""
    with gzip.open(path, "wt") as file:
        json.dump(
            {"rounds": rounds, "recorded": scan.recorded, "slots": scan.slots, "outcome": scan.outcome}, file
        )


# What the diagnosis reads of a run, for tests: everything else is left out.
_NEEDED = ("start", "torch", "device", "region", "graph_break", "skip", "steps", "sample", "partial", "held")
_NEEDED += ("glance", "calibration", "metrics", "later", "busy")


def small(name: str, kept: dict[str, Any]) -> dict[str, Any]:
    """A kept run as test data: without the machine's folders, with gains in the place of all rounds."""
    recorded = [event for event in kept["recorded"] if event["t"] in _NEEDED]
    recorded = [{**e, "metrics": {}} if e["t"] == "metrics" else e for e in recorded]
    folder = str(Path(kept["outcome"]["cwd"]))
    outcome = {**kept["outcome"], "argv": [], "script": "cost_programs.py"}
    data = {"recorded": recorded, "slots": kept["slots"], "outcome": outcome}
    text = re.sub(r'[^" ]*/(?=(?:site-packages|lib/python3[.0-9]*)/)', "/python/", json.dumps(data))
    rounds = kept["rounds"]
    lines, breaks = SOURCE.read_text().splitlines(), program(name).breaks
    numbers = {number: _named(lines[:number], breaks) for number in range(1, len(lines) + 1)}
    return {
        **json.loads(text.replace(folder, "/program")),
        "gained": gains(rounds),
        "alone_ms": alone(rounds),
        "break_at_line": {number: at for number, at in numbers.items() if at is not None},
    }


def again(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The files of an earlier run, by the formula of this checkout."""
    results = []
    for name in args.programs:
        path = args.out / f"{name}.json.gz"
        if path.exists():
            kept = read(path)
            if args.samples is not None:
                args.samples.mkdir(parents=True, exist_ok=True)
                data = json.dumps(small(name, kept), separators=(",", ":")).encode()
                (args.samples / path.name).write_bytes(gzip.compress(data, 9, mtime=0))
            scan = diagnosed(kept["recorded"], kept["slots"], kept["outcome"])
            results.append(_result(name, scan, kept["rounds"]))
    return results


def main() -> int:
    """Print all side by side. Exit code 1 if a bar is not met."""
    sys.path.insert(0, str(HERE))
    names = tuple(_fresh().PROGRAMS)
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--programs", nargs="*", default=names, choices=names)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument(
        "--profile", action="store_true", help="let torch's profiler look at some steps of each scan"
    )
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--samples", type=Path, help="with --again: write the runs as small test data")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    results = again(args) if args.again else measure(args)
    if not args.again:
        (args.out / "results.json").write_text(json.dumps(results, indent=1))
    off = [
        f"{one['program']}/{name}" for one in results for name, row in one["rows"].items() if not row["ok"]
    ]
    print(f"\noff: {', '.join(off) or 'none'}")
    missing = set(args.programs) - {one["program"] for one in results}
    print(f"failed: {', '.join(sorted(missing)) or 'none'}; {time.perf_counter() - BEGAN:.0f} s")
    return int(bool(off or missing or any(one["wrong_order"] for one in results)))


if __name__ == "__main__":
    sys.exit(main())
