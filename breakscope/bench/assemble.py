"""What the processes said, as a Benchmark. Pure: no process, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from breakscope.bench import gpu_state, stats
from breakscope.bench.choose import break_even, recommend
from breakscope.bench.conducted import Conducted
from breakscope.bench.players import Player, compiled_by_inductor, repeatability, samples
from breakscope.bench.verdicts import judge
from breakscope.inside.bench.plan import Arm, Options
from breakscope.report.benchmark import LAYOUT, ArmResult, Benchmark, Estimate, Outputs, Process, Spent

_SHOWN_FIRST_STEPS = 6
_MOST_NAMES = 6
_EVENT_MS = 0.001  # half a microsecond at either end
_HOST_MS = 0.0002
_BUSY = 0.9
_CROWDED = 0.5  # load per CPU of others above which a CPU run is called noisy


def benchmark(
    found: Conducted, options: Options, crossings: dict[str, float | None], total_s: float
) -> Benchmark:
    """The whole of it, kernels excepted.

    Args:
        crossings: per step, by variant, where a scan has counted them.
        total_s: wall time of the benchmark.
    """
    arms = [_arm(found, arm, crossings) for arm in options.arms()]
    eager = next((one for one in arms if one.variant == "eager"), None)
    verdicts = judge(found, options, [arm.name for arm in arms if arm.status == "ok"])
    faster = {
        verdict.arm
        for verdict in verdicts
        if verdict.judgement == "faster" and eager and verdict.base == eager.name
    }
    arms = [_with_break_even(one, eager) if one.name in faster else one for one in arms]
    info = _info(found.players)
    on_gpu = any(player.last.get("on_gpu") for player in found.players)
    return Benchmark(
        layout=LAYOUT,
        unit=_unit(found, options),
        clock="CUDA events" if on_gpu else "host clock (perf_counter, as torch.utils.benchmark)",
        method=_method(options),
        device=info.get("device") or ("cpu" if info else None),
        torch=info.get("torch"),
        seed=options.seed,
        threads=info.get("threads"),
        cpus=_ranges(info.get("cpus")),
        l2="warm: steps follow each other as in the script" if on_gpu else "as the script leaves it",
        arms=tuple(arms),
        verdicts=tuple(verdicts),
        recommendation=recommend(arms, options.horizon),
        spent=Spent(
            total_s=round(total_s, 3),
            compile_s=round(sum(map(_compile_s, found.players)), 3),
            **{part: round(value, 3) for part, value in found.spent.items()},
        ),
        pace_ms=found.slow_turns.pace_ms,
        interrupted=found.interrupted,
        noisy=tuple(_noise(found, arms, on_gpu)),
        notes=tuple(_notes(found, options, arms)),
        gpu=tuple(found.gpu),
    )


def _info(players: Sequence[Player]) -> dict[str, Any]:
    return next((player.last["info"] for player in players if player.last.get("info")), {})


def _ranges(cpus: Sequence[int] | None) -> str | None:
    """``0-3, 8``."""
    if not cpus:
        return None
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


# ---- arms ----


def _arm(found: Conducted, arm: Arm, crossings: dict[str, float | None]) -> ArmResult:
    players = found.of(arm)
    alive = [player for player in players if player.failed is None]
    common = ArmResult(
        name=arm.name,
        variant=arm.variant,
        mode=None if arm.variant == "eager" else arm.mode,
        dynamic=arm.dynamic,
        status="failed",
    )
    if not alive:
        reason = next((player.failed for player in players if player.failed), "it was not started")
        return replace(common, reason=reason)
    step = _estimate(alive, "ms")
    if step is None:
        return replace(common, reason=_no_steps(alive), processes=tuple(map(_process, alive)))
    host = _estimate(alive, "host_ms")
    whole = alive[0].unit == "optimizer"
    busy = alive[0].profile.get("busy_ms")
    discarded: dict[str, int] = {}
    for player in players:
        for reason, number in player.discarded.items():
            discarded[reason] = discarded.get(reason, 0) + number
    return replace(
        common,
        status="ok",
        interleaved=arm.name not in found.alone,
        step=step,
        calls=_estimate(alive, "calls_ms") if whole else None,
        host=host,
        device_busy_ms=busy,
        bound=_bound(step, host, busy),
        throughput=1e3 / step.median if step.median > 0 else None,
        peak_memory_mib=max(
            (player.peak_mib for player in alive if player.peak_mib is not None), default=None
        ),
        memory_kind=alive[0].last.get("memory_kind"),
        graphs=0 if arm.variant == "eager" else (alive[0].last.get("info") or {}).get("graphs"),
        crossings_per_step=0.0 if arm.variant == "eager" else crossings.get(arm.variant),
        discarded=discarded,
        outputs=_outputs(found, arm, alive),
        processes=tuple(map(_process, alive)),
        notes=tuple(_arm_notes(found, arm, players)),
    )


def _resolution(player: Player) -> float:
    return _EVENT_MS if player.last.get("on_gpu") else _HOST_MS


def _estimate(players: Sequence[Player], what: str) -> Estimate | None:
    processes = [samples(player, what) for player in players]
    least = max(map(repeatability, players))
    return stats.estimate(processes, resolution=_resolution(players[0]), least=least)


def _no_steps(players: Sequence[Player]) -> str:
    made = max(player.last.get("steps", 0) for player in players)
    if any(player.discarded for player in players):
        return "every timed step compiled something: no step of it is steady"
    return f"the script ended after {made} steps, before any could be timed; let it make more"


def _process(player: Player) -> Process:
    late = int(player.last.get("compiles", 0)) - int(player.warmed.get("compiles", 0))
    phases = player.warmed.get("phases", {})
    filled: Literal["cold", "warm"] = "cold" if player.number == 0 else "warm"
    return Process(
        cache=filled if compiled_by_inductor(player) else "none",
        startup_s=round(player.startup_s, 3),
        first_step_s=round(player.warmup[0]["ms"] / 1e3, 4) if player.warmup else None,
        first_steps_ms=tuple(round(one["ms"], 4) for one in player.warmup[:_SHOWN_FIRST_STEPS]),
        compile_s=round(_compile_s(player), 3),
        compiles=int(player.warmed.get("compiles", 0)),
        late_compiles=late,
        steady=player.steady,
        step=_estimate([player], "ms"),
        phases=phases,
    )


def _compile_s(player: Player) -> float:
    """Up to the end of the warm-up, or to where the process failed in it."""
    return float((player.warmed or player.last).get("compile_s", 0.0))


def _bound(step: Estimate, host: Estimate | None, busy: float | None) -> Any:
    """What a step on a GPU waits for: the device if it hardly rests, else the host that feeds it."""
    if busy is None or host is None:
        return None
    if busy >= _BUSY * step.median:
        return "device"
    return "host" if host.median >= _BUSY * step.median else None


def _outputs(found: Conducted, arm: Arm, players: Sequence[Player]) -> Outputs | None:
    if arm.variant == "eager":
        return None
    fields = found.outputs.get(arm.name)
    if fields is None:
        why = "there are no outputs of the eager arm to compare with"
        return Outputs("not compared", "it was interrupted before that" if found.interrupted else why)
    base = [player for player in found.players if player.arm.variant == "eager"]
    outputs = Outputs(**fields)
    if outputs.status == "different" and any(one.last.get("random") for one in (*base, *players)):
        return Outputs(
            "not compared",
            "the calls draw random numbers (dropout?), and compiled code draws others than eager code; "
            f"as they are, they differ: {outputs.why}",
            outputs.error,
            outputs.tolerance,
            outputs.tensors,
        )
    return outputs


def _arm_notes(found: Conducted, arm: Arm, players: Sequence[Player]) -> list[str]:
    notes = []
    if arm.name in found.alone:
        notes.append(f"not interleaved: {found.alone[arm.name]}")
    for player in players:
        if player.failed is not None:
            notes.append(f"process {player.number + 1} failed: {player.failed}")
        elif player.lost is not None:
            notes.append(f"process {player.number + 1} was lost after its steps were measured: {player.lost}")
        elif not player.steady:
            notes.append(f"process {player.number + 1}: its steps were not steady when the warm-up ended")
    late = dict.fromkeys(why for player in players for why in player.compiled_why)
    if late:
        notes.append(f"compiled again after the warm-up: {'; '.join(late)}")
    if arm.cuda_graphs:
        notes.append(
            "CUDA graphs: breakscope marks each step (cudagraph_mark_step_begin), which is not in its time; "
            "a script that keeps outputs must do so, and copy them, itself"
        )
    if any(player.last.get("copied_outputs") for player in players):
        notes.append(
            "the script keeps outputs, so they are copied between its steps: that is not in the step's time, "
            "and the launch of the next graph may hide behind it"
        )
    return notes


def _with_break_even(arm: ArmResult, eager: ArmResult | None) -> ArmResult:
    if eager is None or arm is eager or arm.step is None or eager.step is None:
        return arm
    caches = {process.cache: process for process in arm.processes}
    cold = break_even(arm.processes[0], arm.step, eager) if arm.processes else None
    warm = break_even(caches["warm"], arm.step, eager) if "warm" in caches else None
    return replace(arm, break_even_steps=cold, warm_break_even_steps=warm)


# ---- the rest ----


def _unit(found: Conducted, options: Options) -> str:
    if options.function is not None:
        return f"a call of {options.function} on copies of its first inputs"
    began = [player for player in found.players if player.startup_s]
    # One that failed early may not have seen what a step is.
    units = {player.unit for player in began if player.failed is None} or {player.unit for player in began}
    if units == {"optimizer"}:
        return "a whole step of the script, from one optimizer step to the next"
    # Not how many: steps may differ in it (a decoder), and a budget asks for the same unit.
    return (
        "the outermost compiled calls of a step" if calls_of_a_step(found) else "an outermost compiled call"
    )


def calls_of_a_step(found: Conducted) -> list[str]:
    """The names of what a step of several calls calls; empty where a step is one."""
    return max((player.last.get("calls", []) for player in found.players), key=len, default=[])


def _method(options: Options) -> str:
    processes = "1 process" if options.processes == 1 else f"{options.processes} processes"
    return (
        f"{processes} per arm, all arms in turn in rounds on the same steps of the script; medians; "
        "95% intervals by bootstrap over rounds and samples, covering every process and at least "
        f"{stats.REPEATABILITY:.1%} to each side, {stats.TUNED_REPEATABILITY:.0%} where Inductor chose GPU "
        "kernels by timing them"
    )


def _noise(found: Conducted, arms: Sequence[ArmResult], on_gpu: bool) -> list[str]:
    reasons = gpu_state.noise(found.gpu)
    load = gpu_state.load_average()
    if not on_gpu and load is not None and load > 1 + _CROWDED:
        reasons.append(f"the machine was busy: load {load:.1f} per CPU")
    slow = found.slow_turns
    if slow.kept_by:
        reasons.append(
            f"the CPU's speed changed (the same work took up to {slow.worst:.2g} times its best) beside most "
            f"turns of {', '.join(slow.kept_by)}; they are in the figures"
        )
    for arm in arms:
        medians = [process.step.median for process in arm.processes if process.step is not None]
        if len(medians) > 1 and max(medians) > 1.1 * min(medians):
            reasons.append(
                f"{arm.name}: its processes disagree ({min(medians):.3g} and {max(medians):.3g} ms)"
            )
        if arm.step is not None and arm.step.spread > 0.2 * arm.step.median:
            reasons.append(f"{arm.name}: its steps scatter by {arm.step.spread / arm.step.median:.0%}")
    return reasons


_LEFT_OUT = (
    "left out of a step: all that the script does between two compiled calls (reading data and moving it to "
    "the device, losses, looking at outputs and letting go of them)"
)


def _notes(found: Conducted, options: Options, arms: Sequence[ArmResult]) -> list[str]:
    notes = list(found.notes)
    if options.function is None and not all(player.unit == "optimizer" for player in found.players):
        notes.append(_LEFT_OUT)
    if found.interrupted:
        notes.append("it was interrupted: these are the figures of what had been measured")
    slow = found.slow_turns
    if slow.left_out:
        notes.append(
            f"{slow.left_out} of {slow.turns} turns were left out: a fixed piece of work beside them took up "
            f"to {slow.worst:.2g} times its best, so the CPU was shared or throttled"
        )
    names = calls_of_a_step(found)
    if names:
        shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        notes.append(
            f"a step is {len(names)} calls: {shown}; its time is theirs, without what the script does "
            "between them (--function measures one alone)"
        )
    notes.extend(dict.fromkeys(filter(None, (player.last.get("unit_why") for player in found.players))))
    replayed = max((player.last.get("replayed", 0) for player in found.players), default=0)
    if replayed:
        notes.append(
            f"the script ended before enough steps: up to {replayed} of the steps repeat one of its warm-up, "
            "on copies of its inputs, which are made between steps and in no step's time"
        )
    counts = [arm.step.samples for arm in arms if arm.step is not None]
    if counts and min(counts) < stats.MIN_SAMPLES * options.processes:
        notes.append(f"only {min(counts)} timed steps: let the script make more for a verdict")
    if not any(player.last.get("on_gpu") for player in found.players):
        notes.append("no GPU was used: CUDA graphs, device time and Triton kernels need one")
    return notes
