"""A process that has imported torch, and forks into `python SCRIPT` or `breakscope` in a few milliseconds.

Run as a program by :class:`warm.Warm`: it listens on a socket, takes a request, as JSON, and two descriptors, and forks.
It knows nothing of breakscope unless it is told to preload it.

A fork is as near to a fresh `python SCRIPT` as can be: `__main__`, argv, path, environment and descriptors are those of
a fresh process, the generators are where a fresh torch has them, and it ends as Python ends.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import fcntl
import gc
import importlib
import importlib.machinery
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

HERE = os.path.realpath(__file__)
# What the first compile, with a break and a backward, imports on top of torch: found in a fork, so that the state of
# Dynamo in this process stays that of a fresh one.
FIRST_COMPILE = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        print("", end="")
        return torch.where(x.sum() > 0, self.lin(x), x)
net = torch.compile(Net(), backend="eager")
for size in (2, 3, 4):
    net(torch.ones(size, 3)).sum().backward()
torch.func.vmap(torch.compile(lambda x: x * 2, backend="eager"))(torch.ones(2, 3))
"""
# The variable with the faults that a fork plants in itself; its own forks inherit it.
FAULTS = "PLANTED_FAULTS"
TORCH = "torch"
# For the memory of the warm process and its forks, where Linux gives large pages to who asks for them: each compile
# fills 32 MB to empty the CPU's caches before Dynamo times its guards, which takes a third of it page by page.
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
# Run by name: a module that is there already would be a warning.
RUN_BY_NAME = ("breakscope.inside.capture.compare_outputs", "breakscope.__main__")


# -- a fork as a fresh Python -------------------------------------------------------------------------------------


def be_fresh(words: Sequence[str], environment: Mapping[str, str]) -> types.ModuleType:
    """Make this process what `python WORDS` is before its first line. Returns the new ``__main__``."""
    os.environ.clear()
    os.environ.update(environment)
    sys.excepthook = sys.__excepthook__
    _begin_logs(environment)
    _start_the_agent(environment)
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    if words[0] == "-m":
        sys.argv[:] = words[1:]
        sys.path.insert(0, os.getcwd())
        return main
    path = os.path.abspath(words[0])
    sys.argv[:] = words
    sys.path.insert(0, os.path.dirname(path))
    main.__file__ = path
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    return main


def _begin_logs(environment: Mapping[str, str]) -> None:
    """Where variables ask torch for logs and traces, it reads them when it is imported."""
    if any(name.startswith(("TORCH_TRACE", "TORCH_LOGS")) for name in environment):
        from torch._logging import _internal

        _internal.LOG_TRACE_HANDLER = None  # it knows the folder
        _internal._init_logs()


def _start_the_agent(environment: Mapping[str, str]) -> None:
    """What Python itself does at its start: a `sitecustomize` of PYTHONPATH is imported."""
    folders = [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:0] = folders
    if any(os.path.isfile(os.path.join(one, "sitecustomize.py")) for one in folders):
        sys.modules.pop("sitecustomize", None)
        try:
            importlib.import_module("sitecustomize")
        except ImportError as error:  # ours says that it stands in front of none, which Python's site takes
            if error.name != "sitecustomize":
                raise


def leave_what_was_there(modules: Mapping[str, types.ModuleType]) -> None:
    """At the very end: Python would take torch apart, module by module, which takes ten times as long as a fork.

    What the script itself has imported, and its `__main__`, are taken apart as ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(modules))  # for ever
    for name in modules:
        sys.modules.pop(name, None)
    libc = ctypes.CDLL(None)
    with contextlib.suppress(
        AttributeError
    ):  # glibc alone has it; elsewhere the libraries are taken apart too
        libc.on_exit(libc._exit, None)
    if RETURNED and _flushed():
        sys.__dict__["the last of all"] = Last(libc.exit)


class Last:
    """The last that Python takes apart before itself: the process ends there, with the status of a script that returned.

    Behind it, Python writes into each string that it has ever interned, and into each type: a copy of most pages
    that the fork has from its parent, for nothing that a script could see.
    """

    def __init__(self, end: Callable[[int], Any]) -> None:
        self._end = end

    def __del__(self) -> None:
        self._end(0)


def _flushed() -> bool:
    """Where the streams cannot be flushed, Python says so in its exit status, and does that by itself."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def end_of_commands(code: int) -> NoReturn:
    """What the end of Python does that one can see, and no more: what commands hold in memory is taken apart by none."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit.unregister(leave_what_was_there)
    atexit._run_exitfuncs()
    if not _flushed():
        raise SystemExit(code)
    os._exit(code)


def code_of(path: str) -> types.CodeType:
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


# -- asking for a fork --------------------------------------------------------------------------------------------


class Forked:
    """As much of Popen as a waiting parent asks for. The fork is a child of the warm process, which says how it ends.

    Args:
        request: ``words`` of python or ``commands`` of breakscope, ``cwd``, ``environment``, for one fork.
        stdout, stderr: descriptors; None for nowhere. kept: those that it has by the same numbers.
    """

    def __init__(
        self,
        place: str,
        request: dict[str, Any],
        stdout: int | None,
        stderr: int | None,
        kept: Sequence[int] = (),
    ) -> None:
        self.returncode: int | None = None
        null = os.open(os.devnull, os.O_RDWR)
        outs = [null if one is None else one for one in (stdout, stderr)]
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(place)
        order = {**request, "descriptors": [1, 2, *kept]}
        socket.send_fds(self._socket, [json.dumps(order).encode() + b"\n"], [*outs, *kept])
        os.close(null)
        self._answers = self._socket.makefile()
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._socket], [], [], timeout)[0]:
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._socket.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)


class ForkingSubprocess:
    """Stands in the place of the module `subprocess` in modules that start Python: they get a fork.

    Args:
        outs: where the output goes of a process for which nothing is said; None for nowhere.
    """

    def __init__(self, place: str, outs: tuple[int | None, int | None]) -> None:
        self._place, self._outs = place, outs

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, command: Sequence[str], **options: Any) -> Any:  # noqa: N802 -- the name in subprocess
        if command[0] != sys.executable:
            return subprocess.Popen(command, **options)
        environment = dict(options.pop("env", None) or os.environ)
        named = options.pop("stdout", None), options.pop("stderr", None)
        outs = [ours if out is None else out for out, ours in zip(named, self._outs, strict=True)]
        for name in ("close_fds", "start_new_session"):  # those of the warm process, and always a new one
            options.pop(name, None)
        assert options.pop("stdin", subprocess.DEVNULL) == subprocess.DEVNULL
        kept = options.pop("pass_fds", ())
        assert not options, f"a fork has no {', '.join(options)}"
        request = {"words": list(command[1:]), "cwd": os.getcwd(), "environment": environment}
        return Forked(self._place, request, *outs, kept=kept)

    def run(self, command: Sequence[str], **options: Any) -> Any:
        if command[0] != sys.executable:
            return subprocess.run(command, **options)  # noqa: PLW1510 -- as the caller asked
        assert options.pop("check", False) is False, "a fork is not checked"
        assert options.pop("capture_output", False), "a fork is for what captures its output"
        text = options.pop("text", False)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self.Popen(command, stdout=out.fileno(), stderr=err.fileno(), **options).wait()
            read = [_content(one).decode() if text else _content(one) for one in (out, err)]
        return subprocess.CompletedProcess(command, code, *read)


def _content(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())


# -- the warm process ---------------------------------------------------------------------------------------------


def run_commands(request: dict[str, Any], place: str) -> int:
    """Run command lines of breakscope, one after the other; where torch is loaded, each child of theirs is a fork."""
    from breakscope.cli import main
    from breakscope.run import launch, trial

    if "torch" in sys.modules:
        outs = (1, 2) if request["bare"] else (None, None)
        launch.subprocess = trial.subprocess = ForkingSubprocess(place, outs)  # type: ignore[assignment]
    if request["bare"]:
        [words] = request["commands"]
        sys.argv[1:] = words
        sys.path.insert(0, os.getcwd())  # as `python -m breakscope` has it
        return main(words)
    code = 0
    for words in request["commands"]:
        print(f"$ breakscope {' '.join(words)}")
        code = main(words)
        print(f"exit status {code}")
    return code


def plant(target: str, replacement: str) -> None:
    """Put ``planted_faults.REPLACEMENT(original)`` in the place of ``module:Class.attribute``."""
    import planted_faults

    module, _, path = target.partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for one in owners:
        owner = getattr(owner, one)
    original = owner.__dict__[name]
    setattr(owner, name, getattr(planted_faults, replacement)(original))


def serve(place: str) -> dict[str, Any] | None:
    """Fork for each that asks. Returns its request in a fork, and None here once stdin is closed."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen()
    running: dict[int, socket.socket] = {}
    print("ready", file=os.fdopen(os.dup(READY), "w"), flush=True)
    while True:
        # A short wait where a fork may end, which is what costs.
        ready = select.select([server, ALIVE], [], [], 0.003 if running else None)[0]
        for pid in list(running):
            _tell_the_end(running, pid)
        if ALIVE in ready:
            return None
        if server not in ready:
            continue
        connection = server.accept()[0]
        request, outs = _request(connection)
        pid = os.fork()
        if not pid:
            _take_over(outs, request["descriptors"], [server, connection, *running.values()])
            return request
        for one in outs:
            os.close(one)
        running[pid] = connection
        connection.sendall(f"{pid}\n".encode())


def _tell_the_end(running: dict[int, socket.socket], pid: int) -> None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        connection = running.pop(pid)
        with contextlib.suppress(OSError):  # who asked may be gone
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        connection.close()


def _request(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    data, outs, _, _ = socket.recv_fds(connection, 1 << 16, 8)
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 16)
    return json.loads(data), list(outs)


def _take_over(outs: Sequence[int], numbers: Sequence[int], sockets: Sequence[socket.socket]) -> None:
    """In a fork: a session of its own, its own descriptors by their numbers, and none of the warm process."""
    os.setsid()
    for one in sockets:
        one.close()
    os.close(ALIVE)
    os.close(READY)
    # First out of the way of the numbers: one may be another's.
    moved = [fcntl.fcntl(out, fcntl.F_DUPFD, max(numbers) + 1) for out in outs]
    for out in outs:
        os.close(out)
    for out, number in zip(moved, numbers, strict=True):
        os.dup2(out, number)
        os.close(out)


def preload(packages: Sequence[str]) -> None:
    """Import all of some packages; where torch is the first of them, also what the first compile imports."""
    if TORCH not in packages:
        import_modules(packages, left_out=(".boot", ".inside."))
        return
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    import_modules(packages[1:], left_out=(".boot",))
    for name in _modules_of_a_compile():
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    with contextlib.suppress(AttributeError):  # reads what every installed package offers, once in a process
        torch._dynamo.backends.registry._lazy_import()


def import_modules(packages: Sequence[str], left_out: Sequence[str]) -> None:
    for package in packages:
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if module.name not in RUN_BY_NAME and not any(part in module.name for part in left_out):
                with contextlib.suppress(ImportError):  # what is optional
                    importlib.import_module(module.name)


def _modules_of_a_compile() -> list[str]:
    text = FIRST_COMPILE + "import sys\nprint(*sorted(sys.modules))\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return [one for one in done.stdout.split() if one not in sys.modules]


def prepared(place: str, packages: Sequence[str]) -> None:
    # A script has its own folder there, not ours; planted faults are found all the same.
    folder = os.path.dirname(HERE)
    if TORCH in packages[:-1]:
        importlib.import_module("planted_faults")
    sys.path[:] = [one for one in sys.path if os.path.realpath(one or ".") != folder]
    preload(packages)
    gc.collect()
    gc.freeze()


# The end of a script is Python's own: nothing of ours stands around it, and no `try` that might catch what it raises.
if __name__ == "__main__":
    WARM: dict[str, types.ModuleType] = {}
    RETURNED: list[bool] = []  # of a script that returns; what it raises, Python has the status of
    atexit.register(leave_what_was_there, WARM)  # the first to be registered is the last to be called
    ALIVE, READY = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    for NAME, VALUE in LARGE_PAGES.items():
        if os.environ.get(NAME) == VALUE:
            del os.environ[NAME]  # no fork's business, nor of what it starts
    PLACE = sys.argv[1]
    prepared(PLACE, sys.argv[2:])
    WARM.update((name, module) for name, module in sys.modules.items() if name != "__main__")
    # What the parent removes at its exit is not a fork's to remove.
    OURS, weakref.finalize._registry = weakref.finalize._registry, {}  # type: ignore[attr-defined]
    JOB = serve(PLACE)
    if JOB is None:
        weakref.finalize._registry = OURS  # type: ignore[attr-defined]
        raise SystemExit
    os.chdir(JOB["cwd"])
    for FAULT in json.loads(JOB["environment"].get(FAULTS, "[]")):
        plant(*FAULT)
    if "commands" in JOB:
        os.environ.update(JOB["environment"])
        end_of_commands(run_commands(JOB, PLACE))
    MAIN = be_fresh(JOB["words"], JOB["environment"])
    if JOB["words"][0] == "-m":
        runpy._run_module_as_main(JOB["words"][1])  # type: ignore[attr-defined]
    else:
        exec(code_of(MAIN.__file__), MAIN.__dict__)
    RETURNED.append(True)
