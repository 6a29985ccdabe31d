"""Programs that nobody wrote: of each that is rewritten without consent, the script says what it said before.

A failure names its shard and number; ``python tests/fix/observed/generated.py SHARD NUMBER`` prints the script, with
``--shard-of 50`` for those of the night. What became of all of them is printed at the end of a run of this folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import generated
import pipeline
import pytest
from hypothesis import given, settings
from script_judge import judge
from warm import Warm

pytestmark = pytest.mark.torch

# For more steps than were scanned: what the script says in those is compared by `fix` itself.
ENVIRONMENTS = ({"STEPS": "9"},)
# 4 in every run, and 3,000 of others in a night.
SHARDS, SIZE = 2, 2
NIGHTLY_SHARDS, NIGHTLY_SIZE = range(1000, 1060), 50

Record = Callable[[str, object], None]


@pytest.mark.parametrize("number", range(SHARDS))
def test_generated_scripts_say_what_they_said(
    number: int, tmp_path: Path, product: Warm, judging: Warm, record_property: Record
) -> None:
    hold(number, SIZE, tmp_path, product, judging, record_property)


@pytest.mark.nightly
@pytest.mark.parametrize("number", NIGHTLY_SHARDS)
def test_more_generated_scripts_say_what_they_said(
    number: int, tmp_path: Path, product: Warm, judging: Warm, record_property: Record
) -> None:
    hold(number, NIGHTLY_SIZE, tmp_path, product, judging, record_property)


def hold(number: int, size: int, folder: Path, product: Warm, judging: Warm, record: Record) -> None:
    """Fix and judge the programs of a shard, and count what became of them."""
    counts: Counter[str] = Counter()
    wrong = []
    for place, program in enumerate(generated.shard(number, size)):
        fixed = pipeline.fix(product, program.files, folder / str(place))
        found = pipeline.wrong(judging, fixed, ENVIRONMENTS)
        if found and generated.FAILS_BY_ITSELF in (fixed.old / "stdout.txt").read_text():
            # A backward that the old code fails, and the new one does not, is no observer.
            counts["fails by itself"] += 1
            found = []
        if found:
            wrong.append(f"generated.py {number} {place}: {found[0]}\n  fix: {fixed.reasons}")
        counts.update(
            {"programs": 1, fixed.verdict: 1, "wrong": bool(found), "rewrites proposed": fixed.proposed}
        )
    record("generated", dict(counts))
    assert not wrong, "\n".join(wrong)
    # Programs for which no rule has a rewrite say nothing about rewrites.
    assert counts["rewrites proposed"] * 3 >= size, counts


@settings(max_examples=3, derandomize=True, database=None, deadline=None)
@given(program=generated.programs())
def test_a_generated_script_runs_and_says_the_same_twice(
    program: generated.Generated, tmp_path_factory: pytest.TempPathFactory, judging: Warm
) -> None:
    """Else there is nothing to judge."""
    folders = [
        pipeline.written(tmp_path_factory.mktemp("twice") / name, program.files) for name in ("old", "new")
    ]
    assert judge(judging, *folders, {"STEPS": "9"}) == []
    assert (folders[0] / "stdout.txt").read_text().count("\n") >= 9
