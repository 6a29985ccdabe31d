"""The configuration: where it is found, what it may say, and what is wrong with one that says something else."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from scanning import run_cold

from breakscope.errors import ConfigError
from breakscope.project import config
from breakscope.project.config.show import show
from breakscope.project.globs import matches

FULL = """
select = ["BS1", "BS3"]
ignore = ["BS104"]
per-path-ignore = { "legacy/**" = ["BS101"], "transformers/" = ["BS1", "BS2"] }
owners = ["project"]
baseline = "ci/known.json"
strict = true

[budgets]
max-sites = 3
max-crossings-per-step = 1.5

[[targets]]
name = "train"
script = "train.py"
args = ["--epochs", "1"]
backend = "inductor"
mode = "reduce-overhead"
steps = 20
budgets = { max-sites = 0, max-ms-per-step = 12 }

[[targets]]
module = "package.serve"
"""


def written(folder: Path, text: str, name: str = "breakscope.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def test_every_key(tmp_path: Path) -> None:
    read = config.load(tmp_path, written(tmp_path, FULL))
    assert read.select == ("BS1", "BS3")
    assert read.per_path_ignore == {"legacy/**": ("BS101",), "transformers/": ("BS1", "BS2")}
    assert read.owners == ("project",)
    assert read.strict
    assert read.budgets == config.Budgets(max_sites=3, max_crossings_per_step=1.5)
    train, serve = read.targets
    assert (train.name, train.args, train.mode, train.steps) == (
        "train",
        ("--epochs", "1"),
        "reduce-overhead",
        20,
    )
    assert train.budgets.over(read.budgets) == config.Budgets(0, None, 1.5, None, 12.0)
    assert (serve.name, serve.module) == ("-m package.serve", "package.serve")


def test_what_is_shown_is_a_configuration_that_says_the_same(tmp_path: Path) -> None:
    read = config.load(tmp_path, written(tmp_path, FULL))
    again = config.load(tmp_path, written(tmp_path / "again", show(read)))
    named = {"root", "file", "origins"}
    assert {k: getattr(again, k) for k in again.__slots__ if k not in named} == {
        k: getattr(read, k) for k in read.__slots__ if k not in named
    }


def test_the_nearest_file_up_to_the_repository_holds(tmp_path: Path) -> None:
    written(tmp_path, "strict = true")
    repository = tmp_path / "repository"
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    assert config.load(deep).file == tmp_path / "breakscope.toml"
    (repository / ".git").mkdir()
    assert config.load(deep).file is None
    assert config.load(deep).root == repository
    written(repository, "[tool.other]\nx = 1\n", "pyproject.toml")
    assert config.load(deep).file is None
    written(repository, "[tool.breakscope]\nstrict = true\n", "pyproject.toml")
    found = config.load(deep)
    assert (found.file, found.root, found.strict) == (repository / "pyproject.toml", repository, True)
    assert found.origins == {"strict": "pyproject.toml"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("basline = 'x'", "there is no key 'basline'; did you mean baseline?"),
        ("max-sites = 1", "there is no key 'max-sites'; there are select, "),
        ("[budgets]\nmax_sites = 1", "budgets has no key 'max_sites'; did you mean max-sites?"),
        ("[budgets]\nmax-sites = -1", "budgets.max-sites must be a whole number from 0"),
        ("[budgets]\nmax-sites = true", "budgets.max-sites must be a whole number from 0"),
        ("[budgets]\nmax-ms-per-step = nan", "budgets.max-ms-per-step must be a number from 0"),
        ("budgets = 3", "budgets must be a table"),
        ("select = 'BS1'", "select must be a list of texts"),
        ("select = ['BS999']", "select has an unknown code: 'BS999' is no code and no beginning of one"),
        ("ignore = ['bs101']", "did you mean BS101?"),
        ("owners = ['projekt']", "owners must be one of project, library, torch; did you mean project?"),
        ("per-path-ignore = ['x']", "per-path-ignore must be a table of patterns"),
        ("strict = 1", "strict must be true or false"),
        ("baseline = ''", "baseline must be a text that is not empty"),
        ("targets = 'train.py'", "targets must be a list of tables"),
        ("[[targets]]\nname = 'x'", "targets 'x': a target names either a script or a module"),
        ("[[targets]]\nscript = 'a.py'\nmodule = 'a'", "a target names either a script or a module"),
        (
            "[[targets]]\nscript = 'a.py'\n[[targets]]\nscript = 'a.py'",
            "has two targets 'a.py'; give them names",
        ),
        ("[[targets]]\nscript = 'a.py'\nmode = 'max-autotune'", 'mode needs backend = "inductor"'),
        ("[[targets]]\nscript = 'a.py'\nbackend = 'indutor'", "did you mean inductor?"),
        ("[[targets]]\nscript = 'a.py'\nargs = '--x'", "targets.args must be a list of texts"),
        ("[[targets]]\nscript = 'a.py'\ntimeout = 0", "targets.timeout must be a number from 0.1"),
        ("select = [", "it is not TOML: "),
        ("x = " + "[" * 100_000, "it is not TOML: "),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path)
    message = str(caught.value)
    assert str(file) in message
    assert said in message
    assert "\n" not in message


def test_two_files_in_one_folder_are_one_too_many(tmp_path: Path) -> None:
    written(tmp_path, "strict = true")
    written(tmp_path, "[tool.breakscope]\n", "pyproject.toml")
    with pytest.raises(ConfigError, match="both configure breakscope; keep one"):
        config.load(tmp_path)


def test_a_file_that_is_no_text_and_a_circular_link(tmp_path: Path) -> None:
    (tmp_path / "breakscope.toml").write_bytes(b"\xff\xfe\0")
    with pytest.raises(ConfigError, match="it is not UTF-8 text"):
        config.load(tmp_path)
    (tmp_path / "breakscope.toml").unlink()
    (tmp_path / "breakscope.toml").symlink_to(tmp_path / "breakscope.toml")
    with pytest.raises(ConfigError, match="levels of symbolic links"):
        config.load(tmp_path)


def test_the_command_shows_values_and_where_they_come_from(tmp_path: Path) -> None:
    written(
        tmp_path,
        "[tool.breakscope]\nignore = ['BS104']\n[tool.breakscope.budgets]\nmax-sites = 3\n",
        "pyproject.toml",
    )
    done = run_cold("config", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = {
        line.partition(" = ")[0]: line.rpartition("# ")[2]
        for line in done.stdout.splitlines()
        if " = " in line
    }
    assert shown["ignore"] == "pyproject.toml"
    assert shown["max-sites"] == "pyproject.toml"
    assert shown["select"] == "default"
    assert tomllib.loads(done.stdout)["budgets"] == {"max-sites": 3}


def test_the_command_names_a_mistake_and_exits_with_2(tmp_path: Path) -> None:
    written(tmp_path, "basline = 'x'")
    done = run_cold("config", folder=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "did you mean baseline?" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("legacy", "legacy/net.py", True),
        ("legacy", "a/legacy/net.py", True),
        ("legacy", "legacy2/net.py", False),
        ("legacy/", "legacy/net.py", True),
        ("legacy/", "a/legacy", False),
        ("legacy/**", "legacy/a/net.py", True),
        ("/net.py", "net.py", True),
        ("/net.py", "a/net.py", False),
        ("*.py", "a/net.py", True),
        ("a/*.py", "a/net.py", True),
        ("a/*.py", "a/b/net.py", False),
        ("a/**/net.py", "a/net.py", True),
        ("a/**/net.py", "a/b/c/net.py", True),
        ("**/net.py", "net.py", True),
        ("net?.py", "net1.py", True),
        ("net.py", "netxpy", False),
    ],
)
def test_patterns_mean_what_they_mean_in_gitignore(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected
