"""What the outermost compiled calls returned, kept so that two runs of one script can be compared.

Used by trials only (:mod:`breakscope.run.trial`), never by a plain scan: it copies every output to
the host and puts one frame of ours around each compiled function.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from breakscope.inside.tensors import flatten, tensors
from breakscope.inside.torch_api.state import writes

MAX_CALLS = 64
MAX_BYTES = 512 * 1024 * 1024
GRADIENTS = "gradients"
WRITES = "writes"


class OutputRecorder:
    """Writes the outputs of outermost calls into a folder, one file a call.

    Args:
        folder: gets ``000000.pt``, ``000001.pt``, …: a list of (path in the result, tensor or text); and
            empty files :data:`GRADIENTS` where gradients flowed back into a result, :data:`WRITES` where a
            call wrote to a tensor that it was given.
        never_compile: keeps Dynamo from compiling a code object of ours.
    """

    def __init__(self, folder: Path, never_compile: Callable[[Any], None]) -> None:
        self._folder = folder
        self._never_compile = never_compile
        self._local = threading.local()
        self._calls = 0
        self._bytes = 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that does as ``function`` and keeps what it returned or raised."""

        # wraps() copies Dynamo's marks too: traced from another compiled function, it is still inlined.
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or getattr(self._local, "inside", False):
                return function(*args, **kwargs)
            self._local.inside = True
            before = [(tensor, writes(tensor)) for tensor in tensors((args, kwargs))]
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                self._keep([("raised", f"{type(error).__name__}: {error}")])
                raise
            finally:
                self._local.inside = False
            if any(written is None or writes(tensor) != written for tensor, written in before):
                self._mark(WRITES)
            for tensor in tensors(result):
                if tensor.grad_fn is not None:
                    # On the node, not on the tensor: Dynamo guards on the hooks of tensors.
                    tensor.grad_fn.register_prehook(lambda _gradients: self._mark(GRADIENTS))
            self._keep(list(flatten(result)))
            return result

        code: types.CodeType = recorded.__code__  # type: ignore[attr-defined]
        self._never_compile(code)
        return recorded

    def _mark(self, what: str) -> None:
        (self._folder / what).touch()

    def _keep(self, leaves: list[tuple[str, Any]]) -> None:
        if self._calls >= MAX_CALLS or self._bytes >= MAX_BYTES:
            return
        self._bytes += sum(v.numel() * v.element_size() for _, v in leaves if isinstance(v, torch.Tensor))
        torch.save(leaves, self._folder / f"{self._calls:06d}.pt")
        self._calls += 1
