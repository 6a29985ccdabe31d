"""What a proposer offers: a change of source files with what it claims, or the reason for none.

Rules, remedies and whoever comes later answer with these records; trial, verdict, store and writer know no
others. Edits are pieces of text, so that comments and formatting survive, and two patches of one file can be
applied together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from breakscope.inside import overlay
from breakscope.inside.prove.claims import Claims
from breakscope.report.model import Finding
from breakscope.source.span import Span

# How results may differ: in no bit; by the rounding of a number that became a tensor; by the order of sums.
Exactness = Literal["bitwise", "rounded", "reassociated"]

# Assumptions that the proof knows.
NO_GRADIENT = "no gradient flows through the branch (none did in the recorded run)"
UNWANTED = "no gradient is wanted here: autograd was off in the recorded run"


@dataclass(frozen=True, slots=True)
class Edit:
    """Text to put between two character offsets of a file.

    Attributes:
        file: real path. A rule sees one module and leaves it empty; its proposer fills it in.
    """

    start: int
    end: int
    text: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a change does, and what it says of itself.

    Attributes:
        edits: disjoint changes of source. Empty where only ``config`` or ``options`` change.
        summary: a few words for the terminal: ``torch.where instead of the branch``.
        notes: what is different afterwards, one sentence each: work done in vain, order of messages.
        assumes: what holds in the recorded run and is not checked by the new code, one sentence each.
            A rewrite with assumptions is conditional and says so.
        exact: how far results may be from the old ones.
        consent: behaviour changes, as ``notes`` say: only with the user's consent.
        differs: what is consented to are other results or gradients; else such a proof refuses.
        config: settings of ``torch._dynamo.config`` that it needs.
        branches: spans of the conditions (in the old source) that the proof has to drive both ways.
        unaliased: where the old code handed on one of its inputs itself (a branch not taken), the new code
            hands on an equal tensor of its own: other memory, and dense strides.
        early: attributes (``self.x``) that the new code may set in a call in which the old code did not yet.
        scaffold: why no comparison can prove it, if it is only a beginning for somebody to finish: it is
            shown, and never accepted, with consent or without.
        zeros: a gradient may be zero where there was none, with consent or where the script wants none:
            nothing else may differ.
        compiled_only: the code is another one only while it is compiled, so that the proof compares that.
        raises: it checks in the graph, where an exception is a RuntimeError that passes every ``except``.
        silent: messages are not written in compiled code.
        options: options of a scan to try it with, where breakscope made the compile and there is no source.
        forbids: what must not happen in the script for it to be right; empty: nothing.
        limits: calls that the run did not make, and that it is not right for, one sentence each.
        numbers: attributes whose number other objects were made for, as ``assumes`` says: with another one
            the new code may raise where the old one does not. The proof tries it, and names it as a limit.
        sums: a sum takes its gradients only from what is added. Where nothing of that does is a limit.
        never: conditions of the old code that nothing can make true, as text: no input has to.
    """

    edits: tuple[Edit, ...]
    summary: str
    notes: tuple[str, ...] = ()
    assumes: tuple[str, ...] = ()
    exact: Exactness = "bitwise"
    consent: bool = False
    differs: bool = False
    config: Mapping[str, bool] = field(default_factory=dict)
    branches: tuple[Span, ...] = ()
    unaliased: bool = False
    early: tuple[str, ...] = ()
    scaffold: str = ""
    zeros: bool = False
    compiled_only: bool = False
    raises: bool = False
    silent: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    forbids: str = ""
    limits: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    sums: bool = False
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a proposer leaves a place alone: one plain sentence, without a full stop."""

    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """A change that a proposer offers for findings.

    Attributes:
        findings: those that it answers; two conditions of one ``if`` are two findings.
        rule: the short name of what made it: ``branch-to-where``.
        file: real path of the file with the function that it changes.
        function: its dotted path. The proof compares its two forms; where it is empty, only the whole script.
        others: other patches of the place, for when this one is measured to make the script slower.
    """

    findings: tuple[Finding, ...]
    rule: str
    rewrite: Rewrite
    file: str = ""
    function: str = ""
    others: tuple[Patch, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The changes of source."""
        return self.rewrite.edits

    @property
    def applies(self) -> bool:
        """Whether there is anything that an overlay could apply."""
        return bool(self.edits or self.rewrite.config)


class OverlappingEditsError(ValueError):
    """Two edits change the same text."""


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """Edits of one file from top to bottom; those at one place in the order in which they were made."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


def apply(source: str, edits: Iterable[Edit]) -> str:
    """A source with edits made, in any order.

    Raises:
        OverlappingEditsError: two of them touch the same text.
    """
    ordered = in_order(edits)
    if _overlapping(ordered):
        raise OverlappingEditsError("two rewrites change the same text")
    return overlay.edited(source, [(edit.start, edit.end, edit.text) for edit in ordered])


def edits_by_file(patches: Iterable[Patch]) -> dict[str, list[Edit]]:
    """The edits of several patches, in order, each once: two patches may bring the same import."""
    files: dict[str, list[Edit]] = {}
    for edit in dict.fromkeys(edit for patch in patches for edit in patch.edits):
        files.setdefault(edit.file, []).append(edit)
    return {file: in_order(edits) for file, edits in files.items()}


def clash(patches: Iterable[Patch]) -> bool:
    """Whether two patches replace the same text. Two of them may put something in at one place."""
    return any(_overlapping(edits) for edits in edits_by_file(patches).values())


def alike(patches: Iterable[Patch]) -> list[list[Patch]]:
    """Rewrites of one rule in one function, which claim the same and need no consent: two or more."""
    groups: dict[object, list[Patch]] = {}
    for patch in patches:
        rewrite = patch.rewrite
        if patch.edits and not rewrite.scaffold and not rewrite.consent:
            same = groups.setdefault((patch.file, patch.function, patch.rule, rewrite.exact), [])
            if not clash([*same, patch]):
                same.append(patch)
    return [group for group in groups.values() if len(group) > 1]


def _overlapping(ordered: Sequence[Edit]) -> bool:
    last = 0
    for edit in ordered:
        if edit.start < last:
            return True
        last = edit.end
    return False


def claims_of(rewrites: Sequence[Rewrite]) -> Claims:
    """What several rewrites of one function say of themselves, taken together, as the proof takes it."""
    return Claims(
        exact=all(rewrite.exact == "bitwise" for rewrite in rewrites),
        unaliased=any(rewrite.unaliased for rewrite in rewrites),
        early=tuple(path.rpartition(".")[2] for rewrite in rewrites for path in rewrite.early),
        conditional=any(rewrite.assumes for rewrite in rewrites),
        compiled_only=any(rewrite.compiled_only for rewrite in rewrites),
        zeros=any(rewrite.consent and (rewrite.zeros or rewrite.compiled_only) for rewrite in rewrites),
        no_gradients=any(map(_wants_none, rewrites)),
        sums=any(rewrite.sums for rewrite in rewrites),
        raises=any(rewrite.raises for rewrite in rewrites),
        silent=any(rewrite.silent for rewrite in rewrites),
        numbers=tuple(name for rewrite in rewrites for name in rewrite.numbers),
        never=tuple(text for rewrite in rewrites for text in rewrite.never),
    )


def _wants_none(rewrite: Rewrite) -> bool:
    """Whether a rewrite relies on it that the script wants no gradient."""
    return (rewrite.compiled_only and NO_GRADIENT in rewrite.assumes) or UNWANTED in rewrite.assumes
