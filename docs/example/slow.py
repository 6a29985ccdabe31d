#!/usr/bin/env python3
"""Trains a small classifier. It is compiled, and runs in pieces all the same."""

import argparse
import logging

import torch
from torch import Tensor, nn

logger = logging.getLogger("train")


class Block(nn.Module):
    """A residual layer that keeps its activations in bounds."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.linear(x))
        if y.max() > 0.7:
            y = y.clamp(max=0.7)
        return x + y


class Classifier(nn.Module):
    """Two residual layers and a head."""

    def __init__(self, width: int = 32, classes: int = 4) -> None:
        super().__init__()
        self.first, self.second = Block(width), Block(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().amax().item()
        x = self.second(self.first(x / scale))
        logger.info("scored a batch of %d", len(x))
        return self.head(x)


def main(epochs: int) -> None:
    """Epochs over 40 samples, in batches of 16, 16 and 8."""
    torch.manual_seed(0)
    model = Classifier()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    inputs, labels = 3 * torch.randn(40, 32), torch.randint(4, (40,))
    for epoch in range(epochs):
        total = 0.0
        for batch, target in zip(inputs.split(16), labels.split(16), strict=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(compiled(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch}: loss {total / 40:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    main(parser.parse_args().epochs)
