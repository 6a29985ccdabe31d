"""A value that Python reads of an argument is read before the compiled call, or stays, for a reason.

Scripts are scanned by real Dynamo; what their functions see is recorded here, without compiling.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from scanning import Scanned
from test_fix import latest
from warm_scanning import run_command

from breakscope.fix.hoist.propose import Left, look, name_of, patch_of, together
from breakscope.fix.hoist.reads import Read
from breakscope.fix.patch import apply
from breakscope.fix.remedies.source import Files
from breakscope.fix.rule import Unsafe
from breakscope.inside.record.evidence import Evidence
from breakscope.inside.record.observe import Recorder, instrument

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

HEAD = """\
import functools

import torch
from torch import nn

torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, mask):
        h = self.lin(x)
        if mask.any().item():
            h = torch.cat([x, h], 0)
        return h.relu()[: x.shape[0]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.head = nn.Linear(4, 2)

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x)


"""
CALLS = """\
net = torch.compile(Net(), backend="eager")
for step in range(3):
    x = torch.randn(3, 4)
    mask = torch.zeros(3, 4, dtype=torch.bool)
    mask[0, 0] = step % 2 == 0
    net(x, mask)
"""
MASKED = HEAD + CALLS


def looked_at(scan: Scan, source: str) -> tuple[list[Read | Left], Files, str]:
    """What is said of each read of a number in a script."""
    scanned = scan(source)
    script = str(scanned.folder / "script.py")
    findings = [one for one in scanned.report.findings if one.code in ("BS101", "BS102")]
    assert findings

    def record(wanted: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Evidence]]:
        recorder, tree = Recorder(), ast.parse(source)
        (names,) = wanted.values()
        instrument(tree, source, names, recorder)
        module = {"__name__": "__main__", **recorder.names()}
        with torch.compiler.set_stance("force_eager"), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tree, script, "exec"), module)
        return {file: {name: recorder.evidence(name) for name in names} for file in wanted}

    files = Files()
    return list(look(findings, scanned.report, files, script, record)), files, script


def rewritten(scan: Scan, source: str) -> str:
    """A script with its read moved in front of the compiled call."""
    answers, files, script = looked_at(scan, source)
    reads = [answer for answer in answers if isinstance(answer, Read)]
    assert len(reads) == len(answers), answers
    (same,) = together(reads)
    return apply(source, patch_of(same, name_of(same, files), files, "written").edits).replace(
        str(Path(script).parent), ""
    )


def changed(source: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return source


PASSED_ON = (
    ("    def forward(self, x, mask):", "    def forward(self, x, mask, mask_any=None):"),
    ("layer(x, mask)", "layer(x, mask, mask_any=mask_any)"),
)
READ = (
    "        if mask.any().item():\n",
    "        if mask_any is None:\n            mask_any = mask.any().item()\n        if mask_any:\n",
)
PASSED = ("net(x, mask)", "net(x, mask, mask_any=mask.any().item())")
ASKED = ("if mask.any().item()", "if mask is not None and mask.any().item()")

# What is changed of the script, and what becomes of that.
MOVED: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "a mask that each layer asks": (MASKED, (*PASSED_ON, READ, PASSED)),
    "a condition that is a tensor": (
        changed(MASKED, ("mask.any().item()", "mask.any()")),
        (
            *PASSED_ON,
            (
                "        if mask.any():\n",
                "        if mask_any is None:\n            mask_any = bool(mask.any())\n        if mask_any:\n",
            ),
            ("net(x, mask)", "net(x, mask, mask_any=bool(mask.any()))"),
        ),
    ),
    "a name of the module": (
        changed(MASKED, ("net = ", "mask_any = 3\nnet = ")),
        tuple((old, new.replace("mask_any", "mask_any_1")) for old, new in (*PASSED_ON, READ, PASSED)),
    ),
    "an argument that may be None": (
        changed(
            MASKED,
            ("x, mask):", "x, mask=None):"),
            ASKED,
            ("    net(x, mask)", "    net(x)\n    net(x, mask)"),
        ),
        (
            ("x, mask=None):", "x, mask=None, mask_any=None):"),
            ("layer(x, mask)", "layer(x, mask, mask_any=mask_any)"),
            ("and mask.any().item()", "and (mask.any().item() if mask_any is None else mask_any)"),
            ("net(x, mask)", "net(x, mask, mask_any=None if mask is None else mask.any().item())"),
        ),
    ),
    "an argument that is computed in the call": (
        changed(MASKED, ("net(x, mask)", "net(x, x > step)")),
        (
            *PASSED_ON,
            READ,
            (
                "    net(x, x > step)",
                "    mask_passed = x > step\n    net(x, mask_passed, mask_any=mask_passed.any().item())",
            ),
        ),
    ),
    "a batch that is a dict": (
        changed(MASKED, ("    net(x, mask)", '    batch = {"x": x, "mask": mask}\n    net(**batch)')),
        (*PASSED_ON, READ, ("net(**batch)", "net(**batch, mask_any=batch['mask'].any().item())")),
    ),
    "keyword arguments, and others that are taken": (
        changed(
            MASKED,
            ("layer(x, mask)", "layer(x, mask=mask)"),
            ("        h = self.lin(x)\n", "        h = self.lin(x)\n"),
        ),
        (
            PASSED_ON[0],
            ("layer(x, mask=mask)", "layer(x, mask=mask, mask_any=mask_any)"),
            READ,
            PASSED,
        ),
    ),
    "two callers": (
        MASKED + "    with torch.no_grad():\n        net(x, mask=mask)\n",
        (*PASSED_ON, READ, PASSED, ("net(x, mask=mask)", "net(x, mask=mask, mask_any=mask.any().item())")),
    ),
    "a caller that needs no compile of its own": (
        changed(MASKED, ("net = ", "def evaluate(x, mask):\n    return net(x, mask=mask)\n\n\nnet = "))
        + "    evaluate(x, mask)\n",
        (*PASSED_ON, READ, PASSED, ("net(x, mask=mask)", "net(x, mask=mask, mask_any=mask.any().item())")),
    ),
    "gradients switched off by a decorator": (
        changed(MASKED, ("nn.Linear(4, 2)\n\n    def", "nn.Linear(4, 2)\n\n    @torch.no_grad()\n    def")),
        (*PASSED_ON, READ, PASSED),
    ),
    "a class that inherits its forward": (
        changed(
            MASKED,
            ("class Net", "class Other(Layer):\n    pass\n\n\nclass Net"),
            ("Layer() for", "Other() for"),
        ),
        (*PASSED_ON, READ, PASSED),
    ),
    "a constant of the module": (
        changed(
            MASKED,
            ("mask.any().item()", "(mask == PAD).any().item()"),
            ("class Layer", "PAD = 0\n\n\nclass Layer"),
        ),
        (
            *PASSED_ON,
            (
                READ[0].replace("mask.any()", "(mask == PAD).any()"),
                READ[1].replace("mask.any()", "(mask == PAD).any()"),
            ),
            ("net(x, mask)", "net(x, mask, mask_any=(mask == PAD).any().item())"),
        ),
    ),
    "operations and names on the way": (
        changed(
            MASKED,
            ("layer(x, mask)", "layer(x, ~kept)"),
            ("        for layer", "        kept = mask.logical_not().view(mask.shape)\n        for layer"),
        ),
        (
            PASSED_ON[0],
            ("layer(x, ~kept)", "layer(x, ~kept, mask_any=mask_any)"),
            READ,
            (
                "net(x, mask)",
                "net(x, mask, mask_any=(~mask.logical_not().view(mask.shape)).any().item())",
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_value_of_an_argument_is_read_before_the_compiled_call(name: str, warm_scan: Scan) -> None:
    source, pairs = MOVED[name]
    assert rewritten(warm_scan, source) == changed(source, *pairs)


FORWARDING = """\
def logged(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


class Net"""
OVERRIDDEN = """\
class Other(Layer):
    def forward(self, x, mask):
        return super().forward(x, mask) + 1


class Net"""
LOOP = "        for layer in self.layers:\n"

STAYS: dict[str, tuple[str, str]] = {
    "a value that is computed on the way": (
        changed(MASKED, ("layer(x, mask)", "layer(x, x > mask)")),
        "`x` has several values in the `for` around it",
    ),
    "a mask that is written into": (
        changed(MASKED, (LOOP, f"        mask[1, 1] = True\n{LOOP}")),
        "`mask[1, 1] = True` in Net.forward may write into what is read",
    ),
    "a view of it that is written into": (
        changed(MASKED, (LOOP, f"        rows = mask.view(-1)\n        rows.logical_not_()\n{LOOP}")),
        "`rows.logical_not_()` in Net.forward may write into what is read",
    ),
    "another tensor that may be the same one": (
        changed(
            MASKED,
            ("net(x, mask)", "net(mask, mask)"),
            ("self.lin(x)", "self.lin(x.float())"),
            ("cat([x, h]", "cat([h, h]"),
            (
                "        h = self",
                "        if x.dtype == torch.bool:\n            x.logical_not_()\n        h = self",
            ),
        ),
        "`x.logical_not_()` in Layer.forward may write into what is read",
    ),
    "an attribute that keeps it": (
        changed(MASKED, (LOOP, f"        self.kept = mask\n        self.kept.fill_(False)\n{LOOP}")),
        "`self.kept` keeps what is read, and may be written into",
    ),
    "a method that a subclass overrides": (
        changed(
            MASKED,
            ("class Net", OVERRIDDEN),
            ("ModuleList(Layer() for _ in range(2))", "ModuleList([Layer(), Other()])"),
        ),
        "`layer` is also",
    ),
    "arguments that are handed on as they come": (
        changed(
            MASKED,
            ("class Net", FORWARDING),
            ("nn.Linear(4, 2)\n\n    def", "nn.Linear(4, 2)\n\n    @logged\n    def"),
        ),
        "is made inside of a function",
    ),
    "random numbers": (
        changed(MASKED, ("mask.any().item()", "torch.rand(()).item() > 0.5")),
        "draws random numbers",
    ),
    "an attribute of the module": (
        changed(MASKED, ("mask.any().item()", "self.lin.weight.sum().item() > 0")),
        "`self.lin.weight` is no argument, and may be another one before the call",
    ),
    "a call that Python makes": (
        changed(MASKED, ("    net(x, mask)", "    list(map(net, [x], [mask]))")),
        "made by one of Python's own functions",
    ),
    "another value at each call": (
        changed(MASKED, ("x = layer(x, mask)", "x = layer(x, mask)\n            x = layer(x, ~mask)")),
        "Layer.forward gets another `mask` at each of its calls",
    ),
    "a constant that has another name at the call": (
        changed(
            MASKED,
            ("mask.any().item()", "(mask == PAD).any().item()"),
            ("class Layer", "PAD = 0\n\n\nclass Layer"),
            (CALLS, "def main(PAD):\n    " + CALLS.replace("\n", "\n    ") + "\n\nmain(1)\n"),
        ),
        "`PAD` of a module means something else, or nothing, where the call is",
    ),
    "a function that looks at its own names": (
        changed(MASKED, (LOOP, f"        assert len(locals()) == 3\n{LOOP}")),
        "the function looks at its own local variables",
    ),
    "autocast around the call alone": (
        changed(
            MASKED,
            ("mask.any().item()", "mask.prod().item() > 0"),
            ("dtype=torch.bool", "dtype=torch.float32"),
            ("    net(x, mask)", '    with torch.autocast("cpu", torch.bfloat16):\n        net(x, mask)'),
            ("    def forward", '    @torch.autocast("cpu", enabled=False)\n    def forward'),
        ),
        "the call is under autocast, which decides the dtype of `prod`",
    ),
    "autocast": (
        changed(
            MASKED,
            ("mask.any().item()", "mask.prod().item() > 0"),
            ("dtype=torch.bool", "dtype=torch.float32"),
            ("    net(x, mask)", '    with torch.autocast("cpu", torch.bfloat16):\n        net(x, mask)'),
        ),
        "autocast decides the dtype of `mask.prod()`",
    ),
}


def test_a_subclass_that_takes_no_such_argument_is_a_limit(warm_scan: Scan) -> None:
    answers, _, _ = looked_at(warm_scan, changed(MASKED, ("class Net", OVERRIDDEN)))
    assert [answer.limits for answer in answers if isinstance(answer, Read)] == [
        ("calls of Other.forward, which takes no such argument",)
    ]


@pytest.mark.parametrize("name", STAYS)
def test_a_value_stays_where_it_is_read(name: str, warm_scan: Scan) -> None:
    source, why = STAYS[name]
    answers, files, _ = looked_at(warm_scan, source)
    for answer in answers:
        if isinstance(answer, Left):
            assert why in answer.why
        else:
            with pytest.raises(Unsafe, match=why):
                patch_of([answer], "it", files, "written")


def fixed(folder: Path, *options: str) -> None:
    run_command("fix", "--all", "--no-inductor", "--select", "BS1", *options, folder=folder, torch=True)


PRINTED = changed(MASKED, ("    net(x, mask)", "    print(net(x, mask).sum().item())"))


@pytest.mark.slow
def test_a_mask_is_read_once_a_step_and_the_region_is_whole(warm_scan: Scan) -> None:
    folder = warm_scan(PRINTED).folder
    fixed(folder, "--write")
    (finding,) = (one for one in latest(folder).findings if one.code == "BS102")
    said = finding.suggestion
    assert said is not None
    assert (said.rule, said.status) == ("hoist", "proved"), said.why
    assert said.evidence["whole_script"]["crossings"] == [6, 0]
    assert said.evidence["whole_script"]["sites"] == [1, 0]
    ways = {one["condition"]: (one["true"] > 0, one["false"] > 0) for one in said.evidence["branches"]}
    assert ways["mask.any().item()"] == (True, True)
    assert (folder / "script.py").read_text() == changed(PRINTED, *PASSED_ON, READ, PASSED)


HELPER = """\
def prepare(x, mask):
    mask[1, 1] = x.sum() > 0
    return x * 2


class Net"""
HOOK = """\
def flipped(module, args):
    return args[0], ~args[1]


net = Net()
net.register_forward_pre_hook(flipped)
net = torch.compile(net, backend="eager")
"""
# What no look at the functions on the way shows, and the words with which it is found.
HIDDEN = {
    "a function that writes into the mask": (
        changed(PRINTED, ("class Net", HELPER), (LOOP, f"        x = prepare(x, mask)\n{LOOP}")),
        "the rewrite computes something else",
    ),
    "a hook that passes another mask": (
        changed(PRINTED, ('net = torch.compile(Net(), backend="eager")\n', HOOK)),
        "what is passed is not what is read",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HIDDEN)
def test_what_the_source_does_not_show_is_found_by_running_it(name: str, warm_scan: Scan) -> None:
    source, why = HIDDEN[name]
    folder = warm_scan(source).folder
    fixed(folder)
    (finding,) = (one for one in latest(folder).findings if one.code == "BS102")
    said = finding.suggestion
    assert said is not None
    assert said.status == "refused"
    assert any(why in note for note in said.evidence["notes"]), said
