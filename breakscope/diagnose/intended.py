"""Breaks that are meant to be: what torch itself keeps out of graphs, such as backward and optimizers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from breakscope.report.model import Finding
from breakscope.report.owners import is_installed

# What Dynamo names as the function that it was told not to trace.
_MEANT = (
    (re.compile(r"\bGradScaler\.\w+"), "gradient scaling reads its scale on the host by design"),
    (
        re.compile(r"\b(?:Optimizer|LRScheduler)\.\w+|\b(?:lr_scheduler|optim)\.\w+"),
        "the optimizer's housekeeping runs eagerly by design",
    ),
    (
        re.compile(r"Tensor\.backward\(\)"),
        "the backward pass is compiled on its own",
    ),
)
_FILES = (
    (re.compile(r"/torch/(?:optim|amp|cuda/amp)/[^/]+\.py$"), "torch breaks here on purpose"),
    (re.compile(r"/torch/autograd/[^/]+\.py$"), "autograd's own code runs eagerly by design"),
    (
        re.compile(r"/torch/(?:distributed|nn/parallel)/.+\.py$"),
        "hooks of data and tensor parallelism run eagerly by design",
    ),
)


def mark(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with those that are meant to be saying so."""
    return [finding if _costs(finding) else replace(finding, intended=_why(finding)) for finding in findings]


def _costs(finding: Finding) -> bool:
    """Whether a function of the project runs eagerly as a whole because of it, as around a loop."""
    return any(one.since is None and not is_installed(one.file) for one in finding.skipped)


def _why(finding: Finding) -> str | None:
    path = finding.location.file.replace("\\", "/")
    if finding.location.owner == "torch":
        for pattern, why in _FILES:
            if pattern.search(path):
                return why
    for pattern, why in _MEANT:
        if pattern.search(f"{finding.reason} {finding.explanation}"):
            return why
    return None
