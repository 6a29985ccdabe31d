"""Arguments that are no tensors come in other kinds as well; a call that hangs in C ends its process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.torch


def test_what_is_none_at_every_call_is_known_by_its_name() -> None:
    from breakscope.inside.prove.kinds import never_given

    def loss(x: object, weight: object = None, *, scale: object = None, reduction: str = "mean") -> None: ...

    assert never_given(loss, [((1,), {}), ((1, None), {})]) == ["weight", "scale"]
    assert never_given(loss, [((1, None), {}), ((1, 2), {"scale": None})]) == ["scale"]
    assert never_given(len, [((1, 2), {})]) == []  # which it does not take


@pytest.mark.parametrize(
    ("given", "text", "other"),
    [
        (slice(1, 4), "", slice(1, 4, 2)),
        ({0, 3}, "", {0, 1, 3}),
        ({"gain": 2.0}, "scale", {"gain": 2.0, "scale": 5.0}),
        ({"ops": ["sin", "exp"]}, "", {"ops": ["exp", "sin"]}),
        ("head.weight", ".", "head.weight.head.weight.head.weight"),
        ("a b", "", "éa bé"),
        (3, "", 100_000),
    ],
)
def test_others_of_a_kind_are_tried(given: object, text: str, other: object) -> None:
    from breakscope.inside.prove.kinds import others

    def function(x: object) -> None: ...

    call = ((given,), {})
    tried = [one.calls([call])[0][0][0] for one in others(function, [call], [100_000.0], [text])]
    assert other in tried


def test_a_call_that_hangs_in_c_ends_its_process() -> None:
    script = """
    import math
    from breakscope.inside.prove import patience

    patience._IN_C_S = 0.2
    hasty = patience.Patience()
    with hasty.looking(), hasty.within(0.1):
        math.factorial(10**8)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, check=False)
    assert ended.returncode == 1
