"""Python processes that the script starts: the agent goes into each of them, too.

A child finds its files by its own process id, so that whatever stands between (a shell, a launcher, a fork
server) needs to know nothing. Where the script forks, the agent is in the child already
(:class:`breakscope.inside.events.EventWriter` gives it files of its own).
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from breakscope.inside import events, imports
from breakscope.inside.settings import Settings
from breakscope.inside.start import with_agent

_PYTHON = re.compile(r"^python[\d.]*t?$|^pypy[\d.]*$")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_LAUNCHES = re.compile(r"python|\.py\b|\.sh\b|torchrun|accelerate|deepspeed")
# Helpers of torch and of Python itself, which run no code of the script's.
_HELPERS = re.compile(r"torch/_inductor/|multiprocessing\.resource_tracker|\bpip\b|\bensurepip\b")
_ISOLATED = re.compile(r"^-[A-Za-z]*[IE]")


class Children:
    """Stands where this process starts others.

    Args:
        settings: of this process's agent.
        emit: takes an event.
    """

    def __init__(self, settings: Settings, emit: Callable[..., None]) -> None:
        self._agent = settings.of_children().agent()
        self._emit = emit
        self._lock = allocate_lock()  # not threading's, which the script may not have loaded

    def follow(self) -> None:
        """From now on, put the agent into every Python that this process starts."""
        imports.after_import("subprocess", self._hook_subprocess)
        imports.after_import("multiprocessing.util", self._hook_multiprocessing)
        for name in ("execv", "execve", "system"):
            real = getattr(os, name)
            followed = self._around(real)
            # Where Python has it from, too: a function is pickled by that name.
            for module in (os, sys.modules.get(real.__module__)):
                if getattr(module, name, None) is real:
                    setattr(module, name, followed)

    def _hook_subprocess(self) -> None:
        # The innermost function: where a program is not found, no frame of ours is in the traceback.
        subprocess: Any = sys.modules["subprocess"]
        fork_exec = getattr(subprocess, "_fork_exec", None)
        if fork_exec is None:
            return  # a module of the script's own

        @functools.wraps(fork_exec)
        def followed(args: Any, programs: Any, close: Any, keep: Any, cwd: Any, env: Any, *rest: Any) -> Any:
            if self._wanted(_words(args, shell=False)):
                pairs = (entry.partition(b"=")[::2] for entry in env or ())
                variables = os.environ if env is None else dict(pairs)
                ours = with_agent(_text(variables), self._agent)
                env = [os.fsencode(f"{name}={value}") for name, value in ours.items()]
            return fork_exec(args, programs, close, keep, cwd, env, *rest)

        subprocess._fork_exec = followed
        os.posix_spawn = self._spawning(os.posix_spawn)

    def _spawning(self, real: Any) -> Any:
        """``os.posix_spawn``, with which ``subprocess`` starts what keeps all descriptors."""

        @functools.wraps(real)
        def posix_spawn(path: Any, argv: Any, env: Any, **kwargs: Any) -> Any:
            ours = with_agent(_text(env), self._agent) if self._wanted(_words(argv, shell=False)) else env
            return real(path, argv, ours, **kwargs)

        return posix_spawn

    def _hook_multiprocessing(self) -> None:
        util: Any = sys.modules["multiprocessing.util"]
        real = getattr(util, "spawnv_passfds", None)
        if real is None:
            return

        @functools.wraps(real)
        def spawnv_passfds(path: Any, args: Any, passfds: Any) -> Any:
            with self._in_environment(_words(args, shell=False)):
                return real(path, args, passfds)

        util.spawnv_passfds = spawnv_passfds

    def _around(self, real: Any) -> Any:
        """``os.execv``, ``os.execve`` or ``os.system``, that what they run is followed."""
        shell = real.__name__ == "system"

        @functools.wraps(real)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = args[:1] if shell else args[1:2]
            words = _words(given[0], shell=shell) if given else []
            if len(args) == 3 and self._wanted(words):  # with an environment of its own
                return real(*args[:2], with_agent(_text(args[2]), self._agent))
            with self._in_environment(words):
                return real(*args, **kwargs)

        return call

    @contextmanager
    def _in_environment(self, words: Sequence[str]) -> Iterator[None]:
        """For what inherits this process's environment."""
        if not self._wanted(words):
            yield
            return
        with self._lock:
            before = dict(os.environ)
            ours = with_agent(before, self._agent)
            changed = [name for name, value in ours.items() if before.get(name) != value]
            os.environ.update({name: ours[name] for name in changed})
            try:
                yield
            finally:
                for name in changed:
                    if name in before:
                        os.environ[name] = before[name]
                    else:
                        del os.environ[name]

    def _wanted(self, words: Sequence[str]) -> bool:
        """Whether a command is a Python that may run code of the script's; named if it takes no agent."""
        if not words or _HELPERS.search(" ".join(words)):
            return False
        first = os.path.basename(words[0])
        if first in _SHELLS:
            return any(map(_LAUNCHES.search, words[1:]))
        if not _PYTHON.match(first):
            return _is_python_script(words[0])
        options = []
        for word in words[1:]:
            if not word.startswith("-") or word in ("-m", "-c"):
                break
            options.append(word)
        if any(map(_ISOLATED.match, options)):
            self._emit(events.CHILD, command=shlex.join(words), why="it takes no PYTHONPATH (-E or -I)")
            return False
        return True


def _words(command: Any, *, shell: bool) -> list[str]:
    """The words of a command line, of a shell's the shell itself first; empty where they cannot be told."""
    try:
        if isinstance(command, (str, bytes, os.PathLike)):
            text = os.fsdecode(command)
            return ["sh", "-c", text] if shell else [text]
        words = [os.fsdecode(word) for word in command]
    except TypeError:
        return []
    return ["sh", "-c", *words] if shell else words


def _text(variables: Mapping[Any, Any]) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in variables.items()}


def _is_python_script(path: str) -> bool:
    """Whether a program, such as ``torchrun``, is a script that Python runs."""
    folders = [""] if os.sep in path else os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = next(filter(os.path.isfile, (os.path.join(folder, path) for folder in folders)), None)
    if found is None:
        return False
    try:
        with open(found, "rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first
