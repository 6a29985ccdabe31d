"""Copies of code that count how often they run."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from breakscope.inside.torch_api import available, get

_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def answer_with_counts(
    answer: Any,
    code: types.CodeType,
    entering: Callable[[], object],
    position: tuple[int, ...],
    passing: Callable[[], object],
) -> Any:
    """Dynamo's answer for a frame that it gave up on, with a copy of its code that counts.

    Args:
        answer: what Dynamo answered.
        entering: called each time the frame runs.
        position: (line, column, end line, end column) of an expression, or (line,); passing: called each
            time that is evaluated.

    Returns:
        None where that cannot be: a generator is resumed in the middle, a module's code has no fast locals,
        or the answer holds for what the frame calls, too.
    """
    strategy = answer.frame_exec_strategy
    if code.co_flags & _RESUMABLE or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    if strategy.recursive_action.name != "DEFAULT":
        return None
    if not all(map(available, ("guarded_code", "guard_manager", "compile_id_type"))):
        return None
    copy = _counting(code, entering, position, passing)
    if copy is None:
        return None
    # The frame's own action: run the code of the cache. DEFAULT is what is done with what it calls already.
    again = type(strategy)(strategy.recursive_action, strategy.recursive_action)
    number = get("compile_id_type")(frame_id=0, frame_compile_id=0)
    kept = get("guarded_code")(copy, get("guard_manager")(), number)
    return dataclasses.replace(
        answer, frame_exec_strategy=again, apply_to_code=False, guarded_code=kept, skip_reason=None
    )


def _counting(
    code: types.CodeType,
    entering: Callable[[], object],
    position: tuple[int, ...],
    passing: Callable[[], object],
) -> types.CodeType | None:
    """``code`` with a call in front, and one before the first instruction of an expression."""
    found = False

    def insert(instructions: list[Any], _options: dict[str, Any]) -> None:
        nonlocal found
        at = next((n for n, one in enumerate(instructions) if _is_part(one, position)), None)
        if at is not None:
            found = True
            target, call = instructions[at], _call_of(passing)
            for one in instructions:  # who jumps there counts as well
                if one.target is target:
                    one.target = call[0]
            instructions[at:at] = call
        names = [instruction.opname for instruction in instructions]
        start = names.index("RESUME") + 1 if "RESUME" in names else 0
        instructions[start:start] = _call_of(entering)

    copy = _transform(code, insert, entering, passing)
    return copy if found else None


def _is_part(instruction: Any, position: tuple[int, ...]) -> bool:
    at = instruction.positions
    if at is None or None in (at.lineno, at.col_offset, at.end_lineno, at.end_col_offset):
        return False
    if instruction.opname in ("RESUME", "COPY_FREE_VARS", "MAKE_CELL"):
        return False
    if len(position) == 1:
        return bool(at.lineno == position[0])
    line, column, end, end_column = position
    begins_inside = (line, column) <= (at.lineno, at.col_offset)
    return bool(begins_inside and (at.end_lineno, at.end_col_offset) <= (end, end_column))


def count_runs(code: types.CodeType, tick: Callable[[], object]) -> types.CodeType:
    """``code`` with a call of ``tick`` in front.

    ``code`` is bytecode that Dynamo generated; it is run, never traced.
    """

    def insert(instructions: list[Any], _options: dict[str, Any]) -> None:
        names = [instruction.opname for instruction in instructions]
        start = names.index("RESUME") + 1 if "RESUME" in names else 0
        instructions[start:start] = _call_of(tick)

    return _transform(code, insert, tick)


def _call_of(tick: Callable[[], object]) -> list[Any]:
    create_instruction, create_call_function = get("create_instruction"), get("create_call_function")
    load = create_instruction("LOAD_CONST", argval=tick)
    return [*_push_null_and(load, create_call_function), create_instruction("POP_TOP")]


def _push_null_and(load: Any, create_call_function: Callable[..., list[Any]]) -> list[Any]:
    # With push_null the helper emits what this Python needs around the callable (3.11-3.14 differ).
    call = create_call_function(0, push_null=True)
    null = [instruction for instruction in call if instruction.opname == "PUSH_NULL"]
    rest = [instruction for instruction in call if instruction.opname not in ("PUSH_NULL", "SWAP", "ROT_TWO")]
    # 3.13 changed the order from (NULL, callable) to (callable, NULL).
    return [load, *null, *rest] if sys.version_info >= (3, 13) else [*null, load, *rest]


def _transform(code: types.CodeType, insert: Callable[..., None], *called: object) -> types.CodeType:
    # torch keeps transformed code by its hash, which covers its constants; Dynamo puts dicts among them.
    stand_ins: dict[int, object] = {}
    constants = []
    for item in code.co_consts:
        hashable = item if _is_hashable(item) else object()
        if hashable is not item:
            stand_ins[id(hashable)] = item
        constants.append(hashable)
    transformed = get("transform_code")(code.replace(co_consts=tuple(constants)), insert)
    # torch returns (code, tracer output) since 2.9; earlier builds returned the code alone.
    new_code = transformed[0] if isinstance(transformed, tuple) else transformed
    if not isinstance(new_code, types.CodeType):
        raise TypeError("transform_code_object returned no code object")
    if not any(item is called[0] for item in new_code.co_consts):
        raise TypeError("the counting call did not reach the compiled code")
    return new_code.replace(co_consts=tuple(stand_ins.get(id(item), item) for item in new_code.co_consts))


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
