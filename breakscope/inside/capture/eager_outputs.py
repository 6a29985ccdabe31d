"""What a function returns without a compiler, to hold what it returns with one against.

For :mod:`breakscope.testing`, inside the user's process. The run is made on copies and leaves the random
generators as they were, so that the compiled run starts from the same state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from breakscope.errors import UsageError
from breakscope.inside.random_state import RandomState
from breakscope.inside.tensors import flatten

Call = tuple[tuple[Any, ...], dict[str, Any]]


class EagerOutputs:
    """Outputs of one call for each input.

    Args:
        function: called as it is; a module is copied first, since a call may change its buffers.
        given: arguments of each call; tensors in them are copied, since a call may change them.

    Raises:
        UsageError: something cannot be copied.
    """

    def __init__(self, function: Callable[..., Any], given: Sequence[Call]) -> None:
        before = RandomState.now()
        own = _copied(function) if isinstance(function, torch.nn.Module) else function
        self._outputs = []
        try:
            for args, kwargs in given:
                self._outputs.append(list(flatten(own(*_copied(args), **_copied(kwargs)))))
        finally:
            before.restore()

    def difference(self, number: int, got: Any, *, rtol: float | None, atol: float | None) -> str | None:
        """What differs in the output of one call, as one line; None if nothing does or if it was not made."""
        if number >= len(self._outputs):
            return None
        expected, found = self._outputs[number], list(flatten(got))
        if [path for path, _ in expected] != [path for path, _ in found]:
            return f"the result has other parts: {_paths(found)} instead of {_paths(expected)}"
        for (path, want), (_, have) in zip(expected, found, strict=True):
            where = f"result{path}"
            if isinstance(want, torch.Tensor) and isinstance(have, torch.Tensor):
                try:
                    torch.testing.assert_close(have, want, rtol=rtol, atol=atol, equal_nan=True)
                except AssertionError as error:
                    return f"{where}: {' '.join(str(error).split())}"
            elif type(want) is not type(have) or want != have:
                return f"{where}: {have} instead of {want}"
        return None


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        # deepcopy() refuses tensors that were computed with gradients.
        clone = value.detach().clone(memory_format=torch.preserve_format)
        return clone.requires_grad_(value.requires_grad)
    if type(value) in (tuple, list):
        return type(value)(map(_copied, value))
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    try:
        return copy.deepcopy(value)
    except Exception as error:  # noqa: BLE001 - whatever its own code for that raises
        kind = type(value).__qualname__
        raise UsageError(
            f"a {kind} cannot be copied, to compare with eager ({error}): pass compare=False"
        ) from None


def _paths(leaves: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(path or "one value" for path, _ in leaves[:5]) or "nothing"
