# ruff: noqa: INP001 - a script, not a package
"""Takes the pictures of the HTML report that the README and the docs show.

    python scripts/screenshots.py REPORT.json FOLDER

writes light, dark, phone, open and print pictures of the page into FOLDER. Needs Chromium (CHROMIUM names
it, else /usr/bin/chromium) and `pip install playwright`; loads nothing from the network.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from breakscope.render import html
from breakscope.report import schema

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP, PHONE = (1280, 900), (360, 740)


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium of the system."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        running = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield running
        running.close()


def open_page(running: Browser, file: Path, *, size: tuple[int, int], dark: bool = False) -> Page:
    """The page of a file, drawn."""
    width, height = size
    page = running.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        device_scale_factor=2 if size == PHONE else 1,
    )
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    return page


def take(file: Path, folder: Path) -> list[Path]:
    """Every picture of one page; returns the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = []

    def shoot(page: Page, name: str, *, full: bool = True) -> None:
        target = folder / f"{name}.png"
        page.screenshot(path=target, full_page=full)
        taken.append(target)
        page.close()

    with browser() as running:
        for theme in ("light", "dark"):
            shoot(open_page(running, file, size=DESKTOP, dark=theme == "dark"), f"top-{theme}", full=False)
            page = open_page(running, file, size=DESKTOP, dark=theme == "dark")
            rows = page.locator("details.finding > summary")
            if rows.count():
                rows.first.click()
            files = page.locator("details.file > summary")
            if files.count():
                files.first.click()
            shoot(page, f"open-{theme}")
        page = open_page(running, file, size=PHONE)
        if page.locator("details.finding > summary").count():
            page.locator("details.finding > summary").first.click()
        shoot(page, "phone")
        page = open_page(running, file, size=DESKTOP)
        page.emulate_media(media="print")
        printed = folder / "print.pdf"
        page.pdf(
            path=printed,
            format="A4",
            margin={"top": "12mm", "bottom": "12mm", "left": "12mm", "right": "12mm"},
        )
        taken.append(printed)
        shoot(page, "print")
    return taken


def main() -> None:
    """Read the command line and take the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path, help="report file, or a page that breakscope wrote")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        page = options.report
        if page.suffix != ".html":
            page = Path(temporary) / "breakscope.html"
            sources = html.OnDisk(lambda _file: True)
            page.write_text(html.render(schema.load(options.report), sources=sources), encoding="utf-8")
        for file in take(page.resolve(), options.folder):
            print(file)


if __name__ == "__main__":
    main()
