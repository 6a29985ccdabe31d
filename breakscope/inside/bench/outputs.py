"""Outputs of an arm's first steps: kept, copied, and compared with those of the eager arm."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from breakscope.inside.tensors import dense, described_otherwise, flatten, gaps, magnitudes, tensors

# Norm of the difference over the norm of eager's tensor. Compiled code fuses and so rounds less often or in
# another order; these are a few times what correct networks of dozens of layers show.
TOLERANCES = {
    torch.float64: 1e-8,
    torch.float32: 1e-3,
    torch.float16: 1e-2,
    torch.bfloat16: 4e-2,
    torch.complex64: 1e-3,
    torch.complex128: 1e-8,
}
KEPT_STEPS = 2  # steps whose outputs are kept for the comparison
_MOST_CALLS = 16  # of a step
_MOST_BYTES = 512 * 1024**2  # of a step


def on_gpu(value: Any) -> bool:
    """Whether a result is on a GPU."""
    return any(tensor.is_cuda for tensor in tensors(value))


class Kept:
    """The outputs of a process's first steps, as far as they fit: a step may have hundreds of calls.

    Args:
        folder: they go there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = [0] * KEPT_STEPS
        self._bytes = [0] * KEPT_STEPS

    def keep(self, value: Any, step: int) -> None:
        """Keep what a call returned."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors(value))
        if self._calls[step] < _MOST_CALLS and self._bytes[step] + size <= _MOST_BYTES:
            torch.save(list(flatten(value)), self._folder / f"{sum(self._calls):06d}.pt")
            self._bytes[step] += size
        self._calls[step] += 1


def compare_folders(base: str, others: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What each arm returned against what the base returned: fields of ``Outputs`` by arm."""
    return {name: compare(Path(base), Path(folder)) for name, folder in others.items()}


def compare(base: Path, other: Path) -> dict[str, Any]:
    """The outputs that two processes kept."""
    kept = sorted({path.name for path in base.glob("*.pt")} & {path.name for path in other.glob("*.pt")})
    if not kept:
        return {"status": "not compared", "why": "no outputs were kept", "tensors": 0}
    worst: tuple[float, float] = (0.0, 0.0)  # error, tolerance
    count = 0
    for name in kept:
        index = int(Path(name).stem)
        # Kept by our own process a moment ago; only tensors and text are let in.
        first, second = (torch.load(folder / name, weights_only=True) for folder in (base, other))
        if [path for path, _ in first] != [path for path, _ in second]:
            return _different(f"call {index}: the results have different parts", count)
        for (path, mine), (_, theirs) in zip(first, second, strict=True):
            if not isinstance(mine, torch.Tensor) or not isinstance(theirs, torch.Tensor):
                if mine != theirs:
                    return _different(
                        f"call {index}, result{path}: {mine!s:.60} became {theirs!s:.60}", count
                    )
                continue
            count += 1
            problem, error, tolerance = _distance(mine, theirs)
            if problem:
                return _different(f"call {index}, result{path}: {problem}", count, error, tolerance)
            if error * (worst[1] or 1) >= worst[0] * tolerance:  # the nearest to its own tolerance
                worst = (error, tolerance)
    return {
        "status": "same",
        "why": f"{count} tensors of {len(kept)} calls of the first steps",
        "error": worst[0],
        "tolerance": worst[1],
        "tensors": count,
    }


def _different(
    why: str, count: int, error: float | None = None, tolerance: float | None = None
) -> dict[str, Any]:
    return {"status": "different", "why": why, "error": error, "tolerance": tolerance, "tensors": count}


def _distance(mine: torch.Tensor, theirs: torch.Tensor) -> tuple[str | None, float, float]:
    """(what no tolerance forgives, relative error, tolerance)."""
    otherwise = described_otherwise(mine, theirs)
    if otherwise is not None:
        return otherwise, 0.0, 0.0
    mine, theirs = dense(mine), dense(theirs)
    tolerance = TOLERANCES.get(mine.dtype, 0.0)
    if tolerance == 0.0:
        unequal = int((mine != theirs).sum())
        return (f"{unequal} of {mine.numel()} values differ" if unequal else None), float(unequal > 0), 0.0
    gap, scale = float(gaps(mine, theirs).norm()), float(magnitudes(mine).norm())
    if gap == math.inf:
        return "NaN or infinite in one of the two only", gap, tolerance
    error = gap / scale if scale else gap
    problem = f"differs by {error:.2g} of its norm" if error > tolerance else None
    return problem, error, tolerance
