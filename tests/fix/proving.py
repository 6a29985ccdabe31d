"""The proof of a rewrite in the test's own process: the paired module, and calls as a script makes them."""

from __future__ import annotations

import contextlib
import json
import linecache
import sys
import types
from pathlib import Path
from typing import Any

from programs import arguments, entry, quiet, source_of, unmeasured_guards

from breakscope.inside.prove.agent import ProofRun


def proof(
    before: str,
    after: str,
    calls: tuple[str, ...],
    folder: Path,
    *,
    exact: bool = True,
    budget: float = 60,
    **claims: Any,
) -> dict[str, Any]:
    """What a proof run says of a module's two forms after some calls of ``f``."""
    old, new = source_of(before), source_of(after)
    result = folder / "proof.json"
    file = str(folder / "module.py")
    linecache.cache[file] = (len(old), None, old.splitlines(keepends=True), file)
    settings = {
        "edits": [[0, len(old), new]],
        "claims": {"exact": exact, **claims},
        "budget_s": budget,
        "result": str(result),
    }
    run = ProofRun(settings)
    # Dynamo imports the module of a function whose decorator it traces.
    module = sys.modules["module"] = types.ModuleType("module")
    names = vars(module)
    exec(compile(run.parse(old.encode(), file), file, "exec"), names)
    f = entry(names)
    with quiet(), unmeasured_guards():
        for seed, call in enumerate(calls):
            args, kwargs = arguments(call, seed)
            with contextlib.suppress(Exception):
                f(*args, **kwargs)
    run.save()
    found = json.loads(result.read_text())
    found["files"] = []  # no script stands behind the calls: what is loaded here are the tests
    for one in found.get("functions", ()):
        # The tests and their runner: they catch what f raises, as the scripts behind these calls do not.
        one["callers"] = []
    return found
