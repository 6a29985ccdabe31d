"""Graph breaks whose advice depends on what becomes of the value: by the source around the line."""

from __future__ import annotations

from followed import Followed, of_function

f = of_function
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True\n@torch.compile"

SELECTIONS = """
@torch.compile
def losses(x, y, keep):
    a = F.cross_entropy(x[keep], y[keep])
    near, far = x[:, 0], x[:, 1]
    b = F.l1_loss(near[keep], far[keep], reduction='sum')
    return a, b

@torch.compile
def ranked(v, keep):
    return v[keep].topk(2)[0]

@torch.compile
def summed(x, at, keep):
    row = at[keep]
    return torch.zeros(3).index_add_(0, row, torch.ones(row.shape[0]))

@torch.compile
def last(v):
    at = (v > 0).nonzero()[:, 0]
    return at.max() + at.min()

@torch.compile
def left(x, keep):
    return x[keep]

keep, y, v = torch.tensor([True, False, True, True]), torch.tensor([0, 1, 2, 0]), torch.tensor([3.0, -1, 2, 5])
rows = torch.arange(12.0).reshape(4, 3)
for _ in range(2):
    say([losses(rows, y, keep), ranked(v, keep), summed(rows, y, keep), last(v), left(rows, keep)])
"""
NUMBERS = """
def longest(x):
    return int(x.max())

@torch.compile
def sized(x):
    n = longest(x)
    return x.new_zeros(n)

@torch.compile
def counted(a, b):
    m = torch.zeros(3, 3)
    m[a.item(), b.item()] += 1
    return m

@torch.compile
def picked(x, ids):
    out = x.clone()
    for i in ids.tolist():
        out[i] = x[i] * 2
    return out

@torch.compile
def stacked(x):
    out = [x[0].max().item()]
    out.append(2.0)
    return torch.tensor(out)

@torch.compile
def chosen(x):
    i = int(x.sum() > 0)
    return nets[i](x)

@torch.compile
def masked(x):
    n = x.max().long().item()
    x = x.clone()
    x[:, n:] = 0
    return x

@torch.compile
def kept(x):
    seen = set()
    for i in x.int().flatten().tolist():
        seen.add(i)
    return x + len(seen)

nets = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
ids = torch.tensor([0, 1])
for _ in range(2):
    with torch.no_grad():
        say([sized(x), counted(ids[0], ids[1]), picked(x, ids), stacked(x), chosen(x), masked(x - 3), kept(x)])
"""

POSITIONS = """
@torch.compile
def place(x, at):
    i = (steps == at).nonzero().item()
    return steps[i] * x

@torch.compile
def middle(v, keep):
    return v[~keep].sort()[0][0]

@torch.compile
def trimmed(x, far):
    y = x[x < far]
    return y.mean()

@torch.compile
def share(x, keep):
    at = keep.nonzero()
    return x * 2, len(at) / x.numel()

steps, v = torch.tensor([9, 6, 3]), torch.tensor([3.0, -1, 2])
for _ in range(2):
    say([place(v, steps[1]), share(v, v > 0), middle(v, v > 2), trimmed(v, v[2] + 1)])
"""

USES: tuple[Followed, ...] = (
    f(
        "BS105",
        "the solution of lstsq",
        r"torch\.linalg\.pinv\(a\) @ b is the solution of torch\.linalg\.lstsq\(a, b\) alone",
        "return torch.linalg.lstsq(x.T + torch.eye(3)[:, :2], x.T).solution",
        (
            "torch.linalg.lstsq(x.T + torch.eye(3)[:, :2], x.T).solution",
            "torch.linalg.pinv(x.T + torch.eye(3)[:, :2]) @ x.T",
        ),
        near=True,
    ),
    f(
        "BS105",
        "a median under a mask",
        r"or torch\.nanmedian\(torch\.where\(m, x, nan\)\) for a median",
        "m = x > 0\nreturn torch.median(x[m])",
        ("torch.median(x[m])", "torch.nanmedian(torch.where(m, x, torch.nan))"),
    ),
    f(
        "BS105",
        "counts of what a mask selects",
        r"of a bincount torch\.zeros\(n\)\.index_add\(0, y, keep\.float\(\)\)",
        "y, keep = x[0].long().abs(), x[1] > 2\nreturn torch.bincount(y[keep], minlength=4) * 1.0",
        ("torch.bincount(y[keep], minlength=4)", "torch.zeros(4).index_add(0, y, keep.float())"),
    ),
    f(
        "BS302>BS122",
        "settings whose __getattr__ is no function",
        r"Write the class's __getattr__ as a function, def __getattr__\(self, name\): return self\[name\]",
        "return x * cfg.scale",
        (
            "__getattr__ = dict.__getitem__",
            "def __getattr__(self, name): return self[name]",
        ),
        outside="class Cfg(dict):\n    __getattr__ = dict.__getitem__\ncfg = Cfg(scale=2.0)",
    ),
    f(
        "BS105",
        "as many of each row",
        r"i = \(~m\)\.int\(\)\.argsort\(dim=1, descending=True, stable=True\)\[:, :k\], and x\.gather\(1, i\)",
        "m = torch.tensor([[True, False, False], [False, True, False]])\nreturn x[~m].view(2, 2) * 2",
        (
            "x[~m].view(2, 2)",
            "x.gather(1, (~m).int().argsort(dim=1, descending=True, stable=True)[:, :2])",
        ),
    ),
    f(
        "BS103",
        "allclose that decides",
        r"`y = torch\.where\(~torch\.isclose\(y, y \* 2, atol=0\.1\)\.all\(\), y / 2, y\)`"
        r"|torch\.where\(~torch\.isclose\(y, y \* 2, atol=0\.1\)\.all\(\), …, …\)",
        "y = x + 1\nif not torch.allclose(y, y * 2, atol=0.1):\n    y = y / 2\nreturn y",
        (
            "if not torch.allclose(y, y * 2, atol=0.1):\n        y = y / 2",
            "y = torch.where(~torch.isclose(y, y * 2, atol=0.1).all(), y / 2, y)",
        ),
    ),
    f(
        "BS111",
        "the greatest of Python's numbers",
        r"give it a list, max\(\[… for …\], default=0\)",
        "return x + max((n for _, n in pairs), default=0)",
        ("max((n for _, n in pairs), default=0)", "max([n for _, n in pairs], default=0)"),
        outside="pairs = [(1, 2), (3, 4)]",
    ),
    f(
        "BS105",
        "a sum of what is made of a selection, by its name",
        r"\(`l` made of all elements; where one is an index, it is 0 outside of the mask\): torch\.where\(ok, l, 0\)\.sum\(\), divided by ok\.sum\(\)",
        "ok = x[:, 0] > 0\nl = (x[ok] * 2).softmax(-1)[:, 0]\nreturn l.mean()",
        ("(x[ok] * 2)", "(x * 2)"),
        ("l.mean()", "torch.where(ok, l, 0).sum() / ok.sum()"),
        near=True,
    ),
    f(
        "BS101",
        "a choice by a number that is no bool",
        r"select with torch\.where\(u != 0, \(a & b\)\.sum\(\) / u, torch\.tensor\(0\.0\)\)",
        "a, b = x > 0, x > 2\nu = (a | b).sum()\nreturn (a & b).sum() / u if u else torch.tensor(0.0)",
        (
            "(a & b).sum() / u if u else torch.tensor(0.0)",
            "torch.where(u != 0, (a & b).sum() / u, torch.tensor(0.0))",
        ),
    ),
    f(
        "BS301>BS105",
        "a softmax of what a mask selects",
        r"is given e\.masked_fill\(~m, -inf\) for a softmax",
        "e = x[0]\na = torch.zeros_like(e)\nfor i in range(2):\n    m = x[1] > i * 9\n"
        "    a[m] = e[m].softmax(0)\nreturn a",
        ("a[m] = e[m].softmax(0)", "a = torch.where(m, e.masked_fill(~m, -torch.inf).softmax(0), a)"),
        near=True,
    ),
    f(
        "BS301>BS101",
        "a turn that a test only spares",
        r"The test `sel\.sum\(\) == 0` only saves work: drop it\. .*weight 0",
        "out = torch.zeros(2)\nfor k in range(3):\n    sel = (x > k).any(1)\n    if sel.sum() == 0:\n"
        "        continue\n    out = out + torch.where(sel, x.sum(1), 0)\nreturn out",
        ("        if sel.sum() == 0:\n            continue\n", ""),
    ),
    f(
        "BS101",
        "members of an enum",
        r"What is selected is no tensor, .*choose in the caller",
        "return x * 2, (Level.HIGH if x.mean() > 1 else Level.LOW)",
        ("(Level.HIGH if x.mean() > 1 else Level.LOW)", "x.mean() > 1"),
        ("say(f(x))", "y, high = f(x); say([y, (Level.HIGH if high else Level.LOW).value])"),
        outside="import enum\nclass Level(enum.Enum):\n    LOW = 0\n    HIGH = 1\n"
        "say_ = say\ndef say(v):\n    say_([v[0], getattr(v[1], 'value', v[1])])",
    ),
    f(
        "BS101",
        "a tensor that is clipped in a list",
        r"`gs = \[torch\.where\(n > 2, g / n, g\) for g in gs\]`",
        "gs = [x, x + 1]\nn = torch.stack([g.norm() for g in gs]).norm()\nif n > 2:\n"
        "    gs = [g / n for g in gs]\nreturn gs",
        ("if n > 2:\n        gs = [g / n for g in gs]", "gs = [torch.where(n > 2, g / n, g) for g in gs]"),
        near=True,
    ),
    f(
        "BS105",
        "one column of the rows that a mask selects",
        r"`y\[:, 0\] = torch\.where\(done, s, y\[:, 0\]\)`",
        "y, s = x.clone(), x[:, 1]\ndone = s > 0\ny[done, 0] = s[done]\nreturn y",
        ("y[done, 0] = s[done]", "y[:, 0] = torch.where(done, s, y[:, 0])"),
    ),
    f(
        "BS102",
        "bounds of a linspace",
        r"`x\.min\(\)\.item\(\)` goes to numpy, .*torch operations on `x\.min\(\)`",
        "return [(x > t).sum() for t in np.linspace(x.min().item(), 4.0, 3)]",
        ("np.linspace(x.min().item(), 4.0, 3)", "torch.linspace(x.min(), 4.0, 3)"),
    ),
    f(
        "BS101",
        "a count of steps in a buffer",
        r"A count of steps decides: keep it in the caller as a Python int, and pass in a bool",
        "net.steps += 1\nif net.steps % 2 == 0:\n    net.beta = min(1.0, net.beta + 0.5)\nreturn x * net.beta",
        (
            "def f(x):\n    net.steps += 1\n    if net.steps % 2 == 0:",
            "def f(x, even):\n    if even:",
        ),
        ("say(f(x))", "say(f(x, _ % 2 == 1))"),
        outside="net = type('Net', (), {'steps': torch.zeros(()), 'beta': 0.0})()",
    ),
    f(
        "BS101",
        "a branch that is written out",
        r"Write in place of the branch `x = torch\.where\(x\.max\(\) > 3, x / 2, x\)`",
        "if x.max() > 3:\n    x = x / 2\nreturn x",
        ("if x.max() > 3:\n        x = x / 2", "x = torch.where(x.max() > 3, x / 2, x)"),
    ),
    f(
        "BS105",
        "a store that is written out",
        r"`n = torch\.where\(n > 1, n - 1, n\)`",
        "n = x.long()\nn[n > 1] -= 1\nreturn n",
        ("n[n > 1] -= 1", "n = torch.where(n > 1, n - 1, n)"),
    ),
    f(
        "BS301>BS102",
        "counts in a loop that are written out",
        r"`counts\.index_put_\(\(rows, cols\), counts\.new_full\(\(\), 1\), accumulate=True\)`",
        "counts = torch.zeros(3, 3)\nrows, cols = x[0].long().abs(), x[1].long() % 3\n"
        "for a, b in zip(rows, cols):\n    counts[a, b] += 1\nreturn counts",
        (
            "for a, b in zip(rows, cols):\n        counts[a, b] += 1",
            "counts.index_put_((rows, cols), counts.new_full((), 1), accumulate=True)",
        ),
    ),
    f(
        "BS105",
        "a sum of what is made of a selection",
        r"torch\.where\(x > 0, x \* x\.log\(\), 0\)\.sum\(\)",
        "p = x[x > 0]\nreturn -(p * p.log()).sum()",
        ("p = x[x > 0]\n    return -(p * p.log()).sum()", "return -torch.where(x > 0, x * x.log(), 0).sum()"),
        near=True,
    ),
    f(
        "BS105",
        "masked_select",
        r"torch\.where\(keep, x, 0\)\.sum\(\)",
        "keep = x > 0\nreturn x.masked_select(keep).sum() / 2",
        ("x.masked_select(keep).sum()", "torch.where(keep, x, 0).sum()"),
    ),
    Followed(
        "BS105",
        "positions and numbers of what a mask selects",
        "Only one position is taken: \\(steps == at\\)\\.int\\(\\)\\.argmax\\(-1\\)\n"
        "Only how many the mask selects is asked.*keep\\.sum\\(\\) counts\n"
        "scores\\.masked_fill\\(keep, inf\\)\\.sort\\(\\)\n"
        "torch\\.where\\(x < far, x, 0\\)\\.sum\\(\\), divided by \\(x < far\\)\\.sum\\(\\)",
        POSITIONS,
        (
            ("(steps == at).nonzero().item()", "(steps == at).int().argmax(-1)"),
            (
                "    at = keep.nonzero()\n    return x * 2, len(at) / x.numel()",
                "    return x * 2, keep.sum() / x.numel()",
            ),
            ("steps[i]", "steps.index_select(0, i.reshape(1))"),
            ("v[~keep].sort()", "v.masked_fill(keep, torch.inf).sort()"),
            (
                "y = x[x < far]\n    return y.mean()",
                "return torch.where(x < far, x, 0).sum() / (x < far).sum()",
            ),
        ),
        near=True,
    ),
    Followed(
        "BS105",
        "what a mask selects, by what is done with it",
        "targets with\\s+\\.masked_fill\\(~keep, -100\\)\n"
        "reduction='none'.*torch\\.where\\(keep, loss, 0\\)\\.sum\\(\\)\n"
        "scores\\.masked_fill\\(~keep,\\s+-inf\\)\\.topk\n"
        "weight 0, value \\* keep\n"
        "torch\\.where\\(mask, i, -1\\)\\.max\\(\\).*torch\\.where\\(mask, i, size\\)\\.min\\(\\)\n"
        "return x and keep, and select after the compiled call",
        SELECTIONS,
        (
            ("F.cross_entropy(x[keep], y[keep])", "F.cross_entropy(x, y.masked_fill(~keep, -100))"),
            (
                "F.l1_loss(near[keep], far[keep], reduction='sum')",
                "torch.where(keep, F.l1_loss(near, far, reduction='none'), 0).sum()",
            ),
            ("v[keep].topk(2)", "v.masked_fill(~keep, -torch.inf).topk(2)"),
            (
                "row = at[keep]\n    return torch.zeros(3).index_add_(0, row, torch.ones(row.shape[0]))",
                "return torch.zeros(3).index_add_(0, at, torch.ones(at.shape[0]) * keep)",
            ),
            (
                "at = (v > 0).nonzero()[:, 0]\n    return at.max() + at.min()",
                "i = torch.arange(4)\n    return torch.where(v > 0, i, -1).max() + torch.where(v > 0, i, 4).min()",
            ),
            ("    return x[keep]", "    return x, keep"),
            ("left(rows, keep)]", "(lambda x, keep: x[keep])(*left(rows, keep))]"),
        ),
        near=True,
    ),
    Followed(
        "BS102",
        "numbers, by where they end",
        "for `x\\.new_zeros\\(n\\)` \\(line \\d+\\)\n"
        "says where to write.*x\\.index_put\\(\\(i, j\\), value\\)\n"
        "for a tensor do it for all at once\n"
        "keep the tensors in the list.*torch\\.stack\n"
        "picks what is called.*nets\\[i\\]\n"
        "mask\\s+by position, torch\\.arange\\(size\\) < n\n"
        "as Python.s own lists, dicts and numbers",
        NUMBERS,
        (
            ("def sized(x):\n    n = longest(x)", "def sized(x, n):\n    n = n + 0"),
            ("sized(x)", "sized(x, longest(x))"),
            (
                "    m[a.item(), b.item()] += 1\n    return m",
                "    return m.index_put((a, b), torch.ones(()), accumulate=True)",
            ),
            (
                "    for i in ids.tolist():\n        out[i] = x[i] * 2\n    return out",
                "    return out.index_put((ids,), x[ids] * 2)",
            ),
            ("x[0].max().item()", "x[0].max()"),
            ("out.append(2.0)", "out.append(torch.tensor(2.0))"),
            ("torch.tensor(out)", "torch.stack(out)"),
            (
                "    i = int(x.sum() > 0)\n    return nets[i](x)",
                "    return torch.where(x.sum() > 0, nets[1](x), nets[0](x))",
            ),
            (
                "    n = x.max().long().item()\n    x = x.clone()\n    x[:, n:] = 0\n    return x",
                "    n = x.max().long()\n    n = torch.where(n < 0, n + 3, n)\n    return torch.where(torch.arange(3) < n, x, 0)",
            ),
            (
                (
                    "def kept(x):\n    seen = set()\n    for i in x.int().flatten().tolist():\n        seen.add(i)\n"
                    "    return x + len(seen)"
                ),
                "def kept(x, n):\n    return x + n",
            ),
            ("kept(x)]", "kept(x, len(set(x.int().flatten().tolist())))]"),
        ),
        near=True,
    ),
    f(
        "BS105",
        "one column of each row that a mask selects",
        r"in all rows, onehot = torch\.where\(keep\[:, None\] & \(torch\.arange\(onehot\.shape\[1\]",
        "keep = x[:, 0] > 0\nat = x.argmax(-1)\nonehot = torch.zeros_like(x)\nonehot[keep, at[keep]] = 1\nreturn onehot * 2",
        (
            "onehot[keep, at[keep]] = 1",
            (
                "onehot = torch.where(keep[:, None] & (torch.arange(onehot.shape[1], device=onehot.device)"
                " == at[:, None]), 1, onehot)"
            ),
        ),
    ),
    f(
        "BS105",
        "cells that a mask selects",
        r"says where to write.* and write in the caller",
        "keep = x > 0\nrow, column = x.int().abs() % 2, x.int().abs() % 3\n"
        "table = torch.zeros(2, 3)\ntable[row[keep], column[keep]] = 1\nreturn table * 2",
        (
            (
                "keep = x > 0\n    row, column = x.int().abs() % 2, x.int().abs() % 3\n"
                "    table = torch.zeros(2, 3)\n    table[row[keep], column[keep]] = 1\n    return table * 2"
            ),
            "return x > 0, x.int().abs() % 2, x.int().abs() % 3",
        ),
        (
            "say(f(x))",
            (
                "keep, row, column = f(x)\n    table = torch.zeros(2, 3)\n"
                "    table[row[keep], column[keep]] = 1\n    say(torch.compile(lambda table: table * 2)(table))"
            ),
        ),
    ),
    f(
        "BS101",
        "a branch that returns early",
        r"^The branch returns early: compute what follows as well.*torch\.where\(x\.max\(\) > 99, early, rest\)",
        "if x.max() > 99:\n    return x, x + 1\ny = x * 2\nz = y + 1\nreturn y, z",
        (
            "if x.max() > 99:\n        return x, x + 1\n    y = x * 2\n    z = y + 1\n    return y, z",
            (
                "far = x.max() > 99\n    y = x * 2\n    z = y + 1\n"
                "    return torch.where(far, x, y), torch.where(far, x + 1, z)"
            ),
        ),
    ),
    f(
        "BS101",
        "a branch between two results",
        r"torch\.where\(x\.max\(\) > 99",
        "if x.max() > 99:\n    return x\nreturn x * 2",
        (
            "if x.max() > 99:\n        return x\n    return x * 2",
            "return torch.where(x.max() > 99, x, x * 2)",
        ),
    ),
    f(
        "BS105",
        "a loop over the values that are there",
        r"run it over these, range\(n\), each under its mask x == i",
        "s = x * 0\nfor c in x.unique():\n    s = s + (x == c) * c\nreturn s",
        ("x.unique()", "range(-1, 5)"),
    ),
    f(
        "BS102",
        "a number that is kept as an index",
        r"^The number picks an element.*index_select",
        "chosen = []\nchosen.append(x.sum(0).argmax().item())\nreturn x[:, chosen]",
        ("chosen = []\n    chosen.append(x.sum(0).argmax().item())", "i = x.sum(0).argmax()"),
        ("x[:, chosen]", "x.index_select(1, i.reshape(1))"),
    ),
    f(
        "BS102",
        "a number that is an index and decides",
        r"^The number picks an element and decides a branch.*index_select",
        "i = int(x.sum(0).argmax())\nif i > 0:\n    return x[:, i]\nreturn x[:, 0] * 2",
        (
            "i = int(x.sum(0).argmax())\n    if i > 0:\n        return x[:, i]\n    return x[:, 0] * 2",
            (
                "i = x.sum(0).argmax()\n    picked = x.index_select(1, i.reshape(1)).squeeze(1)\n"
                "    return torch.where(i > 0, picked, x[:, 0] * 2)"
            ),
        ),
    ),
    f(
        "BS102",
        "a number that min() bounds",
        r"^Python's min or max compares the number.*clamp",
        "dt = min(0.01, 0.1 / (x.norm().item() + 1e-6))\nreturn x * dt",
        (
            "min(0.01, 0.1 / (x.norm().item() + 1e-6))",
            "(0.1 / (x.norm().detach() + 1e-6)).clamp(max=0.01)",
        ),
    ),
    f(
        "BS101",
        "a number that the object keeps",
        r"^What the branch does is Python's own",
        "return keeper(x)",
        (
            "        y = x * 2\n        if y.sum() > 99:\n            self.beta *= 1.5\n        return y\n",
            "        y = x * 2\n        return y, y.sum() > 99\n",
        ),
        ("return keeper(x)", "return keeper(x)[0]"),
        outside="class Keeper:\n    def __init__(self):\n        self.beta = 0.1\n"
        "    def __call__(self, x):\n        y = x * 2\n        if y.sum() > 99:\n            self.beta *= 1.5\n        return y\n"
        "keeper = Keeper()",
    ),
    f(
        "BS102",
        "an element that a test asks for",
        r"^The number picks an element of the tensor `v`: index without reading it",
        "v = x.sum(0)\ni = v.argmax()\nif v[i] < 0.3:\n    return x\nreturn x * 2",
        ("v[i]", "v.index_select(0, i.reshape(1))"),
    ),
    f(
        "BS122",
        "an optimizer that is made inside",
        r"^An optimizer is made here",
        "opt = torch.optim.SGD(list(net.parameters()), 0.5)\nreturn x * opt.param_groups[0]['lr']",
        ("    opt = torch.optim.SGD(list(net.parameters()), 0.5)\n", ""),
        (
            "net = nn.Linear(3, 1)",
            "net = nn.Linear(3, 1)\nopt = torch.optim.SGD(list(net.parameters()), 0.5)",
        ),
        outside="net = nn.Linear(3, 1)",
    ),
    f(
        "BS101",
        "a flag that is returned",
        r"return its condition as a tensor, and let the caller\s+test it",
        "y = x * 2\nif y.sum() > 99:\n    return y, True\nreturn y, False",
        ("if y.sum() > 99:\n        return y, True\n    return y, False", "return y, y.sum() > 99"),
    ),
    f(
        "BS101",
        "a flag that the module keeps as a tensor",
        r"keep a Python bool beside it, set where the tensor is set",
        "return net(x)",
        ("self.register_buffer('ready', torch.tensor(False))", "self.ready = False"),
        ("self.ready.fill_(True)", "self.ready = True"),
        outside="class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('ready', torch.tensor(False))\n        self.register_buffer('scale', torch.ones(()))\n"
        "    def forward(self, x):\n        if not self.ready:\n            self.scale.copy_(x.abs().max())\n"
        "            self.ready.fill_(True)\n        return x / self.scale\nnet = Net()",
    ),
    f(
        "BS115",
        "a loss that begins at zero",
        r"^Leave requires_grad out: what is added to the tensor carries the gradient",
        "loss = torch.tensor(0.0, requires_grad=True)\nreturn loss + (x * weight).sum()",
        ("torch.tensor(0.0, requires_grad=True)", "torch.tensor(0.0)"),
        outside="weight = torch.ones(3, requires_grad=True)",
    ),
    f(
        "BS101",
        "what Python does with it",
        r"test and\s+do it in the caller",
        "loss = x.sum()\nif loss < best['loss']:\n    best.update(state=copy.deepcopy(best['loss']))\nreturn loss",
        ("    if loss < best['loss']:\n        best.update(state=copy.deepcopy(best['loss']))\n", ""),
        (
            "    say(f(x))",
            "    loss = f(x)\n    if loss < best['loss']:\n        best.update(state=1)\n    say(loss)",
        ),
        outside="best = {'loss': 99.0}",
    ),
    f(
        "BS101",
        "text that is chosen",
        r"choose in the caller",
        "return x + 1, 'high' if x.max() > 2 else 'low'",
        ("'high' if x.max() > 2 else 'low'", "x.max() > 2"),
        ("say(f(x))", "y, high = f(x); say((y, 'high' if high else 'low'))"),
    ),
    f(
        "BS101",
        "state that is left as it is",
        r"select what is written, with torch\.where\(x\.max\(\) > 99, old, new\)",
        "update(x)\nreturn total + x.sum()",
        (
            "if x.max() > 99:\n        return\n    total.add_(x.sum())",
            "total.copy_(torch.where(x.max() > 99, total, total + x.sum()))",
        ),
        outside="total = torch.zeros(())\ndef update(x):\n    if x.max() > 99:\n        return\n    total.add_(x.sum())",
    ),
    f(
        "BS101",
        "a test that saves work",
        r"The test `mask\.any\(\)` only saves work: drop it\. .*torch\.where\(mask",
        "mask = x > 2\ny = x.clone()\nif mask.any():\n    y[mask] = 0.0\nreturn y",
        ("if mask.any():\n        y[mask] = 0.0", "y = torch.where(mask, 0.0, y)"),
    ),
    f(
        "BS301>BS101",
        "a search",
        r"do not compile the function itself",
        "seen = torch.zeros(3)\nfor s in range(3):\n    if seen[s] > 0:\n        continue\n    todo = [s]\n    while todo:\n"
        "        i = todo.pop()\n        seen[i] += x[0, i].abs()\nreturn seen",
        (
            "@torch.compile\ndef f",
            "def f",
        ),
    ),
    f(
        "BS301>BS102",
        "a loop until it converges",
        r"How often the loop runs.* depends on data",
        "err = 9.0\nwhile err > 1e-2:\n    x = x * 0.5\n    err = x.abs().max().item()\nreturn x",
        ("@torch.compile\ndef f(x):", "@torch.compile\ndef half(x):\n    return x * 0.5\ndef f(x):"),
        ("x = x * 0.5\n        err", "x = half(x)\n        err"),
    ),
    f(
        "BS102",
        "a number that is kept",
        r"keep loss\.detach\(\) in its place",
        "loss = x.sum()\nkept['loss'] = loss.item()\nreturn x + 1",
        ("loss.item()", "loss.detach()"),
        outside="kept = {}",
    ),
    f(
        "BS102",
        "a number that Python code is given",
        r"make the call in the caller",
        "y = x.sum()\nmeter.measure(y.item())\nreturn x + 1",
        ("    meter.measure(y.item())\n    return x + 1", "    return x + 1, y"),
        ("say(f(x))", "out, y = f(x); meter.measure(y.item()); say(out)"),
        outside="class Meter:\n    def measure(self, value): self.value = round(value, 2)\nmeter = [Meter()][0]",
    ),
    f(
        "BS102",
        "a number that picks a name",
        r"look it up before\s+the compiled call",
        "i = x.sum(0).argmax()\nreturn x + 1, names[i.item()]",
        ("names[i.item()]", "i"),
        ("say(f(x))", "out, i = f(x); say((out, names[i.item()]))"),
        outside="names = ['a', 'b', 'c']",
    ),
    f(
        "BS102",
        "a number that picks a row",
        r"x\.index_select\(dim, i\.reshape\(1\)\)",
        "i = int(x.sum(1).argmax())\nreturn x[i] + 1",
        ("int(x.sum(1).argmax())", "x.sum(1).argmax()"),
        ("x[i] + 1", "x.index_select(0, i.reshape(1))[0] + 1"),
    ),
    f(
        "BS102",
        "a tensor that picks a row",
        r"of the tensor `x`: index without reading it, x\.index_select\(dim, i\.reshape\(1\)\)",
        "return x[x.sum(1).argmax()] + 1",
        ("x[x.sum(1).argmax()]", "x.index_select(0, x.sum(1).argmax().reshape(1))[0]"),
    ),
    f(
        "BS102",
        "a slice up to a tensor",
        r"A Python number is needed here",
        "n = (x > 2).sum()\nreturn x[:, :n] + 1",
        ("@torch.compile", "torch._dynamo.config.capture_scalar_outputs = True\n@torch.compile"),
    ),
    f(
        "BS102",
        "a number that is searched for",
        r"torch\.searchsorted",
        "import bisect\nreturn x + bisect.bisect([0.0, 2.0], x[1, 1].item())",
        (
            "import bisect\n    return x + bisect.bisect([0.0, 2.0], x[1, 1].item())",
            "return x + torch.searchsorted(torch.tensor([0.0, 2.0]), x[1, 1], right=True)",
        ),
    ),
    f(
        "BS102",
        "a count of steps",
        r"keep it in the caller as a Python int",
        "n = int(steps.item())\nsteps.add_(1)\nif n % 2 == 0:\n    x = x * 2\nreturn x",
        ("    n = int(steps.item())\n    steps.add_(1)\n    if n % 2 == 0:", "    if even:"),
        ("def f(x):", "def f(x, even):"),
        ("for _ in range(2):\n    say(f(x))", "for n in range(2):\n    say(f(x, n % 2 == 0))"),
        outside="steps = torch.zeros(())",
        guard="",
    ),
    f(
        "BS102",
        "a function of Python's",
        r"Use torch\.log10 of the tensor",
        "y = x.abs().sum()\nz = math.log10(y.item())\nreturn x * z",
        ("math.log10(y.item())", "torch.log10(y)"),
        near=True,
    ),
    f(
        "BS103",
        "a check",
        r"assert torch\.isclose\(a,\s+b\)\.all\(\)",
        "if not torch.allclose(x, x * 1):\n    raise ValueError('differs')\nreturn x + 1",
        (
            "if not torch.allclose(x, x * 1):\n        raise ValueError('differs')",
            "assert torch.isclose(x, x * 1).all(), 'differs'",
        ),
    ),
    f(
        "BS105",
        "values that are unique",
        r"which puts it into the graph",
        "return torch.unique(x).sum() + 1",
        ("@torch.compile", SHAPES),
    ),
    f(
        "BS105",
        "runs of values",
        r"which puts it into the graph",
        "return torch.unique_consecutive(x.flatten().int(), return_counts=True)[1] + 1",
        ("@torch.compile", SHAPES),
    ),
    f(
        "BS105",
        "positions that are counted",
        r"\(x > 1\)\.sum\(\) counts",
        "return x + len(torch.nonzero(x > 1))",
        ("len(torch.nonzero(x > 1))", "(x > 1).sum()"),
    ),
    f(
        "BS105",
        "what a mask selects, and its mean",
        r"torch\.where\(x > 1, x, 0\)\.sum\(\), divided by \(x > 1\)\.sum\(\)",
        "return x * x[x > 1].mean()",
        ("x[x > 1].mean()", "(torch.where(x > 1, x, 0).sum() / (x > 1).sum())"),
        near=True,
    ),
    f(
        "BS105",
        "the ctc loss",
        r"Call ctc_loss outside",
        "y = x.log_softmax(-1)[:, None]\nreturn y, F.ctc_loss(y, torch.tensor([[1]]), (2,), (1,))",
        ("return y, F.ctc_loss(y, torch.tensor([[1]]), (2,), (1,))", "return y"),
        ("say(f(x))", "y = f(x); say((y, F.ctc_loss(y, torch.tensor([[1]]), (2,), (1,))))"),
    ),
    f(
        "BS104",
        "a flush",
        r"torch cannot run a method of a file",
        "y = x + 1\nsys.stdout.flush()\nreturn y",
        ("    sys.stdout.flush()\n", ""),
        outside="import sys",
    ),
    f(
        "BS104",
        "a print to a file",
        r"only where it has no file=",
        "y = x + 1\nprint('here', file=sys.stderr)\nreturn y",
        ("    print('here', file=sys.stderr)\n", ""),
        outside="import sys",
    ),
    f(
        "BS104",
        "a print of a number",
        r"give it the tensor itself, without \.item\(\)",
        "y = x + 1\nprint('sum', y.sum().item())\nreturn y",
        ("y.sum().item()", "y.sum()"),
        ("@torch.compile", "torch._dynamo.config.reorderable_logging_functions.add(print)\n@torch.compile"),
    ),
    f(
        "BS107",
        "a function of Python's own library",
        r"zlib\.crc32 is Python's own",
        "key = zlib.crc32(b'x')\nreturn x + 1, key",
        ("    key = zlib.crc32(b'x')\n    return x + 1, key", "    return x + 1"),
        ("say(f(x))", "say((f(x), zlib.crc32(b'x')))"),
        outside="import zlib",
    ),
    f(
        "BS107",
        "a module of Python's own library",
        r"json is Python's own",
        "scale = json.loads('{\"scale\": 2}')['scale']\nreturn x * scale",
        ("def f(x):\n    scale = json.loads('{\"scale\": 2}')['scale']", "def f(x, scale):\n    pass"),
        ("say(f(x))", "say(f(x, json.loads('{\"scale\": 2}')['scale']))"),
    ),
    f(
        "BS111",
        "a module of Python's own library",
        r"heapq is Python's own",
        "c = collections.Counter('aba')\nreturn x + c.most_common(1)[0][1]",
        (
            "def f(x):\n    c = collections.Counter('aba')\n    return x + c.most_common(1)[0][1]",
            "def f(x, n):\n    return x + n",
        ),
        ("say(f(x))", "say(f(x, collections.Counter('aba').most_common(1)[0][1]))"),
    ),
    f(
        "BS111",
        "a number that numpy makes of numbers",
        r"compute a number of numbers with plain Python, math\.ceil\(math\.log\(n\)\)",
        "return x * np.ceil(np.log(x.shape[0] * 4)).astype('int').item()",
        ("np.ceil(np.log(x.shape[0] * 4)).astype('int').item()", "math.ceil(math.log(x.shape[0] * 4))"),
    ),
    f(
        "BS102",
        "how far a tensor is rolled",
        r"or shift by an index that is a tensor, x\.index_select\(dim, \(torch\.arange\(size\) - n\) % size\)",
        "return torch.roll(x, int(x[0].argmax()), -1)",
        (
            "torch.roll(x, int(x[0].argmax()), -1)",
            "x.index_select(1, (torch.arange(3) - x[0].argmax()) % 3)",
        ),
    ),
    f(
        "BS111",
        "a product of a generator",
        r"^Give prod a list, prod\(\[… for …\]\)",
        "n = math.prod(sizes[i] for i in ('a', 'b') if i in sizes)\nreturn x * n",
        (
            "prod(sizes[i] for i in ('a', 'b') if i in sizes)",
            "prod([sizes[i] for i in ('a', 'b') if i in sizes])",
        ),
        outside="sizes = {'a': 2, 'b': 3}",
    ),
    f(
        "BS301>BS101",
        "the best of the turns of a loop",
        r"^Each turn of the loop is held against the best so far",
        "best = None\nfor k in (1.0, 2.0):\n    s = ((x - k) ** 2).sum()\n    if best is None or s < best[0]:\n"
        "        best = (s, k)\nreturn best[0], best[1]",
        (
            (
                "    best = None\n    for k in (1.0, 2.0):\n        s = ((x - k) ** 2).sum()\n"
                "        if best is None or s < best[0]:\n            best = (s, k)\n    return best[0], best[1]"
            ),
            "    return torch.stack([((x - k) ** 2).sum() for k in (1.0, 2.0)]).min(0)",
        ),
        ("say(f(x))", "low, at = f(x); say((low, (1.0, 2.0)[at]))"),
    ),
    f(
        "BS122",
        "a class that is made",
        r"^A class is made while Dynamo traces",
        "class Point:\n    scale = 2\nreturn x * Point().scale",
        ("    class Point:\n        scale = 2\n", ""),
        ("@torch.compile", "class Point:\n    scale = 2\n@torch.compile"),
    ),
    f(
        "BS107",
        "a file that is written",
        r"It reads or writes a file",
        "y = x + 1\ntorch.save({'a': 1}, 'kept.pt')\nreturn y",
        ("    torch.save({'a': 1}, 'kept.pt')\n", ""),
        ("    say(f(x))", "    say(f(x))\n    torch.save({'a': 1}, 'kept.pt')"),
    ),
    f(
        "BS107",
        "a context manager",
        r"Enter the context manager outside",
        "with torch.autograd.detect_anomaly(check_nan=False):\n    y = x + 1\nreturn y",
        ("with torch.autograd.detect_anomaly(check_nan=False):\n        y = x + 1", "y = x + 1"),
        ("    say(f(x))", "    with torch.autograd.detect_anomaly(check_nan=False):\n        say(f(x))"),
    ),
    f(
        "BS107",
        "a gradient scaler",
        r"Call the gradient scaler outside",
        "return scaler.scale(x.sum())",
        ("scaler.scale(x.sum())", "x.sum()"),
        ("say(f(x))", "say(scaler.scale(f(x)))"),
        outside="scaler = torch.amp.GradScaler('cpu', enabled=False)",
    ),
    f(
        "BS302>BS107",
        "a loader",
        r"compile what is done with one batch",
        "total = 0\nfor (part,) in loader:\n    total = total + part.sum()\nreturn total + x",
        (
            "@torch.compile\ndef f(x):",
            "@torch.compile\ndef add(total, part):\n    return total + part.sum()\ndef f(x):",
        ),
        ("total = total + part.sum()", "total = add(total, part)"),
        outside="loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), 1)",
    ),
    f(
        "BS110",
        "an interpolation",
        r"torch\.searchsorted, and weigh the two neighbours",
        "return torch.from_numpy(np.interp(x.numpy(), [0.0, 9.0], [0.0, 18.0])).float()",
        (
            "return torch.from_numpy(np.interp(x.numpy(), [0.0, 9.0], [0.0, 18.0])).float()",
            (
                "at, to = torch.tensor([0.0, 9.0]), torch.tensor([0.0, 18.0])\n"
                "    i = torch.searchsorted(at, x, right=True).clamp(1, 1)\n"
                "    w = ((x - at[i - 1]) / (at[i] - at[i - 1])).clamp(0, 1)\n    return to[i - 1] * (1 - w) + to[i] * w"
            ),
        ),
        near=True,
    ),
    f(
        "BS102",
        "a number that Python made a tensor of",
        r"made of `n` \(line \d+\): where that is a number of Python's, or a list of them, use it itself",
        "half = torch.IntTensor([n])[0]\nreturn x[:, :half] * 2",
        ("    half = torch.IntTensor([n])[0]\n    return x[:, :half] * 2", "    return x[:, :n] * 2"),
        outside="n = 2",
    ),
    f(
        "BS110",
        "the bytes of an array",
        r"tobytes\(\) is no operation on tensors",
        "return x + len(x.numpy().tobytes())",
        ("def f(x):\n    return x + len(x.numpy().tobytes())", "def f(x, n):\n    return x + n"),
        ("say(f(x))", "say(f(x, len(x.numpy().tobytes())))"),
    ),
    f(
        "BS117",
        "a sparse product",
        r"index_add\(0, row, value\[:, None\]",
        "a = torch.sparse_coo_tensor(at, value, (2, 2))\nreturn a @ x",
        (
            "a = torch.sparse_coo_tensor(at, value, (2, 2))\n    return a @ x",
            "return torch.zeros_like(x).index_add(0, at[0], value[:, None] * x[at[1]])",
        ),
        outside="at, value = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 3.0])",
    ),
    f(
        "BS119",
        "a nested tensor",
        r"layout=torch\.jagged",
        "n = torch.nested.nested_tensor([x[0], x[1, :2]])\nreturn torch.nested.to_padded_tensor(n, 0.0)",
        ("x[1, :2]])", "x[1, :2]], layout=torch.jagged)"),
    ),
    f(
        "BS123",
        "what a break handed on",
        r"order Python objects in the caller",
        "return x + sorted([x[0, 0], x[1, 1]])[0]",
        ("def f(x):\n    return x + sorted([x[0, 0], x[1, 1]])[0]", "def f(x, low):\n    return x + low"),
        ("say(f(x))", "say(f(x, sorted([x[0, 0], x[1, 1]])[0]))"),
    ),
    f(
        "BS127",
        "a number that decides",
        r"draw it before the compiled call and pass a Python bool",
        "if random.random() < 2:\n    x = x * 2\nreturn x",
        ("def f(x):\n    if random.random() < 2:", "def f(x, drawn):\n    if drawn:"),
        ("say(f(x))", "say(f(x, random.random() < 2))"),
    ),
    f(
        "BS127",
        "a number that is multiplied",
        r"random\.uniform\(0, 1\)",
        "return x * 0 + random.random() * 0",
        ("random.random()", "random.uniform(0, 1)"),
    ),
    f(
        "BS127",
        "an array that a generator of numpy's draws",
        r"^An array is drawn: draw a tensor in its place, torch\.randint.*or draw the array in the caller",
        "return x * torch.from_numpy(rng.integers(2, 3, size=3))",
        (
            "def f(x):\n    return x * torch.from_numpy(rng.integers(2, 3, size=3))",
            "def f(x, n):\n    return x * n",
        ),
        ("say(f(x))", "say(f(x, torch.from_numpy(rng.integers(2, 3, size=3))))"),
        outside="rng = np.random.default_rng(0)",
    ),
    f(
        "BS127",
        "one number of a generator of numpy's",
        r"^Draw the number in the caller and pass it in",
        "return torch.roll(x, int(rng.integers(1, 2)), 0)",
        (
            "def f(x):\n    return torch.roll(x, int(rng.integers(1, 2)), 0)",
            "def f(x, n):\n    return x.roll(n, 0)",
        ),
        ("say(f(x))", "say(f(x, int(rng.integers(1, 2))))"),
        outside="rng = np.random.default_rng(0)",
    ),
    f(
        "BS301>BS127",
        "a part that is left out at random",
        r"decides whether a part runs: draw the decisions in the caller and pass them in as Python bools",
        "for a in (1.0, 2.0):\n    if random.random() < 0.0:\n        continue\n    x = x + a\nreturn x",
        (
            "def f(x):\n    for a in (1.0, 2.0):\n        if random.random() < 0.0:",
            "def f(x, left_out):\n    for a, out in zip((1.0, 2.0), left_out):\n        if out:",
        ),
        ("say(f(x))", "say(f(x, [random.random() < 0.0 for _ in range(2)]))"),
    ),
    f(
        "BS102",
        "a number that is kept and told of",
        r"keep mean\.detach\(\) in its place, and test it and write the message in the caller",
        "mean = x.mean()\nkept.mean = mean.item()\nif kept.mean < 0:\n    print(kept.mean)\nreturn x + 1",
        ("mean.item()\n    if kept.mean < 0:\n        print(kept.mean)", "mean.detach()"),
        ("say(f(x))", "say(f(x)); kept.mean < 0 and print(kept.mean)"),
        outside="kept = type('Kept', (), {})()",
    ),
    f(
        "BS102",
        "a branch that tells, and returns",
        r"drop the \.item\(\), int\(\), float\(\) or bool\(\) and write \| for or, select with torch\.where what"
        r" the branch sets or returns, and write the message in the caller",
        "mean = x.mean()\nif torch.isnan(mean) or mean.item() > 1e3:\n    print('far')\n    return x * 0\nreturn x + mean",
        (
            "    if torch.isnan(mean) or mean.item() > 1e3:\n        print('far')\n        return x * 0\n    return x + mean",
            "    return torch.where(torch.isnan(mean) | (mean > 1e3), x * 0, x + mean)",
        ),
    ),
    f(
        "BS102",
        "a test before what only fills",
        r"The test `mask\.any\(\)` only saves work: drop it\. masked_fill and torch\.where change nothing",
        "mask = x > 3\nif mask.any().item():\n    x = x.float().masked_fill(mask[None], 0.0).type_as(x)\nreturn x[-1]",
        ("    if mask.any().item():\n        x = x", "    x = x"),
    ),
    f(
        "BS301>BS102",
        "numbers of an array",
        r"`p` comes out of numpy.*where it is only calculated with, leave the float\(\) out",
        "for p in ps:\n    x = x / float(p)\nreturn x",
        ("float(p)", "p"),
        outside="ps = np.array([2.0, 4.0], dtype=np.float32)",
    ),
    f(
        "BS301>BS101",
        "a side that selects",
        r"Select with torch\.where\(m\.any\(\), r\[m\]\.median\(\), 1\.0\), and write the side without `r\[m\]`.*"
        r"torch\.nanmedian\(torch\.where\(m, r, nan\)\)",
        "out = x[:, 0].clone()\nfor b in range(2):\n    r, m = x[b], x[b] > 0\n"
        "    out[b] = r[m].median() if m.any() else 1.0\nreturn out",
        (
            "r[m].median() if m.any() else 1.0",
            "torch.where(m.any(), torch.nanmedian(torch.where(m, r, torch.nan)), 1.0)",
        ),
    ),
    f(
        "BS101",
        "rows that are left out",
        r"The branch leaves out of `x` what `m` does not have.*keep all, and leave out at the end",
        "m = x[:, 0] > 0\nif not m.all():\n    print('some')\n    x = x[m]\nreturn x.sum()",
        (
            "    if not m.all():\n        print('some')\n        x = x[m]\n    return x.sum()",
            "    return torch.where(m[:, None], x, 0).sum()",
        ),
        near=True,
    ),
    f(
        "BS101",
        "a tensor and a count",
        r"sets a tensor and does Python's own work as well: select the tensor with torch\.where\(x\.abs\(\)\.max\(\) > 1,"
        r" new, old\), return the condition, and do the rest in the caller",
        "if x.abs().max() > 1:\n    kept.count += 1\n    x = 3 * torch.tanh(x / 3)\nreturn x + 1",
        (
            "    if x.abs().max() > 1:\n        kept.count += 1\n        x = 3 * torch.tanh(x / 3)\n    return x + 1",
            "    far = x.abs().max() > 1\n    return torch.where(far, 3 * torch.tanh(x / 3), x) + 1, far",
        ),
        ("say(f(x))", "y, far = f(x); kept.count += int(far); say(y)"),
        outside="kept = type('Kept', (), {'count': 0})()",
    ),
    f(
        "BS105",
        "positions as a list",
        r"make the list before the compiled call, as it is made of the argument `x` alone, and pass it in",
        "at = (torch.nonzero(x[:, 0] > 0).flatten()).tolist()\nreturn [one.sum() for one in torch.tensor_split(x, at)]",
        ("def f(x):\n    at = (torch.nonzero(x[:, 0] > 0).flatten()).tolist()", "def f(x, at):\n    pass"),
        ("say(f(x))", "say(f(x, torch.nonzero(x[:, 0] > 0).flatten().tolist()))"),
    ),
    f(
        "BS302>BS116",
        "a packed input under its old name",
        r"allow_rnn = True alone does not help: set it, give the RNN the padded batch.*out\[torch\.arange",
        "p = z\np = nn.utils.rnn.pack_padded_sequence(p, lens, batch_first=True)\nout, h = gru(p)\nreturn h[-1] + x.sum()",
        (
            "    p = z\n    p = nn.utils.rnn.pack_padded_sequence(p, lens, batch_first=True)\n    out, h = gru(p)\n    return h[-1]",
            "    out, _ = gru(z)\n    return out[torch.arange(2), lens - 1]",
        ),
        ("@torch.compile", "torch._dynamo.config.allow_rnn = True\n@torch.compile"),
        outside="gru = nn.GRU(3, 4, batch_first=True)\nlens = torch.tensor([2, 1])\nz = torch.ones(2, 2, 3)",
        near=True,
    ),
    f(
        "BS105",
        "a mean of two selections by one mask",
        r"what else the mask selects \(line \d+\) is taken whole as well",
        "ok = y > 0\nn = y[ok]\nreturn (x[ok] / n[:, None]).mean()",
        (
            "n = y[ok]\n    return (x[ok] / n[:, None]).mean()",
            "z = x / torch.where(ok, y, 1)[:, None]\n    return torch.where(ok[:, None], z, 0).sum() / (ok.sum() * 3)",
        ),
        outside="y = torch.tensor([2.0, -1.0])",
        near=True,
    ),
    f(
        "BS105",
        "a sum of a selection that is read in the same line",
        r"torch\.where\(m, x, 0\)\.sum\(\).*`\.item\(\)`, breaks as well: return the tensor, and read it in the caller",
        "m = x > 0\nreturn x[m].sum().item()",
        ("x[m].sum().item()", "torch.where(m, x, 0).sum()"),
        ("say(f(x))", "say(f(x).item())"),
    ),
    f(
        "BS105",
        "what is selected is ranked along the last dimension",
        r"the last dimension in `s\.topk` \(line \d+\): take all of it.*-inf, s\.masked_fill\(~m, -inf\)",
        "x = x.flatten()\nm = x > 0\ns = torch.cdist(x[:, None], x[m][:, None])\nreturn s.topk(1, dim=1).values.sum()",
        ("x[m][:, None])", "x[:, None])"),
        ("s.topk(", "s.masked_fill(~m, -torch.inf).topk("),
    ),
    f(
        "BS105",
        "what is selected is indexed by a ranking",
        r"indexed by what a ranking gave.*scores\.masked_fill\(~m, -inf\).*and index all by that, x\[i\]",
        "x = x.flatten()\nm = x > 0\nbest = x[m][x[m].topk(2).indices]\nreturn best",
        ("x[m][x[m].topk(2).indices]", "x[x.masked_fill(~m, -torch.inf).topk(2).indices]"),
    ),
    f(
        "BS101",
        "a draw that is held against what is computed",
        r"sets a tensor and does Python's own work as well: .*torch\.where\(torch\.rand\(\(\)\) < p, new, old\)",
        "p, y = x.sum().sigmoid() + 2, x * 2\nif torch.rand(()) < p:\n    x = y\n    seen.append(1)\nreturn x",
        (
            "    if torch.rand(()) < p:\n        x = y\n        seen.append(1)\n    return x",
            "    taken = torch.rand(()) < p\n    return torch.where(taken, y, x)",
        ),
        outside="seen = []",
    ),
    f(
        "BS301>BS102",
        "a loop that writes where a tensor says",
        r"x\.scatter\(dim, index, new\) to write where no index comes twice",
        "y = x[0] * 0\nfor j in range(2):\n    y[at[j]] = j + 1\nreturn y",
        (
            "for j in range(2):\n        y[at[j]] = j + 1\n    return y",
            "return y.scatter(0, at, torch.arange(2) + 1.0)",
        ),
        outside="at = torch.tensor([2, 0])",
    ),
    f(
        "BS110",
        "a loop whose number is numpy's",
        r"one here is numpy's.*int\(…\) before the compiled call",
        "n = np.max(lens)\nfor i in range(min(n, 4)):\n    x = x + i\nreturn x",
        ("def f(x):\n    n = np.max(lens)\n", "def f(x, n):\n"),
        ("say(f(x))", "say(f(x, int(np.max(lens))))"),
        outside="lens = np.array([2, 3])",
    ),
    f(
        "BS106",
        "an assert that says nothing",
        r"Assert it on the tensor: assert ~torch\.isnan\(x\)\.any\(\)\. Dynamo",
        "assert not torch.isnan(x).any()\nreturn x + 1",
        ("assert not torch", "assert ~torch"),
    ),
    f(
        "BS101",
        "a change at a place that is drawn",
        r"The branch changes tensors in place.*x = torch\.where\(x\.sum\(\) > 0, new, x\)",
        "y = x.clone()\nif x.sum() > 0:\n    y[at(1)] = 0.0\nreturn y",
        (
            "    if x.sum() > 0:\n        y[at(1)] = 0.0",
            "    new = y.clone(); new[at(1)] = 0.0\n    y = torch.where(x.sum() > 0, new, y)",
        ),
        outside="def at(n): return n",
    ),
    f(
        "BS127",
        "a choice",
        r"Choose, or shuffle, in the caller",
        "return x * random.choice([2, 2])",
        ("def f(x):\n    return x * random.choice([2, 2])", "def f(x, n):\n    return x * n"),
        ("say(f(x))", "say(f(x, random.choice([2, 2])))"),
    ),
)
