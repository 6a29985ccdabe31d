"""One word for one thing: every option means the same in all commands, and what it was called before still works."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import report_samples as samples
from test_cli_contract import LOG, breakscope
from typer.models import OptionInfo

from breakscope.cli import arguments
from breakscope.cli.app import NAMES, Commands
from breakscope.cli.remedy import _chosen
from breakscope.cli.spelling import OLD
from breakscope.errors import UsageError
from breakscope.report import schema
from breakscope.report.model import Report, Timing

COMMANDS = Commands()

# What an option is called, and what stands behind it wherever it is there.
MEANINGS = {
    "--select": "CODES",
    "--ignore": "CODES",
    "--timeout": "SECONDS",
    "--budget": "SECONDS",
    "--output": "FILE",
    "--baseline": "FILE",
    "--fixes": "DIR",
    "--limit": "N",
    "--jobs": "N",
    "--steps": "N",
}
SHORT = {"--format": "-f", "--output": "-o", "--jobs": "-j", "--quiet": "-q"}


def options() -> Iterator[tuple[str, str, Any]]:
    """Command, name and option, for every name that is not an old one."""
    for command in NAMES:
        for option in COMMANDS[command].params:
            if option.param_type_name == "option" and not option.hidden:
                yield from (
                    (command, name, option) for name in option.opts if name not in OLD.get(command, {})
                )


def test_no_option_takes_its_name_from_what_stands_behind_it() -> None:
    """typer 0.27 calls an option `--MODES` whose metavar is MODES, unless its name is written out."""
    assert not [
        f"{command} --{name}"
        for command in NAMES
        for name, hint in get_type_hints(
            inspect.unwrap(COMMANDS[command].callback), include_extras=True
        ).items()
        for option in getattr(hint, "__metadata__", ())
        if isinstance(option, OptionInfo)
        and (option.metavar or "").casefold() == name
        # The first word of an Annotated option is its default, as far as typer knows at first.
        and not str(option.default).startswith("--")
    ]


@pytest.mark.parametrize(("name", "metavar"), MEANINGS.items())
def test_an_option_takes_the_same_everywhere(name: str, metavar: str) -> None:
    found = {command: option.metavar for command, one, option in options() if one == name}
    assert found
    assert set(found.values()) == {metavar}, found


@pytest.mark.parametrize(("name", "short"), SHORT.items())
def test_an_option_has_its_short_form_everywhere(name: str, short: str) -> None:
    found = {command: option.opts for command, one, option in options() if one == name}
    assert found
    assert all(short in names for names in found.values()), found


def test_json_is_a_format_everywhere() -> None:
    assert "--json" not in {name for _, name, _ in options()}


def test_what_takes_a_value_says_which() -> None:
    without = {
        (command, name)
        for command, name, option in options()
        if not option.is_flag and not option.metavar and command != ""
    }
    assert without == set()


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        (["BS201,BS209"], ("BS201", "BS209")),
        (["BS201", "BS209"], ("BS201", "BS209")),
        ([" bs2 ,", "BS101"], ("BS2", "BS101")),
        (None, ()),
    ],
)
def test_codes_take_commas_and_repetition(said: list[str] | None, codes: tuple[str, ...]) -> None:
    assert arguments.codes(said) == codes


@pytest.mark.parametrize("command", ["fix --trust-report", "remedy", "lint"])
def test_a_code_that_does_not_exist_is_an_error(command: str, project: Path) -> None:
    ended = breakscope(*command.split(), "--select", "BS101,BS777")
    assert ended.code == 2
    assert "BS777" in ended.err


def test_remedy_takes_codes_prefixes_and_fingerprints() -> None:
    report: Report = samples.RECOMPILES
    recompiles = [one.fingerprint for one in report.findings if one.code.startswith("BS2")]
    assert recompiles
    assert _chosen(report, (), ()) == recompiles
    assert _chosen(report, ("BS2",), ()) == recompiles
    assert _chosen(report, (recompiles[0][:10],), ()) == recompiles[:1]
    assert _chosen(report, ("BS1",), ()) == []
    assert _chosen(report, (), ("BS2",)) == []
    with pytest.raises(UsageError, match="NONSENSE"):
        _chosen(report, ("nonsense",), ())


# ---- what was called something else ----


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('not run')\n")
    (tmp_path / ".breakscope").mkdir()
    run = replace(samples.COSTS.run, cwd=str(tmp_path), script="train.py")
    schema.save(replace(samples.COSTS, run=run), tmp_path / ".breakscope" / "latest.json")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        ("fix --rules -o out", "-o", "--fixes"),
        ("fix --rules --output=out", "--output", "--fixes"),
        ("fix --rules --format text", "--format text", "--format terminal"),
        ("bench --budget none.json train.py", "--budget", "--against"),
        ("bench --json --against none.json train.py", "--json", "--format json"),
        ("prove missing.patch --format=text -- train.py", "--format text", "--format terminal"),
    ],
)
def test_an_old_spelling_works_and_says_the_new_one(project: Path, line: str, old: str, new: str) -> None:
    ended = breakscope(*line.split())
    assert f"breakscope: note: {old} is now {new}; the old spelling goes away in 0.3\n" in ended.err
    assert "no such option" not in ended.err


@pytest.mark.parametrize(
    "line", ["bench --against none.json train.py --budget 3", "fix --rules", "fix --rules --fixes out"]
)
def test_nothing_is_said_of_the_new_spelling_or_of_the_script(project: Path, line: str) -> None:
    assert "is now" not in breakscope(*line.split()).err


def test_old_spellings_are_not_in_the_help() -> None:
    for command, old in OLD.items():
        text = breakscope(command, "--help").out
        for spelling in old:
            if " " not in spelling:
                assert not re.search(rf"^  .*{spelling}\b", text, re.MULTILINE), (command, spelling)


# ---- folders of reports ----


def test_merge_of_our_folder_takes_the_latest_scan_alone(project: Path) -> None:
    ours = project / ".breakscope"
    text = (ours / "latest.json").read_text()
    for name in (
        "2026-11-22T10-00-00-77.json",
        "2026-11-21T10-00-00-78.json",
        "imported-3.json",
        "bench.json",
    ):
        (ours / name).write_text(text)
    (ours / "baseline.json").write_text('{\n "breakscope_baseline": 1,\n "targets": {}\n}\n')
    ended = breakscope("merge", ".breakscope", "-o", "merged.json")
    assert ended.code == 0, ended.err
    assert "left out 3 earlier scans" in ended.err
    assert len(schema.load(project / "merged.json").ranks) == 1


def test_an_import_of_a_log_is_kept_under_a_name(project: Path) -> None:
    """A log does not say when its job began."""
    (project / "job.log").write_text(LOG)
    for _ in range(2):
        assert breakscope("import", "job.log", "-q").code == 0
    kept = {one.name for one in (project / ".breakscope").glob("*.json")}
    assert kept == {"latest.json", f"imported-{os.getpid()}.json"}


def test_nothing_is_called_lost_where_a_process_was_not_timed(project: Path) -> None:
    """The one that was timed has no break, and the one that breaks was not timed."""
    timing = Timing("replayed", 6, step_ms=0.5, spread_ms=0.01, regions_ms=0.4, breaks_ms=0.0, bound="host")
    schema.save(replace(samples.CLEAN, timing=timing), project / "timed.json")
    untimed = replace(
        samples.COSTS,
        timing=None,
        findings=tuple(replace(one, cost=None) for one in samples.COSTS.findings),
    )
    schema.save(untimed, project / "untimed.json")
    ended = breakscope("merge", "timed.json", "untimed.json", "-o", "both.json")
    said = " ".join(ended.out.split())
    assert "lost at breaks" not in said
    assert "cost not measured: 1 of 2 processes was not timed" in said


def test_our_folder_keeps_itself_out_of_version_control(project: Path) -> None:
    ours = project / ".breakscope"
    assert (ours / ".gitignore").read_text() == "*\n!baseline.json\n"
    (ours / ".gitignore").write_text("mine\n")
    (ours / "baseline.json").touch()
    schema.save(samples.CLEAN, ours / "other.json")
    assert (ours / ".gitignore").read_text() == "mine\n"
    (ours / ".gitignore").unlink()
    schema.save(samples.CLEAN, ours / "other.json")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    listed = ["git", "ls-files", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=project, check=True, capture_output=True, text=True)
    assert sorted(done.stdout.split()) == [".breakscope/baseline.json", "train.py"]


def test_a_folder_that_is_not_ours_gets_no_gitignore(project: Path) -> None:
    schema.save(samples.CLEAN, project / "other.json")
    assert not (project / ".gitignore").exists()
