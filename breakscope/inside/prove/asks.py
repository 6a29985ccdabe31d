"""Whether the new form of a function asks whether it is compiled, and may be other code then."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import torch._dynamo.external_utils

from breakscope.inside.prove.attempt import Conditions, UnreadableError
from breakscope.inside.prove.bench import Bench, Form, code_of
from breakscope.inside.prove.patience import EndlessError

_OF_TORCH = str(Path(torch.__file__).parent)
_ASKED = {
    function.__code__
    for function in (
        torch.compiler.is_compiling,
        torch.compiler.is_dynamo_compiling,
        torch.compiler.is_exporting,
        torch._dynamo.external_utils.is_compiling,
    )
}


def whether_compiled(bench: Bench, conditions: Conditions) -> bool:
    """Whether its own file asks, or what it calls asks more often than in the old form.

    Such code is other code once it is compiled, though neither an ``if`` nor its text shows that. It is told
    of a call in eager; where somebody profiles the script it cannot be, and may be so.
    """
    if sys.getprofile() is not None:
        return True
    new = _asking(bench, "new", conditions)
    if new[code_of(bench.forms["new"]).co_filename]:
        return True
    return new.total() > 0 and new.total() > _asking(bench, "old", conditions).total()


def _asking(bench: Bench, form: Form, conditions: Conditions) -> Counter[str]:
    """How often files ask, but for torch's own."""
    files = Counter[str]()

    def note(frame: Any, event: str, _result: Any) -> None:
        if event == "call" and frame.f_code in _ASKED and frame.f_back is not None:
            file = frame.f_back.f_code.co_filename
            files[file] += not file.startswith(_OF_TORCH)

    sys.setprofile(note)
    try:
        with contextlib.suppress(UnreadableError, EndlessError):
            bench.run(form, conditions)
    finally:
        sys.setprofile(None)
    return files
