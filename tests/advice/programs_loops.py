"""Loops whose kind decides the advice: Python's own bookkeeping, cells of a table, groups; and guards by use."""

from __future__ import annotations

from followed import Followed, of_function

f = of_function
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True\n"

LOOPS: tuple[Followed, ...] = (
    f(
        "BS301>BS101",
        "what is put into a list on each side",
        r"Each side of the branch appends to `out`: compute both.*`?torch\.where\(d > 1, .*bad = bad \+ \(d > 1\)",
        "out, bad, y = [], 0, x[0]\nfor r in x:\n    d = (r - y).abs().sum()\n    if d > 1:\n        bad += 1\n"
        "        out.append(y)\n        continue\n    y = (y + r) / 2\n    out.append(y)\nreturn torch.stack(out) + bad",
        (
            "if d > 1:\n            bad += 1\n            out.append(y)\n            continue\n        y = (y + r) / 2\n",
            "y = torch.where(d > 1, y, (y + r) / 2)\n        bad = bad + (d > 1)\n",
        ),
    ),
    f(
        "BS120",
        "a write under checkpoint",
        r"`self\.sum = y\.sum\(\)` at \S+ writes to .*skip_fwd_side_effects_in_bwd_under_checkpoint = True",
        "return checkpoint(block, x, use_reentrant=False) * 2",
        (
            "@torch.compile",
            "torch._dynamo.config.skip_fwd_side_effects_in_bwd_under_checkpoint = True\n@torch.compile",
        ),
        outside="from torch.utils.checkpoint import checkpoint\nclass Block(nn.Module):\n"
        "    def forward(self, x):\n        y = x * 2\n        self.sum = y.sum()\n        return y\nblock = Block()",
    ),
    f(
        "BS301>BS127",
        "draws in a loop",
        r"in `for b in range\(2\)`: draw them in the caller, one for each turn, and pass them in as a list",
        "x = x.clone()\nfor b in range(2):\n    c = random.sample(range(3), 2)\n    x[b, c] = 0\nreturn x",
        ("random.sample(range(3), 2)", "drawn[b]"),
        ("    say(f(x))", "    drawn = [random.sample(range(3), 2) for _ in range(2)]\n    say(f(x))"),
        guard="random.seed(0)\n    ",
    ),
    f(
        "BS105",
        "a copy to positions",
        r"It is computed where the mask is set and stored there in `y\.index_copy_\(0, at, x\[at\] \* 2\)`",
        "keep = x[:, 0] > 0\nat = keep.nonzero().squeeze(1)\ny = torch.zeros(2, 3)\n"
        "y.index_copy_(0, at, x[at] * 2)\nreturn y",
        (
            "at = keep.nonzero().squeeze(1)\n    y = torch.zeros(2, 3)\n    y.index_copy_(0, at, x[at] * 2)",
            "y = torch.where(keep[:, None], x * 2, torch.zeros(2, 3))",
        ),
    ),
    f(
        "BS102",
        "a number behind min, max and math",
        r"Use torch\.acos of the tensor in place of math\.acos of its number.*clamp for min and max",
        "return x, math.acos(min(1.0, max(-1.0, x[0, 0].item())))",
        ("math.acos(min(1.0, max(-1.0, x[0, 0].item())))", "torch.acos(x[0, 0].clamp(-1, 1))"),
        near=True,
    ),
    f(
        "BS102",
        "what a call takes as a number",
        r"is passed on.*return `x\.argmax\(\) % 3` and make the call in the caller",
        "return x * 2, Kind(int(x.argmax() % 3))",
        ("Kind(int(x.argmax() % 3))", "x.argmax() % 3"),
        ("say(f(x))", "y, kind = f(x); say([y, Kind(int(kind)).value])"),
        outside="import enum\nclass Kind(enum.IntEnum):\n    A = 0\n    B = 1\n    C = 2",
    ),
    f(
        "BS102",
        "a piece at a pointer",
        r"`queue\.index_copy_\(1, p \+ torch\.arange\(3\), x\)`",
        "p = int(at)\nqueue[:, p:p + 3] = x\nreturn queue * 1",
        (
            "p = int(at)\n    queue[:, p:p + 3] = x",
            "p = at\n    queue.index_copy_(1, p + torch.arange(3), x)",
        ),
        outside="queue, at = torch.zeros(2, 8), torch.ones(1, dtype=torch.long)",
    ),
    f(
        "BS301>BS101",
        "lists of near pairs",
        r"make the list of pairs in the caller, for all at once with torch\.where",
        "a, b = [], []\nfor i in range(2):\n    for j in range(2):\n"
        "        if i != j and (x[i] - x[j]).norm() < 9:\n            a.append(i)\n            b.append(j)\n"
        "return x[torch.tensor(a)] - x[torch.tensor(b)]",
        (
            (
                "a, b = [], []\n    for i in range(2):\n        for j in range(2):\n"
                "            if i != j and (x[i] - x[j]).norm() < 9:\n                a.append(i)\n"
                "                b.append(j)\n    return x[torch.tensor(a)] - x[torch.tensor(b)]"
            ),
            "return x[near[0]] - x[near[1]]",
        ),
        (
            "    say(f(x))",
            (
                "    apart = (x[:, None] - x[None, :]).norm(dim=-1)\n"
                "    near = torch.where((apart < 9) & ~torch.eye(2, dtype=torch.bool))\n    say(f(x))"
            ),
        ),
    ),
    f(
        "BS301>BS101",
        "counts into cells under a condition",
        r"add them with h\.index_put_\(\(i, j\), weight, accumulate=True\)",
        "h = torch.zeros(9)\nfor i in range(2):\n    r = x[i].norm()\n    if r < 4:\n        h[int(r)] += 2\nreturn h",
        (
            "for i in range(2):\n        r = x[i].norm()\n        if r < 4:\n            h[int(r)] += 2",
            (
                "r = x.norm(dim=1)\n"
                "    h.index_put_((r.long(),), torch.where(r < 4, 2.0, 0.0), accumulate=True)"
            ),
        ),
    ),
    f(
        "BS301>BS102",
        "indices that are followed back",
        r"at = back\[t\]\.gather\(1, at\[:, None\]\)\.squeeze\(1\)",
        "back = x.long().abs() % 3\nbest = back[0].argmax().item()\npath = [best]\n"
        "for t in reversed(range(2)):\n    best = back[t][best].item()\n    path.append(best)\nreturn path",
        (".argmax().item()", ".argmax()"),
        ("back[t][best].item()", "back[t].gather(0, best[None]).squeeze(0)"),
        ("return path", "return torch.stack(path)"),
    ),
    f(
        "BS302>BS114",
        "a generator that is passed in",
        r"give it list\(…\) of that, as list\(model\.parameters\(\)\)",
        "for i in range(2):\n    torch._dynamo.graph_break()\n    x = x + total(held.parameters())\nreturn x",
        ("total(held.parameters())", "total(list(held.parameters()))"),
        outside="held = nn.Linear(3, 3)\ndef total(ps):\n    t = torch.zeros(())\n    for p in ps:\n"
        "        t = t + p.sum()\n        if t.isnan():\n            t = t * 2\n    return t",
    ),
    f(
        "BS302>BS107",
        "a date",
        r"do that in the caller, and pass in what comes of it, as numbers",
        "hour = (day + 3 * step).hour\nreturn x * hour",
        ("hour = (day + 3 * step).hour\n    ", ""),
        ("    say(f(x))", "    hour = (day + 3 * step).hour\n    say(f(x))"),
        outside="import datetime\nday, step = datetime.datetime(2024, 1, 1), datetime.timedelta(hours=1)",
    ),
    f(
        "BS103",
        "bookkeeping of what is given",
        r"^The loop `for .*` \(line \d+\) takes single values.*before the compiled call, as it is made of"
        r" the\s+argument `x` alone",
        "open_at, pairs = [], []\nfor i, t in enumerate(x[0].tolist()):\n    if t < 1:\n        open_at.append(i)\n"
        "    elif open_at:\n        pairs.append((open_at.pop(), i))\n"
        "for a, b in pairs:\n    x = x + x[:, a:a + 1] * x[:, b:b + 1]\nreturn x",
        (
            (
                "    open_at, pairs = [], []\n    for i, t in enumerate(x[0].tolist()):\n        if t < 1:\n"
                "            open_at.append(i)\n        elif open_at:\n            pairs.append((open_at.pop(), i))\n"
            ),
            "",
        ),
        (
            "@torch.compile\ndef f(x):",
            (
                "def pair(x):\n    open_at, pairs = [], []\n    for i, t in enumerate(x[0].tolist()):\n        if t < 1:\n"
                "            open_at.append(i)\n        elif open_at:\n            pairs.append((open_at.pop(), i))\n"
                "    return pairs\n\n@torch.compile\ndef f(x, pairs):"
            ),
        ),
        ("f(x))", "f(x, pair(x)))"),
    ),
    f(
        "BS103",
        "bookkeeping of what is computed",
        r"^The loop `for v in .*` .*in the caller, on what the\s+compiled part returns",
        "y = net(x)\nseen, total = {}, 0\nfor v in y.flatten().tolist():\n    k = round(v, 1)\n    seen[k] = total\n"
        "    total += 1\nreturn y, len(seen)",
        (
            (
                "    seen, total = {}, 0\n    for v in y.flatten().tolist():\n        k = round(v, 1)\n        seen[k] = total\n"
                "        total += 1\n    return y, len(seen)"
            ),
            "    return y",
        ),
        (
            "    say(f(x))",
            "    y = f(x)\n    seen = {round(v, 1) for v in y.flatten().tolist()}\n    say((y, len(seen)))",
        ),
        outside="net = nn.Linear(3, 2).requires_grad_(False)",
    ),
    f(
        "BS301>BS101",
        "a table that is filled cell by cell",
        r"^The loops fill `d` cell by cell.*do not compile the function itself",
        "p = (x * 2).argsort(-1)\nd = torch.zeros(3, 3)\nfor i in range(1, 3):\n    for j in range(1, 3):\n"
        "        cost = 0 if p[0, i] == p[1, j] else 1\n        d[i, j] = d[i - 1, j - 1] + cost\nreturn d[-1, -1]",
        (
            "@torch.compile\ndef f",
            "def f",
        ),
    ),
    f(
        "BS301>BS105",
        "group by group: ranked",
        r"^The loop ranks one group after the other.*member = group == torch\.arange\(2\)\[:, None\]",
        "out = []\nfor g in range(2):\n    out.append(x[0][group == g].topk(1)[0])\nreturn torch.stack(out)",
        (
            "    out = []\n    for g in range(2):\n        out.append(x[0][group == g].topk(1)[0])\n    return torch.stack(out)",
            (
                "    member = group == torch.arange(2)[:, None]\n"
                "    return torch.where(member, x[0], -math.inf).topk(1)[0]"
            ),
        ),
        outside="group = torch.tensor([0, 1, 0])",
    ),
    f(
        "BS301>BS105",
        "group by group: reduced",
        r"^The loop reduces one group after the other.*torch\.zeros\(2\)\.index_add\(0, group, v\).*torch\.zeros\(2, d\) and count\[:, None\]",
        "v = x.T\nreturn torch.stack([v[group == g].mean(0) for g in range(2)])",
        (
            "return torch.stack([v[group == g].mean(0) for g in range(2)])",
            (
                "n = F.one_hot(group, 2).sum(0).clamp(min=1)\n"
                "    return torch.zeros(2, 2).index_add(0, group, v) / n[:, None]"
            ),
        ),
        outside="group = torch.tensor([0, 1, 0])",
    ),
    f(
        "BS105",
        "the same selected along two dimensions",
        r"both = keep\[:, None\] & keep\[None, :\], torch\.where\(both, a, 0\)\.sum\(\)",
        "a = x.T @ x\nreturn a[keep][:, keep].sum() / a.sum()",
        ("a[keep][:, keep].sum()", "torch.where(keep[:, None] & keep[None, :], a, 0).sum()"),
        outside="keep = torch.tensor([True, False, True])",
        near=True,
    ),
    f(
        "BS101",
        "a comprehension that keeps items",
        r"^The comprehension keeps items by a tensor's values.*with the condition as a mask",
        "rows = [r.sum() for r, k in zip(x, x[:, 0] > 0) if k]\nreturn sum(rows)",
        (
            "rows = [r.sum() for r, k in zip(x, x[:, 0] > 0) if k]\n    return sum(rows)",
            "return torch.where(x[:, 0] > 0, x.sum(1), 0).sum()",
        ),
    ),
    f(
        "BS302>BS113",
        "divmod of a number that became symbolic",
        r"write n // k and n % k, which\s+hold for a tensor too",
        "k = int(x.argmax())\nr, c = divmod(k, 3)\nreturn x * r + c",
        ("k = int(x.argmax())\n    r, c = divmod(k, 3)", "k = x.argmax()\n    r, c = k // 3, k % 3"),
        call="f(x.roll(len(SAID)))",
    ),
    f(
        "BS301>BS113",
        "a key that Dynamo holds as a tensor",
        r"no key of a dict\s+or set in compiled code: count with torch\.bincount",
        "counts = {}\nfor label in x.argmax(-1).numpy():\n    counts[label] = counts.get(label, 0) + 1\n"
        "return x + len(counts)",
        (
            (
                "counts = {}\n    for label in x.argmax(-1).numpy():\n        counts[label] = counts.get(label, 0) + 1\n"
                "    return x + len(counts)"
            ),
            "return x + (F.one_hot(x.argmax(-1), 3).sum(0) > 0).sum()",
        ),
    ),
    f(
        "BS301>BS102",
        "rows that are written one by one",
        r"^A loop takes the numbers one by one and picks with each.*x\.scatter\(dim, index, new\)",
        "m, at = torch.zeros(2, 3), x.argmax(-1)\nfor i in range(2):\n    m[i, at[i]] = 1.0\nreturn m",
        ("    for i in range(2):\n        m[i, at[i]] = 1.0\n", "    m = m.scatter(1, at[:, None], 1.0)\n"),
    ),
    f(
        "BS101",
        "a constant that a loop returns",
        r"take the conditions of all\s+turns, torch\.stack\(\[…\]\)\.any\(\)",
        "for i in range(2):\n    if x[i].sum() > 3:\n        return 1\nreturn 0",
        (
            "for i in range(2):\n        if x[i].sum() > 3:\n            return 1\n    return 0",
            "return torch.stack([x[i].sum() > 3 for i in range(2)]).any().int()",
        ),
    ),
    f(
        "BS102",
        "a number that is looked for in a set",
        r"^`int\(i\)` is a key of a Python dict or set.*return `i`, and do that in the caller",
        "i = net(x).argmax()\nif int(i) not in tried:\n    return x\nreturn x * 2",
        ("    if int(i) not in tried:\n        return x\n    return x * 2", "    return i"),
        ("say(f(x))", "say(x if f(x).item() not in tried else x * 2)"),
        outside="tried = {3, 4}\nnet = nn.Linear(3, 3).requires_grad_(False)",
    ),
    f(
        "BS127",
        "a drawn number that an operation needs",
        r"^Draw the number in the caller and pass it in",
        "k = random.randrange(4)\nreturn torch.rot90(x, k, (-2, -1))",
        ("    k = random.randrange(4)\n", ""),
        ("def f(x):", "def f(x, k):"),
        ("say(f(x))", "say(f(x, random.randrange(4)))"),
        outside="random.seed(3)",
    ),
    Followed(
        "BS211",
        "a list that a loop runs over",
        r"^A loop over games is unrolled, so each number of items.*pass what is a list of numbers, or of tensors of one shape, as one tensor, and compute it for all at once",
        "@torch.compile\ndef f(x, games):\n    for g in games:\n        x = x + g\n    return x\n\n"
        "for n in range(1, 4):\n    say(f(x, [float(i) for i in range(n)]))\n",
        (
            ("for g in games:\n        x = x + g\n    return x", "return x + games.sum()"),
            ("[float(i) for i in range(n)]", "torch.arange(float(n))"),
        ),
    ),
    f(
        "BS101",
        "a flag that is made of a count",
        r"^The value comes out of numpy.*leave this to the caller, on arrays",
        "k = np.lcm.reduce([2, 2])\nodd = x.shape[1] % k != 0\nx = x + 1\nif odd:\n    x = F.pad(x, (0, 1))\nreturn x",
        (
            "def f(x):\n    k = np.lcm.reduce([2, 2])\n    odd = x.shape[1] % k != 0\n",
            "def f(x, odd):\n",
        ),
        ("say(f(x))", "say(f(x, bool(x.shape[1] % np.lcm.reduce([2, 2]) != 0)))"),
    ),
    f(
        "BS102",
        "a size that numpy computes",
        r"^The value comes out of numpy.*leave this to the caller, on arrays",
        "return x.sum() + torch.from_numpy(np.zeros((2, np.sum(parts)))).sum()",
        ("np.sum(parts)", "n"),
        ("def f(x):", "def f(x, n):"),
        ("f(x))", "f(x, int(np.sum(parts))))"),
        outside="parts = np.array([1, 2])",
    ),
    f(
        "BS105",
        "rows that are stored where they were",
        r"y = torch\.where\(keep\[\.\.\., None\], f\(x\), y\)",
        "y = x.clone()\ny[keep, :] = (x[keep, :] * 2).relu()\nreturn y",
        (
            "y = x.clone()\n    y[keep, :] = (x[keep, :] * 2).relu()\n    return y",
            "return torch.where(keep[..., None], (x * 2).relu(), x)",
        ),
        outside="keep = torch.tensor([True, False])",
    ),
    f(
        "BS101",
        "a branch that joins more",
        r"^The branch joins more to a tensor.*join it always, and take out what is\s+not there by a mask",
        "s = x.sum(1)\nif filled > 2:\n    s = torch.cat([s, more])\nreturn s.softmax(0).max()",
        (
            "if filled > 2:\n        s = torch.cat([s, more])\n    return",
            "s = torch.cat([s, more.masked_fill(filled <= 2, -math.inf)])\n    return",
        ),
        outside="filled, more = torch.tensor(3), torch.tensor([1.0, 2.0])",
    ),
    f(
        "BS105",
        "the first position",
        r"^Only one position is taken: \(c > 3\)\.int\(\)\.argmax\(-1\)",
        "c = x[1].cumsum(0)\nat = (c > 3).nonzero()[0, 0] + 1\nreturn x * at",
        ("(c > 3).nonzero()[0, 0]", "(c > 3).int().argmax(-1)"),
    ),
    f(
        "BS101",
        "what a mask takes out",
        r"^The branch only takes out what a mask leaves out: drop it and keep all.*targets of -100",
        "known = y < 3\nlogits, t = x, y\nif not known.all():\n    logits, t = logits[known], t[known]\n"
        "return F.cross_entropy(logits, t)",
        (
            "logits, t = x, y\n    if not known.all():\n        logits, t = logits[known], t[known]\n",
            "logits, t = x, y.masked_fill(~known, -100)\n",
        ),
        outside="y = torch.tensor([1, 3])",
        near=True,
    ),
    Followed(
        "BS211",
        "a set that changes",
        r"^Each set that comes as self\.on is a version.*hold it as a tensor of bools",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.on = set()\n"
        "    def forward(self, x):\n        mask = torch.zeros(3)\n        for i in range(3):\n"
        "            if i in self.on:\n                mask[i] = 1\n        return x * mask\n\n"
        "net = Net()\nrun = torch.compile(net)\nfor i in range(3):\n    say(run(x))\n    net.on.add(i)\n",
        (
            ("self.on = set()", "self.on = torch.zeros(3)"),
            (
                (
                    "mask = torch.zeros(3)\n        for i in range(3):\n            if i in self.on:\n                mask[i] = 1\n"
                    "        return x * mask"
                ),
                "return x * self.on",
            ),
            ("net.on.add(i)", "net.on[i] = 1"),
        ),
    ),
    Followed(
        "BS208",
        "texts in a list",
        r"^Each text in the items of keys is a version.*do that before the compiled call and pass a tensor",
        "@torch.compile\ndef f(x, keys):\n    same = torch.tensor([a == keys[0] for a in keys])\n"
        "    return torch.where(same, x[0], 0)\n\n"
        "for keys in (['a', 'b', 'c'], ['a', 'c', 'c'], ['a', 'c', 'a'], ['b', 'c', 'b']):\n    say(f(x, keys))\n",
        (
            ("torch.tensor([a == keys[0] for a in keys])", "keys == keys[0]"),
            ("f(x, keys))", "f(x, torch.tensor([ord(key) for key in keys])))"),
        ),
    ),
    Followed(
        "BS209",
        "a counter that a branch asks for",
        r"^A branch \(line \d+\) asks for self\.step, so no tensor can take its place",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.step = 0\n"
        "    def forward(self, x):\n        if self.step % 2 == 0:\n            x = x * 2\n        self.step += 1\n"
        "        return x\n\nnet = Net()\nrun = torch.compile(net)\nfor _ in range(5):\n    say(run(x))\n",
        (
            ("        self.step += 1\n", ""),
            ("        self.step = 0\n", ""),
            ("def forward(self, x)", "def forward(self, x, even)"),
            ("if self.step % 2 == 0", "if even"),
            ("for _ in range(5):\n    say(run(x))", "for step in range(5):\n    say(run(x, step % 2 == 0))"),
        ),
        lessens="a bool for a branch, which is two versions",
    ),
    Followed(
        "BS209",
        "a counter that is calculated with",
        r"^Make self\.seen a tensor \(register_buffer.*min or max of it is clamp",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = 0\n"
        "    def forward(self, x):\n        scale = min(1.0, self.seen / 3)\n        self.seen += 1\n"
        "        return x * scale\n\nnet = Net()\nrun = torch.compile(net)\nfor _ in range(5):\n    say(run(x))\n",
        (
            ("self.seen = 0", "self.register_buffer('seen', torch.tensor(0))"),
            ("min(1.0, self.seen / 3)", "(self.seen / 3).clamp(max=1.0)"),
            ("self.seen += 1", "self.seen.add_(1)"),
        ),
        near=True,
    ),
    f(
        "BS101",
        "a test beside one for None",
        r"The test `~m\.all\(\)` only saves work: drop it",
        "if m is not None and not m.all():\n    x = x.masked_fill(~m[..., None], 0)\nreturn x",
        ("if m is not None and not m.all():", "if m is not None:"),
        outside="m = torch.tensor([True, False])",
    ),
    f(
        "BS101",
        "a test of a tensor beside one for None",
        r"torch\.where\(m\.sum\(\) > 1, …, …\)",
        "if m is not None and m.sum() > 1:\n    x = x.flip(0).clone()\nelse:\n    x = x.flip(1)\nreturn x",
        (
            "if m is not None and m.sum() > 1:\n        x = x.flip(0).clone()\n    else:\n        x = x.flip(1)",
            "x = torch.where(m.sum() > 1, x.flip(0), x.flip(1))",
        ),
        outside="m = torch.tensor([True, False])",
    ),
    f(
        "BS101",
        "a loop that computes with what its object keeps",
        r"`gae = torch\.where\(self\.done\[t\], self\.r\[t\], self\.r\[t\] \+ gae / 2\)`",
        "return buffer.finish() + x.sum()",
        (
            "if self.done[t]:\n                gae = self.r[t]\n            else:\n                gae = self.r[t] + gae / 2",
            "gae = torch.where(self.done[t], self.r[t], self.r[t] + gae / 2)",
        ),
        outside="class Buffer:\n    def __init__(self):\n        self.r = torch.ones(3)\n"
        "        self.done = torch.zeros(3, dtype=torch.bool)\n        self.adv = torch.zeros(3)\n"
        "    def finish(self):\n        gae = 0.0\n        for t in reversed(range(3)):\n"
        "            if self.done[t]:\n                gae = self.r[t]\n            else:\n"
        "                gae = self.r[t] + gae / 2\n            self.adv[t] = gae\n        return self.adv\n"
        "buffer = Buffer()",
    ),
    f(
        "BS101",
        "a side whose gradient is nan",
        r"Where `x / n` is infinite or nan on the side that is not taken, its gradient is nan all the same",
        "n = x.detach().abs().sum() * 0\nif n > 0:\n    x = x / n\nreturn x",
        ("if n > 0:\n        x = x / n", "x = torch.where(n > 0, x / torch.where(n > 0, n, 1), x)"),
        call="torch.autograd.grad(f(y := x.clone().requires_grad_()).sum(), y)",
    ),
    f(
        "BS105",
        "positions in an array",
        r"^The line works on numpy's arrays, which Dynamo traces as tensors: call the function that does it in",
        "names = labels.numpy()\nat = (names == 1).nonzero()\nreturn x[:, at[0][:1]]",
        (
            "def f(x):\n    names = labels.numpy()\n    at = (names == 1).nonzero()\n    return x[:, at[0][:1]]",
            "def f(x, at):\n    return x[:, at]",
        ),
        ("say(f(x))", "say(f(x, torch.from_numpy((labels.numpy() == 1).nonzero()[0][:1])))"),
        outside="labels = torch.tensor([0, 1, 1])",
    ),
    f(
        "BS105",
        "a check of what a mask selects",
        r"ask all elements, .* as in assert \(holds\(x\) \| ~m\)\.all\(\), 'text'",
        "assert torch.equal(x[m], x[m]), 'leak'\nreturn x * 2",
        ("assert torch.equal(x[m], x[m]), 'leak'", "assert ((x == x) | ~m[:, None]).all(), 'leak'"),
        outside="m = torch.tensor([True, False])",
    ),
    f(
        "BS105",
        "a mean behind a test of how many there are",
        r"or, where the test \(line \d+\) only keeps a mean of nothing out, by \.clamp\(min=1\) of that and without it",
        "hard = x[x > 1]\nreturn hard.mean() if hard.numel() > 0 else x.mean() * 0",
        (
            "hard = x[x > 1]\n    return hard.mean() if hard.numel() > 0 else x.mean() * 0",
            "m = x > 1\n    return torch.where(m, x, 0).sum() / m.sum().clamp(min=1)",
        ),
        near=True,
    ),
    f(
        "BS105",
        "columns that a mask selects",
        r"^Keep the shape: compute for all elements and select",
        "return x[:, m] * 2",
        ("x[:, m] * 2", "x * 2"),
        ("say(f(x))", "say(f(x)[:, m])"),
        outside="m = torch.tensor([True, False, True])",
    ),
    f(
        "BS101",
        "a number that the object keeps",
        r"^What the branch does is Python's own, so torch\.where cannot select it",
        "return model(x)",
        (
            "if x.max() > 2:\n            over = x.sum().item()\n            self.over = over\n        return x * 2",
            "return x * 2",
        ),
        ("say(f(x))", "say(f(x)); model.over = x.sum().item() if x.max() > 2 else 0; say(model.over)"),
        outside="class Model(nn.Module):\n    over = 0\n    def forward(self, x):\n        if x.max() > 2:\n"
        "            over = x.sum().item()\n            self.over = over\n        return x * 2\nmodel = Model()",
        silent=True,
    ),
    f(
        "BS101",
        "an enum that is returned",
        r"^The branch leaves early or sets None, so torch\.where cannot select: .* return what the test asks for",
        "return x * 2, level(x)",
        ("return x * 2, level(x)", "return x * 2, x.max() > 9"),
        ("say(f(x))", "y, high = f(x); say([y, (Level.HIGH if high else Level.LOW).value])"),
        outside="import enum\nclass Level(enum.Enum):\n    LOW = 0\n    HIGH = 1\ndef level(x):\n    if x.max() > 9:\n"
        "        return Level.HIGH\n    x = x + 1\n    return Level.LOW",
        silent=True,
    ),
    f(
        "BS301>BS127",
        "draws until one fits",
        r"How often a number is drawn depends on data, in `while len\(found\) < 2`: do the whole loop in the caller",
        "found = []\nwhile len(found) < 2:\n    n = random.sample(range(3), 1)[0]\n    if n not in found:\n"
        "        found.append(n)\nreturn x[:, found]",
        ("def f(x):\n    found = []", "def draw():\n    found = []"),
        (
            "return x[:, found]",
            "return torch.tensor(found)\n@torch.compile\ndef f(x, at):\n    return x[:, at]",
        ),
        ("@torch.compile\ndef draw", "def draw"),
        ("say(f(x))", "say(f(x, draw()))"),
        guard="random.seed(0)\n    ",
    ),
)
