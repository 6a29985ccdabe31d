"""Graph breaks: occurrences folded into sites, sites into findings."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path

from breakscope import catalog
from breakscope.diagnose import given_up, reach, records, trials, uses
from breakscope.diagnose.break_advice import Site as ToldSite
from breakscope.diagnose.break_advice import advice, exception_of
from breakscope.diagnose.collect import Break, Collected, Skip
from breakscope.diagnose.library_advice import Theirs, loss_call
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import BreakRecord, RawFrame, Reason
from breakscope.diagnose.shapes import DROPS, is_drawn, use_of
from breakscope.diagnose.site_use import Shape, Use
from breakscope.diagnose.statements import own_loops
from breakscope.project.sources import Span
from breakscope.report.model import Counts, Finding, Frame, Location, SkippedFrame
from breakscope.report.owners import is_installed, is_standard

OWN = os.path.join(Path(__file__).resolve().parent.parent, "")

_Key = tuple[object, ...]


@dataclass(slots=True)
class Site:
    """Every occurrence at one place in source."""

    frame: RawFrame
    position: tuple[int, int, int, int] | None
    breaks: list[Break] = field(default_factory=list)

    @property
    def own(self) -> list[Break]:
        """Occurrences in the compile of the site's own frame, not of a caller that inlined it."""
        return [b for b in self.breaks if not b.inlined] or self.breaks

    @property
    def slots(self) -> set[int]:
        """Counting slots of the site."""
        return {b.site for b in self.breaks if b.site is not None}


_BOTH_WAYS = re.compile(r"\bbidirectional=True\b")


def is_own(file: str) -> bool:
    """Whether a file is breakscope's: never a place that a user can do something about."""
    return file.startswith(OWN)


def fold(breaks: Sequence[Break]) -> tuple[list[Site], list[Break]]:
    """Group occurrences by place. Returns the sites in order of first sight, and what has no place."""
    sites: dict[_Key, Site] = {}
    lost: list[Break] = []
    for item in breaks:
        frame = next((one for one in reversed(item.record.frames) if not is_own(one.file)), None)
        if frame is None or not item.record.reasons:
            lost.append(item)
            continue
        # A trace has no position, but newer versions of torch underline the expression.
        key = (frame.file, item.position or (frame.line, frame.carets))
        site = sites.setdefault(key, Site(frame, item.position))
        site.breaks.append(item)
    return _join_unpositioned(sites), lost


def _join_unpositioned(sites: dict[_Key, Site]) -> list[Site]:
    """An occurrence without a column belongs to the one site on its line, if there is just one."""
    kept: list[Site] = []
    for site in sites.values():
        same = [
            other
            for other in (sites.values() if site.position is None else ())
            if other.position is not None
            and other.frame.file == site.frame.file
            and other.position[0] <= site.frame.line <= other.position[2]
        ]
        if len(same) == 1:
            # Its slot is not taken along: the positioned one has counted the same crossings.
            same[0].breaks.extend(b for b in site.breaks)
            same[0].breaks.sort(key=lambda b: b.step or 0)
        else:
            kept.append(site)
    return kept


def findings(found: Collected, sites: Sequence[Site], places: Places) -> list[Finding]:
    """One finding for each site."""
    of_function: dict[tuple[str, str], list[str]] = defaultdict(list)  # the codes of its sites
    holders = [(site.frame.file, _holder(site.frame, places)) for site in sites]
    for holder, site in zip(holders, sites, strict=True):
        of_function[holder].append(site_code(site, places))
    of_call = Counter(key for site in sites if (key := _called_library(site, places)) is not None)
    losses = [_loss(site, places) for site in sites]
    of_loss = Counter(losses)
    # A line that one record passes through in compiled code is compiled, whatever another one begins with.
    passed = {
        (frame.file, frame.line)
        for site in sites
        for item in site.breaks
        for frame in _compiled_part(item)[:-1]
    }
    return [
        _finding(
            found,
            site,
            places,
            len(of_function[holder]),
            _Around(
                of_call[_called_library(site, places) or ("", "", 0)],
                passed,
                of_loss[loss],
                len(set(of_function[holder])) == 1,
            ),
        )
        for site, holder, loss in zip(sites, holders, losses, strict=True)
    ]


_INNER = re.compile(r"<\w*comp>|<genexpr>")


def _around_inner(file: str, line: int, name: str | None, places: Places) -> Span | None:
    """The function around a comprehension, which has a frame of its own up to 3.11; None of other frames."""
    return places.sources.function_around(file, line) if _INNER.fullmatch(name or "") else None


def _holder(frame: RawFrame, places: Places) -> str:
    """The function that holds a site, be it in a comprehension of that."""
    around = _around_inner(frame.file, frame.line, frame.name, places)
    return frame.name if around is None else around.name


def _compiled_part(item: Break) -> Sequence[RawFrame]:
    """The frames of a record from that on which is compiled: those before it are Python's own calls."""
    frames, own = item.record.frames, item.frame
    begins = [
        at
        for at, frame in enumerate(frames)
        if own is not None and (frame.file, frame.name) == (own.file, own.name)
    ]
    return frames[begins[0] :] if begins else ()


def _called_library(site: Site, places: Places) -> tuple[str, str, int] | None:
    """The package that holds a site, and the project's line that calls it; None in the project itself."""
    stack = _stack(_most_telling(site), places)
    caller = next((frame for frame in reversed(stack) if frame.owner == "project"), None)
    package = Theirs(site.frame.file, "", None).package
    return (
        None if caller is None or not is_installed(site.frame.file) else (package, caller.file, caller.line)
    )


def _loss(site: Site, places: Places) -> tuple[str, int] | None:
    """The line on which a library's model calls the loss that holds a site."""
    called = loss_call(_stack(_most_telling(site), places))
    return None if called is None else (called[0].file, called[0].line)


@dataclass(frozen=True, slots=True)
class _Around:
    """What the other sites say of one in a library.

    Attributes:
        under: how many sites the project's call of its package leads to.
        passed: (file, line) of the calls in compiled code.
        in_loss: how many sites the loss has in which this one is.
        is_alike: whether all sites of its function are of one code.
    """

    under: int
    passed: AbstractSet[tuple[str, int]]
    in_loss: int
    is_alike: bool


def _finding(found: Collected, site: Site, places: Places, together: int, others: _Around) -> Finding:
    telling = _most_telling(site)
    record = telling.record
    cause = _first_reason(site, record)
    if site.position is not None:
        site.position = places.sources.narrow(site.frame.file, site.position)
    callers = _callers(site, places)
    use = use_of(
        places.sources,
        site.frame.file,
        site.position,
        site.frame.line,
        code=records.code_of(cause),
        callers=callers or [],
        entered=callers is not None and _is_entered(site, found),
    )
    shape = use.shape
    drawn = is_drawn(places.sources, site.frame.file, site.position)
    inner = trials.code(found, telling.compile_id, _checked(records.code_of(cause), shape, drawn=drawn))
    code = trials.code(found, telling.compile_id, _checked(site_code(site, places), shape, drawn=drawn))
    qualname = next(
        (b.frame.qualname for b in site.own if b.frame and not b.frame.resumed and not b.inlined), None
    )
    location = places.location(site.frame, site.position, qualname)
    stack = _ending_at(location, _stack(telling, places))
    skipped = _skipped(found, site, places)
    kind = "skip" if code.startswith("BS3") else "graph_break"
    steps = [b.step for b in site.breaks if b.step is not None]
    exception = exception_of(cause)
    return Finding(
        fingerprint=places.fingerprint(code, location),
        code=code,
        kind=kind,  # type: ignore[arg-type]
        gb_id=cause.gb_id,
        title=trials.title(found, telling.compile_id, code, exception or "") or title_of(code, inner),
        reason=": ".join(filter(None, (cause.gb_type, exception))),
        explanation=trials.explained(found, telling.compile_id, _explanation(record)),
        hints=cause.hints,
        location=location,
        stack=stack,
        counts=Counts(
            occurrences=len(site.breaks),
            crossings=crossings(found, site),
            compile_ids=tuple(dict.fromkeys(b.compile_id for b in site.breaks if b.compile_id)),
        ),
        called_from=places.caller(location, stack),
        skipped=skipped,
        advice=advice(
            code,
            inner,
            cause,
            replace(
                _told(site, use, location, stack, places, together, others),
                within=_within(location, stack, found),
                looped_in=_looped_in(stack, _within(location, stack, found), places),
                repeated_by=_repeated_by(stack, found, places) if inner == "BS116" else "",
                behind=reach.breaks_behind(places.sources, site.frame.file, site.position)
                if kind == "skip"
                else (),
            ),
            skipped[0].function if skipped else None,
            since=skipped[0].since if skipped else None,
            in_loop="loop" in record.reasons[-1].gb_type,
        ),
        calls_of=_calls_of(found, site, places),
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
    )


def _told(
    site: Site,
    use: Use,
    location: Location,
    stack: Sequence[Frame],
    places: Places,
    together: int,
    others: _Around,
) -> ToldSite:
    """What the source says of a site, for its advice; ``together`` is how many its function has."""
    at = places.sources, site.frame.file, site.position
    # A module of Python's own library is no place to look at: who calls it decides.
    whose = next((frame for frame in reversed(stack) if not is_standard(frame.file)), None)
    owner = whose.owner if is_standard(location.file) and whose is not None else location.owner
    theirs = None
    standard = is_standard(location.file) and whose is not None
    file = whose.file if standard and whose is not None else location.file
    # Python's own code breaks for a line that calls it.
    by_line = ""
    if standard and whose is not None:
        by_line = f"`{(whose.source or '').strip()}` ({places.short(whose.file, whose.line)})"
    # A repository beside the script is not the project, but a person can edit it all the same.
    if owner == "torch" or (owner == "library" and is_installed(file)):
        # Of a package that the file belongs to; of torch the line that calls it alone.
        caller = _calls_torch(stack) if owner == "torch" else _calls_package(stack)
        caller = caller or places.caller(location, tuple(stack))
        settings = None if standard else reach.settings(*at)
        unset, setter = reach.unset(places.sources, stack) if owner == "library" else ("", "")
        settings = " and ".join(filter(None, (unset, settings))) or None
        called = loss_call(stack)
        loss = "" if called is None else called[1]
        of_model = "" if called is None else called[0].function.rpartition(".")[0] or "the model"
        theirs = Theirs(
            file,
            (whose.function if standard and whose is not None else _qualified(location, places)) or "",
            None if caller is None else places.short(caller.file, caller.line),
            settings,
            reach.message(*at),
            reach.names(*at, DROPS),
            together,
            caller is not None and (caller.file, caller.line) in others.passed,
            others.under,
            _runs_model(caller, stack),
            (caller.source or "").strip() if caller is not None else "",
            source="" if standard else reach.statement(*at),
            given=reach.gives_itself(places.sources, stack, settings),
            through=_through(stack, places) if owner == "torch" else "",
            setter=setter,
            standard=by_line,
            imported=imported(location, stack) if owner == "library" else "",
            held=owner == "library" and is_held(location, stack, places),
            precomputed=reach.precomputed(*at) if owner == "library" else (),
            number=reach.passed_number(*at, stack) if owner == "library" else "",
            choice="" if standard else reach.choice(*at, settings),
            loss=loss,
            of_model=of_model,
            switch=reach.switch(*at, settings) if owner == "library" and not standard else "",
            disabled=_disabled(site, stack, places) if owner == "library" else "",
            in_loss=others.in_loss,
            is_alike=others.is_alike,
        )
    seen = reach.seen(*at, use)
    part = {(frame.file, frame.line) for frame in _compiled_part(_most_telling(site))}
    compiled = [frame for frame in stack if (frame.file, frame.line) in part]
    return ToldSite(
        use,
        theirs,
        reach.condition(*at),
        reach.raises(*at),
        reach.expression(*at),
        reach.statement(*at),
        reach.called_in_loop(*at),
        location.function or "",
        _module(location.file),
        reach.asserted(*at) if use.shape == "check" else "",
        reach.works_on_arrays(*at),
        reach.is_of_array(*at),
        reach.rewritten(*at, use),
        reach.turns(*at),
        reach.unsafe(*at),
        reach.sides(*at),
        seen,
        besides=reach.breaks_in_loop(*at, compiled),
        filled=reach.filled_at_first(*at),
        later=reach.asked_later(*at),
        tested=reach.tested_after(*at) if use.shape in ("branch", "plain", "choice") else None,
        both_ways=(seen.packed or _packs(site)) and places.sources.mentions(location.file, _BOTH_WAYS),
        read_at=f" of {by_line}" * bool(by_line),
    )


def imported(location: Location, stack: Sequence[Frame]) -> str:
    """The library's file that calls a function of another one by its bare name; empty of other calls."""
    frames = [frame for frame in stack if (frame.function or "") not in _COMPREHENSIONS]
    if len(frames) < 2 or (before := frames[-2]).owner != "library" or before.file == location.file:
        return ""
    called = re.search(rf"(?<![\w.]){re.escape(location.function or '-')}\(", before.source or "")
    return before.file if called is not None else ""


def is_held(location: Location, stack: Sequence[Frame], places: Places) -> bool:
    """Whether what calls a library's function has it from a table or a variable, and not by its name."""
    frames = [frame for frame in stack if (frame.function or "") not in _COMPREHENSIONS]
    if len(frames) < 2:
        return False
    before = uses.statement(places.sources.around_line(frames[-2].file, frames[-2].line))
    named = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(before or ast.Pass())}
    return before is not None and location.function not in named


def _qualified(location: Location, places: Places) -> str | None:
    """The function of a place, with what is around a comprehension of which the frame says nothing more."""
    around = _around_inner(location.file, location.line, location.function, places)
    return location.function if around is None else f"{around.qualname}.<locals>.{location.function}"


def _packs(site: Site) -> bool:
    """Whether it breaks at what packs sequences, by torch's record."""
    reasons = (reason for item in site.breaks for reason in item.record.reasons)
    return any("pack" in f"{one.gb_type}{one.explanation}{one.context}" for one in reasons)


def _within(location: Location, stack: Sequence[Frame], found: Collected) -> str:
    """What the script compiles that leads to a site in another function; empty of a site in itself."""
    names = [frame.function for frame in stack if frame.function]
    targets = _targets(found)
    entry = next((name for name in names if _is_target(name, targets)), "")
    function = next((name for name in reversed(names) if name not in _COMPREHENSIONS), "")
    return "" if entry in (location.function, function) else entry


_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def _module(file: str) -> str:
    """The module of Python's own library that a file belongs to: ``json`` of json/encoder.py; else empty.

    Of code that beartype generates, which has no file, its name.
    """
    if file.startswith("<@beartype("):
        return "beartype"
    if not is_standard(file):
        return ""
    names = [Path(file).stem, *(part.name for part in Path(file).parents)]
    return next((name for name in reversed(names) if name in sys.stdlib_module_names), "")


def _calls_torch(stack: Sequence[Frame]) -> Frame | None:
    """The line that calls torch, where a person can edit it: that of a repository beside the script, too."""
    last = _before_torch(stack)
    return None if last is None or is_installed(last.file) else last


def _calls_package(stack: Sequence[Frame]) -> Frame | None:
    """The innermost line that a person can edit, where that is of a repository beside the script."""
    last = next((one for one in reversed(stack) if not is_installed(one.file)), None)
    return last if last is not None and last.owner == "library" else None


def _before_torch(stack: Sequence[Frame]) -> Frame | None:
    """The last line on a way that is not torch's own."""
    return next((frame for frame in reversed(stack) if frame.owner != "torch"), None)


def _through(stack: Sequence[Frame], places: Places) -> str:
    """The library's line that calls torch; empty where the project's own does."""
    last = _before_torch(stack)
    if last is None or last.owner == "project" or not is_installed(last.file):
        return ""
    return f"`{(last.source or '').strip()}` ({places.short(last.file, last.line)})"


def _runs_model(caller: Frame | None, stack: Sequence[Frame]) -> bool:
    """Whether the project's line calls a module: its ``forward`` is what comes next."""
    after = list(stack[stack.index(caller) + 1 :]) if caller is not None and caller in stack else []
    names = [(frame.function or "").rpartition(".")[2] for frame in after if frame.owner != "torch"]
    called = next((name for name in names if name not in _WRAPS), None)
    return called in (None, "forward", "__call__")


# What decorators call the function in front of one's own.
_WRAPS = ("wrapper", "wrapped", "inner", "decorated", "wrapped_func", "func", "new_forward")


def _most_telling(site: Site) -> Break:
    """The occurrence to quote: in the site's own frame, with the longest way to get there."""
    return max(site.own, key=lambda b: len(b.record.frames))


def _first_reason(site: Site, record: BreakRecord) -> Reason:
    """What broke: where a record names the loop alone for which a frame was given up, what broke in it.

    Another compile, of a caller that inlined the frame, tells that.
    """
    first = record.reasons[0]
    reasons = (first, *(item.record.reasons[0] for item in site.breaks))
    return next((one for one in reasons if not catalog.is_skip_gb(one.gb_id)), first)


def _callers(site: Site, places: Places) -> list[list[ast.AST]] | None:
    """The calls in compiled code that lead to a site, the nearest first: what it returns goes there.

    None where the record does not lead to the compiled function: who calls the site's is not known.
    """
    item = max(site.breaks, key=lambda b: b.inlined or 0)
    calls = []
    frames = item.record.frames if item.inlined and item.frame is not None else ()
    for frame, called in zip(reversed(frames[:-1]), reversed(frames), strict=False):
        # A comprehension is a frame of its own up to Python 3.11, and stands where its value goes.
        if not places.is_plumbing(frame) and not called.name.endswith(("comp>", "genexpr>")):
            calls.append(places.call(frame, called.name))
        if item.frame is not None and (frame.file, frame.name) == (item.frame.file, item.frame.name):
            return calls
    return None if frames else []


def _looped_in(stack: Sequence[Frame], entry: str, places: Places) -> str:
    """The nearest ``while`` around a call that leads to a site: ``the loop in line 7 of sample``.

    Args:
        entry: what the script compiles that leads there, whose callers are no matter.
    """
    names = [frame.function for frame in stack]
    for frame in reversed(stack[names.index(entry) : -1] if entry in names else ()):
        loops = own_loops(places.sources.around_line(frame.file, frame.line))
        if loops and isinstance(loops[-1], ast.While):
            return f"the loop in line {loops[-1].lineno} of {frame.function}"
    return ""


def _disabled(site: Site, stack: Sequence[Frame], places: Places) -> str:
    found = reach.disabled_by(places.sources, site.frame.file, site.position, stack)
    return "" if found is None else f"`{found[0]}` ({places.short(found[1], found[2])})"


_END = r"(\d+|self\.[\w.]+)"
_FIXED = re.compile(rf"range\({_END}(, {_END})*\)")  # as many turns at each call


def _repeated_by(stack: Sequence[Frame], found: Collected, places: Places) -> str:
    """The outermost loop around a site that compiled code runs as often as something says that may change."""
    targets = _targets(found)
    entered = (at for at, frame in enumerate(stack) if _is_target(frame.function or "", targets))
    for frame in stack[next(entered, 0) :]:
        for loop in own_loops(places.sources.around_line(frame.file, frame.line)):
            turns = "" if isinstance(loop, ast.While) else ast.unparse(loop.iter)
            if isinstance(loop, ast.While) or (turns.startswith("range(") and not _FIXED.fullmatch(turns)):
                return f"The loop in line {loop.lineno} of {frame.function}"
    return ""


def _is_entered(site: Site, found: Collected) -> bool:
    """Whether the frame that was compiled is what the script compiles, and no part that a break left over."""
    name = next((item.frame.qualname for item in site.breaks if item.frame and item.frame.qualname), "")
    return _is_target(name, _targets(found))


def _targets(found: Collected) -> set[str]:
    """The names of what the script gives to ``torch.compile``."""
    return {event["name"] for event in found.compiled}


def _is_target(name: str, targets: AbstractSet[str]) -> bool:
    """Whether a function, by its qualified name, is what the script compiles."""
    return bool({name, name.rpartition(".")[2], name.removesuffix(".forward")} & targets)


def _stack(item: Break, places: Places) -> tuple[Frame, ...]:
    return places.stack(item.record.frames, resumed=item.frame is not None and item.frame.resumed)


def _ending_at(location: Location, stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """A call path whose last line is the site's: in a test of several lines torch's may be the first."""
    if not stack or (stack[-1].file, stack[-1].function) != (location.file, location.function):
        return stack
    return (*stack[:-1], replace(stack[-1], line=location.line, source=location.source))


def site_code(site: Site, places: Places) -> str:
    """The finding's code: what broke, or that a whole frame was given up for it."""
    own = site.own
    cause = own[0].record.reasons[0]
    wrapper = _distributed_wrapper(_stack(_most_telling(site), places))
    if wrapper is not None:
        return wrapper
    if all(b.skips for b in own):
        if any(b.record.failed for b in own):
            return "BS306"
        said = catalog.is_skip_gb(own[0].record.reasons[-1].gb_id)
        # Dynamo names a loop as the reason, but not a try or a with.
        return "BS301" if said or places.sources.in_block(site.frame.file, site.frame.line) else "BS302"
    return records.code_of(cause)


# Wrappers for several ranks, whose own code is not what a user can repair.
_WRAPPERS = (("/torch/distributed/fsdp/", "BS140"), ("/torch/nn/parallel/distributed.py", "BS141"))


def _distributed_wrapper(stack: Sequence[Frame]) -> str | None:
    """The code for a break inside FSDP2's or DDP's own frames: those that no frame of the user's is in."""
    for frame in reversed(stack):
        file = frame.file.replace("\\", "/")
        for part, code in _WRAPPERS:
            if part in file:
                return code
        if frame.owner == "project":
            return None
    return None


def _checked(code: str, shape: Shape, *, drawn: bool) -> str:
    """A value that is read to decide whether to raise is a check; one that numpy draws is a random number."""
    if drawn and code in ("BS102", "BS103", "BS107", "BS110", "BS111"):
        return "BS127"
    return "BS106" if shape == "check" and code in ("BS101", "BS102") else code


def title_of(code: str, inner: str) -> str:
    """The code's title; that of a skipped frame names what broke inside it."""
    title = catalog.entry(code).title
    if code not in ("BS301", "BS302"):
        return title
    if inner.startswith("BS3") or inner == "BS199":
        return title
    return f"frame skipped: {catalog.entry(inner).title}"


def _explanation(record: BreakRecord) -> str:
    """What Dynamo says of the cause, and of what followed from it."""
    first, *rest = record.reasons
    parts = [first.explanation]
    parts += [f"Then: {reason.gb_type}. {reason.explanation}" for reason in rest]
    return "\n".join(part for part in parts if part.strip())


def crossings(found: Collected, site: Site) -> int | None:
    """Runs into the site, by whichever frame saw most of them."""
    if found.slots is None:
        return None
    slot = counted_by(found, site)
    return 0 if slot is None else found.count(slot)


def counted_by(found: Collected, site: Site) -> int | None:
    """The slot that counts a site's crossings: one for the whole run, so that its steps add up to its total.

    The site's own frame counts its passes. Compiled callers, which end at their call of it, are asked where
    that frame never counts (torch's own files), and last the callers that Dynamo gave up on, which may count
    what is not theirs; see ``capture.crossings``.
    """
    own = site.slots
    exact = own | {b.counting for b in site.breaks if b.counting is not None}
    most = max(
        exact,
        key=lambda slot: (bool(slot in own and found.count(slot)), found.count(slot) or 0, -slot),
        default=None,
    )
    if most is None or found.count(most):
        return most
    callers = sorted(
        (skip.depth, skip.counting)
        for skip in found.skips
        if skip.depth and skip.site in own and skip.counting is not None and found.count(skip.counting)
    )
    return callers[0][1] if callers else most


def _calls_of(found: Collected, site: Site, places: Places) -> str | None:
    """The given-up function whose calls stand for the crossings; None where passes were counted."""
    slot = counted_by(found, site)
    if slot is None or not found.count(slot):
        return None
    skip = next((skip for skip in found.skips if skip.counting == slot and not skip.passes), None)
    if skip is None:
        return None
    frame = skip.frame
    return places.definition(frame.file, frame.line, frame.name, frame.qualname).function


def _skipped(found: Collected, site: Site, places: Places) -> tuple[SkippedFrame, ...]:
    whys: dict[tuple[str, str], str] = {}
    for item in site.breaks:
        if item.frame and item.skips:
            whys[item.frame.file, item.frame.name] = item.record.reasons[-1].gb_type
    slots = site.slots
    return given_up.each_once(
        skipped_frame(found, skip, places, whys.get((skip.frame.file, skip.frame.name), ""))
        for skip in found.skips
        if not skip.limit and skip.site in slots
    )


def skipped_frame(found: Collected, skip: Skip, places: Places, why: str) -> SkippedFrame:
    """A skip event as the model shows it, its resume function folded into the function it resumes."""
    frame = skip.frame
    where = places.definition(frame.file, frame.line, frame.name, frame.qualname)
    calls = found.count(skip.slot)
    return SkippedFrame(where.function or frame.name, frame.file, where.line, why, calls, frame.since or None)
