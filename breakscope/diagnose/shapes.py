"""What kind of statement a site stands in: what helps depends on what the value is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from breakscope.diagnose import becomes, begins, loops, restated, uses
from breakscope.diagnose.becomes import End, Kind
from breakscope.diagnose.site_use import Shape, Use
from breakscope.diagnose.statements import (
    asked_mask,
    chooses_text,
    grown_in_loop,
    has_bounds,
    in_loop,
    is_index,
    is_read,
    leaves_out_layers,
    listed_in_loop,
    listed_on_both_sides,
    of_index,
    of_statement,
)
from breakscope.project.sources import Position, Sources

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
    "constant": "constant",
}
# The same below what only tests, writes, keeps or returns it.
_OF_REST: dict[Kind, Shape] = {
    "math": "math",
    "bound": "bound",
    "numpy": "numpy",
    "given": "given",
    "stacked": "stacked",
    "arithmetic": "arithmetic",
    "passed": "passed",
}
_OF_SELECTION: dict[Kind, Shape] = {
    "turns of values": "loop",
    "turns": "loop",
    "suppressed": "suppressed",
    "paired": "paired",
    "ranked": "ranked",
    "looked up": "looked up",
    "mixed": "mixed",
    "joined": "joined",
    "scattered": "scattered",
    "written": "written",
    "order": "items",
    "given": "given",
}
# The same where all of them keep to the mask.
_OF_MASKED: dict[Kind, Shape] = {"loss": "loss", "stored": "stored", "reduced": "reduced"}
# What can be done with a number of things as well where a tensor holds it.
_TALLIED: tuple[Kind, ...] = ("returned", "kept", "arithmetic", "message", "math", "numpy", "bound")
_BRANCHES = (
    "turn",
    "stop",
    "extreme",
    "found",
    "left out",
    "change",
    "fast path",
    "optional",
    "early",
    "told",
    "verdict",
    "python",
    "skip",
    "undone",
    "choice",
    "best",
)
DROPS = ("layerdrop", "layer_drop", "drop_path")


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
    # In a trace: the statement that begins on the line.
    around = sources.around_line(file, line) if position is None else sources.around(file, position)
    if around and isinstance(around[-1], ast.IfExp):
        around = [*around, around[-1].test]  # what it asks for is what broke
    if around and isinstance(around[-1], ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        filtering = [one for one in around[-1].generators if one.ifs]
        around = [*around, filtering[0], filtering[0].ifs[0]] if filtering else around
    if code in ("BS102", "BS103") and (number := begins.number(around, callers)):
        name, at, of = number
        return Use("python number", _short(around[-1]), name=name, line=at, file=of)
    made_of = begins.arguments(around, callers) if entered else ()
    shape = of_statement(around)
    if shape and not (code == "BS105" and shape in _BRANCHES):
        mask = _selecting(around[-1]) if code == "BS105" else _asked_mask(around)
        use = Use(shape, _short(around[-1] if around else None), mask=mask)
        use = replace(use, also=loops.turns_left(around)) if shape == "experts" else use
        use = replace(use, also=_drawn_in(around)) if shape == "spared" else use
        if shape == "stop":
            grown, held = grown_in_loop(around), listed_in_loop(around)
            use = replace(use, name=grown or held, gathered=bool(held) and not grown)
    else:
        use = _of_place(around, code, callers)
    if use.shape == "filter" and made_of:  # the whole list is to be made there
        made_of = begins.arguments(_to_comprehension(around), callers)
    if use.shape == "message" and made_of and begins.holds_more(use.taker, use.name, around):
        made_of = ()  # the rest of its text is known in here alone
    use = replace(use, arguments=made_of, own=entered and not callers, searched=_is_searched(around))
    return _in_loops(use, around, callers, code)


def _drawn_in(around: Sequence[ast.AST]) -> tuple[int, ...]:
    """The lines in a branch on which it draws random numbers, for torch or for Python."""
    branch = uses.statement(around)
    lines = {
        node.lineno
        for part in (branch.body if isinstance(branch, ast.If) else ())
        for node in ast.walk(part)
        if isinstance(node, ast.Call) and begins.DRAWS.match(uses.called(node))
    }
    return tuple(sorted(lines))[:_MOST_ALSO]


def _is_searched(around: Sequence[ast.AST]) -> bool:
    return _in_shrinking_loop(around) or _in_greedy_loop(around)


def _to_comprehension(around: Sequence[ast.AST]) -> Sequence[ast.AST]:
    """The nodes to the comprehension around a place, which is the last of them."""
    ends = [at for at, node in enumerate(around) if isinstance(node, ast.ListComp | ast.SetComp)]
    return around[: ends[-1] + 1] if ends else around


def _selecting(node: ast.AST) -> str:
    """The mask by which an expression selects: ``m`` of ``x[m]``; empty of other ones."""
    return ast.unparse(node.slice) if isinstance(node, ast.Subscript) else ""


def _asked_mask(around: Sequence[ast.AST]) -> str:
    """The mask by which a test asks for anything: ``m`` of ``if m.any():`` and ``if m.sum() > 0:``."""
    statement = uses.statement(around)
    asked = asked_mask(statement.test) if isinstance(statement, ast.If) else None
    return "" if asked is None else asked[0]


# Shapes of a value that its loop may say more of: what it is for there is Python's own.
_PYTHONS = (
    *("python", "branch", "turn", "stop", "bound", "key", "order", "list", "pick", "tested pick", "kept"),
    *("all picked", "plain", "count", "told", "loop", "arithmetic", "change", "placed"),
)


def _in_loops(use: Use, around: Sequence[ast.AST], callers: Sequence[Sequence[ast.AST]], code: str) -> Use:
    """What the loops around say of a value that a statement alone does not tell."""
    if use.shape not in ("check", "message") and loops.of_neighbours(around):
        return replace(use, shape="neighbours")
    if use.shape in (*_PYTHONS, "returned", "slice") and code != "BS105" and loops.of_backtrace(around):
        return replace(use, shape="backtrace")
    if use.shape == "loop" and code == "BS105":  # over what was found: Python's own work alone, or more
        found = (loops.of_bookkeeping(end.way, ()) for end in becomes.ends(around, callers))
        loop = next(filter(None, found), None)
        return use if loop is None else replace(use, shape="books", taker=_short(loop), line=loop.lineno)
    if use.shape not in _PYTHONS or code == "BS105":
        return use
    if use.shape != "check" and (table := loops.of_tallies(around)):
        return replace(use, shape="tallies", name=table)
    if loops.of_pairs(around):
        return replace(use, shape="pairs")
    if table := loops.of_cells(around):
        return replace(use, shape="cells", name=table)
    ends = becomes.ends(around, callers, is_number=True)
    loop = loops.of_bookkeeping(around, ends, is_given=bool(use.arguments))
    if loop is not None:
        made_of = begins.read_in(loop, around) if use.arguments else ()
        return replace(use, shape="books", taker=_short(loop), line=loop.lineno, arguments=made_of)
    if use.shape != "python" or not in_loop(around):
        return use
    if (kept := listed_on_both_sides(around)) is not None:
        return replace(use, shape="listed twice", name=kept[0], of=kept[1])
    return replace(use, shape="steered")


def _of_place(around: Sequence[ast.AST], code: str, callers: Sequence[Sequence[ast.AST]]) -> Use:
    """What the place in the statement says, and where the value ends."""
    innermost = around[-1] if around else None
    value = _short(innermost)
    if isinstance(innermost, ast.expr) and uses.RANDOM.search(ast.unparse(innermost)):
        decided = [uses.statement(end.way) for end in becomes.ends(around) if end.kind == "test"]
        drops = any(one is not None and leaves_out_layers(one, around) for one in decided)
        asked = tuple(sorted({one.lineno for one in decided if one is not None}))
        return Use("layerdrop" if drops else "random", value, also=asked[:_MOST_ALSO])
    if isinstance(innermost, ast.Slice):
        return Use("slice", value)
    if any(map(chooses_text, around)):
        return Use("choice", value)
    if (taking := _of_number_in_call(innermost)) is not None:
        return Use(taking, value, taker=value)
    if _is_searched(around):
        return Use("search", value)
    ends = becomes.ends(around, callers, is_number=code not in ("", "BS105"))
    if becomes.selects(innermost) and code in ("", "BS105"):
        use = _of_mask(ends, around, value, code)
        return Use("index", value) if use.shape == "selected" and not code and is_index(innermost) else use
    shape, end = _of_ends(ends)
    if code != "BS101" and is_index(innermost) and not (shape == "part" or is_read(around)):
        if any(isinstance(node, ast.Attribute) and node.attr == "tolist" for node in around[-2:-1]):
            return Use("list", value)  # of a piece
        shape = "slice" if has_bounds(innermost) else of_index(around)
        return Use(shape, "" if shape == "placed" else value)
    if code == "BS105" and _is_number_of_different(around):
        return Use("distinct", value)
    if code == "BS105" and shape not in ("loop", "message"):
        over = _gone_over(around)
        return Use("loop" if over else "plain", value, taker=over)  # unique, repeat_interleave: no mask
    if shape in ("plain", "tested pick") and value.endswith(".tolist()"):
        shape = "list"
    use = _ended(shape, end, innermost, value)
    returned = shape != "returned" and any(
        end.kind == "returned" or (end.kind == "arithmetic" and isinstance(end.way[-2], ast.Return))
        for end in ends
    )
    return replace(use, also=_also(ends, use, around), returned=returned)


def _gone_over(around: Sequence[ast.AST]) -> str:
    """The comprehension that goes over what is found, as source: ``for c in y.unique()``; else empty."""
    if len(around) < 2:  # a call, and what it stands in
        return ""
    *_, parent, found = around
    statement, function = uses.statement(around), uses.function(around)
    names = uses.targets(statement) if isinstance(statement, ast.Assign) and statement.value is found else []
    for node in ast.walk(function) if function is not None else ():
        if not isinstance(node, ast.comprehension):
            continue
        if node is parent or (isinstance(node.iter, ast.Name) and node.iter.id in names):
            return f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    return ""


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
    match around[-3:]:
        case [
            ast.Call(args=given),
            ast.Attribute(attr="view" | "reshape" | "unflatten"),
            ast.Subscript(of, chosen),
        ] if given and ast.unparse(given[0]) != "-1":
            return Use("rows", value, taker=_short(around[-3]), of=ast.unparse(of), mask=ast.unparse(chosen))
    if isinstance(around[-1], ast.Call) and _are_pairs(around):
        return Use("edges", value)
    if isinstance(around[-1], ast.Call) and loops.takes_last(around):
        return Use("positions", value, mask=loops.mask_of(around[-1]))
    if isinstance(around[-1], ast.Call) and loops.takes_first(around):
        if any(isinstance(node, ast.Slice) for node in around):
            return Use("bound", value, mask=loops.mask_of(around[-1]))
        return Use("first", value, mask=loops.mask_of(around[-1]))
    use = _of_selection(ends, around, value)
    if code and of_index(around) == "placed":
        return replace(use, shape="stored")
    mask = getattr(around[-1], "slice", None)
    groups = loops.of_groups(around, mask) if use.shape in ("ranked", "reduced") else None
    # What each group gives to another module or by its own number cannot be done for all at once.
    if groups is not None and not re.search(
        rf"\b{re.escape(groups.turn)}\b", use.taker.replace(use.mask, "")
    ):
        return replace(use, shape="group ranked" if use.shape == "ranked" else "group reduced", groups=groups)
    return use


def _are_pairs(around: Sequence[ast.AST]) -> bool:
    """Whether the positions of a matrix are taken apart: ``row, col = adj.nonzero().t()``."""
    statement = uses.statement(around)
    match statement:
        case ast.Assign([ast.Tuple([_, _, *_])], value) if value in around:
            return isinstance(around[-1], ast.Call) and uses.called(around[-1]) in _FINDS
    return False


_FINDS = ("nonzero", "argwhere", "where")


def _ended(shape: Shape, end: End | None, innermost: ast.AST | None, value: str) -> Use:
    """What a value is for, with the names of where it ends."""
    if end is None:
        return Use(shape, value)
    is_here = _line(end) == getattr(innermost, "lineno", 0) and not end.file
    line = 0 if is_here else _line(end)
    return Use(
        shape, value, end.name, _short(end.taker), line, end.gathered, by=end.by, file=end.file * bool(line)
    )


_MOST_ALSO = 3  # further branches that are named


def _line(end: End) -> int:
    return getattr(end.taker, "lineno", 0)


def _also(ends: Sequence[End], use: Use, around: Sequence[ast.AST]) -> tuple[int | str, ...]:
    """The lines of the other branches that a value decides, or where other methods read what is kept."""
    if use.shape == "kept":
        return tuple(sorted(_reads_of_kept(ends, around)))[:_MOST_ALSO]
    if use.shape not in ("branch", "size", "slice", "loop"):
        return ()
    own = use.line or getattr(around[-1], "lineno", 0)
    kinds: tuple[Kind, ...] = ("test", "slice", "size", "pick") if use.shape == "loop" else ("test",)
    others = (end for end in ends if end.kind in kinds and (end.file, _line(end)) != (use.file, own))
    return _lines_of(others, set())


def _lines_of(ends: Iterable[End], others: AbstractSet[int]) -> tuple[int | str, ...]:
    """The lines of ends but for those of others, the first of them: ``7``, ``"12 of utils.py"``."""
    at = {(end.file, _line(end)) for end in ends} - {("", line) for line in (*others, 0)}
    return tuple(line if not file else f"{line} of {file}" for file, line in sorted(at))[:_MOST_ALSO]


def _reads_of_kept(ends: Sequence[End], around: Sequence[ast.AST]) -> set[int]:
    """The other lines of a class that read an attribute in which a number is kept."""
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    names = {end.name for end in ends if end.kind == "kept" and end.name.startswith("self.")}
    methods = [node for node in getattr(owner, "body", ()) if isinstance(node, ast.FunctionDef)]
    own = uses.statement(around)
    return {
        getattr(use[-1], "lineno", 0)
        for method in methods
        for name in names
        for use in uses.uses(method, name)
        if own not in use
    }


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


def _in_greedy_loop(around: Sequence[ast.AST]) -> bool:
    """Whether a loop's turns mark what later ones ask for: ``if taken[i]: continue``, ``taken[i] = True``."""
    for loop in (node for node in around if isinstance(node, ast.For)):
        tests = [node.test for node in ast.walk(loop) if isinstance(node, ast.If)]
        asked = {
            ast.unparse(part.value)
            for test in tests
            for part in ast.walk(test)
            if isinstance(part, ast.Subscript) and becomes.is_tensor(part.value, around)
        }
        for node in ast.walk(loop):
            match node:
                case ast.Assign([ast.Subscript(of)], ast.Constant()) if ast.unparse(of) in asked:
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
    is_noted = any(end.kind == "kept" for end in ends) and all(
        end.kind in ("kept", "message", "raised") or _only_tells(end) for end in ends
    )
    if is_noted and tests:
        return "kept message", tests[0]
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
        if end.kind == "math" and of_statement(end.way) == "check":
            return "checked", end
        # A meter of Python's own, where no tensor is computed with what it keeps.
        keeps = sum(other.kind == "kept" for other in ends) > 1 and not _first(ends, ("arithmetic",))
        return ("given" if keeps else _OF_REST[end.kind]), end
    is_kept = ends and _all(ends, ("kept", "message", "returned"))
    if is_kept and (end := _first(ends, ("kept",))):
        return "kept", end
    if end := _first(ends, ("returned",)):
        return ("returned" if _all(ends, ("returned", "message")) else "plain"), end
    is_kept = ends and _all(ends, ("kept", "message"))
    return ("kept" if is_kept else "plain"), next(iter(ends), None)


def _of_rows(base: ast.expr, parts: Sequence[ast.expr], around: Sequence[ast.AST]) -> tuple[str, str]:
    """What ``x[keep, :]`` and ``x[keep, j]`` select from, and the mask for it; empty of other places."""
    match parts:
        case [chosen, ast.Slice(None, None)]:
            return ast.unparse(base), f"{ast.unparse(chosen)}[..., None]"
        case [*before, chosen] if before and all(map(_is_whole, before)):
            return ast.unparse(base), ast.unparse(chosen)
        case [chosen, other] if isinstance(other, ast.Constant) or ast.unparse(other) in _turns(around):
            return f"{ast.unparse(base)}[:, {ast.unparse(other)}]", ast.unparse(chosen)
    return "", ""


def _is_whole(part: ast.expr) -> bool:
    """Whether an index leaves its dimension, or all before the last, as they are: ``:`` and ``...``."""
    return ast.unparse(part) in (":", "...")


def _turns(around: Sequence[ast.AST]) -> set[str]:
    """The numbers that loops around a place count by."""
    return {
        node.target.id
        for node in around
        if isinstance(node, ast.For)
        and isinstance(node.target, ast.Name)
        and isinstance(node.iter, ast.Call)
        and uses.called(node.iter) == "range"
    }


_OF_POSITIONS = ("max", "min", "amax", "amin", "numel", "len", "size", "any")
_PICKED = ("reduced", "selected", "returned")


def _of_selection(ends: Sequence[End], around: Sequence[ast.AST], value: str) -> Use:
    """What is done with what a mask selects."""
    innermost = around[-1]
    shape, end = _shape_of_selection(ends)
    of = mask = ""
    if shape == "stored" and not _keeps_to_mask(innermost, end):
        shape = "selected"
    if shape == "returned" and any(_is_computed_with(end, around) for end in ends):
        shape = "selected"
    match innermost:
        case ast.Subscript(base, ast.Tuple([chosen, *_])) if shape == "stored" and ast.unparse(chosen) in map(
            ast.unparse, _stored_at(end)
        ):
            of, mask = ast.unparse(base), ast.unparse(chosen)  # it is stored by the mask alone
        case ast.Subscript(base, ast.Tuple([ast.Constant(), chosen])) if shape == "reduced":
            of, mask = ast.unparse(base), ast.unparse(chosen)
        case ast.Subscript(base, ast.Tuple(parts)):
            of, mask = _of_rows(base, parts, around)
        case ast.Subscript(base, chosen) if _short(base) and _short(chosen):
            of, mask = ast.unparse(base), ast.unparse(chosen)
        case ast.Call(ast.Attribute(ast.Name("torch"), "masked_select"), [selected, chosen]) | ast.Call(
            ast.Attribute(selected, "masked_select"), [chosen]
        ):
            of, mask = ast.unparse(selected), ast.unparse(chosen)
        case ast.Call(ast.Attribute(attr="where" | "nonzero"), [asked]) | ast.Call(
            ast.Attribute(asked, "nonzero"), []
        ) if shape in ("counted", "ranked", "tallied", "stored", "returned"):
            mask = ast.unparse(asked)
        case ast.Call() if shape in _PICKED and end is not None and not end.positions:
            mask = loops.mask_of(innermost)  # what they pick goes there, and that under the mask
            shape = "plain" if shape == "selected" and not mask else shape
        case _ if shape in ("selected", "reduced"):
            by = uses.called(end.taker) if end is not None and isinstance(end.taker, ast.Call) else ""
            by = by or getattr(None if end is None else end.taker, "attr", "")
            shape = "positions" if shape == "reduced" and by in _OF_POSITIONS else "plain"
    mask = _of_labels(mask) if shape == "labels" else mask
    made = False
    if shape in ("reduced", "across") and end is not None and not _takes(end, around):
        statement = uses.statement(around)
        is_it = isinstance(statement, ast.Assign) and uses.given(statement, end.name) is innermost
        is_it = is_it or any(part is innermost for part in ast.walk(end.taker or ast.Module([], [])))
        # What is reduced was made of it, or of what was made of it.
        taken = restated.taken(end.taker)
        made = not is_it and re.search(rf"\b{re.escape(end.name or '-')}\b", taken) is not None
        of = restated.reduced(innermost, end.name, end.taker) if is_it else taken if made else end.name
    made = made or (shape == "looked up" and not _is_named(end, around))
    ascending = shape in ("ranked", "across") and end is not None and end.kind == "ranked" and _ascends(end)
    tests = [
        other
        for other in ends
        if shape in ("reduced", "positions") and other.kind == "test" and other.counted
    ]
    use = replace(_ended(shape, end, innermost, value), mask=mask, of=of, made=made, ascending=ascending)
    told: tuple[Kind, ...] = ("message", "raised", "test")
    told += () if shape == "written" else ("returned", "kept")
    too = _lines_of(
        (
            other
            for other in ends
            if other.kind not in told and (other.file, _line(other)) != (use.file, use.line)
        ),
        {getattr(innermost, "lineno", 0)},
    )
    besides = _selected_besides(mask, around) if shape == "reduced" else set()
    return replace(
        use,
        also=_lines_of(tests, set()),
        tests=_lines_of((one for one in ends if one.kind in ("test", "loop test") and one.counted), set()),
        taken_too=too,
        besides=tuple(sorted(besides - {*too}))[:_MOST_ALSO],
    )


def _of_labels(mask: str) -> str:
    """Of a mask that is as wide as the scores that of the rows: ``m`` of ``m.unsqueeze(2).expand_as(x)``."""
    return re.sub(r"\.unsqueeze\(-?\d+\)\.expand(_as)?\([^()]*\)$", "", mask)


def _is_computed_with(end: End, around: Sequence[ast.AST]) -> bool:
    """Whether more is returned than what a mask selects: something that is made of it."""
    if end.kind not in ("returned", "kept"):
        return False
    own = uses.targets(uses.statement(around))
    statement = uses.statement(end.way)
    inside = end.way[end.way.index(statement) :] if statement in end.way else end.way
    is_made = any(isinstance(node, ast.BinOp | ast.Compare) for node in inside)
    return is_made or (bool(own) and end.name != "" and end.name not in own)


def _selected_besides(mask: str, around: Sequence[ast.AST]) -> set[int]:
    """The lines before a selection on which its function sets a name to what the same mask selects."""
    function, line = uses.function(around), getattr(around[-1], "lineno", 0)
    return {
        node.lineno
        for node in (ast.walk(function) if function is not None and mask else ())
        if isinstance(node, ast.Assign)
        and node.lineno < line
        and any(
            isinstance(part, ast.Subscript)
            and isinstance(part.ctx, ast.Load)
            and ast.unparse(part.slice) == mask
            for part in ast.walk(node.value)
        )
    }


def _keeps_to_mask(innermost: ast.AST, end: End | None) -> bool:
    """Whether something is stored where the mask that selected it is set, as far as both say their mask."""
    targets = [ast.unparse(uses.index_parts(place)[0]) for place in _stored_at(end)]
    if not isinstance(innermost, ast.Subscript) or not targets:
        return True
    return ast.unparse(uses.index_parts(innermost.slice)[0]) in targets


def _stored_at(end: End | None) -> list[ast.expr]:
    """The places where an assignment stores a value: ``keep`` of ``y[keep] = …``."""
    statement = None if end is None else uses.statement(end.way)
    targets = (
        [statement.target] if isinstance(statement, ast.AugAssign) else getattr(statement, "targets", ())
    )
    return [
        node.slice
        for target in targets
        for node in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(node, ast.Subscript)
    ]


def _takes(end: End | None, around: Sequence[ast.AST]) -> bool:
    """Whether a value ends where it is read, or under the name that it is given there."""
    if end is None or end.taker is None:
        return False
    statement = uses.statement(around)
    is_named = isinstance(statement, ast.Assign) and uses.given(statement, end.name) is around[-1]
    return any(
        part is around[-1] or (is_named and isinstance(part, ast.Name) and part.id == end.name)
        for part in ast.iter_child_nodes(end.taker)
    )


def _is_named(end: End | None, around: Sequence[ast.AST]) -> bool:
    """Whether what ends there is the selection, or what its statement names it, and not made of that."""
    statement = uses.statement(around)
    if end is None:
        return False
    named = isinstance(statement, ast.Assign) and end.name in uses.targets(statement)
    return named or any(part is around[-1] for part in ast.walk(end.taker or ast.Pass()))


def _ascends(end: End) -> bool:
    """Whether a ranking puts the least first, as ``sort`` does and ``topk`` does not."""
    call = next((node for node in reversed(end.way) if isinstance(node, ast.Call)), None)
    if call is None or uses.called(call) == "searchsorted":
        return False
    says = {one.arg: ast.unparse(one.value) for one in call.keywords}
    if uses.called(call) == "topk":
        return says.get("largest") == "False"
    return says.get("descending", "False") == "False"


def _shape_of_selection(ends: Sequence[End]) -> tuple[Shape, End | None]:
    if end := next((end for end in ends if end.across and end.kind in ("reduced", "ranked")), None):
        return "across", end
    if end := _first(ends, _OF_SELECTION):
        return _OF_SELECTION[end.kind], end
    told: tuple[Kind, ...] = ("reduced", "test", "message", "raised")
    if ends and _all(ends, ("message", "raised")):
        return "message", ends[0]
    if ends and all(end.counted for end in ends) and _all(ends, _TALLIED):
        return "tallied", ends[0]
    values = [end for end in ends if not (end.counted and end.kind in _TALLIED)]  # and no ``len(x[mask])``
    if (end := _first(values, _OF_MASKED)) and _all(values, (*told, *_OF_MASKED)):
        taker = uses.called(end.taker) if isinstance(end.taker, ast.Call) else ""
        if "ctc" in taker:
            return "packed", end
        labels = end.kind == "loss" and re.search(r"(?<!binary_)cross_entropy|nll", taker)
        return "labels" if labels else _OF_MASKED[end.kind], end
    if end := _first(ends, ("test", "loop test", "filter")):
        return ("loop" if end.looped else "counted"), end
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
    if any(map(chooses_text, end.way)):
        return "choice"
    shape = of_statement(end.way) or "branch"
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


def is_drawn(sources: Sources, file: str, position: Position | None) -> bool:
    """Whether a place draws a number with numpy or Python, or computes with one that was drawn."""
    around = [] if position is None else sources.around(file, position)
    if not around or not isinstance(around[-1], ast.expr):
        return False
    if uses.RANDOM.search(ast.unparse(around[-1])):
        return True
    function = uses.function(around)
    part = around[-1].slice if isinstance(around[-1], ast.Subscript) else around[-1]
    used = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
    line = around[-1].lineno
    return isinstance(around[-1], ast.BinOp | ast.Call | ast.Subscript) and any(
        isinstance(node, ast.Assign)
        and (node.lineno < line or in_loop(around))
        and any(_draws(uses.given(node, name)) for name in used & set(uses.targets(node)))
        for node in (ast.walk(function) if function is not None else ())
    )


def _draws(value: ast.expr | None) -> bool:
    return value is not None and uses.RANDOM.match(ast.unparse(value)) is not None
