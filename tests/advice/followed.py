"""What an example of followed advice is."""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """\
import atexit, collections, contextlib, copy, functools, io, itertools, json, logging, math, os, pickle, random
import sys, threading, time, warnings, weakref
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SAID = []

def say(value):
    \"\"\"Keep what a call gives, to compare it with the other program's.\"\"\"
    value = torch.utils._pytree.tree_map(lambda one: one.tolist() if hasattr(one, "tolist") else one, value)
    SAID.append(value)

def write():
    with open("said.json", "w") as file:
        json.dump(SAID, file, default=str)

atexit.register(write)
torch.manual_seed(0)
x = torch.arange(6.0).reshape(2, 3) - 1
"""


@dataclass(frozen=True)
class Followed:
    """A program, and the change to it that the advice asks for.

    Attributes:
        code: of the finding, with that of its cause for a skipped frame (``BS302>BS112``); shape: which of
            its shapes.
        advice: a pattern that the finding's advice matches: the words that are followed; where a program has
            several such findings, a pattern of each, one a line.
        change: (old text, new text) pairs: the diff.
        lessens: None where the finding goes; else the words by which the advice says that it only lessens it.
        near: whether the outputs may differ in the last digits.
        silent: the program raises until the advice is followed: its outputs cannot be compared.
    """

    code: str
    shape: str
    advice: str
    source: str
    change: tuple[tuple[str, str], ...]
    lessens: str | None = None
    near: bool = False
    silent: bool = False
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.code} {self.shape}"

    @property
    def before(self) -> str:
        return PRELUDE + self.source

    @property
    def after(self) -> str:
        text = self.source
        for old, new in self.change:
            assert old in text, f"{self.name}: {old!r} is not there"
            text = text.replace(old, new)
        return PRELUDE + text


def of_function(
    code: str,
    shape: str,
    advice: str,
    body: str,
    *change: tuple[str, str],
    outside: str = "",
    call: str = "f(x)",
    guard: str = "",
    **more: object,
) -> Followed:
    """An example that is a compiled function ``f(x)`` and two calls of it.

    Args:
        outside: what stands before the function; guard: what stands before each call.
    """
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    source = f"{outside}\n@torch.compile\ndef f(x):\n{lines}\nfor _ in range(2):\n    {guard}say({call})\n"
    return Followed(code, shape, advice, source, change, **more)  # type: ignore[arg-type]
