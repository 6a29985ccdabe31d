"""Bug reports for torch, in Markdown: one for each finding, worst first, to be pasted into a new issue.

A reproducer is made of the script's source and calls (:mod:`breakscope.view.reproducer`). It is not run here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from breakscope.catalog.links import torch_page
from breakscope.report.model import Finding, Report
from breakscope.report.ranking import is_open, worst_first
from breakscope.report.secrets import mask
from breakscope.source.standing_alone import NotAloneError
from breakscope.view.following import following
from breakscope.view.markup import block, plain
from breakscope.view.reproducer import reproducer
from breakscope.view.text import device_words, first_line
from breakscope.view.warmup_values import NotMadeError
from breakscope.view.words import clip, said

if TYPE_CHECKING:
    from breakscope.render.html.sources import SourceReader

_MOST_TEXT = 8_000
_MOST_CODE = 30_000
_INSTALLED = re.compile(r"/[^\s\"':]*?/(?=(?:site|dist)-packages/)")
_RULE = "\n---\n\n"


def render(
    report: Report, *, root: str | None = None, limit: int = 20, sources: SourceReader | None = None
) -> str:
    """The reports as text that ends with a newline.

    Args:
        root: folder to which paths are shown relative, besides that in which the script ran.
        limit: findings to write about.
        sources: for reproducers; without it there is none, and each report says so.
    """
    open_ = [one for one in report.findings if is_open(one) and one.kind != "compile"]
    shown = sorted(following(open_).causes, key=worst_first)[: max(limit, 0)]
    if not shown:
        return "Nothing to report to torch: the run had no graph break, recompile or skip to be repaired.\n"
    return _RULE.join(_issue(report, finding, root, sources) for finding in shown)


def _issue(report: Report, finding: Finding, root: str | None, sources: SourceReader | None) -> str:
    words = said(report, finding, root)
    name = f" ({finding.gb_id})" if finding.gb_id else ""
    about = {"recompile": "recompile", "skip": "skipped frame"}.get(finding.kind, "graph break")
    page = torch_page(finding.gb_id)
    where = f"in {words.function}" if words.function else "at the top of the file"
    parts = [
        f"# torch.compile, {about}: {plain(words.title)}{plain(name)}",
        f"At {plain(words.where)}, {plain(where)}." + (f" Torch's page: <{page}>" if page else ""),
        *_source_line(finding),
        "## Reproducer",
        *_reproducer(report, finding, sources),
        "## What torch says",
        block(clip(_shortened(_torch_text(finding), report, root), _MOST_TEXT), "text"),
        "## Versions",
        "\n".join(f"- {plain(line)}" for line in _versions(report)),
    ]
    return "\n\n".join(parts) + "\n"


def _source_line(finding: Finding) -> list[str]:
    source = finding.location.source
    return [block(mask(source.strip()), "python")] if source and source.strip() else []


def _reproducer(report: Report, finding: Finding, sources: SourceReader | None) -> list[str]:
    try:
        script = reproducer(report, finding, sources.lines if sources is not None else _nothing)
    except (NotAloneError, NotMadeError) as error:
        return [f"No script of its own can be made for this one: {plain(str(error))}."]
    if len(script) > _MOST_CODE:
        return [f"No short script can be made for this one: it takes {script.count(chr(10)):,} lines."]
    told = "The recompile" if finding.kind == "recompile" else "The break"
    return [
        block(mask(script), "python"),
        f"{told} is on stderr. Made of the script's own source; inputs are zeros.",
    ]


def _nothing(_file: str) -> Sequence[str]:
    return ()


def _torch_text(finding: Finding) -> str:
    guard = finding.guard
    parts = [finding.reason, finding.explanation if finding.kind != "recompile" else ""]
    if guard is not None:
        parts += [f"guard: {guard.expression}", f"expected {guard.expected}, got {guard.actual}"]
    parts += [f"Hint: {' '.join(hint.split())}" for hint in finding.hints]
    return mask("\n".join(part for part in parts if part.strip()))


def _shortened(text: str, report: Report, root: str | None) -> str:
    """Text without the folders that are nobody's business, and say nothing of the fault."""
    text = _INSTALLED.sub("", text)
    for folder in (root, report.run.cwd, os.path.dirname(report.run.script)):
        if folder and folder != "/":
            text = text.replace(folder.rstrip("/") + "/", "")
    home = str(Path.home())
    return text.replace(home + "/", "~/") if len(home) > 1 else text


def _versions(report: Report) -> list[str]:
    run = report.run
    compiled_with = run.backend + (f", mode {run.mode}" if run.mode else "")
    known = {
        "torch": run.torch,
        "triton": run.triton,
        "python": run.python,
        "device": "not known" if run.device is None else device_words(run.device),
        "backend of the run": compiled_with,
        "found by": f"breakscope {report.tool.version}",
    }
    return [f"{name}: {first_line(value)}" for name, value in known.items() if value]
