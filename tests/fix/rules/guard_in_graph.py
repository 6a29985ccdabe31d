"""What the rule ``guard-in-graph`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
def f(x):
    assert x.max() < 100 and x.min() > -100, "range"
    return x + 1
""",
        """\
def f(x):
    assert (x.max() < 100) & (x.min() > -100), "range"
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    assert -100 < x.max() < 100
    return x + 1
""",
        """\
def f(x):
    assert (-100 < x.max()) & (x.max() < 100)
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    assert not torch.isnan(x).any().item(), "NaN"
    return x + 1
""",
        """\
def f(x):
    assert ~torch.isnan(x).any(), "NaN"
    return x + 1
""",
    ),
    Example(
        """\
def f(x, lengths):
    assert lengths.max().item() <= x.size(1)
    return x + 1
""",
        """\
def f(x, lengths):
    assert lengths.max() <= x.size(1)
    return x + 1
""",
        calls=("torch.randint(0, 9, (3, 4)), torch.tensor([4, 4, 4])",),
    ),
    Example(
        """\
def f(x):
    assert float(x.max()) < 1e6
    return x + 1
""",
        """\
def f(x):
    assert x.max() < 1e6
    return x + 1
""",
    ),
    Example(
        """\
def f(x, strict):
    assert strict and x.max() < 100 and x.min() > -100, "range"
    return x + 1
""",
        """\
def f(x, strict):
    assert strict, 'range'
    assert (x.max() < 100) & (x.min() > -100), "range"
    return x + 1
""",
        calls=("torch.randn(3, 4), True",),
    ),
    Example(
        """\
def f(x):
    assert bool((x < 100).all()) and bool((x > -100).all())
    return x + 1
""",
        """\
def f(x):
    assert (x < 100).all() & (x > -100).all()
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    if x.max() > 100:  # too large
        raise ValueError("too large")
    return x + 1
""",
        """\
def f(x):
    if torch.compiler.is_compiling():
        torch._assert_async(~(x.max() > 100), "too large")
    elif x.max() > 100:
        # too large
        raise ValueError("too large")
    return x + 1
""",
        consent=True,
    ),
    Example(
        """\
def f(x):
    if torch.isnan(x).any():
        raise RuntimeError(f"NaN in {x.shape}")
    return x + 1
""",
        """\
def f(x):
    if torch.compiler.is_compiling():
        torch._assert_async(~torch.isnan(x).any())
    elif torch.isnan(x).any():
        raise RuntimeError(f"NaN in {x.shape}")
    return x + 1
""",
    ),
    Example(
        """\
def f(x, check):
    if check and torch.isnan(x).any():
        raise RuntimeError("NaN")
    return x + 1
""",
        """\
def f(x, check):
    if check:
        if torch.compiler.is_compiling():
            torch._assert_async(~torch.isnan(x).any(), "NaN")
        elif torch.isnan(x).any():
            raise RuntimeError("NaN")
    return x + 1
""",
        calls=(
            "torch.randn(3, 4), True",
            "torch.randn(3, 4), False",
        ),
    ),
    Example(
        """\
def f(x):
    if x.max().item() > 100 or x.min().item() < -100:
        raise RuntimeError
    return x + 1
""",
        """\
def f(x):
    if torch.compiler.is_compiling():
        torch._assert_async(~((x.max() > 100) | (x.min() < (-100))))
    elif (x.max() > 100) | (x.min() < (-100)):
        raise RuntimeError
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    if not torch.isfinite(x).all():
        # a message
        raise RuntimeError("not finite") from None
    return x + 1
""",
        """\
def f(x):
    if torch.compiler.is_compiling():
        torch._assert_async(torch.isfinite(x).all(), "not finite")
    elif ~torch.isfinite(x).all():
        # a message
        raise RuntimeError("not finite") from None
    return x + 1
""",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 100

    def forward(self, x):
        if (x >= self.size).any():
            raise IndexError(
                "index out of range: "
                "see the vocabulary"
            )
        return x + 1
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 100

    def forward(self, x):
        if torch.compiler.is_compiling():
            torch._assert_async(~(x >= self.size).any(), 'index out of range: see the vocabulary')
        elif (x >= self.size).any():
            raise IndexError(
                "index out of range: "
                "see the vocabulary"
            )
        return x + 1
""",
        consent=True,
    ),
    Example(
        """\
def f(x, boxes):
    worst = boxes[:, 2:] <= boxes[:, :2]
    if worst.any():
        # the first of them
        row = torch.where(worst.any(dim=1))[0][0]
        bad: list[float] = boxes[row].tolist()
        torch._assert(
            False,
            f"an empty box: {bad}",
        )
    return x + boxes.sum()
""",
        """\
def f(x, boxes):
    worst = boxes[:, 2:] <= boxes[:, :2]
    if torch.compiler.is_compiling():
        torch._assert_async(~worst.any())
    elif worst.any():
        # the first of them
        row = torch.where(worst.any(dim=1))[0][0]
        bad: list[float] = boxes[row].tolist()
        torch._assert(
            False,
            f"an empty box: {bad}",
        )
    return x + boxes.sum()
""",
        calls=("torch.randn(3, 4), torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0, 3.0]])",),
    ),
    Example(
        """\
def f(x):
    if x.isnan().any():
        assert False, "NaN"
    return x + 1
""",
        """\
def f(x):
    if torch.compiler.is_compiling():
        torch._assert_async(~x.isnan().any(), 'NaN')
    elif x.isnan().any():
        assert False, "NaN"
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    if x.isnan().any():
        count = x.isnan().sum().item()

        raise RuntimeError(f"{count} numbers are NaN")  # how many
    return x + 1
""",
        """\
def f(x):
    if torch.compiler.is_compiling():
        torch._assert_async(~x.isnan().any())
    elif x.isnan().any():
        count = x.isnan().sum().item()

        raise RuntimeError(f"{count} numbers are NaN")  # how many
    return x + 1
""",
    ),
)

LEAVES = (
    Example(
        """\
def f(x, seen):
    if x.isnan().any():
        seen.append(x)
        raise RuntimeError("NaN")
    return x + len(seen)
""",
        why="before it raises, the branch does more than read tensors: `seen.append(x)`",
        calls=("torch.randn(3, 4), []",),
    ),
    Example(
        """\
def f(x):
    if x.isnan().any():
        x[0] = 0
        raise RuntimeError("NaN")
    return x + 1
""",
        why="before it raises, the branch does more than read tensors: `x[0] = 0`",
    ),
    Example(
        """\
def f(x):
    if x.isnan().any():
        y = x.zero_()
        raise RuntimeError("NaN", y)
    return x + 1
""",
        why="before it raises, the branch does more than read tensors: `y = x.zero_()`",
    ),
    Example(
        """\
last = None


def f(x):
    global last
    if x.isnan().any():
        last = x.sum()
        raise RuntimeError("NaN")
    return x + 1
""",
        why="before it raises, the branch does more than read tensors: `last = x.sum()`",
    ),
    Example(
        """\
def f(x):
    if x.isnan().any():
        torch._assert(True, "NaN")
    return x + 1
""",
    ),
    Example(
        """\
def f(x):
    try:
        if x.isnan().any():
            raise RuntimeError("NaN")
    except RuntimeError:
        return x * 0
    return x + 1
""",
        why="the exception is caught in the function",
    ),
    Example(
        """\
def f(x):
    log = []
    try:
        assert x.max().item() <= 100
    finally:
        log.append(1)
    return x + len(log)
""",
        why="a `finally` runs after it",
    ),
    Example(
        """\
def checked(x):
    if x.isnan().any():
        raise RuntimeError("NaN")
    return x + 1


def f(x):
    try:
        return checked(x)
    except RuntimeError:
        return x * 0
""",
        why="`checked` is called where exceptions are caught",
    ),
    Example(
        """\
def f(x):
    assert x.max().item() <= 100, f"too large: {x.max()}"
    return x + 1
""",
        why="the message of the assertion is computed",
    ),
    Example(
        """\
class Bad(Exception):
    pass


def f(x):
    if x.max() > 100:
        raise Bad("too large")
    return x + 1
""",
        why="what the branch raises is not one of Python's own exceptions",
    ),
    Example(
        """\
def f(x):
    try:
        y = x + 1
    except ValueError:
        if x.max() > 100:
            raise
    if x.max() > 100:
        raise ValueError("one", "two")
    return y
""",
        why="what the branch raises is not one of Python's own exceptions",
    ),
    Example(
        """\
def f(x):
    if x.ndim == 3:
        x = x + 1
    elif x.max() > 100:
        raise ValueError("too large")
    return x + 1
""",
        why="the check is one of several branches",
    ),
    Example(
        """\
def f(x, i):
    assert x.max() < 100 and x[i].max() < 100
    return x + 1
""",
        why="what `x[i].max()` does is not known: `x[i]` may raise for some inputs",
        calls=("torch.randn(3, 4), torch.tensor([0, 1])",),
    ),
    Example(
        """\
def f(x):
    assert x.tolist()[0][0] < 100
    return x + 1
""",
        why="the condition is decided in Python",
    ),
    Example(
        """\
def f(x):
    assert x.max().item() < 100 and print("checked") is None
    return x + 1
""",
        why='what `print("checked")` does is not known',
    ),
)
