"""breakscope as a tool of its own environment, and the script under the Python of another that has torch."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scanning import clean_environment, run_python
from test_cli_contract import breakscope

import breakscope as package
from breakscope.errors import UsageError
from breakscope.fix import store
from breakscope.run import interpreter

ROOT = Path(__file__).parents[2]
# What each environment holds, of that which runs the tests.
OF_TORCH = (
    "torch torchgen functorch sympy mpmath networkx fsspec filelock typing_extensions jinja2 markupsafe numpy"
)
OF_TOOL = (
    "typer click rich pathspec jinja2 markupsafe pygments markdown_it mdurl shellingham typing_extensions "
    "pydantic pydantic_core annotated_types annotated_doc typing_inspection"
)
SCRIPT = """
import importlib.util, sys
import torch

@torch.compile
def step(x):
    y = x * 2
    print("seen")
    return y + 1

for _ in range(3):
    step(torch.ones(4))
known = [name for name in ("typer", "rich", "pathspec") if importlib.util.find_spec(name)]
print(sys.prefix, known)
"""


def environment(folder: Path, names: str) -> Path:
    """A real virtual environment with these modules alone; its Python."""
    run_python("-m", "venv", "--without-pip", str(folder), check=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in names.split():
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        place = Path(spec.origin)
        place = place.parent if place.name == "__init__.py" else place
        (site / place.name).symlink_to(place)
        for beside in (*place.parent.glob(f"{name}.libs"), *place.parent.glob(f"{name}-*.dist-info")):
            (site / beside.name).symlink_to(beside)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment(tmp_path_factory.mktemp("tool"), OF_TOOL)
    [site] = python.parent.parent.glob("lib/python*/site-packages")
    (site / "breakscope").symlink_to(ROOT / "breakscope")
    return python


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("users"), OF_TORCH)


def run(python: Path, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    plain = {
        key: value for key, value in clean_environment().items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return subprocess.run(
        [str(python), "-m", "breakscope", *words],
        cwd=folder,
        env={**plain, "PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.torch
def test_the_script_runs_in_the_active_environment_and_finds_nothing_of_ours_there(
    tool: Path, users: Path, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(tool, tmp_path, "scan", "-q", "script.py", VIRTUAL_ENV=str(users.parent.parent))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{users.parent.parent} []"
    assert f"breakscope: note: the script runs under {users}\n" in done.stderr
    report = package.load(tmp_path / ".breakscope" / "latest.json")
    assert [(one.code, one.counts.crossings) for one in report.findings] == [("BS104", 3)]


def test_run_exits_with_the_status_of_the_script(tmp_path: Path) -> None:
    fixes = tmp_path / "fixes"
    store.write_folder(fixes, {"": []}, {}, "script.py", tmp_path)
    (tmp_path / "script.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n")
    for code in (0, 7):
        done = run(Path(sys.executable), tmp_path, "run", "--fixes", "fixes", "script.py", str(code))
        assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.torch
def test_a_module_of_ours_runs_there_too(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_chosen", interpreter._Chosen())
    interpreter.use(users)
    command = [*interpreter.command("breakscope.inside.bench.ceiling_probe"), "cpu", "--name"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr
    assert "name" in json.loads(done.stdout)


def test_without_torch_anywhere_the_sentence_names_the_option(tool: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = run(tool, tmp_path, "scan", "script.py")
    assert done.returncode == 2
    said = f"breakscope: torch is not installed for {tool}; name the Python of your script with --python\n"
    assert done.stderr == said


def test_a_python_that_cannot_be_used_is_said_in_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    old.write_text("""#!/bin/sh\necho '[[3, 9], "2.9.0", [], "/python3.9"]'\n""")
    old.chmod(0o755)
    for python, said in (
        ("nowhere", "--python nowhere: there is no such program"),
        ("/bin/ls", "--python /bin/ls: this is not a Python that can be run"),
        (str(old), f"--python {old}: it is Python 3.9; breakscope needs 3.11 or newer"),
    ):
        with pytest.raises(UsageError) as raised:
            interpreter.use(Path(python))
        assert str(raised.value) == said


@pytest.mark.parametrize("command", ["scan", "run", "check", "bench", "fix", "prove", "remedy"])
def test_every_command_that_runs_a_script_has_the_option(command: str) -> None:
    assert "--python PATH" in breakscope(command, "--help").out


def test_our_own_python_is_used_where_it_has_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_chosen", interpreter._Chosen())
    monkeypatch.setitem(os.environ, "VIRTUAL_ENV", "/nowhere")
    assert interpreter.executable() == sys.executable
    assert interpreter.command("breakscope.x") == [sys.executable, "-m", "breakscope.x"]
