"""The pytest plugin: a fixture ``breakscope`` with which a test says that a model compiles cleanly.

    def test_model(breakscope):
        breakscope.assert_clean(model, inputs, allow=["BS104"])

Loaded by pytest in every suite of an environment, so nothing heavy is imported before a test asks for it.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from breakscope.fix.evidence import Verdict
    from breakscope.report.model import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--breakscope-report``."""
    parser.getgroup("breakscope").addoption(
        "--breakscope-report",
        metavar="DIR",
        help="Folder for the report of each breakscope.assert_clean(), one file a call.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line(
        "markers",
        "breakscope(**options): defaults for breakscope.assert_clean() in this test, class or module, "
        "e.g. allow=['BS104'], warmup=3, max_recompiles=1",
    )


@pytest.fixture
def breakscope(request: pytest.FixtureRequest) -> Breakscope:
    """Asserts that models compile cleanly, and keeps the reports."""
    options: dict[str, Any] = {}
    for mark in request.node.iter_markers("breakscope"):  # the closest first
        options = {**mark.kwargs, **options}
    folder = request.config.getoption("--breakscope-report")
    place = request.config.invocation_params.dir / folder if folder else None
    return Breakscope(request.node.nodeid, options, place)


class Breakscope:
    """What the fixture gives.

    Attributes:
        reports: of every call so far, also of those that failed.
    """

    def __init__(self, test: str, options: dict[str, Any], folder: Path | None) -> None:
        self.reports: list[Report] = []
        self._test = test
        self._options = options
        self._folder = folder

    def assert_clean(self, function: Callable[..., Any], inputs: Any, **options: Any) -> Report:
        """Fail unless a function or module compiles without breaks and computes what it does without.

        Arguments and result are those of :func:`breakscope.testing.try_out`: ``allow``, ``warmup``,
        ``max_recompiles``, ``backend``, ``dynamic``, ``compare``, ``rtol``, ``atol``, ``suppress``.
        """
        __tracebackhide__ = True
        from breakscope import testing

        tried = testing.try_out(function, inputs, **{**self._options, **options})
        self.reports.append(tried.report)
        saved = self._save(tried.report)
        if tried.problems:
            raise AssertionError("\n\n".join([*tried.problems, *([f"report: {saved}"] if saved else [])]))
        return tried.report

    def assert_same(
        self, old: Callable[..., Any], new: Callable[..., Any], inputs: Any, **options: Any
    ) -> Verdict:
        """Fail unless a rewritten function is proved to compute what the old one does.

        Arguments and result are those of :func:`breakscope.testing.assert_same`.
        """
        __tracebackhide__ = True
        from breakscope import testing

        return testing.assert_same(old, new, inputs, **options)

    def _save(self, report: Report) -> Path | None:
        if self._folder is None:
            return None
        from breakscope.report import schema

        self._folder.mkdir(parents=True, exist_ok=True)
        # Two tests may differ only in characters that no file name can hold.
        digest = hashlib.sha256(self._test.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        name = re.sub(r"[^\w.]+", "-", self._test).strip("-.")[-100:]
        file = self._folder / f"{name}-{digest}-{len(self.reports)}.json"
        schema.save(report, file)
        return file
