"""No wrong rewrite, ever: the proof against programs whose obvious rewrite is wrong."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
from programs import rewritten, sites, source_of
from proving import proof
from red_team import PROGRAMS, Program

from breakscope.fix.judge import judge
from breakscope.fix.patch import Refusal, claims_of
from breakscope.fix.rule import Example
from breakscope.fix.rules import propose
from breakscope.inside.prove.claims import Claims

pytestmark = pytest.mark.torch


def test_there_are_enough() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) >= 40


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_wrong_rewrite_is_refused(program: Program, tmp_path: Path) -> None:
    found = judge(proof(program.before, program.wrong, program.calls, tmp_path), Claims(exact=True))
    assert found.status == "refused", found.why
    assert "computes something else" in found.why


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_no_rule_has_the_wrong_rewrite_proved(program: Program, tmp_path: Path) -> None:
    """What the rules themselves propose here is refused, or proved and then not the wrong one."""
    example = Example(program.before, calls=program.calls)
    for site in sites(example):
        _, answer = propose(site)
        if isinstance(answer, Refusal) or not answer.edits:
            continue
        after = rewritten(example, answer)
        claims = claims_of([answer])
        found = judge(
            proof(program.before, after, program.calls, tmp_path, **dataclasses.asdict(claims)), claims
        )
        if found.status == "proved":
            assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(source_of(program.wrong)))
