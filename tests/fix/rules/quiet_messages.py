"""What the rule ``quiet-messages`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
def f(x):
    if x.sum().item() > 100:
        print("large", x.sum().item())
    return x + 1
""",
        """\
def f(x):
    if not torch.compiler.is_compiling() and x.sum().item() > 100:
        print("large", x.sum().item())
    return x + 1
""",
        calls=("torch.ones(3)",),  # never written: what x is, is known where it is asked for
        consent=True,
    ),
    Example(
        """\
import logging
import torch

log = logging.getLogger(__name__)


def f(x):
    if torch.isnan(x).any() or x.abs().max() > 3:
        log.warning("unusual: %s", x)
        print(f"largest {x.max().item():.3f}")
    return x + 1
""",
        """\
import logging
import torch

log = logging.getLogger(__name__)


def f(x):
    if not torch.compiler.is_compiling() and (torch.isnan(x).any() or x.abs().max() > 3):
        log.warning("unusual: %s", x)
        print(f"largest {x.max().item():.3f}")
    return x + 1
""",
        calls=("torch.ones(3)", "5 * torch.ones(3)"),
        consent=True,
    ),
    Example(
        """\
import torch
import logging

logger = logging.getLogger(__name__)


def f(x):
    if x.ndim == 2:
        logger.warning("shape %s", x.shape)  # tell
    return x + 1
""",
        """\
import torch
import logging

logger = logging.getLogger(__name__)


def f(x):
    if x.ndim == 2:
        if not torch.compiler.is_compiling():
            logger.warning("shape %s", x.shape)  # tell
    return x + 1
""",
        consent=True,
    ),
    Example(
        """\
import torch
import logging

logger = logging.getLogger(__name__)


def f(x):
    logger.info(f"rows: {x.shape[0]}")
    return x + 1
""",
        """\
import torch
import logging

logger = logging.getLogger(__name__)


def f(x):
    if not torch.compiler.is_compiling():
        logger.info(f"rows: {x.shape[0]}")
    return x + 1
""",
        consent=True,
    ),
    Example(
        """\
import logging

import torch

log = logging.getLogger("model")


class f(torch.nn.Module):
    def forward(self, x):
        log.debug(
            "called with %s",
            tuple(x.shape),
        )
        return x * 2
""",
        """\
import logging

import torch

log = logging.getLogger("model")


class f(torch.nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            log.debug(
                "called with %s",
                tuple(x.shape),
            )
        return x * 2
""",
        consent=True,
    ),
    Example(
        """\
import torch, warnings


def f(x):
    warnings.warn(
        f"odd {x.shape} "
        "and more",
        stacklevel=2,
    )
    return x + 1
""",
        """\
import torch, warnings


def f(x):
    if not torch.compiler.is_compiling():
        warnings.warn(
            f"odd {x.shape} "
            "and more",
            stacklevel=2,
        )
    return x + 1
""",
    ),
    Example(
        """\
import torch, warnings


def f(x):
    if x.dtype != torch.float64:
        warnings.warn("low precision", UserWarning)
    return x + 1
""",
        """\
import torch, warnings


def f(x):
    if x.dtype != torch.float64:
        if not torch.compiler.is_compiling():
            warnings.warn("low precision", UserWarning)
    return x + 1
""",
    ),
    Example(
        """\
from warnings import warn
import torch


def f(x):
    warn("deprecated")
    return x + 1
""",
        """\
from warnings import warn
import torch


def f(x):
    if not torch.compiler.is_compiling():
        warn("deprecated")
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    # what comes in
    print(f"{x.shape=}")  # for the log
    return x + 1
""",
        """\
def f(x):
    # what comes in
    if not torch.compiler.is_compiling():
        print(f"{x.shape=}")  # for the log
    return x + 1
""",
        consent=True,
    ),
    Example(
        """\
def f(x):
    y = x * 2
    print("mean", y.mean().item(), sep=": ")
    return y
""",
        """\
def f(x):
    y = x * 2
    if not torch.compiler.is_compiling():
        print("mean", y.mean().item(), sep=": ")
    return y
""",
        consent=True,
    ),
    Example(
        """\
import sys
import torch


def f(x):
    sys.stdout.write("tick\\n")
    return x + 1
""",
        """\
import sys
import torch


def f(x):
    if not torch.compiler.is_compiling():
        sys.stdout.write("tick\\n")
    return x + 1
""",
        consent=True,
    ),
    Example(
        """\
import functools
import logging
import torch


def warning_once(self, *args, **kwargs):
    self.warning(*args, **kwargs)


logging.Logger.warning_once = functools.lru_cache(None)(warning_once)
logger = logging.getLogger(__name__)


def f(x):
    if x.ndim == 2:
        logger.warning_once(
            "Input ids are automatically padded "
            f"to be a multiple of {x.shape[1]}"
        )
        x = x + 1
    return x
""",
        """\
import functools
import logging
import torch


def warning_once(self, *args, **kwargs):
    self.warning(*args, **kwargs)


logging.Logger.warning_once = functools.lru_cache(None)(warning_once)
logger = logging.getLogger(__name__)


def f(x):
    if x.ndim == 2:
        if not torch.compiler.is_compiling():
            logger.warning_once(
                "Input ids are automatically padded "
                f"to be a multiple of {x.shape[1]}"
            )
        x = x + 1
    return x
""",
    ),
    Example(
        """\
import logging
import torch

log = logging.getLogger("model")


def f(x):
    loss = x.sum()
    if loss.item() > 100:  # diverges
        log.warning("loss %s", loss)
    return x * 2
""",
        """\
import logging
import torch

log = logging.getLogger("model")


def f(x):
    loss = x.sum()
    if not torch.compiler.is_compiling() and loss.item() > 100:  # diverges
        log.warning("loss %s", loss)
    return x * 2
""",
        consent=True,
    ),
    Example(
        """\
def f(x):
    if torch.isnan(x.sum()):
        print("nan", x)
    return x * 2
""",
        """\
def f(x):
    if not torch.compiler.is_compiling() and torch.isnan(x.sum()):
        print("nan", x)
    return x * 2
""",
        consent=True,
    ),
    Example(
        """\
import warnings


def f(x):
    if torch.isnan(x).any():
        warnings.warn("there is a nan")
    return x * 2
""",
        """\
import warnings


def f(x):
    if not torch.compiler.is_compiling() and torch.isnan(x).any():
        warnings.warn("there is a nan")
    return x * 2
""",
        consent=True,
    ),
    Example(
        """\
def f(x, verbose=False):
    if torch.isnan(x).any() or x.max().item() > 100:
        # what the user has to see
        print("bad values")
        if verbose:
            print("values", x)
    else:
        pass
    return x * 2
""",
        """\
def f(x, verbose=False):
    if not torch.compiler.is_compiling() and (torch.isnan(x).any() or x.max().item() > 100):
        # what the user has to see
        print("bad values")
        if verbose:
            print("values", x)
    else:
        pass
    return x * 2
""",
        consent=True,
    ),
    Example(
        """\
import warnings


def f(x):
    if x.ndim == 3:
        x = x + 1
    elif not torch.isfinite(x).all():
        warnings.warn("not finite")
    return x * 2
""",
        """\
import warnings


def f(x):
    if x.ndim == 3:
        x = x + 1
    elif not torch.compiler.is_compiling() and not torch.isfinite(x).all():
        warnings.warn("not finite")
    return x * 2
""",
        consent=True,
    ),
    Example(
        """\
import warnings


def f(x):
    if torch.isnan(x).any():
        warnings.warn(f"a nan: {x.item()}")
    return x * 2
""",
        """\
import warnings


def f(x):
    if not torch.compiler.is_compiling() and torch.isnan(x).any():
        warnings.warn(f"a nan: {x.item()}")
    return x * 2
""",
        consent=True,
    ),
)

LEAVES = (
    Example(
        """\
SEEN = []


def f(x):
    if len(SEEN) < 9 and not SEEN.append(1) and x.sum() > 3:
        print("large")
    return x + 1
""",
        why="the condition of the message may have an effect: `SEEN.append(1)`",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 3:
        print("large")
    else:
        x = x * 2
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 3:
        print("large", y := x * 2)
        x = x + y
    return x + 1
""",
    ),
    Example(
        """\
import warnings


def f(x):
    try:
        warnings.warn("slow")
    except UserWarning:
        return x * 0
    return x + 1
""",
        why="an `except` around the message may wait for the warning",
    ),
    Example(
        """\
def f(x):
    y = x + 1; print("hello")
    return y
""",
        why="the message stands behind another statement on its line",
    ),
    Example(
        """\
def f(x):
    print("hello"); y = x + 1
    return y
""",
        why="another statement stands behind the message on its line",
    ),
    Example(
        """\
COUNT = [0]


def tick():
    COUNT[0] += 1
    return COUNT[0]


def f(x):
    print("calls", tick())
    return x + 1
""",
        why="computing the message may have an effect: `tick()`",
    ),
    Example(
        '''\
def f(x):
    print("""one
    two""")
    return x + 1
''',
        why="the message is a text of several lines",
    ),
    Example(
        """\
def f(x):
    items = [1, 2]
    print("last", items.pop())
    return x + len(items)
""",
        why="computing the message may have an effect: `items.pop()`",
    ),
    Example(
        """\
def f(x):
    print("mean", next(iter([1])))
    return x + 1
""",
        why="computing the message may have an effect: `next(iter([1]))`",
    ),
    Example(
        """\
def f(x):
    if x.sum().item() > 100:
        print("large")
        x = x + 1
    return x * 2
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 100:
        print("large")
    else:
        print("small")
    return x * 2
""",
        why="the `else` writes messages too, and would write them while compiling",
        site="x.sum() > 100",
        code="BS101",
    ),
    Example(
        """\
def f(x):
    if (n := x.sum().item()) > 100:
        print("large")
    return x * 2
""",
        why="the condition of the message may have an effect: `(n := x.sum().item())`",
    ),
    Example(
        """\
COUNT = [0]


def tick():
    COUNT[0] += 1
    return COUNT[0]


def f(x):
    if tick() > x.sum():
        print("large")
    return x * 2
""",
        why="the condition of the message may have an effect: `tick()`",
        site="tick() > x.sum()",
        code="BS101",
    ),
    Example(
        """\
def f(x):
    seen = [1]
    if x.sum() > -100:
        print("large", seen.pop())
    return x * len(seen)
""",
        why="computing the message may have an effect: `seen.pop()`",
    ),
    Example(
        """\
def f(x):
    try:
        if x.max().item() > 100:
            print("large")
    except RuntimeError:
        return x
    return x * 2
""",
        why="an `except` around the message may wait for what its condition raises",
    ),
)
