"""What a patch says of itself, so that the proof knows what it may differ in and what it has to look at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claims:
    """What rewrites say of themselves (:class:`breakscope.fix.patch.Rewrite`), taken together.

    Attributes:
        exact: equal bit for bit; else up to the order of sums.
        unaliased: where the old code left an object that is held elsewhere, the new one may leave a tensor of
            its own. Who could tell is asked afterwards.
        early: names of attributes that may be set in a call in which the old code did not set them yet.
        conditional: it states assumptions, the recorded dtypes among them: a result of another dtype in a
            run with all dtypes changed breaks the assumption, and is noted as the limit that it is.
        compiled_only: the new code is another one only while it is compiled: that is what is searched around.
        zeros: it asks for consent to gradients of zero where there were none.
        no_gradients: it says that none flow in the script: then zeros may be where none were, if the script
            does not want them.
        raises: it checks in the graph: in compiled code its exception is a RuntimeError.
        silent: in compiled code messages are not written.
        numbers: attributes whose number other objects were made for (a count of experts): with another one
            the new code may raise where the old one did not come to it. Another result stays a difference.
        sums: a sum that began with a tensor of its own gradient has one only from what is added: where that
            takes none, the sum takes none.
        never: conditions of the old code that nothing can make true, as text: no input has to.
    """

    exact: bool
    unaliased: bool = False
    early: tuple[str, ...] = ()
    conditional: bool = False
    compiled_only: bool = False
    zeros: bool = False
    no_gradients: bool = False
    raises: bool = False
    silent: bool = False
    numbers: tuple[str, ...] = ()
    sums: bool = False
    never: tuple[str, ...] = ()
