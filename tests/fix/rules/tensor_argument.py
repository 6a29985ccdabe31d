"""What the rule ``tensor-argument`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

_MASKED = ("torch.randn(3, 4), torch.randn(3, 4) > 0",)


def _f(
    old: str,
    new: str = "",
    *,
    why: str = "",
    calls: tuple[str, ...] = ("torch.randn(3, 4)",),
    arguments: str = "x",
) -> Example:
    before, after = (f"def f({arguments}):\n    return {text}\n" if text else "" for text in (old, new))
    return Example(before, after, why=why, calls=calls)


REWRITES: tuple[Example, ...] = (
    _f("x.clone().fill_(x.mean().item())", "x.clone().fill_(x.mean().detach())"),
    _f("x.clamp(max=float(x.mean()))", "x.clamp(max=x.mean().detach())"),
    _f("x.clamp(x.mean().item()) * 2", "x.clamp(x.mean().detach()) * 2"),
    _f(
        "x.exp().masked_fill(value=(x.min() - 1).item(), mask=m)",
        "x.exp().masked_fill(value=(x.min() - 1).detach(), mask=m)",
        arguments="x, m",
        calls=("torch.randn(3, 4, requires_grad=True), torch.randn(3, 4) > 0",),
    ),
    _f(
        "x.masked_fill(x > 0, t.item())",
        "x.masked_fill(x > 0, t.detach().clone())",
        arguments="x, t",
        calls=("torch.randn(3, 4), torch.tensor(0.5)",),
    ),
)

LEAVES: tuple[Example, ...] = (
    _f("x.clamp(max=int(x.mean()))", why="drops the fraction"),
    _f("x.long().clamp(max=x.mean().item())", why="`x.mean()` is not of the floating dtype of `x.long()`"),
    _f("x.masked_fill(x > 0, x.sum(0, keepdim=True)[:, :1].item())", why="has dimensions"),
    _f("x.new_full((3,), x.mean().item())"),
    _f("torch.full_like(x, x.mean().item())"),
)
