"""Runs that are forks of a process that has loaded the script's modules: they are what a plain run is."""

from __future__ import annotations

import importlib.util
import json
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from breakscope.inside.start import Agent
from breakscope.run import launch
from breakscope.run.launch import Ended
from breakscope.run.program import program
from breakscope.run.warm import Warm

pytestmark = pytest.mark.torch

SCRIPT = """
    import wave, os, random, sys
    os.environ["OMP_NUM_THREADS"] = "3"
    print("wanted" in sys.modules, file=sys.stderr)
    import torch, wanted
    print(__name__, __file__ == sys.argv[0], sys.argv[1:], os.path.samefile(sys.path[0], "."), sys.stdin.fileno())
    print(sys._getframe().f_back, sorted(one for one in os.environ if "BREAKSCOPE" in one), os.environ.get("MINE"))
    print(torch.get_num_threads(), torch.cuda.is_initialized(), type(sys.modules["__main__"]))
    print("random", torch.rand(1).item(), random.random(), file=sys.stderr)
    with open("/proc/self/environ", "rb") as started:
        asked = b"OMP_WAIT_POLICY=passive" in started.read()
    child = os.popen("echo child${OMP_WAIT_POLICY}").read().strip()
    print(os.environ.get("OMP_WAIT_POLICY"), child, asked, file=sys.stderr)
    sys.exit(7)
"""


def install(folder: Path, module: str) -> Path:
    """A folder as ``pip install --target`` leaves it."""
    (folder / f"{module}-1.0.dist-info").mkdir(parents=True)
    (folder / f"{module}.py").touch()
    (folder / f"{module}-1.0.dist-info" / "RECORD").write_text(f"{module}.py,sha256=0,0\n")
    return folder


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str) -> None:
    """Stand in a folder, with a module that is not the user's own."""
    monkeypatch.chdir(folder)
    packages = folder / "site-packages"
    packages.mkdir()
    (packages / f"{module}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(packages))


def record(
    folder: Path, what: launch.Program, watched: Sequence[str] = (), tell: str = ""
) -> tuple[Ended, bytes, dict[str, Any]]:
    """A plain run, and what it says of what it loaded."""
    result = folder / "evidence.json"
    functions: dict[str, list[str]] = {file: [] for file in watched}
    settings = {
        "functions": functions,
        "script": what.path,
        "seed": 0,
        "result": str(result),
        "tell": tell,
    }
    agent = Agent("breakscope.inside.record.agent", json.dumps(settings), {"MINE": "1"}, patient=True)
    with (folder / "plain").open("wb") as out, (folder / "err").open("wb") as err:
        ended = launch.run(what, agent, stdout=out.fileno(), stderr=err.fileno())
    return ended, (folder / "plain").read_bytes(), json.loads(result.read_text())["loaded"]


def forked(folder: Path, what: launch.Program, warm: Warm) -> tuple[Ended, bytes, bytes]:
    settings = {"functions": {}, "script": what.path, "seed": 0, "result": str(folder / "again.json")}
    agent = Agent("breakscope.inside.record.agent", json.dumps(settings), {"MINE": "1"})
    with (folder / "fork").open("wb") as out, (folder / "fork.err").open("wb") as err:
        ended = launch.run(what, agent, 60, stdout=out.fileno(), stderr=err.fileno(), warm=warm)
    return ended, (folder / "fork").read_bytes(), (folder / "fork.err").read_bytes()


@contextmanager
def waiting(folder: Path, script: str, excluded: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
    """A script that ran once as it is, and the process that forks it."""
    (folder / "script.py").write_text(textwrap.dedent(script))
    what = program(str(folder / "script.py"), ("a", "--b"), module=False)
    ended, printed, loaded = record(folder, what)
    warm = Warm(what, excluded, folder)
    warm.load(loaded["modules"], loaded["environment"])
    try:
        yield what, ended, printed, warm
    finally:
        warm.close()


def test_a_fork_is_what_a_plain_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "target", "wanted")))
    with waiting(tmp_path, SCRIPT) as (what, plain, printed, warm):
        first, said, numbers = forked(tmp_path, what, warm)
        _, _, others = forked(tmp_path, what, warm)
    assert (warm.forks, plain.exit_code, first.exit_code) == (2, 7, 7)
    assert said == printed
    # torch's generator has the seed that the agent gives it, Python's is its own each time.
    assert numbers.split()[2] == others.split()[2]
    assert numbers.split()[3] != others.split()[3]
    # Threads sleep while they wait for work, and neither the script nor its children need know.
    assert numbers.split()[4:] == (tmp_path / "err").read_bytes().split()[4:] == [b"None", b"child", b"True"]
    # A run with a change of the script itself may be one of them: none of it has run.
    assert str(tmp_path / "script.py") in warm.excluded
    # A module in a folder that pip has installed it into is loaded already.
    assert numbers.split()[0] == b"True"


def test_how_a_fork_ends_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = (
        "import torch, os, sys, signal\nif os.path.exists('kill'): os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    with waiting(tmp_path, script + "if os.path.exists('raise'): 1 / 0\n") as (what, _, _, warm):
        assert forked(tmp_path, what, warm)[0].status == "ok"
        (tmp_path / "raise").touch()
        ended, _, errors = forked(tmp_path, what, warm)
        assert (ended.status, ended.exit_code) == ("script_error", 1)
        assert errors.decode().splitlines()[0] == "Traceback (most recent call last):"
        assert "breakscope" not in errors.decode().replace(str(tmp_path), "")
        (tmp_path / "kill").touch()
        assert forked(tmp_path, what, warm)[0].status == "killed"


def test_a_file_that_runs_patch_or_watch_is_loaded_by_each_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wave

    monkeypatch.chdir(tmp_path)
    script = "import sys\nprint('wave' in sys.modules)\nimport torch, wave"
    with waiting(tmp_path, script) as (what, _, _, warm):
        assert forked(tmp_path, what, warm)[1] == b"True\n"
    with waiting(tmp_path, script, [wave.__file__]) as (what, _, _, warm):
        assert forked(tmp_path, what, warm)[1] == b"False\n"


@pytest.mark.parametrize(
    ("watched", "before", "then"),
    [((), "True True\n", "True True\n"), (("wave",), "False False\n", "False True\n")],
)
def test_what_the_first_run_loads_is_loaded_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Sequence[str], before: str, then: str
) -> None:
    """Names go by a pipe while it runs, up to the first file that must not be loaded."""
    installed(tmp_path, monkeypatch, "slow", "import time; time.sleep(0.3)")
    script = (
        "import sys\nprint('wave' in sys.modules, 'slow' in sys.modules)\nimport torch, wave, slow, cgitb"
    )
    (tmp_path / "script.py").write_text(script)
    what = program(str(tmp_path / "script.py"), (), module=False)
    apart = [str(importlib.util.find_spec(name).origin) for name in watched]  # type: ignore[union-attr]
    warm = Warm(what, apart, tmp_path)
    try:
        warm.begin()
        _, _, loaded = record(tmp_path, what, apart, warm.told)
        assert forked(tmp_path, what, warm)[1].decode() == before
        warm.load(loaded["modules"], loaded["environment"])
        assert forked(tmp_path, what, warm)[1].decode() == then
        assert warm.trouble == ""
    finally:
        warm.close()


def test_a_module_that_cannot_be_looked_at_disturbs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
        import sys, time, types

        class Odd(types.ModuleType):
            def __getattr__(self, name):
                raise RuntimeError("not to be looked at")

        sys.modules["odd.part"] = sys.modules["odd"] = Odd("odd")
        time.sleep(0.3)
        """
    installed(tmp_path, monkeypatch, "odd", textwrap.dedent(text))
    (tmp_path / "script.py").write_text("import torch, odd, wave\nprint('to the end')")
    what = program(str(tmp_path / "script.py"), (), module=False)
    warm = Warm(what, (), tmp_path)
    try:
        warm.begin()
        ended, printed, loaded = record(tmp_path, what, (), warm.told)
    finally:
        warm.close()
    assert (ended.status, printed) == ("ok", b"to the end\n")
    assert "wave" in loaded["modules"]


@pytest.mark.nightly
def test_a_package_whose_import_leads_to_such_a_file_is_loaded_by_each_of_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it cannot be left: its parts hold the package, and what it registers it may register once."""
    monkeypatch.chdir(tmp_path)
    target = install(tmp_path / "target", "pack")
    parts = {
        "pack/__init__.py": "from pack import ops, models\ndef tracing():\n    return 'whole'\n",
        "pack/ops/__init__.py": "import torch\nfrom pack.ops import boxes\n"
        "torch.library.define('pack::clip', '(Tensor x) -> Tensor')\n",
        "pack/ops/boxes.py": "import pack\ndef clip():\n    return pack.tracing()\n",
        "pack/models/__init__.py": "from pack.models import changed\n",
        "pack/models/changed.py": "",
    }
    for name, text in parts.items():
        (target / name).parent.mkdir(exist_ok=True, parents=True)
        (target / name).write_text(text)
    files = "".join(f"{name},sha256=0,0\n" for name in parts)
    (target / "pack-1.0.dist-info" / "RECORD").write_text(files)
    (target / "pack.py").unlink()
    monkeypatch.setenv("PYTHONPATH", str(target))
    script = "import torch, pack\nprint(pack.ops.boxes.clip())\n"
    with waiting(tmp_path, script, [str(target / "pack/models/changed.py")]) as (what, _, printed, warm):
        ended, said, errors = forked(tmp_path, what, warm)
    assert (ended.status, errors) == ("ok", b"")
    assert said == printed == b"whole\n"


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
            "thread",
        ),
        pytest.param(
            "import subprocess\nsubprocess.Popen(['sleep', '60'])", "process", marks=pytest.mark.nightly
        ),
        (
            "import os, sys\n'script.py' in sys.argv[0] or os._exit(1)\nif os.fstat(1).st_rdev: os._exit(1)",
            "ended",
        ),
    ],
)
def test_where_no_fork_can_be_made_runs_are_started_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, why: str
) -> None:
    """The module is an installed one, and does what no fork survives when it is imported."""
    installed(tmp_path, monkeypatch, "awkward", module)
    with waiting(tmp_path, "import torch, awkward\nprint('done')") as (what, _, printed, warm):
        ended, said, _ = forked(tmp_path, what, warm)
    assert (ended.status, said) == ("ok", printed)
    assert why in warm.trouble
    assert warm.forks == 0


def test_without_torch_nothing_is_loaded_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with waiting(tmp_path, "print('done')") as (what, _, _, warm):
        assert forked(tmp_path, what, warm)[1] == b"done\n"
    assert "torch" in warm.trouble


def test_a_library_whose_threads_know_of_forks_keeps_none_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pandas loads pyarrow, whose memory is looked after by a thread of its own."""
    monkeypatch.chdir(tmp_path)
    script = """
        import torch, pandas, pyarrow
        from pathlib import Path
        names = {(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
        print("jemalloc_bg_thd" in names, pyarrow.array([1, 2, 3]).to_pandas().sum())
    """
    with waiting(tmp_path, script) as (what, _, printed, warm):
        ended, said, errors = forked(tmp_path, what, warm)
    assert (ended.status, errors, warm.forks) == ("ok", b"", 1)
    assert printed == b"True 6\n"
    assert said.endswith(b" 6\n")


NATIVE = """
import ctypes, os
from pathlib import Path
libc, tasks = ctypes.CDLL(None), Path("/proc/self/task")
before = set(os.listdir(tasks))
libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)
(new,) = set(os.listdir(tasks)) - before
(tasks / new / "comm").write_text("%s")
"""


@pytest.mark.parametrize(
    ("name", "forks"),
    [("cuda0000140000", 1), pytest.param("cudaworker", 0, marks=pytest.mark.nightly), ("worker", 0)],
)
def test_a_thread_of_the_gpus_driver_keeps_no_fork_away_that_can_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, forks: int
) -> None:
    """torch's question for a GPU leaves such a thread. Whether a fork computes beside it, a first one tries."""
    installed(tmp_path, monkeypatch, "native", NATIVE % name)
    with waiting(tmp_path, "import torch, native\nprint('done')") as (what, _, printed, warm):
        ended, said, _ = forked(tmp_path, what, warm)
        assert warm.trouble == ("" if forks else f"an import starts a thread that no fork has ({name})")
    assert (ended.status, said, warm.forks) == ("ok", printed, forks)


@pytest.mark.slow
def test_inductors_headers_are_compiled_beside_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that never compiled a kernel; the fork that does it keeps no other fork away."""
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("TMPDIR", str(kept))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("import torch\nprint('done')\n")
    what = program(str(tmp_path / "script.py"), (), module=False)
    warm = Warm(what, (), tmp_path)
    warm.load_first(("torch._inductor.compile_fx",))
    warm.begin()
    try:
        _, printed, loaded = record(tmp_path, what)
        warm.load(loaded["modules"], loaded["environment"])
        _, said, _ = forked(tmp_path, what, warm)
        assert (said, warm.forks, warm.trouble) == (printed, 1, "")
        for _ in range(1200):
            if headers := [*kept.glob("torchinductor_*/precompiled_headers/*.?ch")]:
                break
            time.sleep(0.1)
    finally:
        warm.close()
    assert headers
