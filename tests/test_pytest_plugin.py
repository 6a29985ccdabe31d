"""The pytest plugin, in pytest runs of their own."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

import breakscope

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "breakscope.pytest_plugin", "-p", "no:cacheprovider", "-q")
MODEL = """
    import pytest
    import torch

    def branches(x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        return y

    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2

    def test_clean(breakscope):
        report = breakscope.assert_clean(Net(), torch.ones(3))
        assert breakscope.reports == [report]

    def test_breaks(breakscope):
        breakscope.assert_clean(branches, torch.ones(3))

    @pytest.mark.breakscope(allow=["BS101"])
    class TestMarked:
        @pytest.mark.parametrize("rows", [1, 2])
        def test_allowed(self, breakscope, rows):
            breakscope.assert_clean(branches, torch.ones(rows))
            breakscope.assert_clean(branches, torch.ones(rows), warmup=0)

        @pytest.mark.breakscope(allow=[])
        def test_the_closest_mark_holds(self, breakscope):
            breakscope.assert_clean(branches, torch.ones(3))
"""


@pytest.mark.torch
@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.nightly), "2"])
def test_fixture_marker_reports_and_xdist(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makepyfile(test_model=MODEL)
    result = pytester.runpytest_subprocess(*PLUGIN, "-n", workers, "--breakscope-report", "reports")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "*AssertionError: 1 graph break in branches",
            "*test_model.py:6:*branches*",
            "*if y.sum() > 0:",
            "*reason *Data-dependent branching",
            "*do this *torch.where*",
            "*report: *reports*test_breaks*.json",
        ]
    )
    result.stdout.no_fnmatch_line("*torch.__trace*")
    files = sorted((pytester.path / "reports").iterdir())
    assert len(files) == 7, "one for each call, also of tests that fail"
    assert sum(len(breakscope.load(file).findings) for file in files) == 6


def test_a_suite_that_does_not_use_it_imports_nothing(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        import sys

        def pytest_sessionfinish():
            ours = sorted(name for name in sys.modules if name.partition(".")[0] == "breakscope")
            print("LOADED", ours, "torch" in sys.modules)
    """)
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_subprocess(*PLUGIN, "-s")
    result.assert_outcomes(passed=1)
    assert "LOADED ['breakscope', 'breakscope.pytest_plugin'] False" in result.stdout.str()


def test_it_is_named_as_its_module_so_that_it_is_never_loaded_twice() -> None:
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert '"breakscope.pytest_plugin" = "breakscope.pytest_plugin"' in project


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("breaks", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_three_lines_say_what_a_hundred_said_before(pytester: pytest.Pytester, breaks: bool) -> None:
    """The example of docs/gate.md: the test by hand and the one with the fixture agree."""
    if not version("torch").startswith("2.13"):
        pytest.skip("the test by hand reads log texts, which are those of torch 2.13")
    example = Path(__file__).parent.parent / "docs" / "testing"
    for name in ("handwritten_test.py", "test_model.py", "model.py"):
        text = (example / name).read_text()
        if breaks and name == "model.py":
            text = text.replace(
                "return self.decode(code)", "return self.decode(code / 2 if code.sum() > 9 else code)"
            )
        (pytester.path / name).write_text(text)
    result = pytester.runpytest_subprocess(*PLUGIN, "handwritten_test.py", "test_model.py")
    result.assert_outcomes(**{"failed" if breaks else "passed": 2})
    if breaks:
        result.stdout.fnmatch_lines_random(
            ["*model.py forward Data-dependent branching*", "*model.py:21:*Model.forward*"]
        )
