"""What the rule ``empty-turn`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example
from breakscope.fix.rules.empty_turn import _CALLS, _EXPERTS, _HIT, _RANGE, _SKIP


def _listed(loop: str, *, skip: str = "", after: str = "", why: str = "") -> Example:
    """The loop over a list of those that are hit."""
    before = _EXPERTS.format(loop=loop, skip=skip)
    return Example(before, after, why=why, calls=_CALLS, consent=not why)


_ALL = _EXPERTS.format(loop=_RANGE.format("mask.shape[0]"), skip="")
_TWO_NAMES = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 4)) for _ in range(3))
        self.gate = nn.Linear(4, 3)

    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.gate(x), dim=1), 2, dim=-1)
        out = torch.zeros((x.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
        mask = torch.nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
{loop}
            # One expert after the other.
            expert = self.experts[number]
            place, rows = torch.where(mask[number])
{skip}            states = x[None, rows].reshape(-1, x.shape[1])
            states = expert(states) * weights[rows, place, None]
            out.index_add_(0, rows, states.to(x.dtype))
        return out"""
_TWO_HIT = _HIT.format("hit").replace("dim=-1", "dim=(-1, -2)")


def _two_names(loop: str, skip: str = "", left: str = "", why: str = "") -> Example:
    after = _RANGE.format("mask.shape[0]" if "hit" in loop else "3")
    return Example(
        _TWO_NAMES.format(loop=loop, skip=skip),
        "" if why else _TWO_NAMES.format(loop=after, skip=left),
        why=why,
        calls=_CALLS,
        consent=not why,
    )


_CHOSEN = (
    _EXPERTS.replace("mask = F.one_hot(x.argmax(-1), num_classes=4)[:, :3].T", "chosen = x.argmax(-1)")
    .replace("torch.where(mask[number])", "torch.where(chosen == number)")
    .replace("self.experts[number](x[rows])", "expert(x[rows])")
    .replace("{loop}", "        for number, expert in enumerate(self.experts):")
)

# Loops over the rows themselves, each a tensor of one element.
_FOUND = """\
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for number in hit:"""
_ROW = _TWO_NAMES.replace("torch.where(mask[number])", "torch.where(mask[number].squeeze(0))")
_TAKEN = """\
            number = number[0]
            if number == self.left_out:
                continue
"""
_BY_NUMBER = """\
class f(nn.Module):
    left_out = 3

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4, 4))
        self.gate = nn.Linear(4, 4)

    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.gate(x), dim=1), 2, dim=-1)
        out = torch.zeros_like(x)
        with torch.no_grad():
            mask = F.one_hot(chosen, num_classes=4)
            mask = mask.permute(2, 1, 0)
{hit}{loop}
{first}            place, rows = torch.where(mask[number])
            states = F.linear(x[rows], self.weight[number])
            states = states * weights[rows, place, None]
            out.index_add_(0, rows, states.to(out.dtype))
        return out"""
_FOUND_UNDER = "            hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()\n"
_OTHERWISE = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = 2
        self.weight = nn.Parameter(torch.randn(2, 8, 4))
        self.identity = nn.Identity()
        self.gate = nn.Linear(4, 3)

    def forward(self, x):
        weights, chosen = torch.topk(F.softmax(self.gate(x), dim=1), 2, dim=-1)
        out = torch.zeros_like(x)
        mask = torch.nn.functional.one_hot(chosen, num_classes=3).permute(2, 1, 0)
{loop}
            place, rows = torch.where(mask[number].squeeze(0))
{skip}            state = x[rows]
            if number >= self.experts or self.weight is None:
                done = self.identity(state)
            else:
                gate, up = F.linear(state, self.weight[number]).chunk(2, dim=-1)
                done = F.silu(gate) * up
            out.index_add_(0, rows, done * weights[rows, place, None])
        return out"""
_ROW_HIT = """\
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero(as_tuple=False)
        for row in hit:
            number = int(row.item())"""


_GIVEN = """\
class f(nn.ModuleDict):
    def __init__(self):
        super().__init__({{f"expert_{{number}}": nn.Linear(4, 4) for number in range(3)}})

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = chosen.permute(2, 1, 0)
{hit}        for number in {loop}:
            place, rows = torch.where({selected})
            state = x[None, rows].reshape(-1, x.shape[-1])
            state = self[f"expert_{{{module}}}"](state)
            out.index_add_(0, rows, state.to(x.dtype))
        return out"""
_GIVEN_HIT = "        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()\n"
_GIVEN_CALLS = tuple(
    f"torch.randn({rows}, 4), torch.eye(3, dtype=torch.int64)[torch.arange({rows}) % 2][:, None]"
    for rows in (3, 5)
)


def _by_number(first: str, after: str, *, why: str = "", then: str = "") -> Example:
    before = _BY_NUMBER.format(hit=_FOUND_UNDER, loop="        for number in hit:", first=first)
    left = _BY_NUMBER.format(hit="", loop="        for number in range(mask.shape[0]):", first=after)
    calls, before = _CALLS, before.replace("        return out", f"{then}        return out")
    return Example(before, "" if why else left, why=why, calls=calls, consent=not why)


REWRITES = (
    Example(
        _ROW.format(loop=_FOUND, skip=""),
        _TWO_NAMES.format(loop=_RANGE.format("mask.shape[0]"), skip=""),
        calls=_CALLS,
        consent=True,
    ),
    _by_number(_TAKEN, _TAKEN.split("\n", 1)[1]),
    # The selection itself under no_grad.
    _by_number(
        "            number = number[0]\n            with torch.no_grad():\n    ",
        "            with torch.no_grad():\n    ",
    ),
    # A mask that a caller gives: numbers, and not only ones.
    Example(
        _GIVEN.format(hit=_GIVEN_HIT, loop="hit", selected="mask[number].squeeze(0)", module="number[0]"),
        _GIVEN.format(hit="", loop="range(mask.shape[0])", selected="mask[number]", module="number"),
        calls=_GIVEN_CALLS,
        consent=True,
    ),
    Example(
        _OTHERWISE.format(loop=_ROW_HIT, skip=_SKIP.replace("rows.shape[0]", "rows.numel()")),
        _OTHERWISE.format(loop=_RANGE.format("mask.shape[0]"), skip=""),
        calls=_CALLS,
        consent=True,
    ),
    _listed(_HIT.format("hit"), after=_ALL),
    _listed(_HIT.format("hit"), skip=_SKIP, after=_ALL),
    _two_names(_TWO_HIT),
    _two_names(_RANGE.format("3"), _SKIP),
    _two_names(_RANGE.format("3"), _SKIP.replace("rows.shape[0]", "rows.numel()")),
    # By the number of who was chosen, with the expert at hand.
    Example(_CHOSEN.format(skip=_SKIP), _CHOSEN.format(skip=""), calls=_CALLS, consent=True),
    _two_names(_RANGE.format("3"), "\n" + _SKIP + "\n", left="\n"),
)

LEAVES = (
    _by_number(_TAKEN + "            count = number.float()\n", "", why="used as a tensor: `number.float`"),
    _by_number(_TAKEN + "            x = x * number\n", "", why="`x` is read outside of the turn"),
    _by_number(
        _TAKEN + "            twice = number + number\n", "", why="used as a tensor: `number + number`"
    ),
    _by_number(_TAKEN, "", then="        out = out + hit.sum()\n", why="`hit` is read elsewhere too"),
    # Another mask than that whose rows were found.
    Example(
        _BY_NUMBER.format(
            hit=_FOUND_UNDER, loop="        mask = mask.flip(0)\n        for number in hit:", first=_TAKEN
        ),
        why="`mask` may",
        calls=_CALLS,
    ),
    # Not all that is done where a test says so is to give names values.
    Example(
        _OTHERWISE.format(loop=_ROW_HIT, skip="").replace(
            "done = self.identity(state)", "done = self.identity(state)\n                out = out + 1"
        ),
        why="`out` is read outside of the turn",
        calls=_CALLS,
    ),
    Example(
        _OTHERWISE.format(loop=_ROW_HIT, skip="").replace("or self.weight is None", "or x.sum() > 0"),
        why="may do something where nothing is selected",
        calls=_CALLS,
    ),
    Example(
        _CHOSEN.format(skip=_SKIP + "            expert = self.experts[0]\n"),
        why="`expert` is given another value in the loop",
        calls=_CALLS,
    ),
    # Only two of the three are asked for.
    _listed(_HIT.format("hit").replace("mask.sum", "mask[:2].sum"), why="not certainly the list of turns"),
    # A turn that selects something may be missing.
    _listed(_HIT.format("hit").replace("> 0", "> 1"), why="not certainly the list of turns"),
    _two_names(_HIT.format("hit"), why="not certainly the list of turns"),
    _listed(
        "        mask = mask + 0\n" + _HIT.format("hit"),
        why="`mask` may hold negative numbers, so that its sum",
    ),
    _listed(
        _HIT.format("hit").replace("        for", "        mask[0] = 1\n        for"),
        why="`mask` may be changed between its sum and the loop",
    ),
    _listed(
        _HIT.format("hit").replace("        for", "        count = len(hit)\n        for"),
        why="`hit` is read elsewhere too",
    ),
    # What a turn without rows would do.
    *(
        _listed(_RANGE.format("3"), skip=f"{_SKIP}            {line}\n", why=why)
        for line, why in (
            ("x = x * 2", "`x` is read outside of the turn"),
            ("out[number] = 1", "may do something where nothing is selected"),
            ("seen = self.experts[number](x)", "may do something where nothing is selected"),
            ("last = out.add_(1)", "may do something where nothing is selected"),
            ("number = 2", "is given another value in the loop"),
            ("rows = torch.arange(2)", "gives another value to what was selected"),
        )
    ),
)
