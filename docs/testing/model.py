"""A small model for the two tests beside it."""

import logging

import torch

logger = logging.getLogger(__name__)


class Model(torch.nn.Module):
    """An encoder that logs, which is accepted, and must not break elsewhere."""

    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Linear(8, 8)
        self.decode = torch.nn.Linear(8, 2)

    def forward(self, x):
        code = torch.relu(self.encode(x))
        logger.info("encoded")
        return self.decode(code)


def example_inputs():
    """Arguments of one call."""
    return (torch.ones(4, 8),)
