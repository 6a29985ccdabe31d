"""The terminal: what it says, in which order, within which width, and what it never lets through."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import replace
from unittest import mock

import pytest
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    FLOAT,
    HOSTILE,
    HUNDRED,
    IMPORTED_TRACE,
    ITEM,
    KILLED,
    LIBRARY,
    LIMIT,
    LOGGER,
    LONG_LINE,
    LOOP,
    OTHER_GUARD,
    PROJECT,
    RECOMPILES,
    SAMPLES,
    SIZE,
    SKIPS,
    SUGGESTIONS,
    VACUOUS,
)
from rich.cells import cell_len
from rich.text import Text

from breakscope import catalog
from breakscope.catalog.links import help_page
from breakscope.cli import output
from breakscope.diagnose import guards
from breakscope.render import terminal
from breakscope.report.model import (
    Compiled,
    Counts,
    Finding,
    FindingKind,
    Frame,
    Guard,
    Location,
    Report,
    Status,
    Timing,
)
from breakscope.view.excerpt import excerpt, expression_span
from breakscope.view.finding import guard_line
from breakscope.view.text import harmless, milliseconds, per_step, seconds, short_path

NEXT = (("breakscope report", "this again"), ("breakscope explain BS101", "why it breaks, and what to do"))
WIDTHS = (20, 33, 40, 60, 80, 120, 200)


def lines_of(report: Report, width: int = 120, **options: object) -> list[str]:
    return terminal.render(report, width=width, color=False, **options).splitlines()  # type: ignore[arg-type]


def heads(lines: list[str]) -> list[str]:
    """The codes of the findings, in order."""
    return [match[1] for line in lines if (match := re.match(r" *\d+  (BS\d+)  ", line))]


def only(finding: Finding) -> Report:
    return replace(CLEAN, findings=(finding,))


# ---- safe and within its width ----


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("all_findings", [False, True])
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_asked_for_and_no_control_code_is_shown(
    name: str, all_findings: bool, width: int
) -> None:
    text = terminal.render(SAMPLES[name], width=width, color=False, everything=all_findings, next_steps=NEXT)
    for line in text.removesuffix("\n").split("\n"):
        assert cell_len(line) <= width, line
        assert line == line.rstrip()
        assert not [one for one in line if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    text.encode("utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_changes_no_character(name: str) -> None:
    styled = terminal.render(SAMPLES[name], width=80, color=True, next_steps=NEXT)
    assert Text.from_ansi(styled).plain.rstrip("\n") == "\n".join(
        lines_of(SAMPLES[name], 80, next_steps=NEXT)
    )
    # Besides styles nothing steers the terminal.
    assert "\x1b" not in re.sub(r"\x1b\[[\d;]*m", "", styled)
    assert "\x1b[" in styled


@pytest.mark.parametrize("name", SAMPLES)
def test_links_are_of_ours_and_change_no_character(name: str) -> None:
    linked = terminal.render(SAMPLES[name], width=80, color=True, next_steps=NEXT, links=True)
    addresses = re.findall(r"\x1b\]8;id=\d+;([^\x1b]*)\x1b\\", linked)
    assert all(re.fullmatch(r"(https://[\w./-]+|file:///[\w./%~-]*)", address) for address in addresses)
    unlinked = re.sub(r"\x1b\]8;[^\x1b]*\x1b\\", "", linked)
    assert Text.from_ansi(unlinked).plain.rstrip("\n") == "\n".join(
        lines_of(SAMPLES[name], 80, next_steps=NEXT)
    )
    assert "\x1b" not in re.sub(r"\x1b\[[\d;]*m", "", unlinked)


def test_a_code_an_id_and_a_place_lead_to_their_pages_and_file() -> None:
    linked = terminal.render(only(BRANCH), width=120, color=True, links=True)
    leads = dict(re.findall(r"\x1b\]8;id=\d+;([^\x1b]+)\x1b\\(?:\x1b\[[\d;]*m)*([^\x1b]+)", linked))
    words = {words.split(":")[0]: address for address, words in leads.items()}
    assert words["GB0170"] == "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html"
    assert words["BS101"] == help_page("BS101")
    assert f"file://{BRANCH.location.file}" in words.values()


@pytest.mark.parametrize(
    ("said", "linked"),
    [
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"VTE_VERSION": "7006"}, True),
        ({"VTE_VERSION": "4601"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM_PROGRAM": "vscode", "NO_COLOR": "1"}, False),
        ({"TERM_PROGRAM": "vscode", "FORCE_HYPERLINK": "0"}, False),
        ({"TERM": "linux", "FORCE_HYPERLINK": "1"}, True),
    ],
    ids=str,
)
def test_links_are_for_terminals_that_show_them_and_never_for_pipes(
    said: dict[str, str], linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mock.patch.dict(os.environ, said, clear=True):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        assert output.wants_links() is linked
        monkeypatch.setattr("sys.stdout.isatty", lambda: False)
        os.environ["FORCE_COLOR"] = "1"
        assert not output.wants_links()


def test_colour_is_the_callers_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[1;31m" in terminal.render(VACUOUS, width=80, color=True)


def test_the_terminals_own_width_is_used_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert terminal.render(COSTS, width=None, color=False) == terminal.render(COSTS, width=50, color=False)


def test_hostile_text_is_shown_escaped() -> None:
    text = terminal.render(HOSTILE, width=200, color=False)
    assert r"a\x1b[31mred\x1b]0;title\x07\x00b\u202egnp.\u2066x\u200b\r\n" in text
    assert r"x = '\u202e' + a.item()" in text
    assert r"\udcff.py:3:5" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 漢字 é", "plain 漢字 é"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\tb\nc", r"a    b\nc"),
        ("\u202e\u2066\ufeff\xad", r"\u202e\u2066\ufeff\xad"),
        ("\ud800\U000e0041\U000e0100", r"\ud800\U000e0041\U000e0100"),
        ("\x85\u2028", r"\x85\u2028"),
    ],
)
def test_harmless(text: str, shown: str) -> None:
    assert harmless(text) == shown


# ---- the lines about the run ----


def test_the_header_says_what_was_run() -> None:
    header = " · ".join(lines_of(COSTS, 60)).split(" ·  · ")[0]
    assert header == (
        "breakscope scan train.py · torch 2.13.0 · cuda NVIDIA H200 · backend eager"
        " · compiled: Net (by breakscope) · ok · 4 steps, 8.1 s"
    )


def test_many_compiled_things_are_summed_up() -> None:
    targets = tuple(Compiled(f"net{number}", "script") for number in range(9))
    assert "compiled: net0 (by the script), net1 (by the script), net2 (by the script) and 6 more" in (
        " ".join(lines_of(replace(CLEAN, run=replace(CLEAN.run, targets=targets))))
    )


def test_totals_have_units() -> None:
    text = " · ".join(lines_of(COSTS))
    assert "3 sites, 29 crossings (7.2 a step) · 7 occurrences · 0 recompiles · 0 frames skipped" in text
    assert "4 regions, 40 ops · about 1.90 of 4.10 ms a step lost at breaks" in text


def test_steps_that_were_timed_and_lost_nothing_say_so() -> None:
    timed = replace(RECOMPILES, timing=Timing("measured gaps, 24 steps, backend eager", 24, step_ms=0.502588))
    assert "nothing of 0.50 ms a step lost at breaks" in " · ".join(lines_of(timed))
    untimed = replace(RECOMPILES, timing=Timing("not measured: every step compiled", 0))
    assert "cost not measured: every step compiled" in " · ".join(lines_of(untimed))


def test_a_clean_run_says_so_in_a_small_screen() -> None:
    assert terminal.render(CLEAN, width=80, color=False, next_steps=NEXT[:1]) == (
        "healthy: no graph break, no recompile, no skipped frame\n"
        "breakscope scan train.py · torch 2.13.0 · cuda NVIDIA H200 · backend eager\n"
        "compiled: Net (by breakscope) · ok · 4 steps, 8.1 s\n"
        "\n"
        "0 sites, 0 crossings · 0 occurrences · 0 recompiles · 0 frames skipped\n"
        "1 region, 12 ops\n"
        "\n"
        "next  breakscope report  this again\n"
    )


def test_a_vacuous_run_says_so_first_and_never_looks_clean() -> None:
    lines = lines_of(VACUOUS)
    assert lines[0].startswith("VACUOUS: nothing was compiled")
    assert "compiled: nothing" in "\n".join(lines)
    assert "no graph break" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("status", "code", "first"),
    [
        ("killed", -9, "KILLED with SIGKILL"),
        ("killed", 137, "KILLED with SIGKILL"),
        ("killed", 999, "KILLED with exit status 999"),
        ("killed", None, "KILLED with an unknown exit status"),
        ("script_error", 1, "FAILED with exit status 1"),
        ("script_error", -9999, "FAILED with exit status -9999"),
        ("timeout", 124, "TIMED OUT after 8.1 s"),
        ("interrupted", 130, "INTERRUPTED after 8.1 s"),
    ],
)
def test_a_run_that_did_not_end_well_says_so_first(status: Status, code: int | None, first: str) -> None:
    run = replace(CLEAN.run, status=status, exit_code=code)
    lines = lines_of(replace(CLEAN, run=run))
    assert lines[0] == f"{first}: the report holds what was seen up to then"
    assert "no graph break, no recompile, no skipped frame up to then" in lines
    assert lines_of(replace(VACUOUS, run=run))[0] == f"{first}: VACUOUS, nothing was compiled up to then"


def test_what_was_not_measured_is_never_a_zero() -> None:
    text = "\n".join(lines_of(KILLED))
    for words in ("crossings not measured", "steps not measured", "cost not measured"):
        assert words in text
    assert "6 occurrences, crossings not measured" in text
    assert "calls not measured" in "\n".join(lines_of(SKIPS))


def test_notes_and_what_could_not_be_placed_come_after_the_findings() -> None:
    lines = lines_of(replace(KILLED, run=replace(KILLED.run, notes=("a note",))), next_steps=NEXT)
    [note] = [number for number, line in enumerate(lines) if re.fullmatch(r"note +a note", line)]
    assert heads(lines[note:]) == []
    assert lines[note + 1] == "unattributed  1 event of Dynamo that could not be placed:"
    assert lines[note + 2] == "              graph_break [4/0]: no frame was given"
    assert [line[6:].split("  ")[0] for line in lines[-2:]] == [command for command, _ in NEXT]


def test_many_events_that_could_not_be_placed_are_counted() -> None:
    reconciliation = replace(KILLED.reconciliation, unattributed=KILLED.reconciliation.unattributed * 30)
    text = "\n".join(lines_of(replace(KILLED, reconciliation=reconciliation)))
    assert text.count("no frame was given") == 5
    assert "and 25 more … --all shows them" in text
    assert (
        "\n".join(lines_of(replace(KILLED, reconciliation=reconciliation), everything=True)).count("no frame")
        == 30
    )


# ---- findings ----


def test_the_worst_finding_comes_first() -> None:
    def counted(code: str, kind: FindingKind, occurrences: int, crossings: int | None) -> Finding:
        counts = Counts(occurrences, crossings)
        return replace(BRANCH, code=code, kind=kind, counts=counts, cost=None)

    findings = (
        counted("BS106", "recompile", 99, None),
        counted("BS105", "graph_break", 1, 3),
        counted("BS104", "graph_break", 2, 3),
        counted("BS103", "skip", 1, 3),
        counted("BS102", "graph_break", 1, 4),
        replace(BRANCH, counts=Counts(1, 1)),  # has a cost
    )
    assert heads(lines_of(replace(CLEAN, findings=findings))) == [
        "BS101", "BS102", "BS103", "BS104", "BS105", "BS106"
    ]  # fmt: skip


def test_one_finding_in_full() -> None:
    lines = lines_of(only(BRANCH), 80)
    start = lines.index(next(line for line in lines if "BS101" in line))
    assert lines[start : start + 6] == [
        " 1  BS101  warning  branch on a tensor's value              1.42 ms a step (35%)",
        "    model.py:41:12  Block.forward  24 crossings (6 a step), since step 0  GB0170",
        "       if y.abs().max() > 1e4:",
        "          ^^^^^^^^^^^^^^^^^^^",
        "    reason   Data-dependent branching",
        "    via      train.py:88 main > model.py:60 Net.forward > … 2 library frames",
    ]
    advice = " ".join(line.strip() for line in lines[start + 6 :])
    assert advice == f"do this  {catalog.entry('BS101').fix}"


def test_a_library_site_names_the_package_and_the_way_from_the_project() -> None:
    text = "\n".join(lines_of(only(LOGGER)))
    assert "    transformers/modeling_t5.py:1031:17 (library)  T5Stack.forward" in text
    assert "logger.warning_once( …" in text
    assert "    via      train.py:88 main\n" in text
    assert "since step 0" in text
    without_stack = replace(LOGGER, stack=())
    assert "    via      train.py:88 main\n" in "\n".join(lines_of(only(without_stack)))


def test_a_long_call_path_is_folded() -> None:
    frames = tuple(Frame(f"{PROJECT}/a.py", line, f"f{line}") for line in range(1, 21))
    finding = replace(BRANCH, stack=frames)
    assert (
        "via      a.py:1 f1 > a.py:2 f2 > … 15 more > a.py:18 f18 > a.py:19 f19 > a.py:20 f20"
        in "\n".join(lines_of(only(finding)))
    )
    assert "a.py:10 f10" in " ".join(lines_of(only(finding), everything=True))


def test_recompiles_show_the_guard_and_a_remedy_of_their_own() -> None:
    text = "\n".join(lines_of(RECOMPILES))
    assert "guard    x dim 0: 3 -> 4, 7, 9 (3 recompiles)\n" in text
    assert "guard    scale: 0.5 -> 0.25 (1 recompile)\n" in text
    assert "guard    ___check_something(L['self']) (1 recompile)\n" in text
    for finding in (SIZE, FLOAT, OTHER_GUARD):
        assert finding.guard
        assert f"do this  {guards.remedy(finding.guard)}" in text
    assert "         L['scale'] == 0.5\n" in "\n".join(lines_of(RECOMPILES, everything=True))


@pytest.mark.parametrize(
    ("guard", "line"),
    [
        (Guard("e", "x", "3", "4", "size", 1), "x dim 1: 3 -> 4"),
        (Guard("e", "x", "3", "4", "size", 1, ("3", "4", "5", "4")), "x dim 1: 3 -> 4, 5"),
        (Guard("e", "x", "8", "1", "stride", 0), "x stride of dim 0: 8 -> 1"),
        (Guard("e", "x", "float32", "float16", "dtype"), "x dtype: float32 -> float16"),
        (Guard("e", "self.n", "1", "2", "module_attribute"), "self.n: 1 -> 2"),
        (Guard("e\n", "self.n", None, "2", "module_attribute"), r"e\n"),
        (Guard("e", "self.n", "1", None, "module_attribute"), "e"),
        (Guard("e", None, "1", "2", "global_state"), "e"),
    ],
)
def test_guard_line(guard: Guard, line: str) -> None:
    assert guard_line(guard) == line


def test_a_skip_names_the_functions_that_run_eagerly() -> None:
    text = "\n".join(lines_of(SKIPS))
    assert "also     runs eagerly as a whole: Net.forward (model.py:12), 4 calls: graph break in loop" in text
    behind = replace(LOOP, skipped=(replace(LOOP.skipped[0], since=14),))
    told = "\n".join(lines_of(replace(SKIPS, findings=(behind,))))
    assert "also     runs eagerly after line 14: Net.forward (model.py:12), 4 calls" in told
    assert text.index(LOOP.code) < text.index(LIMIT.code)
    assert "scale: 4 -> 5\n             and 3 more guards\n" in text
    assert "scale: 7 -> 8" in "\n".join(lines_of(SKIPS, everything=True))


def test_a_rewrite_is_named_with_its_proof_and_a_refusal_with_its_reason() -> None:
    text = " ".join(" ".join(lines_of(SUGGESTIONS)).split())
    assert "do this torch.where instead of the branch (proved rewrite)" in text
    assert "(no rewrite: the value is used as a list index)" in text


def test_ranks_are_named_where_not_all_of_them_saw_it() -> None:
    assert "ranks 1, 3 only" in "\n".join(lines_of(IMPORTED_TRACE))
    everywhere = replace(IMPORTED_TRACE.findings[0], ranks=(0, 1, 2, 3))
    assert "only" not in "\n".join(lines_of(replace(IMPORTED_TRACE, findings=(everywhere,))))


def test_a_code_of_a_newer_breakscope_is_shown_with_dynamos_hint() -> None:
    text = "\n".join(lines_of(only(replace(BRANCH, code="BS987", hints=("Try this.", "Or that.")))))
    assert "BS987  warning  branch on a tensor's value" in text
    assert "do this  Try this." in text


def test_the_first_sentence_of_torchs_hint_ends_at_its_own_end() -> None:
    hint = "For a logging function (e.g. `print`), set torch._dynamo.config.some_setting. Please report it."
    text = " ".join(" ".join(lines_of(only(replace(BRANCH, hints=(hint,))))).split())
    assert "torch For a logging function (e.g. `print`), set torch._dynamo.config.some_setting." in text
    assert "Please report it" not in text


# ---- many findings ----


def test_a_hundred_findings_are_limited_and_the_rest_summed_up() -> None:
    lines = lines_of(HUNDRED, 80)
    assert "and 80 more: 40 BS104 in 20 files, 40 BS101 in 20 files … --all shows them" in lines
    assert sum("layers/layer_" in line for line in lines) == 20
    assert len(lines) < 160
    assert sum("layers/layer_" in line for line in lines_of(HUNDRED, everything=True)) == 100
    assert not any("--all" in line for line in lines_of(HUNDRED, everything=True))
    assert heads(lines_of(HUNDRED, limit=0)) == []
    assert any(line.startswith("and 100 more: ") for line in lines_of(HUNDRED, limit=0))


def test_findings_of_one_function_share_a_head_and_what_they_have_in_common() -> None:
    second = replace(
        BRANCH,
        location=replace(BRANCH.location, line=50, end_line=50),
        stack=(*BRANCH.stack[:-1], replace(BRANCH.stack[-1], line=50)),
        counts=Counts(1, 8),
        cost=None,
        reason="another",
    )
    first = replace(BRANCH, cost=None)
    lines = lines_of(replace(CLEAN, findings=(second, first)))
    assert heads(lines) == ["BS101"]
    text = "\n".join(lines)
    assert "2 sites, 32 crossings (8 a step)" in text
    assert text.index("model.py:41:12") < text.index("model.py:50:12")
    assert "24 crossings (6 a step)" in text
    assert "8 crossings (2 a step)" in text
    assert text.count("do this") == text.count("via  ") == 1
    assert text.count("reason") == 2


# ---- the source line ----


@pytest.mark.parametrize(
    ("source", "indent", "expression"),
    [
        ("if y.abs().max() > 1e4:", 8, "y.abs().max() > 1e4"),
        ("elif mask.any():", 4, "mask.any()"),
        ("return float(x.sum())", 4, "float(x.sum())"),
        ("x = a.item() + b.item()", 8, "b.item()"),
        ("x = a.item() + b.item()", 8, "a.item()"),
        ("x = a.item() + b.item()", 6, "b.item()"),
        ("with torch.no_grad(), lock:", 4, "lock"),
        ("for row in x.nonzero():", 2, "x.nonzero()"),
        ("except ValueError as error: print(error)", 4, "print(error)"),
        ("b.item(),", 12, "b.item()"),
        ("y.tolist())", 12, "y.tolist()"),
        ("scale=compute(x.item(),", 12, "x.item()"),
        ("値 = 最大.item() + 1", 4, "最大.item()"),
        ("x[mask] = 0", 4, "x[mask]"),
        ("raise ValueError(x)", 4, "raise ValueError(x)"),
        ("print(f'{x}')", 0, "print(f'{x}')"),
    ],
)
def test_the_caret_stands_under_the_exact_expression(source: str, indent: int, expression: str) -> None:
    start = source.index(expression)
    column = indent + start + 1
    location = Location("a.py", 1, column, 1, column + len(expression), source=source, indent=indent)
    assert expression_span(location) == (start, start + len(expression))
    shown = excerpt(location, 80)
    assert shown
    assert shown.mark == (cell_len(source[:start]), cell_len(expression))


@pytest.mark.parametrize(
    ("source", "column", "end_column", "indent"),
    [
        ("y = a.item()", 5, 13, None),  # how deep it was indented is not known
        ("x = y", 5, 5, 0),
        ("x = y", 2, 40, 0),
        ("x = y", 2, 3, 4),
    ],
)
def test_no_caret_is_better_than_a_wrong_one(
    source: str, column: int, end_column: int, indent: int | None
) -> None:
    location = Location("a.py", 1, column, 1, end_column, source=source, indent=indent)
    assert expression_span(location) is None
    shown = excerpt(location, 40)
    assert shown
    assert cell_len(shown.text) <= 40


def test_an_expression_of_several_lines_is_marked_to_the_end_of_its_first() -> None:
    location = Location("a.py", 3, 12, 5, 10, source="if torch.isinf(x).any() or (", indent=8)
    assert expression_span(location) == (3, 28)


@pytest.mark.parametrize("width", [8, 16, 24, 60, 500])
def test_a_long_line_is_cut_around_the_expression(width: int) -> None:
    shown = excerpt(LONG_LINE.findings[0].location, width)
    assert shown
    assert shown.mark
    offset, length = shown.mark
    assert cell_len(shown.text) == width
    assert shown.text.startswith("…")
    assert "x.sum().item()".startswith(shown.text[offset : offset + length])
    assert length == min(len("x.sum().item()"), width - 2)


def test_a_line_of_a_megabyte_is_cut_at_once() -> None:
    shown = excerpt(Location("a.py", 1, 1, 1, 3, source="x" * 1_000_000), 80)
    assert shown
    assert shown.text == "x" * 78 + "…"


def test_a_source_that_is_not_on_disk_is_left_out() -> None:
    lines = lines_of(only(replace(BRANCH, location=replace(BRANCH.location, source=None))))
    assert not any("^" in line for line in lines)


# ---- words ----


def test_paths_are_relative_to_the_project_or_to_the_package() -> None:
    folders = (f"{PROJECT}/src", PROJECT)
    assert short_path(f"{PROJECT}/src/net.py", folders) == "net.py"
    assert short_path(f"{PROJECT}/model.py", folders) == "model.py"
    assert short_path(f"{PROJECT}2/model.py", folders) == f"{PROJECT}2/model.py"
    assert short_path(f"{LIBRARY}/torch/nn/modules/linear.py", folders) == "torch/nn/modules/linear.py"
    assert short_path("<string>", ("/", "")) == "<string>"


def test_the_root_comes_before_the_folder_of_the_run() -> None:
    assert "    model.py:62:13" in "\n".join(lines_of(only(ITEM)))
    assert f"    {PROJECT}/model.py:62:13" not in "\n".join(lines_of(only(ITEM), root="/elsewhere"))
    assert "    project/model.py:62:13" in "\n".join(lines_of(only(ITEM), root="/home/ada"))


def test_numbers() -> None:
    assert [milliseconds(value) for value in (0, 0.03123, 1.42, 35.12, 1420.0)] == [
        "0", "0.0312", "1.42", "35.1", "1,420"
    ]  # fmt: skip
    assert [per_step(*pair) for pair in ((24, 4), (1, 4), (1, 1000), (5050, 4))] == [
        "6 a step", "0.2 a step", "under 0.1 a step", "1,262.5 a step"
    ]  # fmt: skip
    assert [seconds(value) for value in (0.04, 8.07, 192.4)] == ["0.0 s", "8.1 s", "3 min 12 s"]
