"""What compiles produced, in the page: what is shown, what leads where, and what is left out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from report_samples import BRANCH, CLEAN, RUN

from breakscope.cli import report_html
from breakscope.errors import ArtifactError
from breakscope.inside.capture.artifacts import Store
from breakscope.render import html
from breakscope.render.html import produced as module
from breakscope.render.html.produced import Produced, produced
from breakscope.report.model import Artifact, Finding, Region, Report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

FILE = BRANCH.location.file
GRAPH = f"""class GraphModule(torch.nn.Module):
    def forward(self, x):
        # File: {FILE}:41 in forward, code: if y.abs().max() > 1e4:
        abs_1: "f32[4]" = y.abs()
        max_1 = abs_1.max();  abs_1 = None
        # File: /elsewhere/other.py:7 in g, code: return y
        neg: "f32[4]" = -max_1
"""
CODE = """# kernel path: /tmp/a.py
# Topologically Sorted Source Nodes: [unknown, max_1], Original ATen: [aten.abs, aten.amax]
triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''
# Topologically Sorted Source Nodes: [nothing_known], Original ATen: []
"""
GUARDS = "+- TENSOR_MATCH: check_tensor(L['x'])  # y = self.f(x)  # project/model.py:40 in forward\n"


def named(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def kept(compile_id: str, kind: str, text: str, rank: int = 0) -> Artifact:
    return Artifact(compile_id, kind, named(text), len(text.encode()), rank)  # type: ignore[arg-type]


def report_with(*artifacts: Artifact, findings: tuple[Finding, ...] = (BRANCH,)) -> Report:
    regions = (Region("0/0", "Block.forward", 3, 4, None, None),)
    return replace(CLEAN, run=RUN, findings=findings, regions=regions, artifacts=artifacts)


def reader(*texts: str) -> Callable[[str], str]:
    known = {named(text): text for text in texts}

    def read(digest: str) -> str:
        if digest not in known:
            raise ArtifactError(f"{digest[:4]} is missing: move both")
        return known[digest]

    return read


def shown(report: Report, *texts: str, files: tuple[str, ...] = (FILE,)) -> Produced:
    made = produced(report, reader(*texts), report.findings, files)
    assert made is not None
    return made


def test_lines_lead_to_the_source_that_they_were_made_from() -> None:
    report = report_with(
        kept("0/0", "guards", GUARDS), kept("0/0", "graph", GRAPH), kept("0/0", "code", CODE)
    )
    made = shown(report, GRAPH, CODE, GUARDS)
    [compiled] = made.compiles
    assert (compiled.title, compiled.function) == ("0/0", "Block.forward")
    places = {part.title: made.texts[part.text].places for part in compiled.parts if part.text is not None}
    assert places == {
        "Inductor's code": ((2, 0, 41),),  # by way of the node max_1, which the graph has from line 41
        "Dynamo's graph": ((3, 0, 41),),  # the page does not have the other file
        "guards": ((1, 0, 40),),  # by the end of its path
    }


def test_an_end_of_a_path_that_two_files_have_leads_nowhere() -> None:
    report = report_with(kept("0/0", "guards", GUARDS))
    made = shown(report, GUARDS, files=(FILE, "/another/project/model.py"))
    assert made.texts[0].places == ()


def test_a_finding_leads_to_its_own_compiles() -> None:
    counts = replace(BRANCH.counts, compile_ids=("1/0",))
    report = report_with(
        kept("0/0", "graph", GRAPH), kept("1/0", "graph", GRAPH), findings=(replace(BRANCH, counts=counts),)
    )
    made = shown(report, GRAPH)
    assert [one.findings for one in made.compiles] == [(), (0,)]
    assert len(made.texts) == 1, "the same text stands in the page once"


def test_what_is_missing_says_so_and_hides_nothing_else() -> None:
    report = report_with(kept("0/0", "graph", GRAPH), kept("0/0", "code", CODE))
    code, graph = shown(report, GRAPH).compiles[0].parts
    assert code.text is None
    assert code.note.endswith("is missing: move both.")
    assert graph.text == 0


def test_a_page_has_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHARACTERS", len(CODE) + 5)
    monkeypatch.setattr(module, "_MOST_COMPILES", 1)
    report = report_with(
        kept("0/0", "code", CODE), kept("0/0", "guards", GUARDS), kept("1/0", "guards", GUARDS)
    )
    made = shown(report, CODE, GUARDS)
    code, guards = made.compiles[0].parts
    assert code.text is not None
    assert (guards.text, guards.note) == (None, "The page holds no more; breakscope show 0/0 prints it.")
    assert made.left_out == 1
    long = "x" * (module._LARGEST + 9)
    monkeypatch.setattr(module, "_CHARACTERS", 2 * len(long))
    text = shown(report_with(kept("0/0", "code", long)), long).texts[0].text
    assert text.endswith("x\n… 9 more characters: breakscope show 0/0")


def test_nothing_kept_is_no_section() -> None:
    assert produced(CLEAN, reader(), (), ()) is None
    assert produced(report_with(kept("0/0", "graph", GRAPH)), None, (), ()) is None
    assert 'id="produced"' not in html.render(CLEAN, sources=None, artifacts=reader())


def test_the_command_finds_them_beside_the_report(tmp_path: Path) -> None:
    digest = Store(tmp_path / "artifacts").put(CODE)
    artifact = Artifact("0/0", "code", digest, len(CODE))
    page = report_html.write(report_with(artifact), tmp_path / "report.json", tmp_path / "page.html", False)
    assert "triton_poi_fused_0" in page.read_text()


@pytest.mark.slow
def test_a_reader_goes_from_code_to_source_and_back(browser: Browser, tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text(
        "def forward(self, x):\n    y = self.f(x)\n    if y.abs().max() > 1e4:\n        y = y / 2\n"
    )
    place = replace(BRANCH.location, file=str(source), line=3, column=8, end_line=3, end_column=27, indent=4)
    finding = replace(BRANCH, location=place, counts=replace(BRANCH.counts, compile_ids=("0/0",)))
    hostile = "# File: <script>alert(1)</script>\n\u202e"
    graph = GRAPH.replace(f"{FILE}:41", f"{source}:3") + hostile
    store = Store(tmp_path / "artifacts")
    for text in (graph, CODE):
        store.put(text)
    report = report_with(kept("0/0", "graph", graph), kept("0/0", "code", CODE), findings=(finding,))
    file = tmp_path / "page.html"
    file.write_text(
        html.render(report, sources=html.OnDisk(lambda _file: True), artifacts=store.get), encoding="utf-8"
    )
    page = browser.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(file.as_uri()) else wrong.append(request.url),
    )
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")

    page.locator("details.finding > summary").click()
    page.get_by_role("link", name="What 0/0 produced").click()
    parts = page.locator("#compile-0 .artifact > summary")
    parts.first.wait_for(state="visible")
    assert [text.partition(" ")[0] for text in parts.all_inner_texts()] == ["Inductor's", "Dynamo's"]
    parts.nth(1).click()
    rows = page.locator("#compile-0-1 .row")
    rows.first.wait_for(state="visible")
    assert "\\u202e" in rows.last.inner_text()
    assert page.locator("#compile-0-1 script").count() == 0
    page.locator("#compile-0-1 a.made").first.click()
    line = page.locator("#files .row", has=page.locator("a.made"))
    line.first.wait_for(state="visible")
    assert "if y.abs().max() > 1e4:" in line.first.inner_text()
    line.first.locator("a.made").click()
    here = page.locator("#compile-0-0 .row.here")
    here.wait_for(state="visible")
    assert "Source Nodes: [unknown, max_1]" in here.inner_text()
    assert wrong == []
    page.close()
