"""The browser of these tests, and the shared reports of the folder above."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _missing(what: str) -> Any:
    """A browser that is missing is a reason to skip on a desk, and a failure in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI is set")
    pytest.skip(what)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium of the system."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        _missing("playwright is not installed: pip install playwright axe-playwright-python")
    path = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    if not path.exists():
        _missing(f"no Chromium at {path}: apt-get install chromium, or set CHROMIUM")
    with sync_playwright() as playwright:
        try:
            running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            _missing(f"Chromium does not start: {error}")
        yield running
        running.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: BREAKSCOPE_SCREENSHOTS, which CI keeps, or a temporary folder."""
    folder = Path(os.environ.get("BREAKSCOPE_SCREENSHOTS") or tmp_path / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
