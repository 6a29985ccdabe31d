"""Advice is tested by following it: the finding goes, or is less as the advice says, and the outputs agree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from followed import Followed
from programs_breaks import BREAKS
from programs_recompiles import RECOMPILES
from warm_scanning import WarmScans, coded

from breakscope import catalog
from breakscope.report.model import Finding

pytestmark = pytest.mark.torch

PROGRAMS = (*BREAKS, *RECOMPILES)


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmScans]:
    scans = WarmScans()
    yield scans
    scans.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_followed_advice_helps(program: Followed, warm: WarmScans, tmp_path: Path) -> None:
    before = coded(warm.scan(tmp_path, program.before, *program.options, name="before.py"), program.code)
    said = flat(json.loads((tmp_path / "said.json").read_text()))
    advised = [finding for finding in before if re.search(program.advice, str(finding.advice), re.DOTALL)]
    assert advised, [finding.advice for finding in before]
    after = coded(warm.scan(tmp_path, program.after, *program.options, name="after.py"), program.code)
    if program.lessens is None:
        assert after == []
    else:
        assert program.lessens in str(advised[0].advice)
        assert total(after) < total(before)
    now = flat(json.loads((tmp_path / "said.json").read_text()))
    assert now == (pytest.approx(said, rel=1e-5, abs=1e-6) if program.near else said)


def flat(value: list[Any]) -> list[Any]:
    """What a program said, one number or text after the other."""
    return [item for one in value for item in (flat(one) if isinstance(one, list) else [one])]


def total(findings: list[Finding]) -> int:
    return sum(finding.counts.occurrences for finding in findings)
