"""What an arm's process does with steps that are not timed any more: profiles, and kernels run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.inside.bench.arm_compat import CudaGraphSwitch
from breakscope.inside.bench.wire import Message

if TYPE_CHECKING:
    from breakscope.inside.bench.alone import Again
    from breakscope.inside.bench.probe import Session


class Sessions:
    """At most one session at a time, around the steps of one grant. Loads the profiler when it is wanted.

    Args:
        folder: for the profiler's files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Session | None = None
        self._again: Again | None = None
        self.cuda_graphs = CudaGraphSwitch()

    def begin(self, message: Message, on_gpu: bool) -> None:
        """Start one, where the grant has a purpose."""
        purpose = message.get("purpose")
        if purpose is None:
            return
        from breakscope.inside.bench import probe

        # In a CUDA graph nobody sees what launches what.
        self.cuda_graphs.off = purpose == "kernels"
        self._session = probe.begin(purpose, message, self._folder, on_gpu)

    def begin_step(self) -> None:
        """A step begins."""
        if self._session is not None:
            self._session.begin_step()

    def end_step(self) -> None:
        """A step is over."""
        if self._session is not None:
            self._session.end_step()

    def end(self) -> dict[str, Any]:
        """Stop the one under way, if there is one, and say what it found."""
        if self._session is None:
            return {}
        session, self._session = self._session, None
        found = session.end()
        self._again = session.again
        return found

    def next_kernels(self) -> dict[str, Any]:
        """Run some of the kernels that were found again, alone."""
        if self._again is None:
            return {"records": [], "left": 0, "lost": "its kernels were not looked into"}
        return self._again.next_group()
