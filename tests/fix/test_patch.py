"""Patches of a file: what may be made together, in which order, and what readers of a report get of them."""

from __future__ import annotations

import ast
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import BRANCH

from breakscope.fix import store
from breakscope.fix.engine import _said
from breakscope.fix.evidence import Verdict
from breakscope.fix.outcomes import outcomes_of_patch
from breakscope.fix.patch import Edit, OverlappingEditsError, Patch, Rewrite, apply, clash, edits_by_file
from breakscope.fix.source_file import Source
from breakscope.inside import overlay
from breakscope.report.model import SourceEdit

TEXT = "a = 1\nb = 2\n"


def patch(*edits: Edit) -> Patch:
    return Patch((BRANCH,), "a-rule", Rewrite(edits, "other lines"))


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (Edit(0, 5, "x"), Edit(3, 7, "y"), False),
        (Edit(0, 5, "x"), Edit(2, 2, "y"), False),
        (Edit(0, 5, "x"), Edit(0, 5, "y"), False),
        (Edit(6, 6, "x"), Edit(6, 6, "y"), True),
        (Edit(6, 6, "x"), Edit(6, 11, "y"), True),
        (Edit(0, 6, "x"), Edit(6, 11, "y"), True),
        (Edit(0, 5, "x"), Edit(0, 5, "x"), True),
        (Edit(0, 5, "x", "a.py"), Edit(0, 5, "y", "b.py"), True),
    ],
    ids=[
        "overlapping",
        "put in within",
        "two for one",
        "two put in at one place",
        "put in before",
        "side by side",
        "the same",
        "two files",
    ],
)
def test_two_patches_clash_where_both_replace_a_text(first: Edit, second: Edit, together: bool) -> None:
    assert clash([patch(first), patch(second)]) != together
    assert clash([patch(second), patch(first)]) != together
    if not together and first != second:
        with pytest.raises(OverlappingEditsError):
            apply(TEXT, [first, second])


def test_nobody_is_asked_to_consent_to_other_values_where_messages_are_all_that_was_meant() -> None:
    found = Verdict("refused", "the rewrite computes something else: result: 1 | 2")
    rewrite = Rewrite((), "messages are left out", notes=("they are not written",), consent=True)
    meant = replace(rewrite, notes=("other random numbers are drawn",), differs=True)
    assert _said(Patch((BRANCH,), "a-rule", rewrite), found).status == "refused"
    assert _said(Patch((BRANCH,), "a-rule", meant), found).status == "needs consent"
    assert _said(Patch((BRANCH,), "a-rule", meant), replace(found, works=False)).status == "refused"


def test_what_is_put_in_at_one_place_is_everywhere_in_the_order_in_which_it_was_made(tmp_path: Path) -> None:
    """The trial runs what the overlay makes of the manifest; the file gets what the source makes of the edits."""
    file = tmp_path / "module.py"
    file.write_text(TEXT)
    patches = [patch(Edit(6, 6, "z = a\n", str(file))), patch(Edit(6, 6, "c = z\n", str(file)))]
    source = Source.of(file.read_bytes())
    written = source.changed(edits_by_file(patches)[str(file)]).text
    assert written == "a = 1\nz = a\nc = z\nb = 2\n"
    store.write_manifest(tmp_path, patches, {str(file): source}, "script.py")
    (entry,) = overlay.check(tmp_path)["files"]
    assert overlay.edited(source.text, [tuple(edit) for edit in entry["edits"]]) == written
    overlay._installed[str(file)] = entry
    try:
        tree = overlay.parse(source.data, str(file))
    finally:
        del overlay._installed[str(file)]
    assert ast.unparse(tree) + "\n" == written


def test_a_patch_of_two_files_is_one_patch_file(tmp_path: Path) -> None:
    sources = {}
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(TEXT)
        sources[str(tmp_path / name)] = Source.of(TEXT.encode())
    both = patch(*(Edit(0, 1, "x", file) for file in sources))
    (written,) = store.write_folder(tmp_path / "fixes", {"": [both]}, sources, "script.py", tmp_path)
    assert [line for line in written.read_text().splitlines() if line.startswith("+++")] == [
        "+++ b/one.py",
        "+++ b/two.py",
    ]
    manifest = json.loads((tmp_path / "fixes" / "manifest.json").read_text())
    assert [entry["edits"] for entry in manifest["files"]] == [[[0, 1, "x"]]] * 2


def test_patches_of_which_only_one_can_be_taken_are_patches_of_the_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(TEXT)
    patches = [
        patch(Edit(0, 5, "a = 7", str(file))),
        patch(Edit(4, 5, "9", str(file))),
        patch(Edit(10, 11, "8", str(file))),
    ]
    sources = {str(file): Source.of(TEXT.encode())}
    written = store.write_folder(
        tmp_path / "fixes", {"": [], "unproved": patches}, sources, "script.py", tmp_path
    )
    made = []
    for series in ([written[0], written[2]], [written[1]]):
        file.write_text(TEXT)
        for one in series:
            subprocess.run(["git", "apply", str(one)], cwd=tmp_path, check=True, capture_output=True)
        made.append(file.read_text())
    assert made == ["a = 7\nb = 8\n", "a = 9\nb = 2\n"]


def test_what_a_file_cannot_hold_is_answered_without_a_diff(tmp_path: Path) -> None:
    file = str(tmp_path / "module.py")
    sources = {file: Source.of(b"# coding: latin-1\na = 1\n")}
    sums = patch(Edit(22, 23, "'∑'", file))
    (outcome,) = outcomes_of_patch(
        sums, Verdict("refused", "its encoding lacks it"), False, sources, tmp_path
    )
    assert (outcome.suggestion.status, outcome.suggestion.diff) == ("refused", "")


def test_a_report_has_the_edits_in_lines_and_columns_and_those_that_touch_as_one(tmp_path: Path) -> None:
    file = str(tmp_path / "module.py")
    edits = [
        Edit(10, 11, "3", file),
        Edit(6, 6, "import os\n", file),
        Edit(6, 7, "ä", file),
        Edit(4, 5, "7", file),
    ]
    sources = {file: Source.of(TEXT.replace("\n", "\r\n").encode())}
    (outcome,) = outcomes_of_patch(patch(*edits), Verdict("proved", ""), True, sources, tmp_path)
    assert outcome.suggestion.edits == (
        SourceEdit(file, 1, 5, 1, 6, "7"),
        SourceEdit(file, 2, 1, 2, 2, "import os\nä"),
        SourceEdit(file, 2, 5, 2, 6, "3"),
    )
