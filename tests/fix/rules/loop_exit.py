"""Examples of the rule ``loop-exit``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_GROW = ("torch.rand(4)", "torch.rand(4) * 5", "-torch.rand(4) * 0.1")


def _rewritten(before: str, after: str, calls: tuple[str, ...] = _GROW, *, consent: bool = False) -> Example:
    return Example(before, after, calls=calls, consent=consent)


def _left(before: str, why: str, calls: tuple[str, ...] = _GROW) -> Example:
    return Example(before, why=why, calls=calls)


REWRITES = (
    _rewritten(
        """\
def f(x):
    y = x * 1
    for step in range(6):  # at most
        if y.sum() > 3:  # far enough
            break
        y = y + 0.5 * step
    return y
""",
        """\
def f(x):
    y = x * 1
    running = torch.ones((), dtype=torch.bool, device=y.device)
    for step in range(6):  # at most
        # far enough
        running = running & ~(y.sum() > 3)
        y = torch.where(running, y + 0.5 * step, y)
    return y
""",
    ),
    _rewritten(
        """\
def f(x, limit=4):
    y = x + 0
    for _ in range(limit):
        # a step
        new = y * 2 + x
        change = (new - y).abs().max()
        y = new
        if change < 0.5:
            break
    return y * 3
""",
        """\
def f(x, limit=4):
    y = x + 0
    running = torch.ones((), dtype=torch.bool, device=y.device)
    for _ in range(limit):
        # a step
        new = y * 2 + x
        change = (new - y).abs().max()
        y = torch.where(running, new, y)
        running = running & ~(change < 0.5)
    return y * 3
""",
    ),
    _rewritten(
        """\
def f(x):
    y = x * 1
    for _ in range(5):
        y = y + x
        if y.max() > 4:
            y = y - 1
            break
        if y.min() < -4:
            break
        y = y * 1.5
    return y
""",
        """\
def f(x):
    y = x * 1
    running = torch.ones((), dtype=torch.bool, device=y.device)
    for _ in range(5):
        y = torch.where(running, y + x, y)
        leaves = running & (y.max() > 4)
        y = torch.where(leaves, y - 1, y)
        running = running & ~leaves
        running = running & ~(y.min() < -4)
        y = torch.where(running, y * 1.5, y)
    return y
""",
        ("torch.rand(4)", "torch.rand(4) * 5", "-torch.rand(4) * 3"),
    ),
    _rewritten(
        """\
def f(x):
    with torch.no_grad():
        y, z = x * 1, x * 2
        for _ in range(1, 4):
            y, z = z, y + z
            if z.isnan().any() or z.max() > 4:
                break
    return y - z
""",
        """\
def f(x):
    with torch.no_grad():
        y, z = x * 1, x * 2
        running = torch.ones((), dtype=torch.bool, device=y.device)
        for _ in range(1, 4):
            y, z = torch.where(running, z, y), torch.where(running, y + z, z)
            running = running & ~(z.isnan().any() | (z.max() > 4))
    return y - z
""",
    ),
    _rewritten(
        """\
def f(x, t):
    x = x + 1
    for i in range(4):
        if i >= t:
            break
        x = x * 2
    return x
""",
        """\
def f(x, t):
    x = x + 1
    running = torch.ones((), dtype=torch.bool, device=x.device)
    for i in range(4):
        running = running & ~(i >= t)
        x = torch.where(running, x * 2, x)
    return x
""",
        (
            "torch.rand(4), torch.tensor(2)",
            "torch.rand(4), torch.tensor(0)",
            "torch.rand(4), torch.tensor(9)",
        ),
    ),
    _rewritten(
        """\
def f(x):
    y = x * 1
    for _ in range(4):
        step = y * 0.5
        if step.max() > 1:
            step = step * 2
        y = y + step
        if y.max() > 4:
            break
    return y
""",
        """\
def f(x):
    y = x * 1
    running = torch.ones((), dtype=torch.bool, device=y.device)
    for _ in range(4):
        step = y * 0.5
        inner = running & (step.max() > 1)
        step = torch.where(inner, step * 2, step)
        y = torch.where(running, y + step, y)
        running = running & ~(y.max() > 4)
    return y
""",
        ("torch.rand(4)", "torch.rand(4) * 9", "-torch.rand(4)"),
    ),
)

LEAVES = (
    _left(
        """\
def f(x):
    x = x + 1
    while True:
        x = x * 1.5 + 1
        if x.max() > 3:
            break
    return x
""",
        "a tensor ends the loop: if you know a bound",
    ),
    _left(
        """\
def f(x, t):
    x = x + 1
    for i in range(int(t)):
        x = x * 2
    return x
""",
        "how often the loop runs is read from a tensor: pass it in as a Python integer",
        ("torch.rand(4), torch.tensor(2)",),
    ),
    _left(
        """\
def f(x):
    for i in range(1000):
        x = x * 1.5 + 0.1
        if x.max() > 3:
            break
    return x
""",
        "the loop may run 1000 times, and all of them would be computed in every call",
    ),
    _left(
        """\
def f(x):
    for i in range(5):
        x = x * 1.5
        if x.max() > 3:
            break
    return x + i
""",
        "`i` is read after the loop",
    ),
    _left(
        """\
def f(x):
    steps = 0
    for _ in range(5):
        x = x * 1.5
        steps += 1
        if x.max() > 3:
            break
    return x, steps
""",
        "the loop carries a Python value: `steps`",
    ),
    _left(
        """\
def f(x):
    for _ in range(5):
        change = x * 0.5
        if change.max() > 3:
            break
        x = x + change
    return x + change
""",
        "`change` may have no value before the loop, and outlives an iteration",
    ),
    _left(
        """\
def f(x):
    for _ in range(5):
        x = x + torch.randn_like(x)
        if x.max() > 3:
            break
    return x
""",
        "draws random numbers",
    ),
    _left(
        """\
def f(x):
    out = []
    for _ in range(3):
        x = x * 1.5
        out.append(x)
        if x.max() > 3:
            break
    return out
""",
        "a branch has an effect: `out.append(x)`",
    ),
    _left(
        """\
def f(x):
    for _ in range(3):
        x = x[:-1] * 2
        if x.max() > 3:
            break
    return x
""",
        "`x[:-1]` may raise for some inputs",
    ),
    _left(
        """\
def f(x):
    for _ in range(3):
        x = x * 1.5
        if x.max() > 3:
            break
    else:
        x = x + 1
    return x
""",
        "the loop has an `else`",
    ),
    _left(
        """\
def f(x):
    y = x * 1
    for i in range(3):
        if y.max() > 3:
            continue
        y = y * 2
    return y
""",
        "put the rest under `if not …:`, which fix may rewrite",
    ),
    _left(
        """\
def f(x):
    y = x * 1
    for step in (1.0, 2.0, 3.0):
        y = y + step
        if y.max() > 3:
            break
    return y
""",
        "the loop is not over a range",
    ),
    _left(
        """\
def f(x):
    y = x * 1
    for _ in range(3):
        y = torch.sqrt(y)
        if y.max() < 0.5:
            break
    return y.sum()
""",
        "where a derivative of the branch not taken is infinite they are NaN",
        ("torch.rand(4).requires_grad_()",),
    ),
)
