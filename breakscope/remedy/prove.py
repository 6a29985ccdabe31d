"""Running the script with a remedy, and judging what came of it."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope import overlay
from breakscope.capture.settings import Settings
from breakscope.capture.trial import Comparison, Trial, compare, trial
from breakscope.child.launch import Program
from breakscope.model import Finding
from breakscope.remedy.candidate import GRADIENTS, WRITES, Candidate, Edit
from breakscope.remedy.source import Files

# Results may differ by rounding where a number became a tensor; more is another result.
TOLERANCE = 1e-5
_SHOWN = 300
_FORBIDDEN = {
    GRADIENTS: "gradients flow back through the compiled calls, so they are wanted",
    WRITES: "a compiled call writes to an argument, and would write to the copy",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a trial of a candidate showed.

    Attributes:
        proved: whether it did what it must, and nothing else.
        helped: whether the outputs stayed and recompiles became fewer, but not as few as they must.
        why: how it was proved, or what stands against it, as a sentence without its full stop.
        after: the trial; None where it could not be compared.
    """

    proved: bool
    helped: bool
    why: str
    evidence: dict[str, Any]
    after: Trial | None


class Prover:
    """Trials of one script: the run as it is once, and once for each change.

    Args:
        folder: gets the files of all runs; the caller removes it.
        timeout_s: for one run of the script.
    """

    def __init__(
        self, what: Program, settings: Settings, folder: Path, timeout_s: float | None, files: Files
    ) -> None:
        self._what = what
        self._settings = settings
        self._folder = folder
        self._timeout_s = timeout_s
        self._files = files
        self._trials: dict[str, Trial] = {}
        self._noise: Comparison | None = None
        self.before = self._run("before", (), {})

    def try_(self, candidate: Candidate, finding: Finding) -> Verdict:
        """Run the script with a candidate, and judge it by what it promises for a finding."""
        if candidate.forbids and (self.before.outputs / candidate.forbids).exists():
            return Verdict(False, False, _FORBIDDEN[candidate.forbids], {}, None)
        key = hashlib.sha256(repr((candidate.edits, candidate.settings)).encode()).hexdigest()[:16]
        if key not in self._trials:
            self._trials[key] = self._run(key, candidate.edits, candidate.settings)
        return self._judge(self._trials[key], candidate, finding)

    def _run(self, name: str, edits: Iterable[Edit], options: dict[str, str]) -> Trial:
        folder = self._folder / name
        folder.mkdir()
        settings = replace(self._settings, **options)  # type: ignore[arg-type]
        if edits := tuple(edits):
            write_overlay(edits, self._files, folder)
            settings = replace(settings, fixes=str(folder))
        return trial(self._what, settings, folder, self._timeout_s)

    def _judge(self, after: Trial, candidate: Candidate, finding: Finding) -> Verdict:
        before = self.before
        there = next((f for f in before.report.findings if f.fingerprint == finding.fingerprint), None)
        old, new = before.report.totals, after.report.totals
        evidence: dict[str, Any] = {"recompiles_before": old.recompiles, "recompiles_after": new.recompiles}
        if there is None:
            return Verdict(False, False, "run again, the script no longer has this finding", evidence, None)
        if (after.ended.status, after.ended.exit_code) != (before.ended.status, before.ended.exit_code):
            why = f"with it the script ends otherwise: {_ending(after)}"
            return Verdict(False, False, why, evidence, None)
        outputs = compare(before, after)
        alike = before.log.read_bytes() == after.log.read_bytes()
        evidence |= {
            "calls_compared": outputs.calls,
            "tensors_compared": outputs.tensors,
            "bitwise": outputs.bitwise,
            "max_abs": outputs.max_abs,
            "max_rel": outputs.max_rel,
            "printed_the_same": alike,
        }
        if not outputs.within(TOLERANCE):
            return Verdict(False, False, self._difference(outputs), evidence, after)
        if not outputs.tensors and not (alike and before.log.read_bytes().strip()):
            why = "the compiled calls return no tensors and the script prints nothing that could be compared"
            return Verdict(False, False, why, evidence, after)
        known = {f.fingerprint for f in before.report.findings}
        fresh = [f for f in after.report.findings if f.fingerprint not in known]
        left = next((f for f in after.report.findings if f.fingerprint == finding.fingerprint), None)
        aim = old.recompiles - there.counts.occurrences if candidate.ends == "recompiles" else old.recompiles
        reached = new.recompiles <= aim if candidate.ends == "recompiles" else True
        if left is None and reached and not [f for f in fresh if f.kind != "recompile"]:
            return Verdict(
                True, True, _proof(outputs, alike, old.recompiles, new.recompiles), evidence, after
            )
        if fresh and left is None:
            why = f"in its place comes: {fresh[0].title}"
        else:
            why = f"{new.recompiles} of {old.recompiles} recompiles are left"
        helped = new.recompiles < old.recompiles and not [f for f in fresh if f.kind != "recompile"]
        return Verdict(False, helped, why, evidence, after)

    def _difference(self, outputs: Comparison) -> str:
        """Why outputs differ: because of the remedy, or because they always do."""
        if self._noise is None:
            self._noise = compare(self.before, self._run("again", (), {}))
        if not self._noise.within(TOLERANCE):
            return "the script's outputs differ from run to run, also without it, so nothing can be compared"
        if outputs.differences:
            return f"with it the outputs differ: {outputs.differences[0]}"
        if not outputs.calls:
            return "no outermost call of a compiled function could be compared"
        return f"with it the outputs differ by up to {outputs.max_rel:.1e} of their largest value"


def _proof(outputs: Comparison, alike: bool, old: int, new: int) -> str:
    equal = "bitwise equal" if outputs.bitwise else f"equal within {max(outputs.max_rel, 1e-16):.0e}"
    calls = f"{outputs.calls} call" + ("s" if outputs.calls != 1 else "")
    printed = ", the same output printed" if alike else ""
    return f"{old} -> {new} recompiles, {equal} in {calls}{printed}"


def _ending(after: Trial) -> str:
    log = after.log.read_text(errors="replace").strip().splitlines()
    last = log[-1].strip()[:_SHOWN] if log else ""
    code = f"{after.ended.status}, exit code {after.ended.exit_code}"
    return f"{last} ({code})" if after.ended.status == "script_error" and last else code


def write_overlay(edits: Iterable[Edit], files: Files, folder: Path) -> None:
    """A folder of fixes, as :mod:`breakscope.overlay` reads it."""
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    entries = []
    for path, changes in by_file.items():
        file = files.open(path)
        assert file is not None
        entries.append(
            {
                "file": path,
                "module": None,
                "sha256": hashlib.sha256(file.data).hexdigest(),
                "edits": [[one.start, one.end, one.text] for one in ordered(changes)],
            }
        )
    manifest = {"version": overlay.VERSION, "files": entries, "config": {}}
    (folder / overlay.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def ordered(edits: Iterable[Edit]) -> list[Edit]:
    """Edits of one file from top to bottom, those at one place in the order in which they were made."""
    return sorted(edits, key=lambda one: (one.start, one.end))


def diff(edits: Iterable[Edit], files: Files, root: str) -> str:
    """The change as a unified diff, paths relative to ``root`` where they are below it."""
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    parts = []
    for path, changes in by_file.items():
        file = files.open(path)
        assert file is not None
        new = overlay.edited(file.text, [(one.start, one.end, one.text) for one in ordered(changes)])
        name = os.path.relpath(path, root) if Path(path).is_relative_to(root) else path
        lines = difflib.unified_diff(
            file.text.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        parts.append(
            "".join(
                line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
            )
        )
    return "".join(parts)
