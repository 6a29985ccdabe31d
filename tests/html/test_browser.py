"""The page in a real browser: what a reader does with it, in both themes, on a phone and on paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import html_samples
import pytest
from report_samples import BRANCH, ITEM, SAMPLES, SIZE

from breakscope.diagnose.compare import Comparison, compare
from breakscope.render import html
from breakscope.report.model import Report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow  # to start a browser, and to end it

Open = Callable[..., "Page"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
# Colours are the theme's and places the size's: each is seen once in every run, the other two pairs at night.
in_both_themes_and_sizes = pytest.mark.parametrize(
    ("dark", "size"),
    [
        pytest.param(False, DESKTOP, id="light desktop"),
        pytest.param(True, PHONE, id="dark phone"),
        pytest.param(True, DESKTOP, id="dark desktop", marks=pytest.mark.nightly),
        pytest.param(False, PHONE, id="light phone", marks=pytest.mark.nightly),
    ],
)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a report or of a comparison.

    Fails the test on any console error and on any request but the file's.
    """
    pages: list[Page] = []
    wrong: list[str] = []

    def show(
        shown: Report | Comparison,
        *,
        size: dict[str, int] = DESKTOP,
        anchor: str = "",
        dark: bool = False,
        known: frozenset[str] | None = None,
    ) -> Page:
        file = tmp_path / "breakscope.html"
        if isinstance(shown, Comparison):
            text = html.render_diff(shown, root=None)
        else:
            text = html.render(shown, sources=html.OnDisk(lambda _file: True), known=known)
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light")
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on(
            "console",
            lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((file.as_uri(), "data:")) else wrong.append(request.url)
            ),
        )
        page.goto(file.as_uri() + (f"#{quote(anchor, safe='')}" if anchor else ""))
        if isinstance(shown, Report):
            page.wait_for_selector("html[data-ready]", state="attached")
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.context.close()
    assert wrong == []


@pytest.fixture
def rich(tmp_path: Path) -> Report:
    return html_samples.rich(tmp_path)


@pytest.fixture
def compared(tmp_path: Path) -> Comparison:
    return html_samples.compared(tmp_path)


def until(page: Page, condition: str) -> None:
    """Wait for a condition. Playwright's own way evaluates text in the page, which the policy forbids."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"still not true after 5 s: {condition}")


def opened_again(page: Page) -> None:
    """Reload a page with what it had stored.

    A Chromium with all cores busy forgets what a page of a new context stored a moment before: one reload in forty.
    So what was stored is put there again, before the page's own scripts run.
    """
    stored = page.evaluate("JSON.stringify(localStorage)")
    page.add_init_script(f"Object.assign(localStorage, {stored})")
    page.reload()


def titles(page: Page) -> list[str]:
    return page.locator("details.finding .code").all_inner_texts()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_opens(opened: Open, name: str) -> None:
    page = opened(SAMPLES[name])
    assert page.locator("h1").inner_text().endswith(".")
    assert page.locator("details.finding").count() == min(50, len(SAMPLES[name].findings))


def test_filters_narrow_the_list_and_say_how_far(opened: Open, rich: Report) -> None:
    page = opened(rich)
    assert page.locator("#f-count").inner_text() == "7 findings"
    page.get_by_label("Search").fill("ITEM scalar")
    assert titles(page) == ["BS102"]
    assert page.locator("#f-count").inner_text() == "1 of 7 findings"
    page.get_by_role("button", name="Reset").click()
    until(page, "document.querySelector('#f-count').textContent === '7 findings'")
    page.get_by_label("Kind").select_option("recompile")
    assert titles(page) == ["BS201", "BS207"]
    page.get_by_label("Code").select_option("BS207")
    assert titles(page) == ["BS207"]
    page.get_by_label("Code").select_option("")
    page.get_by_label("Kind").select_option("")
    page.get_by_label("Owner").select_option("library")
    assert titles(page) == ["BS104"]
    page.get_by_label("Owner").select_option("")
    page.get_by_label("File").select_option(label="model.py (6)")
    assert len(titles(page)) == 6


def test_new_findings_have_a_badge_and_a_filter(opened: Open, rich: Report) -> None:
    known = frozenset(one.fingerprint for one in rich.findings) - {ITEM.fingerprint, SIZE.fingerprint}
    page = opened(rich, known=known)
    assert page.locator("#f-count").inner_text() == "7 findings, 2 new"
    badges = page.locator("details.finding", has=page.locator(".chip.new"))
    assert badges.locator(".code").all_inner_texts() == ["BS102", "BS201"]
    choice = page.get_by_label("New / known")
    assert choice.locator("option").all_inner_texts() == ["all", "known (5)", "new (2)"]
    choice.select_option("new")
    assert titles(page) == ["BS102", "BS201"]
    assert page.locator("#f-count").inner_text() == "2 of 7 findings, 2 new"
    choice.select_option("known")
    assert page.locator(".chip.new").count() == 0
    assert page.locator("#f-count").inner_text() == "5 of 7 findings, 0 new"
    assert violations(page) == []


def test_without_an_earlier_report_nothing_is_called_new(opened: Open, rich: Report) -> None:
    page = opened(rich)
    assert page.locator("#f-news").count() == 0
    assert page.locator(".chip.new").count() == 0


def test_sorting_changes_the_order(opened: Open, rich: Report) -> None:
    page = opened(rich)
    assert titles(page)[:3] == ["BS101", "BS102", "BS301"]
    page.get_by_label("Sort by").select_option("place")
    assert titles(page)[:2] == ["BS101", "BS303"]
    page.get_by_label("Sort by").select_option("occurrences")
    assert titles(page)[:2] == ["BS101", "BS201"]
    page.get_by_label("Sort by").select_option("crossings")
    assert titles(page)[0] == "BS101"


def test_a_finding_opens_to_all_that_is_known_of_it(opened: Open, rich: Report) -> None:
    page = opened(rich)
    row = page.locator("details.finding").first
    row.locator("summary").first.press("Enter")
    assert row.locator("mark").first.inner_text() == "y.abs().max() > 1e4"
    text = row.inner_text()
    for known in ("Proved", "torch.where(", "24 (6 a step)", "Net.forward", "GB0170", "gaps between regions"):
        assert known in text
    assert row.locator(".diff td.old").count() == 4
    size = page.locator("details.finding", has_text="size of x")
    size.locator("summary").first.click()
    size.locator(".guards").wait_for()
    assert size.locator(".guards td").all_inner_texts()[:5] == ["x, dimension 0", "size", "3", "4", "4, 7, 9"]


def test_the_patch_and_the_link_are_copied(opened: Open, rich: Report) -> None:
    page = opened(rich)
    row = page.locator("details.finding").first
    row.locator("summary").first.click()
    row.get_by_role("button", name="Copy the patch").click()
    row.get_by_text("Copied.").first.wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == html_samples.PATCH
    row.get_by_role("button", name="Copy a link").click()
    until(page, "navigator.clipboard.readText().then((text) => text.startsWith('file:'))")
    assert page.evaluate("navigator.clipboard.readText()").endswith("#" + quote(BRANCH.fingerprint, safe=""))


def test_copying_works_without_a_clipboard(opened: Open, rich: Report) -> None:
    page = opened(rich)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate(
        "document.addEventListener('copy', () => { window.copied = document.activeElement.value; })"
    )
    row = page.locator("details.finding").first
    row.locator("summary").first.click()
    row.get_by_role("button", name="Copy the patch").click()
    row.get_by_text("Copied.").first.wait_for()
    assert page.evaluate("window.copied") == html_samples.PATCH


def test_pictures_and_links_lead_to_the_finding(opened: Open, rich: Report) -> None:
    page = opened(rich)
    page.locator("#time svg.bar a").nth(1).click()
    row = page.locator("details.finding[open]")
    assert row.locator(".code").first.inner_text() == "BS102"
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.get_by_label("Kind").select_option("recompile")
    page.locator("#path a").nth(1).click()  # the filter hides it: the link wins
    page.locator("details.finding[open]", has_text="BS101").first.wait_for()
    page.locator("#timeline a").last.click()
    page.locator("details.finding[open]", has_text="BS207").last.wait_for()


def test_a_link_from_elsewhere_opens_its_finding(opened: Open, rich: Report) -> None:
    page = opened(rich, anchor=ITEM.fingerprint)
    assert page.locator("details.finding[open] .code").first.inner_text() == "BS102"
    assert page.locator("details.finding[open] mark").all_inner_texts() == ["x.mean()", ".item()"]


def test_the_source_view_leads_to_findings_and_back(opened: Open, rich: Report) -> None:
    page = opened(rich)
    page.locator("details.file > summary").first.click()
    until(page, "document.querySelectorAll('details.file .row.here').length === 4")
    page.locator("details.file .margin a", has_text="BS102").click()
    row = page.locator("details.finding[open]")
    assert row.locator(".code").first.inner_text() == "BS102"
    page.locator("details.file > summary").first.click()
    row.get_by_role("link", name="Open in the source view").click()
    box = page.locator("details.file[open] .codebox")
    box.wait_for(state="visible")  # the page opens it a moment later
    assert box.is_visible()


def test_the_theme_is_switched_and_remembered(opened: Open, rich: Report) -> None:
    page = opened(rich)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    opened_again(page)
    page.get_by_role("button", name="Light theme").wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_the_page_works_where_storage_is_refused(
    opened: Open, rich: Report, browser: Browser, tmp_path: Path
) -> None:
    opened(rich)
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })"
    )
    page = context.new_page()
    page.goto((tmp_path / "breakscope.html").as_uri())
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    context.close()


def test_hostile_text_runs_nothing_and_stays_in_its_place(opened: Open, tmp_path: Path) -> None:
    for size in (DESKTOP, PHONE):
        page = opened(html_samples.hostile(tmp_path), size=size)
        page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
        until(page, "document.querySelectorAll('details.finding .body').length === 9")
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.images.length") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert "\\u202e" in page.locator("#findings").inner_text()
        mark = page.locator("details.finding mark").first
        assert mark.inner_text() == "y.item()"
        assert page.evaluate(
            "(([m, b]) => m.right <= b.right)([document.querySelector('.finding mark'), document.querySelector('.finding .codebox')].map((one) => one.getBoundingClientRect()))"
        )


def test_a_link_with_hostile_characters_is_followed(opened: Open, tmp_path: Path) -> None:
    page = opened(html_samples.hostile(tmp_path))
    page.locator("#time a", has_text="evil.py:1").first.click()
    until(page, "document.querySelectorAll('details.finding[open]').length === 1")


@pytest.mark.parametrize("name", ["rich", "clean", "vacuous", "killed"])
def test_a_phone_needs_no_sideways_scrolling(opened: Open, rich: Report, name: str) -> None:
    page = opened(rich if name == "rich" else SAMPLES[name], size=PHONE)
    page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_paper_shows_everything_and_the_screen_is_as_before(opened: Open, rich: Report) -> None:
    page = opened(rich)
    page.emulate_media(media="print")
    until(page, "document.querySelectorAll('details:not([open])').length === 0")
    assert page.locator("details.finding .body").count() == 7
    page.emulate_media(media="screen")
    until(page, "document.querySelectorAll('details.finding[open]').length === 0")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_keyboard_reaches_the_findings(opened: Open, rich: Report) -> None:
    page = opened(rich)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "f-text"


def violations(page: Page) -> list[dict[str, Any]]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # The injected script is the test's, not the page's: the policy of the page stands and evaluate passes it by.
    found = axe.Axe().run(page).response["violations"]
    return [one for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.slow
@in_both_themes_and_sizes
def test_no_serious_barrier(opened: Open, rich: Report, dark: bool, size: dict[str, int]) -> None:
    page = opened(rich, dark=dark, size=size)
    assert violations(page) == []
    page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
    until(page, "document.querySelectorAll('details.finding .body').length === 7")
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in violations(page)] == []


@pytest.mark.parametrize("name", ["clean", "vacuous", "killed"])
def test_no_serious_barrier_where_there_is_little_to_show(opened: Open, name: str) -> None:
    assert violations(opened(SAMPLES[name])) == []


@pytest.mark.slow
def test_two_thousand_findings_are_searched_and_shown_in_parts(opened: Open, tmp_path: Path) -> None:
    page = opened(html_samples.many(tmp_path))
    page.get_by_label("Search").fill("layer_77")
    assert page.locator("#f-count").inner_text() == "10 of 2,000 findings"
    page.get_by_role("button", name="Reset").click()
    page.locator("#more").click()
    assert page.locator("details.finding").count() == 100


@pytest.mark.slow
def test_pictures_for_the_eye(opened: Open, rich: Report, pictures: Path) -> None:
    for name, options in {"light": {}, "dark": {"dark": True}, "phone": {"size": PHONE}}.items():
        page = opened(rich, anchor=SIZE.fingerprint, **options)
        page.screenshot(path=pictures / f"{name}.png", full_page=True)
        assert (pictures / f"{name}.png").stat().st_size > 20_000
    page.emulate_media(media="print")
    page.pdf(path=pictures / "print.pdf", format="A4")
    assert (pictures / "print.pdf").stat().st_size > 20_000


# ---- the page of a comparison ----


def test_a_comparison_shows_every_fate_with_its_source_and_counts(opened: Open, compared: Comparison) -> None:
    page = opened(compared)
    headings = page.locator("#findings h2").all_inner_texts()
    assert headings == ["New (1)", "Fixed (1)", "Changed (1)", "Moved (1)", "Unchanged (1)"]
    assert page.locator("h1").inner_text() == "1 new, 1 fixed, 1 changed, 1 moved, 1 unchanged."
    changed = page.locator("#changed li.compared")
    assert changed.locator("mark").inner_text() == "y.abs().max() > 1e4"
    assert changed.locator("tr.differs").all_inner_texts() == [
        "occurrences\t5\t7",
        "crossings\t24\t30",
        "ms a step\t1.42\t0.90",
    ]
    assert "1.42 -> 0.90 ms a step (-37%)" in changed.inner_text()
    assert page.locator("#new td").all_inner_texts() == ["-", "1", "-", "4", "-", "0.21"]
    assert page.locator("#fixed td").all_inner_texts()[:2] == ["1", "-"]


def test_what_differs_about_the_runs_comes_before_the_numbers_and_the_findings(
    opened: Open, compared: Comparison
) -> None:
    page = opened(compared)
    assert page.locator("main > section, #findings > section").evaluate_all(
        "all => all.map(one => one.id)"
    ) == ["", "runs", "numbers", "new", "fixed", "changed", "moved", "unchanged", "words"]
    assert page.locator("#runs dd").all_inner_texts()[0] == "2.13.0 -> 2.15.0"
    assert page.locator("#numbers td").all_inner_texts() == ["4", "3"]


def test_a_comparison_is_folded_on_the_screen_and_open_on_paper(opened: Open, compared: Comparison) -> None:
    page = opened(compared)
    assert not page.locator("#unchanged li.compared").is_visible()
    page.locator("#unchanged summary").press("Enter")
    assert page.locator("#unchanged li.compared").is_visible()
    page.emulate_media(media="print")
    until(page, "document.querySelectorAll('details:not([open])').length === 0")
    page.emulate_media(media="screen")
    until(page, "document.querySelectorAll('details[open]').length === 1")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_the_theme_of_a_comparison_is_switched_and_remembered(opened: Open, compared: Comparison) -> None:
    page = opened(compared)
    page.get_by_role("button", name="Dark theme").click()
    opened_again(page)
    page.get_by_role("button", name="Light theme").wait_for()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.slow
@in_both_themes_and_sizes
def test_a_comparison_has_no_serious_barrier(
    opened: Open, compared: Comparison, dark: bool, size: dict[str, int]
) -> None:
    page = opened(compared, dark=dark, size=size)
    page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in violations(page)] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize(("old", "new"), [("clean", "clean"), ("costs", "vacuous"), ("killed", "recompiles")])
def test_a_comparison_of_little_has_no_serious_barrier(opened: Open, old: str, new: str) -> None:
    page = opened(compare(SAMPLES[old], SAMPLES[new]))
    assert page.locator("h1").inner_text().endswith(".")
    assert violations(page) == []


@pytest.mark.parametrize("evil", ["old", "new", "both"])
def test_hostile_text_in_a_comparison_runs_nothing_and_stays_in_its_place(
    opened: Open, tmp_path: Path, evil: str
) -> None:
    hostile, plain = html_samples.hostile(tmp_path), html_samples.rich(tmp_path)
    pair = {"old": (hostile, plain), "new": (plain, hostile), "both": (hostile, hostile)}[evil]
    for size in (DESKTOP, PHONE):
        page = opened(compare(*pair), size=size)
        page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
        assert page.evaluate("window.hacked") is None
        assert page.evaluate("document.images.length") == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert "\\u202e" in page.locator("#findings").inner_text()
        assert page.locator("mark", has_text="y.item()").count() == 1


def test_a_comparison_of_two_thousand_findings_shows_the_first_two_hundred(
    opened: Open, tmp_path: Path
) -> None:
    page = opened(compare(SAMPLES["clean"], html_samples.many(tmp_path)))
    assert page.locator("#new li.compared").count() == 200
    assert (
        "1,800 more are in the output of breakscope diff --format json." in page.locator("#new").inner_text()
    )


def test_pictures_of_a_comparison_for_the_eye(opened: Open, compared: Comparison, pictures: Path) -> None:
    for name, options in {"light": {}, "dark": {"dark": True}, "phone": {"size": PHONE}}.items():
        page = opened(compared, **options)
        page.screenshot(path=pictures / f"diff-{name}.png", full_page=True)
        assert (pictures / f"diff-{name}.png").stat().st_size > 20_000
    page.emulate_media(media="print")
    page.pdf(path=pictures / "diff-print.pdf", format="A4")
    assert (pictures / "diff-print.pdf").stat().st_size > 20_000
