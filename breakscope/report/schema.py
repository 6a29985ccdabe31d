"""The report file: :class:`~breakscope.report.model.Report` to JSON and back, and its JSON Schema.

All three come from the dataclasses of :mod:`breakscope.report.model`, so that they cannot drift apart.
Keys that this version does not know are ignored when reading; a key that has a default in the model
may be missing. Everything else is checked, and an error names the field.
"""

from __future__ import annotations

import json
import os
import stat
import typing
from collections.abc import Iterator
from typing import Any

from breakscope.errors import ReportError
from breakscope.report import json_text
from breakscope.report.call_shape import check_arguments
from breakscope.report.codec import MismatchError, decode, describe, encode, encode_in_parts, inside
from breakscope.report.files import write
from breakscope.report.model import Report
from breakscope.report.secrets import masked

# 1: the first layout. Keys added since, without a new number because additions are free: cost.spread_ms,
# cost.parts, finding.not_measured, finding.intended, steps, compiles, timing, signatures, artifacts; for
# merged reports ranks, divergences, finding.by_rank, region.rank, region.split, region.collectives, and
# process in region, step, compile and signature; "unknown" as run.status, and null for totals.regions and
# totals.ops, in what was imported; run.asked, run.sources, run.machine; least_ms, most_ms and steps in cost,
# and in timing what repairs would gain, the steady steps, and the calibration; finding.caused_by, expected
# and effect; caches and bypassed in compiles, and parts in steps; alike and forward in signatures;
# since in what was skipped.
SCHEMA_VERSION = 1

MAX_BYTES = 512 * 1024 * 1024
_TRUNCATED = "it is truncated: the JSON ends too early; run the scan again"


# ---- Report <-> plain data ----


def to_dict(report: Report) -> dict[str, Any]:
    """The report as plain JSON types, keys in the order of the model, ``schema_version`` first.

    A number that is not finite is not known: the smallest optional value that holds it becomes null.
    In free-form mappings (evidence, benchmark) it becomes a string. Raises ValueError for one that
    nothing can stand for, TypeError for a value that JSON does not have.
    """
    return {"schema_version": SCHEMA_VERSION, **encode(masked(report), Report)}


def from_dict(data: Any) -> Report:
    """The report that :func:`to_dict` made. Raises ReportError, naming the field that is wrong."""
    if not isinstance(data, dict) or "schema_version" not in data or "findings" not in data:
        raise ReportError("this is not a breakscope report")
    version = data["schema_version"]
    if type(version) is not int or version < 1:
        raise ReportError(f"schema_version must be an integer from 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise ReportError(
            f"the report has schema version {version}, and this breakscope reads up to {SCHEMA_VERSION}: "
            "upgrade with pip install --upgrade torch-breakscope"
        )
    try:
        report = typing.cast(Report, decode(data, Report))
        for number, call in enumerate(report.signatures):
            with inside(f".signatures[{number}].arguments"):
                check_arguments(call.arguments)
    except MismatchError as error:
        raise ReportError(str(error)) from None
    return report


def dumps(report: Report) -> str:
    """The report as JSON text that is always valid UTF-8. Raises as :func:`to_dict` does."""
    return b"".join(_encoded(report)).decode("utf-8")


def _encoded(report: Report) -> Iterator[bytes]:
    """The report in parts, a finding each: the whole takes 15 MB for 5,000 of them."""
    yield f'{{\n "schema_version": {SCHEMA_VERSION}'.encode()
    for name, value in encode_in_parts(masked(report), Report):
        yield f',\n "{name}": '.encode()
        if isinstance(value, Iterator):
            before = b"[\n  "
            for item in value:
                yield before + _bytes(item, newline="\n  ")
                before = b",\n  "
            yield b"[]" if before == b"[\n  " else b"\n ]"
        else:
            yield _bytes(value, newline="\n ")
    yield b"\n}\n"


def _bytes(value: Any, newline: str) -> bytes:
    # A path that is not UTF-8 holds lone surrogates. No file can hold them but as escapes.
    return json_text.text(value, newline).encode("utf-8", errors="backslashreplace")


# ---- files ----


def load(path: str | os.PathLike[str]) -> Report:
    """Read a report file of up to ``MAX_BYTES``. Raises ReportError, one sentence that names the file."""
    name = os.fspath(path)
    try:
        data = _read(name)
        if name.endswith(".py"):
            raise ReportError(f"it is a script, not a report: breakscope scan {name} runs it and writes one")
        return from_dict(_parse(data))
    except ReportError as error:
        raise ReportError(f"cannot read {name}: {error}") from None
    except MemoryError:
        raise ReportError(f"cannot read {name}: it does not fit into memory") from None


def save(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report file whole or not at all; an earlier one stays until the new one is on disk.

    The folder must exist. Raises OutputError.
    """
    write(_encoded(report), path)


def _read(name: str) -> bytes:
    too_large = f"it is larger than {MAX_BYTES // 1024**2} MB, the most that breakscope reads"
    try:
        if os.stat(name).st_size > MAX_BYTES:
            raise ReportError(too_large)
        with open(name, "rb") as file:
            # A pipe or a device says 0 bytes and may never end.
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read() if is_file else file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ReportError("no such file; breakscope scan SCRIPT writes one") from None
    except IsADirectoryError:
        raise ReportError("it is a directory; name the report file inside it") from None
    except (OSError, ValueError) as error:
        raise ReportError(getattr(error, "strerror", None) or str(error)) from None
    if len(data) > MAX_BYTES:
        raise ReportError(too_large)
    return data


def _parse(data: bytes) -> Any:
    if not data.strip():
        raise ReportError("it is empty")
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        if _ends_too_early(error):
            raise ReportError(_TRUNCATED) from None
        where = f"line {error.lineno} column {error.colno}"
        raise ReportError(f"it is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise ReportError("this is not a breakscope report: it is nested too deeply") from None
    except UnicodeDecodeError as error:
        at_end = data.startswith(b"{") and error.end >= len(data)
        raise ReportError(_TRUNCATED if at_end else "it is not JSON: it is not even text") from None
    except ValueError as error:  # NaN, an integer of thousands of digits
        raise ReportError(f"it is not JSON: {error}") from None


def _ends_too_early(error: json.JSONDecodeError) -> bool:
    text = error.doc.rstrip()
    stopped = error.pos >= len(text) or error.msg.startswith("Unterminated string") or not text.endswith("}")
    return text.startswith("{") and stopped


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


# ---- JSON Schema ----


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a report file of ``SCHEMA_VERSION``.

    Required are the keys that a reader may rely on in every file of this version.
    """
    definitions: dict[str, Any] = {}
    describe(Report, definitions)
    report = definitions.pop(Report.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "breakscope report",
        "description": report["description"],
        "type": "object",
        "properties": {"schema_version": {"const": SCHEMA_VERSION}, **report["properties"]},
        "required": ["schema_version", *report["required"]],
        "$defs": definitions,
    }
