"""The warm-up plan: what it says, and that after it the same traffic compiles nothing.

Nightly: the one test that runs a plan, in four processes; what a plan says is held in every run.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_samples import SAMPLES
from scanning import Scanned, run_cold, run_python

from breakscope.diagnose.warmup import plan
from breakscope.render import warmup
from breakscope.report.model import Signature

SERVICE = """
    import torch
    from torch import nn

    class TextEncoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 8)
            self.drop = nn.Dropout(0.1)

        def forward(self, tokens, mask=None, *, scale: float = 1.0):
            h = self.drop(self.embed(tokens))
            if mask is not None:
                h = h * mask.unsqueeze(-1)
            torch._dynamo.graph_break()
            return h.mean(dim=1) * scale

    class Index:
        @torch.compile(backend="eager")
        def add(self, rows, *, count):
            return rows.cumsum(0) * count

    def score(left, right):
        return (left @ right.transpose(0, 1)).softmax(-1)

    def build():
        torch.manual_seed(0)
        encoder = torch.compile(TextEncoder().eval(), backend="eager")
        return encoder, torch.compile(score, backend="eager"), Index().add

    def traffic(encoder, scorer, add):
        with torch.no_grad():
            for batch, length in ((4, 12), (3, 7), (1, 9), (6, 15)):
                tokens = torch.randint(0, 50, (batch, length))
                h = encoder(tokens)
                encoder(tokens, mask=torch.ones(batch, length, dtype=torch.bool))
                encoder(tokens, scale=0.5)
                scorer(h, h)
                add({"a": h}["a"], count=batch)
        x = torch.randn(3, 8, requires_grad=True)
        scorer(x, torch.randn(8, 3).t())
        encoder.train()
        encoder(torch.zeros(2, 5, dtype=torch.long))
        encoder.eval()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scorer(torch.randn(4, 8), torch.randn(4, 8))
        with torch.inference_mode():
            scorer(torch.randn(4, 8), torch.randn(4, 8))

    if __name__ == "__main__":
        traffic(*build())
"""

CHECK = """
    import sys
    import torch
    from torch._dynamo.utils import counters
    import service

    served = service.build()
    if "cold" not in sys.argv:
        import warm
        random = torch.get_rng_state()
        warm.warm_up(*served)
        assert torch.equal(random, torch.get_rng_state())
        assert not served[0].training
    before = counters["stats"]["unique_graphs"]
    if "cold" in sys.argv:
        service.traffic(*served)
    else:
        with torch.compiler.set_stance("fail_on_recompile"):
            service.traffic(*served)
    print(before, counters["stats"]["unique_graphs"])
"""


def graphs(folder: Path, *args: str) -> tuple[int, int]:
    """Graphs that were compiled before, and after, the traffic."""
    done = run_python("check.py", *args, folder=folder)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    return before, after


@pytest.mark.nightly
@pytest.mark.torch
@pytest.mark.slow
def test_after_the_plan_the_same_traffic_compiles_nothing(
    scan: Callable[..., Scanned], tmp_path: Path
) -> None:
    report = scan(SERVICE, name="service.py").report
    (tmp_path / "check.py").write_text(textwrap.dedent(CHECK))
    run_cold("report", "--format", "warmup", "-o", "warm.py", folder=tmp_path, check=True)
    _, cold = graphs(tmp_path, "cold")
    assert cold == report.totals.regions
    warmed, after = graphs(tmp_path)
    assert 0 < warmed == after
    # Calls that differ in sizes alone are compiled once, with those dimensions dynamic.
    assert warmed < cold
    plan_text = (tmp_path / "warm.py").read_text()
    assert "def warm_up(text_encoder, score, index_add):" in plan_text
    assert "dimension 0 of tokens (4, 3)" in plan_text


# ---- what is written, from descriptions ----


def tensor(*shape: int, **more: Any) -> dict[str, Any]:
    fields = {"shape": list(shape), "dtype": "float32", "device": "cpu", "requires_grad": False}
    return {"tensor": {**fields, **more}}


def call(*args: dict[str, Any], **more: Any) -> Signature:
    fields: dict[str, Any] = {
        "compile_id": "0/0",
        "function": "f",
        "entry": "f",
        "module": False,
        "entry_file": "f.py",
        "entry_line": 1,
        "parameters": ("x", "y"),
        "arguments": {"args": list(args), "kwargs": more.pop("kwargs", {})},
        "origins": {},
        "call": None,
        "training": None,
        "grad": True,
        "inference": False,
        "autocast": None,
        "step": 0,
    }
    return Signature(**{**fields, **more})


def rendered(*signatures: Signature) -> str:
    text = warmup.render(replace(SAMPLES["recompiles"], signatures=signatures))
    ast.parse(text)
    return text


def body(*signatures: Signature) -> list[str]:
    text = rendered(*signatures)
    return [line.strip() for line in text.partition("fork_rng():")[2].splitlines()[1:]]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ({"none": True}, "None"),
        ({"bool": True}, "True"),
        ({"int": -3}, "-3"),
        ({"float": "1e-05"}, "1e-05"),
        ({"float": "nan"}, "float('nan')"),
        ({"str": "it's"}, '"it\'s"'),
        ({"list": [{"int": 1}, {"none": True}]}, "[1, None]"),
        ({"tuple": [{"int": 1}]}, "(1,)"),
        ({"tuple": []}, "()"),
        ({"dict": {"a b": {"int": 1}}}, "{'a b': 1}"),
        ({"dtype": "torch.float16"}, "torch.float16"),
        ({"device": "cuda:0"}, 'torch.device("cuda:0")'),
        (tensor(2, 3), 'torch.zeros((2, 3), dtype=torch.float32, device="cpu")'),
        (tensor(), 'torch.zeros((), dtype=torch.float32, device="cpu")'),
        (tensor(2, dtype="bool"), 'torch.ones((2,), dtype=torch.bool, device="cpu")'),
        (tensor(2, requires_grad=True), 'torch.zeros((2,), dtype=torch.float32, device="cpu", requires_grad=True)'),
        (tensor(2, 3, stride=[1, 2]), 'torch.empty_strided((2, 3), (1, 2), dtype=torch.float32, device="cpu").zero_()'),
    ],
)  # fmt: skip
def test_an_argument_is_made_from_its_description(argument: dict[str, Any], expected: str) -> None:
    assert body(call(argument)) == [f"f({expected})"]
    assert body(call(kwargs={"y": argument})) == [f"f(y={expected})"]


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ({"object": "Config object"}, "Config object"),
        ({"str": "<environment>"}, "a string from the environment"),
        (tensor(2, subclass="DTensor"), "a tensor of the kind DTensor"),
        (tensor(2, layout="torch.sparse_coo"), "a tensor of the kind torch.sparse_coo"),
        (tensor(2, inference=True), "another inference mode"),
    ],
)
def test_what_only_the_program_can_make_is_left_out_by_name(argument: dict[str, Any], named: str) -> None:
    [comment, nothing] = body(call(argument))
    assert comment.startswith("# Left out: a call of f with ")
    assert named in comment
    assert nothing == "pass"


def test_a_tensor_that_is_passed_twice_is_one_tensor() -> None:
    made = 'x0 = torch.zeros((2,), dtype=torch.float32, device="cpu")'
    assert body(call(tensor(2), {"same": "args[0]"})) == [made, "f(x0, x0)"]


def test_calls_that_differ_in_sizes_alone_share_a_dynamic_graph() -> None:
    [entry] = plan(replace(SAMPLES["recompiles"], signatures=tuple(call(tensor(n, 8)) for n in (4, 6, 4, 1))))
    assert [(len(group.calls), group.varying, group.compiles) for group in entry.groups] == [
        (2, (("args[0]", 0, (4, 6)),), 3),
        (1, (), 1),  # size 1 is compiled apart
    ]
    lines = body(call(tensor(4, 8)), call(tensor(6, 8)))
    assert lines[0].endswith("they differ in dimension 0 of x (4, 6).")
    assert lines[2:] == [
        "torch._dynamo.maybe_mark_dynamic(x0, 0)",
        "f(x0)",
        'f(torch.zeros((6, 8), dtype=torch.float32, device="cpu"))',
    ]


def test_modes_are_those_of_the_calls() -> None:
    autocast = 'with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16):'
    assert body(call(inference=True, grad=False, autocast="cuda bfloat16")) == [autocast, "f()"]
    module = {"module": True, "entry": "class", "grad": False}
    assert body(call(training=True, **module), call(training=False, **module)) == [
        "was_training = compiled_class.training",
        "compiled_class.train(True)",
        "with torch.no_grad():",
        "compiled_class()",
        "compiled_class.train(False)",
        "with torch.no_grad():",
        "compiled_class()",
        "compiled_class.train(was_training)",
    ]


def test_names_are_python_and_differ() -> None:
    entries = ("Net", "net", "main.<locals>.<lambda>", "BERTModel2", "torch")
    text = rendered(*(call(entry=name, entry_line=at) for at, name in enumerate(entries)))
    assert "def warm_up(net, net_2, lambda_, bertmodel2, compiled_torch):" in text.replace(
        "compiled_lambda", "lambda_"
    )


def test_a_method_is_called_without_its_object() -> None:
    method = call({"object": "Index object"}, tensor(2), entry="Index.add", parameters=("self", "rows"))
    assert body(method) == ['index_add(torch.zeros((2,), dtype=torch.float32, device="cpu"))']


@pytest.mark.parametrize("name", SAMPLES)
def test_a_plan_is_python_also_where_nothing_is_known(name: str) -> None:
    text = warmup.render(SAMPLES[name])
    ast.parse(text)
    assert "nothing to warm up" in text


def test_a_hostile_script_name_stays_in_the_comment() -> None:
    sample = SAMPLES["recompiles"]
    run = replace(sample.run, script='"""\nimport os; os.abort()\n"""\\')
    text = warmup.render(replace(sample, run=run, signatures=(call(),)))
    kinds = [type(node).__name__ for node in ast.parse(text).body]
    assert kinds == ["Expr", "Import", "FunctionDef"]
