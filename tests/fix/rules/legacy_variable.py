"""What the rule ``legacy-variable`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

_IMPORT = "import torch\nfrom torch import nn\nfrom torch.autograd import Variable\n\n\n"


def _old(text: str) -> str:
    return _IMPORT + text


REWRITES: tuple[Example, ...] = (
    # As old code makes the state of its layers.
    Example(
        _old("""\
def f(x):
    state = Variable(x.data.new(
        x.size(0), 3).zero_())
    return state + x[:, :3]
"""),
        _old("""\
def f(x):
    state = x.data.new(
        x.size(0), 3).zero_().detach()
    return state + x[:, :3]
"""),
    ),
    # Over several lines by the parentheses of the call alone.
    Example(
        _old("""\
def f(x):
    state = Variable(
        x.exp()
        .cos())
    return state * x
"""),
        _old("""\
def f(x):
    state = (x.exp()
        .cos()).detach()
    return state * x
"""),
    ),
    # No gradient flows back through it, and who writes into it writes into the tensor.
    Example(
        _old("""\
def f(x):
    y = x * 2
    Variable(y, requires_grad=False).add_(1)
    return y * x
"""),
        _old("""\
def f(x):
    y = x * 2
    y.detach().add_(1)
    return y * x
"""),
    ),
    Example(
        _old("""\
def f(x):
    return -Variable(-x).cpu()
"""),
        _old("""\
def f(x):
    return -(-x).detach().cpu()
"""),
    ),
)

LEAVES: tuple[Example, ...] = (
    Example(_old("def f(x):\n    return Variable(x, True) * 2\n"), why="begins to take gradients"),
    Example(
        _old("def f(x):\n    return Variable(x, volatile=True) * 2\n"), why="besides a tensor is not known"
    ),
    Example(_old("def f(x):\n    return Variable(data=x) * 2\n"), why="besides a tensor is not known"),
    # A function of the module's own.
    Example(
        "import torch\n\n\ndef Variable(x):\n    return x\n\n\ndef f(x):\n    return Variable(x) * 2\n",
        site="Variable(x) * 2",
        code="BS107",
    ),
)
