"""Short ways to lint source in tests."""

from __future__ import annotations

import textwrap
from pathlib import Path

from breakscope.lint.engine import lint
from breakscope.report.lint import Possible

PRELUDE = """\
import collections, copy, datetime, functools, itertools, json, logging, math, os, random, sys, threading, time, warnings
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
logger = logging.getLogger("m")
lock = threading.Lock()
lstm = nn.LSTM(4, 4)
q = torch.ones(4, requires_grad=True)
opt = torch.optim.SGD([q], lr=0.1)

@functools.lru_cache
def lru(a):
    return a + 1

"""
SIGNATURE = "def f(x: Tensor, n: Tensor, m: torch.BoolTensor):\n"


def function(body: str) -> str:
    """A module with one function of that body."""
    return PRELUDE + SIGNATURE + textwrap.indent(body, "    ") + "\n"


def lint_text(folder: Path, *sources: str, **named: str) -> list[Possible]:
    """Lint modules a.py, b.py … or those with names; sources are dedented."""
    files = {**{f"{'abcdef'[index]}": source for index, source in enumerate(sources)}, **named}
    for name, source in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
    return list(lint([str(folder)]).possible)


def said(found: list[Possible]) -> list[tuple[str, str, str]]:
    """(code, level, source) of each."""
    return [(one.code, one.level, one.location.source or "") for one in found]
