"""What counts as compiled, and what it calls."""

from __future__ import annotations

from pathlib import Path

from lint_setup import lint_text

HEAD = """
import torch
from torch import Tensor, nn
"""


def places(folder: Path, *sources: str, **named: str) -> list[tuple[str, str, str]]:
    """(function, level, why) of each finding."""
    found = lint_text(folder, *sources, **named)
    return [(one.location.function or "", one.level, one.why) for one in found]


def test_only_what_is_compiled_counts(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn

        def train(model, x):
            print(model(x).item())

        class Plain:
            def forward(self, x):
                print(x)

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                print(x)

        class Net(nn.Module):
            def forward(self, x):
                return x

            def describe(self):
                print("not called by forward")
    """
    assert places(tmp_path, source) == []


def test_the_ways_to_be_compiled(tmp_path: Path) -> None:
    source = """
        import functools
        import torch
        from torch import compile as compile_it

        @torch.compile
        def one(x):
            print(x)

        @torch.compile(mode="reduce-overhead")
        def two(x):
            print(x)

        @functools.partial(torch.compile, dynamic=True)
        def three(x):
            print(x)

        @compile_it
        def four(x):
            print(x)

        def five(x):
            print(x)

        class Stepper:
            def __init__(self):
                self.run = torch.compile(self.step)

            def step(self, x):
                print(x)

        def main():
            def six(x):
                print(x)
            torch.compile(five)
            torch.compile(six)
            print("not compiled")
    """
    assert [name for name, _, _ in places(tmp_path, source)] == [
        "one",
        "two",
        "three",
        "four",
        "five",
        "Stepper.step",
        "main.<locals>.six",
    ]


def test_modules_by_their_bases_in_other_files(tmp_path: Path) -> None:
    package = {
        "pkg____init__": "from .layers import Base\n",
        "pkg__layers": HEAD + "class Base(nn.Module):\n    def extra(self, x):\n        return x\n",
        "pkg__net": "from . import Base\nclass Net(Base):\n    def forward(self, x):\n        print(x)\n",
        "outside": "from lib import Whatever\nclass Out(Whatever):\n    def forward(self, x):\n        print(x)\n",
    }
    assert places(tmp_path, **package) == [
        ("Out.forward", "likely", "forward of a module"),
        ("Net.forward", "likely", "forward of a module"),
    ]


def test_calls_are_followed_through_files_and_methods(tmp_path: Path) -> None:
    files = {
        "pkg____init__": "",
        "pkg__ops": "def noisy(x):\n    print(x)\n    return x\n\ndef unused(x):\n    print(x)\n",
        "pkg__again": "from pkg.ops import noisy as loud\n",
        "pkg__net": HEAD
        + """
from . import again
from .ops import unused

class Parent(nn.Module):
    def prepare(self, x):
        return again.loud(x)

class Net(Parent):
    def forward(self, x):
        return self._inner(self.prepare(x))

    def _inner(self, x):
        return apply(self._leaf, x)

    def _leaf(self, x):
        print("leaf")
        return x
""",
    }
    assert places(tmp_path, **files) == [
        ("Net._leaf", "likely", "called from Net.forward"),
        ("noisy", "likely", "called from Net.forward"),
    ]


def test_a_method_known_by_name_only_is_possible(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn

        class Tracker:
            def observe_step(self, x):
                print(x)

        class Net(nn.Module):
            def forward(self, x, tracker):
                tracker.observe_step(x)
                return x
    """
    assert places(tmp_path, source) == [("Tracker.observe_step", "possible", "called from Net.forward")]
    annotated = source.replace("x, tracker)", "x, tracker: Tracker)")
    assert places(tmp_path, annotated)[0][1] == "likely"


def test_disabled_functions_break_where_they_are_called(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn

        @torch.compiler.disable
        def record(x):
            print(x.item())

        class Net(nn.Module):
            def forward(self, x):
                record(x)
                return x
    """
    [one] = lint_text(tmp_path, source)
    assert (one.code, one.level, one.location.source) == ("BS108", "likely", "record(x)")


def test_wrappers_of_decorators_run_and_decorators_do_not(tmp_path: Path) -> None:
    source = """
        import functools
        import torch
        from torch import nn

        def logged(function):
            print("while decorating")

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                print("at every call")
                return function(*args, **kwargs)

            return wrapper

        def scaled(factor):
            def decorate(function):
                print("while decorating")

                def wrapper(*args, **kwargs):
                    print("at every call")
                    return function(*args, **kwargs) * factor

                return wrapper
            return decorate

        class Net(nn.Module):
            @logged
            @scaled(2)
            def forward(self, x):
                return x
    """
    assert [name for name, _, _ in places(tmp_path, source)] == [
        "logged.<locals>.wrapper",
        "scaled.<locals>.decorate.<locals>.wrapper",
    ]


def test_functions_in_a_table_may_be_called(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn

        def quiet(x):
            return x

        def loud(x):
            print(x)
            return x

        WAYS = {"quiet": quiet, "loud": loud}

        class Net(nn.Module):
            def forward(self, x):
                return WAYS[self.way](x)
    """
    assert places(tmp_path, source) == [("loud", "possible", "called from Net.forward")]


def test_steps_of_lightning_are_possible(tmp_path: Path) -> None:
    source = """
        import lightning as L

        class Lit(L.LightningModule):
            def training_step(self, batch, index):
                print(index)
    """
    assert places(tmp_path, source) == [("Lit.training_step", "possible", "step of a LightningModule")]


def test_a_float_argument_of_a_compiled_function(tmp_path: Path) -> None:
    source = """
        import torch

        def update(w, lr: float, eps: float = 1e-8):
            return w * lr

        fast = torch.compile(update)
    """
    [one] = lint_text(tmp_path, source)
    assert (one.code, one.level, one.location.column) == ("BS207", "possible", 15)


def test_circles_end(tmp_path: Path) -> None:
    files = {
        "one": "from two import g\ndef f(x):\n    return g(x)\n",
        "two": "from one import f\nfrom three import thing\ndef g(x):\n    print(x)\n    return f(x)\n",
        "three": "from four import thing\n",
        "four": "from three import thing\n",
        "net": HEAD
        + "from one import f\nclass A(B):\n    pass\nclass B(A, nn.Module):\n"
        + "    def forward(self, x):\n        return f(x)\n",
    }
    assert places(tmp_path, **files) == [("g", "likely", "called from B.forward")]
