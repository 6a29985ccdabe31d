"""Recompiles: one finding for each function and cause; and the limit that they can use up."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath

from breakscope import catalog
from breakscope.diagnose import expected, guards, uses
from breakscope.diagnose.collect import Collected, FrameRef, Recompile
from breakscope.diagnose.decided import Decided, decided, named
from breakscope.diagnose.guard_advice import SOME_VIEW, TENSORS
from breakscope.diagnose.guard_paths import WRAPPER, of_parameter, of_size, of_strides, placeless
from breakscope.diagnose.guard_uses import Taken, taken
from breakscope.diagnose.guards import GuardFailure
from breakscope.diagnose.library_advice import package_of
from breakscope.diagnose.origins import (
    Origin,
    called,
    decides,
    is_wrapper,
    lines_of,
    mode_of,
    origin,
    where_defined,
)
from breakscope.diagnose.places import Places
from breakscope.diagnose.recompile_advice import (
    IS_OPTIMIZER,
    SPECIAL_SIZES,
    advice,
    asks_for_several,
    listed,
    of_kept_state,
    only_named,
)
from breakscope.diagnose.records import RawFrame
from breakscope.report.model import Counts, Finding, Guard, Location
from breakscope.report.owners import is_installed

_FORBIDDEN = 'set_stance("fail_on_recompile") made an error of it, in place of a compile.'


@dataclass(slots=True)
class Cause:
    """Every recompile of one function for one reason.

    Attributes:
        guard: that of the first one, with the values of all.
        guards: of each of ``recompiles``, what failed in each version that there was; its own cause first.
        refused: those that the limit refused: nothing was compiled for them.
        eager: (file, name) of the functions that Dynamo gave up in this run.
        decided: what torch decided in its compiles about the guarded value; decides: about any other's.
        too: of each of ``recompiles`` what else failed in the version of its cause; None if not all is known.
        views: what was a view of another tensor in the version of its cause, and is none now.
        origin: what differed in the outermost calls at the first one.
    """

    frame: FrameRef
    guard: Guard
    failure: GuardFailure
    eager: frozenset[tuple[str, str]] = frozenset()
    recompiles: list[Recompile] = field(default_factory=list)
    guards: list[tuple[Guard, ...]] = field(default_factory=list)
    refused: list[Recompile] = field(default_factory=list)
    anew: bool = False
    too: list[tuple[str, ...] | None] = field(default_factory=list)
    decides: Callable[[Guard], Decided] = lambda _: Decided()
    decided: Decided = field(default_factory=Decided)
    origin: Origin | None = None
    views: dict[str, None] = field(default_factory=dict)


def _set_anew(frame: FrameRef, guard: Guard, places: Places) -> int:
    """The line on which a function gave an argument's name another value before a break; else 0."""
    function = uses.function(places.sources.around_line(frame.file, frame.line))
    if function is None or guard.source not in uses.parameters(function):
        return 0
    lines = [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno <= frame.line and guard.source in uses.targets(node)
    ]
    return max(lines, default=0)


_KINDS = ("dtype", "rank", "requires_grad", "type")


def causes(found: Collected, places: Places) -> tuple[list[Cause], list[Recompile]]:
    """Group recompiles by function and cause. Returns the causes, and recompiles without a frame.

    A recompile names one failed guard for each compiled version that did not fit. The version that lacked
    least is the one that a user would have expected to fit: its guard is the cause (:func:`_closest`). Of
    several, or where not all that failed is known, the latest is; a version made under another global state
    cannot have been meant where there is one made under the same, nor one made for another value where there
    is one made for the same (:class:`_Versions`).
    """
    grouped: dict[tuple[object, ...], Cause] = {}
    versions = _Versions()
    lost: list[Recompile] = []
    eager = frozenset((skip.frame.file, skip.frame.name) for skip in found.skips if not skip.limit)
    for item in found.recompiles:
        if item.frame is None or not item.failures:
            lost += [item] * (not item.refused)  # nothing was compiled; the limit's own finding tells
            continue
        name = _code_name(item.frame)
        closest = _closest(item, versions.nearest(_read(item, name), item.compile_id), found)
        failed = _by_new_size(found, item, closest, places)
        failure, guard = failed[0]
        anew = item.frame.resumed and of_size(guard) and _set_anew(item.frame, guard, places) > 0
        key = (_defined(item.frame, places), *guards.finding_key(guard, item.frame.name), anew)
        cause = grouped.get(key)
        if cause is None:
            own = replace(guard, resumed=item.frame.resumed)
            cause = grouped[key] = Cause(item.frame, own, failure, eager, anew=anew)
        else:
            resumed = cause.guard.resumed and item.frame.resumed
            cause.guard = replace(guards.merge_values(cause.guard, guard), resumed=resumed)
        if item.refused:
            cause.refused.append(item)
        else:
            cause.recompiles.append(item)
            cause.guards.append(tuple(one for _, one in failed))
            cause.too.append(_failed_too(item, failure, guard, name))
            cause.views |= dict.fromkeys(_views(item, failure, name))
    joined = _joined(grouped)
    for cause in joined:
        compiles = [one.compile_id for one in cause.recompiles]
        cause.decides = partial(decided, found.decided, compiles, function=_code_name(cause.frame))
        cause.decided = cause.decides(cause.guard)
        cause.origin = _origin_of(found, cause, places)
        if sizes := _sizes_too(found, cause):
            cause.too = [(*(cause.too[0] or ()), *sizes)]
    return joined, lost


def _code_name(frame: FrameRef) -> str:
    """The name of a frame's code: its resume prefix tells a value that entered a resumed function."""
    if frame.name == "inner" and is_wrapper(frame.file):
        return WRAPPER
    return f"torch_dynamo_resume_in_{frame.name}_at_{frame.line}" if frame.resumed else frame.name


def _joined(grouped: dict[tuple[object, ...], Cause]) -> list[Cause]:
    """The causes; a name that was set anew and came with the sizes of the argument is still that."""
    left = dict(grouped)
    for key, cause in grouped.items():
        whole = left.get((*key[:-1], False))
        if not cause.anew or whole is None or not set(cause.guard.values) <= set(whole.guard.values):
            continue
        whole.guard = replace(whole.guard, resumed=whole.guard.resumed and cause.guard.resumed)
        whole.recompiles += cause.recompiles
        whole.refused += cause.refused
        whole.guards += cause.guards
        whole.too += cause.too
        del left[key]
    return list(left.values())


def _by_new_size(
    found: Collected, item: Recompile, failed: list[tuple[GuardFailure, Guard]], places: Places
) -> list[tuple[GuardFailure, Guard]]:
    """The failed guards, first that of a version which only lacks the size that this call came with.

    The latest version fails at the strides: it was made for another layer, which is called with another
    layout. The version of this layer fails at a size, and an argument's size changed in just that way.
    """

    def is_new_size(one: tuple[GuardFailure, Guard]) -> bool:
        failure, guard = one
        if guard.cause != "size" or guard.source != failed[0][1].source:
            return False
        if f"{guard.source}.size({guard.dimension})" in (failed[0][1].expected or ""):
            return False  # the latest version holds for any such size, laid out as it is there
        seen = origin(found, failure.compile_id, item.compile_id, guard, places)
        came = (guard.expected, guard.actual)
        return seen is not None and any((str(size.old), str(size.new)) == came for size in seen.sizes)

    if not _is_layout(failed[0][1]) or "offset" in (failed[0][1].expected or ""):
        return failed
    return sorted(failed, key=lambda one: not is_new_size(one))


class _Versions:
    """What each compiled version was made for, as far as earlier recompiles told.

    Where three adapters take turns and the scale of one changes, the latest version fails at the adapter's
    name. The version of that name is there, and fails at the scale: that is the cause.
    """

    def __init__(self) -> None:
        self._made_for: dict[tuple[object, ...], str | None] = {}

    def nearest(
        self, failed: list[tuple[GuardFailure, Guard]], made: str | None
    ) -> list[tuple[GuardFailure, Guard]]:
        """The failed guards, those first of versions that were made for what the latest one lacks.

        Args:
            made: the version that is compiled now, for the values at which the others failed.
        """
        for failure, guard in failed:
            if guard.source is not None:
                self._made_for[failure.compile_id, *_about(guard)] = guard.expected
                self._made_for.setdefault((made, *_about(guard)), guard.actual)
        failed = self._of_apart(failed)
        lacks = failed[0][1]
        about = _about(lacks)
        if lacks.cause == "symbolic_shape":  # a version for any size but 0 and 1, which have their own
            about = ("size", *about[1:])

        def fits(one: tuple[GuardFailure, Guard]) -> bool:
            failure, guard = one
            if lacks.cause == "size" and guard.cause == "type":
                return False  # a version for another class serves no size of this one
            if guard.cause == "global_state":
                return False  # nor does one for another mode
            made_for = self._made_for.get((failure.compile_id, *about))
            # Of an object that was None only the type is told.
            same = made_for == lacks.actual or (lacks.expected == "None" and lacks.actual in _TYPES)
            return made_for not in (None, lacks.expected) and same and _about(guard) != about

        is_apart = lacks.cause == "symbolic_shape" and lacks.actual in ("0", "1")
        if not (lacks.cause in _CHOOSING or is_apart) or lacks.actual is None:
            return failed
        return sorted(failed, key=lambda one: not fits(one))

    def _of_apart(self, failed: list[tuple[GuardFailure, Guard]]) -> list[tuple[GuardFailure, Guard]]:
        """The failed guards, those last that tell nothing where 0 and 1 have a version of their own.

        A version for a size of 1 was not meant to serve another size, nor one for any size to serve a 1,
        whatever guard of it failed first.
        """
        sizes = [guard for _, guard in failed if of_size(guard)]
        came = next(
            (guard for guard in sizes if guard.actual in SPECIAL_SIZES and guard.expected != guard.actual),
            None,
        )
        if came is not None:
            about = "size", came.source, came.dimension

            def serves(one: tuple[GuardFailure, Guard]) -> bool:
                failure, guard = one
                made_for = self._made_for.get((failure.compile_id, *about))
                return of_size(guard) or made_for == came.actual

            return sorted(failed, key=lambda one: not serves(one))
        apart = [guard for guard in sizes if guard.cause == "size" and guard.expected in SPECIAL_SIZES]
        of_them = {_about(guard) for guard in apart}
        # What only lacks another size, which the one for 1 may take any of, says nothing of this one.
        if any(g not in apart and (not of_size(g) or _about(g) in of_them) for _, g in failed):
            return sorted(failed, key=lambda one: one[1] in apart)
        return failed


def _about(guard: Guard) -> tuple[object, ...]:
    """What a guard asks for; None and a tensor in one place are values of it, however they are guarded."""
    cause = "type" if guard.cause in ("type", "module_attribute", "constant_value") else guard.cause
    return cause, guard.source, guard.dimension


_TYPES = ("str", "int", "float", "bool")
# Causes whose guards tell the one value that a version was made for.
_CHOOSING = (
    "int_value",
    "float_value",
    "constant_value",
    "module_attribute",
    "size",
    "type",
    "dtype",
    "requires_grad",
    "container",
)


def _read(item: Recompile, function: str) -> list[tuple[GuardFailure, Guard]]:
    """The failed guards of all versions, the latest first; before them those of the same global state.

    The global state is checked first: another guard fails only in a version of the same state. Torch tells of
    the version first that was used last, which may be an old one that serves one size only.
    """
    read = [_first(failure, item, function) for failure in item.failures]
    return sorted(read, key=lambda one: (one[1].cause == "global_state", -_number(one[0].compile_id)))


def _first(failure: GuardFailure, item: Recompile, function: str) -> tuple[GuardFailure, Guard]:
    """What is told of all that failed in a version: Dynamo's word is of the guard that it asked first.

    A size says nothing of a version for another module, nor of one for another mode or flag, which would not
    have served the call with any size.
    """
    failed = (one.text for one in item.failed.get(failure.compile_id or "", ()) if one.text)
    texts = sorted((_OF_LOCALS.sub(r"\1", text) for text in failed), key=len)  # as Dynamo writes its own
    others = (replace(one, compile_id=failure.compile_id) for one in guards.parse_reasons(texts))
    read = [(one, guards.classify(one, function=function, actuals=item.values)) for one in (failure, *others)]
    return min(read, key=lambda one: _weight(one[1]))  # of several alike Dynamo's, then the outermost


def _weight(guard: Guard) -> int:
    """0 of another object, 1 of another mode, 2 of another state, as a flag; 3 of what is a number."""
    both = {str(guard.expected), str(guard.actual)}
    if guard.cause == "size" and of_parameter(guard):
        return 0  # whose size is its own for good
    if guard.cause == "identity" or (guard.cause == "type" and not both & _PLAIN):
        return 0
    if guard.cause == "global_state" or (guard.source or "").endswith(".training"):
        return 1
    is_state = guard.cause in ("type", "constant_value", "module_attribute")
    return 2 if is_state and not both.isdisjoint(expected.FLAGS) else 3


_OF_LOCALS = re.compile(r"\bL\['(\w+)'\]")
_PLAIN = {"None", "not a tensor", *TENSORS, *_TYPES, "list", "tuple", "dict"}


def _closest(
    item: Recompile, read: Sequence[tuple[GuardFailure, Guard]], found: Collected
) -> list[tuple[GuardFailure, Guard]]:
    """The failed guards, those first of the versions that lacked least: one thing more and they had fitted.

    Sizes that changed alike, as a batch's do, are one thing. A version for other keys, below which torch
    asked nothing, lacked more than one for the same. Where not all is known of each version, as they are.
    """
    lacks: dict[str | None, int] = {}
    sources: dict[str | None, set[str]] = {}
    unasked: set[str | None] = set()  # below a dict of other keys nothing was asked: more may fail there
    for version, failed in item.failed.items():
        sizes = {(one.before, one.now) for one in failed if one.at is not None}
        # What is asked of sizes fails with them, and layers are called alike.
        plain = {one.source for one in failed if one.at is None}
        others = {source for source in plain if not (sizes and ".size()" in source)}
        unasked |= {version} if any(_OF_CONTENTS.match(one.text) for one in failed) else set()
        number = len(sizes) + len({_ITEM_NUMBER.sub("[]", source) for source in others})
        lacks[version] = max(1, number)
        sources[version] = {one.source for one in failed}

    of_others = [failure.compile_id for failure, guard in read if not _weight(guard)]
    others_called = {called(found, one) for one in of_others} - {None}
    if others_called:
        others_called.discard(called(found, item.compile_id))

    def is_of_object(one: tuple[GuardFailure, Guard]) -> bool:
        """Whether it was made for another module or function, which this one never is.

        What failed first may be an argument, where another version for that one tells that it is another.
        """
        return not _weight(one[1]) or (
            bool(others_called) and called(found, one[0].compile_id) in others_called
        )

    if any(failure.compile_id not in lacks for failure, _ in read):
        return sorted(read, key=lambda one: (is_of_object(one), is_of_object(one) and _weight(one[1]) > 0))

    def is_of_mode(one: tuple[GuardFailure, Guard]) -> bool:
        """Whether it was made for another mode: such a one serves no call of this one, however alike."""
        asked = sources[one[0].compile_id]
        return one[1].cause == "requires_grad" or any(
            source == "GLOBAL_STATE" or source.endswith(".training") for source in asked
        )

    def comes_again(one: tuple[GuardFailure, Guard]) -> bool:
        """Whether it lacks a state, as None or a flag, that another version has: a number is what is new."""
        own = sources[one[0].compile_id]
        return one[1].cause in _STATES and any(own.isdisjoint(other) for other in sources.values())

    def is_of_own(one: tuple[GuardFailure, Guard]) -> bool:
        """Whether it lacks the size of what the module holds itself, as one for another module does."""
        return one[1].cause == "size" and (one[1].source or "").startswith("self.")

    def order(one: tuple[GuardFailure, Guard]) -> tuple[bool, bool, bool, int, bool, bool]:
        version = one[0].compile_id
        least = version in unasked, lacks[version]
        return is_of_object(one), is_of_mode(one), *least, comes_again(one), is_of_own(one)

    return sorted(read, key=order)


_OF_CONTENTS = re.compile(r"(not )?___dict_contains\(|len\(")
_ITEM_NUMBER = re.compile(r"\[\d+\]")
# What has a few values, none of which torch takes for any; a number that an object keeps is none of them.
_STATES = ("type", "constant_value", "container", "identity", "global_state")


_HAS = re.compile(r"(?:not )?(?:hasattr\(.*, '(\w+)'\)|___dict_contains\('(\w+)', .*\.__dict__\))")


def _failed_too(
    item: Recompile, failure: GuardFailure, guard: Guard, function: str
) -> tuple[str, ...] | None:
    """What else failed in the version that should have fitted: ``flag``, ``dimension 1 of x``."""
    failed = item.failed.get(failure.compile_id or "")
    if failed is None:
        return None
    own = {
        (one.before, one.now) for one in failed if (named(one.source, function)[0], one.at) == _place(guard)
    }
    found: dict[str, None] = {}
    for source, at, before, now, text in failed:
        if source.endswith("._base"):
            continue  # what is no view this time: _views tells of it
        if (absent := _HAS.match(text)) is not None:
            name, _ = named(f"{source.removesuffix('.__dict__')}.{absent[1] or absent[2]}", function)
            if name != guard.source:
                found[str(name)] = None
            continue
        if ".size()" in source or (at is not None and (before, now) in own):
            continue  # what is asked of sizes fails with them
        for part in guards.guard_sources(source) or (source,):  # of a condition those that it asks for
            name, _ = named(part, function)
            if name is not None and (name, at) != _place(guard) and (at is not None or name != guard.source):
                found[name if at is None else f"dimension {at} of {name}"] = None
    return tuple(found)


def _sizes_too(found: Collected, cause: Cause) -> tuple[str, ...]:
    """Sizes that were new as well, where other arguments are passed by name: ``dimension 1 of x``.

    Where the number of arguments differs, torch asks nothing more of them.
    """
    is_by_name = cause.guard.cause == "container" and cause.guard.source == "kwargs"
    if not is_by_name or cause.origin is None or cause.origin.within or len(cause.recompiles) != 1:
        return ()
    if any(one["t"] == "symbolic" for one in found.decided.get(cause.failure.compile_id, ())):
        return ()  # the earlier version may take any
    sizes: dict[str, str] = {}
    for size in cause.origin.sizes:
        sizes.setdefault(size.argument, f"dimension {size.dimension} of {size.argument}")
    return tuple(sizes.values())


def _views(item: Recompile, failure: GuardFailure, function: str) -> Iterator[str]:
    for one in item.failed.get(failure.compile_id or "", ()):
        of, base, _ = one.source.rpartition("._base")
        if base and (name := named(of, function)[0]) is not None:
            yield name


def _place(guard: Guard) -> tuple[str | None, int | None]:
    return guard.source, guard.dimension


def _number(compile_id: str | None) -> int:
    """Which version of its code a compile made: 2 of ``0/2``."""
    number = re.fullmatch(r"\d+/(\d+)(_\d+)?", compile_id or "")
    return int(number[1]) if number else 0


def findings(found: Collected, causes_found: list[Cause], places: Places) -> list[Finding]:
    """One finding for each cause."""
    does = [what_it_does(cause, places, cause.origin) for cause in causes_found]
    # Also where another size that changes with it is one.
    constant = [
        cause.guard.cause == "size" and (one.is_one or one.is_range)
        for cause, one in zip(causes_found, does, strict=True)
    ]
    chosen = [bool(one.needed(("test",))) for one in does]
    shared = [_shared(cause, one) for cause, one in zip(causes_found, does, strict=True)]
    why = expected.reasons(found, causes_found, constant, chosen, shared)
    return [
        _finding(found, cause, places, use, reason)
        for cause, use, reason in zip(causes_found, does, why, strict=True)
        if cause.recompiles
    ]


_SET_BEFORE = "; the code sets it itself in {}, and set before the first call it saves that"


def _shared(cause: Cause, does: Taken) -> str:
    """Of a function whose code several functions or classes share, what that is; else empty."""
    guard, seen = cause.guard, cause.origin
    if guard.cause == "identity" and IS_OPTIMIZER.search(str(guard.values)):
        return "each optimizer is a version of the code that steps it"
    if guard.cause == "identity" and does.closed:
        return f"{does.closed} makes one code for each {guard.source}, and each is a version of it"
    if guard.cause == "type" and guard.source in ("self", "args[0]") and _PLAIN.isdisjoint(guard.values):
        return f"objects of {len(guard.values)} classes share this code, and each class is a version of it"
    wrapped = guard.cause == "identity" and is_wrapper(cause.frame.file)
    if wrapped and seen is not None and seen.other != seen.entry:
        return f"{seen.other} and {seen.entry} share torch's wrapper, and each is a version of it"
    if guard.cause == "container" and guard.source == "kwargs":
        named = only_named(guard, seen)
        return f"calls pass other arguments by name{f' ({named})' * bool(named)}, and each way is a version"
    return ""


def _finding(
    found: Collected,
    cause: Cause,
    places: Places,
    does: Taken,
    why_expected: str | None,
) -> Finding:
    code, seen = catalog.cause_code(cause.guard.cause), cause.origin
    frame = cause.frame
    compiles = [cause.failure.compile_id, *(one.compile_id for one in cause.recompiles)]
    location = where_defined(found, frame, compiles, places)
    raw = (RawFrame(f.file, f.line, f.function, f.source) for f in cause.failure.user_stack)
    stack = places.stack(raw)
    about = f"{placeless(str(cause.guard.source))} {cause.guard.dimension}{' set anew' * cause.anew}"
    steps = [r.step for r in cause.recompiles if r.step is not None]
    raised = any(recompile.raised for recompile in cause.recompiles)
    divides = _divides_by_rate(found, cause, places)
    # The number of a loop's turns is no number that torch takes any of after its second.
    turns = does.is_range and cause.guard.cause in ("int_value", "module_attribute")
    return Finding(
        fingerprint=places.fingerprint(code, location, about, of_function=True),
        code=code,
        kind="recompile",
        gb_id=None,
        title=_named(guards.describe(cause.guard), cause, seen),
        reason=cause.guard.expression,
        explanation=catalog.entry(code).why,
        hints=(),
        location=location,
        stack=stack,
        counts=Counts(
            occurrences=len(cause.recompiles),
            crossings=None,
            compile_ids=tuple(dict.fromkeys(r.compile_id for r in cause.recompiles if r.compile_id)),
        ),
        called_from=places.caller(location, stack),
        guard=replace(cause.guard, source=cause.guard.source and _named(cause.guard.source, cause, seen)),
        advice=_DIVIDES.format(rate=cause.guard.source) if divides else _advice(cause, does),
        effect="ended" if raised else None,
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
        expected=None
        if divides or raised or turns or why_expected is None
        else _named(
            f"{why_expected}{_SET_BEFORE.format(does.sets_itself) * bool(does.sets_itself)}", cause, seen
        ),
    )


def _defined(frame: FrameRef, places: Places) -> Location:
    """The function of a frame: many classes of one file have a ``forward``, told apart by where it begins."""
    return places.definition(frame.file, frame.line, frame.name, frame.qualname)


@dataclass(frozen=True, slots=True)
class _Reached:
    """One time that a code object reached the limit: Dynamo gave up on it (``skip``), or raised."""

    frame: FrameRef
    why: str | None
    step: int | None
    compile_id: str | None
    calls: int | None


_ADAM = re.compile(r"[/\\]torch[/\\]optim[/\\]adamw?\.py$")
_OTHER_FORM = re.compile(r"\b(foreach|fused)=True")
_DIVIDES = (
    "Begin the schedule above 0, as with max(rate, 1e-8), or give the optimizer foreach=True: compiled,"
    " Adam's loop over single parameters, which it takes on the CPU, divides by {rate}, which was 0, and a"
    " parameter (or an embedding's row) whose gradient is 0 becomes NaN, where uncompiled it stays as it is"
)


def _divides_by_rate(found: Collected, cause: Cause, places: Places) -> bool:
    """Whether Adam was compiled for a learning rate of 0, by which its compiled form divides.

    Tried with torch 2.11 and 2.13, on a CPU and on a GPU: the loop over single parameters alone does so. On a
    GPU, and where the script says foreach=True or fused=True, another form is taken.
    """
    is_rate = (cause.guard.source or "").endswith("['lr']") and cause.guard.expected in ("0.0", "0")
    on_cpu = all(device["type"] in ("cpu", "meta") for device in found.devices)
    if not is_rate or not on_cpu or _ADAM.search(cause.frame.file) is None:
        return False
    latest = (cause.recompiles or cause.refused)[0].compile_id
    seen = origin(found, cause.failure.compile_id, latest, cause.guard, places)
    caller = None if seen is None else seen.caller
    return caller is None or not places.sources.mentions(caller.file, _OTHER_FORM)


_WRAPPED = (
    "{} are compiled apart and share torch's wrapper, so that the code of each is a version of it: that is"
    " normal for a few. For many raise torch._dynamo.config.recompile_limit, or compile a function of one's"
    " own around each"
)


def _origin_of(found: Collected, cause: Cause, places: Places) -> Origin | None:
    first = (cause.recompiles or cause.refused)[0]
    seen = origin(found, cause.failure.compile_id, first.compile_id, cause.guard, places, cause.frame)
    if seen is None:
        return None
    again = [one.compile_id for one in (*cause.recompiles, *cause.refused)]
    modes = [mode_of(found, compiled) for compiled in again]
    lines = lines_of(found, (cause.failure.compile_id, *again), places)
    if not seen.direct and not seen.same_call and cause.guard.cause == "size":
        came = [(cause.failure.compile_id, cause.guards[0][0].expected)] if cause.guards else []
        came += [
            (one.compile_id, failed[0].actual)
            for one, failed in zip(cause.recompiles, cause.guards, strict=True)
        ]
        deciding = tuple(one for one in seen.sizes if decides(found, one, came))
        seen = replace(seen, sizes=deciding, mixed=() if deciding else seen.sizes)
    return replace(seen, one_each=None not in modes and len(set(modes)) == len(modes), lines=lines)


def _advice(cause: Cause, does: Taken) -> str:
    """What to do, led back to the outermost calls: of its first recompile, and of what did not fit."""
    first, seen = (cause.recompiles or cause.refused)[0], cause.origin
    times = len(cause.recompiles) + len(cause.refused)
    said = "" if does.remakes else _of_several(cause)
    if does.recurs and cause.guard.cause in _OF_STRUCTURE:
        said = _STRUCTURE.format(re.split(r"[.\[]", cause.guard.source or "")[0])
    said = said or advice(cause.guard, seen, times, does, side=_side(cause))
    if cause.views:
        names = listed([*cause.views])
        view = f"{names}, a view at some calls only"
        if seen is not None and not seen.within and not cause.frame.resumed:
            at = f"as in the call at {seen.earlier or seen.where} (in the function it is too late)"
            view = f"what the caller passes as {names}, {at}: it is a view at some calls only"
        said = said.replace(SOME_VIEW, view)
    if is_wrapper(cause.frame.file):
        if seen is not None and seen.other != seen.entry:
            said = _WRAPPED.format(f"{seen.other} and {seen.entry}")
        elif (cause.guard.cause, cause.guard.source) == ("type", "self"):
            said = _WRAPPED.format("Objects of several classes")
    if is_installed(cause.frame.file):
        said = _of_library(cause, seen, said)
    if (
        cause.guard.cause == "size"
        and "dynamic" in said
        and not re.search(r"number of|is unrolled over", said)
    ):
        said += _RANGES * does.is_range
    if does.turns is not None and cause.guard.cause == "container":
        said += _UNROLLED_OVER.format(*does.turns)
    said = _named(said, cause, seen)
    return f"{said}. {_FORBIDDEN}" if first.raised else said


_GIVEN = re.compile(r"\bargs\[(?P<at>\d+)\]|\bkwargs\['(?P<name>\w+)'\]")


def _parameter(given: re.Match[str], parameters: Sequence[str]) -> str:
    """The name of what a wrapper has in ``args`` or ``kwargs``; empty where that is not known."""
    at = int(given["at"] or 0)
    return given["name"] or (parameters[at] if at < len(parameters) else "")


def _named(said: str, cause: Cause, seen: Origin | None) -> str:
    """What is said, with the names of arguments in place of where a wrapper has them."""
    parameters = seen.parameters if seen is not None and is_wrapper(cause.frame.file) else ()
    return _GIVEN.sub(lambda given: _parameter(given, parameters) or given[0], said)


_UNROLLED_OVER = (
    ". A loop over {0} (line {1}) is unrolled: where that changes with it, each number of turns is a version"
    " all the same, and what a turn computes is to be compiled, with the loop left to Python"
)
_MAKES_TENSOR = re.compile(r"\btorch\.(as_)?tensor\(|\bnew_tensor\(")
_OF_STRUCTURE = ("type", "container", "int_value", "constant_value", "rank")
_STRUCTURE = (
    "{} is a structure that the function goes through by calling itself, and each structure that comes is a"
    " version: compile what it does at one place of it, as a function or module of its own, and leave the"
    " recursion to Python"
)
_ASKED_AT = re.compile(r"# (?P<file>\S+\.py):(?P<line>\d+) in ")
_OF_TORCH = re.compile(r"(nn|optim|utils|distributions|_\w+)/|(functional|_tensor|overrides)\.py$")


def _of_several(cause: Cause) -> str:
    """Of a branch on several sizes together, which no one of them decides; else empty."""
    guard = cause.guard
    if not asks_for_several(guard):
        return ""
    asked = _ASKED_AT.search(cause.failure.comment or "")
    where = "The code" if asked is None else f"{PurePath(asked['file']).name}:{asked['line']}"
    if asked is not None and _OF_TORCH.match(asked["file"]):
        where = f"torch's own code ({asked['file']}:{asked['line']})"
    if " == " in (guard.expected or "") and _MAKES_TENSOR.search(cause.failure.comment or ""):
        return (
            f"{where} makes a tensor of Python's numbers, for which torch needs them: each value of what is"
            f" made of these sizes is a version ({guard.actual} came), whatever dynamic= says. Calculate with"
            " the number in place of the tensor, or make that in the caller and pass it in"
        )
    asks, also = f"asks whether {guard.expected}, and {guard.actual} came", ""
    if "…" in (guard.expected or ""):  # too long to be told
        asks = f"asks for several sizes of {guard.source} together ({guard.actual} came)"
        also = ", as where one of them is 0 or 1"
    return (
        f"{where} {asks}: each side of each such test is compiled apart, once, whatever dynamic= says{also}."
        " To save it, pad so that the sizes stay on one side of all"
    )


def _of_library(cause: Cause, seen: Origin | None, said: str) -> str:
    """What to do about it in code that is not to be edited."""
    guard = cause.guard
    name = re.sub(r"^kwargs\['(\w+)'\]", r"\1", guard.source or "")
    is_passed = seen is not None and seen.by is None and (seen.direct or name in seen.spelled)
    if _is_layout(guard) and not is_passed:
        alone = seen is not None and seen.by is not None and not seen.within
        return _LAYOUT.format(guard.source, _COMPILED_ALONE if alone else _BROKEN_AROUND)
    is_of_types = re.search(r"\b[Pp]ass \S+ always as one type", said) is not None
    apart = seen is not None and not seen.within and seen.by not in (None, seen.by_before)
    if is_of_types and apart and seen is not None and seen.earlier:
        return _TYPES_OF_CALLS.format(guard.source, seen.earlier, seen.by, seen.where)
    if is_of_types and not is_passed:
        return _TYPES_OF_LIBRARY.format(package_of(cause.frame.file), guard.source)
    kept = guard.cause == "constant_value" and "." in str(guard.source) and not is_passed
    if kept and re.search("pass the same at every call|holds flags", said):
        return _FLAG_OF_LIBRARY.format(guard.source, package_of(cause.frame.file))
    is_state = guard.cause == "module_attribute" or (guard.cause == "container" and not is_passed)
    if is_state and re.search(r"\bin the caller\b|\bin __init__\b", said):
        times = len(cause.recompiles) + len(cause.refused)
        return of_kept_state(guard, package_of(cause.frame.file), times, is_any=cause.decided.is_any)
    return said


_TYPES_OF_LIBRARY = "{}'s own code passes {} in more than one type: a version for each is normal, made once"
_TYPES_OF_CALLS = (
    "The call at {1} passes another {0} than the one that {2}() makes at {3}: a version for each is normal,"
    " made once"
)
_FLAG_OF_LIBRARY = (
    "{} is a flag that {}'s own code sets: a version each for True and False is normal, made once"
)
_LAYOUT = (
    "{} is laid out in another way by the library's own code around it (a transpose, a slice, an expand): a"
    " version for each layout is normal, made once. To save one, {}"
)
_BROKEN_AROUND = "repair the break because of which it is compiled on its own"
_COMPILED_ALONE = "compile what calls it as well, in place of it alone"


def _is_layout(guard: Guard) -> bool:
    return guard.cause == "stride" or of_strides(guard)


def _side(cause: Cause) -> str | None:
    """What a number had to keep to in the version that was made for all its values, where it did not."""
    own = (failed[0] for failed in cause.guards)
    asked = (guard.expected for guard in own if guard.cause in ("int_value", "float_value"))
    return next((text for text in asked if text is not None and re.search(r"[<>]", text)), None)


_RANGES = (
    ". The code whose loop runs over this size is compiled for each size all the same: padding helps there,"
    " or to leave the loop to Python"
)


def what_it_does(cause: Cause, places: Places, seen: Origin | None = None) -> Taken:
    """What the functions at work, the compiled one and those inlined, do with the guarded value.

    A loop over one argument has all compiled again that is as long: the guard may be on any of them.
    """
    stack = [(frame.file, frame.line) for frame in cause.failure.user_stack]
    at_work = list(dict.fromkeys([(cause.frame.file, cause.frame.line), *stack]))
    inner = _of_wrapped(cause, seen)
    guard, at_work = (cause.guard, at_work) if inner is None else (inner[0], [inner[1], *at_work[1:]])
    does = taken(places.sources, guard, at_work, cause.eager)
    does = does.known(cause.decided, places.sources, at_work[0][0])
    if cause.frame.resumed and cause.guard.cause in _KINDS and not does.made:
        does = replace(does, made=_set_anew(cause.frame, cause.guard, places))
    alike = seen.alike if seen is not None and seen.direct and cause.guard.cause == "size" else ()
    for name, dimension in alike:
        is_own = (name, dimension) == (cause.guard.source, cause.guard.dimension)
        if does.is_range or does.as_number or is_own:
            continue
        guard = replace(cause.guard, source=name, dimension=dimension)
        other = taken(places.sources, guard, at_work[:1], cause.eager)
        other = other.known(cause.decides(guard), places.sources, at_work[0][0])
        if other.is_range or other.as_number or other.is_one:
            does = replace(does, ends=(*does.ends, *other.ends), is_one=does.is_one or other.is_one)
    return does


def _of_wrapped(cause: Cause, seen: Origin | None) -> tuple[Guard, tuple[str, int]] | None:
    """The guard by the name of the function that torch's wrapper calls, and where that one is; else None.

    ``torch.compile`` of a function under ``torch.no_grad()`` compiles ``def inner(*args, **kwargs)``.
    """
    given = _GIVEN.match(cause.guard.source or "")
    if given is None or seen is None or seen.called is None or not is_wrapper(cause.frame.file):
        return None
    name = _parameter(given, seen.parameters)
    source = f"{name}{(cause.guard.source or '')[given.end() :]}"
    return (replace(cause.guard, source=source), seen.called) if name else None


def limits(found: Collected, causes_found: list[Cause], places: Places) -> list[Finding]:
    """One finding for each function that reached the recompile limit, with the guards that used it up."""
    grouped: dict[Location, list[_Reached]] = {}
    for reached in _reached(found):
        grouped.setdefault(_defined(reached.frame, places), []).append(reached)
    return [_limit(found, location, group, causes_found, places) for location, group in grouped.items()]


def _reached(found: Collected) -> list[_Reached]:
    made = [
        _Reached(skip.frame, skip.why, skip.step, skip.compile_id, found.count(skip.slot))
        for skip in found.skips
        if skip.limit
    ]
    told = {skip.compile_id for skip in found.skips if skip.limit}
    for event in found.metrics:
        # FailOnRecompileLimitHit reaches the script as an exception, and no frame is given up.
        if event["metrics"].get("fail_type") == "FailOnRecompileLimitHit" and event["cid"] not in told:
            frame = FrameRef.read(event.get("frame"))
            if frame is not None:
                why = f"raised to the script: {_first_sentence(event['metrics'].get('fail_reason'))}"
                made.append(_Reached(frame, why, event["step"], event["cid"], None))
    return made


def _first_sentence(text: str | None) -> str:
    return next(iter((text or "FailOnRecompileLimitHit").strip().splitlines()), "").strip()


def _limit(
    found: Collected, location: Location, group: list[_Reached], causes_found: list[Cause], places: Places
) -> Finding:
    entry = catalog.entry("BS303")
    # The limit is one of a code object: of the function, or of what resumes it after one of its breaks.
    codes = {_code(reached.frame) for reached in group}
    used = [
        cause
        for cause in causes_found
        if any(_code(r.frame) in codes for r in (*cause.recompiles, *cause.refused) if r.frame is not None)
        and _defined(cause.frame, places) == location
    ]
    compiles = [one.compile_id for cause in used for one in cause.recompiles]
    shown = where_defined(found, group[0].frame, compiles, places)
    calls = [reached.calls for reached in group if reached.calls is not None]
    steps = [reached.step for reached in group if reached.step is not None]
    return Finding(
        fingerprint=places.fingerprint("BS303", location, of_function=True),
        code="BS303",
        kind="skip",
        gb_id=None,
        title=entry.title,
        # Torch's own explanation and hints, which follow, are those of every limit.
        reason=next(
            (re.split(r"\s+Explanation: ", reached.why)[0] for reached in group if reached.why), entry.title
        ),
        explanation=entry.why,
        hints=(),
        location=shown,
        stack=(),
        counts=Counts(
            occurrences=len(group),
            crossings=sum(calls) if calls else None,
            compile_ids=tuple(r.compile_id for c in used for r in c.recompiles if r.compile_id),
        ),
        guards=tuple(cause.guard for cause in used),
        advice=_limit_advice(used, places),
        calls_of=shown.function if calls else None,
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
    )


def _limit_advice(used: list[Cause], places: Places) -> str:
    """What to do about the guard that used up most of the limit, or about all where none did."""
    if not used:
        return catalog.entry("BS303").fix
    # The call that came too many compiled nothing, and what failed at it has no finding.
    used = [cause for cause in used if cause.recompiles] or used
    used = sorted(used, key=_versions_for, reverse=True)
    if _versions_for(used[0]) * 2 <= sum(map(_versions_for, used)) and len(used) > _FEW:
        named = ", ".join(f"{_about_guard(cause.guard)} ({_versions_for(cause)})" for cause in used[:_NAMED])
        more = f" and {len(used) - _NAMED} more" * (len(used) > _NAMED)
        return (
            f"No one guard used it up: {named}{more} did, with as many recompiles each. Each has a finding of"
            " its own, which says what to do, or that it is expected: where all of that is meant, raise"
            " torch._dynamo.config.recompile_limit."
        )
    others = ""
    if len(used) > 1:
        others = f" {len(used) - 1} more guard{'s' * (len(used) > 2)} took part."
    does = what_it_does(used[0], places, used[0].origin)
    text = _advice(used[0], does).rstrip(".")
    return f"{text}.{others} A higher torch._dynamo.config.recompile_limit helps where the versions are few."


_FEW = 1  # guards of which one is told alone
_NAMED = 4


def _versions_for(cause: Cause) -> int:
    return len(cause.recompiles) or len(cause.refused)


def _about_guard(guard: Guard) -> str:
    """What differed, without for what it was compiled: ``dimension 0 of x``, ``type of cache``."""
    if guard.cause == "size" and guard.dimension is not None:
        return f"dimension {guard.dimension} of {guard.source}"
    said, _, rest = guards.describe(guard).partition(": ")
    if said == "guard failed":  # one that has no name of its own
        return f"`{rest}`"
    return said if guard.cause != "global_state" else str(guard.source)


def _code(frame: FrameRef) -> tuple[str, str, int]:
    return frame.file, frame.name, frame.line
