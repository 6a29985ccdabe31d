"""What kind of statement a site stands in: what helps depends on what the value is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from breakscope.diagnose import becomes, begins, loops, uses
from breakscope.diagnose.becomes import End, Kind
from breakscope.project.sources import Position, Sources

Shape = Literal[
    "check",
    "loop",
    "size",
    "slice",
    "layerdrop",
    "random",
    "experts",
    "turn",
    "change",
    "fast path",
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
    "returned",
    "given",
    "pick",
    "tested pick",
    "placed",
    "all picked",
    "part",
    "key",
    "seed",
    "arithmetic",
    "stacked",
    "numpy",
    "math",
    "spared",
    "spared mean",
    "skip",
    "with",
    "count",
    "choice",
    "flag",
    "reduced",
    "positions",
    "loss",
    "labels",
    "packed",
    "stored",
    "scattered",
    "selected",
    "ranked",
    "suppressed",
    "paired",
    "joined",
    "counted",
    "books",
    "cells",
    "group ranked",
    "group reduced",
    "crossed",
    "filter",
    "left out",
    "found",
    "grown",
    "first",
    "dropped",
    "counted too",
    "steered",
    "pairs",
    "distinct",
    "plain",
]
"""What a statement shows:

Of a test: check: decides whether to raise. loop: how long a loop runs. layerdrop: a random number decides
whether to run a part. turn: it leaves a loop's turn, or the loop. search: the same, where a loop of
unknown length is in it. change: it changes tensors in place. skip: it leaves out changes of state. fast
path: it returns None or sets it. early: it returns what the rest would compute. verdict: it only decides
which plain values are returned last. python: it does what is no operation on tensors. spared: it only saves
work on what a mask selects; spared mean: and takes its mean. choice: it selects texts or flags. flag: it asks
a tensor that an object keeps. message: it only writes text. told: it sets tensors, and writes text. count: it
asks for a number of steps. branch: any other test.

Of a value: where it ends (:mod:`breakscope.diagnose.becomes`), by the table below. list: Python needs all of
its values. index: a tensor picks an element. tested pick: a number picks an element and decides a branch.
all picked: a loop picks with each of a list. selected: what a mask selects goes anywhere else. crossed:
the same is selected along another dimension. group ranked, group reduced: a loop selects group by group.
books: a loop does nothing with the values but work of Python's own. cells: loops fill a table cell by cell.
filter: a comprehension keeps items by it. left out: a turn that is left puts nothing into a list. pairs:
loops hold each value against each other one. found: a loop returns a constant where a value says
so. grown: it joins more to a tensor. dropped: it leaves out what a mask does not select. first: the
first position is taken. counted too:
it sets a tensor, and counts. steered: a loop that computes changes Python's own things where a value
says so. distinct: how many
different values there are.

Others: random: numpy draws the number. experts: which tokens go to which expert. with: a context manager
is entered. plain: anything else.
"""
# The first row counts whose kind is among the ends of a number.
_OF_NUMBER: dict[Kind, Shape] = {
    "turns": "loop",
    "loop test": "loop",
    "turns of values": "loop",
    "seed": "seed",
    "size": "size",
    "slice": "slice",
    "order": "order",
    "part": "part",
    "key": "key",
    "pick": "pick",
    "placed": "placed",
    "filter": "filter",
}
# The same below what only tests, writes, keeps or returns it.
_OF_REST: dict[Kind, Shape] = {
    "bound": "bound",
    "numpy": "numpy",
    "given": "given",
    "math": "math",
    "stacked": "stacked",
    "arithmetic": "arithmetic",
}
_OF_SELECTION: dict[Kind, Shape] = {
    "turns of values": "loop",
    "turns": "loop",
    "suppressed": "suppressed",
    "paired": "paired",
    "ranked": "ranked",
    "joined": "joined",
    "scattered": "scattered",
}
# The same where all of them keep to the mask.
_OF_MASKED: dict[Kind, Shape] = {"loss": "loss", "stored": "stored", "reduced": "reduced"}


@dataclass(frozen=True, slots=True)
class Use:
    """What a value is for.

    Attributes:
        value: the source of what is read; name: of the variable that holds it where it ends; both may be
            empty.
        taker: the source of what takes it, line: where that is; empty and 0 where it ends where it is read.
        gathered: whether it is one of a list.
        mask: what selects, and of: what it selects from, where the value says that.
        arguments: those of the compiled call that the value is made of, where it is of nothing else.
        also: lines of further branches that it decides.
        groups: where a loop selects group by group, which those are.
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
    also: tuple[int, ...] = ()
    groups: loops.Groups | None = None


_BRANCHES = (
    "turn",
    "found",
    "left out",
    "change",
    "fast path",
    "early",
    "told",
    "verdict",
    "python",
    "skip",
    "choice",
)
_EXPERTS = re.compile(r"\bexpert_|\bexperts?\b|router_|top_x")
_DROP = re.compile(r"[<>]=?.*(layer_?drop|drop_path)|(layer_?drop|drop_path)\w* *[<>]", re.DOTALL)
DROPS = ("layerdrop", "layer_drop", "drop_path")
_RANDOM = re.compile(r"\b(?:np|numpy)\.random\b|(?<![\w.])random\.\w+\(")  # not torch.random


def use_of(
    sources: Sources,
    file: str,
    position: Position | None,
    line: int,
    *,
    code: str = "",
    callers: Sequence[Sequence[ast.AST]] = (),
    entered: bool = False,
) -> Use:
    """What the value of a site is for; "plain" where its source cannot be read.

    Args:
        code: of what broke: in ``x[i]`` it tells a number that picks from a mask that selects.
        callers: the nodes around the calls in compiled code that lead to the site, the nearest first.
        entered: whether the last of them, or the site itself, is in a function that the script compiles.
    """
    if position is None:  # in a trace: the statement that begins on the line
        text = sources.line(file, line) or ""
        begin = len(text) - len(text.lstrip())
        position = (line, begin, line, begin)
    around = sources.around(file, position)
    if around and isinstance(around[-1], ast.IfExp):
        around = [*around, around[-1].test]  # what it asks for is what broke
    if around and isinstance(around[-1], ast.ListComp | ast.SetComp | ast.GeneratorExp):
        filtering = [one for one in around[-1].generators if one.ifs]
        around = [*around, filtering[0], filtering[0].ifs[0]] if filtering else around
    made_of = begins.arguments(around, callers) if entered else ()
    shape = _of_statement(around)
    if shape and not (code == "BS105" and shape in _BRANCHES):
        use = Use(shape, _short(around[-1] if around else None))
    else:
        use = _of_place(around, code, callers)
    return _in_loops(replace(use, arguments=made_of), around, callers, code)


# Shapes of a value that its loop may say more of: what it is for there is Python's own.
_PYTHONS = (
    *("python", "branch", "turn", "bound", "key", "order", "list", "pick", "tested pick", "kept"),
    *("all picked", "plain", "count", "told", "loop", "arithmetic", "change", "placed", "turn"),
)


def _in_loops(use: Use, around: Sequence[ast.AST], callers: Sequence[Sequence[ast.AST]], code: str) -> Use:
    """What the loops around say of a value that a statement alone does not tell."""
    if use.shape not in _PYTHONS or code == "BS105":
        return use
    if loops.of_pairs(around):
        return replace(use, shape="pairs")
    if table := loops.of_cells(around):
        return replace(use, shape="cells", name=table)
    ends = becomes.ends(around, callers, is_number=True)
    loop = loops.of_bookkeeping(around, ends, is_given=bool(use.arguments))
    if loop is not None:
        return replace(use, shape="books", taker=_short(loop), line=loop.lineno)
    return replace(use, shape="steered") if use.shape == "python" and _in_loop(around) else use


def shape_of(sources: Sources, file: str, position: Position | None, line: int) -> Shape:
    """The shape alone."""
    return use_of(sources, file, position, line).shape


def _of_statement(around: Sequence[ast.AST]) -> Shape | None:
    """What the statement as a whole is for."""
    statement = uses.statement(around)
    if isinstance(statement, ast.Assert) or _only_raises(statement):
        return "check"
    if isinstance(statement, ast.stmt) and _drops(statement, around):
        return "layerdrop"
    if isinstance(statement, ast.With) and any(isinstance(node, ast.withitem) for node in around):
        return "with"
    written = statement.body if isinstance(statement, ast.If) else [statement] if statement else []
    if uses.only_writes(written):
        return "message"
    if isinstance(statement, ast.If) and _asks_container(statement.test):
        return "key"
    if _is_read_in_test(statement, around) and not _leaves_while(statement, around):
        return "index"
    if way_out := _way_out(statement, around):
        return way_out
    if isinstance(statement, ast.stmt) and _of_experts(statement, around):
        return "experts"
    return "loop" if isinstance(statement, ast.While) else None


def _of_place(around: Sequence[ast.AST], code: str, callers: Sequence[Sequence[ast.AST]]) -> Use:
    """What the place in the statement says, and where the value ends."""
    innermost = around[-1] if around else None
    value = _short(innermost)
    if isinstance(innermost, ast.expr) and _RANDOM.search(ast.unparse(innermost)):
        decided = [uses.statement(end.way) for end in becomes.ends(around) if end.kind == "test"]
        drops = any(one is not None and _drops(one, around) for one in decided)
        return Use("layerdrop" if drops else "random", value)
    if isinstance(innermost, ast.Slice):
        return Use("slice", value)
    if any(map(_chooses_text, around)):
        return Use("choice", value)
    if (taking := _of_number_in_call(innermost)) is not None:
        return Use(taking, value, taker=value)
    if _in_shrinking_loop(around):
        return Use("search", value)
    ends = becomes.ends(around, callers, is_number=code not in ("", "BS105"))
    if becomes.selects(innermost) and code in ("", "BS105"):
        use = _of_mask(ends, around, value, code)
        return Use("index", value) if use.shape == "selected" and not code and _is_index(innermost) else use
    shape, end = _of_ends(ends)
    if code != "BS101" and _is_index(innermost) and not (shape == "part" or _is_read(around)):
        shape = "slice" if _has_bounds(innermost) else _of_index(around)
        return Use(shape, "" if shape == "placed" else value)
    if code == "BS105" and _is_number_of_different(around):
        return Use("distinct", value)
    if code == "BS105" and shape not in ("loop", "message"):
        return Use("plain", value)  # unique, repeat_interleave: no mask selects
    if shape == "plain" and value.endswith(".tolist()"):
        shape = "list"
    use = _ended(shape, end, innermost, value)
    return replace(use, also=_also(ends, use))


def _is_number_of_different(around: Sequence[ast.AST]) -> bool:
    """Whether only how many different values there are is asked: ``x.unique().numel()``, ``len(set…)``."""
    match around[-2:]:
        case [ast.Attribute(attr="numel" | "shape" | "size") | ast.Call(ast.Name("len")), ast.Call() as call]:
            return uses.called(call).startswith("unique")
    return False


def _of_mask(ends: Sequence[End], around: Sequence[ast.AST], value: str, code: str) -> Use:
    """What a mask selects is for: by where it ends, and by what is around it."""
    if (both := becomes.crossed(around)) is not None:
        return Use("crossed", value, taker=_short(around[-2]), of=both[0], mask=both[1])
    if (
        isinstance(around[-1], ast.Call)
        and isinstance(around[-2], ast.Subscript)
        and loops.is_first(around[-2])
    ):
        return Use("first", value, mask=loops.mask_of(around[-1]))
    use = _of_selection(ends, around[-1], value)
    if code and _of_index(around) == "placed":
        return replace(use, shape="stored")
    mask = getattr(around[-1], "slice", None)
    if use.shape in ("ranked", "reduced") and (groups := loops.of_groups(around, mask)) is not None:
        return replace(use, shape="group ranked" if use.shape == "ranked" else "group reduced", groups=groups)
    return use


def _ended(shape: Shape, end: End | None, innermost: ast.AST | None, value: str) -> Use:
    """What a value is for, with the names of where it ends."""
    if end is None:
        return Use(shape, value)
    line = _line(end)
    is_here = line == getattr(innermost, "lineno", 0)
    return Use(shape, value, end.name, _short(end.taker), 0 if is_here else line, end.gathered)


_MOST_ALSO = 3  # further branches that are named


def _line(end: End) -> int:
    return getattr(end.taker, "lineno", 0)


def _also(ends: Sequence[End], use: Use) -> tuple[int, ...]:
    """The lines of the other branches that a value decides."""
    if use.shape != "branch":
        return ()
    tests = {_line(end) for end in ends if end.kind == "test"}
    return tuple(sorted(tests - {use.line, 0}))[:_MOST_ALSO]


def _in_shrinking_loop(around: Sequence[ast.AST]) -> bool:
    """Whether a ``while`` around it runs until no selection is left: ``order = order[keep]``, as in NMS."""
    for loop in around:
        if not isinstance(loop, ast.While):
            continue
        asked = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
        for node in ast.walk(loop):
            if (
                isinstance(node, ast.Assign)
                and asked & set(uses.targets(node))
                and becomes.selects(node.value)
            ):
                return True
    return False


def _of_number_in_call(innermost: ast.AST | None) -> Shape | None:
    """Of a call that takes a tensor where it needs a number: ``x.new_zeros(2, longest)``."""
    if not isinstance(innermost, ast.Call) or uses.READS.search(ast.unparse(innermost)):
        return None
    if ast.unparse(innermost.func).startswith("math."):
        return "math"
    return "size" if uses.NUMBERS.match(uses.called(innermost)) else None


def _of_ends(ends: Sequence[End]) -> tuple[Shape, End | None]:
    """The shape of a number, with the end that decides it."""
    # A value is tested first where it is read, whatever a list of several is tested for further on.
    tests = sorted((end for end in ends if end.kind in ("test", "step")), key=_line)
    if end := _first(ends, _OF_NUMBER):
        shape = _OF_NUMBER[end.kind]
        if shape in ("pick", "placed") and end.looped:
            by_python = any(
                other.gathered or (other.kind == "test" and other.taker not in end.way) for other in ends
            )
            return ("list" if by_python else "all picked"), end
        return ("tested pick" if shape == "pick" and tests else shape), end
    if ends and all(end.kind in ("message", "raised") or _only_tells(end) for end in ends):
        return "message", ends[0]
    for end in tests:
        shape = _of_tested(end)
        told = ("test", "message", "raised") if shape == "check" else ("message", "raised")
        if shape in ("check", "message") and any(
            other.kind not in told and other is not end and not _only_tells(other) for other in ends
        ):
            continue
        return shape, end
    if tests:
        return "branch", tests[0]
    if end := _first(ends, _OF_REST):
        return _OF_REST[end.kind], end
    if end := _first(ends, ("returned",)):
        return ("returned" if _all(ends, ("returned", "kept", "message")) else "plain"), end
    is_kept = ends and _all(ends, ("kept", "message"))
    return ("kept" if is_kept else "plain"), next(iter(ends), None)


def _of_selection(ends: Sequence[End], innermost: ast.AST | None, value: str) -> Use:
    """What is done with what a mask selects."""
    shape, end = _shape_of_selection(ends)
    of = mask = ""
    match innermost:
        case ast.Subscript(base, ast.Tuple([ast.Constant(), chosen])) if shape == "reduced":
            of, mask = ast.unparse(base), ast.unparse(chosen)
        case ast.Subscript(base, ast.Tuple([chosen, ast.Slice(None, None)])):
            of, mask = ast.unparse(base), f"{ast.unparse(chosen)}[..., None]"
        case ast.Subscript(base, ast.Tuple()):
            pass
        case ast.Subscript(base, chosen) if len(value) > 0:
            of, mask = ast.unparse(base), ast.unparse(chosen)
        case ast.Call(ast.Attribute(attr="where" | "nonzero"), [asked]) | ast.Call(
            ast.Attribute(asked, "nonzero"), []
        ) if shape in ("counted", "ranked"):
            mask = ast.unparse(asked)
        case _ if shape in ("selected", "reduced"):
            shape = "positions" if shape == "reduced" else "plain"
    if shape == "reduced" and not _takes(end, innermost):
        of = ""  # what is reduced was made of it
    return replace(_ended(shape, end, innermost, value), mask=mask, of=of)


def _takes(end: End | None, innermost: ast.AST | None) -> bool:
    """Whether a value ends right where it is read."""
    parts = () if end is None or end.taker is None else ast.iter_child_nodes(end.taker)
    return any(part is innermost for part in parts)


def _shape_of_selection(ends: Sequence[End]) -> tuple[Shape, End | None]:
    if end := _first(ends, _OF_SELECTION):
        return _OF_SELECTION[end.kind], end
    told: tuple[Kind, ...] = ("reduced", "test", "message", "raised")
    if ends and _all(ends, ("message", "raised")):
        return "message", ends[0]
    if (end := _first(ends, _OF_MASKED)) and _all(ends, (*told, *_OF_MASKED)):
        taker = uses.called(end.taker) if isinstance(end.taker, ast.Call) else ""
        if "ctc" in taker:
            return "packed", end
        labels = end.kind == "loss" and re.search(r"(?<!binary_)cross_entropy|nll", taker)
        return "labels" if labels else _OF_MASKED[end.kind], end
    if end := _first(ends, ("test", "loop test", "filter")):
        return "counted", end
    if (end := _first(ends, ("returned", "kept"))) and _all(ends, ("returned", "kept", "message")):
        return "returned", end
    return "selected", next(iter(ends), None)


def _first(ends: Sequence[End], kinds: Iterable[Kind]) -> End | None:
    """The first end of the first kind that is among them."""
    return next((end for kind in kinds for end in ends if end.kind == kind), None)


def _all(ends: Sequence[End], kinds: Sequence[Kind]) -> bool:
    return all(end.kind in kinds for end in ends)


def _of_tested(end: End) -> Shape:
    """What a test is for that a value is held against further on."""
    if end.kind == "step":
        return "count"
    if any(map(_chooses_text, end.way)):
        return "choice"
    shape = _of_statement(end.way) or "branch"
    return "python" if end.looped and shape == "branch" else shape


def _only_tells(end: End) -> bool:
    """Whether a test only decides if something is written."""
    return end.kind == "test" and _of_tested(end) == "message"


_LONG = 60


def _short(node: ast.AST | None) -> str:
    """The source of an expression, or of what a statement evaluates itself; empty where it is long."""
    if node is None or not isinstance(node, ast.expr | ast.stmt | ast.keyword):
        return ""
    if isinstance(node, ast.For):
        text = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    elif isinstance(node, ast.If | ast.While):
        text = f"{'if' if isinstance(node, ast.If) else 'while'} {ast.unparse(node.test)}"
    else:
        text = ast.unparse(node)
    return "" if len(text) > _LONG or "\n" in text else text


def _is_read_in_test(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a test computes with ``x[i]`` of a tensor ``i``: ``if x[i] < 0.3:`` breaks there."""
    return (
        isinstance(statement, ast.If)
        and len(around) > 1
        and isinstance(around[-2], ast.Compare | ast.BinOp)
        and _is_index(around[-1])
        and not isinstance(getattr(around[-1], "slice", None), ast.Constant)
    )


def _asks_container(test: ast.expr) -> bool:
    """Whether a number that is read of a tensor is looked for in a container: ``if int(i) in seen:``."""
    match test:
        case ast.Compare(number, [ast.In() | ast.NotIn()], [_]):
            return uses.READS.search(ast.unparse(number)) is not None
    return False


def _leaves_while(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a branch ends the ``while`` around it."""
    loops = _loops(around)
    body = statement.body if isinstance(statement, ast.If) else []
    return (
        bool(loops) and isinstance(loops[-1], ast.While) and any(isinstance(one, ast.Break) for one in body)
    )


def _is_index(innermost: ast.AST | None) -> bool:
    """Whether what broke is ``x[i]`` with a tensor ``i``: its value is read to take an element."""
    if not isinstance(innermost, ast.Subscript) or isinstance(innermost.slice, ast.Constant):
        return False
    return not uses.READS.search(ast.unparse(innermost.slice))


def _is_read(around: Sequence[ast.AST]) -> bool:
    """Whether a number is read of what an index picks: ``int(lengths[i])``, ``lengths[i].item()``."""
    call = next((node for node in reversed(around[-3:-1]) if isinstance(node, ast.Call)), None)
    return call is not None and bool(re.match(r"(int|float|bool|item)$", uses.called(call)))


def _of_index(around: Sequence[ast.AST]) -> Shape:
    """Of ``x[i]``: whether it is read, or written as in ``counts[i] += 1``."""
    statement = uses.statement(around)
    written = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if around[-1] not in written:
        return "index"
    return "all picked" if _is_one_by_one(around) else "placed"


def _is_one_by_one(around: Sequence[ast.AST]) -> bool:
    """Whether each turn of a loop writes where one of several numbers says: ``mask[i, at[i]] = True``."""
    turns = {
        name for loop in _loops(around) if isinstance(loop, ast.For) for name in loops.names(loop.target)
    }
    chosen = getattr(around[-1], "slice", ast.Pass())
    picked = {
        name
        for part in ast.walk(chosen)
        if isinstance(part, ast.Subscript)
        for name in loops.names(part.slice)
    }
    return bool(turns & picked)


def _has_bounds(innermost: ast.AST | None) -> bool:
    """Whether an index has a slice with a bound: ``x[:, :n]``."""
    slices = [node for node in ast.walk(innermost or ast.Pass()) if isinstance(node, ast.Slice)]
    return any(node.lower or node.upper for node in slices)


def _of_experts(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether it picks the tokens of an expert: by its own words, or by those of the loop around it."""
    if _EXPERTS.search(ast.unparse(head_of(statement))):
        return True
    loops = [node for node in around if isinstance(node, ast.For) and node is not statement]
    return isinstance(statement, ast.Assign) and any(
        _EXPERTS.search(f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}") or _runs_one_each(loop)
        for loop in loops
    )


def _runs_one_each(loop: ast.For) -> bool:
    """Whether each turn runs another module on what an index picks: ``out[i] = ffn[e](x[i])``."""
    turn = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript | ast.Name)
        and ast.unparse(getattr(node.func, "slice", node.func)) in turn
        and any(isinstance(arg, ast.Subscript) for arg in node.args)
        for node in ast.walk(loop)
    )


def is_drawn(sources: Sources, file: str, position: Position | None) -> bool:
    """Whether a place draws a number with numpy or Python, or computes with one that was drawn."""
    around = [] if position is None else sources.around(file, position)
    if not around or not isinstance(around[-1], ast.expr):
        return False
    if _RANDOM.search(ast.unparse(around[-1])):
        return True
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    used = {node.id for node in ast.walk(around[-1]) if isinstance(node, ast.Name)}
    return isinstance(around[-1], ast.BinOp | ast.Call) and any(
        isinstance(node, ast.Assign)
        and used & set(uses.targets(node))
        and _RANDOM.match(ast.unparse(node.value))
        for node in (ast.walk(function) if function is not None else ())
    )


def _way_out(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves what it is in, or changes it, where it does."""
    if isinstance(statement, ast.If) and _is_flag(statement.test):
        return "flag"
    if _ends_loop(statement, around):
        return "loop"
    body = statement.body if isinstance(statement, ast.If) else []
    if left := _leaves_loop(body, around):
        return left
    if isinstance(statement, ast.If) and (last := _last_returns(statement, around)):
        return "verdict" if any(map(_holds_constant, last)) else "branch"
    if isinstance(statement, ast.If) and _leaves_out_changes(statement, around):
        return "skip"
    if isinstance(statement, ast.If) and _spares(statement):
        return "spared mean" if _MEANS.search(ast.unparse(statement)) else "spared"
    empties = any(map(_leaves_or_empties, body)) or any(map(_chooses_none, around))
    if empties:
        return "early" if any(map(_returns_value, body)) else "fast path"
    if any(map(uses.changes_in_place, body)):
        return "change"
    if any(map(_joins_more, body)):
        return "grown"
    if isinstance(statement, ast.If) and _drops_masked(statement):
        return "dropped"
    return _of_sides(statement, around)


def _writes_item(statement: ast.stmt) -> bool:
    """Whether it writes ``table[c]``, and of no dict by its name."""
    match statement:
        case ast.Assign([ast.Subscript(slice=ast.Name() | ast.Tuple())]):
            return True
    return False


def _drops_masked(statement: ast.If) -> bool:
    """Whether ``if not keep.all():`` stands before what takes out the rest: ``x = x[keep]``."""
    asked = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    return not statement.orelse and all(
        isinstance(one, ast.Assign)
        and (names := uses.targets(one))
        and all(_is_selected_anew(uses.given(one, name), name, asked) for name in names)
        for one in statement.body
    )


def _is_selected_anew(value: ast.expr | None, name: str, masks: set[str]) -> bool:
    match value:
        case ast.Subscript(ast.Name(of), chosen):
            return of == name and bool(masks & set(loops.names(chosen)))
    return False


def _joins_more(statement: ast.stmt) -> bool:
    """Whether a tensor gets longer: ``sim = torch.cat([sim, more])``."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.Call(args=[ast.List(parts) | ast.Tuple(parts), *_]) as call):
            is_joined = uses.called(call) in ("cat", "concat", "concatenate", "hstack", "vstack")
            return is_joined and any(isinstance(part, ast.Name) and part.id == name for part in parts)
    return False


def _leaves_loop(body: Sequence[ast.stmt], around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves the loop around it, or its turn."""
    around_it = _loops(around)
    returns = _in_loop(around) and any(isinstance(one, ast.Return) for one in body)
    if any(isinstance(one, ast.Break | ast.Continue) for one in body):
        if any(map(_is_of_python, body)):
            return "python"
        if _is_search(around):
            return "search"
    elif not returns:
        return None
    if around_it and isinstance(around_it[-1], ast.While):
        return "loop"
    if returns and isinstance(last := body[-1], ast.Return) and isinstance(last.value, ast.Constant):
        return "found"
    return "left out" if _leaves_out_item(body, around_it) else "turn"


def _of_sides(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """What the sides of a branch do that is no operation on tensors."""
    sides = [*statement.body, *statement.orelse] if isinstance(statement, ast.If) else []
    silent = [side for side in sides if not uses.is_message(side)]
    if silent and all(map(_sets_flag, silent)):
        return "choice"
    of_python = any(_is_of_python(side) or _steps_a_number(side, around) for side in silent)
    if _filters(around):
        return "filter"
    if of_python and any(map(_sets_tensor, silent)) and not _in_loop(around):
        return "counted too"
    if of_python:
        return "python"
    if any(map(_writes_item, silent)):
        return "change"
    return "told" if len(silent) < len(sides) else None


def _sets_tensor(side: ast.stmt) -> bool:
    """Whether it gives a name what a method or an operation on itself makes: ``u = u.clamp(-1, 1)``."""
    match side:
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Name(of)))):
            return name == of
    return False


def _steps_a_number(side: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement changes a Python number that its object keeps: ``self.beta *= 1.5``."""
    match side:
        case ast.AugAssign(ast.Attribute(ast.Name("self"), name), _, ast.Constant()):
            made = [node for one in around if isinstance(one, ast.ClassDef) for node in ast.walk(one)]
            return any(_begins_with_a_number(node, name) for node in made)
    return False


def _begins_with_a_number(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign([ast.Attribute(ast.Name("self"), attribute)], ast.Constant(int() | float())):
            return attribute == name
    return False


def _loops(around: Sequence[ast.AST]) -> list[ast.For | ast.While]:
    return [node for node in around if isinstance(node, ast.For | ast.While)]


def _leaves_out_item(body: Sequence[ast.stmt], loops: Sequence[ast.AST]) -> bool:
    """Whether a turn that is left puts nothing into a list, as all others do."""
    puts = any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and uses.called(node.value) == "append"
        for node in ast.walk(loops[-1] if loops else ast.Pass())
    )
    return puts and any(isinstance(one, ast.Continue) for one in body)


def _ends_loop(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a branch sets what the ``while`` around it asks for: how often that runs depends on it."""
    loops = _loops(around)
    if not loops or not isinstance(loops[-1], ast.While) or not isinstance(statement, ast.If):
        return False
    asked = {node.id for node in ast.walk(loops[-1].test) if isinstance(node, ast.Name)}
    return any(asked & set(uses.targets(one)) for one in (*statement.body, *statement.orelse))


def _is_flag(test: ast.expr) -> bool:
    """``if self.ready:``, ``if not self.ready:``, ``if self.ready.item() == 0:``."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    match asked:
        case ast.Compare(asked, [ast.Eq() | ast.NotEq()], [ast.Constant(0 | 1)]):
            pass
    match asked:
        case ast.Call(ast.Attribute(asked, "item" | "bool"), []) | ast.Call(ast.Name("bool"), [asked]):
            pass
    return isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "self"


def _filters(around: Sequence[ast.AST]) -> bool:
    """Whether a comprehension asks a value for what to keep."""
    return any(
        isinstance(parent, ast.comprehension) and child in parent.ifs for parent, child in pairwise(around)
    )


def _leaves_out_changes(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether a bare ``return`` skips what changes state: tensors in place, or attributes."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    match statement.body, function:
        case [ast.Return(None)], ast.FunctionDef(body=body) if statement in body:
            after = body[body.index(statement) + 1 :]
            return any(uses.changes_in_place(one) or _sets_attribute(one) for one in after)
    return False


def _sets_attribute(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([ast.Attribute()], _) | ast.AugAssign(ast.Attribute(), _, _):
            return True
        case ast.Assign([ast.Subscript(kept)], _) | ast.AugAssign(ast.Subscript(kept), _, _):
            return ast.unparse(kept).startswith("self.")
    return False


def _sets_flag(statement: ast.stmt) -> bool:
    """``stop = True``, ``level = "high"``: what is selected is no tensor."""
    match statement:
        case ast.Assign([ast.Name()], ast.Constant(bool() | str())):
            return True
    return False


def _spares(statement: ast.If) -> bool:
    """Whether ``if mask.any():`` stands before what is done where the mask is set, and only there."""
    match statement.test:
        case ast.Call(ast.Attribute(mask, "any"), []) | ast.Call(ast.Attribute(_, "any"), [mask]):
            name = ast.unparse(mask)
            found = [
                node for one in statement.body for node in ast.walk(one) if isinstance(node, ast.Subscript)
            ]
            counts = any(map(_sets_attribute, statement.body))  # that a mask was set is noted as well
            masked = any(name in map(ast.unparse, _parts(node.slice)) for node in found)
            masked = masked or all(_is_under_mask(one, name) for one in statement.body)
            masked = masked and not any(_stores_elsewhere(one, name) for one in statement.body)
            return masked and not counts and not statement.orelse
    return False


def _parts(chosen: ast.expr) -> list[ast.expr]:
    return chosen.elts if isinstance(chosen, ast.Tuple) else [chosen]


def _stores_elsewhere(statement: ast.stmt, mask: str) -> bool:
    """Whether it writes into what the mask does not select: ``table[c] = x[mask].sum()``."""
    match statement:
        case ast.Assign([ast.Subscript(slice=place)]) | ast.AugAssign(ast.Subscript(slice=place)):
            return mask not in {ast.unparse(part) for part in ast.walk(place)}
    return False


def _is_under_mask(statement: ast.stmt, mask: str) -> bool:
    """Whether it only sets what a mask selects, as ``torch.where(mask, 0, x)`` and ``masked_fill`` do."""
    match statement:
        case ast.Assign(value=ast.Call(args=[first, *_]) as call):
            return uses.called(call) in ("where", "masked_fill") and ast.unparse(first) == mask
    return False


def _in_loop(around: Sequence[ast.AST]) -> bool:
    """Whether a loop of its own function runs a place."""
    functions = [at for at, node in enumerate(around) if isinstance(node, ast.FunctionDef)]
    inside = around[functions[-1] :] if functions else around
    return any(isinstance(node, ast.For | ast.While) for node in inside)


def _is_search(around: Sequence[ast.AST]) -> bool:
    """Whether the loop around a branch has a ``while`` in it: a search that values steer all over."""
    loop = next((node for node in around if isinstance(node, ast.For | ast.While)), None)
    return loop is not None and any(
        isinstance(node, ast.While) and node is not loop for node in ast.walk(loop)
    )


def _last_returns(statement: ast.If, around: Sequence[ast.AST]) -> list[ast.expr]:
    """What is returned with and without a branch that is its function's last but a ``return``."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    if function is None or statement not in function.body:
        return []
    after = [*statement.orelse, *function.body[function.body.index(statement) + 1 :]]
    match statement.body[-1], after:
        case ast.Return(ast.expr() as one), [ast.Return(ast.expr() as other)]:
            before = statement.body[:-1]
            is_plain = all(isinstance(part, ast.Assign) or uses.is_message(part) for part in before)
            return [one, other] if is_plain else []
    return []


def _holds_constant(value: ast.expr) -> bool:
    """Whether a flag, a text or None is returned, which torch.where cannot select."""
    return any(
        isinstance(part, ast.Constant) and (part.value is None or isinstance(part.value, bool | str))
        for part in (value.elts if isinstance(value, ast.Tuple) else [value])
    )


def _is_of_python(statement: ast.stmt) -> bool:
    """Whether a statement is more than operations on tensors: it calls for an effect, reads or copies."""
    return any(
        isinstance(node, ast.Return)
        or _sets_item(node)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not uses.is_message(node))
        or (
            isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Attribute)
            and _is_count(node.value)
        )
        or (isinstance(node, ast.Call) and re.search(r"(deepcopy|tolist|dumps?|open)$", uses.called(node)))
        for node in ast.walk(statement)
    )


def _sets_item(node: ast.AST) -> bool:
    """Whether it sets an item of a dict, by its name: ``group["lr"] = …``."""
    match node:
        case ast.Assign([ast.Subscript(slice=ast.Constant(str()))]):
            return True
    return False


def _is_count(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _drops(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement decides at random if a layer runs, or asks for what decided it."""
    head = head_of(statement)
    if _DROP.search(ast.unparse(head)):
        return True
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    asked = {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Assign)
        and uses.assigned(node) in asked
        and _DROP.search(ast.unparse(node.value))
        for node in (ast.walk(function) if function is not None and isinstance(statement, ast.If) else ())
    )


def head_of(statement: ast.stmt) -> ast.AST:
    """What a statement evaluates itself, without its body."""
    return getattr(statement, "iter", None) or getattr(statement, "test", None) or statement


def _leaves_or_empties(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return() | ast.Assign(_, ast.Constant(None)):
            return True
    return False


_MEANS = re.compile(
    r"\]\.(mean|median|max|min|amax|amin|std|var)\(|\b(mean|median|max|min|std|var)\([\w.]+\["
)


def _returns_value(statement: ast.stmt) -> bool:
    """Whether it returns more than None or texts and flags, which torch.where cannot select."""
    match statement:
        case ast.Return(ast.Tuple(parts)):
            plain = [part.value for part in parts if isinstance(part, ast.Constant)]
            return len(plain) < len(parts) and not any(one is None or isinstance(one, str) for one in plain)
        case ast.Return(ast.expr() as value):
            return not _holds_constant(value)
    return False


def _chooses_none(node: ast.AST) -> bool:
    """Whether it is ``None if … else …``: there is nothing to select from."""
    match node:
        case ast.IfExp(_, ast.Constant(None), _) | ast.IfExp(_, _, ast.Constant(None)):
            return True
    return False


def _chooses_text(node: ast.AST) -> bool:
    """Whether it is ``"ok" if … else …``: what is selected is no tensor."""
    match node:
        case ast.IfExp(_, ast.Constant(str() | bool()), _) | ast.IfExp(_, _, ast.Constant(str() | bool())):
            return True
    return False


def _only_raises(node: ast.AST | None) -> bool:
    """Whether a branch does nothing but raise, with a text that it may put together first."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    *before, last = node.body
    return _raises(last) and all(
        isinstance(part, ast.Assign | ast.AnnAssign) or uses.is_message(part) for part in before
    )


def _raises(last: ast.stmt) -> bool:
    match last:
        case ast.Raise():
            return True
        case ast.Expr(
            ast.Call(func, [ast.Constant(False), *_])
        ):  # as torchvision does: torch._assert(False, …)
            return ast.unparse(func).rpartition(".")[2] == "_assert"
        case ast.Expr(ast.Call(func)):
            return ast.unparse(func) in ("sys.exit", "exit", "quit", "os._exit", "os.abort")
    return False
