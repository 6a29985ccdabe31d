"""What a command does not use, it does not import."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import report_samples
from scanning import run_python

from breakscope.report import schema

HEAVY = {"torch", "pandas", "libcst", "jinja2", "pydantic"}  # the last is what typer brings
# Of our own: its records take 15 ms to make.
MODEL = {"breakscope.report.model"}
README = Path(__file__).parent.parent / "README.md"

# Runs a command line and then prints which modules it has loaded, on a line of their own.
PROGRAM = """
import sys
from breakscope.cli import main
code = main(sys.argv[1:])
sys.stdout.flush()
print("\\nLOADED", code, *sorted(sys.modules))
"""


def loaded(folder: Path, *words: str) -> tuple[int, set[str], str]:
    """Exit code, loaded modules and output of one command."""
    done = run_python("-c", PROGRAM, *words, folder=folder, COLUMNS="200")
    output, _, last = done.stdout.rpartition("\nLOADED ")
    code, *names = last.split()
    return int(code), set(names), output + done.stderr


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder in which a scan has left a report."""
    (tmp_path / ".breakscope").mkdir()
    (tmp_path / "train.py").write_text("")  # the report's script: that of another project would be refused
    schema.save(report_samples.RECOMPILES, tmp_path / ".breakscope" / "latest.json")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "exit_code", "shows", "without"),
    [
        (("--help",), 0, "scan", HEAVY | MODEL | {"rich"}),
        (("--version",), 0, "breakscope", HEAVY | MODEL | {"rich"}),
        (("scan", "--help"), 0, "--compile", HEAVY | {"rich"}),
        (("report",), 0, "BS201", HEAVY | {"breakscope.report.benchmark", "rich.table"}),
        (("report", "--format", "json"), 0, '"schema_version"', HEAVY | {"rich"}),
        (("report", "--format", "csv"), 0, '"fingerprint"', HEAVY | {"rich"}),
        (("report", "--format", "sarif"), 0, '"$schema"', HEAVY | {"rich"}),
        (("check", "--format", "csv"), 1, '"fingerprint"', HEAVY | {"rich"}),
        (("lint", "train.py", "--format", "sarif"), 0, '"$schema"', HEAVY),
        (("lint", "train.py"), 0, "no possible", HEAVY),
        (("explain", "BS101"), 0, "BS101", HEAVY | MODEL | {"rich"}),
        (("explain", "GB0170"), 0, "GB0170", HEAVY | {"rich"}),
        (("check",), 1, "FAILED", HEAVY),
        (("check", "--format", "json"), 1, '"check_version"', HEAVY | {"rich"}),
        (("config",), 0, "baseline", HEAVY | {"rich"}),
        (("scan", "nothing.py"), 2, "nothing.py", HEAVY | {"rich"}),
        (("report", "nothing.json"), 2, "nothing.json", HEAVY | {"rich"}),
        (("scan", "--compyle", "auto", "script.py"), 2, "--compile", HEAVY | {"rich"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_loads_only_what_it_uses(
    saved: Path, words: tuple[str, ...], exit_code: int, shows: str, without: set[str]
) -> None:
    code, names, output = loaded(saved, *words)
    assert code == exit_code, output
    assert shows in output
    assert "breakscope" in names
    assert not without & names


def test_help_knows_every_option_of_the_readme(tmp_path: Path) -> None:
    """Options are named in tables, one command a row or a table; each must be real."""
    rows = [line for line in README.read_text().splitlines() if line.startswith("|")]
    named = {option for row in rows for option in re.findall(r"`(--[a-z][a-z-]*)", row)}
    commands = re.findall(r"^  ([a-z]+) ", loaded(tmp_path, "--help")[2], re.MULTILINE)
    assert {"scan", "report", "explain"} <= set(commands)
    helps = [loaded(tmp_path, command, "--help") for command in commands]
    assert all(code == 0 for code, _, _ in helps)
    known = set(re.findall(r"--[a-z][a-z-]*", " ".join(output for _, _, output in helps)))
    known |= set(re.findall(r"--[a-z][a-z-]*", loaded(tmp_path, "--help")[2]))
    assert {"--compile", "--format"} <= known
    assert named <= known
