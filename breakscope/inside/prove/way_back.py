"""What the forms of a function save for the way back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace

import torch

from breakscope.inside.prove.attempt import Conditions, UnreadableError
from breakscope.inside.prove.bench import Bench
from breakscope.inside.prove.comparing import Comparing
from breakscope.inside.prove.tally import Tally


@dataclass(slots=True)
class WayBack:
    """Notes what each form saves, over all calls of the script."""

    tally: Tally
    comparing: Comparing
    _saved: dict[str, set[str]] = field(default_factory=lambda: {"old": set(), "new": set()})

    def compare(self, bench: Bench, plain: Conditions) -> None:
        """Compare what the forms save for the way back: who writes to it gets an exception.

        What either branch of the old form saves, its caller has to leave alone anyway. Where autograd is off
        nothing is saved, if the rewrite relies on that.
        """
        if self.tally.claims.no_gradients and not torch.is_grad_enabled():
            return
        world, known = bench.small, {form: set(paths) for form, paths in self._saved.items()}
        before = self.tally.taken()
        here = bench if world is None else bench.cut(world)
        for conditions in [plain, *self.tally.inputs_that_drive()]:
            if self.tally.mismatch:
                return
            if self.comparing.too_late("what the way back needs"):
                return
            noting = replace(conditions, gradients=True, saved=True)
            noting = noting if world is None else world.translated(noting)
            with contextlib.suppress(UnreadableError):
                old, new = here.run("watched", noting), here.run("new", noting)
                if not old.raised:
                    self._saved["old"] |= old.saved
                    self._saved["new"] |= new.saved
        more = sorted(self._saved["new"] - self._saved["old"])
        self.tally.forget(before)  # these inputs were counted before, where the old form takes them
        if world is not None:
            self._saved = known
            if more:
                self.compare(replace(bench, small=None), plain)
        elif more:
            self.tally.mismatch = (
                f"the way back now needs `{more[0]}` as it is at the call: who writes to it between the call "
                "and backward() gets an exception"
            )
            self.comparing.show(bench, plain, None, None)
