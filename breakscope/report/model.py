"""What a report is made of: frozen records, no behaviour but what notebooks ask for.

The words are those of the documentation: a *site* is a place in source, an *occurrence* is one time
that Dynamo reported it while compiling, a *crossing* is one time that execution left a compiled
graph there. ``None`` always means "not known" or "does not apply", never zero.

Lines and columns count from 1. ``end_column`` is the column after the last character. Columns count
characters, not bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from breakscope.report.place import Location, Owner, Tool

if TYPE_CHECKING:
    import pandas as pd

FindingKind = Literal["graph_break", "recompile", "skip", "compile"]
# What a finding did to the run besides its cost.
Effect = Literal["ended", "incomplete"]
# "unknown": an imported trace does not tell how its job ended.
Status = Literal["ok", "script_error", "timeout", "interrupted", "killed", "unknown"]
CacheAnswer = Literal["hit", "miss", "bypass"]
SuggestionStatus = Literal["proved", "unproved", "refused"]

GuardCause = Literal[
    "size",
    "rank",
    "stride",
    "dtype",
    "device",
    "requires_grad",
    "dispatch_keys",
    "int_value",
    "float_value",
    "constant_value",
    "module_attribute",
    "identity",
    "type",
    "container",
    "global_state",
    "item_value",
    "symbolic_shape",
    "aliasing",
    "other",
]


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of a call path, outermost first."""

    file: str
    line: int
    function: str
    source: str | None = None
    owner: Owner = "project"


@dataclass(frozen=True, slots=True)
class SkippedFrame:
    """A function that runs eagerly because of a finding.

    Attributes:
        why: what Dynamo could not resume from, e.g. "graph break in loop".
        calls: how often it was called after (and including) the first failure; None if not counted.
        since: the line of an earlier break, where only what follows that line runs eagerly; None: all does.
    """

    function: str
    file: str
    line: int
    why: str
    calls: int | None
    since: int | None = None

    @property
    def extent(self) -> str:
        """How much of the function runs eagerly, as words behind "runs eagerly"."""
        return "as a whole" if self.since is None else f"after line {self.since}"


@dataclass(frozen=True, slots=True)
class Counts:
    """How often a finding happened.

    Attributes:
        occurrences: reports by Dynamo while compiling.
        crossings: times that execution left compiled code here; None when that was not measured
            (an imported trace) or has no meaning (a recompile).
        compile_ids: Dynamo's ``frame/recompile`` ids in which it was reported.
    """

    occurrences: int
    crossings: int | None
    compile_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that a finding takes from a step, and how that is known.

    Attributes:
        ms_per_step: milliseconds by which a steady step that comes here would be shorter without it.
        share: of the wall time of all steady steps, 0 to 1; a break that few of them cross has a small one.
        method: how it was measured: "replayed, 20 steps, backend eager".
        spread_ms: half of the distance between the quartiles over the sampled steps.
        parts: what the host does for it in such a step, in milliseconds: "gap" (from the end of a region to
            the beginning of the next), and of that "wait" (for the device), "guards" (of what goes on),
            "resume" (Python: the break's own and of going on) and "eager_work" (operations that stay
            without the break, and are not counted); and "entry" (entering the next region, which would be
            none). A part that is not known is not there. The sum is what a host has to gain that the step
            waits for.
        inside: what lies inside of the gap, if the profiler looked.
        least_ms, most_ms: what ``ms_per_step`` is at least and at most, by what may stay in its place: the
            guards of what goes on, at least; not even the work that ran eagerly, at most. None if not
            known.
        steps: how many steady steps come here; of_steps: of how many.
    """

    ms_per_step: float
    share: float | None
    method: str
    spread_ms: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    inside: Inside | None = None
    least_ms: float | None = None
    most_ms: float | None = None
    steps: int | None = None
    of_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Compiling:
    """What a cause of recompiles costs: once, and in every step from then on.

    Attributes:
        seconds: of compile time in the run; versions: how many it made of the function.
        guards_ms_per_step: what their guards add to a step at most, where they are checked before those
            that fit; None if not known.
    """

    seconds: float
    versions: int
    guards_ms_per_step: float | None = None


@dataclass(frozen=True, slots=True)
class Inside:
    """What the host does in a gap, per steady step (``scan --profile``).

    Attributes:
        method: how it was measured.
        waiting_ms: in calls that wait for the device; eager_ms: in operations that run eagerly, without
            their waits; python_ms: the rest: guards, resume functions, the break's own Python.
        launches: calls that gave the device work.
        ops: the most frequent eager operations, and how often they ran.
    """

    method: str
    waiting_ms: float
    eager_ms: float
    python_ms: float
    launches: float
    ops: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Guard:
    """Why a frame was compiled again.

    Attributes:
        expression: the failing guard as Dynamo printed it.
        source: what it was about, in the user's words: ``x``, ``self.counter``, ``kwargs['n']``.
        expected: what the compiled code was specialised to.
        actual: what came instead.
        cause: which kind of thing differed.
        dimension: index of the tensor's dimension, where the cause is a size or a stride.
        values: every value seen over all recompiles of this finding, in order of first sight.
        resumed: it failed only in what goes on after a break, where a local variable is guarded like an
            argument.
    """

    expression: str
    source: str | None
    expected: str | None
    actual: str | None
    cause: GuardCause
    dimension: int | None = None
    values: tuple[str, ...] = ()
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SourceEdit:
    r"""A piece of a file, and what stands there instead.

    Attributes:
        file: real path.
        line: of the first character that goes; where nothing goes, of that in front of which the text comes.
        end_column: behind the last character that goes; in column 1 of a line, its line end goes too.
        text: the new piece, with ``\n`` line ends.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rewrite, with how far it was proved.

    Attributes:
        diff: the change for readers, and for ``git apply``; edits: the same as data, empty in reports of
            earlier versions. Those of one file are in order, and no two of them touch.
    """

    rule: str
    summary: str
    diff: str
    status: SuggestionStatus
    why: str
    evidence: dict[str, Any] = field(default_factory=dict)
    edits: tuple[SourceEdit, ...] = ()

    @property
    def needs_consent(self) -> bool:
        """Whether it changes behaviour, and is right for somebody who wants that; its status is unproved."""
        return bool(self.evidence.get("consent"))

    @property
    def label(self) -> str:
        """The status in words."""
        return "needs consent" if self.needs_consent else self.status


@dataclass(frozen=True, slots=True)
class RankCounts:
    """What one process contributed to a finding of a merged report.

    Attributes:
        process: the ``process`` of one of the report's ranks; rank: its number, for readers.
    """

    process: str
    rank: int
    counts: Counts
    first_step: int | None = None
    last_step: int | None = None
    cost: Cost | None = None
    guard: Guard | None = None
    skipped: tuple[SkippedFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about: a site, a cause of recompiles, or a skip.

    Attributes:
        fingerprint: stable name; survives moved lines, other torch versions and other counts.
        location: where it broke. ``called_from`` is the innermost frame of the user's own project
            when that is another place; of a recompile in the project the line that made the outermost call.
        stack: how one got there, outermost first, ending at ``location``; of a recompile the way from its
            function to where the guarded value is used, as far as torch says (2.13 and newer).
        skipped: functions that run eagerly, as a whole or after a line, because of this finding.
        guards: the guards that used up the limit, for a recompile limit.
        intended: why it is meant to be so (torch's own optimizers, gradient scaling, backward): such a
            finding is left out of the ranking. None for everything else.
        expected: why its recompiles are what a healthy script has (a graph each for training and
            evaluation, a second size, a smaller last batch): nothing is to be done, and ``check`` passes.
            None for what repeats or grows, for what is no recompile, and in reports of older versions.
        effect: "ended" where the script died of it, "incomplete" where it hides what would have come after
            it; None for everything else, and in reports of older versions.
        not_measured: why there is no cost, as a sentence; None where there is one.
        ranks: the ranks that have it; by_rank: what each contributed, empty in a report of one process.
            Counts and skipped calls of a merged finding are sums over them, its cost is that of the rank
            where it costs most.
        compiling: what its recompiles took, for a cause of them; None if not known.
        horizon_ms: milliseconds that it takes in as many steps as were asked for, compile time and all: one
            scale for breaks and recompiles. None where no number of steps was asked for.
        advice: what to do about this one, in words; None in reports of older versions.
        calls_of: the function whose calls ``counts.crossings`` are, where passes of the line are not counted.
        caused_by: fingerprint of the finding without which this one would not be there; None for a cause.
    """

    fingerprint: str
    code: str
    kind: FindingKind
    gb_id: str | None
    title: str
    reason: str
    explanation: str
    hints: tuple[str, ...]
    location: Location
    stack: tuple[Frame, ...]
    counts: Counts
    called_from: Frame | None = None
    cost: Cost | None = None
    guard: Guard | None = None
    guards: tuple[Guard, ...] = ()
    skipped: tuple[SkippedFrame, ...] = ()
    ranks: tuple[int, ...] = (0,)
    first_step: int | None = None
    last_step: int | None = None
    suggestion: Suggestion | None = None
    not_measured: str | None = None
    intended: str | None = None
    by_rank: tuple[RankCounts, ...] = ()
    compiling: Compiling | None = None
    horizon_ms: float | None = None
    advice: str | None = None
    calls_of: str | None = None
    caused_by: str | None = None
    expected: str | None = None
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """One compiled graph.

    Attributes:
        calls: how often it ran; None when that was not measured.
        ms: total time inside it in milliseconds; None when not measured.
        ended_by: fingerprint of the finding at which it ends; None if it ends with its function.
        process: which process compiled it, in a merged report; rank: that process's number.
        split: why one frame gave several graphs without a break, e.g. "DDP bucket 1 of 3"; or None.
        collectives: collective operations in the graph, in order; None if they were not looked for.
    """

    compile_id: str
    function: str
    ops: int
    calls: int | None
    ms: float | None
    ended_by: str | None
    rank: int = 0
    process: str | None = None
    split: str | None = None
    collectives: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Compile:
    """One time that Dynamo compiled a frame, successful or not.

    Attributes:
        compile_id: Dynamo's ``frame/recompile`` id.
        function: name of the frame's function; line: where it begins.
        step: the step during which it happened; None in an imported trace.
        at_s: seconds from the start of the run; None if not known.
        seconds: all of it, as Dynamo measured; None if not known.
        phases: seconds of it by phase, each without what it contains: "dynamo", "backend" (a backend
            that is not Inductor), "aot_autograd", "inductor", "triton".
        cache: what the compile cache of FX graphs said: "hit", "miss", "bypass"; None if not asked.
        finding: fingerprint of the recompile or break that caused it, where one did.
        failed: why it failed, if it did.
        process: which process compiled, in a merged report; rank: that process's number.
        caches: what each cache said, of those that were asked: "fx_graph", "aot_autograd", "triton".
        bypassed: why a cache was not asked, in torch's words, by its name.
    """

    compile_id: str
    function: str
    file: str | None
    line: int | None
    step: int | None
    at_s: float | None
    seconds: float | None
    phases: dict[str, float] = field(default_factory=dict)
    cache: CacheAnswer | None = None
    finding: str | None = None
    failed: str | None = None
    rank: int = 0
    process: str | None = None
    caches: dict[str, CacheAnswer] = field(default_factory=dict)
    bypassed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepPart:
    """A stretch of a sampled step, on the host's clock.

    Attributes:
        what: "region", a run of a compiled graph; "gap", between regions, at a site; "prologue", from the
            beginning of an outermost call to its first region.
        at_ms: when it began, in milliseconds from the beginning of the step.
        region: of a region, its compile id; finding: of a gap, the fingerprint of its site.
    """

    what: Literal["region", "gap", "prologue"]
    at_ms: float
    ms: float
    region: str | None = None
    finding: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the run: from the end of the step before it to its own end.

    Attributes:
        index: counts from 0, as ``first_step`` of a finding does.
        at_s: when it began, in seconds from the start of the run.
        ms: wall time; None if not measured.
        compile_ms: the part of ``ms`` in which Dynamo and the backend compiled.
        compiles: frames compiled in it.
        crossings: times that execution left compiled code at a site; None if not measured.
        launches: compiled graphs that ran; None if not measured.
        process: which process made the step, in a merged report; rank: that process's number.
        parts: what the host did in the step, of a few of those that were sampled.
    """

    index: int
    at_s: float | None
    ms: float | None
    compile_ms: float | None
    compiles: int
    crossings: int | None = None
    launches: int | None = None
    rank: int = 0
    process: str | None = None
    parts: tuple[StepPart, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionGain:
    """What repairing all sites of one function would gain together, or those of one code.

    Attributes:
        fingerprints: of its findings, two or more; ms: by which an average steady step would be shorter.
    """

    fingerprints: tuple[str, ...]
    ms: float


@dataclass(frozen=True, slots=True)
class Timing:
    """What a steady step is made of: the base of every finding's cost.

    Attributes:
        method: how it was measured, or "not measured: " and why not.
        steps: how many steady steps were sampled.
        step_ms: median wall time of a sampled step; spread_ms: half of its quartile distance.
        regions_ms: part of ``step_ms`` inside compiled graphs; breaks_ms: part between them, at breaks;
            the rest is outside what was compiled (data, backward, optimizer). The names are the host's
            view unless ``bound`` says "device".
        bound: what the step waits for; None if not known.
        device_busy_ms: time in which the device worked, per step; None if not measured.
        guard_us: microseconds per step from the beginning of each outermost call to its first compiled
            code: checking guards and finding the code that fits.
        gain_ms: by how much a steady step would be shorter without any of the breaks, which is not the sum of
            their costs; those that torch means to be stay. least_gain_ms, most_gain_ms: at least and at most.
            Where steps differ in what they run, of an average step.
        functions: the same for the sites of each function that has several.
        steady_ms: wall time of all steady steps; steady_steps: their number; step_kinds: in how many ways
            they differ in what they run.
        entry_us: what entering a compiled graph takes in the script's steps, by a calibration after its end;
            with what its backward takes, where there is one; calibration_s: how long the calibration took.
    """

    method: str
    steps: int
    step_ms: float | None = None
    spread_ms: float | None = None
    regions_ms: float | None = None
    breaks_ms: float | None = None
    bound: Literal["host", "device"] | None = None
    device_busy_ms: float | None = None
    guard_us: float | None = None
    gain_ms: float | None = None
    least_gain_ms: float | None = None
    most_gain_ms: float | None = None
    steady_ms: float | None = None
    steady_steps: int | None = None
    step_kinds: int | None = None
    entry_us: float | None = None
    calibration_s: float | None = None
    functions: tuple[FunctionGain, ...] = ()


@dataclass(frozen=True, slots=True)
class AlikeLayers:
    """Layers of a compiled module that are built alike: compiled by itself, one of them serves all.

    Attributes:
        path: how the module reaches what holds them: ``layers``, ``stages[0].blocks``.
        name: of their class; count: how many they are.
        function: their forward as ``--compile`` takes it: ``/home/me/net.py:Block.forward``.
    """

    path: str
    name: str
    count: int
    function: str


@dataclass(frozen=True, slots=True)
class Signature:
    """With what the outermost compiled call was called when a frame was compiled.

    Attributes:
        compile_id: of the frame; function: its name. A resumed or nested frame has the outermost call of
            its own compile here.
        entry: name of what was called: a function, or a module's class (``module``).
        parameters: names of its parameters, without ``self``.
        arguments: ``{"args": […], "kwargs": {…}}``; an argument maps its kind to what is known:
            ``{"tensor": {"shape", "dtype", "device", "requires_grad"}}``, ``{"int": 3}``, ``{"list": […]}``,
            ``{"same": "args[0]"}`` for a tensor that is passed again.
        origins: for what the frame holds of the caller's objects, ``x`` or ``batch['text']``: which
            argument it is, ``args[0]`` or ``kwargs['mask']``.
        call: the calling expression.
        training: the module's mode; None for a function.
        grad, inference: whether gradients, and inference mode, were on.
        autocast: device type and dtype of autocast, "cuda bfloat16"; None where it was off.
        number: which outermost call it was, from 0; a step may have several.
        alike: layers of the module that are alike; forward: its own forward as ``--compile`` takes it.
        process: which process made the call, in a merged report; rank: that process's number.
    """

    compile_id: str | None
    function: str
    entry: str
    module: bool
    entry_file: str | None
    entry_line: int | None
    parameters: tuple[str, ...]
    arguments: dict[str, Any]
    origins: dict[str, str]
    call: Location | None
    training: bool | None
    grad: bool
    inference: bool
    autocast: str | None
    step: int | None
    number: int | None = None
    rank: int = 0
    process: str | None = None
    alike: tuple[AlikeLayers, ...] = ()
    forward: str = ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """One thing that was given to torch.compile, and by whom."""

    name: str
    by: Literal["script", "library", "breakscope"]
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """Where the tensors lived."""

    type: str
    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Run:
    """What was run, how, and how it ended.

    Attributes:
        compiled: names of what was compiled; ``targets`` says by whom and where.
        notes: what a reader must know to read the report right: what breakscope changed about the
            run, what this backend cannot see, what could not be hooked on this torch.
        asked: options of the scan that say what was compiled: "compile", "dynamic", "steps".
        sources: sha256 of each file that holds a finding; one that changed during the run is missing.
        machine: digest that names the machine and the user that it ran as; None where that is not known.
    """

    script: str
    argv: tuple[str, ...]
    cwd: str
    status: Status
    exit_code: int | None
    started_at: str
    duration_s: float
    backend: str
    mode: str | None
    compiled: tuple[str, ...]
    world_size: int
    python: str
    torch: str | None
    triton: str | None
    device: Device | None
    targets: tuple[Compiled, ...] = ()
    notes: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    machine: str | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the whole run. ``None``: not measured.

    In a merged report a site that several ranks have is one site, and ``skips`` and ``steps`` are those of
    the rank that has most; the rest are sums over all ranks.
    """

    sites: int
    occurrences: int
    crossings: int | None
    recompiles: int
    skips: int
    regions: int | None
    ops: int | None
    steps: int | None


@dataclass(frozen=True, slots=True)
class Unattributed:
    """Something that Dynamo reported and that could not be placed."""

    kind: str
    compile_id: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Our numbers beside Dynamo's own.

    Attributes:
        vacuous: nothing was compiled; why: the reason of it, as the end of a sentence.
    """

    dynamo: dict[str, int]
    unattributed: tuple[Unattributed, ...]
    vacuous: bool
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a job: a rank, in one of the attempts that an elastic launcher made.

    Attributes:
        process: its name in this report, made from what its own report holds; the same in every merge.
        job: what its ranks have in common; unique among the jobs of a fleet.
        attempt: how often the job had been restarted before.
        run: as in the process's own report, and so totals, reconciliation and timing.
        host: where it ran; pid: its process there.
        began: when it started, in seconds since 1970 by its host's clock; None if not known.
        ended: what ended it, in words, where its exit code alone would mislead.
    """

    process: str
    job: str
    rank: int
    attempt: int
    run: Run
    totals: Totals
    reconciliation: Reconciliation
    timing: Timing | None = None
    host: str | None = None
    pid: int | None = None
    began: float | None = None
    ended: str | None = None


DivergenceKind = Literal[
    "ended", "finding", "values", "graphs", "cache", "collectives", "waited", "skew", "setup"
]


@dataclass(frozen=True, slots=True)
class Divergence:
    """Something in which the ranks of one job differ: the worst fault of a job, for the others wait.

    Attributes:
        kind: "ended": a rank died; "finding": only some ranks have a finding, or have it more often;
            "values": guards saw other values; "graphs": a frame became other graphs; "cache": only some hit
            the compile cache; "collectives": another order; "waited": ranks waited while one compiled;
            "skew": compiling took much longer on some; "setup": versions or devices differ.
        text: one sentence that names the ranks, the frame, and what differs.
        ranks: the ranks that it is about; others: the rest of the job's.
        step: the first step at which they differ; None if it has none or it is not known.
        fingerprint: the finding that it is about.
        dimension: of the tensor whose size or stride differs.
        ms: milliseconds lost, where that was measured.
        by_rank: what each rank has, as text.
    """

    kind: DivergenceKind
    job: str
    attempt: int
    text: str
    ranks: tuple[int, ...]
    others: tuple[int, ...]
    function: str | None = None
    file: str | None = None
    line: int | None = None
    step: int | None = None
    fingerprint: str | None = None
    dimension: int | None = None
    ms: float | None = None
    by_rank: dict[str, str] = field(default_factory=dict)


ArtifactKind = Literal[
    "graph",
    "aot_joint",
    "aot_forward",
    "aot_backward",
    "aot_inference",
    "code",
    "guards",
    "bytecode_before",
    "bytecode_after",
]


@dataclass(frozen=True, slots=True)
class Artifact:
    """A text that a compile produced, kept in the folder ``artifacts`` beside the report.

    Attributes:
        digest: SHA-256 of the text, and its name in the folder; size: of the text, in bytes.
    """

    compile_id: str
    kind: ArtifactKind
    digest: str
    size: int
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one scan found. Written and read by :mod:`breakscope.report.schema`.

    A merged report holds several processes: ``ranks`` says which, in the order in which all else lists
    them, and ``divergences`` in what ranks of one job differ, worst first. Both are empty for one process.
    """

    tool: Tool
    run: Run
    totals: Totals
    reconciliation: Reconciliation
    findings: tuple[Finding, ...]
    regions: tuple[Region, ...]
    benchmark: dict[str, Any] | None = None
    steps: tuple[Step, ...] = ()
    compiles: tuple[Compile, ...] = ()
    timing: Timing | None = None
    signatures: tuple[Signature, ...] = ()
    ranks: tuple[Rank, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    artifacts: tuple[Artifact, ...] = ()

    def __str__(self) -> str:
        from breakscope.render.terminal import render

        return render(
            self, width=100, color=False, limit=20, everything=False, root=None, next_steps=()
        ).rstrip()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report file that every command and :func:`breakscope.load` read. Raises OutputError."""
        from breakscope.report import schema

        schema.save(self, path)

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """The report as pandas tables: findings, regions, guards, skipped."""
        from breakscope.diagnose.tables import frames

        return frames(self)

    def _repr_html_(self) -> str:
        from breakscope.view.notebook import render

        return render(self)
