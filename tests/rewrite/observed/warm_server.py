"""A process that has imported torch, and forks into `python SCRIPT` or `breakscope` in a few milliseconds.

Run as a program by :class:`warm.Warm`: one JSON request a line on stdin, one JSON answer a line on stdout. It knows
nothing of breakscope unless it is told to preload it.

A fork is as near to a fresh `python SCRIPT` as can be: `__main__`, argv, path, environment, descriptors and signals are
those of a fresh process, the generators are where a fresh torch has them, and what runs at exit is run.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import importlib
import importlib.machinery
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
# Run by name: a module that is there already would be a warning.
RUN_BY_NAME = ("breakscope.capture.compare_outputs", "breakscope.__main__")


# -- a fork as a fresh Python -------------------------------------------------------------------------------------


def become_python(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Do in this process what `python WORDS` does. Returns the exit status."""
    _be_fresh(environment)
    code = 1
    try:
        _start_the_agent(environment)
        code = _run_main(list(words))
        threading._shutdown()
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
    return code


def _be_fresh(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.excepthook = sys.__excepthook__
    # A folder that the parent removes at its exit is not the fork's to remove.
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]


def _start_the_agent(environment: Mapping[str, str]) -> None:
    """What Python itself does at its start: a `sitecustomize` of PYTHONPATH is imported."""
    folders = [one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:0] = folders
    if any(os.path.isfile(os.path.join(one, "sitecustomize.py")) for one in folders):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")


def _run_main(words: list[str]) -> int:
    try:
        if words[0] == "-m":
            sys.argv[:] = words[1:]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = words
            _run_script(os.path.abspath(words[0]))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:  # noqa: BLE001 -- Python's own end of a script
        trace = error.__traceback__
        while trace is not None and os.path.realpath(trace.tb_frame.f_code.co_filename) == HERE:
            trace = trace.tb_next
        sys.excepthook(type(error), error, trace)
        return 1
    return 0


def _run_script(path: str) -> None:
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, builtins
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    sys.path.insert(0, os.path.dirname(path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


# -- children -----------------------------------------------------------------------------------------------------


class Forked:
    """As much of Popen as a waiting parent asks for: a fork of this process that becomes `python WORDS`."""

    def __init__(self, work: Callable[[], int], stdout: int | None = None, stderr: int | None = None) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code = 70
        try:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null if stdout is None else stdout, 1)
            os.dup2(null if stderr is None else stderr, 2)
            code = work()
        except BaseException:  # noqa: BLE001 -- a fork must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.002
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)


def finished(child: Forked, limit_s: float) -> int:
    """Wait for a child; one that is over its time is killed, and its status is then 124."""
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return 124


class ForkingSubprocess:
    """Stands in the place of the module `subprocess` in modules that start Python: they get a fork."""

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, command: Sequence[str], **options: Any) -> Any:  # noqa: N802 -- the name in subprocess
        if command[0] != sys.executable:
            return subprocess.Popen(command, **options)
        environment = dict(options.pop("env", None) or os.environ)
        words, outs = list(command[1:]), (options.pop("stdout", None), options.pop("stderr", None))
        assert not options, f"a fork has no {', '.join(options)}"
        return Forked(lambda: become_python(words, environment), *outs)

    def run(self, command: Sequence[str], **options: Any) -> Any:
        if command[0] != sys.executable:
            return subprocess.run(command, **options)  # noqa: PLW1510 -- as the caller asked
        assert options.pop("check", False) is False, "a fork is not checked"
        assert options.pop("capture_output", False), "a fork is for what captures its output"
        text, environment = options.pop("text", False), options.pop("env", None)
        assert not options, f"a fork has no {', '.join(options)}"
        with _memory_file() as out, _memory_file() as err:
            words = list(command[1:])
            variables = dict(environment or os.environ)
            child = Forked(lambda: become_python(words, variables), out.fileno(), err.fileno())
            code = child.wait()
            read = [_content(one).decode() if text else _content(one) for one in (out, err)]
        return subprocess.CompletedProcess(command, code, *read)


def _memory_file() -> Any:
    import tempfile

    return tempfile.TemporaryFile()


def _content(file: Any) -> bytes:
    file.seek(0)
    return bytes(file.read())


# -- what is asked ------------------------------------------------------------------------------------------------


def run_commands(request: dict[str, Any]) -> int:
    """Run command lines of breakscope, one after the other; each child that they start is a fork."""
    os.chdir(request["cwd"])
    os.environ.update(request["environment"])
    from breakscope.capture import trial
    from breakscope.child import launch
    from breakscope.cli import main

    launch.subprocess = trial.subprocess = ForkingSubprocess()  # type: ignore[attr-defined]
    for fault in request["faults"]:
        plant(*fault)
    code = 0
    for words in request["commands"]:
        print(f"$ breakscope {' '.join(words)}")
        code = main(words)
        print(f"exit status {code}")
    sys.stdout.flush()
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


def answer(request: dict[str, Any]) -> dict[str, Any]:
    outs = [
        os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) for name in ("stdout", "stderr")
    ]

    def work() -> int:
        if "commands" in request:
            return run_commands(request)
        os.chdir(request["cwd"])
        return become_python(request["words"], {**os.environ, **request["environment"]})

    try:
        return {"exit_code": finished(Forked(work, *outs), request["limit_s"])}
    finally:
        for one in outs:
            os.close(one)


def preload(packages: Sequence[str]) -> None:
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    for package in packages:
        root = importlib.import_module(package)
        for one in pkgutil.walk_packages(root.__path__, f"{package}."):
            if one.name not in RUN_BY_NAME and ".boot" not in one.name:
                with contextlib.suppress(ImportError):  # what is optional
                    importlib.import_module(one.name)
    for name in _modules_of_a_compile():
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _modules_of_a_compile() -> list[str]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        script, found = os.path.join(folder, "script.py"), os.path.join(folder, "modules.json")
        tail = f"import sys, json\njson.dump(sorted(sys.modules), open({found!r}, 'w'))\n"
        with open(script, "w", encoding="utf-8") as file:
            file.write(FIRST_COMPILE + tail)
        child = Forked(lambda: become_python([script], dict(os.environ)), None, 2)
        if finished(child, 120):
            raise RuntimeError("the first compile failed")
        with open(found, encoding="utf-8") as file:
            return [one for one in json.load(file) if one not in sys.modules]


def main() -> None:
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.set_inheritable(requests.fileno(), False)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    # A script has its own folder there, not ours; planted faults are found all the same.
    folder = os.path.dirname(HERE)
    sys.path[:] = [one for one in sys.path if os.path.realpath(one or ".") != folder]
    packages = sys.argv[1:]
    if packages:
        sys.path.append(folder)
        importlib.import_module("planted_faults")
        sys.path.remove(folder)
    preload(packages)
    print("{}", file=answers, flush=True)
    for line in requests:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
