"""Outputs of an arm's first steps: kept, copied, and compared with those of the eager arm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from breakscope.inside.capture.outputs import flatten

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


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "__dict__") and not isinstance(value, type | torch.nn.Module):
        for item in vars(value).values():
            if isinstance(item, torch.Tensor | list | tuple | dict):
                yield from tensors(item)


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
    for what in ("dtype", "shape", "layout"):
        if getattr(mine, what) != getattr(theirs, what):
            return f"{what} {getattr(mine, what)} became {getattr(theirs, what)}", 0.0, 0.0
    if mine.layout is not torch.strided:
        mine, theirs = mine.to_dense(), theirs.to_dense()
    tolerance = TOLERANCES.get(mine.dtype, 0.0)
    if tolerance == 0.0:
        unequal = int((mine != theirs).sum())
        return (f"{unequal} of {mine.numel()} values differ" if unequal else None), float(unequal > 0), 0.0
    wide = torch.complex128 if mine.is_complex() else torch.float64
    mine, theirs = mine.to(wide), theirs.to(wide)
    odd = ~(torch.isfinite(mine) & torch.isfinite(theirs))
    same = (mine == theirs) | (torch.isnan(mine) & torch.isnan(theirs))
    if bool((odd & ~same).any()):
        return "NaN or infinite in one of the two only", float("inf"), tolerance
    gap = torch.where(same, torch.zeros_like(mine), mine - theirs).norm()
    scale = torch.where(odd, torch.zeros_like(mine), mine).norm()
    error = float(gap / scale) if float(scale) else float(gap)
    problem = f"differs by {error:.2g} of its norm" if error > tolerance else None
    return problem, error, tolerance
