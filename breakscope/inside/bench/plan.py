"""What to measure: the arms, and how each is to be measured. Made by the command line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from breakscope.errors import UsageError
from breakscope.report.benchmark import Variant

MODES = ("as-script", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
DYNAMICS = ("auto", "true", "false")
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")

Backend = Literal["as-script", "inductor", "aot_eager", "eager"]
Unit = Literal["auto", "call", "optimizer"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One variant to measure."""

    variant: Variant
    mode: str = "as-script"
    dynamic: str = "auto"

    @property
    def name(self) -> str:
        """As tables show it: "eager", "fixed · reduce-overhead · dynamic"."""
        if self.variant == "eager":
            return "eager"
        parts: list[str] = [self.variant]
        if self.mode != "as-script":
            parts.append(self.mode)
        if self.dynamic != "auto":
            parts.append("dynamic" if self.dynamic == "true" else "static")
        return " · ".join(parts)

    @property
    def cuda_graphs(self) -> bool:
        """Whether its mode asks for CUDA graphs."""
        return self.mode in CUDA_GRAPH_MODES


@dataclass(frozen=True, slots=True)
class Options:
    """What a benchmark was asked to do.

    Attributes:
        fixes: folder of a fixes overlay; None to measure no fixed arm.
        function: the one function to measure, as ``scan --compile`` names it; None for the script's steps.
        steps: timed steps per process; None for as many as fit into ``seconds``, at most 200.
        seconds: most timed seconds per process.
        processes: per arm: the second one shows the warm cache and what differs between processes.
        device: ``cuda:N`` or ``cpu``: the only device that the script is shown; None to leave it alone.
        timeout_s: longest time that one process may take to answer.
        repeat: where the script makes too few optimizer steps, repeat its calls instead.
        kernels: list the kernels of a step; export: folder for stand-alone scripts of them.
    """

    modes: tuple[str, ...] = ("as-script",)
    dynamics: tuple[str, ...] = ("auto",)
    fixes: str | None = None
    function: str | None = None
    backend: Backend = "as-script"
    unit: Unit = "auto"
    steps: int | None = None
    seconds: float = 10.0
    processes: int = 2
    device: str | None = None
    threads: int | None = None
    timeout_s: float = 900.0
    horizon: int = 10_000
    repeat: bool = False
    kernels: bool = False
    export: str | None = None
    seed: int = 0

    def arms(self) -> tuple[Arm, ...]:
        """Eager first, then as is and fixed, in each mode."""
        variants: tuple[Variant, ...] = ("compiled", "fixed") if self.fixes else ("compiled",)
        compiled = (
            Arm(variant, mode, dynamic)
            for mode in self.modes
            for dynamic in self.dynamics
            for variant in variants
        )
        return Arm("eager"), *compiled


@dataclass(frozen=True, slots=True)
class ArmSettings:
    """What one process of an arm is told.

    Attributes:
        channel: descriptor of its end of the line.
        fixes: folder of the overlay, for a fixed arm.
        outputs: folder that gets the outputs of the first steps.
        script: what runs as ``__main__``; roots: folders of the user's project.
        kernels: whether its kernels will be asked for.
    """

    variant: Variant
    mode: str
    dynamic: str
    backend: Backend
    unit: Unit
    function: str | None
    fixes: str | None
    channel: int
    outputs: str
    script: str
    roots: tuple[str, ...]
    seed: int
    kernels: bool

    def dumps(self) -> str:
        """For the child's environment."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def loads(cls, text: str) -> ArmSettings:
        """Inverse of :meth:`dumps`."""
        data = json.loads(text)
        return cls(**{**data, "roots": tuple(data["roots"])})


def words(text: str, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    """A comma list of an option, checked.

    Raises:
        UsageError: naming what there is.
    """
    return tuple(dict.fromkeys(_words(text, known, option)))


def _words(text: str, known: tuple[str, ...], option: str) -> Iterator[str]:
    for word in text.split(","):
        if word.strip() not in known:
            raise UsageError(
                f"{option} has no {word.strip() or 'empty name'!r}: there are {', '.join(known)}"
            )
        yield word.strip()
