"""The random generators that a model may use: Python's, numpy's, torch's on the CPU and on GPUs."""

from __future__ import annotations

import random
import sys
from array import array
from typing import Any, NamedTuple

import torch


class RandomState(NamedTuple):
    """What the generators were at one moment. numpy's is None where the script has not imported it."""

    torch_cpu: torch.Tensor
    python: tuple[Any, ...]
    numpy: tuple[Any, ...] | None
    cuda: list[torch.Tensor]

    @classmethod
    def now(cls) -> RandomState:
        """The present state. A CUDA that nobody has started stays unstarted."""
        numpy: Any = sys.modules.get("numpy")
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return cls(
            torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None, cuda
        )

    def restore(self) -> None:
        """Put the generators back."""
        torch.set_rng_state(self.torch_cpu)
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
        if self.cuda:
            torch.cuda.set_rng_state_all(self.cuda)

    def tensors(self, start: RandomState) -> list[torch.Tensor]:
        """All of it as tensors, to compare two states: of GPUs only what was drawn from since ``start``.

        CUDA may be started between the two, by a backward pass of a script that is all on the CPU.
        """
        version, numbers, *rest = self.python
        text = array("Q", numbers).tobytes() + repr((version, rest)).encode()
        if self.numpy is not None:
            text += self.numpy[1].tobytes() + repr(self.numpy[2:]).encode()
        drawn = [
            torch.cat([torch.tensor([device], dtype=torch.uint8, device="cpu"), state])
            for device, state in enumerate(self.cuda)
            # The seed, and then how far it was drawn: nothing, where it was started since.
            if (not torch.equal(state, start.cuda[device]) if start.cuda else state[8:].any())
        ]
        return [self.torch_cpu, torch.frombuffer(bytearray(text), dtype=torch.uint8), *drawn]
