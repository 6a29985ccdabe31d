"""What holds ``make quick``: a test that needs torch and does not say so fails there."""

from __future__ import annotations

import shutil
from pathlib import Path

from scanning import run_python

HERE = Path(__file__).parent
TESTS = """
import subprocess, sys
import pytest

def test_plain():
    pass

def test_that_imports():
    import torch

def test_that_starts_a_script():
    subprocess.run([sys.executable, "-c", "import torch"], check=True)

@pytest.mark.torch
def test_that_is_marked():
    import torch
"""
WHOLE = (
    "import pytest\nimport torch\n\npytestmark = [pytest.mark.slow, pytest.mark.torch]\n\ndef test(): pass\n"
)


def test_only_a_test_that_is_marked_may_need_torch(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text((HERE.parent / "pyproject.toml").read_text())
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("conftest.py", "scanning.py", "warm_scanning.py"):
        shutil.copy(HERE / name, folder / name)
    warm = Path("fix", "observed")
    shutil.copytree(HERE / warm, folder / warm, ignore=shutil.ignore_patterns("test_*", "conftest.py"))
    shutil.copytree(HERE / "without_torch", folder / "without_torch")
    (folder / "test_some.py").write_text(TESTS)
    (folder / "test_whole.py").write_text(WHOLE)
    done = run_python(
        "-m", "pytest", "--without-torch", "-n", "0", "-p", "no:cacheprovider", folder=tmp_path, COLUMNS="200"
    )
    assert "2 failed, 1 passed, 1 deselected" in done.stdout, done.stdout + done.stderr
    assert "FAILED tests/test_some.py::test_that_imports - RuntimeError: this test needs torch" in done.stdout
    assert "FAILED tests/test_some.py::test_that_starts_a_script" in done.stdout
    assert "mark it with @pytest.mark.torch" in done.stdout
