"""What the rule ``masked-turn`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example
from breakscope.fix.rules.masked_turn import _ALL, _CALLS, _EXPERTS, _HIT

_AFTER = _EXPERTS.format(loop=_ALL)


def _looped(loop: str, after: str = _AFTER, why: str = "", write: str = "") -> Example:
    """The loop over a list of turns, which may write in another way."""
    before = _EXPERTS.format(loop=loop)
    if write:
        before = before.replace("out[mask[:, e]] = self.experts[e](x[mask[:, e]])", write)
    return Example(before, "" if why else after, why=why, calls=_CALLS, consent=not why)


_TWO = """\
        hit = mask.reshape(-1, 3).sum(dim=0)
        hit = torch.nonzero(hit, as_tuple=True)[
            0
        ].tolist()  # those that are hit
        for e in hit:"""
_BY_NAME = "out[mask[:, e]] = getattr(self, 'experts')[e](x[mask[:, e]])"

REWRITES = (
    _looped(_TWO),
    _looped(_HIT.replace("mask.sum(dim=0)", "mask.sum(0) > 0")),
    _looped(_HIT.replace("mask.sum(dim=0)", "mask.any(0)")),
    _looped("        for e in torch.nonzero(mask.sum(0), as_tuple=True)[0].tolist():"),
    _looped(
        _HIT,
        _AFTER.replace("self.experts[e](x", "getattr(self, 'experts')[e](x"),
        write=_BY_NAME,
    ),
)

LEAVES = (
    # A turn that has something may be missing.
    _looped(_HIT.replace("mask.sum(dim=0)", "mask[1:].sum(0)"), why="is not certainly the list"),
    # The mask may be another one in the loop.
    _looped(_HIT.replace("        for", "        mask = mask & (x[:, :1] > 0)\n        for"), why=""),
    _looped(_HIT.replace("        for", "        count = len(hit)\n        for"), why=""),
    # What a turn without rows would do.
    _looped(
        _HIT, why="may do something where nothing", write="out[mask[:, e]] = self.experts[e](x)[mask[:, e]]"
    ),
    _looped(_HIT, why="may do something where nothing", write="out[mask[:, e]] = x[mask[:, e]].add_(1)"),
)
