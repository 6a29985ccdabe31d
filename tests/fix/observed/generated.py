"""Programs made by hypothesis: modules that store, alias, tag, compare by `is`, write in place, log and branch.

Run as a program to see one: ``python generated.py SHARD NUMBER`` writes the script of that place in the set of every
run to stdout; with ``--shard-of N`` that of a shard of N programs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from observed_program import PRELUDE

# Conditions of a tensor: some that go both ways in the steps of the scan, some that only later steps take.
CONDITIONS = (
    "{h}.abs().max() > 2.5",
    "{h}.sum() > 0",
    "{h}.mean() > 0.5",
    "{h}.max() > self.level",
    "{h}.isnan().any()",
    "{h}.norm() > 1e3",
    "({h} > 1).any() and ({h} < 100).all()",
)
NEW_VALUES = (
    "{h}.clamp(-2.5, 2.5)",
    "{h} * 0.5",
    "{h} - {h}.mean()",
    "{h} * self.w",
    "{h}.relu()",
    "torch.zeros_like({h})",
    "{h} + self.level",
)
COMPUTED = ("{h} * 2", "{h} + 1", "{h}.cos()", "{h} * self.w", "self.lin({h})", "{h}.view(-1).view(3, 4)")
# What is done with a tensor that somebody else may see.
STORES = (
    "self.kept = {h}",
    "self.box[0] = {h}",
    "KEPT['last'] = {h}",
    "self.pair = ({h}, x)",
    "self.same = {h} is x",
    "self.shape = tuple({h}.shape)",
)
EFFECTS = (
    "self.calls += 1",
    "self.names.add('called')",
    "KEPT['calls'] = self.calls",
    "self.count.add_(1)",
    "x.add_(1)",
    "self.level.mul_(1.01)",
)
OBSERVERS = (
    "print('kept', getattr(net.kept, 'tag', None), net.kept is x)",
    "print('box', net.box[0] is x, net.box[0] is net.kept)",
    "print('last', KEPT.get('last') is x, KEPT.get('calls'))",
    "print('pair', net.pair[0] is net.pair[1])",
    "print('same', net.same, net.shape, net.calls, sorted(net.names))",
    "print('memory', first(y).data_ptr() == x.data_ptr(), first(y)._base is None)",
    "print('is', first(y) is x, getattr(first(y), 'tag', None), first(y).is_leaf)",
    "print('flags', first(y).requires_grad, net.count.item(), round(net.level.item(), 4))",
    "print('state', sorted(net.state_dict()), sorted(set(vars(net)) - set(EMPTY)))",
    "print('grad mode', torch.is_grad_enabled())",
)
WRITES = (
    "x.add_(1)",
    "net.level.add_(1)",
    "net.count.zero_()",
    "net.level.copy_(x.abs().max())",
    "first(y).detach().mul_(3)",
)
FAILS_BY_ITSELF = "no backward"
LATE = ("print('late', [shown(v) for v in (net.kept, net.box[0], KEPT.get('last'), net.pair[0])])",)

HEAD = """\
import logging

KEPT = {}
LOG = logging.getLogger("generated")
LOG.setLevel(logging.CRITICAL)


def first(y):
    return y[0] if isinstance(y, tuple) else y


def shown(value):
    return [round(one, 4) for one in value.detach().flatten().tolist()[:3]] if value is not None else None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("level", torch.tensor(1.5))
        self.register_buffer("count", torch.tensor(0))
        self.kept, self.box, self.pair, self.names = None, [None], (None, None), set()
        self.same, self.shape, self.calls = None, None, 0

"""


@dataclass(frozen=True)
class Generated:
    """A script. Only what is in it counts."""

    source: str

    @property
    def files(self) -> dict[str, str]:
        return {"script.py": self.source}


@st.composite
def plain(draw: st.DrawFn, names: list[str]) -> list[str]:
    """A statement that does not break: computes, aliases, stores or has an effect."""
    h = draw(st.sampled_from(names))
    kind = draw(st.sampled_from(("compute", "compute", "alias", "store", "store", "effect")))
    if kind == "compute":
        name = draw(st.sampled_from(("h", "k")))
        names.append(name)
        return [f"{name} = {draw(st.sampled_from(COMPUTED)).format(h=h)}"]
    if kind == "alias":
        names.append("k")
        return [f"k = {h}"]
    return [draw(st.sampled_from(STORES if kind == "store" else EFFECTS)).format(h=h)]


@st.composite
def breaking(draw: st.DrawFn, names: list[str]) -> list[str]:
    """A statement at which Dynamo breaks, and for which breakscope has a rule."""
    h = draw(st.sampled_from(names))
    condition = draw(st.sampled_from(CONDITIONS)).format(h=h)
    new, other = (draw(st.sampled_from(NEW_VALUES)).format(h=h) for _ in range(2))
    kind = draw(st.sampled_from(KINDS))
    names.append(h)
    if kind == "if":
        return [f"if {condition}:", f"    {h} = {new}"]
    if kind == "if else":
        return [f"if {condition}:", f"    {h} = {new}", "else:", f"    {h} = {other}"]
    if kind == "other name":
        names.append("k")
        return [f"k = {h}", f"if {condition}:", f"    k = {new}"]
    if kind == "attribute":
        return [f"self.kept = {h}", f"if {condition}:", f"    self.kept = {new}"]
    if kind == "ternary":
        names.append("k")
        return [f"k = {new} if {condition} else {draw(st.sampled_from((h, other)))}"]
    if kind == "raise":
        return [f"if {h}.norm() > {draw(st.sampled_from(('60', '1e6')))}:", "    raise RuntimeError('large')"]
    if kind == "assert":
        return [f"assert {h}.max().item() <= {draw(st.sampled_from(('1e3', '1e6')))}"]
    if kind == "number":
        number = draw(st.sampled_from(("self.level", f"{h}.max()", "self.count")))
        return [f"{h} = {h} * {number}.item()"]
    if kind == "mask":
        return [f"m = {h} > 0", f"{h}[m] = {h}[m] * 0.5"]
    if kind == "message":
        return [f"LOG.warning('rows %d', {h}.shape[0])"]
    return [f"if {condition}:", f"    return {new}"]


ENDINGS = ("{h} + 1", "{h} * self.w", "self.lin({h})", "{h}.sin()", "({h} * 2, x * 2)", "{h}")
KINDS = (
    *("if", "if", "if", "if else", "other name", "other name", "attribute", "ternary"),
    *("raise", "assert", "number", "mask", "return", "message"),
)


@st.composite
def programs(draw: st.DrawFn) -> Generated:
    """A module with one or two breaks, and a main part that observes what it leaves."""
    names = ["x"]
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 2))):
        lines += draw(plain(names))
    lines += draw(breaking(names))
    # What the break decided about is what is stored, mostly.
    changed = names[-1]
    for _ in range(draw(st.integers(0, 2))):
        lines.append(draw(st.sampled_from(STORES)).format(h=changed))
    for _ in range(draw(st.integers(0, 1))):
        lines += draw(plain(names))
    if draw(st.integers(0, 5)) == 5:
        lines += draw(breaking(names))
    result = draw(st.sampled_from((changed, changed, names[-1])))
    lines.append(f"return {draw(st.sampled_from(ENDINGS)).format(h=result)}")
    forward = "    def forward(self, x):\n" + "".join(f"        {line}\n" for line in lines)
    return Generated(PRELUDE + HEAD + forward + draw(main_part()))


@st.composite
def main_part(draw: st.DrawFn) -> str:
    """Steps, and what watches them; a scan sees 4 of them, the judge 4 and 9."""
    trains = draw(st.booleans())
    observers = draw(st.lists(st.sampled_from(OBSERVERS), min_size=2, max_size=5, unique=True))
    writes = draw(st.lists(st.sampled_from(WRITES), max_size=2, unique=True))
    lines = ["x = batch(i)", "x.tag = i", "try:", "    y = run(x)"]
    lines += [
        "except (RuntimeError, AssertionError):",
        "    print('failed', i, net.calls, len(KEPT))",
        "    continue",
    ]
    lines += ["print(i, shown(first(y)))", *observers, *writes]
    if trains:
        lines += [
            "try:",
            "    first(y).sum().backward()",
            "except RuntimeError:",
            f"    print('{FAILS_BY_ITSELF}')",
        ]
        lines += ["print('grads', [None if p.grad is None else shown(p.grad) for p in net.parameters()])"]
        lines += ["net.zero_grad()"]
    if writes or draw(st.booleans()):
        lines += LATE
    frozen = "" if trains else ".requires_grad_(False)"
    return (
        "\n\nEMPTY = vars(Net())\ntorch.manual_seed(1)\n"
        f'net = Net(){frozen}\nrun = torch.compile(net, backend="eager")\nfor i in range(STEPS):\n'
        + "".join(f"    {line}\n" for line in lines)
    )


def shard(number: int, size: int) -> list[Generated]:
    """The programs of a shard, each once: the same for the same version of hypothesis."""
    found: dict[str, Generated] = {}

    @seed(number)
    @settings(
        max_examples=size * 6,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def collect(program: Generated) -> None:
        found.setdefault(program.source, program)

    collect()
    # The first ones are the simplest that there are, in every shard, and neighbours are alike.
    spread = list(found.values())[4:]
    return [spread[index * len(spread) // size] for index in range(size)]


if __name__ == "__main__":
    size = int(sys.argv[4]) if "--shard-of" in sys.argv else 10
    sys.stdout.write(shard(int(sys.argv[1]), size)[int(sys.argv[2])].source)
