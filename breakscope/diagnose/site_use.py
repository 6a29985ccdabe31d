"""What the value at a site is for, as far as its shape decides what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from breakscope.diagnose import loops

Shape = Literal[
    "check",
    "loop",
    "size",
    "slice",
    "layerdrop",
    "random",
    "experts",
    "turn",
    "stop",
    "change",
    "fast path",
    "optional",
    "early",
    "message",
    "told",
    "branch",
    "verdict",
    "python",
    "search",
    "order",
    "bound",
    "list",
    "index",
    "kept",
    "kept message",
    "returned",
    "given",
    "passed",
    "pick",
    "tested pick",
    "placed",
    "all picked",
    "part",
    "key",
    "seed",
    "arithmetic",
    "constant",
    "stacked",
    "numpy",
    "math",
    "checked",
    "spared",
    "spared mean",
    "skip",
    "undone",
    "with",
    "count",
    "choice",
    "flag",
    "reduced",
    "positions",
    "edges",
    "loss",
    "labels",
    "packed",
    "stored",
    "scattered",
    "written",
    "selected",
    "ranked",
    "suppressed",
    "paired",
    "joined",
    "counted",
    "tallied",
    "best",
    "extreme",
    "books",
    "cells",
    "group ranked",
    "group reduced",
    "crossed",
    "across",
    "looked up",
    "mixed",
    "filter",
    "left out",
    "found",
    "grown",
    "first",
    "dropped",
    "whole",
    "counted too",
    "steered",
    "listed twice",
    "pairs",
    "backtrace",
    "neighbours",
    "tallies",
    "items",
    "distinct",
    "python number",
    "rows",
    "plain",
]
"""What a statement shows:

Of a test: check: decides whether to raise. loop: how long a loop runs. layerdrop: a random number decides
whether to run a part. turn: it leaves a loop's turn; stop: the loop. search: the same, where a loop of
unknown length is in it. change: it changes tensors in place. skip: it leaves out changes of state.
undone: it returns in front of calls that do something. fast
path: it returns None or sets it. optional: it makes what is None without it.
early: it returns what the rest would compute. verdict: it only decides
which plain values are returned last. python: it does what is no operation on tensors. spared: it only saves
work on what a mask selects; spared mean: and takes its mean. choice: it selects texts or flags. flag: it asks
a tensor that an object keeps. message: it only writes text. told: it sets tensors, and writes text. count: it
asks for a number of steps. branch: any other test.

Of a value: where it ends (:mod:`breakscope.diagnose.becomes`), by the table below. list: Python needs all of
its values. index: a tensor picks an element. tested pick: a number picks an element and decides a branch.
all picked: a loop picks with each of a list. selected: what a mask selects goes anywhere else. crossed:
the same is selected along another dimension. across: what a mask selects is the last dimension of what is
reduced or ranked. looked up: what it selects is indexed by what a ranking gave. mixed: it is reduced where
its rows were moved.
group ranked, group reduced: a loop selects group by group.
books: a loop does nothing with the values but work of Python's own. cells: loops fill a table cell by cell.
filter: a comprehension keeps items by it. left out: a turn that is left puts nothing into a list. pairs:
loops hold each value against each other one. found: a loop returns a constant where a value says
so. grown: it joins more to a tensor. dropped: it leaves out what a mask does not
select. whole: it returns early where a mask selects all. first: the
first position is taken. counted too:
it sets a tensor, and counts. steered: a loop that computes changes Python's own things where a value
says so; listed twice: it appends to one list on each side of a branch. distinct: how many
different values there are. python number: it reads back a number that Python made a tensor of.

written: what a mask selects is the index that says where to write.
backtrace: its function follows indices back one by one, as Viterbi does.
neighbours: loops put the indices of pairs into lists where a value says so. tallies: loops add into cells.
rows: a mask selects as many of each row, and what it selects is given rows again.
edges: the positions in a matrix are taken apart, as pairs.
items: what a mask selects becomes items of a list that Python sorts.
tallied: only how many a mask selects is asked. best: each turn of a loop is held against the best so far.
extreme: the branch only keeps the largest or least so far. kept message: it is kept, and decides a message.

Others: random: numpy draws the number. experts: which tokens go to which expert. with: a context manager
is entered. plain: anything else.
"""


@dataclass(frozen=True, slots=True)
class Use:
    """What a value is for.

    Attributes:
        value: the source of what is read; name: of the variable that holds it where it ends; both may be
            empty.
        taker: the source of what takes it, line: where that is; empty and 0 where it ends where it is read.
        gathered: whether it is one of a list.
        mask: what selects, and of: what it selects from, where the value says that; of what is reduced, that
            made: whether what is reduced is made of it, and not selected itself.
        arguments: those of the compiled call that the value is made of, where it is of nothing else.
        ascending: whether what is selected is ranked with the least first.
        also: lines of further branches that it decides.
        returned: whether compiled code gives it back as well.
        own: whether it stands in the function that the script compiles, and in no other one.
        by: functions of Python's that it goes through, and that take no tensor: ``round``.
        groups: where a loop selects group by group, which those are.
        taken_too: lines of other operations that take what a mask selects.
        searched: whether it is in a loop that values steer all over.
        file: the name of the file of that line, where it is another one than the site's.
        besides: lines before it on which the same mask selects from something else.
        tests: lines of tests that ask how many it selects.
    """

    shape: Shape
    value: str = ""
    name: str = ""
    taker: str = ""
    line: int = 0
    gathered: bool = False
    mask: str = ""
    of: str = ""
    arguments: tuple[str, ...] = ()
    ascending: bool = False
    also: tuple[int | str, ...] = ()
    groups: loops.Groups | None = None
    taken_too: tuple[int | str, ...] = ()
    besides: tuple[int, ...] = ()
    tests: tuple[int | str, ...] = ()
    returned: bool = False
    own: bool = False
    made: bool = False
    by: tuple[str, ...] = ()
    file: str = ""
    searched: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What was observed of the names at a site when it broke, and what its function is for.

    Attributes:
        fewer: how many dimensions its mask has fewer than what that selects from; None where not known.
        is_flat: whether the mask is known to have one dimension.
        numpy: what in its expression was numpy's, and ``array`` or the name of a number's type.
        read: the line with the ``.numpy()`` that what was numpy's comes of; else 0.
        listed: the tensor of its object, set in ``__init__`` alone, of which an element is read; else empty.
        kept: an attribute in its expression that is a tensor of one whole number; else empty.
        picked: what it picks an element of, as source, and ``tensor``, ``numbers`` for a list of them or
            ``python`` for other lists and dicts; None where that is not known.
        is_hook: whether its function is registered as a hook of a module.
        caught: the line of the handler in the same function that catches what is raised there; else 0.
        packed: whether a call at it is given what a ``pack_`` function made.
        side: what a side of its branch selects by a mask, what it selects from, the mask and the side.
        left_out: what its branch leaves rows out of, and the mask of those that it keeps.
        loop_breaks: whether the loop that runs over it breaks the graph itself, or makes a list of its turns.
        arrayed: a name in its statement that numpy made an array of Python's numbers, and the line.
        product: a list of Python's whose numbers numpy multiplies in its statement, as source; else empty.
        is_computed: whether its test holds something against a tensor that its function computes.
    """

    fewer: int | None = None
    is_flat: bool = False
    numpy: tuple[str, str] | None = None
    read: int = 0
    listed: str = ""
    kept: str = ""
    picked: tuple[str, Literal["tensor", "numbers", "python"]] | None = None
    is_hook: bool = False
    caught: int = 0
    side: tuple[str, str, str, str] | None = None
    left_out: tuple[str, str] | None = None
    is_computed: bool = False
    arrayed: tuple[str, int] | None = None
    product: str = ""
    loop_breaks: bool = False
    packed: bool = False
