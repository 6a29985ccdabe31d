"""The runs of the user's script that a rewrite needs: one to record, one for each proof."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscope.fix.patch import Edit
from breakscope.inside.prove.claims import Claims
from breakscope.inside.record.evidence import Evidence
from breakscope.inside.start import Agent
from breakscope.report.model import Report
from breakscope.run import launch, written
from breakscope.run.launch import Ended, Program
from breakscope.run.warm import Plain, Warm

SEED = 0
MOST_JOBS = 6
_BYTES_OF_A_RUN = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Script:
    """The user's script, and how it is run.

    Attributes:
        folder: for the runs' own files. timeout_s: of one run. budget_s: for the comparisons of one rewrite.
        warm: forks runs after the first; None: every run is started by itself. jobs: runs at a time.
        timeouts: the seconds after which runs were ended; those that run them add to it.
    """

    what: Program
    folder: Path
    timeout_s: float | None
    budget_s: float
    warm: Warm | None = None
    jobs: int = 1
    timeouts: list[float] = dataclasses.field(default_factory=list, compare=False)

    @property
    def side_by_side(self) -> bool:
        """Whether runs may be made at one time: they are forks, and the script writes no files of its own."""
        warm = self.warm
        apart = warm is not None and not warm.trouble and warm.plain is not None and not warm.plain.writes
        return self.at_once > 1 and apart

    @property
    def at_once(self) -> int:
        """Runs at a time: as many as were asked for, and as the card has memory for, once that is known."""
        plain = self.warm.plain if self.warm is not None else None
        return self.jobs if plain is None or plain.room is None else min(self.jobs, plain.room)

    @property
    def on_a_card(self) -> bool:
        """Whether runs use a GPU: one that several use at a time times none of them."""
        return self.warm is not None and self.warm.plain is not None and self.warm.plain.room is not None

    def note(self, ended: Ended) -> None:
        """Note how a run ended. Raises KeyboardInterrupt: one Ctrl-C ends the session, not one run of it."""
        if ended.status == "interrupted":
            raise KeyboardInterrupt
        if ended.status == "timeout":
            self.timeouts.append(ended.duration_s)


def record(script: Script, functions: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Evidence]]:
    """Run the script eagerly and note what expressions of functions evaluate to.

    Args:
        functions: dotted paths, by real path of their file.

    Returns:
        Evidence by file and function; a file that was never loaded is missing.
    """
    result = script.folder / "evidence.json"
    result.unlink(missing_ok=True)
    first = script.warm is not None and not script.warm.started
    warm = script.warm if not first and _loads_itself(script, functions) else None
    if script.warm is not None and first:
        script.warm.begin()
    settings = {
        "functions": functions,
        "script": script.what.path,
        "seed": SEED,
        "result": str(result),
        "tell": script.warm.told if script.warm is not None and first else "",
    }
    agent = Agent("breakscope.inside.record.agent", json.dumps(settings), patient=True)
    ours = [script.folder, *(parent for parent in script.folder.parents if parent.name.startswith(".run-"))]
    before = written.look(Path.cwd(), ours)
    ended, said = _run(script, agent, "record", warm)
    data = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {"seen": {}}
    seen = {
        file: {name: Evidence.load(evidence) for name, evidence in each.items()}
        for file, each in data["seen"].items()
    }
    if script.warm is not None and first:
        writes = bool(written.written(Path.cwd(), before, ours).written)
        calls = {(file, name): one.calls for file, each in seen.items() for name, one in each.items()}
        script.warm.plain = Plain(
            ended.exit_code,
            said,
            writes,
            calls,
            json.dumps(data["seen"], sort_keys=True),
            data.get("files", ()),
            data.get("room"),
        )
        loaded = data.get("loaded", {"modules": {}, "environment": {}})
        script.warm.load(loaded["modules"], loaded["environment"])
    return seen


def prove(script: Script, file: str, edits: Sequence[Edit], claims: Claims) -> dict[str, Any]:
    """Run the script eagerly with one file in its old and its new form, and compare them.

    Args:
        claims: what the rewrites behind the edits say of themselves.

    Returns:
        ``functions``: what :meth:`breakscope.inside.prove.tally.Tally.result` says of each, or
        ``trouble``: why nothing was compared. ``files``: it, and those of the user's own modules.
    """
    warm = script.warm if _loads_itself(script, (file,)) else None
    found = _proved(script, file, edits, claims, warm)
    if warm is not None and warm.forks and not warm.over and _unlike(found, file, warm.plain):
        found = _proved(script, file, edits, claims, None)
    return found


def _proved(
    script: Script, file: str, edits: Sequence[Edit], claims: Claims, warm: Warm | None
) -> dict[str, Any]:
    handle, place = tempfile.mkstemp(dir=script.folder, prefix="proof-", suffix=".json")
    os.close(handle)
    result = Path(place)
    result.unlink()
    settings = {
        "file": file,
        "script": script.what.path,
        "edits": [[edit.start, edit.end, edit.text] for edit in edits],
        "claims": dataclasses.asdict(claims),
        "budget_s": script.budget_s,
        "seed": SEED,
        "result": str(result),
    }
    agent = Agent("breakscope.inside.prove.agent", json.dumps(settings), patient=True)
    ended, _ = _run(script, agent, result.stem, warm)
    if not result.exists():
        return {"trouble": f"the function was not called in the proof run, which ended with {ended.status}"}
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return {**found, "ended": ended.status, "files": [file, *found.get("files", ())]}


def _unlike(found: Mapping[str, Any], file: str, plain: Plain | None) -> bool:
    """Whether a forked proof run went another way than the plain recording, and has to be made again."""
    if plain is None or "trouble" in found or (found["ended"] == "ok") != (plain.exit_code == 0):
        return True
    known = ((one, plain.calls.get((file, one["function"]))) for one in found["functions"])
    return any(calls is not None and calls != one["calls"] for one, calls in known)


def _loads_itself(script: Script, files: Iterable[str]) -> bool:
    """Whether a fork has not loaded what is to be watched in it."""
    return script.warm is not None and script.warm.excluded.issuperset(map(os.path.realpath, files))


def _run(script: Script, agent: Agent, name: str, warm: Warm | None) -> tuple[Ended, bytes]:
    """Run the script. Returns how it ended and what it printed."""
    log = script.folder / f"{name}.log"
    with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
        ended = launch.run(
            script.what, agent, script.timeout_s, stdout=out.fileno(), stderr=err.fileno(), warm=warm
        )
    script.note(ended)
    return ended, log.read_bytes()


def jobs(report: Report) -> int:
    """How many runs this machine takes at a time: two GiB for each. A GPU may have room for fewer.

    One more than it has cores, where it has several: none is idle while the last of three runs goes on.
    """
    if report.run.device is not None and report.run.device.type not in ("", "cpu", "cuda"):
        return 1  # nothing asks such a device for its memory
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = min(cores + (cores > 1), MOST_JOBS)
    return max(1, min(wanted, _free_bytes() // _BYTES_OF_A_RUN))


def _free_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return _BYTES_OF_A_RUN
    free = next((line.split()[1] for line in lines if line.startswith("MemAvailable")), "0")
    return int(free) * 1024


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
    agent = Agent("breakscope.inside.prove.patch_agent", json.dumps({"given": str(given)}), patient=True)
    ended, _ = _run(script, agent, "patch", None)
    found: dict[str, Any] = {"functions": [], "loaded": {}, "troubles": [], "files": []}
    if result.exists():
        found = json.loads(result.read_text(encoding="utf-8"))
    return {**found, "ended": ended.status}
