"""Examples of the rule ``custom-op``: for what it suggests a scaffold, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n\n\n"


def _case(
    before: str,
    after: str = "",
    *,
    why: str = "",
    site: str = "",
    calls: tuple[str, ...] = ("torch.randn(3, 4)",),
) -> Example:
    before, after = (_HEAD + text.lstrip("\n") if text else "" for text in (before, after))
    return Example(before, after, why=why, calls=calls, site=site, code="BS110" if site else "")


REWRITES = (
    _case(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bins", torch.tensor([0.0, 1.0]))

    def forward(self, x, right=True):
        return x + torch.from_numpy(np.digitize(x.detach().numpy(), self.bins.numpy(), right))
""",
        """
@torch.library.custom_op("custom_ops::forward_digitize", mutates_args=())
def forward_digitize(x: torch.Tensor, bins: torch.Tensor, right: bool) -> torch.Tensor:
    return torch.from_numpy(np.digitize(x.detach().numpy(), bins.numpy(), right))


@forward_digitize.register_fake
def _forward_digitize_fake(x: torch.Tensor, bins: torch.Tensor, right: bool) -> torch.Tensor:
    return x.new_empty(x.shape, dtype=torch.int64)


class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bins", torch.tensor([0.0, 1.0]))

    def forward(self, x, right=True):
        return x + forward_digitize(x.detach(), self.bins.detach(), right)
""",
    ),
)

LEAVES = (
    _case(
        """
def f(x):
    return torch.from_numpy(np.apply_along_axis(lambda row: row * 2, 0, x.numpy()))
""",
        why="the expression has names of its own",
    ),
    _case(
        """
def f(x):
    import numpy as np
    return torch.from_numpy(np.interp(x.numpy(), [0.0, 1.0], [0.0, 2.0]))
""",
        why="the function imports by itself",
    ),
    _case(
        """
def f(x, options):
    return torch.from_numpy(np.interp(x.numpy(), options["from"], options["to"]))
""",
        why="it reads `options`, which is neither a tensor nor a number",
        calls=("torch.randn(3), {'from': [0.0, 1.0], 'to': [0.0, 2.0]}",),
    ),
    _case(
        """
def make():
    scale = 2.0

    def inner(x):
        return torch.from_numpy(np.interp(x.numpy(), [0.0, scale], [0.0, 1.0]))

    return inner


f = make()
""",
        why="the function is defined inside another one",
        site="np.interp(x.numpy(), [0.0, scale], [0.0, 1.0])",
    ),
    _case(
        """
def f(x):
    return x * torch.relu(x)
""",
        site="torch.relu(x)",
    ),
)
