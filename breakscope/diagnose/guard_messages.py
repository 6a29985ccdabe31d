"""Reading the guard failures that are sentences: tensor checks, identity and type, state, the cache."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from breakscope.diagnose.guard_context import Context, type_name
from breakscope.diagnose.guard_paths import Path, parse, path_of, paths_in
from breakscope.report.model import Guard, GuardCause

_TENSOR = re.compile(
    r"tensor '(?P<name>.*?)' (?:(?P<what>size|stride|rank|dtype|requires_grad|dispatch key set) mismatch"
    r"|(?P<device>Tensor device index) mismatch)(?: at index (?P<index>\d+))?\. "
    r"[Ee]xpected (?:device index to be |requires_grad=)?(?P<expected>.+?)(?:, actual (?P<actual>.+?))?"
    r"(?P<parameter>\. Guard failed on a parameter.*)?$",
    re.DOTALL,
)
_IDENTITY = re.compile(
    r"___check_(?P<what>obj_id|type_id|fake_script_type)\((?P<name>.+), \d+\)(?:, type=(?P<type><.*>))?$"
)
_TYPE = re.compile(
    r"expected type of '(?P<name>.*)' to be (?:<class '(?P<type>.+?)'>|a tensor type),"
    r" (?:' )?but found (?P<found>.+)$"
)
_GLOBAL_STATE = re.compile(r"GLOBAL_STATE changed: (?P<names>.*)$", re.DOTALL)
_DEALLOCATED = re.compile(r"Cache line invalidated because (?P<name>.+) got deallocated$")
_BACKEND = re.compile(
    r"BACKEND_MATCH failure(?:.*?Cached backend: (?P<expected>.+?)\."
    r" New backend: (?P<actual>.+?)\.(?: If| More|$))?",
    re.DOTALL,
)
_MISSING = re.compile(r"(?P<kind>KeyError|IndexError) on (?P<name>.+)$")
_NO_ATTRIBUTE = re.compile(r"getattr failed on source (?P<name>.+)$")
_WRONG_KIND = re.compile(r"(?:\w+: )?[Nn]ot a (?P<kind>function on|weakref obj|weakref) ?(?P<name>.*)$")
_NO_TENSOR = re.compile(r"not a tensor(?: - grad field is accessed (?P<name>.+))?$")
_ALIASED = re.compile(r"Duplicate tensors? found(?P<names>.*)$", re.DOTALL)
_OVERLAP = re.compile(r"check_overlapping\(|check_no_aliasing\(|NO_TENSOR_ALIASING|___cow_tensor_matches\(")
_MARKS = re.compile(
    r"_has_dynamo_dim_marking|_dynamo_(?:\w+_)?indices|_dynamo_shape_ids|_dynamo_unbacked_bounds"
)
_MARKED_NAME = re.compile(r"(?:hasattr|getattr)\((?P<name>.+?), '_(?:has_)?dynamo_")
_NOT_SUBSET = re.compile(r"runtime (?P<actual>\{.*?\}) is not a subset of compiled (?P<expected>\{.*?\})")
_SUBCLASS = re.compile(r"(?:___check_metadata|___check_opaque_guard_fn|__dtensor_spec)_\w+")
_MODE = re.compile(
    r"(?P<modes>___check_torch_function_mode_stack\(\))|(?P<state>___check_global_state\()"
    r"|(?P<default_device>utils_device\.CURRENT_DEVICE)|(?P<forward_ad>forward_ad'?\]?\._current_level)"
    r"|(?P<functorch>compare_functorch_state\()|(?P<hooks>top_saved_tensors_hooks)|(?P<stream>___get_current_stream\()"
)
_MODE_NAMES = {
    "modes": "torch function modes",
    "state": "global state",
    "default_device": "default device",
    "forward_ad": "forward-mode AD level",
    "functorch": "functorch transforms",
    "hooks": "saved tensor hooks",
    "stream": "current stream",
}

_KEY_SET = re.compile(r"DispatchKeySet\((?P<keys>.*)\)$")
# A key set holds one of these for the backend, with a prefix for the layout.
_BACKENDS = (
    "CPU",
    "CUDA",
    "Meta",
    "MPS",
    "XPU",
    "HPU",
    "XLA",
    "MTIA",
    "IPU",
    "Lazy",
    "PrivateUse1",
    "MAIA",
)
_LAYOUTS = ("", "Sparse", "SparseCsr", "Quantized", "NestedTensor")
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Byte": "uint8",
    "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Bool": "bool", "UInt16": "uint16",
    "UInt32": "uint32", "UInt64": "uint64", "ComplexHalf": "complex32", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32",
    "Float8_e5m2": "float8_e5m2", "Float8_e4m3fn": "float8_e4m3fn",
}  # fmt: skip


def is_message(expression: str) -> bool:
    """Whether a failure is a sentence that tells all there is to know, not an expression to look into."""
    context = Context(expression, None, "", {})
    return (read_tensor_check(context) or read_message(context)) is not None


def read_tensor_check(context: Context) -> Guard | None:
    """A property of a tensor: "tensor 'x' size mismatch at index 0. expected 3, actual 4"."""
    if not (found := _TENSOR.match(context.expression)):
        return None
    source, expected, actual = (
        context.words(found["name"]),
        found["expected"],
        found["actual"],
    )
    index = int(found["index"]) if found["index"] else None
    match found["what"]:
        case "size" | "stride" | "rank" as cause:
            return context.guard(cause, source, expected, actual, index)
        case "dtype":
            return context.guard(
                "dtype",
                source,
                _DTYPES.get(expected, expected),
                _DTYPES.get(actual, actual),
            )
        case "requires_grad":
            was = expected in ("1", "True")
            return context.guard("requires_grad", source, str(was), str(not was))
        case "dispatch key set":
            return _dispatch_keys(context, source, expected, actual)
    return context.guard("device", source, f"device index {expected}", f"device index {actual}")


def _dispatch_keys(context: Context, source: str | None, expected: str, actual: str | None) -> Guard:
    if actual is None:
        return context.guard("dispatch_keys", source)
    old, new = _keys(expected), _keys(actual)
    old_device, new_device = _backend(old), _backend(new)
    if old_device and new_device and old_device != new_device:
        return context.guard("device", source, old_device, new_device)
    lost = ", ".join(key for key in old if key not in new)
    gained = ", ".join(key for key in new if key not in old)
    return context.guard(
        "dispatch_keys",
        source,
        " and ".join(filter(None, (lost and f"with {lost}", gained and f"without {gained}"))),
        " and ".join(filter(None, (gained and f"with {gained}", lost and f"without {lost}"))),
    )


def _keys(text: str) -> list[str]:
    found = _KEY_SET.match(text)
    return found["keys"].split(", ") if found else [text]


def _backend(keys: list[str]) -> str | None:
    for backend in _BACKENDS:
        if any(layout + backend in keys for layout in _LAYOUTS):
            return backend.lower()
    return None


def identity_source(expression: str) -> Path | None:
    """What to read for the actual value of an identity or type guard."""
    if not (found := _IDENTITY.match(expression)) or not (path := path_of(parse(found["name"]))):
        return None
    if found["what"] != "obj_id":
        return path.then("attribute", "__class__")
    if path.steps and path.steps[-1].key == "__code__":
        # A function is guarded by its code, and known by its name.
        return replace(path, steps=path.steps[:-1])
    return path


def read_identity(context: Context) -> Guard | None:
    """``___check_obj_id(...)`` and ``___check_type_id(...)``."""
    if not (found := _IDENTITY.match(context.expression)):
        return None
    source, actual = context.words(found["name"]), context.actual(identity_source(context.expression))
    expected = type_name(found["type"]) if found["type"] else None
    if found["what"] != "obj_id":
        return context.guard("type", source, expected, type_name(actual) if actual else None)
    expected = "function" if expected == "code" else expected
    if actual and " " not in actual:
        actual = type_name(actual)
    return context.guard("identity", source, expected and f"one {expected}", actual)


def read_message(context: Context) -> Guard | None:
    """Every other sentence."""
    text = context.expression
    if found := _TYPE.match(text):
        expected = type_name(f"<class '{found['type']}'>") if found["type"] else "a tensor"
        return context.guard("type", context.words(found["name"]), expected, type_name(found["found"]))
    if _MARKS.search(text):
        return _dimension_marks(context)
    if _ALIASED.match(text) or _OVERLAP.match(text):
        return _aliasing(context)
    if _SUBCLASS.match(text):
        return context.guard("type", None, "its subclass's metadata", "other metadata")
    return _state(context) or _cache(context) or _access(context)


def _state(context: Context) -> Guard | None:
    if found := _GLOBAL_STATE.match(context.expression):
        return context.guard("global_state", ", ".join(found["names"].split()) or None)
    if found := _MODE.search(context.expression):
        return context.guard("global_state", _MODE_NAMES[found.lastgroup or "state"])
    return None


def _cache(context: Context) -> Guard | None:
    if found := _DEALLOCATED.match(context.expression):
        whole = re.match(r"type\((?P<of>.+)\)$", found["name"])
        name = context.words(whole["of"] if whole else found["name"])
        source = f"type of {name}" if whole else name
        return context.guard("identity", source, "an object that was freed since", "another object")
    if found := _BACKEND.match(context.expression):
        backends = [re.sub(r" ?\(id=0x[0-9a-f]+\)", "", name) if name else None for name in found.groups()]
        return context.guard("identity", "backend", backends[0], backends[1])
    return None


def _access(context: Context) -> Guard | None:
    """A path of the guard that can no longer be followed."""
    text = context.expression
    if found := _MISSING.match(text):
        return context.guard("container", context.words(found["name"]), "present", "missing")
    if found := _NO_ATTRIBUTE.match(text):
        path = path_of(parse(found["name"]))
        cause: GuardCause = "module_attribute" if path and context.on_module(path) else "container"
        return context.guard(cause, context.words(found["name"]), "with the attribute", "without it")
    if found := _WRONG_KIND.match(text):
        kind = found["kind"].split()[0]
        return context.guard(
            "identity",
            context.words(found["name"] or None),
            f"a {kind}",
            f"not a {kind}",
        )
    if found := _NO_TENSOR.match(text):
        return context.guard("type", context.words(found["name"]), "a tensor", "not a tensor")
    return None


def _aliasing(context: Context) -> Guard:
    text = context.expression
    expected, actual = "tensors that share nothing", "tensors that share memory"
    node = parse(text)
    paths = paths_in(node) if node else ()
    if found := _ALIASED.match(text):
        expected, actual = "different tensors", "the same tensor"
        node = parse(found["names"].strip(": !"))
        names = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)] if node else []
        paths = tuple(path for name in names if isinstance(name, str) and (path := path_of(parse(name))))
    source = " and ".join(filter(None, map(context.words, paths))) or None
    return context.guard("aliasing", source, expected, actual)


def _dimension_marks(context: Context) -> Guard:
    name = _MARKED_NAME.search(context.expression)
    expected, actual = "other dimension marks", None
    if found := _NOT_SUBSET.search(context.expression):
        expected, actual = f"dimension marks {found['expected']}", found["actual"]
    elif "absent" in context.expression or "== False" in context.expression:
        expected, actual = "no dimension marks", "dimension marks"
    return context.guard(
        "symbolic_shape",
        context.words(name["name"]) if name else None,
        expected,
        actual,
        seen=(),
    )
