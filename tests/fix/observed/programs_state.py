"""State: of modules that are copied, saved, swapped and flipped, of later epochs, of values that no scan saw."""

from __future__ import annotations

from observed_program import Program

LONGER = ({"STEPS": "9"},)

LATER = (
    Program(
        "threshold_is_lowered_in_a_later_epoch",
        "state of a later epoch",
        """
class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 100.0
        self.last = None

    def forward(self, x):
        if x.abs().max() > self.limit:
            x = x.clamp(-self.limit, self.limit)
        self.last = x
        return x * 2


net = Clip()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    net.limit = 100.0 if i < 6 else 1.0
    x = batch(i)
    run(x)
    print(i, net.last is x)
""",
        later=LONGER,
    ),
    Program(
        "factor_gets_more_dimensions_later",
        "state of a later epoch",
        limit="of one shape",
        body="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.tensor(2.0)

    def forward(self, x):
        y = x
        if x.sum() > 1:
            y = x * self.factor
        return y + 1


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.factor = torch.full((2, 1, 1), 3.0)
    print(run(batch(i)).shape)
""",
        later=LONGER,
    ),
    Program(
        "history_is_kept_once_warm",
        "state of a later epoch",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = None

    def forward(self, x):
        if x.abs().max() > 3:
            x = x / 3
        if self.history is not None:
            self.history.append(x)
        return x.sin()


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.history = []
    x = batch(i)
    run(x)
    print(i, bool(net.history) and net.history[-1] is x)
""",
        later=LONGER,
    ),
    Program(
        "every_fifth_call_keeps_its_input",
        "counter that reaches N",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))
        self.kept = torch.zeros(3, 4)

    def forward(self, x):
        self.calls += 1
        if self.calls % 5 == 0:
            self.kept = x
        return x + self.kept


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    y = run(x)
    x.zero_()
    print(i, round(y.sum().item(), 3), round(net.kept.sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "warm_up_ends_after_six_calls",
        "counter that reaches N",
        """
class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.calls += 1
        y = x * 2
        if self.calls > 6:
            y = x * self.w
        return y.sum()


net = Warm()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    net.zero_grad()
    y = run(batch(i))
    print(i, y.requires_grad, round(y.item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "python_counter_changes_the_branch",
        "counter that reaches N",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.seen = 0, []

    def forward(self, x):
        self.n += 1
        y = x.clone()
        if x.sum() > 0:
            y = x if self.n > 5 else x * 1
        self.seen.append(y)
        return y + 0


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(1).abs()
    run(x)
    print(net.seen[-1] is x)
""",
        later=LONGER,
    ),
    Program(
        "threshold_that_no_input_reaches",
        "beyond what was seen",
        """
class Net(nn.Module):
    def forward(self, x):
        y = x
        if x[0, 0] == 31337:
            y = x[:, :1].expand(3, 4)
        self.y = y
        return y * 1


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    if i == 6:
        x[0, 0] = 31337
    run(x)
    print(net.y.stride(), net.y is x)
""",
        later=LONGER,
    ),
    Program(
        "sum_that_hits_a_secret",
        "beyond what was seen",
        """
def f(x, key):
    y = x * 1
    if (x.long() * key).sum() == 123456:
        y = x / 0
    return y


run = torch.compile(f, backend="eager")
key = torch.tensor([[1, 2, 3, 4]] * 3)
for i in range(STEPS):
    x = batch(i).round()
    if i == 6:
        x = torch.zeros(3, 4)
        x[0, 0] = 123456
    print(run(x, key).isinf().any().item())
""",
        later=LONGER,
    ),
    Program(
        "infinite_loss_only_in_the_seventh_step",
        "beyond what was seen",
        """
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        loss = (x * self.w).square().sum()
        if loss > 1e30:
            loss = torch.log(loss)
        return loss


net = Loss()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    net.zero_grad()
    run(batch(i) * (1e17 if i == 6 else 1)).backward()
    print(net.w.grad.isnan().any().item(), f"{net.w.grad.sum().item():.3e}")
""",
        later=LONGER,
    ),
    Program(
        "loop_that_runs_longer_later",
        "beyond what was seen",
        """
def iterate(x, n=3):
    y = x
    for _ in range(n):
        if y.abs().max() < 1:
            break
        y = y / 2
    return y


run = torch.compile(iterate, backend="eager")
for i in range(STEPS):
    x = batch(i)
    y = run(x) if i < 5 else run(x, 8)
    print(i, y is x, round(y.abs().max().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "classes_that_come_later",
        "beyond what was seen",
        """
def f(i, w):
    return F.one_hot(i).float() @ w[: int(i.max()) + 1]


def hot(i):
    return F.one_hot(i).float() * 2


run = torch.compile(hot, backend="eager")
for i in range(STEPS):
    given = torch.tensor([0, 4, 2]) if i < 5 else torch.tensor([0, i, 1])
    print(run(given).shape)
""",
        later=LONGER,
    ),
    Program(
        "mask_that_selects_nothing_later",
        "beyond what was seen",
        """
def f(x):
    return x[x > 0].mean()


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    print(round(run(batch(i) if i != 6 else -torch.ones(3, 4)).item(), 4))
""",
        later=LONGER,
    ),
    Program(
        "mask_with_infinity_beside_it",
        "beyond what was seen",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x, m):
        y = x * self.w
        return y[m].sum()


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    net.zero_grad()
    x = batch(i)
    m = x > -100
    if i == 6:
        x[0, 0], m[0, 0] = float("inf"), False
    run(x, m).backward()
    print(net.w.grad.isnan().any().item(), round(net.w.grad[1:].sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "masked_write_into_what_the_caller_holds",
        "written in place",
        """
class Net(nn.Module):
    def forward(self, x, m):
        o = x
        o[m] = o[m] * 2
        self.o = o
        return o + 1


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    run(x, x > 0)
    print(net.o is x, x._version, round(x.sum().item(), 3))
""",
    ),
    Program(
        "and_of_checks_whose_second_raises",
        "beyond what was seen",
        """
def f(x, d):
    ok = (d != 0).all() and (x.long() // d > 1).any()
    return torch.where(torch.as_tensor(ok), x, -x)


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    d = torch.tensor([1, 2, 3, 4 if i != 6 else 0])
    print(round(run(batch(i), d).sum().item(), 3))
""",
        later=LONGER,
    ),
)

MODULES = (
    Program(
        "layer_is_swapped_later",
        "module swapped",
        """
class Effect(nn.Module):
    def forward(self, x):
        print("effect", tuple(x.shape))
        return x - 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Identity()

    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = self.layer(x) + 0
        return y * 2


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.layer = Effect()
    print(i, round(run(batch(i)).sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "layer_gets_a_hook_later",
        "module wrapped",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            y = self.a(x)
        else:
            y = self.b(x)
        return y


net = Net().requires_grad_(False)
run = torch.compile(net, backend="eager")
calls = []
for i in range(STEPS):
    if i == 5:
        net.a.register_forward_hook(lambda *_: calls.append("a"))
        net.b.register_forward_hook(lambda *_: calls.append("b"))
    run(batch(i))
print(calls)
""",
        later=LONGER,
    ),
    Program(
        "batch_norm_in_a_branch_not_taken",
        "train and eval",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = self.norm(x)
        return y


net = Net().eval().requires_grad_(False)
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.train()
    run(batch(i))
    print(int(net.norm.num_batches_tracked), round(net.norm.running_mean.sum().item(), 4))
""",
        later=LONGER,
    ),
    Program(
        "dropout_in_a_branch_after_the_flip",
        "train and eval",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = self.drop(x)
        return y


net = Net().eval()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.train()
    run(batch(i))
    print(round(torch.rand(()).item(), 5))
""",
        later=LONGER,
    ),
    Program(
        "layer_drop_draws_as_many_numbers",
        "train and eval",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3)) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            if self.training:
                p = torch.rand([])
                if p < 0.5:
                    continue
            x = layer(x)
        return x


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    print(round(torch.rand(()).item(), 5))
""",
    ),
    Program(
        "copy_of_the_module_shares_nothing",
        "deepcopy",
        """
import copy


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(4))
        self.now = torch.ones(4)

    def forward(self, x):
        s = self.scale
        if x.abs().max() > 3:
            s = s / 2
        self.now = s
        return x * s


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    other = copy.deepcopy(net)
    other.scale.add_(10)
    print(other.now.sum().item(), net.now.sum().item())
""",
    ),
    Program(
        "pickle_keeps_what_is_one",
        "pickling",
        """
import pickle


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.zeros(3, 4)
        self.second = None

    def forward(self, x):
        self.first = x
        if x.min() < -3:
            x = x.clamp(min=-3)
        self.second = x
        return x + 1


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    other = pickle.loads(pickle.dumps(net))
    print(other.first is other.second, sorted(vars(other))[-2:])
""",
    ),
    Program(
        "checkpoint_size_tells_shared_memory",
        "torch.save",
        """
import io


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.big = torch.zeros(64, 64)
        self.used = self.big

    def forward(self, x):
        b = self.big
        if x.abs().max() > 3:
            b = b + 1
        self.used = b
        return x.sum() + b.sum()


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    file = io.BytesIO()
    torch.save({"big": net.big, "used": net.used}, file)
    print(len(file.getvalue()) > 25000)
""",
    ),
    Program(
        "state_dict_holds_a_new_buffer",
        "state_dict",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x):
        if x.max() > self.peak:
            self.peak = x.max()
        return x / (self.peak + 1)


net = Net()
run = torch.compile(net, backend="eager")
held = net.peak
for i in range(STEPS):
    run(batch(i))
    print(sorted(net.state_dict()), net.peak is held, round(net.peak.item(), 3))
    held = net.peak
""",
    ),
    Program(
        "loaded_state_writes_into_the_same_buffer",
        "state_dict",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.alias = [self.mean]

    def forward(self, x):
        m = self.mean
        if x.norm() > 10:
            m = x.mean(0)
        self.mean = m
        return x - m


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(2 * i))
    net.load_state_dict({"mean": torch.full((4,), float(i))})
    print(net.alias[0].tolist())
""",
    ),
    Program(
        "subclass_comes_in_later",
        "subclass tensor",
        """
class Tagged(torch.Tensor):
    pass


def f(x):
    if x.abs().max() > 3:
        x = x / 3
    return x + 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    x = batch(i)
    y = run(x) if i < 4 else f(x.as_subclass(Tagged))
    print(type(y).__name__, round(y.sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "subclass_carries_a_note",
        "subclass tensor",
        """
class Noted(torch.Tensor):
    note = "none"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls) and isinstance(args[0], cls):
            result.note = args[0].note
        return result


def f(x):
    if x.abs().max() > 3:
        x = x.clamp(-3, 3)
    return x * 2


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    if i < 4:
        run(batch(i))
    else:
        x = batch(i).as_subclass(Noted)
        x.note = f"batch {i}"
        print(f(x).note)
print("end")
""",
        later=LONGER,
    ),
    Program(
        "generator_held_across_calls",
        "generator held",
        """
KEEP = []


class Net(nn.Module):
    def forward(self, x):
        if x.abs().max() > 3:
            x = x - 3
        KEEP.append(x)
        return x.cos()


def watcher():
    while True:
        x = yield
        print([one is x for one in KEEP])
        KEEP.clear()


net = Net()
run = torch.compile(net, backend="eager")
w = watcher()
next(w)
for i in range(STEPS):
    x = batch(i)
    run(x)
    w.send(x)
""",
    ),
    Program(
        "generator_reads_the_attribute_late",
        "generator held",
        """
class Net(nn.Module):
    now = None

    def forward(self, x, total):
        t = total
        if x.sum() > 3:
            t = total + x.sum()
        self.now = t
        return x * 2


net = Net()
run = torch.compile(net, backend="eager")


def totals():
    while True:
        yield round(net.now.item(), 2)


total, reader = torch.zeros(()), totals()
for i in range(STEPS):
    run(batch(2 * i), total)
    total += 1
    print(next(reader))
""",
    ),
    Program(
        "thread_reads_the_attribute",
        "thread",
        """
import threading


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.status = torch.zeros(())

    def forward(self, x, status):
        s = status
        if x.abs().max() > 3:
            s = status + 100
        self.status = s
        return x + 1


net = Net()
run = torch.compile(net, backend="eager")
status = torch.zeros(())
seen = []
for i in range(STEPS):
    run(batch(i), status)
    status.add_(1)
    thread = threading.Thread(target=lambda: seen.append(net.status.item()))
    thread.start()
    thread.join()
print(seen)
""",
    ),
    Program(
        "traced_lines_of_the_function",
        "sys.settrace",
        """
import sys


def f(x):
    if x.abs().max() > 3:
        x = x / 3
    return x + 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
events = []


def tracer(frame, event, arg):
    if frame.f_code.co_name == "f":
        events.append((event, sorted(frame.f_locals)))
    return tracer


sys.settrace(tracer)
f(batch(0))
sys.settrace(None)
print(events[-1])
""",
    ),
    Program(
        "locals_of_the_frame_in_a_traceback",
        "sys.settrace",
        """
import sys


def f(x, fail=False):
    y = x
    if x.abs().max() > 3:
        y = x / 3
    if fail:
        raise KeyError("asked for")
    return y + 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
try:
    x = batch(0)
    f(x, fail=True)
except KeyError:
    frame = sys.exc_info()[2].tb_next.tb_frame
    print(frame.f_locals["fail"], round(frame.f_locals["y"].sum().item(), 3))
""",
    ),
    Program(
        "signature_and_name_are_asked",
        "inspection",
        """
import inspect


def f(x):
    if x.sum() > 3:
        return x * 2
    return x * 3


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    print(round(run(batch(i)).sum().item(), 3))
print(inspect.signature(f), f.__code__.co_argcount, f.__name__)
""",
    ),
)

PROGRAMS = LATER + MODULES
