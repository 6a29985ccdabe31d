"""What remedies are proposed for: a recompile with the calls that it came of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from breakscope.fix.patch import Edit, Patch, Refusal, Rewrite
from breakscope.report.model import Finding, Guard, Report, Signature

# What may happen in a script that a remedy must not meet; see inside.capture.outputs.
GRADIENTS = "gradients"
WRITES = "writes"

Proposal = Patch | Refusal


@dataclass(frozen=True, slots=True)
class Subject:
    """A finding, with the calls of which its compiles came.

    Attributes:
        signatures: of every compile of the same frame, the first one included, in order.
        main: the file that runs as ``__main__``.
    """

    finding: Finding
    report: Report
    signatures: tuple[Signature, ...]
    main: str

    @property
    def guard(self) -> Guard:
        """What failed; a proposer by the cause of a guard is asked only where there is one."""
        assert self.finding.guard is not None
        return self.finding.guard

    def patch(
        self,
        rule: str,
        summary: str,
        edits: Iterable[Edit],
        *,
        caveat: str | None = None,
        forbids: str = "",
        limits: tuple[str, ...] = (),
        options: dict[str, str] | None = None,
    ) -> Patch:
        """A remedy.

        Args:
            summary: what to do, as one imperative sentence.
            caveat: what else it changes; None if nothing. It needs consent.
            forbids: what must not happen in the script for it to be right: :data:`GRADIENTS` that flow back
                through compiled calls, :data:`WRITES` of compiled calls to their arguments.
            limits: calls that the run did not make, and that it is not right for.
            options: of a scan to try it with, where there is no source to change.
        """
        rewrite = Rewrite(
            tuple(dict.fromkeys(edits)),
            summary,
            notes=(caveat,) if caveat else (),
            exact="rounded",  # where a number becomes a tensor
            consent=bool(caveat),
            options=options or {},
            forbids=forbids,
            limits=limits,
        )
        return Patch((self.finding,), rule, rewrite)


def subject(finding: Finding, report: Report, main: str) -> Subject:
    """A finding with what the report knows of its calls."""
    frames = {compile_id.partition("/")[0] for compile_id in finding.counts.compile_ids}
    same = tuple(
        signature
        for signature in report.signatures
        if (signature.compile_id or "").partition("/")[0] in frames
    )
    return Subject(finding, report, same, main)
