"""The record of a place that reads a value."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.hoist.chain import Chain, Step
from breakscope.report.model import Finding


@dataclass(frozen=True, slots=True)
class Read:
    """A place that reads a value.

    Attributes:
        node: the expression; cast: what makes a number of it where it is a tensor: ``bool``.
        value: it, in the parameters of what is compiled.
        absent: those parameters that may be None: then nothing is read, and None is passed.
        notes: what to tell of it. limits: calls that it is not proved for.
    """

    finding: Finding
    chain: Chain
    node: ast.expr
    cast: str
    value: ast.expr
    absent: tuple[str, ...]
    notes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()

    @property
    def entry(self) -> Step:
        """The function that is compiled."""
        return self.chain.steps[0]
