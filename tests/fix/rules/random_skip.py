"""Examples of the rule ``random-skip``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_CALLS = ("torch.randn(2, 4)", "torch.randn(2, 4)", "torch.randn(2, 4)")
_NET = """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.5

    def forward(self, x, attentions=False):
"""


def _net(body: str) -> str:
    return (
        _NET.strip("\n")
        + "\n"
        + "\n".join(f"        {line}" if line else "" for line in body.strip("\n").split("\n"))
    )


REWRITES = (
    Example(
        _net("""
synced = False
for i, layer in enumerate(self.layers):
    skip = False
    if self.training and i > 0 and self.layerdrop > 0.0:
        p = torch.rand([])
        skip = p < self.layerdrop
    if not skip or synced:
        # the layer
        x = layer(x)
return x
"""),
        _net("""
synced = False
for i, layer in enumerate(self.layers):
    skip = False
    if self.training and i > 0 and self.layerdrop > 0.0:
        p = torch.rand([])
        skip = p < self.layerdrop
    x_kept = x.clone()
    # the layer
    x = layer(x)
    if skip is not False and not synced:
        x = torch.where(skip, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
cache = None
for layer in self.layers:
    p = torch.rand([])
    skip = True if self.training and (p < self.layerdrop) else False
    if not skip or attentions:
        out = (layer(x), self.layers)
        x = out[0]
    if skip:
        continue
    if self.training:
        cache = out[1]
return x
"""),
        _net("""
cache = None
for layer in self.layers:
    p = torch.rand([])
    skip = self.training and p < self.layerdrop
    x_kept = x.clone()
    out = (layer(x), self.layers)
    x = out[0]
    if skip is not False and not attentions:
        x = torch.where(skip, x_kept, x)
    if self.training:
        cache = out[1]
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
bias = None
for i, layer in enumerate(self.layers):
    p = torch.rand([])
    skip = self.training and i > 0 and (p < self.layerdrop)
    if not skip or attentions:
        bias = x * 2 if bias is None else bias + x
        x = layer(x) + bias
return x
"""),
        _net("""
bias = None
for i, layer in enumerate(self.layers):
    p = torch.rand([])
    skip = self.training and i > 0 and (p < self.layerdrop)
    bias_kept = None if bias is None else bias.clone()
    x_kept = x.clone()
    bias = x * 2 if bias is None else bias + x
    x = layer(x) + bias
    if skip is not False and not attentions:
        bias = torch.where(skip, bias_kept, bias)
        x = torch.where(skip, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    p = torch.rand([])

    skip = True if self.training and (p < self.layerdrop) else False
    if not skip or attentions:
        out = (layer(x), None)
        x = out[0]
    if skip:
        out = (None, None)
    if attentions:
        self.seen = out[1]
return x
"""),
        _net("""
for layer in self.layers:
    p = torch.rand([])

    skip = self.training and p < self.layerdrop
    x_kept = x.clone()
    out = (layer(x), None)
    x = out[0]
    if skip is not False and not attentions:
        x = torch.where(skip, x_kept, x)
    if attentions:
        self.seen = out[1]
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
cache = None
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    x = layer(x)
    cache = x.dtype
return x if cache is not None or attentions else x
"""),
        _net("""
cache = None
for layer in self.layers:
    dropped = torch.rand([]) < 0.5
    x_kept = x.clone()
    x = layer(x)
    cache = x.dtype
    x = torch.where(dropped, x_kept, x)
return x if cache is not None or attentions else x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    if self.training:
        p = torch.rand([])
        if p < self.layerdrop:  # skip the layer
            continue
    x = layer(x)
return x
"""),
        _net("""
for layer in self.layers:
    dropped = False
    if self.training:
        p = torch.rand([])
        # skip the layer
        dropped = p < self.layerdrop
        x_kept = x.clone()
    x = layer(x)
    if dropped is not False:
        x = torch.where(dropped, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    skip = False
    if self.training:
        p = torch.rand([])
        if p < self.layerdrop:
            skip = True

    if not skip:
        # the layer
        x = layer(
            x,
        )
return x
"""),
        _net("""
for layer in self.layers:
    skip = False
    if self.training:
        p = torch.rand([])
        skip = p < self.layerdrop
        x_kept = x.clone()

    # the layer
    x = layer(
        x,
    )
    if skip is not False:
        x = torch.where(skip, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    p = torch.rand([])
    if self.training and (p < self.layerdrop):
        out = (None, None)
    else:
        out = (layer(x), None)
        x = out[0]
    if attentions:
        self.seen = out[1]
return x
"""),
        _net("""
for layer in self.layers:
    p = torch.rand([])
    dropped = self.training and p < self.layerdrop
    x_kept = x.clone()
    out = (layer(x), None)
    x = out[0]
    if dropped is not False:
        x = torch.where(dropped, x_kept, x)
    if attentions:
        self.seen = out[1]
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    skip = self.training and torch.rand([]) < self.layerdrop
    if not skip or attentions:
        out = (layer(x), None)
        x = out[0]
    if skip:
        out = (None, None)
    if attentions:
        self.seen = out[1]
return x
"""),
        _net("""
for layer in self.layers:
    skip = self.training and torch.rand([]) < self.layerdrop
    x_kept = x.clone()
    out = (layer(x), None)
    x = out[0]
    if skip is not False and not attentions:
        x = torch.where(skip, x_kept, x)
    if attentions:
        self.seen = out[1]
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    if self.training and torch.rand([]) < self.layerdrop:
        continue
    y = layer(x)
    if attentions:
        self.seen = y
    x = x + y
    x *= 2
return x
"""),
        _net("""
for layer in self.layers:
    dropped = self.training and torch.rand([]) < self.layerdrop
    x_kept = x.clone()
    y = layer(x)
    if attentions:
        self.seen = y
    x = x + y
    x *= 2
    if dropped is not False:
        x = torch.where(dropped, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    skip = False
    if self.training:
        if torch.rand([]) < 0.5:  # drop it
            skip = True
    if skip:
        out = (None, None)
    else:
        out = (layer(x), 1)
        x = out[0]
return x
"""),
        _net("""
for layer in self.layers:
    skip = False
    if self.training:
        # drop it
        skip = torch.rand([]) < 0.5
        x_kept = x.clone()
    out = (layer(x), 1)
    x = out[0]
    if skip is not False:
        x = torch.where(skip, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
    Example(
        _net("""
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    scale = 2
    x = layer(x) * scale
return x
"""),
        _net("""
for layer in self.layers:
    dropped = torch.rand([]) < 0.5
    x_kept = x.clone()
    scale = 2
    x = layer(x) * scale
    x = torch.where(dropped, x_kept, x)
return x
"""),
        calls=_CALLS,
        consent=True,
    ),
)

LEAVES = (
    # False before the loop: what was drawn for a layer decides for the next too, where nothing is drawn.
    Example(
        _net("""
skip = False
for i, layer in enumerate(self.layers):
    if i == 1:
        skip = torch.rand([]) < 0.5
    if not skip or attentions:
        x = layer(x)
return x
"""),
        why="`skip` is given other values too",
        calls=_CALLS,
    ),
    Example(
        _net("""
for i, layer in enumerate(self.layers):
    skip = False
    if i > 0:
        skip = torch.rand([]) < 0.5
    else:
        x = x * 2
    if not skip or attentions:
        x = layer(x)
return x
"""),
        why="`skip` is given other values too",
        calls=_CALLS,
    ),
    Example(
        _net("""
y = x
for layer in self.layers:
    p = torch.rand([])
    skip = True if self.training and (p < self.layerdrop) else False
    if not skip or attentions:
        x = layer(x)
    if skip:
        continue
    y = y + x
return y
"""),
        why="`y` is given a value behind the `continue`",
        calls=_CALLS,
    ),
    Example(
        _net("""
y = x
for layer in self.layers:
    p = torch.rand([])
    skip = True if self.training and (p < self.layerdrop) else False
    if not skip or attentions:
        x = layer(x)
    y = y + x
    if skip:
        continue
    y = y * 2
return y
"""),
        why="`skip` decides more than one branch",
        calls=_CALLS,
    ),
    # The flag is a number somewhere else than in what was skipped.
    Example(
        _net("""
for layer in self.layers:
    p = torch.rand([])
    skip = True if p < self.layerdrop else False
    if not skip:
        x = layer(x)
    x = x + skip
return x
"""),
        why="decides more than one branch",
        calls=_CALLS,
    ),
    # The object is looked into where code may be skipped.
    Example(
        _net("""
last = {}
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    x = layer(x)
    last = {"x": x}
return x + last.get("x", x)
"""),
        why="`last`",
        calls=_CALLS,
    ),
    Example(
        _net("""
s = x.sum()
for layer in self.layers:
    if torch.rand([]) < 0.5:
        s = 1.0
    else:
        s = layer(x).sum()
    x = x * s
return x
"""),
        why="`s` is a constant where code is skipped, and is read afterwards",
        calls=_CALLS,
    ),
    Example(
        _net("""
for layer in self.layers:
    skip, done = False, 1
    if torch.rand([]) < 0.5:
        done = 0
    else:
        x = layer(x)
    x = x + done
return x
"""),
        why="`done` is a constant where code is skipped, and is read afterwards",
        calls=_CALLS,
    ),
    Example(
        _net("""
count = []
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    x = layer(x)
    count.append(1)
return x, len(count)
"""),
        why="does more than give values to names: `count.append(1)`",
        calls=_CALLS,
    ),
    Example(
        _net("""
every = ()
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    x = layer(x)
    every = every + (x,)
return every
"""),
        why="`every` is not a tensor",
        calls=_CALLS,
    ),
    Example(
        _net("""
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    x = torch.cat([x, layer(x[:, :4])], 1)
return x
"""),
        why="`x` changes its shape or dtype",
        calls=_CALLS,
    ),
    Example(
        _net("""
for layer in self.layers:
    if torch.rand([]) < 0.5:
        continue
    x = layer(x)
    if x.sum() > 100:
        return x
return x
"""),
        why="holds a branch on a tensor",
        calls=_CALLS,
    ),
    Example(
        _net("""
for layer in self.layers:
    skip = False
    if torch.rand([]) < 0.5:
        skip = True
    if not skip:
        x = layer(x)
    if skip:
        self.skipped = 1
return x
"""),
        why="`skip` decides more than the branch that follows",
        calls=_CALLS,
    ),
    Example(
        _net("""
if torch.rand([]) < 0.5:
    x = self.layers[0](x)
else:
    x = self.layers[1](x)
return x
"""),
        why="which of two computations is done",
        calls=_CALLS,
    ),
    Example(
        _net("""
for layer in self.layers:
    if x.sum() < 0:
        continue
    x = layer(x)
return x
"""),
        calls=_CALLS,
    ),
)
