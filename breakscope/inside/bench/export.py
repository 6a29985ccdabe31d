"""Stand-alone scripts: one for each kernel and for each graph of a step, to attach to a bug report.

A script needs torch alone. It makes its inputs by shape and stride, checks the result against eager where
there is an eager to check against and says so where there is none, and times itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import torch

from breakscope.inside.bench import arm_compat
from breakscope.inside.bench.attribution import Attribution, Done
from breakscope.inside.bench.export_text import FOOT, GRAPH, HEAD, KERNEL
from breakscope.inside.bench.fragments import fragment
from breakscope.inside.bench.graphs import RecordedGraph, recorded_graphs
from breakscope.inside.bench.specs import Spec
from breakscope.report.secrets import mask

_MOST_KERNELS = 30


def write(attribution: Attribution, found: dict[str, Any], folder: Path) -> list[str]:
    """Write the scripts of the costliest kernels and of all graphs; returns their names below the folder.

    Each kernel's record gets its script's name as ``exported``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    records = [one for one in found["kernels"] if "alone_why" not in one][:_MOST_KERNELS]
    for number, record in enumerate(records):
        name = f"{folder.name}_kernel{number:02d}_{_slug(record['name'])}.py"
        text = _kernel(attribution.done[record["marker"]], record, folder / name)
        if text is not None:
            (folder / name).write_text(mask(text), "utf-8")
            record["exported"] = f"{folder.name}/{name}"
            names.append(record["exported"])
    for graph in recorded_graphs():
        name = f"{folder.name}_graph{graph.number:02d}.py"
        (folder / name).write_text(mask(_graph(graph)), "utf-8")
        names.append(f"{folder.name}/{name}")
    return names


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", re.split(r"[<(]", text.removeprefix("void "))[0]).strip("_")[:60]


# ---- kernels ----


def _kernel(one: Done, record: dict[str, Any], path: Path) -> str | None:
    """The script's text; None for a kernel whose source is not there."""
    arguments, values = _Arguments(), {}
    text = arguments.source(one.arguments)
    for index, value in enumerate(arguments.values):
        values[index] = value.cpu()
    if values:
        torch.save(values, path.with_suffix(".pt"))
    definition = {"op": _op, "triton": _triton, "cpp": _cpp}[one.kind](one)
    if definition is None:
        return None
    return (
        HEAD.format(what=f"The kernel {record['name']}, as a step of a compiled script launched it")
        + KERNEL.format(
            definition=definition,
            eager=_eager(record),
            arguments=text,
            values=f"{path.stem}.pt" if values else "",
            checks=one.kind == "op",
            bytes=record.get("bytes") or 0,
            flops=record.get("flops") or 0,
        )
        + FOOT
    )


def _eager(record: dict[str, Any]) -> str:
    """What the kernel computes, as eager code; a kernel that is an ATen op is its own."""
    found = fragment(record.get("fragment", ()))
    if found is None:
        return "READS = []\neager = None"
    return f"{found.source}\n\n\nREADS = {list(found.inputs)!r}"


class _Arguments:
    """Arguments as source text."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def source(self, value: Any) -> str:
        """An expression that makes it anew."""
        if isinstance(value, Spec):
            return self._tensor(value)
        if type(value) in (list, tuple):
            inner = "".join(f"{self.source(item)}, " for item in value)
            return f"[{inner}]" if type(value) is list else f"({inner})"
        if type(value) is dict:
            return "{" + "".join(f"{key!r}: {self.source(item)}, " for key, item in value.items()) + "}"
        if isinstance(value, torch.device):
            return f"torch.device({str(value)!r})"
        return (
            str(value) if isinstance(value, torch.dtype | torch.layout | torch.memory_format) else repr(value)
        )

    def _tensor(self, spec: Spec) -> str:
        values = ""
        if spec.values is not None:
            values = f", values={len(self.values)}"
            self.values.append(spec.values)
        return f"tensor({spec.dtype}, {spec.shape}, {spec.stride}, {str(spec.device)!r}{values})"


def _op(one: Done) -> str:
    return f"def kernel(*args, **kwargs):\n    return torch.ops.{one.name}(*args, **kwargs)"


def _triton(one: Done) -> str | None:
    facts = arm_compat.triton_facts(one.kernel)
    try:
        source = Path(facts["file"]).read_text("utf-8")
    except (KeyError, OSError):
        return None
    source = source.partition("\nif __name__ ==")[0].rstrip()
    name = facts["name"]
    return (
        f"{source}\n\n\n"
        "def kernel(*args, **kwargs):\n"
        '    kwargs["stream"] = torch.cuda.current_stream().cuda_stream\n'
        f"    return {name}.run(*args, **kwargs)"
    )


def _cpp(one: Done) -> str | None:
    definition = arm_compat.cpp_definition(one.name)
    if definition is None:
        return None
    return (
        "from torch._inductor.async_compile import AsyncCompile\n\n"
        f"async_compile = AsyncCompile()\n{definition}\nasync_compile.wait(globals())\n"
        f"kernel = globals()[{one.name!r}]"
    )


# ---- graphs ----


def _graph(graph: RecordedGraph) -> str:
    head = HEAD.format(what=f"Graph {graph.number} of a compiled script, as Dynamo captured it")
    unknown = [name for name, value in graph.inputs if value is None]
    problems = list(_problems(graph, unknown))
    if problems:
        why = f"this graph cannot stand alone: {'; '.join(problems)}"
        return f'{head}\nraise SystemExit({why!r})\n\n"""\n{graph.code}\n"""\n'
    arguments = _Arguments()
    inputs = ",\n        ".join(arguments.source(value) for _, value in graph.inputs)
    return (
        head
        + GRAPH.format(
            imports="\n".join(graph.imports),
            code=indent(graph.code.strip(), "    "),
            inputs=inputs,
            grad=graph.training,
        )
        + FOOT
    )


def _problems(graph: RecordedGraph, unknown: list[str]) -> Iterator[str]:
    if graph.state:
        yield f"it takes {', '.join(graph.state[:3])} from its module"
    if unknown:
        yield f"the sizes of {', '.join(unknown[:3])} are not known before it runs"
