"""What ``breakscope lint`` says: possible breaks, read off the source. Frozen records, no behaviour.

A possible break is no finding of a scan: nothing was run, so it has neither counts nor cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from breakscope.report.place import Location, Tool

Level = Literal["likely", "possible"]


@dataclass(frozen=True, slots=True)
class Possible:
    """A place that breaks the graph if the code runs compiled, as far as the source tells.

    Attributes:
        fingerprint: that of the scan's finding, where a scan with the same root finds the same site.
        level: "likely": it breaks whenever its function runs compiled. "possible": it may, by what is
            known of the values, or it need not run.
        about: what is special here; empty where the code says it all.
        why: why the function counts as compiled: "forward of a module", "called from Net.forward".
    """

    fingerprint: str
    code: str
    level: Level
    location: Location
    about: str
    why: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know that is no possible break.

    Attributes:
        line: None where it is about the whole file.
    """

    file: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Linted:
    """What came of one run.

    Attributes:
        files: Python files in the set; ``read`` of them hold code that is likely compiled, or what it calls.
        suppressed: possible breaks that a comment leaves out.
        unreadable: files that could not be read, and why. The others were.
        known: possible breaks that the baseline accepts.
        unused: comments for breakscope that lint has a doubt about.
    """

    tool: Tool
    possible: tuple[Possible, ...]
    files: int
    read: int
    suppressed: int
    unreadable: tuple[Remark, ...] = ()
    unused: tuple[Remark, ...] = ()
    known: int = 0
