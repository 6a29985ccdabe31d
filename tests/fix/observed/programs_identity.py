"""A tensor is told from an equal one: by `is`, its memory, its attributes, what refers to it, what is written to it."""

from __future__ import annotations

from observed_program import Program

IDENTITY = (
    Program(
        "clipped_calls_counted_by_is",
        "identity",
        """
class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        if x.abs().max() > 2.5:
            x = x.clamp(-2.5, 2.5)
        self.seen = x
        return self.lin(x).relu()


net = Clip()
step = torch.compile(net, backend="eager")
clipped = 0
for i in range(STEPS):
    x = batch(i)
    step(x)
    clipped += net.seen is not x
print("clipped", clipped)
""",
    ),
    Program(
        "returned_input_told_by_is",
        "identity",
        """
@torch.compile(backend="eager")
def limit(x):
    if x.abs().max() > 2.5:
        return x / 2
    return x


for i in range(STEPS):
    x = batch(i)
    print(i, limit(x) is x)
""",
    ),
    Program(
        "returned_input_told_by_data_ptr",
        "identity",
        """
class Norm(nn.Module):
    def forward(self, x):
        y = x
        if x.norm() > 3:
            y = x * 0.5
        return y


net = torch.compile(Norm(), backend="eager")
copies = sum(net(x).data_ptr() != x.data_ptr() for x in map(batch, range(STEPS)))
print("copies", copies)
""",
    ),
    Program(
        "list_of_inputs_searched_by_id",
        "identity",
        """
KEPT = []


def keep(x):
    if x.mean() > 0.1:
        x = x - 0.1
    KEPT.append(x)
    return x * 2


run = torch.compile(keep, backend="eager")
given = [batch(i).abs() * (i % 2) for i in range(STEPS)]
for x in given:
    run(x)
print([any(id(x) == id(k) for k in KEPT) for x in given])
""",
    ),
    Program(
        "best_seen_is_the_last",
        "identity",
        """
class Best(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = torch.zeros(3, 4)

    def forward(self, x):
        if x.sum() > self.best.sum():
            self.best = x
        return x + self.best


net = Best()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    run(x)
    print(i, net.best is x)
""",
    ),
    Program(
        "ternary_hands_on_its_input",
        "identity",
        """
def pick(x, fallback):
    y = fallback if x.isnan().any() else x
    return y, y * 2


run = torch.compile(pick, backend="eager")
fallback = torch.zeros(3, 4)
for i in range(STEPS):
    x = batch(i)
    if i % 2:
        x[0, 0] = float("nan")
    y, twice = run(x, fallback)
    print("input" if y is x else "fallback" if y is fallback else "neither", twice.sum().item())
""",
    ),
    Program(
        "two_attributes_are_one_tensor",
        "identity",
        """
class Pair(nn.Module):
    def forward(self, x):
        h = x + 1
        self.raw = h
        if h.max() > 3:
            h = h.clamp(max=3)
        self.used = h
        return h.sum()


net = Pair()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    print("one" if net.raw is net.used else "two", net.used.data_ptr() == net.raw.data_ptr())
""",
    ),
    Program(
        "set_of_ids_of_results",
        "identity",
        """
def f(x):
    if x.min() < -5:
        x = x + 5
    return x


run = torch.compile(f, backend="eager")
same = batch(0)
results = [run(same) for _ in range(STEPS)]
print(len({id(one) for one in results}), len({one.data_ptr() for one in results}))
""",
    ),
)

WRITTEN_BY_THE_CALLER = (
    Program(
        "progress_bar_goes_on_writing",
        "written by the caller",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shown = None

    def forward(self, x, done):
        if x.abs().max() > 4:
            done = done + 100
        self.shown = done
        return x * 2


net = Net()
run = torch.compile(net, backend="eager")
done = torch.zeros(())
for i in range(STEPS):
    run(batch(i * 2), done)
    done += 1
    print(net.shown.item())
""",
    ),
    Program(
        "token_count_is_shared",
        "written by the caller",
        """
def count(x, tokens):
    n = tokens
    if x.abs().sum() > 10:
        n = tokens + x.numel()
    return x.relu(), n


run = torch.compile(count, backend="eager")
tokens = torch.tensor(0)
held = []
for i in range(STEPS):
    _, n = run(batch(i), tokens)
    held.append(n)
    tokens.add_(5)
print([one.item() for one in held])
""",
    ),
    Program(
        "loss_scaler_is_updated_in_place",
        "written by the caller",
        """
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(8.0))
        self.current = self.scale

    def forward(self, loss):
        s = self.scale
        if loss.isinf().any():
            s = s / 2
        self.current = s
        return loss * s


net = Scaled()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    loss = batch(i).sum() if i % 3 else torch.tensor(float("inf"))
    run(loss)
    net.scale.mul_(2)
    print(i, net.current.item())
""",
    ),
    Program(
        "result_changed_in_place_changes_the_input",
        "written by the caller",
        """
@torch.compile(backend="eager")
def soften(x):
    if x.abs().amax() > 3:
        x = x / x.abs().amax()
    return x


for i in range(STEPS):
    x = batch(i)
    soften(x).zero_()
    print(i, round(x.sum().item(), 4))
""",
    ),
    Program(
        "view_of_a_ring_is_kept",
        "written by the caller",
        """
class Window(nn.Module):
    def forward(self, ring, at):
        row = ring[at]
        if row.sum() > 2:
            row = row * 0.5
        self.row = row
        return row + 1


net = Window()
run = torch.compile(net, backend="eager")
ring = torch.zeros(3, 4)
for i in range(STEPS):
    ring[i % 3] = batch(i)[0]
    run(ring, i % 3)
    ring += 1
    print([round(v, 3) for v in net.row.tolist()])
""",
    ),
    Program(
        "moving_average_replaced_or_shared",
        "written by the caller",
        """
class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.avg = torch.zeros(4)

    def forward(self, x):
        m = x.mean(0)
        self.avg = m if m.abs().max() < 1 else self.avg
        return x - self.avg


net = Average()
run = torch.compile(net, backend="eager")
first = net.avg
for i in range(STEPS):
    run(batch(i + 1))
    first.add_(1)
    print([round(v, 3) for v in net.avg.tolist()])
""",
    ),
    Program(
        "learning_rate_tensor_is_decayed",
        "written by the caller",
        """
class Step(nn.Module):
    def forward(self, g, lr):
        if g.norm() > 5:
            lr = lr * 0.1
        self.used = lr
        return g * lr


net = Step()
run = torch.compile(net, backend="eager")
lr = torch.tensor(1.0)
log = []
for i in range(STEPS):
    run(batch(i), lr)
    log.append(net.used)
    lr.mul_(0.5)
print([round(one.item(), 5) for one in log])
""",
    ),
    Program(
        "number_read_from_a_buffer_stays_that_number",
        "written by the caller",
        """
class Level(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.tensor(1.0))

    def forward(self, x):
        level = self.level.item()
        self.last = x * level
        self.base = level + torch.zeros(2)
        return self.last


net = Level()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    net.level.add_(1)
    print(round(net.last.sum().item(), 3), net.base.tolist())
""",
    ),
)

ATTRIBUTES = (
    Program(
        "lengths_travel_on_the_tensor",
        "tensor attribute",
        """
@torch.compile(backend="eager")
def half(x):
    if x.abs().max() > 2.5:
        x = x / 2
    return x


for i in range(STEPS):
    x = batch(i)
    x.lengths = [4, 3, i]
    print(getattr(half(x), "lengths", None))
""",
    ),
    Program(
        "tag_on_a_kept_attribute",
        "tensor attribute",
        """
class Keep(nn.Module):
    def forward(self, x):
        if x.max() > 3:
            x = x.clamp(max=3)
        self.kept = x
        return x + 1


net = Keep()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    x.source = f"file {i}"
    run(x)
    print(hasattr(net.kept, "source"))
""",
    ),
    Program(
        "requires_grad_of_what_is_handed_on",
        "tensor attribute",
        """
def f(x, w):
    y = x
    if x.abs().max() > 3:
        y = x * w
    return y


run = torch.compile(f, backend="eager")
w = nn.Parameter(torch.ones(4))
for i in range(STEPS):
    y = run(batch(i), w)
    print(y.requires_grad, y.is_leaf, y.grad_fn is None)
""",
    ),
    Program(
        "leaf_that_comes_back_gets_its_grad",
        "tensor attribute",
        """
def f(x):
    if x.abs().max() > 3:
        x = x * 2
    return x


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    x = batch(i).requires_grad_()
    y = run(x)
    y.sum().backward()
    print(y.is_leaf, x.grad[0, 0].item())
""",
    ),
    Program(
        "version_counter_is_read",
        "tensor attribute",
        """
class V(nn.Module):
    def forward(self, x):
        if x.sum() > 1:
            x = x - 1
        self.out = x
        return x * 2


net = V()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    x.add_(0)
    run(x)
    print(net.out._version)
""",
    ),
    Program(
        "base_of_a_view_is_asked",
        "tensor attribute",
        """
def f(x):
    y = x.view(-1)
    if y.max() > 2:
        y = y.clamp(max=2)
    return y


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    x = batch(i)
    y = run(x)
    print(y._base is not None, y.data_ptr() == x.data_ptr())
""",
    ),
    Program(
        "parameter_stays_a_parameter",
        "tensor attribute",
        """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        w = self.w
        if x.abs().max() > 4:
            w = w / 2
        self.current = [w]
        return x * w


net = Tied()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    print(type(net.current[0]).__name__, net.current[0] is net.w)
""",
    ),
    Program(
        "contiguity_of_what_is_handed_on",
        "tensor attribute",
        """
def f(x):
    y = x.t()
    if y.max() > 2:
        y = y / 2
    return y


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    y = run(batch(i))
    print(y.is_contiguous(), y.stride())
""",
    ),
)

REFERENCES = (
    Program(
        "cache_by_id",
        "cache by id",
        """
CACHE = {}


def encode(x):
    if x.abs().max() > 3:
        x = x / x.abs().max()
    CACHE[id(x)] = x
    return x.sum()


run = torch.compile(encode, backend="eager")
given = [batch(i) for i in range(STEPS)]
for x in given:
    run(x)
print([id(x) in CACHE for x in given])
""",
    ),
    Program(
        "cache_by_id_of_the_result",
        "cache by id",
        """
DONE = {}


@torch.compile(backend="eager")
def f(x):
    if x.isnan().any():
        x = x.nan_to_num()
    return x


x = batch(0)
for i in range(STEPS):
    y = f(x)
    DONE.setdefault(id(y), []).append(i)
    DONE.setdefault("keep", []).append(y)
print(sorted(len(v) for k, v in DONE.items()))
""",
    ),
    Program(
        "weak_dictionary_of_inputs",
        "weak reference",
        """
import weakref

NAMES = weakref.WeakKeyDictionary()


class Net(nn.Module):
    def forward(self, x):
        if x.mean() > 0.5:
            x = x - 0.5
        self.x = x
        return x.exp()


torch.Tensor.__hash__  # by identity
net = Net()
run = torch.compile(net, backend="eager")
given = [batch(i).abs() for i in range(STEPS)]
names = {id(x): i for i, x in enumerate(given)}
for x in given:
    run(x)
    print(names.get(id(net.x), "unknown"))
""",
    ),
    Program(
        "weak_reference_dies_with_the_input",
        "weak reference",
        """
import gc
import weakref


class Hold(nn.Module):
    def forward(self, x):
        if x.abs().max() > 3:
            x = x * 0.1
        self.held = x
        return x.sum()


net = Hold()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    ref = weakref.ref(x)
    run(x)
    del x
    gc.collect()
    print("alive" if ref() is not None else "gone")
""",
    ),
    Program(
        "weak_dictionary_of_results",
        "weak reference",
        """
from torch.utils.weak import WeakTensorKeyDictionary

ORIGIN = WeakTensorKeyDictionary()


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 2:
        return x * 0.5
    return x


for i in range(STEPS):
    x = batch(i)
    ORIGIN[x] = i
    print(ORIGIN.get(f(x), "new"))
""",
    ),
    Program(
        "finalizer_counts_what_was_dropped",
        "weak reference",
        """
import gc
import weakref

dropped = []


class Last(nn.Module):
    last = None

    def forward(self, x):
        y = self.last if self.last is not None else x
        if x.max() > 2:
            y = x * 1
        self.last = y
        return y + x


net = Last()
run = torch.compile(net, backend="eager")
for i in range(STEPS + 2):
    x = batch(i // 2)
    weakref.finalize(x, dropped.append, i)
    run(x)
    del x
    gc.collect()
    print(dropped)
""",
    ),
    Program(
        "reference_count_of_the_input",
        "weak reference",
        """
import sys

BOX = []


def put(x):
    if x.min() < -4:
        x = x.clamp(min=-4)
    BOX.append(x)
    return x.sum()


run = torch.compile(put, backend="eager")
for i in range(STEPS):
    x = batch(i)
    before = sys.getrefcount(x)
    run(x)
    print(BOX[-1] is x, sys.getrefcount(x) - before > 0)
""",
    ),
)

PROGRAMS = IDENTITY + WRITTEN_BY_THE_CALLER + ATTRIBUTES + REFERENCES
