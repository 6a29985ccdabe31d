"""Patches that are right: what people and coding agents write, most of it no rule of ours could."""

from __future__ import annotations

from patches import Patched, change

BRANCH = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x = self.lin(x)
        if x.sum() > 0:
            x = x * 2
        else:
            x = x - 1
        return x.relu()


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

HALVING = """
@torch.compile
@torch.no_grad()
def halved(x):
    steps = 0
    while x.abs().sum() > 1 and steps < 5:
        x = x * 0.5
        steps += 1
    return x.sin()


for x in batches(3, 4):
    print(halved(x).sum().item())
"""

MASKED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, length):
        mask = torch.zeros(x.shape[1], dtype=torch.bool)
        mask[: int(length)] = True
        return self.lin(x).masked_fill(~mask, 0.0)


def step(net, x, length):
    return net(x, length).relu()


net = torch.compile(Net())
for length, x in enumerate(batches(3, 4), 1):
    print(step(net, x, torch.tensor(length)).sum().item())
"""

ITEM = """
def scaled(x, n):
    return x[:, : n.item()] * 2


def step(x, n):
    return run(x, n).sum(1)


run = torch.compile(scaled)
for n, x in enumerate(batches(3, 4), 1):
    print(step(x, torch.tensor(n)).sum().item())
"""

CACHED = """
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.cache = {}

    def forward(self, x):
        n = x.shape[0]
        if n not in self.cache:
            self.cache[n] = torch.arange(n, dtype=torch.float32)[:, None] / 100
        return self.lin(x) + self.cache[n]


net = torch.compile(Positions())
for x in batches(3, 4):
    print(net(x).sum().item())
for x in batches(5, 4):
    print(net(x).sum().item())
"""

SPLIT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 2)

    def forward(self, x):
        h = self.first(x).relu()
        torch._dynamo.graph_break()
        return self.second(h) * 0.5


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

ROWS = """
@torch.compile
def clipped(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(torch.clamp(x[i], min=0.0) + 1)
    return torch.stack(rows)


for x in batches(3, 4):
    print(clipped(x).sum().item())
"""

LOGGED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        print("shape", tuple(y.shape))
        return y.tanh()


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

SIZES = """
import numpy as np


@torch.compile
def flat(x):
    n = int(np.prod(x.shape))
    return x.reshape(n) * 2


for x in batches(3, 4):
    print(flat(x).sum().item())
"""

TRAINED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        out = []
        for i in range(h.shape[1]):
            out.append(h[:, i] * (i + 1))
        torch._dynamo.graph_break()
        return torch.stack(out, 1).pow(2)


net = Net()
step = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for x in batches(3, 4):
    loss = step(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}")
"""

COUNTED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if x.mean() > 0:
            self.seen = self.seen + 1
        return x + self.seen


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

CHECKED = """
@torch.compile
def rooted(x):
    assert (x * x >= 0).all(), "a square is below zero"
    return (x * x).sqrt()


for x in batches(3, 4):
    print(rooted(x).sum().item())
"""

PICKED = """
@torch.compile
def picked(x):
    y = torch.empty_like(x)
    for i in range(x.shape[0]):
        y[i] = x[i].abs() if i % 2 == 0 else -x[i].abs()
    torch._dynamo.graph_break()
    return y


for x in batches(4, 3):
    print(picked(x).sum().item())
"""

PAIRS = """
@torch.compile
def distances(x):
    n = x.shape[0]
    out = torch.zeros(n, n, dtype=x.dtype)
    for i in range(n):
        for j in range(n):
            out[i, j] = (x[i] - x[j]).abs().amax()
    torch._dynamo.graph_break()
    return out


for x in batches(3, 4):
    print(distances(x).sum().item())
"""

NUMPY = """
import numpy as np


@torch.compile
def banded(x):
    n = x.shape[-1]
    mask = torch.from_numpy(np.tri(n, n, 0, dtype=bool))
    return x.masked_fill(~mask, float("-inf")).softmax(-1)


for x in batches(4, 4):
    print(banded(x).sum().item())
"""

SUMMED = """
@torch.compile
def summed(x):
    total = torch.zeros(x.shape[1], dtype=x.dtype)
    for row in x:
        total = total + row
    torch._dynamo.graph_break()
    return total / max(x.shape[0], 1)


for x in batches(6, 4):
    print(f"{summed(x).sum().item():.3f}")
"""

LISTED = """
@torch.compile
def shifted(x, steps):
    parts = [x[:, i : i + 1] + s for i, s in enumerate(steps.tolist())]
    return torch.cat(parts, 1)


for x in batches(3, 4):
    print(shifted(x, torch.arange(4)).sum().item())
"""

MIXED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.limit = 3.0

    def forward(self, x):
        h = self.lin(x)
        worst = h.abs().max().item()
        if worst > self.limit:
            h = h / worst
        else:
            h = h * 1.0
        return h


net = torch.compile(Net().requires_grad_(False))
with torch.no_grad():
    for x in batches(3, 4):
        print(net(x).sum().item())
"""

# The meta device stands for the "cuda" that scripts set: what is made without a device is not where the inputs are.
ELSEWHERE = """
torch.set_default_device("meta")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4, device="cpu")

    def forward(self, x, ids):
        if x.sum() > 0:
            x = x * 2
        x = self.lin(x) + torch.rand_like(x)
        return x[ids] * random.random()


net = torch.compile(Net())
for step in range(3):
    x = torch.full((3, 4), step - 1.5, device="cpu")
    print(net(x, torch.tensor([2, 0, 1], device="cpu")).sum().item())
"""

PATCHES: tuple[Patched, ...] = (
    change(
        "sum_at_once",
        "a sum in another order",
        SUMMED,
        (
            (
                "    total = torch.zeros(x.shape[1], dtype=x.dtype)\n    for row in x:\n        total = total + row\n"
                "    torch._dynamo.graph_break()\n    return total / max(x.shape[0], 1)\n"
            ),
            "    return x.sum(0) / max(x.shape[0], 1)\n",
        ),
        beyond_rules=True,
        options=("--exact", "reassociated"),
    ),
    change(
        "list_to_tensor",
        "a list of numbers kept a tensor",
        LISTED,
        (
            "    parts = [x[:, i : i + 1] + s for i, s in enumerate(steps.tolist())]\n    return torch.cat(parts, 1)\n",
            "    return x[:, : len(steps)] + steps[None, :]\n",
        ),
        beyond_rules=True,
    ),
    change(
        "limit_by_where",
        "a number read twice kept a tensor",
        MIXED.replace("    def forward", "    @torch.no_grad()\n    def forward"),
        (
            (
                "        worst = h.abs().max().item()\n        if worst > self.limit:\n            h = h / worst\n"
                "        else:\n            h = h * 1.0\n        return h\n"
            ),
            (
                "        worst = h.detach().abs().max()\n"
                "        return torch.where(worst > self.limit, h / worst, h * 1.0)\n"
            ),
        ),
    ),
    change(
        "forward_split",
        "a module split in two halves",
        SPLIT,
        (
            "        h = self.first(x).relu()\n        torch._dynamo.graph_break()\n        return self.second(h) * 0.5\n",
            (
                "        return self.head(self.features(x))\n\n"
                "    def features(self, x):\n        return self.first(x).relu()\n\n"
                "    def head(self, h):\n        return self.second(h) * 0.5\n"
            ),
        ),
        beyond_rules=True,
    ),
    change(
        "branch_by_hand",
        "branch to where",
        BRANCH,
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n",
            "        x = torch.where(x.sum() > 0, x * 2, x - 1)\n",
        ),
    ),
    change(
        "branch_in_a_helper",
        "branch to where in a new function",
        BRANCH,
        ("class Net(", "def chosen(x):\n    return torch.where(x.sum() > 0, x * 2, x - 1)\n\n\nclass Net("),
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n",
            "        x = chosen(x)\n",
        ),
    ),
    change(
        "branch_in_a_method",
        "branch to where in a new method",
        BRANCH,
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n        return x.relu()\n",
            (
                "        return self.chosen(x).relu()\n\n"
                "    def chosen(self, x):\n        return torch.where(x.sum() > 0, x * 2, x - 1)\n"
            ),
        ),
    ),
    change(
        "while_loop",
        "a Python loop made torch.while_loop",
        HALVING,
        (
            (
                "    steps = 0\n    while x.abs().sum() > 1 and steps < 5:\n        x = x * 0.5\n        steps += 1\n"
                "    return x.sin()\n"
            ),
            (
                "    def more(steps, x):\n        return (x.abs().sum() > 1) & (steps < 5)\n\n"
                "    def halve(steps, x):\n        return steps + 1, x * 0.5\n\n"
                "    steps = torch.zeros((), dtype=torch.int64)\n"
                "    _, x = torch.while_loop(more, halve, (steps, x))\n"
                "    return x.sin()\n"
            ),
        ),
        beyond_rules=True,
    ),
    change(
        "mask_outside",
        "a mask built outside of the compiled call",
        MASKED,
        ("def forward(self, x, length):", "def forward(self, x, mask):"),
        (
            "        mask = torch.zeros(x.shape[1], dtype=torch.bool)\n        mask[: int(length)] = True\n",
            "",
        ),
        (
            "    return net(x, length).relu()\n",
            (
                "    mask = torch.zeros(x.shape[1], dtype=torch.bool)\n    mask[: int(length)] = True\n"
                "    return net(x, mask).relu()\n"
            ),
        ),
        beyond_rules=True,
    ),
    change(
        "item_in_the_caller",
        "an .item() moved to the caller",
        ITEM,
        (
            "def scaled(x, n):\n    return x[:, : n.item()] * 2\n",
            "def scaled(x, count):\n    return x[:, :count] * 2\n",
        ),
        ("    return run(x, n).sum(1)\n", "    return run(x, n.item()).sum(1)\n"),
        beyond_rules=True,
    ),
    change(
        "cache_to_buffer",
        "a cache replaced by a buffer",
        CACHED,
        (
            "        self.cache = {}\n",
            (
                "        table = torch.arange(64, dtype=torch.float32)[:, None] / 100\n"
                '        self.register_buffer("table", table, persistent=False)\n'
            ),
        ),
        (
            (
                "        n = x.shape[0]\n        if n not in self.cache:\n"
                "            self.cache[n] = torch.arange(n, dtype=torch.float32)[:, None] / 100\n"
                "        return self.lin(x) + self.cache[n]\n"
            ),
            "        return self.lin(x) + self.table[: x.shape[0]]\n",
        ),
        beyond_rules=True,
        unproved="by the whole script alone",
    ),
    change(
        "module_split",
        "a module split in two",
        SPLIT,
        (
            (
                "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.first = nn.Linear(4, 8)\n        self.second = nn.Linear(8, 2)\n"
            ),
            (
                "class Head(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.second = nn.Linear(8, 2)\n\n"
                "    def forward(self, h):\n        return self.second(h) * 0.5\n\n\n"
                "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                "        self.first = nn.Linear(4, 8)\n        self.head = Head()\n"
            ),
        ),
        (
            "        torch._dynamo.graph_break()\n        return self.second(h) * 0.5\n",
            "        return self.head(h)\n",
        ),
        beyond_rules=True,
        unproved="by the whole script alone",
    ),
    change(
        "rows_at_once",
        "a vectorised Python loop",
        ROWS,
        (
            (
                "    rows = []\n    for i in range(x.shape[0]):\n        rows.append(torch.clamp(x[i], min=0.0) + 1)\n"
                "    return torch.stack(rows)\n"
            ),
            "    return torch.clamp(x, min=0.0) + 1\n",
        ),
        beyond_rules=True,
    ),
    change(
        "columns_at_once",
        "a vectorised Python loop in training",
        TRAINED,
        (
            (
                "        out = []\n        for i in range(h.shape[1]):\n            out.append(h[:, i] * (i + 1))\n"
                "        torch._dynamo.graph_break()\n        return torch.stack(out, 1).pow(2)\n"
            ),
            "        return (h * torch.arange(1, h.shape[1] + 1)).pow(2)\n",
        ),
        beyond_rules=True,
    ),
    change(
        "quiet_while_compiling",
        "a print left out while compiling",
        LOGGED,
        (
            '        print("shape", tuple(y.shape))\n',
            '        if not torch.compiler.is_compiling():\n            print("shape", tuple(y.shape))\n',
        ),
        unproved="does not print",
        status="refused",
    ),
    change(
        "print_in_the_caller",
        "a print moved out of the compiled call",
        LOGGED.replace(
            "net = torch.compile(Net())\n",
            "def step(net, x):\n    return net(x) * 1\n\n\nnet = torch.compile(Net())\n",
        ).replace("print(net(x).sum().item())", "print(step(net, x).sum().item())"),
        ('        print("shape", tuple(y.shape))\n', ""),
        ("    return net(x) * 1\n", '    y = net(x)\n    print("shape", tuple(y.shape))\n    return y * 1\n'),
        beyond_rules=True,
    ),
    change(
        "numpy_size",
        "a size by math instead of numpy",
        SIZES,
        ("import numpy as np\n", "import math\n"),
        ("int(np.prod(x.shape))", "math.prod(x.shape)"),
    ),
    change(
        "buffer_where",
        "a buffer written under a mask",
        COUNTED,
        (
            "        if x.mean() > 0:\n            self.seen = self.seen + 1\n",
            "        self.seen = torch.where(x.mean() > 0, self.seen + 1, self.seen)\n",
        ),
    ),
    change(
        "signs_by_a_mask",
        "rows by index, vectorised",
        PICKED,
        (
            (
                "    y = torch.empty_like(x)\n    for i in range(x.shape[0]):\n"
                "        y[i] = x[i].abs() if i % 2 == 0 else -x[i].abs()\n    torch._dynamo.graph_break()\n    return y\n"
            ),
            (
                "    even = (torch.arange(x.shape[0]) % 2 == 0)[:, None]\n"
                "    return torch.where(even, x.abs(), -x.abs())\n"
            ),
        ),
        beyond_rules=True,
    ),
    change(
        "pairs_at_once",
        "two nested loops, vectorised",
        PAIRS,
        (
            (
                "    n = x.shape[0]\n    out = torch.zeros(n, n, dtype=x.dtype)\n    for i in range(n):\n"
                "        for j in range(n):\n            out[i, j] = (x[i] - x[j]).abs().amax()\n"
                "    torch._dynamo.graph_break()\n    return out\n"
            ),
            "    return (x[:, None] - x[None, :]).abs().amax(-1)\n",
        ),
        beyond_rules=True,
    ),
    change(
        "numpy_mask",
        "a mask of torch instead of numpy",
        NUMPY,
        ("import numpy as np\n\n\n", ""),
        (
            "torch.from_numpy(np.tri(n, n, 0, dtype=bool))",
            "torch.ones(n, n, dtype=torch.bool).tril()",
        ),
        beyond_rules=True,
    ),
    change(
        "default_device",
        "a branch where another default device is set",
        "import random\n" + ELSEWHERE,
        (
            "        if x.sum() > 0:\n            x = x * 2\n",
            "        x = torch.where(x.sum() > 0, x * 2, x * 1)\n",
        ),
    ),
)
