"""The arguments of a warm-up call as Python expressions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class NotMadeError(Exception):
    """An argument that no description of it can make; the text names it, as in "a call with …"."""


def expression(value: dict[str, Any], path: str, made: dict[str, str], *, inference: bool) -> str:
    """An argument of a signature (see :class:`breakscope.report.model.Signature`) as an expression.

    Args:
        path: which argument it is: ``args[0]``.
        made: variables that hold an argument already, by its path.
        inference: whether the call is made under ``inference_mode``.

    Raises:
        NotMadeError: if only the program itself can make it.
    """
    if path in made:
        return made[path]
    [(kind, held)] = value.items()
    if kind == "tensor":
        return _tensor(held, inference)
    if kind in ("list", "tuple", "dict"):
        return _container(kind, held, path, made, inference)
    if kind == "same" and held in made:
        return made[held]
    if kind not in _SCALARS:
        raise NotMadeError("one tensor in two places" if kind == "same" else str(held))
    if kind == "str" and "<environment>" in str(held):
        raise NotMadeError("a string from the environment")
    return _SCALARS[kind](held)


def quoted(text: str) -> str:
    """A string in the quotes that most formatters choose."""
    return json.dumps(text)


def plain(text: str) -> str:
    """A report's text as it may stand in a comment or in a docstring: one line, and no end of a string."""
    return "".join(
        char if char.isprintable() and char not in '"\\' else repr(char)[1:-1].replace('"', "'")
        for char in text
    )


# A report may come from anybody, and the plan is run: nothing of it becomes code without being read first.


def _number(kind: type[float]) -> Callable[[Any], str]:
    def read(held: Any) -> str:
        try:
            number = kind(held)
        except (TypeError, ValueError):
            raise NotMadeError(f"no {kind.__name__}: {held}") from None
        return f"float({str(number)!r})" if str(number) in ("nan", "inf", "-inf") else repr(number)

    return read


def dtype_name(text: Any) -> str:
    """``float16`` as ``torch.float16``. Raises NotMadeError for what cannot be a name."""
    name = str(text).removeprefix("torch.")
    if not name.isidentifier():
        raise NotMadeError(f"no dtype: {text}")
    return f"torch.{name}"


_SCALARS: dict[str, Callable[[Any], str]] = {
    "none": lambda _: "None",
    "bool": lambda held: str(bool(held)),
    "int": _number(int),
    "str": lambda held: repr(str(held)),
    "float": _number(float),
    "dtype": dtype_name,
    "device": lambda text: f"torch.device({quoted(text)})",
}


def _container(kind: str, held: Any, path: str, made: dict[str, str], inference: bool) -> str:
    if kind == "dict":
        values = {k: expression(v, f"{path}[{k!r}]", made, inference=inference) for k, v in held.items()}
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in values.items()) + "}"
    texts = [expression(item, f"{path}[{at}]", made, inference=inference) for at, item in enumerate(held)]
    inside = ", ".join(texts)
    return f"[{inside}]" if kind == "list" else f"({inside}{',' * (len(texts) == 1)})"


def _tensor(tensor: dict[str, Any], inference: bool) -> str:
    if "subclass" in tensor or "layout" in tensor:
        raise NotMadeError(f"a tensor of the kind {tensor.get('subclass') or tensor['layout']}")
    if tensor.get("inference", False) != inference:
        raise NotMadeError("a tensor that was made in another inference mode than the call's")
    gradient = tensor["requires_grad"]
    rest = f"dtype={dtype_name(tensor['dtype'])}, device={quoted(tensor['device'])}"
    shape = _sizes(tensor["shape"])
    if "stride" in tensor:
        made = f"torch.empty_strided({shape}, {_sizes(tensor['stride'])}, {rest}).zero_()"
        return f"{made}.requires_grad_()" if gradient else made
    filled = "ones" if tensor["dtype"] == "bool" else "zeros"
    return f"torch.{filled}({shape}, {rest}{', requires_grad=True' if gradient else ''})"


def _sizes(values: Any) -> str:
    return str(tuple(int(value) for value in values))
