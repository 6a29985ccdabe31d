"""The agent of a recording run: the functions that hold findings tell what their expressions evaluate to."""

from __future__ import annotations

import ast
import atexit
import builtins
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from breakscope.inside import imports, loaded, overlay, tracebacks
from breakscope.inside.record import observe
from breakscope.inside.record.observe import Recorder
from breakscope.report import files

_SAVE_AT = frozenset(2**power for power in range(24))


def start(settings_text: str) -> None:
    """Called by the boot file.

    Args:
        settings_text: JSON: ``functions`` (dotted paths by file), ``script``, ``seed``, ``result``, the
            file for the evidence, and ``tell``: a pipe for names of modules as they are loaded, or "".
    """
    settings = json.loads(settings_text)
    noticing = loaded.notice()
    sys.excepthook = tracebacks.without_our_frames(sys.excepthook)
    run = _Recording(settings, noticing)
    atexit.register(run.save)
    imports.after_import("torch", run.torch_is_there)
    script = os.path.realpath(settings["script"])
    overlay.watch(
        {loaded.stem(file) for file in run.recorders},
        lambda _module, origin: os.path.realpath(origin) in run.recorders,
        run.parse,
        script if script in run.recorders else None,
    )


def _stay_eager() -> None:
    # As torch.compiler does, for which it is too early: the module is not an attribute of its package yet.
    sys.modules["torch._dynamo"].set_stance("force_eager")


class _Recording:
    def __init__(self, settings: dict[str, Any], noticing: loaded.Noticing) -> None:
        self._settings, self._noticing = settings, noticing
        self._functions: dict[str, list[str]] = settings["functions"]
        self._calls = 0
        self._room: Callable[[], int | None] = lambda: None
        # One for each file, because functions of two files may have one name.
        self.recorders = {file: Recorder() for file in self._functions}

    def torch_is_there(self) -> None:
        """Nothing is compiled, and everything is drawn from one seed."""
        import torch

        from breakscope.inside import card
        from breakscope.inside.torch_api.hooks import leave_inductor_alone

        leave_inductor_alone()
        self._room = card.room
        imports.after_import("torch._dynamo", _stay_eager)  # loading it takes seconds
        torch.manual_seed(self._settings["seed"])
        self._noticing.torch_is_there()
        if place := self._settings.get("tell"):
            self._noticing.tell(place, self.recorders)

    def parse(self, data: bytes, path: str) -> ast.Module:
        """The module with its functions under observation."""
        file = os.path.realpath(path)
        recorder = self.recorders[file]
        source = importlib.util.decode_source(data)
        tree = ast.parse(source, filename=path)
        observe.instrument(tree, source, self._functions[file], recorder)
        ending = f"{list(self.recorders).index(file)}__"
        names = {name: self._saving(name, function) for name, function in recorder.names().items()}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                node.id += ending
        vars(builtins).update({name + ending: function for name, function in names.items()})
        return tree

    def _saving(self, name: str, function: Any) -> Any:
        if name != observe.ENTER:
            return function

        def enter(*args: Any) -> None:
            function(*args)
            self._calls += 1
            if self._calls in _SAVE_AT:  # a script that is killed leaves what was seen up to then
                self.save()

        return enter

    def save(self) -> None:
        """Write what was seen up to now."""
        seen = {
            file: {name: recorder.evidence(name).dump() for name in self._functions[file]}
            for file, recorder in self.recorders.items()
        }
        data = {
            "seen": seen,
            "loaded": self._noticing.result(),
            "files": loaded.own_files(),
            "room": self._room(),
        }
        files.replace(self._settings["result"], json.dumps(data).encode())
