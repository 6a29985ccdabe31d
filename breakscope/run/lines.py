"""Two texts of one script, line by line, without what the script itself does not repeat.

Pure functions. A script that is run twice as it is shows which lines, and which parts of a line, are not the
same in every run: times, addresses, names of temporary files, the order in which threads write. What is
left is compared.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from breakscope.run.tokens import near, passing, shape, tokens_of

# Lines beyond these are not looked at, and that is said.
MAX_LINES = 20_000
# A search for pairs takes time with the square of its lines.
_MAX_SEARCHED = 2_000
_SHOWN = 80

# A number stands for a pattern that was learned.
Key = tuple[str, ...] | int


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two texts part.

    Attributes:
        line: its number in the text where it stands, from 1. old, new: the line; None where there is none.
    """

    line: int
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """What came of a comparison.

    Attributes:
        compared: lines of the first text that were compared.
        left_out: what was not, as short texts.
    """

    compared: int
    left_out: tuple[str, ...] = ()
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    tokens: tuple[str, ...]


def agree(
    before: Sequence[tuple[int, str]],
    again: Callable[[], Sequence[tuple[int, str]]],
    after: Sequence[tuple[int, str]],
    tolerance: float = 0.0,
) -> Agreement:
    """Compare two texts.

    Args:
        before, after: lines with their numbers.
        tolerance: how far apart two numbers with a point may be, relative to the larger.
        again: gives what a second run gave where ``before`` is from a first; asked only where the two differ.
    """
    if _texts(before) == _texts(after):
        return Agreement(len(before))
    first, second, third = _lines(before), _lines(again()), _lines(after)
    cut = [f"all behind the first {MAX_LINES:,} lines"] if max(len(before), len(after)) > MAX_LINES else []
    named = _Names.learn(first, second)
    unsteady = _unpaired([named.key(one) for one in first], [named.key(one) for one in second])
    pairs = list(zip(_without(first, unsteady, named), _without(second, unsteady, named), strict=True))
    loose = _loose([(named.key(one), _changing(one.tokens, other.tokens)) for one, other in pairs])
    steady = [one for one, _ in pairs]
    found = _first_difference(steady, loose, _without(third, unsteady, named), tolerance)
    kinds = {key: _of(first, key, named) for key in unsteady}
    unordered = [key for key, lines in kinds.items() if Counter(lines) == Counter(_of(second, key, named))]
    for key in unordered:
        found = found or _lost_or_added(kinds[key], _of(third, key, named), first, third)
    gone = [line for key, lines in kinds.items() if key not in unordered for line in lines]
    left_out = [*cut, *_left_out(gone, steady, loose)]
    return Agreement(len(first) - len(gone), tuple(left_out), found)


def shown(text: str) -> str:
    """A line as it is put into a sentence."""
    text = text.strip()
    return f'"{text[:_SHOWN]}…"' if len(text) > _SHOWN else f'"{text}"'


def _texts(lines: Iterable[tuple[int, str]]) -> list[str]:
    return [text for _, text in lines]


def _lines(numbered: Sequence[tuple[int, str]]) -> list[_Line]:
    return [_Line(number, text, tokens_of(text)) for number, text in numbered[:MAX_LINES]]


# ---- which lines belong together ----


@dataclass(frozen=True, slots=True)
class _Names:
    """Kinds of lines: two lines that may stand for one another have one key.

    Attributes:
        patterns: shapes that were seen to vary in more than numbers, None where they do.
    """

    patterns: tuple[tuple[str | None, ...], ...]

    def key(self, line: _Line) -> Key:
        own = tuple(map(shape, line.tokens))
        for index, pattern in enumerate(self.patterns):
            if len(pattern) == len(own) and all(
                a is None or a == b for a, b in zip(pattern, own, strict=True)
            ):
                return index
        return own

    @classmethod
    def learn(cls, first: Sequence[_Line], second: Sequence[_Line]) -> _Names:
        """Where two runs have lines of another shape at one place, a word in it varies: a temporary name."""
        shapes = [[tuple(map(shape, line.tokens)) for line in lines] for lines in (first, second)]
        patterns: dict[tuple[str | None, ...], None] = {}
        for left, right in _replaced(*shapes):
            for one, other in zip(left, right, strict=True):
                if len(one) != len(other):
                    continue
                pattern = tuple(a if a == b else None for a, b in zip(one, other, strict=True))
                if any(part is not None and part.isalpha() and len(part) > 1 for part in pattern):
                    patterns[pattern] = None
        return cls(tuple(patterns))


def _replaced(
    left: Sequence[tuple[str, ...]], right: Sequence[tuple[str, ...]]
) -> list[tuple[Sequence[tuple[str, ...]], Sequence[tuple[str, ...]]]]:
    """Runs of keys that stand in the place of as many others."""
    start, end = _ends(left, right)
    one, other = left[start : len(left) - end], right[start : len(right) - end]
    if max(len(one), len(other), 0) > _MAX_SEARCHED:
        return [(one, other)] if len(one) == len(other) else []
    codes = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [(one[a:b], other[c:d]) for tag, a, b, c, d in codes if tag == "replace" and b - a == d - c]


def _unpaired(left: Sequence[Key], right: Sequence[Key]) -> frozenset[Key]:
    """Keys of lines that have no partner at their place in the other run.

    Without all lines of these keys, the two runs have the same keys in the same order.
    """
    start, end = _ends(left, right)
    one, other = left[start : len(left) - end], right[start : len(right) - end]
    if max(len(one), len(other), 0) > _MAX_SEARCHED:
        return frozenset((*one, *other))
    codes = difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return frozenset(key for tag, a, b, c, d in codes if tag != "equal" for key in (*one[a:b], *other[c:d]))


def _ends(left: Sequence[Key], right: Sequence[Key]) -> tuple[int, int]:
    """How many keys the two have in common at the start, and then at the end."""
    most = min(len(left), len(right))
    start = next((i for i in range(most) if left[i] != right[i]), most)
    end = next((i for i in range(most - start) if left[-1 - i] != right[-1 - i]), most - start)
    return start, end


def _without(lines: Sequence[_Line], unsteady: frozenset[Key], named: _Names) -> list[_Line]:
    return [line for line in lines if named.key(line) not in unsteady]


def _of(lines: Sequence[_Line], key: Key, named: _Names) -> list[str]:
    return [line.text for line in lines if named.key(line) == key]


# ---- which parts of a line vary ----


def _changing(one: Sequence[str], other: Sequence[str]) -> frozenset[int]:
    return frozenset(index for index, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


def _loose(pairs: Sequence[tuple[Key, frozenset[int]]]) -> list[frozenset[int]]:
    """The tokens of each line that may be others.

    What varies in one line of a kind varies in all of them: of twenty times that are printed, some are equal
    by chance. Lines without a word in them are of no kind.
    """
    of_kind: dict[Key, frozenset[int]] = {}
    for key, changing in pairs:
        of_kind[key] = of_kind.get(key, frozenset()) | changing
    return [of_kind[key] if _worded(key) else changing for key, changing in pairs]


def _worded(key: Key) -> bool:
    return not isinstance(key, tuple) or any(part.isalpha() for part in key)


def _fits(old: Sequence[str], loose: frozenset[int], new: Sequence[str], tolerance: float) -> bool:
    if len(old) != len(new):
        return False
    free = {i for i in range(len(old)) if i in loose or (passing(old, i) and passing(new, i))}
    return all(
        a == b
        or i in free
        or near(a, b, tolerance)
        or (a.isspace() and b.isspace() and bool({i - 1, i + 1} & free))
        for i, (a, b) in enumerate(zip(old, new, strict=True))
    )


# ---- what differs, and what was left out ----


def _first_difference(
    steady: Sequence[_Line], loose: Sequence[frozenset[int]], after: Sequence[_Line], tolerance: float
) -> Difference | None:
    def fits(old: int, new: int) -> bool:
        return (
            old < len(steady)
            and new < len(after)
            and _fits(steady[old].tokens, loose[old], after[new].tokens, tolerance)
        )

    for i in range(max(len(steady), len(after))):
        if fits(i, i):
            continue
        if i >= len(steady) or (len(after) > len(steady) and fits(i, i + 1)):
            return Difference(after[i].number, None, after[i].text)
        if i >= len(after) or (len(steady) > len(after) and fits(i + 1, i)):
            return Difference(steady[i].number, steady[i].text, None)
        return Difference(steady[i].number, steady[i].text, after[i].text)
    return None


def _lost_or_added(
    old: Sequence[str], new: Sequence[str], first: Sequence[_Line], third: Sequence[_Line]
) -> Difference | None:
    """The first line that one of two texts has more often, where the order is not the script's."""
    lost, added = Counter(old) - Counter(new), Counter(new) - Counter(old)
    for text in lost:
        return Difference(next(line.number for line in first if line.text == text), text, None)
    for text in added:
        return Difference(next(line.number for line in third if line.text == text), None, text)
    return None


def _left_out(gone: Sequence[str], steady: Sequence[_Line], loose: Sequence[frozenset[int]]) -> list[str]:
    said = []
    if gone:
        count = "1 line that differs" if len(gone) == 1 else f"{len(gone)} lines that differ"
        said.append(f"{count} from run to run, such as {shown(gone[0])}")
    partly = [(line, parts) for line, parts in zip(steady, loose, strict=True) if parts]
    if partly:
        line, parts = partly[0]
        count = "a part of 1 line" if len(partly) == 1 else f"parts of {len(partly)} lines"
        said.append(f"{count}, such as {shown(line.tokens[min(parts)])} in {shown(line.text)}")
    times = sum(any(passing(line.tokens, i) for i in range(len(line.tokens))) for line in steady)
    if times:
        lines = "1 line" if times == 1 else f"{times} lines"
        said.append(f"times, amounts of memory, addresses or lines of warnings in {lines}")
    return said
