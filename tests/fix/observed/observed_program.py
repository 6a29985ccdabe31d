"""What a whole-script program of the red team is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PRELUDE = '''\
import os

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
STEPS = int(os.environ.get("STEPS", "4"))
if os.environ.get("QUIET"):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def batch(step, *size):
    """Even steps are small, odd ones large."""
    x = torch.randn(*(size or (3, 4)), generator=torch.Generator().manual_seed(step))
    return x * 8 if step % 2 else x * 0.2


'''

# The script says nothing: what a scan under it can go by is the proof, and not what the script prints.
QUIET = {"QUIET": "1"}


@dataclass(frozen=True)
class Program:
    """A script in which something observes what an obvious rewrite would change.

    Attributes:
        attack: the class of what observes.
        body: the script, behind the common beginning.
        harmless: nothing observes: a rewrite is right, and has to be proved.
        later: environments in which the judge runs the script as well: more steps than were scanned, another seed.
        limit: a word of the limit with which `fix` may show such a rewrite, where old and new part only later.
        beside: other modules of the script, by name of the file; they have the common beginning too.
    """

    name: str
    attack: str
    body: str
    harmless: bool = False
    later: tuple[Mapping[str, str], ...] = ()
    limit: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, str]:
        sources = {"script.py": self.body, **self.beside}
        return {name: PRELUDE + body.lstrip("\n") for name, body in sources.items()}

    @property
    def environments(self) -> tuple[Mapping[str, str], ...]:
        return ({}, *self.later)
