"""A unified diff as people make it: of a tree that has the change, or has it not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from patches import diff

from breakscope.fix import diff as reading
from breakscope.fix.diff import Change, DiffError

OLD = "import torch\n\n\ndef f(x):\n    return x + 1\n\n\ndef g(x):\n    return x + 1\n"
NEW = OLD.replace("def g(x):\n    return x + 1\n", "def g(x):\n    return x + 2\n")


def only(text: str, folder: Path) -> Change:
    (change,) = reading.changes(text, [folder])
    return change


@pytest.mark.parametrize("side", ["old", "new"])
def test_the_file_holds_either_side(side: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(OLD if side == "old" else NEW)
    change = only(diff(OLD, NEW, "model.py"), tmp_path)
    assert change.on_disk == side
    assert (change.old.text, change.new.text) == (OLD, NEW)
    assert change.edits(side) == ()  # type: ignore[arg-type]
    assert len(change.edits("new" if side == "old" else "old")) == 1


def test_lines_may_have_moved_since(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("# a line\n# another\n" + OLD)
    assert only(diff(OLD, NEW, "model.py"), tmp_path).new.text == "# a line\n# another\n" + NEW


@pytest.mark.parametrize("side", ["old", "new"])
def test_what_is_added_at_the_end_of_a_file_is_not_added_twice(side: str, tmp_path: Path) -> None:
    new = OLD + "\n\ndef h(x):\n    return x\n"
    (tmp_path / "model.py").write_text(OLD if side == "old" else new)
    change = only(diff(OLD, new, "model.py"), tmp_path)
    assert (change.on_disk, change.old.text, change.new.text) == (side, OLD, new)


def test_line_ends_and_the_missing_last_one_stay(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_bytes(b"a = 1\r\nb = 2")
    text = "--- a/model.py\n+++ b/model.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n\\ No newline at end of file\n+b = 3\n\\ No newline at end of file\n"
    assert only(text, tmp_path).new.data == b"a = 1\r\nb = 3"


def test_git_names_the_side_where_both_would_fit(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        ran = subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return ran.stdout

    line = "x = x + 1\n"
    git("init", "-q")
    (tmp_path / "model.py").write_text(line * 9)
    git("add", "model.py")
    git("commit", "-qm", "one")
    (tmp_path / "model.py").write_text(line * 10)
    change = only(git("diff"), tmp_path)
    assert (change.on_disk, change.old.text, change.new.text) == ("new", line * 9, line * 10)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("I would write torch.where here.", "no unified diff"),
        ("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n", "makes the file"),
        ("--- a/model.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n", "removes the file"),
        ("--- a/gone.py\n+++ b/gone.py\n@@ -1 +1 @@\n-x\n+y\n", "there is no file"),
        ("--- a/model.py\n+++ b/model.py\n@@ -1 +1 @@\n-other\n+text\n", "does not fit"),
        ("--- a/model.py\n+++ b/model.py\n@@ -1,5 +1,5 @@\n import torch\n", "ends within a hunk"),
        ("diff --git a/a.py b/b.py\nrename from a.py\nrename to b.py\n", "renames"),
    ],
)
def test_what_cannot_be_proved_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(OLD)
    with pytest.raises(DiffError, match=sentence) as raised:
        reading.changes(text, [tmp_path])
    assert "\n" not in str(raised.value)
