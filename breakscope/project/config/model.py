"""What a configuration says, once it is read: frozen records whose fields are the keys, ``-`` for ``_``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from breakscope.report.model import Owner

DEFAULT_BASELINE = ".breakscope/baseline.json"
OWNERS: tuple[Owner, ...] = ("project", "library", "torch")


@dataclass(frozen=True, slots=True)
class Budgets:
    """Most that a run may have of each. None: no limit.

    Attributes:
        max_sites: sites, known ones included.
        max_recompiles: recompiles.
        max_crossings_per_step: crossings in one step, on average over the run.
        max_compile_seconds: seconds that Dynamo and the backend compiled; of several ranks the slowest.
        max_ms_per_step: milliseconds of a steady step.
    """

    max_sites: int | None = None
    max_recompiles: int | None = None
    max_crossings_per_step: float | None = None
    max_compile_seconds: float | None = None
    max_ms_per_step: float | None = None

    def over(self, other: Budgets) -> Budgets:
        """These, and the other's where these say nothing."""
        mine = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        return dataclasses.replace(other, **mine)


@dataclass(frozen=True, slots=True)
class Target:
    """A script that ``breakscope check`` runs. Its options are those of ``breakscope scan``.

    Attributes:
        name: what output and baseline call it; the script or module where none is given.
        script: path from the configuration's folder; or ``module``, as after ``python -m``.
        timeout: seconds.
    """

    name: str = ""
    script: str | None = None
    module: str | None = None
    args: tuple[str, ...] = ()
    compile: str = "auto"
    backend: Literal["eager", "aot_eager", "inductor", "as-script"] = "eager"
    mode: str | None = None
    dynamic: Literal["auto", "true", "false"] = "auto"
    keep_fullgraph: bool = False
    steps: int | None = None
    timeout: float | None = None
    budgets: Budgets = Budgets()


@dataclass(frozen=True, slots=True)
class Lint:
    """What holds for ``breakscope lint`` alone.

    Attributes:
        level: from which on to show possible breaks.
        exclude: files and folders to leave out, as in .gitignore, relative to the configuration's folder.
    """

    level: Literal["likely", "possible"] = "likely"
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """What is in force.

    Attributes:
        root: folder of the configuration file, to which its paths are relative; without a file that of
            the repository, else the current one.
        file: the configuration file; None without one.
        select: codes, or prefixes of codes, that count; ignore: those of them that do not.
        per_path_ignore: codes that do not count in paths that match a pattern; installed files go by
            their path from the package on.
        owners: whose code findings count in.
        baseline: file of the known findings.
        strict: whether known findings fail, too.
        origins: for each key that is not the default, where it was said.
    """

    root: Path = Path()
    file: Path | None = None
    select: tuple[str, ...] = ("BS",)
    ignore: tuple[str, ...] = ()
    per_path_ignore: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    owners: tuple[Owner, ...] = OWNERS
    baseline: str = DEFAULT_BASELINE
    strict: bool = False
    lint: Lint = Lint()
    budgets: Budgets = Budgets()
    targets: tuple[Target, ...] = ()
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
