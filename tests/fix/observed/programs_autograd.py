"""What autograd, functorch, modes and dtypes show: saved tensors, hooks, second backwards, later modes."""

from __future__ import annotations

from observed_program import Program

LONGER = ({"STEPS": "9"},)

SAVED = (
    Program(
        "level_is_saved_and_updated_before_backward",
        "saved tensor",
        """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("level", torch.tensor(2.0))

    def forward(self, x):
        level = self.level.item()
        return x * self.w * level


net = Scale()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    y = run(batch(i)).sum()
    if STEPS > 4:
        net.level.mul_(0.9)
    try:
        y.backward()
        print(i, round(net.w.grad.sum().item(), 3))
    except RuntimeError:
        print(i, "no backward")
""",
        later=LONGER,
    ),
    Program(
        "scale_of_the_argument_is_overwritten",
        "saved tensor",
        """
def f(x, w, scale):
    s = scale.item()
    return (w * x * s).sum()


run = torch.compile(f, backend="eager")
w = nn.Parameter(torch.ones(3, 4))
scale = torch.tensor(1.0)
for i in range(STEPS):
    loss = run(batch(i), w, scale)
    if i >= 4:
        scale.fill_(i)
    try:
        loss.backward()
    except RuntimeError as error:
        print("failed")
    print(round(w.grad.sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "running_maximum_is_saved",
        "saved tensor",
        """
class Quant(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("amax", torch.tensor(1.0))

    def forward(self, x):
        return (x * self.w) / float(self.amax)


net = Quant()
run = torch.compile(net, backend="eager")
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(STEPS):
    x = batch(i)
    y = run(x)
    if i > 3:
        net.amax.copy_(x.abs().max())
    try:
        y.square().mean().backward()
        opt.step()
    except RuntimeError:
        print("skipped", i)
print(round(net.w.sum().item(), 5))
""",
        later=LONGER,
    ),
    Program(
        "number_logged_at_the_end_of_the_epoch",
        "written by the caller",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(0.0))
        self.history = None

    def forward(self, x):
        n = self.count.item()
        y = x * (n + 1)
        self.history = y, x + n
        return y


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    net.count += 1
    print([round(one.sum().item(), 3) for one in net.history])
""",
    ),
    Program(
        "number_kept_in_an_attribute",
        "written by the caller",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("loss_scale", torch.tensor(4.0))
        self.used = 0

    def forward(self, x):
        self.used = self.loss_scale.item()
        return x * self.used


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    net.loss_scale *= 2
    print(type(net.used).__name__, float(net.used))
""",
    ),
)

BACKWARD = (
    Program(
        "gradient_none_or_zero",
        "gradients",
        """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            return self.a(x)
        return self.b(x)


net = Two()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    net.zero_grad()
    run(batch(i)).sum().backward()
    print([name for name, p in net.named_parameters() if p.grad is not None])
""",
    ),
    Program(
        "weight_decay_of_a_branch_not_taken",
        "gradients",
        """
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.g = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = x * self.w
        if y.max() > 5:
            y = y * self.g
        return y


net = Gate()
run = torch.compile(net, backend="eager")
opt = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.5)
for i in range(STEPS):
    opt.zero_grad()
    run(batch(2 * i)).sum().backward()
    opt.step()
print([round(p.sum().item(), 4) for p in net.parameters()])
""",
    ),
    Program(
        "retained_graph_is_walked_again",
        "retain_graph",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        h = x * self.w
        if h.abs().max() > 4:
            h = h / 4
        self.h = h
        return h.exp().sum()


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    net.zero_grad()
    loss = run(batch(i) * 0.3)
    net.h.retain_grad()
    loss.backward(retain_graph=True)
    loss.backward()
    print(net.h.grad is not None, round(net.w.grad.sum().item(), 3))
""",
    ),
    Program(
        "node_of_what_was_computed",
        "hook on an intermediate",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        h = x * self.w
        if h.abs().max() > 4:
            h = h.clamp(-4, 4)
        self.h = h
        return h.sum()


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i)).backward()
    print(net.h.grad_fn is None, net.h.is_leaf, net.h.requires_grad)
""",
    ),
    Program(
        "hook_on_the_tensor_that_is_handed_on",
        "hook on an intermediate",
        """
SEEN = []


class Top(nn.Module):
    def forward(self, h):
        if h.abs().max() > 4:
            h = h * 0.5
        self.h = h
        return h.cos()


net = Top()
run = torch.compile(net, backend="eager")
w = nn.Parameter(torch.ones(4))
for i in range(STEPS):
    h = batch(i) * w
    y = run(h)
    net.h.register_hook(lambda g: SEEN.append(g.shape) or g * 2)
    (y.sum() + h.sum()).backward()
    print(len(SEEN), round(w.grad.sum().item(), 3))
""",
    ),
    Program(
        "retained_gradient_of_the_input",
        "hook on an intermediate",
        """
class Top(nn.Module):
    def forward(self, h):
        if h.mean() > 3:
            h = h - 3
        self.h = h
        return h * 2


net = Top()
run = torch.compile(net, backend="eager")
w = nn.Parameter(torch.ones(4))
for i in range(STEPS):
    h = batch(0) * w
    run(h)
    net.h.retain_grad()
    (h.sum() * 3).backward()
    print(None if net.h.grad is None else net.h.grad.sum().item())
""",
    ),
    Program(
        "second_derivative_at_a_kink",
        "double backward",
        """
def f(x):
    if x.norm() > 4:
        return (x**3).sum()
    return (x**2).sum() * 2


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    x = batch(i).requires_grad_()
    (g,) = torch.autograd.grad(run(x), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    print(round(g.sum().item(), 2), round(gg.sum().item(), 2))
""",
    ),
    Program(
        "second_derivative_of_a_root",
        "double backward",
        """
def f(x):
    n = x.square().sum()
    if n > 0:
        n = n.sqrt()
    return n


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    x = (batch(i) if i < 4 else torch.zeros(3, 4)).requires_grad_()
    (g,) = torch.autograd.grad(run(x), x, create_graph=True)
    print(torch.isnan(g).any().item(), round(g.sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "gradient_through_a_guarded_division",
        "double backward",
        """
class Div(nn.Module):
    def forward(self, x, d):
        if d.abs() > 1e-3:
            y = x / d
        else:
            y = x * 1
        return y.sum()


run = torch.compile(Div(), backend="eager")
for i in range(STEPS):
    x = batch(i).requires_grad_()
    d = torch.tensor(0.0 if i == 6 else 2.0, requires_grad=True)
    run(x, d).backward()
    print(x.grad.isnan().any().item(), d.grad)
""",
        later=LONGER,
    ),
    Program(
        "frozen_in_forward_then_thawed",
        "gradients",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4).requires_grad_(False)
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        self.layer.weight.requires_grad = False
        return self.head(self.layer(x))


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.layer.weight.requires_grad = True
    run(batch(i)).sum().backward()
    print(net.layer.weight.requires_grad, net.layer.weight.grad is None)
""",
        later=LONGER,
    ),
)

FUNCTORCH = (
    Program(
        "vmap_around_the_compiled_function",
        "functorch",
        """
def f(x):
    if x.sum() > 3:
        return x * 2
    return x * 3


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
try:
    print(torch.vmap(f)(batch(1)).sum().item() != 0)
except RuntimeError:
    print("no vmap over a branch")
""",
    ),
    Program(
        "vmap_only_later",
        "functorch",
        """
def f(x):
    y = x + 1
    if x.dim() == 2 and y.max() > 4:
        y = y.clamp(max=4)
    return y * 2


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    y = run(batch(i)) if i < 4 else torch.vmap(f)(batch(i))
    print(y.shape, round(y.sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "functional_gradient_around",
        "functorch",
        """
def loss(w, x):
    y = x * w
    if y.abs().max() > 3:
        y = y / 3
    return y.square().sum()


run = torch.compile(loss, backend="eager")
w = torch.ones(4)
for i in range(STEPS):
    run(w, batch(i))
    print(round(torch.func.grad(loss)(w, batch(i)).sum().item(), 3))
""",
    ),
    Program(
        "jacobian_of_a_read_number",
        "functorch",
        """
def f(x):
    return x * x.max().item()


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    x = batch(i, 3)
    run(x)
    try:
        print(torch.func.jacrev(f)(x).sum().item())
    except RuntimeError:
        print("a number cannot be read there")
""",
    ),
    Program(
        "forward_mode_through_a_branch",
        "functorch",
        """
import torch.autograd.forward_ad as fwd


def f(x):
    if x.max() > 3:
        return x.sin()
    return x.cos()


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
    with fwd.dual_level():
        y = f(fwd.make_dual(batch(i), torch.ones(3, 4)))
        print(round(fwd.unpack_dual(y).tangent.sum().item(), 3))
""",
    ),
    Program(
        "functional_call_with_other_parameters",
        "functorch",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.last = []

    def forward(self, x):
        w = self.w
        if x.abs().max() > 3:
            w = w * 0.5
        self.last = [w]
        return x * w


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
    other = {"w": torch.full((4,), 2.0)}
    torch.func.functional_call(net, other, batch(0))
    print(net.last[0] is other["w"], net.last[0] is net.w)
""",
    ),
)

LATER_MODES = (
    Program(
        "autocast_entered_between_calls",
        "autocast between calls",
        limit="autocast",
        body="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        if x.abs().max() > 3:
            y = x * 1
        return y


net = Net().requires_grad_(False)
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=i >= 4):
        print(run(batch(i)).dtype)
""",
        later=LONGER,
    ),
    Program(
        "number_meets_half_under_autocast",
        "autocast between calls",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.lin(x) * x.max().item()


net = Net().requires_grad_(False)
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=i >= 4):
        y = run(batch(i))
    print(y.dtype, round(y.float().sum().item(), 4))
""",
        later=LONGER,
    ),
    Program(
        "default_dtype_becomes_double",
        "default dtype changed later",
        """
def f(x):
    y = torch.zeros(3, 4)
    if x.sum() > 1:
        y = torch.ones(3, 4)
    return x.float() + 1, y * 2


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    if i == 5:
        torch.set_default_dtype(torch.float64)
    a, b = run(batch(i))
    print(a.dtype, b.dtype, b.sum().item())
""",
        later=LONGER,
    ),
    Program(
        "number_in_double_later",
        "default dtype changed later",
        """
def f(x, n):
    return x * n.item() + n.item()


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    n = torch.tensor(i + 0.1)
    if i >= 4:
        n = n.double()
    y = run(batch(i), n)
    print(y.dtype, round(y.sum().item(), 3))
""",
        later=LONGER,
    ),
    Program(
        "half_model_later",
        "default dtype changed later",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4), requires_grad=False)
        self.register_buffer("s", torch.tensor(3.0))

    def forward(self, x):
        return x.to(self.w.dtype) * self.s.item()


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    if i == 5:
        net.half()
        net.s = net.s.float()
    y = run(batch(i))
    print(y.dtype, y.float().sum().item())
""",
        later=LONGER,
    ),
    Program(
        "default_device_becomes_meta",
        "default device changed later",
        """
def f(x):
    y = x * 2
    if x.device.type == "cpu":
        if y.max() > 3:
            y = y - 3
    return y


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    if i == 6:
        torch.set_default_device("meta")
    x = torch.ones(3, 4) * i
    print(run(x).device, run(x).shape)
""",
        later=LONGER,
    ),
)

PROGRAMS = SAVED + BACKWARD + FUNCTORCH + LATER_MODES
