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


REWRITES = (
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
