"""Remedies for what differs in a tensor: a size, its layout, its rank, whether it takes gradients."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from breakscope.diagnose.warmup import tensors
from breakscope.fix.patch import Edit, Refusal
from breakscope.fix.remedies.calls import Site, compiling, hidden, is_simple, origin, sites
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import GRADIENTS, WRITES, Proposal, Subject
from breakscope.report.model import Signature

PARAMETER = "Guard failed on a parameter"  # torch's words
_SMALL = {0, 1}
# Unlike mark_dynamic it does not raise where a later call needs one size alone: that call is compiled apart.
_MARK = "torch._dynamo.maybe_mark_dynamic"
_MARK_UNBACKED = "torch._dynamo.decorators.mark_unbacked"
_UNBACKED = (
    "sizes that were equal in this run must stay so: a later call that broadcasts one of them raises, "
    "where it was compiled again"
)


def size(subject: Subject, files: Files) -> list[Proposal]:
    """For a size that varied: marks on it, and on what varied with it, at the call; else ``dynamic=True``."""
    guard = subject.guard
    if PARAMETER in guard.expression:
        return [Refusal(f"{guard.source} is a parameter: no mark at the call makes its size dynamic")]
    if guard.source is None or guard.dimension is None:
        return [
            *dynamic(subject, files),
            Refusal(f"the code was compiled under a condition on sizes, {guard.expected}: no mark lifts it"),
        ]
    return [_marked(subject, files, guard.source, guard.dimension), *dynamic(subject, files)]


def _marked(subject: Subject, files: Files, source: str, dimension: int) -> Proposal:
    """Marks on every dimension that varied, in front of every call that caused a compile."""
    edits: list[Edit] = []
    texts: list[str] = []
    marked: dict[str, None] = {}
    unbacked = False
    for site in sites(subject.signatures, files):
        entry = site.signatures[0].entry
        marks = _varying(
            [signature for signature in subject.signatures if signature.entry == entry], source, dimension
        )
        if marks is None or site.statement is None:
            return hidden(subject, source)
        lines: list[str] = []
        names: dict[str, str] = {}
        for path, at, sizes in marks:
            argument = site.argument(path)
            if argument is None:
                return hidden(subject, source)
            key = ast.dump(argument.node)
            if key not in names:
                named = site.named(argument, _name(subject, path))
                if named is None:
                    return Refusal(f"{source} is computed inside the call; give it a name before the call")
                expression, extra, changes = named
                names[key] = expression.removesuffix(argument.rest)
                lines += extra
                edits += changes
            # Sizes 0 and 1 are compiled apart, unless the dimension is unbacked: nothing is assumed of it.
            small = bool(_SMALL & sizes)
            unbacked = unbacked or small
            mark = f"{_MARK_UNBACKED if small else _MARK}({names[key]}{argument.rest}, {at})"
            added = [f"if {names[key]} is not None:", f"    {mark}"]
            added = added if site.may_be_none(argument) else [mark]
            lines += added if mark not in (line.strip() for line in lines) else []
            texts += [mark] if mark not in texts else []
            marked.setdefault(names[key] + argument.rest)
        edits += [site.file.before(site.statement, lines), *site.file.torch_import()]
    if not edits:
        return Refusal("no call in your own files is known to have caused these compiles")
    rule = "mark-unbacked" if unbacked else "mark-dynamic"
    limit = (
        f"in every call {' and '.join(marked)} must be {'tensors' if len(marked) > 1 else 'a tensor'} of as "
        "many dimensions; the mark is an attribute of it, which its copies have too"
    )
    return subject.patch(
        rule,
        f"call {' and '.join(texts)} before the call",
        edits,
        caveat=_UNBACKED if unbacked else None,
        limits=(limit,),
    )


def _varying(
    signatures: Sequence[Signature], source: str, dimension: int
) -> list[tuple[str, int, set[int]]] | None:
    """(argument, dimension, sizes seen) of what Dynamo named and of all else that varied between the calls.

    Dynamo names only the first dimension that did not fit, and what varies together must be marked together.
    None where the one that it named is no argument.
    """
    sizes: dict[tuple[str, int], set[int]] = {}
    for signature in signatures:
        for path, tensor in tensors(signature):
            for at, seen in enumerate(tensor["shape"]):
                sizes.setdefault((path, at), set()).add(seen)
    named = next((found for signature in signatures if (found := origin(signature, source))), None)
    if named is None:
        return None
    marks = {(named, dimension), *(key for key, seen in sizes.items() if len(seen) > 1)}
    return [(*key, sizes.get(key, set())) for key in sorted(marks)]


def _name(subject: Subject, path: str) -> str:
    """What a function calls an argument, a name for a variable that holds it: one for all findings."""
    entries = {signature.entry for signature in subject.signatures}
    for signature in (one for one in subject.report.signatures if one.entry in entries):
        for local, argument in signature.origins.items():
            if argument == path:
                return local.partition("[")[0]
    return "argument"


def dynamic(subject: Subject, files: Files) -> list[Proposal]:
    """``dynamic=True`` on the ``torch.compile`` that compiled the outermost function."""
    names = tuple(dict.fromkeys(signature.entry for signature in subject.signatures))
    targets = subject.report.run.targets
    edits: list[Edit] = []
    for name in names:
        if any(target.name == name and target.by == "breakscope" for target in targets):
            return [
                subject.patch(
                    "dynamic-true",
                    f"compile with dynamic=True: torch.compile(…, dynamic=True) for {name}",
                    (),
                    options={"dynamic": "true"},
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
        subject.patch(
            "dynamic-true",
            f"compile {', '.join(names)} with dynamic=True",
            edits,
            caveat="every size and number becomes symbolic, which can make kernels slower",
        )
    ]


def stride(subject: Subject, files: Files) -> list[Proposal]:
    """``.contiguous()`` on the argument, or ``.clone()`` where only its place in memory differs."""
    method = "clone" if subject.guard.dimension is None else "contiguous"
    caveat = "copies what is laid out otherwise"
    return [_wrap(subject, files, f".{method}()", f"{method}-argument", caveat, WRITES)]


def requires_grad(subject: Subject, files: Files) -> list[Proposal]:
    """``.detach()`` on the argument, where nobody asks for its gradient."""
    caveat = "no gradient reaches the argument any more"
    return [_wrap(subject, files, ".detach()", "detach-argument", caveat, GRADIENTS)]


def _wrap(subject: Subject, files: Files, suffix: str, rule: str, caveat: str, forbids: str) -> Proposal:
    """A method called on the argument at every call that caused a compile."""
    edits: list[Edit] = []
    source = subject.guard.source or ""
    text = source
    for site in sites(subject.signatures, files):
        path = next((p for signature in site.signatures if (p := origin(signature, source))), None)
        argument = site.argument(path) if path else None
        if argument is None or argument.rest:
            return hidden(subject, source)
        text = _called(site, argument.node, suffix)
        edits.append(site.file.replace(argument.node, text))
    if not edits:
        return Refusal("no call in your own files is known to have caused these compiles")
    summary = f"pass {text} instead of {text.removesuffix(suffix)}"
    return subject.patch(rule, summary, edits, caveat=caveat, forbids=forbids)


def _called(site: Site, node: ast.expr, suffix: str) -> str:
    typed = site.file.source(node)
    bare = is_simple(node) or isinstance(node, ast.Call)
    return f"{typed}{suffix}" if bare else f"({typed}){suffix}"


def rank(subject: Subject, files: Files) -> list[Proposal]:  # noqa: ARG001 -- as every proposer
    """For another number of dimensions: never dynamic."""
    guard = subject.guard
    fewest = min((rank for rank in (guard.expected, guard.actual) if rank), key=int, default="fewer")
    return [
        Refusal(
            f"the number of dimensions is never dynamic: where {guard.source} has {fewest}, add the missing "
            "ones before the call (.unsqueeze(0)) and take them off the result"
        )
    ]
