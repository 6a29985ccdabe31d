"""Observers that no search of the source finds: names put together, modules loaded later, hooks of Python itself."""

from __future__ import annotations

from observed_program import Program

LONGER = ({"STEPS": "9"},)
KEEPER = """
class Keep(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = None

    def forward(self, x):
        if x.abs().max() > 2.5:
            x = x.clamp(-2.5, 2.5)
        self.seen = x
        return x.cos()


net = Keep()
run = torch.compile(net, backend="eager")
"""
CHECKED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, x):
        self.sizes.append(x.shape[0])
        if x.isnan().any():
            raise RuntimeError("NaN")
        return x * 2


net = Net()
run = torch.compile(net, backend="eager")


def given(i):
    return batch(i) if i != 6 else batch(i) / 0 * 0
"""


def keeps(name: str, main: str, **more: object) -> Program:
    return Program(name, "hidden observer", KEEPER + main, later=LONGER, **more)  # type: ignore[arg-type]


def checks(name: str, main: str, **more: object) -> Program:
    return Program(name, "hidden catcher", CHECKED + main, later=LONGER, **more)  # type: ignore[arg-type]


def says(name: str, body: str) -> Program:
    return Program(name, "hidden listener", body, later=LONGER)


OBSERVERS = (
    keeps(
        "name_put_together_from_pieces",
        """
for i in range(STEPS):
    x = batch(i)
    run(x)
    print(i, getattr(net, "se" + "en") is x)
""",
    ),
    keeps(
        "all_attributes_are_walked",
        """
for i in range(STEPS):
    x = batch(i)
    run(x)
    print(i, sum(value is x for value in vars(net).values()))
""",
    ),
    keeps(
        "module_that_is_imported_later",
        """
import importlib

for i in range(STEPS):
    x = batch(i)
    run(x)
    if i >= 5:
        print(importlib.import_module("audit").same(net, x))
print("end")
""",
        beside={"audit.py": "\ndef same(net, x):\n    return net.seen is x\n"},
    ),
    keeps(
        "expression_that_is_evaluated",
        """
for i in range(STEPS):
    x = batch(i)
    run(x)
    print(eval(os.environ.get("ASK", "'nothing'")))
""".replace("for i", 'if STEPS > 4:\n    os.environ["ASK"] = "net.se" + "en is x"\nfor i'),
    ),
    keeps(
        "who_refers_to_the_input",
        """
import gc

for i in range(STEPS):
    x = batch(i)
    run(x)
    print(i, any(one is net.__dict__ for one in gc.get_referrers(x)))
""",
    ),
    keeps(
        "reference_of_the_loop_variable_dies",
        """
import weakref

for i in range(STEPS):
    x = batch(i)
    last = weakref.ref(x)
    run(x)
    del x
    print(i, last() is not None)
""",
    ),
    keeps(
        "in_place_through_an_older_name",
        """
pool = [batch(i) for i in range(STEPS)]
for i, x in enumerate(pool):
    run(x)
    torch._foreach_add_(pool, 1.0)
    print(i, round(float(sum(v.sum() for v in vars(net).values() if isinstance(v, torch.Tensor))), 3))
""",
    ),
    keeps(
        "numpy_view_of_the_input",
        """
for i in range(STEPS):
    x = batch(i)
    view = x.numpy()
    run(x)
    view[:] = i
    print(i, [round(v, 3) for v in vars(net)["seen"][0].tolist()])
""",
    ),
)

CATCHERS = (
    checks(
        "class_whose_exit_swallows",
        """
class Step:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is RuntimeError


for i in range(STEPS):
    with Step():
        run(given(i))
    print(i, len(net.sizes))
""",
    ),
    checks(
        "decorator_from_a_module_imported_later",
        """
import importlib

step = run
if STEPS > 4:
    step = importlib.import_module("again").patient(run)
for i in range(STEPS):
    step(given(i))
    print(i, len(net.sizes))
""",
        beside={
            "again.py": """
def patient(f):
    def call(x):
        try:
            return f(x)
        except RuntimeError:
            return None

    return call
"""
        },
    ),
    checks(
        "future_of_a_thread_pool",
        """
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(1) as pool:
    for i in range(STEPS):
        future = pool.submit(run, given(i))
        print(i, future.exception() is None, len(net.sizes))
""",
    ),
    checks(
        "exception_hook_reads_the_state",
        """
import sys


def hook(kind, error, trace):
    print("ended:", kind.__name__, len(net.sizes))


sys.excepthook = hook
for i in range(STEPS):
    run(given(i))
print("end", len(net.sizes))
""",
    ),
    checks(
        "state_is_written_at_exit",
        """
import atexit

atexit.register(lambda: print("at exit", len(net.sizes), torch.is_grad_enabled()))
for i in range(STEPS):
    run(given(i))
""",
    ),
    checks(
        "coroutine_that_gathers",
        """
import asyncio


async def step(i):
    return run(given(i))


async def steps():
    results = await asyncio.gather(*(step(i) for i in range(STEPS)), return_exceptions=True)
    print([type(one).__name__ for one in results], len(net.sizes))


asyncio.run(steps())
""",
    ),
)

LISTENERS = (
    says(
        "factory_of_log_records",
        """
import logging

LOG = logging.getLogger("once")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())
made = []
plain = logging.getLogRecordFactory()


def factory(*args, **more):
    made.append(args[0])
    return plain(*args, **more)


if STEPS > 4:
    logging.setLogRecordFactory(factory)


class Net(nn.Module):
    def forward(self, x):
        LOG.warning("rows")
        return x + 1


run = torch.compile(Net(), backend="eager")
for i in range(STEPS):
    run(batch(i))
print(made.count("once"))
""",
    ),
    says(
        "registry_of_warnings",
        """
import warnings

warnings.simplefilter("ignore")


def f(x):
    warnings.warn("old form")
    return x.relu()


run = torch.compile(f, backend="eager")
if STEPS > 4:
    warnings.filters.insert(0, ("error", None, UserWarning, None, 0))
for i in range(STEPS):
    try:
        run(batch(i))
        print(i)
    except Warning as error:
        print(i, error)
""",
    ),
    says(
        "tee_in_the_place_of_stdout",
        """
import sys


class Tee:
    lines = 0

    def __init__(self, to):
        self.to = to

    def write(self, text):
        Tee.lines += text.count("\\n")
        return self.to.write(text)

    def flush(self):
        self.to.flush()


sys.stdout = Tee(sys.stdout)


def f(x):
    print(end="")
    print("", end="")
    return x * 2


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(Tee.lines)
""",
    ),
    says(
        "audit_hook_of_python",
        """
import logging
import sys

LOG = logging.getLogger("audited")
LOG.propagate = False
seen = []


class Stream:
    def write(self, text):
        sys.audit("told", text)


LOG.addHandler(logging.StreamHandler(Stream()))
if STEPS > 4:
    sys.addaudithook(lambda event, args: seen.append(args) if event == "told" else None)


def f(x):
    LOG.error("a step")
    return x - 1


run = torch.compile(f, backend="eager")
for i in range(STEPS):
    run(batch(i))
print(len([one for one in seen if "step" in one[0]]))
""",
    ),
)

PROGRAMS = OBSERVERS + CATCHERS + LISTENERS
