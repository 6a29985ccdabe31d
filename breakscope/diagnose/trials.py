"""What was learned from making a call that failed under torch.compile again, in eager."""

from __future__ import annotations

import re

from breakscope.diagnose.collect import Collected, Event
from breakscope.diagnose.records import is_resume

_FAILS = "BS190"
_COMPILE_ONLY = "BS191"
_FAILED = "BS306"  # where eager fails alike, it is neither Dynamo's fault nor the backend's
_TYPE = re.compile(r"(?P<type>\w*(?:Error|Exception)): ")
_OURS = (
    "The call was compiled by breakscope (--compile auto), not by the script: without breakscope it passes."
)


def outcome(found: Collected, compile_id: str | None) -> Event:
    """How the call of a compile ended in eager; ``not tried`` in a trace, and where it could not be tried.

    What had run of the call before, up to a graph break, ran a second time: an exception then may be of that.
    """
    tried = next((event for event in found.eager if event["cid"] == compile_id), {"outcome": "not tried"})
    names = (event["metrics"].get("co_name") for event in found.metrics if event["cid"] == compile_id)
    if tried["outcome"] == "raised" and any(is_resume(name or "") for name in names):
        why = f"a part of the call had run before, and the call as a whole then raises {tried['error']}"
        return {"outcome": "not tried", "why": why}
    return tried


def code(found: Collected, compile_id: str | None, said: str) -> str:
    """``said``, the code by torch's text; that eager fails too is said only where it was seen to."""
    raised = outcome(found, compile_id)["outcome"] == "raised"
    if said == _FAILS and not raised:
        return _COMPILE_ONLY
    return _FAILS if said == _FAILED and raised else said


def title(found: Collected, compile_id: str | None, code: str, said: str) -> str | None:
    """A title with what was tried; None where the code's own says it.

    Args:
        said: the error under torch.compile, beginning with its type; it may be without.
    """
    tried = outcome(found, compile_id)
    if code == _COMPILE_ONLY and tried["outcome"] == "passed":
        return "fails under torch.compile only: the same call passes in eager"
    compiled, eager = _TYPE.match(said), _TYPE.match(tried.get("error", ""))
    if code == _FAILS and compiled and eager and compiled["type"] != eager["type"]:
        return f"error under torch.compile, where eager raises another: {eager['type']}"
    return None


def explained(found: Collected, compile_id: str | None, text: str) -> str:
    """Torch's text, with what was tried after it."""
    tried = outcome(found, compile_id)
    if tried["outcome"] == "passed":
        parts = [text, "Tried: the same call, on the same inputs, passes in eager."]
        return "\n".join([*parts, _OURS] if tried.get("by_us") else parts)
    if tried["outcome"] == "raised":
        return f"{text}\nTried: in eager the same call raises {tried['error']}"
    if why := tried.get("why"):
        return f"{text}\nWhether eager fails too was not tried: {why}."
    return text
