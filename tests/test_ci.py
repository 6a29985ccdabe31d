"""The GitHub action, the GitLab job and the hooks: valid, and their shell does what they promise.

Nightly: real environments of pip and pre-commit, and the network. That inputs are no shell is held in every run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from scanning import clean_environment, run_python

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
    import sys
    import torch

    assert sys.argv[1:] == ["--name", "two words"]

    @torch.compile
    def step(x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        return y

    step(torch.ones(3))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one script that breaks once."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    return folder


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder for PATH in which ``python`` and ``breakscope`` are those under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (("python", ""), ("breakscope", "-m breakscope ")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (folder / name).chmod(0o755)
    return folder


def environment(commands: Path, **more: str) -> dict[str, str]:
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    return clean_environment(PATH=path, PYTHONPATH=str(ROOT), **more)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "words",
    [
        ("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", "docs/ci/github.yml"),
        *(
            (
                "check-jsonschema",
                "--builtin-schema",
                "vendor.github-workflows",
                f".github/workflows/{name}.yml",
            )
            for name in ("ci", "nightly", "release")
        ),
        (
            *("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
            "docs/ci/gitlab.yml",
        ),
        ("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml"),
    ],
    ids=lambda words: words[-1],
)
def test_the_files_are_valid(words: tuple[str, ...]) -> None:
    tool = Path(sys.executable).with_name(words[0])
    done = subprocess.run([str(tool), *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- our own workflows ----


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github" / "workflows").iterdir()), ids=lambda file: file.name
)
def test_our_workflows_run_what_anybody_can_run_at_home(file: Path) -> None:
    steps = [step for job in yaml.safe_load(file.read_text())["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert commands
    for command in commands:
        words = command.split()
        assert words == [".ci/run"] or (words[0] == "make" and words[1] in targets), command


# ---- GitHub ----


def action() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "action.yml").read_text())


def run_steps(folder: Path, commands: Path, **given: str) -> tuple[int, dict[str, str], str]:
    """The steps that are shell, one after the other as a runner runs them: (exit code, outputs, log)."""
    temporary = folder.parent / "runner"
    temporary.mkdir(exist_ok=True)
    output, log = temporary / "output", ""
    inputs = {name: str(one["default"]) for name, one in action()["inputs"].items()} | given

    def value(expression: re.Match[str]) -> str:
        words = expression[1].strip().split(".")
        if words[0] == "inputs":
            return inputs[words[1]]
        if words == ["runner", "temp"]:
            return str(temporary)
        if words[:3] == ["steps", "check", "outputs"]:
            return outputs().get(words[3], "")
        raise AssertionError(f"a new kind of expression: {expression[0]}")

    def outputs() -> dict[str, str]:
        lines = output.read_text().splitlines() if output.exists() else []
        return dict(line.split("=", 1) for line in lines)

    for step in action()["runs"]["steps"]:
        if "run" not in step or (step.get("if") == "inputs.package != ''" and not inputs["package"]):
            continue
        assert "${{" not in step["run"], "an input inside the script would be run as shell"
        variables = {
            name: re.sub(r"\$\{\{(.*?)\}\}", value, text) for name, text in step.get("env", {}).items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env=environment(
                commands,
                GITHUB_OUTPUT=str(output),
                GITHUB_STEP_SUMMARY=str(temporary / "summary"),
                **variables,
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        log += done.stdout + done.stderr
        if done.returncode:
            return done.returncode, outputs(), log
    return 0, outputs(), log


@pytest.mark.torch
@pytest.mark.nightly
def test_the_action_annotates_summarizes_and_fails(project: Path, commands: Path) -> None:
    words = {"script": "train.py --name 'two words'", "package": ""}
    code, outputs, log = run_steps(project, commands, **words)
    assert code == 1, log
    assert outputs["exit-code"] == "1"
    folder = Path(outputs["folder"])
    assert sorted(file.name for file in folder.iterdir()) == [
        "breakscope.html",
        "breakscope.json",
        "breakscope.sarif",
    ]
    (run,) = json.loads(Path(outputs["sarif"]).read_text())["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.py"
    assert "::error title=breakscope check::train.py: FAILED: 1 new finding" in log
    assert re.search(r"::warning file=train.py,line=10,.*BS101", log)
    assert "# breakscope check train.py" in (project.parent / "runner" / "summary").read_text()

    code, outputs, log = run_steps(project, commands, **words, options="--update-baseline --max-sites 1")
    assert (code, outputs["exit-code"]) == (0, "0"), log


def test_an_input_is_data_and_not_shell(project: Path, commands: Path) -> None:
    code, outputs, log = run_steps(project, commands, script="$(touch owned).py; touch owned", package="")
    assert (code, outputs["exit-code"]) == (2, "2"), log
    assert "there is no file $(touch" in log
    assert not (project / "owned").exists()
    assert "sarif" not in outputs


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.slow
def test_the_action_installs_a_package_with_its_plugin(project: Path, commands: Path, tmp_path: Path) -> None:
    """pip installs for real, into a folder of its own and without what is there already."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "breakscope"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    target = tmp_path / "installed"
    step = action()["runs"]["steps"][0]
    done = subprocess.run(
        ["bash", "-c", step["run"]],
        cwd=project,
        env=environment(
            commands,
            PACKAGE=str(source),
            PYTHON="python",
            PIP_TARGET=str(target),
            PIP_NO_DEPS="1",
            PIP_NO_BUILD_ISOLATION="0",  # pip's variables for --no-… read the other way round
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    words = "-m", "pytest", "--fixtures", "-q", "-p", "no:cacheprovider", str(project)
    done = run_python(*words, folder=project, PYTHONPATH=str(target))
    assert "breakscope -- " in done.stdout
    assert (target / "breakscope" / "render" / "html" / "style.css").exists()


# ---- GitLab ----


@pytest.mark.torch
@pytest.mark.nightly
def test_the_gitlab_job_leaves_junit_and_a_page(project: Path, commands: Path) -> None:
    (project / "breakscope.toml").write_text(
        "[[targets]]\nscript = 'train.py'\nargs = ['--name', 'two words']\n"
    )
    job = yaml.safe_load((ROOT / "docs" / "ci" / "gitlab.yml").read_text())["breakscope"]
    install, *lines = job["script"]
    assert install == "python -m pip install torch-breakscope"
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(lines)],
        cwd=project,
        env=environment(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert '<failure type="BS101"' in (project / job["artifacts"]["reports"]["junit"]).read_text()
    assert (project / "breakscope-report" / "breakscope.html").exists()


# ---- pre-commit ----


def hooked(folder: Path, tmp_path: Path, hook: str) -> None:
    """Configure a hook of a repository that holds what is under test."""
    source = tmp_path / "breakscope"
    source.mkdir()
    for name in (
        ".pre-commit-hooks.yaml",
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "breakscope",
    ):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run(["git", *IDENTITY, *words], cwd=source, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=source, capture_output=True, text=True, check=True
    ).stdout.strip()
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {source}\n    rev: {head}\n    hooks:\n      - id: {hook}\n"
    )
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)


IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def pre_commit(folder: Path, commands: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", *words],
        cwd=folder,
        env=environment(commands, PRE_COMMIT_HOME=str(folder.parent / "pre-commit-home")),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.slow
def test_pre_commit_checks_before_a_push(project: Path, commands: Path, tmp_path: Path) -> None:
    (project / "breakscope.toml").write_text(
        "[[targets]]\nscript = 'train.py'\nargs = ['--name', 'two words']\n"
    )
    (project / ".gitignore").write_text(".breakscope/*\n!.breakscope/baseline.json\n")
    hooked(project, tmp_path, "breakscope-check")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote")], check=True)
    subprocess.run(["git", "remote", "add", "origin", str(tmp_path / "remote")], cwd=project, check=True)
    done = pre_commit(project, commands, "install", "--hook-type", "pre-push")
    assert done.returncode == 0, done.stdout + done.stderr
    subprocess.run(["git", *IDENTITY, "commit", "-qm", "all"], cwd=project, check=True)

    def push() -> subprocess.CompletedProcess[str]:
        variables = environment(commands, PRE_COMMIT_HOME=str(tmp_path / "pre-commit-home"))
        return subprocess.run(
            ["git", "push", "-q", "origin", "main"],
            cwd=project,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = push()
    assert refused.returncode != 0
    assert "FAILED: 1 new finding" in refused.stdout + refused.stderr

    accepted = subprocess.run(
        [str(commands / "breakscope"), "check", "--update-baseline"],
        cwd=project,
        env=environment(commands),
        capture_output=True,
        check=False,
    )
    assert accepted.returncode == 0
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    kept = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, text=True, check=True).stdout
    assert [name for name in kept.split() if name.startswith(".breakscope/")] == [".breakscope/baseline.json"]
    subprocess.run(["git", *IDENTITY, "commit", "-qm", "known"], cwd=project, check=True)
    passed = push()
    assert passed.returncode == 0, passed.stdout + passed.stderr


def test_a_hook_for_the_whole_project_sees_a_break_across_files(tmp_path: Path) -> None:
    """File by file it is not seen: what is compiled stands in one file, and what breaks in another."""
    (tmp_path / "net.py").write_text(
        "import torch\nfrom helper import scale\n\n\n@torch.compile\ndef step(x):\n    return scale(x + 1)\n"
    )
    (tmp_path / "helper.py").write_text(
        "from torch import Tensor\n\n\ndef scale(x: Tensor):\n    return x * x.sum().item()\n"
    )
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    whole = hooks["breakscope-lint-project"]
    assert (whole["entry"], whole["pass_filenames"]) == ("breakscope lint", False)

    def codes(*files: str) -> int:
        return run_python("-m", *whole["entry"].split(), *files, folder=tmp_path).returncode

    assert codes("helper.py") == codes("net.py") == 0
    assert codes() == 1


def test_the_addresses_are_those_of_the_repository_that_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hatchling")
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    monkeypatch.setenv("GITHUB_SERVER_URL", "https://git.example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "ada/breakscope")
    metadata = ProjectMetadata(str(ROOT), PluginManager()).core
    page = "https://git.example.org/ada/breakscope"
    assert metadata.urls == {
        "Repository": page,
        "Documentation": f"{page}/tree/main/docs",
        "Changelog": f"{page}/blob/main/CHANGELOG.md",
        "Issues": f"{page}/issues",
    }
    monkeypatch.setenv("SITE_URL", "https://ada.example.org/breakscope/")
    there = ProjectMetadata(str(ROOT), PluginManager()).core.urls
    assert there == {**metadata.urls, "Documentation": "https://ada.example.org/breakscope/"}
    published = metadata.optional_dependencies
    assert not {"test", "lint", "models"} & published.keys()
    assert not any(one.startswith("pandas") for one in metadata.dependencies)


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.slow
def test_pre_commit_lints_in_an_environment_of_its_own(project: Path, commands: Path, tmp_path: Path) -> None:
    if not (ROOT / "breakscope" / "cli" / "lint.py").exists():
        pytest.skip("this build has no lint command")
    hooked(project, tmp_path, "breakscope-lint")
    done = pre_commit(project, commands, "run", "--all-files")
    said = done.stdout + done.stderr
    if re.search(r"No matching distribution|Temporary failure in name resolution|ConnectionError", said):
        pytest.skip("no package index can be reached")
    assert "breakscope lint" in done.stdout, said
    assert "BS101" in done.stdout, said
    assert "train.py:10" in done.stdout, said


def test_tools_for_work_on_breakscope_are_dependency_groups_and_no_published_extras() -> None:
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = given["dependency-groups"]

    def names(requirements: Iterable[str]) -> set[str]:
        return {re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in requirements}

    extras = names(chain.from_iterable(given["project"]["optional-dependencies"].values()))
    tools = names(chain.from_iterable(groups[group] for group in ("lint", "docs")))
    assert {"ruff", "mypy", "import-linter", "mkdocs-material"} <= tools
    assert {"pytest", "playwright", "pre-commit"} <= names(groups["test"])
    assert not extras & (
        tools | {"pytest", "pytest-xdist", "playwright", "pre-commit", "hypothesis", "pexpect"}
    )
    assert names(given["project"]["dependencies"]) == {"typer", "rich", "jinja2", "pathspec"}
