"""Programs that count their own crossings: each line with ``hit("A")``, or before ``bump("A")``, is a site.

``hit`` is a function that Dynamo may not trace and that counts its calls; ``bump`` adds to a tensor inside of the
graph. ``compile`` is torch.compile with a backend that counts the runs of its graphs. What the report says must be
what the program counted.
"""

from __future__ import annotations

PRELUDE = """\
import atexit, contextlib, functools, json, threading
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

COUNTS, SUMS, LAUNCHES, LOCK = {}, {name: torch.zeros(()) for name in "ABCDEF"}, [0], threading.Lock()

@torch._dynamo.disable
def hit(name):
    with LOCK:
        COUNTS[name] = COUNTS.get(name, 0) + 1

def bump(name):
    SUMS[name].add_(1)

def counting(graph_module, inputs):
    forward = graph_module.forward
    def run(*args):
        with LOCK:
            LAUNCHES[0] += 1
        return forward(*args)
    return run

compile = functools.partial(torch.compile, backend=counting)
x = torch.ones(3)

def tell():
    sums = {name: int(total) for name, total in SUMS.items() if total}
    with open("counted.json", "w") as file:
        json.dump({"counts": {**COUNTS, **sums}, "launches": LAUNCHES[0]}, file)

atexit.register(tell)
"""

_LOOPED = """
@compile
def f(x, n):
    for i in range(n):
        x = x + 1
        {body}
    return x
for n in {calls}:
    f(x, n)
"""
_WRAPPED = """
def wrap(function):
    @functools.wraps(function)
    def wrapper(*args):
        {around}
    return wrapper
{more}
"""
_SIMPLE = """
@compile
def f(x):
    x = x + 1
    {first}
    x = x * 2
    {second}
    return x - 1
for _ in range({calls}):
    f(x)
"""
_METHOD = """
class Layer(nn.Module):
    def __init__(self, noisy):
        super().__init__()
        self.linear, self.noisy = nn.Linear(3, 3), noisy
    {decorator}
    def forward(self, x):
        x = self.linear(x)
        {body}
        return x * 2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(i in {noisy}) for i in range({layers}))
    def forward(self, x):
        {run}
        return x
net = compile(Net())
for _ in range({calls}):
    net(x)
"""
_EACH = "for layer in self.layers: x = layer(x)"


def _simple(first: str, second: str = "pass", calls: int = 4) -> str:
    return _SIMPLE.format(first=first, second=second, calls=calls)


def _looped(body: str, calls: str = "(3, 3, 3, 3)") -> str:
    return _LOOPED.format(body=body, calls=calls)


def _net(body: str, run: str = _EACH, noisy: str = "(0, 2)", layers: int = 3, decorator: str = "") -> str:
    return _METHOD.format(body=body, run=run, noisy=noisy, layers=layers, calls=4, decorator=decorator)


def _wrapped(around: str, more: str) -> str:
    return _WRAPPED.format(around=around, more=more)


PROGRAMS: dict[str, str] = {
    "one break": _simple('hit("A")'),
    "two breaks": _simple('hit("A")', 'hit("B")'),
    "two breaks on one line": _simple('hit("A"); x = x + 1', 'hit("B")'),
    "a break before the first op": """
@compile
def f(x):
    hit("A")
    return x + 1
for _ in range(5): f(x)
""",
    "a break at the last statement": """
@compile
def f(x):
    y = x + 1
    return hit("A")
for _ in range(5): f(x)
""",
    "an item": _simple("n = x.sum().item()", 'bump("A"); x = x + n').replace("item()", "item()  # A"),
    "a branch on a tensor, taken": _simple("x = x * 3 if x.sum() > 0 else x  # A", 'bump("A")'),
    "a branch on a tensor, not taken": _simple("x = x * 3 if x.sum() > 99 else x  # A", 'bump("A")'),
    "a break on one side of a flag": """
@compile
def f(x, flag):
    x = x + 1
    if flag:
        hit("A")
    return x * 2
for i in range(6): f(x, i % 2 == 0)
""",
    "a break on one side of a branch on data": """
@compile
def f(x):
    x = x + 1
    if x.sum() > 6:  # B
        hit("A")
    bump("B")
    return x * 2
for i in range(6): f(x * i)
""",
    "two compiles of one function: dtypes": """
@compile
def f(x):
    x = x + 1
    hit("A")
    return x * 2
for dtype in (torch.float32, torch.float64, torch.float32): f(x.to(dtype)), f(x.to(dtype))
""",
    "two compiles of one function: sizes": """
@compile
def f(x):
    x = x + 1
    hit("A")
    return x * 2
for n in (2, 3, 4, 5, 3, 2): f(torch.ones(n))
""",
    "compiled twice by torch.compile": """
def f(x):
    x = x + 1
    hit("A")
    return x * 2
first, second = compile(f), torch.compile(f, backend=counting, dynamic=True)
for _ in range(3): first(x), second(x)
""",
    "a new compiled object each time": """
def f(x):
    x = x + 1
    hit("A")
    return x * 2
for _ in range(4): compile(f)(x)
""",
    "a loop": _looped('hit("A")'),
    "a loop of several lengths": _looped('hit("A")', "(1, 2, 3, 1)"),
    "a loop that breaks now and then": _looped('hit("A") if i % 2 else None', "(4, 4, 4)"),
    "a loop that is left early": """
@compile
def f(x):
    for i in range(5):
        x = x + 1
        hit("A")
        if i == 2:
            break
    return x
for _ in range(3): f(x)
""",
    "a while loop": """
@compile
def f(x, n):
    while n > 0:
        hit("A")
        x = x + n
        n = n - 1
    return x
for _ in range(3): f(x, 4)
""",
    "nested loops": """
@compile
def f(x):
    for i in range(2):
        for j in range(3):
            x = x + j
            hit("A")
    return x
for _ in range(3): f(x)
""",
    "a loop after a break": """
@compile
def f(x):
    x = x + 1
    hit("B")
    for i in range(3):
        x = x + 1
        hit("A")
    return x
for _ in range(4): f(x)
""",
    "a break after a loop that breaks": """
@compile
def f(x):
    for i in range(3):
        x = x + 1
        hit("A")
    return g(x)
@compile
def g(x):
    x = x + 1
    hit("B")
    return x
for _ in range(4): f(x)
""",
    "a try block": """
@compile
def f(x):
    try:
        x = x + 1
        hit("A")
    except ValueError:
        pass
    return x * 2
for _ in range(4): f(x)
""",
    "a with block": """
@contextlib.contextmanager
def around():
    yield
@compile
def f(x):
    with around():
        x = x + 1
        hit("A")
    return x * 2
for _ in range(4): f(x)
""",
    "no_grad around a break": """
@compile
def f(x):
    with torch.no_grad():
        x = x + 1
        hit("A")
        x = x * 2
    return x
for _ in range(4): f(x)
""",
    "recursion": """
@compile
def f(x, n):
    x = x + 1
    hit("A")
    return x if n == 0 else f(x, n - 1)
for _ in range(3): f(x, 3)
""",
    "mutual recursion": """
def f(x, n):
    x = x + 1
    hit("A")
    return x if n == 0 else g(x, n - 1)
def g(x, n):
    x = x * 2
    hit("B")
    return x if n == 0 else f(x, n - 1)
h = compile(f)
for _ in range(3): h(x, 4)
""",
    "recursion in a loop": """
@compile
def f(x, n):
    for _ in range(2):
        x = x + 1
        if n > 0:
            x = f(x, n - 1)
        hit("A")
    return x
for _ in range(2): f(x, 2)
""",
    "a helper": """
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
@compile
def f(x): return helper(x) - 1
for _ in range(4): f(x)
""",
    "a helper of a helper": """
def inner(x):
    x = x + 1
    hit("A")
    return x * 2
def helper(x): return inner(x + 1) * 2
@compile
def f(x): return helper(x) - 1
for _ in range(4): f(x)
""",
    "a helper that is called twice": """
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
@compile
def f(x): return helper(helper(x)) - 1
for _ in range(4): f(x)
""",
    "a helper that is called inside and directly": """
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
@compile
def f(x): return helper(x) - 1
direct = compile(helper)
for _ in range(4): f(x), direct(x), direct(x)
""",
    "a helper whose flag breaks or not": """
def helper(x, flag):
    x = x + 1
    if flag:
        hit("A")
    return x * 2
@compile
def f(x, flag): return helper(x, True) + helper(x, flag)
for i in range(4): f(x, i % 2 == 0)
""",
    "a helper in a loop": """
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
@compile
def f(x):
    for _ in range(3):
        x = helper(x)
    return x
for _ in range(4): f(x)
""",
    "a helper in a loop that breaks after data": """
def helper(x):
    x = x + 1
    if x.sum() > 20:  # A
        x = x / 2
    bump("A")
    return x
@compile
def f(x):
    for _ in range(3):
        x = helper(x)
    return x
for i in range(4): f(x * i)
""",
    "two functions that share a helper": """
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
f, g = compile(lambda x: helper(x) - 1), compile(lambda x: helper(x * 2) - 1)
for _ in range(3): f(x), g(x), g(x)
""",
    "threads": """
def f(x):
    x = x + 1
    hit("A")
    return x * 2
g = compile(f)
g(x)
def work():
    for _ in range(20): g(x)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
""",
    "threads in a helper": """
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
g = compile(lambda x: helper(x) + 1)
g(x)
def work():
    for _ in range(20): g(x)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
""",
    "threads in a skipped frame": """
def f(x):
    for _ in range(2):
        x = x + 1
        hit("A")
    return x
g = compile(f)
g(x)
def work():
    for _ in range(20): g(x)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
""",
    "a wrapper with try, one of two breaks": _wrapped(
        """try:
            return function(*args)
        except KeyError:
            return None""",
        """
@wrap
def first(x):
    x = x + 1
    hit("A")
    return x * 2
@wrap
def second(x): return x - 1
f = compile(lambda x: second(first(x)))
for _ in range(5): f(x)
""",
    ),
    "a wrapper with try, both break": _wrapped(
        """try:
            return function(*args)
        finally:
            pass""",
        """
@wrap
def first(x):
    x = x + 1
    hit("A")
    return x * 2
@wrap
def second(x):
    hit("B")
    return x - 1
f = compile(lambda x: second(first(x)))
for _ in range(5): f(x)
""",
    ),
    "a wrapper that breaks itself": _wrapped(
        """with torch.no_grad():
            hit("A")
            return function(*args)""",
        """
first, second = wrap(lambda x: x + 1), wrap(lambda x: x * 2)
f = compile(lambda x: second(first(x)))
for _ in range(5): f(x)
""",
    ),
    "a wrapper that breaks for one of two": """
def wrap(function, noisy):
    def wrapper(x):
        try:
            if noisy:
                hit("A")
            return function(x)
        finally:
            pass
    return wrapper
first, second = wrap(lambda x: x + 1, True), wrap(lambda x: x * 2, False)
f, g = compile(first), compile(second)
for _ in range(5): f(x), g(x)
""",
    "a wrapper around caller and callee": _wrapped(
        """try:
            return function(*args)
        except KeyError:
            return None""",
        """
@wrap
def callee(x):
    y = x + 1
    hit("A")
    return y * 2
@wrap
def caller(x): return callee(x * 2) + 1
f = compile(caller)
for _ in range(5): f(x)
""",
    ),
    "layers that share a forward": _net('hit("A")'),
    "layers of which some break": _net('hit("A") if self.noisy else None'),
    "layers of which some break, unrolled": _net(
        'hit("A") if self.noisy else None',
        run="a, b, c = self.layers; x = c(b(a(x)))",
    ),
    "layers in a Sequential": _net('hit("A")', run="x = nn.Sequential(*self.layers)(x)"),
    "layers with a decorated forward": _net('hit("A")', decorator="@torch.no_grad()"),
    "layers under checkpoint": _net(
        'hit("A")',
        run="for layer in self.layers: x = checkpoint(layer, x, use_reentrant=False)",
    ),
    "a hook that breaks": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
    def forward(self, x): return self.linear(x) * 2
net = Net()
def hook(module, args, output):
    hit("A")
    return output + 1
net.linear.register_forward_hook(hook)
f = compile(net)
for _ in range(4): f(x)
""",
    "a generator": """
def parts(x):
    for i in range(3):
        yield x + i
@compile
def f(x):
    for part in parts(x):
        x = x + part
        hit("A")
    return x
for _ in range(4): f(x)
""",
    "a generator that breaks itself": """
def parts(x):
    for i in range(3):
        hit("A")
        yield x + i
@compile
def f(x):
    for part in parts(x):
        x = x + part
    return x
for _ in range(4): f(x)
""",
    "recursion in threads": """
@compile
def f(x, n):
    x = x + 1
    hit("A")
    return f(x, n - 1) if n else x
def work():
    for _ in range(3): f(x, 2)
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
""",
    "a generator expression's consumer": """
@compile
def f(x):
    total = sum(x * i for i in range(3))
    hit("A")
    return total
for _ in range(4): f(x)
""",
    "a list comprehension": """
@compile
def f(x):
    y = [x + i for i in range(3)]
    hit("A")
    return y
for _ in range(4): f(x)
""",
    "a comprehension that breaks": """
@compile
def f(x):
    x = x + 1
    return [(x + i, hit("A"))[0] for i in range(3)]
for _ in range(4): f(x)
""",
    "a lambda": """
f = compile(lambda x: (x + 1, hit("A"))[0])
for _ in range(4): f(x)
""",
    "a property": """
class Box:
    def __init__(self, x): self.x = x
    @property
    def half(self):
        hit("A")
        return self.x / 2
@compile
def f(x): return Box(x + 1).half + 1
for _ in range(4): f(x)
""",
    "a constructor": """
class Box:
    def __init__(self, x):
        self.x = x + 1
        hit("A")
@compile
def f(x): return Box(x).x * 2
for _ in range(4): f(x)
""",
    "an exception through a break": """
@compile
def f(x):
    x = x + 1
    hit("A")
    raise ValueError
for _ in range(4):
    with contextlib.suppress(ValueError): f(x)
""",
    "an exception through a helper": """
def helper(x):
    x = x + 1
    hit("A")
    raise ValueError
@compile
def f(x): return helper(x) + 1
for _ in range(4):
    with contextlib.suppress(ValueError): f(x)
""",
    "an exception in a skipped frame": """
@compile
def f(x):
    for i in range(4):
        x = x + 1
        hit("A")
        if i == 2:
            raise ValueError
    return x
for _ in range(4):
    with contextlib.suppress(ValueError): f(x)
""",
    "an exception before the site": """
@compile
def f(x, n):
    for i in range(2):
        if n > 1:
            raise ValueError
        x = x + 1
        hit("A")
    return x
for n in (0, 2, 0, 2):
    with contextlib.suppress(ValueError): f(x, n)
""",
    "an exception that is handled inside": """
@compile
def f(x):
    try:
        hit("A")
        raise KeyError
    except KeyError:
        x = x + 1
    return x
for _ in range(4): f(x)
""",
    "after a reset": """
def f(x):
    x = x + 1
    hit("A")
    return x * 2
g = compile(f)
for _ in range(3): g(x)
torch._dynamo.reset()
for _ in range(3): g(x)
""",
    "a skipped frame after a reset": """
def f(x):
    for _ in range(2):
        x = x + 1
        hit("A")
    return x * 2
g = compile(f)
for _ in range(3): g(x)
torch._dynamo.reset()
for _ in range(3): g(x)
""",
    "a training step": """
net = nn.Linear(3, 3)
@compile
def loss(x):
    y = net(x).sum()
    hit("A")
    return y * 2
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    opt.zero_grad(); loss(x).backward(); opt.step()
""",
    "gradient mode on and off": """
@compile
def f(x):
    x = x + 1
    hit("A")
    return x * 2
y = torch.ones(3, requires_grad=True)
for i in range(6):
    with torch.set_grad_enabled(i % 2 == 0): f(y)
""",
    "breaks of two functions in turn": """
@compile
def f(x):
    x = x + 1
    hit("A")
    return x
@compile
def g(x):
    x = f(x) + 1
    hit("B")
    return f(x)
for _ in range(3): f(x), g(x)
""",
    "nested graph breaks": """
torch._dynamo.config.nested_graph_breaks = True
def helper(x):
    x = x + 1
    hit("A")
    return x * 2
def between(x): return helper(x) + 1
@compile
def f(x): return between(x * 2) + 3
for _ in range(4): f(x)
""",
    "a closure made anew": """
def make(n):
    def f(x):
        x = x + n
        hit("A")
        return x
    return f
for n in range(4): compile(make(n))(x)
""",
    "functools.partial": """
def f(x, n):
    x = x + n
    hit("A")
    return x
g = compile(functools.partial(f, n=2))
for _ in range(4): g(x)
""",
    "a static and a class method": """
class Box:
    @staticmethod
    def one(x):
        x = x + 1
        hit("A")
        return x
    @classmethod
    def two(cls, x):
        x = cls.one(x) + 1
        hit("B")
        return x
f = compile(Box.two)
for _ in range(4): f(x)
""",
    "an expression over several lines": """
@compile
def f(x):
    y = (
        x.sum(),
        hit(
            "A"
        ),
    )
    return y[0] + 1
for _ in range(4): f(x)
""",
}
