"""Good scripts are told that they are healthy, and pass; a planted fault stands first among what is harmless.

Each program of ``healthy`` says at its top what it does; each of ``faults`` which code is shown first, with
which line. All of them train, evaluate and have a smaller last batch: recompiles that are no fault.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from first_screen import first_finding, first_line
from warm_scanning import Seen, WarmScans

from breakscope.report.ranking import is_open

pytestmark = [pytest.mark.torch, pytest.mark.slow]

HERE = Path(__file__).parent
HEALTHY = sorted((HERE / "healthy").glob("*.py"))
FAULTS = sorted((HERE / "faults").glob("*.py"))
WITHOUT_GRADIENTS = "one graph with gradients and one without"
See = Callable[[Path], Seen]


@pytest.fixture
def see(warm: WarmScans, tmp_path: Path) -> See:
    return lambda program: warm.see(tmp_path, program.read_text(), name=program.name)


def test_there_are_ten_of_each() -> None:
    assert (len(HEALTHY) >= 10, len(FAULTS) >= 10) == (True, True)


@pytest.mark.parametrize("program", HEALTHY, ids=lambda program: program.stem)
def test_a_healthy_script_is_called_healthy_and_passes(see: See, program: Path) -> None:
    seen = see(program)
    assert first_line(seen.screen).startswith("healthy: no graph break")
    assert first_finding(seen.screen) == ("none", "")
    assert seen.check == 0
    assert not any(map(is_open, seen.report.findings))


@pytest.mark.parametrize("program", FAULTS, ids=lambda program: program.stem)
def test_a_planted_fault_stands_first(see: See, program: Path) -> None:
    wanted, line = program.read_text().split("\n", 1)[0].removeprefix("# planted: ").split(" | ")
    seen = see(program)
    code, text = first_finding(seen.screen)
    assert code in wanted.split(", ")
    assert line in text
    assert "healthy" not in first_line(seen.screen)
    assert seen.check == (3 if seen.report.reconciliation.vacuous else 1)
    assert {one.expected for one in seen.report.findings if one.code == "BS212"} <= {WITHOUT_GRADIENTS}
    assert WITHOUT_GRADIENTS in " ".join(seen.screen.split()) or seen.report.reconciliation.vacuous
