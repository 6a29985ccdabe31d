"""Merging reports: order and grouping cannot matter, and nothing is lost or counted twice."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    HOSTILE,
    IMPORTED_TRACE,
    KILLED,
    LOOP,
    RECOMPILES,
    RUN,
    SIZE,
    SKIPS,
    SUGGESTIONS,
    VACUOUS,
)

from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.report import schema
from breakscope.report.model import Compile, Compiling, Counts, Finding, Report, Step

SAMPLES = [CLEAN, COSTS, RECOMPILES, SKIPS, VACUOUS, KILLED, IMPORTED_TRACE, SUGGESTIONS, HOSTILE]


def ranks(*reports: Report, job: str = "job", attempt: int = 0) -> list[Report]:
    return [as_rank(report, Identity(rank, job, attempt)) for rank, report in enumerate(reports)]


def text(report: Report) -> str:
    return schema.dumps(report)


@st.composite
def rank_reports(draw: st.DrawFn) -> Report:
    """A report of one process: a sample with other counts, steps and compiles, as some rank of some job."""
    sample = draw(st.sampled_from(SAMPLES))
    small = st.integers(0, 4)
    findings = tuple(
        replace(
            one,
            counts=Counts(draw(small), draw(st.none() | small), (f"{draw(small)}/{draw(small)}",)),
            first_step=draw(st.none() | small),
            suggestion=one.suggestion if draw(st.booleans()) else None,
        )
        for one in sample.findings
    )
    steps = tuple(Step(i, None, float(draw(small)), 0.0, draw(small)) for i in range(draw(small)))
    compiles = tuple(
        Compile(
            "0/0", "f", "m.py", 1, i, None, draw(small) / 2, {}, draw(st.sampled_from(["hit", "miss", None]))
        )
        for i in range(draw(small))
    )
    report = replace(sample, findings=findings, steps=steps, compiles=compiles)
    if draw(st.booleans()):
        return report
    return as_rank(report, Identity(draw(small), draw(st.sampled_from("ab")), draw(st.integers(0, 1))))


@given(st.lists(rank_reports(), min_size=2, max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_order_and_any_grouping_give_the_same_bytes(reports, random):
    whole = text(merge(reports))
    pool = list(reports)
    while len(pool) > 1:  # join any two until one is left
        random.shuffle(pool)
        pool[:2] = [merge(pool[:2])]
    assert text(merge(pool)) == whole
    assert text(merge([*reports, *reports, merge(reports)])) == whole  # twice is once
    assert text(schema.from_dict(schema._parse(whole.encode()))) == whole


def test_every_permutation_and_a_file_between_two_merges(tmp_path):
    reports = ranks(COSTS, RECOMPILES, KILLED)
    whole = text(merge(reports))
    for order in itertools.permutations(reports):
        assert text(functools.reduce(lambda a, b: merge([a, b]), order)) == whole
    schema.save(merge(reports[1:]), tmp_path / "part.json")
    assert text(merge([schema.load(tmp_path / "part.json"), reports[0]])) == whole


def test_a_report_that_was_changed_after_its_merge_still_merges_in_any_order():
    a, b = ranks(COSTS, COSTS)
    fixed = replace(
        a, findings=tuple(replace(one, suggestion=SUGGESTIONS.findings[0].suggestion) for one in a.findings)
    )
    assert (
        text(merge([a, fixed, b]))
        == text(merge([b, merge([fixed, a])]))
        == text(merge([fixed, merge([b, a])]))
    )
    assert {one.suggestion.status for one in merge([a, fixed]).findings if one.suggestion} == {"proved"}


def test_one_report_becomes_rank_0_of_its_own_job():
    merged = merge([COSTS])
    assert (merged.totals, merged.reconciliation.dynamo) == (COSTS.totals, COSTS.reconciliation.dynamo)
    assert merged.run == COSTS.run
    assert [rank.rank for rank in merged.ranks] == [0]
    assert text(merge([merged])) == text(merged)


def test_counts_are_kept_for_each_rank_and_summed():
    more = replace(
        COSTS, findings=(replace(BRANCH, counts=Counts(2, 6, ("0/0", "10/0")), first_step=2, last_step=9),)
    )
    merged = merge(ranks(COSTS, more))
    branch = next(one for one in merged.findings if one.fingerprint == BRANCH.fingerprint)
    assert branch.ranks == (0, 1)
    assert [entry.counts.crossings for entry in branch.by_rank] == [24, 6]
    assert branch.counts == Counts(7, 30, ("0/0", "1/0", "1/1", "10/0"))
    assert (branch.first_step, branch.last_step) == (0, 9)
    assert merged.totals.sites == 3  # a site that both have is one site
    assert merged.totals.occurrences == 14
    assert merged.totals.steps == 4  # the ranks step together


def test_what_one_rank_did_not_measure_is_not_zero():
    trace = replace(COSTS, findings=(replace(BRANCH, counts=Counts(2, None)),))
    branch = next(one for one in merge(ranks(COSTS, trace)).findings if one.fingerprint == BRANCH.fingerprint)
    assert branch.counts.crossings is None


def test_the_cost_is_that_of_the_slowest_rank():
    slow = replace(COSTS, findings=(replace(BRANCH, cost=replace(BRANCH.cost, ms_per_step=9.0)),))
    branch = next(one for one in merge(ranks(COSTS, slow)).findings if one.fingerprint == BRANCH.fingerprint)
    assert branch.cost.ms_per_step == 9.0
    assert "rank 1" in branch.cost.method


def test_skipped_calls_are_summed_and_a_recompiles_values_joined():
    other = replace(SIZE, guard=replace(SIZE.guard, values=("9", "11")))
    merged = merge(ranks(replace(SKIPS, findings=(LOOP, SIZE)), replace(SKIPS, findings=(LOOP, other))))
    by_name = {one.fingerprint: one for one in merged.findings}
    assert by_name[LOOP.fingerprint].skipped[0].calls == 8
    assert by_name[SIZE.fingerprint].guard.values == ("4", "7", "9", "11")


def test_jobs_of_a_fleet_are_told_apart():
    merged = merge([*ranks(COSTS, COSTS, job="monday"), *ranks(COSTS, job="tuesday"), RECOMPILES])
    assert len({rank.job for rank in merged.ranks}) == 3
    assert merged.totals.steps == 4 * 3
    assert len({region.process for region in merged.regions}) == 4
    assert merged.divergences == ()  # ranks of other jobs need not agree


def test_a_restart_that_went_well_ends_well():
    died = replace(CLEAN, run=replace(RUN, status="killed", exit_code=137))
    merged = merge([*ranks(died, CLEAN, attempt=0), *ranks(CLEAN, CLEAN, attempt=1)])
    assert (merged.run.status, merged.run.exit_code) == ("ok", 0)
    assert [one.kind for one in merged.divergences] == ["ended"]
    assert merge(ranks(died, CLEAN)).run.status == "killed"


def test_notes_say_which_ranks_they_are_about():
    merged = merge(
        ranks(
            replace(CLEAN, run=replace(RUN, notes=("a", "b"))), replace(CLEAN, run=replace(RUN, notes=("a",)))
        )
    )
    assert merged.run.notes == ("a", "rank 0: b")


def test_a_source_that_ranks_saw_alike_is_known_and_one_that_changed_between_them_is_not():
    one, other = ({"a.py": "1", "b.py": "2"}, {"b.py": "3", "c.py": "4"})
    merged = merge(ranks(*(replace(CLEAN, run=replace(RUN, sources=seen)) for seen in (one, other))))
    assert merged.run.sources == {"a.py": "1", "c.py": "4"}


def test_nothing_to_merge_is_refused():
    with pytest.raises(ValueError, match="nothing to merge"):
        merge([])


def test_every_field_of_a_report_and_of_a_finding_is_known_to_the_merge():
    """A new field is lost or made wrong by a merge unless somebody thinks about it: then add it here."""
    report = {field.name for field in dataclasses.fields(Report)}
    assert report == {
        *("tool", "run", "totals", "reconciliation", "findings", "regions", "benchmark"),
        *("steps", "compiles", "timing", "signatures", "ranks", "divergences", "artifacts"),
    }
    texts = {
        "fingerprint",
        "code",
        "kind",
        "intended",
        "gb_id",
        "title",
        "reason",
        "explanation",
        "hints",
        "location",
        "stack",
        "called_from",
        "guards",
        "advice",
        "calls_of",
        "caused_by",
    }
    combined = {
        "counts",
        "cost",
        "guard",
        "skipped",
        "ranks",
        "first_step",
        "last_step",
        "suggestion",
        "not_measured",
        "by_rank",
        "compiling",
        "horizon_ms",
        "expected",
        "effect",
    }
    assert {field.name for field in dataclasses.fields(Finding)} == texts | combined


def test_recompiles_take_what_they_take_where_that_is_most():
    def told(seconds: float) -> Finding:
        return dataclasses.replace(SIZE, compiling=Compiling(seconds, 2), horizon_ms=3.0)

    def part(rank: int, seconds: float) -> Report:
        report = dataclasses.replace(RECOMPILES, findings=(told(seconds),))
        return as_rank(report, Identity(rank))

    (finding,) = merge([part(0, 1.5), part(1, 2.5)]).findings
    assert finding.compiling == Compiling(2.5, 2)
    assert finding.horizon_ms is None
