"""Rules of other people's packages, which name them under the entry point ``breakscope.rules``."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from breakscope.errors import UsageError
from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.rule import Rule, Site

ENTRY_POINT = "breakscope.rules"


def installed_rules() -> Iterator[Rule]:
    """What the entry points of installed packages name: a rule's class each, or a list of them.

    Raises:
        UsageError: one cannot be loaded, or is no rule.
    """
    for point in importlib.metadata.entry_points(group=ENTRY_POINT):
        try:
            loaded = point.load()
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise UsageError(f"the rules of {point.name} ({point.value}) cannot be loaded: {what}") from error
        for cls in loaded if isinstance(loaded, list | tuple) else (loaded,):
            if not (isinstance(cls, type) and issubclass(cls, Rule)):
                raise UsageError(f"{point.name} ({point.value}) is no class of breakscope.fix.rule.Rule")
            yield cls()


def answer_of(rule: Rule, site: Site) -> Rewrite | Refusal | None:
    """A rule's answer. One of somebody else's that fails is a refusal: it must not end the others."""
    if type(rule).__module__.startswith("breakscope."):
        return rule.rewrite(site)
    try:
        answer = rule.rewrite(site)
    except Exception as error:  # noqa: BLE001 -- another's code
        return Refusal(f"the rule {rule.name} failed: {type(error).__name__}: {error}")
    known = answer is None or isinstance(answer, Rewrite | Refusal)
    return answer if known else Refusal(f"the rule {rule.name} answered with a {type(answer).__name__}")
