"""The baseline file: written whole, read with care, never lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from breakscope.errors import BaselineError, OutputError
from breakscope.project import baseline
from breakscope.project.baseline import Accepted, Baseline, Known

B = Known("b2", "BS102", "model.py", "Net.forward", "y = x.item()")
A = Known("a1", "BS101", "model.py", "Net.forward", "if x.sum() > 0:")
KNOWN = Baseline(
    {"train.py": Accepted("2.13.0", "0.1.0", True, (B, A)), "serve": Accepted(None, "0.1.0", False, ())}
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "baseline.json"
    baseline.save(KNOWN, file)
    read = baseline.load(file)
    assert read.targets["train.py"].findings == (A, B)
    assert read.fingerprints == KNOWN.fingerprints
    assert list(read.targets) == ["serve", "train.py"]


def test_the_same_findings_are_the_same_text(tmp_path: Path) -> None:
    """Its history in version control shows what came and went, and nothing else."""
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    for file, findings in zip(files, ((A, B), (B, A)), strict=True):
        baseline.save(Baseline({"t": Accepted("2.13.0", "0.1.0", True, findings)}), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert str(tmp_path) not in files[0].read_text()


def test_a_path_that_is_no_text_survives(tmp_path: Path) -> None:
    odd = Known("c3", "BS101", os.fsdecode(b"m\xff.py"), "f", "x")
    baseline.save(Baseline({"t": Accepted(None, "0.1.0", True, (odd,))}), tmp_path / "b.json")
    assert baseline.load(tmp_path / "b.json").targets["t"].findings == (odd,)


def test_no_file_is_a_case_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        baseline.load(tmp_path / "none.json")


def written() -> dict[str, object]:
    return {
        "breakscope_baseline": 1,
        "targets": {
            "t": {"torch": "2.13.0", "breakscope": "0.1.0", "compiled_by_script": True, "findings": []}
        },
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is not JSON"),
        (b"\x00\xff\xfe", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (json.dumps(written()).encode()[:-20], "it is truncated or damaged; restore it from version control"),
        (b"{}", "this is not a baseline of breakscope"),
        (b'{"version": 2}', "this is not a baseline of breakscope"),
        (b'{"schema_version": 1, "findings": []}', "this is a report, not a baseline"),
        (
            b'{"breakscope_baseline": 2, "targets": {}}',
            "it has version 2, and this breakscope reads up to 1: upgrade",
        ),
        (b'{"breakscope_baseline": "1", "targets": {}}', "breakscope_baseline must be an integer"),
        (b'{"breakscope_baseline": 1}', "targets must be an object"),
        (b'{"breakscope_baseline": 1, "targets": {"t": 3}}', "targets.t is not an object"),
        (json.dumps(written()).replace("[]", '[{"fingerprint": 3}]').encode(), "fingerprint must be a text"),
        (
            json.dumps(written()).replace("[]", "[3]").encode(),
            "findings holds something that is not an object",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "baseline.json"
    file.write_bytes(data)
    with pytest.raises(BaselineError) as caught:
        baseline.load(file)
    assert str(caught.value).startswith(f"cannot read the baseline {file}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_a_circular_link(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="directory"):
        baseline.load(tmp_path)
    link = tmp_path / "link.json"
    link.symlink_to(link)
    with pytest.raises(BaselineError, match="levels of symbolic links"):
        baseline.load(link)
    with pytest.raises(OutputError, match="cannot write the baseline to"):
        baseline.save(KNOWN, link)


def test_a_failed_write_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "baseline.json"
    baseline.save(KNOWN, file)
    before = file.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        baseline.save(Baseline(), file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
