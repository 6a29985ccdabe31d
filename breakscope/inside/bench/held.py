"""Whether outputs have to be copied before the next replay of a CUDA graph overwrites them.

A copy is work for the device between two timed calls, and the launch of the next graph hides behind it:
0.1 ms a step of a seq2seq on an H100. So nothing is copied that nobody looks at again.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import torch

from breakscope.inside.tensors import tensors

_ENOUGH = 2  # steps of the warm-up that have to agree


class Held:
    """Watches in the warm-up what becomes of the outputs of each call.

    The name that a loop gives to an output still holds it while the next call is made, and lets go when that
    returns. What lives on at the call after that is kept by the script, and what is an input of the next call
    is read again.
    """

    def __init__(self) -> None:
        self._outputs: deque[list[weakref.ref[torch.Tensor]]] = deque(maxlen=2)
        self._agree = 0
        self._held = False

    def calling(self, inputs: Any) -> None:
        """A call is about to be made with these arguments."""
        if len(self._outputs) == 2:
            self._held |= any(output() is not None for output in self._outputs[0])
            self._agree += 1
        if self._outputs:
            last = {_memory(output) for ref in self._outputs[-1] if (output := ref()) is not None}
            self._held |= any(_memory(tensor) in last for tensor in tensors(inputs))

    def returned(self, result: Any) -> None:
        """What the script gets from it."""
        self._outputs.append([weakref.ref(tensor) for tensor in tensors(result)])

    @property
    def let_go(self) -> bool:
        """Whether it was seen that the script lets go of outputs before they are overwritten."""
        return self._agree >= _ENOUGH and not self._held


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else id(tensor)
