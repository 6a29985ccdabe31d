"""What is proposed for a call, as it stands in source: the edit, or why there is none."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import SAMPLES

from breakscope.fix.patch import Patch, Refusal, apply
from breakscope.fix.remedies.propose import propose
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import Proposal, subject
from breakscope.fix.source_file import shown_diff
from breakscope.report.model import Compiled, Counts, Finding, Guard, Location, Report, Signature

SIZE = Guard("", "x", "4", "6", "size", 0, ("4", "6"))


def place(path: Path, text: str) -> Location:
    """Where an expression stands in a file."""
    tree = ast.parse(path.read_text())
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n) == text)
    assert node.end_lineno
    assert node.end_col_offset
    column, end = node.col_offset + 1, node.end_col_offset + 1
    return Location(str(path), node.lineno, column, node.end_lineno, end, "main")


def recompile(guard: Guard, location: Location) -> Finding:
    return Finding(
        "f" * 16,
        "BS201",
        "recompile",
        None,
        "",
        "",
        "",
        (),
        location,
        (),
        Counts(1, None, ("0/1",)),
        guard=guard,
    )


def signature(
    call: Location, origin: str | None, parameters: tuple[str, ...], args: int, **more: object
) -> Signature:
    fields: dict[str, object] = {
        "compile_id": "0/1",
        "function": "f",
        "entry": "f",
        "module": False,
        "entry_file": None,
        "entry_line": None,
        "parameters": parameters,
        "arguments": {"args": [{"none": True}] * args, "kwargs": {}},
        "origins": {} if origin is None else {"x": origin},
        "call": call,
        "training": None,
        "grad": True,
        "inference": False,
        "autocast": None,
        "step": 0,
    }
    return Signature(**{**fields, **more})  # type: ignore[arg-type]


def proposals(
    folder: Path,
    source: str,
    call: str,
    *,
    guard: Guard = SIZE,
    origin: str | None = "args[0]",
    parameters: tuple[str, ...] = ("x",),
    args: int = 1,
    at: int = 3,
    **more: object,
) -> tuple[list[Proposal], Files, Path]:
    """Proposals for the function ``f``, compiled in line 3 of a script, whose argument x varied."""
    path = folder / "script.py"
    path.write_text("import torch\n\n" + textwrap.dedent(source).lstrip("\n"))
    base: Report = SAMPLES["recompiles"]
    where = place(path, call)
    finding = recompile(guard, Location(str(path), at))
    report = replace(
        base,
        run=replace(base.run, targets=(Compiled("f", "script", str(path), 3),), cwd=str(folder)),
        findings=(finding,),
        signatures=(signature(where, origin, parameters, args, **more),),
    )
    files = Files()
    return propose(subject(finding, report, str(path)), files), files, path


def changed(candidate: Proposal, files: Files, path: Path) -> str:
    """The script with a candidate applied, without its first two lines."""
    assert isinstance(candidate, Patch), candidate
    file = files.open(str(path))
    assert file is not None
    text = apply(file.text, candidate.edits)
    ast.parse(text)
    return text.removeprefix("import torch\n\n")


def rules(found: list[Proposal]) -> list[str]:
    return [one.rule if isinstance(one, Patch) else "refused" for one in found]


CALLS = {
    "a name": ("f = torch.compile(g)\nfor x in data:\n    y = f(x)\n", "f(x)", "args[0]", "    torch._dynamo.maybe_mark_dynamic(x, 0)\n    y = f(x)\n"),
    "an attribute": ("f = torch.compile(g)\ny = f(batch.tokens).sum()  # why\n", "f(batch.tokens)", "args[0]", "torch._dynamo.maybe_mark_dynamic(batch.tokens, 0)\ny = f(batch.tokens).sum()  # why\n"),
    "a keyword": ("f = torch.compile(g)\ny = f(1, x=data[0])\n", "f(1, x=data[0])", "kwargs['x']", "torch._dynamo.maybe_mark_dynamic(data[0], 0)\ny"),
    "a mapping": ("f = torch.compile(g)\ny = f(**inputs)\n", "f(**inputs)", "kwargs['x']", "torch._dynamo.maybe_mark_dynamic(inputs['x'], 0)\ny"),
    "a part": ("f = torch.compile(g)\ny = f(batch)\n", "f(batch)", "args[0]['text']", "torch._dynamo.maybe_mark_dynamic(batch['text'], 0)\ny"),
    "computed in the call": (
        "f = torch.compile(g)\ndef main():\n    return f(torch.randn(n, 8))\n",
        "f(torch.randn(n, 8))",
        "args[0]",
        "    x = torch.randn(n, 8)\n    torch._dynamo.maybe_mark_dynamic(x, 0)\n    return f(x)\n",
    ),
    "in a with": ("f = torch.compile(g)\nif a:\n  with torch.no_grad():\n    f(x)\n", "f(x)", "args[0]", "    torch._dynamo.maybe_mark_dynamic(x, 0)\n    f(x)\n"),
    "in the head of a for": ("f = torch.compile(g)\nfor y in f(x):\n    pass\n", "f(x)", "args[0]", "torch._dynamo.maybe_mark_dynamic(x, 0)\nfor y in f(x):\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_dimension_is_marked_in_front_of_the_call(case: str, tmp_path: Path) -> None:
    source, call, origin, expected = CALLS[case]
    found, files, path = proposals(tmp_path, source, call, origin=origin)
    assert rules(found) == ["mark-dynamic", "dynamic-true"]
    assert expected in changed(found[0], files, path)


def test_what_two_functions_call_otherwise_gets_one_name(tmp_path: Path) -> None:
    """Two findings about one argument: with a name for each, the second change would clash with the first."""
    path = tmp_path / "script.py"
    path.write_text("import torch\n\nf = torch.compile(g)\nf(torch.randn(n, 8))\n")
    call = place(path, "f(torch.randn(n, 8))")
    findings = [recompile(replace(SIZE, source=name), Location(str(path), 3)) for name in ("x", "row")]
    compiles = [
        signature(call, None, ("x",), 1, compile_id=f"{index}/1", origins={name: "args[0]"})
        for index, name in enumerate(("x", "row"))
    ]
    findings = [
        replace(one, counts=Counts(1, None, (compiled.compile_id,)))
        for one, compiled in zip(findings, compiles, strict=True)
    ]
    base: Report = SAMPLES["recompiles"]
    run = replace(base.run, targets=(Compiled("f", "script", str(path), 3),), cwd=str(tmp_path))
    report = replace(base, run=run, findings=tuple(findings), signatures=tuple(compiles))
    files = Files()
    first, second = (
        changed(propose(subject(one, report, str(path)), files)[0], files, path) for one in findings
    )
    assert first == second
    assert "x = torch.randn(n, 8)" in first


def test_a_value_that_gets_its_name_inside_the_call_is_left_there(tmp_path: Path) -> None:
    source = "f = torch.compile(g)\ny = f(x=(ids := data()), y=ids[0])\n"
    call = "f(x=(ids := data()), y=ids[0])"
    found, _, _ = proposals(tmp_path, source, call, origin="kwargs['x']")
    assert rules(found) == ["refused", "dynamic-true"]


MAY_BE_NONE = {
    "def main(x=None):\n    f(x)\n": True,
    "def main(x: Tensor | None):\n    f(x)\n": True,
    "def main(x: Optional[Tensor]):\n    f(x)\n": True,
    "def main():\n    x = batch.get('x')\n    f(x)\n": True,
    "def main():\n    x = None if a else b\n    f(x)\n": True,
    "def main(x: Tensor, y=None):\n    f(x)\n": False,
    "x = None\ndef main(x):\n    f(x)\n": False,
    "def main(*, x: Tensor, y=None):\n    f(x)\n": False,
}


@pytest.mark.parametrize("source", MAY_BE_NONE)
def test_an_argument_that_may_be_none_is_marked_where_it_is_not(source: str, tmp_path: Path) -> None:
    found, files, path = proposals(tmp_path, f"f = torch.compile(g)\n{source}", "f(x)")
    mark = "torch._dynamo.maybe_mark_dynamic(x, 0)\n"
    guarded = f"    if x is not None:\n        {mark}    f(x)\n"
    assert (guarded in changed(found[0], files, path)) == MAY_BE_NONE[source]
    assert mark in changed(found[0], files, path)
    assert isinstance(found[0], Patch)
    assert found[0].rewrite.limits == (
        "in every call x must be a tensor of as many dimensions; the mark is an attribute of it, which its copies have too",
    )


FLOAT = Guard("n == 0.5", "n", "0.5", "0.25", "float_value", None, ("0.5", "0.25"))
# A body of a function of the tensor x and the number n -> whether its arithmetic alone sees the number.
BODIES = {
    "return x * n": True,
    "y = x.relu()\n    return (x - 1) * n + y": True,
    "return n * (x / n)": True,
    "return x * (2 * n)": False,  # the number may go elsewhere
    "return torch.full((2,), n)": False,
    "return x * n if isinstance(n, float) else x": False,
    "x.scale = 1\n    return x * n": False,
    "x = x.shape[0]\n    return x * n": False,
    "return x[: int(n)]": False,
    "n = n * 2\n    return x * n": False,
    "def inner(): return n\n    return x * n": False,
    "return x ** n": False,
    "return f'{n:.2f}', x * n": False,
}


@pytest.mark.parametrize("body", BODIES)
def test_a_number_that_more_than_arithmetic_sees_becomes_a_tensor_with_consent_only(
    body: str, tmp_path: Path
) -> None:
    source = f"@torch.compile\ndef f(x, n):\n    {body}\nf(x, rate)\n"
    arguments = {"args": [tensor(4), {"float": 0.5}], "kwargs": {}}
    found, files, path = proposals(
        tmp_path, source, "f(x, rate)", guard=FLOAT, parameters=("x", "n"), arguments=arguments
    )
    assert rules(found) == ["scalar-to-tensor", "dynamic-true"]
    assert "f(x, torch.tensor(rate, dtype=torch.float64))" in changed(found[0], files, path)
    assert isinstance(found[0], Patch)
    assert found[0].rewrite.consent != BODIES[body]
    assert bool(found[0].rewrite.limits) == BODIES[body]


INIT = "class Net(nn.Module):\n    def __init__(self):\n        self.rate = 1.0\n    def forward(self, x):\n        return x * self.rate\n"
# What else the file says of the attribute -> whether a buffer would take it.
SET = {
    "net.rate *= 0.5\n": True,
    "net.rate = net.rate * 0.5\n": True,
    "class Other(nn.Module):\n    def __init__(self):\n        self.rate = 3\n": True,
    "net.rate = 1.0\n": False,
    "for net.rate in (1.0, 0.5):\n    pass\n": False,
    "a, net.rate = 1.0, 0.5\n": False,
    "setattr(net, 'rate', 0.5)\n": False,
    "class Slow(Net):\n    def __init__(self):\n        self.rate = 3\n": False,
}


@pytest.mark.parametrize("more", SET)
def test_an_attribute_that_is_given_plain_numbers_cannot_be_a_buffer(more: str, tmp_path: Path) -> None:
    guard = Guard("", "self.rate", "1.0", "0.5", "module_attribute", None, ("1.0", "0.5"))
    found, files, path = proposals(tmp_path, f"{INIT}f = Net()\nf(x)\n{more}", "f(x)", guard=guard, at=6)
    if not SET[more]:
        [refusal] = found
        assert isinstance(refusal, Refusal)
        assert refusal.reason.startswith("self.rate is given a plain number in line")
        return
    assert (
        'self.register_buffer("rate", torch.tensor(1.0, dtype=torch.float64), persistent=False)'
        in changed(found[0], files, path)
    )
    assert isinstance(found[0], Patch)
    assert "state_dict() has the same keys as before" in found[0].rewrite.notes[0]


MODES = {
    "with torch.inference_mode():\n    f(x)\n": "with torch.no_grad():\n    f(x)\n",
    "@torch.inference_mode\ndef g(): ...\nf(x)\n": "@torch.no_grad\ndef g(): ...\nf(x)\n",
    "@torch.inference_mode()\ndef g(): ...\nf(x)\n": "@torch.no_grad()\ndef g(): ...\nf(x)\n",
    "with torch.inference_mode(flag):\n    f(x)\n": None,
    "mode = torch.inference_mode\nf(x)\n": None,
}


@pytest.mark.parametrize("source", MODES)
def test_an_inference_mode_that_takes_a_flag_stays(source: str, tmp_path: Path) -> None:
    guard = Guard("", "x", "with AutogradCPU", "without AutogradCPU", "dispatch_keys")
    [found], files, path = proposals(tmp_path, source, "f(x)", guard=guard)
    if MODES[source] is None:
        assert isinstance(found, Refusal)
        return
    assert changed(found, files, path) == MODES[source]
    assert isinstance(found, Patch)
    assert "is_inference() is False" in found.rewrite.notes[0]


def test_an_option_that_the_script_sets_itself_is_not_set_again(tmp_path: Path) -> None:
    guard = Guard("", "self.index", "0", "1", "module_attribute", None, ("0", "1"))
    option = "torch._dynamo.config.allow_unspec_int_on_nn_module"
    found, _, _ = proposals(tmp_path, "f(x)\n", "f(x)", guard=guard)
    assert isinstance(found[0], Patch)
    assert found[0].rewrite.consent
    assert found[0].rewrite.notes[0].startswith("the option holds for everything that the process compiles")
    found, _, _ = proposals(tmp_path, f"{option} = False\nf(x)\n", "f(x)", guard=guard)
    assert isinstance(found[0], Refusal)
    assert found[0].reason == f"the script sets {option} itself, in line 3"


UNPLACED = {
    "a condition that is not always asked": (
        "f = torch.compile(g)\nif a:\n    pass\nelif f(x):\n    pass\n",
        "f(x)",
    ),
    "a while": ("f = torch.compile(g)\nwhile f(x):\n    pass\n", "f(x)"),
    "a comprehension": ("f = torch.compile(g)\nys = [f(x) for x in data]\n", "f(x)"),
    "a lambda": ("f = torch.compile(g)\nh = lambda x: f(x)\n", "f(x)"),
    "behind an or": ("f = torch.compile(g)\ny = cached or f(x)\n", "f(x)"),
    "one line": ("f = torch.compile(g)\nif a: f(x)\n", "f(x)"),
    "behind a semicolon": ("f = torch.compile(g)\na = 1; f(x)\n", "f(x)"),
    "stars": ("f = torch.compile(g)\nf(*batch)\n", "f(*batch)"),
    "computed behind what has effects": ("f = torch.compile(g)\nget()(make())\n", "get()(make())"),
    "computed, and its name is taken": ("f = torch.compile(g)\ndef main(x):\n    f(x + 1)\n", "f(x + 1)"),
}


@pytest.mark.parametrize("case", UNPLACED)
def test_what_cannot_be_placed_is_refused_and_something_else_is_tried(case: str, tmp_path: Path) -> None:
    source, call = UNPLACED[case]
    found, _, _ = proposals(tmp_path, source, call)
    assert rules(found) == ["refused", "dynamic-true"]


COMPILED = {
    "f = torch.compile(g)": "f = torch.compile(g, dynamic=True)",
    "f = torch.compile(g, mode='default',)": "f = torch.compile(g, mode='default', dynamic=True,)",
    "f = torch.compile((g))": "f = torch.compile((g), dynamic=True)",
    "f = torch.compile(g, **options)": None,
    "f = torch.compile(g, dynamic=False)": None,
    "@torch.compile\ndef f(x): ...": "@torch.compile(dynamic=True)\ndef f(x): ...",
    "@torch.compile()\ndef f(x): ...": "@torch.compile(dynamic=True)\ndef f(x): ...",
    "@torch.compile(fullgraph=True)\ndef f(x): ...": "@torch.compile(fullgraph=True, dynamic=True)\ndef f(x): ...",
}


@pytest.mark.parametrize("how", COMPILED)
def test_dynamic_is_put_where_the_function_is_compiled(how: str, tmp_path: Path) -> None:
    found, files, path = proposals(tmp_path, f"{how}\nf(x)\n", "f(x)")
    last = found[-1]
    if COMPILED[how] is None:
        assert isinstance(last, Refusal)
        assert "sets dynamic=" in last.reason
    else:
        assert changed(last, files, path) == f"{COMPILED[how]}\nf(x)\n"


def test_a_method_compiled_in_its_class_does_not_show_self(tmp_path: Path) -> None:
    source = "f = torch.compile(g)\nnet.step(x)\n"
    found, files, path = proposals(
        tmp_path, source, "net.step(x)", origin="args[1]", parameters=("self", "x"), args=2
    )
    assert "mark_dynamic(x, 0)" in changed(found[0], files, path)


def tensor(*shape: int) -> dict[str, object]:
    return {"tensor": {"shape": list(shape), "dtype": "float32", "device": "cpu", "requires_grad": False}}


def test_what_varied_together_is_marked_together(tmp_path: Path) -> None:
    source = "f = torch.compile(g)\nf(x, mask)\n"
    _, _, path = proposals(tmp_path, source, "f(x, mask)")
    calls = [
        signature(
            place(path, "f(x, mask)"),
            "args[0]",
            ("x", "mask"),
            0,
            arguments={"args": [tensor(*a), tensor(b)], "kwargs": {}},
        )
        for a, b in (((4, 7, 3), 7), ((6, 5, 3), 5), ((6, 5, 3), 1))
    ]
    base = SAMPLES["recompiles"]
    finding = recompile(SIZE, Location(str(path), 3))
    report = replace(base, run=replace(base.run, targets=()), findings=(finding,), signatures=tuple(calls))
    files = Files()
    found = propose(subject(finding, report, str(path)), files)
    assert changed(found[0], files, path).splitlines()[1:] == [
        "torch._dynamo.maybe_mark_dynamic(x, 0)",
        "torch._dynamo.maybe_mark_dynamic(x, 1)",
        "torch._dynamo.decorators.mark_unbacked(mask, 0)",  # size 1 is compiled apart
        "f(x, mask)",
    ]
    assert rules(found) == ["mark-unbacked", "refused"]


def test_a_file_without_the_name_torch_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text('"""What it is."""\n\nfrom torch import compile as c\n\nf = c(g)\nf(x)\n')
    file = Files().open(str(path))
    assert file is not None
    [edit] = file.torch_import()
    text = apply(file.text, [edit])
    assert text.startswith('"""What it is."""\n\nfrom torch import compile as c\nimport torch\n\nf = c(g)')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch import nn  # noqa\nf()\n", "from torch import nn  # noqa\nimport torch\nf()\n"),
        ("import os; f()\n", "import os\nimport torch; f()\n"),
        ("#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\nf()\n", None),
        ("# first\n@g\ndef f():\n    pass\n", "# first\nimport torch\n@g\ndef f():\n    pass\n"),
        ("", "import torch\n"),
    ],
)
def test_an_import_stands_behind_what_must_come_first(before: str, after: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(before)
    file = Files().open(str(path))
    assert file is not None
    edited = apply(file.text, file.torch_import())
    assert edited == (after or before.replace("f()", "import torch\nf()"))
    ast.parse(edited)


def test_a_hyperparameter_becomes_a_tensor_where_the_optimizer_is_made(tmp_path: Path) -> None:
    guard = Guard("", "optimizer.param_groups[0]['lr']", "0.1", "0.05", "float_value", None, ("0.1", "0.05"))
    source = "f = torch.compile(g)\noptimizer = torch.optim.SGD(net.parameters(), lr=args.lr)\nf()\n"
    found, files, path = proposals(tmp_path, source, "f()", guard=guard, origin=None, parameters=(), args=0)
    assert rules(found) == ["scalar-to-tensor"]
    assert "SGD(net.parameters(), lr=torch.tensor(args.lr, dtype=torch.float64))" in changed(
        found[0], files, path
    )


def test_calls_with_gradients_go_under_no_grad_as_the_others(tmp_path: Path) -> None:
    guard = Guard("GLOBAL_STATE changed: grad_mode ", "grad_mode", None, None, "global_state")
    source = "f = torch.compile(g)\nif a:\n    y = f(x)\n"
    found, files, path = proposals(tmp_path, source, "f(x)", guard=guard)
    assert "if a:\n    with torch.no_grad():\n        y = f(x)\n" in changed(found[0], files, path)
    assert isinstance(found[0], Patch)
    assert found[0].rewrite.forbids == "gradients"


def test_a_diff_names_files_as_the_project_does(tmp_path: Path) -> None:
    found, files, _ = proposals(tmp_path, "f = torch.compile(g)\nf(x)", "f(x)")
    assert isinstance(found[0], Patch)
    text = shown_diff(found[0], files.sources, tmp_path)
    assert text.startswith("--- a/script.py\n+++ b/script.py\n")
    assert "+torch._dynamo.maybe_mark_dynamic(x, 0)\n" in text
    assert "\\ No newline at end of file" in text


def test_windows_line_ends_and_wide_characters_do_not_move_an_edit(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(
        'import torch\r\nf = torch.compile(g)\r\ns = "ブロック"; print(s)\r\ny = "ü" + f(x)\r\n'.encode()
    )
    file = Files().open(str(path))
    assert file is not None
    call = file.call_at(Location(str(path), 4, 11, 4, 15))
    assert call is not None
    assert file.source(call) == "f(x)"
    statement = file.statement(call)
    assert statement is not None
    edit = file.before(statement, ["mark(x)"])
    assert 'mark(x)\ny = "ü" + f(x)\n' in apply(file.text, [edit])


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((0, 0, 0, 1), ["unspecialised-int", "raise-limit"]), ((0, 1, 2, 3), ["refused"])],
    ids=["instances", "a counter"],
)
def test_instances_that_share_code_are_told_from_a_counter(
    numbers: tuple[int, ...], expected: list[str], tmp_path: Path
) -> None:
    """Several versions within one outermost call are several instances; one a call is one that counts."""
    path = tmp_path / "script.py"
    path.write_text("import torch\n\nf(x)\n")
    guard = Guard("self.index == 0", "self.index", "0", "1", "module_attribute", None, ("0", "1", "2"))
    calls = [signature(place(path, "f(x)"), None, ("x",), 1, number=number) for number in numbers]
    limit = replace(
        recompile(guard, Location(str(path), 3)), code="BS303", kind="skip", guard=None, guards=(guard,)
    )
    report = replace(SAMPLES["recompiles"], findings=(limit,), signatures=tuple(calls))
    assert rules(propose(subject(limit, report, str(path)), Files())) == expected
