"""Runs of the whole script: as it is, and with patches; and what tells two of them apart.

Nothing is believed of a patch, whoever proposed it, before the script was run with and without it under one
seed: it must end the same, its outermost compiled calls must return the same, and it must say the same.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from breakscope.fix import store
from breakscope.fix.patch import Edit, Exactness, Patch, clash, edits_by_file
from breakscope.fix.runs import Script
from breakscope.fix.side import Side
from breakscope.fix.silenced import silenced
from breakscope.fix.source_file import Source
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding, Report
from breakscope.run.observe import Observed, observe
from breakscope.run.trial import Comparison, Trial, compare, trial, words
from breakscope.run.warm import Warm
from breakscope.run.words import Silenced, Words

_SHOWN = 160
# From so many runs at a time on, two that take long are begun before they are known to be wanted.
_PAIR_AHEAD = 4
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart two runs may be, relative to the largest value. Zero: equal, bit for bit.

    Attributes:
        outputs: what the outermost calls return. printed: numbers in what the script says.
    """

    outputs: float
    printed: float

    def allows(self, outputs: Comparison) -> bool:
        """Whether outputs are near enough. Where there are none, nothing differs."""
        return outputs.bitwise or (self.outputs > 0 and outputs.within(self.outputs))


# The whole policy: everything is equal bit for bit but where a patch says why it cannot be.
TOLERANCES: Mapping[Exactness, Tolerance] = {
    "bitwise": Tolerance(0.0, 0.0),
    "rounded": Tolerance(1e-5, 0.0),
    "reassociated": Tolerance(1e-4, 1e-4),
}


def tolerance(patches: Sequence[Patch]) -> Tolerance:
    """What the least exact of some patches may differ by."""
    asked = [TOLERANCES[patch.rewrite.exact] for patch in patches]
    return max(asked, key=lambda one: one.outputs, default=TOLERANCES["bitwise"])


def eagerly(settings: Settings) -> Settings:
    """How the script is run without a compiler."""
    return replace(settings, backend="none")


@dataclass(frozen=True, slots=True)
class Agreement:
    """The script with patches held against the script without.

    Attributes:
        difference: what tells them apart, as a sentence; None if nothing does.
        outputs: of the outermost calls; None where the two ended in different ways.
        words: of what the script says; None where that was not compared: outputs differ, or behaviour changes
            with consent.
        uncompiled: it was held against the script without a compiler, because what the script computes as it
            is depends on whether it is compiled.
    """

    difference: str | None
    outputs: Comparison | None = None
    words: Words | None = None
    uncompiled: bool = False


@dataclass(slots=True, eq=False)
class _Run:
    """A forked run with patches: one that has ended, is at work, or was begun ahead.

    Attributes:
        changes: all that its patches change. folder: of its files. users: who looks at its outputs now.
    """

    changes: object
    folder: Path
    trial: Future[Trial]
    users: int = 0


# All that patches change, how the script is compiled, and whether it is forked.
_Of = tuple[object, Settings, bool]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Runs with patches and without, begun ahead.

    Attributes:
        of: what they are runs of.
    """

    of: _Of
    after: Future[Trial]
    before: Future[Trial]


class _Latest:
    """The last forked runs with patches: what is asked next is often about the same ones.

    Args:
        most: runs that are kept, because their outputs take room on the disk.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._runs: list[_Run] = []
        self._at_work = threading.Lock()

    def keep(self, run: _Run) -> None:
        """Take a run up, in place of the oldest one."""
        with self._at_work:
            self._runs.append(run)
            self._let_go()

    def has(self, changes: object) -> bool:
        """Whether there is a run with these changes."""
        return self._of(changes) is not None

    def taken(self, changes: object) -> Trial | None:
        """What the run with these changes came to, for one who keeps it: its outputs stay."""
        with self._at_work:
            run = self._of(changes)
            if run is not None:
                self._runs.remove(run)
        return run.trial.result() if run is not None else None

    @contextmanager
    def used(self, changes: object, make: Callable[[], _Run]) -> Iterator[Trial]:
        """What the run with these changes came to, once it has ended; its outputs stay in the block."""
        with self._at_work:
            run = self._of(changes)
            if run is not None:
                run.users += 1
        if run is None:
            run = make()
            run.users = 1
            self.keep(run)
        try:
            yield run.trial.result()
        finally:
            with self._at_work:
                run.users -= 1

    def _of(self, changes: object) -> _Run | None:
        return next((run for run in self._runs if run.changes == changes), None)

    def _let_go(self) -> None:
        """Remove what is too much; one that is at work leaves that to who removes the script's folder."""
        for run in [one for one in self._runs[: -self._most] if not one.users]:
            self._runs.remove(run)
            if run.trial.cancel() or run.trial.done():
                shutil.rmtree(run.folder, ignore_errors=True)


class Trials:
    """Trials of one script. Those without patches are kept; a second one is made only to tell chance apart.

    Args:
        settings: how the script is compiled.
        sources: of the files that patches change, by real path.
        base: patches that are part of every run.
        progress: told of a run before it begins.
        as_it_was: what makes the script that is compared with of the one on disk, where that has the patches
            already.
        known: the scan, as which a forked run of the script as it is has to end and to break.
        side: takes runs that may be made at one time.
        latest: the last runs with patches, of whoever made them.
    """

    def __init__(
        self,
        script: Script,
        settings: Settings,
        sources: dict[str, Source],
        base: Sequence[Patch] = (),
        progress: Callable[[str], None] = lambda _text: None,
        as_it_was: Sequence[Patch] = (),
        known: Report | None = None,
        side: Side | None = None,
        latest: _Latest | None = None,
    ) -> None:
        self._side = side or Side(script)
        self._latest = latest or _Latest(script.jobs + 1)
        # Begun ahead, by how they are compiled.
        self._begun: dict[Settings, Future[Trial]] = {}
        self._pair: _Pair | None = None
        self._ahead: tuple[_Of, Future[Trial]] | None = None
        self._known = known
        self._script, self.sources, self._progress = script, sources, progress
        self._as_it_was = tuple(as_it_was)
        self._settings = replace(settings, cost=False)  # counted, not timed
        self.base = tuple(base)
        self._plain = False
        # Of forked runs, and of plain ones.
        self._before: dict[bool, Trial] = {}
        self._again: dict[bool, Trial] = {}
        self._uncompiled: dict[bool, Trial] = {}
        self._seen: dict[object, Future[tuple[Report, Agreement]]] = {}

    @property
    def main(self) -> str:
        """The file that runs as ``__main__``."""
        return self._script.what.path

    @property
    def before(self) -> Trial:
        """The script as it is."""
        forked = self.forking
        if forked not in self._before:
            self._progress("running the script as it is")
            before = self._as_latest() or self._as_begun(self._settings)
            if not self.base and forked and (why := self._unlike_the_plain_run(before)):
                self._stop_forking(why)
                return self.before
            self._before[forked] = before
        return self._before[forked]

    def begin(
        self, patches: Sequence[Patch], others: Iterable[Settings] = (), remedies: Sequence[Patch] = ()
    ) -> None:
        """Begin runs that may be asked for, if they may be made beside others: as it is, and with patches.

        Args:
            others: further ways to compile the script as it is.
            remedies: what may be tried on top of the patches, each by itself.
        """
        if not self._before:
            self._begin(self._settings)
        self._begin_with(patches)
        for settings in others:
            self._begin(settings)
        for remedy in remedies[: self._script.at_once]:
            self._begin_with([*patches, remedy])

    def _begin_with(self, patches: Sequence[Patch]) -> None:
        changes = _changes(patches)
        if patches and self._repeats and not self._latest.has(changes) and not clash(patches):
            folder = self._folder()
            run = self._side.begin(partial(self._run, folder, patches, self._settings))
            if run is not None:
                self._latest.keep(_Run(changes, folder, run))

    def begin_pair(self, patches: Sequence[Patch], settings: Settings) -> None:
        """Begin what :meth:`side_by_side` may be asked for, where there is room for more than that."""
        of = self._of(patches, settings)
        wanted = patches and self._repeats and self._script.at_once >= _PAIR_AHEAD and not clash(patches)
        if not wanted or (self._pair is not None and self._pair.of == of):
            return
        after = self._side.begin(partial(self._run, self._folder(), patches, settings))
        before = self._side.begin(partial(self.run, settings))
        if after is not None and before is not None:
            self._pair = _Pair(of, after, before)

    def begin_with(self, patches: Sequence[Patch], settings: Settings) -> None:
        """Begin the script with patches, compiled as :meth:`with_patches` may be asked for."""
        of = self._of(patches, settings)
        if not patches or not self._repeats or clash(patches) or (self._ahead and self._ahead[0] == of):
            return
        run = self._side.begin(partial(self._run, self._folder(), patches, settings))
        self._ahead = (of, run) if run is not None else None

    @property
    def untimed(self) -> bool:
        """Whether the scan could time no step: the script makes too few that are alike, it seems."""
        return self._known is not None and self._known.timing is not None and not steps_timed(self._known)

    def timed_alone(self, patches: Sequence[Patch], settings: Settings) -> bool:
        """Whether :meth:`side_by_side` makes these runs with nothing else beside them."""
        return self._begun_pair(patches, settings) is None and not (self.forking and self._script.on_a_card)

    def _begun_pair(self, patches: Sequence[Patch], settings: Settings) -> _Pair | None:
        pair = self._pair
        return pair if pair is not None and pair.of == self._of(patches, settings) else None

    def _of(self, patches: Sequence[Patch], settings: Settings) -> _Of:
        return _changes(patches), settings, self.forking

    def _begin(self, settings: Settings) -> None:
        begun = None if settings in self._begun else self._side.begin(partial(self.run, settings))
        if begun is not None:
            self._begun[settings] = begun

    def _as_begun(self, settings: Settings) -> Trial:
        begun = self._begun.get(settings) if self.forking else None
        return begun.result() if begun is not None else self.run(settings)

    def _as_latest(self) -> Trial | None:
        """What these trials begin with, if that is what was run last."""
        return self._latest.taken(_changes(self.base)) if self.base and self._repeats else None

    @property
    def _repeats(self) -> bool:
        """Whether a run can stand for the next one with the same patches: a fork that leaves no files."""
        plain = self._script.warm.plain if self._script.warm is not None else None
        return self.forking and plain is not None and not plain.writes

    @property
    def again(self) -> Trial:
        """The script as it is, once more: what differs from :attr:`before` is no patch's doing."""
        forked = self.forking
        if forked not in self._again:
            self._progress("running the script as it is, once more")
            self._again[forked] = self.run(self._settings)
        return self._again[forked]

    @property
    def uncompiled(self) -> Trial:
        """The script as it is, without a compiler."""
        forked = self.forking
        if forked not in self._uncompiled:
            self._progress("running the script without a compiler")
            self._uncompiled[forked] = self._as_begun(eagerly(self._settings))
        return self._uncompiled[forked]

    @property
    def forking(self) -> bool:
        """Whether runs are forks. What they say against a patch is said again by plain ones."""
        warm = self._script.warm
        return warm is not None and warm.started and not warm.trouble and not self._plain

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Make every run a plain one inside the block."""
        before, self._plain = self._plain, True
        try:
            yield
        finally:
            self._plain = before

    def _stop_forking(self, why: str) -> None:
        assert self._script.warm is not None
        self._script.warm.close(why)

    def _unlike_the_plain_run(self, before: Trial) -> str:
        """What tells a forked run of the script as it is from plain ones: the recorded run, and the scan."""
        plain = self._script.warm.plain if self._script.warm is not None else None
        if plain is None:
            return "there was no plain run"
        # The recorded run is eager. Some scripts fail only where they are compiled, as the scan saw.
        alike = before.ended.exit_code == plain.exit_code
        if not alike and (self._known is None or before.ended.exit_code != self._known.run.exit_code):
            return "a forked run ends in another way"
        if alike and before.said.stdout != plain.stdout:
            return "a forked run prints something else"
        if self._known is not None and _breaks(before.report.findings) != _breaks(self._known.findings):
            return "a forked run breaks elsewhere"
        return ""

    def on_top(self, patches: Sequence[Patch]) -> Trials:
        """Trials of the script that has patches already."""
        if not patches:
            return self
        return Trials(
            self._script,
            self._settings,
            self.sources,
            patches,
            self._progress,
            known=self._known,
            side=self._side,
            latest=self._latest,
        )

    def begin_beside(self, call: Callable[[Trials], T]) -> Future[T] | None:
        """Begin something with these trials beside others of it; None: it has to wait for its turn.

        Args:
            call: gets trials of its own, which share all that is known; :attr:`before` should be by then.
        """
        beside = copy.copy(self)  # whether they run plainly is all that each of them has for itself
        return self._side.begin(partial(call, beside))

    def run(self, settings: Settings) -> Trial:
        """The script without further patches, compiled in another way."""
        return self._run(self._folder(), self._as_it_was, settings)

    @contextmanager
    def side_by_side(
        self, patches: Sequence[Patch], with_and_without: Settings, without: Sequence[Settings] = ()
    ) -> Iterator[list[Trial]]:
        """The script with patches, without, and without in other ways; at one time if that can be.

        What is begun already is not made again; the first two are timed side by side.
        """
        others = [partial(self._as_begun, one) for one in without]
        pair = self._begun_pair(patches, with_and_without)
        if pair is not None:
            yield [pair.after.result(), pair.before.result(), *(call() for call in others)]
            return
        folder = self._folder()
        runs = [partial(self.run, with_and_without), *others]
        try:
            yield self._side.all(partial(self._run, folder, patches, with_and_without), *runs)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def with_patches(self, patches: Sequence[Patch], settings: Settings | None = None) -> Iterator[Trial]:
        """The script with patches. Its outputs are gone afterwards, or with the next run."""
        if settings is None and self._repeats:
            changes = _changes([*self.base, *patches])
            with self._latest.used(changes, partial(self._made, changes, patches)) as known:
                yield known
            return
        if settings is not None and self._ahead and self._ahead[0] == self._of(patches, settings):
            yield self._ahead[1].result()
            return
        folder = self._folder()
        try:
            yield self._run(folder, patches, settings or self._settings)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _made(self, changes: object, patches: Sequence[Patch]) -> _Run:
        folder, trial = self._folder(), Future[Trial]()
        trial.set_result(self._run(folder, patches, self._settings))
        return _Run(changes, folder, trial)

    def seen(self, patch: Patch) -> tuple[Report, Agreement]:
        """What the script with one patch reports, and how it agrees; run once for equal patches."""
        key: tuple[frozenset[Edit], frozenset[tuple[str, str]]]
        key = frozenset(patch.edits), frozenset(patch.rewrite.options.items())
        mine = Future[tuple[Report, Agreement]]()
        if (seen := self._seen.setdefault(key, mine)) is mine:
            try:
                mine.set_result(self._tried(patch))
            except BaseException as error:  # noqa: BLE001 -- raised below, and where others wait for it
                mine.set_exception(error)
        return seen.result()

    def _tried(self, patch: Patch) -> tuple[Report, Agreement]:
        finding = patch.findings[0]
        self._progress(f"{finding.code} {finding.location.function}: {patch.rewrite.summary}")
        seen = self._patched(patch)
        if seen[1].difference is not None and self.forking:
            with self.plainly():
                seen = self._patched(patch)
        return seen

    def _patched(self, patch: Patch) -> tuple[Report, Agreement]:
        with self.with_patches([patch]) as after:
            return after.report, self.agreement(after, [patch])

    def agreement(
        self, after: Trial, patches: Sequence[Patch], *, consented: bool = False, uncompiled: bool = False
    ) -> Agreement:
        """Compare a run with patches with the run without.

        Args:
            consented: outputs and words may differ: somebody consented to that.
            uncompiled: it is enough to agree with the script without a compiler. Where the compiled script
                does not, the compiler is why: it takes numpy's random numbers from torch's generator, say.
        """
        if (ended := self.ended_otherwise(after)) is not None:
            return Agreement(ended)
        allowed, left_out = tolerance(patches), silenced(patches, self.sources)
        if _end(self.before) != _end(after):  # compiled as it is, it fails
            return self._as_uncompiled(after, allowed, left_out, consented)
        outputs = self.compared(self.before, after)
        agrees = allowed.allows(outputs)
        if agrees and consented:
            return Agreement(None, outputs)
        if agrees:
            said = words(self.before, lambda: self.again, after, left_out, allowed.printed)
            return Agreement(said.difference, outputs, said)
        differ = Agreement(None if consented else self._outputs_differ(outputs, allowed), outputs)
        if not uncompiled:
            return differ
        eager = self._as_uncompiled(after, allowed, left_out, consented)
        return eager if eager.outputs is not None and allowed.allows(eager.outputs) else differ

    def _as_uncompiled(
        self, after: Trial, allowed: Tolerance, left_out: Sequence[Silenced], consented: bool
    ) -> Agreement:
        """A run with patches held against the script without a compiler."""
        without = self.uncompiled
        if without.ended.status != "ok":
            return Agreement(f"without a compiler the script ends with {without.ended.status}")
        outputs = self.compared(without, after)
        if not outputs.calls or not allowed.allows(outputs):
            why = "with it the script computes something else than without a compiler"
            return Agreement(None if consented else why, outputs, uncompiled=True)
        if consented:
            return Agreement(None, outputs, uncompiled=True)
        said = words(without, lambda: self.run(eagerly(self._settings)), after, left_out, allowed.printed)
        return Agreement(said.difference, outputs, said, uncompiled=True)

    def compared(self, before: Trial, after: Trial) -> Comparison:
        """What the second run computed against the first."""
        return compare(before, after, self._script.warm if self.forking else None)

    def ended_otherwise(self, after: Trial) -> str | None:
        """How a run ends where the script as it is ends in another way.

        A script that fails only where it is compiled may end as it does without a compiler.
        """
        # A forked run without patches ends as a plain one: it was held against the recorded run.
        known = next(iter(self._before.values()), None) or self.before
        if _end(after) == _end(known):
            return None
        if (
            after.ended.status == "ok"
            and known.ended.status == "script_error"
            and _end(self.uncompiled) == _end(after)
        ):
            return None
        return (
            f"with it the script ends with {after.ended.status} ({(after.last_line or 'no output')[:_SHOWN]})"
        )

    def _outputs_differ(self, outputs: Comparison, allowed: Tolerance) -> str:
        """Why outputs differ: because of patches, or because they always do."""
        if not allowed.allows(self.compared(self.before, self.again)):
            return "the script's outputs differ from run to run, also without it, so nothing can be compared"
        if self.before.ended.status != "ok":
            return (
                f"the script fails where it is compiled, at another place with it ({self.before.last_line})"
            )
        largest = f"largest difference {outputs.max_abs:.3g}, {outputs.max_rel:.1e} of the largest value"
        return f"the outputs of the script differ: {next(iter(outputs.differences), largest)}"

    def _warm(self, patches: Sequence[Patch]) -> Warm | None:
        """What forks a run with patches: nothing, where it has loaded a file that one of them changes."""
        warm = self._script.warm
        changed = {edit.file for patch in patches for edit in patch.edits}
        return warm if warm is not None and self.forking and warm.excluded >= changed else None

    def timed(self, patches: Sequence[Patch], text: str) -> Observed:
        """The script with patches, its outermost calls timed, with empty caches; nothing of it is compared.

        Compiled as it is in the end: a backend that only looks at graphs compiles in no time.

        Args:
            text: what the progress says.
        """
        self._progress(text)
        folder = self._folder()
        looks = self._settings.backend in ("eager", "aot_eager")
        backend = "as-script" if looks else self._settings.backend
        settings = replace(self._settings, stopwatch=True, backend=backend)
        try:
            settings, run = self._prepared(folder, patches, settings)
            with (run / "said").open("wb") as said:
                seen = observe(self._script.what, settings, run, self._script.timeout_s, stdout=said.fileno())
            self._script.note(seen.ended)
            return seen
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._script.folder))

    def _run(self, folder: Path, patches: Sequence[Patch], settings: Settings) -> Trial:
        settings, run = self._prepared(folder, patches, settings)
        warm = self._warm([*self.base, *patches])
        ran = trial(self._script.what, settings, run, self._script.timeout_s, warm)
        self._script.note(ran.ended)
        return ran

    def _prepared(self, folder: Path, patches: Sequence[Patch], settings: Settings) -> tuple[Settings, Path]:
        """The settings of a run with patches, and the folder for it."""
        applied = [*self.base, *patches]
        options = {name: value for patch in applied for name, value in patch.rewrite.options.items()}
        settings = replace(settings, **options)  # type: ignore[arg-type]
        if any(patch.applies for patch in applied):
            fixes = folder / "fixes"
            fixes.mkdir()
            store.write_manifest(fixes, applied, self.sources, self.main)
            settings = replace(settings, fixes=str(fixes))
        run = folder / "run"
        run.mkdir()
        return settings, run


def _changes(patches: Sequence[Patch]) -> object:
    """All that patches change in a run, in the order in which it counts."""
    config = dict(item for patch in patches for item in patch.rewrite.config.items())
    options = dict(item for patch in patches for item in patch.rewrite.options.items())
    return edits_by_file(patches), config, options


def steps_timed(report: Report) -> bool:
    """Whether a run had steps enough to time them."""
    return report.timing is not None and report.timing.step_ms is not None


def recompiled(before: Report, after: Report, rewritten: Iterable[Finding]) -> str | None:
    """That there are more recompiles than before; None if not, or where either run failed on its way.

    What was skipped ran eagerly at all shapes: compiled, it may compile again.

    Args:
        rewritten: findings that patches may have repaired.
    """
    if before.run.status != after.run.status:
        return None
    old, new = before.totals, after.totals
    skipped = any(finding.kind == "skip" for finding in rewritten)
    more = max(0, (new.regions or 0) - (old.regions or 0)) if skipped else 0
    few = new.recompiles <= old.recompiles + more
    return None if few else f"with it there are {new.recompiles} recompiles instead of {old.recompiles}"


def _end(trial: Trial) -> tuple[str, int]:
    return trial.ended.status, trial.ended.exit_code


def _breaks(findings: Iterable[Finding]) -> set[str]:
    # Others depend on how long something took.
    return {finding.fingerprint for finding in findings if finding.kind in ("graph_break", "skip")}
