"""What the rule ``mask-shortcut`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

_CALLS = (
    "torch.randn(3, 4), torch.tensor([1, 1, 0])",
    "torch.randn(3, 4), torch.tensor([1, 1, 1])",
)

REWRITES = (
    # What else is done with a mask that leaves something out stays where it is.
    Example(
        """\
def f(x, mask):
    if not torch.any(~mask):
        mask = None
    elif x.ndim == 2:
        mask = torch.zeros_like(x[:, 0]).masked_fill(~mask, -1e9)
    scores = x @ x.T
    if mask is not None:
        scores = scores + (mask if mask.is_floating_point() else torch.zeros_like(x[:, 0]))
    return scores.softmax(-1)
""",
        """\
def f(x, mask):
    if not torch.compiler.is_compiling() and not torch.any(~mask):
        mask = None
    elif x.ndim == 2:
        mask = torch.zeros_like(x[:, 0]).masked_fill(~mask, -1e9)
    scores = x @ x.T
    if mask is not None:
        scores = scores + (mask if mask.is_floating_point() else torch.zeros_like(x[:, 0]))
    return scores.softmax(-1)
""",
        calls=(
            "torch.randn(3, 4), torch.tensor([True, True, False])",
            "torch.randn(3, 4), torch.tensor([True, True, True])",
        ),
        consent=True,
    ),
    Example(
        """\
def f(x, mask):
    if (mask == 1).all():  # nothing is left out
        mask = None
    return x if mask is None else x * mask[:, None]
""",
        """\
def f(x, mask):
    if not torch.compiler.is_compiling() and (mask == 1).all():  # nothing is left out
        mask = None
    return x if mask is None else x * mask[:, None]
""",
        calls=_CALLS,
        consent=True,
    ),
)

LEAVES = (
    # Another tensor decides.
    Example(
        """\
def f(x, mask):
    if (x > 0).all():
        mask = None
    return x if mask is None else x * mask[:, None]
""",
        why="the branch does more than leave `x` out",
        calls=_CALLS,
    ),
    Example(
        """\
def f(x, mask):
    if x.ndim == 3:
        x = x[0]
    elif (mask == 1).all():
        mask = None
    return x if mask is None else x * mask[:, None]
""",
        why="the short way is one of several branches",
        calls=_CALLS,
    ),
    # It asks for something else than whether the mask leaves anything out.
    Example(
        """\
def f(x, mask):
    if mask.sum() > 2:
        mask = None
    return x if mask is None else x * mask[:, None]
""",
        calls=_CALLS,
    ),
)
