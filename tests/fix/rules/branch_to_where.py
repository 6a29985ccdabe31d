"""What the rule ``branch-to-where`` rewrites, and what it leaves alone."""

from rules import truths

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.low -= 1e-5

    def forward(self, x):
        if self.low.min() > -1:
            self.low = self.low + x.min()
        else:
            self.low = torch.minimum(self.low, x.min())
        return x - self.low
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.low -= 1e-5

    def forward(self, x):
        self.low = torch.where(
            self.low.min() > -1,
            self.low + x.min(),
            torch.minimum(self.low, x.min()),
        )
        return x - self.low
""",
    ),
    Example(
        """\
def f(x, more=False):
    y = x + 1
    if y.sum() > 0:
        y = y.clamp(max=1)
    found = (y,)
    if more:
        found += (x,)
    return found
""",
        """\
def f(x, more=False):
    y = x + 1
    y = torch.where(y.sum() > 0, y.clamp(max=1), y)
    found = (y,)
    if more:
        found += (x,)
    return found
""",
    ),
    Example(
        """\
def f(x):
    z = torch.relu(x)
    if x.sum() > 0:
        x = -x
        y = torch.relu(x)
        if x.sum() > 0:
            x, y = y, x
        else:
            x = torch.relu(x)
            x, y = y, x
    return z, x
""",
        """\
def f(x):
    z = torch.relu(x)
    condition = x.sum() > 0
    x = torch.where(condition, -x, x)
    y = torch.relu(x)
    nested = x.sum() > 0
    inner = condition & nested
    x, y = torch.where(inner, y, x), torch.where(inner, x, y)
    otherwise = condition & ~nested
    x = torch.where(otherwise, torch.relu(x), x)
    x, y = torch.where(otherwise, y, x), torch.where(otherwise, x, y)
    return z, x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x * 2
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x * 2, x)
    return x
""",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y
""",
        """\
def f(x):
    y = torch.where(x.sum() > 0, x + 1, x - 1)
    return y
""",
    ),
    Example(
        """\
def f(x, y):
    if x.mean() > 0:  # why
        z = x + y
    # second
    elif y.mean() > 0:
        z = x - y
    else:
        # last
        z = -x  # neg
    return z
""",
        """\
def f(x, y):
    # why
    # second
    # last
    # neg
    z = torch.where(x.mean() > 0, x + y, torch.where(y.mean() > 0, x - y, -x))
    return z
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4)",),
    ),
    Example(
        """\
def f(h):
    h = h + 1
    if h.dtype == torch.float16 and (
        torch.isinf(h).any() or torch.isnan(h).any()
    ):
        clamp_value = torch.finfo(h.dtype).max - 1000
        h = torch.clamp(h, min=-clamp_value, max=clamp_value)
    return h
""",
        """\
def f(h):
    h = h + 1
    if h.dtype == torch.float16:
        clamp_value = torch.finfo(h.dtype).max - 1000
        h = torch.where(
            torch.isinf(h).any() | torch.isnan(h).any(),
            torch.clamp(h, min=-clamp_value, max=clamp_value),
            h,
        )
    return h
""",
        calls=("torch.randn(3, 4).half()",),
    ),
    Example(
        """\
def f(h):
    if torch.isinf(h).any() or torch.isnan(h).any():
        # keep it finite
        clamp_value = torch.finfo(h.dtype).max - 1000  # room
        h = torch.clamp(h, min=-clamp_value, max=clamp_value)
    return h
""",
        """\
def f(h):
    # keep it finite
    clamp_value = torch.finfo(h.dtype).max - 1000  # room
    h = torch.where(
        torch.isinf(h).any() | torch.isnan(h).any(),
        torch.clamp(h, min=-clamp_value, max=clamp_value),
        h,
    )
    return h
""",
        calls=("torch.randn(3, 4)",),
    ),
    Example(
        """\
def f(x):
    if not torch.isfinite(x).all():
        limit = torch.finfo(x.dtype).max - 1000
        x = torch.clamp(x, min=-limit, max=limit)
    return x
""",
        """\
def f(x):
    limit = torch.finfo(x.dtype).max - 1000
    x = torch.where(~torch.isfinite(x).all(), torch.clamp(x, min=-limit, max=limit), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if torch.isnan(x).any():
        x = torch.nan_to_num(x)
    return x
""",
        """\
def f(x):
    x = torch.where(torch.isnan(x).any(), torch.nan_to_num(x), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.max() > 100:
        return x.clamp(max=100)
    return x
""",
        """\
def f(x):
    return torch.where(x.max() > 100, x.clamp(max=100), x)
""",
    ),
    Example(
        """\
def f(x):
    if x.max() > 1:
        return x + 1
    y = x - 1
    return y
""",
        """\
def f(x):
    condition = x.max() > 1
    early = x + 1
    y = x - 1
    return torch.where(condition, early, y)
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
    else:
        return x - 1
""",
        """\
def f(x):
    return torch.where(x.sum() > 0, x + 1, x - 1)
""",
    ),
    Example(
        """\
def f(x):
    if (x > 0).all() and x.mean() > 1:
        return x + 1
    elif x.min() < -3:
        return x - 1
    else:
        return x * 0.5
""",
        """\
def f(x):
    return torch.where(
        (x > 0).all() & (x.mean() > 1),
        x + 1,
        torch.where(x.min() < -3, x - 1, x * 0.5),
    )
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        y = x + 1
        return y * 2
    y = x - 1
    return y * 3
""",
        """\
def f(x):
    condition = x.sum() > 0
    y_then = x + 1
    early = y_then * 2
    y = x - 1
    return torch.where(condition, early, y * 3)
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x, x + 1
    return x + 1, x
""",
        """\
def f(x):
    condition = x.sum() > 0
    return torch.where(condition, x, x + 1), torch.where(condition, x + 1, x)
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1, None
    return x - 1, None
""",
        """\
def f(x):
    return torch.where(x.sum() > 0, x + 1, x - 1), None
""",
    ),
    Example(
        """\
def f(x):
    m = x.mean()
    if x.sum() > 0:
        if m > 1:
            x = x + 1
        else:
            x = x - 1
    return x
""",
        """\
def f(x):
    m = x.mean()
    condition = x.sum() > 0
    nested = m > 1
    inner = condition & nested
    x = torch.where(inner, x + 1, x)
    otherwise = condition & ~nested
    x = torch.where(otherwise, x - 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x + 1
        if x.mean() > 1:
            x = x - x.mean()
    return x
""",
        """\
def f(x):
    condition = x.sum() > 0
    x = torch.where(condition, x + 1, x)
    inner = condition & (x.mean() > 1)
    x = torch.where(inner, x - x.mean(), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    y = x * 2
    if x.sum() > 0:
        y += 1
    return y
""",
        """\
def f(x):
    y = x * 2
    y = torch.where(x.sum() > 0, y + 1, y)
    return y
""",
    ),
    Example(
        """\
def f(x):
    a, b = x, x + 1
    if x.sum() > 0:
        a, b = b, a
    return a - b
""",
        """\
def f(x):
    a, b = x, x + 1
    condition = x.sum() > 0
    a, b = torch.where(condition, b, a), torch.where(condition, a, b)
    return a - b
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0: x = x + 1  # one line
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x + 1, x)  # one line
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        a = torch.relu(x)
        x = a + 1
        y = x * 3
    else:
        y = -x
    return x + y
""",
        """\
def f(x):
    condition = x.sum() > 0
    a = torch.relu(x)
    x = torch.where(condition, a + 1, x)
    y = x * 3
    y = torch.where(~condition, -x, y)
    return x + y
""",
    ),
    Example(
        """\
def f(x):
    for i in range(2):
        if x.sum() > 0:
            x = x - i
        else:
            x = x + 1
    return x
""",
        """\
def f(x):
    for i in range(2):
        x = torch.where(x.sum() > 0, x - i, x + 1)
    return x
""",
    ),
    Example(
        """\
def f(x):
    scale = 1.0
    if x.abs().max() > 1:
        scale = 0.5
    return x * scale
""",
        """\
def f(x):
    scale = 1.0
    scale = torch.where(x.abs().max() > 1, 0.5, scale)
    return x * scale
""",
    ),
    Example(
        """\
def f(x):
    if x.abs().max() > 1:
        shift = 0.25
    else:
        shift = 2.0
    return x + shift
""",
        """\
def f(x):
    shift = torch.where(x.abs().max() > 1, 0.25, 2.0)
    return x + shift
""",
    ),
    Example(
        """\
def f(x, m):
    if m is not None and (m > 0).any():
        x = x.masked_fill(m > 0, 0.0)
    return x
""",
        """\
def f(x, m):
    if m is not None:
        x = torch.where((m > 0).any(), x.masked_fill(m > 0, 0.0), x)
    return x
""",
        calls=(
            "torch.randn(3, 4), None",
            "torch.randn(3, 4), torch.randn(3, 4)",
        ),
    ),
    Example(
        """\
def f(x, flag):
    if flag and x.sum() > 0:
        x = x + 1
    return x
""",
        """\
def f(x, flag):
    if flag:
        x = torch.where(x.sum() > 0, x + 1, x)
    return x
""",
        calls=(
            "torch.randn(3, 4), True",
            "torch.randn(3, 4), False",
        ),
    ),
    Example(
        """\
def f(x, flag):
    if x.sum() > 0 and flag:
        x = x + 1
    return x
""",
        """\
def f(x, flag):
    x = torch.where((x.sum() > 0) & flag, x + 1, x)
    return x
""",
        calls=(
            "torch.randn(3, 4), True",
            "torch.randn(3, 4), False",
        ),
    ),
    Example(
        """\
def f(x, flag):
    if flag or x.sum() > 0:
        x = x + 1
    return x
""",
        """\
def f(x, flag):
    x = torch.where(flag | (x.sum() > 0), x + 1, x)
    return x
""",
        calls=("torch.randn(3, 4), False",),
    ),
    Example(
        """\
def f(x, train):
    if train:
        x = x + 1
    elif x.sum() > 0:
        x = x - 1
    else:
        x = x * 2
    return x
""",
        """\
def f(x, train):
    if train:
        x = x + 1
    else:
        x = torch.where(x.sum() > 0, x - 1, x * 2)
    return x
""",
        calls=("torch.randn(3, 4), False",),
    ),
    Example(
        """\
def f(x, train):
    if train:
        return x
    elif x.sum() > 0:
        return x - 1
    else:
        return x * 2
""",
        """\
def f(x, train):
    if train:
        return x
    else:
        return torch.where(x.sum() > 0, x - 1, x * 2)
""",
        calls=("torch.randn(3, 4), False",),
    ),
    Example(
        """\
def f(x):
    if x.sum().item() > 0:
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum().item() > 0.1:
        return x * 2
    return x
""",
        """\
def f(x):
    return torch.where(x.sum().double() > 0.1, x * 2, x)
""",
    ),
    Example(
        """\
def f(x):
    if float(x.max()) > 1.5:
        x = x - 1
    return x
""",
        """\
def f(x):
    x = torch.where(x.max() > 1.5, x - 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if bool((x > 0).all()):
        x = x - 1
    return x
""",
        """\
def f(x):
    x = torch.where((x > 0).all(), x - 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if (x > 0).sum().item() == 0:
        x = x - 1
    return x
""",
        """\
def f(x):
    x = torch.where((x > 0).sum() == 0, x - 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum():
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() != 0, x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if not x.sum():
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where(~(x.sum() != 0), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum(dim=(0, 1), keepdim=True) > 0:
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where((x.sum(dim=(0, 1), keepdim=True) > 0).reshape(()), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if 0 < x.mean() < 1:
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where((0 < x.mean()) & (x.mean() < 1), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    peak = x.abs().max()
    if peak > 1 or peak < 0.1:
        x = x / 4
    return x
""",
        """\
def f(x):
    peak = x.abs().max()
    x = torch.where((peak > 1) | (peak < 0.1), x / 4, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if (x != x).any():
        x = torch.zeros_like(x)
    return x
""",
        """\
def f(x):
    x = torch.where((x != x).any(), torch.zeros_like(x), x)
    return x
""",
    ),
    Example(
        """\
def f(ids):
    if (ids < 0).any():
        ids = ids.clamp(min=0)
    return ids
""",
        """\
def f(ids):
    ids = torch.where((ids < 0).any(), ids.clamp(min=0), ids)
    return ids
""",
        calls=("torch.randint(0, 9, (3, 4))",),
    ),
    Example(
        """\
def f(mask):
    if mask.all():
        mask = ~mask
    return mask
""",
        """\
def f(mask):
    mask = torch.where(mask.all(), ~mask, mask)
    return mask
""",
        calls=("torch.randn(3, 4) > 0",),
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 3.0
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        x = self.norm(x)
        if x.abs().max() > self.limit:
            x = x.clamp(-self.limit, self.limit)
        return x
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 3.0
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        x = self.norm(x)
        x = torch.where(x.abs().max() > self.limit, x.clamp(-self.limit, self.limit), x)
        return x
""",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x):
        if x.detach().abs().max() > self.peak:
            self.peak = x.detach().abs().max()
        return x / (self.peak + 1)
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x):
        self.peak = torch.where(
            x.detach().abs().max() > self.peak,
            x.detach().abs().max(),
            self.peak,
        )
        return x / (self.peak + 1)
""",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        if torch.isfinite(x).all():
            self.mean = self.mean * 0.5 + x.detach().sum() * 0.5
        return x - self.mean
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = torch.where(
            torch.isfinite(x).all(),
            self.mean * 0.5 + x.detach().sum() * 0.5,
            self.mean,
        )
        return x - self.mean
""",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", torch.ones(4), persistent=False)
        self.short = torch.ones(4)
        self.long = torch.full((4,), 0.5)

    def forward(self, x):
        if x.max() > 1:
            self.register_buffer("freq", self.long, persistent=False)
        else:
            self.register_buffer("freq", self.short, persistent=False)
        return x * self.freq
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", torch.ones(4), persistent=False)
        self.short = torch.ones(4)
        self.long = torch.full((4,), 0.5)

    def forward(self, x):
        self.register_buffer(
            "freq",
            torch.where(x.max() > 1, self.long, self.short),
            persistent=False,
        )
        return x * self.freq
""",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", torch.ones(4), persistent=False)
        self.original = self.freq
        self.limit = 8

    def make(self, device, length):
        return torch.full((4,), 1.0 / length, device=device), 1.0

    def forward(self, ids):
        if torch.max(ids) + 1 > self.limit:
            if not hasattr(self, "long"):
                self.long, _ = self.make(ids.device, length=self.limit + 1)
            self.register_buffer("freq", self.long, persistent=False)
        else:
            # the buffer moves with the module, its copy does not
            self.original = self.original.to(ids.device)
            self.register_buffer("freq", self.original, persistent=False)
        return ids[:, None] * self.freq
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", torch.ones(4), persistent=False)
        self.original = self.freq
        self.limit = 8

    def make(self, device, length):
        return torch.full((4,), 1.0 / length, device=device), 1.0

    def forward(self, ids):
        if not hasattr(self, "long"):
            self.long, _ = self.make(ids.device, length=self.limit + 1)
        # the buffer moves with the module, its copy does not
        self.original = self.original.to(ids.device)
        self.register_buffer(
            "freq",
            torch.where(
                torch.max(ids) + 1 > self.limit,
                self.long,
                self.original,
            ),
            persistent=False,
        )
        return ids[:, None] * self.freq
""",
        calls=(
            "torch.arange(4)",
            "torch.arange(20)",
            "torch.arange(5)",
        ),
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x * x
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x * x, x)
    return x
""",
        consent=True,
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x, y):
    if x.sum() > 0:
        x = x + y
    return x
""",
        """\
def f(x, y):
    x = torch.where(x.sum() > 0, x + y, x)
    return x
""",
        consent=True,
        calls=("torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    if torch.isnan(x).any():
        x = torch.nan_to_num(x)
    return x + 1
""",
        """\
def f(x):
    x = torch.where(torch.isnan(x).any(), torch.nan_to_num(x), x)
    return x + 1
""",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    if x.abs().max() > 1:
        x = torch.clamp(x, -1, 1)
    return x * 3
""",
        """\
def f(x):
    x = torch.where(x.abs().max() > 1, torch.clamp(x, -1, 1), x)
    return x * 3
""",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
import torch as th


def f(x):
    if x.sum() > 0:
        x = th.relu(x)
    return x
""",
        """\
import torch as th


def f(x):
    x = th.where(x.sum() > 0, th.relu(x), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
	if x.sum() > 0:
		x = x + 1
	else:
		x = x - 1
	return x
""",
        """\
def f(x):
	x = torch.where(x.sum() > 0, x + 1, x - 1)
	return x
""",
    ),
    Example(
        """\
def f(x):
    condition = x > 0
    if condition.all():
        y = x + 1
        z = x + 2
    else:
        y = x - 1
        z = x - 2
    return y, z, condition
""",
        """\
def f(x):
    condition = x > 0
    condition_1 = condition.all()
    y = x + 1
    z = x + 2
    y = torch.where(~condition_1, x - 1, y)
    z = torch.where(~condition_1, x - 2, z)
    return y, z, condition
""",
    ),
    Example(
        """\
def f(x):
    out = x
    if x.sum() > 0:
        out = torch.where(
            x > 1,  # large ones
            x - 1,
            x,
        )
    return out
""",
        """\
def f(x):
    out = x
    out = torch.where(
        x.sum() > 0,
        torch.where(
            x > 1,  # large ones
            x - 1,
            x,
        ),
        out,
    )
    return out
""",
    ),
    Example(
        """\
def f(naïve):
    if naïve.sum() > 0: naïve = naïve + 1  # naïve
    return naïve
""",
        """\
def f(naïve):
    naïve = torch.where(naïve.sum() > 0, naïve + 1, naïve)  # naïve
    return naïve
""",
    ),
    Example(
        """\
def f(x):
    y: torch.Tensor = x
    if x.sum() > 0:
        y: torch.Tensor = x + 1
    return y
""",
        """\
def f(x):
    y: torch.Tensor = x
    y: torch.Tensor = torch.where(x.sum() > 0, x + 1, y)
    return y
""",
    ),
    Example(
        '''\
def f(x):
    if x.sum() > 0:
        """What is done here."""
        x = x + 1
    return x
''',
        '''\
def f(x):
    """What is done here."""
    x = torch.where(x.sum() > 0, x + 1, x)
    return x
''',
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        pass
    else:
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where(~(x.sum() > 0), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    total = x.sum()
    if (total > 0) & (x.max() < 10):
        x = x + 1
    return x
""",
        """\
def f(x):
    total = x.sum()
    x = torch.where((total > 0) & (x.max() < 10), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    total = x.sum()
    if (not total > 0) and x.max() < 10:
        x = x + 1
    return x
""",
        """\
def f(x):
    total = x.sum()
    x = torch.where(~(total > 0) & (x.max() < 10), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    with torch.no_grad():
        if x.sum() > 0:
            x = x + 1
    return x
""",
        """\
def f(x):
    with torch.no_grad():
        x = torch.where(x.sum() > 0, x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    try:
        if x.sum() > 0:
            x = x + 1
    finally:
        y = x
    return y
""",
        """\
def f(x):
    try:
        x = torch.where(x.sum() > 0, x + 1, x)
    finally:
        y = x
    return y
""",
    ),
    Example(
        """\
def f(x):
    s = x.sum()
    if s > 0:
        s = s + 1
    return x * s
""",
        """\
def f(x):
    s = x.sum()
    s = torch.where(s > 0, s + 1, s)
    return x * s
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.half().float()
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x.half().float(), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.to(torch.float32) + 1
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x.to(torch.float32) + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        n = x.shape[0] * 2
        x = x + n
    return x
""",
        """\
def f(x):
    n = x.shape[0] * 2
    x = torch.where(x.sum() > 0, x + n, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.softmax(-1)
    else:
        x = x.sigmoid()
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x.softmax(-1), x.sigmoid())
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = F.gelu(x)
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, F.gelu(x), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.log(x)
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, torch.log(x), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    def inner(y):
        if y.sum() > 0:
            y = y + 1
        return y

    return inner(x) * 2
""",
        """\
def f(x):
    def inner(y):
        y = torch.where(y.sum() > 0, y + 1, y)
        return y

    return inner(x) * 2
""",
    ),
    Example(
        """\
LIMIT = 2.0


def f(x):
    if x.abs().max() > LIMIT:
        x = x.clamp(-LIMIT, LIMIT)
    return x
""",
        """\
LIMIT = 2.0


def f(x):
    x = torch.where(x.abs().max() > LIMIT, x.clamp(-LIMIT, LIMIT), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0 and x.max() > 1 and x.min() < 0:
        x = x + 1
    return x
""",
        """\
def f(x):
    x = torch.where((x.sum() > 0) & (x.max() > 1) & (x.min() < 0), x + 1, x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    y = torch.zeros_like(x)
    if x.sum() > 0:
        y = y + x
        y = y * 2
    return y
""",
        """\
def f(x):
    y = torch.zeros_like(x)
    condition = x.sum() > 0
    y = torch.where(condition, y + x, y)
    y = torch.where(condition, y * 2, y)
    return y
""",
    ),
    Example(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        # the first time
        if self.low.min() > -1e-5 and self.high.max() < 1e-5:
            self.low = self.low + low
            self.high = self.high + high
        # afterwards
        elif self.momentum == -1:
            self.low = torch.min(self.low, low)
            self.high = torch.max(self.high, high)
        else:
            self.low = self.low * self.momentum + low
            self.high = self.high * self.momentum + high
        return x.clamp(self.low, self.high).detach()
""",
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        # the first time
        condition = (self.low.min() > -1e-5) & (self.high.max() < 1e-5)
        # afterwards
        self.low = torch.where(
            condition,
            self.low + low,
            torch.min(self.low, low) if self.momentum == -1 else self.low * self.momentum + low,
        )
        self.high = torch.where(
            condition,
            self.high + high,
            torch.max(self.high, high) if self.momentum == -1 else self.high * self.momentum + high,
        )
        return x.clamp(self.low, self.high).detach()
""",
        calls=("torch.randn(3, 4)", "torch.randn(2, 4)"),
    ),
    Example(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        if high > 3:
            self.high = self.high + high
        elif low < -3:
            self.high = self.high - low
        return x.clamp(self.low, self.high).detach()
""",
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        nested = low < -3
        self.high = torch.where(
            high > 3,
            self.high + high,
            torch.where(nested, self.high - low, self.high),
        )
        return x.clamp(self.low, self.high).detach()
""",
        calls=("torch.randn(3, 4)", "torch.randn(2, 4)"),
    ),
    Example(
        """
def f(x, y):
    h = x.view(-1)
    h += y.view(-1)
    if h.isinf().any():
        h = h.clamp(-10, 10)
    return h * 2
""",
        """
def f(x, y):
    h = x.view(-1)
    h += y.view(-1)
    h = torch.where(h.isinf().any(), h.clamp(-10, 10), h)
    return h * 2
""",
        calls=("torch.randn(3), torch.randn(3)",),
    ),
    Example(
        """\
def f(x, level):
    if level.item() < 300:
        x = x * 2
    return x + 1
""",
        """\
def f(x, level):
    x = torch.where(level.long() < 300, x * 2, x)
    return x + 1
""",
        calls=("torch.randn(3), torch.tensor(3, dtype=torch.int8)",),
    ),
    Example(
        """\
def f(x, count, most):
    if count.item() > most:
        x = x * 2
    return x + 1
""",
        """\
def f(x, count, most):
    x = torch.where(count > most, x * 2, x)
    return x + 1
""",
        calls=("torch.randn(3), torch.tensor(3), 2", "torch.randn(3), torch.tensor(3), 4"),
    ),
    *truths.REWRITES,
)

LEAVES = (
    Example(
        """\
def f(x):
    if x.sum() > 0:
        print("positive")
        x = x + 1
    return x
""",
        why="a branch has an effect: `print('positive')`",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x[:1]
    return x
""",
        why="`x[:1]` may raise for some inputs",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.half()
    return x
""",
        why="one branch gives float16 and the other float32",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.sum(0)
    return x
""",
        why="the shape of what the branches give is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.sum()
    return x
""",
        why="the branches give different shapes",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.t()
    return x
""",
        why="what `x.t()` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.double()
    return x
""",
        why="one branch gives float64 and the other float32",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x + torch.rand_like(x)
    return x
""",
        why="`torch.rand_like(x)` draws random numbers",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = F.dropout(x, 0.5)
    return x
""",
        why="`F.dropout(x, 0.5)` draws random numbers",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x * torch.randn(4)
    return x
""",
        why="`torch.randn(4)` draws random numbers",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x += 1
    return x
""",
        why="`x += 1` changes a tensor in place that others may hold",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x.add_(1)
    return x
""",
        why="a branch has an effect: `x.add_(1)`",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.relu_(x)
    return x
""",
        why="`torch.relu_(x)` writes into a tensor",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = F.relu(x, inplace=True)
    return x
""",
        why="`F.relu(x, inplace=True)` may write into its arguments",
    ),
    Example(
        """\
def f(x):
    y = torch.empty_like(x)
    if x.sum() > 0:
        torch.add(x, 1, out=y)
    return x
""",
        why="a branch has an effect: `torch.add(x, 1, out=y)`",
    ),
    Example(
        """\
def f(x):
    a = x
    if x.sum() > 0:
        x = x + 1
    x.add_(1)
    return a
""",
        why="`x` is changed in place elsewhere",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.log(x)
    return x
""",
        why="gradients flow here: where a derivative of the branch",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    if x.min() > 0:
        x = torch.sqrt(x)
    return x
""",
        why="gradients flow here: where a derivative of the branch",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x, y):
    if (y != 0).all():
        x = x / y
    return x
""",
        why="gradients flow here: where a derivative of the branch",
        calls=("torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)",),
    ),
    Example(
        """\
def f(x):
    if (x > 0).all():
        x = x ** 0.5
    return x
""",
        why="gradients flow here: where a derivative of the branch",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    if x.norm() > 1:
        x = x * x.norm()
    return x
""",
        why="gradients flow here: where a derivative of the branch",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            x = self.lin(x)
        return x
""",
        why="what `self.lin(x)` does is not known",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    @property
    def scale(self):
        self.calls += 1
        return 2.0

    def forward(self, x):
        if x.sum() > 1e9:
            x = x * self.scale
        return x
""",
        why="what `self.scale` does is not known",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        if x.sum() > 0:
            self.count = self.count + 1
        return x
""",
        why="`self.count` was not seen as a plain tensor when the branch began",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x):
        if x.sum() > 0:
            self.count += 1
            x = x + 1
        return x
""",
        why="a branch stores into `self.count`",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        if x.sum() > 0:
            self.scale = nn.Parameter(torch.zeros(4))
        return x * self.scale
""",
        why="gradients flow to `self.scale`, which may be a parameter",
    ),
    Example(
        """\
class Reset:
    def __init__(self, owner):
        owner.peak.zero_()


class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x):
        if x.sum() > 0:
            self.peak = x.detach().max()
        return x
""",
        why="`self.peak` is changed in place elsewhere, so others may rely on holding it",
    ),
    Example(
        """\
SHARED = torch.zeros(())


class f(nn.Module):
    def __init__(self, shared=SHARED):
        super().__init__()
        self.register_buffer("peak", shared)
        self.peak.zero_()

    def forward(self, x):
        if x.sum() > 0:
            self.peak = x.detach().max()
        return x
""",
        why="`self.peak` is changed in place elsewhere, so others may rely on holding it",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x):
        if x.sum() > 0:
            self.peak = x.detach().max()
        self.peak.mul_(2)
        return x
""",
        why="`self.peak` is changed in place elsewhere, so others may rely on holding it",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.zeros(3))

    def forward(self, x):
        if x.sum() > 0:
            self.register_buffer("other", x.detach())
        else:
            self.register_buffer("peak", x.detach())
        return x
""",
        why="only one branch stores into `self.other`, or each in its own way",
    ),
    Example(
        """\
def g(x):
    return x + 1


def f(x):
    if x.sum() > 0:
        x = g(x)
    return x
""",
        why="what `g(x)` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = None
    return y
""",
        why="one branch gives a tensor and the other a Python value",
    ),
    Example(
        """\
def f(x):
    y = 0
    if x.sum() > 0:
        y = x + 1
    return x + y
""",
        why="one branch gives a tensor and the other a Python value",
    ),
    Example(
        """\
def f(x):
    n = 1
    if x.sum() > 0:
        n = 2
    return x * n
""",
        why="a branch changes the Python number `n`",
    ),
    Example(
        """\
def f(x):
    scale = 1.0
    if x.sum() > 0:
        scale = 0.1
    return x.double() * scale
""",
        why="`scale` is a Python number that float64 cannot hold",
    ),
    Example(
        """\
def f(x):
    scale = 1.0
    if x.sum() > 0:
        scale = 0.5
    return x, scale
""",
        why="`scale` is a Python number that more than arithmetic with tensors reads",
    ),
    Example(
        """\
def f(x):
    scale = 1.0
    if x.sum() > 0:
        scale = 0.5
    return x * scale
""",
        why="`scale` is a Python number, and a tensor in its place would promote differently",
        calls=("torch.ones(3, 4, dtype=torch.int64)",),
    ),
    Example(
        """\
def f(x):
    scale = 1.0
    if x.sum() > 0:
        scale = 0.5
    return x / scale
""",
        why="`scale` is a Python number, and rounding may differ for a tensor in its place",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
""",
        why="one of the paths ends without a `return`",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
    return None
""",
        why="one branch gives a tensor and the other a Python value",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
    return x.sum()
""",
        why="the branches give different shapes",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1, x
    return x
""",
        why="the paths return different kinds of values",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
    print("not positive")
    return x
""",
        why="what stands between the branch and the `return` is more than an assignment",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return x + 1
    x = F.dropout(x)
    return x
""",
        why="`F.dropout(x)` draws random numbers",
    ),
    Example(
        """\
def f(x):
    while x.sum() > 0:
        x = x - 1
    return x
""",
        why="how often the loop runs depends on the data",
    ),
    Example(
        """\
def f(x):
    for i in range(3):
        if x.sum() > 0:
            break
        x = x + 1
    return x
""",
        why="a branch holds a loop or leaves one",
    ),
    Example(
        """\
def f(x):
    for i in range(3):
        if x.sum() > 0:
            continue
        x = x + 1
    return x
""",
        why="a branch holds a loop or leaves one",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        for i in range(3):
            x = x + i
    return x
""",
        why="a branch holds a loop or leaves one",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        with torch.no_grad():
            x = x + 1
    return x
""",
        why="a branch holds a statement that may have an effect: `with`",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.linalg.inv(x[:3, :3])
    return x
""",
        why="what `torch.linalg.inv(x[:3, :3])` does is not known",
    ),
    Example(
        """\
def f(x, i):
    if i.max() < 3:
        x = x + x[i].sum()
    return x
""",
        why="what `x[i].sum()` does is not known: `x[i]` may raise for some inputs",
        calls=("torch.randn(3, 4), torch.tensor([0, 1])",),
    ),
    Example(
        """\
def f(x, y):
    if (y != 0).all():
        x = x // y
    return x
""",
        why="what `x // y` does is not known",
        calls=("torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64)",),
    ),
    Example(
        """\
def f(x, n):
    if x.sum() > 0:
        x = x * (1 / n)
    return x
""",
        why="`1 / n` raises if the divisor is zero",
        calls=("torch.randn(3, 4), 2",),
    ),
    Example(
        """\
def f(x, y):
    if x.sum() > 0:
        y = y + x
    return y
""",
        why="the branches give different shapes",
        calls=("torch.randn(3, 4), torch.randn(3, 1)",),
    ),
    Example(
        """\
def f(x, y):
    if x.sum() > 0:
        x = y
    return x
""",
        why="one branch gives float64 and the other float32",
        calls=("torch.randn(3, 4), torch.randn(3, 4).double()",),
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x + torch.tensor(1.0)
    return x
""",
        why="`torch.tensor(1.0)` makes a tensor whose dtype and device are settings",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x + torch.ones(4)
    return x
""",
        why="`torch.ones(4)` makes a tensor whose dtype and device are settings",
    ),
    Example(
        """\
def f(x):
    names = []
    if x.sum() > 0:
        names.append("positive")
    return x
""",
        why="a branch has an effect: `names.append('positive')`",
    ),
    Example(
        """\
def f(x):
    state = {}
    if x.sum() > 0:
        state["x"] = x
    return x
""",
        why='a branch stores into `state["x"]`',
    ),
    Example(
        """\
COUNT = 0


def f(x):
    global COUNT
    if x.sum() > 0:
        COUNT = x.sum()
    return x
""",
        why="`COUNT` belongs to another scope",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x + 1
    return x, sorted(locals())
""",
        why="the function looks at its own local variables",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        y = x + 1
    return x
""",
        why="the branch gives nothing that is used",
    ),
    Example(
        '''\
def f(x):
    if x.sum() > 0:
        text = """two
        lines"""
        x = x + len(text)
    return x
''',
        why="a branch holds a text of several lines",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x + 1 if x.ndim > 1 else x
    return x
""",
        why="`x + 1 if x.ndim > 1 else x` is decided in Python",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = (lambda t: t + 1)(x)
    return x
""",
        why="what `(lambda t: t + 1)(x)` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        del x
        return torch.ones(1)
    return x
""",
        why="what stands between the branch and the `return` is more than an assignment",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.numpy() + 1
    return x
""",
        why="what `x.numpy()` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.all():
        x = -(~x).int()
    return x
""",
        why="one branch gives int32 and the other bool",
        calls=("torch.ones(3, 4) > 0",),
    ),
    Example(
        """\
def f(x, m):
    if x.sum() > 0 and m is None:
        x = m
    return x
""",
        why="one branch gives a tensor and the other a Python value",
        calls=("torch.randn(3, 4), None",),
    ),
    Example(
        """\
def f(x, m):
    if x.sum() > 0 and m is not None:
        x = x + m
    return x
""",
        why="`m` was not always of one kind in the recorded run",
        calls=(
            "torch.randn(3, 4), torch.randn(3, 4)",
            "torch.randn(3, 4), None",
        ),
    ),
    Example(
        """\
def f(x, flag):
    if flag and x.sum() > 0:
        x = x + 1
    else:
        x = x - 1
    return x
""",
        why="Python decides a part of the condition, and there is an `else`",
        calls=("torch.randn(3, 4), True",),
    ),
    Example(
        """\
def f(x):
    if int(x.max()) > 1:
        x = x + 1
    return x
""",
        why="what `int(x.max())` gives is not what its tensor holds",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.as_tensor(x)
    return x
""",
        why="what `torch.as_tensor(x)` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.where(x > 0, x, 0.0).half()
    return x
""",
        why="one branch gives float16 and the other float32",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        yield_ = x
        x = x.new_zeros(3, 4)
    return x
""",
        why="what `x.new_zeros(3, 4)` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        assert x.ndim == 2
        x = x + 1
    return x
""",
        why="a branch raises",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x):
        if x.sum() > 0:
            x = self.bn(x)
        return x
""",
        why="what `self.bn(x)` does is not known",
    ),
    Example(
        """\
class f(nn.Module):
    def forward(self, x):
        if torch.rand([]) < 0.5:
            x = self.extra(x)
        return x

    def extra(self, x):
        return x + torch.randn(4)
""",
        why="what `self.extra(x)` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = torch.cat([x, x])
    return x
""",
        why="what `[x, x]` does is not known",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    return x
""",
        why="what `x.clone(memory_format=torch.preserve_format).requires_gra...` does is not",
    ),
    Example(
        """\
def f(x):
    y = x.view(-1)
    if x.sum() > 0:
        y += 1
    return x
""",
        why="`y += 1` changes a tensor in place that others may hold",
    ),
    Example(
        """\
def f(x):
    with torch.no_grad():
        if x.sum() > 0:
            x = x + 1
    return x
""",
        why="gradients are not recorded here, and a tensor that carries some is handed on",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(x)
        if x.sum() > 0:
            y += 1
        return y
""",
        why="changes a tensor in place that others may hold",
    ),
    Example(
        """\
def f(x):
    y = x * 2
    if x.sum() > 0:
        return y, y
    return y, x * 1
""",
        why="a path returns one tensor twice",
    ),
    Example(
        """\
def f(x):
    y = x
    if x.sum() > 0:
        y = y + 1
    x.add_(1)
    return y
""",
        why="`x` is changed in place elsewhere",
    ),
    Example(
        """\
def f(x):
    if x.sum() > 0:
        return (x * 2).t(), None
    return x.t() * 1, None
""",
        why="what `(x * 2).t()` does is not known",
    ),
    Example(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        if high > 3:
            self.low = self.low + low
            self.high = self.high + self.low
        else:
            self.low = self.low - low
            self.high = self.high - self.low
        return x.clamp(self.low, self.high).detach()
""",
        why="depends on `self.low`, which is stored before it",
        calls=("torch.randn(3, 4)", "torch.randn(2, 4)"),
    ),
    Example(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        if high > 3:
            self.low = self.low + low
            self.high = self.high + high
        else:
            self.high = self.high - low
        return x.clamp(self.low, self.high).detach()
""",
        why="a branch stores into `self.low`",
        calls=("torch.randn(3, 4)", "torch.randn(2, 4)"),
    ),
    Example(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))
        self.momentum = 0.9

    def forward(self, x):
        low, high = x.detach().min(), x.detach().max()
        if high > 3:
            self.low = self.low + low
            self.high = self.high * 2
        elif low < -3:
            self.low = self.low - low
            self.high = self.low * 2
        return x.clamp(self.low, self.high).detach()
""",
        why="depends on `self.low`, which is stored before it",
        calls=("torch.randn(3, 4)", "torch.randn(2, 4)"),
    ),
    Example(
        """
def f(x, y):
    h = x
    for _ in range(2):
        h += y
        if h.isinf().any():
            h = h.clamp(-10, 10)
    return h
""",
        why="`h` is changed in place elsewhere",
        calls=("torch.randn(3), torch.randn(3)",),
    ),
    Example(
        """
def f(x, y):
    def later():
        x.add_(y)

    h = x
    if h.isinf().any():
        h = h.clamp(-10, 10)
    later()
    return h
""",
        why="`x` is changed in place elsewhere",
        calls=("torch.randn(3), torch.randn(3)",),
    ),
    Example(
        """\
def f(x):
    if (peak := x.max()) > 0:
        x = x * peak
    return x + 1
""",
        why="`peak` gets its value inside an expression (`:=`)",
    ),
    Example(
        """\
def f(x, count):
    if count.item() > 0.5:
        x = x * 2
    return x + 1
""",
        why="compares int64 with a float, which a double may round",
        calls=("torch.randn(3), torch.tensor(3)",),
    ),
    *truths.LEAVES,
)
