"""The report file: what is written can be read back, and what cannot be read says why in one sentence."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from report_samples import BRANCH, CLEAN, COSTS, HOSTILE, HOSTILE_TEXT, KILLED, SAMPLES, SUGGESTIONS
from scanning import run_python

from breakscope.errors import OutputError, ReportError
from breakscope.render import json as json_format
from breakscope.report import schema
from breakscope.report.model import Cost, Region, Report, Suggestion

VALIDATOR = jsonschema.Draft202012Validator(schema.json_schema())


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Report:
    return SAMPLES[request.param]


# ---- round trip ----


def test_a_report_survives_its_file(sample: Report, tmp_path: Path) -> None:
    schema.save(sample, tmp_path / "report.json")
    assert schema.load(tmp_path / "report.json") == sample


def test_what_is_written_is_valid_against_the_schema(sample: Report) -> None:
    VALIDATOR.validate(json.loads(schema.dumps(sample)))


def test_the_layout_is_the_published_one() -> None:
    data = schema.to_dict(COSTS)
    assert list(data) == [
        "schema_version",
        "tool",
        "run",
        "totals",
        "reconciliation",
        "findings",
        "regions",
        "benchmark",
        "steps",
        "compiles",
        "timing",
        "signatures",
        "ranks",
        "divergences",
        "artifacts",
    ]
    assert data["schema_version"] == schema.SCHEMA_VERSION == 1
    branch = next(finding for finding in data["findings"] if finding["code"] == "BS101")
    assert branch["location"]["column"] == 12
    assert branch["counts"] == {"occurrences": 5, "crossings": 24, "compile_ids": ["0/0", "1/0", "1/1"]}
    assert branch["guard"] is None
    assert data["regions"][0]["ended_by"] == BRANCH.fingerprint


def test_text_stays_readable_and_valid_utf_8() -> None:
    text = schema.dumps(SAMPLES["wide"])
    assert "ブロック.forward" in text
    hostile = schema.dumps(HOSTILE).encode("utf-8")  # raises if a lone surrogate came through
    assert schema.from_dict(json.loads(hostile)).run.notes == (HOSTILE_TEXT,)
    assert b"\\ud800" in hostile


def test_the_json_format_is_the_report_file(tmp_path: Path) -> None:
    schema.save(COSTS, tmp_path / "report.json")
    assert json_format.render(COSTS) == (tmp_path / "report.json").read_text("utf-8")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_not_known(number: float) -> None:
    finding = replace(BRANCH, cost=Cost(number, 0.5, "gaps"))
    report = replace(CLEAN, findings=(finding,), regions=(Region("0/0", "f", 1, 1, number, None),))
    again = schema.from_dict(json.loads(schema.dumps(report)))
    assert again.findings[0].cost is None  # a cost without its milliseconds says nothing
    assert again.regions == (Region("0/0", "f", 1, 1, None, None),)


def test_a_number_that_is_not_finite_is_text_in_evidence() -> None:
    suggestion = Suggestion("r", "s", "", "refused", "differs", {"worst": [math.nan, {"at": -math.inf}]})
    text = schema.dumps(replace(CLEAN, findings=(replace(BRANCH, suggestion=suggestion),)))
    [finding] = json.loads(text, parse_constant=pytest.fail)["findings"]
    assert finding["suggestion"]["evidence"] == {"worst": ["nan", {"at": "-inf"}]}


def test_a_number_that_must_be_known_is_not_written_wrong() -> None:
    with pytest.raises(ValueError, match="cannot hold nan"):
        schema.dumps(replace(CLEAN, run=replace(CLEAN.run, duration_s=math.nan)))


# ---- reading ----


def _required(data: Any, rules: dict[str, Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every required key that occurs in the data, by the published schema."""
    if "$ref" in rules:
        rules = schema.json_schema()["$defs"][rules["$ref"].rpartition("/")[2]]
    if data is None:
        return
    for option in rules.get("anyOf", ()):
        yield from _required(data, option, path)
    for key in rules.get("required", ()):
        yield (*path, key)
    for key, inner in rules.get("properties", {}).items():
        yield from _required(data[key], inner, (*path, key))
    for index, item in enumerate(data if rules.get("type") == "array" else ()):
        yield from _required(item, rules["items"], (*path, index))


def test_every_required_key_is_missed_by_name_and_by_the_schema() -> None:
    whole = schema.to_dict(SUGGESTIONS)
    paths = list(_required(whole, schema.json_schema()))
    assert len(paths) > 100
    for path in paths:
        data = json.loads(json.dumps(whole))
        holder = data
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
        assert not VALIDATOR.is_valid(data), path
        with pytest.raises(ReportError, match=r"is missing|not a breakscope report") as caught:
            schema.from_dict(data)
        if len(path) > 1:
            name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
            assert str(caught.value) == f"{name} is missing"


def test_keys_with_a_default_may_be_missing_and_unknown_keys_are_ignored() -> None:
    data = schema.to_dict(COSTS)
    data["from_the_future"] = {"a": 1}
    for finding in data["findings"]:
        finding["colour"] = "red"
        del finding["skipped"], finding["ranks"], finding["location"]["owner"]
    VALIDATOR.validate(data)
    assert schema.from_dict(data).findings[1] == COSTS.findings[1]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("totals", "sites"), "3", 'totals.sites must be an integer, not "3"'),
        (("totals", "sites"), True, "totals.sites must be an integer, not true"),
        (("totals", "sites"), 1.5, "totals.sites must be an integer, not 1.5"),
        (("run", "duration_s"), None, "run.duration_s must be a finite number, not null"),
        (("run", "duration_s"), math.inf, "run.duration_s must be a finite number, not Infinity"),
        (("run", "argv"), "train.py", 'run.argv must be a list, not "train.py"'),
        (("run", "argv"), [1], "run.argv[0] must be a string, not 1"),
        (
            ("run", "status"),
            "fine",
            "run.status must be one of ok, script_error, timeout, interrupted, killed, unknown",
        ),
        (("reconciliation", "vacuous"), 0, "reconciliation.vacuous must be true or false, not 0"),
        (("reconciliation", "dynamo"), {"graph_break": []}, "reconciliation.dynamo.graph_break must be"),
        (("findings",), {}, "findings must be a list, not {}"),
        (("findings", 2, "location"), "model.py:3", "findings[2].location must be an object"),
        (("findings", 0, "code"), ["x" * 999], 'findings[0].code must be a string, not ["xxxxxx'),
    ],
)
def test_a_wrong_field_is_named(path: tuple[Any, ...], value: Any, message: str) -> None:
    data = schema.to_dict(COSTS)
    holder: Any = data
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    with pytest.raises(ReportError) as caught:
        schema.from_dict(data)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 130


def test_a_float_of_an_integer_is_an_integer() -> None:
    data = schema.to_dict(CLEAN)
    data["totals"]["ops"] = 12.0
    again = schema.from_dict(data)
    assert again == CLEAN
    assert type(again.totals.ops) is int


WHOLE = schema.dumps(KILLED).encode()
BAD_FILES = {
    "empty": (b" \n", "it is empty"),
    "cut in an object": (WHOLE[: WHOLE.index(b'"findings"')], "it is truncated"),
    "cut in a string": (WHOLE[: WHOLE.index(b"model.py") + 3], "it is truncated"),
    "cut in a number": (b'{"schema_version": 1, "findings": [-', "it is truncated"),
    "cut in a character": ('{"schema_version": 1, "é'.encode()[:-1], "it is truncated"),
    "cut after an object": (WHOLE.rstrip().removesuffix(b"}").rstrip(), "it is truncated"),
    "not JSON": (b"#!/bin/sh\n", "it is not JSON: Expecting value at line 1 column 1"),
    "two reports": (WHOLE + WHOLE, "it is not JSON: Extra data"),
    "not text": (b"\x80\x81" * 40, "it is not JSON"),
    "NaN": (b'{"schema_version": NaN}', "it is not JSON: NaN is not a JSON number"),
    "endless integer": (b'{"schema_version": ' + b"9" * 5000 + b"}", "it is not JSON"),
    "another list": (b"[1, 2]", "this is not a breakscope report"),
    "another object": (b'{"name": "package", "version": "1"}', "this is not a breakscope report"),
    "deep": (b"[" * 200_000, "this is not a breakscope report: it is nested too deeply"),
    "old": (WHOLE.replace(b'"schema_version": 1', b'"schema_version": 0'), "schema_version must be"),
    "not a version": (
        WHOLE.replace(b'"schema_version": 1', b'"schema_version": true'),
        "schema_version must be",
    ),
    "newer": (
        WHOLE.replace(b'"schema_version": 1', b'"schema_version": 2'),
        "the report has schema version 2, and this breakscope reads up to 1: upgrade with pip",
    ),
    "missing field": (WHOLE.replace(b'"sites"', b'"places"'), "totals.sites is missing"),
}


def test_a_script_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch\n")
    with pytest.raises(ReportError, match="it is a script, not a report: breakscope scan "):
        schema.load(path)


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    content, problem = BAD_FILES[name]
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(ReportError) as caught:
        schema.load(path)
    message = str(caught.value)
    assert message.startswith(f"cannot read {path}: {problem}")
    assert "\n" not in message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("length", range(0, len(WHOLE) - 2, 97))
def test_a_report_cut_anywhere_is_truncated(length: int, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(WHOLE[:length])
    with pytest.raises(ReportError, match=r"it is truncated|it is empty"):
        schema.load(tmp_path / "report.json")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"no such file; breakscope scan"):
        schema.load(tmp_path / "report.json")
    with pytest.raises(ReportError, match="it is a directory"):
        schema.load(tmp_path)
    with pytest.raises(ReportError, match="null"):
        schema.load("report\0.json")


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(schema.MAX_BYTES + 1)  # sparse: takes no space
    with pytest.raises(ReportError, match="larger than 512 MB"):
        schema.load(path)


def test_an_endless_device_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MAX_BYTES", 10 * 1024**2)
    with pytest.raises(ReportError, match="larger than 10 MB"):
        schema.load("/dev/zero")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"\xef\xbb\xbf" + WHOLE)
    assert schema.load(tmp_path / "report.json") == KILLED


@pytest.mark.slow
def test_a_large_report_is_read(tmp_path: Path) -> None:
    # 200 MB is the size that must work; the file is that of a report with one very long reason.
    path = tmp_path / "large.json"
    marker = b"read by the test"
    head, tail = (
        schema.dumps(replace(CLEAN, findings=(replace(BRANCH, reason=marker.decode()),)))
        .encode()
        .split(marker)
    )
    path.write_bytes(head + b"x" * 200_000_000 + tail)
    assert len(schema.load(path).findings[0].reason) == 200_000_000


# ---- writing ----


def test_an_earlier_report_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    schema.save(COSTS, path)
    schema.save(CLEAN, path)
    assert schema.load(path) == CLEAN
    assert os.listdir(tmp_path) == ["report.json"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_earlier_report(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    schema.save(COSTS, path)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full_disk)
    with pytest.raises(OutputError) as caught:
        schema.save(CLEAN, path)
    assert str(caught.value) == f"cannot write the report to {path}: No space left on device"
    assert schema.load(path) == COSTS
    assert os.listdir(tmp_path) == ["report.json"]


def test_an_interrupted_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        schema.save(CLEAN, tmp_path / "report.json")
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, problem in [
        (tmp_path, "Is a directory"),
        (tmp_path / "missing" / "report.json", "No such file or directory"),
        (tmp_path / "file" / "report.json", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
        (Path("a\0b"), "null"),
    ]:
        with pytest.raises(OutputError, match=problem) as caught:
            schema.save(CLEAN, path)
        assert "\n" not in str(caught.value)


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("real.json")
    schema.save(CLEAN, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert schema.load(tmp_path / "real.json") == CLEAN
    schema.save(CLEAN, os.devnull)
    assert not Path(os.devnull).is_file()


# ---- the schema itself ----


def test_the_schema_is_valid_complete_and_explains_itself() -> None:
    rules = schema.json_schema()
    jsonschema.Draft202012Validator.check_schema(rules)
    assert set(rules["$defs"]) == {
        *("Compiled", "Cost", "Counts", "Device", "Finding", "Frame", "Guard", "Location", "Reconciliation"),
        *("Region", "Run", "SkippedFrame", "Suggestion", "Tool", "Totals", "Unattributed"),
        *("Compile", "Step", "Timing", "Signature", "Rank", "RankCounts", "Divergence", "Artifact", "Inside"),
        *("Compiling", "FunctionGain", "SourceEdit", "StepPart", "AlikeLayers"),
    }
    assert rules["$defs"]["Run"]["properties"]["status"] == {
        "enum": ["ok", "script_error", "timeout", "interrupted", "killed", "unknown"]
    }
    crossings = rules["$defs"]["Counts"]["properties"]["crossings"]
    assert crossings["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert "times that execution left compiled code" in crossings["description"]


def test_reading_a_report_imports_neither_torch_nor_rich() -> None:
    program = "import sys, breakscope.report.schema; print({'torch', 'rich', 'pandas'} & set(sys.modules))"
    done = run_python("-c", program, check=True)
    assert done.stdout.strip() == "set()"
