"""Fixes applied while source is loaded: to modules, packages and the script, and only to what they fit."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from scanning import run_cold, run_python

SCRIPT = """\
import helper
import pkg
import traceback

def value():
    return 1

def fails():
    raise ValueError("as ever")

print(__name__, value(), helper.value(), pkg.value())
try:
    fails()
except ValueError as error:
    print(traceback.extract_tb(error.__traceback__)[-1].lineno)
"""
MODULE = "def value():\n    return 1\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(MODULE)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text(MODULE)
    return tmp_path


def fix(
    folder: Path, *files: tuple[str, str | None], replaced: str = "return 1", by: str = "return 2"
) -> None:
    """A folder of fixes that changes ``replaced`` in files."""
    entries = []
    for name, module in files:
        data = (folder / name).read_bytes()
        at = data.decode().index(replaced)
        edit = [at, at + len(replaced), by]
        digest = hashlib.sha256(data).hexdigest()
        entries.append({"file": str(folder / name), "module": module, "sha256": digest, "edits": [edit]})
    (folder / "fixes").mkdir(exist_ok=True)
    manifest = {"version": 1, "config": {}, "files": entries}
    (folder / "fixes" / "manifest.json").write_text(json.dumps(manifest))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_cold("run", "--fixes", "fixes", *words, folder=folder)


def test_modules_packages_and_the_script_are_fixed_and_no_file_is_touched(project: Path) -> None:
    fix(project, ("script.py", None), ("helper.py", "helper"), ("pkg/__init__.py", "pkg"))
    before = {path: path.read_bytes() for path in project.rglob("*.py")}
    done = run(project, "script.py")
    assert done.stdout.splitlines() == ["__main__ 2 2 2", "9"]
    assert done.stderr == ""
    assert {path: path.read_bytes() for path in project.rglob("*.py")} == before


def test_a_module_run_with_m_is_fixed(project: Path) -> None:
    fix(project, ("script.py", "script"), ("helper.py", "helper"))
    assert run(project, "-m", "script").stdout.splitlines()[0] == "__main__ 2 2 1"


def test_lines_of_unchanged_code_keep_their_numbers(project: Path) -> None:
    fix(
        project,
        ("script.py", None),
        replaced="    return 1\n",
        by="    # why\n    one = 1\n\n    return one + 1\n",
    )
    assert run(project, "script.py").stdout.splitlines() == ["__main__ 2 1 1", "9"]


def test_a_file_that_has_changed_is_loaded_as_it_is_with_a_warning(project: Path) -> None:
    fix(project, ("helper.py", "helper"))
    (project / "helper.py").write_text(MODULE.replace("1", "7"))
    done = run(project, "script.py")
    assert done.stdout.splitlines()[0] == "__main__ 1 7 1"
    assert "helper.py has changed since its fix was made" in done.stderr


def test_a_compiled_file_of_before_is_not_used_and_none_is_left(project: Path) -> None:
    run_python("-c", "import helper", folder=project, check=True)
    fix(project, ("helper.py", "helper"))
    assert run(project, "script.py").stdout.splitlines()[0] == "__main__ 1 2 1"
    plain = run_python("script.py", folder=project, check=True)
    assert plain.stdout.splitlines()[0] == "__main__ 1 1 1"


def test_the_scripts_own_error_shows_no_frame_of_ours(project: Path) -> None:
    fix(project, ("script.py", None))
    with (project / "script.py").open("a") as file:
        file.write("fails()\n")
    fix(project, ("script.py", None))
    done = run(project, "script.py")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "breakscope" not in done.stderr
    assert done.stderr.rstrip().endswith("ValueError: as ever")


@pytest.mark.torch
def test_settings_of_dynamo_are_set_when_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "fixes").mkdir()
    manifest = {"version": 1, "config": {"capture_scalar_outputs": True}, "files": []}
    (tmp_path / "fixes" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "script.py").write_text(
        "import torch._dynamo\nprint(torch._dynamo.config.capture_scalar_outputs)\n"
    )
    assert run(tmp_path, "script.py").stdout.strip() == "True"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there are no fixes in fixes"),
        ("{", "cannot read the fixes in fixes"),
        ('{"version": 99, "files": []}', "of another version of breakscope"),
        ("[]", "not a manifest of fixes"),
    ],
)
def test_a_folder_that_is_none_of_ours_is_a_sentence(
    project: Path, content: str | None, sentence: str
) -> None:
    if content is not None:
        (project / "fixes").mkdir()
        (project / "fixes" / "manifest.json").write_text(content)
    done = run(project, "script.py")
    assert done.returncode == 2
    assert done.stderr.startswith("breakscope: ")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
