"""Advice is tested by following it: the finding goes, or is less as the advice says, and the outputs agree."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from followed import Followed
from programs_breaks import BREAKS
from programs_calls import CALLS
from programs_loops import LOOPS
from programs_recompiles import RECOMPILES
from programs_uses import USES
from scanning import rows
from warm_scanning import WarmScans, coded

from breakscope import catalog
from breakscope.report.model import Finding

pytestmark = pytest.mark.torch

PROGRAMS = (*BREAKS, *LOOPS, *USES, *CALLS, *RECOMPILES)
# What no program of a few lines on one CPU shows, or what is the user's to choose: the words that say so.
DECIDED = {
    "BS124": "await outside it",
    "BS125": "or move the call out",
    "BS129": "Use a name, an index or a constant",
    "BS130": "set Triton up outside",
    "BS132": "or register the type with pytree",
    "BS133": "make other objects in the caller",
    "BS135": "Take sizes from the shapes of tensors",
    "BS136": "Remove the query",
    "BS137": "Use a plain list, tuple or dict",
    "BS140": "Compile each sharded block by itself",
    "BS141": "Leave it, or compile the model inside DDP",
    "BS198": "Try a newer torch",
    "BS199": "Follow the hints of torch",
    "BS304": "Name what to compile with --compile",
    "BS307": "Repair what the reason names",
    "BS308": "otherwise it costs what it costs",
    # What compiling takes: which part is to be compiled by itself depends on the model.
    "BS401": "Compile the loop's body and leave the loop to Python",
    "BS402": "Compile one repeated block instead of the whole",
    "BS403": "Compile the blocks that repeat in it",
    "BS404": "or compile smaller parts",
}


# Of each code so many shapes of its advice are followed in every run, the others at night.
OF_EACH_CODE = 2


def in_every_run() -> set[str]:
    """The programs that stand for the others of their code."""
    of_code = defaultdict(list)
    for one in PROGRAMS:
        of_code[one.code].append(one.name)
    return {name for names in of_code.values() for name in names[:OF_EACH_CODE]}


@pytest.mark.parametrize("program", rows(PROGRAMS, in_every_run()))
def test_followed_advice_helps(program: Followed, warm: WarmScans, tmp_path: Path) -> None:
    code, _, inner = program.code.partition(">")
    sources = program.before, program.after
    (scanned, said), (again, now) = warm.scan_both(tmp_path, sources, *program.options)
    before, after = coded(scanned, code), coded(again, code)
    if inner:
        before = [one for one in before if one.title == f"frame skipped: {catalog.entry(inner).title}"]
    for pattern in program.advice.splitlines():
        advised = [finding for finding in before if re.search(pattern, str(finding.advice), re.DOTALL)]
        assert advised, (pattern, [finding.advice for finding in before])
    if program.lessens is None:
        assert after == []
    else:
        assert program.lessens in str(advised[0].advice)
        assert total(after) < total(before)
    old, new = flat(json.loads(said)), flat(json.loads(now))
    assert program.silent or new == (pytest.approx(old, rel=1e-5, abs=1e-6) if program.near else old)


def test_every_code_with_an_instruction_is_followed_or_decided() -> None:
    followed = {code for program in PROGRAMS for code in program.code.split(">")}
    assert followed | set(DECIDED) == {entry.code for entry in catalog.codes()}
    assert not followed & set(DECIDED)
    assert len(PROGRAMS) >= 90


@pytest.mark.parametrize("code", DECIDED)
def test_advice_that_cannot_be_followed_mechanically_says_what_to_decide(code: str) -> None:
    assert DECIDED[code] in catalog.entry(code).fix


def flat(value: list[Any]) -> list[Any]:
    """What a program said, one number or text after the other."""
    return [item for one in value for item in (flat(one) if isinstance(one, list) else [one])]


def total(findings: list[Finding]) -> int:
    return sum(finding.counts.occurrences for finding in findings)
