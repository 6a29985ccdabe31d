"""Programs whose obvious rewrite is wrong. The proof must find each wrong; no rule may have one proved.

``f`` is a function, or a module class. ``calls`` are what the script does: in most of them old and new agree,
so that the proof has to find by itself where they part.
"""

from __future__ import annotations

from dataclasses import dataclass

GRAD = "torch.rand(3, 4).add(0.1).requires_grad_()"
PLAIN = "torch.randn(3, 4)"


@dataclass(frozen=True)
class Program:
    name: str
    before: str
    wrong: str
    calls: tuple[str, ...] = (PLAIN,)


PROGRAMS = (
    Program(
        "gradient of sqrt through where",
        "def f(x):\n    if (x > 0).all():\n        return torch.sqrt(x)\n    return x * 0",
        "def f(x):\n    return torch.where((x > 0).all(), torch.sqrt(x), x * 0)",
        (GRAD,),
    ),
    Program(
        "gradient through a guarded division",
        "def f(x, d):\n    if d.abs() > 0:\n        return x / d\n    return x * 1",
        "def f(x, d):\n    return torch.where(d.abs() > 0, x / d, x * 1)",
        (f"{GRAD}, torch.tensor(2.0, requires_grad=True)",),
    ),
    Program(
        "guarded integer division",
        "def f(a, n):\n    if n > 0:\n        return a // n\n    return a * 0",
        "def f(a, n):\n    return torch.where(n > 0, a // n, a * 0)",
        ("torch.arange(6), torch.tensor(2)",),
    ),
    Program(
        "a branch of another dtype",
        "def f(x):\n    if x.sum() > 0:\n        return x.double()\n    return x * 1",
        "def f(x):\n    return torch.where(x.sum() > 0, x.double(), x * 1)",
        ("torch.ones(3)",),
    ),
    Program(
        "a branch that is a Python number",
        "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return 0",
        "def f(x):\n    return torch.where(x.sum() > 0, x * 2, 0)",
        ("torch.ones(3)",),
    ),
    Program(
        "in place on an argument",
        "def f(x):\n    if x.sum() > 0:\n        x.add_(1)\n    return x",
        "def f(x):\n    x = torch.where(x.sum() > 0, x + 1, x)\n    return x",
    ),
    Program(
        "in place on a view",
        "def f(x):\n    x = x * 1\n    y = x[0]\n    if y.sum() > 0:\n        y.mul_(2)\n    return x",
        "def f(x):\n    x = x * 1\n    y = x[0]\n    y = torch.where(y.sum() > 0, y * 2, y)\n    return x",
        ("-torch.ones(3, 4)",),
    ),
    Program(
        "the argument itself comes back",
        "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x",
        "def f(x):\n    return torch.where(x.sum() > 0, x + 1, x)",
        ("torch.ones(3)",),
    ),
    Program(
        "a branch of another shape",
        "def f(x):\n    if x.sum() > 0:\n        return x[:1] * 2\n    return x * 1",
        "def f(x):\n    return torch.where(x.sum() > 0, x[:1] * 2, x * 1)",
        ("-torch.ones(3, 4)",),
    ),
    Program(
        "order of exceptions",
        "def f(x):\n    if x.isnan().any():\n        raise ValueError('nan')\n    if not x.isfinite().all():\n"
        "        raise OverflowError('inf')\n    return x * 2",
        "def f(x):\n    if not x.isfinite().all():\n        raise OverflowError('inf')\n    if x.isnan().any():\n"
        "        raise ValueError('nan')\n    return x * 2",
    ),
    Program(
        "random numbers in a branch",
        "def f(x):\n    y = x * 1\n    if x.sum() > 0:\n        y = y + torch.randn_like(x)\n    return y",
        "def f(x):\n    y = x * 1\n    y = torch.where(x.sum() > 0, y + torch.randn_like(x), y)\n    return y",
        ("torch.ones(3)",),
    ),
    Program(
        "dropout in a branch",
        "def f(x):\n    if x.sum() > 0:\n        return F.dropout(x, 0.5)\n    return x * 1",
        "def f(x):\n    return torch.where(x.sum() > 0, F.dropout(x, 0.5), x * 1)",
        ("torch.ones(3)",),
    ),
    Program(
        "classes of a one-hot that the recorded calls had",
        "def f(i):\n    return F.one_hot(i).float() * 2",
        "def f(i):\n    return F.one_hot(i, num_classes=5).float() * 2",
        ("torch.tensor([0, 4, 2])", "torch.tensor([4, 1])"),
    ),
    Program(
        "a flag that the first call changes",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(4))\n    def forward(self, x):\n"
        "        self.w.requires_grad = False\n        return x * self.w",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(4))\n    def forward(self, x):\n        return x * self.w",
    ),
    Program(
        "what follows the exit of a loop is not masked",
        "def f(x):\n    y = x * 1\n    for _ in range(3):\n        if y.sum() > 2:\n            break\n"
        "        y = y + 1\n    return y",
        "def f(x):\n    y = x * 1\n    running = torch.ones((), dtype=torch.bool)\n    for _ in range(3):\n"
        "        running = running & ~(y.sum() > 2)\n        y = y + 1\n    return y",
        ("-torch.ones(3) * 9",),
    ),
    Program(
        "what one iteration leaves behind a loop",
        "def f(x):\n    y = x * 1\n    for _ in range(4):\n        step = y * 0.5\n        y = y + step\n"
        "        if y.sum() > 20:\n            break\n    return y + step",
        "def f(x):\n    y = x * 1\n    running = torch.ones((), dtype=torch.bool)\n    for _ in range(4):\n"
        "        step = y * 0.5\n        y = torch.where(running, y + step, y)\n"
        "        running = running & ~(y.sum() > 20)\n    return y + step",
        ("torch.ones(3)",),
    ),
    Program(
        "a loop whose exit can be taken back",
        "def f(x):\n    y = x * 1\n    for i in range(3):\n        if y[i] > 0:\n            break\n"
        "        y = y - 1\n    return y",
        "def f(x):\n    y = x * 1\n    for i in range(3):\n        y = torch.where(y[i] > 0, y, y - 1)\n"
        "    return y",
        ("-torch.ones(3)",),
    ),
    Program(
        "gradient through an iteration that was not taken",
        "def f(x):\n    y = x * 1\n    for _ in range(2):\n        if (y < 0.05).any():\n            break\n"
        "        y = torch.sqrt(y) - 0.1\n    return y",
        "def f(x):\n    y = x * 1\n    running = torch.ones((), dtype=torch.bool)\n    for _ in range(2):\n"
        "        running = running & ~(y < 0.05).any()\n"
        "        y = torch.where(running, torch.sqrt(y) - 0.1, y)\n    return y",
        (GRAD,),
    ),
    Program(
        "and that guarded None",
        "def f(x, m=None):\n    if m is not None and (m > 0).any():\n        return x * m\n    return x * 1",
        "def f(x, m=None):\n    if (m is not None) & (m > 0).any():\n        return x * m\n    return x * 1",
        ("torch.ones(3), torch.ones(3)", "torch.ones(3)"),
    ),
    Program(
        "and that guarded an index",
        "def f(x):\n    if x.numel() > 0 and x[0] > 0:\n        return x * 2\n    return x * 1",
        "def f(x):\n    return torch.where((x.numel() > 0) & (x[0] > 0), x * 2, x * 1)",
        ("torch.ones(3)",),
    ),
    Program(
        "a mutable default",
        "def f(x, seen=[]):\n    if x.sum() > 0:\n        seen.append(1)\n    return x * len(seen)",
        "def f(x, seen=[]):\n    return torch.where(x.sum() > 0, x * (len(seen) + 1), x * len(seen))",
        ("-torch.ones(3)",),
    ),
    Program(
        "a closure that counts",
        "def make():\n    n = 0\n    def f(x):\n        nonlocal n\n        if x.sum() > 0:\n            n += 1\n"
        "        return x + n\n    return f\nf = make()",
        "def make():\n    n = 0\n    def f(x):\n        nonlocal n\n"
        "        return torch.where(x.sum() > 0, x + (n + 1), x + n)\n    return f\nf = make()",
        ("-torch.ones(3)",),
    ),
    Program(
        "a property with effects",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.reads = 0\n"
        "    @property\n    def scale(self):\n        self.reads += 1\n        return 2.0\n"
        "    def forward(self, x):\n        if x.sum() > 0:\n            return x * self.scale\n        return x * 1",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.reads = 0\n"
        "    @property\n    def scale(self):\n        self.reads += 1\n        return 2.0\n"
        "    def forward(self, x):\n        return torch.where(x.sum() > 0, x * self.scale, x * 1)",
        ("torch.ones(3)",),
    ),
    Program(
        "a __bool__ that counts",
        "class Flag:\n    asked = 0\n    def __init__(self, t):\n        self.t = t\n    def __bool__(self):\n"
        "        Flag.asked += 1\n        return bool(self.t > 0)\n"
        "def f(x):\n    flag = Flag(x.sum())\n    if flag:\n        return x * 2\n    return x * 1",
        "class Flag:\n    asked = 0\n    def __init__(self, t):\n        self.t = t\n    def __bool__(self):\n"
        "        Flag.asked += 1\n        return bool(self.t > 0)\n"
        "def f(x):\n    flag = Flag(x.sum())\n    return torch.where(flag.t > 0, x * 2, x * 1)",
    ),
    Program(
        "autocast changes one branch's dtype",
        "def f(x):\n    with torch.autocast('cpu', torch.bfloat16):\n        y = x @ x.t()\n"
        "        if y.sum() > 0:\n            y = y + x.sum()\n            y = y.float()\n    return y",
        "def f(x):\n    with torch.autocast('cpu', torch.bfloat16):\n        y = x @ x.t()\n"
        "        y = torch.where(y.sum() > 0, (y + x.sum()).float(), y)\n    return y",
        ("torch.ones(3, 3)",),
    ),
    Program(
        "float() cuts the gradient",
        "def f(x, s):\n    return x * float(s)",
        "def f(x, s):\n    return x * s",
        (f"{GRAD}, torch.tensor(2.0, requires_grad=True)",),
    ),
    Program(
        "float() forgets the dtype",
        "def f(x, s):\n    return x * float(s)",
        "def f(x, s):\n    return x * s",
        ("torch.tensor(3.0), torch.tensor(2.0, dtype=torch.float64)",),
    ),
    Program(
        "int() truncates",
        "def f(x, t):\n    return x * int(t)",
        "def f(x, t):\n    return x * t",
        ("torch.ones(3), torch.tensor(2.0)",),
    ),
    Program(
        "Python's numbers do not overflow",
        "def f(x, t):\n    return x * (t.item() * 60000 / 60000)",
        "def f(x, t):\n    return x * (t * 60000 / 60000)",
        ("torch.ones(3, dtype=torch.float16), torch.tensor(1.0, dtype=torch.float16)",),
    ),
    Program(
        "a chain of comparisons stops early",
        "def top(x):\n    if x.sum() < 0:\n        raise RuntimeError('negative')\n    return x.max()\n"
        "def f(x):\n    if 0 < x.sum() < top(x):\n        return x * 2\n    return x * 1",
        "def top(x):\n    if x.sum() < 0:\n        raise RuntimeError('negative')\n    return x.max()\n"
        "def f(x):\n    if (0 < x.sum()) & (x.sum() < top(x)):\n        return x * 2\n    return x * 1",
        ("torch.ones(3)",),
    ),
    Program(
        "max() of tensors and NaN",
        "def f(a, b):\n    return max(a.sum(), b.sum()) * 2",
        "def f(a, b):\n    return torch.maximum(a.sum(), b.sum()) * 2",
        ("torch.ones(3), torch.zeros(3)",),
    ),
    Program(
        "max() returns one of its arguments",
        "def f(a, b):\n    return max(a, b)",
        "def f(a, b):\n    return torch.maximum(a, b)",
        ("torch.tensor(1.0), torch.tensor(0.0)",),
    ),
    Program(
        "all() of nothing",
        "def f(x, *ts):\n    if all(t > 0 for t in ts):\n        return x * 2\n    return x * 1",
        "def f(x, *ts):\n    return torch.where(torch.stack(ts).min() > 0, x * 2, x * 1)",
        ("torch.ones(3), torch.tensor(1.0)", "torch.ones(3)"),
    ),
    Program(
        "torch.equal does not broadcast",
        "def f(a, b):\n    if torch.equal(a, b):\n        return a + 1\n    return a * 1",
        "def f(a, b):\n    return torch.where((a == b).all(), a + 1, a * 1)",
        ("torch.randn(3, 4), torch.randn(1, 4)",),
    ),
    Program(
        "not (x > 0) is not x <= 0",
        "def f(x):\n    if not (x > 0).all():\n        return x * 0 + 1\n    return x * 2",
        "def f(x):\n    return torch.where((x <= 0).any(), x * 0 + 1, x * 2)",
    ),
    Program(
        "blending instead of choosing",
        "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return torch.exp(x)",
        "def f(x):\n    c = (x.sum() > 0).float()\n    return c * (x * 2) + (1 - c) * torch.exp(x)",
    ),
    Program(
        "a print is dropped",
        "def f(x):\n    if x.sum() > 0:\n        print('positive')\n    return x * 2",
        "def f(x):\n    return x * 2",
        ("-torch.ones(3)",),
    ),
    Program(
        "a warning is dropped",
        "import warnings\ndef f(x):\n    if x.isnan().any():\n        warnings.warn('nan')\n    return x * 2",
        "import warnings\ndef f(x):\n    return x * 2",
    ),
    Program(
        "log messages change places",
        "import logging\nlog = logging.getLogger('m')\n"
        "def f(x):\n    log.warning('one')\n    log.warning('two')\n    return x * 2",
        "import logging\nlog = logging.getLogger('m')\n"
        "def f(x):\n    log.warning('two')\n    log.warning('one')\n    return x * 2",
    ),
    Program(
        "a cached warning is dropped",
        "import functools, logging\nlog = logging.getLogger('m')\n@functools.lru_cache(None)\n"
        "def once(text):\n    log.warning(text)\n"
        "def f(x):\n    once('slow')\n    return x * 2",
        "import functools, logging\nlog = logging.getLogger('m')\n@functools.lru_cache(None)\n"
        "def once(text):\n    log.warning(text)\n"
        "def f(x):\n    return x * 2",
    ),
    Program(
        "an attribute is always written",
        "class f(nn.Module):\n    last = None\n    def forward(self, x):\n        if x.sum() > 0:\n"
        "            self.last = x * 1\n        return x * 2",
        "class f(nn.Module):\n    last = None\n    def forward(self, x):\n        self.last = x * 1\n"
        "        return x * 2",
        ("torch.ones(3)",),
    ),
    Program(
        "a counter always counts",
        "class f(nn.Module):\n    n = 0\n    def forward(self, x):\n        if x.sum() > 0:\n            self.n += 1\n"
        "        return x * 2",
        "class f(nn.Module):\n    n = 0\n    def forward(self, x):\n        self.n += 1\n        return x * 2",
        ("torch.ones(3)",),
    ),
    Program(
        "a buffer is replaced, not updated",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('mean', torch.ones(4))\n        self.seen = self.mean\n"
        "    def forward(self, x):\n        if x.sum() > 0:\n            self.mean.mul_(0.5)\n        return x * self.mean",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('mean', torch.ones(4))\n        self.seen = self.mean\n"
        "    def forward(self, x):\n        self.mean = torch.where(x.sum() > 0, self.mean * 0.5, self.mean)\n"
        "        return x * self.mean",
        ("-torch.ones(3, 4)",),
    ),
    Program(
        "copy_ into an aliased rope buffer",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('inv', torch.arange(1.0, 5.0))\n        self.original = self.inv\n"
        "    def forward(self, x, pos):\n        n = pos.max() + 1\n        if n > 8:\n"
        "            self.register_buffer('inv', self.original / 2)\n        else:\n"
        "            self.register_buffer('inv', self.original)\n        return x * self.inv",
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('inv', torch.arange(1.0, 5.0))\n        self.original = self.inv\n"
        "    def forward(self, x, pos):\n        n = pos.max() + 1\n"
        "        self.inv.copy_(torch.where(n > 8, self.original / 2, self.original))\n        return x * self.inv",
        ("torch.ones(3, 4), torch.arange(5)", "torch.ones(3, 4), torch.arange(12)"),
    ),
    Program(
        "a masked mean lets NaN in",
        "def f(x, m):\n    return x[m].mean()",
        "def f(x, m):\n    return (x * m).sum() / m.sum()",
        ("torch.ones(4), torch.tensor([True, False, True, True])",),
    ),
    Program(
        "a count becomes a tensor",
        "def f(x):\n    return x[x > 0].shape[0]",
        "def f(x):\n    return (x > 0).sum()",
    ),
    Program(
        "gradient of a log outside its domain",
        "def f(x):\n    m = x > 0\n    o = torch.zeros_like(x)\n    o[m] = torch.log(x[m])\n    return o",
        "def f(x):\n    m = x > 0\n    return torch.where(m, torch.log(x), torch.zeros_like(x))",
        (GRAD,),
    ),
    Program(
        "a loop with a bound",
        "def f(x):\n    x = x * 1\n    while x.abs().max() > 1:\n        x = x / 2\n    return x",
        "def f(x):\n    x = x * 1\n    for _ in range(3):\n        x = torch.where(x.abs().max() > 1, x / 2, x)\n    return x",
        ("torch.ones(3)",),
    ),
    Program(
        "range of a tensor with a bound",
        "def f(x, n):\n    for _ in range(int(n)):\n        x = x + 1\n    return x * 1",
        "def f(x, n):\n    for i in range(4):\n        x = torch.where(i < n, x + 1, x)\n    return x * 1",
        ("torch.ones(3), torch.tensor(2)",),
    ),
    Program(
        "a check that a return used to skip",
        "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    if x.min() < -100:\n        raise ValueError('low')\n"
        "    return x * 1",
        "def f(x):\n    if x.min() < -100:\n        raise ValueError('low')\n"
        "    return torch.where(x.sum() > 0, x * 2, x * 1)",
    ),
    Program(
        "a copy that was needed",
        "import copy\ndef f(x):\n    y = copy.deepcopy(x)\n    y.add_(1)\n    return x * 2 + y",
        "import copy\ndef f(x):\n    y = x\n    y.add_(1)\n    return x * 2 + y",
    ),
    Program(
        "detach in a branch",
        "def f(x):\n    y = x * 2\n    if x.sum() > 0:\n        y = y.detach()\n    return y + 1",
        "def f(x):\n    y = x * 2\n    y = torch.where(x.sum() > 0, y.detach(), y)\n    return y + 1",
        (GRAD,),
    ),
    Program(
        "another memory layout",
        "def f(x):\n    if x.sum() > 0:\n        return (x * 2).t()\n    return x * 1",
        "def f(x):\n    return torch.where(x.sum() > 0, (x * 2).t(), x * 1)",
        ("torch.ones(3, 3)",),
    ),
    Program(
        "a global cache",
        "CACHE = {}\ndef f(x):\n    if x.sum() > 0:\n        CACHE['x'] = x * 1\n    return x * 2",
        "CACHE = {}\ndef f(x):\n    CACHE['x'] = x * 1\n    return x * 2",
        ("torch.ones(3)",),
    ),
    Program(
        "a global number",
        "COUNT = 0\ndef f(x):\n    global COUNT\n    if x.sum() > 0:\n        COUNT += 1\n    return x * 2",
        "COUNT = 0\ndef f(x):\n    global COUNT\n    COUNT += 1\n    return x * 2",
        ("torch.ones(3)",),
    ),
    Program(
        "a list instead of a tuple",
        "def f(x):\n    if x.sum() > 0:\n        return x * 2, x * 3\n    return x * 1, x * 4",
        "def f(x):\n    c = x.sum() > 0\n    return [torch.where(c, x * 2, x * 1), torch.where(c, x * 3, x * 4)]",
    ),
    Program(
        "one tensor returned twice",
        "def f(x):\n    y = x * 2\n    if x.sum() > 0:\n        return y, y\n    return y, x * 1",
        "def f(x):\n    y = x * 2\n    return y, torch.where(x.sum() > 0, y, x * 1)",
    ),
    Program(
        "layerdrop runs the layer",
        "def f(x):\n    if torch.rand([]) < 0.5:\n        return x * 1\n    return F.dropout(x, 0.5)",
        "def f(x):\n    return torch.where(torch.rand([]) < 0.5, x * 1, F.dropout(x, 0.5))",
    ),
    Program(
        "numpy computes in float64",
        "import numpy as np\ndef f(x):\n    return torch.from_numpy(np.clip(x.numpy().astype('float64'), -1, 1))",
        "import numpy as np\ndef f(x):\n    return torch.clamp(x, -1, 1)",
    ),
    Program(
        "another message",
        "def f(x):\n    assert x.max() <= 100, f'too large: {x.max():.0f}'\n    return x * 2",
        "def f(x):\n    assert x.max() <= 100, 'too large'\n    return x * 2",
    ),
    Program(
        "a sum in another order",
        "def f(x):\n    return x.sum()",
        "def f(x):\n    return x.flip(0).cumsum(0)[-1]",
        ("torch.randn(1000)",),
    ),
    Program(
        "kwargs that are changed",
        "def f(x, **options):\n    if x.sum() > 0:\n        options['state'].append(1)\n    return x * 2",
        "def f(x, **options):\n    options['state'].append(1)\n    return x * 2",
        ("torch.ones(3), state=[]",),
    ),
    Program(
        "a number that the tensor's dtype does not hold",
        "def f(x, t):\n    if x.sum() > 0 or t.item() == -1:\n        x = x * 2\n    return x * 1",
        "def f(x, t):\n    x = torch.where((x.sum() > 0) | (t == -1), x * 2, x)\n    return x * 1",
        ("-torch.rand(3, 4), torch.tensor(3, dtype=torch.uint8)",),
    ),
    Program(
        "a read that sees what is written after it",
        "def f(x, t):\n    return t.item() * t.add_(x.sum() > 100)",
        "def f(x, t):\n    return t.detach() * t.add_(x.sum() > 100)",
        (f"{PLAIN}, torch.tensor(2.0)",),
    ),
    Program(
        "sizes of one",
        "def f(x, y):\n    z = x + y\n    if x.sum() > 0:\n        z = z * 2\n    return z if x.numel() > 1 else x",
        "def f(x, y):\n    z = x + y\n    return torch.where(x.sum() > 0, z * 2, z)",
        ("torch.randn(7), torch.randn(7)",),
    ),
    Program(
        "or that hands on a number",
        "def f(x):\n    return x * (x.sum() or x.max())",
        "def f(x):\n    return x * ((x.sum() != 0) | (x.max() != 0))",
        ("torch.tensor([1.0, 0.0])",),
    ),
    Program(
        "and with a mask",
        "def f(x):\n    return x.sum() > 0 and x > 1",
        "def f(x):\n    return (x.sum() > 0) & (x > 1)",
        ("-torch.ones(3)",),
    ),
    Program(
        "not that is an index",
        "def f(x):\n    return x[int(not (x.sum() > 0))]",
        "def f(x):\n    return x[~(x.sum() > 0)]",
    ),
    Program(
        "not that is returned",
        "def f(x):\n    return not (x.sum() > 0)",
        "def f(x):\n    return ~(x.sum() > 0)",
    ),
    Program(
        "a bool that outlives its tensor",
        "def f(x, on):\n    y = bool(on)\n    on.logical_not_()\n    return x * y",
        "def f(x, on):\n    y = on\n    on.logical_not_()\n    return x * y",
        ("torch.ones(3), torch.tensor(True)",),
    ),
    Program(
        "any that kept a division from its error",
        "def f(a, n):\n    ok = n > 0 and (a // n).sum() > 2\n    return a * ok",
        "def f(a, n):\n    ok = (n > 0) & ((a // n).sum() > 2)\n    return a * ok",
        ("torch.arange(6), torch.tensor(2)",),
    ),
    Program(
        "numpy rounds the number that it compares with",
        "def f(x):\n    y = x * 1\n    if np.any(x.detach().numpy() >= 0.7):\n        y = y + 1\n    return y\n\n\n"
        "import numpy as np",
        "def f(x):\n    y = x * 1\n    y = torch.where((x.double() >= 0.7).any(), y + 1, y)\n    return y\n\n\n"
        "import numpy as np",
        ("torch.tensor([0.5])",),
    ),
    Program(
        "a result that Python compares by its value",
        "def f(x):\n    return x * 2, Decimal(x.shape[0])\n\n\nfrom decimal import Decimal",
        "def f(x):\n    return x * 2, Decimal(x.shape[1])\n\n\nfrom decimal import Decimal",
    ),
    Program(
        "a number of a class of its own",
        "class Count(int):\n    pass\n\n\ndef f(x):\n    return x * 2, Count(x.shape[0])",
        "class Count(int):\n    pass\n\n\ndef f(x):\n    return x * 2, Count(x.shape[1])",
    ),
    Program(
        "a member of an enum that counts",
        "import enum\n\n\nclass Mode(enum.Enum):\n    FAST = 1\n\n\nMode.FAST.calls = 0\n\n\n"
        "def f(x):\n    Mode.FAST.calls += 1\n    return x * 2",
        "import enum\n\n\nclass Mode(enum.Enum):\n    FAST = 1\n\n\nMode.FAST.calls = 0\n\n\n"
        "def f(x):\n    return x * 2",
    ),
    Program(
        "bytes that are written in place",
        "seen = bytearray(2)\n\n\ndef f(x):\n    seen[0] = x.shape[0]\n    return x * 2",
        "seen = bytearray(2)\n\n\ndef f(x):\n    seen[1] = x.shape[0]\n    return x * 2",
    ),
    Program(
        "a draw from a generator of Python that nobody uses here",
        "import random\n\nrng = random.Random(0)\n\n\ndef f(x):\n    rng.random()\n    return x * 2",
        "import random\n\nrng = random.Random(0)\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "a draw from a generator of numpy that nobody uses here",
        "import numpy as np\n\nrng = np.random.default_rng(0)\n\n\ndef f(x):\n    rng.random()\n    return x * 2",
        "import numpy as np\n\nrng = np.random.default_rng(0)\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "arguments of the command line that count",
        "import argparse\n\nargs = argparse.Namespace(n=0)\n\n\ndef f(x):\n    args.n += 1\n    return x * 2",
        "import argparse\n\nargs = argparse.Namespace(n=0)\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "a function that a global name is given",
        "act = torch.relu\n\n\ndef f(x):\n    global act\n    act = torch.tanh\n    return x * 2",
        "act = torch.relu\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "a function that a class is given",
        "class Net:\n    act = torch.relu\n\n\ndef f(x):\n    Net.act = torch.tanh\n    return x * 2",
        "class Net:\n    act = torch.relu\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "the status of an exit",
        "import sys\n\n\ndef f(x):\n    if x.isnan().any():\n        sys.exit(3)\n    return x * 2",
        "import sys\n\n\ndef f(x):\n    if x.isnan().any():\n        sys.exit(4)\n    return x * 2",
    ),
    Program(
        "what an exception carries besides its message",
        "class BadError(ValueError):\n    code = 0\n\n\ndef f(x):\n    if x.isnan().any():\n"
        "        error = BadError('nan')\n        error.code = 3\n        raise error\n    return x * 2",
        "class BadError(ValueError):\n    code = 0\n\n\ndef f(x):\n    if x.isnan().any():\n"
        "        error = BadError('nan')\n        error.code = 4\n        raise error\n    return x * 2",
    ),
    Program(
        "the sign of zero",
        "def f(x):\n    return x + 0.0",
        "def f(x):\n    return x * 1.0",
        ("-torch.rand(3)",),
    ),
    Program(
        "a value of this thread",
        "import threading\nown = threading.local()\n\n\ndef f(x):\n    own.n = x.shape[0]\n    return x * 2",
        "import threading\nown = threading.local()\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "an event that others wait for",
        "import threading\nready = threading.Event()\n\n\ndef f(x):\n    ready.set()\n    return x * 2",
        "import threading\nready = threading.Event()\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "a queue that others read",
        "import queue\nsteps = queue.Queue()\n\n\ndef f(x):\n    steps.put(x.shape[0])\n    return x * 2",
        "import queue\nsteps = queue.Queue()\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "a variable of the context",
        'import contextvars\nstep = contextvars.ContextVar("step", default=0)\n\n\ndef f(x):\n    step.set(step.get() + 1)\n    return x * 2',
        'import contextvars\nstep = contextvars.ContextVar("step", default=0)\n\n\ndef f(x):\n    return x * 2',
    ),
    Program(
        "a text in memory",
        'import io\nlog = io.StringIO()\n\n\ndef f(x):\n    log.write("step")\n    return x * 2',
        "import io\nlog = io.StringIO()\n\n\ndef f(x):\n    return x * 2",
    ),
    Program(
        "the keys of a dict",
        "def f(x):\n    return x * 2, dict(a=1).keys()",
        "def f(x):\n    return x * 2, dict(b=1).keys()",
    ),
)
