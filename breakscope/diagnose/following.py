"""Which findings would go if another one went: consequences are led back to what caused them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath

from breakscope import catalog
from breakscope.diagnose import break_words, uses
from breakscope.diagnose.compile_time import LONGEST, SEE_TO_RECOMPILES
from breakscope.diagnose.guard_paths import line_of_temporary, of_size, of_strides
from breakscope.diagnose.guard_uses import Taken
from breakscope.diagnose.handed import is_handed_on
from breakscope.diagnose.library_advice import CALL_MOVED, LOSS_LEFT, loss_call, package_of
from breakscope.diagnose.origins import (
    Origin,
    Size,
    calling,
    in_proportion,
    is_wrapper,
    may_come_of,
    together,
)
from breakscope.diagnose.places import Places
from breakscope.diagnose.recompile_advice import (
    A_SECOND,
    IS_OPTIMIZER,
    SPECIAL_SIZES,
    asks_for_several,
    becomes_one,
    call_of,
    is_specialized,
    listed,
    of_generation,
    of_group,
    or_rival,
    very_number,
)
from breakscope.diagnose.recompiles import Cause, what_it_does
from breakscope.diagnose.records import unresumed
from breakscope.diagnose.statements import head_of, own_loops
from breakscope.project.sources import Span
from breakscope.report.model import Finding, Guard, Location
from breakscope.report.owners import is_installed, is_standard

# A number that comes of a size is one of the shape's own, and so are strides.
_ITEM = re.compile(r"(?P<of>[\w.]+(\[[^\]]+\])*)\[\d+\]")
_FILLED = re.compile(r"(?!self\.)\w+\.(?:\w+\.)*(?P<items>\w+)(\[[^\]]+\])+")
_NEAR = 4  # lines between a check and its raise
_LARGEST = 1 << 40
_MOST_NAMED = 3
_SIZED = ("size", "symbolic_shape", "int_value", "stride")
_HANDED_ON = ("dtype", "identity")
# What is a version of its own, whatever is dynamic.
_APART = ("container", "constant_value", "module_attribute", "identity", "type", "rank", "dtype")
_MODES = ("global_state", "requires_grad", "dispatch_keys")
_BY_NAME = "the set of arguments that are passed by name"
# What reads values: an expression that holds another such one reads what that one made.
_RAISED = ("BS105", "BS110", "BS111", "BS190", "BS191")
_DATA = ("BS101", "BS102", "BS103", "BS105", "BS106", "BS127")
# Torch's ids.
_UNMADE = "GB0092"  # an iterator or another object: what cannot be made again behind a break
# A method of an object that Dynamo does not model, requires_grad_() that leaks, what takes a gradient.
_COMPILED_ALONE = "GB4347"  # a comprehension that is given an iterator
# ``v = loss.item()``
_READ = re.compile(r"\s*(?P<name>\w+) = .*(\.(item|tolist)\(\)|\b(int|float)\()")
_METHOD, _LEAKED, _TAKES_GRADIENT = "GB0156", "GB8985", ("GB9186", "GB0123")


@dataclass(frozen=True, slots=True)
class _Again:
    """One cause of recompiles, with its finding."""

    finding: Finding
    cause: Cause
    origin: Origin | None


def linked(made: Sequence[Finding], causes: Sequence[Cause], places: Places) -> list[Finding]:
    """The findings, with ``caused_by`` set where one follows from another, and advice that says so.

    Args:
        made: all findings, under the names that they keep; causes: of the recompiles among them, in order.
    """
    sites = [
        finding for finding in made if finding.kind in ("graph_break", "skip") and finding.code != "BS303"
    ]
    recompiles = [finding for finding in made if finding.kind == "recompile"]
    kept = [cause for cause in causes if cause.recompiles]
    again = [_Again(finding, cause, cause.origin) for finding, cause in zip(recompiles, kept, strict=True)]
    again = _by_layer(again)
    changed: dict[str, Finding] = {}
    for finding in (
        *_same_expression(sites),
        *_read_at_breaks(again, sites, places),
        *_of_messages(again, sites),
        *_of_calls(again, sites),
    ):
        changed[finding.fingerprint] = finding
    left = [one for one in again if one.finding.fingerprint not in changed]
    for finding in (*_groups(left, places), *_limits(made, recompiles)):
        changed[finding.fingerprint] = finding
    left = [one for one in left if one.finding.fingerprint not in changed]
    # What the script calls itself is a function of its own with or without a break.
    entered = [one.finding.location for one in again if one.origin is None or not one.origin.within]
    limits = {one.location: one for one in made if one.code == "BS303" and one.location not in entered}
    for finding in _compiled_alone(left, sites, places, limits):
        changed[finding.fingerprint] = finding
    now = [changed.get(finding.fingerprint, finding) for finding in made]
    now = _called_from(_with_others(_never_dynamic(_told(now)), again), again, places)
    now = _with_breaks(now, again, sites, places)
    now = _with_recompiles(now)
    return _limits_too(now, {finding.fingerprint: finding.advice for finding in made})


def _with_recompiles(now: Sequence[Finding]) -> list[Finding]:
    """The findings; of compile times that recompiles took it is told for what those were."""

    def with_recompiles(finding: Finding) -> Finding:
        head, told, then = (finding.advice or "").partition(SEE_TO_RECOMPILES)
        own = [one for one in now if one.kind == "recompile" and one.location == finding.location]
        latest = {*finding.counts.compile_ids[-1:]}
        if finding.code == "BS404" and any(
            one.code == "BS201" and latest & {*one.counts.compile_ids} for one in own
        ):
            fix = finding.advice or catalog.entry("BS404").fix
            said = f"{fix} This compile is for another size than the first: {_FIXED_SIZES}"
            return replace(finding, advice=said)
        if finding.kind != "compile" or not told or not own:
            return finding
        names = list(dict.fromkeys(_what_differed(one.guard) for one in own if one.guard is not None))
        # Of these nothing is to be saved: what is kept in mind is the compile for more sizes.
        normal = [one for one in own if not one.expected and _NORMAL.search(one.advice or "")]
        expected = all(one.expected or one in normal for one in own)
        others = " and others" * (len(names) > _MOST_NAMED)
        said = f"{_TOOK_MOST if expected else told} (for {listed(names[:_MOST_NAMED])}{others})"
        of_sizes = any(one.code == "BS201" and not _of_ones(one.guard) for one in own)
        sizes = (_FIXED_SIZES if LONGEST in then else _DYNAMIC_AT_ONCE) * of_sizes
        if not expected:
            wide = f" {_FIXED_SIZES[0].upper()}{_FIXED_SIZES[1:]}" * (of_sizes and LONGEST in then)
            then = re.sub(r" s\.", f" s; breakscope remedy tries what saves them.{wide}", then, count=1)
        else:
            how = "All are normal, and made once" if normal else "All are expected"
            then = re.sub(r" s\.", f" s. {how}{f'; {sizes}' if sizes else '.'}", then, count=1)
        return replace(finding, advice=f"{head}{said}{then}")

    return [with_recompiles(finding) for finding in now]


# What the advice of a recompile says where it saves nothing.
_NORMAL = re.compile(r"\bis normal, made once(?!.*\b[Tt]o save)", re.DOTALL)
_TOOK_MOST = "Its recompiles took most of that"
_DYNAMIC_AT_ONCE = (
    "dynamic=True in torch.compile makes one graph for any size but 0 and 1 at once, where nothing of a fixed"
    " size is as large at the first call, and dynamic=False one for each size: the first way compiles less"
    " often, and each compile of the second is as a rule shorter."
)


_FIXED_SIZES = (
    "a graph for any size can take many times as long to compile as one for one size: where few sizes come,"
    " dynamic=False in torch.compile (a version for each) or padding to few of them may cost less, and"
    " dynamic=True more."
)


def _of_ones(guard: Guard | None) -> bool:
    """Whether 0 or 1 is among two sizes, which dynamic=True compiles apart too."""
    return (
        guard is not None and bool({guard.expected, guard.actual} & SPECIAL_SIZES) and len(guard.values) < 3
    )


def _what_differed(guard: Guard) -> str:
    name = guard.source or guard.cause
    return name if guard.dimension is None else f"dimension {guard.dimension} of {name}"


def _limits_too(now: Sequence[Finding], before: Mapping[str, str | None]) -> list[Finding]:
    """The findings; of a limit the same is said as of the guard that used it up."""
    advice = {finding.fingerprint: finding.advice for finding in now}

    def as_its_guard(finding: Finding) -> Finding:
        was, becomes = (str(of.get(finding.caused_by or "")).rstrip(".") for of in (before, advice))
        if finding.code != "BS303" or was == becomes or not str(finding.advice).startswith(was):
            return finding
        return replace(finding, advice=f"{becomes}{str(finding.advice).removeprefix(was)}")

    return [as_its_guard(finding) for finding in now]


def _told(made: Sequence[Finding]) -> list[Finding]:
    """The findings; what another one leads back to is no note, for what is to be done is said there."""
    followed = {finding.caused_by for finding in made if finding.kind == "recompile" and not finding.expected}
    return [
        replace(finding, expected=None) if finding.fingerprint in followed else finding for finding in made
    ]


def _never_dynamic(made: Sequence[Finding]) -> list[Finding]:
    """The findings; a size that fails once it is symbolic is not to be made dynamic."""
    failed = [one for one in made if one.code == "BS191" and "has become symbolic" in (one.advice or "")]

    def without_marks(finding: Finding) -> Finding:
        for site in failed:
            if finding.code == "BS201" and set(finding.counts.compile_ids) & set(site.counts.compile_ids):
                at = f"{site.location.file.replace(chr(92), '/').rpartition('/')[2]}:{site.location.line}"
                text = f"Repair {at} first ({site.code}): a dynamic size fails there. Or pad to one size"
                return replace(finding, advice=f"{text}: with dynamic=False each is a graph of its own")
        return finding

    return [without_marks(finding) for finding in made]


def _with_others(made: Sequence[Finding], again: Sequence[_Again]) -> list[Finding]:
    """The findings; what saves the compile for a size does not where another guard fails at that call."""
    passed = {one.finding.fingerprint: {v[0] for v in one.origin.values} for one in again if one.origin}
    where = {one.finding.fingerprint: one.origin.where for one in again if one.origin}
    known = {
        one.finding.fingerprint: [some for some in one.cause.too if some is not None]
        for one in again
        if one.cause.too and None not in one.cause.too
    }

    def at_one_call(*both: Finding) -> bool:
        return len({where[one.fingerprint] for one in both if one.fingerprint in where}) < 2

    def with_others(finding: Finding) -> Finding:
        told = re.search("dynamic|one graph more|[Tt]o save|always as", finding.advice or "")
        exactly = known.get(finding.fingerprint, [])
        if finding.code in _OF_STATE and exactly and all(exactly) and finding.caused_by is None:
            return _with_exactly(finding, exactly)
        if finding.code not in _OF_SIZES_AND_NUMBERS or told is None:
            return finding
        if finding.fingerprint in known:
            return _with_exactly(finding, exactly)
        others = [
            one.guard.source
            for one in made
            if one.location == finding.location and one.caused_by is None and _stays(one.guard) and one.guard
            if at_one_call(one, finding)
        ]
        own = finding.guard.source if finding.guard is not None else None
        names = list(dict.fromkeys(name for name in others if name not in (None, own)))[:_MOST_NAMED]
        if not names:
            return finding
        first = _named_often(names, made, finding)
        if first:
            often = "they change more often" if len(first) > 1 else "it changes more often"
            said = f"See to {listed(first)} first: {often}"
            return replace(
                finding, advice=f"{(finding.advice or '').rstrip('.')}. {said}, a version for each"
            )
        return _all_the_same(
            finding, names, at=1 if set(names) <= passed.get(finding.fingerprint, set()) else 0
        )

    return [with_others(finding) for finding in made]


_OF_STATE = ("BS208", "BS209", "BS211")


def _with_exactly(finding: Finding, too: Sequence[Sequence[str]]) -> Finding:
    """A finding with what else failed at its recompiles, of which torch was asked."""
    names = list(dict.fromkeys(_PASSED_BY_NAME.sub(r"\1", name) for some in too for name in some))
    own = finding.guard.source if finding.guard is not None else None
    if _IN_EAGER.search(finding.advice or ""):  # one call sets the flag of each layer of its class
        with_it = [name for name in names if own and name.rpartition(".")[2] == own.rpartition(".")[2]]
        names = [name for name in names if name not in with_it]
        if with_it:
            said = f"{(finding.advice or '').rstrip('.')}. It sets {listed(with_it[:_MOST_NAMED])} as well"
            finding = replace(finding, advice=said)
    if not names:
        return finding
    return _all_the_same(finding, names[:_MOST_NAMED], at=len(too) if all(too) else 0)


_PASSED_BY_NAME = re.compile(r"\bkwargs\['(\w+)'\]")
_IN_EAGER = re.compile(r"\bcall (?:the module once )?in eager")


def _all_the_same(finding: Finding, names: Sequence[str], at: int) -> Finding:
    """A finding with what else changed; ``at``: at how many calls, all of its own; 0 where not at each."""
    named = listed([_BY_NAME if name == "kwargs" else name for name in names])
    said = f"Where {named} changed at the same call as well, that is compiled all the same"
    if at:
        when, which = ("call", "one is") if at == 1 else ("calls", "these are")
        said = f"But {named} changed at the same {when}, so that {which} compiled all the same"
    return replace(finding, advice=f"{(finding.advice or '').rstrip('.')}. {said}")


_OF_SIZES_AND_NUMBERS = ("BS201", "BS207", "BS208", "BS210", "BS211", "BS214")


def _named_often(names: Sequence[str], made: Sequence[Finding], finding: Finding) -> list[str]:
    """The names of what has more versions in the same function than one size."""
    versions = finding.counts.occurrences
    often = {
        one.guard.source
        for one in made
        if one.guard is not None
        and one.location == finding.location
        and one.counts.occurrences > max(versions, A_SECOND)
    }
    return [name for name in names if name in often]


def _stays(guard: Guard | None) -> bool:
    """Whether a guard fails whatever is dynamic: at another object, or at a number that is a constant."""
    if guard is None or guard.resumed or (guard.source or "").endswith(".training"):
        return False
    if guard.cause in ("int_value", "float_value"):
        return len(guard.values) > A_SECOND
    return guard.cause in _APART


def _called_from(made: Sequence[Finding], again: Sequence[_Again], places: Places) -> list[Finding]:
    """The findings; a recompile has the line of the project that made the call."""
    lines = {one.finding.fingerprint: one.origin.caller for one in again if one.origin is not None}

    def with_line(finding: Finding) -> Finding:
        line = lines.get(finding.fingerprint)
        place = finding.location
        if (
            line is None
            or finding.called_from is not None
            or (line.file, line.line) == (place.file, place.line)
        ):
            return finding
        (frame,) = places.stack([line]) or (None,)
        return replace(finding, called_from=frame)

    return [with_line(finding) for finding in made]


_LOGGING = re.compile(r"[/\\]logging[/\\]\w+\.py$")


def _of_messages(again: Sequence[_Again], sites: Sequence[Finding]) -> Iterable[Finding]:
    """What is found inside of Python's logging comes of the line that logs, and goes with it."""
    lines = {
        (site.location.file, site.location.line): site
        for site in sites
        if site.code == "BS104" and not _is_logging(site.location.file)
    }
    ways = [(site, [(frame.file, frame.line) for frame in site.stack]) for site in sites]
    ways += [(one.finding, [frame[:2] for frame in one.origin.within]) for one in again if one.origin]
    for finding, way in ways:
        logs = next((lines[place] for place in way if place in lines), None)
        if logs is not None and _is_logging(finding.location.file):
            yield _follows(finding, logs)


def _of_calls(again: Sequence[_Again], sites: Sequence[Finding]) -> Iterable[Finding]:
    """What a library compiles again under a call that is to be made elsewhere goes with its breaks there."""
    moved = {
        (package_of(site.location.file), site.called_from.file, site.called_from.line): site
        for site in reversed(sites)
        if site.called_from is not None and CALL_MOVED.search(site.advice or "") is not None
    }
    for left in reversed(sites):
        if LOSS_LEFT.search(left.advice or "") is not None and (called := loss_call(left.stack)) is not None:
            moved[package_of(left.location.file), called[0].file, called[0].line] = left
    for one in again:
        place, seen = one.finding.location, one.origin
        if place.owner != "library" or seen is None:
            continue
        package = package_of(place.file)
        calls = (moved.get((package, file, line)) for file, line, _ in seen.within)
        if (site := next(filter(None, calls), None)) is not None:
            yield _follows(one.finding, site)


def _is_logging(file: str) -> bool:
    """Whether a file is of Python's own logging, and of no package that is called so."""
    return _LOGGING.search(file) is not None and is_standard(file)


def _same_expression(sites: Sequence[Finding]) -> Iterable[Finding]:
    """Of two sites in one expression the inner one, or the first, is what is to be repaired."""
    for number, site in enumerate(sites):
        for at, other in enumerate(sites):
            same_file = other.location.file == site.location.file
            if at != number and same_file and _goes_with(site, other, earlier=at < number):
                yield replace(site, caused_by=other.fingerprint)
                if (told := _read_around(site, other)) is not None:
                    yield told
                break
            if at != number and (
                _is_met_by_caller(site, other)
                or _lists_what_was_found(site, other)
                or _is_met_at_first(site, other)
            ):
                yield _follows(site, other)
                break
            if at != number and _is_comprehension_of(site, other):
                inside = (site.advice or "").startswith(break_words.BREAKS_INSIDE)
                why = break_words.BREAKS_INSIDE.rstrip(".") if inside else _alone_too(site, other, sites)
                yield _follows(site, other, why)
                break
            if at != number and (
                (same_file and _is_raised_by(site, other))
                or (same_file and _is_given_to_autograd(site, other))
                or _is_called_at(site, other)
                or _is_held_at(site, other)
                or _is_made_at(site, other)
                or _is_made_behind(site, other)
                or _takes_what_was_read(site, other)
            ):
                yield replace(site, caused_by=other.fingerprint)
                break


def _is_met_at_first(site: Finding, other: Finding) -> bool:
    """Whether it is in what a library does at its first call alone, to be made before torch.compile."""
    place = other.location
    at_first = "once before torch.compile" in (other.advice or "")
    return at_first and any(
        (one.file, one.function) == (place.file, place.function) for one in site.stack[:-1]
    )


def _read_around(site: Finding, other: Finding) -> Finding | None:
    """A selection, with what is said of the number that is read of it in the same statement: both break."""
    own, its = _range(site), _range(other)
    if site.code != "BS102" or other.code != "BS105" or own is None or its is None or own == its:
        return None
    read = uses.READS.search(site.location.source or "")
    # Of experts the list is what the loop is over.
    made_before = re.search(r"make the list|block of experts", other.advice or "") is not None
    if read is None or made_before or not (own[0] <= its[0] and its[1] <= own[1]):
        return None
    said = break_words.READ_AROUND.format(read=f"{read[0]})")
    return replace(other, advice=f"{(other.advice or '').rstrip('.')}. {said}")


def _goes_with(site: Finding, other: Finding, *, earlier: bool) -> bool:
    own, its = _range(site), _range(other)
    if own is None or its is None:
        return False
    if own == its:
        return earlier
    both_read = site.code in (*_DATA, "BS111", "BS123") and other.code in _DATA
    if (both_read or _is_method_on(site, other)) and own[0] <= its[0] and its[1] <= own[1]:
        return True
    if _is_argument_of(site, other) and its[0] <= own[0] and own[1] <= its[1]:
        return True
    waits = _is_taken_off(site) or (site.gb_id == _UNMADE and "Iterator" in site.explanation)
    return waits and other.code in _DATA and own[0][0] <= its[0][0] <= own[1][0]


def _is_argument_of(site: Finding, other: Finding) -> bool:
    """Whether a number may be read for a call that Dynamo does not trace, which the caller makes then."""
    return site.code in ("BS102", "BS103") and other.code == "BS107" and not _is_taken_off(other)


def _is_comprehension_of(site: Finding, other: Finding) -> bool:
    """Whether a comprehension is compiled alone for a break in it, or one that gave up its function."""
    around, _, inner = (site.location.function or "").rpartition(".<locals>.")
    if (site.advice or "").startswith(break_words.BREAKS_INSIDE) and not other.skipped:
        own, its = _range(site), _range(other)
        if site.location.file != other.location.file or own is None or its is None:
            return False
        return own[0] <= its[0] and its[1] <= own[1]
    if site.gb_id != _COMPILED_ALONE or other.gb_id == _COMPILED_ALONE:
        return False
    place = site.location
    if any((frame.file, frame.line) == (place.file, place.line) for frame in other.stack[:-1]):
        return True
    if not around or not inner.endswith(("comp>", "genexpr>")):
        return False
    given_up = place.file, around.partition(".<locals>.<")[0]
    if any((one.file, one.function) == given_up for one in other.skipped):
        return True
    own, its = _range(site), _range(other)
    if place.file != other.location.file or own is None or its is None:
        return False
    return own[0] <= its[0] and its[1] <= own[1]


def _alone_too(site: Finding, cause: Finding, sites: Sequence[Finding]) -> str:
    """Of a comprehension that breaks below its function have compiled alone, those besides its cause."""
    function = site.location.file, (site.location.function or "").partition(".<locals>.<")[0]
    more = [
        other
        for other in sites
        if other.gb_id != _COMPILED_ALONE
        and (other.location.file, other.location.line) != (cause.location.file, cause.location.line)
        and any((one.file, one.function) == function for one in other.stack[:-1])
    ]
    if not more:
        return ""
    named = [f"{PurePath(one.location.file).name}:{one.location.line}" for one in more[:_MOST_NAMED]]
    named += [f"{len(more) - _MOST_NAMED} more"] * (len(more) > _MOST_NAMED)
    which = "any other break below it stays" if len(more) > 1 else "the other break below it stays"
    return f"It stays as long as {which} ({listed(named)})"


def _is_method_on(site: Finding, other: Finding) -> bool:
    """Whether it calls a method of what another one makes: ``datetime.now().isoformat()``."""
    own, its = _range(site), _range(other)
    return site.gb_id == _METHOD and own is not None and its is not None and own[0] == its[0]


def _is_taken_off(site: Finding) -> bool:
    """Whether a method was taken off its tensor before the graph broke in its arguments."""
    return site.code == "BS107" and (site.advice or "").startswith("The method was taken off")


def _is_given_to_autograd(site: Finding, other: Finding) -> bool:
    """Whether a tensor leaves the graph only because ``torch.autograd.grad`` breaks it further on.

    A gradient that is differentiated again is computed from the tensor, and leaves in any case.
    """
    same = site.location.function == other.location.function
    again = "create_graph" in (other.location.source or "")
    return same and site.gb_id == _LEAKED and other.gb_id in _TAKES_GRADIENT and not again


def _is_raised_by(site: Finding, other: Finding) -> bool:
    """Whether it is the ``raise`` of a check that another finding is about, where the check fails."""
    same = site.location.function == other.location.function
    raises = (site.location.source or "").lstrip().startswith("raise ")
    return (
        same and raises and other.code == "BS106" and 0 <= site.location.line - other.location.line <= _NEAR
    )


def _is_called_at(site: Finding, other: Finding) -> bool:
    """Whether it is met in what another break calls: the caller would have traced it as part of itself."""
    called = site.called_from
    at = other.location
    return (
        called is not None
        and site.location.owner != "project"
        and (called.file, called.line) == (at.file, at.line)
        and site.code == other.code
        and site.gb_id == other.gb_id
    )


def _is_held_at(site: Finding, other: Finding) -> bool:
    """Whether an object has to live on behind a break in what its line calls, and cannot be made again."""
    called, at = other.called_from, site.location
    if called is None or site.gb_id != _UNMADE:
        return False
    return (called.file, called.line) == (at.file, at.line)


def _is_made_at(site: Finding, other: Finding) -> bool:
    """Whether it comes of an optimizer that is made while Dynamo traces, which another break tells."""
    called, at = site.called_from, other.called_from
    made = (other.location.function or "").endswith("Optimizer._patch_step_function")
    return made and called is not None and at is not None and (called.file, called.line) == (at.file, at.line)


def _is_made_behind(site: Finding, other: Finding) -> bool:
    """Whether a module's ``__init__`` is compiled by itself because another break gave up what makes it."""
    if "Uninitialized nn.Module" not in site.reason or other.reason == site.reason:
        return False
    makes = {(frame.file, frame.function) for frame in site.stack[:-1]}
    within = site.location.file, site.location.function
    at = other.location.file, other.location.function
    return at == within or any((one.file, one.function) in makes for one in other.skipped)


def _takes_what_was_read(site: Finding, other: Finding) -> bool:
    """Whether a function of Python's is given a number that another break has read, and is symbolic."""
    place, read = site.location, _READ.match(other.location.source or "")
    same = (place.file, place.function) == (other.location.file, other.location.function)
    if not same or site.code != "BS111" or other.code not in ("BS102", "BS103") or read is None:
        return False
    return re.search(rf"\b{read['name']}\b", place.source or "") is not None


def _lists_what_was_found(site: Finding, other: Finding) -> bool:
    """Whether it makes a list of the different values that another break finds: ``present.tolist()``."""
    place, found = site.location, _DIFFERENT.match(other.location.source or "")
    same = (place.file, place.function) == (other.location.file, other.location.function)
    if not same or site.code != "BS102" or other.code != "BS105" or found is None:
        return False
    return re.search(rf"\b{found['name']}\.tolist\(\)", place.source or "") is not None


_DIFFERENT = re.compile(r"\s*(?P<name>\w+) = .*\bunique\(")


def _is_met_by_caller(site: Finding, other: Finding) -> bool:
    """Whether a caller is given up for a kind of tensor that what it calls cannot take either."""
    place = site.location
    on_the_way = any((frame.file, frame.line) == (place.file, place.line) for frame in other.stack[:-1])
    return on_the_way and site.gb_id == other.gb_id and site.title == other.title and "tensor" in site.title


def _range(finding: Finding) -> tuple[tuple[int, int], tuple[int, int]] | None:
    place = finding.location
    if place.column is None or place.end_line is None or place.end_column is None:
        return None
    return (place.line, place.column), (place.end_line, place.end_column)


def _read_at_breaks(again: Sequence[_Again], sites: Sequence[Finding], places: Places) -> Iterable[Finding]:
    """Values that a break handed on to what goes on after it: without the break they are in the graph."""
    selected: dict[object, list[Finding]] = {}
    for one in again:
        if one.finding.guard is not None and (found := _selections(one, one.finding.guard, sites, places)):
            selected.setdefault(_sized_thing(one), found)
    # What torch hands on without a name is as large as something that has one, and is led to what that is.
    named = {_came(one) for one in again if not _is_nameless(one) and _sized_thing(one) not in selected}
    selected = {
        _sized_thing(one): selected[_sized_thing(one)]
        for one in again
        if _sized_thing(one) in selected and not (_is_nameless(one) and _came(one) in named)
    }
    for one in again:
        guard = one.finding.guard
        sized = guard is not None and guard.cause in _SIZED and one.origin is not None and one.origin.sizes
        line = line_of_temporary(guard.source) if guard is not None and guard.source else None
        # Of a size that data gave once, the next one is of data too, and be it as large as an argument.
        selections = selected.get(_sized_thing(one), [])
        read = next(iter(selections), None if guard is None else _read_of_tensor(one, guard, sites))
        if read is not None:
            yield _follows(one.finding, read, _one_of(selections) or _behind(one, read))
        if read is None and guard is not None and (hands := _hands_array(one, guard, sites, places)):
            yield _follows(one.finding, hands, f"{guard.source} is an array that is made here")
            continue
        file = one.finding.location.file
        handing = [] if line is None else [site for site in sites if _breaks_at(site, file, line)]
        if line is not None and not handing:
            handing = [site for site in sites if _is_named_at(site, file, line, places)][:1]
        site = next(iter(handing), None)
        by_number = site is not None and guard is not None and _is_made_by_number(site, guard, one.origin)
        made = None if one.origin is None else one.origin.made
        by_number |= made is not None and made.data and not made.arguments
        if (sized and not by_number) or read is not None:
            continue
        if site is not None:
            # A number that is kept as a tensor is guarded by nothing: that serves where no branch asks.
            is_captured = one.finding.code == "BS213" and "capture_scalar_outputs" in (site.advice or "")
            own = one.finding.advice if is_captured else None
            yield _follows(one.finding, site, (own or "").rstrip(".") or _as_well(handing[1:], site))


def _as_well(others: Sequence[Finding], first: Finding) -> str:
    """That further breaks on the way hand a value on too; empty where there is none elsewhere."""
    at = {(one.location.file, one.location.line) for one in others}
    at -= {(first.location.file, first.location.line)}
    if not at:
        return ""
    named = [f"{PurePath(file).name}:{line}" for file, line in sorted(at)]
    more = ["others"] * (len(named) > _MOST_NAMED)
    return f"The breaks at {listed([*named[:_MOST_NAMED], *more])} hand it on as well, and have to go too"


def _is_nameless(one: _Again) -> bool:
    guard = one.finding.guard
    return guard is not None and "__resume_frame_values" in (guard.source or "")


def _came(one: _Again) -> tuple[str | None, str | None]:
    guard = one.finding.guard
    return (None, None) if guard is None else (guard.expected, guard.actual)


def _by_layer(again: Sequence[_Again]) -> list[_Again]:
    """A size that one call has on its several layers is not led to a size of the call when it comes again."""
    layers: dict[object, set[str]] = {}
    for one in again:
        if one.origin is not None and one.origin.same_call and one.finding.guard is not None:
            layers.setdefault(_sized_thing(one), set()).update(one.finding.guard.values)

    def comes_again(one: _Again) -> bool:
        guard, seen = one.finding.guard, one.origin
        if guard is None or seen is None or seen.same_call or not of_size(guard):
            return False
        if any(
            seen.direct and (size.dimension, str(size.new)) == (guard.dimension, guard.actual)
            for size in seen.sizes
        ):
            return False  # the argument itself, whose own dimension changed
        return not layers.get(_sized_thing(one), set()).isdisjoint({guard.expected, guard.actual})

    return [
        replace(one, origin=replace(one.origin, same_call=True, sizes=()))
        if one.origin is not None and comes_again(one)
        else one
        for one in again
    ]


def _sized_thing(one: _Again) -> object:
    guard, place = one.finding.guard, one.finding.location
    return guard and (guard.cause in _SIZED, guard.source, guard.dimension, place.file, place.function)


def _behind(one: _Again, read: Finding) -> str:
    """Of a number that is handed on by another break than the one that read it."""
    frame = one.cause.frame
    is_number = read.code in ("BS102", "BS103")
    if not (frame.resumed and is_number) or frame.line == read.location.line:
        return ""
    return f"The break of line {frame.line} hands it on, and has to go as well"


def _read_of_tensor(one: _Again, guard: Guard, sites: Sequence[Finding]) -> Finding | None:
    """The break that reads a tensor's number, where that number is what is guarded: ``i.item() == 3``."""
    if not guard.resumed or guard.cause not in ("int_value", "float_value", "constant_value"):
        return None
    reads = f"{guard.source}.item()" in guard.expression
    of_numpy = f"___from_numpy({guard.source}).item()" in guard.expression
    name, held = re.escape(guard.source or ""), re.split(r"[.\[]", guard.source or "")[0]
    made = rf"^\s*({name}|{re.escape(held)})(: [^=]+)? = "
    return next(
        (
            site
            for site in sites
            if _is_of(site, one.finding)
            and (reads or site.code in ("BS102", "BS103") or (of_numpy and site.code in _RAISED))
            and re.search(rf"\b{name}\b" if reads else made, site.location.source or "")
        ),
        None,
    )


def _is_of(site: Finding, finding: Finding) -> bool:
    """Whether a site is in the function of a finding, in a comprehension of it too."""
    function = finding.location.function
    if site.location.function == function:
        return True
    place = site.location
    inside = (place.function or "").endswith(("comp>", "genexpr>"))
    around = ((frame.file, frame.line, frame.function) for frame in site.stack)
    return inside and (place.file, place.line, function or "") in around


def _hands_array(one: _Again, guard: Guard, sites: Sequence[Finding], places: Places) -> Finding | None:
    """The break that hands on an array that the function itself makes, of which no caller has anything."""
    if not guard.resumed or "___from_numpy(" not in guard.expression:
        return None
    file, line = one.finding.location.file, line_of_temporary(guard.source or "")
    made = line or _line_of_local(one, guard, places)
    at = (line, one.cause.frame.line) if made is not None else ()
    return next((site for n in at if n for site in sites if _breaks_at(site, file, n)), None)


def _one_of(selections: Sequence[Finding]) -> str:
    """That a size comes of one of several selections, where the source does not tell of which."""
    places_of = dict.fromkeys(
        f"{PurePath(one.location.file).name}:{one.location.line}" for one in selections[: _MOST_NAMED + 1]
    )
    return f"One of the selections at {listed([*places_of])} gives it its size" if len(places_of) > 1 else ""


def _selections(one: _Again, guard: Guard, sites: Sequence[Finding], places: Places) -> list[Finding]:
    """The selection by a mask that a size comes of, where no size of the call is as large.

    Where the source does not tell which of several it is, those follow that may be it as well.
    """
    seen, place = one.origin, one.finding.location
    came = guard.expected, guard.actual
    if not of_size(guard) or (guard.source or "").startswith("self."):
        return []
    line = line_of_temporary(guard.source) if guard.source else None
    local = line or _line_of_local(one, guard, places)
    # What one call gives it twice differs by itself: why it is compiled alone says what to do.
    if line is None and seen is not None and seen.same_call and not guard.resumed and seen.within:
        return []
    # A layer's own width is that of its weights, whatever of its rows was selected.
    if seen is not None and seen.same_call and guard.dimension and seen.made is not None and seen.made.kept:
        return []
    sizes = [(str(size.old), str(size.new)) for size in seen.sizes] if seen is not None else []
    # What a break leaves is as large as an argument only if both are: data gives one such number by chance.
    if came in sizes or (local is None and any(set(size) & set(came) for size in sizes)):
        return []
    explained = seen is not None and any(in_proportion(guard, [size]) for size in seen.sizes)
    within = [(place.file, local or place.line)]
    within += [one[:2] for one in calling(seen.within)] if seen is not None and not seen.direct else ()
    # What a function is called with, or an object holds, no selection of its own has made.
    given = line is None and (not guard.resumed or "." in (guard.source or ""))
    own = places.sources.function_around(place.file, place.line)
    lines = seen.made.lines if seen is not None and seen.made is not None else None
    for file, at in within:
        span = places.sources.function_around(file, at)
        if given and file == place.file and span == own:
            continue
        made = [
            (_sets(site, guard.source, places) and span == own, stands <= at, stands, number)
            for number, site in enumerate(sites)
            if (stands := _line_in(site, file, span, explained)) is not None
            and (stands < at or at == place.line or (stands == at and span == own))
            and not (given and _is_below(site, one.finding))
            and (line is None or stands == at or seen is None)
            and (lines is None or (file, stands) in lines)
            and (span == own or is_handed_on(places.sources, file, stands, at))
        ]
        if made:  # that which gives it its name, or the last one before the line that hands it on
            *best, last = max(made)
            is_known = best[0] or (line is not None and sites[last].location.line == at)
            likely = [number for *_, number in made if not is_known and number != last]
            return [sites[number] for number in (last, *likely)]
    return []


def _is_below(site: Finding, finding: Finding) -> bool:
    """Whether a site is in a function, or in what that calls: its arguments are made before."""
    way = [(frame.file, frame.function) for frame in site.stack]
    place, own = finding.location, site.location
    return (place.file, place.function) in (*way, (own.file, own.function))


def _is_made_by_number(site: Finding, guard: Guard, seen: Origin | None) -> bool:
    """Whether a size is a number that is read of data there: ``torch.arange(lengths.max())``."""
    is_here = site.location.line == line_of_temporary(guard.source or "")
    if site.code != "BS102" or not is_here or _IS_MADE_BY.search(site.location.source or "") is None:
        return False
    sizes = seen.sizes if seen is not None else ()
    return (guard.expected, guard.actual) not in {(str(size.old), str(size.new)) for size in sizes}


_IS_MADE_BY = re.compile(r"\b(arange|zeros|ones|full|empty|randn?|new_\w+)\(")


def _line_in(site: Finding, file: str, span: Span | None, explained: bool) -> int | None:
    """The line of a function on which a selection stands, or which calls what selects: ``y = pool(x)``.

    Args:
        explained: whether a size of the call tells as well what came: what is called need not be why.
    """
    if site.code != "BS105":
        return None
    called = [] if explained else [(frame.file, frame.line) for frame in site.stack[:-1]]
    lines = [line for of, line in [(site.location.file, site.location.line), *called] if of == file]
    return next((one for one in lines if span is None or span.first <= one <= span.last), None)


def _sets(site: Finding, name: str | None, places: Places) -> bool:
    """Whether the statement of a site gives a name its value."""
    around = places.sources.around_line(site.location.file, site.location.line)
    return name in uses.targets(uses.statement(around))


def _line_of_local(one: _Again, guard: Guard, places: Places) -> int | None:
    """The last line on which a function sets a name that a break hands on; None of its arguments."""
    place = one.finding.location
    function = uses.function(places.sources.around_line(place.file, place.line))
    if function is None or not guard.resumed or guard.source in {arg.arg for arg in function.args.args}:
        return None
    sets = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
    lines = [node.lineno for node in sets if guard.source in uses.targets(node)]
    return max((at for at in lines if at <= one.cause.frame.line), default=None)


def _breaks_at(site: Finding, file: str, line: int) -> bool:
    place = site.location
    if place.file == file and place.line <= line <= (place.end_line or place.line):
        return True
    return any(frame.file == file and frame.line == line for frame in site.stack)


def _is_named_at(site: Finding, file: str, line: int, places: Places) -> bool:
    """Whether a line calls the function that breaks, by its name: a site has the way of one call alone."""
    statement = uses.statement(places.sources.around_line(file, line))
    of_lambda = re.search(r"\b(\w+) = lambda\b", site.location.source or "")
    named = of_lambda[1] if of_lambda else (site.location.function or "").rpartition(".")[2]
    calls = (node for node in ast.walk(head_of(statement)) if isinstance(node, ast.Call)) if statement else ()
    return site.location.file == file and any(uses.called(node) == named for node in calls)


# -- recompiles that one difference between calls explains --------------------------------------------


def _groups(again: Sequence[_Again], places: Places) -> Iterable[Finding]:
    """Findings of one size that changed, or of one mode: what comes first on the way in is their cause."""
    grouped: dict[tuple[object, ...], list[_Again]] = {}
    for one in again:
        key = _key(one)
        if key is not None and not _is_of_numpy(one, places):
            grouped.setdefault(key, []).append(one)
    for key, members in grouped.items():
        if len(members) < 2 and not (key[0] == "by" or (key[0] == "size" and _is_in_pieces(members[0]))):
            continue
        root = min(members, key=_from_outside)
        if key[0] == "handed on":
            passed = [one for one in members if _is_entry(one)]
            if len(passed) != 1:
                continue  # two arguments that change together are two causes
            (root,) = passed
        if key[0] == "size" and _are_several(members) and not _is_specialized(root):
            yield replace(root.finding, advice=_of_size(root, members, places))
        if key[0] == "items":
            guard = root.finding.guard
            name = "" if guard is None else guard.source or ""
            yield replace(
                root.finding, advice=str(root.finding.advice).replace(name, f"the items of {key[2]}")
            )
        if key[0] == "by" and root.origin is not None:
            yield replace(root.finding, advice=of_generation(root.origin))
        for one in members:
            if one is not root:
                yield _follows(one.finding, root.finding, _why(one))


def _is_of_numpy(one: _Again, places: Places) -> bool:
    """Whether numpy takes a number as a constant, whatever becomes of the size that it comes from."""
    guard = one.finding.guard
    is_number = guard is not None and guard.cause == "int_value"
    return is_number and bool(what_it_does(one.cause, places, one.origin).by_numpy)


def _is_specialized(again: _Again) -> bool:
    guard, seen = again.finding.guard, again.origin
    return guard is not None and seen is not None and is_specialized(guard, seen)


def _is_in_pieces(again: _Again) -> bool:
    """Whether a function and what goes on in it behind a break are compiled again for the same size."""
    frames = {one.frame.resumed for one in again.cause.recompiles if one.frame is not None}
    return frames == {False, True}


def _are_several(members: Sequence[_Again]) -> bool:
    """Whether more than one piece of code was compiled again: functions, or what goes on after a break."""
    recompiles = [again for member in members for again in member.cause.recompiles]
    resumed = any(again.frame is not None and again.frame.resumed for again in recompiles)
    return resumed or len({_function(member) for member in members}) > 1


def _may_follow(guard: Guard, size: Size) -> bool:
    """Whether a guard's value can come of a size: it is no module's own, and both grew, or both shrank."""
    if of_strides(guard) and 1 in (size.old, size.new):
        return True  # it is compiled apart for the size, and a dimension of 1 has any stride
    if (guard.source or "").startswith("self.") or of_strides(guard):
        return False  # strides that do not go with the sizes are those of a slice or a transpose
    if guard.cause == "stride" and (
        "1" in (guard.expected, guard.actual) or "offset" in (guard.expected or "")
    ):
        return False  # sizes change the strides of outer dimensions; which one is 1 is the layout
    if max(map(_whole_number, (guard.expected, guard.actual))) > _LARGEST:
        return False  # a seed, and no number that comes of sizes
    if guard.cause == "int_value" and "%" in (guard.expected or ""):
        return guard.actual == str(size.new)  # a counter is asked so, too
    if guard.expected is None or guard.actual is None or not (guard.expected + guard.actual).isdecimal():
        return True
    if guard.cause == "int_value" and re.search(r"[.\[]", guard.source or ""):
        return (guard.expected, guard.actual) == (str(size.old), str(size.new))  # what others hold
    if guard.cause == "int_value" or (guard.source and line_of_temporary(guard.source) is not None):
        return may_come_of(guard, [size])  # what was computed in front of a break may be of any size
    return (int(guard.actual) > int(guard.expected)) == (size.new > size.old)


def _whole_number(value: str | None) -> int:
    return int(value) if value is not None and value.isdecimal() else 0


def _of_size(root: _Again, members: Sequence[_Again], places: Places) -> str:
    guard, seen = root.finding.guard, root.origin
    assert guard is not None
    assert seen is not None
    sizes = [member.origin.sizes[0] for member in members if member.origin is not None]
    came = (*guard.values,) if guard.cause == "size" and seen.direct else ()
    came = (*came, *(str(value) for size in sizes for value in (size.old, size.new)))
    for member in members:
        if _is_as_large(member):
            came = (*came, *(member.finding.guard.values if member.finding.guard else ()))
    functions = len({_function(member) for member in members})
    made = [again for member in members for again in member.cause.recompiles]
    codes = Counter((again.compile_id or "").partition("/")[0] for again in made)
    times = (
        ", once each"
        if max(codes.values()) == 1 and len(codes) == max(functions, 2)
        else f", {len(made)} times in all"
    )
    every = [_with_file(member, root, places) for member in (root, *members)]
    does = replace(
        every[0],
        ends=tuple(dict.fromkeys(end for one in every for end in one.ends)),
        is_any=all(one.is_any for one in every),
        is_one=any(one.is_one for one in every),
        parts=next((one.parts for one in every if one.parts), ""),
    )
    return of_group(seen, together(seen), functions, list(dict.fromkeys(came)), does, times)


def _with_file(member: _Again, root: _Again, places: Places) -> Taken:
    """What a member does with a size, with its file's name where that is another one than the first's."""
    does, file = what_it_does(member.cause, places, member.origin), member.cause.frame.file
    if file == root.cause.frame.file:
        return does
    ends = (end if end.file else replace(end, file=PurePath(file).name) for end in does.ends)
    return replace(does, ends=tuple(ends))


def _is_as_large(member: _Again) -> bool:
    """Whether what is guarded is as large as the argument that it follows, and has its sizes."""
    guard, seen = member.finding.guard, member.origin
    if guard is None or seen is None or guard.cause != "size":
        return False
    return (guard.expected, guard.actual) == (str(seen.sizes[0].old), str(seen.sizes[0].new))


def _is_passed(guard: Guard, seen: Origin) -> bool:
    """Whether it is a number that the call passes itself: that comes of no size and of no break."""
    return guard.cause == "int_value" and (guard.expected, guard.actual) in {v[1:] for v in seen.values}


_MEDIA = re.compile(r"pixel|image|video|audio|speech|input_features|spectrogram")


def _key(one: _Again) -> tuple[object, ...] | None:
    guard, seen = one.finding.guard, one.origin
    if guard is None or seen is None:
        return None
    first_size = seen.sizes[0].argument if seen.sizes else ""
    of_media = _MEDIA.search(f"{guard.source} {first_size}") is not None  # whose sizes are no prompt's
    # Tokens and what is kept of them grow along another dimension than the batch, but for their positions.
    of_batch = guard.dimension == 0 and not re.search(r"position", f"{guard.source} {first_size}")
    of_media = of_media or (of_batch and guard.cause == "size")
    grows = guard.cause in _SIZED or (guard.cause == "container" and guard.source != "kwargs")
    if seen.generates and grows and not seen.same_call and not of_media:
        return "by", seen.by, seen.where
    if guard.cause == "size" and "___from_numpy(" in guard.expression and not seen.same_call:
        return "arrays", seen.entry, seen.where, guard.expected, guard.actual
    sized = guard.cause in _SIZED and seen.sizes and not seen.same_call and not _is_passed(guard, seen)
    sized = sized and not asks_for_several(guard) and very_number(guard, seen) is None
    if sized and _may_follow(guard, seen.sizes[0]):
        first = together(seen)[0]
        # A size of 0 or 1 is compiled apart, and no mark saves it.
        is_apart = guard.cause == "symbolic_shape" and (first.new in (0, 1) or becomes_one(guard))
        return "one" if is_apart else "size", seen.entry, seen.where, first.path, first.dimension
    if seen.modes and (guard.cause in _MODES or (guard.source or "").endswith(".training")):
        return "mode", seen.entry, seen.modes
    items = _ITEM.fullmatch(guard.source or "")
    if items and guard.cause in ("int_value", "float_value", "constant_value") and not seen.same_call:
        return "items", one.finding.location, items["of"], guard.cause
    own = (guard.source or "").startswith("self.")
    if guard.cause == "size" and guard.actual is not None and not (seen.sizes or seen.same_call or own):
        return "size of its own", seen.entry, seen.where, guard.expected, guard.actual
    if guard.cause == "requires_grad" and seen.same_call and not seen.direct and not own:
        return "gradient", seen.entry, seen.where, guard.expected
    # One object, or one tensor's kind, that is handed on: each function that takes it is compiled again.
    if guard.cause in _HANDED_ON and guard.actual is not None and not seen.same_call:
        return "handed on", seen.entry, seen.where, guard.cause, guard.expected, guard.actual
    return None


def _is_entry(one: _Again) -> bool:
    """Whether it is about an argument of the outermost call, in the function that is called."""
    seen, function = one.origin, one.finding.location.function or ""
    return seen is not None and seen.direct and f"{function}.".startswith(f"{seen.entry}.")


def _from_outside(one: _Again) -> tuple[bool, bool, int]:
    """An argument of the call itself comes first, also where it is asked for behind a break only."""
    seen = one.origin
    guard = one.finding.guard
    return (
        seen is None or not seen.direct,
        guard is None or guard.resumed,
        len(seen.within) if seen is not None else 0,
    )


def _function(one: _Again) -> tuple[str, str | None]:
    return one.finding.location.file, one.finding.location.function


def _why(one: _Again) -> str:
    guard, seen = one.finding.guard, one.origin
    if guard is None or seen is None or not seen.sizes or guard.cause not in _SIZED:
        return ""
    size = seen.sizes[0]
    if guard.source == size.argument:
        return ""
    what = "value" if guard.cause == "int_value" else guard.cause.replace("symbolic_shape", "size")
    of = f"dimension {size.dimension} of {size.argument}{or_rival(seen)}, of {call_of(seen)}"
    return f"The {what} of {guard.source} follows {of}"


# -- what is compiled by itself because something around it broke -------------------------------------


def _compiled_alone(
    again: Sequence[_Again], sites: Sequence[Finding], places: Places, limits: Mapping[Location, Finding]
) -> Iterable[Finding]:
    """Also the limit of such a function, which without the break has none.

    Args:
        limits: by the function that reached it.
    """
    left = dict(limits)
    for one in again:
        seen, guard = one.origin, one.finding.guard
        if seen is None and (site := _ended_at(one.finding, sites)) is not None:
            what = one.finding.location.function
            yield _follows(one.finding, site, f"This compile of {what} came to nothing at that break")
            continue
        if (_key(one) or ("handed on",))[0] not in ("handed on", "gradient"):
            continue  # a size or a mode of the call explains it
        if guard is not None and guard.cause == "identity" and IS_OPTIMIZER.search(str(guard.values)):
            continue  # torch breaks around each on purpose
        ranked = guard is not None and guard.cause == "rank" and seen is not None and not seen.direct
        if seen is None or not seen.within or guard is None or not (seen.same_call or ranked):
            continue  # what differs from call to call is guarded without the break as well
        if _goes_on(one, guard, seen, places):
            continue
        site = None if _is_passed(guard, seen) else _around(seen.within, sites, places)
        if site is not None:
            what = one.finding.location.function
            other = f"another {guard.source}" if guard.source else "other arguments"
            if one.cause.views:
                other = f"a view of another tensor as {listed([*one.cause.views])} at some of them"
            if guard.cause == "requires_grad":
                other = f"{guard.source} that needs a gradient, and one that needs none"
            runs = f"One call at {seen.where} runs {what} more than once, with {other}"
            runs = runs if seen.same_call else f"{what} is run with {other}, as at {seen.where}"
            others = _too(site, one, sites, places)
            alone = f"Without that break{others} {what} {_IS_PART}"
            alone += ", and it may be compiled alone as long as one of them stays" * bool(others)
            yield _follows(one.finding, site, f"{runs}. {alone}")
            if (limit := left.pop(one.finding.location, None)) is not None:
                yield _follows(limit, site, alone)


def _ended_at(finding: Finding, sites: Sequence[Finding]) -> Finding | None:
    """The break for which Dynamo gave up the function in the very compiles that a finding is of.

    One that another one calls, which it gave up too: what the script calls itself is compiled for its own
    arguments with or without the break.
    """
    function = finding.location.file, finding.location.function
    made = set(finding.counts.compile_ids)
    for site in sites:
        given_up = {(one.file, one.function) for one in site.skipped}
        path = [(frame.file, frame.function) for frame in site.stack]
        called = any(one in given_up and then == function for one, then in pairwise(path))
        if made and made <= set(site.counts.compile_ids) and function in given_up and called:
            return site
    return None


def _with_breaks(
    now: Sequence[Finding], again: Sequence[_Again], sites: Sequence[Finding], places: Places
) -> list[Finding]:
    """The findings; of a recompile in a function that only breaks make one of its own it is told."""
    of_sites = {site.fingerprint for site in sites}
    apart = {one.finding.fingerprint: found for one in again if (found := _apart(one, sites, places))}

    def with_breaks(finding: Finding) -> Finding:
        found = apart.get(finding.fingerprint)
        if found is None or _IS_PART in (finding.advice or "") or finding.caused_by in of_sites:
            return finding
        what, else_part, breaks = found
        expected = f"{finding.expected}; {what} has none of its own without {breaks}"
        said = f"Without {breaks} {what} {else_part}, and has no recompile of its own"
        advice = f"{str(finding.advice).rstrip('.')}. {said}"
        return replace(finding, advice=advice, expected=finding.expected and expected)

    return [with_breaks(finding) for finding in now]


def _apart(one: _Again, sites: Sequence[Finding], places: Places) -> tuple[str, str, str] | None:
    """What breaks make a compile of its own, of what it is a part else, and the breaks; None of others."""
    seen = one.origin
    within = calling(seen.within, one.cause.frame) if seen is not None else []
    if seen is None or seen.generates:
        return None
    chosen = [site for site in sites if site.code not in _CHOSEN]
    guard, what = one.finding.guard, one.finding.location.function or ""
    if not within and guard is not None and guard.resumed:
        frame = one.cause.frame
        behind = next((site for site in chosen if _breaks_at(site, frame.file, frame.line)), None)
        if behind is None or is_installed(behind.location.file):
            return None
        at = places.short(behind.location.file, behind.location.line)
        return f"the rest of {what}", "is part of one graph with what is before it", f"the break at {at}"
    if not within:
        return None
    site = _around(within, chosen, places)
    if site is None or is_installed(site.location.file):
        return None  # what breaks in a library is seldom the user's to repair
    at = places.short(site.location.file, site.location.line)
    return what, _IS_PART, f"the break at {at}{_too(site, one, chosen, places, behind=False)}"


_IS_PART = "is compiled as part of what calls it"
_CHOSEN = ("BS108", "BS109")


def _goes_on(one: _Again, guard: Guard, seen: Origin, places: Places) -> bool:
    """Whether what an object keeps differs from call to call too: a count that goes up, a list that grows."""
    if (guard.source or "").startswith("self.") and _sets_it(one, guard, places):
        return True
    if guard.cause == "container" and guard.source is not None:
        grows = re.compile(rf"^\s*{re.escape(guard.source)}(\.(append|extend|insert)\(|\s*\+=)")
        return places.sources.mentions(one.finding.location.file, grows)
    filled = _FILLED.fullmatch(guard.source or "")
    if filled and seen.opaque:
        # What an object of the call's own keeps: whoever gets the object is compiled again for it.
        sets = re.compile(
            rf"\.{filled['items']}(\[[^\]]*\])+\s*(,[^=]*)?=(?!=)|\.{filled['items']}\.(append|insert)\("
        )
        return places.sources.mentions(one.finding.location.file, sets)
    steps = {again.step for again in (*one.cause.recompiles, *one.cause.refused)}
    numbers = [value for value in guard.values if value.lstrip("-").replace(".", "", 1).isdecimal()]
    if guard.cause != "module_attribute" or len(numbers) < len(guard.values) or guard.source is None:
        return False
    # Who counts may call it self, and stand in another file at work.
    counted = re.compile(rf"^\s*[\w.]+\.{re.escape(guard.source.rpartition('.')[2])}\s*[+-]=")
    files = {one.finding.location.file, *(frame.file for frame in one.cause.failure.user_stack)}
    files |= {file for file, *_ in seen.within} | ({seen.caller.file} if seen.caller else set())
    return len(steps) > 1 or any(places.sources.mentions(file, counted) for file in sorted(files))


def _sets_it(one: _Again, guard: Guard, places: Places) -> bool:
    """Whether a method gives what is guarded another value itself: ``self.grids[k] = grid``."""
    place = one.finding.location
    around = places.sources.around_line(place.file, place.line)
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    methods = [node for node in getattr(owner, "body", ()) if isinstance(node, ast.FunctionDef)]
    held = re.sub(r"\[[^\]]*\]$", "", guard.source or "")
    return any(
        ast.unparse(target) == guard.source
        or (isinstance(target, ast.Subscript) and held != guard.source and ast.unparse(target.value) == held)
        for method in methods
        if method.name != "__init__"
        for node in ast.walk(method)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )


def _around(
    within: Sequence[tuple[str, int, str]], sites: Sequence[Finding], places: Places
) -> Finding | None:
    """The break because of which a function that others called is compiled by itself: the nearest one.

    One in the loop around the call comes first: for it Dynamo gives up all that is in the loop.
    """
    for file, line, _ in within:
        looped = [site for site in sites if site.location.file == file and _share_loop(site, line, places)]
        if looped:
            return looped[-1]
    for file, line, name in within:
        for site in sites:
            if _gives_up(site, [(file, line, name)], places) or any(
                frame.file == file and frame.line == line for frame in site.stack
            ):
                return site
    return None


def _too(site: Finding, one: _Again, sites: Sequence[Finding], places: Places, *, behind: bool = True) -> str:
    """The other breaks because of which a function would not be part of what calls it either.

    First a caller that is given up as a whole, then the function's own breaks, then those in a loop around
    the call, and, where they are asked for, behind the same calls.
    """
    most = 4 if behind else 3
    within = calling(one.origin.within) if one.origin is not None else []
    own = _function(one)
    calls = {(file, line) for file, line, _ in within}

    def nearness(other: Finding) -> int:
        place = other.location
        if _gives_up(other, within[:1], places):
            return 0
        if own in {(place.file, place.function), *((one.file, one.function) for one in other.stack[:-1])}:
            return 1
        if any(file == place.file and _share_loop(other, line, places) for file, line, _ in within):
            return 2
        return 3 if any((frame.file, frame.line) in calls for frame in other.stack[:-1]) else 4

    others = [
        other for other in sites if other.location.line != site.location.line and nearness(other) < most
    ]
    others.sort(key=lambda other: (nearness(other), other.location.line))
    places_of = list(dict.fromkeys((other.location.file, other.location.line) for other in others))
    named = places_of[:_MOST_NAMED]
    lines = [str(line) for file, line in named if file == site.location.file]
    said = [f"line{'s' * (len(lines) > 1)} {listed(lines)}"] if lines else []
    said += [f"{PurePath(file).name}:{line}" for file, line in named if file != site.location.file]
    said += ["others"] * (len(places_of) > _MOST_NAMED)
    return f" and those at {listed(said)}" if said else ""


def _gives_up(site: Finding, within: Sequence[tuple[str, int, str]], places: Places) -> bool:
    """Whether a break gives up one of the functions at work as a whole, so that all it calls is alone."""
    around = places.sources.function_around
    return any(
        one.file == file
        and (one.function or "").rpartition(".")[2] == unresumed(name)
        and around(file, one.line) == around(file, line)  # classes of one file have methods of one name
        for one in site.skipped
        for file, line, name in within
    )


def _share_loop(site: Finding, line: int, places: Places) -> bool:
    """Whether a site stands in the innermost loop of its function that a line of its file is in."""
    loops = own_loops(places.sources.around_line(site.location.file, line))
    return bool(loops) and loops[-1].lineno <= site.location.line <= (loops[-1].end_lineno or 0)


def _limits(made: Sequence[Finding], recompiles: Sequence[Finding]) -> Iterable[Finding]:
    """A limit that was reached follows from the guard that used up most of it."""
    for limit in made:
        if limit.code != "BS303":
            continue
        used = [
            recompile
            for recompile in recompiles
            if set(recompile.counts.compile_ids) & set(limit.counts.compile_ids)
            and (recompile.location == limit.location or is_wrapper(limit.location.file))
        ]
        if used:
            most = max(used, key=lambda one: one.counts.occurrences)
            yield replace(limit, caused_by=most.fingerprint)


def _follows(finding: Finding, cause: Finding, why: str = "") -> Finding:
    place = cause.location
    where = f"{place.file.replace(chr(92), '/').rpartition('/')[2]}:{place.line}"
    said = f"{why}. " if why else ""
    text = f"{said}Goes with {cause.code} at {where} ({place.function}): do what is said there"
    return replace(finding, caused_by=cause.fingerprint, advice=text)
