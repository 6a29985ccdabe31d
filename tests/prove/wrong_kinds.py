"""Wrong patches that agree as long as an argument, or what an object holds, stays what the script gives."""

from __future__ import annotations

from patches import Patched, change

OF_DTYPE = """
@torch.compile
def masked(scores, mask, dtype):
    torch._dynamo.graph_break()
    return scores.to(dtype).masked_fill(mask, torch.finfo(dtype).min)


for x in batches(3, 4):
    print(masked(x, x > 0.5, torch.float32).sum().item())
"""

OF_MODE = """
import enum


class Mode(enum.Enum):
    MEAN = "mean"
    TOTAL = "total"


@torch.compile
def reduced(x, mode):
    torch._dynamo.graph_break()
    return {Mode.MEAN: torch.mean, Mode.TOTAL: torch.sum}[mode](x)


for x in batches(4):
    print(reduced(x, Mode.MEAN).item())
"""

CONFIGURED = """
@torch.compile
def scaled(x, cfg):
    torch._dynamo.graph_break()
    return x * cfg["gain"] * cfg.get("scale", 1.0)


for x in batches(4):
    print(scaled(x, {"gain": 2.0}).sum().item())
"""

NAMED = """
@torch.compile
def grouped(grad, name, scales):
    torch._dynamo.graph_break()
    return grad * scales.get(name.split(".")[0], 1.0)


for x in batches(4):
    print(grouped(x, "head.weight", {"head": 2.0}).sum().item())
"""

FLAGS = """
@torch.compile
def oriented(x, across=False, down=False, turned=False):
    torch._dynamo.graph_break()
    return x * (1 - 2 * ((across + down + turned) % 2))


for x in batches(4):
    print(oriented(x).sum().item())
"""

ANNEALED = """
@torch.compile
def annealed(x, step):
    torch._dynamo.graph_break()
    return x * (1.0 - min(step / 100_000, 1.0))


for step, x in enumerate(batches(4)):
    print(annealed(x, step * 10).sum().item())
"""

POOL = """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel, self.levels = (2, 2), {0: 1.0, 1: 0.5}

    def forward(self, x):
        torch._dynamo.graph_break()
        rows, columns = self.kernel
        return x.unfold(0, rows, 1).unfold(1, columns, 1).amax((-1, -2)) * self.levels[1]


net = torch.compile(Pool())
for x in batches(4, 4):
    print(net(x).sum().item())
"""


def of(name: str, kind: str, before: str, old: str, new: str) -> Patched:
    broken = next(line for line in before.splitlines(keepends=True) if "graph_break()" in line)
    return change(name, kind, before, (broken, ""), (old, new))


PATCHES = (
    of(
        "least_of_float32",
        "another dtype as an argument",
        OF_DTYPE,
        "torch.finfo(dtype).min",
        "-3.4028235e38",
    ),
    of(
        "named_by_its_value",
        "another member of an enum",
        OF_MODE,
        "{Mode.MEAN: torch.mean, Mode.TOTAL: torch.sum}[mode](x)",
        "getattr(torch, mode.value)(x)",
    ),
    of("no_scale", "a key that a dict lacks", CONFIGURED, ' * cfg.get("scale", 1.0)', ""),
    of("last_dot", "a part of a text twice", NAMED, 'name.split(".")[0]', 'name.rsplit(".", 1)[0]'),
    of(
        "one_flag",
        "three flags at once",
        FLAGS,
        "((across + down + turned) % 2)",
        "(across + down + turned == 1)",
    ),
    of("never_done", "more steps than any size", ANNEALED, "min(step / 100_000, 1.0)", "(step / 100_000)"),
    of(
        "square_kernel",
        "an item of a tuple that is held",
        POOL,
        "rows, columns = self.kernel",
        "rows = columns = self.kernel[0]",
    ),
    of("half_of_it", "a number in a dict by number", POOL, "self.levels[1]", "0.5"),
)
