"""Harmless twins: the same shapes of code, and nothing that observes. A proof that refuses these refuses everything."""

from __future__ import annotations

from observed_program import Program

LONGER = ({"STEPS": "9"},)
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("level", torch.tensor(2.0))

"""
TRAIN = """

net = Net()
run = torch.compile(net, backend="eager")
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(STEPS):
    opt.zero_grad()
    loss = run(batch(i)).square().mean()
    loss.backward()
    opt.step()
    print(round(loss.item(), 5))
"""
CALL = """

net = Net().requires_grad_(False)
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    print(i, [round(v, 4) for v in run(batch(i)).flatten().tolist()[:4]])
"""


def module(name: str, forward: str, main: str = CALL, **more: object) -> Program:
    lines = "".join(f"    {line}\n" if line else "\n" for line in forward.strip("\n").splitlines())
    return Program(name, "harmless", NET + lines + main, harmless=True, later=LONGER, **more)  # type: ignore[arg-type]


def function(name: str, source: str, main: str = "") -> Program:
    main = main or (
        '\n\nrun = torch.compile(f, backend="eager")\nfor i in range(STEPS):\n'
        "    print(i, round(run(batch(i)).sum().item(), 4))\n"
    )
    return Program(name, "harmless", source.rstrip() + main, harmless=True, later=LONGER)


PROGRAMS = (
    module(
        "clipped_value_is_only_computed_with",
        """
def forward(self, x):
    if x.abs().max() > 2.5:
        x = x.clamp(-2.5, 2.5)
    return self.lin(x).relu()
""",
    ),
    module(
        "overflow_check_of_a_hidden_state",
        """
def forward(self, x):
    h = self.lin(x)
    if h.isinf().any() or h.isnan().any():
        limit = torch.finfo(h.dtype).max - 1000
        h = torch.clamp(h, min=-limit, max=limit)
    return h
""",
    ),
    module(
        "overflow_check_while_training",
        """
def forward(self, x):
    h = self.lin(x)
    if h.isinf().any() or h.isnan().any():
        h = torch.clamp(h, min=-1e4, max=1e4)
    return h * self.w
""",
        TRAIN,
    ),
    module(
        "both_sides_are_new_tensors",
        """
def forward(self, x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x * 3
    return y + 1
""",
    ),
    module(
        "attribute_gets_a_new_tensor_either_way",
        """
def forward(self, x):
    y = x + 1
    if x.max() > 3:
        y = y.clamp(max=3)
    self.sum = y.sum()
    return y * self.sum
""",
    ),
    module(
        "returned_value_is_new_either_way",
        """
def forward(self, x):
    if x.abs().max() > 3:
        return x / 3
    return x * 1
""",
    ),
    module(
        "number_of_a_constant_buffer",
        """
def forward(self, x):
    return x * self.level.item()
""",
    ),
    module(
        "ternary_of_two_products",
        """
def forward(self, x):
    y = x * 2 if x.mean() > 0.5 else x * 0.5
    return y.cos()
""",
    ),
    module(
        "check_of_an_uncaught_error",
        """
def forward(self, x):
    y = self.lin(x)
    if y.isnan().any():
        raise RuntimeError("NaN in the activations")
    return y
""",
    ),
    module(
        "assertion_that_nobody_catches",
        """
def forward(self, x):
    assert x.abs().max().item() <= 1e6
    return self.lin(x)
""",
    ),
    module(
        "frozen_as_it_was",
        """
def forward(self, x):
    x = x * 2
    self.w.requires_grad = False
    return x * self.w
""",
    ),
    function(
        "sum_of_a_mask",
        """
def f(x):
    return x[x > 0].sum()
""",
    ),
    function(
        "masked_write_into_an_own_copy",
        """
def f(x):
    y = x.clone()
    m = y > 1
    y[m] = y[m] * 0.5
    return y * 2
""",
    ),
    function(
        "loop_that_is_left_early",
        """
def f(x):
    y = x * 1
    for _ in range(4):
        y = y * 0.5
        if y.abs().max() < 1:
            break
    return y
""",
    ),
    function(
        "both_conditions_are_tensors",
        """
def f(x):
    ok = (x > -9).all() and (x < 9).all()
    return torch.where(ok, x, x.clamp(-9, 9))
""",
    ),
    function(
        "classes_of_an_arange",
        """
def f(x):
    return F.one_hot(torch.arange(4)).float() @ x.t()
""",
    ),
    function(
        "power_by_the_builtin",
        """
def f(x):
    return pow(x, 2)
""",
    ),
    function(
        "warning_that_is_ignored",
        """
import warnings

warnings.filterwarnings("ignore")


def f(x):
    warnings.warn("tell it once")
    return x.abs()
""",
    ),
)
