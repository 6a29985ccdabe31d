"""No wrong rewrite, ever: whole scripts that observe what an obvious rewrite would change.

Each goes through the real commands. Where something is rewritten without consent, the script and its rewritten form
are run as scripts, and must say the same.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pipeline
import programs_autograd
import programs_effects
import programs_harmless
import programs_hidden
import programs_identity
import programs_state
import pytest
from observed_program import QUIET, Program
from scanning import rows, run_cold
from script_judge import SCRIPT
from warm import Warm

pytestmark = pytest.mark.torch

PROGRAMS: tuple[Program, ...] = (
    *programs_identity.PROGRAMS,
    *programs_effects.PROGRAMS,
    *programs_autograd.PROGRAMS,
    *programs_state.PROGRAMS,
    *programs_hidden.PROGRAMS,
    *programs_harmless.PROGRAMS,
)
TWINS = tuple(one for one in PROGRAMS if one.harmless)
REAL = ("clipped_calls_counted_by_is", "clipped_value_is_only_computed_with")


def test_there_are_enough() -> None:
    assert len({one.name for one in PROGRAMS}) == len(PROGRAMS)
    assert len(PROGRAMS) - len(TWINS) >= 110
    assert len(TWINS) >= 15


# Of each class of attack so many stand for it in every run, and every other twin; hidden observers and the rest at
# night.
OF_EACH_CLASS = 1


def in_every_run() -> set[str]:
    counts = Counter[str]()
    kept = set()
    for one in PROGRAMS:
        counts[one.attack] += 1
        if one not in programs_hidden.PROGRAMS and counts[one.attack] <= OF_EACH_CLASS:
            kept.add(one.name)
    return kept | {one.name for one in TWINS[::2]}


def test_every_class_of_attack_is_in_every_run() -> None:
    seen = {one.attack for one in PROGRAMS if one.name in in_every_run()}
    assert seen >= {one.attack for one in PROGRAMS if one not in programs_hidden.PROGRAMS}
    assert len(in_every_run()) >= 45


@pytest.mark.parametrize("program", rows(PROGRAMS, in_every_run()))
def test_what_is_written_says_what_the_script_said(
    program: Program, tmp_path: Path, product: Warm, judging: Warm
) -> None:
    fixed = pipeline.fix(product, program.files, tmp_path / "fixed")
    found = pipeline.wrong(judging, fixed, program.environments, program.limit)
    assert not found, f"{program.attack}: {found}\n{fixed.log}"
    if program.harmless:
        assert fixed.verdict == "proved", fixed.reasons


@pytest.mark.nightly
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_proof_alone_is_right(program: Program, tmp_path: Path, product: Warm, judging: Warm) -> None:
    """The script prints nothing while it is scanned and fixed, and everything before the judge."""
    fixed = pipeline.fix(product, program.files, tmp_path / "fixed", environment=QUIET)
    found = pipeline.wrong(judging, fixed, program.environments, program.limit)
    assert not found, f"{program.attack}: {found}\n{fixed.log}"


@pytest.mark.nightly
@pytest.mark.parametrize("name", REAL)
def test_the_real_commands_come_to_the_same(name: str, tmp_path: Path, product: Warm) -> None:
    """What the other tests run in forks is what a user's commands do in processes of their own."""
    program = next(one for one in PROGRAMS if one.name == name)
    fixed = pipeline.fix(product, program.files, tmp_path / "forked")
    folder = pipeline.written(tmp_path / "real", program.files)
    for words in pipeline.COMMANDS:
        done = run_cold(*words, folder=folder)
        assert done.returncode in (0, 1), done.stderr
    real = pipeline.answers(folder)
    assert [(one.code, one.rule, one.status) for one in real] == [
        (one.code, one.rule, one.status) for one in fixed.answers
    ]
    assert (folder / SCRIPT).read_text() == (fixed.new / SCRIPT).read_text()
