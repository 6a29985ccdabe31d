"""What is known of each kernel that a step launched, without running anything again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils.flop_counter import FlopCounterMode, flop_registry

from breakscope.inside.bench import arm_compat
from breakscope.inside.bench.attribution import Attribution, Done, leaves, text_of
from breakscope.inside.bench.graphs import recorded_graphs
from breakscope.inside.bench.origins import Origin, origins
from breakscope.inside.bench.specs import Spec, shapeless
from breakscope.inside.bench.trace import Launch

_MOST_KERNELS = 400

Record = dict[str, Any]


def describe(attribution: Attribution, launches: Sequence[Launch]) -> list[Record]:
    """One record for each kernel in each launch configuration, the costliest first.

    Launches come in the order in which they began.
    ``marker`` is the number of what launched it; where that cannot be run again, ``alone_why`` says why.
    ``number`` is the record's own.
    """
    groups: dict[Any, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(launch.key, []).append(launch)
    where = origins(
        (str(module.__file__), text_of(module.__file__)) for module in arm_compat.generated_modules()
    )
    lines = {name: lines for graph in recorded_graphs() for name, lines in graph.sources.items()}
    cuts = _cuts(launches, attribution.done)
    records = [_record(group, attribution.done, where, lines, cuts) for group in groups.values()]
    costly = sorted(records, key=lambda record: -record["us"])[:_MOST_KERNELS]
    return [{**record, "number": number} for number, record in enumerate(costly)]


def _record(
    group: Sequence[Launch],
    done: Sequence[Done],
    where: dict[str, Origin],
    lines: dict[str, tuple[str, ...]],
    cuts: dict[int, str],
) -> Record:
    # An op of a graph is announced twice, outside and inside of the dispatcher; the inner one has the marker.
    first = next((one for one in group if one.marker is not None), group[0])
    record: Record = {
        "name": first.name,
        "category": first.category,
        "grid": list(first.grid),
        "block": list(first.block),
        "us": sum(launch.us for launch in group),
        "calls": len(group),
        "marker": first.marker,
        "kind": "copy" if first.category in ("gpu_memcpy", "gpu_memset") else "other",
        "registers": first.registers,
        "shared": first.shared,
    }
    if record["kind"] == "copy":
        record |= {"marker": None, "op": first.op, "alone_why": "a copy or a fill"}
        return record
    if first.marker is None:
        record["op"] = first.op
        if first.op is not None:
            record["kind"] = "vendor"
        record["alone_why"] = (
            "it ran outside of compiled graphs, where its inputs are not known"
            if first.op is not None
            else "no op of torch's launched it: a custom kernel"
        )
        return record
    one = done[first.marker]
    record["cut_from"] = next((cuts[one.marker] for one in group if one.marker in cuts), None)
    inputs = [leaf for leaf in leaves(one.arguments) if isinstance(leaf, Spec)]
    record["inputs"] = [str(leaf) for leaf in inputs]
    record["op"] = one.name
    record["kind"] = "vendor" if one.kind == "op" else one.kind
    record["particular"] = one.particular
    if one.kind == "op":
        if first.category == "cpu_op" and first.name.rpartition("::")[2] != one.name.split(".")[1]:
            record |= {"marker": None, "alone_why": f"a part of {one.name}, which is measured as a whole"}
            return record
        record["bytes"] = sum(leaf.bytes for leaf in (*inputs, *_fresh_outputs(one, inputs)))
        record["bytes_how"] = "inputs and outputs once"
        record["flops"] = _flops(one)
        return record
    if one.kind == "triton":
        record.update(arm_compat.triton_facts(one.kernel))
        record["name"] = first.name
        if "bytes" in record:
            record["bytes_how"] = "Inductor's estimate"
    if "bytes" not in record:
        record["bytes"] = sum(leaf.bytes for leaf in inputs)
        record["bytes_how"] = "every argument once"
    origin = where.get(one.name)
    if origin is not None:
        record["nodes"] = list(origin.nodes)
        record["fragment"] = list(origin.fragment)
        record["op"] = ", ".join(origin.ops) or one.name
        record["sources"] = list(dict.fromkeys(line for node in origin.nodes for line in lines.get(node, ())))
    return record


def _cuts(launches: Sequence[Launch], done: Sequence[Done]) -> dict[int, str]:
    """By marker of a kernel of Inductor's that begins a graph: the one that ended the graph right before.

    Only where nothing but copies ran between them: in one graph they could be one kernel. A forward and its
    backward could not.
    """
    cuts: dict[int, str] = {}
    before: Launch | None = None
    for launch in launches:
        if launch.category in ("gpu_memcpy", "gpu_memset"):
            continue
        if before is not None and before.marker is not None and launch.marker is not None:
            one, other = done[before.marker], done[launch.marker]
            directions = {one.backward, other.backward}
            if one.kind == other.kind != "op" and one.graph < other.graph and directions in ({True}, {False}):
                cuts[launch.marker] = before.name
        before = launch
    return cuts


def _fresh_outputs(one: Done, inputs: Sequence[Spec]) -> list[Spec]:
    """Outputs that are not also among the inputs (``out=`` and in-place ops return what they were given)."""
    schema = getattr(one.call, "_schema", None)
    aliased = schema is not None and any(item.alias_info is not None for item in schema.returns)
    return [] if aliased and inputs else one.outputs


def _flops(one: Done) -> int | None:
    """As torch's own formulas have it, from the shapes alone; other ops are not even called without data."""
    if getattr(one.call, "overloadpacket", None) not in flop_registry:
        return None
    args, kwargs = arm_compat.tree_map(shapeless, one.arguments)
    try:
        with FlopCounterMode(display=False) as counter:
            one.call(*args, **kwargs)
    except Exception:  # noqa: BLE001 -- an op that cannot tell without computing: its rate stays unknown
        return None
    return int(counter.get_total_flops()) or None
