"""Remedies for what differs in a tensor: a size, its layout, its rank, whether it takes gradients."""

from __future__ import annotations

import ast

from breakscope.model import Guard
from breakscope.remedy.calls import Site, compiling, is_simple, origin, sites
from breakscope.remedy.candidate import GRADIENTS, WRITES, Candidate, Edit, Proposal, Refusal, Subject
from breakscope.remedy.source import Files

_SMALL = {"0", "1"}


def size(subject: Subject, files: Files, dimensions: tuple[tuple[str, int], ...] = ()) -> list[Proposal]:
    """For a size that varied: mark the dimension at the call; else compile with ``dynamic=True``.

    Args:
        dimensions: more (source, dimension) to mark, learnt from a trial in which they came up.
    """
    guard = _guard(subject)
    if "Guard failed on a parameter" in guard.expression:
        return [Refusal(f"{guard.source} is a parameter, and changes its own shape: keep it the same")]
    if guard.source is None or guard.dimension is None:
        return [
            *dynamic(subject, files),
            Refusal(f"the code was compiled under a condition on sizes, {guard.expected}: no mark lifts it"),
        ]
    wanted = tuple(dict.fromkeys(((guard.source, guard.dimension), *dimensions)))
    small = bool(_SMALL & set(guard.values))
    proposals: list[Proposal] = []
    # Sizes 0 and 1 are always compiled apart, unless the dimension is unbacked: nothing is assumed of it.
    for function, rule in (
        ("torch._dynamo.mark_dynamic", "mark-dynamic"),
        ("torch._dynamo.decorators.mark_unbacked", "mark-unbacked"),
    )[int(small) :]:
        proposals.append(_mark(subject, files, wanted, function, rule))
    return [*proposals[: 1 if not small else None], *dynamic(subject, files)]


def _mark(
    subject: Subject, files: Files, wanted: tuple[tuple[str, int], ...], function: str, rule: str
) -> Proposal:
    edits: list[Edit] = []
    texts: list[str] = []
    found = sites(subject.signatures, files)
    for site in found:
        lines: list[str] = []
        made: dict[str, str] = {}
        statement = site.statement
        for source, dimension in wanted:
            path = next((p for one in site.signatures if (p := origin(one, source))), None)
            argument = site.argument(path) if path else None
            if argument is None or statement is None:
                return Refusal(f"{source} is not an argument that the call in source shows")
            key = ast.dump(argument.node)
            if key not in made:
                named = site.named(argument, source.partition("[")[0].partition(".")[0])
                if named is None:
                    return Refusal(f"{source} is computed inside the call; give it a name before the call")
                expression, extra, changes = named
                made[key] = (
                    expression[: len(expression) - len(argument.rest)] if argument.rest else expression
                )
                lines.extend(extra)
                edits.extend(changes)
            expression = made[key] + argument.rest
            mark = f"{function}({expression}, {dimension})"
            if mark not in lines:
                lines.append(mark)
            if mark not in texts:
                texts.append(mark)
        if statement is not None:
            edits.append(site.file.before(statement, lines))
        edits.extend(site.file.torch_import())
    if not edits:
        return Refusal("no call in your own files is known to have caused these compiles")
    return Candidate(rule, f"call {' and '.join(texts)} before the call", tuple(dict.fromkeys(edits)))


def dynamic(subject: Subject, files: Files) -> list[Proposal]:
    """``dynamic=True`` on the ``torch.compile`` that compiled the outermost function."""
    names = tuple(dict.fromkeys(one.entry for one in subject.signatures))
    targets = subject.report.run.targets
    edits: list[Edit] = []
    for name in names:
        if any(target.name == name and target.by == "breakscope" for target in targets):
            return [
                Candidate(
                    "dynamic-true",
                    f"compile with dynamic=True: torch.compile(…, dynamic=True) for {name}",
                    (),
                    {"dynamic": "true"},
                    caveat="every size and number becomes symbolic, which can make kernels slower",
                )
            ]
        place = compiling(name, targets, files)
        if place is None:
            return [Refusal(f"the torch.compile of {name} is not in your own files")]
        file, node = place
        if not isinstance(node, ast.Call):
            edits.append(file.after(node, "(dynamic=True)"))
        elif any(keyword.arg in ("dynamic", None) for keyword in node.keywords):
            return [Refusal(f"the torch.compile of {name} sets dynamic= already")]
        else:
            edits.append(file.keyword(node, "dynamic=True"))
    if not edits:
        return []
    return [
        Candidate(
            "dynamic-true",
            f"compile {', '.join(names)} with dynamic=True",
            tuple(edits),
            caveat="every size and number becomes symbolic, which can make kernels slower",
        )
    ]


def stride(subject: Subject, files: Files) -> list[Proposal]:
    """``.contiguous()`` on the argument, or ``.clone()`` where only its place in memory differs."""
    method = "clone" if _guard(subject).dimension is None else "contiguous"
    caveat = "copies what is laid out otherwise"
    return [_wrap(subject, files, f".{method}()", f"{method}-argument", caveat, WRITES)]


def requires_grad(subject: Subject, files: Files) -> list[Proposal]:
    """``.detach()`` on the argument, where nobody asks for its gradient."""
    caveat = "no gradient reaches the argument any more"
    return [_wrap(subject, files, ".detach()", "detach-argument", caveat, GRADIENTS)]


def _wrap(subject: Subject, files: Files, suffix: str, rule: str, caveat: str, forbids: str) -> Proposal:
    """A method called on the argument at every call that caused a compile."""
    edits: list[Edit] = []
    source = _guard(subject).source or ""
    text = source
    for site in sites(subject.signatures, files):
        path = next((p for one in site.signatures if (p := origin(one, source))), None)
        argument = site.argument(path) if path else None
        if argument is None or argument.rest:
            return Refusal(f"{source} is not an argument that the call in source shows")
        text = _called(site, argument.node, suffix)
        edits.append(site.file.replace(argument.node, text))
    if not edits:
        return Refusal("no call in your own files is known to have caused these compiles")
    summary = f"pass {text} instead of {text.removesuffix(suffix)}"
    return Candidate(rule, summary, tuple(edits), caveat=caveat, forbids=forbids)


def _called(site: Site, node: ast.expr, suffix: str) -> str:
    typed = site.file.source(node)
    bare = is_simple(node) or isinstance(node, ast.Call)
    return f"{typed}{suffix}" if bare else f"({typed}){suffix}"


def rank(subject: Subject, files: Files) -> list[Proposal]:  # noqa: ARG001 -- as every proposer
    """For another number of dimensions: never dynamic."""
    guard = _guard(subject)
    fewest = min((rank for rank in (guard.expected, guard.actual) if rank), key=int, default="fewer")
    return [
        Refusal(
            f"the number of dimensions is never dynamic: where {guard.source} has {fewest}, add the missing "
            "ones before the call (.unsqueeze(0)) and take them off the result"
        )
    ]


def _guard(subject: Subject) -> Guard:
    assert subject.finding.guard is not None
    return subject.finding.guard
