"""Running the user's script once more, changed a little, to see what becomes of it.

A remedy or a rewrite is believed only after such a trial: the script is scanned with the change and
without, under one seed, and what its outermost compiled calls returned is compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope.capture.observe import observe
from breakscope.capture.settings import Settings
from breakscope.child.launch import Ended, Program
from breakscope.errors import InternalError
from breakscope.model import Report


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the script.

    Attributes:
        outputs: folder of what the outermost calls returned.
        log: what the script printed, both streams.
    """

    report: Report
    ended: Ended
    outputs: Path
    log: Path


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two trials' outputs.

    Attributes:
        calls: outermost calls that were compared; tensors: tensors in them.
        bitwise: whether everything is equal, bit for bit, and nothing is missing.
        max_abs: largest absolute difference; max_rel: the same over the largest value of its tensor.
        differences: what no tolerance forgives: other shapes, types, texts, NaN in one only.
    """

    calls: int
    tensors: int
    bitwise: bool
    max_abs: float
    max_rel: float
    differences: tuple[str, ...]

    def within(self, tolerance: float) -> bool:
        """Whether the outputs agree up to a relative tolerance. False if there was nothing to compare."""
        return self.calls > 0 and not self.differences and self.max_rel <= tolerance


def trial(what: Program, settings: Settings, folder: Path, timeout_s: float | None = None) -> Trial:
    """Scan the script with its outputs kept and every generator seeded.

    Args:
        settings: as for a scan; ``seed`` and ``outputs`` are filled in. ``backend="none"`` runs eagerly.
        folder: an empty folder for the run's files; the caller removes it.
    """
    outputs = folder / "outputs"
    outputs.mkdir()
    seed = 0 if settings.seed is None else settings.seed
    settings = replace(settings, seed=seed, outputs=str(outputs))
    log = folder / "log"
    with log.open("wb") as stream:
        seen = observe(what, settings, folder, timeout_s, stdout=stream.fileno())
    return Trial(seen.report, seen.ended, outputs, log)


def compare(before: Trial, after: Trial) -> Comparison:
    """What the second trial computed against the first. Runs in a child, since it loads torch."""
    command = [sys.executable, "-m", "breakscope.capture.compare_outputs"]
    done = subprocess.run(
        [*command, str(before.outputs), str(after.outputs)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise InternalError(f"the outputs of two runs could not be compared: {done.stderr.strip()[-300:]}")
    fields = json.loads(done.stdout)
    return Comparison(**{**fields, "differences": tuple(fields["differences"])})
