"""Who could tell what a rewrite changes for others: found in the user's own source, and named."""

from __future__ import annotations

import pytest

from breakscope.fix.observers import Observers

FILE = "net.py"


def observers(text: str) -> Observers:
    return Observers({FILE: text})


@pytest.mark.parametrize(
    "use",
    [
        "y = self.inv.float() @ x",
        "y = x * self.inv[None, :, None].expand(2, -1, 1)",
        "print(self.inv.shape, self.inv.dtype)",
        "if self.inv is None:\n        pass",
        "scale = self.inv.to(x.device)\n    y = scale * x",
        "y = torch.exp(self.inv) + 1",
        "self.register_buffer('inv', self.other, persistent=False)",
        "self.inv = self.inv.to(x.device)",
        "total = self.inv.sum().item()",
    ],
)
def test_what_only_computes_cannot_tell_a_copy(use: str) -> None:
    found = observers(f"def f(self, x):\n    {use}\n")
    assert found.of_objects(["self._buffers['inv']", "self.other"], [FILE]) is None


@pytest.mark.parametrize(
    "use",
    [
        "same = self.inv is x",
        "seen.add(id(self.inv))",
        "self.inv.mul_(2)",
        "self.inv += 1",
        "self.inv[0] = 1",
        "return self.inv",
        "keep = self.inv\n    keep.zero_()",
        "kept.append(self.inv)",
        "where = self.inv.data_ptr()",
        "helper(self.inv)",
        "self.inv.tag = 1",
        "y = getattr(self, 'inv')",
        "y = self.inv in seen",
    ],
)
def test_what_may_tell_is_named_with_its_place(use: str) -> None:
    found = observers(f"def f(self, x):\n    {use}\n").of_objects(["self.inv", "self.other"], [FILE])
    assert found is not None
    assert FILE in found


def test_an_argument_has_holders_that_no_name_leads_to() -> None:
    assert observers("").of_objects(["self.seen", "x"], [FILE]) == "whoever holds `x`"


def test_items_of_containers_have_holders_too() -> None:
    assert (
        observers("").of_objects(["self.items[0]", "self.other"], [FILE]) == "whoever holds `self.items[0]`"
    )


def test_what_sees_all_buffers_sees_a_buffer() -> None:
    text = "for one in net.buffers():\n    one.zero_()\n"
    found = observers(text).of_objects(["self._buffers['inv']", "self.other"], [FILE])
    assert found is not None
    assert "all buffers" in found


CALLERS = """
def plain(x):
    return f(x)

def caught(x):
    try:
        y = f(x)
    except ValueError:
        y = x
    return y

def finished(x):
    try:
        return f(x)
    finally:
        print("over")

def suppressed(x):
    with contextlib.suppress(ValueError):
        return f(x)

class Guarded:
    def __exit__(self, *error):
        return True

def own(x):
    with Guarded():
        return f(x)

def harmless(x):
    with torch.no_grad(), open("log") as log:
        return f(x)

def handler(x):
    try:
        y = 1
    except ValueError:
        y = f(x)
    return y

collected = contextvars.ContextVar("collected")
counted = Counter()

def taken_back(x):
    token = collected.set([])
    try:
        return f(x)
    finally:
        collected.reset(token)

def counts(x):
    token = counted.set([])
    try:
        return f(x)
    finally:
        counted.reset(token)

def takes_back_more(x):
    token = collected.set([])
    try:
        return f(x)
    finally:
        collected.reset(token)
        print("over")

def waits_too(x):
    token = collected.set([])
    try:
        return f(x)
    except ValueError:
        return x
    finally:
        collected.reset(token)

def restored(self, x, mode):
    if mode is not None:
        had = hasattr(self, "mode")
        if had:
            saved = self.mode
        self.mode = mode
    try:
        return f(x)
    finally:
        if mode is not None:
            if had:
                self.mode = saved
            else:
                del self.mode

def leaves_a_trace(self, x):
    self.failed = True
    try:
        return f(x)
    finally:
        self.failed = over

def saves_another(self, x):
    saved = self.mode
    saved = x
    try:
        return f(x)
    finally:
        self.mode = saved

def deletes(self, x):
    self.mode = 1
    try:
        return f(x)
    finally:
        del self.mode
"""


@pytest.mark.parametrize(
    ("function", "line"),
    [
        ("caught", 7),
        ("finished", 14),
        ("suppressed", 20),
        ("own", 28),
        ("counts", 54),
        ("takes_back_more", 61),
        ("waits_too", 69),
        ("leaves_a_trace", 93),
        ("saves_another", 101),
        ("deletes", 108),
    ],
)
def test_callers_that_wait_for_an_exception_are_found(function: str, line: int) -> None:
    assert "f(x)" in CALLERS.splitlines()[line - 1]
    found = observers(CALLERS).catching([(FILE, line)])
    assert found is not None, function
    assert FILE in found


@pytest.mark.parametrize(
    ("function", "line"), [("plain", 3), ("harmless", 32), ("handler", 38), ("taken_back", 47)]
)
def test_other_callers_are_not(function: str, line: int) -> None:
    assert "f(x)" in CALLERS.splitlines()[line - 1]
    assert observers(CALLERS).catching([(FILE, line)]) is None, function


@pytest.mark.parametrize(
    "text",
    [
        "with warnings.catch_warnings(record=True) as caught:\n    pass",
        "warnings.simplefilter('error')",
        "warnings.filterwarnings('error', category=UserWarning)",
        "warnings.simplefilter('error' if STRICT else 'ignore')",
        "class Counter(logging.Handler):\n    pass",
        "class Drop(logging.Filter):\n    pass",
        "warnings.showwarning = note",
        "logging.captureWarnings(True)",
        "LOG.warning_once = mine",
        "with contextlib.redirect_stderr(text):\n    pass",
    ],
)
def test_listeners_are_found(text: str) -> None:
    assert observers(text).listening([FILE]) is not None


@pytest.mark.parametrize(
    "text",
    [
        "warnings.filterwarnings('ignore')",
        "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')",
        "logging.basicConfig(level='INFO')",
        "logger.warning('hello')",
        "class Net(nn.Module):\n    pass",
        "class Smoother(KalmanFilter):\n    pass",
        "class Features:\n    def __init__(self, info):\n        self.info = info",
    ],
)
def test_who_only_talks_or_ignores_does_not_listen(text: str) -> None:
    assert observers(text).listening([FILE]) is None


def test_an_attribute_that_others_ask_for_is_found_and_its_own_function_is_left_out() -> None:
    text = "def forward(self):\n    self.cache = 1\n\ndef ready(net):\n    return hasattr(net, 'cache')\n"
    # hasattr does not tell one tensor from another, but it tells that there is none.
    assert observers(text).of_names(["cache"], "forward", [FILE]) is not None
    assert (
        observers("def forward(self):\n    self.cache = 1\n").of_names(["cache"], "forward", [FILE]) is None
    )


def test_a_file_that_cannot_be_parsed_holds_nobody() -> None:
    assert observers("def (").listening([FILE]) is None
