"""``breakscope check`` as a user runs it: real scripts, real scans, real exit codes.

Nightly are more ways to edit a script, comment on a finding and budget several targets, each of two scans or more. Every
run holds new, known and new again, a function that moved, runs that say nothing; ``test_judge.py`` holds the verdicts.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import report_samples as samples
from warm_scanning import run_command

from breakscope.render import FORMATS
from breakscope.report import schema

SCRIPT = """
    import torch

    @torch.compile
    def first(x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        return y

    @torch.compile
    def second(x):
        y = x * 3
        return y - 1

    for _ in range(3):
        first(torch.ones(3))
        second(torch.ones(3))
"""


class Project:
    """A repository with a script, in which ``breakscope check`` is run."""

    def __init__(self, folder: Path, *, torch: bool) -> None:
        self.folder, self.torch = folder, torch
        (folder / ".git").mkdir()

    @property
    def baseline(self) -> Path:
        return self.folder / ".breakscope" / "baseline.json"

    def write(self, source: str, name: str = "train.py") -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(textwrap.dedent(source))

    def check(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_command("check", *words, folder=self.folder, torch=self.torch, timeout=300, **environment)

    def verdict(self, *words: str) -> dict[str, object]:
        """What ``-f json`` says of the only target."""
        done = self.check("-f", "json", *words)
        assert done.stdout, done.stderr
        targets = json.loads(done.stdout)["targets"]
        assert len(targets) == 1
        return targets[0]


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    return Project(tmp_path, torch=request.node.get_closest_marker("torch") is not None)


@pytest.fixture
def known(project: Project) -> Project:
    """A project whose one finding is known."""
    project.write(SCRIPT)
    done = project.check("--update-baseline", "--", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    return project


@pytest.fixture
def saved(project: Project) -> Project:
    """A project in which a scan has left a report, without running one."""
    project.write("print('never run')\n")
    (project.folder / ".breakscope").mkdir()
    report = samples.RECOMPILES
    run = report.run.__class__(**{**_fields(report.run), "cwd": str(project.folder), "script": "train.py"})
    schema.save(
        report.__class__(**{**_fields(report), "run": run}), project.folder / ".breakscope" / "latest.json"
    )
    return project


def _fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}  # type: ignore[attr-defined]


def flat(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output without its layout."""
    return " ".join(done.stdout.split())


def one_sentence(done: subprocess.CompletedProcess[str], exit_code: int, said: str) -> None:
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("breakscope: ")
    assert done.stdout == ""


# ---- from new to known ----


@pytest.mark.torch
def test_new_then_known_then_new_again(project: Project) -> None:
    project.write(SCRIPT)
    done = project.check("--", "train.py")
    assert done.returncode == 1
    assert done.stdout.startswith("FAILED: 1 new finding\nbreakscope check train.py")
    assert "train.py:7:8 first" in flat(done)
    assert "--update-baseline" in done.stdout
    assert not project.baseline.exists()

    done = project.check("--update-baseline")  # of the report that the run has left
    assert done.returncode == 0
    assert "passed: nothing new, 1 known finding" in done.stdout
    assert "1 known, 1 of them added, 0 dropped" in done.stderr

    project.write(SCRIPT.replace("y = x * 3", "y = x * 3\n        print(1)"))
    done = project.check("--", "train.py")
    assert done.returncode == 1
    assert "FAILED: 1 new finding\n" in done.stdout
    assert "BS104" in done.stdout
    assert "BS101" not in done.stdout.partition("\nknown")[0], "only what fails is shown"
    assert "known 1 finding in .breakscope/baseline.json: 1 BS101" in flat(done)


INSERTED = "# one\n# more\nimport os\n" + textwrap.dedent(SCRIPT)
RENAMED = SCRIPT.replace("_ in range", "number in range").replace(
    "y = x * 3\n        return y - 1", "z = x * 3\n        return z - 1"
)
COMMENTED = SCRIPT.replace("if y.sum() > 0:", "if y.sum() > 0:  # why not")
_, _first, _second, _rest = (
    textwrap.dedent(SCRIPT).replace("\n\nfor", "\n\n@torch.compile\nfor").split("@torch.compile\n")
)
MOVED = f"import torch\n\n@torch.compile\n{_second}@torch.compile\n{_first}{_rest}"
PARAMETER = SCRIPT.replace("def first(x):", "def first(x: torch.Tensor, unused=None):")


@pytest.mark.torch
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(INSERTED, id="lines inserted", marks=pytest.mark.nightly),
        pytest.param(RENAMED, id="renamed elsewhere", marks=pytest.mark.nightly),
        pytest.param(COMMENTED, id="comment", marks=pytest.mark.nightly),
        pytest.param(MOVED, id="function moved"),
        pytest.param(PARAMETER, id="another parameter", marks=pytest.mark.nightly),
    ],
)
def test_an_edit_elsewhere_makes_nothing_new(known: Project, source: str) -> None:
    compile(textwrap.dedent(source), "train.py", "exec")
    assert textwrap.dedent(source) != textwrap.dedent(SCRIPT)
    known.write(source)
    found = known.verdict("--", "train.py")
    assert (found["outcome"], found["gone"]) == ("known", [])


@pytest.mark.nightly
@pytest.mark.torch
@pytest.mark.parametrize(
    ("source", "new"),
    [
        (SCRIPT.replace("return y\n", "y = y + y.max().item()\n        return y\n", 1), 1),
        (SCRIPT.replace("return y - 1", "if y.sum() > 0:\n            y = y * 2\n        return y"), 1),
        (SCRIPT.replace("return y\n", "if y.sum() > 0:\n            y = y * 3\n        return y\n", 1), 1),
    ],
    ids=["a new break in the function", "the line copied to another function", "the line twice"],
)
def test_a_break_that_was_not_there_is_new(known: Project, source: str, new: int) -> None:
    assert textwrap.dedent(source) != textwrap.dedent(SCRIPT)
    known.write(source)
    found = known.verdict("--", "train.py")
    assert found["outcome"] == "new"
    states = [one["state"] for one in found["findings"]]  # type: ignore[attr-defined]
    assert sorted(states) == ["known"] + ["new"] * new


@pytest.mark.nightly
@pytest.mark.torch
def test_a_script_is_the_same_from_every_folder(known: Project) -> None:
    known.write(SCRIPT.replace("torch.ones", "torch.rand"), "scripts/other.py")
    (known.folder / "package").mkdir()
    from_above = known.verdict("--", "scripts/other.py")
    inside = Project.__new__(Project)
    inside.folder = known.folder / "scripts"
    from_inside = inside.verdict("--", "other.py")
    names = [[one["fingerprint"] for one in found["findings"]] for found in (from_above, from_inside)]  # type: ignore[attr-defined]
    assert names[0] == names[1] != []
    assert from_above["target"] == from_inside["target"] == "scripts/other.py"


@pytest.mark.nightly
@pytest.mark.torch
def test_what_is_gone_is_said_and_dropped_by_an_update(known: Project) -> None:
    known.write(SCRIPT.replace("if y.sum() > 0:", "if True:"))
    done = known.check("--", "train.py")
    assert done.returncode == 0
    assert "gone BS101 train.py first: if y.sum() > 0:" in flat(done)
    done = known.check("--update-baseline")
    assert "0 known, 0 of them added, 1 dropped" in done.stderr
    assert json.loads(known.baseline.read_text())["targets"]["train.py"]["findings"] == []


# ---- suppression ----


@pytest.mark.nightly
@pytest.mark.torch
def test_a_comment_leaves_a_finding_out_and_an_idle_one_is_named(project: Project) -> None:
    project.write(
        SCRIPT.replace(
            "if y.sum() > 0:", "if y.sum() > 0:  # breakscope: ignore[BS101] -- once an epoch"
        ).replace("return y - 1", "return y - 1  # breakscope: ignore[BS104]")
    )
    done = project.check("--", "train.py")
    assert done.returncode == 0, done.stdout
    assert "passed: no finding" in done.stdout
    assert "suppressed BS101 train.py:7: once an epoch" in flat(done)
    assert "unused train.py:14 ignore[BS104] suppresses nothing here" in flat(done)
    assert project.check("--no-suppress").returncode == 1
    assert project.check("--max-sites", "0").returncode == 0


@pytest.mark.nightly
@pytest.mark.torch
def test_a_comment_on_the_function_and_a_misspelt_one(project: Project) -> None:
    project.write(SCRIPT.replace("def first(x):", "def first(x):  # breakscope: ignore[BS1] -- all of it"))
    assert project.check("--", "train.py").returncode == 0
    project.write(SCRIPT.replace("def first(x):", "def first(x):  # breakscope: ignore"))
    done = project.check("--", "train.py")
    assert done.returncode == 1
    assert "not read train.py:5 `# breakscope: ignore`: it names no code; write ignore[BS101]" in flat(done)


@pytest.mark.nightly
@pytest.mark.torch
def test_a_file_edited_since_the_scan_is_read_by_its_text(project: Project) -> None:
    project.write(SCRIPT.replace("if y.sum() > 0:", "if y.sum() > 0:  # breakscope: ignore[BS101] -- rare"))
    assert project.check("--", "train.py").returncode == 0
    file = project.folder / "train.py"
    file.write_text("\n\n\n" + file.read_text())
    done = project.check()
    assert done.returncode == 0
    assert "unused" not in done.stdout
    file.write_text("def broken(:\n")
    assert project.check().returncode == 0
    file.write_bytes(b"\xff\x00")
    assert project.check().returncode == 0


# ---- runs that say nothing ----


@pytest.mark.torch
@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("x = 1\n", (), "nothing was compiled, so a clean report means nothing"),
        (
            "import torch\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))\n",
            ("--compile", "script"),
            "nothing was compiled",
        ),
        (
            "import torch\ntorch.compile(torch.sin)(torch.ones(1))\nraise SystemExit(3)\n",
            (),
            "failed with exit status 3",
        ),
        ("import torch\ntorch.compile(torch.sin)(torch.ones(1))\n1 / 0\n", (), "failed with exit status 1"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", (), "was killed with exit status 137"),
        ("import time\ntime.sleep(60)\n", ("--timeout", "3"), "did not come to its end in time"),
        ("def broken(:\n", (), "failed with exit status 1"),
    ],
    ids=["no torch", "nothing compiled", "exit status", "exception", "SIGKILL", "timeout", "syntax error"],
)
def test_a_run_that_says_nothing_exits_with_3_and_updates_nothing(
    project: Project, source: str, options: tuple[str, ...], said: str
) -> None:
    project.write(source)
    done = project.check(*options, "--", "train.py")
    assert done.returncode == 3, done.stdout
    assert done.stdout.splitlines()[0].startswith("SAYS NOTHING: ")
    assert said in " ".join(done.stdout.split())
    done = project.check("--update-baseline")
    assert done.returncode == 2
    assert "the baseline was not updated: train.py: " in done.stderr
    assert not project.baseline.exists()


@pytest.mark.nightly
@pytest.mark.torch
def test_a_script_that_stops_compiling_is_found_out(project: Project) -> None:
    source = """
        import torch
        net = torch.nn.Linear(2, 2)
        net = torch.compile(net)
        net(torch.ones(1, 2))
    """
    project.write(source)
    assert project.check("--update-baseline", "--", "train.py").returncode == 0
    project.write(source.replace("torch.compile(net)", "net"))
    done = project.check("--", "train.py")
    assert done.returncode == 3
    assert "compiles nothing now" in " ".join(done.stdout.split())


# ---- targets of the configuration ----

CONFIG = """
    [tool.breakscope]
    ignore = ["BS104"]

    [[tool.breakscope.targets]]
    name = "train"
    script = "train.py"
    args = ["--rows", "4"]
    budgets = { max-sites = 1 }

    [[tool.breakscope.targets]]
    module = "tool.serve"
    budgets = { max-recompiles = 0 }
"""
TRAIN = "import sys\nassert sys.argv[1:] == ['--rows', '4']\n" + textwrap.dedent(SCRIPT)
SERVE = """
    import torch

    @torch.compile
    def serve(x):
        print("serving")
        return x + 1

    for rows in (2, 3):
        serve(torch.ones(rows))
"""


@pytest.mark.nightly
@pytest.mark.torch
def test_every_target_is_run_and_judged_by_its_own_budgets(project: Project) -> None:
    project.write(CONFIG, "pyproject.toml")
    project.write(TRAIN)
    project.write("", "tool/__init__.py")
    project.write(SERVE, "tool/serve.py")
    (project.folder / "deep").mkdir()
    project.folder = project.folder / "deep"  # the configuration's folder is where they run
    done = project.check("--write", "html=page.html", "--write", "sarif=all.sarif", "-f", "json")
    answer = json.loads(done.stdout)
    train, serve = answer["targets"]
    assert done.returncode == answer["exit_code"] == 1
    assert (train["target"], train["outcome"], serve["target"], serve["outcome"]) == (
        "train",
        "new",
        "-m tool.serve",
        "new",
    )
    assert serve["left_out"] == 1
    assert [one["name"] for one in serve["budgets"] if one["exceeded"]] == ["max-recompiles"]
    assert "serving" in done.stderr, "what a script prints does not mix with the answer"
    assert len(json.loads((project.folder / "all.sarif").read_text())["runs"]) == 2
    assert sorted(file.name for file in project.folder.glob("*.html")) == [
        "page-m-tool.serve.html",
        "page-train.html",
    ]

    done = project.check("--update-baseline", "--target", "train")
    assert done.returncode == 0
    baseline = json.loads((project.folder.parent / ".breakscope" / "baseline.json").read_text())
    assert list(baseline["targets"]) == ["train"]
    one_sentence(project.check("--target", "trian"), 2, "has no target 'trian'; did you mean train?")
    for name in (name for name, row in FORMATS.items() if not row.in_check):
        one_sentence(project.check("-f", name), 2, f"{name} holds one target")


def test_every_target_is_looked_for_before_the_first_one_runs(project: Project) -> None:
    project.write(CONFIG, "pyproject.toml")
    project.write("raise SystemExit('was run')")
    done = project.check()
    one_sentence(done, 2, "target '-m tool.serve' of ")
    assert "there is no module named tool" in done.stderr


def test_targets_with_names_alike_keep_their_reports_apart(project: Project) -> None:
    names = ("a b", "a-b", "c")
    project.write(
        "".join(f"[[targets]]\nname = '{name}'\nscript = 'train.py'\n" for name in names), "breakscope.toml"
    )
    project.write("print('nothing to compile')")
    assert project.check().returncode == 3
    kept = sorted(file.name for file in (project.folder / ".breakscope" / "check").glob("*.json"))
    assert kept == ["a-b-1.json", "a-b-2.json", "c.json"]


# ---- formats ----


@pytest.mark.parametrize("format_", [name for name, row in FORMATS.items() if not row.in_check])
def test_a_format_without_verdicts_holds_the_report_and_the_exit_code_is_that_of_check(
    saved: Project, format_: str
) -> None:
    done = saved.check("-f", format_, "-o", "answer", "--write", f"{format_}=again")
    assert done.returncode == 1, done.stderr
    answer = (saved.folder / "answer").read_bytes()
    assert answer
    assert (saved.folder / "again").read_bytes() == answer


@pytest.mark.parametrize("format_", [name for name, row in FORMATS.items() if row.in_check])
def test_every_format_of_report_says_new_and_known(saved: Project, format_: str) -> None:
    done = saved.check("-f", format_, "--max-recompiles", "0")
    assert done.returncode == 1, done.stderr
    everything = done.stdout
    assert "BS201" in everything
    assert saved.check("--update-baseline").returncode == 0
    done = saved.check("-f", format_)
    assert done.returncode == 0
    assert done.stdout != everything
    if format_ == "junit":
        assert {
            case.get("name")
            for case in ET.fromstring(everything).iter("testcase")
            if case.find("failure") is not None
        } > {"max-recompiles"}
        assert not list(ET.fromstring(done.stdout).iter("failure"))
        assert list(ET.fromstring(saved.check("-f", "junit", "--strict").stdout).iter("failure"))
    if format_ == "sarif":
        for text, state in ((everything, "new"), (done.stdout, "unchanged")):
            assert {result["baselineState"] for result in json.loads(text)["runs"][0]["results"]} == {state}


@pytest.mark.nightly
@pytest.mark.torch
def test_suppressed_findings_are_so_in_sarif(project: Project) -> None:
    project.write(SCRIPT.replace("if y.sum() > 0:", "if y.sum() > 0:  # breakscope: ignore[BS101] -- rare"))
    log = json.loads(project.check("-f", "sarif", "--", "train.py").stdout)
    (result,) = log["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "inSource", "justification": "rare"}]


def test_on_github_the_summary_gets_the_whole_answer(saved: Project) -> None:
    summary = saved.folder / "summary.md"
    done = saved.check("-f", "github", GITHUB_STEP_SUMMARY=str(summary))
    assert done.stdout.startswith("::error title=breakscope check::train.py: FAILED: ")
    assert "breakscope check train.py" in summary.read_text()


def test_the_report_inside_the_json_is_a_report(saved: Project) -> None:
    found = saved.verdict()
    jsonschema.validate(found["report"], schema.json_schema())


# ---- bad input ----


def test_there_is_nothing_to_check(project: Project) -> None:
    one_sentence(
        project.check(),
        2,
        "there is nothing to check: no target is configured and there is no .breakscope/latest.json",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.py",), "train.py is a script, not a report; to run it: breakscope check -- train.py"),
        (("none.json",), "no such file"),
        (("--", "none.py"), "there is no file none.py"),
        (("--",), "name a script"),
        (("--", "-m"), "name a module after -m"),
        (
            ("a.json", "--", "train.py"),
            "name a report, or a script after --, or targets; not several of these",
        ),
        (("--backend", "inductor"), "--backend is for a script to run: put -- SCRIPT at the end"),
        (("--mode", "x", "--", "train.py"), "--mode needs --backend inductor"),
        (("--compile", "nothing", "--", "train.py"), "train.py has no function nothing"),
        (("--target", "x"), "has no target 'x'; there are none"),
        (("--baseline", "none.json"), "there is no baseline none.json"),
        (("-f", "xml"), "no format 'xml'"),
        (("--write", "sarif"), "--write sarif: write FORMAT=FILE"),
        (("--write", "pdf=x.pdf"), "no format 'pdf'"),
        (("--max-sites", "-1"), "invalid value for '--max-sites'"),
        (("--max-site", "1"), "--max-sites"),
        (("--config", "none.toml"), "cannot read none.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_wrong_command_is_one_sentence(saved: Project, words: tuple[str, ...], said: str) -> None:
    one_sentence(saved.check(*words), 2, said)


@pytest.mark.parametrize("data", [b"{", b'{"breakscope_baseline": 9, "targets": {}}', b"\x7fELF\x00"])
def test_a_damaged_baseline_is_left_as_it_is_and_nothing_is_run(project: Project, data: bytes) -> None:
    project.write("raise SystemExit('was run')\n")
    project.baseline.parent.mkdir()
    project.baseline.write_bytes(data)
    for words in ((), ("--update-baseline",)):
        done = project.check(*words, "--", "train.py")
        one_sentence(done, 2, "cannot read the baseline ")
        assert project.baseline.read_bytes() == data


def test_a_report_of_another_project_is_refused(saved: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    elsewhere = Project.__new__(Project)
    elsewhere.folder, elsewhere.torch = other, False
    report = str(saved.folder / ".breakscope" / "latest.json")
    (saved.folder / "train.py").rename(other / "train.py")
    assert elsewhere.check(report).returncode == 1, "a report of this script made on another machine"
    (other / "train.py").unlink()
    one_sentence(elsewhere.check("--update-baseline", report), 2, "is a report of another project")
    assert not (other / ".breakscope").exists()


def test_a_circular_link_and_a_binary_file_as_a_report(project: Project) -> None:
    (project.folder / "link.json").symlink_to("link.json")
    one_sentence(project.check("link.json"), 2, "levels of symbolic links")
    (project.folder / "binary.json").write_bytes(b"\x7fELF\x00\xff")
    one_sentence(project.check("binary.json"), 2, "it is not JSON")


@pytest.mark.nightly
@pytest.mark.torch
@pytest.mark.slow
def test_a_very_long_script(project: Project) -> None:
    source = textwrap.dedent(SCRIPT).replace(
        "if y.sum() > 0:", "if y.sum() > 0:  # breakscope: ignore[BS101]"
    )
    project.write("x = 1\n" * 200_000 + source)
    done = project.check("--", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "suppressed BS101 train.py:200007" in flat(done)


@pytest.mark.slow
def test_ten_thousand_files(saved: Project) -> None:
    package = saved.folder / "package"
    package.mkdir()
    place = samples.BRANCH.location
    findings = []
    for number in range(10_000):
        (package / f"m{number}.py").write_text(
            "if y.abs().max() > 1e4:  # breakscope: ignore[BS101]\n    pass\n"
        )
        location = place.__class__(
            **{
                **_fields(place),
                "file": str(package / f"m{number}.py"),
                "line": 1,
                "end_line": 1,
                "source": None,
            }
        )
        findings.append(
            samples.BRANCH.__class__(
                **{**_fields(samples.BRANCH), "location": location, "fingerprint": f"f{number}", "stack": ()}
            )
        )
    path = saved.folder / ".breakscope" / "latest.json"
    report = schema.load(path)
    schema.save(report.__class__(**{**_fields(report), "findings": tuple(findings)}), path)
    done = saved.check()
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "and 9,990 more … --all shows them" in flat(done)


def test_a_baseline_that_git_ignores_is_said(saved: Project, wants_git: Callable[[Path], None]) -> None:
    wants_git(saved.folder)
    (saved.folder / ".gitignore").write_text(".breakscope/\n")
    done = saved.check("--update-baseline")
    assert done.returncode == 0
    assert "git ignores .breakscope/baseline.json" in done.stderr


@pytest.fixture
def wants_git() -> Callable[[Path], None]:
    """Makes a folder a real repository."""

    def init(folder: Path) -> None:
        (folder / ".git").rmdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)

    return init


def test_every_option_of_scan_is_one_of_check() -> None:
    """Options that scan gains later are inherited; what runs the script must take them from here, too."""
    from breakscope.cli import check_runs, scan
    from breakscope.cli.app import command as commands

    taken = set(inspect.signature(scan.run).parameters) - {"words", "output", "live", "launcher"}
    launched = {*check_runs._LAUNCH, "nproc_per_node", "torchrun_options"}
    assert set(commands().commands["check"].inherited) == taken | launched
