"""Judging: what is new, what a baseline knows, what a budget allows, and when a report says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import report_samples as samples

from breakscope.project.baseline import Baseline
from breakscope.project.config import Budgets
from breakscope.project.judge import accept, judge
from breakscope.project.verdict import Policy, Verdict
from breakscope.report import schema
from breakscope.report.model import Compile, Compiled, Counts, Finding, Reconciliation, Region, Report, Timing

RECORDED = Path(__file__).parents[1] / "recorded"
VERSIONS = ("2.9", "2.13", "2.15")
EMPTY = Baseline()


def of(*findings: Finding, **changes: object) -> Report:
    """A run of four steps with these findings."""
    sites = [one for one in findings if one.kind == "graph_break"]
    totals = replace(
        samples.TOTALS,
        sites=len(sites),
        crossings=sum(one.counts.crossings or 0 for one in sites),
        recompiles=sum(one.counts.occurrences for one in findings if one.kind == "recompile"),
    )
    report = Report(
        tool=samples.RECOMPILES.tool,
        run=samples.RUN,
        totals=totals,
        reconciliation=Reconciliation({}, (), vacuous=False),
        findings=findings,
        regions=(Region("0/0", "f", 3, 4, None, None),),
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def knows(report: Report, target: str = "train.py") -> Baseline:
    """A baseline made of a report."""
    return Baseline({target: accept(report, judge(target, report, EMPTY, Policy()))})


def states(verdict: Verdict) -> dict[str, str]:
    return {one.finding.code: one.state for one in verdict.judged}


def verdict(report: Report, baseline: Baseline = EMPTY, **policy: object) -> Verdict:
    return judge("train.py", report, baseline, Policy(**policy))  # type: ignore[arg-type]


def renamed(finding: Finding, name: str) -> Finding:
    return replace(finding, fingerprint=name)


def test_without_findings_it_is_clean() -> None:
    answer = verdict(of())
    assert (answer.outcome, answer.exit_code, answer.why) == ("clean", 0, ())


def test_what_no_baseline_knows_is_new() -> None:
    answer = verdict(of(samples.BRANCH, samples.ITEM), knows(of(samples.BRANCH)))
    assert (answer.outcome, answer.exit_code) == ("new", 1)
    assert states(answer) == {"BS101": "known", "BS102": "new"}
    assert answer.why == ("1 new finding",)


def test_more_of_what_is_known_is_not_new() -> None:
    more = replace(samples.BRANCH, counts=Counts(500, 24_000, ("0/0", "9/9")))
    assert verdict(of(more), knows(of(samples.BRANCH))).outcome == "known"


def test_known_of_another_target_is_known_but_not_gone() -> None:
    baseline = knows(of(samples.BRANCH, samples.ITEM), "serve.py")
    answer = verdict(of(samples.BRANCH), baseline)
    assert answer.outcome == "known"
    assert answer.gone == ()


def test_strict_fails_known_ones_but_not_suppressed_ones() -> None:
    report, baseline = of(samples.BRANCH), knows(of(samples.BRANCH))
    assert verdict(report, baseline, strict=True).exit_code == 1
    only_suppressed = judge(
        "train.py", report, baseline, Policy(strict=True), {samples.BRANCH.fingerprint: "rare"}
    )
    assert only_suppressed.outcome == "clean"
    assert [(one.state, one.why) for one in only_suppressed.judged] == [("suppressed", "rare")]


def test_what_a_whole_run_does_not_show_any_more_is_gone() -> None:
    baseline = knows(of(samples.BRANCH, samples.ITEM))
    answer = verdict(of(samples.BRANCH), baseline)
    assert [one.code for one in answer.gone] == ["BS102"]
    assert answer.exit_code == 0
    died = of(samples.BRANCH, run=replace(samples.RUN, status="killed", exit_code=137))
    assert verdict(died, baseline).gone == ()


@pytest.mark.parametrize(
    ("status", "exit_code", "said"),
    [
        ("script_error", 1, "the script failed with exit status 1"),
        ("killed", 137, "the script was killed with exit status 137"),
        ("timeout", 124, "the script did not come to its end in time"),
        ("interrupted", 130, "the script was interrupted"),
    ],
)
def test_a_script_that_died_is_no_pass(status: str, exit_code: int, said: str) -> None:
    answer = verdict(of(run=replace(samples.RUN, status=status, exit_code=exit_code)))  # type: ignore[arg-type]
    assert (answer.outcome, answer.exit_code) == ("died", 3)
    assert answer.why[0].startswith(said)


def test_a_vacuous_run_is_no_pass_whatever_is_known() -> None:
    report = of(reconciliation=Reconciliation({}, (), vacuous=True), regions=())
    answer = verdict(report, knows(of()))
    assert (answer.outcome, answer.exit_code) == ("vacuous", 3)
    with_finding = replace(report, findings=(samples.BRANCH,))
    assert verdict(with_finding, knows(of(samples.BRANCH))).exit_code == 3


def test_a_script_that_stopped_compiling_is_vacuous_although_breakscope_compiled_it() -> None:
    by = {
        who: replace(samples.RUN, targets=(Compiled("Net", who),))
        for who in ("script", "library", "breakscope")
    }  # type: ignore[arg-type]
    for before in ("script", "library"):
        baseline = knows(of(run=by[before]))
        assert verdict(of(run=by["library"]), baseline).outcome == "clean"
        answer = verdict(of(run=by["breakscope"]), baseline)
        assert answer.outcome == "vacuous"
        assert "compiles nothing now" in answer.why[0]
    assert verdict(of(run=by["breakscope"]), knows(of(run=by["breakscope"]))).outcome == "clean"
    unknown = replace(samples.RUN, targets=())  # an imported trace
    assert verdict(of(run=unknown), knows(of(run=by["script"]))).outcome == "clean"


# ---- what counts ----


@pytest.mark.parametrize(
    ("policy", "counting"),
    [
        ({"select": ("BS101",)}, {"BS101"}),
        ({"select": ("BS1",), "ignore": ("BS104",)}, {"BS101", "BS102"}),
        ({"ignore": ("BS1",)}, set()),
        ({"owners": ("library",)}, {"BS104"}),
        ({"owners": ("project", "torch")}, {"BS101", "BS102"}),
        ({"per_path_ignore": {"model.py": ("BS101",)}}, {"BS102", "BS104"}),
        ({"per_path_ignore": {"transformers/": ("BS",)}}, {"BS101", "BS102"}),
        ({"per_path_ignore": {"elsewhere/*": ("BS",)}}, {"BS101", "BS102", "BS104"}),
    ],
)
def test_what_counts(policy: dict[str, object], counting: set[str]) -> None:
    answer = verdict(of(samples.BRANCH, samples.ITEM, samples.LOGGER), **policy)
    assert set(states(answer)) == counting
    assert answer.left_out == 3 - len(counting)


# ---- budgets ----


def budget(report: Report, policy: Sequence[Finding] | None = None, **limits: float) -> Verdict:
    return verdict(report, knows(report), budgets=Budgets(**limits))  # type: ignore[arg-type]


def test_a_budget_holds_up_to_its_limit() -> None:
    report = of(samples.BRANCH, samples.ITEM)  # 24 and 4 crossings in 4 steps
    assert budget(report, max_sites=2).exit_code == 0
    assert budget(report, max_crossings_per_step=7).exit_code == 0
    answer = budget(report, max_sites=1, max_crossings_per_step=6.5)
    assert (answer.outcome, answer.exit_code) == ("budget", 1)
    assert answer.why == (
        "2 sites, at most 1 allowed (max-sites)",
        "7 crossings a step, at most 6.5 allowed (max-crossings-per-step)",
    )


def test_a_budget_does_not_count_what_does_not_count() -> None:
    report = of(samples.BRANCH, samples.ITEM)
    policy = Policy(ignore=("BS101",), budgets=Budgets(max_sites=1, max_crossings_per_step=1))
    assert judge("train.py", report, knows(report), policy).exit_code == 0
    policy = Policy(budgets=Budgets(max_sites=1, max_crossings_per_step=1))
    suppressed = {samples.BRANCH.fingerprint: None}
    assert judge("train.py", report, knows(report), policy, suppressed).exit_code == 0


def test_recompiles_are_those_of_the_run() -> None:
    recompile = next(one for one in samples.RECOMPILES.findings if one.kind == "recompile")
    report = of(recompile)
    count = recompile.counts.occurrences
    assert budget(report, max_recompiles=count).exit_code == 0
    assert budget(report, max_recompiles=count - 1).exit_code == 1
    lost = replace(report, totals=replace(report.totals, recompiles=count + 2))
    assert budget(lost, max_recompiles=count + 1).why[0].startswith(f"{count + 2} recompiles")


def test_compile_seconds_are_those_of_the_slowest_rank() -> None:
    def compiled(rank: int, seconds: float | None) -> Compile:
        return Compile("0/0", "f", None, None, 0, None, seconds, rank=rank)

    report = of(compiles=(compiled(0, 1.0), compiled(0, 1.5), compiled(1, 2.0), compiled(1, None)))
    assert budget(report, max_compile_seconds=2.5).exit_code == 0
    answer = budget(report, max_compile_seconds=2.4)
    assert answer.why == ("2.5 s of compiling, at most 2.4 allowed (max-compile-seconds)",)


@pytest.mark.parametrize(
    ("report", "limits", "said"),
    [
        (
            of(),
            {"max_compile_seconds": 1},
            "max-compile-seconds cannot be judged: the report holds no compile times",
        ),
        (
            of(),
            {"max_ms_per_step": 1},
            "max-ms-per-step cannot be judged: the report holds no time of a steady step",
        ),
        (
            of(timing=Timing("not measured: every step compiled", 0)),
            {"max_ms_per_step": 1},
            "max-ms-per-step cannot be judged: not measured: every step compiled",
        ),
        (
            of(replace(samples.BRANCH, counts=Counts(1, None))),
            {"max_crossings_per_step": 1},
            "max-crossings-per-step cannot be judged: crossings were not measured, as in an imported trace",
        ),
    ],
)
def test_a_budget_that_was_not_measured_is_neither_kept_nor_exceeded(
    report: Report, limits: dict[str, float], said: str
) -> None:
    answer = budget(report, **limits)
    assert (answer.outcome, answer.exit_code, answer.why) == ("not_measured", 2, (said,))


def test_a_step_is_judged_by_its_measured_time() -> None:
    report = of(timing=Timing("medians", 12, step_ms=4.2))
    assert budget(report, max_ms_per_step=4.2).exit_code == 0
    assert budget(report, max_ms_per_step=4.1).exit_code == 1


def test_the_worst_comes_first() -> None:
    report = of(samples.BRANCH, run=replace(samples.RUN, status="script_error", exit_code=1))
    answer = verdict(report, budgets=Budgets(max_sites=0, max_ms_per_step=1))
    assert answer.outcome == "died"
    assert [said.partition(" ")[0] for said in answer.why] == ["the", "1", "1", "max-ms-per-step"]


# ---- another torch ----


def recorded(version: str) -> Report:
    return schema.load(RECORDED / f"report-torch-{version}.json")


@pytest.mark.parametrize("before", VERSIONS)
@pytest.mark.parametrize("after", VERSIONS)
def test_another_torch_makes_nothing_new(before: str, after: str) -> None:
    old, new = recorded(before), recorded(after)
    assert len(old.findings) == len(new.findings) == 17
    answer = judge("script.py", new, knows(old, "script.py"), Policy())
    assert answer.of("new") == ()
    assert answer.gone == ()
    by_name = {one.fingerprint for one in old.findings}
    otherwise = [one for one in answer.judged if one.finding.fingerprint not in by_name]
    assert all(one.why and f"with torch {before}" in one.why for one in otherwise)


def test_another_torch_hides_no_new_finding() -> None:
    old, new = recorded("2.9"), recorded("2.15")
    added = renamed(
        replace(new.findings[0], location=replace(new.findings[0].location, source="z = 1")), "added"
    )
    copied = renamed(new.findings[0], f"{new.findings[0].fingerprint}-2")
    report = replace(new, findings=(*new.findings, added, copied))
    assert {one.fingerprint for one in judge("script.py", report, knows(old), Policy()).of("new")} == {
        added.fingerprint,
        copied.fingerprint,
    }


def test_another_code_at_the_same_place_is_new_on_the_same_torch() -> None:
    other = replace(samples.BRANCH, code="BS103", fingerprint="other")
    assert verdict(of(other), knows(of(samples.BRANCH))).outcome == "new"
    newer = replace(samples.RUN, torch="2.14.0")
    answer = verdict(of(other, run=newer), knows(of(samples.BRANCH)))
    assert [(one.state, one.why) for one in answer.judged] == [("known", "known as BS101 with torch 2.13")]
    assert answer.gone == ()
    both = verdict(of(samples.BRANCH, other, run=newer), knows(of(samples.BRANCH)))
    assert states(both) == {"BS101": "known", "BS103": "new"}


def test_what_is_meant_to_be_does_not_fail_and_no_budget_counts_it() -> None:
    site = samples.BRANCH
    meant = replace(site, intended="the backward pass is compiled on its own")
    found = verdict(of(meant), strict=True, budgets=Budgets(max_sites=0))
    assert (found.outcome, found.exit_code) == ("clean", 0)
    assert [(one.state, one.why) for one in found.judged] == [("meant", meant.intended)]
    # It does not stay in a baseline either.
    assert accept(of(meant), found).findings == ()
    assert verdict(of(site)).outcome == "new"
