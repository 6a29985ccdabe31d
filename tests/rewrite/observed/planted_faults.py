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
        target: ``module:Class.attribute`` of what is replaced. replacement: name of a function here that makes the
            faulty form of it.
        programs: names of programs that are right without the fault; at least one must be wrong with it.
    """

    name: str
    target: str
    replacement: str
    programs: tuple[str, ...]


FAULTS = (
    Fault(
        "compare ignores identity",
        "breakscope.rewrite.proof.picture:Comparer._differ",
        "blind_to_identity",
        ("weak_dictionary_of_inputs", "hook_on_the_tensor_that_is_handed_on"),
    ),
    Fault(
        "compare ignores what a tensor is",
        "breakscope.rewrite.proof.picture:Comparer._tensors",
        "blind_to_tensors",
        ("parameter_stays_a_parameter", "pickle_keeps_what_is_one"),
    ),
    Fault(
        "compiled form not compared",
        "breakscope.rewrite.proof.session:Session._compiled",
        "compiled_is_not_compared",
        ("weak_dictionary_of_inputs", "hook_on_the_tensor_that_is_handed_on"),
    ),
)


def blind_to_identity(original: Callable[..., Any]) -> Callable[..., Any]:
    """An object met again, or one met for the first time: all the same."""

    def differ(self: Any, index: int, before: Any, after: Any, shared: Any) -> Any:
        if "Again" in (type(before.what).__name__, type(after.what).__name__):
            return None
        return original(self, index, before, after, shared)

    return differ


def blind_to_tensors(original: Callable[..., Any]) -> Callable[..., Any]:
    """Two tensors are equal, whatever they are and hold."""
    del original
    return lambda *_: None


def compiled_is_not_compared(original: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled form is taken for compared."""
    del original

    def compiled(self: Any, *_: Any) -> None:
        self.kinds["compiled by Dynamo"] += 1

    return compiled
