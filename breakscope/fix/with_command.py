"""``breakscope fix --with COMMAND``: what no rule repairs is asked of a command, and its diffs are proved."""

from __future__ import annotations

import ast
import json
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope import catalog
from breakscope.errors import UnknownCodeError
from breakscope.fix import diff, from_rules, outside, prove, rules, runs
from breakscope.fix.answer import answer as answer_of
from breakscope.fix.evidence import Verdict
from breakscope.fix.installed_rules import answer_of as answer_of_rule
from breakscope.fix.outcomes import NoPatch
from breakscope.fix.patch import Patch, Refusal, Rewrite, clash
from breakscope.fix.work import DECLINED, Work
from breakscope.inside.record.evidence import Evidence, Seen
from breakscope.report.model import Finding

VERSION = 1
RULE = "with-command"
_MOST_CALLERS = 6


@dataclass(frozen=True, slots=True)
class _Try:
    """What a command wrote, and what came of it."""

    diff: str
    status: str
    why: str
    counterexample: Any = None


def propose(work: Work, command: str, tries: int) -> bool:
    """Ask the command about each finding that no rule repairs. Returns whether anything was accepted."""
    _give_up(work)
    asked = [one for one in work.unpatched if one.verdict.status != "proved" and _readable(one, work)]
    if not asked:
        return False
    seen = _recorded(work, [one.finding for one in asked])
    accepted = False
    for answer in asked:
        finding = answer.finding
        work.progress(f"asking the command about {finding.code} in {finding.location.function}")
        found = _ask_about(work, finding, seen, command, tries)
        at = next(i for i, one in enumerate(work.unpatched) if one is answer)
        if isinstance(found, Verdict):
            why = f"{answer.verdict.why}; the command: {found.why}"
            work.unpatched[at] = replace(answer, verdict=replace(found, why=why))
            continue
        patch, verdict = found
        del work.unpatched[at]
        if work.declined(patch, verdict):
            verdict = replace(verdict, status="unproved", why=DECLINED)
        work.judged.append((patch, verdict))
        accepted = accepted or work.acceptable(patch, verdict)
    return accepted


def _give_up(work: Work) -> None:
    """What rules proposed and the proof refused has no patch: the command is asked for another."""
    refused = [pair for pair in work.judged if pair[1].status == "refused"]
    work.judged = [pair for pair in work.judged if pair[1].status != "refused"]
    for patch, verdict in refused:
        work.unpatched += [NoPatch(finding, verdict, patch.rule) for finding in patch.findings]


def _readable(answer: NoPatch, work: Work) -> bool:
    where = answer.finding.location
    return where.owner != "torch" and os.path.realpath(where.file) in work.sources


def _ask_about(
    work: Work, finding: Finding, seen: dict[str, dict[str, Evidence]], command: str, tries: int
) -> tuple[Patch, Verdict] | Verdict:
    earlier: list[_Try] = []
    files = [*work.sources, *_own_files(work)]
    for left in reversed(range(tries)):
        request = _request(work, finding, seen, earlier, left)
        try:
            limit_s = work.script.timeout_s or outside.TIMEOUT_S
            text = outside.ask(command, json.dumps(request).encode(), files, limit_s)
            changes = diff.changes(text, [work.root, Path.cwd()])
            _within(changes, finding, work)
        except (outside.OutsideError, diff.DiffError) as error:
            earlier.append(_Try("", "refused", str(error)))
            continue
        patch, verdict, proved = _tried(work, finding, changes)
        if verdict.status in ("proved", "needs consent"):
            return patch, verdict
        example = answer_of(proved, changes)["counterexample"] if proved is not None else None
        earlier.append(_Try(text, verdict.status, verdict.why, example))
        work.progress(f"the command's patch is {verdict.status}: {verdict.why}")
    last = earlier[-1]
    count = f" ({len(earlier)} tries)" if len(earlier) > 1 else ""
    return Verdict("refused", f"{last.why}{count}", works=False)


def _tried(
    work: Work, finding: Finding, changes: Sequence[diff.Change]
) -> tuple[Patch, Verdict, prove.Proved | None]:
    edits = tuple(edit for one in changes for edit in one.edits("new"))
    patch = Patch((finding,), RULE, Rewrite(edits, "the command's patch"))
    for change in changes:
        work.sources.setdefault(change.file, change.disk)
    if clash([*work.accepted(), patch]):
        why = "it changes text that another rewrite changes: write that one, then scan again"
        return patch, Verdict("refused", why, works=False), None
    options = prove.Options(work.options.settings, inductor=False)
    proved = prove.prove(changes, work.script, options, work.progress)
    verdict = proved.verdict
    still = [one for one in (*proved.left, *proved.new) if one.fingerprint == finding.fingerprint]
    if verdict.status in ("proved", "needs consent") and (still or not _gone(finding, proved)):
        verdict = replace(verdict, status="unproved", why=f"the break is still there: {finding.title}")
    return patch, verdict, proved


def _gone(finding: Finding, proved: prove.Proved) -> bool:
    where = finding.location
    return any(
        (one.code, one.location.file, one.location.function) == (finding.code, where.file, where.function)
        for one in proved.gone
    )


def _within(changes: Sequence[diff.Change], finding: Finding, work: Work) -> None:
    """The diff may change the finding's file and files of the project, and nothing else."""
    own = os.path.realpath(finding.location.file)
    roots = [os.path.join(os.path.realpath(one), "") for one in (work.root, Path.cwd())]
    for change in changes:
        if change.file != own and not change.file.startswith(tuple(roots)):
            raise outside.OutsideError(f"its diff changes {change.file}, which is not of this project")
        if change.on_disk == "new":
            raise outside.OutsideError("its diff is of what the files hold already")


def _own_files(work: Work) -> list[str]:
    """Source files of the project, which a command must leave alone."""
    skipped = {".git", ".venv", "venv", "node_modules", "__pycache__", ".breakscope"}
    found: list[str] = []
    for folder, folders, names in os.walk(work.root):
        folders[:] = [one for one in folders if one not in skipped]
        found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
        if len(found) > 5000:
            break
    return found


# ---- what the command is given ----


def _recorded(work: Work, findings: Sequence[Finding]) -> dict[str, dict[str, Evidence]]:
    wanted: dict[str, list[str]] = {}
    for finding in findings:
        site = from_rules.site_of(finding, work.sources, Evidence())
        if not isinstance(site, str):
            functions = wanted.setdefault(os.path.realpath(finding.location.file), [])
            functions += [site.qualname] if site.qualname not in functions else []
    return runs.record(work.script, wanted) if wanted else {}


def _request(
    work: Work,
    finding: Finding,
    seen: dict[str, dict[str, Evidence]],
    earlier: Sequence[_Try],
    left: int,
) -> dict[str, Any]:
    where, file = finding.location, os.path.realpath(finding.location.file)
    site = from_rules.site_of(finding, work.sources, Evidence())
    function: dict[str, Any] | None = None
    evidence = Evidence()
    refusals: list[dict[str, str]] = []
    if not isinstance(site, str):
        evidence = seen.get(file, {}).get(site.qualname, Evidence())
        first, last = site.function.lineno, site.function.end_lineno or site.function.lineno
        source = "\n".join(site.lines[first - 1 : last])
        function = {"file": file, "name": site.qualname, "first_line": first, "source": source}
        refusals = [
            {"rule": rule.name, "why": said.reason}
            for rule in rules.all_rules()
            if finding.code in rule.codes
            and isinstance(said := answer_of_rule(rule, replace(site, evidence=evidence)), Refusal)
        ]
    return {
        "version": VERSION,
        "finding": {
            "code": finding.code,
            "title": finding.title,
            "reason": finding.reason,
            "file": where.file,
            "line": where.line,
            "source": where.source,
            "function": where.function,
        },
        "function": function,
        "callers": _callers(finding),
        "calls": evidence.calls,
        "parameters": {name: _seen(one) for name, one in evidence.parameters.items()},
        "refusals": refusals,
        "page": _page(finding),
        "root": str(work.root),
        "tries_left": left,
        "earlier": [
            {"diff": one.diff, "status": one.status, "why": one.why, "counterexample": one.counterexample}
            for one in earlier
        ],
    }


def _seen(seen: Seen) -> dict[str, Any]:
    return {
        "kinds": sorted(seen.kinds),
        "tensors": [
            {"dtype": t.dtype, "shape": list(t.shape), "device": t.device, "requires_grad": t.requires_grad}
            for t in seen.tensors
        ],
        "values": [repr(value) for value in seen.values],
    }


def _page(finding: Finding) -> str:
    """Torch's own page for the break, as breakscope explain has it."""
    for name in (finding.gb_id, finding.code):
        if name:
            try:
                return catalog.explain(name)
            except UnknownCodeError:
                continue
    return ""


def _callers(finding: Finding) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for frame in reversed(finding.stack[:-1]):
        if frame.owner == "torch" or len(found) == _MOST_CALLERS:
            continue
        source = _function_around(frame.file, frame.line)
        found.append({"file": frame.file, "line": frame.line, "source": source})
    return found


def _function_around(file: str, line: int) -> str:
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError):
        return ""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    lines = text.splitlines()
    if not around:
        return lines[line - 1] if 0 < line <= len(lines) else ""
    inner = max(around, key=lambda node: node.lineno)
    return textwrap.dedent("\n".join(lines[inner.lineno - 1 : inner.end_lineno]))
