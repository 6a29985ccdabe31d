"""What the live objects of Dynamo know about a break at the moment that it reports it."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator
from typing import Any

from breakscope.diagnose.records import unresumed
from breakscope.inside.torch_api import available, get
from breakscope.inside.torch_api.kinds import kinds_of

# (line, byte column, end line, end byte column)
Span = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class BreakDetails:
    """What the live objects know about a break that its text does not say.

    Attributes:
        position: (line, byte column, end line, end byte column) of the broken expression, lines
            from 1 and columns from 0; None where Dynamo does not know.
        inlined: how many inlined calls deep the break is in the frame being compiled; None if
            not known.
        path: (file, line, function) of the frame being compiled, and of each inlined call to the break. The
            record's text leaves the first one out where an item() or the like broke in an inlined call.
        kinds: (file, first line) of the function that broke and of those that called it, the innermost first,
            each with what its names are (:func:`~breakscope.inside.torch_api.kinds.kinds_of`).
    """

    position: Span | None
    inlined: int | None
    path: tuple[tuple[str, int, str], ...] = ()
    kinds: tuple[tuple[str, int, dict[str, str]], ...] = ()


def break_details(file: str, line: int, name: str) -> BreakDetails:
    """Details of the break that Dynamo is reporting to the trace logger at this moment.

    Args:
        file: file of the innermost user frame, as the record's text gives it.
        line: its line; torch's own log is off by some lines now and then.
        name: its function, a resume function under the name of what it resumes.
    """
    error = sys.exc_info()[1]
    translators = list(_translators(error))
    positions = (_position(translator, file, line) for translator in translators)
    position = next(filter(None, positions), None)
    stack = _real_stack(error)
    if position is None and stack:
        position = _summary_position(stack[-1], file, line)
    if position is None:
        own = (one for one in translators if unresumed(one.f_code.co_name) == name)
        position = next(filter(None, (_position(one, file, None) for one in own)), None)
    path = tuple((one.filename, one.lineno, unresumed(one.name)) for one in stack or ())
    return BreakDetails(
        position, None if stack is None else max(len(stack) - 1, 0), path, tuple(_kinds(translators))
    )


def _kinds(translators: list[Any]) -> Iterator[tuple[str, int, dict[str, str]]]:
    seen = set()
    for translator in translators:
        code = translator.f_code
        if code not in seen:
            seen.add(code)
            yield code.co_filename, code.co_firstlineno, kinds_of(translator)


def _translators(error: BaseException | None) -> Iterator[Any]:
    """Dynamo's instruction translators at work, innermost inlined call first.

    They are the ``self`` of frames: of those that the exception went through (an inlined callee is
    gone from the stack by the time its caller reports the break), then of those still running.
    """
    seen: set[int] = set()
    chain: list[BaseException] = []
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        chain.append(error)
        error = error.__cause__ or error.__context__
    for link in reversed(chain):
        frames = []
        traceback = link.__traceback__
        while traceback is not None:
            frames.append(traceback.tb_frame)
            traceback = traceback.tb_next
        for frame in reversed(frames):
            yield from _translator_of(frame)
    running: types.FrameType | None = sys._getframe(1)
    while running is not None:
        yield from _translator_of(running)
        running = running.f_back


def _translator_of(frame: types.FrameType) -> Iterator[Any]:
    if not frame.f_code.co_filename.endswith("symbolic_convert.py"):
        return
    translator = frame.f_locals.get("self")
    if hasattr(translator, "current_instruction") and hasattr(translator, "f_code"):
        yield translator


def _position(translator: Any, file: str, line: int | None) -> Span | None:
    span = _span(translator.current_instruction)
    if span is None or translator.f_code.co_filename != file:
        return None
    if line is not None and not span[0] <= line <= span[2]:
        return None
    return _tested(translator, span) or span


def _span(instruction: Any) -> Span | None:
    at = getattr(instruction, "positions", None)
    if at is None:
        return None
    span = at.lineno, at.col_offset, at.end_lineno, at.end_col_offset
    return None if None in span else span


def _tested(translator: Any, span: Span) -> Span | None:
    """The place of the value that a jump tests, where the jump's own place does not hold it.

    In ``mask is not None and not mask.all()`` CPython 3.11 gives the second jump the place of the first.
    """
    jump = translator.current_instruction
    if "_IF_" not in jump.opname:
        return None
    at = next((n for n, instruction in enumerate(translator.instructions) if instruction is jump), 0)
    value = _span(translator.instructions[at - 1]) if at else None
    if value is None or (span[:2] <= value[:2] and value[2:] <= span[2:]):
        return None
    return value


def _summary_position(summary: Any, file: str, line: int) -> Span | None:
    column, end_column = getattr(summary, "colno", None), getattr(summary, "end_colno", None)
    if summary.filename != file or summary.lineno != line or column is None or end_column is None:
        return None
    end_line = getattr(summary, "end_lineno", None) or line
    return line, column, end_line, end_column


def _real_stack(error: BaseException | None) -> list[Any] | None:
    stack = getattr(error, "real_stack", None)
    if stack is None and available("extract_stack"):
        stack = get("extract_stack")()
    return None if stack is None else list(stack)
