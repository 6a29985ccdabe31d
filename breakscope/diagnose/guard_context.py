"""One failed guard with all that is known about it, and how to make a finding's guard from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from breakscope.diagnose.guard_paths import ITERATED, Path, parse, path_of, words
from breakscope.diagnose.guard_text import RESUMED
from breakscope.report.model import Guard, GuardCause

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_CLASS = re.compile(r"<(?:class|enum) '(?P<name>.+)'>$")
# What capture writes for a container, and for a source that is no longer there.
_COUNTED = re.compile(r"\w+ (?:of|with) (?P<count>\d+)\b")
_UNREADABLE = "not readable"
_MAX_TEXT = 100
# The n-th value of a dict, whatever its key.
_NTH = re.compile(r"dict\.__getitem__\(.*list\(dict\.keys\(")
_MODULE_HOLDERS = frozenset({"_modules", "_parameters", "_buffers"})


@dataclass(frozen=True, slots=True)
class Context:
    """What the readers of a guard's text share.

    Attributes:
        function: bare name of the code object that was compiled again.
        actuals: raw source expression -> repr of its value at the failing call.
    """

    expression: str
    comment: str | None
    function: str
    actuals: Mapping[str, str]

    def guard(
        self,
        cause: GuardCause,
        source: str | None = None,
        expected: str | None = None,
        actual: str | None = None,
        dimension: int | None = None,
        *,
        seen: tuple[str | None, ...] | None = None,
    ) -> Guard:
        """A guard; ``seen`` are the values to remember, where ``expected`` is a condition, not a value."""
        values = tuple(
            dict.fromkeys(v for v in ((expected, actual) if seen is None else seen) if v is not None)
        )
        return Guard(self.expression, source, expected, actual, cause, dimension, values)

    def words(self, value: Path | ast.expr | str | None) -> str | None:
        """The user's name of a value; the text itself where it is no path."""
        if value is None or isinstance(value, Path):
            return words(value, self.function, self.comment) if value else None
        path = path_of(parse(value) if isinstance(value, str) else value)
        text = value if isinstance(value, str) else ast.unparse(value)
        if text == "0.0":  # which ``.0`` is read as
            return ITERATED
        return words(path, self.function, self.comment) if path else text

    def actual(self, path: Path | None) -> str | None:
        """What a live hook saw at a path."""
        if _NTH.search(self.expression):
            return None  # its key is not told, and a Counter has a 0 for any other
        seen = self.actuals.get(path.raw) if path else None
        return short(seen) if seen is not None and not seen.startswith(_UNREADABLE) else None

    def actual_type(self, path: Path | None) -> str | None:
        """The name of the type that a live hook saw at a path."""
        seen = self.actual(path.then("attribute", "__class__")) if path else None
        return type_name(seen) if seen else None

    def length(self, path: Path | None) -> str | None:
        """How many items a live hook saw; None where its text does not tell."""
        if (seen := self.actual(path)) is None:
            return None
        if counted := _COUNTED.match(seen):
            return items(int(counted["count"]))
        try:
            return items(len(ast.literal_eval(seen)))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None

    def on_module(self, path: Path) -> bool:
        """Whether a value is kept on the object that runs: ``self.counter``, or on any nn.Module.

        The text does not say what ``self`` is, so an attribute of a plain class counts as well; an
        optimizer's hyperparameters do not.
        """
        keys = [step.key for step in path.steps if step.kind == "attribute"]
        if not keys or "param_groups" in keys:
            return False
        wrapped = path.root == "fn" and self.function == "inner"
        return (
            path.root == "self"
            or wrapped
            or keys[-1] == "training"
            or not _MODULE_HOLDERS.isdisjoint(keys)
            or "attributes of the nn.Module" in (self.comment or "")
        )

    def value_cause(self, path: Path | None, value: object) -> GuardCause:
        """The cause when a value that was a constant of the compiled code is another one now."""
        if isinstance(value, list | set | frozenset | dict):
            return "container"
        number = isinstance(value, int | float)
        if path and path.from_stack and number and RESUMED.match(self.function):
            return "item_value"
        if path and self.on_module(path):
            return "module_attribute"
        if number and not isinstance(value, bool):
            return "int_value" if isinstance(value, int) else "float_value"
        return "constant_value"


def short(text: str) -> str:
    """One line, without addresses, at most 100 characters."""
    line = _ADDRESS.sub("", text.strip().replace("\n", " "))
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 1] + "…"


def type_name(text: str) -> str:
    """``<class '__main__.f.<locals>.Net'>`` -> ``Net``; other text as it is."""
    found = _CLASS.search(text.strip())
    name = found["name"] if found else text.strip()
    name = name.rpartition("<locals>.")[2].removeprefix("__main__.").removeprefix("builtins.")
    return "None" if name == "NoneType" else name


def items(count: int) -> str:
    """``1 item``, ``2 items``."""
    return f"{count} item" if count == 1 else f"{count} items"
