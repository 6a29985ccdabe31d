"""Keeping the environment out of reports.

Dynamo prints what it guards on, and a function that reads ``os.environ`` while it is compiled is guarded
on the environment. Values of variables whose names say that they are secret are taken out of everything;
of guards on the environment nothing but the variable that they ask for is kept. What looks like a secret by
its shape is masked (:mod:`breakscope.report.secrets`).
"""

from __future__ import annotations

import os
import re
from typing import Any

from breakscope.report.secrets import mask

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|AUTH|(?:^|_)(?:API_?)?KEY(?:_|$)", re.IGNORECASE
)
_SHORTEST = 4  # a shorter value stands in too many texts by chance
_LITERAL = r"b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_COMPARED = re.compile(rf"(==|!=|is|in)\s+{_LITERAL}|{_LITERAL}\s*(?=(?:==|!=)\s)")
HIDDEN = "<environment>"


class Redactor:
    """Takes secrets out of what is about to be written.

    Args:
        live: whether this process runs the script, which may set a variable at any time. Else the
            environment is read once: a trace has thousands of events.
    """

    def __init__(self, *, live: bool = True) -> None:
        self._values: set[str] = set()
        self._live = live
        self._look()

    def clean(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of an event without secrets.

        Every value that a secret variable has had is remembered: guards quote those of earlier calls.
        """
        if self._live:
            self._look()
        return {key: self._clean(value) for key, value in fields.items()}

    def _look(self) -> None:
        for name, value in os.environ.items():
            if len(value) >= _SHORTEST and _SECRET_NAME.search(name):
                self._values.add(value)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {
                key: HIDDEN if "environ" in str(key) else self._clean(item) for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        if "environ" in text:
            lines = text.split("\n")
            text = "\n".join(_without_values(line) if "environ" in line else line for line in lines)
        for secret in self._values:
            text = text.replace(secret, HIDDEN)
        return mask(text)


def _without_values(line: str) -> str:
    return _COMPARED.sub(lambda match: f"{match[1] or ''} '{HIDDEN}'".strip(), line)
