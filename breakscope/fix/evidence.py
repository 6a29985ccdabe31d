"""The verdict about a patch, and what stands behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from breakscope.report.model import SuggestionStatus

VerdictStatus = Literal["proved", "needs consent", "unproved", "refused"]
Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was seen of a patch. In a report it is JSON under the same names; None is not looked at.

    The first group is of the proof of functions, the second of the trial of a remedy, the third is what the
    patch says of itself, the last of the whole script.

    Attributes:
        functions: dotted paths. calls: of them in the run. captured: those kept to compare with.
        compared: calls of both forms, of ``kinds`` of inputs; in ``raising`` of them both raised, and
            ``rejected`` inputs were of no use. what: that was compared.
        branches: conditions, and how often each was true and false. not_driven: what no input did.
        ran_out: the time was up; untried: kinds of inputs that it did not reach.
        limits: inputs and calls for which it is not proved. own_memory: where the new code leaves a copy.
        level: "functions", or "whole script" where nothing less could be compared, of a patch by anybody.
        through: functions that were compared as parts of their callers, and why.
        identity: what held one tensor and holds two, where nothing in the project could tell.
        conditions: "none", where source does not change.
        by_structure: their text shows that the forms are the same outside of compiled code.
        not_searched: inputs that were left out, as those before them showed nothing new, by kind.
        recompiles_before, recompiles_after: in the whole script without and with a remedy.
        also_tried: other remedies, and what came of them. left_out: why others were not tried.
        first_step_s, step_ms: of a compile of the whole, and of its layers one by one.
        caveat: what else a remedy changes. shares_code: of instances that used up a limit.
        needs_consent: who could tell was found. consent: the verdict is that it needs consent.
        accepted: it is one of the fixes.
    """

    functions: Texts | None = None
    calls: int | None = None
    captured: int | None = None
    compared: int | None = None
    raising: int | None = None
    rejected: int | None = None
    kinds: Mapping[str, int] | None = None
    what: Texts | None = None
    gradients: str | None = None
    exact: bool | None = None
    max_difference: float | None = None
    branches: tuple[Mapping[str, Any], ...] | None = None
    not_driven: Texts | None = None
    ran_out: bool | None = None
    untried: Texts | None = None
    limits: Texts | None = None
    own_memory: Texts | None = None
    identity: Texts | None = None
    level: str | None = None
    through: Texts | None = None
    conditions: str | None = None
    by_structure: bool | None = None
    not_searched: Mapping[str, int] | None = None

    recompiles_before: int | None = None
    recompiles_after: int | None = None
    calls_compared: int | None = None
    tensors_compared: int | None = None
    bitwise: bool | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    printed_the_same: bool | None = None
    words: Mapping[str, Any] | None = None
    shares_code: str | None = None
    also_tried: tuple[Mapping[str, str], ...] | None = None
    left_out: Texts | None = None
    first_step_s: tuple[float, float] | None = None
    step_ms: tuple[float, float] | None = None
    caveat: str | None = None

    notes: Texts | None = None
    needs_consent: bool | None = None
    consent: bool | None = None
    assumes: Texts | None = None
    config: Mapping[str, Any] | None = None
    accepted: bool | None = None

    whole_script: Mapping[str, Any] | None = None
    inductor: Mapping[str, Any] | None = None

    def json(self) -> dict[str, Any]:
        """As a report holds it."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: _plain(value) for name, value in pairs if value is not None}


NOTHING_SEEN = Evidence()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a patch, and why.

    Attributes:
        works: False: no consent makes it right, because it raises, breaks or was taken back.
    """

    status: VerdictStatus
    why: str
    evidence: Evidence = NOTHING_SEEN
    works: bool = True

    @property
    def reported(self) -> SuggestionStatus:
        """The status in a report, where need of consent is a part of the evidence."""
        return "unproved" if self.status == "needs consent" else self.status
