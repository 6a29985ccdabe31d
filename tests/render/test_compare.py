"""Two reports: each finding has one fate, and nothing is called fixed that was not looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from report_samples import BRANCH, CLEAN, COSTS, FLOAT, ITEM, KILLED, LOGGER, LOOP, SAMPLES, SIZE, VACUOUS

from breakscope.diagnose.compare import Change, Comparison, compare
from breakscope.report.model import Cost, Counts, Finding, Report

LISTS = ("new", "fixed", "unseen", "changed", "moved", "unchanged")


def report(*findings: Finding, steps: int | None = 4, **run: Any) -> Report:
    totals = replace(CLEAN.totals, steps=steps)
    return replace(CLEAN, findings=findings, totals=totals, run=replace(CLEAN.run, **run))


def at(finding: Finding, line: int, column: int | None = 12) -> Finding:
    return replace(finding, location=replace(finding.location, line=line, column=column))


def fates(comparison: Comparison) -> dict[str, list[str]]:
    """Codes by list; lists that are empty are left out."""
    found = {}
    for name in LISTS:
        findings = [getattr(one, "new", one) for one in getattr(comparison, name)]
        if findings:
            found[name] = [one.code for one in findings]
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_is_unchanged_against_itself(name: str) -> None:
    same = compare(SAMPLES[name], SAMPLES[name])
    assert len(same.unchanged) == len(SAMPLES[name].findings)
    assert fates(same).keys() <= {"unchanged"}
    assert same.settings == ()


@pytest.mark.parametrize("old", SAMPLES)
@pytest.mark.parametrize("new", ["costs", "skips", "vacuous", "hundred"])
def test_every_finding_is_in_one_list(old: str, new: str) -> None:
    found = compare(SAMPLES[old], SAMPLES[new])
    pairs = len(found.changed) + len(found.moved) + len(found.unchanged)
    assert pairs + len(found.fixed) + len(found.unseen) == len(SAMPLES[old].findings)
    assert pairs + len(found.new) == len(SAMPLES[new].findings)


def test_new_fixed_moved_and_unchanged() -> None:
    found = compare(report(BRANCH, ITEM, LOGGER), report(at(BRANCH, 99), LOGGER, LOOP))
    assert fates(found) == {"new": ["BS301"], "fixed": ["BS102"], "moved": ["BS101"], "unchanged": ["BS104"]}


def test_another_checkout_or_column_is_no_new_finding() -> None:
    elsewhere = replace(BRANCH, location=replace(BRANCH.location, file="/ci/work/model.py"))
    assert fates(compare(report(BRANCH), report(elsewhere))) == {"unchanged": ["BS101"]}
    assert fates(compare(report(BRANCH), report(at(BRANCH, 41, 16)))) == {"moved": ["BS101"]}


def test_findings_that_share_a_fingerprint_are_paired_one_to_one() -> None:
    found = compare(report(BRANCH, at(BRANCH, 50)), report(BRANCH))
    assert fates(found) == {"fixed": ["BS101"], "unchanged": ["BS101"]}


# ---- numbers ----


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [(1.0, 1.05, False), (1.0, 0.8, True), (1.0, 1.3, True), (0.001, 0.015, False), (0.0, 0.5, True)],
)
def test_a_cost_changed_when_it_did_so_beyond_noise(old: float, new: float, changed: bool) -> None:
    costly = [replace(BRANCH, cost=Cost(value, None, "gaps")) for value in (old, new)]
    found = compare(report(costly[0]), report(costly[1]))
    expected = (Change("cost", old, new, per_step=False),) if changed else ()
    pair = (*found.changed, *found.unchanged)[0]
    assert pair.changes == expected


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ((24, 4), (24, 4), None),
        ((24, 4), (12, 4), Change("crossings", 24, 12, per_step=False)),
        ((24, 4), (48, 8), None),  # as many a step
        ((1, 4), (1, 8), None),  # once at the start of both
        ((24, 4), (24, 8), None),
        ((24, 4), (40, 8), Change("crossings", 6, 5, per_step=True)),
        ((24, None), (12, 4), Change("crossings", 24, 12, per_step=False)),
        ((None, 4), (24, 4), None),  # not measured is not zero
    ],
)
def test_crossings_are_compared_by_total_or_by_step(
    old: tuple[int | None, int | None], new: tuple[int | None, int | None], change: Change | None
) -> None:
    left = replace(BRANCH, counts=Counts(5, old[0]), first_step=None)
    right = replace(BRANCH, counts=Counts(5, new[0]), first_step=None)
    found = compare(report(left, steps=old[1]), report(right, steps=new[1]))
    assert (*found.changed, *found.unchanged)[0].changes == ((change,) if change else ())


def test_more_recompiles_are_a_change() -> None:
    more = replace(SIZE, counts=replace(SIZE.counts, occurrences=7))
    assert compare(report(SIZE), report(more)).changed[0].changes == (
        Change("occurrences", 3, 7, per_step=False),
    )


def test_what_moved_and_changed_says_both() -> None:
    pair = compare(report(SIZE), report(replace(at(SIZE, 99), counts=Counts(7, None)))).changed[0]
    assert pair.moved
    assert pair.changes


# ---- the runs ----


def test_settings_that_differ_are_named_torch_first() -> None:
    old = report(torch="2.9.1", backend="inductor", mode="max-autotune")
    found = compare(old, report(torch="2.13.0", python="3.13.0"))
    assert [(one.what, one.old, one.new) for one in found.settings] == [
        ("torch", "2.9.1", "2.13.0"),
        ("backend", "inductor", "eager"),
        ("mode", "max-autotune", None),
        ("python", "3.11.9", "3.13.0"),
    ]


def test_times_and_folders_are_no_settings() -> None:
    assert compare(report(), report(cwd="/ci/work", started_at="later", duration_s=99.0)).settings == ()


@pytest.mark.parametrize("after", [VACUOUS, report(status="killed", exit_code=-9), report(status="timeout")])
def test_nothing_is_fixed_by_a_run_that_did_not_get_there(after: Report) -> None:
    found = compare(COSTS, after)
    assert fates(found) == {"unseen": ["BS101", "BS102", "BS104"]}
    assert "can be called fixed" in found.doubts[0]


def test_a_script_that_always_exits_with_one_can_be_compared() -> None:
    old = report(BRANCH, status="script_error", exit_code=1)
    assert fates(compare(old, report(status="script_error", exit_code=1))) == {"fixed": ["BS101"]}


def test_what_showed_after_the_last_step_of_a_shorter_run_is_not_fixed() -> None:
    late, early = replace(FLOAT, first_step=10), replace(SIZE, first_step=1)
    found = compare(report(late, early, steps=20), report(steps=5))
    assert fates(found) == {"fixed": ["BS201"], "unseen": ["BS207"]}
    assert found.doubts == ("the new run made fewer steps, so what shows later is not seen",)


def test_an_old_run_that_tells_nothing_makes_new_findings_doubtful() -> None:
    assert "everything looks new" in compare(VACUOUS, COSTS).doubts[0]
    assert "may have been there before" in compare(KILLED, COSTS).doubts[0]


def test_reports_of_two_scripts_are_doubted() -> None:
    assert "two scripts" in compare(report(), report(script="other.py")).doubts[0]


def test_one_script_run_from_another_folder_is_one_script() -> None:
    found = compare(report(), report(script="/home/ada/project/train.py", cwd="/home/ada"))
    assert (found.settings, found.doubts) == ((), ())
    # In another checkout, only the folders may differ: named, but no reason to doubt.
    found = compare(report(), report(script="project/train.py", cwd="/ci"))
    assert [one.what for one in found.settings] == ["script"]
    assert found.doubts == ()
