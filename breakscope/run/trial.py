"""Running the user's script once more, changed a little, to see what becomes of it.

A remedy or a rewrite is believed only after such a trial: the script is scanned with the change and
without, under one seed, and what its outermost compiled calls returned is compared, and what it said.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope.errors import InternalError
from breakscope.inside.settings import Settings
from breakscope.inside.start import Agent
from breakscope.report.model import Report
from breakscope.run import interpreter, written
from breakscope.run.launch import Ended, Program
from breakscope.run.observe import observe
from breakscope.run.warm import Warm
from breakscope.run.words import Said, Silenced, Words, compare_words

_COMPARES = "breakscope.inside.capture.compare_outputs"
# torch writes advice behind its exceptions, and Dynamo the user's line below its error.
_EXCEPTION = re.compile(
    r"[\w.]+(?:Error|Exception|Violation|Exit|Interrupt|Unsupported)\w*(?::|$)"
    r"|(?:\w+\.)+[A-Z]\w+: "  # torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: …
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the script.

    Attributes:
        outputs: folder of what the outermost calls returned.
        said: what the script printed, and the files that it wrote into the current folder.
    """

    report: Report
    ended: Ended
    outputs: Path
    said: Said

    @property
    def last_line(self) -> str | None:
        """What the script said last: the exception that it ended with, if it names one; None if nothing."""
        lines = [
            line
            for stream in (self.said.stdout, self.said.stderr)
            for line in stream.decode(errors="replace").strip().splitlines()
        ]
        return next(
            (line for line in reversed(lines) if _EXCEPTION.match(line)), lines[-1] if lines else None
        )


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


def trial(
    what: Program,
    settings: Settings,
    folder: Path,
    timeout_s: float | None = None,
    warm: Warm | None = None,
) -> Trial:
    """Scan the script with its outputs kept and every generator seeded.

    Args:
        settings: as for a scan; ``seed`` and ``outputs`` are filled in. ``backend="none"`` runs eagerly.
        folder: an empty folder for the run's files; the caller removes it.
        warm: as for :func:`breakscope.run.launch.run`.
    """
    outputs = folder / "outputs"
    outputs.mkdir()
    seed = 0 if settings.seed is None else settings.seed
    settings = replace(settings, seed=seed, outputs=str(outputs))
    cwd = Path.cwd()
    ours = [
        one for one in (folder, *folder.absolute().parents) if one == folder or one.name.startswith(".run-")
    ]
    before = written.look(cwd, ours)
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        seen = observe(
            what, settings, folder, timeout_s, stdout=stdout.fileno(), stderr=stderr.fileno(), warm=warm
        )
    said = Said(out.read_bytes(), err.read_bytes(), written.written(cwd, before, ours))
    return Trial(seen.report, seen.ended, outputs, said)


def words(
    before: Trial,
    again: Callable[[], Trial],
    after: Trial,
    silenced: Sequence[Silenced] = (),
    tolerance: float = 0.0,
) -> Words:
    """What the script said in the second trial against what it said in the first.

    Args:
        again: the script as it was in ``before``, a second time; asked only where there is a difference.
        silenced: messages that the second trial is expected to leave out.
        tolerance: how far apart printed numbers may be, as for :meth:`Comparison.within`.
    """
    return compare_words(before.said, lambda: again().said, after.said, silenced, tolerance)


def compare(before: Trial, after: Trial, warm: Warm | None = None) -> Comparison:
    """What the second trial computed against the first. Runs in a child, since it loads torch."""
    text = _compared_in_fork(before, after, warm) if warm is not None else None
    fields = json.loads(text or _compared(before, after))
    return Comparison(**{**fields, "differences": tuple(fields["differences"])})


def _compared(before: Trial, after: Trial) -> str:
    command = [*interpreter.command(_COMPARES), str(before.outputs), str(after.outputs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InternalError(f"the outputs of two runs could not be compared: {done.stderr.strip()[-300:]}")
    return done.stdout


def _compared_in_fork(before: Trial, after: Trial, warm: Warm) -> str | None:
    """The same in a fork that has torch already; None if there is none, or it failed."""
    result = Path(tempfile.mkdtemp(dir=after.outputs.parent)) / "compared.json"
    settings = json.dumps([str(one.absolute()) for one in (before.outputs, after.outputs, result)])
    with open(os.devnull, "wb") as null:
        fork = warm.fork(Agent(_COMPARES, settings), null.fileno(), null.fileno())
    if fork is None or fork.wait() != 0 or not result.exists():
        return None
    return result.read_text(encoding="utf-8")
