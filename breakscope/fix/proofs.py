"""Proofs of functions: begun ahead and side by side, and kept from one ``fix`` to the next.

A proof says what two forms of a function did on the calls of one script. It is kept under a name that is
made of all it depends on: the bytes of the module, the edits and what they claim, the script's arguments,
what the recorded run saw, every file of the project that was loaded, breakscope's own source, and the
versions of all that is installed. What a script reads besides its modules (a data set, the time) is not
among that: scan again where it has changed. How long a run may take (``--timeout``) is not either: of a run
that was ended by it nothing is kept. Nor is anything kept that holds what looks like a secret.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from breakscope.fix import runs
from breakscope.fix.patch import Edit
from breakscope.fix.runs import Script
from breakscope.fix.side import Side
from breakscope.inside.capture.secrets import Redactor
from breakscope.inside.prove.claims import Claims
from breakscope.report import files

Proof = dict[str, Any]
# Variables that torch and its libraries read.
_READ = ("TORCH", "PYTORCH", "OMP_", "MKL_", "CUDA", "PYTHON", "HF_", "TRANSFORMERS")
_PACKAGE = Path(__file__).parent.parent


class Proofs:
    """Proofs of one script.

    Args:
        folder: where they are kept; None: nowhere.

    Attributes:
        kept: how many were taken from there.
    """

    def __init__(self, script: Script, side: Side, folder: Path | None) -> None:
        self._script, self._side, self._folder = script, side, folder
        self._begun: dict[str, Future[Proof]] = {}
        self.kept = 0

    def begin(self, file: str, edits: Sequence[Edit], claims: Claims) -> None:
        """Begin a proof that may be asked for, beside others, if runs may be made side by side."""
        name = self._name(file, edits, claims)
        if name not in self._begun and self._load(name) is None:
            begun = self._side.begin(lambda: self._prove(name, file, edits, claims))
            if begun is not None:
                self._begun[name] = begun

    @property
    def ended(self) -> int:
        """How many of those that were begun have ended."""
        return sum(begun.done() for begun in self._begun.values())

    def of(self, file: str, edits: Sequence[Edit], claims: Claims) -> Proof:
        """What :func:`breakscope.fix.runs.prove` says, now or at an earlier time."""
        name = self._name(file, edits, claims)
        begun = self._begun.get(name)
        if begun is not None:
            return begun.result()
        found = self._load(name)
        if found is not None:
            self.kept += 1
            return found
        return self._prove(name, file, edits, claims)

    def _prove(self, name: str, file: str, edits: Sequence[Edit], claims: Claims) -> Proof:
        found = runs.prove(self._script, file, edits, claims)
        # One that ran out of time would see more on a machine that is less busy, or with a longer --timeout.
        ran_out = any(one["ran_out"] for one in found.get("functions", ()))
        whole = "trouble" not in found and found["ended"] != "timeout" and not ran_out
        if self._folder is not None and whole:
            keep(self._folder / f"{name}.json", {"proof": found}, found["files"])
        return found

    def _load(self, name: str) -> Proof | None:
        if self._folder is None:
            return None
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            data = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
            if data["files"] == digests(data["files"]):
                proof: Proof = data["proof"]
                return proof
        return None

    def _name(self, file: str, edits: Sequence[Edit], claims: Claims) -> str:
        script = self._script
        changes = sorted((edit.start, edit.end, edit.text) for edit in edits)
        seen = script.warm.plain.seen if script.warm is not None and script.warm.plain is not None else ""
        about = [changes, dataclasses.asdict(claims), script.budget_s, seen, digests([file])]
        return digest(json.dumps([*about, *setting(script)]).encode())


def setting(script: Script) -> list[Any]:
    """What every answer about a script depends on, besides its files."""
    program = [script.what.script, script.what.module, list(script.what.args), os.getcwd()]
    read = {name: value for name, value in sorted(os.environ.items()) if name.startswith(_READ)}
    return [program, digests([script.what.path]), read, sys.version, _own_source(), _installed()]


def digests(files: Sequence[str] | Mapping[str, Any]) -> dict[str, str]:
    """sha256 of files, by path; "" of one that cannot be read."""
    found = {}
    for file in files:
        try:
            found[file] = digest(Path(file).read_bytes())
        except OSError:
            found[file] = ""
    return found


def holds_secrets(data: Any) -> bool:
    """Whether a report would not show all of some JSON. Then it is not kept: masked, it would say less."""
    texts = list(_texts(data))
    return bool(Redactor(live=False).clean({"texts": texts})["texts"] != texts)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from map(str, value)
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def digest(data: bytes) -> str:
    """The sha256 of data."""
    return hashlib.sha256(data).hexdigest()


def keep(place: Path, data: Mapping[str, Any], depends_on: Iterable[str]) -> None:
    """Write an answer with the digests of the files that it depends on, whole or not at all.

    Nothing is kept where it cannot be written, nor of what holds a secret: with a part masked it would be
    another answer.
    """
    if not holds_secrets(data):
        whole = {**data, "files": digests(sorted(depends_on))}
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            files.replace(place, json.dumps(whole).encode())


@cache
def _own_source() -> str:
    """A digest of breakscope itself: a version number says too little of a checkout."""
    files = sorted(_PACKAGE.rglob("*.py"))
    return digest(b"".join(digest(one.read_bytes()).encode() for one in files))


@cache
def _installed() -> str:
    """A digest of the names and versions of all that is installed."""
    names = sorted(
        f"{distribution.name} {distribution.version}" for distribution in importlib.metadata.distributions()
    )
    return digest("\n".join(names).encode())
