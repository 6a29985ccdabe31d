"""What a patch of these tests is made of: a script before and after it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

PRELUDE = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def batches(*size, steps=3):
    for step in range(steps):
        x = torch.randn(*size, generator=torch.Generator().manual_seed(step))
        yield x * 8 if step % 2 else x * 0.2


"""
SCRIPT = "script.py"


@dataclass(frozen=True)
class Patched:
    """A script, and what somebody made of it.

    Attributes:
        before, after: the script behind the common beginning.
        kind: what is wrong; of a right patch what it does.
        beyond_rules: no rule of ours could make it.
        options: of ``breakscope prove``.
        unproved: it is right, and the honest answer is another ``status``, for a reason with these words.
    """

    name: str
    kind: str
    before: str
    after: str
    beyond_rules: bool = False
    options: tuple[str, ...] = ()
    unproved: str = ""
    status: str = "unproved"

    @property
    def script(self) -> str:
        return PRELUDE + self.before.lstrip("\n")

    @property
    def patched(self) -> str:
        return PRELUDE + self.after.lstrip("\n")

    @property
    def diff(self) -> str:
        return diff(self.script, self.patched)


def diff(old: str, new: str, name: str = SCRIPT) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(lines)


def change(name: str, kind: str, before: str, *changes: tuple[str, str], **more: object) -> Patched:
    """A patch that puts texts in the place of others, each of which stands in the script once."""
    after = before
    for old, new in changes:
        assert after.count(old) == 1, f"{name}: {old!r} stands there {after.count(old)} times"
        after = after.replace(old, new)
    return Patched(name, kind, before, after, **more)  # type: ignore[arg-type]
