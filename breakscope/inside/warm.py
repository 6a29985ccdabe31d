"""The agent of a process that waits: it has loaded what the script will import, and forks on request.

Python itself is on its way to run ``python SCRIPT ARGS`` and stands where it imports ``sitecustomize``: there
this agent loads modules, and waits. A fork starts the agent that it was asked for, returns, and Python goes
on to the script, which is the real ``__main__`` of a real Python with no frame of ours above it. The
process that waits never gets that far.

Only installed modules are loaded, and only such as a plain run of the script has imported; none of a file
that is to be patched or watched, nor what imports one. No fork is made of a process that has children, or
threads that do not know of forks, or whose forks cannot use the GPU: then the answer says why, and every run
starts as any Python does.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.machinery
import json
import os
import re
import select
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from breakscope.inside import loaded

# Makes torch.cuda.is_available() ask without a driver call, which no fork would survive.
_ASK_GENTLY = "PYTORCH_NVML_BASED_CUDA_CHECK"
# What Python itself sets while it starts, where the locale is C.
_PYTHONS = ("LC_CTYPE",)
# Loads the compiler of the GPU's kernels.
_INDUCTOR = "torch._inductor.compile_fx"
# What torch.compile loads when it is first called, and what it loads when it first compiles something.
_DYNAMO = (
    "torch._dynamo", "torch._dynamo.convert_frame", "torch._dynamo.backends.debugging",
    "torch._dynamo.repro.after_dynamo", "torch._dynamo.backends.distributed", "torch.export._trace",
    "torch.distributed.tensor.experimental._attention", "sympy.tensor.tensor", "sympy.sets.setexpr",
)  # fmt: skip
# Threads whose library stops them before a fork and starts them again in it: jemalloc's, of pyarrow, which
# pandas loads, and with it nearly everything that reads data.
_KNOW_FORKS = frozenset({"jemalloc_bg_thd"})
# Threads of a GPU's driver, started by the question whether there is a GPU: they keep no fork from computing
# on one, if a first fork has shown that it can, in this time.
_DRIVERS = re.compile(r"cuda[0-9a-f-]")
_TRIAL_S = 60
_HEADERS_S = 120
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
# What most forks are made for: with these come nearly all modules of ours that they load.
_AGENTS = (
    "breakscope.inside.capture.agent", "breakscope.inside.capture.dynamo",
    "breakscope.inside.capture.compare_outputs", "breakscope.inside.prove.agent",
    "breakscope.inside.prove.session",
)  # fmt: skip


def start(settings_text: str) -> None:
    """Called by the boot file. Returns in forks only.

    Args:
        settings_text: JSON: ``control``: descriptor of the socket that requests come by; ``excluded``: files
            that must not be loaded; ``environment``: variables that the script changes before it imports
            torch; ``told``: the pipe by which the first run tells what it has loaded, or "".
    """
    settings = json.loads(settings_text)
    waiting = _Waiting(settings)
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run that is under way is told, not this
    request = waiting.serve()
    signal.signal(signal.SIGINT, interrupt)
    _begin(request)


def _begin(request: Mapping[str, Any]) -> None:
    """In a fork: what a new process has at this point."""
    coerced = {name: os.environ[name] for name in _PYTHONS if name in os.environ}
    os.environ.clear()
    os.environ.update({**coerced, **request["environment"]})
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()  # of its own, as that of a new process; Python's does it by itself
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    sys.modules["sitecustomize"].begin_in_fork(request["agent"])


class _NotNow(BaseException):
    """An import led to a file that must be loaded by the run itself."""


class _Excluded:
    """Stands in front of ``sys.meta_path`` while modules are loaded."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = {os.path.realpath(one) for one in files}
        self._stems = {loaded.stem(one) for one in self._files}
        self._packages: set[str] = set()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        """As import asks."""
        if fullname in self._packages:
            raise _NotNow(fullname)
        if fullname.rpartition(".")[2] in self._stems:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is not None and os.path.realpath(spec.origin or "") in self._files:
                raise _NotNow(fullname)

    def add_packages(self, modules: Mapping[str, str | None]) -> None:
        """Leave out packages whose own import leads to such a file: half of it cannot always be done twice.

        Args:
            modules: file by name, in the order in which they were whole: such a package is behind its part.
        """
        places = {name: place for place, name in enumerate(modules)}
        for name, file in modules.items():
            if file is None or os.path.realpath(file) not in self._files:
                continue
            parts = name.split(".")
            above = [".".join(parts[:count]) for count in range(1, len(parts))]
            self._packages.update(one for one in above if places.get(one, -1) > places[name])


class _Waiting:
    """The process that waits.

    Attributes:
        trouble: why no fork can be made of it; "" as long as one can.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._control = socket.socket(fileno=settings["control"])
        self._excluded = _Excluded(settings["excluded"])
        # For reading and writing: a pipe without a writer would be at its end all the time.
        self._told = os.open(settings["told"], os.O_RDWR | os.O_NONBLOCK) if settings["told"] else None
        self._running: dict[int, tuple[int, socket.socket]] = {}  # pidfd -> pid and who waits for it
        self._half_told = b""  # a name whose end is not read yet
        self._tested_beside: set[str] | None = None  # threads of drivers, beside which a fork used the GPU
        self.trouble = ""
        os.set_inheritable(self._control.fileno(), False)
        for name, value in settings["environment"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        os.environ[_ASK_GENTLY] = "1"

    def serve(self) -> dict[str, Any]:
        """Answer requests. Returns in a fork, with what it is to do; ends when nobody can ask any more."""
        while True:
            control = self._control.fileno()
            told = [] if self._told is None else [self._told]
            ready = select.select([control, *told, *self._running], [], [])[0]
            for pidfd in [one for one in ready if one in self._running]:
                self._tell_the_end(pidfd)
            if self._told in ready:
                self._load_what_is_told(self._told)
            if control not in ready:
                continue
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 3)
            if not data:
                os._exit(0)
            request = json.loads(Path(json.loads(data)["request"]).read_text(encoding="utf-8"))
            if "modules" in request:
                self._load(request["modules"])
                self._control.send(json.dumps({"trouble": self.trouble}).encode())
            elif self._fork(*descriptors):
                return dict(request)

    # ---- forks ----

    def _fork(self, out: int, err: int, channel: int) -> bool:
        """Whether this is the fork."""
        waits = socket.socket(fileno=channel)
        pid = os.fork()
        if pid:
            os.close(out)
            os.close(err)
            self._running[os.pidfd_open(pid)] = pid, waits
            waits.send(f"{pid}\n".encode())
            return False
        os.dup2(out, 1)
        os.dup2(err, 2)
        for pidfd, (_, other) in self._running.items():
            os.close(pidfd)
            other.close()
        for one in (self._control, waits):
            one.close()
        os.close(out)
        os.close(err)
        if self._told is not None:
            os.close(self._told)
        return True

    def _tell_the_end(self, pidfd: int) -> None:
        pid, waits = self._running.pop(pidfd)
        status = os.waitpid(pid, 0)[1]
        os.close(pidfd)
        with contextlib.suppress(OSError):  # who asked may be gone
            waits.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        waits.close()

    # ---- loading ----

    def _load_what_is_told(self, pipe: int) -> None:
        """Load modules that the first run has loaded by now. What comes of it is judged once it is over."""
        self._half_told += os.read(pipe, 1 << 16)
        *names, self._half_told = self._half_told.split(b"\n")
        sys.meta_path.insert(0, self._excluded)
        try:
            for name in names:
                self._import(name.decode())
        finally:
            sys.meta_path.remove(self._excluded)

    def _load(self, modules: Mapping[str, str | None]) -> None:
        self._excluded.add_packages(modules)
        sys.meta_path.insert(0, self._excluded)
        if _INDUCTOR in modules:
            self._tested_beside = None
        try:
            for name in (*modules, *(_DYNAMO if "torch" in modules else ())):
                if not self.trouble and name not in sys.modules:
                    self._import(name)
            if "torch" in modules and not self.trouble:
                sys.modules["sitecustomize"].load_apart(_AGENTS)
            if _INDUCTOR in modules and not self.trouble and not _finds_a_gpu():
                if _has_headers():
                    _ask_the_compiler()
                else:
                    self._prepare_headers()
        finally:
            sys.meta_path.remove(self._excluded)
        for name, file in modules.items():
            ours = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", file)
            if file is not None and ours != file:
                self.trouble = self.trouble or f"{name} is another one in the script"
        self.trouble = self.trouble or self._not_forkable()
        # What is loaded stays in any case: a fork that ends need not look through it, which takes a second.
        gc.freeze()

    def _prepare_headers(self) -> None:
        """Have a fork of its own compile what all of Inductor's C++ kernels begin with.

        On a machine that compiled none before, it takes as long as ten kernels.
        """
        nobody, waits = socket.socketpair()
        nobody.close()
        pid = os.fork()
        if pid:
            self._running[os.pidfd_open(pid)] = pid, waits
            return
        for one in (self._control, waits, *(other for _, other in self._running.values())):
            one.close()
        _compile_something()

    def _import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except (_NotNow, Exception):  # noqa: BLE001 -- the run imports it itself, and is told what is wrong
            # What was loaded on the way is whole, but for parts of packages that are not there now: they hold
            # the package that was broken off. A package that is whole stands behind its parts.
            for module in list(sys.modules):
                parts = module.split(".")
                if any(".".join(parts[:count]) not in sys.modules for count in range(1, len(parts))):
                    sys.modules.pop(module, None)

    def _not_forkable(self) -> str:
        if threading.active_count() > 1:
            names = [one.name for one in threading.enumerate() if one is not threading.main_thread()]
            return f"an import starts a thread ({names[0]})"
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            return "an import uses the GPU"
        gc.collect()
        drivers = {one for one in _threads() if _DRIVERS.match(one)}
        tested = self._tested_beside is not None and drivers <= self._tested_beside
        pid = os.fork()
        if not pid:
            signal.alarm(_TRIAL_S)
            os._exit(_uses_the_gpu() if not tested else 0)
        if os.waitpid(pid, 0)[1]:
            return "a fork cannot use the GPU"
        self._tested_beside = drivers
        # Libraries of linear algebra end their threads before a fork, and start them again when asked.
        if missing := sorted(_threads() - drivers - _KNOW_FORKS):
            return f"an import starts a thread that no fork has ({missing[0]})"
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        running = {str(pid) for pid, _ in self._running.values()}
        if children.exists() and set(children.read_text().split()) - running:
            return "an import starts a process"
        return ""


def _ask_the_compiler() -> None:
    """Have Inductor find out, once for all forks, which instructions the C++ compiler and the processor know.

    It compiles a small program for each kind and loads it in a process of its own.
    """
    with contextlib.suppress(Exception):  # each run finds out by itself then
        known = importlib.import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list
        known()
        # What was found for each kind is kept; which of them are used may be set by the script.
        known.cache_clear()


def _finds_a_gpu() -> bool:
    torch = sys.modules.get("torch")
    return torch is None or torch.cuda.is_available()


def _has_headers() -> bool:
    """Whether Inductor compiled the headers of its C++ kernels before, or never does."""
    folder = getattr(sys.modules.get("torch._inductor.codecache"), "_HEADER_DIR", None)
    return folder is None or any(Path(folder).glob("*.?ch"))


def _compile_something() -> None:
    """In a fork that ends thereafter: what Inductor keeps of it on disk is what any kernel begins with."""
    torch = sys.modules["torch"]
    signal.alarm(_HEADERS_S)
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
        torch.compile(torch.relu)(torch.ones(8))
    os._exit(0)


def _threads() -> set[str]:
    """The names of all threads but this one."""
    tasks = Path("/proc/self/task").iterdir()
    return set(Counter(map(_name, tasks)) - Counter([_name(Path("/proc/self"))]))


def _name(task: Path) -> str:
    """A thread's name; "" of one that has ended meanwhile."""
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return ""


def _uses_the_gpu() -> int:
    """In a fork that ends thereafter: 0 if torch can use the GPU here, or has none to use."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_available():
            torch.cuda.init()
            torch.ones(1, device="cuda").add(1).item()
    except Exception:  # noqa: BLE001 -- whatever it is, no run is forked then
        return 1
    return 0
