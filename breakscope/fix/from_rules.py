"""The proposer of rules: from findings to patches that somebody has to prove."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from breakscope import catalog
from breakscope.fix import rules, runs
from breakscope.fix.evidence import Verdict
from breakscope.fix.observers import tells
from breakscope.fix.outcomes import NoPatch
from breakscope.fix.patch import Edit, Patch, Refusal, Rewrite
from breakscope.fix.rule import Rule, Site, locate
from breakscope.fix.runs import Script
from breakscope.fix.source_file import NotTextError, Source, read
from breakscope.inside.record.evidence import Evidence
from breakscope.report.model import Finding
from breakscope.report.secrets import mask
from breakscope.source.dominance import certainly_before, enclosing_statement
from breakscope.source.syntax import shown


def propose(
    findings: Sequence[Finding], sources: Mapping[str, Source], script: Script
) -> tuple[list[Patch], list[NoPatch]]:
    """Ask the rules about findings, after a recording run of the functions that hold them."""
    refused: list[NoPatch] = []
    sites: list[tuple[Finding, Site]] = []
    wanted: dict[str, list[str]] = {}
    for finding in findings:
        site = site_of(finding, sources, Evidence())
        if isinstance(site, str):
            refused.append(_refused(finding, site))
            continue
        sites.append((finding, site))
        functions = wanted.setdefault(os.path.realpath(finding.location.file), [])
        if site.qualname not in functions:
            functions.append(site.qualname)
    seen = runs.record(script, wanted) if wanted else {}
    patches: list[Patch] = []
    for finding, bare in sites:
        file = os.path.realpath(finding.location.file)
        evidence = seen.get(file, {}).get(bare.qualname)
        if evidence is None or not evidence.calls:
            refused.append(_refused(finding, f"{bare.qualname} was not called in a run without compiling"))
            continue
        answer = _asked(finding, file, replace(bare, evidence=evidence))
        if isinstance(answer, Patch):
            patches.append(answer)
        else:
            refused.append(answer)
    return _merged(patches), refused


def _refused(finding: Finding, why: str, rule: str = "") -> NoPatch:
    return NoPatch(finding, Verdict("refused", why), rule)


def _asked(finding: Finding, file: str, site: Site) -> Patch | NoPatch:
    """What the rules answer."""
    rule, answer = rules.propose(site)
    if isinstance(answer, Refusal):
        why = answer.reason if rule else f"{answer.reason}{_advice(finding)}"
        return _refused(finding, why, rule.name if rule else "")
    assert rule is not None
    others = () if answer.scaffold else rules.others(site)
    patch = _patch(finding, file, site, rule, answer)
    return replace(patch, others=tuple(_patch(finding, file, site, *other) for other in others))


def _patch(finding: Finding, file: str, site: Site, rule: Rule, rewrite: Rewrite) -> Patch:
    rewrite = _with_uses(site, rewrite)
    edits = tuple(Edit(edit.start, edit.end, edit.text, file) for edit in rewrite.edits)
    return Patch((finding,), rule.name, replace(rewrite, edits=edits), file, site.qualname)


def _with_uses(site: Site, rewrite: Rewrite) -> Rewrite:
    """A rewrite that may leave a copy, with consent if a use that was never run could tell it.

    Uses that are run are compared; what an attribute or an argument that the script has not set yet makes
    run cannot be.
    """
    if not rewrite.unaliased:
        return rewrite
    spans = [(edit.start, edit.end) for edit in rewrite.edits]

    def changed(node: ast.expr) -> bool:
        start, end = site.offsets(node)
        return any(first <= start and end <= last for first, last in spans)

    names = [one for one in ast.walk(site.function) if isinstance(one, ast.Name)]
    writes = [name for name in names if not isinstance(name.ctx, ast.Load) and changed(name)]
    for name in names:
        made = [write for write in writes if write.id == name.id]
        read = made and isinstance(name.ctx, ast.Load) and not changed(name)
        if not read or all(certainly_before(site, name, enclosing_statement(site, write)) for write in made):
            continue
        if site.seen(name) is None and tells(name, site.parents):
            text = shown(site, enclosing_statement(site, name), 80)
            note = f"`{text}` was never run: it may tell a copy from the tensor that was handed on before"
            return replace(rewrite, consent=True, notes=(*rewrite.notes, note))
    return rewrite


def _in_python(file: str) -> bool:
    """Whether a file is of Python's standard library."""
    inside = os.path.realpath(file).startswith(os.path.realpath(os.path.dirname(os.__file__)) + os.sep)
    return inside and f"{os.sep}site-packages{os.sep}" not in file


def _caller(finding: Finding) -> str:
    outside = [frame for frame in finding.stack if not _in_python(frame.file) and frame.owner != "torch"]
    return f", called at {os.path.basename(outside[-1].file)}:{outside[-1].line}" if outside else ""


def _merged(patches: Sequence[Patch]) -> list[Patch]:
    """Patches that make the same change are one."""
    merged: dict[object, Patch] = {}
    for patch in patches:
        key = (
            patch.file,
            patch.function,
            frozenset(patch.edits),
            tuple(sorted(patch.rewrite.config.items())),
        )
        before = merged.get(key)
        findings = (*before.findings, *patch.findings) if before else patch.findings
        others = tuple(replace(other, findings=findings) for other in patch.others)
        merged[key] = replace(patch, findings=findings, others=others)
    return list(merged.values())


def _advice(finding: Finding) -> str:
    """What else may help where no rule does."""
    if finding.code == "BS303":
        return ": it comes of recompiles, for which `breakscope remedy` looks for what prevents them"
    if finding.code == "BS302":
        return ": Dynamo begins in it because the function around it is not compiled, and may not once it is"
    return f" ({finding.title}). By hand: {(finding.advice or catalog.entry(finding.code).fix).rstrip('.')}"


def site_of(finding: Finding, sources: Mapping[str, Source], evidence: Evidence) -> Site | str:
    """The place as the rules see it, or why there is none."""
    where = finding.location
    if where.owner == "torch":
        return "it is in torch's own code"
    if _in_python(where.file):
        return "it is in Python's own code" + _caller(finding)
    source = sources.get(os.path.realpath(where.file))
    if source is None:
        return "its source cannot be read, or has changed since the scan"
    lines = source.text.split("\n")
    if where.source is not None and (
        where.line > len(lines) or mask(lines[where.line - 1].strip()) != mask(where.source.strip())
    ):
        return "its source has changed since the scan"
    try:
        site = locate(
            source.text,
            where.line,
            where.column,
            where.end_line,
            where.end_column,
            finding.code,
            finding.reason,
            evidence,
        )
    except SyntaxError:
        return "its source does not parse"
    return site if site is not None else "it is in no function"


def read_sources(findings: Sequence[Finding], hashes: Mapping[str, str]) -> dict[str, Source]:
    """The files of findings that patches may change, by real path, if they can be read and are the same.

    What a patch may change is loaded by each run itself; what everything imports could then not be forked.

    Args:
        hashes: sha256 of files at the time of the scan, as far as known.
    """
    found: dict[str, Source] = {}
    for finding in findings:
        file = os.path.realpath(finding.location.file)
        if file in found or finding.location.owner == "torch" or _in_python(file):
            continue
        try:
            source = read(file)
        except (OSError, SyntaxError, NotTextError):
            continue
        if hashes.get(finding.location.file) in (None, source.sha256):
            found[file] = source
    return found
