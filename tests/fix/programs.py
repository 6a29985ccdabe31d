"""Runs small programs for the rules' tests: records evidence, finds the site, rewrites, compares."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import io
import itertools
import linecache
import math
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch._dynamo.guards

import breakscope
from breakscope.fix.patch import Refusal, Rewrite, apply
from breakscope.fix.rule import Example, Rule, Site, locate
from breakscope.inside.record.evidence import Evidence
from breakscope.inside.record.observe import Recorder, instrument
from breakscope.report.model import Finding

PRELUDE = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
_numbers = itertools.count()


def source_of(text: str) -> str:
    """An example as a module."""
    return (text if "import torch" in text else PRELUDE + text).rstrip() + "\n"


def load(source: str, names: dict[str, Any] | None = None, tree: ast.Module | None = None) -> dict[str, Any]:
    """Run a module whose source Dynamo can read."""
    file = f"<example {next(_numbers)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    globals_: dict[str, Any] = {"__name__": f"example_{next(_numbers)}", **(names or {})}
    exec(compile(tree or source, file, "exec"), globals_)
    return globals_


def entry(module: dict[str, Any]) -> Callable[..., Any]:
    """``f``: a function, or a module class to make one of."""
    f = module["f"]
    if isinstance(f, type):
        draw_from(7)
        return f()
    return f


def draw_from(seed: int) -> None:
    """Seed what these programs draw from. ``torch.manual_seed`` writes a stack trace for each device as well."""
    torch.default_generator.manual_seed(seed)


def arguments(text: str, seed: int = 0) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, from their source."""
    draw_from(seed)
    return eval(
        f"(lambda *a, **k: (a, k))({text})",
        {"torch": torch, "inf": math.inf, "nan": math.nan, "T": torch.tensor},
    )


def functions_of(source: str) -> list[str]:
    from breakscope.inside.capture.targets import functions

    return list(functions(ast.parse(source)))


def record(source: str, calls: tuple[str, ...]) -> dict[str, Evidence]:
    """What every function of a module saw during some calls."""
    recorder, tree = Recorder(), ast.parse(source)
    names = functions_of(source)
    instrument(tree, source, names, recorder)
    f = entry(load(source, recorder.names(), tree))
    for call in calls:
        args, kwargs = arguments(call)
        with contextlib.suppress(RuntimeError, ValueError, AssertionError), quiet():
            f(*args, **kwargs)
    return {name: recorder.evidence(name) for name in names}


@contextlib.contextmanager
def unmeasured_guards() -> Iterator[None]:
    """Spare a compile the 30 ms in which Dynamo empties the CPU's caches to time its guards, for a log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch._dynamo.guards, "profile_guard_manager", lambda *_: 0.0, raising=False)
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def findings(source: str, calls: tuple[str, ...]) -> list[Finding]:
    """What a scan reports of the calls, each once."""
    found: dict[tuple[Any, ...], Finding] = {}
    for call in calls:
        args, kwargs = arguments(call)
        f = entry(load(source))
        torch._dynamo.reset()
        with quiet(), unmeasured_guards():
            try:
                report = breakscope.explain(f)(*args, **kwargs)
            except (RuntimeError, ValueError, AssertionError):
                continue
        for finding in report.findings:
            if finding.kind != "recompile":
                place = finding.location
                found.setdefault((place.line, place.column, finding.code), finding)
    return list(found.values())


def examples_of(rule: Rule) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """What a rule rewrites and what it leaves alone: its own example of each, then those of its table."""
    table = importlib.import_module(f"rules.{type(rule).__module__.rpartition('.')[2]}")
    return (rule.rewritten, *table.REWRITES), (rule.left_alone, *table.LEAVES)


@functools.cache
def sites(example: Example) -> tuple[Site, ...]:
    """The places of an example at which rules are asked."""
    source = source_of(example.before)
    evidence = record(source, example.calls)
    if example.site:
        start = source.index(example.site)
        line = source.count("\n", 0, start) + 1
        column = start - source.rfind("\n", 0, start)
        places = [(line, column, line, column + len(example.site), example.code, "")]
    else:
        places = [
            (f.location.line, f.location.column, f.location.end_line, f.location.end_column, f.code, f.reason)
            for f in findings(source, example.calls)
        ]
    result = []
    for line, column, end_line, end_column, code, reason in places:
        bare = locate(source, line, column, end_line, end_column, code, reason, Evidence())
        if bare is not None:
            seen = evidence.get(bare.qualname, Evidence())
            site = locate(source, line, column, end_line, end_column, code, reason, seen)
            assert site is not None
            result.append(site)
    return tuple(result)


@functools.cache
def answers(rule: Rule, example: Example) -> list[Rewrite | Refusal]:
    """What a rule says of an example's sites."""
    given = [rule.rewrite(site) for site in sites(example) if site.code in rule.codes or site.code[2] == "3"]
    return [answer for answer in given if answer is not None]


def rewritten(example: Example, answer: Rewrite) -> str:
    return apply(source_of(example.before), answer.edits)


# -- comparing -----------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """All that one call did that a caller can see."""

    value: Any
    error: tuple[str, str] | None
    inputs: Any
    state: Any
    printed: str
    random: Any


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def run(f: Callable[..., Any], args: Any, kwargs: Any, *, grad: bool = False, double: bool = True) -> Outcome:
    """Call ``f`` on copies and note what it did."""
    args, kwargs = copy_of((args, kwargs), grad=grad, double=double)
    if isinstance(f, torch.nn.Module):
        f.zero_grad(set_to_none=True)
    draw_from(11)
    random.seed(11)
    value, error = None, None
    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("ignore")
        try:
            value = f(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - whatever the program raises is compared
            error = (type(problem).__name__, str(problem))
    grads = None
    if grad and error is None:
        leaves = [leaf for leaf in tensors((args, kwargs)) if leaf.requires_grad]
        parameters = f.parameters() if isinstance(f, torch.nn.Module) else ()
        leaves += [one for one in parameters if one.requires_grad]
        outputs = [one for one in tensors(value) if one.requires_grad and one.dtype.is_floating_point]
        if outputs and leaves:
            total = sum(one.double().sum() * (index + 1) for index, one in enumerate(outputs))
            grads = torch.autograd.grad(total, leaves, allow_unused=True)
    state = dict(f.state_dict()) if isinstance(f, torch.nn.Module) else {}
    extra = (
        {key: value for key, value in vars(f).items() if isinstance(value, torch.Tensor | int | float | bool)}
        if isinstance(f, torch.nn.Module)
        else {}
    )
    return Outcome(
        value, error, ([one.detach() for one in tensors((args, kwargs))], grads), (state, extra), out.getvalue(),
        torch.random.get_rng_state(),
    )  # fmt: skip


def copy_of(value: Any, *, grad: bool = False, double: bool = True) -> Any:
    def one(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        copied = leaf.detach().clone()
        if grad and copied.dtype.is_floating_point:
            # float16 is kept: code that asks for it would take another way in float64.
            copied = copied.double() if double and leaf.dtype != torch.float16 else copied
            copied.requires_grad_()
        return copied

    return torch.utils._pytree.tree_map(one, value)


def same(old: Any, new: Any, *, close: bool = False) -> bool:
    """Equal in every bit (NaN equals NaN), or within 1e-5 where sums were taken in another order."""
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
        if old.dtype != new.dtype or old.shape != new.shape or old.device != new.device:
            return False
        if not old.dtype.is_floating_point:
            return torch.equal(old, new)
        if close:
            return torch.allclose(old, new, rtol=1e-5, atol=1e-6, equal_nan=True)
        return bool(((old == new) | (old.isnan() & new.isnan())).all())
    if isinstance(old, tuple | list):
        return (
            type(old) is type(new)
            and len(old) == len(new)
            and all(same(a, b, close=close) for a, b in zip(old, new, strict=True))
        )
    if isinstance(old, dict):
        return (
            isinstance(new, dict)
            and old.keys() == new.keys()
            and all(same(old[key], new[key], close=close) for key in old)
        )
    if isinstance(old, float) and isinstance(new, float) and math.isnan(old) and math.isnan(new):
        return True
    return type(old) is type(new) and old == new


def differences(
    old: Outcome, new: Outcome, *, close: bool = False, messages: bool = True, early: tuple[str, ...] = ()
) -> list[str]:
    """What a caller could tell apart.

    Args:
        early: attributes that the new code may already have.
    """
    found = []
    for path in early:
        name = path.removeprefix("self.")
        if name not in old.state[1]:
            new.state[1].pop(name, None)
    if (old.error is None) != (new.error is None) or (
        old.error and new.error and old.error[0] != new.error[0]
    ):
        return [f"error: {old.error} -> {new.error}"]
    if messages and old.error and new.error and old.error[1] != new.error[1]:
        found.append(f"message: {old.error} -> {new.error}")
    for name in ("value", "inputs", "state"):
        a, b = getattr(old, name), getattr(new, name)
        if not same(a, b, close=close):
            found.append(f"{name}: {a} -> {b}")
    if not torch.equal(old.random, new.random):
        found.append("random state")
    return found


def variants(args: Any, kwargs: Any, seed: int) -> Iterator[tuple[str, Any, Any]]:
    """The inputs of a call, and edge cases of the same shapes; then another shape."""
    yield "as recorded", args, kwargs
    generator = torch.Generator().manual_seed(seed)

    def mapped(change: Callable[[torch.Tensor], torch.Tensor]) -> tuple[Any, Any]:
        def one(leaf: Any) -> Any:
            return change(leaf) if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point else leaf

        return torch.utils._pytree.tree_map(one, (args, kwargs))

    def sprinkled(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
        def change(leaf: torch.Tensor) -> torch.Tensor:
            result = leaf.clone()
            if result.numel():
                result.view(-1)[int(torch.randint(result.numel(), (), generator=generator))] = value
            return result

        return change

    def drawn(leaf: torch.Tensor) -> torch.Tensor:
        return torch.randn(leaf.shape, generator=generator).to(leaf.dtype)

    changes: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "negated": torch.neg,
        "drawn": drawn,
        "drawn again": lambda t: drawn(t).abs(),
        "all below zero": lambda t: -drawn(t).abs() - 0.1,
        "large": lambda t: t * 1e4,
        "tiny": lambda t: t * 1e-6,
        "zeros": torch.zeros_like,
        "ones": torch.ones_like,
        "extreme": lambda t: torch.full_like(t, torch.finfo(t.dtype).max),
        "one NaN": sprinkled(math.nan),
        "one inf": sprinkled(math.inf),
        "one -inf": sprinkled(-math.inf),
        "all NaN": lambda t: torch.full_like(t, math.nan),
        "all inf": lambda t: torch.full_like(t, math.inf),
    }
    for name, change in changes.items():
        yield name, *mapped(change)
