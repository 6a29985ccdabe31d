"""What is said of a second size or number is what torch does with a third one: it was counted, not read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.nn import functional
from warm_scanning import WarmScans

pytestmark = pytest.mark.torch

VALUES: dict[str, tuple[Any, Any, Any]] = {"x": (8, 12, 16), "k": (3, 5, 7), "s": (0.6, 0.7, 0.8)}
BODIES = (
    ("x", "x * 2"),
    ("x", "torch.cat([x, x[: x.shape[0] // 2]])"),
    ("x", "x if x.shape[0] % 2 else x * 2"),
    ("x", "x.split(k)[0]"),
    ("x", "torch.eye(x.shape[0]).fill_diagonal_(2)"),
    ("x", "functional.scaled_dot_product_attention(x[None], x[None], x[None])"),
    ("k", "x[:k] + 1"),
    ("k", "torch.stack([x * i for i in range(k)])"),
    ("k", "x.chunk(k)[0]"),
    ("k", "torch.linspace(0, 1, k)"),
    ("k", "torch.zeros(k, k).fill_diagonal_(1)"),
    ("k", "(x * k).sum() if k > 6 else x.mean()"),
    ("s", "x * s"),
    ("s", "x + s if s > 0.5 else x - s"),
    ("s", "functional.dropout(x, s, True)"),
)


def made(body: str) -> Any:
    held: dict[str, Any] = {"torch": torch, "functional": functional, "math": math}
    exec(f"def f(x, k, s):\n    return {body}\n", held)
    return held["f"]


def given(what: str, value: Any) -> tuple[Any, ...]:
    values: dict[str, Any] = {"x": 8, "k": 3, "s": 0.6, what: value}
    return torch.ones(values["x"], 4), values["k"], values["s"]


def third_is_compiled(what: str, body: str) -> bool:
    """Whether a third value is one graph more, by torch's own count."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(made(body), backend=counter)
    first, second, third = VALUES[what]
    for value in (first, second):
        compiled(*given(what, value))
    before = counter.frame_count
    compiled(*given(what, third))
    return bool(counter.frame_count > before)


@pytest.mark.parametrize(("what", "body"), BODIES, ids=[f"{what} {body}" for what, body in BODIES])
def test_what_is_said_of_a_second_value_holds_for_a_third(
    what: str, body: str, warm: WarmScans, tmp_path: Path
) -> None:
    first, second, _ = VALUES[what]
    size, k, s = ("size" if what == name else str(VALUES[name][0]) for name in VALUES)
    report = warm.scan(
        tmp_path,
        f"""
        import torch
        from torch.nn import functional

        @torch.compile(backend="eager")
        def f(x, k, s):
            return {body}
        for size in [{first}] + [{second}] * 8:
            f(torch.ones({size}, 4), {k}, {s})
        """,
    )
    texts = [str(one.expected or one.advice) for one in report.findings if one.kind == "recompile"]
    assert texts
    said = " ".join(texts)
    if third_is_compiled(what, body):
        assert "after which torch takes any:" not in said
    else:
        assert "so that each is compiled apart" not in said
        assert "dynamic=True does not help" not in said
