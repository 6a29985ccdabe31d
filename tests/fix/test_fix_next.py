"""What ``breakscope fix`` names as the next command, and how it shows a change without a diff."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import BRANCH, COSTS

from breakscope.cli.fix import _next
from breakscope.fix.outcomes import Fixed
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
