"""Every two arms between which one has to choose are held against each other."""

from __future__ import annotations

from pathlib import Path

from breakscope.bench.conducted import Conducted
from breakscope.bench.players import Player
from breakscope.bench.verdicts import judge
from breakscope.inside.bench.plan import Options


def test_fixed_and_modes_are_held_against_each_other() -> None:
    options = Options(modes=("default", "max-autotune"), fixes="fixes")
    found = Conducted()
    for number, arm in enumerate(options.arms()):
        one = Player(arm, 0, None, Path(), None, None, 1.0)  # type: ignore[arg-type]
        one.rounds = [[{"ms": 1.0 + number}, {"ms": 1.1 + number}] for _ in range(10)]
        found.players.append(one)
    names = [arm.name for arm in options.arms()]
    verdicts = judge(found, options, names)
    assert [(one.arm, one.base) for one in verdicts] == [
        ("compiled · default", "eager"),
        ("fixed · default", "eager"),
        ("fixed · default", "compiled · default"),
        ("compiled · max-autotune", "eager"),
        ("compiled · max-autotune", "compiled · default"),
        ("fixed · max-autotune", "eager"),
        ("fixed · max-autotune", "compiled · max-autotune"),
        ("fixed · max-autotune", "fixed · default"),
    ]
    assert {one.judgement for one in verdicts} == {"slower"}
    left = judge(found, options, [name for name in names if name != "compiled · default"])
    assert "compiled · default" not in {one.base for one in left}
