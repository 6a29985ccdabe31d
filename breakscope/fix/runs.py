"""The runs of the user's script that a rewrite needs: one to record, one for each proof."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscope.fix.patch import Edit
from breakscope.inside.prove.claims import Claims
from breakscope.inside.record.evidence import Evidence
from breakscope.inside.start import Agent
from breakscope.run import launch
from breakscope.run.launch import Program

SEED = 0


@dataclass(frozen=True, slots=True)
class Script:
    """The user's script, and how it is run.

    Attributes:
        folder: for the runs' own files. timeout_s: of one run. budget_s: for the comparisons of one rewrite.
    """

    what: Program
    folder: Path
    timeout_s: float | None
    budget_s: float


def record(script: Script, functions: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Evidence]]:
    """Run the script eagerly and note what expressions of functions evaluate to.

    Args:
        functions: dotted paths, by real path of their file.

    Returns:
        Evidence by file and function; a file that was never loaded is missing.
    """
    result = script.folder / "evidence.json"
    settings = {"functions": functions, "script": script.what.path, "seed": SEED, "result": str(result)}
    _run(script, "breakscope.inside.record.agent", settings)
    if not result.exists():
        return {}
    data = json.loads(result.read_text(encoding="utf-8"))
    return {
        file: {name: Evidence.load(evidence) for name, evidence in seen.items()}
        for file, seen in data.items()
    }


def prove(script: Script, file: str, edits: Sequence[Edit], claims: Claims) -> dict[str, Any]:
    """Run the script eagerly with one file in its old and its new form, and compare them.

    Args:
        claims: what the rewrites behind the edits say of themselves.

    Returns:
        ``functions``: what :meth:`breakscope.inside.prove.session.Session.result` says of each, or
        ``trouble``: why nothing was compared. ``files``: it, and those of the user's own modules.
    """
    result = script.folder / "proof.json"
    result.unlink(missing_ok=True)
    settings = {
        "file": file,
        "script": script.what.path,
        "edits": [[edit.start, edit.end, edit.text] for edit in edits],
        "claims": dataclasses.asdict(claims),
        "budget_s": script.budget_s,
        "seed": SEED,
        "result": str(result),
    }
    ended = _run(script, "breakscope.inside.prove.agent", settings)
    if not result.exists():
        return {"trouble": f"the function was not called in the proof run, which ended with {ended}"}
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return {**found, "ended": ended, "files": [file, *found.get("files", ())]}


def _run(script: Script, module: str, settings: Mapping[str, Any]) -> str:
    with (script.folder / "log").open("ab") as log:
        agent = Agent(module, json.dumps(settings))
        ended = launch.run(script.what, agent, script.timeout_s, stdout=log.fileno())
    return ended.status


def module_of(file: str, script: str) -> str | None:
    """The name under which a file is imported; None for the script itself."""
    if os.path.realpath(file) == os.path.realpath(script):
        return None
    path = Path(file)
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if len(parts) == 1 and str(folder) not in (*sys.path, str(Path(script).parent), os.getcwd()):
        # A namespace package: the name cannot be told from the path alone; the path will do.
        return None
    return ".".join(parts)


def prove_files(script: Script, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Run the script eagerly with all files of a patch in both forms, and compare them.

    Args:
        settings: as :func:`breakscope.inside.prove.patch_agent.start` takes them.

    Returns:
        ``functions``, ``loaded``, ``troubles``, ``files``, and how the run ``ended``.
    """
    result = script.folder / "proof.json"
    result.unlink(missing_ok=True)
    common = {"script": script.what.path, "budget_s": script.budget_s, "seed": SEED, "result": str(result)}
    # In a file: an environment variable could not hold a large patch.
    given = script.folder / "patch.json"
    given.write_text(json.dumps({**settings, **common}), encoding="utf-8")
    ended = _run(script, "breakscope.inside.prove.patch_agent", {"given": str(given)})
    found: dict[str, Any] = {"functions": [], "loaded": {}, "troubles": [], "files": []}
    if result.exists():
        found = json.loads(result.read_text(encoding="utf-8"))
    return {**found, "ended": ended}
