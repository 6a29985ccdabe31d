"""A training-like script with five breaks whose costs differ, each of which a flag takes out.

    python benchmarks/cost_model.py [--device cuda] [--mode default] [--without NAME ...] [--steps 60]

Alone it is a script to scan. Imported by cost_truth.py it also measures what each break really costs.
"""

from __future__ import annotations

import argparse
import logging

import numpy as np
import torch
import turns
from torch import nn

BREAKS = ("busy_sync", "idle_sync", "logger", "small_ops", "numpy")

logger = logging.getLogger("cost_model")
logger.addHandler(logging.NullHandler())
logger.propagate = False


@torch.compiler.disable
def small_ops(h: torch.Tensor) -> torch.Tensor:
    """Statistics of a few rows, as debugging code computes them."""
    total = h.new_zeros(())
    for row in h[:20]:
        total = total + row.float().mean().to(h.dtype)
    return total


@torch.compiler.disable
def through_numpy(h: torch.Tensor) -> torch.Tensor:
    """A round trip over the host."""
    return torch.from_numpy(np.cumsum(h.float().cpu().numpy(), axis=0)).to(h)


class Net(nn.Module):
    """Layers with a break after each, unless it is left out.

    What is computed for a break is computed without it too: leaving it out takes away the break alone.
    """

    def __init__(self, width: int, depth: int, without: tuple[str, ...]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))
        self.heads = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))
        self.breaks = frozenset(BREAKS) - frozenset(without)

    def forward(self, x: torch.Tensor, small: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        # A synchronisation with all of the layers still in the queue.
        peak = x.abs().max()
        if "busy_sync" in self.breaks and peak > 1e4:
            x = x.clamp(-1e4, 1e4)
        y = self.heads[0](small).relu()
        mean = y.mean()
        # Twice, so that it does not cost what the busy one does; and not in a loop: Dynamo gives up on a
        # function that breaks inside of one.
        scale = 1.0
        if "idle_sync" in self.breaks:
            scale = 1.0 if mean.item() < 1e4 else 0.5
        y = self.heads[1](y * scale).relu()
        if "idle_sync" in self.breaks:
            scale = 1.0 if mean.item() < 1e4 else 0.5
        y = self.heads[1](y * scale).relu()
        if "logger" in self.breaks:
            logger.info("norm clipped at %s", 1.0)
        y = self.heads[2](y).relu()
        if "small_ops" in self.breaks:
            y = y + small_ops(y)
        y = self.heads[3](y).relu()
        if "numpy" in self.breaks:
            y = y + through_numpy(y)
        y = self.heads[4](y).relu()
        return self.heads[5](y).sum() + x.sum() + peak + mean


def make(device: str, without: tuple[str, ...] = ()) -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """The model and its inputs."""
    torch.manual_seed(0)
    on_gpu = device != "cpu"
    width, rows, depth = (4096, 2048, 6) if on_gpu else (256, 128, 2)
    dtype = torch.float16 if on_gpu else torch.float32
    net = Net(width, depth, without).to(device, dtype).eval()
    return net, (
        torch.randn(rows, width, device=device, dtype=dtype),
        torch.randn(64, 64, device=device, dtype=dtype),
    )


def main() -> None:
    """Run some steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--without", nargs="*", default=(), choices=BREAKS)
    parser.add_argument("--turns", nargs=2, metavar=("GO", "DONE"), help="run blocks of 32 steps in turns")
    args = parser.parse_args()
    net, inputs = make(args.device, tuple(args.without))
    compiled = torch.compile(net, mode=None if args.mode == "default" else args.mode)

    def steps(number: int) -> None:
        for _ in range(number):
            compiled(*inputs)
        if args.device != "cpu":
            torch.cuda.synchronize()

    with torch.no_grad():
        if args.turns:
            turns.blocks(args.turns, lambda: steps(32))
        else:
            steps(args.steps)


if __name__ == "__main__":
    main()
