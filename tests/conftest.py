"""The fixture that scans a script; what it returns is in ``scanning``."""

from __future__ import annotations

import signal
import subprocess
import textwrap
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from scanning import Scanned, clean_environment, command

# Started in the background of a shell, pytest and all its children ignore SIGINT; some of these are sent one.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Minutes long, most of it torch starting again and again: left out of `make test`, which stays under 15 minutes on
# 2 cores, and run by `make test-all`. Of each module the tests whose names hold one of these words stay in.
NIGHTLY: dict[str, tuple[str, ...]] = {
    "bench/test_bench_arms.py": ("same_inputs",),
    "remedy/test_remedies_proved.py": ("[varying_batch]",),
    "remedy/test_remedy_honest.py": (),
    "rewrite/test_branch_programs.py": (),
    "rewrite/test_cond.py": ("[0]", "[overwritten]", "never"),
    "rewrite/test_loop_programs.py": ("test_masked",),
    "rewrite/test_slower.py": (),
    "rewrite/test_fix.py": ("report_holds", "nothing_is_written"),
    "rewrite/test_fix_models.py": (),
    "rewrite/test_red_team.py": ("[nan_gradient", "[guarded_division", "count"),
    "rewrite/test_rule_examples.py": ("register", "complete", "enough"),
    "rewrite/test_write.py": (),
    "rewrite/test_proof.py": (),
    "lint/test_lint_compiled.py": (),
    "test_check.py": ("exit", "moved", "option_of_scan"),
    "test_ci.py": (),
    "test_integrations.py": (),
    "render/test_warmup.py": (),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not for every run."""
    for item in items:
        module = item.path.relative_to(Path(__file__).parent).as_posix()
        kept = NIGHTLY.get(module)
        if kept is not None and not any(word in item.name for word in kept):
            item.add_marker(pytest.mark.nightly)


@pytest.fixture
def scan(tmp_path: Path) -> Callable[..., Scanned]:
    """Write a script, scan it, and return what came of it."""

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
