"""Every finding code of breakscope, and which code each of torch's graph-break ids belongs to.

Works offline and without torch. The texts are in :mod:`breakscope.catalog.entries` and the table of torch's
ids in ``gb_codes.json``; both load on first use, because every command imports this module.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from breakscope.catalog.entry import Entry, Remedy, Severity
from breakscope.errors import UnknownCodeError
from breakscope.report.ranking import is_open

if TYPE_CHECKING:
    from breakscope.catalog.ways import Way
    from breakscope.report.model import Finding, GuardCause

GENERIC = "BS199"

_WIDTH = 92
_TAIL = r"For more details about this graph break|User code traceback|Traceback \(most recent call last\)"
_HINT = r"(?ms)^\s*Hint:.*?(?=^\s*(?:Hint|Developer debug context):|\Z)"
_REMEDIES: dict[Remedy, str] = {
    "rewrite": "rewrite the line",
    "config": "change a setting of torch",
    "annotation": "tell Dynamo about the function or type",
    "hoist": "move it out of the compiled function",
    "remove": "remove the call",
    "reorder": "let Dynamo drop it or run it after the graph",
    "upstream": "needs a change in torch, or another way to write it",
    "consequence": "repair the break that caused it",
    "user_error": "repair the program: it fails in eager too",
}
_CAUSES: dict[GuardCause, str] = {
    "size": "BS201",
    "stride": "BS202",
    "dtype": "BS203",
    "device": "BS204",
    "requires_grad": "BS205",
    "rank": "BS206",
    "int_value": "BS207",
    "float_value": "BS207",
    "constant_value": "BS208",
    "module_attribute": "BS209",
    "identity": "BS210",
    "type": "BS210",
    "container": "BS211",
    "global_state": "BS212",
    "item_value": "BS213",
    "symbolic_shape": "BS214",
    "aliasing": "BS215",
    "dispatch_keys": "BS216",
    "other": "BS299",
}


def severity(finding: Finding) -> Severity | None:
    """How bad a finding is; None for a code that only a newer breakscope knows."""
    if not is_open(finding):
        return "info"
    if finding.effect is not None:
        return "error"
    known = find(finding.code)
    return known.severity if known else None


def entry(code: str) -> Entry:
    """The entry of a code such as ``BS101``, in either case.

    Raises:
        UnknownCodeError: there is no such code; names the nearest one.
    """
    found = find(code)
    if found is None:
        raise _unknown(code)
    return found


def find(code: str) -> Entry | None:
    """The same; None for a code that only another breakscope knows, as a report may hold one."""
    return _entries().get(code.strip().upper())


def codes() -> tuple[Entry, ...]:
    """Every entry, in the order of the codes."""
    return tuple(_entries().values())


def cause_code(cause: GuardCause) -> str:
    """The BS2xx code of what differed when a guard failed."""
    return _CAUSES[cause]


def code_for_gb(gb_id: str | None, gb_type: str | None = None, reason: str = "") -> str:
    """The BS code of a graph break that torch reported. Never raises.

    Args:
        gb_id: torch's id, ``GB0170`` or ``gb0170``; None where torch gave none (2.9 does so for branches).
        gb_type: torch's name of the kind of break; used where the id is missing or newer than our table.
        reason: the text of the record, whole or in parts. Some ids cover a print as well as a C extension;
            the text tells them apart.
    """
    from breakscope.catalog.entries import GUESSES, REFINEMENTS

    name = _normal(gb_id or "")
    subject = _subject(name, reason)
    code: str | None = _table()["codes"].get(name)
    if code is None:
        guesses = (
            found for pattern, found in GUESSES if re.search(pattern, gb_type or subject, re.IGNORECASE)
        )
        code = next(guesses, GENERIC)
    for coarse, pattern, finer in REFINEMENTS:
        if code in coarse and re.search(pattern, subject):
            return finer
    return code


def remedy_for_gb(gb_id: str) -> Remedy:
    """What sort of thing helps against one of torch's ids; that of its code unless we know better."""
    name = _normal(gb_id)
    special: Remedy | None = _table()["remedies"].get(name)
    return special or entry(code_for_gb(name)).remedy


def is_skip_gb(gb_id: str | None) -> bool:
    """Whether torch gives up on the frame with this id, so that the rest or all of it runs eagerly.

    Any other break can skip a frame too: then a second id is chained to it, or the record begins with
    "Failed to handle graph break gracefully". An id that is not skipping proves nothing.
    """
    name = _normal(gb_id or "")
    return _table()["codes"].get(name) in ("BS301", "BS302") or name in _table()["skips"]


def explain(text: str, width: int = _WIDTH) -> str:
    """Plain text for ``breakscope explain``, for one of our codes or one of torch's ids.

    Args:
        width: columns; lines of code may be longer.

    Raises:
        UnknownCodeError: neither our tables nor the installed torch know it; names the nearest one.
    """
    from textwrap import fill

    width = min(width, _WIDTH)
    name = _normal(text)
    if name in _entries():
        return _describe(_entries()[name], _entries()[name].remedy, width)
    said = _torch_registry().get(name)
    if name not in _table()["codes"] and said is None:
        raise _unknown(text)
    found = entry(code_for_gb(name, said["Gb_type"] if said else None))
    first = f"{name} is torch's id for a kind of graph break; breakscope reports it as {found.code}."
    remedy = remedy_for_gb(name) if name in _table()["codes"] else found.remedy
    lines = [fill(first, width), "", _describe(found, remedy, width)]
    if said is not None:
        lines += ["", "The installed torch says:", *(f"  | {line}" for line in _quote(said, width - 4))]
    return "\n".join(lines)


def list_text() -> str:
    """Plain text for ``breakscope explain --list``: every code with its title, one a line."""
    groups = {
        "1": "graph breaks",
        "2": "recompiles and guards",
        "3": "skips, limits and failures",
        "4": "compile times",
    }
    lines: list[str] = []
    for digit, heading in groups.items():
        lines += ["", heading] if lines else [heading]
        lines += [f"  {item.code}  {item.title}" for item in codes() if item.code[2] == digit]
    return "\n".join(lines)


def ids_of(code: str) -> tuple[str, ...]:
    """Torch's ids of breaks that are reported under one of our codes."""
    return tuple(sorted(name for name, own in _table()["codes"].items() if own == code))


def ways_of(code: str) -> tuple[Way, ...]:
    """The ways out that torch offers for a code, by name and version."""
    from breakscope.catalog.ways import WAYS

    return tuple(way for way in WAYS if code in way.codes)


def help_of(remedy: Remedy) -> str:
    """What sort of thing helps, in words."""
    return _REMEDIES[remedy]


def _describe(item: Entry, remedy: Remedy, width: int) -> str:
    from textwrap import fill

    ids = ids_of(item.code)
    parts = [
        fill(f"{item.code}  {item.title}", width, subsequent_indent="       "),
        "",
        fill(item.why, width, initial_indent="why    ", subsequent_indent="       "),
        fill(item.fix, width, initial_indent="do     ", subsequent_indent="       "),
        fill(f"helps  {_REMEDIES[remedy]}", width, subsequent_indent="       "),
        "",
        "\n".join(folded for line in item.more.split("\n") for folded in _folded(line, width)),
    ]
    ways = [f"{way.name} (torch {way.since} and newer): {way.does}" for way in ways_of(item.code)]
    parts += [""] if ways else []
    for label, text in zip(chain(["torch"], repeat("")), ways, strict=False):
        parts.append(fill(text, width, initial_indent=f"{label:<7}", subsequent_indent="       "))
    if ids:
        shown = " ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        parts += ["", fill(f"ids    {shown}", width, subsequent_indent="       ")]
    return "\n".join(parts)


def _folded(line: str, width: int) -> list[str]:
    """A line of an example, indented; what is too long goes on in the next line, deeper or as a comment."""
    from textwrap import wrap

    indent = " " * (7 + len(line) - len(line.lstrip()))
    deeper = f"{indent}# " if line.lstrip().startswith("#") else f"{indent}        "
    # In an example as wide as the usual width nothing is folded: it can be copied as it stands.
    room = width if width < _WIDTH else len(indent + line)
    return wrap(line.strip(), room, initial_indent=indent, subsequent_indent=deeper) or [""]


def _quote(said: dict[str, Any], width: int) -> list[str]:
    from textwrap import wrap

    lines = wrap(str(said["Gb_type"]), width)
    lines += wrap(_words(str(said.get("Explanation", ""))), width)
    for hint in said.get("Hints", []):
        lines += wrap(_words(str(hint)), width, initial_indent="- ", subsequent_indent="  ")
    return lines


def _words(text: str) -> str:
    """A text of torch's table; of one that is an expression of Python, the words in it.

    torch writes some of its texts only at run time: the table holds the source of those.
    """
    import ast

    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return text
    parts: list[tuple[int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts.append((node.lineno, node.col_offset, node.value))
        elif isinstance(node, ast.FormattedValue):
            parts.append((node.lineno, node.col_offset, f"{{{ast.unparse(node.value)}}}"))
    # By place alone: up to Python 3.11 the parts of one text have the same, and are in order.
    parts.sort(key=lambda part: part[:2])
    return " ".join("".join(part[2] for part in parts).split())


def _subject(name: str, reason: str) -> str:
    """The part of a record's text that speaks of the user's code.

    Hints and examples name functions that have nothing to do with this break ("e.g. `print`"), and a
    chained record speaks of two breaks.
    """
    sections = reason.split("*** While handling this graph break, another graph break occurred")
    text = next((part for part in sections if f"/{name.lower()}.html" in part), sections[0])
    text = re.split(_TAIL, text, maxsplit=1)[0]
    return re.sub(_HINT, "", re.sub(r"\(e\.g\.[^)]*\)", "", text))


def _normal(text: str) -> str:
    name = text.strip().upper()
    # "GB170" and "GB0170" are the same id to a reader.
    match = re.fullmatch(r"GB0*(\d{1,4})", name)
    return f"GB{match[1]:0>4}" if match else name


def _unknown(text: str) -> UnknownCodeError:
    from difflib import get_close_matches

    name = _normal(text).replace("O", "0")  # no code has the letter
    known = [*_entries(), *_table()["codes"]]
    near = get_close_matches(name, known, n=len(known), cutoff=0.6)
    # Among codes that share as many letters, the nearest has them in the same places.
    near.sort(key=lambda code: sum(a == b for a, b in zip(code, name, strict=False)), reverse=True)
    hint = f"did you mean {near[0]}? " if near else ""
    return UnknownCodeError(f"no code {text.strip()!r}: {hint}`breakscope explain --list` shows all of ours")


@cache
def _entries() -> dict[str, Entry]:
    from breakscope.catalog.entries import ENTRIES

    return {item.code: item for item in ENTRIES}


@cache
def _table() -> dict[str, Any]:
    import json
    from pathlib import Path

    path = Path(__file__).parent / "gb_codes.json"
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


@cache
def _torch_registry() -> dict[str, dict[str, Any]]:
    """What the installed torch says of its ids, newest wording; empty without torch. Does not import it."""
    import json
    from importlib.util import find_spec
    from pathlib import Path

    try:
        spec = find_spec("torch")
    except ValueError:  # a stand-in module without a spec sits in sys.modules
        return {}
    if spec is None or spec.origin is None:
        return {}
    path = Path(spec.origin).parent / "_dynamo" / "graph_break_registry.json"
    try:
        registry = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # an older or a damaged torch: our own text stands without the quotation
        return {}
    if not isinstance(registry, dict):
        return {}
    newest = {
        name: versions[0] for name, versions in registry.items() if isinstance(versions, list) and versions
    }
    return {name: said for name, said in newest.items() if isinstance(said, dict) and "Gb_type" in said}
