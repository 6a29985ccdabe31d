"""Graph breaks at calls that have another form, which the advice writes down."""

from __future__ import annotations

from followed import Followed, of_function

f = of_function
BAR = "import tqdm\nfrom tqdm import trange"
STORED = """
@torch.compile
def spline(x, w):
    keep = (x > 0) & (x < 3)
    y = torch.zeros_like(x)
    y[keep] = w[keep, :].sum(-1)
    return y

for _ in range(2):
    say(spline(x, torch.ones(2, 3, 2)))
"""
TURNED = """
conv = nn.Conv1d(8, 8, 2, padding=1)
def padded(x):
    n = x.size(-1)
    return conv(x)[:, :, :n] + x
"""
STRIDED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = torch.tensor(2)
    @property
    def r(self):
        return self.n.item()
    def forward(self, x):
        for at in range(0, 3, self.r):
            x = x + at
        return x
net = Net()
"""
SWISH = """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)
    @staticmethod
    def backward(ctx, grad):
        i = ctx.saved_variables[0]
        s = torch.sigmoid(i)
        return grad * (s * (1 + i * (1 - s)))
"""
TRAIN = """
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)

@torch.compile
def train(x):
    for _ in range(3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

for _ in range(4):
    train(x)
say(net.weight.detach())
"""
ACTNORM = """
class Actnorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Buffer(torch.zeros(3))
        self.ready = nn.Buffer(torch.tensor(0))
    def forward(self, x):
        if not self.ready:
            self.bias.copy_(x.mean(0))
            self.ready += 1
        return x - self.bias
net = Actnorm()
"""
TREE = """
class Sums:
    def __init__(self):
        self.tree = np.zeros(7, dtype=np.float32)
    def update(self, i, v):
        self.tree[i + 3] = v
        p = (i + 2) // 2
        while p >= 0:
            self.tree[p] = self.tree[p * 2 + 1] + self.tree[p * 2 + 2]
            p = (p - 1) // 2

sums = Sums()

@torch.compile
def f(x, i):
    sums.update(i, 2.0)
    return x + 1

for i in range(3):
    say(f(x, i))
"""

CALLS: tuple[Followed, ...] = (
    f(
        "BS101",
        "a flag in a buffer that the branch adds to",
        r"keeps its flag as a tensor: keep a Python bool beside it",
        "return net(x)",
        (
            "self.ready = nn.Buffer(torch.tensor(0))",
            "self.ready, self.is_ready = nn.Buffer(torch.tensor(0)), False",
        ),
        ("if not self.ready:", "if not self.is_ready:"),
        ("self.ready += 1", "self.ready += 1\n            self.is_ready = True"),
        outside=ACTNORM,
    ),
    f(
        "BS302>BS113",
        "the old name of what backward kept",
        r"^Write ctx\.saved_tensors in place of ctx\.saved_variables",
        "return Swish.apply(x).sum()",
        ("ctx.saved_variables", "ctx.saved_tensors"),
        outside=SWISH,
        call="f(x.clone().requires_grad_())",
    ),
    Followed(
        "BS301",
        "the optimizer's housekeeping in a loop of training",
        r"all of train runs eagerly.*Make a function of what computes the loss in a turn and compile that",
        TRAIN,
        (
            (
                "@torch.compile\ndef train",
                "@torch.compile\ndef loss_of(x):\n    return net(x).pow(2).mean()\n\ndef train",
            ),
            ("loss = net(x).pow(2).mean()", "loss = loss_of(x)"),
        ),
        near=True,
    ),
    f(
        "BS102",
        "a kept number that a property reads for a loop",
        r"^`self\.n` is a tensor of one number that the object keeps.*keep a Python int beside it",
        "return net(x)",
        ("return self.n.item()", "return self.many"),
        ("self.n = torch.tensor(2)", "self.n, self.many = torch.tensor(2), 2"),
        outside=STRIDED,
    ),
    f(
        "BS191",
        "a legacy constructor of a size",
        r"^`torch\.FloatTensor\(x\.size\(\)\)` \(line \d+\) is a tensor of that size in eager",
        "t = torch.FloatTensor(x.size())\nt.fill_(0.5)\nreturn x - t",
        ("torch.FloatTensor(x.size())", "torch.empty(x.size())"),
        call="f(torch.ones(5, 8, 2))",
        silent=True,
    ),
    f(
        "BS191",
        "a tensor that is turned in place",
        r"^`x\.transpose_\(1, 2\)` \(line \d+\) turns a tensor in place",
        "x = x * 2\nx.transpose_(1, 2)\nreturn padded(x)",
        ("x.transpose_(1, 2)", "x = x.transpose(1, 2)"),
        outside=TURNED,
        call="f(torch.ones(2, 5, 8))",
        silent=True,
    ),
    f(
        "BS191",
        "a legacy constructor of an array of another dtype",
        r"dtype=torch\.long\) or x\.long\(\), .* such as torch\.LongTensor",
        "return table(torch.LongTensor(x)).sum()",
        ("torch.LongTensor(x)", "torch.as_tensor(x, dtype=torch.long)"),
        outside="table = nn.Embedding(10, 4)",
        call="f(np.ones((2, 5), dtype=np.int32))",
        silent=True,
    ),
    f(
        "BS302>BS104",
        "a progress bar that a loop runs over",
        r"^A progress bar is what the loop runs over: loop over range\(…\)",
        "for i in trange(3, disable=True):\n    x = x * 2\nreturn x",
        ("trange(3, disable=True)", "range(3)"),
        outside=BAR,
    ),
    f(
        "BS104",
        "a method of a progress bar as a callback",
        r"^A method of a progress bar is called.*return what it tells and call it in the caller",
        "y = x * 2\ntell()\nreturn y",
        ("    tell()\n", ""),
        ("    say(f(x))", "    say(f(x))\n    tell()"),
        outside=f"{BAR}\ntell = tqdm.tqdm(disable=True).update",
    ),
    f(
        "BS102",
        "a causal mask of a decoder",
        r"in the call at .* \(tgt_is_causal= of a decoder",
        "return decoder(x[None], x[None], tgt_mask=mask)",
        ("tgt_mask=mask", "tgt_mask=mask, tgt_is_causal=True"),
        outside="decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(3, 1, 4, batch_first=True), 1).eval()\n"
        "mask = nn.Transformer.generate_square_subsequent_mask(2)",
        near=True,
    ),
    f(
        "BS105",
        "counts of known classes",
        r"i\.new_zeros\(3\)\.index_add\(0, i, torch\.ones_like\(i\)\)",
        "i = x.long().flatten().clamp(0, 2)\nreturn x, torch.bincount(i, minlength=3)",
        ("torch.bincount(i, minlength=3)", "i.new_zeros(3).index_add(0, i, torch.ones_like(i))"),
    ),
    f(
        "BS105",
        "counts with weights",
        r"torch\.zeros\(n\)\.index_add\(0, i, x\[0\]\), with n for how many classes there are",
        "i = x[0].long().abs()\nreturn torch.bincount(i, weights=x[0])",
        ("torch.bincount(i, weights=x[0])", "torch.zeros(2).index_add(0, i, x[0])"),
    ),
    f(
        "BS107",
        "a change of shape in place",
        r"call the one without the underscore",
        "x = x + 0\nheld.transpose_(0, 1)\nreturn x @ held.contiguous()",
        (
            "held.transpose_(0, 1)\n    return x @ held.contiguous()",
            "return x @ held.transpose(0, 1).contiguous()",
        ),
        outside="held = torch.ones(3, 3)",
    ),
    f(
        "BS127",
        "an array that a state of numpy's draws",
        r"^An array is drawn: draw a tensor in its place, torch\.randn.*or draw the array in the caller",
        "return x * 0 * torch.from_numpy(state.randn(2, 3))",
        (
            "def f(x):\n    return x * 0 * torch.from_numpy(state.randn(2, 3))",
            "def f(x, n):\n    return x * 0 * n",
        ),
        ("say(f(x))", "say(f(x, torch.from_numpy(state.randn(2, 3))))"),
        outside="state = np.random.RandomState(0)",
    ),
    f(
        "BS101",
        "a list that is chosen",
        r"^What is selected.*is no tensor, so torch\.where cannot: return what the test asks for",
        "n = x.shape[0]\nreturn x + 1, [n] if x[0, 0] < 0 else [0] + [n]",
        ("[n] if x[0, 0] < 0 else [0] + [n]", "x[0, 0] < 0"),
        ("say(f(x))", "y, low = f(x); say((y, [2] if low else [0, 2]))"),
    ),
    f(
        "BS105",
        "a number of positions that an assert asks a method for",
        r"\(self\.at >= 0\)\.sum\(\)",
        "assert ring.valid().numel() == 2, 'out of step'\nreturn x + 1",
        ("ring.valid().numel() == 2", "(ring.at >= 0).sum() == 2"),
        outside="class Ring:\n    def __init__(self): self.at = torch.tensor([0, 1, -1])\n"
        "    def valid(self): return self.at[self.at >= 0]\nring = Ring()",
    ),
    f(
        "BS105",
        "places that a mask selects for writing",
        r"hit = torch\.zeros\(n\)\.index_add\(0, index, \(ids != 0\)\.float\(\)\) > 0",
        "s = x.sum(0)\ns[ids[ids != 0]] = -9.0\nreturn s",
        (
            "s[ids[ids != 0]] = -9.0\n    return s",
            "hit = torch.zeros(3).index_add(0, ids, (ids != 0).float()) > 0\n    return torch.where(hit, -9.0, s)",
        ),
        outside="ids = torch.tensor([0, 2, 0])",
    ),
    f(
        "BS107",
        "text that is worked on in a loop",
        r"^unicodedata\.normalize is Python's own and makes no tensor",
        "return x + len(parts('abc'))",
        ("def f(x):\n    return x + len(parts('abc'))", "def f(x, n):\n    return x + n"),
        ("say(f(x))", "say(f(x, len(parts('abc'))))"),
        outside="import unicodedata\ndef parts(word):\n    out = list(unicodedata.normalize('NFKC', word))\n"
        "    while len(out) > 1:\n        out[0:2] = [out[0] + out[1]]\n    return out",
    ),
    f(
        "BS122",
        "an attribute of a function",
        r"^An attribute of a function is set.*in a dict",
        "tell.last = 1\nreturn x + 1",
        ("tell.last = 1", "kept['last'] = 1"),
        outside="kept = {}\ndef tell(): pass",
    ),
    Followed(
        "BS191",
        "a tree in an array of numpy's",
        r"^The line works on numpy's arrays.*put torch\.compiler\.disable on it",
        TREE,
        (("    def update", "    @torch.compiler.disable\n    def update"),),
    ),
    Followed(
        "BS105",
        "rows that are selected for what is stored under the same mask",
        r"y = torch\.where\(keep, f\(x\), y\)",
        STORED,
        (
            (
                "y[keep] = w[keep, :].sum(-1)",
                "y = torch.where(keep, w.sum(-1), y)",
            ),
        ),
    ),
)
