"""What could not be read, counted: every number becomes a sentence of the report."""

from __future__ import annotations

from collections import Counter

MAX_RECORD = 16 * 1024 * 1024

# What is counted, and the sentence that tells it; {n} is the number, {s} the plural's s.
_SENTENCES = {
    "cut": "the last record is incomplete: the file was cut off there, or is still being written",
    "compressed": "the compressed data is damaged or ends too early: what came before was used",
    "bomb": "the compressed data unpacks to far more than any trace: what came before was used",
    "line": "a line is longer than any of a trace or a log: what came before was used",
    "envelopes": "{n} damaged record{s} left out: not readable",
    "checksums": "{n} damaged record{s} left out: the text does not have the checksum that its record names",
    "contradictions": "{n} damaged compile{s}: records contradict each other, and what they name is left out",
    "oversize": "{n} record{s} of more than {limit} MB left out",
    "unfinished": "{n} compile{s} without an end in the trace: failures and graphs of these are not known",
    "locale": "{n} text{s} not in UTF-8 read as Latin-1",
}


class Damage:
    """Counts of what was lost in one file."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def add(self, what: str, number: int = 1) -> None:
        """Count ``number`` more of one of the kinds above."""
        self.counts[what] += number

    def sentences(self) -> list[str]:
        """What a reader must know; empty where nothing was lost."""
        return [
            text.format(n=n, s="" if n == 1 else "s", limit=MAX_RECORD // 1024**2)
            for what, text in _SENTENCES.items()
            if (n := self.counts[what])
        ]
