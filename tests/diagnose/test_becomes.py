"""Where a value ends, by source alone: each case is a function, what broke between its marks."""

from __future__ import annotations

import ast
import textwrap

import pytest

from breakscope.diagnose import becomes, shapes
from breakscope.project.sources import Sources

# (kinds of the ends, in the order in which they are found; the body of a function of x)
ENDS = (
    ("arithmetic", "scale = [[x.max().item()]]\nreturn x / scale"),
    ("arithmetic", "n = [[v[-1].item()]]\nmask = x >= n\nreturn y[mask]"),
    ("size", "n = [[int(x.max())]]\nreturn torch.zeros(n, 3)"),
    ("size", "n = [[int(x.max())]]\nreturn [0] * n"),
    ("slice", "n = [[x.max().item()]]\nx[:, n:] = 0"),
    ("arithmetic, turns", "n = x - [[y.sum().item()]]\nfor i in range(n):\n    z = z + i"),
    ("arithmetic, given", "import random\nlow = [[y.min().item()]] / x\nreturn random.uniform(low, 1.0)"),
    ("turns", "n = [[int(x.max())]]\nfor i in range(n):\n    x = x + i"),
    ("loop test", "err = [[x.norm().item()]]\nwhile err > 1:\n    err = 0"),
    ("order", "found = []\nfor r in x:\n    found.append(([[r.sum().item()]], r))\nfound.sort()"),
    (
        "order, kept",
        "norms = {}\nfor k, v in x:\n    norms[k] = [[v.norm().item()]]\nreturn max(norms, key=norms.get)",
    ),
    ("bound, arithmetic", "k = min([[x.sum().item()]], 3)\nreturn x * k"),
    ("part", "i = [[int(x.argmax())]]\nreturn self.experts[i](x)"),
    ("key", "seen = set()\nfor i in [[x.tolist()]]:\n    seen.add(i)"),
    ("order", "if [[int(x)]] in names:\n    y = 1"),
    ("numpy", "return np.linspace([[x.min().item()]], 1, 5)"),
    ("arithmetic", "return torch.linspace([[x.min().item()]], 1, 5)"),
    ("returned", "n = [[x.sum().item()]]\nif n is not None:\n    y = 1\nreturn n"),
    ("key, pick", "table = {}\ni = [[int(x)]]\nif i in table:\n    return x[i]"),
    ("placed", "m[[[i.item()]], 0] += 1"),
    ("seed", "torch.manual_seed([[x.sum().item()]])"),
    ("step", "if [[self.n.item()]] % 100 == 0:\n    x = x + 1"),
    ("stacked", "out = [[[r.max().item()]] for r in x]\nreturn torch.tensor(out)"),
    ("math", "return 20 * math.log10([[x.mean().item()]])"),
    ("raised", "raise ValueError(f'{[[x.min().item()]]:.2f} is negative')"),
    ("returned", "lo, hi = [[x.min().item()]], x.max().item()\nreturn {'low': lo}"),
    # A name that is set anew holds the value no longer; one that a loop carries does.
    ("returned", "n = [[x.max().item()]]\nreturn n\nn = 3\nreturn torch.zeros(n)"),
    (
        "pick, returned",
        "last = 0\nfor t in range(9):\n    y = x[last]\n    last = [[y.argmax().item()]]\nreturn last",
    ),
    # The parts of a tuple go their own ways, through zip, enumerate and lists of tuples.
    ("slice", "for i, (w, n) in enumerate(zip(ws, [[lens.tolist()]])):\n    out[i] = w[:n]"),
    (
        "message",
        "pairs = [(1, [[x.max().item()]])]\nfor at, v in pairs:\n    z = torch.zeros(at)\n    print(v)",
    ),
    # Into a function of the same file.
    ("size", "def make(k):\n    return torch.zeros(k)\nreturn make([[int(x.max())]])"),
    (
        "arithmetic",
        "class Q:\n    def forward(ctx, v, s):\n        return v / s\nreturn Q.apply(x, [[x.max().item()]])",
    ),
    ("message", "import math\nn = [[x.mean().item()]]\ndb = 10 * math.log10(n)\nprint(f'{db:.2f}')"),
    ("math", "import math\nn = [[x.mean().item()]]\ndb = 10 * math.log10(n)\nprint(f'{db:.2f}')\nreturn db"),
    ("given", "import json\nreturn json.dumps({'loss': [[x.mean().item()]]})"),
    ("passed", "return json.dumps({'loss': [[x.mean().item()]]})"),
    ("key, pick", "best = names[[[int(x.argmax())]]]\nreturn {}[best]"),
    ("constant", "n = [[x.mean().item()]]\nreturn F.leaky_relu(y, n)"),
    ("constant", "return F.cross_entropy(y, t, label_smoothing=[[x.mean().item()]])"),
    ("constant", "return torch.full_like(y, [[x.mean().item()]])"),
    ("arithmetic", "return F.leaky_relu(y * [[x.mean().item()]])"),
    ("test", "n = [[x.mean().item()]] or 1\nreturn y * n"),
    # What a mask selects.
    ("reduced", "part = [[x[keep]]]\nreturn (part - 1).mean()"),
    ("loss", "return F.mse_loss([[x[keep]]], y[keep])"),
    ("reduced", "return F.mse_loss([[x[keep]]], y[keep], reduction='none').mean()"),
    ("stored", "y[keep] = f([[x[keep]]])"),
    ("stored", "w = [[x[keep]]]\nif w.shape[-1] > 2:\n    w = w * 2\ny[keep] = w"),
    ("test, stored", "w = [[x[keep]]]\nif w.shape[0] > 2:\n    w = w * 2\ny[keep] = w"),
    ("ranked", "s = [[x[keep]]]\nreturn s.topk(3)"),
    ("suppressed", "b = boxes[[[keep]]]\nb = [[boxes[keep]]]\nreturn torchvision.ops.nms(b, s, 0.5)"),
    ("scattered", "row, col = [[edges[:, keep]]]\nreturn out.index_add_(0, col, x)"),
    ("joined", "parts = []\nfor m in masks:\n    parts.append([[x[m]]])\nreturn torch.cat(parts)"),
    ("test, returned", "b = [[x[keep]]]\nif b.shape[0] == 0:\n    return None\nreturn b"),
    ("joined", "out[b, : n[b]] = [[x[keep]]]"),
    ("turns of values", "for c in [[y.unique()]]:\n    x = x + c"),
    # A loop does not carry what it sets anew at its begin.
    (
        "returned",
        "for i in range(9):\n    a = sizes[i]\n    t = y * i\n    r = t / a[:, None]\n    t = [[t[keep]]]\nreturn t",
    ),
    # What is stored by a mask that is made of a selection is not kept to the mask that selected.
    ("", "part = [[x[keep]]]\nmask = (part > 0.5) & other\nseg[mask] = 1"),
    ("stored", "at = [[keep.nonzero()]]\nseg[at] = 1"),
    ("written", "at = [[ids[keep]]]\nhist[at] = 1"),
    # A list of objects is sorted by what they are, and no tensor is.
    (
        "order, returned",
        "hits = []\nhits += [Hit([[x[keep]]][i]) for i in kept]\nhits.sort(key=score)\nreturn hits",
    ),
    # What one mask selected is not held each with each where one side only gets a dimension.
    ("scattered", "a, b = [[d[m]]], r[m]\nf = b[:, None] * a\nout.index_add_(0, i, f)"),
    ("paired", "a, b = [[d[m]]], r[m]\nf = b[:, None] - a[None]\nreturn f"),
    # Two that get a dimension in the same place stay row with row.
    ("returned", "o, d = [[o[m]]], d[m]\np = o[:, None] + d[:, None] * z[..., None]\nreturn p"),
    ("returned", "d, z = [[d[m]]], z[m]\np = d[:, None] * z[..., None]\nreturn p"),
    # Along another dimension than that of the mask nothing is joined, and nothing is ranked.
    ("returned", "s = [[x[m]]]\ns = torch.cat([s, torch.sin(s)], -1)\nreturn s"),
    (
        "returned",
        "s, out = [[x[m]]], []\nfor k in range(3):\n    out.append(s * k)\nreturn torch.cat(out, -1)",
    ),
    ("returned", "s = [[x[m]]].sort(-1).values\nreturn s"),
    ("joined", "s = [[x[m]]]\nreturn torch.cat([s, y])"),
    # Where row does not stay with row, what is reduced or ranked is not what the mask selects.
    ("mixed", "s = [[x[m]]]\nreturn s[at].mean()"),
    ("mixed", "s = [[x[m]]]\nreturn s[:5].sum()"),
    ("mixed", "s = z @ [[x[m]]]\nreturn s.mean()"),
    ("mixed", "s = [[x[m]]].transpose(0, 2)\nreturn s.sum()"),
    ("returned", "s = torch.cdist(z, [[x[m]]])\nreturn s.sum(0)"),
    ("reduced", "s = [[x[m]]].transpose(1, 2)\nreturn s.sum()"),
    ("reduced", "s = [[x[m]]].view(-1, 2)\nreturn s.sum()"),
    ("reduced", "s = [[x[m]]][:, None]\nreturn s.sum(0)"),
    ("reduced", "s = torch.cdist(z, [[x[m]]])\nreturn s.min(1)"),
    ("ranked", "s = z @ [[x[m]]].t()\nreturn s.topk(2, dim=1)"),
    ("looked up", "top = s.topk(2, dim=1).indices\nreturn [[x[m]]][top]"),
    ("size", "n = [[int(x.max())]]\nreturn torch.tril_indices(n, n)"),
    ("size", "return torch.bincount(y, minlength=[[int(x.max())]])"),
)


def around(body: str) -> list[ast.AST]:
    """The nodes around what stands between the last marks of a function's body."""
    text = "def f(x):\n" + textwrap.indent(body, "    ")
    before, _, rest = text.rpartition("[[")
    inside, _, after = rest.partition("]]")
    while after[:1] == "]" and inside.count("[") > inside.count("]"):
        inside, after = f"{inside}]", after[1:]
    before = before.replace("[[[", "[").replace("]]]", "]")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2])
    tree = ast.parse(before + inside + after)
    sources = Sources()
    sources._tree = lambda _: tree  # type: ignore[assignment, misc]
    sources._begins = lambda _: [(one.lineno, one.col_offset) for one in tree.body]  # type: ignore[assignment, misc]
    return sources.around("script.py", (line, column, line, column + len(inside)))


@pytest.mark.parametrize(("kinds", "body"), ENDS, ids=[f"{kinds}-{n}" for n, (kinds, _) in enumerate(ENDS)])
def test_a_value_is_followed_to_its_ends(kinds: str, body: str) -> None:
    found = dict.fromkeys(end.kind for end in becomes.ends(around(body)))
    assert ", ".join(found) == kinds


def test_what_a_helper_returns_ends_where_compiled_code_takes_it() -> None:
    helper = around("return [[int(x.max())]]")
    caller = around("n = [[longest(x)]]\nreturn x.new_zeros(n)")
    assert [end.kind for end in becomes.ends(helper)] == ["returned"]
    (end,) = becomes.ends(helper, [caller])
    assert (end.kind, end.name) == ("size", "n")
    # A call that is not known takes it somewhere: that is not the end of compiled code.
    assert [end.kind for end in becomes.ends(helper, [[]])] == ["passed"]
    assert shapes._of_ends(becomes.ends(helper, [caller]))[0] == "size"


@pytest.mark.parametrize("call", ["self.head(n)", "self.head.loss(n)"])
def test_a_number_is_followed_into_a_module_that_an_object_keeps(call: str) -> None:
    """And from there into the methods of that module's class."""
    source = (
        "class Head(Module):\n    def forward(self, k):\n        return self._sum(k)\n"
        "    def loss(self, k):\n        return self._sum(k)\n"
        "    def _sum(self, k):\n        return [0 for _ in range(k)]\n"
        "class Net(Module):\n    def __init__(self):\n        self.head = Head()\n"
        f"    def forward(self, x):\n        n = int(x.max())\n        return {call}\n"
    )
    tree = ast.parse(source)
    net = tree.body[1]
    assert isinstance(net, ast.ClassDef)
    ends = list(becomes.ends_of([tree, net, net.body[1]], "n"))
    assert [(end.kind, getattr(end.taker, "lineno", 0)) for end in ends] == [("turns", 7)]


def test_a_function_of_ones_own_is_read_whatever_its_name() -> None:
    """As in a spline: ``searchsorted`` of the module compares and sums, and ranks nothing."""
    own = "def searchsorted(v, edges):\n    return (v > edges).long()\n"
    ranked, read = (around(f"{before}y[m] = searchsorted([[x[m]]], e)\nreturn y") for before in ("", own))
    assert [end.kind for end in becomes.ends(ranked)] == ["ranked"]
    assert "ranked" not in {end.kind for end in becomes.ends(read)}


def test_code_in_which_all_is_made_of_all_is_followed_so_far() -> None:
    """Each name is asked once whether it is a tensor, and a value with very many ends is followed to some."""
    made = "".join(f"n = n + m - {line}\nm = m * n\n" for line in range(100))
    assert [
        end.kind for end in becomes.ends(around(f"n = m = 2\n{made}n = n + [[x.sum().item()]]\nreturn n"))
    ] == ["arithmetic"]
    loops = "".join(
        f"for i in y:\n    v = v + w\n    w = w * v\n    if v > {line}:\n        w = v\n"
        for line in range(20)
    )
    found = becomes.ends(around(f"v = [[x.sum().item()]]\nw = v\n{loops}return [v, w]"))
    assert "test" in {end.kind for end in found}
    assert len(found) < 20 * 20


def test_an_attribute_that_another_method_gives_a_tensor_is_one() -> None:
    text = (
        "class Acc:\n    def __init__(self): self.acc, self.n = None, 0\n"
        "    def add(self, g):\n        norm = g.norm(dim=1)\n"
        "        self.acc = norm if self.acc is None else self.acc + norm\n"
        "    def mean(self):\n        return self.acc / self.n\n"
    )
    module = ast.parse(text)
    owner = module.body[0]
    way = [module, owner, owner.body[2]]  # type: ignore[attr-defined]
    kept, count = (ast.parse(name, mode="eval").body for name in ("self.acc", "self.n"))
    assert becomes.is_tensor(kept, way)
    assert not becomes.is_tensor(count, way)
