"""The findings that a project knows of and accepts: a small JSON file to keep in the repository.

One part for each target, sorted, without counts, times or paths of a machine, so that its history shows what
came and went. ``breakscope check --update-baseline`` writes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from breakscope.errors import BaselineError, OutputError
from breakscope.report import schema

# 1: the first layout.
VERSION = 1
MAX_BYTES = 64 * 1024 * 1024
_KEY = "breakscope_baseline"
_START_ANEW = "restore it from version control, or delete it and run breakscope check --update-baseline"


@dataclass(frozen=True, slots=True)
class Known:
    """One known finding.

    Attributes:
        fingerprint: its name, by which it is recognised; the rest is for readers and for another torch.
        file: relative to the repository, or from the package on.
        source: the line without its comment; empty for findings about a whole function.
    """

    fingerprint: str
    code: str
    file: str
    function: str
    source: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is known of one target.

    Attributes:
        torch: with which version it was seen; breakscope: by which version.
        compiled_by_script: whether the script, or a library on its behalf, compiled anything itself.
    """

    torch: str | None
    breakscope: str
    compiled_by_script: bool
    findings: tuple[Known, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known of every target, by the target's name."""

    targets: Mapping[str, Accepted] = field(default_factory=dict)

    @property
    def fingerprints(self) -> frozenset[str]:
        """Of everything that is known."""
        return frozenset(
            finding.fingerprint for accepted in self.targets.values() for finding in accepted.findings
        )


def is_baseline(head: bytes) -> bool:
    """Whether a file that begins like this is a baseline."""
    return f'"{_KEY}"'.encode() in head


def load(path: str | os.PathLike[str]) -> Baseline:
    """Read a baseline.

    Raises:
        FileNotFoundError: there is no such file.
        BaselineError: it is damaged, something else, or of a newer version; one sentence.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(name) from None
    except (OSError, ValueError) as error:
        raise _error(name, getattr(error, "strerror", None) or str(error)) from None
    if len(data) > MAX_BYTES:
        raise _error(name, f"it is larger than {MAX_BYTES // 1024**2} MB")
    try:
        return _baseline(_parse(data))
    except ValueError as error:
        raise _error(name, str(error)) from None


def save(baseline: Baseline, path: str | os.PathLike[str]) -> None:
    """Write a baseline whole or not at all, its folder too. Raises OutputError."""
    name = os.fspath(path)
    data = {
        _KEY: VERSION,
        "targets": {target: _encoded(baseline.targets[target]) for target in sorted(baseline.targets)},
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    # What no file can hold, of a path that is not UTF-8, stays an escape.
    encoded = re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text).encode() + b"\n"
    try:
        Path(name).absolute().parent.mkdir(parents=True, exist_ok=True)
        schema.write(encoded, name)
    except (OSError, OutputError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).rpartition(": ")[2]
        raise OutputError(f"cannot write the baseline to {name}: {reason}") from None


def _error(name: str, why: str) -> BaselineError:
    return BaselineError(f"cannot read the baseline {name}: {why}")


def _encoded(accepted: Accepted) -> dict[str, Any]:
    ordered: Sequence[Known] = sorted(
        accepted.findings,
        key=lambda finding: (
            finding.file,
            finding.function,
            finding.source,
            finding.code,
            finding.fingerprint,
        ),
    )
    return {
        "torch": accepted.torch,
        "breakscope": accepted.breakscope,
        "compiled_by_script": accepted.compiled_by_script,
        "findings": [asdict(one) for one in ordered],
    }


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        if data.lstrip().startswith(b"{"):
            raise ValueError(f"it is truncated or damaged; {_START_ANEW}") from None
        raise ValueError(f"it is not JSON: {error.msg}; {_START_ANEW}") from None
    except (UnicodeDecodeError, RecursionError):
        raise ValueError(f"it is not JSON; {_START_ANEW}") from None


def _baseline(data: Any) -> Baseline:
    if isinstance(data, dict) and "schema_version" in data and "findings" in data:
        raise ValueError("this is a report, not a baseline; breakscope check --update-baseline writes one")
    if not isinstance(data, dict) or _KEY not in data:
        raise ValueError("this is not a baseline of breakscope")
    version = data[_KEY]
    if type(version) is not int or version < 1:
        raise ValueError(f"{_KEY} must be an integer from 1 to {VERSION}")
    if version > VERSION:
        raise ValueError(
            f"it has version {version}, and this breakscope reads up to {VERSION}: upgrade with "
            "pip install --upgrade torch-breakscope"
        )
    targets = _typed(data, "targets", dict)
    return Baseline({name: _accepted(name, one) for name, one in targets.items()})


def _accepted(name: str, data: Any) -> Accepted:
    if not isinstance(data, dict):
        raise ValueError(f"targets.{name} is not an object")
    torch = data.get("torch")
    return Accepted(
        torch=torch if isinstance(torch, str) else None,
        breakscope=_typed(data, "breakscope", str),
        compiled_by_script=_typed(data, "compiled_by_script", bool),
        findings=tuple(_known(one) for one in _typed(data, "findings", list)),
    )


def _known(data: Any) -> Known:
    if not isinstance(data, dict):
        raise ValueError("findings holds something that is not an object")
    return Known(**{one.name: _typed(data, one.name, str) for one in fields(Known)})


def _typed(data: dict[str, Any], key: str, kind: type) -> Any:
    value = data.get(key)
    if not isinstance(value, kind):
        names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
        raise ValueError(f"{key} must be {names[kind]}; {_START_ANEW}")
    return value
