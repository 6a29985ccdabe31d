"""JUnit XML: well formed, and a pass only where there is one."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from report_samples import BRANCH, CLEAN, COSTS, HOSTILE, ITEM, KILLED, LIBRARY, MARKUP, SAMPLES, VACUOUS

from breakscope.render import junit
from breakscope.report.model import Report
from breakscope.report.ranking import is_open
from breakscope.view.text import harmless


def suite(report: Report, **options: frozenset[str]) -> ET.Element:
    top = ET.fromstring(junit.render(report, **options).encode())
    assert top.tag == "testsuites"
    return top[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_well_formed_with_counts_that_add_up(name: str) -> None:
    found = suite(SAMPLES[name])
    assert int(found.attrib["tests"]) == len(found) > 0
    failures = sum(map(is_open, SAMPLES[name].findings))
    assert int(found.attrib["failures"]) == len(found.findall("testcase/failure")) == failures
    assert int(found.attrib["errors"]) == len(found.findall("testcase/error"))


def test_a_case_is_a_finding_with_its_place_and_text() -> None:
    case = suite(COSTS)[0]
    assert case.attrib == {
        "classname": "breakscope.BS101",
        "name": "model.py:41:12 Block.forward",
        "file": "model.py",
        "line": "41",
    }
    failure = case[0]
    assert failure.attrib == {"type": "BS101", "message": "branch on a tensor's value: 1.42 ms a step (35%)"}
    assert failure.text is not None
    lines = failure.text.split("\n")
    assert lines[0] == "if y.abs().max() > 1e4:"
    assert f"fingerprint: {BRANCH.fingerprint}" in lines


def test_a_clean_report_is_one_passing_case() -> None:
    found = suite(CLEAN)
    assert [(case.attrib["name"], len(case)) for case in found] == [("train.py", 0)]
    assert (found.attrib["time"], found.attrib["timestamp"]) == ("8.070", "2026-01-02T03:04:05+00:00")


@pytest.mark.parametrize(("report", "word"), [(VACUOUS, "VACUOUS"), (KILLED, "KILLED with SIGKILL")])
def test_a_run_that_tells_nothing_is_no_pass(report: Report, word: str) -> None:
    error = suite(report)[0][0]
    assert error.tag == "error"
    assert error.attrib["message"].startswith(word)


def test_known_findings_are_skipped_cases() -> None:
    found = suite(COSTS, known=frozenset({BRANCH.fingerprint}))
    assert [case[0].tag for case in found] == ["skipped", "failure", "failure"]
    assert (found.attrib["skipped"], found.attrib["failures"]) == ("1", "2")


def test_markup_and_control_characters_come_back_as_text() -> None:
    message = suite(MARKUP)[0][0].attrib["message"]
    assert harmless("``` `x` | @ada #12 ada/repo#3 <b onclick=x>b</b> <!-- --> </details>") in message
    text = junit.render(HOSTILE)
    assert r"\x1b[31mred" in text
    assert all(one.isprintable() or one == "\n" for one in text)


def test_installed_files_are_named_from_the_package_on() -> None:
    place = replace(ITEM.location, file=f"{LIBRARY}/pkg/m.py")
    case = suite(replace(CLEAN, findings=(replace(ITEM, location=place),)))[0]
    assert case.attrib["file"] == "pkg/m.py"


def test_a_huge_line_is_cut() -> None:
    place = replace(ITEM.location, source="x" * 1_000_000)
    assert len(junit.render(replace(CLEAN, findings=(replace(ITEM, location=place),)))) < 10_000
