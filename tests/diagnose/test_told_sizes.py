"""What a size is said to come of is what it is made of, in programs that are put together at random.

Two arguments, a number, how many a mask selects and what the object keeps change from call to call by themselves;
what is made of them goes over a break, or into a function that breaks.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from warm_scanning import WarmScans

from breakscope.diagnose.made_of import _Reader as Reader
from breakscope.project.sources import Sources
from breakscope.report.model import Finding, Report

pytestmark = pytest.mark.torch

# What makes a value -> of which argument and dimension it has its size; or ``data``, ``n``, ``kept``.
_X, _Y = frozenset({("x", 0)}), frozenset({("y", 1)})
MADE: dict[str, frozenset[tuple[str, int]] | str] = {
    **dict.fromkeys(
        (
            *("x * 2", "x.repeat(2, 1)", "x[:-1]", "x.flatten()", "x[: x.shape[0] // 2]"),
            *(
                "x.new_zeros(x.shape[0] + 3)",
                "torch.cat([x, x[:1]])",
                "x.new_zeros((x.shape[0] + 7) // 8 * 8)",
            ),
        ),
        _X,
    ),
    **dict.fromkeys(
        (
            *(
                "y.t() + 1",
                "y[:, ::2].t()",
                "y.new_zeros(2 * y.shape[1] + 1)",
                "y.unfold(1, 3, 1).sum((0, 2))",
            ),
            "y.new_zeros(y.shape[1] * y.shape[1])",
        ),
        _Y,
    ),
    **dict.fromkeys(
        ("x.new_zeros(x.shape[0] * y.shape[1])", "x.new_zeros(x.shape[0] + y.shape[1])"), _X | _Y
    ),
    **dict.fromkeys(
        (
            *("x[mask]", "x[mask].repeat(2, 1)", "y[:, y[0] > 0.5].t()", "torch.arange(int(mask.sum()))"),
            *("x[mask.nonzero().squeeze(1)]", "torch.cat([x[mask], x[:1]])"),
        ),
        "data",
    ),
    **dict.fromkeys(("x.new_zeros(n)", "x.new_zeros(n + 2)"), "n"),
    **dict.fromkeys(("self.kept", "self.kept * 2"), "kept"),
}
PROGRAM = """
import torch

def show(*given):
    print(end="")
    return sum(one.sum() for one in given)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = torch.ones(3)

    def forward(self, x, y, mask, n):
        {made}
        {breaks}
        return {used}

net = Net()
step = torch.compile(net)
for rows, columns, n, selected in {calls}:
    mask = torch.zeros(rows, dtype=torch.bool)
    mask[:selected] = True
    net.kept = torch.ones(selected + 1)
    step(torch.rand(rows, 4), torch.rand(3, columns), mask, n)
"""


def program(chance: random.Random) -> tuple[str, dict[str, frozenset[tuple[str, int]] | str]]:
    made = chance.sample([*MADE], chance.choice([2, 3, 4]))
    names = [f"d{number}" for number in range(len(made))]
    came = [9, 12, 4, 5]
    calls = [tuple(came)]
    for _ in range(chance.choice([1, 2, 3])):
        for which in chance.sample(range(4), chance.choice([1, 1, 2, 3])):
            came[which] = chance.randint(8, 20) if which < 2 else chance.randint(2, 7)
        calls.append(tuple(came))
    into = chance.random() < 0.5
    source = PROGRAM.format(
        made="\n        ".join(f"{name} = {one}" for name, one in zip(names, made, strict=True)),
        breaks=f"show({', '.join(names)})" if into else 'print(end="")',
        used=" + ".join(f"{name}.sum()" for name in names),
        calls=calls,
    )
    truth = {name: MADE[one] for name, one in zip(names, made, strict=True)}
    return source, {**truth, **{f"given[{name[1:]}]": truth[name] for name in names}}


def told(finding: Finding, report: Report) -> set[tuple[str, int]] | str:
    """The arguments and dimensions that a finding names, or what it says else."""
    said = str(finding.advice)
    root = next((one for one in report.findings if one.fingerprint == finding.caused_by), None)
    sizes = {(name, int(at)) for at, name in re.findall(r"[Dd]imension (\d+) of ([xy])\b", said)}
    if sizes:
        return sizes
    if root is not None:
        return "data" if root.kind != "recompile" else told(root, report)
    if re.search(r"follows n\b|changed with n\b|a number that is passed \(n\)", said):
        return "n"
    only = re.search(r"from (what the model keeps|data)( \(line \d+ of script\.py\))? \(", said)
    return {"what the model keeps": "kept", "data": "data"}[only[1]] if only else said


def test_a_size_is_said_to_come_of_what_it_is_made_of(warm: WarmScans, tmp_path: Path) -> None:
    asked = 0
    for seed in range(200, 216):
        source, truth = program(random.Random(seed))
        report = warm.scan(tmp_path, source)
        for one in report.findings:
            name = re.match(r"given\[\d\]|d\d", one.guard.source or "") if one.guard else None
            if one.kind != "recompile" or one.guard is None or name is None or one.guard.cause != "size":
                continue
            asked += 1
            is_of, said = truth[name[0]], told(one, report)
            if isinstance(is_of, str):
                assert said == is_of, (seed, name[0], said, one.advice)
            else:
                assert isinstance(said, set), (seed, name[0], one.advice)
                assert said & is_of, (seed, name[0], one.advice)
    assert asked > 15


def test_a_global_is_what_is_kept_however_often_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("table = make()\n\ndef f(x):\n    return x[table] + table\n")
    file = str(tmp_path / "script.py")
    reader = Reader(file, Sources().around_function(file, 4))
    first, second = (reader.of_name("table", None) for _ in range(2))
    assert first is not None
    assert first == second
    assert first.kept
