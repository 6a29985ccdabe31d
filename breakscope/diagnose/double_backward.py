"""A gradient that is differentiated again, which compiled code of AOTAutograd's does not allow."""

from __future__ import annotations

from collections.abc import Iterator

from breakscope import catalog
from breakscope.diagnose.collect import Collected, Event
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame
from breakscope.report.model import Counts, Finding

# What AOTAutograd's compiled backward raises, as its RuntimeError says it (torch 2.13). The second one is
# raised where the first gradient is taken, for retain_graph=True as well; what it advises leads to the first.
_REFUSED = "does not currently support double backward"
_DONATED = "compiled with non-empty donated buffers"
_NOTE = (
    "{at} takes a gradient that can be differentiated again (create_graph=True): where that goes through"
    " compiled code, inductor and aot_eager raise, which backend {backend} does not show; scan with --backend"
    " aot_eager to see it"
)


def findings(found: Collected, places: Places) -> Iterator[Finding]:
    """The error that ended the script, at the gradient that was to be differentiated again."""
    taken = {(one["file"], one["line"]): one for one in found.twice}
    for event in found.raised:
        for error in event["errors"]:
            at = None
            if _REFUSED in error["text"]:
                at = next(reversed(found.twice), None)
            elif _DONATED in error["text"] and (raised := error.get("at")) is not None:
                at = taken.get((raised["file"], raised["line"]))
            if at is not None:
                yield _finding(error, at, event["step"], places)
                return


def note(found: Collected, backend: str, places: Places) -> str | None:
    """What a backend without AOTAutograd does not show; None where no such gradient was taken."""
    if backend != "eager" or not found.twice or not found.regions:
        return None
    first = found.twice[0]
    return _NOTE.format(at=places.short(first["file"], first["line"]), backend=backend)


def _finding(error: Event, at: Event, step: int | None, places: Places) -> Finding:
    entry = catalog.entry("BS310")
    location = places.location(RawFrame(at["file"], at["line"], at["function"], None), None)
    raised = error.get("at")
    later = "" if raised is None else f" at {places.short(raised['file'], raised['line'])}"
    return Finding(
        fingerprint=places.fingerprint("BS310", location),
        code="BS310",
        kind="skip",
        gb_id=None,
        title=entry.title,
        reason=f"{error['type']}: {error['text'].strip().splitlines()[0]}",
        explanation=entry.why,
        hints=(),
        advice=(
            f"What is differentiated again{later} goes through a compiled call, whose backward has no"
            " backward of its own. Take this gradient inside of the compiled function, with torch.func.grad,"
            " or with torch.autograd.grad under torch._dynamo.config.trace_autograd_ops = True: one graph"
            " then holds both. Or leave eager what it goes through (torch.compiler.disable on that module)."
        ),
        location=location,
        stack=(),
        counts=Counts(1, None, ()),
        called_from=places.caller(location, ()),
        first_step=step,
        last_step=step,
        effect="ended",
    )
