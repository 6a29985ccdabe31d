"""What ``breakscope fix`` names as the next command, and how it shows a change without a diff."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import BRANCH, COSTS

from breakscope.cli.fix import _next
from breakscope.fix.apply import as_written
from breakscope.fix.outcomes import Fixed, Written
from breakscope.fix.patch import Edit, Patch, Rewrite
from breakscope.render import fixes
from breakscope.report.model import Suggestion

SETTING = Rewrite((), "capture_scalar_outputs = True", config={"capture_scalar_outputs": True})
EDIT = Rewrite((Edit(0, 1, "y", "model.py"),), "y")


@pytest.mark.parametrize(
    ("rewrites", "written", "patches"),
    [([SETTING], False, False), ([SETTING, EDIT], False, True), ([EDIT], True, False)],
)
def test_patches_are_named_where_there_are_any(
    rewrites: list[Rewrite], written: bool, patches: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = replace(BRANCH, location=replace(BRANCH.location, owner="project"))
    accepted = [Patch((finding,), "a-rule", rewrite) for rewrite in rewrites]
    _next(COSTS, Fixed((), {}, None), accepted, Path(".breakscope/fixes"), written)
    said = capsys.readouterr().out
    assert "breakscope run --fixes .breakscope/fixes train.py" in said
    assert ("*.patch" in said) == patches


def test_a_change_without_a_diff_leaves_no_gap() -> None:
    option = Suggestion("dynamic-true", "dynamic=True", "", "proved", "1 -> 0 recompiles")
    shown = fixes.render(
        [(BRANCH, option), (BRANCH, replace(option))], everything=False, color=False, root="/"
    )
    assert "\n\n\n" not in shown


def test_patches_are_counted_and_what_goes_with_them_is_told_apart() -> None:
    """One patch, its two findings, and two more that are gone with it: not "4 proved"."""
    patch = Suggestion("branch-to-where", "torch.where", "+y", "proved", "equal")
    gone = [Suggestion("", "no rewrite of its own", "", "proved", "gone") for _ in range(2)]
    shown = fixes.render(
        [(BRANCH, one) for one in (patch, patch, *gone)], everything=False, color=False, root="/"
    )
    assert shown.splitlines()[-1] == "1 proved, 2 gone with them"


def test_one_change_that_answers_several_findings_is_shown_and_counted_once() -> None:
    option = Suggestion("dynamic-true", "dynamic=True", "-a\n+b", "unproved", "2 -> 0", {"consent": True})
    other = replace(option, why="3 -> 1")
    shown = fixes.render([(BRANCH, option), (BRANCH, other)], everything=True, color=False, root="/")
    assert shown.count("+b") == 1
    assert "3 -> 1\n   the same change as above" in shown
    assert shown.splitlines()[-1] == f"0 proved, 1 {option.label}"


def test_what_files_do_not_hold_is_said_and_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    finding = replace(BRANCH, location=replace(BRANCH.location, owner="project"))
    accepted = [Patch((finding,), "a-rule", rewrite) for rewrite in (SETTING, EDIT)]
    line = "torch._dynamo.config.capture_scalar_outputs = True"
    _next(
        COSTS,
        Fixed((), {}, None, written=Written(3, 1, 2, (finding,), (line,))),
        accepted,
        Path("fixes"),
        True,
    )
    said = capsys.readouterr().out
    assert "as written: 3 -> 2 sites (with breakscope run --fixes: 1)" in said
    assert f"left: {BRANCH.code}" in said
    assert f"add before the first compiled call: {line}" in said


def test_settings_and_files_of_libraries_are_not_among_what_is_written(tmp_path: Path) -> None:
    own, library = str(tmp_path / "model.py"), "/usr/lib/site-packages/net.py"
    finding = replace(BRANCH, location=replace(BRANCH.location, owner="project"))
    theirs = replace(BRANCH, location=replace(BRANCH.location, owner="library"))
    both = Rewrite((Edit(0, 1, "y", own),), "y", config={"capture_scalar_outputs": True})
    patches = [
        Patch((finding,), "a-rule", SETTING),
        Patch((finding,), "a-rule", both),
        Patch((theirs,), "a-rule", Rewrite((Edit(0, 1, "y", library),), "y")),
    ]
    assert as_written(patches, tmp_path) == [replace(patches[1], rewrite=replace(both, config={}))]
