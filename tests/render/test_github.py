"""Workflow commands: as GitHub's runner reads them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    HUNDRED,
    ITEM,
    LIMIT,
    LOGGER,
    LOOP,
    MARKUP,
    RECOMPILES,
    SAMPLES,
    SKIPS,
    VACUOUS,
)

from breakscope.render import github
from breakscope.report.model import Location, Report


@dataclass(frozen=True)
class Annotation:
    level: str
    properties: dict[str, str]
    message: str


def read(text: str) -> tuple[list[Annotation], list[str]]:
    """(annotations, plain lines), unescaped as the runner does it."""
    found, rest = [], []
    for line in text.splitlines():
        match = re.fullmatch(r"::(\w+)(?: ([^:]*))?::(.*)", line)
        if match is None:
            rest.append(line)
            continue
        pairs = dict(pair.split("=", 1) for pair in match[2].split(","))
        properties = {name: unescape(value) for name, value in pairs.items()}
        found.append(Annotation(match[1], properties, unescape(match[3])))
    return found, rest


def unescape(text: str) -> str:
    for code, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, character)
    return text


def annotations(report: Report, **options: frozenset[str]) -> list[Annotation]:
    return read(github.render(report, **options))[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_one_line_each_and_never_more_than_github_shows(name: str) -> None:
    text = github.render(SAMPLES[name])
    found, rest = read(text)
    assert all(one <= github.MOST for one in Counter(one.level for one in found).values())
    assert {one.level for one in found} <= {"error", "warning", "notice"}
    assert len(rest) == 1
    assert rest[0].startswith("breakscope: ")
    assert all(line.isprintable() for line in text.splitlines())
    text.encode()


def test_an_annotation_has_its_place_title_and_text() -> None:
    first = annotations(COSTS)[0]
    assert first.level == "warning"
    assert first.properties == {
        "file": "model.py",
        "line": "41",
        "col": "12",
        "endColumn": "31",
        "title": "BS101 branch on a tensor's value (1.42 ms a step (35%))",
    }
    assert "24 crossings (6 a step), since step 0" in first.message.split("\n")
    assert any(line.startswith("do this: ") for line in first.message.split("\n"))


def test_levels_follow_severity() -> None:
    assert [one.level for one in annotations(SKIPS)] == ["error", "error"]


def test_a_library_finding_is_shown_at_the_projects_line() -> None:
    found = annotations(replace(CLEAN, findings=(LOGGER,)))[0]
    assert (found.properties["file"], found.properties["line"]) == ("train.py", "88")
    assert "col" not in found.properties
    assert found.message.startswith("at transformers/modeling_t5.py:1031:17 (library) T5Stack.forward\n")


def test_a_finding_outside_of_the_repository_has_no_file() -> None:
    outside = replace(BRANCH, location=replace(BRANCH.location, file="/elsewhere/m.py"))
    found = annotations(replace(CLEAN, findings=(outside,)))[0]
    assert "file" not in found.properties
    assert "at /elsewhere/m.py:41:12 Block.forward" in found.message


def test_an_expression_of_several_lines_has_no_column() -> None:
    place = Location("m.py", 3, 5, 6, 2, "f", "x(", "project", 4)
    found = annotations(replace(CLEAN, findings=(replace(BRANCH, location=place),)))[0]
    assert {name: found.properties[name] for name in found.properties if name != "title"} == {
        "file": "m.py",
        "line": "3",
        "endLine": "6",
    }


def test_commands_in_a_report_stay_text() -> None:
    text = github.render(MARKUP)
    found, _ = read(text)
    assert [one.level for one in found] == ["warning"]
    assert found[0].properties["file"].startswith("``` `x` | @ada #12 ada/repo#3 <b onclick=x>b</b> <!-- -->")
    assert "%0A::error::no, a:b,c" in found[0].message
    assert text.count("\n") == 2


def test_new_findings_come_first_and_then_the_costly_ones() -> None:
    found = annotations(COSTS, known=frozenset({BRANCH.fingerprint}))
    codes = [one.properties["title"].split(" (")[0] for one in found]
    assert codes == [
        "new: BS102 Python scalar read out of a tensor",
        "new: BS104 print, logging or warnings call",
        "BS101 branch on a tensor's value",
    ]


def test_ten_of_each_level_and_the_rest_is_counted() -> None:
    skips = tuple(
        replace(one, fingerprint=f"{one.fingerprint}{index}") for one in (LOOP, LIMIT) for index in range(7)
    )
    mixed = replace(HUNDRED, findings=(*HUNDRED.findings, *skips))
    found, rest = read(github.render(mixed))
    assert Counter(one.level for one in found) == {"error": 10, "warning": 10}
    assert rest == [
        "breakscope: 114 findings, of which 94 have no annotation here (45 BS104, 45 BS101, 4 BS303)"
    ]


def test_an_alarm_takes_one_of_the_ten_warnings() -> None:
    assert annotations(VACUOUS)[0].message.startswith("VACUOUS")
    vacuous = replace(HUNDRED, reconciliation=replace(HUNDRED.reconciliation, vacuous=True))
    found = annotations(vacuous)
    assert len(found) == 10
    assert found[0].properties == {"title": "breakscope"}


def test_a_long_message_is_cut() -> None:
    # The first line of a reason is shown, however long it is.
    found = annotations(replace(CLEAN, findings=(replace(ITEM, reason="x" * 100_000),)))[0]
    assert len(found.message) < 4_100
    assert found.message.endswith("characters more)")


def test_recompiles_are_annotated_at_the_function() -> None:
    assert {one.properties["line"] for one in annotations(RECOMPILES)} == {"30"}
