"""The script that begins a rule, and the table of rules in the documentation."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folders that the script writes into."""
    for folder in ("breakscope/fix/rules", "tests/fix/rules"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sys, "argv", ["new_rule.py", "mean-of-means", "BS105"])
    return tmp_path


def test_a_new_rule_is_a_file_with_its_table_and_is_imported(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_rule = script("new_rule")
    monkeypatch.setattr(new_rule, "ROOT", house)
    assert new_rule.main() == 0
    rule = ast.parse((house / "breakscope/fix/rules/mean_of_means.py").read_text())
    made = next(node for node in rule.body if isinstance(node, ast.ClassDef))
    values = {node.targets[0].id: node.value for node in made.body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
    assert made.name == "MeanOfMeans"
    assert ast.literal_eval(values["name"]) == "mean-of-means"
    assert ast.literal_eval(values["codes"]) == ("BS105",)
    ast.parse((house / "tests/fix/rules/mean_of_means.py").read_text())
    rules = (house / "breakscope/fix/rules/__init__.py").read_text()
    imported = re.findall(r"from breakscope\.fix\.rules\.(\w+) import", rules)
    assert imported == sorted(imported)
    assert "mean_of_means" in imported
    assert re.findall(r"        (\w+)\(\),", rules) == re.findall(r"fix\.rules\.\w+ import (\w+)", rules)


def test_a_rule_that_exists_is_not_overwritten(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_rule = script("new_rule")
    monkeypatch.setattr(new_rule, "ROOT", house)
    assert new_rule.main() == 0
    written = house / "breakscope/fix/rules/mean_of_means.py"
    written.write_text("mine")
    assert new_rule.main() == 1
    assert written.read_text() == "mine"


@pytest.mark.parametrize(("name", "code"), [("mean_of_means", "BS105"), ("Mean", "BS105"), ("mean", "105")])
def test_a_name_or_a_code_that_is_none_is_refused(
    name: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["new_rule.py", name, code])
    with pytest.raises(SystemExit):
        script("new_rule").main()


def test_the_documentation_has_the_table_that_the_rules_make() -> None:
    page = (ROOT / "docs" / "fix.md").read_text()
    shown = re.search(r"<!-- rules: .*? -->\n(.*?)<!-- end -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == script("make_docs").rules(), "python scripts/make_docs.py --rules"
