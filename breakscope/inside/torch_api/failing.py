"""All guards that fail in each version of a code object, where Dynamo tells the first one of each."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import re
import time
import types
from collections.abc import Iterable, Iterator
from typing import Any

from breakscope.diagnose.guard_text import Failed
from breakscope.inside.torch_api import MISSING, get

_VERSIONS = 8  # the latest ones are asked
_AT_MOST_S = 0.5  # for one recompile
_CHECKED = re.compile(
    r"check_tensor\(.*, (?P<dtype>torch\.\w+), device=[\w:]+, requires_grad=(?P<grad>True|False)"
    r", size=\[(?P<size>[^\]]*)\](, stride=\[[^\]]*\])?\)"
)
_OF_PARAMETER = re.compile(r"check_tensor\(.*, Parameter, DispatchKeySet\(")
_LONG, _TEXTS = 400, 16  # characters of a guard that are kept, and how many guards of a version
_BASE = re.compile(r"L\['\w+'\][\w\[\]'.]*?\._base\b")
_ABSENT = (AttributeError, LookupError, TypeError)


class _TooLongError(Exception):
    pass


def failing(frame: Any) -> dict[str, list[Failed]]:
    """For each version by its compile id what of its guards fails in a frame; empty where torch hides it.

    A version of which not all guards can be asked is left out.

    Args:
        frame: Dynamo's frame, with ``f_code``, ``f_locals`` and ``f_globals``.
    """
    entries = get("cache_entries")
    if entries is MISSING:
        return {}
    found: dict[str, list[Failed]] = {}
    ends = time.monotonic() + _AT_MOST_S
    for entry in list(entries(frame.f_code))[:_VERSIONS]:
        manager = entry.guard_manager
        scope = {
            "L": frame.f_locals,
            "G": frame.f_globals,
            "__builtins__": builtins,
            **(manager.closure_vars or {}),
            _ITEM: _item,
        }
        try:
            failed = dict.fromkeys(_failed(manager.root, scope, ends))
            found[str(entry.compile_id)] = list(_with_few_texts(failed))
        except _TooLongError:
            break
        except Exception:  # noqa: BLE001, S112 -- torch's own, and other in each version
            continue
    return found


def _with_few_texts(failed: Iterable[Failed]) -> Iterator[Failed]:
    """The same, the first ones with their texts: another model fails in each of its parameters."""
    told = 0
    for one in failed:
        told += bool(one.text)
        yield one if told <= _TEXTS else one._replace(text="")


def _failed(root: Any, scope: dict[str, Any], ends: float) -> Iterator[Failed]:
    for leaf in root.get_leaf_guards():
        if not leaf(scope["L"]):
            yield Failed(type(leaf).__name__)
    for child in root.get_child_managers():
        yield from _below(child, scope, ends)
    for leaf in root.get_epilogue_lambda_guards():
        for part in leaf.verbose_code_parts():
            try:
                if eval(_code(part), scope) is False:  # noqa: S307 -- Dynamo's own expression
                    yield Failed(part.partition("  # ")[0].strip())
            except _ABSENT:  # of what is not there its own guard has failed, but for what is no view now
                yield from (Failed(one) for one in dict.fromkeys(_BASE.findall(part)) if _is_none(one, scope))


def _is_none(source: str, scope: dict[str, Any]) -> bool:
    with contextlib.suppress(*_ABSENT):
        return eval(_read(source), scope) is None  # noqa: S307 -- Dynamo's own expression
    return False


def _below(manager: Any, scope: dict[str, Any], ends: float) -> Iterator[Failed]:
    """What fails in a part of the guards; below what is of another type nothing is asked."""
    if time.monotonic() > ends:
        raise _TooLongError
    leaves = [leaf for leaf in manager.get_leaf_guards() if type(leaf).__name__ not in _RELATIONAL]
    source = manager.get_source()
    if leaves:
        try:
            value = eval(_read(source), scope)  # noqa: S307 -- Dynamo's own expression
        except _ABSENT:
            yield Failed(source)  # it is not there
            return
        failed = [leaf for leaf in leaves if not leaf(value)]
        for leaf in failed:
            yield from _of_leaf(leaf, source, value)
        if failed:
            return
    for child in _children(manager):
        yield from _below(child, scope, ends)


def _children(manager: Any) -> Iterator[Any]:
    yield from manager.get_child_managers()
    if hasattr(manager, "get_key_value_managers"):  # of a dict, as of the modules in a Sequential
        for both in manager.get_key_value_managers().values():
            yield from filter(None, both)


_RELATIONAL = ("NO_TENSOR_ALIASING", "OBJECT_ALIASING", "SYMBOLIC_SHAPE_GUARD", "STORAGE_OVERLAPPING")


def _of_leaf(leaf: Any, source: str, value: Any) -> Iterator[Failed]:
    text = leaf.verbose_code_parts()[0]
    checked = _CHECKED.search(text) if type(leaf).__name__ == "TENSOR_MATCH" else None
    if checked is None or not hasattr(value, "shape"):
        yield Failed(source, text="" if checked or len(text) > _LONG else text)
        return
    sizes = [part.strip() for part in checked["size"].split(",") if part.strip()]
    differ = [
        (at, before, str(int(now)))
        for at, (before, now) in enumerate(zip(sizes, value.shape, strict=False))
        if before not in ("None", str(int(now)))
    ]
    kind = (checked["grad"], checked["dtype"]) != (str(value.requires_grad), str(value.dtype))
    if len(sizes) != len(value.shape) or not differ or kind:
        yield Failed(source)
    of_parameter = _OF_PARAMETER.match(text) is not None
    for at, before, now in differ:
        said = f"tensor '{source}' size mismatch at index {at}. expected {before}, actual {now}"
        yield Failed(source, at, before, now, f"{said}. Guard failed on a parameter" if of_parameter else "")


@functools.lru_cache(maxsize=4_096)
def _code(source: str) -> types.CodeType:
    return compile(source.strip(), "<guard>", "eval")


@functools.lru_cache(maxsize=4_096)
def _read(source: str) -> types.CodeType:
    """The code of a source, with items read as guards read them."""
    tree = ast.parse(source.strip(), "<guard>", "eval")
    return compile(ast.fix_missing_locations(_Items().visit(tree)), "<guard>", "eval")


_ITEM = "___item_of"


class _Items(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return ast.Call(ast.Name(_ITEM, ast.Load()), [node.value, node.slice], [])


def _item(of: Any, key: Any) -> Any:
    """What a container holds, as guards see it: one's own ``__getitem__`` may make a new thing each time."""
    base = next((kind for kind in (dict, list, tuple) if isinstance(of, kind)), None)
    return of[key] if base is None else base.__getitem__(of, key)
