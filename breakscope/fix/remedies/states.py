"""Remedies for what surrounds a call: grad mode, inference mode, and which arguments are one tensor."""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscope.fix.patch import Edit, Refusal
from breakscope.fix.remedies.calls import Site, sites
from breakscope.fix.remedies.source import File, Files
from breakscope.fix.remedies.subject import GRADIENTS, WRITES, Proposal, Subject

_SETTERS = {
    "num_threads": "set_num_threads",
    "default_dtype": "set_default_dtype",
    "default device": "set_default_device",
    "deterministic": "use_deterministic_algorithms",
    "torch function modes": "set_default_device",
}


def global_state(subject: Subject, files: Files) -> list[Proposal]:
    """For settings of torch that were others at another call."""
    source = subject.guard.source or "the global state"
    if "grad_mode" in source:
        return [_without_gradients(subject, files)]
    if "autocast" in source:
        return [
            Refusal(
                "autocast decides the dtypes of what is computed: inside and outside of it are two programs; "
                "call it always the same way, or put the autocast into the compiled function"
            )
        ]
    for word, setter in _SETTERS.items():
        if word in source:
            lines = _lines(subject, files, setter)
            where = f" ({lines})" if lines else ""
            return [
                Refusal(
                    "which value is wanted is not for a tool to say: "
                    f"call torch.{setter} once, at the start{where}"
                )
            ]
    return [Refusal(f"{source} changed between the calls: set it once, before the first of them")]


def _lines(subject: Subject, files: Files, setter: str) -> str:
    file = files.open(subject.main)
    calls = (node for node in ast.walk(file.tree) if isinstance(node, ast.Call)) if file else ()
    found = [call.lineno for call in calls if ast.unparse(call.func).endswith(setter)]
    return f"it is called in lines {', '.join(map(str, sorted(found)))}" if len(found) > 1 else ""


def _without_gradients(subject: Subject, files: Files) -> Proposal:
    """Put the calls that ran with gradients on under ``no_grad`` as well, in case nobody needs them."""
    edits: list[Edit] = []
    for site in sites(subject.signatures, files):
        if not any(signature.grad for signature in site.signatures):
            continue
        if not all(signature.grad for signature in site.signatures):
            return Refusal("one call runs in either grad mode: choose it once, around the loop")
        changed = _under(site, "with torch.no_grad():")
        if changed is None:
            return Refusal(
                "the call cannot be put under torch.no_grad() by itself: choose one grad mode for all calls"
            )
        edits += [*changed, *site.file.torch_import()]
    if not edits:
        return Refusal("no call in your own files is known to have run with gradients on")
    return subject.patch(
        "same-grad-mode",
        "call it always under torch.no_grad()",
        edits,
        caveat="right only where nobody asks for gradients of these calls",
        forbids=GRADIENTS,
    )


def _under(site: Site, header: str) -> list[Edit] | None:
    """The call's statement, indented under a ``with``; None where it is more than a simple statement."""
    statement = site.statement
    if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return):
        return None
    typed = site.file.source(statement)
    if "\n" in typed or ";" in site.file.text[site.file.span(statement)[1] :].partition("\n")[0]:
        return None
    front = site.file.before(statement, [header])
    return [replace(front, text=f"{front.text}    ")]


def dispatch_keys(subject: Subject, files: Files) -> list[Proposal]:
    """``inference_mode`` -> ``no_grad``: its tensors have the dispatch keys of all others."""
    keys = f"{subject.guard.expected} {subject.guard.actual}"
    if "Autograd" not in keys and "ADInplaceOrView" not in keys:
        return [Refusal("the tensors come in other layouts, wrappers or transforms: pass one kind of them")]
    edits: list[Edit] = []
    calls = [signature.call for signature in subject.signatures if signature.call is not None]
    paths = [subject.main, *(call.file for call in calls if call.owner == "project")]
    for path in dict.fromkeys(paths):
        if (file := files.open(path)) is not None:
            edits += _replaced(file)
    if not edits:
        return [Refusal("torch.inference_mode is not used in the files of the script and its calls")]
    caveat = (
        "what is made there are ordinary tensors from then on: is_inference() is False, they may be written "
        "to and used in a backward, and enable_grad() inside records gradients"
    )
    summary = "use torch.no_grad() instead of torch.inference_mode()"
    return [subject.patch("no-grad", summary, edits, caveat=caveat)]


def _replaced(file: File) -> list[Edit]:
    """Where the mode is always switched on: ``inference_mode(flag)`` stays, since no_grad takes no flag."""
    edits = []
    for node in ast.walk(file.tree):
        for decorator in getattr(node, "decorator_list", ()):
            if _is_inference_mode(decorator):
                edits.append(file.replace(decorator, "torch.no_grad"))
        if isinstance(node, ast.Call) and _is_inference_mode(node.func) and not (node.args or node.keywords):
            edits.append(file.replace(node.func, "torch.no_grad"))
    return edits


def _is_inference_mode(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.inference_mode"


def aliasing(subject: Subject, files: Files) -> list[Proposal]:
    """``f(x, x)`` -> ``f(x, x.clone())``."""
    edits: list[Edit] = []
    text = ""
    for site in sites(subject.signatures, files):
        seen: set[str] = set()
        for node in (*site.call.args, *(keyword.value for keyword in site.call.keywords)):
            typed = ast.dump(node)
            if typed in seen and isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
                text = f"{site.file.source(node)}.clone()"
                edits.append(site.file.replace(node, text))
            seen.add(typed)
    if not edits:
        return [Refusal("the call does not show which of its arguments are one tensor: clone one of them")]
    caveat = "a write to one of the two no longer shows in the other"
    return [
        subject.patch(
            "clone-argument",
            f"pass {text} for the second of the two",
            edits,
            caveat=caveat,
            forbids=WRITES,
        )
    ]


def kinds(subject: Subject, files: Files) -> list[Proposal]:  # noqa: ARG001 -- as every proposer
    """For another type or object: nothing that keeps the program can change it."""
    guard = subject.guard
    source, expected, actual = guard.source or "it", guard.expected, guard.actual
    if "None" in (expected, actual):
        return [
            Refusal(
                f"with and without {source} are two programs: compile both at start-up, or pass a tensor "
                "that changes nothing (a mask of ones) instead of None"
            )
        ]
    if expected and "freed" in expected:
        return [Refusal(f"{source} is made anew for each call: make it once, keep it, and pass it again")]
    return [
        Refusal(f"{source} decides which code runs ({expected}, then {actual}): each needs its own version")
    ]
