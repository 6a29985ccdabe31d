"""The agent of a proof run of a patch by anybody: all files that it changes, in both forms.

Like :mod:`breakscope.inside.prove.agent`, which proves one rewrite of ours in one file.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from breakscope.inside import imports, loaded, overlay, tracebacks
from breakscope.inside.prove import pair, pair_patch
from breakscope.inside.prove.agent import ProofRun

_SEPARATOR = "::"


def start(settings_text: str) -> None:
    """Called by the boot file.

    Args:
        settings_text: JSON: ``given``, a file of JSON with ``files`` (by real path: ``sha256`` of what is on
            disk, and the edits that make ``old`` and ``new`` of it), ``script``, ``claims``, ``budget_s``,
            ``seed``, ``result``, ``through`` (functions to be compared through their callers), and ``only``
            (function, number of a call and name of an input), to compare nothing else.
    """
    settings = json.loads(Path(json.loads(settings_text)["given"]).read_text(encoding="utf-8"))
    run = PatchRun(settings)
    atexit.register(run.save)
    sys.excepthook = tracebacks.without_our_frames(sys.excepthook)
    imports.after_import("torch", run.torch_is_there)
    files = settings["files"]
    script = os.path.realpath(settings["script"])
    overlay.watch(
        {loaded.stem(one) for one in files},
        lambda _module, origin: os.path.realpath(origin) in files,
        run.parse,
        script if script in files else None,
    )


class PatchRun(ProofRun):
    """The changed files of a patch, loaded in both forms."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self._sessions: dict[str, Any] = {}
        self._conditions: dict[str, list[Any]] = {}
        self._shared: list[Any] = []
        self._loaded: dict[str, Mapping[str, Any]] = {}
        self._troubles: dict[str, None] = {}

    def parse(self, data: bytes, path: str) -> ast.Module:
        """A changed file with each changed function in both forms."""
        file = os.path.realpath(path)
        given = self.settings["files"][file]
        source = importlib.util.decode_source(data)
        if hashlib.sha256(data).hexdigest() != given["sha256"]:
            self._troubles[f"{file} has changed since the patch was read"] = None
            return ast.parse(source, filename=path)
        old, new = (overlay.edited(source, [*map(tuple, given[side])]) for side in ("old", "new"))
        number = list(self.settings["files"]).index(file)
        through = [name for place, name in self.settings["through"] if place == file]
        try:
            pairs = pair_patch.pair_patch(old, new, path, through)
        except (pair.NotPairedError, SyntaxError) as error:
            self._loaded[file] = {"whole": str(error)}
            self.save()
            return ast.parse(old, filename=path)
        names = {"functions": pairs.functions, "through": pairs.through}
        self._loaded[file] = {**names, "removed": pairs.removed, "added": pairs.added}
        for name, conditions in pairs.conditions.items():
            made = [watched.condition for watched in conditions]
            self._conditions[f"{number}{_SEPARATOR}{name}"] = made
            if name in pairs.through:
                self._shared += made
        self._rename(pairs.tree, number)
        vars(builtins).update(
            {
                pair.FORM: self._form,
                pair.CHECK: self._check,
                pair.CONDITION: self._condition,
                pair_patch.THROUGH: self._through,
                pair_patch.ADDED: self._added,
            }
        )
        self.save()
        return pairs.tree

    def _rename(self, tree: ast.Module, number: int) -> None:
        """Functions of two files may have one name."""
        ours = {pair.FORM, pair.CHECK, pair.CONDITION, pair_patch.THROUGH}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours:
                assert isinstance(node.args[0], ast.Constant)
                node.args[0].value = f"{number}{_SEPARATOR}{node.args[0].value!s}"

    def _session(self, name: str) -> Any:
        from breakscope.inside.prove.budget import Budget
        from breakscope.inside.prove.claims import Claims
        from breakscope.inside.prove.session import Session
        from breakscope.inside.prove.tally import Tally

        if name not in self._sessions:
            claims, only = Claims(**self.settings["claims"]), self.settings.get("only")
            budget = 0.0 if only and only[0] != name else self.settings["budget_s"]
            tally = Tally(name, self._conditions[name], claims, anybody=True)
            tally.shared = [one for one in self._shared if all(one is not own for own in tally.conditions)]
            tally.only = (only[1], only[2]) if only else None
            self._sessions[name] = Session(tally, Budget(budget), self.save)
        return self._sessions[name]

    def _through(self, name: str) -> Callable[[Any], Any]:
        stood_for: Callable[[Any], Any] = self._session(name).through
        return stood_for

    def _added(self, cls: str, name: str) -> Callable[[Any], Any]:
        """A new method must not stand before one that the class inherits: asked when the class is made."""

        class Asking:
            def __init__(self, function: Any) -> None:
                self.function = function

            def __set_name__(_self, owner: type, as_name: str) -> None:  # noqa: N805
                if any(hasattr(base, name) for base in owner.__bases__):
                    self._troubles[f"it adds {cls}.{name}, which a base class has as well"] = None
                setattr(owner, as_name, _self.function)

        return Asking

    def save(self) -> None:
        """Write what is known up to now."""
        functions = [
            {**session.tally.result(), "key": name, "function": name.partition(_SEPARATOR)[2]}
            for name, session in self._sessions.items()
        ]
        for function in functions:
            number = int(function["key"].partition(_SEPARATOR)[0])
            function["file"] = list(self.settings["files"])[number]
        self._save(
            {
                "functions": functions,
                "loaded": self._loaded,
                "troubles": list(self._troubles),
                "files": loaded.own_files(),
            }
        )
