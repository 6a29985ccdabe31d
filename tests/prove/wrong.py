"""Patches that are subtly wrong: each looks right, and agrees on what the script itself does, or nearly."""

from __future__ import annotations

from patches import Patched, change
from right import BRANCH, CACHED, MIXED, TRAINED

PERMUTATION = """
@torch.compile
def is_permutation(at):
    s = sorted(at.tolist())
    return torch.tensor(s == list(range(len(s))))


print([is_permutation(torch.tensor(at)).item() for at in ([2, 0, 1], [0, 0, 1, 2], [3, 0, 1, 4])])
"""

RELU = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        torch._dynamo.graph_break()
        return F.relu(h)


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

UNFINITE = """
@torch.compile
def guarded(x):
    if torch.isnan(x).any():
        x = torch.nan_to_num(x)
    return x * 2


for x in batches(3, 4):
    print(guarded(x).sum().item())
"""

MASK = """
@torch.compile
def kept(x, mask):
    torch._dynamo.graph_break()
    return x.masked_fill(~mask, 0.0)


for x in batches(3, 4):
    print(kept(x, x > 0.1).sum().item())
"""

ROOTS = """
@torch.compile
def roots(x):
    out = torch.zeros_like(x)
    m = x > 0
    out[m] = x[m].sqrt()
    return out


for x in batches(3, 4):
    x.requires_grad_()
    out = roots(x)
    print(out.sum().item())
"""

PART = """
@torch.compile
def part(x):
    torch._dynamo.graph_break()
    return x[:2].clone()


for x in batches(3, 4):
    print(part(x).sum().item())
"""

SCALE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full((4,), 0.5))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        torch._dynamo.graph_break()
        if self.calls > 1000:
            return self.scale.clone()
        return x * self.scale, self.scale.clone()


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x)[0].sum().item())
"""

GUARDED = """
@torch.compile
def logs(x):
    if x.isnan().any():
        raise ValueError("not a number")
    return x.abs().log1p()


for x in batches(3, 4):
    print(logs(x).sum().item())
"""

IDENTITY = """
@torch.compile
def lifted(x):
    if x.min() < -1:
        x = x.clamp(min=-1.0)
    return x


for x in batches(3, 4):
    y = lifted(x)
    print(y.sum().item(), "as it was" if y is x else "lifted")
"""

STATE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = {"sum": torch.zeros(())}

    def forward(self, x):
        torch._dynamo.graph_break()
        self.last["sum"] = x.sum()
        return x + 1, self.last


net = torch.compile(Net())
for x in batches(3, 4):
    out, last = net(x)
    print(out.sum().item(), last["sum"].item())
"""

MEAN = """
@torch.compile
def centred(x):
    torch._dynamo.graph_break()
    return x - x.sum(0) / x.shape[0]


for x in batches(4, 4):
    print(centred(x).sum().item())
"""

SCORE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 1)

    def forward(self, x):
        torch._dynamo.graph_break()
        return self.lin(x).squeeze(-1)


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

NOISE = """
class Net(nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        if self.training:
            x = x + torch.rand_like(x)
        return x * 2


net = torch.compile(Net().eval())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

TURNED = """
@torch.compile
def turned(x):
    torch._dynamo.graph_break()
    return x.t().contiguous()


for x in batches(3, 4):
    print(turned(x).sum().item())
"""

HELPED = """
def bounded(x, limit):
    return x * 1 if x.abs().max() < limit else x / x.abs().max()


@torch.compile
def step(x):
    return bounded(x, 2.0) + 1


for x in batches(3, 4):
    print(step(x).sum().item())
"""

COUNTING = """
@torch.compile
def few(x):
    n = (x > 0).sum().item()
    return x * n


for x in batches(3, 4):
    print(few(x).sum().item())
"""

COUNTED = """
STATE = {"calls": 0}


@torch.compile
def scaled(x, factor=2):
    torch._dynamo.graph_break()
    STATE["calls"] += 1
    return x * factor


for x in batches(3, 4):
    print(scaled(x).sum().item())
"""

LISTED_SIZES = """
@torch.compile
def scaled(x, factors):
    torch._dynamo.graph_break()
    return x * factors[1]


for x in batches(3, 4):
    print(scaled(x, [2, 3]).sum().item())
"""

ONE = """
@torch.compile
def computed(x):
    torch._dynamo.graph_break()
{body}

for x in batches(3, 4):
    print(computed(x).sum().item())
"""
BROKEN = "    torch._dynamo.graph_break()\n"

REDUCED = """
@torch.compile
def reduced(x, reduction="mean"):
    torch._dynamo.graph_break()
    return {'mean': torch.mean, 'sum': torch.sum}[reduction](x)


for x in batches(3, 4):
    print(reduced(x, "mean").item())
"""

NAMED = """
@torch.compile
def named(xs):
    torch._dynamo.graph_break()
    return torch.cat([x * 2 for x in xs.values()])


for x in batches(3, 4):
    print(named({"a": x, "b": -x}).sum().item())
"""

PRODUCT = """
@torch.compile
def product(a, b):
    torch._dynamo.graph_break()
    return a.long() * b.long()


for x in batches(3, 4):
    print(product(x.int(), x.int()).sum().item())
"""

ACCURATE = """
@torch.compile
def accurate(scores, wanted):
    torch._dynamo.graph_break()
    return ((scores > 0.5) == (wanted > 0.5)).float().mean()


for x in batches(3, 4):
    print(accurate(x, x * 2).item())
"""

SQUARE = """
@torch.compile
def a_row(x):
    torch._dynamo.graph_break()
    return x.sum() / x.shape[0]


for _ in range(4):
    print(a_row(torch.randn(4, 4)).item())
"""

GROUPS = """
@torch.compile
def joined(groups):
    torch._dynamo.graph_break()
    return [torch.cat(group) for group in groups]


for x in batches(3, 4):
    print(joined([[x, -x], [x, x]])[0].sum().item())
"""

FLAGS = """
@torch.compile
def hidden(x, before, after):
    torch._dynamo.graph_break()
    return x.tril() if before != after else x


for x in batches(3, 4):
    print(hidden(x, False, False).sum().item())
"""

WARMED = """
@torch.compile
def warmed(x, step):
    torch._dynamo.graph_break()
    return x * min(1.0, step / 10)


for x in batches(3, 4):
    print(warmed(x, 4).sum().item())
"""

FIRST = """
@torch.compile
def first(x, count):
    torch._dynamo.graph_break()
    return x.topk(min(count, x.shape[1])).values


for x in batches(3, 4):
    print(first(x, 2).sum().item())
"""

SHARE = """
@torch.compile
def share(x):
    torch._dynamo.graph_break()
    return x * ((x > 0).sum().item() / x.numel())


for x in batches(2, 4):
    print(share(x).sum().item())
"""

ASKED = """
@torch.compile
def asked(x, **options):
    torch._dynamo.graph_break()
    return x * options.get("scale", 2.0)


for x in batches(3, 4):
    print(asked(x).sum().item())
"""

HEADS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = {"one": nn.Linear(4, 1), "two": nn.Linear(4, 2)}

    def forward(self, x, task="one"):
        torch._dynamo.graph_break()
        return self.heads[task](x)


net = torch.compile(Net())
for x in batches(3, 4):
    print(net(x).sum().item())
"""

LISTED = """
@torch.compile
def total(xs):
    torch._dynamo.graph_break()
    return torch.stack(xs).sum(0)


for x in batches(3, 4):
    print(total([x, x * 2]).sum().item())
"""

GROUPED = """
from collections import defaultdict


@torch.compile
def grouped(x):
    torch._dynamo.graph_break()
    groups = defaultdict(list)
    groups["all"] = x * 2
    return groups


for x in batches(3, 4):
    print(grouped(x)["all"].sum().item())
"""

LAYERS = """
@torch.compile
def scaled(x, name, frozen):
    torch._dynamo.graph_break()
    if name.startswith("res"):
        x = x * 2
    if name in frozen:
        x = x + 1
    return x.sin()


for x in batches(3, 4):
    print(scaled(x, "resnet", ("vgg",)).sum().item(), scaled(x, "vgg", ("vgg",)).sum().item())
"""

WARMING = """
@torch.compile
def warming(x, step, warm):
    torch._dynamo.graph_break()
    return x * (step % warm)


for x in batches(3, 4):
    print(warming(x, 1, 4).sum().item())
"""

COMPOSED = """
@torch.compile
def composed(x, parts):
    torch._dynamo.graph_break()
    for part in parts:
        x = part(x)
    return x


for x in batches(3, 4):
    print(composed(x, [torch.relu, torch.sin]).sum().item())
"""

POOLED = """
@torch.compile
def pooled(x, mask):
    torch._dynamo.graph_break()
    m = mask.unsqueeze(-1)
    return (x * m).sum(1) / m.sum(1).clamp(min=1)


for x in batches(3, 4, 2):
    print(pooled(x, x[:, :, 0] > 0).sum().item())
"""

SEEN = """
class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        torch._dynamo.graph_break()
        self.n += x.shape[0]
        if self.n > 20000:
            self.n.zero_()
        return x / (self.n + 1)


seen = torch.compile(Seen())
for x in batches(3, 4):
    print(seen(x).sum().item())
"""

ACTIVE = """
from dataclasses import dataclass


@dataclass
class Config:
    act: str = "sin"


@torch.compile
def active(x, config):
    torch._dynamo.graph_break()
    if config.act == "sin":
        return x.sin()
    if config.act == "exp":
        return x.exp()
    return x * 1


for x in batches(3, 4):
    print(active(x, Config()).sum().item(), active(x, Config("exp")).sum().item())
"""

ROOTS_OF = """
@torch.compile
def root(x):
    torch._dynamo.graph_break()
    r = x.abs() + 1
    for _ in range(3):
        r = 0.5 * (r + x.abs() / r)
    return r


for x in batches(3, 4):
    print(root(x).sum().item())
"""

ROOTS_ASKED = ROOTS_OF.replace("    r = x", "    asked = torch.compiler.is_compiling()\n    r = x")

WINDOWS = """
@torch.compile
def windows(x):
    torch._dynamo.graph_break()
    return x.unfold(0, 3, 1).mean(1)


for x in batches(9):
    print(windows(x).sum().item())
"""

HALTED = """
@torch.compile
def halted(p, before):
    if p.item() + before.item() > 0.99:
        return before * 0
    return before * 1


for p, before in ((0.5, 0.2), (0.6, 0.7), (0.1, 0.2)):
    print(halted(torch.tensor(p), torch.tensor(before)))
"""

KINDS = """
@torch.compile
def kinds(ids):
    return torch.tensor(len(set(ids.tolist())))


for x in batches(6):
    print(kinds(x.long()))
"""

BINS = """
@torch.compile
def bins(x):
    out = torch.zeros(10, dtype=torch.long)
    for v in x.tolist():
        if 0 <= v < 1:
            out[int(v * 10)] += 1
    return out


for x in batches(9):
    print(bins(x))
"""

BATCHED = """
from dataclasses import dataclass


@dataclass
class Batch:
    x: torch.Tensor
    step: int


@torch.compile
def placed(batch):
    torch._dynamo.graph_break()
    return batch.x + torch.arange(batch.x.shape[1])


for step, x in enumerate(batches(4, 4)):
    print(placed(Batch(x, step)).sum().item())
"""

FROZEN = """
@torch.compile
def frozen(x, w, freeze=False):
    torch._dynamo.graph_break()
    if freeze:
        w = w.detach()
    return x @ w


w = torch.randn(4, 2, requires_grad=True)
for x in batches(3, 4):
    print(frozen(x.requires_grad_(), w).sum().item())
"""

HARD = """
@torch.compile
def hard(x, hard=False):
    torch._dynamo.graph_break()
    if hard:
        return x + (x.sign() - x).detach()
    return x * 2


for x in batches(3, 4):
    print(hard(x.requires_grad_()).sum().item())
"""

CLAMPED = """
@torch.compile
def clamped(x):
    torch._dynamo.graph_break()
    h = x * 3
    if h.requires_grad:
        h.register_hook(lambda g: g.clamp(-100, 100))
    return h + 1


for x in batches(3, 4):
    print(clamped(x.requires_grad_()).sum().item())
"""

COUNTS = """
@torch.compile
def counts(mask, ids, n):
    torch._dynamo.graph_break()
    return mask.sum(-1) + ids % n


for x in batches(3, 4):
    print(counts(x > 0, torch.arange(3), 7).sum().item())
"""

SAME = """
@torch.compile
def same(a, b, lr, decay):
    torch._dynamo.graph_break()
    if torch.equal(a, b):
        return a * 2
    return a - b * (lr == decay)


for x in batches(3, 4):
    print(same(x, x + 1, 0.1, 0.2).sum().item())
"""

NUMBERED = """
@torch.compile
def numbered(x, name, items):
    torch._dynamo.graph_break()
    order = list(dict.fromkeys(key for key, _ in items))
    return x * int(name.split("_")[-1]), order


for x in batches(3, 4):
    print(numbered(x, "layer_3", [("a", 1), ("b", 2)])[0].sum().item())
"""

ARRAY = """
@torch.compile
def array(x):
    torch._dynamo.graph_break()
    return x.detach().numpy()


for x in batches(3, 4):
    print(array(x).sum())
"""

RETAINED = """
class Keep(nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        h = x * 2
        if h.requires_grad:
            h.retain_grad()
        self.h = h
        return h.sum()


keep = torch.compile(Keep())
for x in batches(3, 4):
    print(keep(x.requires_grad_()).item())
"""

SPARSE = """
@torch.compile
def kept(x):
    torch._dynamo.graph_break()
    return (x > 0).long().to_sparse()


for x in batches(3, 4):
    print(kept(x).to_dense().sum().item())
"""

CENTRED = """
@torch.compile
def centred(x):
    torch._dynamo.graph_break()
    if x.shape[0] == 1:
        return x - x.detach()
    return x - x.mean(0)


for x in batches(3, 4):
    print(centred(x.requires_grad_()).abs().sum().item())
"""

TAKEN = """
@torch.compile
def taken(xs):
    torch._dynamo.graph_break()
    return sum(x.sum() for x in xs)


for x in batches(3, 4):
    print(taken([x, x + 1]).item())
"""

HISTORY = """
class History(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        torch._dynamo.graph_break()
        self.seen = (self.seen + [x.shape[0]])[-20:]
        return x * len(self.seen)


history = torch.compile(History())
for x in batches(3, 4):
    print(history(x).sum().item())
"""

LABELS = """
@torch.compile
def loss_of(scores, labels):
    torch._dynamo.graph_break()
    return F.cross_entropy(scores, labels)


for x in batches(6, 5):
    print(loss_of(x, torch.arange(6) % 5).item())
"""

ENDED = """
@torch.compile
def until_the_end(ids, values):
    torch._dynamo.graph_break()
    ended = (ids == 50256).long().cumsum(1) - (ids == 50256).long()
    return values.masked_fill(ended > 0, 0.0)


for x in batches(3, 7):
    print(until_the_end((x.abs() * 10).long(), x).sum().item())
"""

TABLE = """
@torch.compile
def classes(ids):
    torch._dynamo.graph_break()
    out = torch.full_like(ids, 255)
    for label, to in ((7, 0), (8, 1), (11, 2), (12, 3), (13, 4), (17, 5), (19, 6), (20, 7), (31, 8), (32, 9)):
        out = torch.where(ids == label, to, out)
    return out


for step in range(3):
    print(classes(torch.arange(12).view(3, 4) + step).sum().item())
"""

ANY_LEFT = """
@torch.compile
def active(x):
    if x.any():
        return x * 2
    return x - 1


for x in batches(16, 8):
    print(active(x).sum().item(), active(x * 0).sum().item())
"""

SIDES = """
import math


@torch.compile
def sides(areas):
    return torch.tensor([math.isqrt(abs(area)) for area in areas.tolist()], dtype=torch.long)


print([sides(torch.arange(4) * step).sum().item() for step in (1, 5, 9)])
"""

GAMMA = """
@torch.compile
def curve(image):
    torch._dynamo.graph_break()
    return (image.float() / 255).pow(2).mul(255).round().byte()


print([curve(torch.tensor([[0, 100, 255]], dtype=torch.uint8)).sum().item() for _ in range(3)])
"""

SPREAD = """
@torch.compile
def normed(x):
    s = x.std()
    if s == 0:
        return x - x.mean()
    return (x - x.mean()) / s


for x in batches(3, 4):
    print(normed(x).sum().item(), normed(x * 0).sum().item())
"""

PRICES = """
@torch.compile
@torch.no_grad()
def prices(x):
    return torch.tensor([round(one, 2) for one in x.clamp(-10, 10).nan_to_num().tolist()], dtype=x.dtype)


for x in batches(6):
    print(prices(x).sum().item())
"""

ROWS = """
@torch.compile
@torch.no_grad()
def attend(scores, mask):
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    out = torch.zeros_like(weights)
    for row in range(len(weights)):
        if mask[row].any():
            out[row] = weights[row]
    return out


lengths = torch.tensor([[3], [9], [14]])
for x in batches(3, 16):
    print(attend(x, torch.arange(16) < lengths).sum().item(), attend(x, x > 1e6).sum().item())
"""

PHASE = """
@torch.compile
def phase(z):
    torch._dynamo.graph_break()
    return z / z.abs().clamp(min=1e-6)


for x in batches(3, 4):
    print(phase(torch.complex(x, x + 1)).real.sum().item())
"""

SQUARES = """
@torch.compile
def normed(x):
    torch._dynamo.graph_break()
    h = x.to(torch.promote_types(x.dtype, torch.float32))
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


for step in (1, 2, 4):
    print(normed(torch.ones(3, 4) * step).sum().item())
"""

BYTES = """
@torch.compile
def numbers(data):
    torch._dynamo.graph_break()
    b = data.reshape(-1, 4).long()
    return b[:, 0] + (b[:, 1] << 8) + (b[:, 2] << 16) + (b[:, 3] << 24)


for step in (3, 7, 31):
    print(numbers((torch.arange(8) * step).byte()).sum().item())
"""

CUBE = """
@torch.compile
def cube(x):
    torch._dynamo.graph_break()
    side = round(x.shape[0] ** (1 / 3))
    return x.view(side, side, side).sum(0)


for size in (8, 27):
    print(cube(torch.arange(float(size))).sum().item())
"""

AUGMENT = """
import random


@torch.compile
def augmented(x):
    torch._dynamo.graph_break()
    ways = [torch.sin, torch.cos, torch.tanh, torch.exp, torch.neg, torch.abs, torch.relu, torch.sigmoid]
    ways += [torch.square, torch.sign, torch.floor, torch.ceil]
    return ways[random.randrange(len(ways))](x)


random.seed(0)
for x in batches(4):
    print(augmented(x).sum().item())
"""

PATCHES: tuple[Patched, ...] = (
    change(
        "default_written_out",
        "an argument that the script does not give",
        COUNTED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("    return x * factor\n", "    return x * 2\n"),
    ),
    change(
        "buffer_written_out",
        "state",
        SCALE,
        ("        torch._dynamo.graph_break()\n", ""),
        (
            "        return x * self.scale, self.scale.clone()\n",
            "        return x * 0.5, self.scale.clone()\n",
        ),
    ),
    change(
        "number_in_a_list_written_out",
        "an argument that is always the same",
        LISTED_SIZES,
        ("    torch._dynamo.graph_break()\n    return x * factors[1]\n", "    return x * 3\n"),
    ),
    change(
        "only_after_many_calls",
        "state",
        COUNTED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("    return x * factor\n", "    return x * (factor + (STATE['calls'] > 100))\n"),
    ),
    change(
        "float_in_one_branch",
        "dtype",
        BRANCH,
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n",
            "        x = torch.where(x.sum() > 0, x * 2, x.float() - 1)\n",
        ),
    ),
    change(
        "weights_in_float32",
        "dtype",
        TRAINED,
        (
            (
                "        out = []\n        for i in range(h.shape[1]):\n            out.append(h[:, i] * (i + 1))\n"
                "        torch._dynamo.graph_break()\n        return torch.stack(out, 1).pow(2)\n"
            ),
            "        return (h * torch.arange(1.0, h.shape[1] + 1)).pow(2)\n",
        ),
    ),
    change(
        "count_in_float32",
        "dtype",
        COUNTING,
        ("(x > 0).sum().item()", "(x > 0).sum(dtype=torch.float32)[None]"),
    ),
    change(
        "relu_by_where",
        "NaN",
        RELU,
        (
            "        torch._dynamo.graph_break()\n        return F.relu(h)\n",
            "        return torch.where(h > 0, h, 0.0)\n",
        ),
    ),
    change(
        "mask_by_product",
        "NaN",
        MASK,
        ("    torch._dynamo.graph_break()\n    return x.masked_fill(~mask, 0.0)\n", "    return x * mask\n"),
    ),
    change(
        "branch_by_minimum",
        "NaN",
        GUARDED,
        ('    if x.isnan().any():\n        raise ValueError("not a number")\n', "    x = x.nan_to_num()\n"),
    ),
    change(
        "relu_by_clamp",
        "gradient",
        RELU,
        (
            "        torch._dynamo.graph_break()\n        return F.relu(h)\n",
            "        return h.clamp(min=0)\n",
        ),
    ),
    change(
        "roots_by_where",
        "gradient",
        ROOTS,
        (
            "    out = torch.zeros_like(x)\n    m = x > 0\n    out[m] = x[m].sqrt()\n    return out\n",
            "    return torch.where(x > 0, x.sqrt(), 0.0)\n",
        ),
    ),
    change(
        "detached",
        "gradient",
        BRANCH,
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n",
            "        x = torch.where(x.sum() > 0, x * 2, x.detach() - 1)\n",
        ),
    ),
    change(
        "without_gradients",
        "gradient",
        BRANCH,
        ("    def forward(self, x):\n", "    @torch.no_grad()\n    def forward(self, x):\n"),
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n",
            "        x = torch.where(x.sum() > 0, x * 2, x - 1)\n",
        ),
    ),
    change(
        "number_with_a_gradient",
        "gradient",
        MIXED,
        (
            (
                "        worst = h.abs().max().item()\n        if worst > self.limit:\n            h = h / worst\n"
                "        else:\n            h = h * 1.0\n        return h\n"
            ),
            "        worst = h.abs().max()\n        return torch.where(worst > self.limit, h / worst, h * 1.0)\n",
        ),
    ),
    change(
        "view_instead_of_copy",
        "alias",
        PART,
        ("    torch._dynamo.graph_break()\n    return x[:2].clone()\n", "    return x[:2]\n"),
    ),
    change(
        "argument_written_to",
        "alias",
        MEAN,
        (
            "    torch._dynamo.graph_break()\n    return x - x.sum(0) / x.shape[0]\n",
            "    x -= x.sum(0) / x.shape[0]\n    return x\n",
        ),
    ),
    change(
        "buffer_handed_out",
        "alias",
        SCALE,
        ("        torch._dynamo.graph_break()\n", ""),
        (
            "        return x * self.scale, self.scale.clone()\n",
            "        return x * self.scale, self.scale\n",
        ),
    ),
    change(
        "check_dropped",
        "exception",
        GUARDED,
        ('    if x.isnan().any():\n        raise ValueError("not a number")\n', ""),
    ),
    change(
        "check_of_another_type",
        "exception",
        GUARDED,
        ("raise ValueError(", "raise RuntimeError("),
    ),
    change(
        "count_dropped",
        "state",
        SCALE,
        ("        self.calls += 1\n        torch._dynamo.graph_break()\n", ""),
        ("        if self.calls > 1000:\n            return self.scale.clone()\n", ""),
    ),
    change(
        "cache_of_the_first",
        "state",
        CACHED,
        ("        if n not in self.cache:\n", "        if not self.cache:\n"),
        ("            self.cache[n] =", "            self.cache[0] ="),
        ("+ self.cache[n]\n", "+ self.cache[0][:n]\n"),
    ),
    change(
        "another_tensor",
        "identity",
        IDENTITY,
        (
            "    if x.min() < -1:\n        x = x.clamp(min=-1.0)\n    return x\n",
            "    return x.clamp(min=-1.0)\n",
        ),
    ),
    change(
        "another_dict",
        "identity",
        STATE,
        ("        torch._dynamo.graph_break()\n", ""),
        ("        return x + 1, self.last\n", "        return x + 1, dict(self.last)\n"),
    ),
    change(
        "size_written_out",
        "batch size",
        MEAN,
        (
            "    torch._dynamo.graph_break()\n    return x - x.sum(0) / x.shape[0]\n",
            "    return x - x.sum(0) / 4\n",
        ),
    ),
    change(
        "rows_of_a_table",
        "batch size",
        MEAN,
        (
            "    torch._dynamo.graph_break()\n    return x - x.sum(0) / x.shape[0]\n",
            "    return (x - x.sum(0) / x.shape[0])[:64]\n",
        ),
    ),
    change(
        "every_one_squeezed",
        "batch size",
        SCORE,
        (
            "        torch._dynamo.graph_break()\n        return self.lin(x).squeeze(-1)\n",
            "        return self.lin(x).squeeze()\n",
        ),
    ),
    change(
        "drawn_in_any_case",
        "random numbers",
        NOISE,
        (
            "        torch._dynamo.graph_break()\n        if self.training:\n            x = x + torch.rand_like(x)\n",
            "        x = x + torch.rand_like(x) * self.training\n",
        ),
    ),
    change(
        "left_turned",
        "strides",
        TURNED,
        ("    torch._dynamo.graph_break()\n    return x.t().contiguous()\n", "    return x.t()\n"),
    ),
    change(
        "helper_of_two",
        "a value on a limit, in a helper",
        HELPED,
        (
            "    return x * 1 if x.abs().max() < limit else x / x.abs().max()\n",
            "    return torch.where(x.abs().max() <= limit, x * 1, x / x.abs().max())\n",
        ),
    ),
    change(
        "only_while_compiling",
        "compiled code alone",
        BRANCH,
        (
            "        if x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n",
            (
                "        if torch.compiler.is_compiling():\n            x = torch.where(x.sum() > 0, x * 2, x)\n"
                "        elif x.sum() > 0:\n            x = x * 2\n        else:\n            x = x - 1\n"
            ),
        ),
    ),
    change(
        "warnings_silenced",
        "what stays changed in the process",
        "import warnings\n\n" + ONE.format(body="    return x * 2\n"),
        (BROKEN, ""),
        ("    return x * 2\n", "    warnings.simplefilter('ignore')\n    return x * 2\n"),
    ),
    change(
        "messages_disabled",
        "what stays changed in the process",
        "import logging\n\n" + ONE.format(body="    return x * 2\n"),
        (BROKEN, ""),
        ("    return x * 2\n", "    logging.disable(logging.ERROR)\n    return x * 2\n"),
    ),
    change(
        "inference_for_no_grad",
        "inference tensors",
        ONE.format(body="    with torch.no_grad():\n        return x * 2\n"),
        (BROKEN, ""),
        (
            "    with torch.no_grad():\n        return x * 2\n",
            "    with torch.inference_mode():\n        return x * 2\n",
        ),
    ),
    change(
        "clamp_of_half_left_out",
        "values behind a dtype",
        ONE.format(
            body="    if x.dtype == torch.float16:\n        x = x.clamp(-60000, 60000)\n    return x * 1\n"
        ),
        (BROKEN, ""),
        (
            "    if x.dtype == torch.float16:\n        x = x.clamp(-60000, 60000)\n    return x * 1\n",
            "    return x * 1\n",
        ),
    ),
    change(
        "least_of_rows_and_columns",
        "ties",
        ONE.format(body="    return x.argmin()\n"),
        (BROKEN, ""),
        (
            "    return x.argmin()\n",
            "    return x.min(-1).values.argmin() * x.shape[1] + x.min(0).values.argmin()\n",
        ),
    ),
    change(
        "last_rows",
        "a size of two",
        ONE.format(body="    n = x.shape[0]\n    return x[n - 3 :] * 1\n"),
        (BROKEN, ""),
        ("    n = x.shape[0]\n    return x[n - 3 :] * 1\n", "    return x[-3:] * 1\n"),
    ),
    change(
        "counted_in_a_byte",
        "a large size",
        ONE.format(body="    return x * torch.arange(x.shape[0])[:, None]\n"),
        (BROKEN, ""),
        (
            "    return x * torch.arange(x.shape[0])[:, None]\n",
            "    return x * torch.arange(x.shape[0], dtype=torch.uint8)[:, None]\n",
        ),
    ),
    change(
        "rounded_limit",
        "a number that float32 rounds",
        ONE.format(body="    return x * 2 if x.sum().item() > 0.1 else x * 3\n"),
        (BROKEN, ""),
        (
            "    return x * 2 if x.sum().item() > 0.1 else x * 3\n",
            "    return torch.where(x.sum() > 0.1, x * 2, x * 3)\n",
        ),
    ),
    change(
        "permutation_by_its_sums",
        "whole numbers with the sums of a permutation",
        PERMUTATION,
        (
            "    s = sorted(at.tolist())\n    return torch.tensor(s == list(range(len(s))))\n",
            (
                "    r = torch.arange(at.shape[0])\n    inside = ((at >= 0) & (at < at.shape[0])).all()\n"
                "    return inside & (at.sum() == r.sum()) & ((at * at).sum() == (r * r).sum())\n"
            ),
        ),
    ),
    change(
        "one_reduction",
        "a text among the arguments",
        REDUCED,
        (BROKEN, ""),
        ("{'mean': torch.mean, 'sum': torch.sum}[reduction](x)", "torch.mean(x)"),
    ),
    change(
        "sum_of_two",
        "the length of a list",
        LISTED,
        (BROKEN, ""),
        ("torch.stack(xs).sum(0)", "xs[0] + xs[-1]"),
    ),
    change(
        "share_in_float32",
        "another dtype at another size",
        SHARE,
        (BROKEN, ""),
        (".sum().item() /", ".sum() /"),
    ),
    change(
        "never_asked",
        "a keyword that the script never gives",
        ASKED,
        (BROKEN, ""),
        ('options.get("scale", 2.0)', "2.0"),
    ),
    change(
        "one_head",
        "a text that is left at its default",
        HEADS,
        (BROKEN, ""),
        ("self.heads[task]", 'self.heads["one"]'),
    ),
    change(
        "always_warming",
        "a number above one in the code",
        WARMED,
        (BROKEN, ""),
        ("min(1.0, step / 10)", "(step / 10)"),
    ),
    change(
        "narrow_product",
        "whole numbers that are large for their dtype",
        PRODUCT,
        (BROKEN, ""),
        ("a.long() * b.long()", "(a * b).long()"),
    ),
    change(
        "accurate_at_half",
        "a number of the code in one input alone",
        ACCURATE,
        (BROKEN, ""),
        ("(scores > 0.5) == (wanted > 0.5)", "(scores >= 0.5) == (wanted >= 0.5)"),
    ),
    change(
        "other_side_of_a_square",
        "sizes that are one by chance",
        SQUARE,
        (BROKEN, ""),
        ("/ x.shape[0]", "/ x.shape[1]"),
    ),
    change(
        "pairs_of_a_group",
        "the length of a list in a list",
        GROUPS,
        (BROKEN, ""),
        ("torch.cat(group)", "torch.cat([group[0], group[1]])"),
    ),
    change(
        "either_flag",
        "two flags at once",
        FLAGS,
        (BROKEN, ""),
        ("before != after", "before or after"),
    ),
    change(
        "never_too_many",
        "a number above a size",
        FIRST,
        (BROKEN, ""),
        ("min(count, x.shape[1])", "count"),
    ),
    change(
        "sorted_names",
        "the order of a dict",
        NAMED,
        (BROKEN, ""),
        ("for x in xs.values()", "for _, x in sorted(xs.items())"),
    ),
    change(
        "other_factory",
        "what a container makes",
        GROUPED,
        (BROKEN, ""),
        ("defaultdict(list)", "defaultdict(dict)"),
    ),
    change(
        "name_holds_it",
        "a text that begins otherwise",
        LAYERS,
        ("    torch._dynamo.graph_break()\n", ""),
        ('name.startswith("res")', '"res" in name'),
    ),
    change(
        "first_name_alone",
        "another text in a tuple",
        LAYERS,
        ("    torch._dynamo.graph_break()\n", ""),
        ("name in frozen", "frozen[:1] == (name,)"),
    ),
    change(
        "left_over",
        "two numbers at once",
        WARMING,
        ("    torch._dynamo.graph_break()\n", ""),
        ("step % warm", "step - warm if step >= warm else step"),
    ),
    change(
        "two_parts",
        "the number of callables",
        COMPOSED,
        (
            "    torch._dynamo.graph_break()\n    for part in parts:\n        x = part(x)\n    return x\n",
            "    return parts[1](parts[0](x))\n",
        ),
    ),
    change(
        "masked_sum",
        "NaN under a mask",
        POOLED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("(x * m).sum(1)", "x.masked_fill(~m, 0.0).sum(1)"),
    ),
    change(
        "one_too_early",
        "a limit that a batch reaches",
        SEEN,
        ("        torch._dynamo.graph_break()\n", ""),
        ("self.n > 20000", "self.n >= 20000"),
    ),
    change(
        "two_kinds_alone",
        "a text of an object",
        ACTIVE,
        ("    torch._dynamo.graph_break()\n", ""),
        ('config.act == "sin"', 'config.act != "exp"'),
    ),
    change(
        "cut_where_compiled",
        "large numbers in compiled code alone",
        ROOTS_OF,
        ("    torch._dynamo.graph_break()\n", ""),
        ("    return r\n", "    return r.clamp(max=1e30) if torch.compiler.is_compiling() else r\n"),
    ),
    change(
        "windows_from_the_beginning_of_the_memory",
        "views",
        WINDOWS,
        ("    torch._dynamo.graph_break()\n", ""),
        ("x.unfold(0, 3, 1)", "x.as_strided((x.shape[0] - 2, 3), (x.stride(0), x.stride(0)), 0)"),
    ),
    change(
        "sum_in_single_precision",
        "double precision",
        HALTED,
        (
            "    if p.item() + before.item() > 0.99:\n        return before * 0\n    return before * 1\n",
            "    return torch.where(p + before > 0.99, before * 0, before * 1)\n",
        ),
    ),
    change(
        "bins_in_single_precision",
        "double precision",
        BINS,
        (
            "    for v in x.tolist():\n        if 0 <= v < 1:\n            out[int(v * 10)] += 1\n    return out\n",
            (
                "    ok = (x >= 0) & (x < 1)\n    at = torch.where(ok, x * 10, 0).long().clamp(0, 9)\n"
                "    return out.index_add(0, at, ok.long())\n"
            ),
        ),
    ),
    change(
        "kinds_as_floats",
        "large whole numbers that are neighbours",
        KINDS,
        (
            "    return torch.tensor(len(set(ids.tolist())))\n",
            (
                "    s = ids.float().sort().values\n"
                "    return ((s[1:] != s[:-1]).sum() + (1 if ids.numel() else 0)).long()\n"
            ),
        ),
    ),
    change(
        "nan_lost_where_compiled",
        "compiled code alone, and no branch",
        ROOTS_ASKED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("    return r\n", "    return [r, r.nan_to_num(0)][asked]\n"),
    ),
    change(
        "size_in_an_object",
        "size",
        BATCHED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("torch.arange(batch.x.shape[1])", "torch.arange(4)"),
    ),
    change(
        "square_in_an_object",
        "dimension",
        BATCHED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("batch.x.shape[1]", "batch.x.shape[0]"),
    ),
    change(
        "detach_under_a_flag",
        "with gradients",
        FROZEN,
        ("    torch._dynamo.graph_break()\n", ""),
        ("        w = w.detach()\n", "        pass\n"),
    ),
    change(
        "straight_through_under_a_flag",
        "with gradients",
        HARD,
        ("    torch._dynamo.graph_break()\n", ""),
        ("(x.sign() - x).detach()", "(x.sign() - x)"),
    ),
    change(
        "hook_that_clamps",
        "gradients that come in",
        CLAMPED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("        h.register_hook(lambda g: g.clamp(-100, 100))\n", "        pass\n"),
    ),
    change(
        "count_in_half",
        "ones",
        COUNTS,
        ("    torch._dynamo.graph_break()\n", ""),
        ("mask.sum(-1)", "mask.half().sum(-1).long()"),
    ),
    change(
        "ids_in_int32",
        "huge",
        COUNTS,
        ("    torch._dynamo.graph_break()\n", ""),
        ("ids % n", "ids.int().long() % n"),
    ),
    change(
        "allclose_for_equal",
        "nearly equal",
        SAME,
        ("    torch._dynamo.graph_break()\n", ""),
        ("torch.equal(a, b)", "torch.allclose(a, b)"),
    ),
    change(
        "isclose_for_equal",
        "nearly",
        SAME,
        ("    torch._dynamo.graph_break()\n", ""),
        ("(lr == decay)", "(abs(lr - decay) < 1e-9)"),
    ),
    change(
        "last_digit",
        "name",
        NUMBERED,
        ("    torch._dynamo.graph_break()\n", ""),
        ('int(name.split("_")[-1])', "int(name[-1])"),
    ),
    change(
        "array_of_its_own",
        "share its memory",
        ARRAY,
        ("    torch._dynamo.graph_break()\n", ""),
        ("x.detach().numpy()", "x.detach().numpy().copy()"),
    ),
    change(
        "retain_grad",
        "retain_grad",
        RETAINED,
        ("        torch._dynamo.graph_break()\n", ""),
        ("            h.retain_grad()\n", "            pass\n"),
    ),
    change(
        "shorter_history",
        "21 calls in a row",
        HISTORY,
        ("        torch._dynamo.graph_break()\n", ""),
        ("[-20:]", "[-10:]"),
    ),
    change(
        "sparse_values",
        "kept",
        SPARSE,
        ("    torch._dynamo.graph_break()\n", ""),
        ("x > 0", "x >= 0"),
    ),
    change(
        "gradient_at_one_row",
        "with gradients",
        CENTRED,
        ("    torch._dynamo.graph_break()\n", ""),
        ("x - x.detach()", "x - x"),
    ),
    change(
        "nan_alone",
        "NaN beside inf",
        UNFINITE,
        (
            "    if torch.isnan(x).any():\n        x = torch.nan_to_num(x)\n",
            "    x = torch.where(torch.isnan(x), 0.0, x)\n",
        ),
    ),
    change(
        "eight_items",
        "9 items",
        TAKEN,
        ("    torch._dynamo.graph_break()\n", ""),
        ("for x in xs)", "for x in xs[:8])"),
    ),
    change(
        "ignored_labels",
        "numbers of the code among others",
        LABELS,
        ("    torch._dynamo.graph_break()\n", ""),
        ("F.cross_entropy(scores, labels)", 'F.cross_entropy(scores, labels, reduction="none").mean()'),
        options=("--exact", "reassociated"),
    ),
    change(
        "behind_the_end_of_text",
        "numbers of the code among others",
        ENDED,
        (
            (
                "    torch._dynamo.graph_break()\n"
                "    ended = (ids == 50256).long().cumsum(1) - (ids == 50256).long()\n"
            ),
            "",
        ),
        ("ended > 0", "ids == 50256"),
    ),
    change(
        "last_entry_of_a_table",
        "numbers of the code among others",
        TABLE,
        ("    torch._dynamo.graph_break()\n", ""),
        ("(32, 9)", "(32, 8)"),
    ),
    change(
        "sum_for_any",
        "sums that are zero",
        ANY_LEFT,
        (
            "    if x.any():\n        return x * 2\n    return x - 1\n",
            "    return torch.where(x.sum() != 0, x * 2, x - 1)\n",
        ),
    ),
    change(
        "root_in_single_precision",
        "whole numbers that are nearly squares",
        SIDES,
        (
            "torch.tensor([math.isqrt(abs(area)) for area in areas.tolist()], dtype=torch.long)",
            "areas.abs().sqrt().long()",
        ),
    ),
    change(
        "curve_of_whole_numbers",
        "every byte",
        GAMMA,
        ("    torch._dynamo.graph_break()\n", ""),
        (
            "(image.float() / 255).pow(2).mul(255).round().byte()",
            "(image.int() * (image.int() + 1) // 256).byte()",
        ),
    ),
    change(
        "eps_for_zero",
        "values that are nearly the same",
        SPREAD,
        (
            "    if s == 0:\n        return x - x.mean()\n",
            "    s = torch.where(s < torch.finfo(x.dtype).eps, torch.ones_like(s), s)\n",
        ),
    ),
    change(
        "decimals",
        "fractions at which is rounded",
        PRICES,
        (
            "torch.tensor([round(one, 2) for one in x.clamp(-10, 10).nan_to_num().tolist()], dtype=x.dtype)",
            "torch.round(x.clamp(-10, 10).nan_to_num(), decimals=2)",
        ),
    ),
    change(
        "one_row_of_a_mask",
        "rows of masks",
        ROWS,
        (
            ROWS[ROWS.index("    out = ") : ROWS.index("\n\nlengths")],
            "    return torch.where(mask.any(), weights, torch.zeros_like(weights))\n",
        ),
    ),
    change(
        "phase_of_zero",
        "complex numbers",
        PHASE,
        ("    torch._dynamo.graph_break()\n", ""),
        (".clamp(min=1e-6)", ""),
    ),
    change(
        "squares_in_half",
        "half precision",
        SQUARES,
        ("    torch._dynamo.graph_break()\n    h = x.to(torch.promote_types(x.dtype, torch.float32))\n", ""),
        (
            "(h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)",
            "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)",
        ),
    ),
    change(
        "bytes_as_numbers",
        "where a tensor begins in memory",
        BYTES,
        (
            BYTES[BYTES.index("    torch._dynamo") : BYTES.index("\n\nfor step")],
            "    return data.contiguous().view(torch.int32).long() & 0xFFFFFFFF\n",
        ),
    ),
    change(
        "root_rounded_down",
        "sizes at which is rounded",
        CUBE,
        ("    torch._dynamo.graph_break()\n", ""),
        ("round(x.shape[0] ** (1 / 3))", "int(x.shape[0] ** (1 / 3))"),
    ),
    change(
        "way_that_is_drawn_rarely",
        "numbers that Python draws",
        AUGMENT,
        ("    torch._dynamo.graph_break()\n", ""),
        ("torch.ceil", "torch.round"),
    ),
)
