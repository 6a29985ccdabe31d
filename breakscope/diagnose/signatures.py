"""The outermost calls of which compiles came, from the agent's events."""

from __future__ import annotations

from collections.abc import Sequence

from breakscope.diagnose.collect import Event, FrameRef
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame
from breakscope.report.model import AlikeLayers, Location, Signature


def signatures(events: Sequence[Event], places: Places, *, by_optimizer: bool) -> tuple[Signature, ...]:
    """One for each compile that succeeded, in order.

    Args:
        by_optimizer: whether optimizer steps, and not outermost calls, set the pace.
    """
    return tuple(_signature(event, places, by_optimizer) for event in events if event.get("entry"))


def _signature(event: Event, places: Places, by_optimizer: bool) -> Signature:
    entry, modes = event["entry"], event["modes"]
    frame = FrameRef.read(event["frame"])
    autocast = modes["autocast"]
    return Signature(
        compile_id=event["cid"],
        function=places.definition(frame.file, frame.line, frame.name, frame.qualname).function or frame.name
        if frame
        else entry["name"],
        entry=entry["name"],
        module=entry["module"],
        entry_file=entry["file"],
        entry_line=entry["line"],
        parameters=tuple(entry["parameters"]),
        arguments={"args": event["args"], "kwargs": event["kwargs"]},
        origins=event["origins"],
        call=_call(event["caller"], places),
        training=entry["training"],
        grad=modes["grad"],
        inference=modes["inference"],
        autocast=None if autocast is None else " ".join(autocast).replace("torch.", ""),
        step=event["step" if by_optimizer else "call"],
        number=event["call"],
        alike=tuple(AlikeLayers(**layers) for layers in event.get("alike", ())),
        forward=event.get("forward", ""),
    )


def _call(caller: Event | None, places: Places) -> Location | None:
    if caller is None:
        return None
    position = (caller["line"], caller["column"], caller["end_line"], caller["end_column"])
    frame = RawFrame(caller["file"], caller["line"], caller["function"].rpartition(".")[2], None)
    return places.location(frame, None if None in position else position, caller["function"])
