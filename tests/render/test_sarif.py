"""SARIF: valid by the official schema, and saying what the report says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    FIXES,
    HOSTILE,
    KILLED,
    LIBRARY,
    LOGGER,
    LOOP,
    MARKUP,
    PROJECT,
    SAMPLES,
    SKIPS,
    SUGGESTIONS,
    VACUOUS,
)

from breakscope import catalog
from breakscope.catalog import links
from breakscope.render import sarif
from breakscope.report.model import Finding, Frame, Location, Report, SourceEdit

SCHEMA = json.loads((Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json").read_text())


def run_of(report: Report, **options: Any) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(sarif.render(report, **options))["runs"][0]
    return run


def only(finding: Finding, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = run_of(replace(CLEAN, findings=(finding,)), **options)["results"][0]
    return result


def physical(location: dict[str, Any]) -> tuple[str | None, str, dict[str, Any]]:
    place = location["physicalLocation"]
    artifact = place["artifactLocation"]
    return artifact.get("uriBaseId"), unquote(artifact["uri"]), place.get("region", {})


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_is_valid_by_the_official_schema(name: str) -> None:
    text = sarif.render(SAMPLES[name], known=frozenset())
    text.encode("ascii")
    checker = jsonschema.FormatChecker()
    jsonschema.Draft7Validator(SCHEMA, format_checker=checker).validate(json.loads(text))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_result_names_its_rule_and_fingerprint(name: str) -> None:
    run = run_of(SAMPLES[name])
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == len(SAMPLES[name].findings)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"][sarif.FINGERPRINT]
    assert [rule["id"] for rule in rules] == sorted({rule["id"] for rule in rules})


def test_rules_hold_the_catalogs_help_and_severity() -> None:
    rules = {rule["id"]: rule for rule in run_of(SKIPS)["tool"]["driver"]["rules"]}
    for code, rule in rules.items():
        entry = catalog.entry(code)
        assert rule["shortDescription"]["text"] == entry.title
        assert rule["helpUri"].startswith("https://")
        assert entry.fix in rule["help"]["text"]
        assert f"```python\n{entry.more}\n```" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] == "error"


def test_a_rule_leads_to_our_page_where_it_is_published_and_else_to_torchs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def page(finding: Finding) -> str:
        run = run_of(replace(CLEAN, findings=(finding,)))
        assert run["results"][0]["properties"].get("torchPage") == links.torch_page(finding.gb_id)
        address: str = run["tool"]["driver"]["rules"][0]["helpUri"]
        return address

    monkeypatch.setattr(links, "_site", lambda: None)
    assert page(BRANCH) == links.torch_page("GB0170")
    assert page(replace(BRANCH, gb_id=None)).endswith("/programming_model.graph_breaks_index.html")
    monkeypatch.setattr(links, "_site", lambda: "https://example.org/docs")
    assert page(BRANCH) == "https://example.org/docs/codes/BS101.html"


@pytest.mark.parametrize(("code", "level"), [("BS101", "warning"), ("BS301", "error"), ("BS108", None)])
def test_level_follows_severity(code: str, level: str | None) -> None:
    levels = {"error": "error", "warning": "warning", "info": "note"}
    expected = level or levels[catalog.entry(code).severity]
    assert only(replace(BRANCH, code=code))["level"] == expected


def test_a_region_has_columns_from_one_with_the_end_excluded() -> None:
    base, uri, region = physical(only(BRANCH)["locations"][0])
    assert (base, uri) == ("SRCROOT", "model.py")
    assert region == {"startLine": 41, "startColumn": 12, "endLine": 41, "endColumn": 31}
    assert run_of(COSTS)["columnKind"] == "unicodeCodePoints"


@pytest.mark.parametrize(
    ("place", "region"),
    [
        (Location(f"{PROJECT}/m.py", 3), {"startLine": 3}),
        (Location(f"{PROJECT}/m.py", 3, 5), {"startLine": 3, "startColumn": 5}),
        (Location(f"{PROJECT}/m.py", 3, 5, 2, 9), {"startLine": 3, "startColumn": 5}),
        (Location(f"{PROJECT}/m.py", 3, 5, 3, 5), {"startLine": 3, "startColumn": 5}),
        (
            Location(f"{PROJECT}/m.py", 3, 5, 4, 2),
            {"startLine": 3, "startColumn": 5, "endLine": 4, "endColumn": 2},
        ),
        (Location(f"{PROJECT}/m.py", 0), {}),
    ],
)
def test_a_region_says_no_more_than_is_known(place: Location, region: dict[str, int]) -> None:
    assert physical(only(replace(BRANCH, location=place))["locations"][0])[2] == region


@pytest.mark.parametrize(
    ("file", "root", "base", "uri"),
    [
        (f"{PROJECT}/src/m.py", None, "SRCROOT", "src/m.py"),
        (f"{PROJECT}/m.py", "/home/ada", "SRCROOT", "project/m.py"),
        ("src/../m.py", None, "SRCROOT", "m.py"),
        (f"{LIBRARY}/pkg/m.py", None, "SITEPACKAGES", "pkg/m.py"),
        ("/elsewhere/a b#c?.py", None, None, "file:///elsewhere/a b#c?.py"),
        ("<string>", None, None, "<string>"),
    ],
)
def test_paths_are_relative_to_the_repository(
    file: str, root: str | None, base: str | None, uri: str
) -> None:
    location = only(replace(BRANCH, location=replace(BRANCH.location, file=file)), root=root)["locations"][0]
    assert physical(location)[:2] == (base, uri)
    assert not set(location["physicalLocation"]["artifactLocation"]["uri"]) & set(' #?<>"\\')


def test_a_library_finding_stands_at_the_projects_line() -> None:
    result = only(LOGGER)
    assert physical(result["locations"][0]) == ("SRCROOT", "train.py", {"startLine": 88})
    base, uri, region = physical(result["relatedLocations"][0])
    assert (base, uri, region["startLine"]) == ("SITEPACKAGES", "transformers/modeling_t5.py", 1031)


def test_the_call_path_is_a_code_flow_outermost_first() -> None:
    flow = only(BRANCH)["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in flow] == [
        frame.function for frame in BRANCH.stack
    ]
    assert [step["nestingLevel"] for step in flow] == [0, 1, 2, 3, 4]
    assert physical(flow[0]["location"])[1:] == ("train.py", {"startLine": 88})


def test_skipped_functions_are_related_locations() -> None:
    related = only(LOOP)["relatedLocations"]
    assert physical(related[0])[1:] == ("model.py", {"startLine": 12})
    assert "runs eagerly as a whole" in related[0]["message"]["text"]


def test_the_message_has_place_numbers_and_advice() -> None:
    text = only(BRANCH)["message"]["text"]
    assert text.startswith("branch on a tensor's value in Block.forward: 1.42 ms a step (35%), 24 crossings")
    assert text.endswith(catalog.entry("BS101").fix)


def test_a_message_holds_no_link() -> None:
    result = run_of(MARKUP)["results"][0]
    assert "](" not in result["message"]["text"]
    assert "[k] (http" in result["message"]["text"]


def test_a_huge_text_is_cut() -> None:
    huge = "x" * 1_000_000
    text = sarif.render(replace(CLEAN, findings=(replace(BRANCH, code="BS999", title=huge, reason=huge),)))
    assert len(text) < 20_000


# ---- fixes ----


# What the diff of the sample does, as `fix` writes it today.
EDITS = (
    SourceEdit(f"{FIXES.run.cwd}/model.py", 2, 1, 2, 1, "import torch\n"),
    SourceEdit(f"{FIXES.run.cwd}/model.py", 41, 9, 41, 11, "large ="),
    SourceEdit(
        f"{FIXES.run.cwd}/model.py", 41, 31, 42, 35, "\n        y = torch.where(large, y.clamp(-1e4, 1e4), y)"
    ),
    SourceEdit(f"{FIXES.run.cwd}/model.py", 71, 1, 72, 1, ""),
)


@pytest.mark.parametrize("edits", [(), EDITS], ids=["a report with a diff alone", "a report with edits"])
def test_a_proved_rewrite_is_a_fix_that_gives_the_rewritten_file(edits: tuple[SourceEdit, ...]) -> None:
    finding = FIXES.findings[0]
    assert finding.suggestion is not None
    suggestion = replace(finding.suggestion, edits=edits, diff="" if edits else finding.suggestion.diff)
    report = replace(FIXES, findings=(replace(finding, suggestion=suggestion),))
    fix = run_of(report)["results"][0]["fixes"][0]
    change = fix["artifactChanges"][0]
    assert change["artifactLocation"] == {"uri": "model.py", "uriBaseId": "SRCROOT"}
    old = [f"line {number}\n" for number in range(1, 80)]
    old[:2] = ["import os\n", "import sys\n"]
    old[39:43] = [
        "        y = self.norm(x)\n",
        "        if y.abs().max() > 1e4:\n",
        "            y = y.clamp(-1e4, 1e4)\n",
        "        return y\n",
    ]
    old[69:72] = ["    a = 1\n", "    b = 2\n", "    c = 3\n"]
    new = apply("".join(old), change["replacements"]).splitlines()
    assert new[:3] == ["import os", "import torch", "import sys"]
    assert new[40:44] == [
        "        y = self.norm(x)",
        "        large = y.abs().max() > 1e4",
        "        y = torch.where(large, y.clamp(-1e4, 1e4), y)",
        "        return y",
    ]
    assert new[70:72] == ["    a = 1", "    c = 3"]
    assert len(new) == len(old)


def apply(text: str, replacements: list[dict[str, Any]]) -> str:
    """What an editor does with SARIF replacements."""
    lines = text.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + column - 1

    for one in reversed(replacements):
        region = one["deletedRegion"]
        start = offset(region["startLine"], region["startColumn"])
        end = offset(region["endLine"], region["endColumn"])
        text = text[:start] + one["insertedContent"]["text"] + text[end:]
    return text


@pytest.mark.parametrize("status", ["unproved", "refused"])
def test_what_is_not_proved_is_no_fix(status: Any) -> None:
    finding = FIXES.findings[0]
    assert finding.suggestion is not None
    assert "fixes" not in only(replace(finding, suggestion=replace(finding.suggestion, status=status)))


def test_a_damaged_diff_is_no_fix() -> None:
    finding = FIXES.findings[0]
    assert finding.suggestion is not None
    damaged = finding.suggestion.diff.rsplit("\n", 2)[0]
    result = only(replace(finding, suggestion=replace(finding.suggestion, diff=damaged)))
    assert "fixes" not in result
    assert result["properties"]["suggestion"] == "proved"
    assert "fixes" not in run_of(SUGGESTIONS)["results"][0]  # a diff without a hunk


# ---- the run ----


def test_an_invocation_that_failed_says_so() -> None:
    invocation = run_of(KILLED)["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == -9
    levels = [one["level"] for one in invocation["toolExecutionNotifications"]]
    assert levels[0] == "error"
    assert run_of(VACUOUS)["invocations"][0]["executionSuccessful"] is False
    assert run_of(CLEAN)["invocations"][0]["executionSuccessful"] is True
    assert run_of(CLEAN)["invocations"][0]["endTimeUtc"] == "2026-01-02T03:04:13.070Z"


def test_new_and_known_results() -> None:
    results = run_of(COSTS, known=frozenset({BRANCH.fingerprint}))["results"]
    assert [one["baselineState"] for one in results] == ["unchanged", "new", "new"]
    assert "baselineState" not in run_of(COSTS)["results"][0]


def test_text_that_is_not_utf8_survives_as_escapes_and_bytes() -> None:
    results = run_of(HOSTILE)["results"]
    uris = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results]
    assert "%FF.py" in uris  # the byte that the file's name has
    finding = replace(BRANCH, stack=(Frame("\ud800.py", 1, "\ud800"),))
    step = only(finding)["codeFlows"][0]["threadFlows"][0]["locations"][0]["location"]
    assert step["message"]["text"] == r"\ud800"
