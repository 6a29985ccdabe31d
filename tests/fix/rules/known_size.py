"""Examples of the rule ``known-size``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_INDEX = ("torch.tensor([0, 4, 2]), torch.randn(5, 3)", "torch.tensor([4, 1]), torch.randn(5, 3)")
_ROWS = ("torch.randn(4, 4)", "torch.randn(4, 4)")
_CLASSES = ("torch.tensor([0, 4, 2])", "torch.tensor([4, 1])")
_DIFFER = ("torch.tensor([0, 4, 2])", "torch.tensor([3, 1])")


def _known(before: str, after: str, calls: tuple[str, ...]) -> Example:
    return Example(before, after, calls=calls)


def _seen(before: str, after: str, calls: tuple[str, ...] = _CLASSES) -> Example:
    return Example(before, after, calls=calls, consent=True)


def _left(before: str, why: str, calls: tuple[str, ...]) -> Example:
    return Example(before, why=why, calls=calls)


REWRITES = (
    # As many as the repeats are in all, also where one number stands for every row.
    Example(
        """\
def f(sizes, counts):
    rows = torch.repeat_interleave(sizes[:, 1], counts)
    return rows * 2
""",
        """\
def f(sizes, counts):
    rows = torch.repeat_interleave(sizes[:, 1], counts, output_size=counts.expand_as(sizes[:, 1]).sum().item())
    return rows * 2
""",
        calls=(
            "torch.randint(1, 9, (3, 2)), torch.tensor([2, 0, 3])",
            "torch.randint(1, 9, (2, 2)), torch.tensor([4, 1])",
            "torch.randint(1, 9, (3, 2)), torch.tensor([2])",
        ),
    ),
    _seen(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)

    def forward(self, i, w):
        chosen = F.one_hot(i).to(w.dtype)  # a lookup
        rows = torch.matmul(chosen, self.embedding.weight)
        return rows * 2
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)

    def forward(self, i, w):
        chosen = F.one_hot(i, num_classes=self.embedding.weight.size(-2)).to(w.dtype)  # a lookup
        rows = torch.matmul(chosen, self.embedding.weight)
        return rows * 2
""",
        _INDEX,
    ),
    _seen(
        """\
def f(i, w):
    return F.one_hot((i)).type_as(w) @ w
""",
        """\
def f(i, w):
    return F.one_hot((i), num_classes=w.size(0)).type_as(w) @ w
""",
        ("torch.tensor([0, 4, 2]), torch.randn(5)", "torch.tensor([4]), torch.randn(5)"),
    ),
    _known(
        """\
def f(x):
    return x * F.one_hot(torch.arange(x.size(0)))
""",
        """\
def f(x):
    return x * F.one_hot(torch.arange(x.size(0)), num_classes=x.size(0))
""",
        _ROWS,
    ),
    _known(
        """\
def f(x):
    n = x.shape[0]
    return x + F.one_hot(
        torch.arange(n - 1, device=x.device),  # all but the last
    ).sum()
""",
        """\
def f(x):
    n = x.shape[0]
    return x + F.one_hot(
        torch.arange(n - 1, device=x.device), num_classes=n - 1,  # all but the last
    ).sum()
""",
        _ROWS,
    ),
    _known(
        """\
def f(x):
    return x * torch.nn.functional.one_hot(torch.arange(4))
""",
        """\
def f(x):
    return x * torch.nn.functional.one_hot(torch.arange(4), num_classes=4)
""",
        _ROWS,
    ),
    _seen(
        """\
def f(i):
    return F.one_hot(i).float() * 2
""",
        """\
def f(i):
    return F.one_hot(i, num_classes=5).float() * 2
""",
    ),
    _seen(
        """\
def f(i):
    chosen = F.one_hot(input=i)
    return chosen.sum(0)
""",
        """\
def f(i):
    chosen = F.one_hot(input=i, num_classes=5)
    return chosen.sum(0)
""",
    ),
    _known(
        """\
def f(x):
    return torch.repeat_interleave(x, torch.tensor([1, 2, 0, 3]), dim=0) * 2
""",
        """\
def f(x):
    return torch.repeat_interleave(x, torch.tensor([1, 2, 0, 3]), dim=0, output_size=6) * 2
""",
        _ROWS,
    ),
    _known(
        """\
def f(x):
    return x.repeat_interleave(torch.tensor((2, 2, 1, 1), device=x.device), 0) * 2
""",
        """\
def f(x):
    return x.repeat_interleave(torch.tensor((2, 2, 1, 1), device=x.device), 0, output_size=6) * 2
""",
        _ROWS,
    ),
)

LEAVES = (
    # What is drawn would be drawn twice.
    Example(
        """\
def f(x, counts):
    return torch.repeat_interleave(torch.rand_like(x), counts)
""",
        calls=("torch.randn(3), torch.tensor([2, 0, 3])", "torch.randn(2), torch.tensor([1, 3])"),
    ),
    # Of a matrix without dim, all elements are repeated.
    Example(
        """\
def f(x, counts):
    return torch.repeat_interleave(x, counts)
""",
        calls=("torch.randn(1, 3), torch.tensor([2, 0, 3])", "torch.randn(1, 2), torch.tensor([1, 3])"),
    ),
    _left(
        """\
def f(i):
    return F.one_hot(i).float() * 2
""",
        "how many classes there are depends on the data (4, 5 in the recorded run): pass the number that "
        "there can be at most",
        _DIFFER,
    ),
    _left(
        """\
def f(i, w):
    chosen = F.one_hot(i).float()
    if w.dim() == 2:
        return chosen.sum(0)
    return chosen @ w
""",
        "how many classes there are depends on the data",
        ("torch.tensor([0, 4, 2]), torch.randn(5, 3)", "torch.tensor([3, 1]), torch.randn(5, 3)"),
    ),
    _left(
        """\
def f(i, w):
    return w @ F.one_hot(i).float()
""",
        "how many classes there are depends on the data",
        ("torch.tensor([0, 4, 2]), torch.randn(2, 3)", "torch.tensor([3, 1, 2]), torch.randn(2, 3)"),
    ),
    _left(
        """\
def f(i):
    return F.one_hot(torch.arange(2, 4)[i]).float()
""",
        "how many classes there are depends on the data",
        ("torch.tensor([0, 1])", "torch.tensor([0])"),
    ),
    _left(
        """\
def f(x):
    return torch.repeat_interleave(x, torch.tensor([2]), dim=0) * 2
""",
        "",
        _ROWS,
    ),
    _left(
        """\
def f(x, r):
    return torch.repeat_interleave(x, r, dim=0) * 2
""",
        "",
        ("torch.randn(3, 4), torch.tensor([1, 0, 2])", "torch.randn(3, 4), torch.tensor([1, 0, 2])"),
    ),
)
