"""Reading the text of Dynamo's graph-break records.

One parser for the live hook and for trace files. Dynamo emits ``dynamo_graph_break_reason`` from
three places, each with a layout of its own:

- normal: "Graph break in user code at FILE:LINE", the reason, "User code traceback:", frames;
- whole frame: "Graph break: ... skip ...", frames, then a Python traceback that ends in the reason;
- backend or Dynamo failure: "WON'T CONVERT NAME FILE line N", a Python traceback, frames.

The reason itself is a chain of blocks when handling one break met another (a break inside a loop).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from breakscope import catalog

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+), in (?P<name>.+)$')
_CARETS = re.compile(r"^ {4,}[~^ ]*[~^][~^ ]*$")
_CHAIN = "*** While handling this graph break, another graph break occurred: ***"
_GB_LINK = re.compile(r"/gb/gb(\d+)\.html")
_COMPREHENSION = re.compile(r"^__comprehension_(?P<name>.+)_at_\d+_\d+$")
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_UNSUPPORTED = re.compile(r"^(?:torch\._dynamo\.exc\.)?Unsupported: ", re.MULTILINE)
_WONT_CONVERT = re.compile(r"^WON'T CONVERT (?P<name>.+?) (?P<file>\S.*) line (?P<line>\d+)")
_SKIPPED = re.compile(
    r"^torch\.compile will skip tracing the frame (?P<name>.+?) \((?P<file>.+) line (?P<line>\d+)\)",
    re.MULTILINE,
)
_EXCEPTION = re.compile(
    r"^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Unsupported|Limit\w*|Hit)): (?P<text>.*)", re.MULTILINE
)
_REASON_LABEL = re.compile(r"\n(?:Graph Break )?Reason: ")  # the short one up to torch 2.6
_PREFIXES = (
    re.compile(r"^Encountered graph break (?:when|that we cannot)[^\n]*\n+"),
    re.compile(r"^Failed to handle graph break gracefully\.[^\n]*\n+"),
    re.compile(r"^Graph Break Reason: "),
    re.compile(r"^Unsupported: "),
)
_FUSED_BY_HAND = re.compile(
    r"attention|rnn|lstm|gru_cell|\b_?fused_|grouped_mm|^(mkl|mkldnn|onednn|quantized)\."
)
_OPS = "torch.ops."
_FALLBACK = re.compile(r"\s*(?:\w+\s*=\s*)?torch\.ops\.(\w+\.\w+)\.\w+\(")
GRACELESS = "Failed to handle graph break gracefully"


@dataclass(frozen=True, slots=True)
class RawFrame:
    """A frame as Dynamo printed it; the name of a resume function is already that of its function.

    Attributes:
        carets: the first character that ``^`` underlines and the one after the last, counted from 0 in
            ``source``; all of it where Python left them out because they would underline the whole line.
            None where the version of torch prints none.
    """

    file: str
    line: int
    name: str
    source: str | None
    carets: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """One block of a reason.

    Attributes:
        gb_id: "GB0170", or None where Dynamo gave no link.
        gb_type: Dynamo's title of this kind of break.
    """

    gb_id: str | None
    gb_type: str
    explanation: str
    hints: tuple[str, ...]
    context: str | None


@dataclass(frozen=True, slots=True)
class BreakRecord:
    """A graph-break record, parsed.

    Attributes:
        frames: the user's call path, outermost first, polyfills left out; empty if Dynamo gave none.
        reasons: the chain of reasons: the first is what broke, the last is what followed from it.
        skips_frame: whether Dynamo gave up on the whole frame.
        failed: whether the backend or Dynamo itself failed (the third layout).
    """

    frames: tuple[RawFrame, ...]
    reasons: tuple[Reason, ...]
    skips_frame: bool
    failed: bool
    text: str

    @property
    def location(self) -> RawFrame | None:
        """Where it broke: the innermost frame."""
        return self.frames[-1] if self.frames else None


@lru_cache(maxsize=512)  # a break is reported again in every recompile, in the same words
def parse_break(payload: str) -> BreakRecord:
    """Parse one record. Never raises: what cannot be read leaves ``frames`` or ``reasons`` empty."""
    if payload.startswith("WON'T CONVERT"):
        return _parse_failure(payload)
    if payload.startswith("Graph break in user code"):
        head, _, tail = payload.partition("\nUser code traceback:\n")
        reason = [*_REASON_LABEL.split(head, maxsplit=1), ""][1]
        reason = reason.partition("\nStack variable source attribution:\n")[0]
        frames = parse_frames(_until_python_traceback(tail))
        return BreakRecord(frames, parse_reasons(reason), GRACELESS in reason, False, payload)
    if payload.startswith("Graph break: "):
        head, _, tail = payload.partition("\nTraceback (most recent call last):\n")
        reason = _exception_message(tail)
        frames = parse_frames(head) or _skipped_frame(head)
        return BreakRecord(frames, parse_reasons(reason), True, False, payload)
    return BreakRecord((), (), False, False, payload)


def _skipped_frame(head: str) -> tuple[RawFrame, ...]:
    """The frame that is given up before anything of it is traced, as under an eager ``torch.func.grad``."""
    found = _SKIPPED.search(head)
    if found is None:
        return ()
    return (RawFrame(found["file"], int(found["line"]), unresumed(found["name"]), None),)


def with_compiled_frame(record: BreakRecord, path: Sequence[Sequence[Any]]) -> BreakRecord:
    """The record, with the frame that was being compiled on its call path where torch left it out.

    Args:
        path: (file, line, function) of that frame and of each inlined call, from the live exception.
    """
    if len(path) < 2:
        return record
    first, second = (RawFrame(file, line, name, None) for file, line, name in path[:2])
    if any((one.file, one.line, one.name) == (first.file, first.line, first.name) for one in record.frames):
        return record
    for at, frame in enumerate(record.frames):
        if (frame.file, frame.line, frame.name) == (second.file, second.line, second.name):
            return replace(record, frames=(*record.frames[:at], first, *record.frames[at:]))
    return record


def _parse_failure(payload: str) -> BreakRecord:
    marker = " The above exception occurred while processing the following code "
    trace, _, code = payload.partition(marker)
    frames = parse_frames(code)
    first = _WONT_CONVERT.match(payload)
    if not frames and first:
        frames = (RawFrame(first["file"], int(first["line"]), unresumed(first["name"]), None),)
    found = list(_EXCEPTION.finditer(trace))
    title = f"{found[-1]['type'].rpartition('.')[2]}: {found[-1]['text']}" if found else "failure"
    rest = trace[found[-1].start() :].strip().strip("=").strip() if found else trace
    reason = Reason(
        None, "backend or Dynamo failure", f"{title}\n{rest}" if rest != title else title, (), None
    )
    return BreakRecord(frames, (reason,), True, True, payload)


def without_traceback(payload: str) -> str:
    """A record without what :func:`parse_break` leaves out of it: Dynamo's own frames, most of the text."""
    if not payload.startswith("Graph break in user code"):
        return payload
    head, found, tail = payload.partition("\nUser code traceback:\n")
    return head + found + _until_python_traceback(tail)


def _until_python_traceback(text: str) -> str:
    # The user's frames and Dynamo's own traceback follow one another in the same format.
    for end in ("\nTraceback (most recent call last):\n", "\nNoneType: None"):
        text = text.partition(end)[0]
    return text


def _exception_message(traceback_text: str) -> str:
    """The message of the last Unsupported in a Python traceback, or of the last exception."""
    found = list(_UNSUPPORTED.finditer(traceback_text))
    if found:
        return traceback_text[found[-1].end() :].strip()
    exceptions = list(_EXCEPTION.finditer(traceback_text))
    return traceback_text[exceptions[-1].start() :].strip() if exceptions else ""


def parse_frames(text: str) -> tuple[RawFrame, ...]:
    """Frames in the format of Python's tracebacks, resumed functions folded, torch's stand-ins left out."""
    lines = text.split("\n")
    frames: list[RawFrame] = []
    for index, line in enumerate(lines):
        match = _FRAME.match(line)
        if match is None:
            continue
        following = lines[index + 1] if index + 1 < len(lines) else ""
        source = following.strip() if following.startswith("    ") and not _CARETS.match(following) else None
        below = lines[index + 2] if source and index + 2 < len(lines) else ""
        frame = RawFrame(
            match["file"], int(match["line"]), unresumed(match["name"]), source or None, _underlined(below)
        )
        resumed = _RESUME.match(match["name"]) is not None
        if resumed and frames and (frames[-1].file, frames[-1].name) == (frame.file, frame.name):
            frames.pop()  # the resumed half of the function that is already on the path
        frames.append(frame)
    kept = [frame for frame in frames if not is_polyfill(frame.file)]
    if any(frame.carets for frame in kept):
        kept = [
            replace(frame, carets=(0, len(frame.source))) if frame.source and not frame.carets else frame
            for frame in kept
        ]
    while len(kept) > 1 and _hands_on(kept[-1]):
        kept.pop()
    return tuple(kept)


def _underlined(line: str) -> tuple[int, int] | None:
    """Where a line of carets begins and ends, without the four blanks of a traceback."""
    if not _CARETS.match(line):
        return None
    return len(line) - len(line.lstrip()) - 4, len(line.rstrip()) - 4


def fallback_ops(code: str) -> list[str]:
    """The ops that code of Inductor's calls because it has no kernel for them: ``aten.bincount``.

    Kernels that a library fused by hand (attention, recurrent layers, MKL-DNN) are the ones it wants.
    """
    found: set[str] = set()
    at = code.find(_OPS)  # few lines have it, and most of an import's time would go into matching the others
    while at >= 0:
        match = _FALLBACK.match(code, code.rfind("\n", 0, at) + 1)
        if match is not None and not _FUSED_BY_HAND.search(match[1]):
            found.add(match[1])
        at = code.find(_OPS, at + 1)
    return sorted(found)


def code_of(reason: Reason) -> str:
    """The catalog's code of a reason."""
    return catalog.code_for_gb(reason.gb_id, reason.gb_type, f"{reason.explanation}\n{reason.context or ''}")


def is_polyfill(file: str) -> bool:
    """Whether a file is one of Dynamo's stand-ins for builtins, which no user has called."""
    return "/torch/_dynamo/polyfills/" in file.replace("\\", "/")


def _hands_on(frame: RawFrame) -> bool:
    """Whether a frame is the ``__torch_function__`` by which torch sets a device or keeps a tensor's class.

    It stands between each operation and the line that has it, and only calls the operation.
    """
    own = frame.file.replace("\\", "/").endswith(("/torch/utils/_device.py", "/torch/_tensor.py"))
    return own and frame.name == "__torch_function__"


def unresumed(name: str) -> str:
    """The function that a resume function (``torch_dynamo_resume_in_NAME_at_LINE``) continues: ``NAME``.

    The same of what Dynamo makes of a comprehension that breaks: ``__comprehension_NAME_at_LINE_NUMBER``.
    """
    while (match := _RESUME.match(name) or _COMPREHENSION.match(name)) is not None:
        name = match["name"]
    return name


def resumed_at(name: str) -> int:
    """The line of the break behind which a resume function goes on; 0 of other functions."""
    found = re.search(r"_at_(\d+)$", name) if is_resume(name) else None
    return int(found[1]) if found else 0


def is_resume(name: str) -> bool:
    """Whether a code name is that of a resume function."""
    return _RESUME.match(name) is not None


def parse_error_frames(payload: str) -> tuple[RawFrame, ...]:
    """The user's call path in a ``dynamo_error`` record; empty where it has none."""
    code = payload.rpartition("\nfrom user code:\n")[2] if "\nfrom user code:\n" in payload else ""
    return parse_frames(code.removeprefix(" "))  # one blank stands before the first line


def parse_reasons(text: str) -> tuple[Reason, ...]:
    """The chain of reasons in a message, the cause first."""
    return tuple(_parse_block(block) for block in text.split(_CHAIN) if block.strip())


@lru_cache(maxsize=512)  # a kind of break comes many times
def _parse_block(block: str) -> Reason:
    block = block.strip("\n")
    for prefix in _PREFIXES:
        block = prefix.sub("", block, count=1)
    link = _GB_LINK.search(block)
    block = re.sub(r"\n+ ?For more details about this graph break, please visit: \S+", "", block)
    gb_type: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    for line in block.split("\n"):
        field = re.match(r"^  (Explanation|Hint|Developer debug context|Higher Order Operator): ?(.*)$", line)
        if field:
            sections.append((field[1], [field[2]]))
        elif sections and sections[-1][0] == "Developer debug context" and not line.startswith("    "):
            break  # Dynamo's message ends with the context; what follows is a quoted traceback
        elif sections:
            sections[-1][1].append(line.removeprefix("    "))
        else:
            gb_type.append(line)

    def text_of(name: str) -> list[str]:
        return ["\n".join(lines).strip() for key, lines in sections if key == name]

    return Reason(
        gb_id=f"GB{link[1]}" if link else None,
        gb_type=_first_paragraph(gb_type),
        explanation="\n".join(text_of("Explanation")),
        hints=tuple(text_of("Hint")),
        context=next(iter(text_of("Developer debug context")), None),
    )


def _first_paragraph(lines: list[str]) -> str:
    text = "\n".join(lines).strip()
    return text.split("\n\n")[0].strip()


def bypass_reason(payload: str) -> str:
    """Why torch did not ask a cache for a graph, out of the artifact that says so."""
    try:
        told = json.loads(payload)
    except ValueError:
        return "torch gave no reason that could be read"
    reason = told.get("cache_bypass_reason") if isinstance(told, dict) else None
    return " ".join(str(reason).split()) if reason else "torch gave no reason"
