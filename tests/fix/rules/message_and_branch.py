"""What the rule ``message-and-branch`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
import logging
import torch

log = logging.getLogger(__name__)


def f(x):
    y = x * 2
    if y.max().item() > 10:  # rare
        # too large
        log.warning("exploding: %.2f", y.max().item())
        y = y.clamp(max=10)
    return y
""",
        """\
import logging
import torch

log = logging.getLogger(__name__)


def f(x):
    y = x * 2
    if not torch.compiler.is_compiling() and y.max().item() > 10:
        log.warning("exploding: %.2f", y.max().item())
    # rare
    # too large
    y = torch.where(y.max() > 10, y.clamp(max=10), y)
    return y
""",
        calls=("torch.ones(3)",),
        consent=True,
    ),
    Example(
        """\
import warnings
import torch


class f(torch.nn.Module):
    def forward(self, x):
        if self.training and torch.isnan(x).any():
            x = torch.nan_to_num(x)
            warnings.warn("not a number")
            x = x * 2
        return x
""",
        """\
import warnings
import torch


class f(torch.nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling() and self.training and torch.isnan(x).any():
            warnings.warn("not a number")
        if self.training:
            condition = torch.isnan(x).any()
            x = torch.where(condition, torch.nan_to_num(x), x)
            x = torch.where(condition, x * 2, x)
        return x
""",
        consent=True,
    ),
)

LEAVES = (
    Example(
        """\
def f(x):
    if x.sum() > 0:
        print("large")
        x = x / 2
    else:
        x = x * 2
    return x
""",
        why="the branch writes a message and has another side",
    ),
    Example(
        """\
def f(x, seen):
    if seen.append(1) or x.sum() > 0:
        print("large")
        x = x / 2
    return x
""",
        calls=("torch.ones(3), []",),
        why="the condition of the message may have an effect",
    ),
    Example(
        """\
def f(x, seen):
    if x.sum() > 0:
        print("large", seen.pop())
        x = x / 2
    return x
""",
        calls=("torch.ones(3), [1]",),
        why="computing the message may have an effect",
    ),
    Example(
        """\
def f(x, seen):
    if x.sum() > 0:
        print("large")
        seen.append(x)
        x = x / 2
    return x
""",
        calls=("torch.ones(3), []",),
        why="a branch has an effect",
    ),
)
