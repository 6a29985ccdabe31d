"""Faults to be planted in the proof, to see that the red team notices.

Each takes what is there and makes the faulty form of it. A fault is put in place in a fork, before breakscope's
commands run there (:func:`warm_server.plant`), so that nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """What is broken, and which programs show it.

    Attributes:
        target: ``module:name`` or ``module:Class.name`` of what is replaced. replacement: name of a function here that makes the
            faulty form of it.
        programs: names of programs that are right without the fault; at least one must be wrong with it.
    """

    name: str
    target: str
    replacement: str
    programs: tuple[str, ...]


FAULTS = (
    Fault(
        "identity is forgotten",
        "breakscope.inside.prove.tally:Tally.result",
        "identity_is_forgotten",
        ("returned_input_told_by_is", "weak_dictionary_of_inputs"),
    ),
    Fault(
        "no difference is seen",
        "breakscope.inside.prove.outcomes:compare",
        "no_difference_is_seen",
        ("best_seen_is_the_last", "token_count_is_shared"),
    ),
    Fault(
        "the compiled form is not compared",
        "breakscope.inside.prove.compiled:compare_compiled",
        "compiled_is_not_compared",
        ("parameter_stays_a_parameter", "exception_hook_reads_the_state"),
    ),
)


def identity_is_forgotten(original: Callable[..., Any]) -> Callable[..., Any]:
    """Where the new code leaves a tensor of its own, nobody is told."""
    return lambda self: {**original(self), "apart": []}


def no_difference_is_seen(original: Callable[..., Any]) -> Callable[..., Any]:
    """Both forms are run, and whatever they come to is taken for equal."""
    del original
    return lambda *_, **__: None


def compiled_is_not_compared(original: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form is taken for compared."""
    del original

    def compiled(comparing: Any, *_: Any) -> None:
        comparing.tally.kinds["compiled by Dynamo"] += 1

    return compiled
