"""What the source says of a site: what its value is for, and which findings of one line are one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from warm_scanning import WarmScans

from breakscope.diagnose import begins, break_advice, library_advice, reach, source_advice
from breakscope.diagnose.library_advice import Theirs
from breakscope.diagnose.loops import Groups
from breakscope.diagnose.records import Reason
from breakscope.diagnose.shapes import is_drawn, use_of
from breakscope.diagnose.site_use import Shape, Use
from breakscope.project.sources import Position, Sources
from breakscope.report.model import Frame

# What broke stands between the marks.
SHAPES = (
    ("verdict", "if [[x.max() > 9]]:\n    return x, True\nreturn x, False"),
    ("kept", "kl = [[x.mean().item()]]\nself.seen['kl'].append(kl)\nreturn x, kl"),
    (
        "search",
        (
            "for t in range(9):\n    if [[x[t] > 0]]:\n        n += 1\n        continue\n    y = x[t]\n    break\n"
            "else:\n    y = x[-1]"
        ),
    ),
    ("turn", "for t in range(9):\n    if [[x[t] > 0]]:\n        continue\n    y = y + x[t]"),
    ("told", "if [[x.max() > 9]]:\n    print('far')\n    return x\nreturn x * 2"),
    ("kept message", "self.mean = [[x.mean().item()]]\nif self.mean > 9:\n    log.warning('far')\nreturn x"),
    (
        "kept message",
        "self.info['m'] = [[x.max().item()]]\nif self.info['m'] > 9:\n    log.warning('far')\nreturn x",
    ),
    (
        "bound",
        "lo = [[x.min().item()]]\nself.lo = lo if self.lo is None else 0.9 * self.lo + lo\nreturn x / max(abs(self.lo), 1e-8)",
    ),
    ("change", "if [[x.max() > 9]]:\n    y[draw(3)] = 0"),
    ("python", "if [[x.max() > 9]]:\n    seen[x.item()] = x * 2"),
    ("books", "for k, v in named:\n    if not [[v.isnan().any()]]:\n        seen['w/' + k] = v.histc(8)"),
    ("python", "if [[x.max() > 9]]:\n    self.log[f'{k}'] = x\nreturn x"),
    ("python", "if [[m.any()]]:\n    seen['m'].append(x[m].mean().item())"),
    ("branch", "if [[m.any()]]:\n    self.mean = self.mean * 0.9 + x[m].mean() * 0.1"),
    ("spared", "if [[m.any()]]:\n    x = x.float().masked_fill(m[None], 0).type_as(x)"),
    ("branch", "if [[m.any()]]:\n    y = x.float().masked_fill(m[None], 0)"),
    ("branch", "if [[x.max() > 9]]:\n    return x\nreturn x * 2"),
    ("early", "if [[x.max() > 9]]:\n    return x\ny = x * 2\nreturn y"),
    ("skip", "if [[g.isnan().any()]]:\n    return p\nself.m.mul_(0.9).add_(g)\nreturn p - self.m"),
    ("spared mean", "if [[hard.any()]]:\n    loss = loss + (near[hard] - margin).mean()"),
    ("fast path", "if [[x.max() > 9]]:\n    return None\ny = x * 2\nreturn y"),
    ("optional", "mask = None\nif [[pad.any()]]:\n    mask = ~pad\nreturn g(x, mask)"),
    ("branch", "mask = pad\nif [[pad.any()]]:\n    mask = ~pad\nreturn g(x, mask)"),
    ("python", "if [[x.max() > 9]]:\n    kept.update(state=copy.deepcopy(net))"),
    ("counted too", "if [[x.max() > 9]]:\n    best = x\nelse:\n    self.bad += 1"),
    (
        "python",
        "class A:\n    def __init__(self): self.e = []\n    def f(self, x):\n        if [[x > 9]]:\n            self.e[0] = 1",
    ),
    (
        "branch",
        (
            "class A:\n    def f(self, x):\n        self.n += 1\n        if [[self.n == 1]]:\n            y = x\n"
            "        else:\n            y = x * 2\n        return y + x"
        ),
    ),
    ("choice", "level = Level.HIGH if [[x.max() > 9]] else Level.LOW"),
    ("choice", "if [[x.max() > 9]]:\n    self.phase = Phase.LIFT"),
    (
        "branch",
        (
            "class A:\n    def __init__(self): self.i = 0.0\n    def f(self, x):\n        if [[x.max() > 9]]:\n"
            "            self.i = self.limit * torch.sign(x)"
        ),
    ),
    (
        "steered",
        "run = 0\nfor i in range(9):\n    if [[bad[i]]]:\n        run += 1\n        if run < 3:\n            x[i] = 0",
    ),
    ("returned", "return [[kl.item()]] if self.t % 2 == 0 else None"),
    ("dropped", "if not [[ok.all()]]:\n    l = l[ok]\n    w = None if w is None else w[ok]"),
    ("positions", "return x[ [[(x > 3).nonzero()]][-1, 0]]"),
    ("plain", "on = [[(x > 3).nonzero()]][:, 0] % 4\nreturn torch.histc(on, 4)[1:].sum()"),
    (
        "returned",
        "n = sum(roll(k) for k in range(3))\nk = [[x.argmax().item()]]\nreturn k, [roll(k) for k in range(3)]",
    ),
    (
        "arithmetic",
        "n = [[x.max().item()]]\nfor i in range(3):\n    out.append(h * i + n)\nreturn torch.stack(out)",
    ),
    (
        "checked",
        "v = [[x.item()]]\nif not math.isfinite(v):\n    print('stop')\n    sys.exit(1)\nmeter.update(loss=v)",
    ),
    ("math", "v = [[x.item()]]\nif math.isnan(v):\n    return None\nreturn x * 2"),
    ("stacked", "for i in range(3):\n    out.append([[x.max().item()]] + 1)\nreturn torch.tensor(out)"),
    (
        "flag",
        "class A:\n    def f(self, x):\n        if self.training and not [[self.ready]]:\n            self.init(x)",
    ),
    ("given", "alive = [1, 2]\nalive.pop([[int(x)]])"),
    (
        "steered",
        "up = [0] * 3\nfor k in range(3):\n    if [[x[k] > 1]]:\n        on[k, 0] = True\n        up[k] += 1\n        y = torch.minimum(x[k], y)",
    ),
    ("spared", "if not [[m.all()]]:\n    x = torch.where(m, x, y)"),
    ("spared", "if mode == 'near' and [[m.any()]]:\n    x[m] = y"),
    ("spared", "if [[m.any()]]:\n    x[m] = x[~m].mean()"),
    ("spared", "if [[m.any()]]:\n    self.buf[m] = x[m]"),
    (
        "left out",
        (
            "for y in range(9):\n    for x in range(9):\n        t = img[y:y + 4, x:x + 4]\n        if [[t.std() < 1]]:\n"
            "            continue\n        pos.append((y, x))"
        ),
    ),
    ("experts", "for e, end in enumerate([[ends]].tolist()):\n    y.append(self.nets[e](x[order[low:end]]))"),
    ("given", "v = [[float(x)]]\nif math.isnan(v):\n    return\nself.sum = v\nself.hist.append(v)"),
    ("passed", "ok = lambda p: bool([[(p < 2).all().item()]])"),
    (
        "counted too",
        (
            "class A:\n    def __init__(self): self.temp = 1.0\n    def f(self, x):\n        if [[x.max() > 9]]:\n"
            "            self.temp = max(0.5, self.temp * 0.9)\n            x.zero_()"
        ),
    ),
    (
        "spared",
        "for k in kinds:\n    m = z == k\n    if [[m.sum() == 0]]:\n        continue\n    h[m] = net(x[m])",
    ),
    ("spared mean", "for k in kinds:\n    if not [[m.any()]]:\n        continue\n    s += x[m].mean()"),
    ("turn", "for k in kinds:\n    if not [[m.any()]]:\n        continue\n    h = norm(h)"),
    ("spared", "if mask is not None and [[mask.sum() > 0]]:\n    x = torch.where(mask, 0, x)"),
    ("extreme", "if [[y.max().item()]] > self.peak:\n    self.peak = y.max().item()"),
    ("extreme", "v = [[y.max().item()]]\nif v < self.least:\n    self.least = v"),
    ("branch", "if [[valid.sum() > 0]]:\n    x = x[valid]\nreturn x.mean()"),
    ("counted too", "if [[x.max() > 9]]:\n    seen.append(t)\n    x.zero_()"),
    (
        "search",
        "for i in range(9):\n    if [[x[i] > 1]]:\n        for j in range(i):\n            if y[j]:\n                break",
    ),
    (
        "order",
        (
            "class A:\n    def f(self, x):\n        self.tail.append([[int(x[0])]])\n"
            "        if tuple(self.tail) in self.phrases:\n            return True\n        return False"
        ),
    ),
    ("loop", "import math\nn = math.ceil([[x.max().item()]] / 2)\nfor _ in range(n):\n    x = x + 1"),
    ("filter", "return [h for h in hits if [[h > 3]] ]"),
    ("python", "if [[done.any()]]:\n    x = env.reset()"),
    ("list", "return [[x[:n]]].tolist()"),
    (
        "neighbours",
        (
            "for i in range(9):\n    for j in range(9):\n        if [[(x[i] - x[j]).norm() < 1]]:\n"
            "            a.append(i)\n            b.append(j)"
        ),
    ),
    (
        "neighbours",
        "for i in range(9):\n    for j in [[(x[i] < 1)]].nonzero().tolist():\n        pairs.append((i, j))",
    ),
    ("tallies", "for i in range(9):\n    r = x[i].norm()\n    if [[r < far]]:\n        h[int(r)] += 2"),
    ("books", "for i in range(9):\n    if [[x[i] < far]]:\n        h.append(i)"),
    (
        "backtrace",
        (
            "best = [[s.argmax().item()]]\npath = [best]\nfor b in reversed(back):\n    best = b[best].item()\n"
            "    path.append(best)"
        ),
    ),
    (
        "arithmetic",
        "run = [[x.sum().item()]]\nfor t in reversed(range(9)):\n    run = d[t] + run * 0.9\nreturn run * x",
    ),
    ("pairs", "for a in x:\n    for b in x:\n        if [[v[a] > v[b]]]:\n            n += 1"),
    (
        "index",
        "for b in range(2):\n    for t in set(ids):\n        if [[v[b, t]]] < 0:\n            v[b, t] *= 2",
    ),
    (
        "loop",
        (
            "class A:\n    def f(self, t):\n        n = 0\n        while [[t > self.at]]:\n"
            "            self.at = self.step(self.at)\n            n += 1"
        ),
    ),
    (
        "python",
        "class A:\n    def __init__(self): self.n, self.low = 0, math.inf\n    def f(self, x):\n        if [[x < 0]]:\n            self.low = x",
    ),
    ("branch", "for i in range(3):\n    if [[x.sum() > 3]]:\n        x = x / 2"),
    ("best", "for s in x:\n    if [[s < low]]:\n        low = s"),
    ("change", "if [[keep.sum() > 0]]:\n    c.mul_(0.9).add_(x[keep].mean(0))"),
    ("filter", "return {h: 1 for h in hits if [[h > 3]] }"),
    ("message", "if [[x.max() > 9]]:\n    logger.warning('large')\n    self.warned = True"),
    ("told", "if [[x.max() > 9]]:\n    warnings.warn('large')\n    x = x / 9"),
    ("told", "if [[x.max() > 9]]:\n    log.info('%.2f', x.max().item())\n    x = x / 9"),
    (
        "pick",
        "chosen = [0]\nfor _ in range(3):\n    d = x[chosen[-1]]\n    chosen.append([[d.argmax().item()]])",
    ),
    ("branch", "self.loss = [[x.sum().item()]]\nif self.loss > 9:\n    raise RuntimeError"),
    ("choice", "stop = False\nif [[x.max() > 9]]:\n    stop = True"),
    ("returned", "share = [[x.mean().item()]]\nreturn x, {'share': share}"),
    ("returned", "return x, {'loss': [[x.max().item()]]}"),
    ("skip", "if [[x.max() > 9]]:\n    return\nself.total.add_(x)"),
    ("spared", "if [[mask.any()]]:\n    y[mask] = f(x[mask])"),
    ("choice", "level = 'high' if [[x.max() > 9]] else 'low'"),
    ("check", "if not math.isfinite([[loss.item()]]):\n    print('stop', loss)\n    sys.exit(1)"),
    ("stop", "for i in range(9):\n    if [[x.max() > 9]]:\n        return x\n    x = x * 2"),
    ("loop", "while True:\n    x = x * 2\n    if [[x.max() > 9]]:\n        return x"),
    ("loop", "err = 9.0\nwhile err > 1:\n    err = [[x.sum().item()]]"),
    ("pick", "chosen = [[x.argmax().item()]]\nwhile len(names) < 3:\n    names.append(table[chosen])"),
    (
        "search",
        "for s in range(9):\n    if [[seen[s] > 0]]:\n        continue\n    while todo:\n        todo.pop()",
    ),
    ("count", "n = [[int(self.step.item())]]\nif n % 10 == 0:\n    x = x * 2"),
    ("slice", "y = x[:, [[:n]]]"),
    ("size", "y = [[x.new_zeros(2, longest)]]"),
    ("index", "y = [[x[i]]] + 1"),
    ("index", "y = [[x[:, i]]] + 1"),
    ("order", "heapq.heappush(heap, ([[float(t)]], v))"),
    ("list", "for i in [[x.tolist()]]:\n    pass"),
    ("kept", "self.seen.append([[x.item()]])"),
    ("kept", "self.logs.update(loss=[[x.item()]])"),
    ("kept", "stats = {'loss': [[x.item()]]}"),
    ("given", "self.tree.set(i, [[x.item()]])"),
    ("reduced", "y = [[x[mask]]].mean()"),
    ("reduced", "part = [[x[mask]]]\nif len(part) > 0:\n    y = part.sum()"),
    ("with", "with [[profile()]] as p:\n    y = x"),
    ("experts", "for e, expert in enumerate(self.experts):\n    tok, slot = [[torch.where(idx == e)]]"),
    ("loop", "for i in range([[int(n[b])]]):\n    x = x + 1"),
    ("loop", "for c in [[labels.unique()]]:\n    x = x + c"),
    ("loop", "found = [[torch.unique(x)]]\ny = [z[x == c] for c in found]"),
    ("loop", "while t < end:\n    if [[err < tol]]:\n        t, x = t + h, y"),
    ("index", "if [[x[i]]] < 0.3 * x[0]:\n    return 0.0\nreturn x"),
    ("pick", "chosen.append([[x.argmax().item()]])\ny = x[:, chosen]"),
    ("order", "seen.append([[x.item()]])\nmid = sorted(seen)[len(seen) // 2]"),
    ("reduced", "y = ([[p[mask]]] / t[mask]).mean()"),
    ("python", "if [[mask.any()]]:\n    y[mask] = f(x[mask])\n    self.restarts += 1"),
    ("books", "for t in [[y.tolist()]]:\n    if t > 1:\n        stack.append(t)"),
    (
        "cells",
        "for i in range(n):\n    for j in range(m):\n        if [[x[i] == y[j]]]:\n            d[i, j] = d[i - 1, j]",
    ),
    (
        "pairs",
        "for i in range(n):\n    for j in range(n):\n        if [[x[i] > x[j]]]:\n            good += 1",
    ),
    ("left out", "for m in masks:\n    if [[m.sum() < 2]]:\n        continue\n    out.append(x * m)"),
    ("loop", "while True:\n    if [[x[i] > 2]]:\n        break\n    x = x - 1"),
    ("found", "for r in x:\n    if [[r.all()]]:\n        return 1\nreturn 0"),
    ("steered", "for a in acts:\n    if [[a == 0]]:\n        stack.append(self.emb(x))"),
    ("books", "for a in acts:\n    if [[a == 0]]:\n        stack.append(a)"),
    (
        "listed twice",
        (
            "for z in zs:\n    x = A @ x\n    if [[z > gate]]:\n        bad += 1\n        out.append(x)\n"
            "        continue\n    x = x + K @ z\n    out.append(x)"
        ),
    ),
    (
        "listed twice",
        "for z in zs:\n    if [[z > gate]]:\n        out.append(self.emb(z))\n    else:\n        out.append(z)",
    ),
    (
        "steered",
        "for z in zs:\n    if [[z > gate]]:\n        out.append(self.emb(z))\n    else:\n        left.append(z)",
    ),
    ("stop", "for _ in range(8):\n    if [[f(x - t * g)]] <= 3:\n        break\n    t *= 0.5"),
    ("early", "if [[x.sum() > 2]]:\n    return x, False\ny = x * 2\nreturn y, True"),
    ("undone", "if [[~x.isfinite().all()]]:\n    return x\nx.sum().backward()\nself.opt.step()\nreturn x"),
    ("flag", "if [[self.ready.item()]] == 0:\n    self.scale.copy_(x)\nreturn x"),
    ("skip", "if [[not dead.any()]]:\n    return\nself.embed.data[dead] = x"),
    ("spared", "if [[bad.any()]]:\n    x = torch.where(bad, y, x)"),
    ("group ranked", "for g in range(n):\n    out.append([[s[group == g]]].topk(2)[0])"),
    ("group reduced", "for g in range(n):\n    m = group == g\n    out.append([[s[m]]].mean())"),
    ("reduced", "for g in range(n):\n    out.append(self.nets[g]([[s[group == g]]]).mean())"),
    ("crossed", "y = [[a[keep]]][:, keep].sum()"),
    ("across", "y = z @ [[x[keep]]].T\nreturn y.amax(-1)"),
    ("looked up", "top = s[keep].argmax()\nreturn [[x[keep]]][top]"),
    ("reduced", "y = [[x[event.bool()]]]\nreturn y.mean()"),
    ("edges", "row, col = [[adj.nonzero()]].t()\ny = h[row].sum(1)"),
    ("edges", "row, col = [[torch.where(adj)]]\ny = h[row].sum(1)"),
    ("grown", "if [[self.filled > 3]]:\n    y = torch.cat([y, z])\nreturn y * 2"),
    ("reduced", "y = [[x[..., keep]]].mean(-1)"),
    (
        "ranked",
        "at = [[keep.nonzero()]]\nbest = s[at].topk(2)[1]\nout.append(at[best])\nreturn torch.cat(out)",
    ),
    ("placed", "for t in runs:\n    total = torch.zeros(3)\n    i = [[t.item()]]\n    total[i] += 1"),
    ("change", "if [[m.any()]]:\n    table[c] = y[m].sum()"),
    ("counted too", "if [[over.any()]]:\n    self.hits += 1\n    u = u.clamp(-1, 1)\nreturn u"),
    ("all picked", "for i, j in [[at.tolist()]]:\n    if 0 <= i < n:\n        x[i, j] += 1"),
    ("reduced", "p = [[x[keep]]]\nw = svd(p.T @ q)\nif det(w) < 0:\n    w = -w\nreturn w"),
    ("returned", "p = [[x[keep]]]\nif det(p) < 0:\n    p = -p\nreturn f(p)"),
    ("first", "cut = [[(p.cumsum(-1) > 0.9).nonzero()]][0, 0] + 1\nreturn p[:cut]"),
    ("dropped", "if [[not keep.all()]]:\n    x, y = x[keep], y[keep]\nreturn f(x, y)"),
    (
        "books",
        "for s, d in x:\n    q = round([[s.item()]] * 4) / 4\n    if int(q * 4) % 2:\n        q += 1\n    out.append(q)",
    ),
    ("branch", "r = [[x.item()]]\nif r == 0:\n    print('none')\nif r < 3:\n    y = y * 2\nreturn y"),
    ("spared", "if [[holes.any()]]:\n    y[:, holes] = z[:, holes]"),
    ("placed", "n = (x * 4).floor().int()\nfor k in range(3):\n    i = [[x.item()]]\n    n[i] += 1"),
    ("passed", "node.children[a] = Node([[x.item()]])"),
    ("passed", "return [Tag(int([[t]])) for t in x.argmax(-1).tolist()]"),
    ("order", "return sorted(cur, key=lambda j: [[boxes[j, 0].item()]])"),
    ("math", "return math.acos(min(1.0, max(-1.0, [[c.item()]])))"),
    (
        "cells",
        (
            "for y in range(9):\n    for j in range([[int(n[0])]]):\n        cur = q[j, y - 1]\n"
            "        q[j, y] = max(cur, q[j, y])"
        ),
    ),
    # Positions and numbers of what a mask selects.
    ("first", "self.at = [[(steps == x).nonzero()]].item()"),
    ("first", "at = int([[torch.where(x > 2)]][0][0])\nreturn y[at]"),
    ("positions", "at = [[torch.where(x > 2)]][0]\nreturn at.max()"),
    ("tallied", "at = [[mask.nonzero()]]\nreturn len(at) / x.numel()"),
    ("tallied", "n = [[x[mask]]].shape[0]\nself.seen.append(n)"),
    ("spared", "if [[mask.sum()]] > 0:\n    y[mask] = f(x[mask])"),
    ("spared", "if [[mask.any().item()]]:\n    y[mask] = f(x[mask])"),
    ("size", "u, inv = [[x.unique(return_inverse=True)]]\nn = [0] * len(u)\nfor i in inv:\n    n[i] += 1"),
    ("placed", "at, i = f(x).max(0, keepdim=True)\nfor j in range(3):\n    i[ [[best[j].item()]] ] = j"),
    ("best", "for v in x:\n    if best is None or [[v < best[0]]]:\n        best = (v, 'name')"),
    ("branch", "for _ in range(3):\n    v = f(y)\n    if [[v < low]]:\n        y = v\n        low = v"),
    ("change", "at = torch.zeros(3)\nfor i in range(3):\n    if [[x[i] > 2]]:\n        at[best[i]] = y[i]"),
    ("plain", "for _ in self.experts:\n    counts = [[torch.bincount(idx)]]"),
    ("group reduced", "return torch.stack([ [[x[group == g]]].mean(0) for g in range(n)])"),
    ("whole", "if [[keep.all()]]:\n    return x\nx = x[:, keep]\nreturn x"),
    ("early", "if [[keep.all()]]:\n    return x\nx = x[:, keep] * 2\nreturn x"),
    ("early", "if [[keep.all()]]:\n    return x\nx = x[:, other]\nreturn x"),
    (
        "search",
        "for e in order:\n    a = int([[x[0, e]]])\n    if not x[a]:\n        continue\n    x[a] = False",
    ),
    ("looked up", "best, at = torch.max(s, dim=1)\ny = [[x[keep]]]\nreturn torch.stack([y[at, :]])"),
    ("reduced", "y = [[x[keep]]]\nreturn y.sum() / len(y)"),
    ("bound", "n = [[x.item()]]\nif not self.errs:\n    self.errs = [n]\nreturn min(2, n)"),
)


def marked(path: Path, body: str) -> Position:
    """Write a function with a body, and say where its marks stood."""
    text = "def f(x):\n" + textwrap.indent(body, "    ")
    before, _, rest = text.partition("[[")
    # The innermost bracket may be the expression's own: ``[[x[i]]]``.
    end = rest.index("]]") + rest.startswith("]]]", rest.index("]]"))
    inside = rest[:end]
    path.write_text(before + inside + rest[end + 2 :])
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2])
    return line, column, line, column + len(inside)


@pytest.mark.parametrize(
    ("shape", "body"), SHAPES, ids=[f"{shape}-{n}" for n, (shape, _) in enumerate(SHAPES)]
)
def test_the_source_says_what_a_value_is_for(tmp_path: Path, shape: str, body: str) -> None:
    place = marked(tmp_path / "script.py", body)
    assert use_of(Sources(), str(tmp_path / "script.py"), place, place[0]).shape == shape


@pytest.mark.parametrize(
    ("shape", "mask", "body"),
    [
        ("stored", "keep", "a[keep], b[keep] = spline(x, [[w[keep, :]]])"),
        ("stored", "keep", "y[keep] = f([[x[keep]]])"),
        ("rows", "~m", "y = [[x[~m]]].view(3, -1, 4)\nreturn net(y).topk(2)"),
        ("reduced", "m", "lo = torch.quantile([[x[m]]], 0.1)\nreturn torch.stack([lo, lo.cos()])"),
        ("returned", "x > 3", "return x, [int(i) for i in [[(x > 3).nonzero()]] ]"),
        ("stored", "self.on", "self.v[self.on] += [[at[self.on, 0]]]"),
        ("loop", "gm", "for p in [[x[gm]]].unique().tolist():\n    if p in used:\n        continue"),
        ("selected", "keep", "seg[other] = [[x[keep]]].sigmoid()"),
        ("reduced", "y != 0", "ok = [[(y != 0).nonzero()]].flatten()\nreturn loss[ok].mean()"),
        ("positions", "", "ok = [[(y != 0).nonzero()]].flatten()\nreturn ok.max()"),
        ("given", "m", "a = [[x[m]]]\nself.meter.add(a, y)"),
        ("joined", "m", "a = [[x[m]]]\nself.kept.append(a)"),
        ("returned", "y != 0", "ok = [[(y != 0).nonzero()]].flatten()\nreturn f(x.index_select(1, ok) - 1)"),
    ],
)
def test_what_is_stored_is_selected_by_the_mask_of_its_place(
    tmp_path: Path, shape: str, mask: str, body: str
) -> None:
    place = marked(tmp_path / "script.py", body)
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS105")
    assert (use.shape, use.mask) == (shape, mask)


@pytest.mark.parametrize(
    "body",
    [
        "i, j = random.randrange(3), 1\nx[ [[i + 1]] ] = 0",
        "i = np.random.rand()\ny = [[f(i)]]",
        "at = random.randrange(3)\ny = [[x[at, near]]]",
    ],
)
def test_what_is_computed_of_a_drawn_number_is_drawn(tmp_path: Path, body: str) -> None:
    place = marked(tmp_path / "script.py", body)
    assert is_drawn(Sources(), str(tmp_path / "script.py"), place)


@pytest.mark.parametrize(
    ("told", "body"),
    [
        ("u != 0", "u = x.sum()\nreturn a / u if [[u]] else 0.0"),
        ("u", "u = (x > 1) & (x < 3)\nreturn a if [[u]] else b"),
        (
            "(d < 0) | (random.random() < torch.exp(-d))",
            "if [[d < 0]] or random.random() < torch.exp(-d):\n    x = y",
        ),
        ("x.any()", "if hard and [[x.any()]]:\n    y = z"),
        ("(new == x).all()", "for _ in range(9):\n    if [[torch.equal(new, x)]]:\n        break"),
        (
            "~torch.isclose(x, y, atol=0.1).all()",
            "if not [[torch.allclose(x, y, atol=0.1)]]:\n    z = y",
        ),
        ("(x == tok).any()", "if [[tok in x]]:\n    y = z"),
        ("~(x > 3)", "if [[not x > 3]]:\n    y = z"),
    ],
)
def test_a_test_is_told_as_tensors_write_it(tmp_path: Path, told: str, body: str) -> None:
    """What torch.where is given is a tensor of bools, without what Python decides while it traces."""
    place = marked(tmp_path / "script.py", body)
    assert reach.condition(Sources(), str(tmp_path / "script.py"), place) == told


def test_a_comparison_that_decides_nothing_is_no_test(tmp_path: Path) -> None:
    place = marked(tmp_path / "script.py", "mask = torch.from_numpy([[rng.random(9)]]) < 0.5\nreturn mask")
    assert reach.condition(Sources(), str(tmp_path / "script.py"), place) is None


@pytest.mark.parametrize(
    ("told", "body"),
    [
        ("s / n", "n = x.sum()\nif [[n > 0]]:\n    return math.log(r) * s / n\nreturn s"),
        ("", "hit = torch.bincount(x)\nreturn hit / hit.sum() if [[hit.sum() > 0]] else 0.0"),
        ("", "hit, n = (x & y).sum(), (x | y).sum()\nreturn hit / n if [[n > 0]] else 0.0"),
        ("", "n = x.sum()\nwith torch.no_grad():\n    s = s / n if [[n > 0]] else s"),
    ],
)
def test_a_gradient_is_warned_of_where_there_may_be_one(tmp_path: Path, told: str, body: str) -> None:
    place = marked(tmp_path / "script.py", body)
    found = reach.unsafe(Sources(), str(tmp_path / "script.py"), place)
    assert found.endswith(told)
    assert bool(found) == bool(told)


@pytest.mark.parametrize(
    "body",
    [
        "i = torch.multinomial(x, 3)\nn = [[int(i.sum())]]",
        "adj = torch.zeros(3)\nadj[y] = 1\nn = [[int(adj.sum())]]",
        "d = torch.cdist(x, x) ** 2\ns = d.sort(1)[0][:, 1:].sum(1) - 1\nn = [[int(s[s.argmin()] * 2)]]",
    ],
    ids=["drawn", "written to", "much"],
)
def test_what_the_caller_would_not_compute_once_more_is_read_after_the_call(
    tmp_path: Path, body: str
) -> None:
    place = marked(tmp_path / "script.py", body)
    assert begins.arguments(Sources().around(str(tmp_path / "script.py"), place)) == ()


def test_the_operand_whose_value_is_asked_is_found_after_one_that_asks_for_none(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("if mask is not None and mask.any() and not warned:\n    pass\n")
    assert Sources().narrow(str(path), (1, 3, 1, 19)) == (1, 24, 1, 34)
    path.write_text("if mode == 'near' and mask.any():\n    pass\n")
    assert Sources().narrow(str(path), (1, 3, 1, 17)) == (1, 22, 1, 32)
    path.write_text("if len(past) >= 2 and mask.any():\n    pass\n")
    assert Sources().narrow(str(path), (1, 3, 1, 17)) == (1, 22, 1, 32)


def test_selections_that_are_held_against_each_other_are_worth_the_setting() -> None:
    """Tried on FastSpeech2's loss with torch 2.13: 28 of 28 breaks gone, the losses the same."""
    theirs = Theirs(
        "/lib/site-packages/lib/models.py",
        "Loss.forward",
        "train.py:8",
        source="x = x.masked_select(m)",
        sites=2,
    )
    assert str(library_advice.advice("BS105", "selected", theirs)).startswith(
        "Try torch._dynamo.config.capture_dynamic_output_shape_ops = True"
    )


def test_what_grows_by_a_turn_is_no_matter_for_where(tmp_path: Path) -> None:
    body = "for _ in range(9):\n    t = torch.cat([t, f(t)[:, None]], 1)\n    if [[(t > 2).all()]]:\n        break"
    place = marked(tmp_path / "script.py", body)
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS101")
    assert (use.shape, use.name) == ("stop", "t")
    said = break_advice.advice("BS101", "BS101", Reason("", "", "", (), None), break_advice.Site(use), "f")
    assert "; `t` grows by a turn: make it of full length first" in said


def test_a_test_for_no_tokens_keeps_a_setting_from_experts(tmp_path: Path) -> None:
    body = "for e in range(9):\n    rows = [[torch.where(expert_of == e)]][0]\n    if rows.numel() == 0:\n"
    place = marked(tmp_path / "script.py", f"{body}        continue\n    y.index_add_(0, rows, f(x[rows]))")
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS105")
    assert (use.shape, use.also) == ("experts", (4,))
    said = break_advice.advice("BS105", "BS105", Reason("", "", "", (), None), break_advice.Site(use), "f")
    assert "has, so without line 4, which only spares work" in said


@pytest.mark.parametrize("both_ways", [True, False])
def test_an_rnn_of_two_directions_is_not_to_be_given_padding(both_ways: bool) -> None:
    cause = Reason(None, "Attempted to call function marked as skipped", "pack_padded_sequence", (), None)
    site = break_advice.Site(Use("plain"), both_ways=both_ways)
    said = break_advice.advice("BS107", "BS107", cause, site, "f")
    assert ("Give the RNN the padded batch" in said) is not both_ways
    assert "leave the packed RNN eager" in said


def test_a_compiled_function_itself_is_not_to_be_disabled() -> None:
    """``torch.compile(f)`` takes the mark of ``torch.compiler.disable`` away."""
    cause = Reason("", "", "", (), None)
    root, helper = (
        break_advice.advice("BS101", "BS101", cause, break_advice.Site(Use("search", own=own)), "f")
        for own in (True, False)
    )
    assert "so there is no one graph of it: do not compile the function itself, and compile what" in root
    assert "put torch.compiler.disable on the function" in helper


@pytest.mark.parametrize(("device", "given"), [("device = x.device", True), ("device = f(x)", False)])
def test_what_a_library_passes_itself_no_call_of_it_can_leave_out(
    tmp_path: Path, device: str, given: bool
) -> None:
    file = tmp_path / "lib.py"
    file.write_text(
        "class M:\n    def mask(self, m, shape, device=None):\n        if device is not None:\n"
        "            warnings.warn('deprecated')\n    def forward(self, x, flag=None):\n"
        f"        {device}\n        return self.mask(x, x.shape, device)\n"
    )
    stack = [
        Frame(str(file), line, f"M.{name}", None, "library") for line, name in ((7, "forward"), (3, "mask"))
    ]
    assert reach.gives_itself(Sources(), stack, "device is not None") is given
    assert not reach.gives_itself(Sources(), stack, "m is not None")
    theirs = Theirs("/lib/site-packages/lib.py", "M.mask", "train.py:8", "device is not None", given=given)
    said = str(library_advice.advice("BS104", "message", theirs))
    assert ("make the call at train.py:8" in said) is not given
    assert "ignore_logging_functions" in said


def test_array_libraries_are_called_outside_and_not_rewritten() -> None:
    theirs = Theirs("/lib/site-packages/pandas/core/frame.py", "DataFrame.__getitem__", "train.py:8")
    said = str(library_advice.advice("BS110", "plain", theirs))
    assert "make the call at train.py:8 outside of the compiled function" in said
    assert "fix" not in said


def test_a_number_of_a_library_that_a_branch_asks_for_is_helped_by_no_setting() -> None:
    """``capture_scalar_outputs`` was tried on Longformer: the graph breaks at the branch then."""
    theirs = Theirs("/lib/site-packages/lib/models.py", "Encoder.forward", "train.py:8")
    tested, sized = (str(library_advice.advice("BS102", shape, theirs)) for shape in ("branch", "size"))
    assert "where a branch asks for the number, so no setting helps" in tested
    looped = str(library_advice.advice("BS105", "loop", theirs))  # range(x.nonzero().shape[0]): tried there
    assert "where a branch asks for how many there are, so no setting helps" in looped
    assert "capture_scalar_outputs = True" in sized


@pytest.mark.parametrize(
    ("code", "function", "source", "said"),
    [
        ("BS105", "f", "i = torch.where(met)[0].tolist()", "becomes a list of Python's, so no setting helps"),
        ("BS105", "M.embed.<locals>.<listcomp>", "x[m]", "so no setting helps"),
        (
            "BS105",
            "M.embed.<locals>.<listcomp>",
            "x[m]",
            "leave all of embed eager, which is one break for all",
        ),
        (
            "BS111",
            "M.forward",
            "k = np.ceil(np.log1p(n)).astype('int')",
            "math.ceil(math.log1p(n)) of Python's",
        ),
    ],
)
def test_what_no_setting_of_torch_helps_is_not_to_be_tried(
    code: str, function: str, source: str, said: str
) -> None:
    """Tried on SpeechT5, Switch Transformers, ViLT: the runs ended in errors, or broke at the next line."""
    theirs = Theirs("/lib/site-packages/lib/models.py", function, "train.py:8", source=source, sites=2)
    text = str(library_advice.advice(code, "plain", theirs))
    assert said in text
    assert "Try torch._dynamo.config" not in text


@pytest.mark.parametrize("called", ["np.lcm(a, b)", "np.zeros(n)"])
def test_numpy_in_a_library_is_not_the_users_to_write_another_way(called: str) -> None:
    said = f'File "models.py", line 3, in forward: {called}'
    cause = Reason(None, "Data-dependent branching", said, (), None)
    theirs = Theirs("/lib/site-packages/lib/models.py", "Encoder.forward", "train.py:8")
    own, other = (
        break_advice.advice("BS101", "BS101", cause, break_advice.Site(Use("branch"), one), "forward")
        for one in (None, theirs)
    )
    assert own.startswith("The value comes out of numpy")
    assert other.startswith("The line is in lib, reached from train.py:8")


def test_the_whole_of_a_forward_is_not_left_eager_for_some_breaks() -> None:
    """Tried on Mamba2: with torch_forward disabled nothing of its mixers was left in a graph."""
    theirs = Theirs("/lib/site-packages/lib/models.py", "Mixer.torch_forward", "train.py:8", sites=3)
    assert "disable" not in str(library_advice.advice("BS101", "branch", theirs))


@pytest.mark.parametrize(
    ("code", "expression", "statement", "said"),
    [
        (
            "BS115",
            "y.resize_(n, c)",
            "y.resize_(n, c).zero_()",
            "Make a new tensor in place of resize_(size)",
        ),
        ("BS107", "p.grad.detach_()", "p.grad.detach_()", "Leave detach_() out"),
        (
            "BS127",
            "cut.random_(1, n)",
            "cut = torch.empty([]).random_(1, n)",
            "Draw it with torch.randint(low, high",
        ),
    ],
)
def test_what_dynamo_does_not_trace_has_a_like_that_it_does(
    code: str, expression: str, statement: str, said: str
) -> None:
    assert str(source_advice.advice(code, "", expression, statement, "f")).startswith(said)


@pytest.mark.parametrize(
    ("expression", "said"),
    [("math.log10(v)", "Use torch.log10 of the tensor"), ("x.split(v)", "Python needs a number here")],
)
def test_a_number_that_only_data_tells_is_no_other_break(expression: str, said: str) -> None:
    cause = Reason(None, "Could not guard on data-dependent expression zuf0 (unhinted: zuf0).", "", (), None)
    site = break_advice.Site(Use("plain"), expression=expression)
    assert break_advice.advice("BS199", "BS199", cause, site, None).startswith(said)


def test_packing_that_only_takes_elements_out_of_the_padding_is_none_for_an_rnn() -> None:
    cause = Reason(None, "Attempted to call function marked as skipped", "pack_padded_sequence", (), None)
    statement = "targets = pack_padded_sequence(captions, lengths, batch_first=True)[0]"
    told = break_advice.advice(
        "BS107", "BS107", cause, break_advice.Site(Use("plain"), statement=statement), None
    )
    assert told.startswith("Packing only takes the elements out")


def test_a_checkpoint_written_by_hand_and_a_filter_of_warnings_have_words_of_their_own() -> None:
    cause = Reason(None, "Attempted to call torch.autograd.grad", "", (), None)
    statement = "grads = torch.autograd.grad(out, ctx.inputs, given)"
    site = break_advice.Site(Use("plain"), statement=statement, function="Function.backward")
    assert "checkpoint written by hand" in break_advice.advice("BS121", "BS121", cause, site, None)
    filters = Reason(None, "Attempted to call function marked as skipped", "`_filters_mutated`", (), None)
    told = break_advice.advice("BS104", "BS104", filters, break_advice.Site(Use("plain")), None)
    assert told.startswith("The filter of warnings is changed here")


def test_what_measures_or_logs_is_no_part_of_a_model() -> None:
    """Of loguru ``remove()`` was tried: without a handler it returns before it asks for a frame."""
    metric = Theirs("/lib/site-packages/torchmetrics/metric.py", "Metric.update", "train.py:8", compiled=True)
    logger = Theirs("/lib/site-packages/loguru/_logger.py", "Logger._log", "train.py:8", compiled=True)
    model = Theirs("/lib/site-packages/torchvision/ops.py", "nms", "train.py:8", compiled=True)
    measures, logs, computes = (library_advice.of_call("BS102", one) for one in (metric, logger, model))
    assert "make the call at train.py:8 outside of the compiled function" in str(measures)
    assert "loguru.logger.remove()" in str(logs)
    assert computes is None


SOLVER = """
def norm(v):
    return 0.5 if v.abs().max() < 1 else 2.0

def solve(f, x):
    assert (x > -99).all(), f"too far: {x}"
    if norm(x) > 1:
        x = x / 2
    if x.sum() > 50:
        x = x - 1
    y = f(x)
    if y.mean() > 40:
        y = y - 2
    return y
"""
SOLVED = """
    import os, sys
    import torch

    sys.path.insert(0, os.path.join(os.getcwd(), "site-packages"))
    import solver

    def double(x):
        return x * 2

    @torch.compile
    def step(x):
        return solver.solve(double, x) + 1

    for _ in range(2):
        print(step(torch.ones(3)))
"""
OUTSIDE = SOLVED.replace(
    """
    @torch.compile
    def step(x):
        return solver.solve(double, x) + 1
""",
    """
    double, add = torch.compile(double), torch.compile(lambda x: x + 1)
    def step(x):
        return add(solver.solve(double, x))
""",
)


@pytest.mark.torch
def test_a_librarys_function_that_breaks_all_over_is_called_outside(warm: WarmScans, tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "solver.py").write_text(SOLVER)
    breaks = [one for one in warm.scan(tmp_path, SOLVED).findings if one.kind != "recompile"]
    assert len(breaks) == 4
    for one in breaks:
        text = "solver breaks the graph at 4 places under the call at script.py:13: make that call outside"
        assert str(one.advice).startswith(text)
    after = warm.scan(tmp_path, OUTSIDE)
    assert [one for one in after.findings if one.kind != "recompile"] == []


LINES = """
    import collections, datetime, zlib
    import torch

    @torch.compile
    def chain(x):
        return x + 1, datetime.datetime.now().isoformat()

    @torch.compile
    def taken(x, scale):
        scale.fill_(int(x.sum()))
        return x * scale

    @torch.compile
    def leaked(x):
        y = (x * 2).requires_grad_()
        return torch.autograd.grad((y**2).sum(), y)[0]

    @torch.compile
    def common(x):
        names = collections.Counter("aba")
        return x + names.most_common(1)[0][1]

    for _ in range(2):
        common(torch.ones(3)), chain(torch.ones(3)), taken(torch.ones(3), torch.ones(1)), leaked(torch.ones(3))
"""


COMPREHENSION = """
    import torch
    import torch.nn.functional as F

    @torch.compile
    def resize(x):
        rows = [
            F.interpolate(r[None, None], size=(n, 3)) for r, n in zip(x, (x > 0).sum((1, 2)))
        ]
        return rows[0] + 1

    for _ in range(2):
        resize(torch.ones(2, 3, 4))
"""


@pytest.mark.torch
def test_a_comprehension_goes_with_the_break_inside_it(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(tmp_path, COMPREHENSION)
    (alone,) = [one for one in report.findings if one.code == "BS302"]
    (inside,) = [one for one in report.findings if one.code == "BS102"]
    assert alone.caused_by == inside.fingerprint
    assert "do what is said there" in str(alone.advice)


@pytest.mark.torch
def test_of_one_line_what_is_to_be_repaired_is_listed_once(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(tmp_path, LINES)
    codes: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.kind == "graph_break" and finding.caused_by is None:
            codes.setdefault(str(finding.location.function), []).append(finding.code)
    assert codes == {"chain": ["BS126"], "taken": ["BS102"], "leaked": ["BS121"], "nlargest": ["BS111"]}
    assert [one.caused_by is None for one in report.findings if one.kind == "skip"] == [False]


MADE = """\
import torch


def gate(y, sizes):
    n = sizes[1]
    return y[:, :n] + y[:, n:]


def layer(x, low, high):
    sizes = torch.IntTensor([low, high])
    return gate(x, sizes)


def found(x, low):
    sizes = torch.tensor([x.max(), low])
    return x[: int(sizes[0])]


def rebound(x, n):
    n = n[0]
    return x[:, :n]


def larger(x, a, b):
    sizes = torch.tensor([max(a, b), b])
    return x[: int(sizes[1])]
"""


FILTERED = """\
def left(known, scores, target):
    kept = []
    for i in range(len(scores)):
        kept.append([k for k in known[i] if k != target[i].item()])
    return kept


def matched(cost, most):
    cost = cost.clone()
    while cost.numel() > 0:
        if cost.min() > most:
            break
        cost = cost[1:]
"""


def test_what_a_list_and_a_loop_are_made_of_has_all_arguments_in_it(tmp_path: Path) -> None:
    file = tmp_path / "filtered.py"
    file.write_text(FILTERED)
    use = use_of(Sources(), str(file), (4, 49, 4, 65), 4, code="BS102", entered=True)
    assert (use.shape, use.arguments) == ("filter", ("known", "scores", "target"))
    use = use_of(Sources(), str(file), (11, 11, 11, 28), 11, code="BS101", entered=True)
    assert use.arguments == ("cost", "most")


def test_numbers_that_python_made_a_tensor_of_are_found_through_names_and_callers(tmp_path: Path) -> None:
    file = tmp_path / "made.py"
    file.write_text(MADE)
    sources = Sources()
    called = sources.around(str(file), (11, 11, 11, 25))
    assert begins.number(sources.around(str(file), (6, 16, 6, 18)), [called]) == ("high", 10, "")
    assert begins.number(sources.around(str(file), (6, 16, 6, 18))) is None
    # What is read there is a tensor's maximum.
    assert begins.number(sources.around(str(file), (16, 15, 16, 28))) is None
    # A name that is made of itself.
    assert begins.number(sources.around(str(file), (21, 16, 21, 18))) is None
    assert begins.number(sources.around(str(file), (26, 15, 26, 28))) == ("b", 25, "")


CHANGED = """\
def force(s):
    if (s.x - s.at).norm() > 1:
        s.at = s.x
    return s.x * 2


def step(s, f):
    s.x = s.x + f
    return force(s)


def kept(s, f):
    y = f + 1
    return force(s)
"""


def test_the_caller_does_not_have_what_compiled_code_sets_in_an_argument(tmp_path: Path) -> None:
    file = tmp_path / "changed.py"
    file.write_text(CHANGED)
    sources = Sources()
    test = sources.around(str(file), (2, 7, 2, 30))
    after, unchanged = (sources.around(str(file), (line, 11, line, 19)) for line in (9, 14))
    assert begins.arguments(test, [after]) == ()
    assert begins.arguments(test, [unchanged]) == ("s",)


@pytest.mark.parametrize(
    ("expression", "counts"),
    [
        ("torch.bincount(k)", "k.new_zeros(n).index_add(0, k, torch.ones_like(k))"),
        ("len(torch.bincount(k))", "k.new_zeros(n).index_add(0, k, torch.ones_like(k))"),
        (
            "f(torch.bincount(k[0], minlength=4), y)",
            "k[0].new_zeros(4).index_add(0, k[0], torch.ones_like(k[0]))",
        ),
        ("k.bincount(w, 5).max()", "torch.zeros(5).index_add(0, k, w)"),
        ("torch.bincount(k.view(-1)", "index_add into zeros"),
    ],
)
def test_counts_are_told_in_the_names_of_the_source_wherever_the_call_stands(
    expression: str, counts: str
) -> None:
    """The last is the first line of an expression of two."""
    told = source_advice.advice("BS105", "", expression, expression, "f")
    assert told is not None
    assert told.startswith(f"Count with {counts}")


@pytest.mark.parametrize(
    ("mask", "rest"),
    [("m", "~m"), ("~m[:, 0]", "m[:, 0]"), ("a > 0", "~(a > 0)"), ("~a & b", "~(~a & b)"), ("", "~mask")],
)
def test_what_a_mask_leaves_is_written_without_a_double_sign(mask: str, rest: str) -> None:
    assert break_advice._words(break_advice.Site(Use("reduced", "x[m]", mask=mask)))["unmasked"] == rest


@pytest.mark.parametrize(
    ("read", "detached"),
    [
        ("x.max().item()", "x.max().detach()"),
        ("float(x.max().item())", "x.max().detach()"),
        ("float(x - 1)", "(x - 1).detach()"),
        ("float(x[f(1)](2))", "x[f(1)](2).detach()"),
        ("int(a) + int(b)", "x.detach()"),
        ("for i in x.tolist()", "x.detach()"),
    ],
)
def test_the_tensor_that_a_number_is_read_of_is_named_without_its_reads(read: str, detached: str) -> None:
    assert break_advice._words(break_advice.Site(Use("kept", read)))["detached"] == detached


def test_groups_that_are_different_values_are_counted_first(tmp_path: Path) -> None:
    body = (
        "classes = torch.unique(labels)\nreturn torch.stack([ [[f[labels == c]]].mean(0) for c in classes])"
    )
    place = marked(tmp_path / "script.py", body)
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS105")
    assert use.groups == Groups(
        "index", "len(classes)", "classes, index = torch.unique(labels, return_inverse=True), and ", "c"
    )


@pytest.mark.parametrize(
    ("reduced", "body"),
    [("x", "l = [[x[m]]]\nreturn l.sum()"), ("l", "l = 2 * [[x[m]]].gather(1, i)\nreturn l.sum()")],
)
def test_what_is_reduced_is_told_by_the_name_that_holds_it(tmp_path: Path, reduced: str, body: str) -> None:
    place = marked(tmp_path / "script.py", body)
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS105")
    said = break_advice._words(break_advice.Site(use))
    assert (use.shape, use.of) == ("reduced", reduced)
    whole = " (`l` made of all elements; where one is an index, it is 0 outside of the mask)"
    assert said["made_whole"] == (whole if reduced == "l" else "")


@pytest.mark.parametrize(
    ("counted", "body"),
    [
        ("(x.values != 0).sum()", "n = len([[x.values.nonzero()]])\nreturn y / n"),
        ("(x > 3).sum()", "n = len([[(x > 3).nonzero()]])\nreturn y / n"),
        ("m.sum()", "n = [[x[m]]].shape[0]\nreturn y / n"),
    ],
)
def test_what_is_not_zero_is_counted_and_not_summed(tmp_path: Path, counted: str, body: str) -> None:
    use = use_of_selection(tmp_path, body)
    assert use.shape == "tallied"
    assert break_advice._words(break_advice.Site(use))["how_many"] == counted


@pytest.mark.parametrize("used", ["x.new_zeros(n, 3)", "x[:n]"])
def test_a_branch_on_a_number_that_is_a_size_is_told_with_the_setting(tmp_path: Path, used: str) -> None:
    """What the setting captures breaks at the branch, where torch._check does not decide that."""
    body = f"n = [[int(m.sum())]]\nif n == 0:\n    return x\ny = {used}\nreturn y"
    place = marked(tmp_path / "script.py", body)
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS102")
    said = break_advice._words(break_advice.Site(use))
    line = use.also[0]
    assert f"(a branch, line {line}, asks for it, and breaks where that does not" in said["scalars"]
    assert said["asked_too"] in said["scalars"]


@pytest.mark.parametrize(
    ("said", "shape", "condition"),
    [
        ("A count of steps decides", "python", "self.steps % self.every == 0"),
        ("A count of steps decides", "branch", "self.steps % 2 == 0"),
        ("A whole number decides", "branch", "length % period != 0"),
    ],
)
def test_what_counts_steps_is_told_from_other_whole_numbers(said: str, shape: Shape, condition: str) -> None:
    cause = Reason(None, "Data-dependent branching", "", (), None)
    site = break_advice.Site(Use(shape), condition=condition)
    assert break_advice.advice("BS101", "BS101", cause, site, "forward").startswith(said)


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ("print([[x.mean().item()]])", False),
        ("y = x * 2\n    print([[x.mean().item()]], y.sum().item())", False),
        ("y = x * 2\n    print([[x.mean().item()]], y.sum().item())\n    return y", True),
        ("print([[x.mean().item()]], self.steps)", True),
    ],
)
def test_a_message_is_written_before_the_call_where_all_of_it_is_known_there(
    tmp_path: Path, told: str, more: bool
) -> None:
    place = marked(tmp_path / "script.py", f"def f(self, x):\n    {told}\n")
    use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS102", entered=True)
    assert (use.shape, use.arguments) == ("message", () if more else ("x",))


def test_the_selection_in_a_side_is_found_by_the_mask_that_its_branch_asks_for(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    for body, side in (
        ("y = r[m].median() if [[m.any()]] else 1.0", ("r[m]", "r", "m", "r[m].median()")),
        ("if [[(m > 0).sum() > 0]]:\n    y = f(r[m > 0])", ("r[m > 0]", "r", "m > 0", "y = f(r[m > 0])")),
        ("y = r[k].median() if [[m.any()]] else 1.0", None),
    ):
        place = marked(file, body)
        assert reach.seen(Sources(), str(file), place, Use("branch")).side == side


def use_of_selection(folder: Path, source: str) -> Use:
    """The use of what a mask selects at the marked place of a script."""
    place = marked(folder / "script.py", source)
    return use_of(Sources(), str(folder / "script.py"), place, place[0], code="BS105")


def test_a_loop_over_positions_that_only_keeps_books_is_for_the_caller(tmp_path: Path) -> None:
    for body, shape in (
        ("for d in dead.tolist():\n        seen[d] = seen.get(d, 0) + 1\n    return len(dead)", "books"),
        ("for d in dead.tolist():\n        x = x * 2 + d\n    return x", "loop"),
    ):
        found = f"def f(x, size):\n    dead = [[(size < 3).nonzero()]].squeeze(-1)\n    {body}\n"
        assert use_of_selection(tmp_path, found).shape == shape


def test_what_is_reduced_where_it_is_selected_is_told_of_all_elements(tmp_path: Path) -> None:
    for body, of in (
        ("return (1 - [[near[same]]]).mean()", "1 - near"),
        ("return ([[near[same]]].exp() * 2).sum()", "near.exp() * 2"),
        ("return self.net([[near[same]]]).sum()", ""),
    ):
        use = use_of_selection(tmp_path, f"def f(near, same):\n    {body}\n")
        assert (use.shape, use.of) == ("reduced", of)


def test_what_is_computed_with_what_a_mask_selects_is_not_only_returned(tmp_path: Path) -> None:
    for body, shape in (
        ("y = [[x[seen]]]\n    return y, 2", "returned"),
        ("y = [[y[seen]]]\n    r = y - mean\n    return mean + r", "selected"),
        ("return [[x[seen]]] * 2", "selected"),
    ):
        assert use_of_selection(tmp_path, f"def f(x, y, seen, mean):\n    {body}\n").shape == shape


def test_a_name_that_was_a_number_of_numpys_and_of_pythons_is_numpys(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    place = marked(file, "def f(b):\n    return [[math.sqrt(b)]]\n")
    kinds = ("numpy array", "numpy float64", "float")
    sources = Sources([(str(file), place[0], {"b": kind}) for kind in kinds])
    assert reach.seen(sources, str(file), place, Use("math")).numpy == ("b", "")


def test_a_number_is_not_drawn_by_what_comes_after_it(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    for body, drawn in (
        ("k = np.round(n * p)\ni = [[int(k)]]\nk = np.random.choice(9)", False),
        ("k = np.random.choice(9)\ni = [[int(k)]]", True),
        ("while on:\n    i = [[int(k)]]\n    k = np.random.choice(9)", True),
    ):
        assert is_drawn(Sources(), str(file), marked(file, body)) == drawn


def test_a_loop_names_what_computes_and_no_bookkeeping(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    body = """
class Net(nn.Module):
    def order(self, beams):
        return sorted(beams)
    def scores(self, x):
        return torch.softmax(x, -1)
    def forward(self, x):
        for i in range(3):
            x = self.scores(self.lin(x))
            beams = self.order([[x.max().item()]])
"""
    place = marked(file, body)
    assert reach.called_in_loop(Sources(), str(file), place) == ("self.scores", "self.lin")


def test_a_file_that_torch_takes_for_a_package_is_to_be_renamed() -> None:
    """A script's own ``tree.py``: torch leaves out the package of that name, and looks for it by path."""
    context = "qualname: Tree.forward, name: forward, filename: `/home/a/tree.py`, skip reason: file is under"
    cause = Reason(
        "GB0008",
        "Attempted to inline function marked as skipped",
        "",
        (),
        f"{context} skip directory (/home/a/tree.py)",
    )
    theirs = library_advice.Theirs("/env/lib/python3.12/site-packages/torch/_dynamo/x.py", "inner", "a.py:3")
    said = break_advice.advice("BS107", "BS107", cause, break_advice.Site(Use("plain"), theirs), "inner")
    assert said.startswith("Torch takes tree.py for the package `tree`")
    assert said.endswith("give the file another name.")


def test_what_a_branch_that_spares_work_draws_is_said(tmp_path: Path) -> None:
    body = "if [[m.any()]]:\n    code[m] = x[torch.randint(0, 4, (9,))][m]\nreturn code"
    use = use_of_selection(tmp_path, body)
    assert use.shape == "spared"
    assert use.also
