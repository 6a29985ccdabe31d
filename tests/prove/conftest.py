"""The warm process that breakscope runs in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The warm process is that of the red team.
sys.path.insert(0, str(Path(__file__).parent.parent / "fix" / "observed"))

from warm import Warm


@pytest.fixture(scope="session")
def product() -> Iterator[Warm]:
    warm = Warm("breakscope")
    yield warm
    warm.close()
