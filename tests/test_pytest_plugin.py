"""The pytest plugin, in pytest runs of their own."""

from __future__ import annotations

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


@pytest.mark.parametrize("workers", ["0", "2"])
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
