"""breakscope's real commands on one script, fast: `scan`, then `fix --write`, in forks of a warm process.

Everything is the product's own: the command line, the agents, the boot file, the written source. Only a process that
the product starts as `python …` is a fork that has imported torch already (:mod:`warm_server`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from script_judge import SCRIPT, judge
from warm import Warm

# Seconds for the comparisons of one rewrite. With 2, small modules are compared on as many inputs (about 300) as with
# the 60 that users get, and compiled on fewer (6 instead of 46).
BUDGET_S = 2
COMMANDS = (
    ("scan", "-q", "--no-cost", SCRIPT),
    # Each run is a fork already: of the warm process of these tests.
    ("fix", "--no-forks", "--no-inductor", "--write", "--all", "--budget", str(BUDGET_S), "--timeout", "60"),
)


@dataclass(frozen=True)
class Answer:
    """What `fix` said of one finding.

    Attributes:
        accepted: it is gone without consent. limits: where old and new part, and what has to stay as it was in the
            recorded run, as `fix` shows them.
        rewritten: there is a diff, accepted or not.
    """

    code: str
    line: int
    rule: str
    status: str
    why: str
    accepted: bool
    consent: bool
    limits: tuple[str, ...]
    rewritten: bool


@dataclass(frozen=True)
class Fixed:
    """A script that `fix --write` has been through.

    Attributes:
        old, new: folders with the script as it was, and as it was written.
        log: what the commands printed.
    """

    old: Path
    new: Path
    answers: tuple[Answer, ...]
    log: str

    @property
    def accepted(self) -> bool:
        """Whether something was rewritten without consent."""
        sources = [one.name for one in self.old.glob("*.py")]
        return any((self.old / one).read_bytes() != (self.new / one).read_bytes() for one in sources)

    @property
    def verdict(self) -> str:
        """The best that came of the script: proved, consent, unproved, refused, or nothing where nothing broke."""
        if self.accepted:
            return "proved"
        if any(one.consent for one in self.answers):
            return "consent"
        statuses = {one.status for one in self.answers}
        return next((one for one in ("unproved", "refused") if one in statuses), "nothing")

    @property
    def proposed(self) -> bool:
        """Whether a rule had a rewrite of its own, whatever the proof said of it."""
        return self.accepted or any(one.rewritten for one in self.answers)

    @property
    def reasons(self) -> str:
        return "; ".join(f"{one.code} line {one.line} {one.status}: {one.why}" for one in self.answers)


def written(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def fix(
    warm: Warm,
    files: Mapping[str, str],
    folder: Path,
    faults: Sequence[tuple[str, str]] = (),
    environment: Mapping[str, str] | None = None,
) -> Fixed:
    """Scan and fix a script, and keep it as it was beside it.

    Args:
        files: sources by name; ``script.py`` is what runs.
        faults, environment: as :meth:`warm.Warm.commands` takes them.
    """
    work, log = written(folder / "work", files), folder / "log"
    code = warm.commands(COMMANDS, work, log, faults, environment)
    text = log.read_text(errors="replace") + log.with_suffix(".err").read_text(errors="replace")
    if code not in (0, 1):
        raise AssertionError(f"breakscope ended with {code}:\n{text}")
    # Fresh folders: what the script wrote while it was scanned is not there for its runs before the judge.
    after = {name: (work / name).read_text() for name in files}
    return Fixed(written(folder / "old", files), written(folder / "new", after), answers(work), text)


def answers(folder: Path) -> tuple[Answer, ...]:
    """The answers in the report of a folder."""
    report = json.loads((folder / ".breakscope" / "latest.json").read_text())
    return tuple(
        Answer(
            one["code"],
            one["location"]["line"],
            said["rule"],
            said["status"],
            said["why"],
            bool(said["evidence"].get("accepted")),
            bool(said["evidence"].get("consent")),
            (*said["evidence"].get("limits", ()), *said["evidence"].get("assumes", ())),
            bool(said["diff"]),
        )
        for one in report["findings"]
        if (said := one.get("suggestion")) is not None
    )


def wrong(
    judging: Warm, fixed: Fixed, environments: Sequence[Mapping[str, str]] = ({},), limit: str = ""
) -> list[str]:
    """What the script itself shows of a rewrite that was accepted, run with each environment.

    Args:
        limit: where `fix` named a limit with this word, only the script as it was scanned is judged.
    """
    if not fixed.accepted:
        return []
    if limit and any(limit in one for answer in fixed.answers for one in answer.limits):
        environments = ({},)
    return [
        f"{', '.join(f'{name}={value}' for name, value in environment.items()) or 'as scanned'}: {one}"
        for environment in environments
        for one in judge(judging, fixed.old, fixed.new, environment)
    ]
