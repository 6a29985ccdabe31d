"""Compare the outputs that two trials kept. Run as a program, in a process of its own: it loads torch."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import torch

from breakscope.inside.tensors import HIDDEN, dense, described_otherwise, gaps, magnitudes, same_bits

MAX_DIFFERENCES = 20


def compare(before: Path, after: Path) -> dict[str, Any]:
    """Every call's outputs, leaf by leaf; the fields of :class:`breakscope.run.trial.Comparison`."""
    left, right = sorted(before.glob("*.pt")), sorted(after.glob("*.pt"))
    found = _Found()
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        found.call(index, torch.load(one, weights_only=True), torch.load(other, weights_only=True))
    if len(left) != len(right):
        found.differ(f"{len(left)} outermost calls before, {len(right)} after")
    return {
        "calls": min(len(left), len(right)),
        "tensors": found.tensors,
        "bitwise": found.bitwise,
        "max_abs": found.max_abs,
        "max_rel": found.max_rel,
        "differences": found.differences[:MAX_DIFFERENCES],
    }


class _Found:
    def __init__(self) -> None:
        self.tensors = 0
        self.bitwise = True
        self.max_abs = 0.0
        self.max_rel = 0.0
        self.differences: list[str] = []

    def differ(self, text: str) -> None:
        self.bitwise = False
        self.differences.append(text)

    def call(self, index: int, left: list[tuple[str, Any]], right: list[tuple[str, Any]]) -> None:
        if [path for path, _ in left] != [path for path, _ in right]:
            self.differ(f"call {index}: the results have different parts")
            return
        for (path, one), (_, other) in zip(left, right, strict=True):
            self._leaf(f"call {index}, result{path}", one, other)

    def _leaf(self, where: str, one: Any, other: Any) -> None:
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            if type(one) is not type(other) or one != other:
                self.differ(f"{where}: {str(one)[:80]} became {str(other)[:80]}")
            elif str(one).endswith(HIDDEN):
                self.differ(f"{where}: {one}")
            return
        self.tensors += 1
        otherwise = described_otherwise(one, other)
        if otherwise is not None:
            self.differ(f"{where}: {otherwise}")
            return
        one, other = dense(one), dense(other)
        if same_bits(one, other):
            return
        self.bitwise = False
        worst = float(gaps(one, other).max())
        if worst == math.inf:
            self.differ(f"{where}: NaN or infinite in one of the two only")
            return
        scale = float(magnitudes(one).max())
        self.max_abs = max(self.max_abs, worst)
        # Relative to the largest value of the tensor: an element near zero has no relative error to speak of.
        self.max_rel = max(self.max_rel, worst / scale if scale else math.inf if worst else 0.0)


def start(settings: str) -> None:
    """As an agent, in a fork that has torch already and does nothing else.

    Args:
        settings: JSON: the two folders, and the file for the result.
    """
    before, after, result = map(Path, json.loads(settings))
    result.write_text(json.dumps(compare(before, after)), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    print(json.dumps(compare(Path(sys.argv[1]), Path(sys.argv[2]))))
