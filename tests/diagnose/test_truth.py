"""The fixtures say what is true of them in a form that holds together."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from truth import FIXTURES, Truth, TruthError, all_fixtures, line_number, read

VERSIONS: tuple[dict[str, str], ...] = (
    {},
    {"torch": "2.9.1+cpu", "python": "3.12.3"},
    {"torch": "2.13.0+cpu", "python": "3.11.7"},
    {"torch": "2.15.0", "python": "3.13.1"},
)

MINIMAL = """\
# /// breakscope
# sites = 0
# crossings = 0
# recompiles = 0
# skips = 0
# vacuous = false
# exit_code = 0
# ///
\"\"\"Nothing happens.\"\"\"
"""


@pytest.fixture(params=[(path, version) for path in all_fixtures() for version in VERSIONS], ids=str)
def truth(request: pytest.FixtureRequest) -> Truth:
    path, version = request.param
    return read(path, **version)


def write(folder: Path, text: str) -> Path:
    path = folder / "made_up.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_there_are_fixtures_for_every_idea() -> None:
    assert len(all_fixtures()) >= 28


def test_the_readme_lists_every_fixture_with_its_idea() -> None:
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in readme if line.startswith("| `")]
    assert rows == [f"| `{path.name}` | {read(path).idea} |" for path in all_fixtures()]


def test_a_fixture_says_its_idea_and_is_short(truth: Truth) -> None:
    assert truth.idea.endswith(".")
    body = truth.path.read_text(encoding="utf-8").split("\n# ///\n", 1)[1]
    assert 10 <= len([line for line in body.splitlines() if line.strip()]) <= 50


def test_each_line_stands_once_and_holds_its_expression(truth: Truth) -> None:
    for finding in truth.findings:
        if finding.line is None:
            assert finding.expression is None
            continue
        assert line_number(truth.path, finding.line) > 0
        if finding.expression is not None:
            assert finding.line.count(finding.expression) == 1
            assert finding.expression != finding.line


def test_functions_exist(truth: Truth) -> None:
    names = set(qualified_names(ast.parse(truth.path.read_text(encoding="utf-8"))))
    named = {row.function for row in truth.findings}
    named |= {row.function for row in truth.recompile_causes}
    named |= {row.function for row in truth.skipped}
    assert named <= names


def qualified_names(node: ast.AST, prefix: str = "") -> list[str]:
    names = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            names += [prefix + child.name, *qualified_names(child, f"{prefix}{child.name}.")]
    return names


def test_totals_are_the_sums_of_the_rows(truth: Truth) -> None:
    at_sites = [finding.crossings for finding in truth.findings if finding.crossings is not None]
    assert truth.sites == len(at_sites)
    assert truth.crossings == sum(at_sites)
    assert truth.recompiles == sum(cause.times for cause in truth.recompile_causes)
    assert truth.skips == len({skip.function for skip in truth.skipped})


def test_codes_are_of_the_right_family(truth: Truth) -> None:
    assert all(re.fullmatch(r"BS[13]\d\d", finding.code) for finding in truth.findings)
    assert all(re.fullmatch(r"BS2\d\d", cause.code) for cause in truth.recompile_causes)


def test_a_run_is_vacuous_when_no_graph_came_of_it(truth: Truth) -> None:
    assert truth.vacuous == (truth.regions == 0)
    if truth.vacuous:
        assert truth.recompile_causes == ()


def test_a_change_for_one_version_is_seen_by_that_version_alone() -> None:
    path = FIXTURES / "while_tensor.py"
    assert read(path).crossings == read(path, torch="2.13.0", python="3.12.1").crossings == 3
    older = read(path, torch="2.13.0", python="3.11.9")
    assert (older.crossings, older.findings[0].crossings, older.skipped) == (15, 15, ())
    lock = FIXTURES / "lock.py"
    assert read(lock, torch="2.90.0").occurrences == 1


def test_a_minimal_block_is_enough(tmp_path: Path) -> None:
    truth = read(write(tmp_path, MINIMAL))
    assert truth.idea == "Nothing happens."
    assert (truth.options, truth.args, truth.occurrences, truth.regions) == ((), (), None, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# /// breakscope\n", "", "begin the file with a block"),
        ("# ///\n", "", "begin the file with a block"),
        ("# skips = 0\n", "skips = 0\n", "is no comment"),
        ("# sites = 0\n", "# sites =\n", "is not TOML"),
        ("# sites = 0\n", "", "lacks 'sites'"),
        ("# sites = 0\n", "# sites = '1'\n", "sites must be a whole number"),
        ("# sites = 0\n", "# sites = true\n", "sites must be a whole number"),
        ("# sites = 0\n", "# sites = 0\n# regions = 1.5\n", "regions must be a whole number"),
        ("# vacuous = false\n", "# vacuous = 0\n", "vacuous must be true or false"),
        ("# sites = 0\n", "# sites = 0\n# sights = 0\n", "unknown key 'sights'"),
        ("# sites = 0\n", "# sites = 0\n# args = '--fast'\n", "args must be a list of strings"),
        ("# ///\n", "# [finding]\n# ///\n", r"write finding as \[\[finding\]\]"),
        ("# ///\n", "# [[finding]]\n# code = 'BS101'\n# ///\n", "lacks 'function'"),
        ("# ///\n", "# [[skip]]\n# function = 'f'\n# calls = 1\n# why = ''\n# ///\n", "unknown key 'why'"),
        ("# ///\n", "# [[skip]]\n# function = 'f'\n# calls = '1'\n# ///\n", "calls .* wrong type"),
        ("# ///\n", '# [torch."2.9"]\n# sights = 0\n# ///\n', "unknown key 'sights'"),
        ("# ///\n", "# [torch]\n# sites = 0\n# ///\n", 'torch."sites" must be a table'),
    ],
)
def test_a_bad_block_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = MINIMAL.replace(old, new, 1) if old != "# ///\n" else new.join(MINIMAL.rsplit(old, 1))
    with pytest.raises(TruthError, match=rf"made_up\.py: .*{message}"):
        read(write(tmp_path, text))


def test_a_line_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL + "x = 1\n    \nx = 1\n")
    with pytest.raises(TruthError, match="2 times"):
        line_number(path, "x = 1")
