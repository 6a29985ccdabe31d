"""Recorded with several versions of torch: breaks over several lines, skipped frames, recompiles."""

import logging
import threading

import torch

log = logging.getLogger(__name__)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.lock = threading.Lock()
        self.calls = 0

    def forward(self, x, scale=1.0):
        self.calls += 1
        y = self.linear(x)
        limit = y.abs().sum().item()
        z = torch.where(
            y > limit,
            y.new_full((), float(y.max())),
            y,
        )
        if z.mean() > 100 and z.std() > 1:
            z = z / 2
        log.warning("scale %s", scale)
        return self.tail(z) * scale

    def tail(self, z):
        with self.lock:
            total = z.sum()
        for row in range(2):
            if total > row:  # in a loop: the whole frame is skipped
                total = total + 1
        return z + total


def pick(x):
    kept = x[x > 0]
    print("kept", kept.shape)
    return kept.nonzero()


def main():
    torch.manual_seed(0)
    net = torch.compile(Net())
    chosen = torch.compile(pick)
    with torch.no_grad():
        for step in range(4):
            net(torch.randn(2 + step, 4), scale=1.0 + step)
            chosen(torch.randn(8))


main()
