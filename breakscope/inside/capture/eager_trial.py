"""Whether a call that failed under torch.compile fails in eager too: tried, in a fork of the process.

A fork has the same inputs and the same state, and what it does to them is not the script's.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from typing import Any

import torch

from breakscope.inside.torch_api.state import EntryCall, entry_call

LIMIT_S = 20.0
_MOST = 2_000  # characters of an error's text


def tried() -> dict[str, Any]:
    """Make the outermost compiled call that is under way again, in eager.

    Returns:
        ``outcome``: "raised" (with its ``error``), "passed", or "not tried" (and ``why``).
    """
    call = entry_call()
    if call is None:
        return _not_tried("the call that entered compiled code is not known")
    if not hasattr(os, "fork"):
        return _not_tried("this system cannot fork")
    if torch.cuda.is_initialized():
        return _not_tried("a process that uses CUDA cannot fork")
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        _run(call, writer)
    os.close(writer)
    try:
        return _answer(reader)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # the script may collect all its children
            os.waitpid(pid, 0)


def _not_tried(why: str) -> dict[str, Any]:
    return {"outcome": "not tried", "why": why}


def _run(call: EntryCall, writer: int) -> None:
    """In the fork: the call, its end, and the end of the fork."""
    answer: dict[str, Any] = {"outcome": "passed"}
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- ends with the fork
        torch.set_num_threads(1)  # a fork has none of the threads of its parent's pool
        torch.compiler.set_stance("force_eager")
        call.function(*call.args, **call.kwargs)
    except BaseException as error:  # noqa: BLE001 -- whatever the call raises is the answer
        answer = {"outcome": "raised", "error": f"{type(error).__name__}: {error}"[:_MOST]}
    finally:
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)


def _answer(reader: int) -> dict[str, Any]:
    data = b""
    while select.select([reader], [], [], LIMIT_S)[0]:
        more = os.read(reader, 1 << 16)
        if not more:
            break
        data += more
    try:
        return dict(json.loads(data))
    except ValueError:
        return _not_tried(f"the call did not end within {LIMIT_S:g} s" if not data else "its fork died")
