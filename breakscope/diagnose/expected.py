"""Recompiles that a healthy script has: for evaluation, for a second size, for a smaller last batch.

A version of a function is compiled for each combination of a few properties of its calls: whether
gradients are on, whether the module trains, whether a size is the first one seen or any other. What has
two values makes two versions of everything else, and that is all. Only what goes on beyond that repeats
or grows, and is a fault.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from breakscope.diagnose.collect import Collected
from breakscope.diagnose.decided import VERY_ONE, Question, is_float
from breakscope.diagnose.guard_paths import of_parameter, of_size, of_strides
from breakscope.report.model import Guard

if TYPE_CHECKING:
    from breakscope.diagnose.origins import Origin
    from breakscope.diagnose.recompiles import Cause

# A mode has two values. A number is made dynamic by torch when a second one comes. What may come once is
# waited for, because it may grow; and so is what has a few values, as a text that says what to do.
Axis = Literal["mode", "number", "once", "few"]
Key = tuple[str, str | None, int | None]

_SETTLED = 5  # steps without another recompile of it, after which what came once is taken to have come once
_GLOBAL_MODE = re.compile(r"grad_mode|autocast\b.*|autocast_\w+")
_GRADIENT_KEYS = re.compile(
    r"with(?:out)? (?:Autograd\w*|ADInplaceOrView)(?:, (?:Autograd\w*|ADInplaceOrView))*"
)
FLAGS = ("True", "False", "None")
_FEW = 3  # versions for other texts than the first one
_APART = ("0", "1")  # sizes that torch always compiles apart


@dataclass(frozen=True, slots=True)
class Version:
    """What was compiled because no version of a code object fitted.

    Attributes:
        cause: index of its cause.
        guards: what failed in each version that there was, that of the cause first.
        is_one: whether the code needs a plain number of what failed, so that each value is another version.
        is_shared: whether it is of another one of the functions or classes that share the code.
    """

    cause: int
    step: int | None
    guards: tuple[Guard, ...]
    is_one: bool
    is_shared: bool = False


def reasons(
    found: Collected,
    causes: Sequence[Cause],
    constant: Sequence[bool],
    chosen: Sequence[bool],
    shared: Sequence[str],
) -> list[str | None]:
    """For each cause why it is expected; None for one that repeats, grows, or is none of the known kinds.

    Args:
        constant: of each, whether its code needs a plain number of it; chosen: whether it branches on it;
            shared: what is said where its code is that of several functions or classes, else empty.
    """
    real = {
        index
        for index, cause in enumerate(causes)
        if cause.refused
        or not cause.recompiles
        # A text that names things has as many values as there are things.
        or (_axis(cause.guard) == "few" and len(cause.recompiles) > 1 and not chosen[index])
    }
    apart: dict[int, set[str]] = defaultdict(set)
    for versions in _by_code(found, causes, shared):
        real |= _real(found, versions)
        words = _apart(versions)
        for index in {version.cause for version in versions}:
            apart[index] |= words
    return [
        None
        if index in real
        else f"{text}: {_made(cause)}"
        if text
        else _why(cause, constant=is_one, apart=sorted(apart[index]), sided=_is_sided(cause, causes))
        for index, (cause, is_one, text) in enumerate(zip(causes, constant, shared, strict=True))
    ]


def _by_code(found: Collected, causes: Sequence[Cause], shared: Sequence[str]) -> Iterable[list[Version]]:
    """The versions of each code object, in order: a function and what resumes it are compiled apart."""
    of = {
        id(recompile): Version(index, recompile.step, guards, bool(cause.decided.lines), bool(shared[index]))
        for index, cause in enumerate(causes)
        for recompile, guards in zip(cause.recompiles, cause.guards, strict=True)
    }
    versions: dict[str, list[Version]] = defaultdict(list)
    for recompile in found.recompiles:
        if id(recompile) in of:
            frame = recompile.frame
            name = recompile.compile_id or f"{frame.file}:{frame.line}" if frame else ""
            versions[name.partition("/")[0]].append(of[id(recompile)])
    return versions.values()


def _real(found: Collected, versions: Sequence[Version]) -> set[int]:
    """The causes of one code object's versions that made more of them than they have to."""
    keys = {_key(guard) for version in versions for guard in version.guards if _axis(guard) is not None}
    growing = any(_is_chain(versions, key) for key in keys)
    modes = sum(one.is_shared or _axis(one.guards[0]) in ("mode", "once") for one in versions)
    by_cause: dict[int, list[Version]] = defaultdict(list)
    for version in versions:
        by_cause[version.cause].append(version)
    return {
        index
        for index, own in by_cause.items()
        if not _is_bounded(found, own, modes=modes, properties=len(keys), growing=growing)
    }


def _is_bounded(
    found: Collected, own: Sequence[Version], *, modes: int, properties: int, growing: bool
) -> bool:
    """Whether one cause made no more versions of a code object than it has to.

    Args:
        modes: versions of this code object that modes, layouts, other classes and the like made; properties:
            how many of these vary.
        growing: whether a number is among them of which each value is compiled apart.
    """
    if own[0].is_shared:
        return len(own) <= _FEW and _is_settled(found, own[-1])
    match _axis(own[0].guards[0]):
        case "mode":
            return len(own) < 2**properties and (len(own) == 1 or not growing)
        case "number":
            values = [value for version in own for value in version.guards[0].values]
            # Of a number, which is no size, 0 and 1 are two of any.
            apart = sum(value in values for value in _APART) * of_size(own[0].guards[0])
            settled = not any(version.is_one for version in own) or _is_settled(found, own[-1])
            return len(own) <= (1 + modes) * (1 + apart) and not growing and settled
        case "once":
            return len(own) == 1 and (_is_settled(found, own[0]) or _is_yes_or_no(own[0].guards[0]))
        case "few":
            return len(own) <= _FEW * (1 + modes) and _is_settled(found, own[-1])
    return False


def _is_yes_or_no(guard: Guard) -> bool:
    """Whether no third value can come."""
    return {guard.expected, guard.actual} == {"True", "False"}


def _is_settled(found: Collected, last: Version) -> bool:
    return last.step is not None and found.steps is not None and last.step + _SETTLED < found.steps


def _key(guard: Guard) -> Key:
    return guard.cause, guard.source, guard.dimension


def _is_chain(versions: Sequence[Version], key: Key) -> bool:
    """Whether a version made for a second value did not fit a third one: the value is not made dynamic."""
    made: set[str | None] = set()
    asked = {guard.expected for version in versions for guard in version.guards if _key(guard) == key}
    if len([text for text in asked if text is not None and VERY_ONE.search(text)]) > 1:
        return True
    for version in versions:
        guards = [guard for guard in version.guards if _key(guard) == key and _axis(guard) == "number"]
        if any(guard.expected in made for guard in guards):
            return True
        made |= {guard.actual for guard in guards} - {*_APART, None}
    return False


def _axis(guard: Guard) -> Axis | None:
    """What kind of property differed; None for one that a healthy script does not vary."""
    both = (guard.expected, guard.actual)
    match guard.cause:
        case "global_state":
            names = (guard.source or "").split(", ")
            return "mode" if all(map(_GLOBAL_MODE.fullmatch, names)) else None
        case "requires_grad":
            return "mode"
        case "dispatch_keys":
            return "mode" if all(value and _GRADIENT_KEYS.fullmatch(value) for value in both) else None
        case "size" | "symbolic_shape" | "int_value" | "float_value":
            return "number"
        case "module_attribute":
            if (guard.source or "").endswith(".training"):
                return "mode"
            return _of_a_number(guard)
        case "constant_value":
            return _flag(guard)
        case "stride" | "rank":
            return "once"  # two layouts, as of images that were loaded and that were made; one state and many
        case "type":
            return "once" if {"None", "not a tensor"} & set(both) else None
        case "container":
            return "once" if both[0] in ("0 items", "empty", "present", "missing") else None
    return None


def _of_a_number(guard: Guard) -> Axis | None:
    """Of an attribute: a whole number of a module is compiled in for good, and may be a counter.

    One of another object is not, which is seen where it goes on and nothing more is compiled.
    """
    both = [value or "" for value in (guard.expected, guard.actual)]
    if all(map(is_float, both)):
        return "number"
    return "once" if all(map(str.isdecimal, both)) else _flag(guard)


def _flag(guard: Guard) -> Axis | None:
    values = (guard.expected or "", guard.actual or "")
    if "None" in values:
        return "once"  # made at the first call, or given to some calls only
    if all(value[:1] in "'\"" for value in values):
        return "few"
    return "once" if all(value in FLAGS or value[:1] in "'\"" for value in values) else None


# ---- in words ----


def _why_parameter(cause: Cause, made: str) -> str:
    said = f"a parameter of another size, which torch compiles in by default: {made}"
    model = _OF_MODEL.match(cause.guard.source or "")
    if model is None or cause.origin is None:
        return said
    return f"{model[0]} is another model at {cause.origin.where}, with {said}"


def _made(cause: Cause) -> str:
    times = len(cause.recompiles)
    return "compiled once more" if times == 1 else f"compiled {times} times more"


def _apart(versions: Iterable[Version]) -> set[str]:
    """What has a version of its own for each size, in words."""
    found: set[str] = set()
    for version in versions:
        guard = version.guards[0]
        match _axis(guard):
            case _ if version.is_shared:
                found.add("another function or class")
            case "mode" if guard.cause in ("requires_grad", "dispatch_keys"):
                found.add("a gradient")
            case "mode":
                found.add("a mode")
            case "once" if guard.cause == "stride":
                found.add("a layout")
            case "once" if guard.source:
                found.add(f"another {guard.source}")
        found |= {f"a size of {value}" for value in guard.values if value in _APART and of_size(guard)}
    return found


def _is_sided(cause: Cause, causes: Sequence[Cause]) -> bool:
    """Whether a question about the same size failed later in the same function."""
    return any(
        one.guard.cause == "symbolic_shape"
        and one.guard.actual not in _APART
        and one.frame == cause.frame
        and not of_strides(one.guard)
        and f"{cause.guard.source}.size({cause.guard.dimension})" in _in_full(one.guard)
        for one in causes
    )


def _in_full(guard: Guard) -> str:
    """What a guard asks, with the size by its name where it is the only one."""
    own = f"{guard.source}.size({guard.dimension})"
    return re.sub(r"(?<![\w.])size\b(?!\()", lambda _: own, guard.expected or "")


def _why(cause: Cause, *, constant: bool, apart: Sequence[str], sided: bool) -> str:
    guard, made = cause.guard, _made(cause)
    match guard.cause:
        case "global_state" if guard.source == "grad_mode":
            return "one graph with gradients and one without"
        case "global_state":
            return f"one graph for each state of {guard.source}"
        case "dispatch_keys":
            return f"one graph for {guard.source} made in inference mode, and one for others"
        case "requires_grad":
            return f"one graph where {guard.source} needs gradients, and one where it does not"
        case "module_attribute" if (guard.source or "").endswith(".training"):
            return "one graph each for train() and eval()"
        case "size" if of_parameter(guard):
            return _why_parameter(cause, made)
        case "size":
            return _why_size(cause, f"{made}{_of_times(cause, apart)}", constant=constant, sided=sided)
        case "module_attribute" if (guard.actual or "").isdecimal():
            return f"a second value of {guard.source}: {made}, and not again"
        case "symbolic_shape":
            return _why_side(cause, made)
        case "int_value" if "<=" in (guard.expected or ""):
            return f"values of {guard.source} on either side of what the code was compiled for: {made}"
        case "int_value" | "float_value" | "module_attribute" if _axis(guard) == "number":
            return f"a second value of {guard.source}{_after(cause)}: {made}"
    return f"{_each(guard, cause.origin)}: {made}, and not again"


def _each(guard: Guard, origin: Origin | None) -> str:
    if guard.actual == "True" and _FILLED.search(guard.source or "") is not None:
        if origin is not None and origin.same_call:
            return f"a call's first module sets {guard.source}, and the others find it set: a graph for each"
        return f"one graph for the first token, which sets {guard.source}, and one for the next ones"
    if guard.cause == "stride":
        return f"another layout of {guard.source}"
    if _axis(guard) == "few" and guard.values[2:]:
        return f"one graph for each of the texts {', '.join(guard.values)}"
    return "one graph for each of the two"


# A flag of transformers' caches that a first token sets.
_FILLED = re.compile(r"\b(?:cache|past_key_values)\b.*\.is_(?:updated\[\d+\]|initialized)$")


def _of_times(cause: Cause, apart: Sequence[str]) -> str:
    """Why a second size was compiled more than once: several parts of a function, or what is apart."""
    parts = len({(one.compile_id or "").partition("/")[0] for one in cause.recompiles})
    once = parts * (1 + sum(value in cause.guard.values[1:] for value in _APART))
    resumed = any(one.frame is not None and one.frame.resumed for one in cause.recompiles)
    pieces = f", in {parts} {'parts of the function' if resumed else 'modules or functions'}" * (parts > 1)
    if len(cause.recompiles) <= once or not apart:
        return pieces
    return f"{pieces}, as what is compiled apart ({', '.join(apart)}) has a second size of its own"


_OF_MODEL = re.compile(r"(?!self\b)\w+(?=[.\[])")  # a parameter of what is passed


def _why_side(cause: Cause, made: str) -> str:
    guard = cause.guard
    of, base, _ = (guard.source or "").partition("._base")
    if base and guard.dimension is not None and guard.actual in _APART:
        viewed = f"the tensor that {of} is a view of"
        return f"torch compiles a size of {guard.actual} apart, also of {viewed}: {made}"
    if base:
        return f"{of} is a view of a tensor of another shape, and each is compiled apart: {made}"
    if of_strides(guard):  # a slice that is the whole at some calls, of which the code asks nothing
        return f"another layout of {guard.source} (it was compiled for {guard.expected}): {made}"
    if guard.expected is not None and VERY_ONE.search(guard.expected):
        return f"the code asks whether {guard.expected}: {made}"
    if guard.dimension is not None and guard.actual in _APART:
        return f"torch compiles a size of {guard.actual} apart: {made}"
    lines = {one.line for one in cause.decided.asked if one.alone and one.file == cause.frame.file}
    # It may be an operation of torch's that asks, as a convolution on the CPU does.
    who = f"what line {min(lines)} runs" if len(lines) == 1 else "the code"
    asked = f" ({who} asks {guard.expected})" * bool(guard.expected)
    return f"sizes on either side of what the code was compiled for{asked}: {made}"


def _why_size(cause: Cause, made: str, *, constant: bool, sided: bool) -> str:
    guard = cause.guard
    before, after = guard.expected or "", guard.actual or ""
    later = [value for value in guard.values[1:] if value not in _APART]
    if after in _APART and not later:
        return f"torch compiles a size of {after} apart: {made}"
    after = later[0] if later else after
    seen = cause.origin
    if (guard.source or "").startswith("self.") and seen is not None and seen.same_call:
        return f"another module, whose {guard.source} has another size ({before}, then {after}): {made}"
    size = seen.sizes[0] if seen is not None and seen.sizes else None
    of = guard.dimension if size is None else size.dimension
    # A flag that changed at the same call has it compiled in any case.
    flags = seen is not None and any({old, new} & {*FLAGS} for _, old, new in seen.values)
    # What a break hands on, or an object holds, is no batch.
    no_batch = bool(of) if size is None else size.no_batch
    is_batch = not no_batch and not _NO_BATCH.search(guard.source or "")
    is_less = before.isdecimal() and after.isdecimal() and int(after) < int(before)
    if is_less and (is_batch or guard.dimension == 0):
        said = (
            f"a smaller size ({after} after {before}){_after(cause, constant=constant, sided=sided)}: {made}"
        )
        argument = f" of {size.argument}" if size is not None else ""
        which = f" (dimension {of}{argument} holds it)" * bool(of)
        hint = f"; if it is an epoch's last batch of a DataLoader{which}, drop_last=True leaves it out"
        if seen is not None and not seen.loads:
            hint = f"; where that is a last, smaller part of the data{which}, to leave it out saves this"
        return said + hint * (is_batch and not flags)
    more = _after(cause, constant=constant, sided=sided)
    return f"a second size of dimension {guard.dimension}{more}: {made}"


# Also a thing of an item: ``labels[1]['boxes']``.
_NO_BATCH = re.compile(r" from line |\bself\.|\.\w|\[\d+\]\[|^(weight|bias|w|b)$")
_CONSTANT = ", of which the code needs the number, so that each is compiled apart"


_OF_SIZES = re.compile(r"(?<!\d) \* ")
_BELOW = re.compile(r"(?:(\d+) \* )?[\w.\[\]']+\.size\(\d+\) <=? (\d+)")


def _bound(text: str) -> float:
    """Up to which size a question has the same answer: what binds comes first."""
    found = _BELOW.fullmatch(text)
    return int(found[2]) / int(found[1] or 1) if found is not None else math.inf


def _of_product(asked: Iterable[Question]) -> str:
    """What is asked of a size with others: a convolution on the CPU asks how large an image is."""
    texts = (
        one.text for one in asked if one.near and _OF_SIZES.search(one.text) and _BELOW_ALL.search(one.text)
    )
    text = next((text for text in texts if len(text) <= _SHOWN), "")
    return f" for which {text} has the same answer" if text else ""


_BELOW_ALL = re.compile(r" (<=?|>=?) \d{3,}$")  # a bound, and not whether something is 0 or 1
_SHOWN = 60  # characters of a question
_ON_A_SIDE = " on the same side of what is asked of it"


def _after(cause: Cause, *, constant: bool = False, sided: bool = False) -> str:
    """What torch does with values that come after the second; empty where its records do not tell.

    Args:
        sided: whether a question about it failed later, which this compile's records need not name.
    """
    made = cause.decided
    if made.lines:
        return _CONSTANT
    alone = [value for value in cause.guard.values[1:] if value in _APART and of_size(cause.guard)]
    apart = f", and {' and '.join(alone)}, which {'are' if alone[1:] else 'is'} compiled apart" * bool(alone)
    if not made.is_any:
        return apart
    if constant:
        return f"{_CONSTANT}{apart}"
    # A product of sizes is asked for at each step, and is seldom what decides.
    questions = [
        one
        for one in made.asked
        if one.parts or (one.near and one.alone and (not _OF_SIZES.search(one.text) or "int(" in one.text))
    ]
    below = min((_bound(one.text) for one in questions), default=math.inf)
    asked = [
        f"{one.text} (line {one.line})" if one.file == cause.frame.file else one.text
        for one in sorted(questions, key=lambda one: _bound(one.text))
        if _bound(one.text) in (below, math.inf)  # larger bounds than the least are no more
    ]
    asked = sorted(dict.fromkeys(asked), key=lambda text: "%" not in text)  # which few sizes answer alike
    more = f" and {len(asked) - 1} more that the code asks" * (len(asked) > 1)
    has = "have the same answers" if more else "has the same answer"
    side = f" for which {asked[0]}{more} {has}" if asked else _of_product(made.asked) or _ON_A_SIDE * sided
    return f", after which torch takes any{side}{apart}"
