"""What is said of compile times, in every format: how much, and what was compiled after warm-up."""

from __future__ import annotations

from breakscope.report.model import Compile, Report
from breakscope.view.text import and_more, count, harmless, seconds

# In the order in which they happen; what a newer report adds comes after.
PHASES = {
    "dynamo": "Dynamo",
    "aot_autograd": "AOTAutograd",
    "inductor": "Inductor",
    "triton": "kernels",
}
CACHES = {"aot_autograd": "AOTAutograd", "fx_graph": "FX graph", "triton": "Triton"}
_QUIET = 2  # steps without a compile that end the warm-up
_SHOWN_STEPS = 5


def late(report: Report) -> tuple[Compile, ...]:
    """Compiles after warm-up: after the first two steps in a row without one."""
    steps = sorted({one.step for one in report.compiles if one.step is not None})
    warm = 0
    for step in steps:
        if step - warm > _QUIET:
            break
        warm = step + 1
    return tuple(one for one in report.compiles if one.step is not None and one.step >= warm + _QUIET)


def compiled_late(report: Report) -> str | None:
    """``compiled again at step 412: 3 frames, 0.7 s``; None where nothing was compiled late."""
    found = late(report)
    if not found:
        return None
    again = sum(not one.compile_id.partition("_")[0].endswith("/0") for one in found)
    how = "compiled again" if again == len(found) else "compiled after warm-up" if again else "first compiled"
    steps = dict.fromkeys(one.step for one in found)
    where = and_more([f"{step:,}" for step in steps if step is not None], _SHOWN_STEPS)
    spent = sum(one.seconds or 0.0 for one in found)
    noun = "step" if len(steps) == 1 else "steps"
    return f"{how} at {noun} {where}: {count(len(found), 'frame')}, {seconds(spent)}"


def compiled(report: Report) -> str | None:
    """``4 compiles, 0.7 s``; None where no time is known."""
    known = [one.seconds for one in report.compiles if one.seconds is not None]
    return f"{count(len(known), 'compile')}, {seconds(sum(known))}" if known else None


def from_caches(report: Report) -> str | None:
    """``caches: FX graph 3 of 4, AOTAutograd 1 of 2 (1 bypassed)``; None where none was asked."""
    parts = []
    for cache, title in CACHES.items():
        answers = [answer for one in report.compiles if (answer := one.caches.get(cache)) is not None]
        if answers:
            passed = answers.count("bypass")
            aside = f" ({passed:,} bypassed)" if passed else ""
            parts.append(f"{title} {answers.count('hit'):,} of {len(answers):,}{aside}")
    return f"caches: {', '.join(parts)}" if parts else None


def answers(one: Compile) -> str:
    """``AOTAutograd bypassed: unsupported call; FX graph miss``: what each cache said of a compile."""
    told = []
    for cache, answer in one.caches.items():
        title = CACHES.get(cache, harmless(cache))
        why = harmless(one.bypassed.get(cache, ""))
        told.append(f"{title} bypassed: {why}" if answer == "bypass" else f"{title} {answer}")
    return "; ".join(told)


def each(report: Report) -> tuple[tuple[str, str], ...]:
    """A line for every compile of which the time is known: how long, by phase, and what the caches said."""
    lines: list[tuple[str, str]] = []
    for one in report.compiles:
        if one.seconds is None:
            continue
        where = f"[{harmless(one.compile_id)}] {harmless(one.function)}"
        when = "" if one.step is None else f" at step {one.step:,}"
        phases = ", ".join(
            f"{PHASES.get(phase, harmless(phase))} {seconds(spent)}" for phase, spent in one.phases.items()
        )
        said = answers(one)
        text = f"{where}{when}: {seconds(one.seconds)}" + (f" ({phases})" if phases else "")
        lines.append(("" if lines else "compiles", text + (f" · {said}" if said else "")))
    return tuple(lines)
