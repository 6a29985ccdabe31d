"""The two warm processes: one that breakscope runs in, one for the judge, which has never heard of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from warm import Warm


@pytest.fixture(scope="session")
def product() -> Iterator[Warm]:
    warm = Warm("breakscope")
    yield warm
    warm.close()


@pytest.fixture(scope="session")
def judging() -> Iterator[Warm]:
    warm = Warm()
    yield warm
    warm.close()
