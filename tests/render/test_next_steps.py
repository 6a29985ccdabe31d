"""Which commands a report sends its reader on to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_samples import BRANCH, CLEAN, COSTS

from breakscope.fix.remedies.engine import treats
from breakscope.fix.together import FIXABLE
from breakscope.report.model import Finding, Report, Suggestion
from breakscope.view.next_steps import answers

RECOMPILE = replace(BRANCH, code="BS201", kind="recompile")
LIMIT = replace(BRANCH, code="BS303", kind="skip")


def offered(*findings: Finding, **run: object) -> list[str]:
    report: Report = replace(CLEAN, findings=findings, run=replace(CLEAN.run, **run))  # type: ignore[arg-type]
    return [command for command, _ in answers(report, " r.json")]


def test_breaks_are_for_fix_and_recompiles_for_remedy():
    assert offered() == []
    assert offered(BRANCH) == ["breakscope fix r.json"]
    assert offered(RECOMPILE) == ["breakscope remedy r.json"]
    assert offered(BRANCH, RECOMPILE) == ["breakscope fix r.json", "breakscope remedy r.json"]
    assert offered(LIMIT) == ["breakscope remedy r.json"]


def test_what_is_offered_takes_such_findings():
    for finding in (*COSTS.findings, BRANCH, RECOMPILE, LIMIT):
        commands = offered(finding)
        if "breakscope fix r.json" in commands:
            assert finding.kind in FIXABLE
        assert ("breakscope remedy r.json" in commands) == treats(finding, CLEAN)


def test_what_was_tried_or_is_meant_to_be_so_is_not_offered_again():
    tried = Suggestion("none", "no change is proposed", "", "refused", "the branch returns early")
    assert offered(replace(BRANCH, suggestion=tried)) == []
    assert offered(replace(BRANCH, intended="the optimizer's housekeeping runs eagerly by design")) == []


@pytest.mark.parametrize("run", [{"status": "unknown"}, {"status": "killed"}, {"world_size": 2}])
def test_a_script_that_cannot_be_run_again_as_it_was_gets_no_offer(run):
    assert offered(BRANCH, RECOMPILE, **run) == []


def test_a_script_that_failed_is_to_be_run_uncompiled():
    """A run that dies of what Dynamo makes of a line says so nowhere else."""
    failed = {"status": "script_error", "script": "train.py", "argv": ("--lr", "1 e-3")}
    assert offered(BRANCH, **failed) == ["TORCHDYNAMO_DISABLE=1 python train.py --lr '1 e-3'"]
    assert offered(BRANCH, **failed, world_size=2) == []
    assert offered(BRANCH, **{**failed, "script": "-m train"}) == []
    tried = replace(BRANCH, effect="ended", explanation="It raised.\nTried: the same call passes in eager.")
    assert offered(tried, **failed) == []  # the scan knows that already


def test_a_script_that_failed_before_anything_was_compiled_is_to_be_run_as_it_is():
    run = replace(CLEAN.run, status="script_error", script="train.py", argv=())
    empty = replace(CLEAN, run=run, reconciliation=replace(CLEAN.reconciliation, vacuous=True))
    assert [command for command, _ in answers(empty, "")] == ["python train.py"]
