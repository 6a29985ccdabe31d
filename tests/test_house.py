"""Where things are: what a newcomer guesses from the folders is so, and each question has one home."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = {path: path.read_text(encoding="utf-8") for path in (ROOT / "breakscope").rglob("*.py")}


def test_few_modules_stand_at_the_top_and_every_folder_is_in_the_architecture() -> None:
    top = [path for path in PRODUCT if path.parent == ROOT / "breakscope"]
    assert len(top) <= 6
    told = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in PRODUCT if path.parent.parent == ROOT / "breakscope"}
    assert {name for name in folders if f"| `{name}/` |" not in told} == set()


def test_a_cell_of_the_architecture_is_read_at_a_glance() -> None:
    rows = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    cells = [cell for row in rows if row.startswith("|") for cell in row.split(" | ")]
    assert max(map(len, cells)) <= 160


@pytest.mark.parametrize(
    ("home", "definition"),
    [
        ("fix/patch.py", r"^class Edit\b"),
        ("fix/source_file.py", r"difflib\.unified_diff\("),
        ("view/unified.py", r"@@ -\("),  # how a hunk of one is read
        ("report/files.py", r"\bos\.replace\("),  # a file that is written whole or not at all
        ("inside/tensors.py", r"^def gaps\("),  # how far two tensors are apart
        ("inside/tensors.py", r"^def flatten\("),  # the tensors of a result
        ("fix/rule.py", r"def is_integer\("),
        ("source/names.py", r"while isinstance\(\w+, ast\.Attribute\):"),  # the parts of a dotted name
        ("source/span.py", r"\[:\w+\]\.decode\("),  # columns in bytes, in characters
    ],
)
def test_a_question_has_one_home(home: str, definition: str) -> None:
    found = [path for path, text in PRODUCT.items() if re.search(definition, text, re.MULTILINE)]
    # The text of exported scripts, which run without us, has what it needs in it.
    assert [path for path in found if path.name != "export_text.py"] == [ROOT / "breakscope" / home]


def test_a_module_gives_each_of_its_names_once() -> None:
    """A second pattern by the name of a first one takes its place without a word."""
    twice = {}
    for path, text in PRODUCT.items():
        given: Counter[str] = Counter()
        for node in ast.parse(text).body:
            match node:
                case ast.Assign(targets) | ast.AnnAssign(target=targets):
                    names = targets if isinstance(targets, list) else [targets]
                    given.update(name.id for name in names if isinstance(name, ast.Name))
                case ast.FunctionDef(name) | ast.ClassDef(name):
                    given[name] += 1
        twice |= {(path.name, name): times for name, times in given.items() if times > 1}
    assert twice == {}


def test_what_needs_torch_to_be_collected_says_so() -> None:
    """`make quick` runs where there is no torch."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "import torch" in text or "from torch" in text:
            imported = [
                name.split(".")[0]
                for node in ast.parse(text).body
                if isinstance(node, ast.Import | ast.ImportFrom)
                for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            ]
            assert "torch" not in imported or re.search(r"^pytestmark = .*mark\.torch", text, re.MULTILINE), (
                path
            )
