"""Diffs read back: what difflib writes must come out as the same edit."""

from __future__ import annotations

import difflib
import random

import pytest

from breakscope.view.unified import Replacement, replacements


def diff(old: list[str], new: list[str], context: int) -> str:
    lines = difflib.unified_diff(old, new, "a/m.py", "b/m.py", lineterm="", n=context)
    return "\n".join(lines) + "\n"


def apply(old: list[str], changes: tuple[Replacement, ...]) -> list[str]:
    new = list(old)
    for change in sorted(changes, key=lambda one: -one.start):
        at = change.start - 1
        assert tuple(new[at : at + len(change.removed)]) == change.removed
        new[at : at + len(change.removed)] = change.added
    return new


@pytest.mark.parametrize("context", [0, 1, 3])
def test_edits_survive_the_way_through_a_diff(context: int) -> None:
    chance = random.Random(context)
    # Lines that look like a diff's own are the hard ones.
    words = ["", " ", "-- x", "++ y", "@@ -1 +1 @@", "x = 1", "\\ No newline"]
    for _ in range(300):
        old = [chance.choice(words) for _ in range(chance.randrange(12))]
        new = [line for line in old if chance.random() > 0.2]
        for _ in range(chance.randrange(3)):
            new.insert(chance.randrange(len(new) + 1), chance.choice(words))
        found = replacements(diff(old, new, context))
        assert apply(old, found.get("m.py", ())) == new


def test_paths_are_those_of_the_old_files() -> None:
    two = (
        "--- a/x.py\t2026-01-01\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n--- a/y.py\n+++ b/y.py\n@@ -2,0 +3 @@\n+c\n"
    )
    assert replacements(two) == {
        "x.py": (Replacement(1, ("a",), ("b",)),),
        "y.py": (Replacement(3, (), ("c",)),),
    }


def test_files_that_come_or_go_as_a_whole_are_left_out() -> None:
    assert replacements("--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+a\n") == {}
    assert replacements("--- a/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n") == {}
    assert replacements("no diff at all") == {}


def test_a_missing_line_break_at_the_end_is_told() -> None:
    text = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    assert replacements(text) == {"x.py": (Replacement(1, ("a",), ("b",), open_end=True),)}


@pytest.mark.parametrize("body", ["-a\n", "-a\n+b\n", "*a\n", ""])
def test_a_damaged_hunk_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match="does not hold the lines that its header promises"):
        replacements(f"--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n{body}")
