"""Triton kernels that do nothing but reach a device's limits. Imported by the ceilings' own process only.

The kernels have no annotations but those that Triton reads: it takes every name in a kernel's text for a
name of its own language.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _copy(source, target, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(target + at, tl.load(source + at, mask=inside), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _triad(first, second, target, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    left = tl.load(first + at, mask=inside)
    right = tl.load(second + at, mask=inside)
    tl.store(target + at, left + 3.0 * right, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _matmul(  # type: ignore[no-untyped-def]
    left,
    right,
    target,
    N,  # noqa: N803
    K,  # noqa: N803
    BM: tl.constexpr,  # noqa: N803
    BN: tl.constexpr,  # noqa: N803
    BK: tl.constexpr,  # noqa: N803
    GROUP: tl.constexpr,  # noqa: N803
):
    # Square row-major matrices whose sides are multiples of the blocks. Programs go through the result in
    # bands of GROUP rows of blocks, so that the columns that they share stay in L2.
    number = tl.program_id(0)
    across = N // BN
    band = number // (GROUP * across)
    inside = number % (GROUP * across)
    row = (band * GROUP + inside % GROUP) * BM
    column = (inside // GROUP) * BN
    rows = row + tl.arange(0, BM)
    columns = column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    left_at = left + rows[:, None] * K + depth[None, :]
    right_at = right + depth[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left_at), tl.load(right_at), total)
        left_at += BK
        right_at += BK * N
    tl.store(target + rows[:, None] * N + columns[None, :], total.to(target.dtype.element_ty))


def copy(source: torch.Tensor, target: torch.Tensor, block: int, warps: int) -> None:
    """Copy a contiguous tensor."""
    size = source.numel()
    _copy[(triton.cdiv(size, block),)](source, target, size, BLOCK=block, num_warps=warps)


def triad(first: torch.Tensor, second: torch.Tensor, target: torch.Tensor, block: int, warps: int) -> None:
    """``target = first + 3 * second``, contiguous."""
    size = first.numel()
    _triad[(triton.cdiv(size, block),)](first, second, target, size, BLOCK=block, num_warps=warps)


def matmul(
    left: torch.Tensor, right: torch.Tensor, target: torch.Tensor, blocks: tuple[int, int, int], warps: int
) -> None:
    """``target = left @ right`` of square row-major matrices; their side is a multiple of the blocks."""
    side = left.shape[0]
    grid = ((side // blocks[0]) * (side // blocks[1]),)
    _matmul[grid](
        left,
        right,
        target,
        side,
        side,
        BM=blocks[0],
        BN=blocks[1],
        BK=blocks[2],
        GROUP=8,
        num_warps=warps,
        num_stages=4,
    )
