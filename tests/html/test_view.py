"""What the page says: the view that the template and the script pour in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import html_samples
import pytest
from html_samples import MODEL, PATCH
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    HUNDRED,
    IMPORTED_TRACE,
    ITEM,
    KILLED,
    LOGGER,
    PROJECT,
    RECOMPILES,
    SAMPLES,
    SIZE,
    SKIPS,
    SUGGESTIONS,
    VACUOUS,
)

from breakscope.catalog.links import help_page, torch_page
from breakscope.render.html import OnDisk, benchmark
from breakscope.render.html.diff import side_by_side
from breakscope.render.html.findings import FindingView, heats
from breakscope.render.html.highlight import spans
from breakscope.render.html.lines import WIDEST, lay_out
from breakscope.render.html.pictures import WIDTH
from breakscope.render.html.view import View, build
from breakscope.report.model import Counts, Region, Report, Timing, Unattributed


class Fake:
    """Files that are in no folder."""

    def __init__(self, **files: str) -> None:
        self.files = {f"{PROJECT}/{name}.py": text.split("\n") for name, text in files.items()}

    def lines(self, file: str, /) -> list[str]:
        return self.files.get(file, [])

    def line(self, file: str, number: int, /) -> str | None:
        lines = self.lines(file)
        return lines[number - 1] if 0 < number <= len(lines) else None


def finding(view: View, code: str) -> FindingView:
    return next(one for one in view.findings if one.code == code)


def coloured(text: str) -> list[tuple[str, str]]:
    lines = text.split("\n")
    return [(lines[i][a:b], kind) for i, row in enumerate(spans(lines)) for a, b, kind in row]


# ---- verdict and numbers ----


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_has_a_view(name: str) -> None:
    view = build(SAMPLES[name], None)
    assert view.verdict.sentence.endswith(".")
    assert len(view.findings) == len(SAMPLES[name].findings)
    assert len({one.anchor for one in view.findings}) == len(view.findings)


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (CLEAN, "Healthy: no graph break, no recompile, no skipped frame."),
        (VACUOUS, "Nothing was compiled, so this report says nothing about the script."),
        (COSTS, "About 1.90 ms of each step (46%) are lost at 2 places."),
        (RECOMPILES, "Guards failed 5 times, each a new compile."),
        (SKIPS, "1 site breaks the graph, and execution crosses it once a step."),
        (IMPORTED_TRACE, "1 site breaks the graph."),
    ],
)
def test_the_verdict_is_one_sentence(report: Report, sentence: str) -> None:
    assert build(report, None).verdict.sentence == sentence


def test_recompiles_that_are_expected_are_counted_and_said_to_be() -> None:
    first, *rest = RECOMPILES.findings
    report = replace(RECOMPILES, findings=(replace(first, expected="a second size"), *rest))
    meant = first.counts.occurrences
    said = f"Guards failed 5 times, each a new compile; {meant} of them {'is' if meant == 1 else 'are'} expected."
    assert build(report, None).verdict.sentence == said


def test_a_run_that_ended_badly_says_so_before_all_else() -> None:
    assert (
        build(KILLED, None).verdict.alarm
        == "The run was killed (exit status -9): this report holds what was seen up to then."
    )
    assert build(VACUOUS, None).verdict.alarm == "Vacuous: nothing was compiled."
    why = replace(VACUOUS.reconciliation, why="the script never imported torch")
    told = build(replace(VACUOUS, reconciliation=why), None).verdict
    assert told.rest == "The script never imported torch."
    assert build(CLEAN, None).verdict.alarm is None
    for code, ended in ((-9, "killed, SIGKILL"), (137, "killed, SIGKILL"), (999, "killed, exit status 999")):
        report = replace(KILLED, run=replace(KILLED.run, exit_code=code))
        assert dict(build(report, None).facts)["ended"] == ended


def test_what_was_not_measured_is_no_zero() -> None:
    cards = {card.unit: card.number for card in build(KILLED, None).cards}
    assert cards["crossings"] == "not measured"
    assert cards["time lost a step"] == "not measured"


def test_steps_that_were_timed_and_lost_nothing_are_shown_as_they_are() -> None:
    timing = Timing("measured gaps, 24 steps, backend eager", 24, step_ms=0.5, regions_ms=0.2)
    view = build(replace(RECOMPILES, timing=timing), None)
    assert {card.unit: card.number for card in view.cards}["of 0.50 ms a step lost"] == "0"
    assert view.bar.caption == "One step: 0 ms lost, of 0.50 ms"
    assert [part.amount for part in view.bar.parts] == ["0.20 ms", "0.30 ms"]
    assert dict(build(KILLED, None).findings[0].facts)["crossings"] == "not measured"


def test_the_worst_finding_stands_first_and_says_how_much_it_is() -> None:
    verdict = build(COSTS, None).verdict
    assert verdict.first is not None
    assert (verdict.first.code, verdict.weight) == ("BS101", "75% of all time lost")


def test_notes_reconciliation_and_what_could_not_be_placed_are_on_the_page() -> None:
    view = build(KILLED, None)
    assert view.events == (("graph_break", "4/0", "no frame was given\nmore"),)
    assert view.dynamo == (("graph_break", "7"),)
    assert build(VACUOUS, None).notes == ("the script never called a module",)
    many = replace(KILLED.reconciliation, unattributed=(Unattributed("x", None, "y"),) * 150)
    assert build(replace(KILLED, reconciliation=many), None).more_events == 50


# ---- pictures ----


def test_the_bar_of_a_step_adds_up_to_its_whole_width() -> None:
    bar = build(COSTS, None).bar
    assert [part.tone for part in bar.parts] == ["break", "break", "compiled"]
    assert sum(part.width for part in bar.parts) == pytest.approx(WIDTH)
    assert bar.parts[0].width == pytest.approx(346, abs=0.5)  # 34.6% of the step
    assert bar.parts[0].anchor == BRANCH.fingerprint


def test_costs_that_overlap_are_no_share_of_the_step() -> None:
    twice = replace(
        COSTS, findings=(BRANCH, replace(BRANCH, fingerprint="2"), replace(BRANCH, fingerprint="3"))
    )
    view = build(twice, None)
    assert view.verdict.sentence == "About 4.26 ms of each step are lost at 3 places."
    assert "some of them overlap" in (view.bar.missing or "")
    assert sum(part.width for part in view.bar.parts) == pytest.approx(WIDTH)


def test_without_timings_the_bar_shows_crossings_and_says_so() -> None:
    bar = build(SKIPS, None).bar
    assert "not measured" in (bar.missing or "")
    assert [(part.amount, part.share) for part in bar.parts] == [("4 crossings, 1 a step", "100%")]


def test_without_anything_to_draw_the_bar_says_why() -> None:
    bar = build(RECOMPILES, None).bar
    assert bar.parts == ()
    assert (
        bar.missing
        == "Time: not measured, this report has no timings; nor has it any crossings to show instead"
    )


def test_a_bar_of_many_parts_sums_up_the_small_ones() -> None:
    parts = build(HUNDRED, None).bar.parts
    assert parts[-1].text == "92 more findings"
    assert sum(part.width for part in parts) == pytest.approx(WIDTH)


def test_the_path_leads_through_regions_breaks_and_eager_functions(tmp_path: Path) -> None:
    path = build(html_samples.rich(tmp_path), None).path
    assert [(stop.kind, stop.title) for stop in path.stops[:6]] == [
        ("region", "Net.forward"),
        ("skip", "Net.forward"),
        ("region", "Block.forward"),
        ("break", "model.py:19:12"),
        ("region", "Block.forward"),
        ("region", "Net.forward"),
    ]
    block = path.stops[2]
    assert block.detail == "compiled region, 6 to 8 ops, compiled 2 times"
    assert (block.amount, block.length) == ("7.00 ms in 24 runs", WIDTH)
    assert path.stops[3].amount == "24 crossings, 1.42 ms a step"


def test_the_path_without_times_is_drawn_by_counts() -> None:
    regions = (Region("0/0", "f", 3, 10, None, None), Region("1/0", "g", 3, 5, None, None))
    path = build(replace(CLEAN, regions=regions), None).path
    assert path.scale == "bars: how often the region ran; times were not measured"
    assert [stop.length for stop in path.stops] == [WIDTH, WIDTH / 2]


def test_the_timeline_places_first_and_last_step() -> None:
    timeline = build(RECOMPILES, None).timeline
    assert [(track.first, track.last) for track in timeline.tracks] == [(375, 875)] * 3  # steps 1 and 3 of 4
    assert "still compiling at the last of 4 steps" in (timeline.verdict or "")
    quiet = replace(RECOMPILES, totals=replace(RECOMPILES.totals, steps=400))
    assert (
        build(quiet, None).timeline.verdict
        == "The last 396 steps of 400 ran without a new report from Dynamo."
    )
    assert [tick.step for tick in build(quiet, None).timeline.ticks] == [0, 100, 200, 300]


def test_without_steps_there_is_no_timeline_but_a_reason() -> None:
    assert (
        build(IMPORTED_TRACE, None).timeline.missing
        == "nothing to draw: this report does not say at which steps"
    )


# ---- findings ----


def test_heat_compares_like_with_like() -> None:
    assert heats([BRANCH, ITEM, LOGGER, SIZE]) == [4, 2, 0, 0]  # cost where there is any
    bare = [replace(BRANCH, cost=None), replace(LOGGER, cost=None), SIZE]
    assert heats(bare) == [4, 1, 4]  # else crossings with crossings, recompiles with recompiles


def test_a_guard_is_a_row_of_a_table() -> None:
    (row,) = finding(build(RECOMPILES, None), "BS201").guards
    assert (row.subject, row.cause, row.expected, row.actual, row.values) == (
        "x, dimension 0",
        "size",
        "3",
        "4",
        "4, 7, 9",
    )
    unknown = finding(build(RECOMPILES, None), "BS299").guards[0]
    assert (unknown.subject, unknown.expected) == ("not known", "not known")
    assert len(finding(build(SKIPS, None), "BS303").guards) == 8


def test_a_suggestion_carries_its_proof_and_the_patch_as_it_is(tmp_path: Path) -> None:
    repair = finding(build(html_samples.rich(tmp_path), OnDisk(lambda _file: True)), "BS101").repair
    assert repair is not None
    assert repair.patch == PATCH
    assert ("bitwise equal", "yes") in repair.evidence
    changed = [
        (row.old and row.old.line.text.strip(), row.new and row.new.line.text.strip())
        for row in repair.diff.rows
        if row.kind == "change"
    ]
    assert changed == [
        ("if y.abs().max() > 1e4:", "y = torch.where(y.abs().max() > 1e4, y.clamp(-1e4, 1e4), y)"),
        ("y = y.clamp(-1e4, 1e4)", None),
    ]


@pytest.mark.parametrize(
    ("summary", "advice"),
    [
        ("torch.where instead of the branch", "torch.where instead of the branch"),
        ("pass x.clone() instead of x", "Pass x.clone() instead of x"),
    ],
)
def test_advice_begins_with_a_capital_unless_it_begins_with_code(summary: str, advice: str) -> None:
    [first, *rest] = [
        one for one in SUGGESTIONS.findings if one.suggestion and one.suggestion.status == "proved"
    ]
    assert first.suggestion is not None
    told = replace(first, suggestion=replace(first.suggestion, summary=summary))
    view = build(replace(SUGGESTIONS, findings=(told, *rest)), None)
    assert finding(view, first.code).advice == advice


def test_long_advice_is_shown_to_its_end() -> None:
    advice = "Keep the value a tensor. " * 20 + "Or read it in the caller."
    view = build(replace(CLEAN, findings=(replace(BRANCH, advice=advice),)), None)
    assert view.findings[0].advice == advice


def test_a_refusal_keeps_its_reason_and_the_general_advice() -> None:
    refused = finding(build(SUGGESTIONS, None), "BS102")
    assert refused.repair is not None
    assert (refused.repair.status, refused.repair.why) == ("refused", "the value is used as a list index")
    assert refused.advice != refused.repair.summary


def test_an_unknown_code_of_a_newer_breakscope_shows_its_own_texts() -> None:
    newer = replace(CLEAN, findings=(replace(BRANCH, code="BS998"),))
    view = build(newer, None)
    assert view.codes == {}
    assert view.findings[0].advice == "Use `torch.cond` to express dynamic control flow."


def test_a_finding_leads_to_torchs_page_and_its_code_to_a_page() -> None:
    made = build(replace(CLEAN, findings=(BRANCH, replace(BRANCH, gb_id="javascript:alert(1)"))), None)
    assert [one.torch_page for one in made.findings] == [torch_page("GB0170"), None]
    assert made.codes["BS101"].page == help_page("BS101")


def test_two_findings_with_one_fingerprint_have_links_of_their_own() -> None:
    view = build(replace(CLEAN, findings=(BRANCH, BRANCH)), None)
    assert [one.anchor for one in view.findings] == [BRANCH.fingerprint, f"{BRANCH.fingerprint}~2"]


# ---- source ----


def test_the_exact_expression_is_marked_in_the_excerpt(tmp_path: Path) -> None:
    view = build(html_samples.rich(tmp_path), OnDisk(lambda _file: True))
    branch = finding(view, "BS101")
    (chunk,) = view.files[branch.file].chunks
    assert len(chunk.lines) == len(MODEL.split("\n"))  # a file of the project, whole
    (mark,) = branch.excerpt.marks
    assert chunk.lines[mark.line - chunk.first].text[mark.start : mark.end] == "y.abs().max() > 1e4"
    assert (branch.excerpt.first, branch.excerpt.last) == (branch.line - 5, branch.line + 5)


def test_an_expression_of_several_lines_is_marked_on_each(tmp_path: Path) -> None:
    view = build(html_samples.rich(tmp_path), OnDisk(lambda _file: True))
    item = finding(view, "BS102")
    (chunk,) = view.files[item.file].chunks
    marked = [chunk.lines[mark.line - chunk.first].text[mark.start : mark.end] for mark in item.excerpt.marks]
    assert marked == ["x.mean()", ".item()"]


def test_of_a_library_only_the_surroundings_are_carried() -> None:
    text = "\n".join(f"line_{number} = {number}" for number in range(1, 101))
    location = replace(
        BRANCH.location, line=50, end_line=50, source="line_50 = 50", owner="library", indent=0
    )
    report = replace(CLEAN, findings=(replace(BRANCH, location=location),))
    (file,) = build(report, Fake(model=text)).files
    assert [(chunk.first, len(chunk.lines)) for chunk in file.chunks] == [(45, 11)]
    assert file.note == "only the surroundings of its findings are in this page"


def test_a_file_that_changed_shows_the_stored_line_only() -> None:
    report = replace(CLEAN, findings=(BRANCH,))
    view = build(report, Fake(model="\n".join(["other = 1"] * 60)))
    excerpt = view.findings[0].excerpt
    assert (excerpt.state, excerpt.first) == ("changed", None)
    assert excerpt.stored is not None
    assert excerpt.stored.text == "if y.abs().max() > 1e4:"
    assert view.files[0].chunks == ()
    assert "not what the scan saw" in view.files[0].note


def test_a_file_that_cannot_be_read_shows_the_stored_line_only() -> None:
    excerpt = build(replace(CLEAN, findings=(BRANCH,)), Fake()).findings[0].excerpt
    assert excerpt.state == "unreadable"
    assert excerpt.stored is not None
    nothing = replace(BRANCH, location=replace(BRANCH.location, source=None))
    assert build(replace(CLEAN, findings=(nothing,)), None).findings[0].excerpt.stored is None


def test_a_device_or_a_pipe_is_not_read() -> None:
    disk = OnDisk(lambda _file: True)
    assert disk.lines("/dev/zero") == ()
    assert disk.line("/dev/zero", 1) is None
    assert disk.lines("a\0b") == ()


def test_a_page_carries_only_so_much_source(tmp_path: Path) -> None:
    view = build(html_samples.many(tmp_path, findings=400, files=200), OnDisk(lambda _file: True))
    carried = sum(len(line.text) for file in view.files for chunk in file.chunks for line in chunk.lines)
    whole = sum(len(path.read_text()) for path in tmp_path.glob("*.py"))
    assert carried < whole / 2


# ---- lines, colours, diffs, benchmarks ----


def test_colours_follow_the_language() -> None:
    assert coloured("@wrap\ndef f(self):  # why\n    return 'a' + str(2.5)") == [
        ("@", "a"),
        ("def", "k"),
        ("f", "d"),
        ("self", "b"),
        ("# why", "c"),
        ("return", "k"),
        ("'a'", "s"),
        ("str", "b"),
        ("2.5", "n"),
    ]
    assert coloured("match = 1") == [("1", "n")]
    assert ("match", "k") in coloured("match x:\n    case 1: pass")
    assert coloured("x.print") == []


def test_a_string_of_several_lines_is_coloured_on_each() -> None:
    assert coloured('x = """a\nb"""') == [('"""a', "s"), ('b"""', "s")]


@pytest.mark.parametrize(
    "text", ["def (", "'unclosed", "x = '''open\nmore", "  a\n b", "\0", "?? not python $$"]
)
def test_what_is_not_python_is_shown_all_the_same(text: str) -> None:
    lines = text.split("\n")
    assert len(spans(lines)) == len(lines)


def test_a_line_shows_hidden_characters_and_keeps_its_mark() -> None:
    raw = "x = '\u202e\t😀' + y.item()"
    start = raw.index("y.item()")
    line = lay_out(raw, spans([raw])[0], (start, start + 8))
    assert line.text == "x = '\\u202e    😀' + y.item()"
    assert line.mark is not None
    units = line.text.encode("utf-16-le")
    assert units[2 * line.mark[0] : 2 * line.mark[1]].decode("utf-16-le") == "y.item()"


def test_a_line_without_end_is_cut_around_its_expression() -> None:
    raw = "x = [" + "1, " * 5_000 + "y.item()" + ", 2" * 5_000 + "]"
    start = raw.index("y.item()")
    line = lay_out(raw, (), (start, start + 8))
    assert len(line.text) == WIDEST + 2
    assert line.mark is not None
    assert line.text[slice(*line.mark)] == "y.item()"


def test_a_diff_has_two_columns_and_gaps_between_hunks() -> None:
    diff = side_by_side(
        "--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n--- x\n+++ y\n c\n@@ -9 +9 @@\n-old\n\\ No newline at end of file\n+new\n"
    )
    shown = [(row.kind, row.old and row.old.line.text, row.new and row.new.line.text) for row in diff.rows]
    assert shown == [
        ("same", "a", "a"),
        ("change", "-- x", "++ y"),
        ("same", "c", "c"),
        ("gap", None, None),
        ("change", "old", "new"),
    ]
    assert [row.new.number for row in diff.rows if row.new] == [1, 2, 3, 9]
    assert side_by_side("no diff at all").rows == ()
    assert side_by_side("@@ -1,9 +1,9 @@\n cut").rows[0].kind == "same"


def test_a_benchmark_of_any_layout_is_shown() -> None:
    shown = benchmark.view(
        {
            "arms": [{"name": "eager", "ms": [2.0, 1.0, 4.0]}, {"name": "compiled", "ms": 1.0}],
            "note": {"a": 1},
            "x": None,
        }
    )
    (table,) = shown.tables
    assert table.head == ("name", "ms (median)")
    assert table.rows == (("eager", "2.00 (1.00 to 4.00, 3 samples)"), ("compiled", "1.00"))
    assert table.bars == (1_000, 500)
    assert shown.pairs == (("note", '{\n "a": 1\n}'),)
    assert build(CLEAN, None).benchmark is None


def test_counts_only_reports_sort_by_crossings() -> None:
    few = replace(BRANCH, cost=None, counts=Counts(1, 2), fingerprint="few")
    often = replace(BRANCH, cost=None, counts=Counts(1, 90), fingerprint="often")
    assert [one.anchor for one in build(replace(CLEAN, findings=(few, often)), None).findings] == [
        "often",
        "few",
    ]
