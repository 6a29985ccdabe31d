"""The agent of a proof run: loads one module in both forms and writes what the comparison says.

The script runs eagerly, and goes on with the results of its old code.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from breakscope.inside import imports, loaded, overlay, tracebacks
from breakscope.inside.prove import pair
from breakscope.report import files


def start(settings_text: str) -> None:
    """Called by the boot file.

    Args:
        settings_text: JSON: ``file``, ``module``, ``script``, ``edits``, ``claims``, ``budget_s``,
            ``seed``, and ``result``, the file for the outcome.
    """
    settings = json.loads(settings_text)
    run = ProofRun(settings)
    sys.excepthook = tracebacks.without_our_frames(sys.excepthook)
    imports.after_import("torch", run.torch_is_there)
    file = os.path.realpath(settings["file"])
    is_script = file == os.path.realpath(settings["script"])
    stem = Path(file).parent.name if Path(file).stem == "__init__" else Path(file).stem
    overlay.watch(
        (stem,),
        lambda _module, origin: os.path.realpath(origin) == file,
        run.parse,
        file if is_script else None,
    )


class ProofRun:
    """One module, loaded in both forms."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        atexit.register(self.save)
        self._sessions: dict[str, Any] = {}
        self._conditions: dict[str, list[pair.Watched]] = {}
        self._texts: dict[str, tuple[ast.stmt, ast.stmt]] = {}

    def torch_is_there(self) -> None:
        """Nothing is compiled, and everything is drawn from one seed."""
        import torch

        from breakscope.inside.torch_api.hooks import leave_inductor_alone

        leave_inductor_alone()
        torch.compiler.set_stance("force_eager")
        torch.manual_seed(self.settings["seed"])

    def parse(self, data: bytes, path: str) -> ast.Module:
        """The module with each changed function in both forms."""
        source = importlib.util.decode_source(data)
        old = ast.parse(source, filename=path)
        edits = sorted(map(tuple, self.settings["edits"]), key=lambda edit: edit[:2])
        try:
            pairs = pair.pair(old, ast.parse(overlay.edited(source, edits), filename=path))
        except pair.NotPairedError as error:
            self._save({"trouble": f"the two forms cannot be compared: {error}"})
            return ast.parse(source, filename=path)
        self._conditions, self._texts = pairs.conditions, pairs.texts
        if not pairs.functions:
            self._save({"trouble": "the rewrite changes no function"})
        vars(builtins).update(
            {pair.FORM: self._form, pair.CHECK: self._check, pair.CONDITION: self._condition}
        )
        return pairs.tree

    def _session(self, name: str) -> Any:
        from breakscope.inside.prove.budget import MOST_TIMES, Budget
        from breakscope.inside.prove.claims import Claims
        from breakscope.inside.prove.conditions import Condition
        from breakscope.inside.prove.session import Session
        from breakscope.inside.prove.structure import relies_on
        from breakscope.inside.prove.tally import Tally

        if name not in self._sessions:
            conditions = [
                Condition(condition.text, condition.operand_of) for condition in self._conditions[name]
            ]
            claims = Claims(**self.settings["claims"])
            same = relies_on(*self._texts[name], silent=claims.silent)
            budget_s = self.settings["budget_s"]
            budget = Budget(budget_s, more_s=(MOST_TIMES - 1) * budget_s)
            self._sessions[name] = Session(Tally(name, conditions, claims), budget, self.save, relies_on=same)
        return self._sessions[name]

    def _form(self, name: str, form: str) -> Callable[[Any], Any]:
        def keep(function: Any) -> Any:
            self._session(name).forms[form] = function
            return function

        return keep

    def _check(self, name: str) -> Callable[[Any], Any]:
        checked: Callable[[Any], Any] = self._session(name).checked
        return checked

    def _condition(self, name: str, index: int, value: Any) -> Any:
        return self._sessions[name].tally.condition(index, value)

    def save(self) -> None:
        """Write what is known up to now."""
        if self._sessions:
            functions = [session.tally.result() for session in self._sessions.values()]
            self._save({"functions": functions, "files": loaded.own_files()})

    def _save(self, data: dict[str, Any]) -> None:
        files.replace(self.settings["result"], json.dumps(data).encode())
