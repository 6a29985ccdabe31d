"""What is said of a script is the same in a fork of a process that has imported torch, and ten times as fast."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned


@pytest.fixture
def scan(warm_scan: Callable[..., Scanned]) -> Callable[..., Scanned]:
    return warm_scan
