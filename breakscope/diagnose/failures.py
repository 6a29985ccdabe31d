"""Compiles that failed with an error and no graph break of their own."""

from __future__ import annotations

import re

from breakscope import catalog
from breakscope.diagnose import constraints, effects, reach, records, trials
from breakscope.diagnose.break_advice import Site, advice
from breakscope.diagnose.collect import Collected, Event, is_limit
from breakscope.diagnose.library_advice import Theirs, of_error
from breakscope.diagnose.places import Places
from breakscope.diagnose.site_use import Use
from breakscope.diagnose.sites import imported, is_held, is_own
from breakscope.report.model import Counts, Finding, Unattributed
from breakscope.report.owners import is_installed

# What makes an error of a graph break.
_FULLGRAPH, _STRICT = "fullgraph=True", "error_on_graph_break(True)"
# What running an op on fake tensors raised.
_RAISED = re.compile(r"got (?P<type>\w+)\((?P<quote>['\"])(?P<text>.*?)(?P=quote),?\)", re.DOTALL)
_GIVEN = re.compile(r"argument of type: <class '(?:[\w.]*\.)?(?P<type>\w+)'>")
_MESSAGE = re.compile(r"(print|warnings\.warn|\w*(log|logger|logging)\.\w+)\(")


def failures(found: Collected, places: Places, backend: str) -> tuple[list[Finding], list[Unattributed]]:
    """One finding for each (fullgraph=True, a crash), and what cannot be placed."""
    explained = {b.compile_id for b in found.breaks}
    fullgraph = any(e.get("fullgraph") and not e.get("lifted") for e in found.compiled)
    ended_by = effects.fatal(found)
    paths = {event["cid"]: records.parse_error_frames(event["payload"]) for event in found.errors}
    made: list[Finding] = []
    lost: list[Unattributed] = []
    for event in found.metrics:
        metrics = event["metrics"]
        if "fail_type" not in metrics or event["cid"] in explained:
            continue
        if is_limit(metrics):
            continue
        path = paths.get(event["cid"]) or _user_stack(metrics)
        strict = _FULLGRAPH if fullgraph else _STRICT if event["cid"] == ended_by else None
        finding = _failure(found, event, path, places, backend, strict)
        if finding is None:
            text = f"{metrics['fail_type']}: {_sentence(found, metrics)}"
            lost.append(Unattributed("compile", event["cid"], text))
        else:
            made.append(finding)
    return made, lost


def _sentence(found: Collected, metrics: Event) -> str:
    """Why a compile failed that has no place, as torch or the script's last exception says it."""
    raised = (
        one["text"]
        for event in found.raised
        for one in event["errors"]
        if one["type"] == metrics["fail_type"]
    )
    said = str(metrics.get("fail_reason") or next(raised, ""))
    explained = constraints.explain(said) if metrics["fail_type"] == constraints.NAME else None
    return said if explained is None else f"{explained[0]}. {explained[1]}"


def _user_stack(metrics: Event) -> tuple[records.RawFrame, ...]:
    """Where the code fixed a size, as the text of a ConstraintViolationError says it."""
    _, _, stack = str(metrics.get("fail_reason")).partition("\nUser stack:\n")
    return records.parse_frames(stack)


def _code(fail_type: str, said: str, strict: str | None) -> str:
    if fail_type == "Unsupported":
        return "BS305" if strict else "BS302"
    if fail_type == "UserError":
        return "BS305" if strict == _FULLGRAPH else "BS302"
    if fail_type == constraints.NAME:
        return "BS309"
    if fail_type == "UncapturedHigherOrderOpError":
        return "BS120"  # what breaks inside of torch.cond and the like ends the compile
    if "There was no fake impl registered" in said:
        return "BS119"
    # Running an op on fake tensors raised: shapes, dtypes or devices that do not fit.
    return "BS190" if fail_type == "TorchRuntimeError" else "BS306"


def _advice(
    code: str,
    reason: records.Reason,
    backend: str,
    in_eager: str,
    strict: str | None,
    reached: str | None,
    source: str,
    site: Site,
) -> str:
    if code == "BS306" and reached is not None:
        return (
            f"Dynamo itself failed on a line of torch that {reached} leads to: make the call that leads"
            " there outside"
            " of the compiled function, and report the text to PyTorch."
        )
    given = _GIVEN.search(f"{reason.gb_type}\n{reason.explanation}")
    if code in ("BS190", "BS191", "BS306") and given and re.search(r"\b(np|numpy)\.", source):
        return (
            f"numpy is given a {given['type']} here, of which Dynamo makes no array: give it list(…) of"
            " that, or"
            " compute it in the caller and pass it in."
        )
    if code == "BS306" and given and re.search(r"\btorch\.(as_)?tensor\(", source):
        return (
            f"While tracing, torch makes no tensor of a {given['type']}, as eager code does: give it a list"
            " of that, list(…)."
        )
    if code == "BS306" and _MESSAGE.match(source):
        return (
            "Dynamo itself failed on what a message is made of: write the message in the caller, of what the"
            " compiled function returns, and report the text to PyTorch."
        )
    if code == "BS306" and backend in ("eager", "aot_eager"):
        works = "; the same call passes in eager" if in_eager == "passed" else ""
        return (
            f"Dynamo itself failed, not the backend (this scan used {backend}){works}. Put"
            " torch.compiler.disable on"
            " the function that holds the line, and report the text to PyTorch."
        )
    return advice(code, records.code_of(reason), reason, site, strict if code == "BS305" else None)


def _said(metrics: Event, reason: records.Reason) -> str:
    """What failed: with the exception's own words where torch's title has none of them."""
    raised = _RAISED.search(reason.explanation)
    if raised is not None:
        return f"{raised['type']}: {raised['text']}"
    backend, _, rest_of = reason.gb_type.partition(" raised:\n")
    if rest_of:
        return f"{' '.join(rest_of.split())} ({backend})"
    if reason.gb_type.endswith("raised:"):
        rest = [line.strip() for line in str(metrics.get("fail_reason")).splitlines() if line.strip()]
        return " ".join(rest[:2])
    return reason.gb_type


def _failure(
    found: Collected,
    event: Event,
    path: tuple[records.RawFrame, ...],
    places: Places,
    backend: str,
    strict: str | None,
) -> Finding | None:
    """The finding of a compile that failed.

    Args:
        path: how one got there, from the error's text; empty where that does not say.
        strict: what makes an error of a graph break; None where nothing does.
    """
    metrics = event["metrics"]
    file = metrics.get("fail_user_frame_filename")
    line = metrics.get("fail_user_frame_lineno")
    path = tuple(frame for frame in path if not is_own(frame.file))
    if file is not None and (records.is_polyfill(file) or is_own(file)):
        file = None
    if path and (file is None or (path[-1].file, path[-1].line) == (file, line)):
        file, line = path[-1].file, path[-1].line
    else:
        path = ()  # where there is one, it leads to the call of what failed
    if file is None or line is None:
        file, line = metrics.get("co_filename"), metrics.get("co_firstlineno")
    if file is None or line is None or is_own(file):
        return None
    said = str(metrics.get("fail_reason"))
    by_text = _code(metrics["fail_type"], said, strict)
    code = trials.code(found, event["cid"], by_text)
    reasons = records.parse_reasons(metrics.get("fail_reason") or metrics["fail_type"])
    reason = reasons[0]
    name = records.unresumed(metrics.get("co_name") or "<unknown>")
    frame = path[-1] if path else records.RawFrame(file, line, name, None)
    location = places.location(frame, None)
    stack = places.stack(path)
    step = event.get("step")
    in_eager = trials.outcome(found, event["cid"])["outcome"]
    reached = name if location.owner == "torch" and backend in ("eager", "aot_eager") else None
    source = location.source or ""
    site = Site(Use("plain"), misread=reach.misread(places.sources, stack))
    why = _said(metrics, reason)
    what_to_do = _advice(code, reason, backend, in_eager, strict, reached, source, site)
    if code == "BS191" and location.owner == "library" and is_installed(location.file):
        caller = places.caller(location, stack)
        theirs = Theirs(
            location.file,
            location.function or "",
            None if caller is None else places.short(caller.file, caller.line),
            imported=imported(location, stack),
            held=is_held(location, stack, places),
        )
        what_to_do = of_error(theirs) or what_to_do
    if code == "BS191" and (eager := reach.only_in_eager(places.sources, stack)):
        frame_, at, condition, name = eager
        what_to_do = (
            f"{places.short(frame_.file, at)} makes {name} only where nothing is being compiled"
            f" (`{condition}`): compiled, None comes here. Pass {name} in the call. Else: {what_to_do}"
        )
    elif code == "BS191" and (name := reach.option(places.sources, location.file, location.line)):
        first = f"Where the call passes {name}=, the line is not reached, and all stays compiled"
        what_to_do = f"{first}. Else: {what_to_do}"
    if code == "BS309":
        why, what_to_do = constraints.explain(said) or (why, what_to_do)
    title = trials.title(found, event["cid"], code, why) or catalog.entry(code).title
    if code == "BS305":
        title = f"graph break where {strict} allows none"
    return Finding(
        fingerprint=places.fingerprint(code, location),
        code=code,
        kind="skip",
        gb_id=reason.gb_id,
        title=title,
        reason=why,
        explanation=trials.explained(found, event["cid"], reason.explanation or catalog.entry(code).why),
        hints=reason.hints,
        advice=what_to_do,
        location=location,
        stack=stack,
        counts=Counts(1, None, (event["cid"],) if event["cid"] else ()),
        called_from=places.caller(location, stack),
        first_step=step,
        last_step=step,
        effect="incomplete",
    )
