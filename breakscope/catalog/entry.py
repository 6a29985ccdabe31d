"""What an entry of the catalog holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]
Remedy = Literal[
    "rewrite", "config", "annotation", "hoist", "remove", "reorder", "upstream", "consequence", "user_error"
]


@dataclass(frozen=True, slots=True)
class Entry:
    """What breakscope says about one code.

    Attributes:
        code: ``BS1xx`` graph breaks, ``BS2xx`` recompiles and guards, ``BS3xx`` skips, ``BS4xx`` compile
            times. Never renumbered.
        title: a few words, starting in lower case.
        why: why Dynamo stops or compiles again there.
        fix: one imperative sentence: the "do this" line of the terminal.
        more: Python, two to six lines: the line as it breaks and as it does not.
        severity: "error" where a whole function runs eagerly or the program is wrong.
        remedy: what sort of thing helps.
    """

    code: str
    title: str
    why: str
    fix: str
    more: str
    severity: Severity
    remedy: Remedy
