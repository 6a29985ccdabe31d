"""``breakscope lint`` as a command: files, formats, exit codes, cache, and bad input."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest
from scanning import run_cold, run_python
from warm_scanning import run_command

SCHEMA = Path(__file__).resolve().parent.parent / "data" / "sarif-schema-2.1.0.json"
NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x, verbose=False):
        n = x.sum().item()
        if verbose:
            print(n)
        return x * n
"""


def lint(folder: Path, *words: str, code: int | None = None) -> subprocess.CompletedProcess[str]:
    done = run_command("lint", *words, folder=folder)
    assert "Traceback" not in done.stderr
    if code is not None:
        assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def test_what_it_shows(project: Path) -> None:
    assert lint(project, "net.py", code=1).stdout == (
        "net.py:6:13  BS102 likely  Python scalar read out of a tensor\n"
        "   n = x.sum().item()\n"
        "       ^^^^^^^^^^^^^^\n"
        "   in       Net.forward: forward of a module\n"
        "   do this  Keep the value a tensor and write the expression with tensor operations.\n"
        "\n"
        "1 possible break, 1 likely · 1 file, 1 with code that may be compiled · 1 less likely: --level possible "
        "· static analysis only; confirm with breakscope scan\n"
    )


def test_levels_and_codes(project: Path) -> None:
    def codes(*words: str) -> list[str]:
        done = lint(project, "-f", "json", *words)
        return [one["code"] for one in json.loads(done.stdout)["possible"]]

    assert codes() == ["BS102"]
    assert codes("--level", "possible") == ["BS102", "BS104"]
    assert codes("--level", "possible", "--select", "BS104") == ["BS104"]
    assert codes("--level", "possible", "--ignore", "BS102,BS2") == ["BS104"]
    assert codes("--level", "possible", "--select", "BS1", "--ignore", "BS10") == []
    lint(project, "--select", "BS104", code=0)


def test_formats(project: Path) -> None:
    assert lint(project, "-f", "concise", code=1).stdout.splitlines()[0] == (
        "net.py:6:13: BS102 likely: Python scalar read out of a tensor [Net.forward]"
    )
    github = lint(project, "-f", "github", code=1).stdout.splitlines()
    assert github[0].startswith("::warning file=net.py,line=6,col=13,endColumn=27,title=BS102 likely%3A ")
    log = json.loads(lint(project, "-f", "sarif", "--level", "possible", code=1).stdout)
    jsonschema.validate(log, json.loads(SCHEMA.read_text()))
    results = log["runs"][0]["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [("BS102", "warning"), ("BS104", "note")]
    region = results[0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 6, "startColumn": 13, "endLine": 6, "endColumn": 27}


def test_written_to_a_file(project: Path) -> None:
    done = lint(project, "-f", "json", "-o", "out.json", code=1)
    assert done.stdout == ""
    assert json.loads((project / "out.json").read_text())["possible"][0]["code"] == "BS102"


@pytest.mark.torch
def test_fingerprints_are_those_of_a_scan(project: Path) -> None:
    script = NET + "\nnet = torch.compile(Net())\nfor _ in range(2):\n    net(torch.ones(3))\n"
    (project / "net.py").write_text(script)
    run_cold("scan", "-q", "net.py", folder=project, check=True)
    scanned = json.loads((project / ".breakscope" / "latest.json").read_text())["findings"]
    linted = json.loads(lint(project, "net.py", "-f", "json").stdout)["possible"]
    assert [one["fingerprint"] for one in linted] == [
        one["fingerprint"] for one in scanned if one["code"] == "BS102"
    ]


def test_no_torch_and_nothing_runs(project: Path) -> None:
    (project / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    (project / "net.py").write_text(NET + "raise SystemExit('the file was run')\n")
    done = lint(project, "net.py", code=1)
    assert "imported" not in done.stderr


def test_comments_suppress(project: Path) -> None:
    marked = NET.replace(".item()", ".item()  # breakscope: ignore[BS102] -- once per epoch")
    (project / "net.py").write_text(marked)
    assert "1 suppressed by comments" in lint(project, code=0).stdout
    lint(project, "--no-suppress", code=1)
    (project / "net.py").write_text(NET.replace(".item()", ".item()  # breakscope: ignore"))
    done = lint(project, code=1)
    assert "net.py:6: '# breakscope: ignore' suppresses nothing: it names no code" in done.stderr


# ---- which files ----


def test_what_git_ignores_and_what_is_excluded(project: Path) -> None:
    for name in ("kept", "ignored", "ignored_but_taken", "excluded", "venv/lib", ".venv/lib"):
        (project / name).mkdir(parents=True)
        (project / name / "net.py").write_text(NET)
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("ignored*/\n!ignored_but_taken/\n")
    (project / "kept" / ".gitignore").write_text("other.py\n")
    (project / "kept" / "other.py").write_text(NET)

    def files(*words: str) -> list[str]:
        done = lint(project, "-f", "json", *words)
        found = {one["location"]["file"] for one in json.loads(done.stdout)["possible"]}
        return sorted(os.path.relpath(file, project) for file in found)

    assert files("--exclude", "excluded/") == ["ignored_but_taken/net.py", "kept/net.py", "net.py"]
    assert files("--exclude", "/*/") == ["net.py"]
    # What was named is linted, whatever git says.
    assert files("ignored/net.py") == ["ignored/net.py"]


def test_a_circle_of_links(project: Path) -> None:
    (project / "loop").symlink_to(project, target_is_directory=True)
    assert "1 file" in lint(project, code=1).stdout


# ---- the cache ----


def test_the_cache_holds_by_content(project: Path) -> None:
    (project / "other.py").write_text(NET)
    first = lint(project, "-f", "json", code=1).stdout
    cache = project / ".breakscope" / "cache"
    assert (cache / ".gitignore").read_text() == "*\n"
    os.utime(project / "net.py", (1, 1))
    assert lint(project, "-f", "json", code=1).stdout == first
    (project / "net.py").write_text("\n" + NET)
    lines = [one["location"]["line"] for one in json.loads(lint(project, "-f", "json").stdout)["possible"]]
    assert sorted(lines) == [6, 7]
    assert lint(project, "-f", "json", "--no-cache").stdout == lint(project, "-f", "json").stdout


@pytest.mark.parametrize("garbage", [b"", b"\xff\xfe\x00", b"[1, 2]", b'{"possible": [{}]}', b"null"])
def test_a_damaged_cache_is_no_cache(project: Path, garbage: bytes) -> None:
    expected = lint(project, "-f", "json", code=1).stdout
    for path in (project / ".breakscope" / "cache").glob("lint-*"):
        if path.suffix == ".txt":
            head = path.read_bytes().split(b"\n")[0]
            names = [line.split(b"\t")[0] for line in path.read_bytes().split(b"\n")[1:]]
            path.write_bytes(
                b"\n".join([head, *(name + b"\t" + garbage.replace(b"\n", b"") for name in names)])
            )
        else:
            path.write_bytes(garbage)
    assert lint(project, "-f", "json", code=1).stdout == expected


def test_no_cache_writes_nothing(project: Path) -> None:
    lint(project, "--no-cache", code=1)
    assert not (project / ".breakscope").exists()


def test_a_cache_that_cannot_be_written_is_none(project: Path) -> None:
    (project / ".breakscope").write_text("a file is in the way")
    lint(project, code=1)
    assert (project / ".breakscope").read_text() == "a file is in the way"


# ---- bad input ----


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "cannot lint nowhere: there is no such file or folder"),
        (["empty"], "no Python files in empty"),
        (["--select", "BS9"], "'BS9' is no code and no beginning of one; did you mean BS309?"),
        (["--format", "xml"], "no format 'xml': there are full, concise, json, sarif, github"),
        (["--level", "sure"], "'sure' is not one of"),
        (["--fix"], "no such option"),
        (["-o", "nowhere/out.txt"], "cannot write the report to nowhere/out.txt"),
    ],
)
def test_usage_errors(project: Path, words: list[str], sentence: str) -> None:
    (project / "empty").mkdir()
    done = lint(project, *words, code=2)
    assert sentence in done.stderr.lower() or sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"def forward(:\n", "it is not Python that this version reads: line 1: "),
        (b"\x7fELF\x00\x01\x02 def forward", "it is not Python"),
        (b"# coding: no-such-encoding\ndef forward(x): pass\n", "it is not Python that this version reads: "),
        (
            b"def forward(x):\n    return " + b"(" * 5_000 + b")" * 5_000,
            "it is not Python that this version reads",
        ),
        (b"def forward(x):\n    return x" + b" + x" * 50_000, "its expressions are nested too deeply"),
    ],
)
def test_files_that_cannot_be_read(project: Path, content: bytes, why: str) -> None:
    (project / "bad.py").write_bytes(content)
    done = lint(project, ".", code=2)
    [line] = done.stderr.splitlines()
    assert line.startswith("breakscope: bad.py: " + why)
    assert "net.py:6:13" in done.stdout  # the others were read


def test_a_syntax_error_where_nothing_can_be_compiled_is_not_looked_at(project: Path) -> None:
    (project / "template.py").write_text("{% if this %}\n")
    assert lint(project, code=1).stderr == ""
    assert "template.py: it is not Python" in lint(project, "template.py", code=2).stderr


def test_a_file_that_is_named_is_an_error_also_after_its_folder_was_linted(tmp_path: Path) -> None:
    (tmp_path / "template.py").write_text("{% if this %}\n")
    assert lint(tmp_path, ".", code=0).stderr == ""
    assert "it is not Python" in lint(tmp_path, "template.py", code=2).stderr


def test_warnings_of_the_parser_are_not_shown(project: Path) -> None:
    (project / "net.py").write_text(NET + 'PATTERN = "\\d"\nif 1 is 1:\n    pass\n')
    assert lint(project, code=1).stderr == ""


def test_unreadable_and_odd_files(project: Path) -> None:
    (project / "gone.py").symlink_to("nowhere.py")
    os.mkfifo(project / "pipe.py")
    (project / "empty.py").write_bytes(b"")
    (project / "bom.py").write_bytes(b"\xef\xbb\xbf" + NET.encode())
    (project / "latin.py").write_bytes(
        b"# coding: latin-1\n" + NET.replace("n = ", "o = 'ö'; n = ").encode("latin-1")
    )
    (project / "dos.py").write_bytes(NET.replace("\n", "\r\n").encode())
    shown = lint(project, "-f", "concise", code=1).stdout
    assert "bom.py:6:13" in shown
    assert "dos.py:6:13" in shown
    assert "latin.py:7:22" in shown


@pytest.mark.slow
def test_very_many_files_and_very_long_ones(tmp_path: Path) -> None:
    for number in range(100):
        folder = tmp_path / f"package_{number}"
        folder.mkdir()
        for inner in range(100):
            (folder / f"module_{inner}.py").write_text(NET if inner == 0 else "VALUE = 1\n")
    (tmp_path / "long.py").write_text(NET + "".join(f"x_{number} = {number}\n" for number in range(200_000)))
    done = lint(tmp_path, "-f", "concise", "--no-cache", code=1)
    assert "101 possible breaks, 101 likely · 10,001 files, 101 with" in done.stdout


def test_hostile_names_are_made_harmless(project: Path) -> None:
    name = "evil\x1b[31m\n::error::x.py"
    (project / name).write_text(NET)
    for form in ("full", "concise", "github"):
        shown = lint(project, "-f", form).stdout
        assert "\x1b" not in shown
        assert "\n::error" not in shown


def test_help_is_quick_to_import() -> None:
    code = "import sys, breakscope.cli.lint; print(sorted({'torch', 'pandas', 'libcst', 'pathspec'} & set(sys.modules)))"
    done = run_python("-c", code, check=True)
    assert done.stdout.strip() == "[]"


# ---- the configuration ----


def test_lint_reads_the_configuration(project: Path) -> None:
    """Codes, folders and the level are those of [tool.breakscope]; options come before them."""
    (project / "old").mkdir()
    (project / "old" / "net.py").write_text(NET)
    (project / "sub").mkdir()
    (project / "sub" / "net.py").write_text(NET)
    (project / "pyproject.toml").write_text(
        "[tool.breakscope]\nignore = ['BS104']\nper-path-ignore = { 'sub/**' = ['BS102'] }\n"
        "[tool.breakscope.lint]\nlevel = 'possible'\nexclude = ['old/']\n"
    )

    def shown(folder: Path, *words: str) -> list[str]:
        lines = lint(folder, *words, "-f", "concise").stdout.splitlines()
        return [" ".join(line.split()[:2]) for line in lines if ": " in line or " BS" in line]

    assert [line for line in shown(project) if "old" in line] == []
    everything = "\n".join(shown(project))
    assert "BS102" in everything
    assert "BS104" not in everything
    assert "sub/net.py" not in everything
    assert "BS102" in "\n".join(shown(project / "sub", "--config", os.devnull))
    assert lint(project / "sub", code=0).stdout.startswith("no possible breaks")
    assert "BS102" not in "\n".join(shown(project, "--ignore", "BS102"))
    # A hook names the files that changed; one that is excluded is not an error.
    assert lint(project, "old/net.py", code=0).stderr == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.breakscope]\nigonre = ['BS104']\n", "there is no key 'igonre'; did you mean ignore?"),
        ("[tool.breakscope.lint]\nlevle = 'likely'\n", "lint has no key 'levle'; did you mean level?"),
        ("[tool.breakscope.lint]\nlevel = 'likley'\n", "did you mean likely?"),
    ],
)
def test_a_misspelt_key_is_an_error(project: Path, text: str, said: str) -> None:
    (project / "pyproject.toml").write_text(text)
    done = lint(project, code=2)
    assert done.stderr.startswith(f"breakscope: {project / 'pyproject.toml'}: ")
    assert said in done.stderr
