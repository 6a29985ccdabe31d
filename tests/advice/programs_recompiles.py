"""Recompiles, and what their advice makes of them."""

from __future__ import annotations

from followed import Followed

MARK = r"torch\._dynamo\.maybe_mark_dynamic\({}\)"


def calls(
    code: str, shape: str, advice: str, source: str, *change: tuple[str, str], **more: object
) -> Followed:
    return Followed(code, shape, advice, source.lstrip("\n"), change, **more)  # type: ignore[arg-type]


PLAIN = "@torch.compile\ndef f({}):\n    return {}\n"
XN = PLAIN.format("x, n", "x * n")
X = PLAIN.format("x", "x * 2")

RECOMPILES: tuple[Followed, ...] = (
    Followed(
        "BS201",
        "a size of which torch.linspace makes a constant",
        r"torch\.linspace \(line \d+\).*write begin \+ torch\.arange",
        """
@torch.compile
def f(x):
    return x + torch.linspace(-1, 1, x.shape[0])

for n in (6, 9, 12, 7, 11, 10):
    say(f(torch.ones(n)))
""",
        (("torch.linspace(-1, 1, x.shape[0])", "(-1 + torch.arange(x.shape[0]) * (2 / (x.shape[0] - 1)))"),),
        lessens="takes any n above 1",
        near=True,
    ),
    calls(
        "BS201",
        "an argument",
        MARK.format("y, 0"),
        X + "for n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(f(y))\n",
        ("    say(f(y))", "    torch._dynamo.maybe_mark_dynamic(y, 0)\n    say(f(y))"),
    ),
    calls(
        "BS201",
        "an argument, beside a function that is compiled with dynamic=False",
        "^Call " + MARK.format("y, 0"),
        X + "@torch.compile(dynamic=False)\ndef g(x):\n    return x + 1\nsay(g(x))\n"
        "for n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(f(y))\n",
        ("    say(f(y))", "    torch._dynamo.maybe_mark_dynamic(y, 0)\n    say(f(y))"),
    ),
    calls(
        "BS201",
        "two arguments that change together",
        MARK.format("y, 0") + " and " + MARK.format("z, 0"),
        PLAIN.format("x, y", "x * y")
        + "for n in (2, 3, 4):\n    y, z = torch.ones(n, 3), torch.ones(n, 3)\n    say(f(y, z))\n",
        (
            "    say(",
            "    torch._dynamo.maybe_mark_dynamic(y, 0)\n    torch._dynamo.maybe_mark_dynamic(z, 0)\n    say(",
        ),
    ),
    calls(
        "BS201",
        "height and width",
        MARK.format(r"y, \(2, 3\)"),
        X + "for n in (4, 5, 6):\n    y = torch.ones(2, 3, n, n)\n    say(f(y))\n",
        ("    say(", "    torch._dynamo.maybe_mark_dynamic(y, (2, 3))\n    say("),
    ),
    calls(
        "BS201",
        "more arguments than are marked one by one",
        r"^Pass dynamic=True to torch\.compile: that is for the compile of the second size",
        PLAIN.format("a, b, c, d", "a + b + c + d")
        + "for n in (2, 3, 4):\n    y = [torch.ones(n, 3) for _ in range(4)]\n    say(f(y[0], y[1], y[2], y[3]))\n",
        ("@torch.compile", "@torch.compile(dynamic=True)"),
    ),
    calls(
        "BS201",
        "in an object",
        MARK.format(r"batch\.ids, 0") + " and " + MARK.format(r"batch\.mask, 0"),
        "import dataclasses\n@dataclasses.dataclass\nclass Batch:\n    ids: torch.Tensor\n    mask: torch.Tensor\n"
        "@torch.compile\ndef f(b):\n    return b.ids * b.mask\n"
        "for n in (2, 3, 4):\n    batch = Batch(torch.ones(n), torch.ones(n))\n    say(f(batch))\n",
        (
            "    say(f(batch))",
            "    for one in (batch.ids, batch.mask): torch._dynamo.maybe_mark_dynamic(one, 0)\n    say(f(batch))",
        ),
    ),
    calls(
        "BS201",
        "in a mapping of one's own, by several functions",
        r"^Dimension 0 of batch\['ids'\], of the call at script\.py:\d+, came with 2, 3, and 2 functions",
        "class Batch:\n    def __init__(self, **of): self._of = of\n"
        "    def __getitem__(self, key): return self._of[key]\n    def keys(self): return self._of.keys()\n"
        "def g(x):\n    torch._dynamo.graph_break()\n    return x + 1\n"
        "@torch.compile\ndef f(b):\n    return g(b['ids'] * 2)\n"
        "for n in (2, 3, 4):\n    batch = Batch(ids=torch.ones(n))\n    say(f(batch))\n",
        ("@torch.compile\n", "@torch.compile(dynamic=True)\n"),
    ),
    calls(
        "BS201",
        "padded",
        r"pad to one size",
        X + "for n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(f(y)[:n])\n",
        ("f(y)", "f(F.pad(y, (0, 0, 0, 4 - n)))"),
    ),
    calls(
        "BS201",
        "a keyword",
        MARK.format("batch, 1"),
        X + "for n in (2, 3, 4):\n    batch = torch.ones(3, n)\n    say(f(x=batch))\n",
        ("    say(", "    torch._dynamo.maybe_mark_dynamic(batch, 1)\n    say("),
    ),
    calls(
        "BS201",
        "in a dict",
        MARK.format(r"batch\['x'\], 0"),
        "@torch.compile\ndef f(batch):\n    return batch['x'] * 2\nfor n in (2, 3, 4):\n    batch = {'x': torch.ones(n)}\n    say(f(batch))\n",
        ("    say(", "    torch._dynamo.maybe_mark_dynamic(batch['x'], 0)\n    say("),
    ),
    calls(
        "BS201",
        "after a break",
        r"dynamic=True",
        "@torch.compile\ndef f(x):\n    h = x * 2\n    print('here')\n    return h.sum(-1)\nfor n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(f(y))\n",
        ("@torch.compile", "@torch.compile(dynamic=True)"),
    ),
    calls(
        "BS201",
        "in a function inside",
        r"dynamic=True",
        "def g(h):\n    print('here')\n    return h + 1\n@torch.compile\ndef f(x):\n    return g(x * 2) * 2\nfor n in (2, 3, 4):\n    y = torch.ones(3, n)\n    say(f(y))\n",
        ("@torch.compile", "@torch.compile(dynamic=True)"),
    ),
    calls(
        "BS201",
        "after a break that is repaired",
        r"several parts of one function.*have breakscope remedy try dynamic=True",
        "@torch.compile\ndef f(x):\n    h = x * 2\n    print('here')\n    return h.sum(-1)\nfor n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(f(y))\n",
        ("@torch.compile\n", "@torch.compile(dynamic=True)\n"),
    ),
    calls(
        "BS201",
        "as large as another size at first",
        r"try dynamic=True.*with a first call whose sizes differ: dimension 1 of y was as large at the first call",
        "@torch.compile\ndef f(x):\n    h = x * 2\n    print('here')\n    return h.sum(-1)\nfor n in (3, 2, 4):\n    y = torch.ones(n, 3)\n    say(f(y))\n",
        ("@torch.compile\n", "@torch.compile(dynamic=True)\n"),
        ("for n in", "f(torch.ones(2, 3))\nfor n in"),
    ),
    calls(
        "BS201",
        "a module's input",
        MARK.format("y, 0"),
        "net = torch.compile(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))\nfor n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(net(y))\n",
        ("    say(net(y))", "    torch._dynamo.maybe_mark_dynamic(y, 0)\n    say(net(y))"),
        near=True,
    ),
    calls(
        "BS201",
        "channels of a convolution",
        MARK.format("w, 1"),
        "@torch.compile\ndef f(x, w):\n    return F.conv1d(x, w)\nfor n in (2, 3):\n    y, w = torch.ones(1, n, 8), torch.ones(2, n, 3)\n    say(f(y, w))\n",
        (
            "    say(f",
            "    torch._dynamo.maybe_mark_dynamic(y, 1)\n    torch._dynamo.maybe_mark_dynamic(w, 1)\n    say(f",
        ),
    ),
    calls(
        "BS201",
        "a last batch of one, dropped",
        r"drop_last=True",
        X + "for n in (4, 4, 1):\n    y = torch.ones(n, 3)\n    say(f(y)[:1])\n",
        ("(4, 4, 1)", "(4, 4, 4)"),
    ),
    calls(
        "BS201",
        "a batch of one, padded",
        r"is left out with drop_last=True, or padded",
        X + "for n in (4, 4, 1):\n    y = torch.ones(n, 3)\n    say(f(y)[:n])\n",
        ("f(y)", "f(F.pad(y, (0, 0, 0, 4 - n)))"),
    ),
    calls(
        "BS201",
        "an array of numpy's",
        r"make tensors of the arrays in the caller \(with torch\.from_numpy",
        "@torch.compile\ndef f(a):\n    return torch.as_tensor(a) * 2\nfor n in (2, 3, 4):\n    a = np.ones(n)\n    say(f(a))\n",
        (
            "    say(f(a))",
            "    a = torch.from_numpy(a)\n    torch._dynamo.maybe_mark_dynamic(a, 0)\n    say(f(a))",
        ),
    ),
    calls(
        "BS202",
        "a transposed input",
        r"\.clone\(memory_format=torch\.contiguous_format\)",
        X + "square = torch.arange(9.0).reshape(3, 3)\nfor y in (square, square.T):\n    say(f(y))\n",
        ("f(y)", "f(y.clone(memory_format=torch.contiguous_format))"),
    ),
    calls(
        "BS203",
        "float64 now and then",
        r"one dtype",
        X + "for y in (x, x.double()):\n    say(f(y))\n",
        ("f(y)", "f(y.float())"),
    ),
    calls(
        "BS204",
        "meta now and then",
        r"one device",
        X + "for y in (x, x.to('meta')):\n    say(tuple(f(y).shape))\n",
        ("f(y)", "f(y.to('meta'))"),
    ),
    calls(
        "BS205",
        "a gradient now and then",
        r"\.detach\(\)",
        X + "for y in (x, x.clone().requires_grad_()):\n    say(f(y))\n",
        ("f(y)", "f(y.detach())"),
    ),
    calls(
        "BS206",
        "one sample or many",
        r"one number of dimensions",
        X + "for y in (x, x[0]):\n    say(f(y).reshape(-1, 3))\n",
        ("f(y)", "f(y.reshape(-1, 3))"),
    ),
    calls(
        "BS207",
        "an int, dynamic",
        r"dynamic=True",
        XN + "for n in (2, 3, 4):\n    say(f(x, n))\n",
        ("@torch.compile", "@torch.compile(dynamic=True)"),
    ),
    calls(
        "BS207",
        "an int that an operation takes as a plain number",
        r"^Keep the values of k few, or make in the caller what it is for: torch\.diagonal \(line \d+\) takes it as a"
        r" constant",
        PLAIN.format("x, k", "torch.diagonal(x, k).sum()") + "for k in (0, 1, 2):\n    say(f(x, k))\n",
        ("torch.diagonal(x, k).sum()", "k.sum()"),
        ("say(f(x, k))", "say(f(x, torch.diagonal(x, k)))"),
    ),
    calls(
        "BS211",
        "a dict that is filled where it lacks a key",
        r"^self\.kept is filled by the code itself where it lacks a key.*look it up in the caller, and pass in",
        "class Keeper:\n    def __init__(self):\n        self.kept = {}\n    @torch.compile\n    def add(self, x):\n"
        "        n = x.shape[0]\n        if n not in self.kept:\n            self.kept[n] = torch.ones(n)\n"
        "        return (x + self.kept[n]).sum()\n"
        "c = Keeper()\nfor n in (3, 4, 5, 4): say(c.add(torch.ones(n)))\n",
        (
            "        n = x.shape[0]\n        if n not in self.kept:\n            self.kept[n] = torch.ones(n)\n",
            "",
        ),
        ("add(self, x)", "add(self, x, kept)"),
        ("x + self.kept[n]", "x + kept"),
        ("c.add(torch.ones(n))", "c.add(torch.ones(n), torch.ones(n))"),
    ),
    calls(
        "BS207",
        "an int that counts down to 0",
        r"torch compiles each side of that, not each value of n.*dynamic=True in torch\.compile",
        "@torch.compile\ndef f(x, n):\n    return x * n if n > 0 else x\nfor n in (5, 4, 3, 2, 0):\n    say(f(x, n))\n",
        ("@torch.compile", "@torch.compile(dynamic=True)"),
        lessens="have breakscope remedy try dynamic=True",
    ),
    calls(
        "BS207",
        "a tensor that indexes another",
        r"x\[t\.reshape\(1\)\]\[0\].*a constant of the code, compiled for each value \(2, 0, 1 were seen\)",
        "rows = torch.arange(12.0).reshape(4, 3)\n"
        + PLAIN.format("x, t", "x * rows[t]")
        + "for t in torch.tensor([2, 0, 1, 3]):\n    say(f(x, t))\n",
        ("rows[t]", "rows[t.reshape(1)][0]"),
    ),
    calls(
        "BS207",
        "an int, kept",
        r"keep the value the same",
        XN + "for n in (2, 3):\n    say(f(x, n)[0, 1])\n",
        ("(2, 3)", "(2, 2)"),
    ),
    calls(
        "BS207",
        "a float, as a tensor",
        r"torch\.tensor\(n\)",
        XN + "for n in (0.5, 0.25):\n    say(f(x, n))\n",
        ("say(f(x, n)", "say(f(x, torch.tensor(n))"),
    ),
    calls(
        "BS207",
        "an int, then floats",
        r"float\(n\)",
        XN + "for n in (2, 2.5, 3.5):\n    say(f(x, n))\n",
        ("say(f(x, n)", "say(f(x, torch.tensor(float(n)))"),
    ),
    calls(
        "BS207",
        "a range, few values",
        r"Keep the numbers few",
        "@torch.compile\ndef f(x, n):\n    for i in range(n):\n        x = x + i\n    return x\nfor n in (2, 3, 4, 5):\n    say(f(x, n)[0, 0] * 0)\n",
        ("say(f(x, n)", "say(f(x, 2 + n % 2)"),
        lessens="few",
    ),
    calls(
        "BS211",
        "a list that the object keeps",
        r"^Take what is needed of self\.kept in the caller",
        "class Keeper:\n    def __init__(self):\n        self.kept = []\n    @torch.compile\n    def mean(self, x):\n"
        "        return sum(self.kept) + x\nk = Keeper()\nfor n in (1, 2, 3):\n    k.kept.append(x)\n    say(k.mean(x))\n",
        ("def mean(self, x):", "def mean(self, kept, x):"),
        ("return sum(self.kept) + x", "return kept + x"),
        ("k.mean(x)", "k.mean(sum(k.kept), x)"),
    ),
    calls(
        "BS209",
        "a place in a list of numbers",
        r"one tensor of them \(a buffer\), with \S+allow_unspec_int_on_nn_module = True, does as well",
        "class Schedule(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.rates, self.at = [0.5, 0.25, 2.0, 4.0, 8.0], 0\n"
        "    def forward(self, x):\n        x = x * self.rates[self.at]\n        self.at += 1\n        return x\n"
        "step = torch.compile(Schedule())\nfor _ in range(5): say(step(x))\n",
        ("[0.5, 0.25, 2.0, 4.0, 8.0]", "torch.tensor([0.5, 0.25, 2.0, 4.0, 8.0])"),
        ("step = ", "torch._dynamo.config.allow_unspec_int_on_nn_module = True\nstep = "),
        lessens="takes any index of that after the second",
    ),
    calls(
        "BS207",
        "a number beside a size",
        r"^Where k has more than a few values, pick from table \(line \d+\) in the caller",
        "table = [1.0, 2.0, 4.0, 8.0, 9.0]\n@torch.compile\ndef f(x, k):\n    h = x * 2\n    print('here')\n"
        "    return h * table[k]\nfor k in (1, 2, 3, 4):\n    say(f(torch.ones(k + 4), k).sum() * 0)\n",
        ("table[k]", "scale"),
        ("def f(x, k):", "def f(x, scale):"),
        ("torch.ones(k + 4), k)", "torch.ones(k + 4), torch.tensor(table[k]))"),
    ),
    calls(
        "BS211",
        "a list that the function fills",
        r"return that and append in the caller; else",
        "kept = []\n@torch.compile\ndef f(x, kept):\n    kept.append(x.sum())\n    return x * 2\n"
        "for _ in range(4): say(f(x, kept))\n",
        ("    kept.append(x.sum())\n    return x * 2", "    return x * 2, x.sum()"),
        ("def f(x, kept)", "def f(x)"),
        ("say(f(x, kept))", "y, s = f(x); kept.append(s); say(y)"),
    ),
    calls(
        "BS211",
        "a list that the caller fills",
        r"^Each number of items in seen \(1 item, 2 items, 3 items\) is a version.*as one tensor, padded",
        "def total(seen):\n    return sum(seen)\n@torch.compile\ndef f(x, seen):\n    return x * total(seen)\n"
        "seen = []\nfor n in range(3):\n    seen.append(2.0)\n    say(f(x, seen))\n",
        ("sum(seen)", "seen.sum()"),
        ("f(x, seen))", "f(x, torch.tensor(seen + [0.0] * (3 - len(seen)))))"),
    ),
    calls(
        "BS209",
        "a counter that begins with None",
        r"^Let self\.at begin with a number, as None is a version of its own; then an index",
        "rows = [1.0, 2.0, 3.0, 4.0, 5.0]\nclass C:\n    def __init__(self):\n        self.at = None\n    def step(self, x):\n"
        "        self.at = 0 if self.at is None else self.at + 1\n        return x * rows[self.at]\n"
        "c = C()\nf = torch.compile(c.step)\nfor _ in range(5):\n    say(f(x))\n",
        (
            "self.at = None\n    def step(self, x):\n        self.at = 0 if self.at is None else self.at + 1\n        return x * rows[self.at]",
            (
                "self.at = -1\n    def next(self):\n        self.at += 1\n        return torch.tensor(rows[self.at])\n"
                "    def step(self, x, row):\n        return x * row"
            ),
        ),
        ("f(x))", "f(x, c.next()))"),
    ),
    calls(
        "BS211",
        "a set that is asked",
        r"ask in the caller what is in it",
        "@torch.compile\ndef f(x, known):\n    return x * 2 if 1 in known else x\n"
        "for s in ({1, 2}, {1}, {3}): say(f(x, s))\n",
        ("1 in known", "known"),
        ("f(x, s)", "f(x, 1 in s)"),
    ),
    calls(
        "BS203",
        "two kinds of numbers",
        r"two kinds of data.*convert it before the call",
        X + "for y in (torch.ones(3), torch.ones(3, dtype=torch.int64)): say(f(y))\n",
        ("say(f(y))", "say(f(y.float()))"),
    ),
    calls(
        "BS299",
        "a view at some calls",
        r"\.clone\(\) on what the caller passes as \w+, as in the call",
        X + "views = [torch.ones(n, n + 1).repeat_interleave(2, 0) for n in (3, 4)]\nwith torch.no_grad():\n"
        "    for y in (*views, torch.ones(6, 5)): say(f(y))\n",
        ("repeat_interleave(2, 0)", "repeat_interleave(2, 0).clone()"),
    ),
    calls(
        "BS207",
        "the sides of a branch on a float",
        r"asks whether r > 0\.5.*test\s+in the caller",
        "@torch.compile\ndef f(x, r):\n    return x * 2 if r > 0.5 else x + 1\n"
        "for r in (1.0, 0.7, 0.4, 0.3): say(f(x, r))\n",
        (
            "@torch.compile\ndef f(x, r):\n    return x * 2 if r > 0.5 else x + 1",
            "g, h = torch.compile(lambda x: x * 2), torch.compile(lambda x: x + 1)\ndef f(x, r):\n    return g(x) if r > 0.5 else h(x)",
        ),
    ),
    calls(
        "BS207",
        "a global int",
        r"^Pass STEP as an argument",
        "STEP = 2\n@torch.compile\ndef f(x):\n    return x * STEP\nfor STEP in (2, 3, 4): say(f(x))\n",
        ("def f(x):\n    return x * STEP", "def f(x, step):\n    return x * step"),
        ("f(x))", "f(x, STEP))"),
        ("@torch.compile", "@torch.compile(dynamic=True)"),
    ),
    calls(
        "BS207",
        "how often a loop runs",
        r"is how often a loop runs.*leave the loop to Python",
        "@torch.compile\ndef f(x, times):\n    for _ in range(times):\n        x = x * 2\n    return x\n"
        "for n in (2, 3, 4): say(f(x, n))\n",
        ("@torch.compile\ndef f", "@torch.compile\ndef g(x):\n    return x * 2\ndef f"),
        ("x = x * 2\n", "x = g(x)\n"),
    ),
    calls(
        "BS201",
        "a loop over a size",
        r"Python number of dimension 0 of y.*pad to one size",
        "@torch.compile\ndef f(x):\n    h = 0\n    for t in range(x.shape[0]):\n        h = h * 2 + x[t]\n"
        "    return h\nfor n in (2, 3, 4):\n    y = torch.ones(n, 3)\n    say(f(y))\n",
        ("say(f(y))", "say(f(F.pad(y, (0, 0, 4 - n, 0))))"),
    ),
    calls(
        "BS201",
        "a size and a number together",
        r"^Pass dynamic=True to torch\.compile \(n changed too",
        "@torch.compile\ndef f(n, x):\n    return x * n\n"
        "for n, size in ((2, 4), (3, 4), (5, 6)):\n    y = torch.ones(size, 3)\n    say(f(n, y))\n",
        ("@torch.compile", "@torch.compile(dynamic=True)"),
    ),
    calls(
        "BS201",
        "a slice made for the call",
        r"^Give what is passed as x the name y, and call torch\._dynamo\.maybe_mark_dynamic\(y, 0\)",
        X + "whole = torch.ones(9, 3)\nfor n in (2, 3, 4):\n    say(f(whole[:n]))\n",
        (
            "    say(f(whole[:n]))",
            "    y = whole[:n]\n    torch._dynamo.maybe_mark_dynamic(y, 0)\n    say(f(y))",
        ),
    ),
    calls(
        "BS209",
        "the scale of one adapter of three",
        r"the float self\.scale\['a'\] as symbolic.*make it a tensor",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.scale = {'a': 2.0, 'b': 3.0, 'c': 4.0}\n    def forward(self, x, name):\n"
        "        return x * self.scale[name]\nnet = Net()\nrun = torch.compile(net)\n"
        "for name in 'abcb':\n    say(run(x, name))\nnet.scale['a'] = 5.0\nsay(run(x, 'a'))\n",
        ("{'a': 2.0", "{'a': torch.tensor(2.0)"),
        ("= 5.0", "= torch.tensor(5.0)"),
    ),
    calls(
        "BS205",
        "a parameter that is frozen",
        r"is a parameter, and it was frozen.*before the first compiled call",
        "net = nn.Linear(3, 3)\nrun = torch.compile(net)\nrun(x)\nnet.bias.requires_grad_(False)\nsay(run(x))\n",
        ("run = ", "net.bias.requires_grad_(False)\nrun = "),
    ),
    calls(
        "BS210",
        "a member of an enum that only goes along",
        r"is a member of Kind.*leave it out of the call",
        "import enum\nclass Kind(enum.Enum):\n    A = 1\n    B = 2\n@torch.compile\ndef f(x, kind):\n"
        "    return x * 2 if kind is not None else x\nfor kind in Kind: say(f(x, kind))\n",
        ("f(x, kind))", "f(x, 1))"),
    ),
    calls(
        "BS211",
        "a dict that the first call fills",
        r"fill it before the first compiled call with all that will come",
        "@torch.compile\ndef f(x, kept):\n    if 'm' in kept:\n        kept['m'] = kept['m'] * 2\n    else:\n"
        "        kept['m'] = x * 2\n    return kept['m']\nkept = {}\nfor _ in range(3): say(f(x, kept))\n",
        ("kept = {}", "kept = {'m': x}"),
    ),
    calls(
        "BS208",
        "a flag",
        r"^double is a flag.*pass the same",
        "@torch.compile\ndef f(x, double):\n    return x * 2 if double else x\nfor double in (True, False):\n    say(f(x, double)[0, 1] * 0)\n",
        ("(True, False)", "(True, True)"),
    ),
    calls(
        "BS208",
        "a string",
        r"keep it the same",
        "@torch.compile\ndef f(x, name):\n    return x + len(name)\nfor name in ('aa', 'bb'):\n    say(f(x, name))\n",
        ("say(f(x, name)", "say(f(x, 'aa')"),
    ),
    calls(
        "BS208",
        "an environment variable",
        r"once, at import",
        "@torch.compile\ndef f(x):\n    return x * 2 if os.environ['ADVICE'] else x\nfor text in ('a', 'b'):\n    os.environ['ADVICE'] = text\n    say(f(x))\n",
        ("@torch.compile", "os.environ['ADVICE'] = 'a'\nADVICE = os.environ['ADVICE']\n@torch.compile"),
        ("if os.environ['ADVICE'] else", "if ADVICE else"),
    ),
    calls(
        "BS209",
        "a counter",
        r"tensor \(register_buffer",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 0\n    def forward(self, x):\n        self.n += 1\n        return x * self.n\nnet = torch.compile(Net())\nfor _ in range(4): say(net(x))\n",
        ("self.n = 0", "self.register_buffer('n', torch.zeros(()))"),
        ("self.n += 1", "self.n.add_(1)"),
    ),
    calls(
        "BS209",
        "a counter, with the setting",
        r"allow_unspec_int_on_nn_module = True",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 2\n    def forward(self, x):\n        self.n += 1\n        return x * self.n\nnet = torch.compile(Net(), dynamic=True)\nfor _ in range(4): say(net(x))\n",
        ("class Net", "torch._dynamo.config.allow_unspec_int_on_nn_module = True\nclass Net"),
    ),
    calls(
        "BS209",
        "a value made at the first call",
        r"in __init__",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = None\n    def forward(self, x):\n        if self.scale is None:\n            self.scale = x.abs().max()\n        return x / self.scale\nnet = torch.compile(Net())\nfor _ in range(3): say(net(x))\n",
        ("self.scale = None", "self.scale = x.abs().max()"),
        near=True,
    ),
    calls(
        "BS210",
        "a new function each time",
        r"one and the same object to save one",
        "@torch.compile\ndef f(x, g):\n    return g(x)\ndef double(z): return z * 2\ndef twice(z): return z + z\nfor i in range(2):\n    say(f(x, (double, twice)[i]))\n",
        ("(double, twice)[i]", "double"),
    ),
    calls(
        "BS210",
        "None or a tensor",
        r"one type",
        "@torch.compile\ndef f(x, bias):\n    return x + 0 if bias is None else x + bias\nfor bias in (None, torch.zeros(3)):\n    say(f(x, bias))\n",
        ("say(f(x, bias))", "say(f(x, torch.zeros(3) if bias is None else bias))"),
    ),
    calls(
        "BS211",
        "a list that grows",
        r"of tensors of one shape, as one tensor",
        "@torch.compile\ndef f(parts):\n    return sum(parts)\nfor n in (2, 3):\n    parts = [x] * n\n    say(f(parts))\n",
        (
            "@torch.compile\ndef f(parts):\n    return sum(parts)",
            "@torch.compile(dynamic=True)\ndef f(parts):\n    return parts.sum(0)",
        ),
        ("f(parts))", "f(torch.stack(parts)))"),
    ),
    calls(
        "BS211",
        "a table that a library fills",
        r"^Run a step uncompiled before the first compiled call: registry\.KNOWN is a table",
        "registry = type(os)('registry')\nsys.modules['registry'] = registry\n"
        "exec('KNOWN = {}\\ndef known(t):\\n    if type(t) not in KNOWN:\\n        KNOWN[type(t)] = 2.0\\n"
        "    return KNOWN[type(t)]', registry.__dict__)\n"
        "w = nn.Parameter(torch.ones(3))\ndef net(x):\n    return x * registry.known(x) * registry.known(w)\n"
        "f = torch.compile(net)\nfor i in range(3):\n    say(f(x))\n",
        ("f = torch.compile(net)", "net(x)\nf = torch.compile(net)"),
    ),
    calls(
        "BS212",
        "gradients at each call",
        r"always inside, or always outside",
        X
        + "w = x.clone().requires_grad_()\nfor on in (True, False):\n    with torch.set_grad_enabled(on): say(f(w))\n",
        ("set_grad_enabled(on)", "set_grad_enabled(True)"),
    ),
    calls(
        "BS212",
        "the default dtype",
        r"set_default_dtype once",
        X
        + "for dtype in (torch.float32, torch.float64):\n    torch.set_default_dtype(dtype)\n    say(f(x))\n",
        ("(torch.float32, torch.float64)", "(torch.float64, torch.float64)"),
    ),
    calls(
        "BS213",
        "an item, kept a tensor",
        r"^Where it is read with \.item\(\), keep the value from line \d+ a tensor",
        "@torch.compile\ndef f(x):\n    n = x.sum().int().item()\n    return x * n\nfor y in (x, x + 1, x + 2): say(f(y))\n",
        (".int().item()", ".int()"),
    ),
    calls(
        "BS213",
        "an item, captured",
        r"capture_scalar_outputs = True",
        "@torch.compile\ndef f(x):\n    n = x.sum().int().item()\n    return x * n\nfor y in (x, x + 1, x + 2): say(f(y))\n",
        ("@torch.compile", "torch._dynamo.config.capture_scalar_outputs = True\n@torch.compile"),
    ),
    calls(
        "BS214",
        "a branch on a size",
        r"take away the branch",
        "@torch.compile(dynamic=True)\ndef f(x):\n    return x * 2 if x.shape[0] > 3 else x + x\nfor n in (2, 5): say(f(torch.ones(n)))\n",
        ("x * 2 if x.shape[0] > 3 else x + x", "x * 2"),
    ),
    calls(
        "BS214",
        "a slice",
        r"laid out in another way, and \.clone\(memory_format=torch\.contiguous_format\) where it is made",
        "@torch.compile(dynamic=True)\ndef f(x):\n    return x * 2\n"
        "y = torch.ones(3, 24, 16)\nfor z in (y[:2, :12].clone(), y[:2, -12:]): say(f(z))\n",
        ("y[:2, -12:]", "y[:2, -12:].clone(memory_format=torch.contiguous_format)"),
    ),
    calls(
        "BS215",
        "one tensor twice",
        r"where they meet, \.clone\(\) a tensor",
        "@torch.compile\ndef f(a, b):\n    return a * 2 + b\nfor b in (x + 0, x): say(f(x, b))\n",
        ("f(x, b)", "f(x, b.clone())"),
    ),
    calls(
        "BS216",
        "made in inference mode",
        r"inference_mode\(\)",
        X + "with torch.inference_mode(): made = x + 0\nfor y in (x, made): say(f(y))\n",
        ("torch.inference_mode()", "torch.no_grad()"),
    ),
    calls(
        "BS303",
        "a range",
        r"Keep the numbers few",
        "torch._dynamo.config.recompile_limit = 3\n@torch.compile\ndef f(x, n):\n    for i in range(n):\n        x = x + i\n    return x\nfor n in (2, 3, 4, 5, 6):\n    say(f(x, n)[0, 0] * 0)\n",
        ("say(f(x, n)", "say(f(x, 2 + n % 2)"),
    ),
    calls(
        "BS303",
        "a counter",
        r"register_buffer",
        "torch._dynamo.config.recompile_limit = 3\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 0\n    def forward(self, x):\n        self.n += 1\n        return x * self.n\nnet = torch.compile(Net())\nfor _ in range(6): say(net(x))\n",
        ("self.n = 0", "self.register_buffer('n', torch.zeros(()))"),
        ("self.n += 1", "self.n.add_(1)"),
    ),
    calls(
        "BS190",
        "a wrong shape",
        r"Repair the error in eager",
        PLAIN.format("x", "x.view(5, 5)") + "with contextlib.suppress(Exception): f(x)\nsay(1)\n",
        ("x.view(5, 5)", "x.view(3, 2)"),
    ),
    calls(
        "BS191",
        "an error that is caught",
        r"Write the line so that stand-ins without data pass it",
        "@torch.compile\ndef f(x, w):\n    try:\n        return x @ w\n    except RuntimeError:\n        return x @ w.T\nwith contextlib.suppress(RuntimeError): f(x, torch.ones(2, 3))\nsay(1)\n",
        (
            "    try:\n        return x @ w\n    except RuntimeError:\n        return x @ w.T",
            "    return x @ w if x.shape[-1] == w.shape[0] else x @ w.T",
        ),
    ),
    calls(
        "BS208",
        "a list of flags",
        r"^flags holds flags, and each pattern of them that comes is a version",
        "@torch.compile\ndef f(x, flags):\n    return x * torch.tensor([not one for one in flags])\n"
        "for flags in ([True, False], [False, True], [True, True]):\n    say(f(x[:, :2], flags))\n",
        ("x * torch.tensor([not one for one in flags])", "x * ~flags"),
        ("f(x[:, :2], flags)", "f(x[:, :2], torch.tensor(flags))"),
    ),
    calls(
        "BS211",
        "an attribute of a global that comes later",
        r"^Set \w*\.?kept\.names before the first compiled call",
        "class Kept: pass\nkept = Kept()\n@torch.compile\ndef f(x):\n    if not hasattr(kept, 'names'):\n"
        "        kept.names = 1\n    return x + kept.names\nfor _ in range(2): say(f(x))\n",
        ("kept = Kept()\n", "kept = Kept()\nkept.names = 1\n"),
    ),
    calls(
        "BS211",
        "a state that the first call fills",
        r"^Fill state before the first compiled call, as by one call in eager: it is empty at the first call",
        "state = {}\ndef step(x, state):\n    if not state: state['n'] = torch.zeros(())\n"
        "    state['n'] = state['n'] + 1\n    return x * state['n']\nf = torch.compile(step)\n"
        "for _ in range(3): say(f(x, state))\n",
        ("for _ in range(3): say(f(x, state))", "say(step(x, state))\nfor _ in range(2): say(f(x, state))"),
    ),
    calls(
        "BS211",
        "lists of several lengths",
        r"^rows holds lists, and each of their lengths \(1 item, 2 items\) is a version",
        "@torch.compile\ndef f(rows):\n    return torch.tensor([one + [0] * (3 - len(one)) for one in rows]) * 2\n"
        "for rows in ([[1], [2]], [[1, 2], [3]]): say(f(rows))\n",
        (
            "    return torch.tensor([one + [0] * (3 - len(one)) for one in rows]) * 2",
            "    return rows * 2",
        ),
        ("f(rows))", "f(torch.tensor([one + [0] * (3 - len(one)) for one in rows])))"),
    ),
    calls(
        "BS211",
        "arguments by place and by name",
        r"^Calls pass other arguments by place \(2 items, 1 item in a\)",
        "@torch.compile\ndef f(*a, **k):\n    return a[0] * 2 + (a[1] if len(a) > 1 else k['y'])\n"
        "say(f(x, x)), say(f(x, y=x)), say(f(x, x))\n",
        ("f(x, y=x)", "f(x, x)"),
    ),
    calls(
        "BS211",
        "a counter of itertools",
        r"^Draw the next number of numbers in the caller",
        "numbers = itertools.count()\n@torch.compile\ndef f(x):\n    return x + 0, next(numbers)\n"
        "for _ in range(3): say(f(x))\n",
        ("    return x + 0, next(numbers)", "    return x + 0"),
        ("say(f(x))", "say((f(x), next(numbers)))"),
    ),
    calls(
        "BS209",
        "a setting in which two objects differ",
        r"^No line here but __init__ sets self\.n: objects of Net that were made with another value.*inlined",
        "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.n = n\n"
        "    def forward(self, x):\n        return x * self.n\na, b = Net(2), Net(3)\n"
        "a.compile(), b.compile()\nfor _ in range(2): say((a(x), b(x)))\n",
        ("a.compile(), b.compile()\n", "both = torch.compile(lambda x: (a(x), b(x)))\n"),
        ("say((a(x), b(x)))", "say(both(x))"),
    ),
    calls(
        "BS209",
        "a number that one object of a list keeps",
        r"^One compile for a second value is normal \(0, 1 were seen\).*keep the value the same",
        "class Track:\n    def __init__(self): self.age = 0\nclass Keeper:\n    def __init__(self): self.tracks = [Track()]\n"
        "    def step(self, x):\n        for one in self.tracks: one.age = one.age + 1\n        return x + 1\n"
        "keeper = Keeper()\nf = torch.compile(keeper.step)\nfor _ in range(4): say((f(x), keeper.tracks[0].age))\n",
        ("        for one in self.tracks: one.age = one.age + 1\n", ""),
        (
            "say((f(x), keeper.tracks[0].age))",
            "y = f(x); keeper.tracks[0].age = keeper.tracks[0].age + 1; say((y, keeper.tracks[0].age))",
        ),
    ),
    calls(
        "BS306",
        "a backend that fails",
        r"--backend eager",
        "def broken(graph, inputs):\n    raise ValueError('no backend today')\nf = torch.compile(lambda x: x * 2, backend=broken)\nwith contextlib.suppress(Exception): f(x)\nsay(1)\n",
        ("backend=broken", "backend='eager'"),
        options=("--backend", "as-script"),
    ),
)
