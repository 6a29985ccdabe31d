"""Programs that each need a process of their own: they end, start others, or bring modules, and do so as under Python.

Each is run twice, by Python and by a scan; exit status, output, errors and the files that are left must be the same.
"""

from __future__ import annotations

import io
import json
import os
import pty
import py_compile
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from faithful.kinds import DIFFERENT, IN_EVERY_RUN, KINDS
from faithful.twice import World, reports, run, twice
from scanning import clean_environment, command, rows, run_cold

import breakscope

MAIN = (
    "import sys; print(sys.argv, __name__, __file__, __package__, type(__loader__).__name__, sys.path[:1])\n"
)

ENDS = {
    "falls off the end": "print('done')",
    "sys.exit with a number": "import sys; sys.exit(7)",
    "sys.exit with a text": "import sys; sys.exit('a text')",
    "sys.exit with 256": "import sys; sys.exit(256)",
    "sys.exit with minus one": "import sys; sys.exit(-1)",
    "os._exit": "import os; print('lost?', end=''); os._exit(9)",
    "an exception": "def f():\n    raise KeyError('k')\nf()",
    "an exception with a cause": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise OSError('x') from e",
    "an exception group": "raise ExceptionGroup('many', [ValueError(1), KeyError(2)])",
    "an exception in a thread": "import threading\nthreading.Thread(target=lambda: 1 / 0, name='t').start()",
    "an exception while exiting": "import atexit\natexit.register(lambda: 1 / 0)",
    "an exception in a finalizer": "class A:\n    def __del__(self):\n        1 / 0\nA()",
    "a hook of its own": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "a syntax error": "x = (\n",
    "a tab error": "if 1:\n\tx = 1\n        y = 2\n",
    "a bad encoding": b"# -*- coding: latin-1 -*-\nprint('\xe9')\n",
    "a byte order mark": b"\xef\xbb\xbfprint('marked')\n",
    "not UTF-8": b"print('\xff')\n",
    "an empty file": "",
    "a null byte in a text": "print(len('a\\0b'))",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "SIGABRT": "import os; os.abort()",
    "a real-time signal": "import os; os.kill(os.getpid(), 37)",
    "the last real-time signal": "import os, signal; os.kill(os.getpid(), signal.SIGRTMAX)",
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "too deep": "import sys\nsys.setrecursionlimit(50)\ndef f(): f()\nf()",
    "a warning": "import warnings\nwarnings.warn('careful')",
    "a deprecated thing": "def f():\n    import warnings\n    warnings.warn('old', DeprecationWarning, 2)\nf()",
    "an import that fails": "import no_such_module",
    "an import from a module that lacks it": "from os import no_such_name",
    "torch that cannot be imported": (
        "import torch",
        {"torch.py": "import json\nraise RuntimeError('no torch')\n"},
    ),
    "torch that warns": (
        "import torch",
        {"torch.py": "import warnings\nwarnings.warn('of the importer', stacklevel=2)\n"},
    ),
    "torch that is not torch": ("import torch\nprint(torch.x)", {"torch.py": "x = 5\n"}),
    "exit functions in order": "import atexit\n[atexit.register(print, i) for i in range(3)]",
    "output after a daemon": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    "output that is closed": "import sys\nsys.stdout.close()",
    "descriptors that are closed": "import os\nos.closerange(3, 1000)\nprint(os.open('f', os.O_CREAT))",
    "a replaced process": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(\"other\")'])",
    "a fork that exits": "import os, sys\npid = os.fork()\nprint(pid == 0, flush=True) if not pid else os.wait()\n",
    "a fork that runs exit functions": (
        "import atexit, os, sys\natexit.register(print, 'bye', flush=True)\n"
        "if not os.fork():\n    sys.exit(3)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"
    ),
    "a program that is not there": "import subprocess\nsubprocess.run(['no-such-program'])\n",
    "an orphan": "import os, time\nif not os.fork():\n    os.close(1); os.close(2); time.sleep(0.1)\n",
    "a full pipe": "import sys\nsys.stdout.buffer.write(b'x' * 1_000_000)",
    "a changed folder": "import os\nos.mkdir('sub'); os.chdir('sub'); open('f', 'w').close(); print(os.getcwd())",
    "standard input to its end": "import sys\nprint(sys.stdin.buffer.read())",
    "input()": "print(input('? '), input())",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nprint(asyncio.run(f()))",
    "an executor": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool:\n    print(list(pool.map(abs, [-1, 2])))"
    ),
    "a traced import": (
        "import sys\nseen = []\n"
        "sys.setprofile(lambda f, e, a: seen.append((e, f.f_code.co_name)))\n"
        "len('x')\nsys.setprofile(None)\nprint(seen)"
    ),
    "its own sitecustomize": ("import sitecustomize", {}),
    "its source": "import inspect, sys\nprint(inspect.getsource(sys.modules['__main__']))",
    "pdb": "import pdb, sys\nsys.stdin = open('commands')\npdb.set_trace()\nprint('after')\n",
    "timeit": "import timeit\nprint(timeit.timeit('pass', number=1) >= 0)",
    "doctest": "'''\n>>> 1 + 1\n2\n'''\nimport doctest\nprint(doctest.testmod())",
    "runpy": ("import runpy\nprint(runpy.run_path('other.py')['x'])", {"other.py": "x = __name__\n"}),
    "coverage by hand": "import trace\nt = trace.Trace(count=1, trace=0)\nt.run('x = 1')\nprint(len(t.results().counts))",
}
# A module in the script's folder, and what the script does with it: under Python it is what is imported.
BESIDE = (
    *(
        "abc_x",
        "argparse",
        "ast",
        "base64",
        "bisect",
        "calendar",
        "collections_x",
        "contextlib",
        "copy",
        "csv",
    ),
    *(
        "dataclasses",
        "datetime",
        "dis",
        "enum",
        "fnmatch",
        "functools",
        "glob",
        "hashlib",
        "heapq",
        "inspect",
    ),
    *(
        "ipaddress",
        "json",
        "keyword",
        "linecache",
        "logging",
        "mmap",
        "operator",
        "pathlib",
        "platform",
        "queue",
    ),
    *("random", "re", "reprlib", "secrets", "shutil", "signal", "socket", "statistics", "string", "struct"),
    *(
        "subprocess",
        "sysconfig",
        "tempfile",
        "textwrap",
        "threading",
        "token",
        "tokenize",
        "traceback",
        "types",
    ),
    *("typing", "urllib", "uuid", "warnings", "weakref", "zlib", "events", "settings", "imports", "report"),
)
STARTERS = {
    method: f"""
import multiprocessing, os, sys

def work(x):
    return [x * x, [n for n in sys.modules if n.startswith("breakscope")], sorted(os.environ) == NAMES]

NAMES = sorted(os.environ)
if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print(pool.map(work, range(4)))
"""
    for method in ("fork", "spawn", "forkserver")
}


QUICK = (
    "sys.exit with a number",
    "an exception",
    "SIGTERM",
    "os._exit",
    "a replaced process",
    "a traced import",
)
# Others of a kind that every run has; at night.
NIGHTLY = (
    *(
        "sys.exit with 256",
        "sys.exit with minus one",
        "an exception with a cause",
        "an exception group",
        "asyncio",
    ),
    *("a tab error", "a byte order mark", "not UTF-8", "an empty file", "a null byte in a text", "SIGABRT"),
    *("the last real-time signal", "a deprecated thing", "an import from a module that lacks it", "timeit"),
    *(
        "doctest",
        "an executor",
        "exit functions in order",
        "its source",
        "coverage by hand",
        "runpy",
        "input()",
    ),
)


def same(folder: Path, words: list[str], world: World) -> None:
    plain, scanned = twice(folder, words, world)
    assert scanned == plain
    assert "latest.json" in reports(folder)


@pytest.mark.parametrize("name", rows(ENDS, ENDS.keys() - NIGHTLY, QUICK))
def test_a_script_ends_and_says_what_it_would(tmp_path: Path, name: str) -> None:
    source = ENDS[name]
    source, more = source if isinstance(source, tuple) else (source, {})
    files = {"script.py": source, "commands": "where\np 1 + 1\nc\n", **more}
    same(tmp_path, ["script.py"], World(stdin=b"first\nsecond\n", files=files))


@pytest.mark.parametrize("name", rows(KINDS, IN_EVERY_RUN, ()))
def test_a_program_of_each_kind_does_what_it_would(tmp_path: Path, name: str) -> None:
    source = KINDS[name]
    source, more = source if isinstance(source, tuple) else (source, {})
    same(tmp_path, ["script.py"], World(stdin=b"first\nsecond\n", files={"script.py": source, **more}))


@pytest.mark.nightly
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_documented_to_differ_does(tmp_path: Path, name: str) -> None:
    plain, scanned = twice(tmp_path, ["script.py"], World(files={"script.py": DIFFERENT[name]}))
    assert scanned.code == plain.code
    assert scanned != plain


def test_modules_beside_the_script_are_the_ones_that_it_gets(tmp_path: Path) -> None:
    wanted = [name for name in BESIDE if name not in sys.builtin_module_names]
    source = "import sys\n" + "".join(f"import {name}; print({name}.__file__)\n" for name in wanted)
    world = World(files={"script.py": source, **{f"{name}.py": "" for name in wanted}})
    # As the installed command is: "python -m" has Python itself import from the current folder.
    (tmp_path / "installed.py").write_text("from breakscope.cli import main\nraise SystemExit(main())\n")
    plain = run(tmp_path, [sys.executable, "script.py"], world)
    scan = [sys.executable, str(tmp_path / "installed.py"), "scan", "-q", "script.py"]
    assert run(tmp_path, scan, world) == plain
    assert plain.stdout.decode().split() == [str(tmp_path / "here" / f"{name}.py") for name in wanted]


@pytest.mark.parametrize("method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.nightly)])
def test_workers_of_multiprocessing_are_pythons_own(tmp_path: Path, method: str) -> None:
    same(tmp_path, ["script.py"], World(files={"script.py": STARTERS[method]}))


# ---- kinds of scripts ----


def _zip(first_line: bytes = b"") -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("__main__.py", MAIN + "import beside; print(beside.__file__)\n")
        archive.writestr("beside.py", "")
    return first_line + data.getvalue()


def _compiled(folder: Path) -> bytes:
    (folder / "source.py").write_text(MAIN)
    return Path(str(py_compile.compile(str(folder / "source.py"), str(folder / "x.pyc")))).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "files"),
    [
        (["app.pyz", "a"], {"app.pyz": _zip()}),
        (["app.pyz"], {"app.pyz": _zip(b"#!/usr/bin/env python3\n")}),
        (["archive"], {"archive": _zip()}),
        (["folder", "-x"], {"folder/__main__.py": MAIN}),
        (["folder/"], {"folder/__main__.py": MAIN}),
        (["./sub/../script.py"], {"script.py": MAIN, "sub/x": ""}),
        (["sub/script.py"], {"sub/script.py": MAIN}),
        (["with space.py"], {"with space.py": MAIN}),
        (["ñ.py"], {"ñ.py": MAIN}),
        (["no_ending"], {"no_ending": MAIN}),
        (["-m", "pkg"], {"pkg/__init__.py": "print('init')\n", "pkg/__main__.py": MAIN}),
        (["-m", "pkg.mod", "-m", "-c"], {"pkg/__init__.py": "", "pkg/mod.py": MAIN}),
        (["-m", "space.mod"], {"space/mod.py": MAIN}),
        (["-m", "json.tool", "x.json"], {"x.json": "[1]"}),
    ],
    ids=" ".join,
)
def test_every_kind_of_script_runs(tmp_path: Path, words: list[str], files: dict[str, str | bytes]) -> None:
    same(tmp_path, words, World(files=files))


def test_a_compiled_script_runs(tmp_path: Path) -> None:
    same(tmp_path, ["script.pyc"], World(files={"script.pyc": _compiled(tmp_path)}))


def test_a_script_from_a_pipe_runs(tmp_path: Path) -> None:
    world = World(files={"script.py": MAIN}, shell='exec 8< script.py; "$@" /dev/fd/8 a; exit $?')
    same(tmp_path, [], world)


def test_a_config_from_a_process_substitution_is_read(tmp_path: Path) -> None:
    source = "import sys; print(open(sys.argv[1]).read())"
    world = World(files={"script.py": source}, shell='"$@" <(echo lr=1); exit $?')
    same(tmp_path, ["script.py"], world)


@pytest.mark.parametrize(
    ("words", "part"),
    [(["-c", "print(1)"], "write it to a file"), (["-"], "write it to a file")],
)
def test_code_that_is_no_file_is_told_what_to_do(tmp_path: Path, words: list[str], part: str) -> None:
    ran = run(tmp_path, command("scan", *words), World())
    assert ran.code == 2
    assert ran.stderr.count(b"\n") == 1
    assert part in ran.stderr.decode()


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_options_that_keep_us_out_are_refused_in_one_sentence(tmp_path: Path, option: str) -> None:
    words = [sys.executable, option, "-m", "breakscope", "scan", "s.py"]
    if option != "-S":
        ran = run(tmp_path, words, World(files={"s.py": "print('ran')"}))
        assert (ran.code, ran.stdout) == (2, b"")
        assert "leave them out" in ran.stderr.decode()


# ---- a world that changes under it ----


@pytest.mark.parametrize("again", ["", "os.mkdir(here)"])
def test_a_working_folder_that_vanishes_or_is_replaced_costs_no_report(tmp_path: Path, again: str) -> None:
    source = f"import os, shutil\nhere = os.getcwd()\nshutil.rmtree(here)\n{again}\nprint('ran')"
    ran = run(tmp_path, command("scan", "-q", "script.py"), World(files={"script.py": source}))
    assert (ran.code, ran.stdout, ran.stderr) == (0, b"ran\n", b"")
    assert breakscope.load(tmp_path / "here/.breakscope/latest.json").run.status == "ok"


def test_files_that_may_not_grow_cost_counts_and_not_the_run(tmp_path: Path) -> None:
    world = World(files={"script.py": "print('ran')"}, shell='ulimit -f 32; "$@"; exit $?')
    ran = run(tmp_path, command("scan", "-q", "script.py"), world)
    assert (ran.code, ran.stdout) == (0, b"ran\n")
    notes = breakscope.load(tmp_path / "here/.breakscope/latest.json").run.notes
    assert any(note.startswith("what was counted is lost") for note in notes)


def test_a_folder_that_vanished_and_cannot_be_made_again_sends_the_report_elsewhere(tmp_path: Path) -> None:
    source = "import os, shutil\nshutil.rmtree('.breakscope')\nopen('.breakscope', 'w').close()\nprint('ran')"
    ran = run(tmp_path, command("scan", "-q", "script.py"), World(files={"script.py": source}))
    assert (ran.code, ran.stdout) == (2, b"ran\n")
    elsewhere = Path(ran.stderr.decode().strip().rpartition("it is in ")[2])
    assert breakscope.load(elsewhere).run.status == "ok"
    shutil.rmtree(elsewhere.parent)


# ---- our own process is killed ----


def test_a_killed_scan_is_taken_up(tmp_path: Path) -> None:
    source = "import os, time\nopen('began', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.02)\n"
    (tmp_path / "script.py").write_text(source + "open('ended', 'w').close()\n")

    def report(*words: str) -> subprocess.CompletedProcess[str]:
        return run_cold(*words, folder=tmp_path)

    scan = subprocess.Popen(
        command("scan", "-q", "script.py", "an argument"), cwd=tmp_path, env=clean_environment()
    )
    wait_for(tmp_path / "began")
    scan.kill()
    scan.wait()
    early = report("report", "--recover")
    assert early.returncode == 2
    assert "still runs" in early.stderr
    (tmp_path / "go").touch()
    wait_for(tmp_path / "ended")  # the script is not ended with us
    deadline = time.monotonic() + 20
    while (late := report("report", "--recover")).returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    assert late.returncode == 0, late.stderr
    found = breakscope.load(tmp_path / ".breakscope" / "latest.json").run
    assert (found.script, found.argv, found.status) == ("script.py", ("an argument",), "unknown")
    assert any("breakscope was killed" in note for note in found.notes)
    assert not list((tmp_path / ".breakscope").glob(".run-*"))
    assert "no scan was cut off" in report("report", "--recover").stderr


def test_the_next_scan_offers_what_a_killed_one_left(tmp_path: Path) -> None:
    left = tmp_path / ".breakscope" / ".run-killed"
    left.mkdir(parents=True)
    (left / "held").touch()
    noted = {"script": "other.py", "argv": [], "cwd": "/", "roots": [], "backend": "eager", "mode": None}
    (left / "scan.json").write_text(json.dumps({**noted, "started_at": "2026-01-01T00:00:00+00:00"}))
    nothing = tmp_path / ".breakscope" / ".run-of-a-fix"
    nothing.mkdir()
    (nothing / "held").touch()
    (tmp_path / "script.py").write_text("print('ran')")
    done = run_cold("scan", "script.py", folder=tmp_path, check=True)
    assert "a scan of other.py was killed" in done.stderr
    assert "breakscope report --recover" in done.stderr
    assert left.exists()
    assert not nothing.exists()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name}"
        time.sleep(0.02)


# ---- a terminal ----


@pytest.mark.parametrize("options", [["-q"], []])
def test_a_terminal_is_a_terminal(tmp_path: Path, options: list[str]) -> None:
    source = "import os, sys; print([os.isatty(n) for n in range(3)], os.get_terminal_size(1).columns > 0, input())"
    (tmp_path / "script.py").write_text(source)
    shown = [
        on_terminal(tmp_path, [*words, "script.py"])
        for words in ([sys.executable], command("scan", "-q", *options))
    ]
    assert shown[0] == shown[1]


def on_terminal(folder: Path, words: list[str]) -> str:
    master, slave = pty.openpty()
    process = subprocess.Popen(words, cwd=folder, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    os.write(master, b"typed\n")
    data = b""
    try:
        while piece := os.read(master, 65536):
            data += piece
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(30) == 0, data
    return data.decode()
