"""How one got to a break, and where the value of a guard is used: each function stands there once."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame
from breakscope.render import terminal

pytestmark = pytest.mark.torch

TORCH = tuple(map(int, version("torch").split("+")[0].split(".")[:2]))
OWN = "/lib/breakscope/"

RESUMED = """
import torch

def step(x):
    scale = x.abs().amax().item()
    x = torch.relu(x / scale)
    print("in the resumed half")
    return x + 1

def main():
    compiled = torch.compile(step)
    for number in range(3):
        compiled(torch.full((4,), number + 1.0))

main()
"""


def functions(frames, *, resumed):
    raw = [RawFrame(file, line, name, None) for file, line, name in frames]
    return [(one.function, one.line) for one in Places((), OWN).stack(raw, resumed=resumed)]


def test_the_first_half_of_a_resumed_function_is_no_caller_of_the_second():
    path = [
        ("a.py", 9, "main"),
        ("a.py", 3, "f"),
        (f"{OWN}inside/capture/frames.py", 80, "hook"),
        ("a.py", 4, "f"),
    ]
    assert functions(path, resumed=True) == [("main", 9), ("f", 4)]
    inlined = [*path, ("a.py", 20, "f")]
    assert functions(inlined, resumed=True) == [("main", 9), ("f", 4), ("f", 20)], (
        "f calls itself from line 4"
    )


def test_a_function_that_calls_itself_stands_on_its_path_twice():
    path = [
        ("a.py", 9, "main"),
        ("a.py", 3, "f"),
        (f"{OWN}inside/capture/frames.py", 80, "hook"),
        ("a.py", 2, "f"),
    ]
    assert functions(path, resumed=False) == [("main", 9), ("f", 3), ("f", 2)]


def test_a_break_in_a_resumed_half_is_reached_once(scan):
    done = scan(RESUMED, quiet=False)
    paths = {one.code: [frame.function for frame in one.stack] for one in done.report.findings}
    assert paths["BS102"] == paths["BS104"] == ["<module>", "main", "step"]
    (number,) = [one for one in done.report.findings if one.kind == "recompile"]
    if TORCH >= (2, 13):  # older versions do not say
        assert [(frame.function, frame.line) for frame in number.stack] == [("step", 6)]
        shown = terminal.render(done.report, width=100, color=False, everything=True)
        assert "used at  script.py:6 step" in shown
