"""What a proof run says, as a verdict with a reason and the evidence for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakscope.fix.evidence import Evidence, Verdict
from breakscope.fix.observers import Observers
from breakscope.inside.prove.claims import Claims
from breakscope.inside.prove.paths import attribute, bare

Functions = Sequence[Mapping[str, Any]]

_COMPARED = (
    "results",
    "effects on arguments, modules, closures, globals and class attributes",
    "dtype, shape, stride, device",
    "shared memory and identity",
    "exceptions",
    "printed and logged text",
    "random number state",
)


def judge(proof: Mapping[str, Any], claims: Claims, observers: Observers | None = None) -> Verdict:
    """Judge what :func:`breakscope.fix.runs.prove` returned.

    Wrong is refused; what could not be compared or driven is unproved; what somebody could tell who is not
    part of the comparison needs consent; only the rest is proved.

    Args:
        observers: searches the source of the user's modules; None: there is none to search.
    """
    if "trouble" in proof:
        return Verdict("unproved", proof["trouble"])
    functions = proof["functions"]
    evidence = _evidence(functions, claims)
    for function in functions:
        if function["mismatch"]:
            # No consent makes a new exception right.
            why = f"the rewrite computes something else: {function['mismatch']}"
            return Verdict("refused", why, evidence, works=not function["breaks"])
    for function in functions:
        if function["trouble"]:
            return Verdict("unproved", function["trouble"], evidence)
    if not any(function["captured"] for function in functions):
        return Verdict("unproved", "the function was not called in the proof run", evidence)
    missing = _missing(functions, evidence)
    if missing is not None:
        return Verdict("unproved", missing, evidence)
    kept: dict[str, None] = {}
    files = list(proof.get("files", ()))
    told = next(_observed(functions, claims, observers or Observers(), files, kept), None)
    evidence = replace(evidence, identity=tuple(kept))
    if told is not None:
        why = f"it needs your consent: {told}"
        return Verdict("needs consent", why, replace(evidence, needs_consent=True))
    return Verdict("proved", how(evidence), evidence)


def how(evidence: Evidence) -> str:
    """How equal two forms were found, on how many inputs, and within how many limits."""
    equal = "bitwise equal" if evidence.exact else "equal up to the order of sums"
    driven = all(one["true"] and one["false"] for one in evidence.branches or ())
    ways = ", both branches" if evidence.branches and driven else ""
    count = len(evidence.limits or ())
    limits = f", within {count} limit{'' if count == 1 else 's'}" if count else ""
    return f"{equal} on {evidence.compared} inputs{ways}{limits}"


def _observed(
    functions: Functions,
    claims: Claims,
    observers: Observers,
    files: list[str],
    kept: dict[str, None],
) -> Iterator[str]:
    """Who could tell the forms apart without being part of the comparison: a sentence each.

    Args:
        kept: gets a sentence about each copy that nobody could tell.
    """
    for one in functions:
        callers = [file for file, _ in one["callers"]]
        for path, holder in one["apart"]:
            told = _copy_seen(path, holder, observers, [*files, *callers])
            if told is not None:
                yield told
            else:
                both = " and ".join(f"`{bare(one)}`" for one in (holder, path))
                note = f"{both} held one tensor, and hold two: nothing in the project does more than compute"
                kept[note] = None
        if claims.unaliased and one["asks"]:
            asked, function = next(iter(one["asks"].items()))
            yield (
                f"`{function}`, which it can reach, asks with `{asked}` which tensor it has: the new code "
                "may have an equal one there"
            )
        if claims.raises and (who := observers.catching((file, line) for file, line in one["callers"])):
            yield (
                f"{who} catches its exception: in compiled code that is a RuntimeError, and what Python had "
                "done in the compiled call before it is lost"
            )
        if claims.silent:
            if one["listeners"]:
                yield f"{one['listeners'][0]}, and in compiled code the message is not written"
            if who := observers.listening(files):
                yield f"{who} listens to messages, and in compiled code this one is not written"
        if claims.early and (
            who := observers.of_names(claims.early, one["function"].rpartition(".")[2], files)
        ):
            yield f"{who} can tell that an attribute is set in a call in which it was not set before"


def _copy_seen(path: str, holder: str, observers: Observers, files: list[str]) -> str | None:
    """Who could tell that a tensor is a copy now; None if nobody."""
    if path.startswith("result"):
        return (
            f"where the old code hands on `{holder or 'a part of a tensor'}` itself, the new one hands on a "
            "copy, which a caller can tell who asks whether it is the same, or changes it in place"
        )
    if not holder:
        return f"`{path}` is a part of a larger tensor, and a tensor of its own with the new code"
    who = observers.of_objects([path, holder], files)
    if who is None:
        return None
    # What was given is the thing itself, wherever the walk over the objects met it first.
    itself, place = (path, holder) if attribute(holder) and not attribute(path) else (holder, path)
    left = f"where the old code leaves `{itself}` itself in `{place}`, the new one leaves a copy"
    return f"{left}, and {who} could tell"


def _missing(functions: Functions, evidence: Evidence) -> str | None:
    """What the proof did not come to."""
    if any(
        function["captured"] and not function["kinds"].get("compiled by Dynamo") for function in functions
    ):
        return "there was no time to compare the compiled form"
    if evidence.not_driven:
        return f"no input was found for which {'; '.join(evidence.not_driven)}"
    if evidence.untried:
        return f"the time was up before any of these was tried: {', '.join(evidence.untried)}"
    if sum(function["compared"] - function["raising"] for function in functions) <= 0:
        return "on every input both forms raise"
    return None


def _evidence(functions: Functions, claims: Claims) -> Evidence:
    conditions = [one for function in functions for one in function["conditions"]]
    kinds: dict[str, int] = {}
    for function in functions:
        for kind, count in function["kinds"].items():
            kinds[kind] = kinds.get(kind, 0) + count
    not_driven, operands = _not_driven(conditions, claims.never)
    gradients = kinds.get("calls with gradients", 0)
    return Evidence(
        functions=tuple(one["function"] for one in functions),
        calls=sum(one["calls"] for one in functions),
        captured=sum(one["captured"] for one in functions),
        compared=sum(one["compared"] for one in functions),
        raising=sum(one["raising"] for one in functions),
        rejected=sum(one["rejected"] for one in functions),
        kinds=kinds,
        what=_COMPARED,
        gradients=f"equal in {gradients} calls" if gradients else "none flow",
        exact=claims.exact,
        max_difference=max((one["max_difference"] for one in functions), default=0.0),
        branches=tuple(
            {"condition": condition["text"], "true": condition["true"], "false": condition["false"]}
            for condition in conditions
        ),
        not_driven=tuple(not_driven),
        ran_out=any(one["ran_out"] for one in functions),
        untried=tuple(kind for one in functions for kind in one["untried"]),
        limits=tuple(limit for one in functions for limit in one["limits"]),
        own_memory=tuple(path for one in functions for path, _ in one["apart"]),
        identity=(),
        by_structure=all(one["by_structure"] for one in functions) or None,
        not_searched=_summed(one["left_out"] for one in functions) or None,
        notes=(*(note for one in functions for note in one["notes"]), *operands),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for count in counts:
        found.update(count)
    return dict(found)


def _not_driven(conditions: Sequence[Mapping[str, Any]], never: Sequence[str]) -> tuple[list[str], list[str]]:
    """What no input did that one has to do, and what operands never were though their condition was all."""
    # An operand of `and` or `or` that no input drives one way (`a.isnan() or b.isnan()`, b made of a) is all
    # right where the whole condition went both ways, and it was evaluated.
    known = [condition for condition in conditions if not condition["unknown"]]
    driven = {condition["text"] for condition in conditions} - {
        condition["text"] for condition in conditions if not (condition["true"] and condition["false"])
    }
    evaluated = [one for one in known if one["true"] + one["false"]]
    missing = [
        (one, way)
        for one in evaluated
        for way in ("true", "false")
        if not one[way] and (way == "false" or one["text"] not in never)
    ]
    not_driven = [f"`{one['text']}` is {way}" for one, way in missing if one["operand_of"] not in driven]
    operands = [f"`{one['text']}` was never {way}" for one, way in missing if one["operand_of"] in driven]
    # A condition that was never evaluated decides about code that nobody compared.
    not_driven += [f"`{one['text']}` is evaluated" for one in known if not one["true"] + one["false"]]
    return not_driven, operands
