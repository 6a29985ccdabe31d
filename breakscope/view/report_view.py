"""What the terminal shows of a report, before any layout: order, grouping, words.

Every text in a view is harmless and without a line break; every number has its unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscope.diagnose.outcome import killer
from breakscope.report.model import Finding, Report, Run, Timing
from breakscope.report.ranking import is_open, worst_first
from breakscope.view import gain, ranks
from breakscope.view.compiling import compiled, compiled_late, each, from_caches
from breakscope.view.finding import Group, Maker, severity
from breakscope.view.following import following
from breakscope.view.text import (
    NOT_MEASURED,
    and_more,
    count,
    device_words,
    first_line,
    harmless,
    milliseconds,
    per_step,
    seconds,
    short_path,
)

_SHOWN_NAMES = 3
_MUCH = 0.1  # of a step: what guards take is shown from here on
_SHOWN_ITEMS = 5
_SHOWN_DIVERGENCES = 8
_SHOWN_CLOSED = 8
_GRAVITY = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class View:
    """A whole screen.

    Attributes:
        alarm: why the rest must not be taken at face value; stands in the first line.
        verdict: one sentence where there is nothing to be done; the first line, where there is no alarm.
        more: one line about the findings that are not shown.
        closed: (label, text) lines of the findings that nothing is to be done about, below a line; empty
            where they are shown in full, as ``closed_groups``.
        ranks: (label, text) lines on how the ranks of a job differ, before the findings; the first one sums
            up. Empty for one process.
        notes: (label, text) lines after the findings.
    """

    alarm: str | None
    header: tuple[str, ...]
    totals: tuple[str, ...]
    verdict: str | None
    groups: tuple[Group, ...]
    more: str | None
    notes: tuple[tuple[str, str], ...]
    ranks: tuple[tuple[str, str], ...] = ()
    closed: tuple[tuple[str, str], ...] = ()
    closed_groups: tuple[Group, ...] = ()


def build(report: Report, *, limit: int, all: bool, root: str | None) -> View:  # noqa: A002 - the flag's name
    """The view of a report, at most ``limit`` findings of it unless ``all``."""
    folders = tuple(folder for folder in (root, report.run.cwd) if folder)
    open_, closed = _parted(report.findings)
    links = following(open_)
    listed = open_ if all else links.causes
    shown, hidden = _limited(_grouped(listed, {} if all else links.of), None if all else max(limit, 0))
    maker = Maker(report, folders, all, links)
    return View(
        alarm=_alarm(report),
        header=_header(report, folders),
        totals=_totals(report),
        verdict=_verdict(report),
        groups=tuple(
            maker.group(number, *group)
            for number, group in zip(gain.ranks([whole for whole, _ in shown]), shown, strict=True)
        ),
        more=_more(hidden),
        notes=_notes(report, all),
        ranks=_ranks(report, folders, all),
        closed=() if all else _closed(closed, maker),
        closed_groups=tuple(maker.group(0, group, group) for group in _grouped(closed, {})) if all else (),
    )


def _ranks(report: Report, folders: tuple[str, ...], all: bool) -> tuple[tuple[str, str], ...]:  # noqa: A002
    view = ranks.build(report, folders, None if all else _SHOWN_DIVERGENCES)
    if view is None:
        return ()
    lines = [("ranks", view.sentence)]
    for line in view.lines:
        lines.append((line.label, f"{line.text} ({line.where})" if line.where else line.text))
        if line.each:
            lines.append(("", line.each))
    if view.left_out:
        lines.append(("", f"and {view.left_out:,} more … --all shows them"))
    return (*lines, *(("", text) for text in view.unknown))


# ---- what is shown, and in which order ----


def _parted(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """What something is to be done about, and the rest."""
    return [finding for finding in findings if is_open(finding)], [
        finding for finding in findings if not is_open(finding)
    ]


def _closed(findings: Sequence[Finding], maker: Maker) -> tuple[tuple[str, str], ...]:
    lines: list[tuple[str, str]] = []
    for label, part in (
        ("expected", [finding for finding in findings if finding.intended is None]),
        ("meant", [finding for finding in findings if finding.intended is not None]),
    ):
        shown = [maker.line(one) for one in sorted(part, key=worst_first)[:_SHOWN_CLOSED]]
        if len(shown) < len(part):
            shown.append(f"and {len(part) - len(shown):,} more … --all shows them")
        lines += [(label if index == 0 else "", text) for index, text in enumerate(shown)]
    return tuple(lines)


def _grouped(findings: Sequence[Finding], with_it: Mapping[str, Sequence[Finding]]) -> list[list[Finding]]:
    """Groups, worst first; what follows from a finding counts with it."""
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for finding in findings:
        place = finding.location
        # Without a function nothing but the line says what belongs together.
        key = (finding.code, finding.effect, place.file, place.function or f"line {place.line}")
        groups.setdefault(key, []).append(finding)
    ordered = [sorted(group, key=worst_first) for group in groups.values()]

    def whole(group: list[Finding]) -> list[Finding]:
        return [*group, *(one for cause in group for one in with_it.get(cause.fingerprint, ()))]

    ordered.sort(key=lambda group: worst_first(*whole(group)))
    # Among those whose costs cannot be told apart, the graver first, so that another run shows the same.
    equal = zip(gain.ranks(ordered), ordered, strict=True)
    return [group for _, group in sorted(equal, key=lambda one: (one[0], _GRAVITY[severity(one[1][0])]))]


def _limited(
    groups: list[list[Finding]], limit: int | None
) -> tuple[list[tuple[list[Finding], list[Finding]]], list[Finding]]:
    """(whole group, its findings to show) of each group to show, and the findings that are not."""
    shown, hidden = [], []
    left = sum(map(len, groups)) if limit is None else limit
    for group in groups:
        part, rest = group[:left], group[left:]
        left -= len(part)
        hidden += rest
        if part:
            shown.append((group, part))
    return shown, hidden


def _more(hidden: list[Finding]) -> str | None:
    if not hidden:
        return None
    codes = Counter(finding.code for finding in hidden)
    files = {code: {one.location.file for one in hidden if one.code == code} for code in codes}
    kinds = (
        f"{number:,} {harmless(code)} in {count(len(files[code]), 'file')}"
        for code, number in codes.most_common()
    )
    return f"and {len(hidden):,} more: {and_more(kinds, _SHOWN_ITEMS)} … --all shows them"


# ---- the lines about the run ----


def _alarm(report: Report) -> str | None:
    ended = _ended_badly(report.run)
    if report.reconciliation.vacuous:
        if ended:
            return f"{ended}{_because(report)}: VACUOUS, nothing was compiled up to then"
        if report.reconciliation.why is not None:
            return f"VACUOUS: nothing was compiled: {harmless(report.reconciliation.why)}"
        if report.findings:
            return "VACUOUS: nothing was compiled: every function that Dynamo tried runs eagerly"
        return "VACUOUS: nothing was compiled, so this report says nothing about the script"
    return f"{ended}{_because(report)}: the report holds what was seen up to then" if ended else None


def _because(report: Report) -> str:
    return " because of finding 1" if any(finding.effect == "ended" for finding in report.findings) else ""


def _ended_badly(run: Run) -> str | None:
    match run.status:
        case "ok" | "unknown":
            return None
        case "script_error":
            return f"FAILED with {_exit(run.exit_code)}"
        case "killed":
            return f"KILLED with {killer(run.exit_code) or _exit(run.exit_code)}"
        case "timeout":
            return f"TIMED OUT after {seconds(run.duration_s)}"
        case "interrupted":
            return f"INTERRUPTED after {seconds(run.duration_s)}"


def _exit(code: int | None) -> str:
    return "an unknown exit status" if code is None else f"exit status {code}"


def _header(report: Report, folders: tuple[str, ...]) -> tuple[str, ...]:
    run = report.run
    backend = f"backend {harmless(run.backend)}" + (f", mode {harmless(run.mode)}" if run.mode else "")
    imported = run.status == "unknown"
    status = "ending not known" if imported else run.status.replace("_", " ")
    if run.status == "ok" and run.exit_code:
        status += f", exit status {run.exit_code}"
    duration = f"{count(report.totals.steps, 'step')}, {seconds(run.duration_s)}"
    return (
        f"breakscope {'import' if imported else 'scan'} {short_path(run.script, folders)}",
        f"torch {harmless(run.torch)}" if run.torch else "torch version not known",
        _device(run),
        backend,
        *([count(run.world_size, "rank")] if run.world_size > 1 else []),
        *([f"compiled: {_compiled(run)}"] if run.compiled or not imported else []),
        status,
        duration,
    )


def _device(run: Run) -> str:
    return "device not known" if run.device is None else harmless(device_words(run.device))


def _compiled(run: Run) -> str:
    if run.targets:
        names = [
            f"{harmless(aim.name)} (by {'breakscope' if aim.by == 'breakscope' else f'the {aim.by}'})"
            for aim in run.targets
        ]
    else:
        names = [harmless(name) for name in run.compiled]
    return and_more(dict.fromkeys(names), _SHOWN_NAMES) or "nothing"


def _totals(report: Report) -> tuple[str, ...]:
    totals = report.totals
    crossings = count(totals.crossings, "crossing")
    if totals.crossings and totals.steps:
        crossings += f" ({per_step(totals.crossings, totals.steps)})"
    return (
        f"{count(totals.sites, 'site')}, {crossings}",
        count(totals.occurrences, "occurrence"),
        count(totals.recompiles, "recompile"),
        f"{count(totals.skips, 'frame')} skipped",
        f"{count(totals.regions, 'region')}, {count(totals.ops, 'op')}",
        *filter(None, (_launches(report),)),
        *([_lost(report)] if report.findings else []),
        *filter(None, (_guards(report), compiled(report), from_caches(report), compiled_late(report))),
    )


def _launches(report: Report) -> str | None:
    """How torn the compiled code is: each run of a graph is a launch of its own."""
    calls = [region.calls for region in report.regions if region.calls is not None]
    steps = report.totals.steps
    if not report.totals.sites or not calls or not steps or len(calls) < len(report.regions):
        return None
    made = per_step(sum(calls), steps).replace(" a step", "")
    return f"{made} graph launch{'' if made == '1' else 'es'} a step"


def _guards(report: Report) -> str | None:
    """How long the way to the first compiled code takes, where it is no small part of a step."""
    timing = report.timing
    if timing is None or timing.guard_us is None or not timing.step_ms:
        return None
    ms = timing.guard_us / 1e3
    return f"guards {milliseconds(ms)} ms a step" if ms >= _MUCH * timing.step_ms else None


def step_ms(report: Report) -> float | None:
    """How long a steady step takes, in milliseconds; in older reports it follows from the largest cost."""
    timing = report.timing
    if timing is not None and timing.steady_ms and timing.steady_steps and gain.is_uneven(report):
        return timing.steady_ms / timing.steady_steps
    if report.timing is not None and report.timing.step_ms is not None:
        return report.timing.step_ms
    costs = [finding.cost for finding in report.findings if finding.cost and finding.cost.share]
    worst = max(costs, key=lambda cost: cost.ms_per_step, default=None)
    return worst.ms_per_step / worst.share if worst and worst.share else None


def lost_ms(report: Report) -> float | None:
    """What the findings take out of a steady step, in milliseconds; None where steps were not timed."""
    costs = [gain.average_ms(report, finding.cost) for finding in report.findings if finding.cost]
    # Of several processes, those that were not timed may be the ones that break.
    timed = all(map(_is_timed, [rank.timing for rank in report.ranks] or [report.timing]))
    return sum(costs) if costs or timed else None


def _is_timed(timing: Timing | None) -> bool:
    return timing is not None and timing.step_ms is not None


def why_untimed(report: Report) -> str | None:
    """Why steps were not timed; None where the report does not say."""
    untimed = sum(not _is_timed(rank.timing) for rank in report.ranks)
    if 0 < untimed < len(report.ranks):
        return f"{untimed} of {len(report.ranks)} processes {'was' if untimed == 1 else 'were'} not timed"
    return report.timing.method.removeprefix(f"{NOT_MEASURED}: ") if report.timing else None


def _lost(report: Report) -> str:
    """How much of a step is lost."""
    lost, step = lost_ms(report), step_ms(report)
    if lost is None:
        why = why_untimed(report)
        return f"cost {NOT_MEASURED}" + (f": {harmless(why)}" if why else "")
    if step and not any(finding.cost and is_open(finding) for finding in report.findings):
        return f"nothing of {milliseconds(step)} ms a step lost at breaks"
    if (gains := gain.faster(report)) is not None:
        return gains
    of = f" of {milliseconds(step)}" if step else ""
    return f"about {milliseconds(lost)}{of} ms a step lost at breaks"


def _verdict(report: Report) -> str | None:
    if any(map(is_open, report.findings)) or report.reconciliation.vacuous:
        return None
    return nothing_open(report)


def nothing_open(report: Report) -> str:
    """What a report with nothing to act on found; that it is healthy, where nothing is left to be asked."""
    meant = sum(finding.kind not in ("recompile", "compile") for finding in report.findings)
    breaks = f"{count(meant, 'graph break')} that {_are(meant)} meant to be" if meant else "no graph break"
    times = report.totals.recompiles
    recompiles = f"{count(times, 'recompile')} that {_are(times)} expected" if times else "no recompile"
    found = f"{breaks}, {recompiles}, no skipped frame"
    return f"healthy: {found}" if is_healthy(report) else f"{found} up to then"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def is_healthy(report: Report) -> bool:
    """Whether a run came to its end, compiled something, and left nothing to be done or to be asked."""
    run, seen = report.run, report.reconciliation
    ended = run.status in ("ok", "unknown") and not run.exit_code
    doubts = seen.vacuous or seen.unattributed or report.divergences
    return ended and not doubts and not any(map(is_open, report.findings))


def _notes(report: Report, all: bool) -> tuple[tuple[str, str], ...]:  # noqa: A002 - the flag's name
    notes = [("note", harmless(note)) for note in report.run.notes]
    unattributed = report.reconciliation.unattributed
    if unattributed:
        notes.append(
            ("unattributed", f"{count(len(unattributed), 'event')} of Dynamo that could not be placed:")
        )
    shown = unattributed if all else unattributed[:_SHOWN_ITEMS]
    for one in shown:
        place = f" [{harmless(one.compile_id)}]" if one.compile_id else ""
        notes.append(("", f"{harmless(one.kind)}{place}: {first_line(one.text)}"))
    if len(shown) < len(unattributed):
        notes.append(("", f"and {len(unattributed) - len(shown):,} more … --all shows them"))
    return (*each(report), *notes) if all else tuple(notes)
