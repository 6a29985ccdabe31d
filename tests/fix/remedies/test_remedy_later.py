"""What a remedy that a short run proved does in a long one: the same, or what it changes was said beforehand."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from later_programs import PROGRAMS
from scanning import rows, run_cold, run_python

import breakscope
from breakscope.report.model import Suggestion


@dataclass(frozen=True)
class Truth:
    """What becomes of a program.

    Attributes:
        rule: of the proved remedy; None: it is refused. said: words of the reason, the caveat or the limit.
        caveat: the remedy needs consent. same: the long run prints the same with it.
    """

    code: str
    rule: str | None
    said: str = ""
    caveat: bool = False
    same: bool = True


MARKS = {"code": "BS201", "rule": "mark-dynamic"}
NUMBER = {"code": "BS207", "rule": "scalar-to-tensor"}
BUFFER = {"code": "BS209", "rule": "attribute-to-buffer", "caveat": True}
NO_GRAD = {"code": "BS216", "rule": "no-grad", "caveat": True}
TRUTH = {
    "a batch of size 1": Truth(**MARKS),
    "a size that other code fixes": Truth(**MARKS),
    "a mask that is None": Truth(**MARKS),
    "a mask that is None without a word of it": Truth(**MARKS),
    "a tensor of fewer dimensions": Truth(**MARKS),
    "marks that travel with the tensor": Truth(**MARKS, said="the mark is an attribute", same=False),
    "one row that broadcasts": Truth("BS201", "mark-unbacked", "a later call that broadcasts", True, False),
    "an integer tensor": Truth(**NUMBER, said="integers give float64", same=False),
    "a number that is an int": Truth(**NUMBER, said="must be a float in every call", same=False),
    "a number that is asked for its type": Truth(**NUMBER, said="isinstance", caveat=True, same=False),
    "a number for a shape": Truth(**NUMBER, said="is a tensor of float64 in the function", caveat=True),
    "a number that is kept": Truth("BS207", None, "recompiles remain"),
    "a hook that sees the number": Truth(**NUMBER, said="in its hooks", caveat=True, same=False),
    "a learning rate in a checkpoint": Truth(**NUMBER, said="checkpoints, json", caveat=True, same=False),
    "a learning rate of two groups": Truth("BS207", None, "with it the script prints "),
    "a learning rate in single precision": Truth(**NUMBER, said="hold a tensor as lr", caveat=True),
    "an attribute that is set again": Truth("BS209", None, "is given a plain number in line 23"),
    "an attribute in half precision": Truth(**BUFFER, said=".half() convert it", same=False),
    "an attribute that was noted": Truth(**BUFFER, said="wherever it was noted", same=False),
    "an attribute that an average takes up": Truth(**BUFFER, said="and a buffer", same=False),
    "a checkpoint made before": Truth(**BUFFER, said="state_dict() has the same keys"),
    "an inference mode with a flag": Truth(**NO_GRAD, said="ordinary tensors"),
    "an inference mode that is asked for": Truth(**NO_GRAD, said="is_inference() is False", same=False),
    "an option that other code sees": Truth("BS303", "unspecialised-int", "everything that the process compiles", True),
}  # fmt: skip
# One of each kind; the others are for the night.
EVERY_RUN = {"an attribute that is set again"}


def long_run(folder: Path) -> tuple[str, int]:
    done = run_python("script.py", folder=folder, STEPS="30")
    return done.stdout, done.returncode


def remedied(folder: Path, code: str) -> Suggestion:
    """The suggestion for the only finding of a code, after a short run."""
    for words in (["scan", "-q", "script.py"], ["remedy", "-q", "--select", code]):
        done = run_cold(*words, folder=folder, STEPS="6")
        assert done.returncode in (0, 1), done.stderr
    report = breakscope.load(folder / ".breakscope" / "latest.json")
    [finding] = [one for one in report.findings if one.code == code]
    assert finding.suggestion is not None
    assert done.returncode == (0 if finding.suggestion.label == "proved" else 1), done.stderr
    return finding.suggestion


def test_there_is_a_truth_about_every_program() -> None:
    assert TRUTH.keys() == PROGRAMS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", rows(TRUTH, EVERY_RUN))
def test_a_long_run_does_what_the_short_one_said(name: str, tmp_path: Path) -> None:
    truth = TRUTH[name]
    (tmp_path / "script.py").write_text(PROGRAMS[name])
    found = remedied(tmp_path, truth.code)
    if truth.rule is None:
        assert found.status == "refused"
        assert truth.said in found.why
        return
    assert (found.label, found.rule) == ("needs consent" if truth.caveat else "proved", truth.rule), found
    assert truth.said in f"{found.evidence.get('caveat')} {found.evidence.get('limits')}"
    before = long_run(tmp_path)
    assert before[1] == 0
    (tmp_path / "change.patch").write_text(found.diff)
    subprocess.run(["git", "apply", "change.patch"], cwd=tmp_path, check=True, env={**os.environ})
    assert (long_run(tmp_path) == before) == truth.same
