"""Bad input gets one sentence and an exit code; nothing that was there is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned, clean_environment, run_cold
from warm_scanning import run_command

Scan = Callable[..., Scanned]


def run(
    folder: Path, *words: str, expect: int, **environment: str
) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Run a command that fails; return its one sentence."""
    done = run_command(*words, folder=folder, **environment)
    assert done.returncode == expect, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("breakscope: ")
    assert done.stdout == ""
    return lines[0].removeprefix("breakscope: "), done


def test_no_such_file(tmp_path: Path) -> None:
    assert run(tmp_path, "scan", "nothing.py", expect=2)[0] == "there is no file nothing.py"
    assert not list(tmp_path.iterdir())


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    sentence, _ = run(tmp_path, "scan", "code", expect=2)
    assert sentence == "code is a directory; name a Python script in it"


def test_no_such_module(tmp_path: Path) -> None:
    assert run(tmp_path, "scan", "-m", "no_such.thing", expect=2)[0] == "there is no module named no_such"


def test_not_python(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(range(256)))
    assert run(tmp_path, "scan", "model.bin", expect=2)[0] == "model.bin is not a Python script"


def test_an_unreadable_script(tmp_path: Path) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    sentence, _ = run(tmp_path, "scan", "loop.py", expect=2)
    assert sentence.startswith(("there is no file loop.py", "cannot read loop.py"))


def test_a_mistyped_option_suggests_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print(1)")
    sentence, _ = run(tmp_path, "scan", "--backedn", "eager", "s.py", expect=2)
    assert "--backedn" in sentence
    assert "--backend" in sentence


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("scan",), "name a script"),
        (("scan", "-m"), "name a module"),
        (("scan", "--backend", "fast", "s.py"), "fast"),
        (("scan", "--steps", "0", "s.py"), "--steps"),
        (("scan", "--mode", "max-autotune", "s.py"), "--mode needs --backend inductor"),
        (("scan", "--timeout"), "--timeout"),
        (("skan", "s.py"), "skan"),
        (("explain", "BS999"), "BS999"),
        (("explain",), "--list"),
    ],
)
def test_wrong_usage(tmp_path: Path, words: tuple[str, ...], part: str) -> None:
    (tmp_path / "s.py").write_text("print(1)")
    assert part in run(tmp_path, *words, expect=2)[0]


def test_a_syntax_error_is_pythons_own(scan: Scan) -> None:
    scanned = scan("def broken(:\n    pass\n")
    assert scanned.exit_code == 1
    assert "SyntaxError" in scanned.stderr
    assert "breakscope" not in scanned.stderr
    assert scanned.report.run.status == "script_error"
    assert scanned.report.reconciliation.vacuous


def test_a_missing_import_is_pythons_own(scan: Scan) -> None:
    scanned = scan("import no_such_module_at_all\n")
    assert scanned.exit_code == 1
    assert scanned.stderr.rstrip().endswith("ModuleNotFoundError: No module named 'no_such_module_at_all'")
    assert any("never imported torch" in note for note in scanned.report.run.notes)


def test_a_function_that_the_script_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "class Net:\n    def forward(self): pass\ndef train_step(): pass\nprint(1)\n"
    )
    sentence, _ = run(tmp_path, "scan", "--compile", "trian_step", "s.py", expect=2)
    assert sentence == "s.py has no function trian_step; it has: Net.forward, train_step"


@pytest.mark.torch
def test_a_function_that_is_never_called(scan: Scan) -> None:
    scanned = scan("import torch\ndef step(x):\n    return x\nprint('ran')\n", "--compile", "step")
    assert scanned.exit_code == 2
    assert scanned.text == "ran\n"
    assert scanned.stderr == "breakscope: step was never called\n"


@pytest.mark.torch
def test_a_function_that_its_module_does_not_have(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\ndef forward(x):\n    return x + 1\n")
    scanned = scan("import model, torch\nmodel.forward(torch.ones(1))\n", "--compile", "model:foward")
    assert scanned.exit_code == 2
    assert scanned.stderr == "breakscope: there is no function model:foward; its module has: forward\n"


def _fake_torch(folder: Path, version: str | None) -> dict[str, str]:
    """An interpreter environment in which torch is of a version, or is not there at all."""
    site = folder / "site"
    site.mkdir()
    lines = ["import importlib.metadata as m, importlib.util as u, sys"]
    if version is None:
        lines += [
            "def missing(name): raise m.PackageNotFoundError(name)",
            "real = u.find_spec",
            "m.version = missing",
            "u.find_spec = lambda name, *a: None if name == 'torch' else real(name, *a)",
        ]
    else:
        lines += [f"m.version = lambda name: {version!r}"]
    (site / "sitecustomize.py").write_text("\n".join(lines))
    return {"PYTHONPATH": str(site)}


def test_no_torch_installed(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print(1)")
    sentence, _ = run(tmp_path, "scan", "s.py", expect=2, **_fake_torch(tmp_path, None))
    assert sentence.startswith(f"torch is not installed for {sys.executable}")


def test_torch_too_old(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print(1)")
    sentence, _ = run(tmp_path, "scan", "s.py", expect=2, **_fake_torch(tmp_path, "2.5.1+cu124"))
    assert sentence == "torch 2.5.1+cu124 is too old; breakscope needs 2.9 or newer"


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("open('ran', 'w')")
    (tmp_path / "file").write_text("precious")
    sentence, _ = run(tmp_path, "scan", "-o", "file/report.json", "s.py", expect=2)
    assert sentence.startswith("cannot write to ")
    (tmp_path / "dir").mkdir()
    sentence, _ = run(tmp_path, "scan", "-o", "dir", "s.py", expect=2)
    assert sentence == "cannot write the report to dir: it is a directory"
    # Found out before the script's time was spent.
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "file").read_text() == "precious"


def _report(folder: Path) -> Path:
    (folder / "s.py").write_text("print(1)")
    run_cold("scan", "-q", "-o", "report.json", "s.py", folder=folder, check=True)
    return folder / "report.json"


def test_report_files_that_are_none(tmp_path: Path) -> None:
    whole = _report(tmp_path).read_text()
    newer = json.loads(whole)
    newer["schema_version"] = 99
    for name, text, part in (
        ("truncated.json", whole[: len(whole) // 2], "truncated"),
        ("newer.json", json.dumps(newer), "99"),
        ("text.json", "hello", "JSON"),
        ("other.json", '{"a": 1}', "not a breakscope report"),
        ("empty.json", "", "empty"),
    ):
        (tmp_path / name).write_text(text)
        sentence, _ = run(tmp_path, "report", name, expect=2)
        assert name in sentence
        assert part in sentence
    assert "missing.json" in run(tmp_path, "report", "missing.json", expect=2)[0]
    assert ".breakscope" in run(tmp_path, "report", expect=2)[0]


@pytest.mark.slow
def test_a_report_of_200_megabytes_is_read(tmp_path: Path) -> None:
    place = _report(tmp_path)
    data = json.loads(place.read_text())
    data["regions"] = [
        {"compile_id": "0/0", "function": "f" * 1000, "ops": 1, "calls": 1, "ms": None, "ended_by": None}
    ] * 190_000
    place.write_text(json.dumps(data))
    assert place.stat().st_size > 200_000_000
    done = run_cold("report", "report.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-500:]
    assert len(done.stdout) < 100_000


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    _report(tmp_path)
    line = f"{sys.executable} -m breakscope report report.json --format json | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=tmp_path,
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode in (0, 141)


def test_no_traceback_of_ours_but_with_debug(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print(1)")
    done = run_cold("--debug", "scan", "nothing.py", folder=tmp_path)
    assert "Traceback" in done.stderr
    assert done.returncode == 1
    assert os.listdir(tmp_path) == ["s.py"]
