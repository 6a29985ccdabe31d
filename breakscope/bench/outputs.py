"""Outputs of an arm's first steps: kept, copied, and compared with those of the eager arm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from breakscope.capture.outputs import flatten

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
MAX_BYTES = 512 * 1024**2


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


def save(value: Any, folder: Path, index: int) -> None:
    """Keep a result, unless it is huge."""
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors(value)) <= MAX_BYTES:
        torch.save(list(flatten(value)), folder / f"{index:06d}.pt")


def compare_folders(base: str, others: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What each arm returned against what the base returned: fields of ``Outputs`` by arm."""
    return {name: compare(Path(base), Path(folder)) for name, folder in others.items()}


def compare(base: Path, other: Path) -> dict[str, Any]:
    """The outputs that two processes kept."""
    left, right = sorted(base.glob("*.pt")), sorted(other.glob("*.pt"))
    if not left or not right:
        return {"status": "not compared", "why": "no outputs were kept", "tensors": 0}
    worst: tuple[float, float] = (0.0, 0.0)  # error, tolerance
    count = 0
    for index, (one, two) in enumerate(zip(left, right, strict=False)):
        # Kept by our own process a moment ago; only tensors and text are let in.
        first, second = (torch.load(path, weights_only=True) for path in (one, two))
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
        "why": f"{count} tensors of the first {len(left)} calls",
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
