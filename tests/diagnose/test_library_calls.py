"""What is said of code of libraries: what the call that leads there can do about it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.diagnose import library_advice, reach
from breakscope.diagnose.library_advice import Theirs
from breakscope.project.sources import Sources
from breakscope.report.model import Frame, Report
from breakscope.report.owners import is_standard, path_in_package

pytestmark = pytest.mark.torch
Scan = Callable[..., Report]


SEES = '\nimport sys\nsys.path.insert(0, "site-packages")\n'


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda text: warm.scan(tmp_path, SEES + textwrap.dedent(text).lstrip("\n"))


VISION = """
    import torch

    def positions(grid, kwargs=None):
        if kwargs is not None and (ids := kwargs.pop("position_ids", None)) is not None:
            return ids
        return torch.cat([torch.arange(h * w) for h, w in grid.tolist()])
"""
MODEL = """
    import torch
    from seeing.vision import positions

    class Model(torch.nn.Module):
        def forward(self, x, grid, **kwargs):
            ids = positions(grid, kwargs=kwargs)
            return x[: len(ids)] * 2
"""


def package(folder: Path, **files: str) -> None:
    place = folder / "site-packages" / "seeing"
    place.mkdir(parents=True)
    for name, text in {"__init__": "", **files}.items():
        (place / f"{name}.py").write_text(textwrap.dedent(text))


def test_options_that_take_what_was_computed_before_are_named(scan: Scan, tmp_path: Path) -> None:
    package(tmp_path, vision=VISION, model=MODEL)
    report = scan(
        """
        import torch
        from seeing.model import Model

        net = torch.compile(Model())
        for size in (2, 3):
            net(torch.ones(20, 4), torch.tensor([[2, size], [1, 2]]))
        """
    )
    found = [
        one for one in report.findings if one.location.function == "positions" and one.kind != "recompile"
    ]
    assert found
    assert "pass position_ids= in it, made by that function outside of the compiled code" in str(
        found[0].advice
    )


def test_a_function_is_replaced_in_the_module_that_imported_it(scan: Scan, tmp_path: Path) -> None:
    """``from seeing.parts import bounds``: another function by that name in ``parts`` is called by nobody."""
    package(
        tmp_path,
        parts="""
        def bounds(x):
            low = x.min().item()
            high = x.max().item()
            return low, high
        """,
        model="""
        import torch
        from seeing.parts import bounds

        class Model(torch.nn.Module):
            def forward(self, x):
                low, high = bounds(x)
                return x.clamp(low, high)
        """,
    )
    report = scan(
        """
        import torch
        from seeing.model import Model

        torch.compile(Model())(torch.ones(3))
        """
    )
    for found in coded(report, "BS102"):
        assert "model.bounds = torch.compiler.disable(model.bounds)" in str(found.advice)
    assert len(coded(report, "BS102")) == 2


STEPS = """
    class Steps:
        ratio = 100
        def step(self, x, timestep):
            before = timestep - self.ratio
            return x * 2 if before >= 0 else x * 3
"""


def test_a_number_that_the_call_passes_as_a_tensor_can_be_one_of_pythons(scan: Scan, tmp_path: Path) -> None:
    package(tmp_path, steps=STEPS)
    report = scan(
        """
        import torch
        from seeing.steps import Steps

        step = torch.compile(Steps().step, backend="eager")
        for t in torch.tensor([300, 200, 50]):
            step(torch.ones(3), t)
        """
    )
    (found,) = coded(report, "BS101")
    assert "is calculated of t alone: pass a number of Python's in the call at script.py:9, t.item()" in str(
        found.advice
    )


def test_a_number_for_a_compiled_call_is_made_outside_of_it(scan: Scan, tmp_path: Path) -> None:
    """In a helper of the library's step too, which hands the number on."""
    steps = """
        class Steps:
            ratio = 100
            def step(self, x, timestep):
                return x * self.rate(timestep)
            def rate(self, t):
                before = t - self.ratio
                return 2 if before >= 0 else 3
    """
    package(tmp_path, steps=steps)
    report = scan("""
        import torch
        from seeing.steps import Steps

        steps = Steps()

        @torch.compile(backend="eager")
        def denoise(x, t):
            return steps.step(x * 2, t)

        for t in torch.tensor([300, 200, 50]):
            denoise(torch.ones(3), t)
    """)
    (found,) = coded(report, "BS101")
    assert "calculated of t alone: hand a number of Python's to the call at script.py:11, int(t) made" in str(
        found.advice
    )


def test_generate_of_ones_own_is_not_that_of_transformers(scan: Scan, tmp_path: Path) -> None:
    package(
        tmp_path,
        decoding="""
        import torch

        def prefill(model, x):
            return model(x).argmax(-1)

        def one(model, x):
            return model(x).argmax(-1)

        def generate(model, prompt, batch):
            x = prefill(model, prompt.repeat(batch, 1))
            return one(model, x)
        """,
    )
    report = scan(
        """
        import torch
        from seeing import decoding

        decoding.one = torch.compile(decoding.one, backend="eager")
        decoding.prefill = torch.compile(decoding.prefill, backend="eager")
        net = torch.nn.Embedding(9, 9)
        for batch in (1, 2, 3):
            decoding.generate(net, torch.ones(1, 4, dtype=torch.long), batch)
        """
    )
    found = coded(report, "BS201")
    assert found
    for one in found:
        assert "cache_implementation" not in str(one.advice)


def test_a_package_beside_the_script_is_no_part_of_python(tmp_path: Path) -> None:
    """``pip install --target``: scipy's ``signal`` is not Python's module of that name."""
    target = tmp_path / "packages"
    (target / "scipy-1.0.dist-info").mkdir(parents=True)
    (target / "scipy-1.0.dist-info" / "RECORD").write_text("scipy/__init__.py,,\nscipy/signal/windows.py,,\n")
    file = str(target / "scipy" / "signal" / "windows.py")
    assert not is_standard(file)
    assert path_in_package(file) == "scipy/signal/windows.py"
    assert path_in_package(str(tmp_path / "script.py")) is None


def test_what_is_compiled_under_a_call_that_is_to_be_elsewhere_goes_with_it_and_no_more(
    scan: Scan, tmp_path: Path
) -> None:
    """Of one package: its function in the compiled step, and its module, which the script compiles by itself."""
    package(
        tmp_path,
        measuring="""
        def measure(x):
            a = x.sum().item()
            b = x.max().item()
            c = x.min().item()
            d = x.mean().item()
            return scaled(x, len(x)) + a + b + c + d

        def scaled(x, n):
            print(end="")
            return x * n
        """,
        net="""
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2
        """,
    )
    report = scan(
        """
        import torch
        from seeing.measuring import measure
        from seeing.net import Net

        net = torch.compile(Net())

        @torch.compile
        def step(x):
            return measure(x * 2)

        for size in (3, 4):
            net(torch.ones(size))
            step(torch.ones(size))
        """
    )
    moved = [one for one in report.findings if "breaks the graph at" in str(one.advice)]
    assert moved
    (own,) = [one for one in coded(report, "BS201") if one.location.function == "Net.forward"]
    assert "maybe_mark_dynamic" in str(own.advice)
    under = [one for one in report.findings if one.kind == "recompile" and one.location.function == "scaled"]
    assert under
    for one in under:
        assert one.caused_by in {site.fingerprint for site in moved}


RENAMES = """
    import functools

    class Cache:
        ready = False

    def renamed(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            if "old" in kwargs and "new" not in kwargs:
                kwargs["new"] = kwargs.pop("old")
            return function(*args, **kwargs)
        return wrapped
"""


def test_named_arguments_of_a_wrapper_are_no_dict_that_the_code_fills(scan: Scan, tmp_path: Path) -> None:
    package(tmp_path, renames=RENAMES)
    report = scan(
        """
        import torch
        from seeing.renames import renamed

        @renamed
        def f(x, new=1, scale=1):
            return x * new * scale
        g = torch.compile(f, backend="eager")
        for _ in range(2):
            g(torch.ones(3), new=2, scale=3)
            g(torch.ones(3), new=2)
        """
    )
    (found,) = coded(report, "BS211")
    assert "Calls pass other arguments by name" in str(found.advice)


def test_a_flag_that_a_library_keeps_is_not_the_callers_to_pass(scan: Scan, tmp_path: Path) -> None:
    package(
        tmp_path,
        model="""
        import torch

        class Cache:
            def __init__(self):
                self.updated = {0: False}

        class Model(torch.nn.Module):
            def forward(self, x, cache):
                y = x * 2 if cache.updated[0] else x * 3
                cache.updated[0] = True
                return y

        net = torch.compile(Model(), backend="eager")

        def generate(x):
            cache = Cache()
            for _ in range(3):
                x = net(x, cache=cache)
            return x
        """,
    )
    report = scan(
        """
        import torch
        from seeing.model import generate

        generate(torch.ones(3))
        """
    )
    (found,) = coded(report, "BS208")
    assert "is a flag that seeing's own code sets" in str(found.advice)


def test_what_changes_at_another_call_of_a_shared_wrapper_is_not_told(scan: Scan) -> None:
    report = scan(
        """
        import functools
        import torch

        def plain(function):
            @functools.wraps(function)
            def wrapped(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapped

        class Net(torch.nn.Module):
            @plain
            def forward(self, x, mask=None, dtype=None):
                return x * 2 if mask is None else x * mask

        net = torch.compile(Net(), backend="eager")
        for size in (4, 6):
            net(torch.ones(size), mask=None)
        net(torch.ones(4))
        net(torch.ones(4), mask=None, dtype=None)
        """
    )
    sizes = coded(report, "BS201")
    assert sizes
    assert coded(report, "BS211")
    for found in sizes:
        assert "passed by name" not in str(found.advice)


def test_a_number_that_a_function_of_the_library_compares_is_helped_by_no_setting(
    scan: Scan, tmp_path: Path
) -> None:
    package(
        tmp_path,
        fit="""
            def best(size, options):
                height, width = size
                if height > 3 * width:
                    return options[1]
                return options[0]
        """,
        model="""
            from .fit import best

            def resize(x, size):
                size = size.tolist()
                height, width = best(size, [(1, 2), (2, 2)])
                return x * height + width
        """,
    )
    report = scan("""
        import torch
        from seeing.model import resize

        f = torch.compile(resize, backend="eager")
        for size in (3, 4):
            f(torch.ones(2), torch.tensor([size, size]))
    """)
    (found,) = (one for one in report.findings if one.location.source and "tolist" in one.location.source)
    assert "no setting helps" in str(found.advice)


def test_the_configuration_under_which_a_library_comes_to_a_line_is_told(tmp_path: Path) -> None:
    """As transformers masks speech: in training alone, and where the rate is above 0."""
    file = tmp_path / "site-packages" / "speech.py"
    file.parent.mkdir()
    file.write_text(
        "class Model:\n    def mask(self, x, given=None):\n        if given is not None:\n            x = x * given\n"
        "        elif self.config.mask_prob > 0 and self.training:\n            x = x * drawn(x.shape)\n"
        "        return x\n\ndef drawn(shape):\n    return np.random.rand(*shape)\n"
    )
    frames = [Frame(str(tmp_path / "train.py"), 3, "<module>", None, "project")]
    frames += [Frame(str(file), line, name, None, "library") for line, name in ((6, "mask"), (10, "drawn"))]
    assert reach.unset(Sources(), frames) == ("self.config.mask_prob > 0 and self.training", "")


def test_what_a_library_reads_only_beside_another_break_goes_with_that() -> None:
    theirs = Theirs(
        "/env/site-packages/transformers/utils/output_capturing.py", "CompileableContextVar.get", "a.py:3"
    )
    said = str(library_advice.advice("BS107", "plain", theirs))
    assert "repair that one, and this goes with it" in said
    other = replace(theirs, function="Cache.get")
    assert "repair that one" not in str(library_advice.advice("BS107", "plain", other))


def test_the_librarys_line_is_named_where_pythons_own_code_breaks() -> None:
    theirs = Theirs("inspect.py", "wrapper", "train.py:9", standard="`signature.bind(self)` (capturing.py:3)")
    said = str(library_advice.advice("BS137", "plain", theirs))
    assert said.startswith(
        "The line is Python's own, and `signature.bind(self)` (capturing.py:3) of inspect.py"
    )


def test_an_argument_in_whose_place_a_failing_line_draws_is_named(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "def forward(x, noise=None):\n    if noise is not None:\n        noise = noise * 2\n    else:\n"
        "        noise = torch.randn(x.shape, generator=None)\n    return x + noise\n"
    )
    assert reach.option(Sources(), str(file), 5) == "noise"
    assert reach.option(Sources(), str(file), 3) == ""


def test_a_rate_that_is_asked_for_before_the_number_is_drawn_is_what_to_set(
    scan: Scan, tmp_path: Path
) -> None:
    """As transformers does: ``skip = False`` and, in training and above 0 alone, a number that is drawn."""
    model = """
        import torch

        class Encoder(torch.nn.Module):
            def __init__(self, config):
                super().__init__()
                self.layerdrop = config.encoder_layerdrop

            def forward(self, x, many=False):
                for _ in range(2):
                    skip = False
                    if self.training and self.layerdrop > 0.0:
                        skip = torch.rand([]) < self.layerdrop
                    if skip and not many:
                        continue
                    x = x + 1
                return x
    """
    package(tmp_path, model=model)
    report = scan("""
        import types
        import torch
        from seeing.model import Encoder

        net = torch.compile(Encoder(types.SimpleNamespace(encoder_layerdrop=0.5)), backend="eager")
        for _ in range(3):
            net(torch.ones(3))
    """)
    (found,) = coded(report, "BS301")
    said = str(found.advice)
    assert said.startswith(
        "Set config.encoder_layerdrop to 0 before the model is made, or compile the layers"
    )


def test_a_function_that_is_taken_from_a_table_is_not_replaced_by_name(scan: Scan, tmp_path: Path) -> None:
    """A name in its module may be given to something else: the table holds the function all the same."""
    loss = """
        def length(x, mask):
            kept = x[mask]
            n = int(kept.sum())
            return kept[:n].sum()
    """
    package(tmp_path, loss=loss, table="from seeing.loss import length\nLOSSES = {'length': length}\n")
    report = scan("""
        import torch
        from seeing.table import LOSSES

        @torch.compile(backend="eager")
        def f(x, mask):
            return LOSSES["length"](x, mask) + 1

        for _ in range(3):
            f(torch.ones(3), torch.tensor([True, False, True]))
    """)
    (found,) = coded(report, "BS105")
    assert "breakscope fix tries a rewrite as an overlay" in str(found.advice)
    assert "torch.compiler.disable" not in str(found.advice)
