"""The documentation shows what is true: outputs, links, and a repair that changes no result."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import site_links
from scanning import run_python
from warm_scanning import Warm

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "docs" / "example"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r'\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"')


def losses(script: str, folder: Path, product: Warm) -> list[str]:
    """What a script of the example prints when nothing compiles it."""
    # Torch read the variable that turns it off when it was imported: a fork is told by the script itself.
    text = "import torch\ntorch._dynamo.config.disable = True\n" + (EXAMPLE / script).read_text()
    (folder / script).write_text(text)
    said = folder / "said"
    assert product.python(script, folder, said, folder / "errors") == 0
    return said.read_text().splitlines()


@pytest.mark.torch
@pytest.mark.slow
def test_pages_are_what_the_commands_print() -> None:
    shown = re.findall(r"torch (\d+\.\d+)\.\d", (ROOT / "docs" / "example.md").read_text())
    installed = ".".join(version("torch").split(".")[:2])
    if installed != shown[0]:
        pytest.skip(f"the pages were made with torch {shown[0]}, this is {installed}")
    done = run_python(str(ROOT / "scripts" / "make_docs.py"), "--check", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.torch
def test_the_repair_changes_no_loss(tmp_path: Path, product: Warm) -> None:
    slow = losses("slow.py", tmp_path, product)
    assert len(slow) == 4
    assert len(set(slow)) == 4
    assert losses("repaired.py", tmp_path, product) == slow


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    without_code = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = {first or second for first, second in LINK.findall(without_code)}
    relative = {target.partition("#")[0] for target in targets if "://" not in target} - {""}
    missing = sorted(target for target in relative if not (page.parent / target).exists())
    assert not missing


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a page that is not in its navigation, or a link without an end, fails."""
    if find_spec("material") is None:
        if os.environ.get("CI"):
            pytest.fail("mkdocs-material is not installed, and CI is set")
        pytest.skip("mkdocs-material is not installed: pip install --group docs")
    folder = tmp_path_factory.mktemp("docs") / "site"
    words = "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)
    done = run_python(*words, folder=ROOT, PYTHONPATH=str(ROOT), NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow  # it builds the site
def test_every_link_of_the_site_has_an_end_and_nothing_is_fetched(site: Path) -> None:
    assert list(site_links.faults(site)) == []


@pytest.mark.slow
def test_the_site_has_a_page_for_each_code_rule_and_command(site: Path) -> None:
    from breakscope import catalog
    from breakscope.cli.app import NAMES
    from breakscope.fix.rules import RULES

    pages = [f"codes/{entry.code}" for entry in catalog.codes()]
    pages += [f"rules/{rule.name}" for rule in RULES] + [f"commands/{name}" for name in NAMES]
    assert [name for name in pages if not (site / f"{name}.html").is_file()] == []
    assert "torch.where(x.abs().max()" in re.sub(r"<[^>]+>", "", (site / "codes/BS101.html").read_text())
    assert "F.one_hot(i, num_classes=w.size(-2))" in re.sub(
        r"<[^>]+>", "", (site / "rules/known-size.html").read_text()
    )
    assert "--keep-fullgraph" in (site / "commands/scan.html").read_text()


def test_a_link_without_an_end_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<h1 id="top">A</h1><a href="#top">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
        '<a href="https://example.org/x">4</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text("<p>B</p>")
    assert list(site_links.faults(tmp_path)) == [
        "index.html fetches https://example.org/x.js",
        "index.html links to b.html#gone: there is no such anchor",
        "index.html links to c.html: there is no such file",
    ]
