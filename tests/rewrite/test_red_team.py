"""No wrong rewrite, ever: the proof against programs whose obvious rewrite is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from proving import proof
from red_team import PROGRAMS, Program

from breakscope.rewrite.judge import judge


def test_there_are_enough() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 40


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_wrong_rewrite_is_refused(program: Program, tmp_path: Path) -> None:
    found = judge(proof(program.before, program.wrong, program.calls, tmp_path), exact=True)
    assert found.status == "refused", found.why
    assert "computes something else" in found.why
