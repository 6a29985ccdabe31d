"""What ``breakscope fix`` found, for a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from breakscope.report.model import Finding, Suggestion

_COLORS = {"proved": "32", "unproved": "33", "refused": "31", "+": "32", "-": "31", "@": "36"}


def render(answers: Sequence[tuple[Finding, Suggestion]], *, everything: bool, color: bool, root: str) -> str:
    """Every answer: proved ones with their diff and evidence, the others in a line.

    Args:
        everything: the others with their diff and whole reason too.
        root: folder to which paths are shown relative.
    """
    blocks = []
    shown: set[object] = set()
    for finding, suggestion in answers:
        again = _change(suggestion) in shown
        shown.add(_change(suggestion))
        blocks.append(_block(finding, suggestion, everything=everything, color=color, root=root, again=again))
    return "\n".join([*blocks, _summary([suggestion for _, suggestion in answers])])


def _change(suggestion: Suggestion) -> object:
    """What tells its change from others: one may answer several findings, each for a reason of its own."""
    if suggestion.diff and suggestion.rule:
        return suggestion.label, suggestion.rule, suggestion.diff
    return id(suggestion)


def _block(
    finding: Finding, suggestion: Suggestion, *, everything: bool, color: bool, root: str, again: bool
) -> str:
    where = finding.location
    place = f"{_relative(where.file, root)}:{where.line}" + (f":{where.column}" if where.column else "")
    label = _painted(suggestion.label, _COLORS[suggestion.status], color)
    head = f"{label}  {finding.code}  {place}  {where.function or ''}"
    rule = f" ({suggestion.rule})" if suggestion.rule else ""
    lines = [head, f"   {suggestion.summary}{rule}: {suggestion.why}"]
    if again:
        return "\n".join([*lines, "   the same change as above", ""])
    if suggestion.status != "proved" and finding.cost is not None:
        lines.append(
            f"   left as it is, it costs {finding.cost.ms_per_step:.3g} ms a step ({finding.cost.method})"
        )
    if suggestion.status == "proved" or everything:
        lines += [f"   {line}" for line in _evidence(suggestion.evidence)]
        if suggestion.diff:
            lines += ["", *(_diff_line(line, color) for line in suggestion.diff.splitlines())]
    return "\n".join([*lines, ""])


def _evidence(evidence: dict[str, Any]) -> Iterable[str]:
    if "compared" in evidence:
        kinds = ", ".join(f"{kind} {count}" for kind, count in evidence["kinds"].items())
        yield f"compared: {kinds}; largest difference {evidence['max_difference']:g}"
        yield f"gradients: {evidence['gradients']}"
    for one in evidence.get("branches", ()):
        yield f"driven: {one['condition']} was true {one['true']} and false {one['false']} times"
    for assumed in evidence.get("assumes", ()):
        yield f"only if: {assumed}"
    for limit in evidence.get("limits", ()):
        yield f"limit: {limit}"
    for identity in evidence.get("identity", ()):
        yield f"identity: {identity}"
    for note in evidence.get("notes", ()):
        yield f"note: {note}"
    whole = evidence.get("whole_script")
    if whole:
        within = f"{whole['max_difference']:.2g}"
        equal = f"differ by up to {within}" if whole.get("consented") else f"equal within {within}"
        equal = "bitwise equal" if whole["bitwise"] else equal
        before, after = whole["sites"]
        revealed = whole.get("revealed", 0)
        came = f" ({before - after + revealed} gone, {revealed} came to light)" if revealed else ""
        yield (
            f"whole script with all patches: {before} -> {after} sites{came}, {whole['tensors']} tensors of "
            f"{whole['outermost_calls']} calls {equal}"
        )
        if whole.get("uncompiled"):
            what = "fails" if whole.get("fails") else "computes something else"
            yield f"held against the script uncompiled: compiled as it is, it {what}"
    if words := (whole or {}).get("words"):
        printed, errors = _count(words["stdout_lines"], "printed line"), words["stderr_lines"]
        said = f"{printed}, {errors} on standard error, and {_count(words['files'], 'file')}"
        left = f"; left out: {'; '.join(words['left_out'])}" if words["left_out"] else ""
        yield f"what the script says is the same: {said}{left}"
    inductor = evidence.get("inductor")
    if inductor:
        yield f"Inductor: {inductor['verdict']}: {inductor['why']}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _summary(suggestions: Sequence[Suggestion]) -> str:
    """Counts of patches; what is gone with the patches of other places has none of its own."""
    told = {_change(suggestion): suggestion for suggestion in suggestions}.values()
    gone = [one for one in told if not one.rule and one.label in ("proved", "needs consent")]
    labels = [one.label for one in told if one not in gone]
    names = ("proved", "needs consent", "unproved", "refused")
    counts = [f"{labels.count(name)} {name}" for name in names if name in labels or name == "proved"]
    return ", ".join([*counts, *([f"{len(gone)} gone with them"] if gone else [])])


def _relative(file: str, root: str) -> str:
    inside = file.startswith(os.path.join(root, ""))
    marker = f"{os.sep}site-packages{os.sep}"
    return os.path.relpath(file, root) if inside else file.rpartition(marker)[2]


def _diff_line(line: str, color: bool) -> str:
    code = _COLORS.get(line[:1]) if not line.startswith(("+++", "---")) else None
    return _painted(line, code, color) if code else line


def _painted(text: str, code: str, color: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if color else text
