"""What becomes of a value: from the line that reads it, by its names, to where it ends."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from breakscope.diagnose import kinds, uses
from breakscope.source.walking import walk

Kind = Literal[
    "turns",
    "loop test",
    "turns of values",
    "size",
    "slice",
    "order",
    "bound",
    "seed",
    "part",
    "pick",
    "placed",
    "key",
    "test",
    "asked",
    "filter",
    "step",
    "raised",
    "message",
    "kept",
    "returned",
    "given",
    "passed",
    "math",
    "number",
    "numpy",
    "arithmetic",
    "stacked",
    "reduced",
    "loss",
    "stored",
    "ranked",
    "suppressed",
    "paired",
    "scattered",
    "written",
    "joined",
    "looked up",
    "mixed",
    "constant",
]
"""Where a value ends.

turns: how often a loop runs. loop test: decides whether a ``while`` goes on. turns of values: a loop runs
over what data holds. size: a shape, a length; slice: a bound of one. order: Python sorts by it. bound:
Python's min or max compares it. part: picks what is called. pick: an index; placed: one that says where to
write. key: of a dict or a set. test: decides a branch. filter: what a comprehension keeps. step: is tested
every so many steps. raised: a text of an exception. kept: in a container or an attribute. given: to a call
for its effect; passed: to a call that is not known. math, numpy: to their functions. arithmetic: goes back
into tensors. stacked: its list is made a tensor. constant: torch takes it as a number and no tensor.

Of what a mask selects: reduced, a loss, stored under a mask, ranked by topk or sort, suppressed by NMS,
scattered to where an index says, written: it is the index that says where, joined to others. paired: it
is held against another selection, each with each. looked up: by positions that a ranking gave.
mixed: it is reduced, ranked or a loss where its rows are no longer those that the mask selected.
"""
_State = Literal["number", "list", "selection", "text"]
Along = Literal["first", "last", "unknown"]
_TURNED: dict[Along, Along] = {"first": "last", "last": "first", "unknown": "unknown"}
# What is taken by the row: where rows were moved, no mask on what is taken is that of the selection.
_BY_ROW: tuple[Kind, ...] = ("reduced", "loss", "ranked")
_TRANSPOSES = ("transpose", "swapaxes", "swapdims", "movedim")
_APART = (
    *("repeat", "tile", "expand", "repeat_interleave", "unfold", "take", "flatten", "ravel"),
    *("unique", "unique_consecutive", "cov", "corrcoef", "histc", "histogram", "pdist"),
)
_LAST_BY_DEFAULT = re.compile(r"(diff|sort|argsort|topk|softmax|log_softmax)$")
# What makes of each row something that others decide, along the dimension that is given, or the first.
_ALONG = re.compile(
    r"(cum(sum|prod|max|min)|logcumsumexp|diff|roll|flip(ud)?|softmax|log_softmax|softmin|normalize|sort|argsort"
    r"|index_select|gather|take_along_dim|(batch|instance)_norm|rot90)$"
)
_PRODUCTS = ("matmul", "mm", "bmm")
_PAIRED = ("cdist", "outer", "ger", "linear")  # their second argument's rows become columns
_OF_MODULE = re.compile(r"(torch|np|F|nn|functional)\.[\w.]+")
_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_PASSES = re.compile(
    r"(int|float|bool|complex|abs|round|list|tuple|set|dict|reversed|iter|next|max|min|sum|any|all|f?mean|divmod|pow|str)$"
)
_TENSORS = re.compile(r"(tensor|as_tensor|asarray|Tensor|(Long|Float)Tensor|stack|cat|new_tensor)$")
_PICKS = re.compile(r"(index_select|gather|take|take_along_dim|embedding)$")
_RANKS = re.compile(r"(topk|sort|argsort|kthvalue|msort|searchsorted)$")
_SUPPRESSES = re.compile(r"(batched_)?nms(_\w+)?$|soft_nms")
_JOINS = re.compile(r"(cat|concat|stack|hstack|vstack|pad_sequence|append|extend)$")
_SCATTERS = re.compile(r"(index_add|index_put|index_copy|index_reduce|scatter\w*|bincount|segment\w*)_?$")
_ADDS = re.compile(
    r"\.(index_add|scatter_add|scatter_reduce|index_reduce)_?\(|\bbincount\(|\bsegment|accumulate=True|reduce="
)
_PAIRS = r"(\[[^\]]*\bNone\b[^\]]*\]|\.unsqueeze\([^()]*\))"  # what gives a tensor one more dimension
_FIRST_ELSE = re.compile(r"(quantile|topk|kthvalue|roll|diff|normalize)$")
_LOSSES = re.compile(
    r"loss|criterion|cross_entropy|nll|\bbce|smooth_l1|(?<![a-z])(mse|l1|huber|kl_div|crit)$", re.IGNORECASE
)
_SIZES = ("minlength", "output_size", "num_classes")  # arguments that are sizes, whatever is called
_FILLS = re.compile(r"(full|full_like|new_full)$")  # their second argument is no size
_KEYED = re.compile(r"(get|pop|setdefault|__contains__)$")
_GATHERS = re.compile(r"(append|appendleft|extend|insert|add)$")
# What arithmetic with an argument gives may go where no tensor can be.
_NO_TENSOR: tuple[Kind, ...] = ("turns", "loop test", "size", "slice", "test", "math", "given", "constant")
_DEEP = 6  # names that a value is handed through
_MOST = 40  # ends of one value: what goes to so many places has no advice of its own


# What asks of which kind a tensor is, and for none of its values.
_OF_KIND = (
    *(
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_contiguous",
        "element_size",
        "get_device",
        "data_ptr",
    ),
    *("dtype", "device", "layout", "requires_grad", "is_cuda", "is_leaf", "ndim", "dim", "ndimension"),
)


@dataclass(frozen=True, slots=True)
class End:
    """One place where a value ends.

    Attributes:
        way: from the outside to the node that takes the value; name: of the variable that holds it there.
        taker: the expression or statement that takes it.
        gathered: whether it is one of a list; looped: whether a loop over a list takes them one by one.
        counted: whether it is only how many a mask selects; positions: whether it is where that is set.
        unsure: whether it ends there only if what it was calculated with is no tensor.
        by: functions of Python's that it went through, and that take no tensor.
        across: whether what a mask selects is the last dimension there, and not the first.
        file: the name of the file, where that is another one than what is asked about.
    """

    kind: Kind
    way: tuple[ast.AST, ...]
    name: str = ""
    taker: ast.AST | None = None
    gathered: bool = False
    looped: bool = False
    counted: bool = False
    positions: bool = False
    unsure: bool = False
    by: tuple[str, ...] = ()
    across: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class _Held:
    """What is followed: what kind of thing it is, under which name, and how it came here.

    Attributes:
        slots: its place in the tuples that it is a part of, the outermost last. gathered: whether it is in
            a list of several; varies: whether data says how many. looped: whether a loop takes one by one;
            stepped: whether ``%`` was applied; computed: arithmetic with what may be a tensor. depth: how
            many names it went through. counted: whether it is how many a mask selects;
            positions: whether it is where the mask is set, and not what is there. unsure, by: as of an end.
        along: which dimension of it the mask selects in, as far as that can be told; flat: whether it is
            known to be the only one.
    """

    state: _State
    name: str = ""
    slots: tuple[int, ...] = ()
    gathered: bool = False
    looped: bool = False
    stepped: bool = False
    computed: bool = False
    depth: int = 0
    counted: bool = False
    positions: bool = False
    varies: bool = False
    unsure: bool = False
    along: Along = "first"
    flat: bool = False
    by: tuple[str, ...] = ()


def ends(
    around: Sequence[ast.AST],
    callers: Sequence[Sequence[ast.AST]] = (),
    *,
    is_number: bool = False,
    slot: int | None = None,
) -> list[End]:
    """Where the value of the innermost expression ends, in the order of the source.

    Args:
        around: the nodes that contain the expression, outermost first.
        callers: the same of the calls in compiled code that lead there, the nearest first. Where they are
            exhausted a value that is returned leaves compiled code.
        is_number: whether ``x[i]`` is known to pick one element, where its source might as well select.
        slot: its place in the tuple that the expression gives.
    """
    innermost = around[-1] if around else None
    if not isinstance(innermost, ast.expr):
        return []
    found = _Follow(callers, around[0])
    state = _state(innermost)
    slots = () if slot is None else (slot,)
    if is_number and state == "selection":
        state = "number"
    positions = _gives_positions(innermost)
    found.climb(tuple(around), _Held(state, slots=slots, positions=positions, flat=_is_flat(around)))
    return found.ends


def ends_of(way: Sequence[ast.AST], name: str, *, slot: int | None = None) -> list[End]:
    """Where what a name or an attribute holds ends, wherever the function that is last in a way reads it."""
    found = _Follow((), way[0])
    for use in uses.uses(way[-1], name):
        found.climb((*way[:-1], *use), _Held("number", name, slots=() if slot is None else (slot,)))
    return found.ends


def handed_on(call: ast.Call, given: ast.AST, way: Sequence[ast.AST]) -> tuple[ast.FunctionDef, str] | None:
    """The function, here or in a file that this one imports, that a call gives something; its parameter."""
    function = defined(call, way)
    name = None if function is None else _parameter(function, call, given)
    return None if function is None or name is None else (function, name)


def outside_of(function: ast.AST, way: Sequence[ast.AST]) -> list[ast.AST]:
    """What is around a function: the module, which may be another one, and the class whose method it is."""
    if (outside := getattr(function, "outside", None)) is not None:
        return [*outside]
    owners = (node for node in walk(way[0]) if isinstance(node, ast.ClassDef) and function in node.body)
    function.outside = (way[0], *[*owners][:1])  # type: ignore[attr-defined]
    return [*function.outside]  # type: ignore[attr-defined]


def selects(node: ast.AST | None) -> bool:
    """Whether how many there are of what an expression gives depends on data."""
    match node:
        case ast.Subscript(slice=chosen):
            parts = uses.index_parts(chosen)
            if all(isinstance(part, ast.Constant | ast.Slice) for part in parts):
                return False
            return not uses.READS.search(ast.unparse(node))
        case ast.Call(ast.Attribute(attr="where"), [_]):
            return True
        case ast.Call():
            return uses.called(node) in ("nonzero", "argwhere", "flatnonzero", "masked_select")
        case ast.Attribute(value=value):
            return selects(value)
    return False


def crossed(around: Sequence[ast.AST]) -> tuple[str, str] | None:
    """Of ``x[a][:, b]`` what is selected from, and the mask of both selections; None of others."""
    for node in reversed(around[-2:]):
        match node:
            case ast.Subscript(ast.Subscript(of, rows) as first, ast.Tuple([ast.Slice(None, None), columns])):
                if selects(first) and not isinstance(rows, ast.Tuple) and selects(node):
                    return ast.unparse(of), f"{ast.unparse(rows)}[:, None] & {ast.unparse(columns)}[None, :]"
    return None


def _gives_positions(node: ast.expr) -> bool:
    """Whether it is where a mask is set, and not what is there."""
    return isinstance(node, ast.Call) and uses.called(node) in ("nonzero", "where", "argwhere", "flatnonzero")


def _copies_to_positions(call: ast.Call, way: Sequence[ast.AST]) -> bool:
    """Whether a call copies to where a mask is set: ``y.index_copy_(0, mask.nonzero()[:, 0], v)``."""
    index = call.args[1] if len(call.args) > 1 else None
    values = values_of(index.id, way) if isinstance(index, ast.Name) else [index]
    return any(
        isinstance(node, ast.expr) and _gives_positions(node)
        for value in values
        if value is not None
        for node in ast.walk(value)
    )


def is_mask_made(node: ast.AST, way: Sequence[ast.AST]) -> bool:
    """Whether an index is a mask that is made by a comparison: it selects, and is not selected itself."""
    values = values_of(node.id, way) if isinstance(node, ast.Name) else [node]
    return any(
        isinstance(value, ast.Compare)
        or (isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitAnd | ast.BitOr))
        for value in values
    )


def _state(node: ast.expr) -> _State:
    called = uses.called(node) if isinstance(node, ast.Call) else ""
    if called == "tolist":
        return "list"
    return "selection" if selects(node) or called in uses.FINDS else "number"


def _kind(way: tuple[ast.AST, ...], held: _Held) -> Kind | None:
    """How a statement or an expression takes a value, where its place in it says that."""
    parent, child = way[-2], way[-1]
    match parent:
        case ast.Slice() if held.state != "selection":
            return "slice"
        case ast.While() if child is parent.test and not held.gathered:
            return "loop test"
        # A test of what a mask selects asks for values, whatever their number.
        case ast.If() | ast.IfExp() if child is parent.test and held.state != "selection":
            return "step" if held.stepped else "test"
        case ast.comprehension() if child in parent.ifs:
            return "filter"
        case ast.Lambda() if getattr(way[-3], "arg", None) == "key":
            return "order"
        case ast.Raise():
            return "raised"
        case ast.Assert():
            return "raised" if child is parent.msg else "test"
        # Outside of a branch's test, ``not n`` and ``n or 1`` ask for the value themselves.
        case ast.BoolOp() | ast.UnaryOp(ast.Not()) if held.state == "number" and not _is_last_part(way):
            return None if any(getattr(node, "test", None) in way for node in way) else "test"
        case ast.Dict() if child in parent.keys:
            return "key"
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[among]) if child is not among:
            return "key" if _is_dict(among, way) else None if is_tensor(among, way) else "order"
    return None


def _is_last_part(way: Sequence[ast.AST]) -> bool:
    """Whether it is what an ``and`` or ``or`` gives without asking for it: ``n`` of ``a or n``."""
    return isinstance(way[-2], ast.BoolOp) and way[-1] is way[-2].values[-1]


def _asks_if_empty(way: Sequence[ast.AST], held: _Held) -> bool:
    """Whether it is only asked if a list has anything: ``if not losses:``."""
    parent, child = way[-2], way[-1]
    if not held.gathered or held.state == "selection" or not isinstance(child, ast.Name | ast.Attribute):
        return False
    is_turned = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    is_asked = isinstance(parent, ast.BoolOp) and not _is_last_part(way)
    return is_turned or is_asked or getattr(parent, "test", None) is child


def _part_of(parent: ast.AST, child: ast.AST, held: _Held) -> _Held:
    """A value as a part of an expression that holds or compares it."""
    match parent:
        case ast.Tuple(parts):
            return replace(held, slots=(*held.slots, parts.index(child))) if child in parts else held
        case ast.List() | ast.Set() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return replace(held, gathered=True)
        case ast.JoinedStr() | ast.FormattedValue():
            return replace(held, state="text")
    return held


class _Follow:
    """One value on its ways to its ends."""

    def __init__(self, callers: Sequence[Sequence[ast.AST]], home: ast.AST) -> None:
        self.ends: list[End] = []
        self._home = home
        self._callers = [tuple(caller) for caller in callers]
        self._seen: set[tuple[int, str]] = set()

    def climb(self, way: tuple[ast.AST, ...], held: _Held, level: int = 0) -> None:
        """From a node outwards, until something takes the value or gives it a name."""
        for at in range(len(way) - 1, 0, -1):
            asks = _asks_if_empty(way[: at + 1], held)
            step = None if asks else self._step(way[: at + 1], held, level)
            if step is None:
                return
            held = step

    def _end(self, kind: Kind, way: tuple[ast.AST, ...], held: _Held) -> None:
        if kind in _BY_ROW and (held.along == "unknown" or (kind == "loss" and held.along == "last")):
            if held.positions:
                return
            kind = "mixed"
        gathered = held.gathered or held.state == "list"
        taker = way[-2]
        if kind == "slice":
            taker = next((node for node in reversed(way) if isinstance(node, ast.Subscript)), taker)
        self.ends.append(
            End(
                *(kind, way, held.name, taker, gathered, held.looped, held.counted, held.positions),
                unsure=held.unsure,
                across=held.along == "last",
                by=held.by,
                file="" if way[0] is self._home else getattr(way[0], "file", ""),
            )
        )

    def _step(self, way: tuple[ast.AST, ...], held: _Held, level: int) -> _Held | None:
        """What the parent of a node makes of its value; None where the value ends or is followed by name."""
        parent, child = way[-2], way[-1]
        if (kind := _kind(way, held)) is not None:
            self._end(kind, way, held)
            return None
        match parent:
            case ast.Call():
                return self._call(parent, child, way, held, level)
            case ast.Attribute():
                return self._attribute(parent, way, held)
            case ast.Subscript():
                return self._subscript(parent, child, way, held, level)
            case ast.BinOp() | ast.Compare() if held.state == "selection" and _is_paired(parent, way):
                self._end("paired", way, held)
                return None
            case ast.Compare():
                return self._compared(parent, way, held)
            case ast.BinOp():
                return self._computed(parent, child, way, held, level)
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() | ast.AugAssign():
                return self._assigned(parent, way, held, level)
            case ast.comprehension() | ast.For():
                self._loop(parent, child, way, held, level)
                return None
            case ast.Return() | ast.Yield() | ast.Lambda():
                self._returned(way, held, level)
                return None
            case ast.stmt():
                return None
        return _part_of(parent, child, held)

    # -- what takes a value ----------------------------------------------------------------------------

    def _attribute(self, parent: ast.Attribute, way: tuple[ast.AST, ...], held: _Held) -> _Held | None:
        """A method or an attribute of the value itself."""
        name, is_selected = parent.attr, held.state == "selection"
        if not is_selected and name in _OF_KIND:
            return None
        if is_selected and name in ("shape", "numel", "size"):
            is_count = name == "numel" or _is_first(way[-3])
            return replace(held, state="number", counted=True) if is_count else None
        if is_selected and uses.REDUCES.match(name) and (_is_along(way[-3], held) or _is_last(way)):
            self._end("reduced", way, held)
            return None
        if held.gathered and name == "sort":  # of a list
            self._end("order", way, held)
            return None
        if is_selected and _RANKS.match(name) and _is_along(way[-3], held):
            self._end("ranked", way, held)
            return None
        if is_selected and name != "tolist":
            call = way[-3] if isinstance(way[-3], ast.Call) and way[-3].func is parent else None
            return _moved(held, name, call, call.args if call else [])
        return replace(held, state="list", varies=is_selected) if name == "tolist" else held

    def _call(
        self, call: ast.Call, child: ast.AST, way: tuple[ast.AST, ...], held: _Held, level: int
    ) -> _Held | None:
        name, of = uses.called(call), ast.unparse(call.func)
        is_statement = len(way) > 2 and isinstance(way[-3], ast.Expr)
        if child is call.func:
            return held
        is_selection = held.state == "selection"
        if name in ("len", "isinstance", "type") and not is_selection:
            return None  # asks for no value
        kind = _kind_of_text(call, way)
        is_own = defined(call, way) is not None  # a function of one's own is read, whatever its name
        if kind is None and not is_own:
            kind = (
                _kind_of_selection(call, name, of, held)
                if is_selection
                else _kind_of_call(call, child, way, held)
            )
        if kind == "bound":
            self._end(kind, way, held)
            return held
        if kind == "scattered" and not _ADDS.search(ast.unparse(call)):
            kind = "stored" if held.positions or _copies_to_positions(call, way) else "written"
        if kind is None and (passed := _passed(call, child, held)) is not None:
            return passed
        if kind is None and is_statement and uses.KEEPS.match(name) and not is_own:
            self._gathered(call, child, way, held, level)
            return None
        if kind is None and self._into(call, child, way, held, level):
            return None
        if kind is None and is_selection:
            return self._of_selection(call, child, way, held)
        if kind in ("math", "numpy") and self._is_only_told(way[:-1], held, level):
            return None
        if kind is None and is_statement:
            kind = "arithmetic" if uses.changes_in_place(way[-3]) else "given"  # type: ignore[arg-type]
        self._end(kind or "passed", way, held)
        return None

    def _of_selection(
        self, call: ast.Call, child: ast.AST, way: tuple[ast.AST, ...], held: _Held
    ) -> _Held | None:
        """What a call that nothing more is known of makes of what a mask selected."""
        if uses.called(call) in (*_PRODUCTS, *_PAIRED) and _are_selected(call.args, way):
            self._end("paired", way, held)
            return None
        return _given_along(call, child, held)

    def _gathered(
        self, call: ast.Call, child: ast.AST, way: tuple[ast.AST, ...], held: _Held, level: int
    ) -> None:
        """``losses.append(x.item())``: what becomes of the list."""
        holder, name = _receiver(call), uses.called(call)
        is_set = name == "add" and not is_tensor(holder, way)
        if is_set and held.state != "selection":
            self._end("key", way, held)
            return
        before = len(self.ends)
        if holder is not None and _GATHERS.match(name) and isinstance(holder, ast.Name | ast.Attribute):
            self._name(ast.unparse(holder), way, replace(held, gathered=True), level)
        if held.state == "selection" and holder is not None and _is_joined_across(ast.unparse(holder), way):
            return  # row stays with row, and what becomes of them is too far away to be told
        # A list that belongs to an object is read later, whatever this function does with it.
        if len(self.ends) == before:
            # What an object adds, a set or a meter, is no list of its items.
            listed = name != "add" or held.state != "selection"
            is_list = (bool(_GATHERS.match(name)) and listed) or child not in call.args
            kept: Kind = "joined" if held.state == "selection" else "kept"
            is_kept = is_list or name in ("update", "put", "record", "push", "insert")
            self._end(kept if is_kept else "given", way, held)

    def _subscript(
        self, parent: ast.Subscript, child: ast.AST, way: tuple[ast.AST, ...], held: _Held, level: int
    ) -> _Held | None:
        if child is parent.value and held.slots and not held.gathered:
            is_other = isinstance(parent.slice, ast.Constant) and parent.slice.value != held.slots[-1]
            return None if is_other else replace(held, slots=held.slots[:-1])
        is_part = held.state == "selection" and uses.is_by_dimension(child)  # ``torch.where(mask)[0]``
        if child is parent.value and held.state == "selection" and _is_one(parent.slice) and not is_part:
            return replace(held, state="number")  # ``mask.nonzero()[0, 0]``
        if child is parent.value and held.state == "selection" and _is_ranked(parent.slice, way):
            self._end("looked up", way, held)
            return None
        if child is parent.value:
            is_apart = held.state == "selection" and not is_part and not _keeps_rows(parent.slice)
            along = "unknown" if is_apart else held.along
            gathered = held.gathered and isinstance(parent.slice, ast.Slice)
            flat = held.flat and not isinstance(parent.slice, ast.Tuple)
            return replace(held, gathered=gathered, along=along, flat=flat)
        if held.state == "selection":
            if not isinstance(parent.ctx, ast.Store):
                return replace(held, positions=False)
            # Positions are where it is stored; of a selection itself a mask is made first, or it is an index.
            if held.positions:
                self._end("stored", way, held)
            elif not is_mask_made(child, way):
                self._end("written", way, held)
            return None
        if held.state == "list":
            self._end("pick", way, held)
            return None
        kind = _kind_of_index(parent, way, held)
        if kind == "pick" and not is_tensor(parent.value, way):
            self._needed_as_number(way[:-1], held, level, ("key",))  # ``cache[names[i]]``
        self._end(kind, way, held)
        return None

    def _computed(
        self, parent: ast.BinOp, child: ast.AST, way: tuple[ast.AST, ...], held: _Held, level: int
    ) -> _Held | None:
        other = parent.right if child is parent.left else parent.left
        if held.state == "selection" and isinstance(parent.op, ast.MatMult):
            if child is parent.left and held.along == "last":
                self._end("reduced", way, replace(held, along="first"))  # ``x[keep].T @ y``
                return None
            if _are_selected([parent.left, parent.right], way):
                self._end("paired", way, held)
                return None
            return replace(held, along="unknown") if child is parent.right and held.along == "first" else held
        if held.state == "selection":
            return held
        if isinstance(parent.op, ast.Mult) and isinstance(other, ast.List):
            self._end("size", way, held)  # ``[0] * n``
            return None
        if (
            isinstance(parent.op, ast.Mod)
            and isinstance(other, ast.Constant)
            and isinstance(other.value, str)
        ):
            return replace(held, state="text")
        is_step = isinstance(parent.op, ast.Mod) and child is parent.left
        if is_tensor(other, way):
            self._end("arithmetic", way, held)
            if isinstance(other, ast.Name) and not values_of(other.id, way):
                held = replace(held, stepped=held.stepped or is_step)
                self._needed_as_number(way[:-1], held, level)  # an argument may be a number as well
            return None
        is_number = isinstance(other, ast.Constant | ast.List) or re.search(
            r"\.shape\b|\.numel\(|\blen\(", ast.unparse(other)
        )
        return replace(held, stepped=held.stepped or is_step, computed=held.computed or not is_number)

    def _compared(self, parent: ast.Compare, way: tuple[ast.AST, ...], held: _Held) -> _Held | None:
        match parent:
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(None)]):
                return None  # asks for no value
        if held.state == "number" and _gives_mask(parent, way):
            self._end("arithmetic", way, held)
            return None
        # Where a tensor is held against it, the branch asks for the tensor's value.
        others = [one for one in (parent.left, *parent.comparators) if one is not way[-1]]
        others = [one for one in others if not isinstance(one, ast.Name) or values_of(one.id, way)]
        return replace(held, unsure=held.unsure or any(is_tensor(one, way) for one in others))

    def _needed_as_number(
        self, way: tuple[ast.AST, ...], held: _Held, level: int, kinds: Sequence[Kind] = _NO_TENSOR
    ) -> None:
        """Go on with what an operation gives, and keep of its ends those that no tensor can be."""
        before = len(self.ends)
        unsure = held.unsure or kinds is _NO_TENSOR
        self.climb(way, replace(held, computed=True, unsure=unsure), level)
        self.ends[before:] = [end for end in self.ends[before:] if end.kind in kinds]

    def _is_only_told(self, way: tuple[ast.AST, ...], held: _Held, level: int) -> bool:
        """Whether what a function of numbers gives only goes into messages: those are its ends then.

        Else its ends are that function, and those that need a number of what it gives.
        """
        before, seen = len(self.ends), set(self._seen)
        self.climb(way, replace(held, computed=True), level)
        if self.ends[before:] and all(end.kind in ("message", "raised") for end in self.ends[before:]):
            return True
        del self.ends[before:]
        self._seen = seen
        # What only asks for a number, as isnan does, is told with the branch by what it is.
        asks = isinstance(way[-1], ast.Call) and uses.called(way[-1]).startswith("is")
        needs: tuple[Kind, ...] = ("turns", "loop test", "size", "slice", "constant")
        self._needed_as_number(way, held, level, needs if asks else (*needs, "test"))
        return False

    # -- where a value goes on under a name ------------------------------------------------------------

    def _assigned(
        self,
        parent: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign,
        way: tuple[ast.AST, ...],
        held: _Held,
        level: int,
    ) -> _Held | None:
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if way[-1] in targets or (isinstance(parent, ast.AugAssign) and way[-1] is parent.target):
            return None  # ``x[mask] = y`` breaks at its target
        is_added = isinstance(parent, ast.AugAssign) and held.state == "number"
        if is_added and is_tensor(targets[0], way):
            self._end("arithmetic", way, held)
            return None
        for target in targets:
            self._target(target, way, held, level)
        return held if isinstance(parent, ast.NamedExpr) else None

    def _target(self, target: ast.expr, way: tuple[ast.AST, ...], held: _Held, level: int) -> None:
        match target:
            case ast.Name(name):
                before = len(self.ends)
                self._name(name, way, held, level)
                if len(self.ends) == before and isinstance(way[-1], ast.Dict | ast.List):
                    self._end("kept", way, held)
            case ast.Tuple(parts) | ast.List(parts):
                kept = [part for at, part in enumerate(parts) if not _is_inverse(way[-1], at)]
                for part in parts[held.slots[-1] : held.slots[-1] + 1] if held.slots else kept:
                    self._target(part, way, replace(held, slots=held.slots[:-1]), level)
            case ast.Attribute():
                self._end("kept", way, replace(held, name=ast.unparse(target)))
                self._name(ast.unparse(target), way, held, level)
            case ast.Subscript(value=ast.Name(name)) if _is_made(name, way):
                self._name(name, way, replace(held, gathered=True, slots=()), level)
                self._end("kept", way, held)
            case ast.Subscript():
                # ``out[:n] = x[mask]`` moves what it selects together: no torch.where does that.
                slices = [node for node in ast.walk(target.slice) if isinstance(node, ast.Slice)]
                moves = any(one.lower or one.upper for one in slices)
                is_masked = held.state == "selection" and not isinstance(target.slice, ast.Constant)
                self._end(("joined" if moves else "stored") if is_masked else "kept", way, held)
                if isinstance(target.slice, ast.Constant) and held.state == "number":
                    self._name(ast.unparse(target), way, held, level)  # ``self.info["n"]``, read again below

    def _name(self, name: str, way: tuple[ast.AST, ...], held: _Held, level: int) -> None:
        """Every place after this one where a name is read."""
        function = _function(way)
        statement = uses.statement(way)
        if function is None or statement is None or held.depth >= _DEEP or len(self.ends) >= _MOST:
            return
        key = id(function), f"{name} {held.state} {held.gathered} {statement.lineno}"
        if key in self._seen:
            return
        self._seen.add(key)
        held = replace(held, name=name, depth=held.depth + 1)
        outside = way[: way.index(function)]
        first, last = _live(statement, name, way)
        for use in uses.uses(function, name):
            line = getattr(use[-1], "lineno", 0)
            is_own = statement in use and not _is_body(statement, use)
            is_own |= any(name in _turns(node) for node in use if statement not in use)
            if first <= line <= last and not is_own:
                self.climb((*outside, *use), held, level)

    def _loop(
        self,
        parent: ast.For | ast.comprehension,
        child: ast.AST,
        way: tuple[ast.AST, ...],
        held: _Held,
        level: int,
    ) -> None:
        """What a loop runs over: its turns, and what it does with each."""
        if child is not parent.iter:
            return
        if held.state == "selection":
            before = len(self.ends)
            if held.gathered:  # a list of selections has as many as were put into it
                self._target_of_loop(parent, way, replace(held, gathered=False), level)
            elif isinstance(parent, ast.comprehension):
                self.climb(way[:-2], replace(held, gathered=True), level)
            if len(self.ends) == before and not held.gathered:
                self._end("turns of values", way, held)
        elif held.state == "list" or held.gathered:
            if held.varies:
                self._end("turns of values", way, held)
            self._target_of_loop(
                parent, way, replace(held, state="number", gathered=False, looped=True), level
            )

    def _target_of_loop(
        self, parent: ast.For | ast.comprehension, way: tuple[ast.AST, ...], held: _Held, level: int
    ) -> None:
        whole = way[:-2] if isinstance(parent, ast.comprehension) else way[:-1]
        target, slots = parent.target, held.slots
        while isinstance(target, ast.Tuple) and slots and slots[-1] < len(target.elts):
            target, slots = target.elts[slots[-1]], slots[:-1]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        inner = replace(held, slots=slots, depth=held.depth + 1)
        for name in names if inner.depth < _DEEP else ():
            if isinstance(name, ast.Name):
                for use in uses.uses(whole[-1], name.id):
                    self.climb((*whole[:-1], *use), replace(inner, name=name.id), level)

    def _returned(self, way: tuple[ast.AST, ...], held: _Held, level: int) -> None:
        """Out of a function: to the line in compiled code that called it, or out of compiled code."""
        if isinstance(way[-2], ast.Lambda):
            self._end("passed", way, held)  # to whoever calls it
        elif level == len(self._callers):
            self._end("arithmetic" if held.computed and held.state != "selection" else "returned", way, held)
        elif self._callers[level]:
            self.climb(self._callers[level], replace(held, name=""), level + 1)
        else:
            self._end("passed", way, held)  # which call it is was not to be told

    def _into(
        self, call: ast.Call, child: ast.AST, way: tuple[ast.AST, ...], held: _Held, level: int
    ) -> bool:
        """Into a function whose source is known: what it does with that parameter."""
        if held.depth >= _DEEP or len(self.ends) >= _MOST:
            return False
        handed = handed_on(call, child, way)
        if handed is None:
            return False
        function, name = handed
        before = len(self.ends)
        inner = _Follow([way[:-1], *self._callers[level:]], self._home)
        inner._seen = self._seen
        outside = outside_of(function, way)
        for use in uses.uses(function, name):
            inner.climb((*outside, *use), replace(held, name=name, depth=held.depth + 2))
        self.ends += inner.ends
        return len(self.ends) > before


def _parameter(function: ast.FunctionDef, call: ast.Call, given: ast.AST) -> str | None:
    """The parameter that takes what a call gives by place or by name."""
    if isinstance(given, ast.keyword):
        return given.arg
    names = [arg.arg for arg in function.args.args]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["ctx"]):
        names = names[1:]
    place = call.args.index(given) if given in call.args else len(names)
    return names[place] if place < len(names) else None


def _kind_of_text(call: ast.Call, way: Sequence[ast.AST]) -> Kind | None:
    """Of a call that writes a text, or makes an exception of it."""
    if len(way) > 2 and isinstance(way[-3], ast.Expr) and uses.is_message(way[-3]):
        return "message"
    of = ast.unparse(call.func)
    is_raised = of in ("sys.exit", "exit", "quit") or of.endswith(("Error", "Exception"))
    return "raised" if is_raised else None


def _kind_of_selection(call: ast.Call, name: str, of: str, held: _Held) -> Kind | None:
    """How a call takes what a mask selects."""
    keeps_each = any(one.arg == "reduction" and ast.unparse(one.value) == "'none'" for one in call.keywords)
    rows: tuple[tuple[Kind, bool], ...] = (
        ("suppressed", _SUPPRESSES.search(name) is not None),
        ("ranked", _RANKS.match(name) is not None),
        ("loss", _LOSSES.search(of) is not None and not keeps_each),
        ("scattered", _SCATTERS.match(name) is not None),
        ("reduced", name != "len" and uses.REDUCES.match(name) is not None and _is_along(call, held)),
        ("joined", _JOINS.match(name) is not None and not uses.KEEPS.match(name) and _is_whole(call)),
    )
    return next((kind for kind, holds in rows if holds), None)


def _kind_of_call(call: ast.Call, child: ast.AST, way: Sequence[ast.AST], held: _Held) -> Kind | None:
    """How a call takes a number, a text or a list of numbers."""
    name, of = uses.called(call), ast.unparse(call.func)
    is_method = isinstance(call.func, ast.Attribute)
    several = held.gathered or held.state == "list"
    is_filled = _FILLS.match(name) is not None and child in call.args[1:]
    bounds = of in ("min", "max") and len(call.args) > 1
    is_bound = name in ("linspace", "logspace") and child in call.args[:2]
    is_summed = held.gathered and uses.REDUCES.match(name) is not None
    rows: tuple[tuple[Kind, bool], ...] = (
        ("seed", name.endswith(("seed", "seed_all"))),
        ("turns", name == "range" and _is_looped(way)),
        ("order", uses.ORDERS.match(name) is not None or (is_method and name == "index")),
        ("order", several and of in ("min", "max") and any(one.arg == "key" for one in call.keywords)),
        ("bound", bounds),
        ("math", of.startswith(("math.", "cmath."))),
        # torch.stack takes no numbers: what it is given was computed with one, and is a tensor.
        ("stacked", several and _TENSORS.match(name) is not None and name not in ("stack", "cat")),
        ("constant", takes_number(call, child)),
        ("arithmetic", _TENSORS.match(name) is not None or is_filled),
        ("slice", name == "slice"),
        (
            "size",
            (uses.NUMBERS.match(name) is not None and not is_bound) or getattr(child, "arg", None) in _SIZES,
        ),
        ("numpy", of.startswith(("np.", "numpy.")) and not is_summed),
        ("given", _is_of_library(of, way)),
        ("given", name == "pop" and not _is_dict(_receiver(call) or call, way)),
        ("key", is_method and _KEYED.match(name) is not None and child in call.args[:1]),
        ("arithmetic", re.match(r"(torch|F|nn)\.", of) is not None),
        ("arithmetic", not uses.KEEPS.match(name) and is_tensor(_receiver(call), way)),
    )
    return next((kind for kind, holds in rows if holds), None)


def _kind_of_index(parent: ast.Subscript, way: Sequence[ast.AST], held: _Held) -> Kind:
    """How an index takes a number or a text."""
    if len(way) > 2 and isinstance(way[-3], ast.Call) and way[-3].func is parent:
        return "part"
    if held.state == "text" or _is_dict(parent.value, way):
        return "key"
    statement = uses.statement(way)
    changes = isinstance(statement, ast.AugAssign) and statement.target in way
    return "placed" if changes or isinstance(parent.ctx, ast.Store) else "pick"


# Arguments of torch's functions that are numbers and no tensors, by the function, or by their own names. The
# first take one that capture_scalar_outputs has made a symbol.
_SYMBOLIC = (
    "leaky_relu|elu|celu|hardtanh|threshold|hardshrink|softshrink|softplus|full_like|new_full|scalar_tensor"
    "|histc"
)
TAKES_SYMBOLS = re.compile(rf"({_SYMBOLIC})$")
_AS_NUMBERS = re.compile(
    rf"({_SYMBOLIC}|dropout\d?d?|alpha_dropout|nan_to_num|layer_norm|rms_norm|group_norm|batch_norm|instance_norm"
    r"|smooth_l1_loss|huber_loss|cosine_similarity|margin_ranking_loss|triplet_margin_loss|norm|renorm|cdist"
    r"|isclose|allclose|uniform_|normal_|exponential_|geometric_|log_normal_|cauchy_|logit|std|var)$"
)
_NUMBER_NAMES = re.compile(
    r"(alpha|margin|label_smoothing|eps|rtol|atol|dropout_p|scale|correction|momentum|beta|delta|nan|posinf|neginf"
    r"|negative_slope|scale_factor|p|lambd)$"
)


def takes_number(call: ast.Call, child: ast.AST) -> bool:
    """Whether a call of torch's takes what it is given as a number of Python's, where a tensor is none."""
    name, of = uses.called(call), ast.unparse(call.func)
    is_function = _OF_MODULE.fullmatch(of) is not None
    if isinstance(child, ast.keyword):
        is_one = _NUMBER_NAMES.match(child.arg or "") is not None
        is_one = is_one and not (child.arg == "alpha" and re.fullmatch(r"(add|sub)_?", name))
        return is_one and (is_function or isinstance(call.func, ast.Attribute))
    if name == "pad":
        return child in call.args[3:]
    # Of a method the tensor is no argument.
    first = 0 if name == "scalar_tensor" or not is_function else 1
    return _AS_NUMBERS.match(name) is not None and child in call.args[first:]


_HANDS_ON = ("copy", "functools", "itertools", "operator")  # what their functions are given they give back


def _is_of_library(of: str, way: Sequence[ast.AST]) -> bool:
    """Whether a call is one of Python's own library, by a module that the file imports: ``json.dumps``."""
    module, _, name = of.partition(".")
    if not name or module not in sys.stdlib_module_names or module in _HANDS_ON:
        return False
    imports = [one for one in ast.walk(way[0]) if isinstance(one, ast.Import)]
    return any((alias.asname or alias.name) == module for one in imports for alias in one.names)


def _passed(call: ast.Call, child: ast.AST, held: _Held) -> _Held | None:
    """What a call gives that hands a value on; None of other calls."""
    name = uses.called(call)
    if name in ("enumerate", "zip"):
        place = 1 if name == "enumerate" else call.args.index(child) if child in call.args else 0
        return replace(held, slots=(*held.slots, place))
    if held.state == "selection":
        if name == "len":
            return replace(held, state="number", counted=True)
        return replace(held, state="number") if name in ("int", "float", "bool") else None
    if held.state == "text":
        return held if name in ("join", "format", "str") else None
    several = held.gathered or held.state == "list"
    if several and uses.REDUCES.match(name):
        return replace(held, state="number", gathered=False)
    is_plain = not isinstance(call.func, ast.Attribute) and _PASSES.match(name)
    if not is_plain:
        return None
    by = (*held.by, name) if name in ("round", "divmod", "pow") else held.by
    return held if name in ("list", "tuple", "set", "reversed") else replace(held, state="number", by=by)


def _receiver(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _function(way: Sequence[ast.AST]) -> ast.AST | None:
    """The function around a place; a module where it is in none."""
    return next((node for node in reversed(way) if isinstance(node, (*_FUNCTIONS, ast.Module))), None)


def _turns(node: ast.AST) -> set[str]:
    """The names that a comprehension counts by, which are its own."""
    targets = [one.target for one in getattr(node, "generators", ())]
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _is_body(statement: ast.stmt, use: Sequence[ast.AST]) -> bool:
    """Whether a use is in the body of a statement, and not in what it evaluates itself."""
    at = use.index(statement)
    return isinstance(statement, ast.For | ast.While | ast.If | ast.With) and isinstance(
        use[at + 1], ast.stmt
    )


def _live(statement: ast.stmt, name: str, way: Sequence[ast.AST]) -> tuple[int, int]:
    """The lines on which a name that a statement sets may still hold what it set."""
    loops = [node for node in way if isinstance(node, _LOOPS)]
    function = _function(way)
    loops = loops if function is None else [one for one in loops if way.index(one) > way.index(function)]
    first = statement.lineno
    for loop in reversed(loops):  # a loop carries a value on, unless it sets the name anew first
        if _sets_anew(loop, name, way):
            break
        first = loop.lineno
    block = next(
        (
            part
            for node in way
            for part in (getattr(node, "body", None), getattr(node, "orelse", None))
            if isinstance(part, list) and statement in part
        ),
        [],
    )
    after = block[block.index(statement) + 1 :] if statement in block else []
    again = next((one for one in after if name in uses.targets(one)), None)
    if again is None:
        return first, 1 << 30
    return statement.lineno, again.end_lineno or again.lineno


def _sets_anew(loop: ast.For | ast.While, name: str, way: Sequence[ast.AST]) -> bool:
    """Whether a loop gives a name another value in each turn, before it comes to a place in it."""
    if isinstance(loop, ast.For) and name in {
        part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)
    }:
        return True
    before = takewhile(lambda one: one not in way, loop.body)
    return any(name in uses.targets(one) and not _reads(one, name) for one in before)


def _reads(statement: ast.stmt, name: str) -> bool:
    return any(True for _ in uses.uses(statement, name))


def _gives_mask(parent: ast.Compare, way: Sequence[ast.AST]) -> bool:
    """Whether a number is held against a tensor, and that decides no branch: ``mask = x >= n``."""
    decides = any(
        isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert | ast.comprehension)
        for node in way[-5:-2]
    )
    return not decides and any(
        is_tensor(one, way) for one in (parent.left, *parent.comparators) if one is not way[-1]
    )


def _is_last(way: Sequence[ast.AST]) -> bool:
    """Whether the last dimension is selected and reduced at once: ``x[..., keep].mean(-1)``."""
    match way[-1], way[-3]:
        case (
            ast.Subscript(slice=ast.Tuple([ast.Constant(ellipsis_), _])),
            ast.Call(args=[ast.UnaryOp(ast.USub(), ast.Constant(1))]),
        ):
            return ellipsis_ is ...
    return False


def _is_inverse(call: ast.AST, at: int) -> bool:
    """Whether it is the part of what ``unique`` gives that has the input's size."""
    return (
        at == 1 and isinstance(call, ast.Call) and any(one.arg == "return_inverse" for one in call.keywords)
    )


def _is_flat(around: Sequence[ast.AST]) -> bool:
    """Whether what a mask selects is known to have one dimension."""
    match around[-1]:
        case ast.Subscript(of, chosen):
            ranks = kinds.rank(of, around), kinds.rank(chosen, around)
            return ranks[0] is not None and ranks[0] == ranks[1]
    return False


def _moved(held: _Held, name: str, call: ast.Call | None, given: Sequence[ast.expr]) -> _Held:
    """What a method, an attribute or a function of the same name makes of what a mask selected."""
    first, dimension = ast.unparse(given[0]) if given else "", _axis(call, held)
    if held.positions and name in ("flatten", "ravel", "view", "reshape"):
        return held
    if name in ("t", "T", "H") or (name in _TRANSPOSES and {*map(ast.unparse, given)} == {"0", "1"}):
        return replace(held, along=_TURNED[held.along])
    stays = {
        "mT": False,
        "mH": False,
        "permute": first == "0",
        "unsqueeze": first != "0",
        # ``view(-1, 4)`` and ``view(len(x), 2, 2)``, and not ``view(2, -1)``
        "view": not _is_reshaped(first, len(given)),
        "reshape": not _is_reshaped(first, len(given)),
    }
    is_apart = name in _APART or (name == "roll" and not dimension)
    # Where another one goes, the last dimension may be the first.
    is_apart |= held.along == "last" and (uses.REDUCES.match(name) or _RANKS.match(name)) is not None
    own = ("1", "-1", "(1,)", "(-1,)") if held.along == "last" else ("0", "(0,)", "[0]")
    is_apart |= _ALONG.match(name) is not None and dimension in own
    is_apart |= name in _TRANSPOSES and ("0" in map(ast.unparse, given) or first.startswith("-"))
    along = held.along if stays.get(name, not is_apart) else "unknown"
    return replace(held, along=along, flat=held.flat and name not in stays)


def _is_reshaped(first: str, sizes: int) -> bool:
    """Whether ``view`` and ``reshape`` surely make other rows: ``view(2, -1)`` and ``view(-1)``."""
    return first.strip("(").split(",")[0].isdecimal() or (first == "-1" and sizes == 1)


def _given_along(call: ast.Call, child: ast.AST, held: _Held) -> _Held:
    """What a call makes of what a mask selected: a module as many as it is given."""
    name = uses.called(call)
    # What positions pick is no position.
    positions = held.positions and not _PICKS.match(name)
    held = replace(held, positions=positions, gathered=held.gathered and not _JOINS.match(name))
    is_method = not _is_function(call)
    place = is_method + (call.args.index(child) if child in call.args else 0)
    if name in _PRODUCTS:
        kept = held.along == ("last" if place == 1 else "first")
        return replace(held, along=held.along if kept else "unknown", flat=False)
    if name in _PAIRED and place == 1:
        return replace(held, along="last" if held.along == "first" else "unknown", flat=False)
    if name in ("einsum", "kron"):
        return replace(held, along="unknown")
    return _moved(held, name, call, call.args[1:]) if place == 0 and not is_method else held


def _keeps_rows(chosen: ast.expr) -> bool:
    """Whether an index of what a mask selects leaves its first dimension."""
    first = uses.index_parts(chosen)[0]
    match first:
        case ast.Slice(None, None) | ast.Constant(value=ast.Constant()):
            return True
        case ast.Constant(value):
            return value is ...
    return False


def _is_ranked(chosen: ast.expr, way: Sequence[ast.AST]) -> bool:
    """Whether an index is what a ranking gave: ``top`` of ``top = scores.topk(2).indices``."""
    first = uses.index_parts(chosen)[0]
    values = values_of(first.id, way) if isinstance(first, ast.Name) else [first]
    calls = (node for value in values for node in ast.walk(value) if isinstance(node, ast.Call))
    return any(
        _RANKS.match(name := uses.called(one))
        or name in ("argmax", "argmin")
        or (name in ("max", "min") and _dimension(one) != "")  # and where that is
        for one in calls
    )


def _is_one(chosen: ast.expr) -> bool:
    """Whether an index of numbers alone takes one element, as far as the source says."""
    parts = uses.index_parts(chosen)
    return all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in parts)


def _is_first(taken: ast.AST) -> bool:
    """Whether it is the first dimension that is asked for, or all: how many a mask selects is no other."""
    match taken:
        case ast.Subscript(slice=ast.Constant(at)) | ast.Call(args=[ast.Constant(at)]):
            return at == 0
        case ast.Subscript(slice=ast.UnaryOp()) | ast.Call(args=[ast.UnaryOp()]):
            return False
    return True


def _is_whole(call: ast.AST) -> bool:
    """Whether a reduction, or a join, goes along the dimension in which a mask selects: the first, or all."""
    return _dimension(call) in ("", "0")


def _dimension(call: ast.AST) -> str:
    """Along which dimension a reduction, a ranking or a join goes; empty where it says none."""
    if not isinstance(call, ast.Call):
        return ""
    # The tensor comes first, and which one or how many before the dimension.
    first = _is_function(call) + (_FIRST_ELSE.search(uses.called(call)) is not None)
    given = [one.value for one in call.keywords if one.arg in ("dim", "axis")] + call.args[first:]
    return ast.unparse(given[0]) if given else ""


def _is_function(call: ast.Call) -> bool:
    """Whether what is called is given its tensor: by its name, or a function of torch's or numpy's."""
    return isinstance(call.func, ast.Name) or _OF_MODULE.fullmatch(ast.unparse(call.func)) is not None


def _axis(call: ast.AST | None, held: _Held) -> str:
    """The dimension that a call names, which is the first where there is but one."""
    named = "" if call is None else _dimension(call)
    said = isinstance(call, ast.Call) and _LAST_BY_DEFAULT.match(uses.called(call)) is not None
    return "0" if held.flat and (named == "-1" or (said and not named)) else named


def _is_along(call: ast.AST, held: _Held) -> bool:
    """Whether a reduction or a ranking goes along the dimension in which a mask selects."""
    return _axis(call, held) in (("", "1", "-1") if held.along == "last" else ("", "0"))


def _is_joined_across(name: str, way: Sequence[ast.AST]) -> bool:
    """Whether the items of a list are joined along another dimension than that in which a mask selects."""
    calls = (node for node in ast.walk(_function(way) or way[0]) if isinstance(node, ast.Call))
    joins = [one for one in calls if _JOINS.match(uses.called(one)) and one.args[:1]]
    return any(ast.unparse(one.args[0]) == name and not _is_whole(one) for one in joins)


def _is_paired(parent: ast.BinOp | ast.Compare, way: Sequence[ast.AST]) -> bool:
    """Whether a selection is held against another one of its function, each with each: ``a[:, None] > b``.

    What one mask selected stays row with row where one side only gets a dimension: ``a[:, None] * b``.
    """
    names = {node.id for node in ast.walk(parent) if isinstance(node, ast.Name)}
    selected = {name: [one for one in values_of(name, way) if selects(one)] for name in names}
    masks = {_mask(one) for values in selected.values() for one in values}
    text = ast.unparse(parent)
    several = [name for name in names if selected[name]]
    spread = [one for name in several for one in re.findall(rf"(?<![\w.]){name}{_PAIRS}", text)]
    # Of one mask the rows meet unless one side has its new dimension in front of them: ``a[None]``.
    in_front = {re.match(r"\[None|\.unsqueeze\((dim=)?0\)", one) is not None for one in spread}
    if len(several) == 1:  # itself: ``a[:, None] - a``
        times = len(re.findall(rf"(?<![\w.]){several[0]}\b(?!\.)", text))
        return len(in_front) > 1 or 0 < len(spread) < times
    return len(several) > 1 and len(spread) > 0 and (len(masks) > 1 or len(in_front) > 1)


def _are_selected(parts: Sequence[ast.expr], way: Sequence[ast.AST]) -> bool:
    """Whether two operands are made of what masks select."""
    names = ({node.id for node in ast.walk(part) if isinstance(node, ast.Name)} for part in parts)
    return sum(any(selects(value) for one in those for value in values_of(one, way)) for those in names) > 1


def _mask(selection: ast.expr) -> str:
    """What selects, as source."""
    match selection:
        case ast.Subscript(slice=chosen):
            return ast.unparse(chosen)
        case ast.Call(args=[*_, mask]):
            return ast.unparse(mask)
    return ast.unparse(selection)


def _is_looped(way: Sequence[ast.AST]) -> bool:
    """Whether the call at hand is what a loop runs over."""
    at = len(way) - 2
    while at > 0 and isinstance(way[at - 1], ast.Call):
        at -= 1  # enumerate(range(n))
    loop = way[at - 1]
    return isinstance(loop, ast.For | ast.comprehension) and way[at] is loop.iter


def values_of(name: str, way: Sequence[ast.AST]) -> list[ast.expr]:
    """What is assigned to a name in its function, or to an attribute in its class."""
    scope: ast.AST | None = _function(way)
    if name.startswith("self."):
        scope = next((node for node in reversed(way) if isinstance(node, ast.ClassDef)), scope)
    return [] if scope is None else _assigned_in(scope).get(name, [])


def _assigned_in(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What a function or a class assigns to each name; read once."""
    held: dict[str, list[ast.expr]] | None = getattr(scope, "assigned", None)
    if held is None:
        held = {}
        for node in walk(scope):
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            for name in (*uses.targets(node), *_of_tuple(node)):
                value = uses.given(node, name)
                if value is not None:
                    held.setdefault(name, []).append(value)
        scope.assigned = held  # type: ignore[attr-defined]
    return held


def _of_tuple(node: ast.AST) -> list[str]:
    """The attributes and items among the parts of a tuple that a statement sets."""
    match node:
        case ast.Assign([ast.Tuple(parts)], _):
            return [ast.unparse(part) for part in parts if not isinstance(part, ast.Name)]
    return []


def _items(name: str, way: Sequence[ast.AST]) -> list[ast.expr]:
    """What loops take a name from, one by one: of a tensor that is a tensor."""
    function = _function(way)
    return [] if function is None else _gone_over_in(function).get(name, [])


def _gone_over_in(function: ast.AST) -> dict[str, list[ast.expr]]:
    held: dict[str, list[ast.expr]] | None = getattr(function, "gone_over", None)
    if held is None:
        held = {}
        for node in ast.walk(function):
            match node:
                case ast.For(ast.Name(turn), over) | ast.comprehension(ast.Name(turn), over):
                    held.setdefault(turn, []).append(over)
                case ast.For(ast.Tuple([_, ast.Name(turn)]), ast.Call(ast.Name("enumerate"), [over])):
                    held.setdefault(turn, []).append(over)
        function.gone_over = held  # type: ignore[attr-defined]
    return held


def _is_made(name: str, way: Sequence[ast.AST]) -> bool:
    """Whether a name is a dict or a list that the function itself begins empty."""
    return any(ast.unparse(value) in ("{}", "[]", "dict()", "list()") for value in values_of(name, way))


def _is_dict(node: ast.expr, way: Sequence[ast.AST]) -> bool:
    """Whether an expression is a dict or a set of Python's, by what it was or what was assigned to it."""
    if (seen := kinds.of(node, way)) is not None:
        return seen in ("dict", "set", "defaultdict", "Counter", "OrderedDict", "frozenset")
    values = values_of(ast.unparse(node), way) if isinstance(node, ast.Name | ast.Attribute) else [node]
    return any(
        isinstance(value, ast.Dict | ast.DictComp | ast.Set | ast.SetComp)
        or (
            isinstance(value, ast.Call)
            and uses.called(value) in ("dict", "set", "defaultdict", "Counter", "OrderedDict")
        )
        for value in values
    )


def is_list(node: ast.expr, way: Sequence[ast.AST]) -> bool:
    """Whether an expression is a list of Python's or of modules, by what it was or was assigned to it."""
    if (seen := kinds.of(node, way)) is not None:
        return seen.split()[0] in ("list", "ModuleList", "ParameterList")
    values = values_of(ast.unparse(node), way) if isinstance(node, ast.Name | ast.Attribute) else [node]
    return any(
        isinstance(value.left if isinstance(value, ast.BinOp) else value, ast.List | ast.ListComp)
        or (isinstance(value, ast.Call) and uses.called(value) in _LISTS)
        for value in values
    )


_LISTS = ("list", "ModuleList", "ParameterList", "tolist")

# Methods that nothing of Python's own has.
OF_TENSORS_ALONE = ("sum", "mean", "any", "all", "abs", "norm", "argmax", "softmax", "sigmoid", "detach")
_OF_NUMBERS = re.compile(r"\b(item|len|size|numel|dim|range|perf_counter|time)$|^(int|float|bool)$")


def _is_given(name: str, way: Sequence[ast.AST]) -> bool:
    """Whether a name is an argument that may well be a tensor: no default, no other type."""
    function = _function(way)
    if not isinstance(function, ast.FunctionDef):
        return False
    args = function.args.args[: len(function.args.args) - len(function.args.defaults)]
    given = {arg.arg: arg.annotation for arg in args if arg.arg not in ("self", "cls")}
    annotation = given.get(name)
    return name in given and (annotation is None or "Tensor" in ast.unparse(annotation))


_MAKES_TENSOR = re.compile(
    r"(torch\.)?(nn\.)?(Parameter|Buffer)\(|torch\.((zeros|ones|empty|full|rand|randn)(_like)?|tensor|arange|eye)\("
)


def is_tensor(node: ast.AST | None, way: Sequence[ast.AST], asked: set[str] | None = None) -> bool:
    """Whether an expression is surely a tensor: an argument, or what operations on tensors gave.

    Args:
        asked: names that were asked already, which ends circles; others are added.
    """
    asked = set() if asked is None else asked
    if isinstance(node, ast.Name) and _is_listed(node.id, way):
        return False
    seen = None if node is None else kinds.is_tensor(node, way)
    return _reads_as_tensor(node, way, asked) if seen is None else seen


def _is_listed(name: str, way: Sequence[ast.AST]) -> bool:
    """Whether a tensor's name goes on as the list of its numbers: ``size = size.tolist()``."""
    calls = (value for value in values_of(name, way) if isinstance(value, ast.Call))
    return any(uses.called(one) == "tolist" and ast.unparse(one) == f"{name}.tolist()" for one in calls)


def _reads_as_tensor(node: ast.AST | None, way: Sequence[ast.AST], asked: set[str]) -> bool:
    """Whether source alone says that an expression is a tensor."""
    match node:
        case ast.Name(name) if name not in asked:
            asked.add(name)
            values = [value for value in (*values_of(name, way), *_items(name, way)) if value not in way]
            return any(is_tensor(one, way, asked) for one in values) or _is_given(name, way)
        case ast.Compare(left, [sign, *_], others):
            is_bool = isinstance(sign, ast.Is | ast.IsNot | ast.In | ast.NotIn)
            return not is_bool and any(is_tensor(one, way, asked) for one in (left, *others))
        case ast.BinOp(left, _, right) | ast.IfExp(_, left, right):
            return is_tensor(left, way, asked) or is_tensor(right, way, asked)
        case ast.UnaryOp(_, operand):
            return is_tensor(operand, way, asked)
        case ast.Subscript(value=value):
            return not (isinstance(value, ast.Attribute) and value.attr == "shape") and is_tensor(
                value, way, asked
            )
        case ast.Attribute(value=value, attr=attr):
            if attr in ("T", "mT", "data", "grad"):
                return is_tensor(value, way, asked)
            return ast.unparse(node) not in asked and _keeps_tensor(node, way, asked)
        case ast.Call(func):
            of = ast.unparse(func)
            if of.startswith(("torch.", "F.")):
                return True
            if of.startswith("self.") and "(" not in of and defined(node, way) is None:
                return any(is_tensor(one, way, asked) for one in node.args)  # a module
            if _OF_NUMBERS.search(of) or not isinstance(func, ast.Attribute):
                return False
            by_dimension = any(one.arg in ("dim", "keepdim") for one in node.keywords)
            return by_dimension or func.attr in OF_TENSORS_ALONE or is_tensor(func.value, way, asked)
    return False


def _keeps_tensor(node: ast.Attribute, way: Sequence[ast.AST], asked: set[str]) -> bool:
    """Whether an attribute is given a tensor, or registered as a buffer, anywhere in its class."""
    name = ast.unparse(node)
    asked.add(name)
    values = values_of(name, way)
    if any(_MAKES_TENSOR.match(ast.unparse(value)) for value in values):
        return True
    made = next((one for one in reversed(way) if isinstance(one, ast.ClassDef)), None)
    if made is None or not name.startswith("self."):
        return False
    registers = (
        one for one in ast.walk(made) if isinstance(one, ast.Call) and uses.called(one) == "register_buffer"
    )
    if any([*map(ast.unparse, one.args[:1])] == [repr(node.attr)] for one in registers):
        return True
    # What one method sets another one reads: the names in its value are those of that method.
    ways = [(*way[: way.index(made) + 1], one) for one in made.body if isinstance(one, ast.FunctionDef)]
    return any(
        is_tensor(value, [*inside], asked)
        for inside in ways
        for value in values
        if not isinstance(value, ast.Name) and any(part is value for part in ast.walk(inside[-1]))
    )


def is_array(node: ast.AST | None, way: Sequence[ast.AST], depth: int = 0) -> bool:
    """Whether an expression is surely an array of numpy's, or a part of one."""
    if isinstance(node, ast.Name | ast.Attribute) and (seen := kinds.of(node, way)) is not None:
        return seen.startswith("numpy")
    match node:
        case ast.Call(func, given):
            of = ast.unparse(func)
            made = of.startswith(("np.", "numpy.")) and not of.endswith(("random", "seed"))
            made |= isinstance(func, ast.Attribute) and func.attr == "numpy" and not given
            return made or (isinstance(func, ast.Attribute) and is_array(func.value, way, depth))
        case ast.Subscript(value=value):
            return is_array(value, way, depth)
        case ast.BinOp(left, _, right) | ast.Compare(left, _, [right]):
            return is_array(left, way, depth) or is_array(right, way, depth)
        case ast.Name() | ast.Attribute() if depth < _DEEP:
            return any(is_array(value, way, depth + 1) for value in values_of(ast.unparse(node), way))
    return False


def defined(call: ast.Call, way: Sequence[ast.AST]) -> ast.FunctionDef | None:
    """The function that a call names: by its name, as a method of self, or ``Fn.apply``.

    Of a module that an object keeps, ``self.head(x)``, it is the ``forward`` of the module's class. What is
    of another file, which this one imports, has what is around it as ``outside``.
    """
    scopes: Sequence[ast.Module | ast.FunctionDef | ast.ClassDef]
    match call.func:
        case ast.Name(name):
            scopes = [node for node in way if isinstance(node, ast.Module | ast.FunctionDef)]
        case ast.Attribute(ast.Name("self"), name):
            scopes = [node for node in way if isinstance(node, ast.ClassDef)]
            if kept := _class_of(name, way):
                scopes, name = [kept], "forward"
        case ast.Attribute(ast.Attribute(ast.Name("self"), of), name):
            scopes = [kept] if (kept := _class_of(of, way)) else []
        case ast.Attribute(ast.Name(of), "apply"):
            outside = [node for node in way if isinstance(node, ast.Module | ast.FunctionDef)]
            within = [one for node in outside for one in node.body if isinstance(one, ast.ClassDef)]
            scopes = [one for one in within if one.name == of]
            name = "forward"
        case ast.Attribute(ast.Name() | ast.Attribute() as holder, name):
            if (other := _of_other_file(call.func, way)) is not None:
                return other
            scopes = [kept] if (kept := _class_of_held(holder, way)) else []
        case _:
            return None
    found = next(
        (
            node
            for scope in reversed(scopes)
            for node in scope.body
            if isinstance(node, ast.FunctionDef) and node.name == name
        ),
        None,
    )
    return _of_other_file(call.func, way) if found is None and isinstance(call.func, ast.Name) else found


def _of_other_file(called: ast.expr, way: Sequence[ast.AST]) -> ast.FunctionDef | None:
    """The function of another file that a name, ``f`` or ``utils.f``, is imported from."""
    found = _elsewhere(ast.unparse(called), way)
    return found if isinstance(found, ast.FunctionDef) else None


def _elsewhere(name: str, way: Sequence[ast.AST]) -> ast.FunctionDef | ast.ClassDef | None:
    """What a file imports from another one under a name that no function around gives another value."""
    look, first = getattr(way[0], "elsewhere", None), name.partition(".")[0]
    inside = (node for node in way if isinstance(node, ast.FunctionDef))
    if look is None or any(first in uses.parameters(one) for one in inside):
        return None
    found = look(name)
    if found is None:
        return None
    module, node = found
    if isinstance(node, ast.FunctionDef):
        node.outside = (module,)  # type: ignore[attr-defined]
    for method in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef):
            method.outside = (module, node)  # type: ignore[attr-defined]
    return node if isinstance(node, ast.FunctionDef | ast.ClassDef) else None


def _class_of(attribute: str, way: Sequence[ast.AST]) -> ast.ClassDef | None:
    """The class of which an object keeps an instance: of ``self.head = Head(8)``."""
    return _made_by(values_of(f"self.{attribute}", way), way)


def _class_of_held(holder: ast.Name | ast.Attribute, way: Sequence[ast.AST]) -> ast.ClassDef | None:
    """The class of what a name was seen to hold; where nothing was seen, of which the file makes it."""
    if (seen := kinds.of(holder, way)) is not None:
        return _class_called(seen, way)
    name, function = ast.unparse(holder), _function(way)
    if not isinstance(function, ast.FunctionDef) or name in uses.parameters(function):
        return None
    values = values_of(name, way) or [
        value
        for node in getattr(way[0], "body", ())
        if isinstance(node, ast.Assign | ast.AnnAssign) and (value := uses.given(node, name)) is not None
    ]
    return _made_by(values, way)


def _made_by(values: Sequence[ast.expr], way: Sequence[ast.AST]) -> ast.ClassDef | None:
    """The one class of which all of some values are made: of ``Head(8)``."""
    names = {ast.unparse(value.func) if isinstance(value, ast.Call) else "" for value in values}
    return _class_called(names.pop(), way) if len(names) == 1 else None


def _class_called(name: str, way: Sequence[ast.AST]) -> ast.ClassDef | None:
    """A class of the file, or one that it imports."""
    classes = (node for node in getattr(way[0], "body", ()) if isinstance(node, ast.ClassDef))
    found = next((node for node in classes if node.name == name), None) or (name and _elsewhere(name, way))
    return found if isinstance(found, ast.ClassDef) else None
