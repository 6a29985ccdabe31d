"""What people's scripts and CI rely on: every command with its options, and the exit code of every kind of ending.

The help of each command lies in ``recorded/help``. A change of it is a change of the contract: record it with
``python tests/test_cli_contract.py`` and say in the changelog what was added. What is taken away needs a new
minor version (CONTRIBUTING.md, "Versions").
"""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pytest
import report_samples as samples

from breakscope.cli import main
from breakscope.cli.app import NAMES
from breakscope.render import FORMATS
from breakscope.report import schema
from breakscope.report.model import Artifact, Report

RECORDED = Path(__file__).parent / "recorded" / "help"
EXIT_CODES = Path(__file__).parent.parent / "docs" / "exit-codes.md"
COMMANDS = ("", *NAMES)
LOG = """\
V1122 20:00:00.000000 7 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] Graph break in user code at net.py:3
V1122 20:00:00.000000 7 torch/_dynamo/symbolic_convert.py:1] [0/0] [__graph_breaks] Graph Break Reason: why
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def breakscope(*words: str) -> Ended:
    """A command line, run in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
        out.flush()
    return Ended(code, out.buffer.getvalue().decode(), err.getvalue())


def help_of(name: str) -> str:
    """The help as a terminal of 100 columns shows it, whatever this one is and says."""
    plain = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    with mock.patch.dict(os.environ, {**plain, "COLUMNS": "100", "NO_COLOR": "1"}, clear=True):
        ended = breakscope(*filter(None, [name, "--help"]))
    assert ended.code == 0, ended.err
    return ended.out


def file_of(name: str) -> Path:
    return RECORDED / f"{name or 'breakscope'}.txt"


@pytest.mark.parametrize("name", COMMANDS, ids=lambda name: name or "breakscope")
def test_the_help_is_as_recorded(name: str) -> None:
    assert help_of(name) == file_of(name).read_text()


def test_every_recorded_command_is_still_there() -> None:
    assert {file.stem for file in RECORDED.iterdir()} == {*NAMES, "breakscope"}


def test_without_a_command_it_says_what_there_is() -> None:
    alone = breakscope()
    assert alone.code == 0
    assert "Repair:\n  fix" in alone.out
    assert alone.err == ""


# ---- exit codes ----


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that holds a report with findings, one without, one in which nothing was compiled, and rubbish."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text("print('not run')\n")
    (tmp_path / "branchy.py").write_text(
        "import torch\n\n\n@torch.compile\ndef f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    )
    for name, report in {
        "broken": samples.COSTS,
        "healthy": samples.CLEAN,
        "vacuous": samples.VACUOUS,
    }.items():
        save(report, tmp_path, tmp_path / f"{name}.json")
    kept = Artifact("0/0", "graph", "0" * 64, 1)
    save(replace(samples.CLEAN, artifacts=(kept,)), tmp_path, tmp_path / "kept.json")
    (tmp_path / "trace.log").write_text(LOG)
    (tmp_path / "rubbish.json").write_text("{")
    return tmp_path


def save(report: Report, folder: Path, file: Path) -> None:
    run = replace(report.run, cwd=str(folder), script="train.py")
    schema.save(replace(report, run=run), file)


CHECKED = ((0, "healthy"), (1, "broken"), (3, "vacuous"))
CODES = [
    ("0: what was asked for was done", 0, "--version"),
    ("0: what was asked for was done", 0, "report broken.json"),
    ("0: what was asked for was done", 0, "diff broken.json healthy.json"),
    ("0: what was asked for was done", 0, "merge broken.json healthy.json -o both.json"),
    ("0: what was asked for was done", 0, "explain BS101"),
    ("0: what was asked for was done", 0, "config"),
    ("0: what was asked for was done", 0, "schema"),
    ("0: nothing new was found", 0, "check healthy.json"),
    ("0: lint found nothing", 0, "lint train.py"),
    ("1: something new was found", 1, "check broken.json"),
    ("1: lint found a likely break", 1, "lint branchy.py"),
    ("2: usage", 2, "nonsense"),
    ("2: usage", 2, "report --no-such-option"),
    ("2: usage", 2, "scan"),
    ("2: usage", 2, "scan no_such_script.py"),
    ("2: usage", 2, "scan --steps many train.py"),
    ("2: usage", 2, "report no_such_report.json"),
    ("2: usage", 2, "report rubbish.json"),
    ("2: usage", 2, "report broken.json -f no-such-format"),
    ("2: usage", 2, "check rubbish.json"),
    ("0: what was asked for was done", 0, "import trace.log -o imported.json"),
    ("0: what was asked for was done", 0, "show 0/0 kept.json"),
    ("0: there is nothing to treat", 0, "remedy healthy.json --trust-report"),
    ("2: usage", 2, "explain BS999"),
    ("2: usage", 2, "config --config no_such_file.toml"),
    ("2: usage", 2, "schema --no-such-option"),
    ("2: usage", 2, "diff healthy.json no_such_report.json"),
    ("2: usage", 2, "merge no_such_report.json -o both.json"),
    ("2: usage", 2, "merge healthy.json"),
    ("2: usage", 2, "import no_such_trace"),
    ("2: usage", 2, "show 0/0 healthy.json"),
    ("2: usage", 2, "run --fixes fixes no_such_script.py"),
    ("2: usage", 2, "fix no_such_report.json"),
    ("2: usage", 2, "fix healthy.json"),
    ("2: usage", 2, "prove no_such.patch -- train.py"),
    ("2: usage", 2, "remedy no_such_report.json"),
    ("2: usage", 2, "remedy broken.json --select BS777"),
    ("2: usage", 2, "bench no_such_script.py"),
    ("2: usage", 2, "check healthy.json --config no_such_file.toml"),
    ("2: usage", 2, "lint no_such_file.py"),
    ("3: a report that means nothing", 3, "check vacuous.json"),
]


@pytest.mark.parametrize(("meaning", "code", "line"), CODES, ids=[line for _, _, line in CODES])
def test_exit_codes_mean_what_the_readme_says(folder: Path, meaning: str, code: int, line: str) -> None:
    ended = breakscope(*line.split())
    assert ended.code == code, f"{meaning}\n{ended.out}\n{ended.err}"
    if code == 2:
        sentence = ended.err.strip()
        assert sentence.startswith("breakscope: ")
        assert "\n" not in sentence
        assert "Traceback" not in sentence


# What needs runs of a real script is asked where those are made.
ELSEWHERE = {
    ("scan", 0): "run/test_scan_ends.py::test_every_end_leaves_a_whole_report",
    ("run", 0): "run/test_other_python.py::test_run_exits_with_the_status_of_the_script",
    ("fix", 0): "fix/test_fix.py::test_from_a_scan_to_a_repaired_file",
    (
        "fix",
        1,
    ): "fix/test_fix.py::test_what_is_wrong_is_refused_with_the_input_that_shows_it_and_nothing_is_written",
    ("prove", 0): "prove/test_prove_command.py::test_the_script_of_a_report_is_run_as_it_was_scanned",
    ("prove", 1): "prove/test_prove_command.py::test_a_helper_that_others_use_is_not_excused_by_one_caller",
    ("remedy", 0): "fix/remedies/test_remedy_honest.py::test_a_learning_rate_becomes_a_tensor",
    ("remedy", 1): "fix/remedies/test_remedy_honest.py::test_equal_outputs_are_not_enough",
    ("bench", 0): "bench/test_bench_short.py::test_a_script_of_as_many_steps_as_are_needed_is_measured",
    ("bench", 1): "bench/test_bench_arms.py::test_an_arm_that_computes_something_else_is_an_error",
    ("bench", 3): "bench/test_bench_arms.py::test_a_script_without_steps",
}


def table() -> set[tuple[str, int]]:
    """Every command and exit code of the table in the documentation."""
    rows = [line for line in EXIT_CODES.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {
        (name, code)
        for commands, *meanings in cells
        for name in re.findall(r"`(\w+)`", commands)
        for code, meaning in enumerate(meanings)
        if meaning
    }


def test_the_table_of_exit_codes_is_what_is_tested() -> None:
    assert {name for name, _ in table()} == set(NAMES)
    here = {(line.split()[0], code) for _, code, line in CODES}
    assert table() <= here | ELSEWHERE.keys()
    assert {cell for cell in here if cell[0] in NAMES} <= table()
    for node in ELSEWHERE.values():
        file, _, name = node.partition("::")
        assert f"def {name}(" in (Path(__file__).parent / file).read_text(), node


# ---- formats ----

LINT_FORMATS = ("full", "concise", "json", "sarif", "github")
BY_FORMAT = [
    *((code, f"check {report}.json -f {name}") for name in FORMATS for code, report in CHECKED),
    *((0, f"report {report}.json -f {name}") for name in FORMATS for report in ("broken", "vacuous")),
    *((0, f"diff healthy.json broken.json -f {name}") for name in ("terminal", "markdown", "json")),
    *((1, f"lint branchy.py -f {name}") for name in LINT_FORMATS),
    *((0, f"lint train.py -f {name}") for name in LINT_FORMATS),
    *((0, f"fix --rules -f {name}") for name in ("terminal", "json")),
    *((2, f"{command} -f no-such-format") for command in ("diff a b", "lint", "fix", "prove x", "bench x")),
]


@pytest.mark.parametrize(("code", "line"), BY_FORMAT, ids=[line for _, line in BY_FORMAT])
def test_the_format_does_not_change_the_exit_code(folder: Path, code: int, line: str) -> None:
    ended = breakscope(*line.split(), "-o", "written") if code != 2 and "fix" not in line else None
    written = (folder / "written").read_bytes() if ended else b"-"
    ended = ended or breakscope(*line.split())
    assert ended.code == code, ended.err
    assert "internal error" not in ended.err
    assert written or "-f github" in line


if __name__ == "__main__":
    RECORDED.mkdir(parents=True, exist_ok=True)
    for stale in RECORDED.iterdir():
        stale.unlink()
    for command in COMMANDS:
        file_of(command).write_text(help_of(command))
    print(f"recorded the help of {len(COMMANDS)} commands in {RECORDED}", file=sys.stderr)
