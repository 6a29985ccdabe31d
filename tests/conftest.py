"""The fixtures that scan a script (what they return is in ``scanning``), and the option of ``make quick``."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from scanning import Scanned, clean_environment, command
from warm_scanning import Warm, WarmScans, warm_process

# Started in the background of a shell, pytest and all its children ignore SIGINT; some of these are sent one.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# In front of the real torch when `make quick` runs: for the tests, and for every Python that they start.
NO_TORCH = str(Path(__file__).parent / "without_torch")
# A whole module that needs torch says so in a line of its own, and is not even imported then.
NEEDS_TORCH = re.compile(r"^pytestmark = .*\bpytest\.mark\.torch\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-torch",
        action="store_true",
        help="leave out the tests that are marked 'torch', and fail all others that import it",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("without_torch") and NO_TORCH not in sys.path:
        assert "torch" not in sys.modules, "a plugin of pytest has imported torch"
        sys.path.insert(0, NO_TORCH)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [NO_TORCH, os.environ.get("PYTHONPATH")]))


def pytest_collection() -> None:
    gc.disable()  # nothing of what is collected is garbage, and each look at all of it costs


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("without_torch") and collection_path.suffix == ".py":
        return True if NEEDS_TORCH.search(collection_path.read_text(encoding="utf-8")) else None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("without_torch"):
        left_out = [item for item in items if item.get_closest_marker("torch")]
        items[:] = [item for item in items if not item.get_closest_marker("torch")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def product() -> Warm:
    """A process that has imported torch and breakscope, and forks."""
    return warm_process()


@pytest.fixture(scope="session")
def warm(product: Warm) -> WarmScans:
    return WarmScans(product)


@pytest.fixture
def scan(cold_scan: Callable[..., Scanned]) -> Callable[..., Scanned]:
    """As a person would; folders whose tests do not depend on how Python starts have ``warm_scan`` by that name."""
    return cold_scan


@pytest.fixture
def cold_scan(tmp_path: Path) -> Callable[..., Scanned]:
    """Write a script, scan it in fresh processes, and return what came of it."""

    def run(
        source: str,
        *options: str,
        args: Sequence[str] = (),
        name: str = "script.py",
        stdin: bytes = b"",
        quiet: bool = True,
        timeout: float = 120,
        **environment: str,
    ) -> Scanned:
        (tmp_path / name).write_text(textwrap.dedent(source))
        words = ["scan", *(["-q"] if quiet else []), *options, name, *args]
        done = subprocess.run(
            command(*words),
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=clean_environment(**environment),
            check=False,
        )
        return Scanned(done.returncode, done.stdout, done.stderr.decode(errors="replace"), tmp_path)

    return run


@pytest.fixture
def warm_scan(product: Warm, tmp_path: Path) -> Callable[..., Scanned]:
    """As ``cold_scan``, but ten times as fast, in forks of a process that has imported torch."""

    def run(
        source: str,
        *options: str,
        args: Sequence[str] = (),
        name: str = "script.py",
        quiet: bool = True,
        timeout: float = 240,
        **environment: str,
    ) -> Scanned:
        (tmp_path / name).write_text(textwrap.dedent(source))
        words = ["scan", *(["-q"] if quiet else []), *options, name, *args]
        done = product.command(*words, folder=tmp_path, limit_s=timeout, **environment)
        return Scanned(done.returncode, done.stdout, done.stderr.decode(errors="replace"), tmp_path)

    return run
