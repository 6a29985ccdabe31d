"""The ranks of one job that ran together: those that must do the same, or the others wait."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from breakscope.report.model import Compile, Divergence, DivergenceKind, Location, Rank, Region, Step

_TERMINATED = 128 + signal.SIGTERM

_Item = TypeVar("_Item")
_Record = TypeVar("_Record", Region, Compile, Step)


@dataclass(frozen=True, slots=True)
class Group:
    """All processes of one attempt of one job."""

    ranks: tuple[Rank, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """Rank number of each process."""
        return {rank.process: rank.rank for rank in self.ranks}

    @property
    def early(self) -> set[str]:
        """The processes that did not run to their end: what they lack they may only not have got to."""
        return {rank.process for rank in self.ranks if rank.run.status != "ok" or rank.ended is not None}

    def comparable(self, sequences: Mapping[str, tuple[_Item, ...]]) -> dict[str, tuple[_Item, ...]]:
        """What each process did in order, as far as all that ended early got."""
        ends = [len(own) for process, own in sequences.items() if process in self.early]
        return {process: own[: min(ends)] if ends else own for process, own in sequences.items()}

    def made(
        self,
        kind: DivergenceKind,
        text: str,
        processes: Iterable[str],
        *,
        place: Location | None = None,
        function: str | None = None,
        step: int | None = None,
        fingerprint: str | None = None,
        dimension: int | None = None,
        ms: float | None = None,
        by_rank: dict[str, str] | None = None,
    ) -> Divergence:
        """A divergence that is about the given processes of this group."""
        about = {self.numbers[process] for process in processes}
        return Divergence(
            kind=kind,
            job=self.ranks[0].job,
            attempt=self.ranks[0].attempt,
            text=text,
            ranks=tuple(sorted(about)),
            others=tuple(sorted({rank.rank for rank in self.ranks} - about)),
            function=place.function if place else function,
            file=place.file if place else None,
            line=place.line if place else None,
            step=step,
            fingerprint=fingerprint,
            dimension=dimension,
            ms=ms,
            by_rank={
                str(self.numbers[process]): text
                for process, text in sorted((by_rank or {}).items(), key=lambda item: self.numbers[item[0]])
            },
        )

    def words(self, processes: Iterable[str]) -> str:
        """``rank 1``, ``ranks 0 and 2``, ``ranks 0-6``."""
        return rank_words(self.numbers[process] for process in processes)


def stopped(rank: Rank) -> bool:
    """Whether a process was ended by its launcher, as torchrun does by SIGTERM once any rank has failed.

    The launcher on another node cannot name that rank, so the signal alone has to say it.
    """
    return rank.ended is not None or rank.run.exit_code == _TERMINATED


def by_process(records: Iterable[_Record]) -> dict[str, list[_Record]]:
    """The records of each process of a merged report, in order."""
    found: dict[str, list[_Record]] = {}
    for record in records:
        found.setdefault(record.process or "", []).append(record)
    return found


def groups(ranks: Sequence[Rank]) -> list[Group]:
    """The groups of two ranks or more."""
    found: dict[tuple[str, int], list[Rank]] = {}
    for rank in ranks:
        found.setdefault((rank.job, rank.attempt), []).append(rank)
    return [
        Group(tuple(together)) for together in found.values() if len({rank.rank for rank in together}) > 1
    ]


def rank_words(numbers: Iterable[int]) -> str:
    """Rank numbers as text, neighbours as spans."""
    ordered = sorted(set(numbers))
    spans: list[list[int]] = []
    for number in ordered:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    parts = []
    for span in spans:
        parts += [f"{span[0]}-{span[-1]}"] if len(span) > 2 else [str(number) for number in span]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{'rank' if len(ordered) == 1 else 'ranks'} {listed}"
