"""What to do about recompiles: a guard's advice, led back to the outermost call that decides it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import PurePath
from types import MappingProxyType
from typing import TypeGuard

from breakscope.diagnose.becomes import Kind
from breakscope.diagnose.decided import VERY_ONE
from breakscope.diagnose.guard_advice import TENSORS, remedy
from breakscope.diagnose.guard_paths import of_size, of_strides
from breakscope.diagnose.guard_uses import Taken
from breakscope.diagnose.origins import Origin, Size, may_come_of, together
from breakscope.report.model import Guard

_UNKNOWN = Taken()
_INT = re.compile(r"-?\d+$")
SPECIAL_SIZES = {"0", "1"}
_OWN = re.compile(r"\b_(?:parameters|buffers)\b|Guard failed on a parameter")
_OF_TOKENS = re.compile(r"past_key_value|(key|value)_cache\b")  # and no dict of one's own
_CACHE = re.compile(r"past_key_value|\bcache\b|_cache\b|is_updated")
# Ints in these places are constants of the code, whatever dynamic= says.
_GLOBAL, _DEFAULT = re.compile(r"\bG\['"), re.compile(r"__(?:kw)?defaults__")
_ITEM = re.compile(r"(?P<of>[\w.]+(\[[^\]]+\])*)\[\d+\]")
_OF_CONTAINER = re.compile(r"(?P<of>[\w.]+)\[[^\]]+\]")
_OF_ITEM = re.compile(r"\[\d+\]\.\w+$")  # an attribute of one object of a list
_ENUM = re.compile(r"(?:\w+\.)*(?P<of>\w+)\.\w+$")
_FUNCTIONS = re.compile(
    r"(?:^| )(?:a |not a )?function$|builtin_function_or_method|\bcode$|functools\.partial"
)
_INDEX = re.compile(r"\.item\(\) == ")  # of ``x[i]``, where i is a tensor of one number on the CPU
_BECOMES_ONE = re.compile(r"[-+*/%].* != [01]$|\d+ <= [\w.\[\]()]+$")
_OTHER_THAN = re.compile(r"[\w.()\[\]]+ != (?P<n>(?!0$|1$)\d+)")
_EQUAL = re.compile(r"(?P<of>[^=<>!%*+]+\.size\(\d+\)) == (?P<other>[^=<>!%*+]+\.size\(\d+\))")
_VARIABLE = re.compile(r"environ\._data\[b?'(?P<name>[^']*)'\]")
_HELD = re.compile(r"^len\(.*\._(?P<what>buffers|parameters|modules|\w+_hooks)\)")
_STATE = re.compile(r"dict\.keys\(.*\['(?P<key>step|t|n|count|i|iter)'\] == ")
_SEVERAL = 3  # shown
A_SECOND = 2  # values: after the second a number may be symbolic, however many parts were compiled for it
# What that saves depends on all that compiled code does with a number, and on torch: only a trial tells.
_BY_REMEDY = "have breakscope remedy try dynamic=True in torch.compile"
# Sizes of one dimension that were compiled one by one: torch has not made it dynamic after the second.
_STILL_STATIC = 3
# An attribute of a module itself, as torch writes it, and of no object or dict that a module keeps.
_OF_MODULE = re.compile(r"self(\._modules\[[^\]]+\])*\.\w+ ")


def advice(
    guard: Guard, origin: Origin | None, times: int, does: Taken = _UNKNOWN, *, side: str | None = None
) -> str:
    """One or two sentences.

    Args:
        origin: what differed in the outermost calls; None where that is not known.
        times: how often the function was compiled again for it.
        does: what compiled code does with the value.
        side: what a symbolic number had to keep to, where that failed: ``0.5 < ratio``.
    """
    if does.is_range and guard.cause in ("int_value", "module_attribute") and _counts(guard):
        text = _turns(guard)
    elif _is_sized(guard):
        text = _size(guard, origin, times, does)
    elif guard.cause in ("int_value", "float_value", "constant_value"):
        text = _value(guard, origin, times, does) if side is None else _side(guard, side, does.made)
    elif guard.cause == "module_attribute":
        text = _attribute(guard, times, does)
    elif guard.cause == "global_state" and {"grad_mode", "autocast"} <= set(
        re.findall(r"grad_mode|autocast", guard.source or "")
    ):
        text = (
            "one graph for training and one for evaluation is normal and made once; here gradients and"
            " autocast both differ, so one graph serves both only where both are the same"
        )
    elif guard.cause == "global_state" and "grad_mode" in (guard.source or "") and does.is_backward:
        text = (
            "a backward() that is run with create_graph=True and one without are two graphs, which is normal,"
            " made once"
        )
    elif guard.cause == "global_state" and "grad_mode" in (guard.source or "") and _is_within_one(origin):
        text = (
            f"one graph with gradients and one without is normal and made once: the call{_at(origin)} runs"
            " this code in both modes, as under a torch.no_grad() of its own, and it is compiled by itself"
            " there: to save one, repair the break that makes it a compile of its own"
        )
    elif guard.cause == "global_state" and "grad_mode" in (guard.source or ""):
        text = (
            f"one graph with gradients and one without is normal and made once: the call{_at(origin)} came"
            " in the other mode. If the mode changes at every call, " + remedy(guard)
        )
    elif guard.cause == "global_state" and "autocast" in (guard.source or ""):
        text = (
            "one graph under autocast and one without, or one for each of its dtypes, is normal and made"
            " once; if only some of the calls were meant to be under it, " + remedy(guard)
        )
    elif guard.cause in ("type", "identity", "container", "aliasing", "dtype", "rank", "requires_grad"):
        text = _of_empty(guard, origin) or _held(guard, origin, does)
    else:
        text = remedy(guard)
    item = _ITEM.fullmatch(guard.source or "") or _OF_CONTAINER.fullmatch(guard.source or "")
    names = [name for name in (guard.source, item["of"] if item else None) if name]
    named = any(_begins_with(name, text) for name in names)
    return text if named else text[:1].upper() + text[1:]


def _begins_with(name: str, text: str) -> bool:
    """Whether a text begins with a name, and not with the word ``a``."""
    is_word = name == "a" and re.match(r"a (is|was|came|has|follows)\b", text) is None
    return not is_word and re.match(rf"{re.escape(name)}(?!\w)", text) is not None


def _counts(guard: Guard) -> bool:
    return (guard.expected or "").lstrip("-").isdecimal()


def _is_within_one(origin: Origin | None) -> bool:
    """Whether the code itself changes the mode: in one call, or between two that came in the same one."""
    return origin is not None and (
        origin.same_call or (bool(origin.where) and "grad mode" not in origin.modes)
    )


def _is_sized(guard: Guard) -> bool:
    return of_size(guard) and guard.dimension is not None


def _whole(origin: Origin | None) -> str:
    return f" of {call_of(origin)}" if origin is not None and origin.where else ""


def call_of(origin: Origin) -> str:
    """The outermost call, by the project's line: ``the call at train.py:27``."""
    if origin.by in ("forward", "__call__"):
        return f"a call inside of the module that {origin.where} calls"
    if origin.by is not None:
        return f"the call that {origin.by}() makes ({origin.where})"
    if len(origin.lines) > 1:
        more = ["others"] * (len(origin.lines) > _SEVERAL)
        return f"the calls at {listed([*origin.lines[:_SEVERAL], *more])}"
    return f"the call at {origin.where}"


# -- sizes ------------------------------------------------------------------------------------------------


def of_group(
    origin: Origin,
    sizes: Sequence[Size],
    functions: int,
    seen: Sequence[str],
    does: Taken = _UNKNOWN,
    times: str = "",
) -> str:
    """What to do where several functions are compiled again because one size of one call changed.

    Args:
        sizes: those of the call that changed together, one or more; seen: the values that came.
        functions: how many there are; times: how often that was, as ``, once each``; does: what they do with
            the size.
    """
    size = sizes[0]
    others = [one.argument for one in sizes[1:] if one.argument != size.argument]
    too = f" (with {', '.join(dict.fromkeys(others))})" if others else ""
    came = ", ".join(seen[:_SEVERAL]) + ("…" if len(seen) > _SEVERAL else "")
    again = "several parts of one function" if functions == 1 else f"{functions} functions"
    said = (
        f"dimension {size.dimension} of {size.argument}{too}{or_rival(origin)},"
        f" {'as in' if len(seen) > A_SECOND else 'of'} {call_of(origin)}, came with {came}, and {again} are"
        " compiled again for it"
    )
    if _is_apart(size, seen):
        return f"Torch compiles sizes 0 and 1 apart from all others: {said}{times}. {_apart(size, origin)}"
    if origin.kept_static:
        return (
            f"{said[:1].upper()}{said[1:]}: dynamic=False, or mark_static, keeps it fixed, a graph for each"
            f" size. Take that out, or {_pad(size)}"
        )
    if does.is_range and functions == 1:
        how = (
            f"{does.unrolled} is unrolled over it, a graph for each size, whatever dynamic= says: compile"
            " what the loop does, with dynamic=True, and leave the loop to Python"
        )
    else:
        how = f"{_BY_REMEDY}{_how_far(origin, does, _of_modes(origin))}"
    apart = " Sizes 0 and 1 are compiled apart all the same." if SPECIAL_SIZES & set(seen) else ""
    several = len([value for value in seen if value not in SPECIAL_SIZES]) > A_SECOND
    unrolled = f", but where {does.unrolled} is unrolled over it" if does.is_range else ""
    later = (
        "Torch makes a size dynamic after its second value: where more are compiled,"
        f" {'the code makes a number of it, or ' * (not does.is_any)}another flag or mode (without gradients,"
        " in evaluation) begins anew"
        if several and not unrolled
        else f"After the second size torch makes it dynamic by itself{unrolled}"
    )
    return f"{said[:1].upper()}{said[1:]}{times}: {how}; or {_pad(size)}.{apart} {later}"


def _is_apart(size: Size, seen: Sequence[str]) -> bool:
    """Whether a size of 0 or 1 is why it was compiled again, and no second size of many."""
    others = [value for value in seen if value not in SPECIAL_SIZES]
    ones = SPECIAL_SIZES & {str(size.old), str(size.new), *seen}
    return bool(ones) and len(others) < A_SECOND


def or_rival(origin: Origin) -> str:
    """Another size that explains as much, where that is not an argument's own."""
    rival = next(iter(origin.rivals), None)
    return "" if rival is None else f" (or {rival.dimension} of {rival.argument}, which changed too)"


def _taken_for_one(origin: Origin) -> str:
    was = "was" if len(origin.equal) == 1 else "were"
    equal = listed(origin.equal[:_SEVERAL])
    return f"{equal} {was} as large at the first call, and dynamic=True takes equal sizes for one"


def _how_far(origin: Origin, does: Taken, also: str = "") -> str:
    """`` (…)``: what dynamic=True does not save, of a size that several functions are compiled again for."""
    said = f"{_not_saved(origin, does)}{also}".removeprefix("; ")
    return f" ({said})" if said else ""


def _not_saved(origin: Origin, does: Taken) -> str:
    if does.parts:
        return f"no help for the first two sizes, of which {does.parts} makes two sides"
    if does.is_range:
        return f"no help where {does.unrolled} is unrolled over it, a graph for each size"
    if by := does.as_number:
        return f"no help where {by} takes it as a Python number, a graph for each size"
    if does.is_one and (fixes := does.fixes):
        keep = f"; {whole} keep whole numbers" if (whole := _whole_numbers(does)) else ""
        return f"no help where a Python number is made of it ({fixes}), a graph for each size{keep}"
    asks = does.needed(_ASKS)
    sides = f"where {asks} asks for it, each side is compiled apart" if asks else ""
    if origin.equal:
        return "; ".join(
            filter(None, (f"with a first call whose sizes differ: {_taken_for_one(origin)}", sides))
        )
    if does.is_any or asks:  # as it was compiled for the second size, where that may not have been so
        fixed = "no help where something of a fixed size is as large at the first call"
        return "; ".join(filter(None, (fixed, sides)))
    return (
        "no help where the code branches on it, makes a Python number, a 0 or a 1 of it, or has something of"
        " a fixed size that is as large at the first call"
    )


def of_generation(origin: Origin) -> str:
    """What to do about all that generate() has compiled again: prompts, single tokens, a cache that grows."""
    return (
        f"generate() at {origin.where} runs the model on a prompt, then on single tokens with what it keeps:"
        " a graph for each of the two is normal. Where the model supports it, cache_implementation='static'"
        " in that call gives a cache of one size; prompts of few lengths (pad_to_multiple_of= of the"
        " tokenizer) save the rest"
    )


def _of_no_size(guard: Guard, origin: Origin, does: Taken) -> str | None:
    """Of a size that no argument's follows: of an object's own tensor, or of what data gives."""
    if origin.sizes and origin.made is not None and origin.made.is_of_arguments and not origin.numbers:
        return None  # however it is computed
    follows = bool(origin.sizes) and _follows_one(guard, origin)
    if (guard.source or "").startswith("self.") and does.remakes:
        return (
            f"{guard.source} is made anew in line {does.remakes} where it does not serve any more: make it"
            " once, before the compiled call, as large as it can become, and take the part that is needed"
        )
    if (guard.source or "").startswith("self.") and not follows and _is_only_apart(guard):
        return (
            f"{guard.source} came with another size than before ({_seen(guard)} were seen): it was set anew"
            " between the calls, or is another object's. Torch compiles sizes 0 and 1 apart from all others,"
            " also with dynamic=True: one graph more, once. To save it, keep such a size from coming"
        )
    if (guard.source or "").startswith("self.") and not follows:
        return (
            f"{guard.source} came with another size than before ({_seen(guard)} were seen): it was set anew"
            " between the calls, or is another object's. That is one version more of each graph that takes"
            f" it, and after the second size torch makes it dynamic. To save that compile, {_BY_REMEDY}"
        )
    if origin.sizes and not follows and (told := _by_source(origin)):
        return (
            f"no size{_whole(origin)} changed as that of {guard.source} did ({_seen(guard)} were seen): it"
            f" comes from {told}. After the second size torch makes it dynamic. To save that compile, pad to"
            f" a fixed size, or {_BY_REMEDY}"
        )
    if origin.sizes and not follows:
        return (
            f"no size{_whole(origin)} changed as that of {guard.source} did ({_seen(guard)} were seen): it"
            " comes from data, as how many a mask selects, from another one of several tensors (items of a"
            " list), from what the model keeps, or from another call or model that runs this code. After the"
            f" second size torch makes it dynamic. To save that compile, pad to a fixed size, or {_BY_REMEDY}"
        )
    return None


def _size(guard: Guard, origin: Origin | None, times: int, does: Taken) -> str:
    if _OWN.search(guard.expression):
        return _own_tensor(guard)
    if "___from_numpy" in guard.expression and _is_only_apart(guard):
        return (
            f"torch compiles sizes 0 and 1 apart from all others, and dimension {guard.dimension} of"
            f" {guard.source} came with {listed(guard.values)}: one graph more, made once, whatever dynamic="
            " says. To save it, pass no such size"
        )
    if "___from_numpy" in guard.expression:
        return (
            f"an array cannot be marked: {_BY_REMEDY}, or make tensors of the arrays in the caller (with"
            " torch.from_numpy there, in place of any in here) and call maybe_mark_dynamic(…,"
            f" {guard.dimension}) on each whose size varies with it"
        )
    if "_base" in (guard.source or "") and (said := _equal_sizes(guard)):
        return said
    if origin is None and (does.is_one or does.parts) and not of_strides(guard):
        say = _one_each if does.is_one else _two_sides
        return say(f"dimension {guard.dimension} of {guard.source}", guard, does)
    if origin is None or of_strides(guard):  # which no size of the call says
        return remedy(guard)
    if _CACHE.search(guard.source or ""):
        return (
            f"{guard.source} is a cache, and its sizes follow the tokens: after the second size torch makes"
            f" the dimension dynamic. {_static_cache(guard, origin)} saves this compile"
        )
    if number := very_number(guard, origin):
        return _decided_by_value(guard, origin, number, does)
    if (said := _of_no_size(guard, origin, does)) is not None:
        return _of_one(guard) if _is_apart_from_dynamic(guard) else said
    return _decided(guard, origin, times, does) if origin.sizes else _of_none(guard, origin, does)


def _is_only_apart(guard: Guard) -> bool:
    """Whether a size of 0 or 1 is why it was compiled again."""
    others = [value for value in guard.values if value not in SPECIAL_SIZES]
    return len(others) < A_SECOND and bool(SPECIAL_SIZES & set(guard.values))


def _by_source(origin: Origin) -> str:
    """What the source says a size comes of but arguments: ``data (line 7 of net.py)``; or empty."""
    made = origin.made
    if made is None or not (made.data or made.kept):
        return ""
    named = sorted((PurePath(file).name, line) for file, line in made.sure)[:_SEVERAL]
    lines = f" ({listed([f'line {line} of {file}' for file, line in named])})" if named else ""
    parts = ["what the model keeps"] * made.kept + [f"data{lines}"] * made.data
    return " or ".join(parts)


def very_number(guard: Guard, origin: Origin) -> tuple[str, str, str] | None:
    """The number of the call that had the very values of a size, where no size of the call had them."""
    came = guard.expected, guard.actual
    if origin.made is None or origin.same_call or any((str(s.old), str(s.new)) == came for s in origin.sizes):
        return None
    return next((one for one in origin.numbers if one[1:] == came), None)


def _of_none(guard: Guard, origin: Origin, does: Taken) -> str:
    """Of a size where none of the call's differs."""
    if (said := _by_caller(guard, origin, does)) is not None:
        return said
    if origin.same_call:
        return _several_times(guard, origin)
    if origin.mixed:
        sizes = dict.fromkeys(f"dimension {one.dimension} of {one.argument}" for one in origin.mixed)
        return (
            f"dimension {guard.dimension} of {guard.source} ({_seen(guard)} were seen) is that of"
            f" {listed(list(sizes)[:_MOST_MIXED])}{_whole(origin)} at some of the compiles and of something"
            " else at others, as where the function is called for several things. After the second size torch"
            f" makes it dynamic, in each mode. To save that compile, pad each to one size, or {_BY_REMEDY}"
        )
    numbers = [one for one in origin.numbers if _kind(one[1]) == _kind(one[2]) == "int"]
    if numbers := [one for one in numbers if _may_follow(guard, one)]:
        return _decided_by_value(guard, origin, numbers[0], does)
    if _is_apart_from_dynamic(guard):
        return _of_one(guard)
    if told := _by_source(origin):
        return (
            f"no size{_whole(origin)} differs: {guard.source} has its size from {_of_numbers(origin)}{told}"
            f" ({_seen(guard)} were seen). Keep that the same, pad to a fixed size, or {_BY_REMEDY}"
        )
    if origin.opaque:
        return (
            f"of the tensors that are passed by themselves none differs in size: {guard.source} has its size"
            f" ({_seen(guard)} were seen) from {_of_numbers(origin)}what is passed inside an object"
            f" ({listed(origin.opaque)}{_whole(origin)}), from the model's own state, from how many things"
            " are passed, or from data. After the second size torch makes it dynamic. To save that compile,"
            f" pad to a fixed size, or {_BY_REMEDY}"
        )
    return (
        f"no size{_whole(origin)} differs: {guard.source} has its size from {_of_numbers(origin)}the model's"
        f" own state, from how many things are passed, or from data ({_seen(guard)} were seen). Keep that the"
        f" same, pad to a fixed size, or {_BY_REMEDY}"
    )


_MOST_MIXED = 4


def _is_apart_from_dynamic(guard: Guard) -> bool:
    """Whether a 0 or a 1 came where the compiled code takes any other size."""
    return guard.cause == "symbolic_shape" and guard.actual in SPECIAL_SIZES


def _of_one(guard: Guard) -> str:
    """Of a 0 or a 1 that comes of no size of the call: of data, or of how the code cuts and groups."""
    return (
        f"torch compiles sizes 0 and 1 apart from all others, whatever dynamic= says, and dimension"
        f" {guard.dimension} of {guard.source} came with {guard.actual}, which no size of the call tells: one"
        " graph more, once. To save it, keep the code from making such a size, or repair the break that makes"
        " this a compile of its own"
    )


def _by_caller(guard: Guard, origin: Origin, does: Taken) -> str | None:
    """Of a size of which no argument tells: a loop over it, or two callers with a size each."""
    if does.is_range:
        return (
            f"{does.unrolled} is unrolled over dimension {guard.dimension} of {guard.source}, so each size"
            f" ({_seen(guard)} were seen) is compiled, whatever dynamic= says: keep the sizes few, or compile"
            " what the loop does and leave the loop to Python"
        )
    two_callers = origin.other != origin.entry and origin.other and not origin.same_call
    if not two_callers or is_specialized(guard, origin):
        return None
    apart = (
        "torch compiles sizes 0 and 1 apart from all others, a graph for each, made once"
        if SPECIAL_SIZES & {guard.expected, guard.actual}
        else "it is one compile, and after the second size torch makes it dynamic"
    )
    return (
        f"this code is run by {origin.other}() and by {origin.entry}(), each with its own size of"
        f" {guard.source} ({_seen(guard)} were seen): {apart}"
    )


def _of_numbers(origin: Origin) -> str:
    """What ints of the call a size may be made of, as by a slice that is shorter at the end."""
    names = [name for name, *both in origin.numbers if set(map(_kind, both)) == {"int"}]
    return f"a number that is passed ({listed(names[:_SEVERAL])}), from " if names else ""


def _may_follow(guard: Guard, number: tuple[str, str, str]) -> bool:
    """Whether a size is a number that changed with it, or a multiple of it, or as much more than it."""
    if not all(map(_is_count, (guard.expected, guard.actual, *number[1:]))):
        return True
    before, after = int(guard.expected or 0), int(guard.actual or 0)
    old, new = map(int, number[1:])
    return before * new == after * old or after - before == new - old


def _follows_one(guard: Guard, origin: Origin) -> bool:
    """Whether a guarded size changed as one of the call did, or as the product of two."""
    if guard.cause != "size" or not all(map(_is_count, (guard.expected, guard.actual))):
        return True
    if origin.direct:
        grew = int(guard.actual or 0) > int(guard.expected or 0)
        return any((size.new > size.old) == grew for size in origin.sizes)
    if (guard.source or "").startswith("self."):  # kept from another call: only the very values tell
        values = {(str(size.old), str(size.new)) for size in origin.sizes}
        return (guard.expected, guard.actual) in values
    alone_or_two = (*((size,) for size in origin.sizes), *combinations(origin.sizes, 2))
    return any(may_come_of(guard, some) for some in alone_or_two)


def _is_count(value: str | None) -> bool:
    return value is not None and value.isdecimal()


def _static_cache(guard: Guard, origin: Origin) -> str:
    if "past_key_value" not in (guard.source or "") and origin.by is None:
        return (
            "A tensor of full length that is made once (torch.zeros) and written at the position"
            " (index_copy_), with a mask for what is not written yet,"
        )
    if origin.generates:
        return (
            "Where the model supports it, cache_implementation='static' in the call of generate() at"
            f" {origin.where}"
        )
    return "A cache of fixed size (transformers.StaticCache, cache_implementation='static')"


def _own_tensor(guard: Guard) -> str:
    return (
        f"{guard.source} is a parameter or buffer: several modules, or one that was changed, share this"
        " function's code, and each of their sizes is a version. Nothing to do for a few; for many compile"
        " what calls them, so that they are inlined, set torch._dynamo.config.force_parameter_static_shapes"
        " = False, with which sizes of parameters become dynamic, or raise"
        " torch._dynamo.config.recompile_limit"
    )


def is_specialized(guard: Guard, origin: Origin) -> bool:
    """Whether a size stayed static though torch made it dynamic: the code needs it as a Python number."""
    return _is_one_by_one(guard, origin) and not origin.kept_static


def _is_one_by_one(guard: Guard, origin: Origin) -> bool:
    """Whether more sizes were compiled than the first two of each mode."""
    return guard.cause == "size" and len(set(guard.values)) >= _STILL_STATIC and not origin.one_each


def becomes_one(guard: Guard) -> bool:
    """Whether torch may ask if what the code makes of a size is 0 or 1: ``1 + (size - 1) // 64 != 1``."""
    return guard.cause == "symbolic_shape" and _BECOMES_ONE.search(guard.expected or "") is not None


def _of_condition(guard: Guard, origin: Origin, does: Taken) -> str:
    """Of what a graph for all sizes holds for, where that did not hold."""
    size = origin.sizes[0]
    if does.is_one and VERY_ONE.match(guard.expected or "") and (said := _of_fixed(guard, origin, does)):
        return said  # as of the number of pieces that a loop runs over
    if becomes_one(guard) and not does.needed(_BRANCHES):
        return (
            f"dimension {size.dimension} of {size.argument}{_whole(origin)} came with"
            f" {_seen(guard) or size.new}, and the graph holds where {guard.expected}: for others a size that"
            " the code makes of it is 0 or 1, which torch compiles apart from all others, whatever dynamic="
            f" says, unless it branches on it. That is one graph more, once; to save it, {_pad(size)} for"
            " which that holds"
        )
    if (fixed := _OTHER_THAN.fullmatch(guard.expected or "")) and not does.needed(_BRANCHES):
        return (
            f"dimension {size.dimension} of {size.argument}{_whole(origin)} came with {fixed['n']}, which is"
            " as large as something of a fixed size that it meets, a buffer or a parameter: a graph for that"
            " and one for all others is normal, made once"
        )
    if "/" in (guard.expected or "") and VERY_ONE.match(guard.expected or "") and not does.needed(_BRANCHES):
        made = str(guard.expected).rpartition(" == ")[0]
        return (
            f"the code makes a Python number of {made}, where size is dimension {size.dimension} of"
            f" {size.argument}{_whole(origin)}: each number is a version, whatever dynamic= says: pad to few"
            " sizes, or keep them such that it is the same"
        )
    return _equal_sizes(guard) or (
        f"the code holds only where {guard.expected}: dimension {size.dimension} of"
        f" {size.argument}{_whole(origin)} came with {_seen(guard) or size.new}. Keep to it, or take away"
        " the branch on it"
    )


def _of_fixed(guard: Guard, origin: Origin, does: Taken) -> str | None:
    """Of a size of which the code makes a constant."""
    size = origin.sizes[0]
    needs = does.fixes
    one_each = does.is_range or does.as_number
    if needs and does.is_unsure:
        return (
            f"the code makes a Python number of dimension {size.dimension} of {size.argument}{_whole(origin)}"
            f" in a branch ({needs}): where that runs, each size ({_seen(guard)} were seen) is compiled,"
            f" whatever dynamic= says; else {_BY_REMEDY}; or {_pad(size)}"
        )
    if needs and (does.is_one or is_specialized(guard, origin) or (one_each and guard.cause == "size")):
        what = f"dimension {size.dimension} of {size.argument}{_whole(origin)}"
        return _one_each(what, guard, does, _pad(size))
    return None


def _one_each(what: str, guard: Guard, does: Taken, pad: str = "pad to one size") -> str:
    keep = f"keep whole numbers, with {whole}; else " if (whole := _whole_numbers(does)) else ""
    each = "each whole quotient of the sizes" if does.is_quotient else "each size"
    instead = next((way for name, way in _ANY_NUMBER.items() if name in does.fixes), "")
    counted = f"use {instead} in its place, which takes any size; or " * bool(instead)
    return (
        f"the code makes a Python number of {what} ({does.fixes}), so {each} ({_seen(guard)} were seen) is"
        f" compiled, and dynamic=True does not help: {keep}{counted}{pad}, or {_elsewhere(does)}"
    )


_ANY_NUMBER = {"linspace": "torch.arange", "one_hot": "(i[..., None] == torch.arange(n)).long()"}


def _whole_numbers(does: Taken) -> str:
    return f"// and % in place of {does.divided}" if does.divided else ""


def _two_sides(what: str, guard: Guard, does: Taken, pad: str = "pad to one size") -> str:
    return (
        f"{does.parts} asks for {what}, and the answer is another one for {guard.expected} than for"
        f" {guard.actual}: a graph for each side is normal, made once, whatever is marked as dynamic. To save"
        f" one, {pad}"
    )


def _of_each(guard: Guard, origin: Origin, does: Taken) -> str:
    """Of a size of which more than the first two of each mode were compiled."""
    size = origin.sizes[0]
    if asks := does.needed(_ASKS):
        return (
            f"{asks} asks for dimension {size.dimension} of {size.argument}{_whole(origin)}, which came with"
            f" {_seen(guard)}: each side is compiled apart, and anew where a tensor of that size is met for"
            f" the first time on the other one. Test it in the caller, or {_BY_REMEDY}"
        )
    return (
        f"dimension {size.dimension} of {size.argument}{_whole(origin)} came with {_seen(guard)},"
        " compiled one by one, where torch makes a size dynamic by itself after the second one of each"
        " mode (with gradients or without, training or evaluation). Where dynamic=False or mark_static"
        " keeps it fixed, take that out; where the code makes a Python number of it (a loop over it, a"
        " split, int()), or an operation of torch needs one (as fill_diagonal_ does), or numpy works with"
        " it, no setting helps:"
        f" {_pad(size)}"
    )


def _decided(guard: Guard, origin: Origin, times: int, does: Taken) -> str:
    size = origin.sizes[0]
    is_own = origin.direct or size.argument == guard.source
    where = "" if is_own else f", from which {guard.source} has its size,"
    ones = sorted(SPECIAL_SIZES & {str(size.old), str(size.new), *guard.values})
    if guard.cause == "symbolic_shape" and not ones:
        return _of_condition(guard, origin, does)
    others = [value for value in guard.values if value not in SPECIAL_SIZES]
    if ones and len(others) < A_SECOND:
        return _zero_or_one(guard, size, origin, where, ones, times)
    if (said := _of_fixed(guard, origin, does)) is not None:
        return said
    if ones:
        return (
            f"dimension {size.dimension} of {size.argument}{_whole(origin)} came with {listed(others)}: for"
            f" the compile of the second size {_BY_REMEDY}{_how_far(origin, does)}."
            f" {listed(ones)} came too, and torch compiles sizes 0 and 1 apart from all others, one graph for"
            f" each. {_apart(size, origin)}"
        )
    if _is_one_by_one(guard, origin):
        return _of_each(guard, origin, does)
    if rival := next(iter(origin.rivals), None):
        return (
            f"{guard.source} changed as dimension {size.dimension} of {size.argument} did, and as"
            f" {rival.dimension} of {rival.argument}{_whole(origin)}: its size is of one of them, or of data."
            f" It is one compile: after the second size torch makes it dynamic. To save it, {_pad(size)}, or"
            f" {_BY_REMEDY}"
        )
    if not origin.direct or origin.by is not None:
        of = f"dimension {size.dimension} of {size.argument}{_alike(origin)}{_whole(origin)}"
        is_itself = origin.direct and guard.source in (size.argument, size.parameter)
        said = f"{of} came with {_seen(guard)}" if is_itself else f"{guard.source} has its size from {of}"
        return (
            f"{said}: it is one compile of each version, and after"
            f" the second size torch makes it dynamic. To save it, {_pad(size)}, or"
            f" {_BY_REMEDY}{_how_far(origin, does)}"
        )
    return _marked(guard, origin, does)


def _marked(guard: Guard, origin: Origin, does: Taken) -> str:
    """Of an argument's own size, which the caller can mark."""
    size = origin.sizes[0]
    if does.parts and not origin.kept_static:
        what = f"dimension {size.dimension} of {size.argument}{_whole(origin)}"
        return _two_sides(what, guard, does, _pad(size))
    unnamed = list(dict.fromkeys(_whole_argument(one) for one in origin.sizes if not one.named))
    names = _free_names(unnamed, origin.used)
    marks = _marks(origin.sizes, names)
    other = f"; or {_pad(size)}"
    numbers = [name for name, *both in origin.values if {*map(_kind, both)} <= {"int", "float"}]
    if numbers:
        how = f"pass dynamic=True to torch.compile ({listed(numbers)} changed too, and a number has no mark)"
        other = ""
    elif len(marks) > _SEVERAL:
        how = "pass dynamic=True to torch.compile"
    else:
        how = f"{_naming(names)}call {listed(marks)} before the call at {origin.where}"
        how += f" (and so before that at {origin.earlier}, which was compiled before)" * bool(origin.earlier)
    asks = does.needed(_ASKS)
    sides = f"; {asks} asks for the size, and each side is compiled apart" if asks else ""
    if cut := does.needed(("slice",)):
        sides += f"; {cut} cuts by it: what is cut there has to be longer than the first call's"
    equal = f"; but {_taken_for_one(origin)}" if origin.equal and how.startswith("pass dynamic=True") else ""
    if guard.resumed and how.startswith(("give", "call")):
        sides += f"; what is made of it in front of a break has no mark: there {_BY_REMEDY}"
    kept = "where dynamic=False or mark_static holds for this call, take that out; " * origin.kept_static
    return (
        f"{kept}{how}: that is for the compile of the second size, after which torch makes a dimension"
        f" dynamic by itself; breakscope remedy tries what it saves{sides}{equal}{_of_modes(origin)}{other}"
    )


def _of_modes(origin: Origin) -> str:
    """That a call came in another mode too, which may be compiled whatever its sizes are."""
    if not origin.modes:
        return ""
    said = f"; the call came in another mode as well ({listed(origin.modes)}), which the code may have a"
    return f"{said} version for whatever the sizes are"


def _naming(names: Mapping[str, str]) -> str:
    """What is to be given a name before it can be marked, and which."""
    own = [one for one, name in names.items() if one == name]
    others = [f"what is passed as {one} the name {name}" for one, name in names.items() if one != name]
    if len(own) > 1:
        others = [f"names to what is passed as {listed(own)}", *others]
    elif own:
        others = [f"what is passed as {own[0]} a name", *others]
    return f"give {' and '.join(others)}, and " if others else ""


def _alike(origin: Origin) -> str:
    """Another argument that changed by the same: which of them a size comes from its value does not tell."""
    others = [one.argument for one in together(origin) if one.argument != origin.sizes[0].argument]
    return f" (or of {others[0]}, which changed alike)" if others else ""


def _elsewhere(does: Taken) -> str:
    """What Python can do with a number that compiled code needs as a constant."""
    if does.is_range:
        return "compile what the loop does and leave the loop to Python"
    if "torch's rnn.py" in does.fixes:
        return (
            "take torch._dynamo.config.allow_rnn = True back, with which an RNN is unrolled over its steps,"
            " and leave the RNN eager"
        )
    if does.listed:
        return "write torch.arange(…, device=x.device) in place of the range, which is a list of Python's"
    if does.plain.startswith("torch.linspace") and does.fixes == does.plain:
        return (
            "write begin + torch.arange(n, device=x.device) * ((end - begin) / (n - 1)) in place of"
            " torch.linspace(begin, end, n), which takes any n above 1 (last digits may differ)"
        )
    if keyed := does.needed(("key",)):
        return f"do in the caller what needs it as {keyed}, and pass in what comes of it"
    return "do in the caller what needs it, and pass in what comes of it as tensors"


def _free_names(arguments: Sequence[str], used: frozenset[str]) -> dict[str, str]:
    """A name for each argument that has none where it is passed: its own, or one that is not used there."""
    names: dict[str, str] = {}
    for one in arguments:
        own = [one] if one.isidentifier() else []
        others = ("x", "y", "z", *(f"x{number}" for number in range(len(used) + len(arguments))))
        taken = {*used, *names.values()}
        names[one] = next(name for name in (*own, *others) if name not in taken)
    return names


def _marks(sizes: Sequence[Size], names: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """A call for each argument: sizes that change together save nothing where only one of them is marked."""
    dimensions: dict[str, set[int]] = {}
    for size in sizes:
        whole = _whole_argument(size)
        argument = size.argument if size.named else names.get(whole, whole) + size.argument[len(whole) :]
        dimensions.setdefault(argument, set()).add(size.dimension)
    return [_mark(argument, sorted(which)) for argument, which in dimensions.items()]


def _whole_argument(size: Size) -> str:
    """What the caller can name: ``batch`` of ``batch['ids']``, where the dict is made in the call."""
    found = re.match(r"[^.\[]+", size.argument)
    return found[0] if found else size.argument


def _mark(argument: str, which: Sequence[int]) -> str:
    # mark_dynamic raises where the code needs one size, as the channels of a convolution.
    shown = str(which[0]) if len(which) == 1 else f"({', '.join(map(str, which))})"
    return f"torch._dynamo.maybe_mark_dynamic({argument}, {shown})"


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


_IN_LIST = re.compile(r"\].*\[\d+\]")  # of ``args[0][1]['boxes']``: one of a list has no batch


def _pad(size: Size) -> str:
    if size.dimension == 0 and size.new < size.old and not (size.no_batch or _IN_LIST.search(size.path)):
        return "pad to one size (drop_last=True where it is a smaller last batch)"
    if size.tokens and size.dimension == 1:
        return "pad to one size (pad_to_multiple_of= of the tokenizer or collator keeps the sizes few)"
    return "pad to one size"


def _zero_or_one(guard: Guard, size: Size, origin: Origin, where: str, ones: list[str], times: int) -> str:
    each = " for each" if len(ones) > 1 else ""
    # A flag, a mode or an option that is there or not makes several versions of each size.
    often = ", once" if times <= len(ones) else ", and as many as what else differs makes of it"
    at = "at" if {str(size.new), guard.actual} & set(ones) else "before the call at"
    # A 1 that the call's size was not is what the code makes of it, or a size of a layer's own.
    is_other = guard.actual in ones and str(size.new) not in ones
    what = (
        f"dimension {guard.dimension} of {guard.source}"
        if is_other
        else f"dimension {size.dimension} of {size.argument}{where}"
    )
    where_it_came = f"{at} {origin.where}"
    if at != "at" and origin.earlier:  # another call passes other variables
        what = f"dimension {size.dimension} of {size.parameter or guard.source}"
        where_it_came = f"in the call at {origin.earlier}"
    came = (
        f"torch compiles sizes 0 and 1 apart from all others, and {what} came with {' and '.join(ones)}"
        f" {where_it_came}: one graph more{each}{often}"
    )
    return f"{came}. {_apart(size, origin)}"


def _apart(size: Size, origin: Origin) -> str:
    # Where what is in no list changed alike in its first dimension, all of it is one batch.
    is_batch = size.dimension == 0 and any(
        not (_IN_LIST.search(one.path) or one.dimension) and (one.old, one.new) == (size.old, size.new)
        for one in origin.sizes
    )
    items = {(one.dimension, one.old, one.new) for one in origin.sizes}
    is_batch |= size.dimension == 0 and len(origin.sizes) > 1 and len(items) == 1
    if _IN_LIST.search(size.path) and not is_batch:
        return (
            "That is normal where an item has one thing, or none; but each item of the list has a graph for"
            " 0, for 1 and for more, and these multiply: where they come near the recompile limit, pad all"
            " items to one length, or keep what goes over the list out of what is compiled"
        )
    if size.dimension:
        return (
            "That is normal where single items follow a whole sequence, as in generation, or where another"
            " model has that size; else pad it"
        )
    return (
        "That is normal where single items, or none, are meant (one state, one image); a short last batch is"
        " left out with drop_last=True, or padded"
    )


def _several_times(guard: Guard, origin: Origin) -> str:
    return (
        f"one call{_at(origin)} runs this function on several sizes of {guard.source} ({_seen(guard)}), so"
        " marking an argument does not help: torch makes the dimension dynamic after the second size. One"
        " more compile is normal; if it grows, compile what calls it as a whole, or pass dynamic=True"
    )


def _is_one_call(origin: Origin | None) -> TypeGuard[Origin]:
    """Whether what differs differs within one call, and is no argument of that."""
    return origin is not None and origin.same_call and not origin.direct


def _at(origin: Origin | None) -> str:
    return f" at {origin.where}" if origin is not None and origin.where else ""


def _equal_sizes(guard: Guard) -> str | None:
    """Of two sizes that were equal where a graph was made, which takes them for one then."""
    sides = _EQUAL.fullmatch(guard.expected or "")
    if sides is None or sides["of"] == sides["other"]:
        return None
    base = "; they are what views are of: pass .clone() of each view, or one tensor for all of them"
    return (
        f"{sides['of']} and {sides['other']} were equal at first, so torch takes them for one, with"
        " dynamic=True as well, until they differ: that is one compile more, made"
        f" once{base if '_base' in sides['of'] else '; a first call in which they differ saves it'}"
    )


def asks_for_several(guard: Guard) -> bool:
    """Whether a guard is about several sizes together: ``x.size(0) * x.size(1) >= 16``."""
    sizes = set(_A_SIZE.findall(guard.expected or ""))
    about_sizes = guard.cause == "symbolic_shape" and not of_strides(guard)
    return about_sizes and len(sizes) > 1 and _equal_sizes(guard) is None


_A_SIZE = re.compile(r"[\w.\[\]']+\.size\(\d+\)")


def _decided_by_value(guard: Guard, origin: Origin, number: tuple[str, str, str], does: Taken) -> str:
    name, old, new = number
    if does.is_range:
        return (
            f"the size of {guard.source} follows {name}{_whole(origin)} ({old}, then {new}), and a loop over"
            " it is unrolled: each is a version, whatever dynamic= says. Keep the numbers few, or compile"
            " what the loop does and leave the loop to Python"
        )
    if ones := sorted(SPECIAL_SIZES & {old, new}):
        return (
            f"the size of {guard.source} follows {name}{_whole(origin)} ({old}, then {new}), and torch"
            f" compiles sizes 0 and 1 apart from all others: a graph for {' and '.join(ones)} is one more,"
            " made once, whatever dynamic= says"
        )
    return (
        f"the size of {guard.source} changed with {name}{_whole(origin)} ({old}, then {new}): keep it the"
        f" same, or {_BY_REMEDY}"
    )


def _turns(guard: Guard) -> str:
    return (
        f"{guard.source} is how often a loop runs, and the loop is unrolled: each number of turns"
        f" ({_seen(guard)} were seen) is a version, and dynamic=True does not help. Keep the numbers few, or"
        " compile what the loop does and leave the loop to Python"
    )


# -- values -----------------------------------------------------------------------------------------------


def _value(guard: Guard, origin: Origin | None, times: int, does: Taken) -> str:
    name = guard.source or "the value"
    if variable := _VARIABLE.search(guard.expression):
        return (
            "read the environment variable once, at import, into a constant: compiled code is guarded on"
            f" {variable['name']}, and compiled again for each of its values"
        )
    kinds = {_kind(value) for value in guard.values}
    if kinds == {"int", "float"} and (asks := does.needed(_ASKS)):
        return (
            f"{asks} asks for {name} ({_seen(guard)} were seen): a version for each side is normal, made"
            " once, as of a rate that is 0 in evaluation"
        )
    floats = [value for value in guard.values if _kind(value) == "float"]
    if kinds == {"int", "float"} and (does.is_one or len(floats) > A_SECOND):
        return f"{_constant(guard, name, does)}. An int is a version of its own as well: float({name})"
    if kinds == {"int", "float"}:
        return (
            f"pass {name} always as a float, float({name}): ints and floats are compiled apart, and after its"
            " second value torch treats a float as symbolic"
        )
    if "None" in kinds:
        return _optional(guard, does, origin)
    if kinds == {"True", "False"}:
        return _flag(guard, name, origin)
    if kinds == {"str"} and (asks := does.needed(_ASKS)):
        return (
            f"{asks} asks for the text in {name} ({_seen(guard)} were seen): a version for each is normal,"
            " made once. To save them, make the choice in the caller, and compile what it chooses"
        )
    if kinds == {"str"}:
        return (
            f"each text in {name} is a version ({_seen(guard)} were seen): for a few that come again that is"
            " normal; else keep it the same. Where it is made into numbers, do that before the compiled call"
            " and pass a tensor; where it only names things, as a key or in a message, use it outside of the"
            " compiled function"
        )
    if len(kinds) > 1 and "." in name and any("Tensor(" in value for value in guard.values):
        holder = name.rpartition(".")[0]
        return (
            f"{name} is a number first and a tensor later ({_seen(guard)}), a version for each: begin it as a"
            f" tensor, torch.zeros(()), and so with what else {holder} counts, of which each value is a"
            f" version; or return what {holder} is given, and keep it there in the caller"
        )
    if len(kinds) > 1:
        return f"pass {name} always as one type: {_seen(guard)} are versions of their own"
    if ".param_groups[" in name or guard.cause == "constant_value":
        return remedy(guard)
    return _number(guard, origin, times, does)


def _number(guard: Guard, origin: Origin | None, times: int, does: Taken) -> str:
    name = guard.source or "the value"
    if keyed := does.needed(("key",)):
        return (
            f"look up in the caller what {name} is the key of, and pass in what comes of it: {keyed} asks for"
            f" it, so no tensor can take its place, and each value ({_seen(guard)} were seen) is compiled"
        )
    if guard.cause == "int_value" and (why := _always_constant(guard, does)):
        return f"{why}, compiled for each value ({_seen(guard)} were seen), and dynamic=True does not help"
    if does.by_numpy or "==" in (guard.expected or ""):
        return _by_numpy(guard, name, does)
    given = origin is not None and any(one == name for one, _, _ in origin.values)
    what = "it" if given else name
    asks = does.needed(_ASKS) if times <= 1 and guard.cause == "int_value" else ""
    if asks and (SPECIAL_SIZES & {guard.expected, guard.actual} or not (guard.expected or "").isdecimal()):
        return (
            f"{asks} asks for {name}, and each side of a branch is compiled apart: a version for each"
            f" ({_seen(guard)} were seen) is normal, made once. To save one, do in the caller what the branch"
            " does"
        )
    if asks:
        return (
            f"one compile for a second value is normal ({_seen(guard)} were seen), made once: torch treats"
            f" {name} as symbolic from then on, and {asks} asks for it, so that each side"
            f" stays a version. To save this one, keep the value the same, or {_BY_REMEDY}"
        )
    if times <= 1 and guard.cause == "int_value" and not does.is_one:
        but = "" if does.is_any else ", but where an operation or a branch needs the number"
        normal = (
            f"one compile for a second value is normal: torch treats {name} as symbolic from then on{but}."
        )
        if does.made and guard.resumed:
            return (
                f"{normal} It is made here (line {does.made}), and a graph break hands it on: to save this"
                " compile, repair that break"
            )
        return f"{normal} To save this one, keep the value the same, or {_BY_REMEDY}"
    if (times <= 1 and not does.is_one) or (guard.cause == "float_value" and len(guard.values) <= A_SECOND):
        changed = origin.values if origin is not None and given else ()
        # An int, as a step, is often asked by a branch: a tensor of it would break there.
        too = [one for one, *both in changed if one != name and {*map(_kind, both)} == {"float"}]
        return _second_float(guard, name, what, does, too)
    only_asked = bool(does.needed(_ASKS)) and not does.fixes and len(guard.values) <= A_SECOND + 1
    if guard.cause == "int_value" and not does.is_one and (only_asked or not _stays_constant(guard)):
        return _few_values(guard, name, does)
    return _constant(guard, name, does)


def _by_numpy(guard: Guard, name: str, does: Taken) -> str:
    """Of a number that numpy computes with while Dynamo traces: what it gives is a constant of the code."""
    takes = (
        f"numpy takes {name} ({does.by_numpy})"
        if does.by_numpy
        else f"the code needs what it makes of {name}"
    )
    return (
        f"{takes} as a constant, so each value ({_seen(guard)} were seen) is compiled: compute in the caller"
        " what it is for, and pass that in, as a tensor where it varies"
    )


_BRANCHES: tuple[Kind, ...] = ("test", "step", "loop test", "turns")
_ASKS: tuple[Kind, ...] = (*_BRANCHES, "asked")


def _constant(guard: Guard, name: str, does: Taken) -> str:
    if guard.cause == "float_value" and (asks := does.needed(_ASKS)):
        return _sides(guard, name, asks)
    return (
        f"the code needs {name} as a constant ({does.needs or does.given or _CONSTANTS}), so each value is"
        f" compiled, and dynamic=True does not help ({_seen(guard)} were seen): keep the values few, or do in"
        f" the caller what needs {name}, and pass what it gives as tensors"
    )


def _symbolic_float(name: str) -> str:
    return (
        f"nothing to do for a second value: torch treats the float {name} as symbolic from then on, where"
        " neither numpy nor Python needs its value, nor, under inductor, an operation other than arithmetic"
        " with a tensor."
    )


def _second_float(guard: Guard, name: str, what: str, does: Taken, too: Sequence[str]) -> str:
    """Of a float; ``what``: as it is passed, ``too``: numbers that changed at the same call."""
    symbolic = _symbolic_float(name)
    if does.made:
        here = f"It is made here (line {does.made}), and a graph break hands it on"
        return f"{symbolic} {here}: to save this compile, repair that break"
    if asks := does.needed(_ASKS):
        return f"{symbolic} Python asks for its value ({asks}), so a tensor does not serve in its place"
    hold, as_ = ("make", "a") if _GLOBAL.search(guard.expression) else ("pass", "as a")
    others = f" (and {listed(too[:_SEVERAL])}, which changed at the same call)" if too else ""
    return (
        f"{symbolic} To save this compile, {hold} {what}{others} {as_} tensor, torch.tensor({name}), where it"
        " is only calculated with"
    )


def _flag(guard: Guard, name: str, origin: Origin | None) -> str:
    if item := _ITEM.fullmatch(name):
        return (
            f"{item['of']} holds flags, and each pattern of them that comes is a version: pass them as one"
            " tensor of bools, or ask in the caller what is needed of them"
        )
    if _is_one_call(origin):
        return (
            f"{name} is a flag, and one call{_at(origin)} runs this function with True and with False: a"
            " version for each is normal, made once, unless an argument of that call can decide it"
        )
    if name.endswith("['capturable']"):
        return (
            "nothing to do: torch itself sets capturable where an optimizer's step is compiled, after which"
            " this code is compiled once more"
        )
    is_global = _GLOBAL.search(guard.expression)
    same = "leave it as it is while the program runs" if is_global else "pass the same at every call"
    return (
        f"{name} is a flag, and True and False are compiled apart: a version for each is normal. To save one,"
        f" {same}"
    )


_UNBROKEN = ", with the break in it repaired"
_CONSTANTS = "a range, a branch, an index of a list, a number of pieces, arithmetic with an array of numpy's"


def _side(guard: Guard, side: str, made: int) -> str:
    """Of a number that is symbolic, and that a branch or an index asks for; ``made``: the line, if here."""
    asks = (
        f"the code asks whether {side} (a branch, or the bounds of an index), and torch compiles each side of"
        f" that, not each value of {guard.source}: that is made once, and normal."
    )
    if made:
        return (
            f"{asks} {guard.source} is made here (line {made}), and a graph break hands it on: to save one"
            " side, test in the caller what it is made of, and pass a bool"
        )
    own = guard.cause == "int_value" and not re.search(r"[<>]", guard.expected or "")
    second = f"; or {_BY_REMEDY}" if own else ""
    return f"{asks} To save one side, test in the caller, and compile a function for each{second}"


def _from_list(does: Taken, also: str = "") -> str:
    """What to do where a number picks from a list of Python's: torch takes any index of a tensor only.

    Args:
        also: what has to be set with it.
    """
    return (
        f"pick from {does.picked} in the caller, and pass in what comes of it: it is a list of Python's, so"
        f" that the index is a constant of the code. Where it holds numbers, one tensor of them{also} does as"
        " well: torch takes any index of that after the second"
    )


def _always_constant(guard: Guard, does: Taken) -> str | None:
    """Where an int stands that no value of dynamic= makes symbolic, and what to do."""
    name = guard.source or "the value"
    if _INDEX.search(guard.expression) and "___from_numpy" in guard.expression:
        return (
            f"make {name} one of Python's numbers where it is made, with float(…) or int(…), outside of what"
            " is compiled: one of numpy's is a constant of the code"
        )
    if _INDEX.search(guard.expression):
        return (
            f"index with one element and take it out, x[{name}.reshape(1)][0], or pass a Python int: {name}"
            " is a tensor of one number that indexes another, and its value is a constant of the code"
        )
    if does.plain:
        return (
            f"keep the values of {name} few, or make in the caller what it is for: {does.plain} takes it as a"
            " constant"
        )
    if does.picked and does.picks_module:
        return (
            f"leave it where the modules are few, or compile them by themselves: {name} picks one of"
            f" {does.picked}, and a version for each is normal"
        )
    if does.picked:
        return f"where {name} has more than a few values, {_from_list(does)}"
    if _DEFAULT.search(guard.expression):
        return f"pass {name} as an argument: the default of a function made anew is a constant of the code"
    if _GLOBAL.search(guard.expression):
        of_global = "an int that is read from a global or a class is a constant of the code"
        if does.needs:
            return (
                f"keep {name} in the caller, and pass in what follows of it, a bool for a branch:"
                f" {does.needs} asks for it, and {of_global}"
            )
        if does.counted:
            return (
                f"call in the caller what counts {name} ({does.counted}), or hold the count in a tensor, and"
                " calculate with tensors what follows of it (no alpha=, which takes a number):"
                f" {of_global}"
            )
        return f"pass {name} as an argument, or hold it in a tensor: {of_global}"
    return None


def _few_values(guard: Guard, name: str, does: Taken) -> str:
    """Of an int that may be symbolic: a third value that is no 0 or 1 tells of a branch or of an index."""
    if asks := does.needed(_ASKS):
        return (
            f"{asks} asks for {name}: torch treats it as symbolic after its second value, but compiles each"
            f" side of a branch apart, and these versions ({_seen(guard)}) are made once. To save them, test"
            f" {name} in the caller, and pass in a bool in its place, which is two"
            + f": all that reads it ({does.read_too}) has to go to the caller with it"
            * bool(does.read_too)
        )
    if [value in SPECIAL_SIZES for value in guard.values[2:]] == [False]:
        return (
            f"versions for {_seen(guard)} were made: torch treats {name} as symbolic after its second value,"
            " but compiles each side of a branch on it, and each value of an index of a list or of modules."
            f" Where they are more than a few, do in the caller what needs {name}"
        )
    return (
        f"torch treats {name} as symbolic after its second value; 0 and 1 where it is a size, and the sides"
        f" of a branch on it, are compiled apart: these versions ({_seen(guard)}) are made once. To save the"
        f" first, {_BY_REMEDY}"
    )


def _stays_constant(guard: Guard) -> bool:
    """Whether values were compiled one by one that a symbolic int would have taken: all but 0 and 1."""
    later = [value for value in guard.values[1:] if value not in SPECIAL_SIZES]
    return len(later) > 1


def _optional(guard: Guard, does: Taken, origin: Origin | None = None) -> str:
    name = guard.source or "the argument"
    if name.endswith(".grad") and guard.expected == "None":
        return (
            f"{name} is None before the first backward, or where the code sets it to None, and a tensor else:"
            " a version for each is normal, made once. Where zero_grad() gives it None again,"
            " zero_grad(set_to_none=False) keeps it"
        )
    if name.endswith(".grad"):
        return (
            f"{name} is there at some calls and None at others: a parameter that is frozen, takes no part, or"
            " was given None by zero_grad() has no gradient. A version for each is normal, made once; to"
            " save one, pass only parameters that have one, or zero_grad(set_to_none=False)"
        )
    if does.made:
        return _handed_on(guard, does)
    if any("Generator" in value for value in guard.values):
        return (
            f"{name} is a torch.Generator at some calls and None at others: a version for each is normal. To"
            " save one, pass one at every call; or draw in the caller what it is for, and pass that"
        )
    if _is_one_call(origin):
        return (
            f"one call{_at(origin)} runs this function with {name} and without: a version for each is normal,"
            " made once"
        )
    if origin is not None and origin.generates and origin.by_before != origin.by and origin.earlier:
        calls = [f"at {origin.earlier}", f"by generate() at {origin.where}"]
        given, left = calls if guard.actual == "None" else reversed(calls)
        return (
            f"{name} is given in the call {given}, and not in one {left}: a version for each is normal, made"
            " once"
        )
    if origin is not None and origin.generates:
        return (
            f"{name} is given by generate() at {origin.where} at some of its steps, and None at others: a"
            " version for each is normal, made once"
        )
    normal = (
        f"{name} is there at some calls and None at others: a version with it and one without is normal for"
        " an optional argument"
    )
    if "bool" in guard.values:
        return f"{normal}, made once: False in the place of None saves none where the other one is True"
    if any(_HOLDS.search(value) for value in guard.values):
        return f"{normal}, made once"  # what it holds has no neutral value
    return (
        f"{normal}. To save one, pass it always as one type, with its neutral value for None, where it has"
        " one of the same sizes and None decides nothing else, such as what is returned"
    )


_HOLDS = re.compile(r"^(list|tuple)$|(dict|cache)$", re.IGNORECASE)


def _kind(value: str) -> str:
    if _INT.match(value):
        return "int"
    try:
        float(value)
    except ValueError:
        return "str" if value[:1] in "'\"" else value if value in ("None", "True", "False") else "other"
    return "float"


def _attribute(guard: Guard, times: int, does: Taken) -> str:
    name = guard.source or "the attribute"
    if name.endswith(".training"):
        return (
            "one compilation for train() and one for eval() is normal; switch once an epoch, not at every"
            f" call ({name})"
        )
    if counter := _STATE.search(guard.expression):
        return (
            f"the number that {name} keeps under {counter['key']!r} is a constant of the code, and a version"
            " is made for each: keep it as a tensor, as torch's optimizers do where they are capturable, or"
            " count outside of the compiled function"
        )
    if does.sets_itself and guard.expected in ("unset", "None"):
        return _set_here(guard, name, does)
    if does.set_by:
        return (
            f"no line here but __init__ sets {name}: objects of {does.set_by} that were made with another"
            " value share this function's code, or it is set from outside (by a script, a method of a base"
            f" class), and each value ({_seen(guard)}) is a version, made once: that is normal for a few. For"
            " many raise"
            " torch._dynamo.config.recompile_limit, or"
            f" compile what calls them, so that they are inlined{_UNBROKEN * guard.resumed}"
        )
    shown = [value for value in guard.values if value not in ("str", "int", "float", "bool")]
    if len(shown) > A_SECOND and set(map(_kind, shown)) == {"None", "int"}:
        return (
            f"let {name} begin with a number, as None is a version of its own; then"
            f" {_int_attribute(guard, name, does)}"
        )
    if "str" in map(_kind, shown) or (len(shown) > A_SECOND and "None" in map(_kind, shown)):
        return (
            f"{name} chooses what runs, and each of its values ({_seen(guard)}) is a version: that is normal"
            " for a few that come again. For many raise torch._dynamo.config.recompile_limit: models of one"
            " class share it, and torch.compiler.reset() empties it between models that follow each other"
        )
    if set(guard.values) == {"True", "False"}:
        how = (
            f"make the first call in eager: the code sets it itself, in {does.sets_itself}, with what it"
            " does once"
            if does.sets_itself
            else "set it before the first call and keep it"
        )
        return (
            f"{name} is a flag, and True and False are compiled apart: a version for each is normal. To save"
            f" one, {how}"
        )
    if "None" in (guard.expected, guard.actual):
        return _optional(guard, does) if name.endswith(".grad") else _empty_at_first(guard, name, does)
    return _number_attribute(guard, name, times, does)


def _number_attribute(guard: Guard, name: str, times: int, does: Taken) -> str:
    if does.of_module and set(map(_kind, guard.values)) == {"float", "int"}:
        return (
            f"write whole numbers that {name} is given as floats (1.0): torch compiles in each whole number"
            f" of a module ({_seen(guard)} were seen), a version for each, and treats a float as symbolic"
            " from its second value on, where no branch asks for it. Or make it a tensor where it is only"
            " calculated with"
        )
    if guard.expected and _kind(guard.expected) == "float":
        return _float_attribute(guard, name, does)
    if re.search(r"[<>]|[!=]=", guard.expected or ""):
        return (
            f"the code branches on {name}, and was compiled for the side where {guard.expected}: one graph"
            " for each side is normal, and made once. To save one, decide it in the caller"
        )
    if guard.expected and _INT.match(guard.expected):
        return _whole_attribute(guard, name, times, does)
    return remedy(guard)


_KINDS_OF_STATE = 3  # none yet, 0 or 1, and any other


def of_kept_state(guard: Guard, package: str, times: int, *, is_any: bool) -> str:
    """Of what a library's object keeps for itself, where no caller can hold it in its place."""
    each = "each value is a version"
    if is_any:
        each = "None and two numbers are a version each, after which torch takes any that no branch asks for"
    if times <= _KINDS_OF_STATE:
        each = "a version for each kind of value is normal, made once"
    if "None" not in guard.values and all(_INT.match(value) for value in guard.values):
        any_other = ", after which torch takes any that no branch asks for" * is_any
        return (
            f"{guard.source} is a number that {package} keeps in its own object ({_seen(guard)} were seen),"
            f" as one that counts: a version more for a second value is normal{any_other}. To save what"
            " it costs, leave the function eager that needs it, with torch.compiler.disable on it"
        )
    return (
        f"{guard.source} is state that {package} keeps in its own object ({_seen(guard)} were seen), and"
        f" {each}. To save that, set it before the"
        " first compiled call to what it has later, and again each time that the object is set up anew, where"
        " it lets you; or leave the function eager that needs it, with torch.compiler.disable on it"
    )


def _set_here(guard: Guard, name: str, does: Taken) -> str:
    is_made = guard.actual in TENSORS
    value = "" if is_made or guard.actual in ("set", "str") else f", {guard.actual}"
    that = "one of the same kind in __init__ or" if is_made else "that"
    return (
        f"the code gives {name} its value itself{value} in {does.sets_itself}: give it {that} before the"
        " first call, or make that call in eager"
    )


def _empty_at_first(guard: Guard, name: str, does: Taken) -> str:
    if does.sets_itself:
        return _set_here(guard, name, does)
    if does.emptied:
        return (
            f"{name} is emptied again in {does.emptied}, and the code fills it: a version with it and"
            " one without is normal, made once"
        )
    return (
        f"give {name} its value in __init__, or call the module once in eager before it is compiled: it is"
        f" {guard.expected} at one call and {guard.actual} at another. Where it is emptied on purpose, a"
        " version with it and one without is normal"
    )


def _whole_attribute(guard: Guard, name: str, times: int, does: Taken) -> str:
    """Of a whole number that an object keeps."""
    if any("ensor" in value for value in guard.values):
        return _float_attribute(guard, name, does)
    if any(re.search("ndarray|numpy", value) for value in guard.values):
        return (
            f"{name} is a number of Python's first and numpy's later ({_seen(guard)}), a version for each:"
            " begin it as numpy's, np.float32(…) or the like, or put a number of Python's into it, int(…) or"
            " float(…), in what is not compiled"
        )
    is_held = not does.of_module and not _OF_CONTAINER.fullmatch(name)
    if times <= 1 and is_held:
        return (
            f"one compile for a second value is normal ({_seen(guard)} were seen), made once: torch treats"
            f" {name}, which no module keeps, as symbolic from then on, but where a branch"
            " asks for it. To save this one, keep the value the same"
        )
    if "allow_unspec_int_on_nn_module" not in remedy(guard) or times < 1:
        return remedy(guard)
    return _int_attribute(guard, name, does)


def _int_attribute(guard: Guard, name: str, does: Taken) -> str:
    """Of a whole number that an object keeps: what helps depends on what asks for it."""
    seen = f"({_seen(guard)} were seen)"
    is_module = does.of_module and _OF_MODULE.match(guard.expression) is not None
    symbolic = (
        f"; torch._dynamo.config.allow_unspec_int_on_nn_module = True makes it symbolic {seen}"
        if is_module
        else f" {seen}"
    )
    buffer = "a tensor (register_buffer, and add_(1) for a counter)" if is_module else "a tensor"
    if not is_module and (item := _OF_CONTAINER.fullmatch(name)):
        return (
            f"{item['of']} holds numbers of Python's, and each value of one ({_seen(guard)} were seen) is a"
            " constant of the code: hold them as a tensor where they are only calculated with, or keep"
            f" {item['of']}, and what asks for its numbers, in the caller"
        )
    if not is_module and _OF_ITEM.search(name):
        return (
            f"{name} is a number that one object of several keeps: it is a constant of the code, and each"
            f" value is a version, and so is each combination of those of all objects{symbolic}. Calculate"
            " them in the caller and pass them as tensors: a position reads with index_select and writes with"
            " index_copy_ (as numbers they are versions again, and x[:, t] = … with a tensor breaks); or hold"
            " them as one tensor for all objects where they are only calculated with"
        )
    if does.is_calculated:
        return f"make {name} {buffer}: it is only calculated with, and min or max of it is clamp{symbolic}"
    if does.picked and does.needs == does.needed(("pick",)):
        sets = " (a buffer), with torch._dynamo.config.allow_unspec_int_on_nn_module = True,"
        return f"{_from_list(does, sets * is_module)} {seen}"
    if does.needs and not does.needed(_ASKS):
        return (
            f"{does.needs} asks for {name}, so no tensor can take its place there: calculate in the caller"
            f" what needs it, and pass that in{symbolic}"
        )
    if does.needs and len(guard.values) <= A_SECOND and not name.startswith("self."):
        return (
            f"{does.needs} asks for {name}: each value ({_seen(guard)} were seen) is a version, made once,"
            " which is normal for two, as where two models run this code. For many, keep and test it in the"
            " caller, and pass in what follows"
        )
    if does.needs:
        sided = ", and each side of a branch stays a version" * is_module
        return (
            f"{does.needs} asks for {name}, so no tensor can take its place: keep and test it in the caller,"
            f" and pass in what follows, a bool for a branch, which is two versions{symbolic}{sided}"
        )
    if not is_module:
        return (
            f"make {name} a tensor where no branch, slice or size asks for it, or read it in the caller and"
            " pass it in: an int argument is symbolic after its second value, where numpy does not need it"
            f" {seen}"
        )
    return (
        f"make {name} {buffer} where no branch, slice or size asks for it, or keep and test it in the"
        f" caller{symbolic}"
    )


def _sides(guard: Guard, name: str, asks: str) -> str:
    return (
        f"{asks} asks for {name}, and each side of a branch is compiled apart; else torch treats the float as"
        f" symbolic after its second value ({_seen(guard)} were seen). A version for each side is normal,"
        " made once; to save one, test it in the caller, and pass in a bool"
    )


def _float_attribute(guard: Guard, name: str, does: Taken) -> str:
    if any("ensor" in value for value in guard.values):
        return (
            f"let {name} begin as a tensor, torch.tensor({guard.expected}): it is a number of Python's at"
            " first and a tensor from then on, a version for each, made once"
        )
    if len(guard.values) <= A_SECOND:
        compares = f"torch.maximum or clamp where Python's min or max compares it ({does.compared})"
        save = (
            f"keep it in the caller, or make it a tensor, with {compares}"
            if does.compared
            else "make it a tensor where it is only calculated with"
        )
        return f"{_symbolic_float(name)} To save this compile, {save}"
    if asks := does.needed(_ASKS):
        return _sides(guard, name, asks)
    return (
        f"the code needs {name} as a constant (an argument that takes no tensor, as dropout's p), so each"
        f" value is compiled, and dynamic=True does not help ({_seen(guard)} were seen): change it seldom and"
        " in few steps, or make it a tensor where it is only calculated with"
    )


# -- objects ----------------------------------------------------------------------------------------------


_FOLLOWS = {
    "requires_grad": "whether it needs a gradient",
    "dtype": "its dtype",
    "rank": "how many dimensions it has",
    "container": "what it holds",
}


def _held(guard: Guard, origin: Origin | None, does: Taken) -> str:
    if does.made:
        return _handed_on(guard, does)
    is_cache = guard.cause == "container" and does.caches and not does.is_named
    return _cached(guard, does) if is_cache else _object(guard, origin, does)


def _cached(guard: Guard, does: Taken) -> str:
    """Of a dict that the code fills where it lacks a key."""
    if does.emptied:
        return _of_keys(guard, does)
    return (
        f"{guard.source} is filled by the code itself where it lacks a key ({_seen(guard)} were seen): look"
        " it up in the caller, and pass in what it holds. A call in eager before the first compiled one"
        " fills it too, but a key is a constant of the code: each that comes is a version all the same"
    )


def _handed_on(guard: Guard, does: Taken) -> str:
    """Of a local that goes on over a break: it is no argument, and nobody passes it."""
    follows = _FOLLOWS.get(guard.cause, "what it is")
    return (
        f"{guard.source} is made here (line {does.made}), and a graph break hands it on: {follows}"
        f" ({_seen(guard)} were seen) follows what came in and which way the code went. A version for each is"
        " normal, made once; to save one, repair that break"
    )


def _of_empty(guard: Guard, origin: Origin | None) -> str:
    """Of a tensor without an element, of which no other form saves a version; empty for others."""
    if origin is None or guard.cause not in ("type", "rank") or not guard.source:
        return ""
    empty = next((one for one in origin.empty if f"{one}[".startswith(f"{guard.source}[")), None)
    if empty is None:
        return ""
    return (
        f"{empty} has no element at one of the two calls{_whole(origin)}, and torch compiles a size of 0"
        " apart: a version for that and one for the rest is normal, made once, whatever their rank and type:"
        " leave it"
    )


def _of_plain_kinds(guard: Guard, does: Taken) -> str | None:
    """Of a number that came as an int and as a float, or a tuple that came as a list."""
    kinds = set(guard.values) if guard.cause == "type" else set()
    if kinds == {"int", "float"}:
        needs = does.fixes or does.needed(_ASKS)
        but = f"; but the code needs its number ({needs}), so that each value is one all the same"
        return (
            f"pass {guard.source} always as a float, float({guard.source}): an int and a float are versions"
            f" of their own{but * bool(needs)}"
        )
    if kinds == {"tuple", "list"}:
        return (
            f"pass {guard.source} always as one of the two, a tuple or a list: each is a version of its own,"
            " as is each number of items that it holds"
        )
    return None


def _of_object(guard: Guard) -> str | None:
    """Of one and another optimizer, or member of an enum."""
    if IS_OPTIMIZER.search(str(guard.values)):
        return "each optimizer is a version of the code that steps it: that is normal, made once for each"
    if of := _enum(guard):
        return (
            f"{guard.source} is a member of {of}, and each that comes ({_seen(guard)}) is a version: that is"
            " normal where the code does another thing for each. Where it only goes along, leave it out of"
            " the call"
        )
    return None


IS_OPTIMIZER = re.compile(r"\btorch\.optim\.")


def _of_keys(guard: Guard, does: Taken) -> str:
    """Of a dict that holds other keys at another call."""
    if does.emptied:
        return (
            f"each set of keys that {guard.source} holds is a version ({_seen(guard)}), and it is emptied"
            f" again in {does.emptied}: one with it and one without is normal, made once. To save that, fill"
            " it each time before the next compiled call, by one in eager"
        )
    if (guard.source or "").startswith("self."):  # a placeholder would be used as what the code puts in
        return (
            f"each set of keys that {guard.source} holds is a version ({_seen(guard)}): fill it before the"
            " first compiled call as the code does, by one in eager in the mode (train or eval) that uses it;"
            " a placeholder in it would be used as it is"
        )
    return (
        f"each set of keys that {guard.source} holds is a version ({_seen(guard)}): fill it before the first"
        " compiled call with all that will come, with what the code would put in; with a neutral value only"
        " where the code does not ask whether a key is there"
    )


def _function(guard: Guard, does: Taken) -> str:
    """Of one and another function, passed by the caller or by what made the compiled one."""
    if does.closed:
        name = (guard.source or "").partition(".__closure__")[0]
        return (
            f"{name} is a variable of {does.closed}, whose inner function is one code for each"
            f" {name} ({_seen(guard)}): a version for each is normal, made once. For many raise"
            f" torch._dynamo.config.recompile_limit, or compile what it calls as {name} in its place"
        )
    return (
        f"each function or kind of callable that is passed as {guard.source} is a version"
        f" ({_seen(guard)}): normal for a few. Pass one and the same object to save one; for many compile"
        " a function for each"
    )


def _object(guard: Guard, origin: Origin | None, does: Taken) -> str:
    text = (
        _unrolled(guard, does)
        or _filled(guard, origin, does)
        or _of_kind(guard)
        or _of_plain_kinds(guard, does)
    )
    text = text or remedy(guard)
    if guard.cause == "container" and (held := _HELD.search(guard.expression)):
        return (
            f"the {held['what']} of {guard.source} are not as many as when it was compiled: take away or add"
            " modules, buffers and hooks before the first compiled call; one more version for a change that"
            " is made once is normal, and so is one for another model of the"
            f" class{'' if len(guard.values) < _SEVERAL else f' ({_seen(guard)} were seen)'}"
        )
    if guard.cause == "type" and "a tensor" in guard.values and set(guard.values) <= TENSORS:
        return _other_tensor(guard)
    if guard.cause == "requires_grad" and (said := _gradient(guard, origin)):
        return said
    if guard.cause == "identity" and (said := _of_object(guard)):
        return said
    if guard.cause in ("identity", "type") and any(_FUNCTIONS.search(value) for value in guard.values):
        return _function(guard, does)
    if guard.cause == "type" and "___from_numpy" in guard.expression:
        return (
            f"pass {guard.source} always as one type: a NumPy array or number is a tensor of the graph, a"
            f" Python number is none ({_seen(guard)} were seen). float({guard.source}) or"
            f" torch.as_tensor({guard.source}) makes it one"
        )
    is_other = "set.__contains__" in guard.expression or does.is_named
    if (
        guard.cause == "container"
        and not is_other
        and (guard.expected or "").startswith(("with ", "without "))
    ):
        return _of_keys(guard, does)
    if guard.cause == "type" and "None" in guard.values:
        return _optional(guard, does, origin)
    is_missing = guard.cause == "container" and set(guard.values) <= {"present", "missing"}
    if (is_missing or guard.cause in ("type", "identity")) and (guard.source or "").startswith("self."):
        return (
            f"objects of one class that have different things in {guard.source} share this function's code,"
            f" and each is a version ({_seen(guard)}): that is normal for a few. For many raise"
            " torch._dynamo.config.recompile_limit, or put what differs behind one class"
        )
    if guard.cause == "container" and _OF_TOKENS.search(guard.source or ""):
        return (
            f"{guard.source} grows while it is filled, and each length is a version: give the model a cache"
            " of fixed size (transformers.StaticCache, cache_implementation='static'), or use_cache=False"
            f" where nothing is generated ({_seen(guard)} were seen)"
        )
    grows = guard.cause == "container" and does.fills and does.grows and len(guard.values) > A_SECOND
    if origin is None or not origin.same_call or guard.cause == "rank" or grows:
        return text
    what = {"type": "type of ", "requires_grad": "requires_grad of ", "dtype": "dtype of "}.get(
        guard.cause, ""
    )
    return (
        f"one call{_at(origin)} runs this function more than once, and {what}{guard.source} differs between"
        f" them ({_seen(guard)}): a version for each is normal. If they come near the recompile limit (8),"
        " raise torch._dynamo.config.recompile_limit, or repair the break because of which it is compiled on"
        " its own"
    )


def _unrolled(guard: Guard, does: Taken) -> str | None:
    """What to do where a list that nothing is put into comes with another number of items."""
    if (guard.source or "").startswith("__"):  # a name of Dynamo's
        return remedy(guard)
    if does.fills or guard.cause != "container" or not re.search(r"\d+ items?", guard.expected or ""):
        return None
    if does.picks and not (does.is_varied or does.is_named):
        return (
            f"pass {listed(does.picks)} in place of {guard.source}, None where there is no such item, and a"
            " bool where the code asks how many there are: it reads no more of it, and each number of items"
            f" ({_seen(guard)}) is a version"
        )
    if not does.loops and does.tensored and (guard.source or "").startswith("self."):
        return (
            f"line {does.tensored} makes a tensor of {guard.source} at each call, and each number of items"
            f" ({_seen(guard)}) is a version: for a few objects that differ in it that is normal. To save it,"
            " hold the tensor in its place, made where it is set: torch makes a size dynamic after its second"
        )
    # A 1 or a 0 is another matter than a batch with fewer samples.
    fewer = [int(value.partition(" ")[0]) for value in guard.values if value[:1].isdecimal()]
    fewer = fewer if sorted(fewer, reverse=True) == fewer and fewer[-1] > 1 else []
    same = f"keep it the same{' (drop_last=True where they are the samples of a batch)' * bool(fewer)}"
    if not does.loops:
        if guard.expected == "0 items" or does.is_varied or not (guard.source or "").isidentifier():
            return None
        return (
            f"each number of items in {guard.source} ({_seen(guard)}) is a version: {same}, or pass"
            " what is a list of numbers, or of tensors of one shape, as one tensor, padded to one length"
            " where the caller adds to it, and no branch asks for an item"
        )
    return (
        f"a loop over {guard.source} is unrolled, so each number of items ({_seen(guard)}) is a version:"
        f" {same}; pass what is a list of numbers, or of tensors of one shape, as one tensor, and compute"
        " it for all at once, without the loop, where no turn needs another one and no branch asks for an"
        " item; or compile what the loop does and leave the loop to Python"
    )


def only_named(guard: Guard, origin: Origin | None) -> str:
    """``the later one alone has cache and use_cache``: of the call itself, where the guard has not all."""
    if origin is None or origin.within or not any(origin.named):
        return ""
    if sum(map(len, origin.named)) == 1 and f"'{max(origin.named)[0]}'" in _seen(guard):
        return ""
    calls = zip(("the later one alone", "the earlier one alone"), origin.named, strict=True)
    said = [f"{which} has {listed(list(names[:_SEVERAL]))}" for which, names in calls if names]
    return ", ".join(said)


def _filled(guard: Guard, origin: Origin | None, does: Taken) -> str | None:
    """What to do where a container is full from its second call on, or holds the arguments themselves."""
    if guard.cause == "container" and "dict.keys(self.state)" in (guard.source or ""):
        return (
            f"the optimizer makes its state ({guard.source}) at its first step: a version before that and one"
            " after it is normal, made once. To save one, make the first step in eager"
        )
    by_name = guard.source == "kwargs" or does.is_named
    if guard.cause == "container" and (by_name or does.is_varied):
        of_library = origin is not None and "generate" in (origin.by, origin.by_before)
        more = only_named(guard, origin) * by_name
        more = f"; {more}" * bool(more)
        normal = (
            f"calls pass other arguments by {'name' if by_name else 'place'} ({_seen(guard)} in"
            f" {guard.source}{more}): a version for each way to call it is normal, made once"
        )
        if of_library:
            return f"{normal}; generate() makes one of these calls, and what it passes is its own"
        return (
            f"{normal}. To save one, call it with the same ones each time, and with the same values where"
            " they are no tensors"
        )
    is_own = (
        guard.cause == "container"
        and _GLOBAL.search(guard.expression)
        and any("item" in value for value in (guard.actual or "", *guard.values[1:]))
    )
    if is_own and does.fills and does.grows and len(guard.values) > 1 and guard.expected != "0 items":
        return (
            f"the code puts something into {guard.source} at each call, and each length is a version"
            f" ({_seen(guard)} were seen): return that and append in the caller"
        )
    is_listed = guard.cause == "container" and re.fullmatch(r"\d+ items?", guard.actual or "")
    if is_listed and not does.grows and (item := _ITEM.fullmatch(guard.source or "")):
        return (
            f"{item['of']} holds lists, and each of their lengths ({_seen(guard)}) is a version: make one"
            " padded tensor of them before the compiled call, and pass that"
        )
    is_filled = guard.cause == "container" and guard.expected == "0 items" and not does.grows
    if not is_filled or len(guard.values) != A_SECOND or "G['__import_" in guard.expression:
        return None
    return (
        f"fill {guard.source} before the first compiled call, as by one call in eager: it is empty at the"
        f" first call and holds {guard.actual} from then on, a version for each, made once"
    )


def _of_kind(guard: Guard) -> str | None:
    """What to do where tensors hold another kind of number, or a subclass other metadata."""
    if guard.cause == "dtype" and "bool" in guard.values and _are_whole(guard):
        return (
            f"{guard.source} holds bools at one call and whole numbers at another: where it indexes, a mask"
            " selects and numbers pick, so converting one gives another result. A version for each is"
            " normal, made once; to save one, make positions of the mask before the call,"
            f" {guard.source}.nonzero().squeeze(1)"
        )
    if guard.cause == "dtype" and _are_kinds(guard):
        return (
            f"{guard.source} holds whole numbers at one call and floats at another: two kinds of data, and a"
            " version for each is normal, made once. Where the same is meant, convert it before the call"
        )
    if guard.cause == "rank" and len(guard.values) == A_SECOND and (guard.source or "").startswith("self."):
        return (
            f"make the first call in eager where the model makes {guard.source} anew in it, or let that begin"
            f" with the dimensions and sizes that it has later ({_seen(guard)} dimensions were seen): a"
            " version for each is made once"
        )
    if guard.cause in ("rank", "dtype") and len(guard.values) == A_SECOND:
        # Who calls decides: two callers, or autocast that is on at some calls only.
        autocast = ", or where autocast is on at some calls only" if guard.cause == "dtype" else ""
        # A size of 0 or 1, as that of an empty state, is a version of its own as well.
        apart = (
            ", and alike what is calculated with it: that saves one where the sizes then are the same, none"
            " of them 0 or 1 at some calls only"
            if guard.cause == "rank"
            else ""
        )
        return (
            f"a version for each {guard.cause} of {guard.source} ({_seen(guard)} were seen) is normal where"
            f" two kinds of calls mean it{autocast}, and made once. To save one, {remedy(guard)}{apart}"
        )
    if guard.cause == "type" and "___check_metadata" in guard.expression:
        return (
            "torch compares what the tensor subclass's __tensor_flatten__ gives beside its tensors, and each"
            " value of it is a version. Keep it the same; hold a number that varies as one more inner tensor"
        )
    return None


def _are_whole(guard: Guard) -> bool:
    return len(guard.values) > 1 and all(value.startswith(("int", "bool")) for value in guard.values)


def _are_kinds(guard: Guard) -> bool:
    """Whether dtypes are of two kinds of number: converting labels to floats would make an error of them."""
    return len({value.startswith(("int", "uint", "bool")) for value in guard.values}) > 1


def _gradient(guard: Guard, origin: Origin | None) -> str | None:
    if _OWN.search(guard.expression):
        return (
            f"{guard.source} is a parameter, and it was {'frozen' if guard.actual == 'False' else 'unfrozen'}"
            " between calls, or it is that of another object which shares this code (a target network): one"
            " version for each is normal, once. Of one object, requires_grad_() before the first compiled"
            " call saves one"
        )
    if origin is not None and origin.direct:
        return (
            f"a version for {guard.source} with requires_grad and one without is normal, and made once. To"
            f" save one, pass {guard.source} always alike: after .detach() only where no gradient is wanted"
        )
    if origin is not None and not origin.direct and origin.entry != origin.other:
        return (
            f"this function is called by {origin.other} and {origin.entry}, by one with {guard.source} that"
            " needs a gradient: a version for each is normal, made once; to save one, repair the break"
            " because of which it is compiled on its own"
        )
    if origin is not None and not origin.direct and not origin.modes:
        return (
            f"{guard.source} needs a gradient at some runs of this function and none at others{_at(origin)},"
            " as the first layer's input, a state that begins as zeros, or what frozen parameters make: a"
            " version for each is normal, made once. To save one, repair the break that makes this a compile"
            " of its own"
        )
    if origin is not None and not origin.direct:
        return (
            f"whether {guard.source} needs a gradient follows the mode of the call{_at(origin)}: a version"
            " for training and one for evaluation is normal. If it changes at every call, keep the mode and"
            " requires_grad of the inputs the same, or repair the break that makes this function a compile"
            " of its own"
        )
    return None


def _enum(guard: Guard) -> str | None:
    """The class of the enum that a guarded object is a member of."""
    found = _ENUM.match(guard.actual or "")
    return (
        found["of"]
        if found and guard.expected in (f"one {found['of']}", f"one __main__.{found['of']}")
        else None
    )


def _other_tensor(guard: Guard) -> str:
    """A Parameter and a plain tensor are two types; what was made of a Parameter is no Parameter."""
    return (
        f"{guard.source} is an nn.Parameter at one call and a plain tensor at another, each with a graph of"
        " its own: an operation on a Parameter, .data, .detach() or a parametrization gives a plain tensor."
        " Pass the same kind each time: one and the same Parameter, or always param.detach() or param * 1"
    )


def _seen(guard: Guard) -> str:
    values = guard.values[:_SEVERAL]
    return ", ".join(values) + ("…" if len(guard.values) > _SEVERAL else "")
