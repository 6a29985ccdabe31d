"""What to say about a guard that failed: a title, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable

from breakscope.diagnose.guard_paths import is_unnamed, of_parameter, of_strides
from breakscope.report.model import Guard, GuardCause

_MANY = 6
# What a guard calls tensors of two kinds: of the one that it was made for it says no more than "a tensor".
TENSORS = frozenset({"a tensor", "torch.Tensor", "Tensor", "Parameter", "torch.nn.parameter.Parameter"})
_CROSSING = re.compile(r"___stack\d+")  # what the resumed function is given by the code in front of the break
# What the guard on the tensor that a view is of says where there is none.
_NO_VIEW = re.compile(r"'NoneType' object has no attribute '(stride|size|storage_offset)'")
_NUMBER = re.compile(r"-?[\d.]+(?:e[+-]?\d+)?$")
_GLOBAL = re.compile(r"\bG\['(?P<name>\w+)'\]")
_IMPORTED = re.compile(
    r"\bG\['__import_"
)  # what stands in a module that the function's own module has imported

_TITLES: dict[GuardCause, str] = {
    "size": "size of {name}",
    "symbolic_shape": "shape of {name}",
    "rank": "rank of {name}",
    "stride": "storage offset of {name}",
    "dtype": "dtype of {name}",
    "device": "device of {name}",
    "requires_grad": "requires_grad of {name}",
    "dispatch_keys": "dispatch keys of {name}",
    "int_value": "value of {name}",
    "float_value": "value of {name}",
    "constant_value": "value of {name}",
    "module_attribute": "value of {name}",
    "item_value": "{name}",
    "identity": "object {name}",
    "type": "type of {name}",
    "container": "contents of {name}",
    "aliasing": "aliasing of {name}",
}


_ABSENT = re.compile(r"^'NoneType' object has no attribute '(\w+)'")


def describe(guard: Guard) -> str:
    """A title: what differed, for what the code was compiled, and what came."""
    if guard.cause == "global_state":
        return f"global state changed: {guard.source or 'unknown'}"
    if guard.cause == "other":
        if absent := _ABSENT.search(guard.expression):
            # It may be an argument that is None now, or what an argument was a view of: x._base.
            return (
                f"a guard asked for .{absent[1]} of a tensor that is not there this time (None, or no view)"
            )
        if guard.expression:
            shown = _CROSSING.sub("the value from the break", guard.expression)
            return f"guard failed: {shown}"
        return "no guard failed: another backend than before, or a fault of Dynamo"
    name = guard.source or "a tensor"
    if (found := _GLOBAL.search(guard.expression)) and name.startswith(found["name"]):
        name = f"global {name}"
    what = _TITLES[guard.cause].format(name=name)
    if guard.dimension is not None:
        kind = "stride" if guard.cause == "stride" else "size"
        what = f"{kind} of {name}, dimension {guard.dimension}"
    elif is_unnamed(name) or name.startswith("type of "):
        what = name
    expected, actual = guard.expected or "another", guard.actual or "another"
    if guard.cause == "type" and {expected, actual} <= TENSORS:
        kinds = ("an nn.Parameter", "a plain tensor")
        expected, actual = kinds if actual.endswith("Tensor") else kinds[::-1]
    elif expected == actual:
        return f"{what}: compiled for one {expected}, got another"
    if expected.startswith("with"):
        return f"{what}: compiled {expected}, called {actual}"
    return f"{what}: compiled for {expected}, got {actual}"


def remedy(guard: Guard) -> str:
    """One imperative sentence: what to do so that this guard does not fail again."""
    advise = _SPECIAL.get(guard.cause)
    if advise:
        return advise(guard, guard.source or "it")
    text = _REMEDIES[guard.cause].format(name=guard.source or "it")
    return text + _seen(guard)


_REMEDIES: dict[GuardCause, str] = {
    "rank": "reshape {name} to one number of dimensions before the call",
    "dtype": "convert {name} to one dtype before the call",
    "device": "move {name} to one device before the call",
    "requires_grad": "pass {name} always with requires_grad or, where it needs no gradient, after .detach()",
    "int_value": "keep {name} the same, pass it as a tensor, or compile with dynamic=True for a symbolic int",
    "constant_value": "each value of {name} is a version, which is normal for a few that come again: else"
    " keep it the same, or do in the caller what needs it",
    "item_value": "where it is read with .item(), keep the {name} a tensor, or set"
    " torch._dynamo.config.capture_scalar_outputs = True, so that no number enters the code after the break;"
    " where it is a size, that is one compile, and breakscope remedy tries dynamic=True",
    "type": "a version for each type of {name} is normal where several are meant, and made once: else pass it"
    " always as one type",
}


def _size(guard: Guard, name: str) -> str:
    if of_parameter(guard):
        return f"keep the shape of {name}, or set torch._dynamo.config.force_parameter_static_shapes = False"
    if guard.source is None or "marks" in (guard.expected or ""):
        return f"call mark_dynamic, mark_static and the like in one way for {name} before every call"
    if of_strides(guard):
        return (
            f"the strides of {name} do not follow its sizes as in this graph: either a size changed that the"
            " graph holds fixed, and breakscope remedy tries what keeps it open; or it is laid out in another"
            " way, and .clone(memory_format=torch.contiguous_format) where it is made gives it one layout"
        )
    if guard.dimension is None:
        return (
            f"keep the sizes of {name} such that {guard.expected}, or take away the branch on them; where the"
            " code has none, an operation of torch's own asks for it, as a convolution may, and that is one"
            " graph more, made once"
        )
    if is_unnamed(name):
        return f"remove the graph break that the {name} crosses, so that its size is symbolic with the rest"
    if guard.cause == "symbolic_shape":
        return _symbolic_size(guard, name)
    apart = " (sizes 0 and 1 are compiled apart all the same)" if {"0", "1"} & set(guard.values) else ""
    if guard.resumed:
        whose = f"the argument that dimension {guard.dimension} of {name} comes from"
        return (
            f"find {whose}, over the break in front of this part{apart}: pad that to one size, or have"
            " breakscope remedy try to mark it"
        )
    call = f"torch._dynamo.maybe_mark_dynamic({name}, {guard.dimension})"
    return f"call {call} before the call{apart}, or pad to one size ({_values(guard)} were seen)"


def _symbolic_size(guard: Guard, name: str) -> str:
    dimension = f"dimension {guard.dimension} of {name}"
    came = f" ({_values(guard)} came)" if guard.values else ""
    if guard.values and set(guard.values) <= {"0", "1"}:
        call = f"torch._dynamo.decorators.mark_unbacked({name}, {guard.dimension})"
        return (
            f"avoid sizes 0 and 1 in {dimension}, which are compiled apart, or use {call}{came}, on each"
            " argument that is as large as well"
        )
    return f"keep {dimension} such that {guard.expected}, or take away the branch on it{came}"


def _stride(guard: Guard, name: str) -> str:
    if name.startswith("__"):
        return (
            "repair the graph break over which it is held: it is a local of the function, and begins"
            " elsewhere in its memory, or is laid out in another way"
        )
    if guard.dimension is None:
        return f"call .clone() on {name} before the call, so that it starts its own memory"
    if guard.resumed:
        return (
            f"repair the graph break in front of this part of the function, which hands {name} on; or give"
            f" {name} one layout before that break, .clone(memory_format=torch.contiguous_format)"
        )
    return (
        f"give {name} one layout where it is made, .clone(memory_format=torch.contiguous_format):"
        " .contiguous() leaves it as it is where a size is 1"
    )


def _dispatch_keys(guard: Guard, name: str) -> str:
    keys = f"{guard.expected} {guard.actual}"
    if "FuncTorch" in keys:
        return f"pass {name} always inside the same torch.func transforms, or compile outside them"
    if "Conjugate" in keys or "Negative" in keys:
        return f"call .resolve_conj().resolve_neg() on {name} before the call"
    if "Autograd" in keys or "ADInplaceOrView" in keys:
        return f"create {name} always inside, or always outside, torch.inference_mode()"
    return f"pass {name} always in the same layout and the same wrappers"


def _float(guard: Guard, name: str) -> str:
    if ".param_groups[" in name and name.endswith("['lr']"):
        return (
            f"give the optimizer its learning rate as a tensor: lr=torch.tensor({guard.expected}), and set"
            " that in place where a schedule changes it, group['lr'].fill_(…)"
        )
    return f"pass {name} as a tensor, torch.tensor({name}), or keep it the same{_seen(guard)}"


def _attribute(guard: Guard, name: str) -> str:
    if name.endswith(".training"):
        return f"set train() or eval() before the first call and keep it: {name} costs one compilation a mode"
    if "set.__contains__" in guard.expression:
        return (
            f"each set that comes as {name} is a version{_seen(guard)}: hold it as a tensor of bools, one for"
            " each thing that may be in it, or ask in the caller what is in it"
        )
    if guard.expected in ("set", "unset"):
        return f"assign {name} in __init__, so that it is always there"
    option = ""
    if guard.expected and _NUMBER.match(guard.expected):
        option = ", or make it a tensor"
        if "." not in guard.expected:
            option += ", or set torch._dynamo.config.allow_unspec_int_on_nn_module = True"
    return f"keep {name} the same between calls{option}{_seen(guard)}"


def _identity(guard: Guard, name: str) -> str:
    if name == "backend":
        return "pass the same backend object to every torch.compile of this function"
    if "freed" in (guard.expected or ""):
        return (
            f"each object that comes as {name} is a version, which is normal where several are meant, as of"
            " another model or another optimizer, and made once for each. Where it is made anew at each call,"
            " keep it alive and pass it again; where a library copies it at each call, nobody can"
        )
    if guard.source is None:
        return "pass one and the same object in every call"
    if "torch.optim." in (guard.expected or ""):
        return (
            "call step() of the optimizer outside of the compiled function: each optimizer has a version of"
            f" its code, as {name} is another object"
        )
    return f"pass one and the same object as {name}, or compile a function for each"


def _grows(guard: Guard) -> bool:
    """Whether a container came with one more item each time."""
    counts = [re.fullmatch(r"(\d+) items?", text) for text in guard.values]
    numbers = [int(count[1]) for count in counts if count]
    following = list(range(numbers[0], numbers[0] + len(numbers))) if numbers else []
    return len(numbers) == len(counts) > 1 and numbers == following


def _grew(guard: Guard) -> bool:
    """Whether a container has more items than it was compiled for."""
    counts = [re.fullmatch(r"(\d+) items?", text or "") for text in (guard.expected, guard.actual)]
    expected, actual = (int(count[1]) if count else 0 for count in counts)
    return 0 < actual > expected


def _container(guard: Guard, name: str) -> str:
    if name.startswith("__"):
        return (
            "repair the graph break over which it is held: a list or a tuple of the function has another"
            f" length{_seen(guard)}"
        )
    if "(.0)" in guard.expression:
        return (
            "the comprehension is compiled on its own and unrolled, a version for each number of items that"
            f" it runs over{_seen(guard)}: repair the break in its function, with which it is traced as a"
            " part of that, or keep the number the same"
        )
    if "set.__contains__" in guard.expression:
        return (
            f"each set that comes as {name} is a version{_seen(guard)}: hold it as a tensor of bools, one for"
            " each thing that may be in it, or ask in the caller what is in it"
        )
    if guard.expected in ("set", "unset", "with the attribute", "present"):
        if _GLOBAL.search(guard.expression) or "G['__import_" in guard.expression:
            return f"set {name} before the first compiled call: it was {guard.expected}, then {guard.actual}"
        first = "in __init__, where the code sets it in its first call itself; else " * (
            (guard.expected, guard.actual) == ("unset", "set")
        )
        return f"set {name} {first}on every object that is passed, or on none"
    if (guard.expected or "").startswith("count("):
        return (
            f"draw the next number of {name} in the caller and pass it in: the code holds where the counter"
            f" of itertools stands, and each number is a version{_seen(guard)}"
        )
    if _IMPORTED.search(guard.expression) and _grew(guard):
        return (
            f"run a step uncompiled before the first compiled call: {name} is a table that its module fills"
            f" while it is used{_seen(guard)}, and stays the same once it is full"
        )
    held = guard.actual or guard.expected or ""
    if name.startswith("self.") and re.fullmatch(r"\d+ items?|set of \d+|\{[^:]*\}", held):
        return (
            f"take what is needed of {name} in the caller and pass it as tensors; where the function only"
            " puts something into it, return that and append in the caller. Each length is a"
            f" version{_seen(guard)}"
        )
    if _grows(guard):
        return (
            f"where the function puts something into {name} at each call, return that and append in the"
            f" caller; else keep its items the same in number and names{_seen(guard)}"
        )
    if (guard.expected or "").startswith(("{", "set")) and ":" not in (guard.expected or ""):
        return (
            f"each set that comes as {name} is a version{_seen(guard)}: pass the same, or ask in the caller"
            " what is in it, and pass the answer"
        )
    stacked = ", or pass what is a list of numbers as one tensor" if " item" in (guard.actual or "") else ""
    return f"keep the items of {name} the same in number and names{stacked}{_seen(guard)}"


def _aliasing(guard: Guard, name: str) -> str:
    if is_unnamed(name):
        return (
            f"{name} are one object at some calls and two at others, as where a function returns its argument"
            " or a new tensor: a version for each is normal, made once; to save one, repair the graph break"
            " that hands them on"
        )
    return (
        f"pass {name} always as one or always as different ones: where they meet, .clone() a tensor and copy"
        f" another object{_seen(guard)}"
    )


_STATE = (
    (
        "grad_mode",
        "call it always inside, or always outside, torch.no_grad() and torch.inference_mode()",
    ),
    ("autocast", "call it always inside, or always outside, the same torch.autocast"),
    ("num_threads", "call torch.set_num_threads once, before the first compiled call"),
    (
        "default_dtype",
        "call torch.set_default_dtype once, before the first compiled call",
    ),
    (
        "default device",
        "call torch.set_default_device once, before the first compiled call",
    ),
    (
        "deterministic",
        "call torch.use_deterministic_algorithms once, before the first compiled call",
    ),
    (
        "torch function modes",
        "call it always inside the same modes (torch.set_default_device is one of them)",
    ),
    (
        "torch_function",
        "call it always with __torch_function__ enabled, or always with it disabled",
    ),
    (
        "allow_",
        "set the precision of matrix products once, before the first compiled call",
    ),
    (
        "precision",
        "set the precision of matrix products once, before the first compiled call",
    ),
    ("hooks", "call it always inside, or always outside, the same saved_tensors_hooks"),
    (
        "transforms",
        "call it always inside, or always outside, the same torch.func transforms",
    ),
)


def _global_state(_guard: Guard, name: str) -> str:
    for word, text in _STATE:
        if word in name:
            return text
    return "set the global state of torch once, before the first compiled call"


SOME_VIEW = "the argument that is a view at some calls only"
_VIEW = f"Call .clone() on {SOME_VIEW}"
_HANDED_VIEW = (
    "A graph break in front of this part hands it on: repair that break, or call .clone() before it on what"
    " is a view at some calls only"
)


def _other(guard: Guard, _name: str) -> str:
    if not guard.expression:
        return "pass the same backend object to every torch.compile of this function"
    if _NO_VIEW.search(guard.expression):
        return (
            "torch's own check stopped here: the code was made for a tensor that is a view of another one (a"
            " slice, an expand, what repeat_interleave gives), and the tensor that came is none."
            f" {_HANDED_VIEW if guard.resumed else _VIEW}"
        )
    if re.search(r"\.item\(\) == -?[\d.]+$", guard.expression):
        return (
            "take all at once, with the index as a tensor, x.index_select(dim, index): a tensor of one number"
            " is read here, as where it indexes another one, and the code is compiled again for each value"
        )
    if found := re.match(r"not (?:\w+\.|__\w+_)?isnan\((.+)\)$", guard.expression):
        return (
            f"find where the nan comes from: the code was made for {found[1]} that is a number, and at this"
            " call it is nan, which is a version of its own"
        )
    if _CROSSING.search(guard.expression):
        return (
            "repair the graph break in front of this part of the function: the guard is on a value that"
            " crosses that break, and differs from call to call"
        )
    return "find what the guard names, and keep it the same between calls"


_SPECIAL: dict[GuardCause, Callable[[Guard, str], str]] = {
    "size": _size,
    "symbolic_shape": _size,
    "stride": _stride,
    "dispatch_keys": _dispatch_keys,
    "float_value": _float,
    "module_attribute": _attribute,
    "identity": _identity,
    "container": _container,
    "aliasing": _aliasing,
    "global_state": _global_state,
    "other": _other,
}


def _seen(guard: Guard) -> str:
    return f" ({_values(guard)} were seen)" if len(guard.values) > 1 else ""


def _values(guard: Guard) -> str:
    return ", ".join(guard.values[:_MANY]) + ("…" if len(guard.values) > _MANY else "")
