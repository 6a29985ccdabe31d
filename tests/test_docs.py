"""What the documentation shows is what the commands print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scanning import clean_environment

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def run(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_no_output_in_the_documentation_is_stale() -> None:
    done = run("scripts/make_docs.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_repaired_example_computes_the_same() -> None:
    slow, repaired = (run(f"docs/example/{name}.py") for name in ("slow", "repaired"))
    assert slow.returncode == repaired.returncode == 0, slow.stderr + repaired.stderr
    losses = [re.findall(r"loss \S+", done.stdout) for done in (slow, repaired)]
    assert losses[0]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)|(?:src|srcset|href)=\"([^\":#]+)\"", text)
    for link in (a or b for a, b in links):
        assert (page.parent / link).exists(), link
