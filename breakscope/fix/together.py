"""The whole script again, with all accepted patches: are the breaks gone, and is all else as it was?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope.fix import store
from breakscope.fix.candidates import FIXABLE, Candidate
from breakscope.fix.runs import Script
from breakscope.fix.silenced import silenced
from breakscope.fix.text import Source
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding, Report
from breakscope.run.trial import Comparison, Trial, compare, trial, words
from breakscope.run.words import Words

# How far results may be apart, relative to the largest, where sums are taken in another order.
ROUNDED = 1e-4


@dataclass(frozen=True, slots=True)
class Whole:
    """What became of the whole script.

    Attributes:
        dropped: patches that it does not work with, and why: by position among those tried.
        revealed: findings that were hidden behind the breaks that are gone now.
        comparison: of what the outermost calls returned; None if nothing was accepted.
        words: what came of comparing what the script says; None if it was not: nothing was accepted, or a
            patch with consent changes behaviour.
    """

    dropped: Mapping[int, str]
    revealed: tuple[Finding, ...]
    comparison: Comparison | None
    before: Report
    after: Report | None
    consented: bool = False
    words: Words | None = None


class WholeScript:
    """Trials of one script: one without patches, kept, and one for each set of patches.

    A second one without patches is made once, when with some patches the script says something else.
    """

    def __init__(self, script: Script, settings: Settings, sources: Mapping[str, Source]) -> None:
        self._script, self._settings, self._sources = script, settings, sources
        self._before: Trial | None = None
        self._again: Trial | None = None

    @property
    def before(self) -> Trial:
        """The script as it is."""
        if self._before is None:
            self._before = self.run(self._settings)
        return self._before

    @property
    def again(self) -> Trial:
        """The script as it is, once more: what differs from :attr:`before` is no patch's doing."""
        if self._again is None:
            self._again = self.run(self._settings)
        return self._again

    def words(self, after: Trial, patches: Sequence[Candidate]) -> Words:
        """What the script says with patches, against what it says without."""
        expected = silenced(patches, self._sources)
        exact = all(one.rewrite.exact == "bitwise" for one in patches)
        return words(self.before, lambda: self.again, after, expected, 0.0 if exact else ROUNDED)

    def run(self, settings: Settings) -> Trial:
        """The script without patches, in another way."""
        folder = Path(tempfile.mkdtemp(dir=self._script.folder))
        return trial(self._script.what, settings, folder, self._script.timeout_s)

    @contextmanager
    def with_patches(self, patches: Sequence[Candidate], settings: Settings) -> Iterator[Trial]:
        """The script with patches. Its outputs are gone afterwards."""
        folder = Path(tempfile.mkdtemp(dir=self._script.folder))
        fixes = folder / "fixes"
        fixes.mkdir()
        try:
            store.write_manifest(fixes, patches, self._sources, self._script.what.path)
            run = folder / "run"
            run.mkdir()
            asked = replace(settings, fixes=str(fixes))
            yield trial(self._script.what, asked, run, self._script.timeout_s)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def check(self, patches: Sequence[Candidate]) -> Whole:
        """Find the patches that work together: those with which it goes wrong are dropped, one at a time."""
        dropped: dict[int, str] = {}
        while True:
            kept = [(i, one) for i, one in enumerate(patches) if i not in dropped]
            if not kept:
                return Whole(dropped, (), None, self.before.report, None)
            whole = self._try([one for _, one in kept])
            if not whole.dropped:
                return replace(whole, dropped=dropped)
            if len(whole.dropped) == len(kept) > 1 and len(set(whole.dropped.values())) == 1:
                # Something is wrong with the whole: find out with whom.
                for index, one in kept:
                    alone = self._try([one])
                    if alone.dropped:
                        dropped[index] = alone.dropped[0]
                if not any(index in dropped for index, _ in kept):
                    dropped.update({index: f"together: {whole.dropped[0]}" for index, _ in kept})
                continue
            dropped.update({kept[place][0]: why for place, why in whole.dropped.items()})

    def _try(self, patches: Sequence[Candidate]) -> Whole:
        before = self.before
        with self.with_patches(patches, self._settings) as after:
            everyone = range(len(patches))
            report = after.report
            if (after.ended.status, after.ended.exit_code) != (before.ended.status, before.ended.exit_code):
                last = (after.last_line or "no output")[:160]
                why = f"with it the script ends with {after.ended.status} ({last})"
                return Whole(dict.fromkeys(everyone, why), (), None, before.report, report)
            dropped = _still_there(patches, before.report, report, self._sources)
            if dropped:
                return Whole(dropped, (), None, before.report, report)
            compared = compare(before, after)
            consent = any(one.rewrite.consent for one in patches)
            exact = all(one.rewrite.exact == "bitwise" for one in patches)
            if not consent and not (compared.bitwise or (not exact and compared.within(ROUNDED))):
                first = "; ".join(compared.differences[:1]) or f"largest difference {compared.max_abs:.3g}"
                why = f"the outputs of the script differ: {first}"
                return Whole(dict.fromkeys(everyone, why), (), compared, before.report, report)
            said = None if consent else self.words(after, patches)
            if said is not None and said.difference is not None:
                return Whole(dict.fromkeys(everyone, said.difference), (), compared, before.report, report)
            more = _newly_compiled(patches, before.report, report)
            if report.totals.recompiles > before.report.totals.recompiles + more:
                counts = f"{report.totals.recompiles} recompiles instead of {before.report.totals.recompiles}"
                return Whole(
                    dict.fromkeys(everyone, f"with it there are {counts}"),
                    (),
                    compared,
                    before.report,
                    report,
                )
            revealed = _revealed(before.report, report)
            return Whole({}, revealed, compared, before.report, report, consent, said)


def _newly_compiled(patches: Sequence[Candidate], before: Report, after: Report) -> int:
    """Recompiles that come of more being compiled: a frame that was skipped ran eagerly at all shapes."""
    skipped = any(finding.kind == "skip" for one in patches for finding in one.findings)
    return max(0, (after.totals.regions or 0) - (before.totals.regions or 0)) if skipped else 0


def _sites(report: Report) -> dict[tuple[str, int, int | None], Finding]:
    return {
        (one.location.file, one.location.line, one.location.column): one
        for one in report.findings
        if one.kind in FIXABLE
    }


def _still_there(
    patches: Sequence[Candidate], before: Report, after: Report, sources: Mapping[str, Source]
) -> dict[int, str]:
    """Patches whose site still breaks, or whose new lines break: by position."""
    dropped: dict[int, str] = {}
    places = _sites(after)
    known = _sites(before)
    for index, patch in enumerate(patches):
        for finding in patch.findings:
            where = finding.location
            if any((f, line) == (where.file, where.line) for f, line, _ in places):
                again = next(o for (f, n, _), o in places.items() if (f, n) == (where.file, where.line))
                dropped[index] = f"the break is still there: {again.title} ({again.reason[:80]})"
        lines = _edited_lines(patch, sources[patch.file])
        for place, finding in places.items():
            where = finding.location
            if place not in known and where.file == patch.findings[0].location.file and where.line in lines:
                dropped.setdefault(index, f"the new code breaks too: {finding.title}")
    return dropped


def _edited_lines(patch: Candidate, source: Source) -> set[int]:
    lines: set[int] = set()
    for start, end, _ in patch.edits:
        first = source.text.count("\n", 0, start) + 1
        lines.update(range(first, first + source.text.count("\n", start, max(start, end - 1)) + 1))
    return lines


def _revealed(before: Report, after: Report) -> tuple[Finding, ...]:
    known = _sites(before)
    return tuple(finding for place, finding in _sites(after).items() if place not in known)
