"""The tables, and the CSV and Parquet files made of one of them."""

from __future__ import annotations

import csv as csv_reader
import importlib.util
import io
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    HOSTILE,
    HOSTILE_TEXT,
    KILLED,
    LIMIT,
    LOGGER,
    LOOP,
    RECOMPILES,
    SAMPLES,
    SKIPS,
    SUGGESTIONS,
)

from breakscope.diagnose import tables
from breakscope.errors import UsageError
from breakscope.render import csv, parquet
from breakscope.report.model import Report

COLUMNS = {
    "findings": tables.FINDINGS,
    "regions": tables.REGIONS,
    "guards": tables.GUARDS,
    "skipped": tables.SKIPPED,
}


def rows(report: Report) -> list[dict[str, str]]:
    return list(csv_reader.DictReader(io.StringIO(csv.render(report), newline="")))


@pytest.mark.parametrize("name", SAMPLES)
def test_columns_and_types_are_the_same_for_every_report(name: str) -> None:
    made = tables.frames(SAMPLES[name])
    assert made.keys() == COLUMNS.keys()
    for table, columns in COLUMNS.items():
        assert {column: str(dtype) for column, dtype in made[table].dtypes.items()} == columns
    assert len(made["findings"]) == len(SAMPLES[name].findings)
    assert len(made["regions"]) == len(SAMPLES[name].regions)


def test_findings_stand_worst_first_with_their_numbers() -> None:
    made = tables.frames(COSTS)["findings"]
    assert list(made["code"]) == ["BS101", "BS102", "BS104"]
    first: dict[str, Any] = made.iloc[0].to_dict()
    assert first["fingerprint"] == BRANCH.fingerprint
    assert (first["file"], first["line"], first["column"]) == ("model.py", 41, 12)
    assert (first["occurrences"], first["crossings"], first["cost_ms_per_step"]) == (5, 24, 1.42)
    assert first["compile_ids"] == "0/0 1/0 1/1"
    assert first["severity"] == "warning"


def test_what_is_not_known_is_missing_and_not_zero() -> None:
    made = tables.frames(KILLED)["findings"].iloc[0]
    assert made["crossings"] is pd.NA
    assert made["cost_ms_per_step"] is pd.NA
    assert tables.frames(COSTS)["regions"]["calls"].isna().tolist() == [False, True]


def test_a_library_finding_has_its_own_place_and_its_callers() -> None:
    made = tables.frames(replace(CLEAN, findings=(LOGGER,)))["findings"].iloc[0]
    assert (made["file"], made["line"]) == ("transformers/modeling_t5.py", 1031)
    assert (made["called_from_file"], made["called_from_line"]) == ("train.py", 88)


def test_guards_and_skipped_functions_join_on_the_fingerprint() -> None:
    made = tables.frames(replace(CLEAN, findings=(*SKIPS.findings, *RECOMPILES.findings)))
    guards = made["guards"].groupby("fingerprint").size().to_dict()
    assert guards == {LIMIT.fingerprint: 8} | {one.fingerprint: 1 for one in RECOMPILES.findings}
    assert set(made["skipped"]["fingerprint"]) == {LIMIT.fingerprint, LOOP.fingerprint}
    size = made["guards"].set_index("code").loc["BS201"]
    assert (size["expected"], size["actual"], size["values"], size["dimension"]) == ("3", "4", "4; 7; 9", 0)


def test_paths_are_relative_to_the_root() -> None:
    assert tables.frames(COSTS, root="/home/ada")["findings"]["file"][0] == "project/model.py"


def test_a_code_of_a_newer_breakscope_has_no_severity() -> None:
    made = tables.frames(replace(CLEAN, findings=(replace(BRANCH, code="BS999"),)))["findings"]
    assert made["severity"].isna().tolist() == [True]


# ---- CSV ----


@pytest.mark.parametrize("name", SAMPLES)
def test_csv_reads_back(name: str) -> None:
    text = csv.render(SAMPLES[name])
    text.encode()
    assert text.split("\n", 1)[0] == ",".join(f'"{name}"' for name in tables.FINDINGS)
    found = rows(SAMPLES[name])
    assert len(found) == len(SAMPLES[name].findings)
    assert all(row.keys() == tables.FINDINGS.keys() for row in found)


def test_csv_keeps_text_as_it_is_but_for_what_no_file_can_hold() -> None:
    titles = {row["title"] for row in rows(HOSTILE)}
    assert HOSTILE_TEXT.replace("\ud800", r"\ud800") in titles


@pytest.mark.parametrize("text", ["a\rb", "a\r\nb", 'x\x00"y"', "a,b\nc", "1+1", " ", "\\"])
def test_csv_reads_back_any_text(text: str) -> None:
    row = rows(replace(CLEAN, findings=(replace(BRANCH, title=text),)))[0]
    assert (row["title"], row["file"]) == (text, "model.py")


def test_a_huge_cell_is_cut() -> None:
    place = replace(BRANCH.location, source="x" * 1_000_000)
    row = rows(replace(CLEAN, findings=(replace(BRANCH, location=place),)))[0]
    assert 32_000 < len(row["source"]) < 32_767
    assert row["source"].endswith("(968,000 characters more)")


def test_csv_cells() -> None:
    row = rows(SUGGESTIONS)[1]
    assert row["suggestion_status"] == "refused"
    assert row["guard_cause"] == ""
    assert float(row["cost_share"]) == 0.117


# ---- Parquet ----


@pytest.mark.parametrize("name", SAMPLES)
def test_parquet_reads_back(name: str) -> None:
    pytest.importorskip("pyarrow")
    made = pd.read_parquet(io.BytesIO(parquet.render(SAMPLES[name])))
    expected = tables.frames(SAMPLES[name])["findings"]
    pd.testing.assert_frame_equal(made, expected, check_dtype=False)


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"^parquet needs pyarrow: pip install 'torch-breakscope\[parquet\]'$"
    ):
        parquet.render(CLEAN)
    assert importlib.util.find_spec("pandas") is not None
