"""The two warm processes: one that breakscope runs in, one for the judge, which has never heard of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from warm import Warm


@pytest.fixture(scope="session")
def judging() -> Iterator[Warm]:
    warm = Warm()
    yield warm
    warm.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What became of the generated programs."""
    counts: Counter[str] = Counter()
    for report in [one for reports in terminalreporter.stats.values() for one in reports]:
        for name, value in getattr(report, "user_properties", ()):
            if name == "generated" and report.when == "call":
                counts.update(value)
    if counts:
        terminalreporter.write_line("generated: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
