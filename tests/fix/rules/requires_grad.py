"""Examples of the rule ``requires-grad``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_FROZEN = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4).requires_grad_(False)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
{body}
"""


def _frozen(before: str, after: str) -> Example:
    return Example(_FROZEN.format(body=before), _FROZEN.format(body=after))


def _left(before: str, why: str, calls: tuple[str, ...] = ("torch.randn(3, 4)",)) -> Example:
    return Example(before, why=why, calls=calls)


_SUMMED = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.weight = 0.5

    def forward(self, x):
        loss = {start}
        for layer in self.layers:
            x = layer(x)
            {add}
        return x, loss
"""


def _summed(start: str, add: str) -> str:
    return _SUMMED.format(start=start, add=add)


REWRITES = (
    Example(
        _summed("torch.tensor(0.0, requires_grad=True)", "loss = loss + x.pow(2).mean() * self.weight"),
        _summed("torch.tensor(0.0)", "loss = loss + x.pow(2).mean() * self.weight"),
    ),
    Example(
        _summed("torch.zeros(1, requires_grad=self.training, device=x.device)", "loss = x.mean() + loss"),
        _summed("torch.zeros(1, device=x.device)", "loss = x.mean() + loss"),
    ),
    _frozen(
        """\
        x = x * 2
        self.layer.weight.requires_grad = False  # frozen
        return self.layer(x)""",
        """\
        x = x * 2
        self.layer.weight.requires_grad_(False)  # frozen
        return self.layer(x)""",
    ),
    _frozen(
        """\
        x = x * 2
        for p in self.layer.parameters():
            p.requires_grad = False
        return self.layer(x)""",
        """\
        x = x * 2
        for p in self.layer.parameters():
            p.requires_grad_(False)
        return self.layer(x)""",
    ),
    _frozen(
        """\
        x = x * 2
        self.scale.requires_grad = True
        return self.layer(x) * self.scale""",
        """\
        x = x * 2
        self.scale.requires_grad_(True)
        return self.layer(x) * self.scale""",
    ),
    _frozen(
        """\
        if self.training: x = x * 2; self.layer.bias.requires_grad = False
        return self.layer(x)""",
        """\
        if self.training: x = x * 2; self.layer.bias.requires_grad_(False)
        return self.layer(x)""",
    ),
    Example(
        """\
def f(x):
    y = torch.sin(x)
    with torch.no_grad():
        z = y * 2
        z.requires_grad = False
    return z + 1
""",
        """\
def f(x):
    y = torch.sin(x)
    with torch.no_grad():
        z = y * 2
        z.requires_grad_(False)
    return z + 1
""",
    ),
)

LEAVES = (
    _left(
        """\
def f(x):
    y = x * 2
    x.requires_grad_()
    return (x * y).sum()
""",
        "then this line does nothing, and does not break",
    ),
    _left(
        """\
def f(x):
    y = x.detach() * 2
    y.requires_grad_(True)
    return (y * 3).sum()
""",
        "use torch.func.grad, or make it before the compiled call",
    ),
    _left(
        """\
def f(x):
    y = x.detach() * 2
    y.requires_grad = True
    return (y * 3).sum()
""",
        "`y` begins to take gradients in the middle of compiled code",
    ),
    _left(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        x = x * 2
        self.scale.requires_grad = False
        return x * self.scale
""",
        "it changes the module at its first call, and nothing later: `self.scale` stops to take gradients; "
        "do that once, in `__init__`",
        ("torch.randn(3, 4)", "torch.randn(3, 4)"),
    ),
    _left(
        """\
def f(x):
    bias = torch.zeros(4, requires_grad=True)
    return (x * 2 + bias).sum()
""",
        "`torch.zeros(4, requires_grad=True)` makes a leaf that takes gradients",
    ),
    _left(_summed("torch.zeros(1, requires_grad=True)", "loss = loss * x.mean()"), "makes a leaf"),
    _left(_summed("torch.zeros(1, requires_grad=True)", "loss = loss + x.detach().mean()"), "makes a leaf"),
    _left(
        """\
def f(x, flag=True):
    y = x * 2
    x.requires_grad = flag
    return (x * y).sum()
""",
        "",
    ),
)
