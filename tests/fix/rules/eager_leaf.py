"""What the rule ``eager-leaf`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

_CALLS = ("torch.randn(2, 4)", "torch.randn(3, 4)")
_NET = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.switch = True
        self.kept = None

    def forward(self, x):
{body}
"""


def _net(body: str) -> str:
    return _NET.format(body="\n".join(" " * 8 + line for line in body.strip("\n").split("\n")))


def _left(body: str, why: str) -> Example:
    return Example(_net(body), why=why, calls=_CALLS, site="h.requires_grad = True", code="BS115")


REWRITES: tuple[Example, ...] = (
    Example(
        _net("""
h = x[:, :]
if self.switch and self.training:
    h.requires_grad = True
for layer in self.layers:
    h = layer(h)
return h
"""),
        _net("""
h = x[:, :]
if self.switch and self.training:
    if not torch.compiler.is_compiling():
        h.requires_grad = True
for layer in self.layers:
    h = layer(h)
return h
"""),
        calls=_CALLS,
        consent=True,
    ),
)

LEAVES: tuple[Example, ...] = (
    _left(
        """
h = x
h.requires_grad = True
return self.layers[0](h)
""",
        "may be `x`",
    ),
    _left(
        """
h = x[:, :]
h.requires_grad = True
self.kept = h
return self.layers[0](h)
""",
        "is kept",
    ),
    _left(
        """
h = x[:, :]
h.requires_grad = True
all = [h]
return self.layers[0](all[0])
""",
        "is kept",
    ),
    _left(
        """
h = x[:, :]
h.requires_grad = True
y = self.layers[0](h)
y.sum().backward()
return h.grad
""",
        "looks at gradients",
    ),
)
