"""Everything that the page says, as plain data: the template and the page's script only pour it in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscope import catalog
from breakscope.catalog.links import help_page
from breakscope.diagnose.outcome import killer
from breakscope.render.html import benchmark as bench
from breakscope.render.html.findings import FindingView, Maker, heats
from breakscope.render.html.pictures import Bar, Label, Path, path, step_time
from breakscope.render.html.produced import Produced, ReadArtifact, produced
from breakscope.render.html.ranks import RanksSection, ranks_section
from breakscope.render.html.sources import Chunk, Excerpt, File, Shelf, SourceReader
from breakscope.render.html.steps import CompileView, StepsView, compile_view, steps_view
from breakscope.render.html.texts import block, name
from breakscope.render.html.timeline import Timeline, timeline
from breakscope.render.html.verdict import Card, Verdict, cards, verdict
from breakscope.report.model import Finding, Report, Run
from breakscope.report.ranking import worst_first
from breakscope.view.following import following
from breakscope.view.report_view import step_ms
from breakscope.view.text import count, device_words, first_line, seconds

_MOST_EVENTS = 100


@dataclass(frozen=True, slots=True)
class Code:
    """What the catalog says about a code, once for all findings that have it."""

    title: str
    why: str
    fix: str
    example: str
    page: str


@dataclass(frozen=True, slots=True)
class FileView:
    """One file of the source view.

    Attributes:
        note: why less than the file is shown; empty where all of it is.
        findings: indexes of the findings in it, by line.
        heat: of its worst finding.
    """

    path: str
    owner: str
    note: str
    findings: tuple[int, ...]
    heat: int
    amount: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The whole page.

    Attributes:
        facts: what was run where, as (label, value).
        dynamo: Dynamo's own counters, for reconciliation.
        events: what could not be placed, as (kind, compile id, text); ``more_events`` are not shown.
        findings: worst first.
        compared: whether the findings are told apart into new and known ones.
        ranks: in what the ranks of a job differ; None for one process.
        produced: what compiles produced; None where nothing was kept.
    """

    title: str
    script: str
    tool: str
    verdict: Verdict
    cards: tuple[Card, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    bar: Bar
    path: Path
    timeline: Timeline
    steps: StepsView
    compiles: CompileView
    benchmark: bench.BenchmarkView | None
    dynamo: tuple[tuple[str, str], ...]
    events: tuple[tuple[str, str, str], ...]
    more_events: int
    findings: tuple[FindingView, ...]
    files: tuple[FileView, ...]
    codes: dict[str, Code]
    compared: bool
    ranks: RanksSection | None = None
    produced: Produced | None = None


def build(
    report: Report,
    reader: SourceReader | None,
    known: frozenset[str] | None = None,
    read_artifact: ReadArtifact | None = None,
) -> View:
    """The view of a report, with what the readers can give; new is what is not in ``known``."""
    ordered = sorted(report.findings, key=worst_first)
    maker = Maker(report, (report.run.cwd,), known, following(report.findings))
    heat = heats(ordered)
    anchors = _anchors(ordered)
    labels = {
        finding.fingerprint: Label(
            anchor,
            maker.place(finding),
            maker.short(finding),
            name(first_line(finding.title)),
            name(finding.code),
        )
        for finding, anchor in zip(ordered, anchors, strict=True)
    }
    files, found, excerpts = _read(ordered, reader)
    findings = tuple(
        maker.view(finding, anchor, heat[index], found[index], excerpts[index])
        for index, (finding, anchor) in enumerate(zip(ordered, anchors, strict=True))
    )
    unattributed = report.reconciliation.unattributed
    script = maker.path(report.run.script)
    return View(
        title=f"{script} · breakscope",
        script=script,
        tool=f"{name(report.tool.name)} {name(report.tool.version)}",
        verdict=verdict(report, findings),
        cards=cards(report, step_ms(report)),
        facts=tuple(_facts(report, maker)),
        notes=tuple(block(note) for note in report.run.notes),
        bar=step_time(report, labels),
        path=path(report, labels),
        timeline=timeline(report, ordered, labels),
        steps=steps_view(report),
        compiles=compile_view(report),
        benchmark=bench.view(report.benchmark) if report.benchmark else None,
        dynamo=tuple((name(key), f"{value:,}") for key, value in report.reconciliation.dynamo.items()),
        events=tuple(
            (name(one.kind), name(one.compile_id or ""), block(one.text))
            for one in unattributed[:_MOST_EVENTS]
        ),
        more_events=max(0, len(unattributed) - _MOST_EVENTS),
        findings=findings,
        files=tuple(_file(file, index, findings, found, maker) for index, file in enumerate(files)),
        codes=_codes(ordered),
        compared=known is not None,
        ranks=ranks_section(report, (report.run.cwd,), anchors={f: one.anchor for f, one in labels.items()}),
        produced=produced(report, read_artifact, ordered, [file.file for file in files]),
    )


def _anchors(findings: Sequence[Finding]) -> list[str]:
    """Fingerprints as they may stand in a link; a name that comes twice is numbered."""
    seen: dict[str, int] = {}
    anchors = []
    for finding in findings:
        anchor = name(finding.fingerprint).replace(" ", "_")
        seen[anchor] = seen.get(anchor, 0) + 1
        anchors.append(anchor if seen[anchor] == 1 else f"{anchor}~{seen[anchor]}")
    return anchors


def _read(
    findings: Sequence[Finding], reader: SourceReader | None
) -> tuple[list[File], list[int], list[Excerpt]]:
    """The files, and for each finding the index of its file and its excerpt."""
    by_file: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        by_file.setdefault(finding.location.file, []).append(index)
    shelf = Shelf(reader)
    files: list[File] = []
    found = [0] * len(findings)
    excerpts: dict[int, Excerpt] = {}
    for file, indexes in by_file.items():
        read, parts = shelf.read(file, [findings[index] for index in indexes])
        for index, part in zip(indexes, parts, strict=True):
            found[index] = len(files)
            excerpts[index] = part
        files.append(read)
    return files, found, [excerpts[index] for index in range(len(findings))]


_NOTES = {
    "read": "only the surroundings of its findings are in this page",
    "changed": "the file is not what the scan saw; only the lines that the report stored are shown",
    "unreadable": "the file could not be read here; only the lines that the report stored are shown",
    "left_out": "the page holds no more source; only the lines that the report stored are shown",
}


def _file(
    file: File, index: int, findings: Sequence[FindingView], found: Sequence[int], maker: Maker
) -> FileView:
    inside = [number for number, at in enumerate(found) if at == index]
    inside.sort(key=lambda number: (findings[number].line, findings[number].column))
    here = [findings[number] for number in inside]
    crossings = sum(finding.crossings or 0 for finding in here)
    amount = count(len(here), "finding") + (f", {count(crossings, 'crossing')}" if crossings else "")
    return FileView(
        path=maker.path(file.file),
        owner=file.owner,
        note="" if file.whole else _NOTES[file.state],
        findings=tuple(inside),
        heat=max(finding.heat for finding in here),
        amount=amount,
        chunks=file.chunks,
    )


def _codes(findings: Sequence[Finding]) -> dict[str, Code]:
    known = {}
    for code in sorted({finding.code for finding in findings}):
        entry = catalog.find(code)
        if entry is None:  # a newer breakscope wrote the report; its own texts stand in the finding
            continue
        known[code] = Code(entry.title, entry.why, entry.fix, entry.more, help_page(code))
    return known


def _facts(report: Report, maker: Maker) -> list[tuple[str, str]]:
    run = report.run
    # An imported trace and some launchers give the script as the first argument, as sys.argv has it.
    arguments = run.argv[1:] if run.argv[:1] == (run.script,) else run.argv
    facts = [
        ("script", name(" ".join((run.script, *arguments)))),
        ("in", name(run.cwd)),
    ]
    facts.append(("ended", _ended(run)))
    facts.append(("took", f"{seconds(run.duration_s)}, {count(report.totals.steps, 'step')}"))
    facts.append(("started", name(run.started_at)))
    facts.append(("compiled", _compiled(run, maker)))
    facts.append(("backend", name(run.backend) + (f", mode {name(run.mode)}" if run.mode else "")))
    facts.append(("device", _device(run)))
    versions = [f"Python {name(run.python)}", f"torch {name(run.torch)}" if run.torch else "torch not known"]
    versions += [f"triton {name(run.triton)}"] if run.triton else []
    facts.append(("versions", ", ".join(versions)))
    if run.world_size > 1:
        facts.append(("ranks", f"{run.world_size:,}"))
    return facts


def _ended(run: Run) -> str:
    words = {
        "ok": "ok",
        "script_error": "the script failed",
        "timeout": "stopped at the time limit",
        "interrupted": "interrupted",
        "killed": "killed",
        "unknown": "how it ended is not known",
    }[run.status]
    if run.exit_code is None or (run.status == "ok" and run.exit_code == 0):
        return words
    signal = killer(run.exit_code) if run.status == "killed" else None
    return f"{words}, {signal or f'exit status {run.exit_code}'}"


def _compiled(run: Run, maker: Maker) -> str:
    if not run.targets:
        return name(", ".join(run.compiled)) or "nothing"
    names = []
    for target in run.targets[:20]:
        by = "breakscope" if target.by == "breakscope" else f"the {target.by}"
        where = f" at {maker.path(target.file, target.line)}" if target.file else ""
        names.append(f"{name(target.name)} (by {by}{where})")
    more = len(run.targets) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _device(run: Run) -> str:
    return "not known" if run.device is None else name(device_words(run.device, joint=", "))
