"""Where the forms of a function are called for a comparison."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from breakscope.inside.prove import in_range, reach
from breakscope.inside.prove.attempt import Call, Conditions, Outcome, attempt
from breakscope.inside.prove.budget import Allowance
from breakscope.inside.prove.smaller import SmallWorld
from breakscope.inside.prove.tally import Tally
from breakscope.inside.prove.world import World

Form = Literal["old", "watched", "new"]


@dataclass(slots=True)
class _Running:
    """Which form of all functions is being called for a comparison; None while the script runs.

    Attributes:
        inside: how many compared functions the script is in.
    """

    form: Form | None = None
    inside: int = 0


# One for all sessions: a function that calls another changed one calls its own form of it.
RUNNING = _Running()


@dataclass(slots=True)
class Bench:
    """Where test calls of one captured call are made; ``small``: with what the script did not give."""

    tally: Tally
    allowance: Allowance
    forms: dict[str, Callable[..., Any]]
    calls: Sequence[Call]
    world: World
    small: SmallWorld | None = None

    def run(self, form: Form, conditions: Conditions, function: Callable[..., Any] | None = None) -> Outcome:
        RUNNING.form = form
        try:
            return attempt(
                function or self.forms.get(f"{form}_watched", self.forms[form]),
                self.world,
                self.calls,
                conditions,
                self.tally.claims.early,
                self.tally.apart_paths,
                # What is compiled takes its time, and ends where the old form does.
                partial(self._eagerly, form) if function is None else contextlib.nullcontext,
            )
        finally:
            RUNNING.form = None

    @contextlib.contextmanager
    def _eagerly(self, form: Form) -> Iterator[None]:
        with self.allowance.of(form), in_range.checked():
            yield

    @property
    def given(self) -> list[torch.Tensor]:
        """The tensors that the calls get; all others are held by modules and globals."""
        return [tensor for tensor in self.world.tensors if id(tensor) in self.world.given]

    @property
    def held(self) -> list[torch.Tensor]:
        """The tensors that modules and globals hold."""
        return [tensor for tensor in self.world.tensors if id(tensor) not in self.world.given]

    def cut(self, world: SmallWorld) -> Bench:
        """The same calls in a world in small."""
        return replace(self, world=world, calls=[world.cut(call) for call in self.calls], small=None)


def note_watched(forms: Mapping[str, Callable[..., Any]]) -> None:
    """Functions that a watched form makes are those that it would make unwatched."""
    for watched, plain in (("watched", "old"), ("new_watched", "new")):
        if watched in forms:
            reach.note_watched(code_of(forms[watched]), code_of(forms[plain]))


def names_in(forms: Mapping[str, Callable[..., Any]]) -> frozenset[str]:
    """Every name that the forms of a function mention."""
    return frozenset(name for form in ("watched", "new") for name in reach.names_in(code_of(forms[form])))


def code_of(function: Callable[..., Any]) -> Any:
    """The code that a function runs, under whatever wraps it."""
    return inspect.unwrap(function).__code__
