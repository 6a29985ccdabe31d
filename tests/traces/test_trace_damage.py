"""Damaged traces: everything readable is used, what was lost is said, and nothing is made up.

Nightly: bits flipped anywhere; every run flips them in the records that findings come from.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from trace_writer import Writer, imported, place, run_job

from breakscope.diagnose import records
from breakscope.report.model import Report
from breakscope.traces.one_file import import_file

FILE = "/job/model.py"
RUNS = pytest.mark.parametrize("runs", [100, pytest.param(500, marks=pytest.mark.nightly)])

# One of everything that a trace tells: a site, a site in a helper, a function given up, a recompile of each
# half of a function, the limit, a failure.
JOB = """
    import torch

    def helper(x):
        print("helping")
        return x + 1

    @torch.compile(backend="eager")
    def branch(x):
        y = x * 2
        if y.sum() > 0:
            y = y / 3
        return helper(y)

    @torch.compile(backend="eager")
    def loop(rows):
        out = torch.zeros(())
        for row in rows:
            out = out + row.sum().item()
        return out

    @torch.compile(backend="eager")
    def name(x, language):
        return x * len(language)

    @torch.compile(backend="eager", fullgraph=True)
    def strict(x):
        return x + x.sum().item()

    for batch in (4, 6):
        branch(torch.ones(batch))
    loop([torch.ones(3)])
    for number in range(10):
        name(torch.ones(2), "x" * number)
    try:
        strict(torch.ones(2))
    except Exception:
        pass
"""


def notes(report: Report) -> str:
    return "\n".join(report.run.notes)


def whole() -> Writer:
    writer = Writer()
    writer.compiled("0/0", FILE, "forward", 10, broke_at=12)
    writer.recompiled("0/1", ["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6"])
    writer.compiled("0/1", FILE, "forward", 10)
    return writer


def codes(report: Report) -> list[str]:
    return sorted(finding.code for finding in report.findings)


def test_a_whole_trace_has_nothing_to_say_about_damage(tmp_path: Path) -> None:
    report = imported(whole().save(tmp_path / "a.log"))
    assert codes(report) == ["BS101", "BS201"]
    assert "a.log" not in notes(report)
    assert report.totals.regions == 2
    assert report.regions[0].ended_by == report.findings[0].fingerprint


def test_a_text_that_lacks_its_checksum_is_not_believed(tmp_path: Path) -> None:
    text = whole().text.replace(f'"{FILE}", line 12', f'"{FILE}", line 13')
    path = tmp_path / "a.log"
    path.write_text(text)
    report = imported(path)
    assert codes(report) == ["BS201"]
    assert "1 damaged record left out: the text does not have the checksum" in notes(report)
    [lost] = report.reconciliation.unattributed
    assert (lost.kind, lost.compile_id) == ("graph_break", "0/0")
    assert "damaged" in lost.text


def test_records_that_contradict_each_other_name_no_function(tmp_path: Path) -> None:
    writer = Writer()
    writer.start("0/1", FILE, "forward", 10)
    writer.recompiled("0/1", ["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6"])
    writer.ended("0/1", FILE, "backward", 10)
    report = imported(writer.save(tmp_path / "a.log"))
    assert report.findings == ()
    assert "records contradict each other" in notes(report)
    assert [lost.kind for lost in report.reconciliation.unattributed] == ["recompile"]


def test_a_recompile_under_the_number_of_another_frame(tmp_path: Path) -> None:
    writer = Writer()
    writer.recompiled("3/1", ["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6"])
    writer.compiled("3/1", FILE, "other", 50)
    report = imported(writer.save(tmp_path / "a.log"))
    assert report.findings == ()
    assert "contradict" in notes(report)


def test_a_compile_without_an_end(tmp_path: Path) -> None:
    writer = whole()
    writer.start("1/0", FILE, "late", 30)
    writer.broke("1/0", FILE, "late", 31)
    report = imported(writer.save(tmp_path / "a.log"))
    assert codes(report) == ["BS101", "BS101", "BS201"]
    assert "1 compile without an end" in notes(report)
    assert report.totals.regions == 2


def test_a_file_that_ends_in_the_middle_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(whole().text + 'V1121 14:00:59.000000 1 torch/_dynamo/utils.py:10] {"compilation_me')
    report = imported(path)
    assert codes(report) == ["BS101", "BS201"]
    assert "the last record is incomplete" in notes(report)


def test_a_record_that_begins_where_another_was_broken_off(tmp_path: Path) -> None:
    writer = Writer()
    writer.compiled("0/0", FILE, "forward", 10)
    cut = writer.text[: -len(writer.parts[-1]) // 2]
    after = Writer(pid=2)
    after.compiled("0/0", FILE, "other", 20, broke_at=22)
    path = tmp_path / "a.log"
    path.write_text(cut + after.text)
    parts = import_file(str(path)).parts
    assert [(part.pid, codes(part.report)) for part in parts] == [(1, []), (2, ["BS101"])]


def test_two_writers_of_one_file_are_told_apart(tmp_path: Path) -> None:
    first, second = Writer(pid=11), Writer(pid=22)
    first.compiled("0/0", FILE, "forward", 10, broke_at=12)
    second.compiled("0/0", FILE, "other", 20)
    second.recompiled("0/1", ["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6"])
    second.compiled("0/1", FILE, "other", 20)
    mixed = []
    for index in range(max(len(first.parts), len(second.parts))):
        mixed += first.parts[index : index + 1] + second.parts[index : index + 1]
    path = tmp_path / "a.log"
    path.write_text("".join(mixed))
    parts = import_file(str(path)).parts
    assert [(part.pid, codes(part.report)) for part in parts] == [(11, ["BS101"]), (22, ["BS201"])]
    assert "2 processes wrote into this file" in notes(parts[0].report)


def test_a_record_within_the_text_of_another_is_recovered(tmp_path: Path) -> None:
    """One writer's text is interrupted: what the other wrote has its checksum, the first has not."""
    first, second = Writer(pid=11), Writer(pid=22)
    first.start("0/0", FILE, "forward", 10)
    torn = first.broke("0/0", FILE, "forward", 12)
    first.ended("0/0", FILE, "forward", 10)
    second.start("0/0", FILE, "other", 20)
    inner = second.broke("0/0", FILE, "other", 22)
    second.ended("0/0", FILE, "other", 20)
    middle = torn.index("\n", len(torn) // 2) + 1
    path = tmp_path / "a.log"
    path.write_text(
        "".join(first.parts[:2] + second.parts[:2])
        + torn[:middle]
        + inner
        + torn[middle:]
        + first.parts[-1]
        + second.parts[-1]
    )
    one, two = import_file(str(path)).parts
    assert codes(one.report) == []
    assert codes(two.report) == ["BS101"]
    assert "1 damaged record left out" in notes(one.report)


def test_unknown_events_and_artifacts_do_no_harm(tmp_path: Path) -> None:
    writer = Writer()
    writer.record({"invented_event": {"x": 1}}, None)
    writer.record({"artifact": {"name": "invented_artifact", "encoding": "json"}}, "0/0", "{}")
    writer.record({"artifact": {"name": "dynamo_graph_break_reason_v2"}}, "0/0", "a later format")
    writer.compiled("0/0", FILE, "forward", 10, broke_at=12)
    report = imported(writer.save(tmp_path / "a.log"))
    assert codes(report) == ["BS101"]
    assert "a.log" not in notes(report)


@pytest.mark.parametrize(
    "envelope",
    [
        {"compilation_metrics": None},
        {"compilation_metrics": []},
        {"compilation_metrics": "text"},
        {"dynamo_start": {"stack": [{"line": "x"}]}},
        {"dynamo_start": 7},
        {"str": 5},
        {"str": [1]},
    ],
    ids=str,
)
def test_records_of_an_unexpected_shape_are_counted(tmp_path: Path, envelope: dict[str, object]) -> None:
    writer = whole()
    writer.record(envelope, "5/0")
    report = imported(writer.save(tmp_path / "a.log"))
    assert codes(report) == ["BS101", "BS201"]
    assert "1 damaged record left out: not readable" in notes(report)


def test_a_payload_that_quotes_a_record_is_not_one(tmp_path: Path) -> None:
    """A user's source, or their strings, may hold anything."""
    fake = Writer(pid=9)
    fake.compiled("0/0", FILE, "fake", 1, broke_at=2)
    writer = Writer()
    writer.record({"artifact": {"name": "dynamo_guards"}}, "0/0", fake.text)
    writer.compiled("0/0", FILE, "forward", 10)
    report = imported(writer.save(tmp_path / "a.log"))
    assert report.findings == ()
    assert report.totals.regions == 1


def test_a_trace_written_under_another_encoding(tmp_path: Path) -> None:
    writer = Writer()
    writer.compiled("0/0", "/job/modèle.py", "forward", 10, broke_at=12)
    path = tmp_path / "a.log"
    path.write_bytes(writer.text.encode("latin-1"))
    [finding] = imported(path).findings
    assert finding.location.file == "/job/modèle.py"
    assert "read as Latin-1" in notes(imported(path))


def test_a_trace_with_the_line_ends_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(whole().text.replace("\n", "\r\n").encode())
    assert codes(imported(path)) == ["BS101", "BS201"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    text = whole()
    path.write_bytes(b"\xff\xfe\x00" * 5000 + b"\n" + text.text.encode() + b"\x80" * 9000)
    report = imported(path)
    assert codes(report) == ["BS101", "BS201"]


# ---- fuzzing ----


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The trace of a real job."""
    return run_job(tmp_path_factory.mktemp("job"), JOB).read_bytes()


def findings_of(path: Path) -> set[tuple[object, ...]]:
    return {place(f) for part in import_file(str(path)).parts for f in part.report.findings}


def assert_nothing_invented(real: bytes, damaged: Sequence[bytes], folder: Path) -> None:
    path = folder / "dedicated_log_torch_trace_x.log"
    path.write_bytes(real)
    true = findings_of(path)
    # The job shows one of everything, so that there is something to get wrong.
    assert len(true) >= 6
    used = 0
    for data in damaged:
        path.write_bytes(data)
        found = findings_of(path)
        assert found <= true, found - true
        used += bool(found)
    assert used > len(damaged) // 2  # and what is readable was used


@pytest.mark.torch
@pytest.mark.slow
@RUNS
def test_cuts(real: bytes, tmp_path: Path, runs: int) -> None:
    draw = random.Random(1)
    assert_nothing_invented(real, [real[: draw.randrange(len(real))] for _ in range(runs)], tmp_path)


def flipped(data: bytes, position: int, bit: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.nightly
def test_500_flipped_bits(real: bytes, tmp_path: Path) -> None:
    draw = random.Random(2)
    cases = [flipped(real, draw.randrange(len(real)), draw.randrange(8)) for _ in range(500)]
    assert_nothing_invented(real, cases, tmp_path)


@pytest.mark.torch
@pytest.mark.slow
@RUNS
def test_flipped_bits_where_it_hurts(real: bytes, tmp_path: Path, runs: int) -> None:
    """Most of a trace is nothing that we read. These flips are all in the records that findings come from."""
    mark = re.compile(
        rb'\] \{"(?:str|dynamo_start|dynamo_output_graph|compilation_metrics"'
        rb'|artifact": \{"name": "(?:dynamo_graph_break_reason|recompile_reasons|dynamo_error))'
    )
    places: list[int] = []
    for match in mark.finditer(real):
        start, end = real.rfind(b"\n", 0, match.start()) + 1, real.find(b"\n", match.start())
        places += [*range(start, min(end, start + 700)), *range(max(start, end - 200), end)]
    draw = random.Random(3)
    cases = [flipped(real, draw.choice(places), draw.randrange(7)) for _ in range(runs)]
    assert_nothing_invented(real, cases, tmp_path)


def test_the_parser_of_breaks_survives_any_text() -> None:
    draw = random.Random(4)
    text = Writer().broke("0/0", FILE, "forward", 12)
    for _ in range(500):
        at = draw.randrange(len(text))
        record = records.parse_break(text[at : at + draw.randrange(len(text))])
        assert isinstance(record.reasons, tuple)
