"""Running the script with a remedy, and judging what came of it."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix.remedies.candidate import GRADIENTS, WRITES, Base, Candidate, Edit
from breakscope.fix.remedies.source import File, Files
from breakscope.inside import overlay
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding
from breakscope.run.launch import Program
from breakscope.run.trial import Comparison, Trial, compare, trial, words
from breakscope.run.words import Words

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
    """

    proved: bool
    helped: bool
    why: str
    evidence: dict[str, Any]


class Prover:
    """Trials of one script: the run as it is once, and once for each change.

    Args:
        folder: gets the files of all runs; the caller removes it.
        timeout_s: for one run of the script.
        progress: told of each run before it begins.
        base: changes that are part of every run.
    """

    def __init__(
        self,
        what: Program,
        settings: Settings,
        folder: Path,
        timeout_s: float | None,
        files: Files,
        progress: Callable[[str], None],
        base: Base,
    ) -> None:
        self._what, self._base = what, base
        self._settings = replace(settings, cost=False)  # counted, not timed
        self._folder = folder
        self._timeout_s = timeout_s
        self._files = files
        self._progress = progress
        self._trials: dict[str, Trial] = {}
        self._second: Trial | None = None
        progress("running the script as it is")
        self.before = self._run("before", (), {})

    def try_(self, candidate: Candidate, finding: Finding) -> Verdict:
        """Run the script with a candidate, and judge it by what it promises.

        Args:
            finding: of the run ``before``.
        """
        if candidate.forbids and (self.before.outputs / candidate.forbids).exists():
            return Verdict(False, False, _FORBIDDEN[candidate.forbids], {})
        if any(_touch(one, other) for one in self._base.edits for other in candidate.edits):
            return Verdict(False, False, "it changes text that a rewrite of a break changes", {})
        key = hashlib.sha256(repr((candidate.edits, candidate.settings)).encode()).hexdigest()[:16]
        if key not in self._trials:
            self._progress(f"{finding.code} {finding.location.function}: {candidate.summary}")
            self._trials[key] = self._run(key, candidate.edits, candidate.settings)
        return self._judge(self._trials[key], candidate, finding)

    def _run(self, name: str, edits: Iterable[Edit], options: dict[str, str]) -> Trial:
        folder = self._folder / name
        folder.mkdir()
        settings = replace(self._settings, **options)  # type: ignore[arg-type]
        if (edits := (*self._base.edits, *edits)) or self._base.config:
            write_overlay(edits, self._files, folder, self._base.config)
            settings = replace(settings, fixes=str(folder))
        ran = trial(self._what, settings, folder, self._timeout_s)
        if ran.ended.status == "interrupted":
            raise KeyboardInterrupt  # one Ctrl-C ends the session, not one run of it
        return ran

    def _judge(self, after: Trial, candidate: Candidate, finding: Finding) -> Verdict:
        before = self.before
        old, new = before.report.totals, after.report.totals
        evidence: dict[str, Any] = {"recompiles_before": old.recompiles, "recompiles_after": new.recompiles}
        if (after.ended.status, after.ended.exit_code) != (before.ended.status, before.ended.exit_code):
            why = f"with it the script ends otherwise: {_ending(after)}"
            return Verdict(False, False, why, evidence)
        outputs = compare(before, after)
        evidence |= {
            "calls_compared": outputs.calls,
            "tensors_compared": outputs.tensors,
            "bitwise": outputs.bitwise,
            "max_abs": outputs.max_abs,
            "max_rel": outputs.max_rel,
        }
        if not outputs.calls:
            why = "no outermost call of a compiled function could be compared"
            return Verdict(False, False, why, evidence)
        if not outputs.within(TOLERANCE):
            return Verdict(False, False, self._difference(outputs), evidence)
        said = words(before, self._again, after)
        evidence |= {"printed_the_same": said.difference is None, "words": said.evidence}
        if said.difference is not None:
            return Verdict(False, False, said.difference, evidence)
        if not outputs.tensors and not said.compared:
            why = "the compiled calls return no tensors and the script prints nothing that could be compared"
            return Verdict(False, False, why, evidence)
        return self._counted(after, candidate, finding, evidence, _equal(outputs, said))

    def _counted(
        self, after: Trial, candidate: Candidate, finding: Finding, evidence: dict[str, Any], equal: str
    ) -> Verdict:
        """Whether the recompiles went, and nothing came instead; ``equal`` says how the outputs agree."""
        before = self.before
        old, new = before.report.totals, after.report.totals
        known = {f.fingerprint for f in before.report.findings}
        fresh = [f for f in after.report.findings if f.fingerprint not in known]
        there = any(f.fingerprint == finding.fingerprint for f in after.report.findings)
        worse = [f for f in fresh if f.kind != "recompile"]
        if (new.crossings or 0) > (old.crossings or 0) or new.skips > old.skips:
            return Verdict(False, False, "with it compiled code is left more often", evidence)
        fewest = old.recompiles - finding.counts.occurrences
        if not there and not worse and (candidate.ends == "limit" or new.recompiles <= fewest):
            why = f"{old.recompiles} -> {new.recompiles} recompiles, {equal}"
            return Verdict(True, True, why, evidence)
        why = f"{new.recompiles} of {old.recompiles} recompiles are left"
        if fresh and not there:
            why = f"in its place comes: {fresh[0].title}"
        return Verdict(False, new.recompiles < old.recompiles and not worse, why, evidence)

    def _again(self) -> Trial:
        """The script as it is, a second time: what differs there is not a remedy's doing."""
        if self._second is None:
            self._progress("running the script as it is, once more")
            self._second = self._run("again", (), {})
        return self._second

    def _difference(self, outputs: Comparison) -> str:
        """Why outputs differ: because of the remedy, or because they always do."""
        if not compare(self.before, self._again()).within(TOLERANCE):
            return "the script's outputs differ from run to run, also without it, so nothing can be compared"
        if outputs.differences:
            return f"with it the outputs differ: {outputs.differences[0]}"
        return f"with it the outputs differ by up to {outputs.max_rel:.1e} of their largest value"


def _equal(outputs: Comparison, said: Words) -> str:
    equal = "bitwise equal" if outputs.bitwise else f"equal within {outputs.max_rel:.0e}"
    calls = f"{outputs.calls} call" + ("s" if outputs.calls != 1 else "")
    printed = ", the same output printed" if said.compared else ""
    if not outputs.tensors:
        return f"no tensors returned by {calls}{printed}"
    return f"{equal} in {calls}{printed}"


def _ending(after: Trial) -> str:
    code = f"{after.ended.status}, exit code {after.ended.exit_code}"
    last = (after.last_line or "")[:_SHOWN]
    return f"{last} ({code})" if after.ended.status == "script_error" and last else code


def _touch(one: Edit, other: Edit) -> bool:
    """Whether two edits change the same text. Both may put something in at one place."""
    same = os.path.realpath(one.file) == os.path.realpath(other.file)
    return same and one.start < other.end and other.start < one.end


def write_overlay(
    edits: Iterable[Edit], files: Files, folder: Path, config: Mapping[str, Any] | None = None
) -> None:
    """A folder of fixes, as :mod:`breakscope.inside.overlay` reads it."""
    edits = [replace(edit, file=os.path.realpath(edit.file)) for edit in edits]
    entries = [
        {
            "file": file.path,
            "module": None,
            "sha256": hashlib.sha256(file.data).hexdigest(),
            "edits": [list(change) for change in changes],
        }
        for file, changes in _by_file(edits, files)
    ]
    manifest = {"version": overlay.VERSION, "files": entries, "config": dict(config or {})}
    (folder / overlay.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _by_file(edits: Iterable[Edit], files: Files) -> list[tuple[File, list[tuple[int, int, str]]]]:
    """Each file with its edits as :mod:`breakscope.inside.overlay` takes them."""
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    found = []
    for path, changes in by_file.items():
        file = files.open(path)
        assert file is not None  # the edit was made from it
        found.append((file, [(one.start, one.end, one.text) for one in ordered(changes)]))
    return found


def ordered(edits: Iterable[Edit]) -> list[Edit]:
    """Edits of one file from top to bottom, those at one place in the order in which they were made."""
    return sorted(edits, key=lambda one: (one.start, one.end))


def diff(edits: Iterable[Edit], files: Files, root: str) -> str:
    """The change as a unified diff, paths relative to ``root`` where they are below it."""
    parts = []
    for file, changes in _by_file(edits, files):
        new = overlay.edited(file.text, changes)
        name = os.path.relpath(file.path, root) if Path(file.path).is_relative_to(root) else file.path
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
