"""What the rule ``zero-probability`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

_CALLS = ("torch.randn(2, 4)", "torch.randn(3, 4)", "torch.randn(2, 4)")
_NET = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = {probability}

    def forward(self, x):
        for layer in self.layers:
{body}
        return x"""


def _net(body: str, probability: str = "0.0") -> str:
    lines = "\n".join(" " * 12 + line if line else "" for line in body.strip("\n").split("\n"))
    return _NET.format(probability=probability, body=lines)


def _rewritten(before: str, after: str) -> Example:
    return Example(_net(before), _net(after), calls=_CALLS)


def _left(before: str, why: str, probability: str = "0.0", site: str = "") -> Example:
    return Example(_net(before, probability), why=why, calls=_CALLS, site=site, code="BS101" if site else "")


_FLAG = """
drawn = torch.rand([])
skip = True if self.training and ({test}) else False
if not skip:
    x = layer(x)
"""
_SKIP = """
drawn = {draw}
if drawn < self.layerdrop:
    continue
x = layer(x)
"""
REWRITES: tuple[Example, ...] = (
    _rewritten(
        _SKIP.format(draw="torch.rand([])"),
        _SKIP.format(draw="torch.rand([])").replace("if drawn", "if self.layerdrop > 0 and drawn"),
    ),
    _rewritten(
        _SKIP.format(draw="torch.rand(1, device=x.device)").replace(
            "drawn < self.layerdrop", "self.layerdrop > drawn"
        ),
        _SKIP.format(draw="torch.rand(1, device=x.device)").replace(
            "drawn < self.layerdrop", "self.layerdrop > 0 and self.layerdrop > drawn"
        ),
    ),
    _rewritten(
        _FLAG.format(test="drawn < self.layerdrop"),
        _FLAG.format(test="self.layerdrop > 0 and drawn < self.layerdrop"),
    ),
    _rewritten(
        """
drawn = torch.rand(())
skip = self.training and (drawn < self.layerdrop)
if not skip or x.shape[0] > 100:
    x = layer(x)
""",
        """
drawn = torch.rand(())
skip = self.training and (self.layerdrop > 0 and drawn < self.layerdrop)
if not skip or x.shape[0] > 100:
    x = layer(x)
""",
    ),
    _rewritten(
        """
drawn = torch.rand(())
if not drawn < self.layerdrop:
    x = layer(x)
""",
        """
drawn = torch.rand(())
if not (self.layerdrop > 0 and drawn < self.layerdrop):
    x = layer(x)
""",
    ),
    _rewritten(
        """
drawn = torch.rand(())
if drawn < self.layerdrop or x.shape[0] > 100:
    continue
x = layer(x)
""",
        """
drawn = torch.rand(())
if (self.layerdrop > 0 and drawn < self.layerdrop) or x.shape[0] > 100:
    continue
x = layer(x)
""",
    ),
)

LEAVES: tuple[Example, ...] = (
    # Another distribution goes below 0, where something is smaller than a probability of 0.
    _left(_SKIP.format(draw="torch.randn([])"), ""),
    _left(_SKIP.format(draw="torch.rand([]) - 0.5"), ""),
    _left(_SKIP.format(draw="torch.rand([]).neg_()"), ""),
    # What was drawn is changed before it is asked, under its own name or under another one.
    _left(_SKIP.format(draw="torch.rand([])").replace("if", "drawn -= 0.5\nif"), "is given other values too"),
    _left(_SKIP.format(draw="torch.rand([])").replace("if", "drawn.sub_(0.5)\nif"), "more than comparisons"),
    _left(_SKIP.format(draw="torch.rand([])").replace("if", "other = drawn\nif"), "more than comparisons"),
    # The draw itself stands in the condition: it would not be drawn.
    _left(
        """
if torch.rand([]) < self.layerdrop:
    continue
x = layer(x)
""",
        "",
    ),
    # `<=` holds for a draw of exactly 0.
    _left(_SKIP.format(draw="torch.rand([])").replace("<", "<="), ""),
    # The probability is no number of Python, or is called for.
    _left(_SKIP.format(draw="torch.rand([])"), "is not always a Python number", "torch.tensor(0.0)"),
    _left(_SKIP.format(draw="torch.rand([])").replace("self.layerdrop", "max(self.layerdrop, 0.0)"), "twice"),
    _left(_SKIP.format(draw="torch.rand([])"), "is above 0", "1e-12"),
    _left(_SKIP.format(draw="torch.rand([])"), "is above 0", 'float("nan")'),
    # Several numbers: the old code raises, and must go on to do so.
    _left(_SKIP.format(draw="torch.rand([1, 1, 2])[0, 0, :1]"), ""),
    # The value of the comparison is used, not only whether it holds.
    _left(
        """
drawn = torch.rand([])
skip = drawn < self.layerdrop
if not skip:
    x = layer(x)
x = x + skip
""",
        "more is done with `skip`",
    ),
    _left(
        """
drawn = torch.rand([])
skip = drawn < self.layerdrop
last = skip
if not last:
    x = layer(x)
""",
        "is handed on",
        site="last",
    ),
)
