"""In what ranks differ: small made-up jobs, one difference each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_samples import CLEAN, RUN, SIZE, TOTALS

from breakscope.diagnose.divergence import parted
from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.diagnose.rank_groups import rank_words
from breakscope.render import FORMATS, Options, html
from breakscope.report.model import Compile, Counts, Device, Divergence, Region, Report, Step


def job(*reports: Report, ended: dict[int, str] | None = None) -> Report:
    who = [Identity(rank, "job", ended=(ended or {}).get(rank)) for rank in range(len(reports))]
    return merge([as_rank(report, one) for report, one in zip(reports, who, strict=True)])


def only(report: Report, kind: str) -> Divergence:
    (found,) = report.divergences
    assert found.kind == kind
    return found


def with_regions(*regions: Region) -> Report:
    return replace(CLEAN, regions=regions)


def region(ops: int, **more) -> Region:
    return Region("0/0", "Net.forward", ops, 4, None, None, **more)


def compile_(seconds: float, step: int = 0, **more) -> Compile:
    return Compile("0/0", "forward", "model.py", 30, step, None, seconds, **more)


def test_ranks_that_agree_have_none():
    assert job(CLEAN, CLEAN, CLEAN).divergences == ()


def test_the_same_recompile_for_other_values_is_named_with_both():
    other = replace(SIZE, guard=replace(SIZE.guard, actual="5", values=("5",)))
    found = only(job(*[replace(CLEAN, findings=(one,)) for one in (SIZE, SIZE, other)]), "values")
    assert (found.ranks, found.others, found.dimension) == ((2,), (0, 1), 0)
    assert found.by_rank["2"] == "3 times, first at step 1, for 5"


def test_another_number_of_recompiles_is_named_with_the_first_step_that_differs():
    more = replace(SIZE, counts=Counts(4, None), last_step=9)
    found = only(job(replace(CLEAN, findings=(SIZE,)), replace(CLEAN, findings=(more,))), "finding")
    assert found.by_rank == {
        "0": "3 times, first at step 1, for 4, 7, 9",
        "1": "4 times, first at step 1, for 4, 7, 9",
    }
    assert found.step == 3


def test_a_rank_that_died_before_is_not_said_to_lack_what_came_after():
    died = replace(CLEAN, run=replace(RUN, status="killed", exit_code=137), totals=replace(TOTALS, steps=1))
    late = replace(CLEAN, findings=(replace(SIZE, first_step=3),))
    assert [one.kind for one in job(died, late).divergences] == ["ended"]
    early = replace(CLEAN, findings=(replace(SIZE, first_step=0),))
    assert [one.kind for one in job(died, early).divergences] == ["ended", "finding"]


def test_ranks_stopped_because_of_another_are_not_deaths_of_their_own():
    died = replace(CLEAN, run=replace(RUN, status="killed", exit_code=137))
    stopped = replace(CLEAN, run=replace(RUN, status="killed", exit_code=143))
    found = only(job(stopped, died, stopped, ended={0: "was stopped", 2: "was stopped"}), "ended")
    assert found.text == "rank 1 was killed by SIGKILL in step 4; ranks 0 and 2 stopped because of it"


def test_a_rank_that_another_nodes_launcher_stopped_is_no_death_of_its_own():
    died = replace(CLEAN, run=replace(RUN, status="killed", exit_code=137))
    elsewhere = replace(CLEAN, run=replace(RUN, status="interrupted", exit_code=143))
    merged = job(elsewhere, died)
    assert (
        only(merged, "ended").text == "rank 1 was killed by SIGKILL in step 4; rank 0 stopped because of it"
    )
    assert (merged.run.status, merged.run.exit_code) == ("killed", 137)
    assert [one.ranks for one in job(elsewhere, elsewhere).divergences] == [
        (0,),
        (1,),
    ]  # nobody else to blame


def test_other_graphs_of_one_function():
    found = only(
        job(with_regions(region(12)), with_regions(region(12)), with_regions(region(7), region(5))), "graphs"
    )
    assert found.text == "Net.forward became 2 graphs (7 + 5 ops) on rank 2, 1 graph (12 ops) on the others"


def test_a_rank_that_ended_early_has_fewer_graphs_and_that_is_no_divergence():
    died = replace(with_regions(region(12)), run=replace(RUN, status="killed", exit_code=137))
    assert [one.kind for one in job(died, with_regions(region(12), region(3))).divergences] == ["ended"]
    other = replace(with_regions(region(9)), run=replace(RUN, status="killed", exit_code=137))
    assert [one.kind for one in job(other, with_regions(region(12))).divergences] == ["ended", "graphs"]


def test_another_order_of_collectives():
    there = region(12, collectives=("all_reduce(8)", "all_gather(3)", "all_reduce(2)"))
    here = region(12, collectives=("all_reduce(8)", "all_reduce(2)", "all_gather(3)"))
    found = only(job(with_regions(there), with_regions(there), with_regions(here)), "collectives")
    assert found.text == (
        "collectives compiled into graphs differ from number 2 on: "
        "all_reduce(2) on rank 2, all_gather(3) on the others"
    )


def test_a_compile_cache_that_only_some_hit():
    hit = replace(CLEAN, compiles=(compile_(0.1, cache="hit"),))
    miss = replace(CLEAN, compiles=(compile_(0.2, cache="miss"),))
    found = only(job(hit, miss, hit), "cache")
    assert found.text == "rank 1 missed the compile cache for forward, ranks 0 and 2 hit it"


def test_compile_time_skew():
    quick, slow = (replace(CLEAN, compiles=(compile_(seconds),)) for seconds in (1.0, 9.5))
    found = only(job(quick, slow), "skew")
    assert found.text == "rank 1 compiled for 9.5 s, rank 0 for 1.0 s"
    assert found.ms == 8500


def steps(*ms: float, compiling: dict[int, float] | None = None) -> tuple[Step, ...]:
    compiled = compiling or {}
    return tuple(
        Step(index, None, length, compiled.get(index, 0.0), int(index in compiled))
        for index, length in enumerate(ms)
    )


def test_who_waited_for_whom_and_how_long():
    waiting = replace(CLEAN, steps=steps(10, 10, 10, 510, 10))
    compiling = replace(
        with_regions(region(12)),
        steps=steps(10, 10, 10, 512, 10, compiling={3: 500.0}),
        compiles=(compile_(0.5, 3),),
    )
    merged = job(replace(waiting, regions=(region(12),)), compiling)
    found = only(merged, "waited")
    assert (found.ranks, found.others, found.step, found.ms) == ((1,), (0,), 3, 500.0)
    assert found.text == "rank 0 waited up to 500 ms for rank 1, which compiled Net.forward, first at step 3"
    assert parted(merged.divergences, "job") is None  # to wait is to do the same, later


def test_a_long_step_without_anybody_compiling_is_no_wait():
    slow = replace(CLEAN, steps=steps(10, 10, 900, 10))
    assert job(slow, slow).divergences == ()


def test_a_rank_that_does_not_synchronise_does_not_wait():
    compiling = replace(CLEAN, steps=steps(10, 10, 512, 10, compiling={2: 500.0}))
    assert job(replace(CLEAN, steps=steps(10, 10, 10, 10)), compiling).divergences == ()


def test_warming_up_at_the_same_pace_is_no_wait():
    one = replace(CLEAN, steps=steps(3000, 10, 10, compiling={0: 2900.0}))
    other = replace(CLEAN, steps=steps(3000, 10, 10, compiling={0: 2500.0}))
    assert job(one, other).divergences == ()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(CLEAN, run=replace(RUN, torch="2.9.1")), "rank 2: torch 2.9.1; the others: 2.13.0"),
        (
            replace(CLEAN, run=replace(RUN, device=Device("cpu", "cpu", 1))),
            "rank 2: device cpu; the others: cuda NVIDIA H200",
        ),
    ],
)
def test_another_setup(other, said):
    assert only(job(CLEAN, CLEAN, other), "setup").text == said


def test_attempts_are_compared_each_for_itself():
    died = replace(CLEAN, run=replace(RUN, status="killed", exit_code=137))
    odd = replace(CLEAN, findings=(SIZE,))
    parts = [as_rank(CLEAN, Identity(0, "j", 0)), as_rank(died, Identity(1, "j", 0))]
    parts += [as_rank(CLEAN, Identity(0, "j", 1)), as_rank(odd, Identity(1, "j", 1))]
    assert [(one.attempt, one.kind) for one in merge(parts).divergences] == [(0, "ended"), (1, "finding")]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "rank 3"),
        ([1, 0], "ranks 0 and 1"),
        ([0, 1, 2, 5], "ranks 0-2 and 5"),
        ([4, 0, 2], "ranks 0, 2 and 4"),
    ],
)
def test_ranks_in_words(numbers, words):
    assert rank_words(numbers) == words


def test_every_format_for_people_says_it_before_the_findings():
    merged = job(CLEAN, replace(CLEAN, findings=(SIZE,)))
    said = "rank 1 alone recompiled Net.forward at step 1"
    for name in ("terminal", "markdown"):
        text = FORMATS[name](merged, Options())
        assert text.index(said) < text.index("BS201")
    page = html.render(merged, sources=None)
    assert page.index(said) < page.index('id="findings"')
    assert page.index('id="ranks"') < page.index('id="time"')
    assert 'id="ranks"' not in html.render(CLEAN, sources=None)
