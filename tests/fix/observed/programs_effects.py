"""What Python did, and what listens: effects before an exception, modes left entered, messages."""

from __future__ import annotations

from observed_program import Program

LONGER = ({"STEPS": "9"},)

BEFORE_AN_EXCEPTION = (
    Program(
        "sizes_appended_before_the_check",
        "effect before an exception",
        """
from net import Net

net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    if i == 2:
        x[0, 0] = float("nan")
    try:
        run(x)
    except RuntimeError:
        print("skipped", i)
print(net.sizes)
""",
        beside={
            "net.py": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        self.sizes.append(x.shape[0])
        if x.isnan().any():
            raise RuntimeError("NaN in the batch")
        return x * 2
"""
        },
    ),
    Program(
        "metrics_count_calls_that_fail_later",
        "effect before an exception",
        """
import net

run = torch.compile(net.step, backend="eager")
for i in range(STEPS):
    x = batch(2 * i)
    if i == 6:
        x = x * 1000
    try:
        run(x)
    except AssertionError:
        print("too large")
    except RuntimeError:
        print("too large at run time")
print(net.METRICS)
""",
        later=LONGER,
        beside={
            "net.py": """
METRICS = {"calls": 0}


def step(x):
    METRICS["calls"] += 1
    assert x.abs().max().item() <= 100
    return x + 1
"""
        },
    ),
    Program(
        "list_of_the_caller_says_started",
        "effect before an exception",
        """
import net

run = torch.compile(net.checked, backend="eager")
for i in range(STEPS):
    out = []
    x = batch(0) if i != 5 else batch(0) * float("inf")
    try:
        run(x, out)
    except RuntimeError as error:
        print(type(error).__name__)
    print(out)
""",
        later=LONGER,
        beside={
            "net.py": """
def checked(x, out):
    out.append("started")
    if not x.isfinite().all():
        raise RuntimeError("not finite")
    out.append("done")
    return x.exp()
"""
        },
    ),
    Program(
        "attribute_set_before_the_raise",
        "effect before an exception",
        """
from net import Net

net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    try:
        run(batch(0) + (10 if i == 7 else 0), i)
    except AssertionError as error:
        print("assertion", error)
    except RuntimeError as error:
        print("runtime")
    print(net.at)
""",
        later=LONGER,
        beside={
            "net.py": """
class Net(nn.Module):
    at = None

    def forward(self, x, i):
        self.at = f"batch {i}"
        assert x.max() < 5, "large"
        return x.cos()
"""
        },
    ),
    Program(
        "buffer_written_before_the_check",
        "effect before an exception",
        """
from net import Net

net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    try:
        run(batch(2 * i) if i < 5 else batch(0) / 0)
    except RuntimeError:
        pass
print(int(net.calls))
""",
        later=LONGER,
        beside={
            "net.py": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        if x.isnan().any() or x.isinf().any():
            raise RuntimeError("bad")
        return x
"""
        },
    ),
    Program(
        "optimizer_state_after_a_caught_check",
        "effect before an exception",
        """
from net import Net

net = Net()
run = torch.compile(net, backend="eager")
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for i in range(STEPS):
    opt.zero_grad()
    x = batch(0) if i != 4 else batch(0) * 1e6
    try:
        run(x).sum().backward()
        opt.step()
    except RuntimeError:
        net.skipped.append(i)
print(net.skipped, net.seen, round(net.w.sum().item(), 4))
""",
        later=({"STEPS": "7"},),
        beside={
            "net.py": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.skipped, self.seen = [], 0

    def forward(self, x):
        self.seen += 1
        y = x * self.w
        if y.abs().max() > 1e4:
            raise RuntimeError("overflow")
        return y
"""
        },
    ),
    Program(
        "message_of_the_exception_is_shown",
        "caught in another module",
        """
import net

run = torch.compile(net.f, backend="eager")
for i in range(STEPS):
    try:
        run(batch(0) - (9 if i == 5 else 0))
    except RuntimeError as error:
        print("failed:", str(error).splitlines()[0])
print("end")
""",
        later=LONGER,
        beside={
            "net.py": """
def f(x):
    if x.sum() < -50:
        raise RuntimeError("the sum is too small")
    return x.sin()
"""
        },
    ),
    Program(
        "type_of_the_exception_decides",
        "caught in another module",
        """
import net

run = torch.compile(net.f, backend="eager")
for i in range(STEPS):
    try:
        run(batch(0) - (9 if i == 5 else 0))
    except ValueError:
        print("value")
    except RuntimeError:
        print("runtime")
print("end")
""",
        later=LONGER,
        beside={
            "net.py": """
def f(x):
    if x.sum() < -50:
        raise ValueError("too small")
    return x.sin()
"""
        },
    ),
    Program(
        "assertion_error_is_waited_for",
        "caught in another module",
        """
import net

run = torch.compile(net.f, backend="eager")
for i in range(STEPS):
    try:
        print(run(batch(0) * (50 if i == 4 else 1)).shape)
    except AssertionError as error:
        print("assertion", [str(one) for one in error.args])
""",
        later=LONGER,
        beside={
            "net.py": """
def f(x):
    assert x.abs().max().item() <= 5, "out of range"
    return x.tan()
"""
        },
    ),
    Program(
        "retry_after_a_check_that_counted",
        "effect before an exception",
        """
import net

run = torch.compile(net.attempt, backend="eager")
for i in range(STEPS):
    x = batch(0) + (20 if i == 5 else 0)
    while True:
        try:
            y = run(x)
            break
        except RuntimeError:
            x = x - 6
    print(i, net.TRIES)
""",
        later=LONGER,
        beside={
            "net.py": """
TRIES = [0]


def attempt(x):
    TRIES[0] += 1
    if x.max() > 10:
        raise RuntimeError("large")
    return x * 3
"""
        },
    ),
    Program(
        "dashed_out_by_python_o",
        "assertion",
        """
net = nn.Linear(4, 4)


def f(x):
    assert x.max().item() < 1e3, "large"
    return net(x)


run = torch.compile(f, backend="eager")
print(__debug__)
for i in range(STEPS):
    print(round(run(batch(i)).sum().item(), 3))
try:
    run(batch(1) * 1e6)
except (AssertionError, RuntimeError) as error:
    print(type(error).__name__)
""",
    ),
)

MODES = (
    Program(
        "no_grad_left_entered_by_a_check",
        "mode left entered",
        """
import net

model = net.Net()
run = torch.compile(model, backend="eager")
for i in range(STEPS):
    x = batch(2 * i) if i != 5 else batch(0) / 0
    try:
        y = run(x)
        print(i, y.requires_grad, torch.is_grad_enabled())
    except RuntimeError:
        print(i, "bad", torch.is_grad_enabled())
""",
        later=LONGER,
        beside={
            "net.py": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            y = x * 2
            if y.isnan().any():
                raise RuntimeError("NaN")
        return y * self.w
"""
        },
    ),
    Program(
        "no_grad_around_a_called_check",
        "mode left entered",
        """
import net

model = net.Net()
run = torch.compile(model, backend="eager")
for i in range(STEPS):
    try:
        run(batch(2 * i) if i != 5 else batch(0) + 50)
    except Exception as error:
        print(type(error).__name__)
    print(i, torch.is_grad_enabled())
""",
        later=LONGER,
        beside={
            "net.py": """
def check(x):
    if x.max() > 9:
        raise RuntimeError("large")
    return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.no_grad():
            x = check(x)
        return x * self.w
"""
        },
    ),
    Program(
        "autocast_left_entered_by_a_check",
        "mode left entered",
        """
import net

model = net.Net()
run = torch.compile(model, backend="eager")
for i in range(STEPS):
    try:
        run(batch(2 * i) if i != 5 else batch(0) + 5000)
    except RuntimeError:
        print("bad")
    print(torch.is_autocast_enabled("cpu"), (torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
""",
        later=LONGER,
        beside={
            "net.py": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.lin(x)
            if y.abs().max() > 1000:
                raise RuntimeError("overflow")
        return y.float()
"""
        },
    ),
    Program(
        "mode_entered_by_the_caller_in_another_module",
        "mode left entered",
        """
import net

net.model = torch.compile(net.Net(), backend="eager")
for i in range(STEPS):
    print(i, net.evaluate(batch(2 * i) if i != 5 else batch(0) - 30), torch.is_grad_enabled())
""",
        later=LONGER,
        beside={
            "net.py": """
class Net(nn.Module):
    def forward(self, x):
        self.last = tuple(x.shape)
        if x.min() < -20:
            raise RuntimeError("small")
        return x.sum()


def evaluate(x):
    with torch.no_grad():
        return round(float(score(x)), 3)


def score(x):
    return guarded(x)


def guarded(x):
    import runner

    return runner.run(model, x)
""",
            "runner.py": """
def run(model, x):
    try:
        return model(x)
    except RuntimeError:
        return -1.0
""",
        },
    ),
    Program(
        "enable_grad_inside_no_grad",
        "mode left entered",
        """
import net

run = torch.compile(net.energy, backend="eager")
with torch.no_grad():
    for i in range(STEPS):
        try:
            run(batch(2 * i) if i != 5 else batch(0) * 1e5)
        except (AssertionError, RuntimeError):
            print("bad")
        print(i, torch.is_grad_enabled(), (torch.ones(1, requires_grad=True) * 2).requires_grad)
""",
        later=LONGER,
        beside={
            "net.py": """
def energy(x):
    with torch.enable_grad():
        y = x.square().sum()
        assert y.item() < 1e6
    return y
"""
        },
    ),
    Program(
        "default_dtype_changed_before_the_check",
        "mode left entered",
        """
import net

run = torch.compile(net.f, backend="eager")
for i in range(STEPS):
    try:
        run(batch(2 * i) if i != 5 else batch(0) + 100)
    except RuntimeError:
        print("bad", net.STATE)
    net.STATE["depth"] -= 1
print(net.STATE)
""",
        later=LONGER,
        beside={
            "net.py": """
STATE = {"depth": 0}


def f(x):
    STATE["depth"] += 1
    if x.mean() > 50:
        raise RuntimeError("large")
    return x * STATE["depth"]
"""
        },
    ),
    Program(
        "inference_mode_of_the_caller",
        "inference_mode",
        """
class Net(nn.Module):
    def forward(self, x):
        if x.abs().max() > 3:
            x = x / 2
        self.kept = x
        return x + 1


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    x = batch(i)
    if i >= 4:
        with torch.inference_mode():
            run(x)
    else:
        run(x)
    print(net.kept.is_inference(), net.kept is x)
""",
        later=LONGER,
    ),
)

LISTENERS = (
    Program(
        "warnings_are_caught_and_counted",
        "listener of messages",
        """
import warnings


def f(x):
    if x.shape[0] > 2:
        warnings.warn("many rows")
    return x * 2


run = torch.compile(f, backend="eager")
count = 0
for i in range(STEPS):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(batch(i))
    count += sum("many rows" in str(one.message) for one in caught)
print(count)
""",
    ),
    Program(
        "handler_of_the_script_collects",
        "listener of messages",
        """
import logging

LOG = logging.getLogger("net")


class Collect(logging.Handler):
    texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


LOG.addHandler(Collect())
LOG.propagate = False


class Net(nn.Module):
    def forward(self, x):
        LOG.warning("rows %d", x.shape[0])
        return x.relu()


run = torch.compile(Net(), backend="eager")
for i in range(STEPS):
    run(batch(i))
print(Collect.texts)
""",
    ),
    Program(
        "filter_of_a_logger_counts",
        "listener of messages",
        """
import logging

LOG = logging.getLogger("counted")
seen = []
LOG.addFilter(lambda record: bool(seen.append(record.msg)))


def f(x):
    LOG.warning("called")
    return x + 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(len(seen))
""",
    ),
    Program(
        "warnings_are_errors_and_caught_elsewhere",
        "warning made an error",
        """
import warnings

import net

run = torch.compile(net.f, backend="eager")
with warnings.catch_warnings():
    warnings.simplefilter("error" if STEPS > 4 else "ignore", UserWarning)
    for i in range(STEPS):
        try:
            print(i, run(batch(i)).shape[0])
        except UserWarning as error:
            print(i, "refused:", error)
""",
        later=LONGER,
        beside={
            "net.py": """
import warnings


def f(x):
    warnings.warn("deprecated call")
    return x[:1] * 2
"""
        },
    ),
    Program(
        "warnings_are_counted_later",
        "listener of messages",
        """
import warnings

shown = []
if STEPS > 4:
    warnings.showwarning = lambda message, *rest: shown.append(str(message))
    warnings.simplefilter("always")
else:
    warnings.simplefilter("ignore")


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        warnings.warn("a step was made")
        return y


run = torch.compile(Net(), backend="eager")
for i in range(STEPS):
    run(batch(i))
print(len([one for one in shown if "step" in one]))
""",
        later=LONGER,
    ),
    Program(
        "redirected_stdout_is_read_back",
        "listener of messages",
        """
import contextlib
import io


def f(x):
    print("rows", x.shape[0])
    return x.sum()


run = torch.compile(f, backend="eager")
lines = 0
for i in range(STEPS):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run(batch(i))
    lines += out.getvalue().count("rows")
print(lines)
""",
    ),
    Program(
        "message_consumes_a_generator",
        "listener of messages",
        """
import logging

LOG = logging.getLogger("feed")
LOG.feed = iter("abcdefgh")


def f(x):
    LOG.warning("next %s", next(LOG.feed))
    return x + 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(list(LOG.feed))
""",
    ),
    Program(
        "message_joins_a_stream",
        "listener of messages",
        """
import warnings

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.notes = iter(["a", "b", "c"])

    def forward(self, x):
        warnings.warn(", ".join(self.notes))
        return x * 3


net = Net()
run = torch.compile(net, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(list(net.notes))
""",
    ),
    Program(
        "text_of_an_object_counts",
        "listener of messages",
        """
import logging

LOG = logging.getLogger("lazy")
LOG.setLevel(logging.ERROR)


class Lazy:
    shown = 0

    def __str__(self):
        Lazy.shown += 1
        return "lazy"


LAZY = Lazy()


def f(x):
    LOG.error("state %s", LAZY)
    return x.exp()


logging.disable(logging.CRITICAL if STEPS <= 4 else logging.NOTSET)
run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(Lazy.shown)
""",
        later=LONGER,
    ),
    Program(
        "print_is_replaced_by_a_counter",
        "listener of messages",
        """
import builtins

real, calls = print, []
if STEPS > 4:
    builtins.print = lambda *values, **more: calls.append(values)


def f(x):
    print("step")
    return x * 2


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
builtins.print = real
print(len(calls))
""",
        later=LONGER,
    ),
    Program(
        "stderr_is_swapped_for_a_buffer",
        "listener of messages",
        """
import io
import logging
import sys

LOG = logging.getLogger("steps")
buffer = io.StringIO()
LOG.addHandler(logging.StreamHandler(buffer if STEPS > 4 else open(os.devnull, "w")))
LOG.propagate = False


def f(x):
    LOG.warning("one more")
    return x - 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(buffer.getvalue().count("more"))
""",
        later=LONGER,
    ),
    Program(
        "written_once_by_design_and_asked",
        "listener of messages",
        """
import functools
import logging

LOG = logging.getLogger("once")


@functools.lru_cache(None)
def warning_once(message):
    LOG.warning(message)


LOG.warning_once = warning_once


def f(x):
    LOG.warning_once("tell it once")
    return x.abs()


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
info = warning_once.cache_info()
print(info.misses, info.hits > 0)
""",
    ),
    Program(
        "message_in_a_branch_that_comes_later",
        "listener of messages",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 6:
            print("sixth call")
        return x + 1


run = torch.compile(Net(), backend="eager")
for i in range(STEPS):
    run(batch(i))
print("end")
""",
        later=LONGER,
    ),
)

PROGRAMS = BEFORE_AN_EXCEPTION + MODES + LISTENERS
