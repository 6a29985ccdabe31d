"""The documentation shows what is true: outputs, links, and a repair that changes no result."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from scanning import clean_environment

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"')


def losses(script: str) -> list[str]:
    """What a script of the example prints when nothing compiles it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "example" / script)],
        env=clean_environment(TORCH_COMPILE_DISABLE="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.torch
@pytest.mark.slow
def test_pages_are_what_the_commands_print() -> None:
    shown = re.findall(r"torch (\d+\.\d+)\.\d", (ROOT / "docs" / "example.md").read_text())
    installed = ".".join(version("torch").split(".")[:2])
    if installed != shown[0]:
        pytest.skip(f"the pages were made with torch {shown[0]}, this is {installed}")
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"],
        env=clean_environment(OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.torch
def test_the_repair_changes_no_loss() -> None:
    slow = losses("slow.py")
    assert len(slow) == 4
    assert len(set(slow)) == 4
    assert losses("repaired.py") == slow


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    without_code = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = {first or second for first, second in LINK.findall(without_code)}
    relative = {target.partition("#")[0] for target in targets if "://" not in target} - {""}
    missing = sorted(target for target in relative if not (page.parent / target).exists())
    assert not missing
