"""Sizes that torch reads from data although the code knows them: ``one_hot`` and ``repeat_interleave``."""

from __future__ import annotations

import ast

from breakscope.fix.def_use import is_only_value
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site
from breakscope.inside.record.evidence import Seen
from breakscope.source.dominance import block_of, enclosing_statement
from breakscope.source.names import builtin, dotted, name_parts, reads_of
from breakscope.source.syntax import shown
from breakscope.source.torch_facts import RANDOM, is_in_place

SCALARS = "capture_scalar_outputs"
_CASTS = {"float", "double", "half", "bfloat16", "long", "int", "to", "type", "type_as"}
_PRODUCTS = {"torch.matmul", "torch.mm"}
_OUT_OF_RANGE = "compiled by Inductor, a class that is out of range may not raise"


class KnownSize(Rule):
    """``F.one_hot(i).float() @ w`` -> ``F.one_hot(i, num_classes=w.size(-2)).float() @ w``."""

    name = "known-size"
    codes = ("BS105",)
    title = "a size that the code knows, instead of one that is read from data"
    does = (
        "`F.one_hot(i)` gets `num_classes`, `repeat_interleave` `output_size`: written repeats, or their sum"
    )
    asks = "unless it is of an `arange`"
    before = ("capture-flag",)
    after = ("mask-to-where",)
    needs = (
        "one_hot is taken of an arange, which fixes the classes.",
        "Or, with consent: it is the left factor of a matrix product, which raised for any other number.",
        "Or, with consent: there were as many classes in every recorded call, of two at least.",
        "The repeats of repeat_interleave are written in the call, or a vector under a name: then their sum.",
    )
    hazards = (
        "With a given number of classes the result keeps its width where the largest class is absent.",
        "Where the matrix product raised because the largest class was absent, it now computes.",
        "A wrong output_size reads memory that nothing filled on CUDA: none is taken from a recorded run.",
    )
    rewritten = Example(
        """\
def f(i, w):
    return F.one_hot(i).float() @ w
""",
        """\
def f(i, w):
    return F.one_hot(i, num_classes=w.size(-2)).float() @ w
""",
        calls=("torch.tensor([0, 4, 2]), torch.randn(5, 3)", "torch.tensor([4, 1]), torch.randn(5, 3)"),
        consent=True,
    )
    left_alone = Example(
        """\
def f(i):
    return F.one_hot(i).float() * 2
""",
        why="one call had 5 classes, which says nothing about the next",
        calls=("torch.tensor([0, 4, 2])",),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the call at the site."""
        call = _call_at(site)
        if call is None:
            return None
        name = dotted(site, call.func)
        if name in ("torch.nn.functional.one_hot", "torch._C._nn.one_hot"):
            return _one_hot(site, call)
        return _repeated(site, call, method=name != "torch.repeat_interleave")


def _call_at(site: Site) -> ast.Call | None:
    """The call at the site that gives something of a size that data decides."""
    for node in site.around():
        if isinstance(node, ast.Call):
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = dotted(site, node.func)
            if name in ("torch.nn.functional.one_hot", "torch.repeat_interleave"):
                return node
            if method == "repeat_interleave" and name is None:
                return node
    return None


# -- one_hot -------------------------------------------------------------------------------------------------


def _one_hot(site: Site, call: ast.Call) -> Rewrite | Refusal | None:
    if len(call.args) + len(call.keywords) != 1 or any(keyword.arg != "input" for keyword in call.keywords):
        return None
    index = call.args[0] if call.args else call.keywords[0].value
    if isinstance(index, ast.Starred):
        return None
    counted = _counted(site, index)
    if counted is not None:
        return _classes(site, call, counted)
    factor = _factor(site, call)
    if factor is not None:
        text = site.text(factor)
        notes = (
            f"where the largest class of `{text}` was absent the product raised, and now computes",
            _OUT_OF_RANGE,
        )
        return _classes(site, call, f"{text}.size({-2 if _dims(site, factor) != 1 else 0})", notes=notes)
    return _observed(site, call)


def _classes(site: Site, call: ast.Call, text: str, notes: tuple[str, ...] = ()) -> Rewrite:
    return Rewrite(
        edits=(_argument(site, call, f"num_classes={text}"),),
        summary="one_hot with the number of classes",
        notes=notes,
        consent=bool(notes),
    )


def _argument(site: Site, call: ast.Call, text: str) -> Edit:
    """One more keyword argument, the last; a comment or a comma behind the others stays."""
    parts = [*call.args, *(keyword.value for keyword in call.keywords)]
    end = max(site.offsets(part)[1] for part in parts)
    stop = site.offsets(call)[1] - 1
    # Brackets around the last argument belong to it.
    behind = site.source[end:stop]
    closing = len(behind) - len(behind.lstrip(") \t")) if behind.lstrip(" \t").startswith(")") else 0
    end += len(behind[:closing].rstrip())
    return Edit(end, end, f", {text}")


def _counted(site: Site, index: ast.expr) -> str | None:
    """``n`` of ``torch.arange(n)``, as source that may be evaluated twice."""
    if not isinstance(index, ast.Call) or dotted(site, index.func) != "torch.arange" or len(index.args) != 1:
        return None
    if any(keyword.arg not in ("device", "dtype") for keyword in index.keywords):
        return None
    count = index.args[0]
    if isinstance(count, ast.Constant):
        return site.text(count) if type(count.value) is int else None
    seen = site.seen(count)
    if seen is None or not seen.only("int") or not _plain(site, count):
        return None
    return shown(site, count, None)


def _plain(site: Site, node: ast.expr) -> bool:
    """Whether an integer can be evaluated twice: names, sizes, lengths, and sums and products of them."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.BinOp):
        operands = (node.left, node.right)
        return isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and all(
            _plain(site, operand) for operand in operands
        )
    if isinstance(node, ast.Subscript):
        held = node.value
        return isinstance(held, ast.Attribute) and held.attr == "shape" and _is_tensor(site, held.value)
    if isinstance(node, ast.Call) and not node.keywords and all(_plain(site, arg) for arg in node.args):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel", "dim"):
            return _is_tensor(site, node.func.value)
        return len(node.args) == 1 and builtin(site, node.func) == "len"
    return False


def _is_tensor(site: Site, node: ast.expr) -> bool:
    """Whether a name, or an attribute that is stored and no property, is a tensor."""
    seen = _stored(site, node)
    return seen is not None and seen.only("tensor")


def _stored(site: Site, node: ast.expr) -> Seen | None:
    if not name_parts(node):
        return None
    entry = site.seen_before(enclosing_statement(site, node))
    return entry.get(ast.unparse(node))


def _dims(site: Site, node: ast.expr) -> int | None:
    seen = _stored(site, node)
    if seen is None or not seen.only("tensor"):
        return None
    dims = {len(shape) for shape in seen.shapes}
    return dims.pop() if len(dims) == 1 else None


def _factor(site: Site, call: ast.Call) -> ast.expr | None:
    """The right factor of the matrix product that the one-hot result certainly is the left factor of."""
    node: ast.expr = call
    while True:
        parent = site.parents[node]
        cast = site.parents[parent] if isinstance(parent, ast.Attribute) else None
        if not isinstance(parent, ast.Attribute) or parent.attr not in _CASTS:
            break
        if not isinstance(cast, ast.Call) or cast.func is not parent:
            return None
        node = cast
    parent = site.parents[node]
    if (
        isinstance(parent, ast.Assign)
        and len(parent.targets) == 1
        and isinstance(parent.targets[0], ast.Name)
    ):
        read = _only_read(site, parent, parent.targets[0].id)
        if read is None:
            return None
        node, parent = read, site.parents[read]
    factor: ast.expr | None = None
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.MatMult) and parent.left is node:
        factor = parent.right
    elif isinstance(parent, ast.Call) and dotted(site, parent.func) in _PRODUCTS and not parent.keywords:
        factor = parent.args[1] if len(parent.args) == 2 and parent.args[0] is node else None
    if factor is None or not isinstance(factor, ast.Name | ast.Attribute) or not _dims(site, factor):
        return None
    same = enclosing_statement(site, factor) is enclosing_statement(site, call)
    # Named before the product: the factor must be there already, and be the same.
    return factor if same or _settled(site, call, factor) else None


def _only_read(site: Site, statement: ast.Assign, name: str) -> ast.Name | None:
    """The only read of a name, in a statement of the same block further down."""
    reads = reads_of(site, name)
    if len(reads) != 1 or not is_only_value(site, name):
        return None
    block, index = block_of(site, statement)
    below = enclosing_statement(site, reads[0])
    simple = isinstance(below, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.AugAssign)
    return reads[0] if simple and any(one is below for one in block[index + 1 :]) else None


def _settled(site: Site, call: ast.Call, factor: ast.expr) -> bool:
    """Whether a factor that a later statement reads is there, unchanged, when the call is made."""
    first, last = enclosing_statement(site, call), enclosing_statement(site, factor)
    block, index = block_of(site, first)
    between = block[index : next(i for i, one in enumerate(block) if one is last)]
    if isinstance(factor, ast.Attribute):
        return len(between) == 1  # a call in between could give the attribute another value
    assert isinstance(factor, ast.Name)
    return all(
        isinstance(one, ast.Assign) and not any(node.id == factor.id for node in _stores(one))
        for one in between
    )


def _stores(statement: ast.stmt) -> list[ast.Name]:
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [node for node in names if not isinstance(node.ctx, ast.Load)]


def _observed(site: Site, call: ast.Call) -> Rewrite | Refusal:
    """With consent: the number of classes that every recorded call had."""
    seen = site.seen(call)
    widths = {shape[-1] for shape in seen.shapes if shape} if seen is not None else set[int]()
    if seen is None or not widths:
        return Refusal("how many classes there are was not seen: pass num_classes")
    shown = ", ".join(str(one) for one in sorted(widths)[:4])
    if len(widths) > 1:
        return Refusal(
            f"how many classes there are depends on the data ({shown} in the recorded run): pass the number "
            "that there can be at most as num_classes, if wider results are right"
        )
    if seen.count < 2:
        return Refusal(f"one call had {shown} classes, which says nothing about the next: pass num_classes")
    width = widths.pop()
    return Rewrite(
        edits=(_argument(site, call, f"num_classes={width}"),),
        summary=f"one_hot with the {width} classes of every recorded call",
        notes=(
            f"the result always has {width} classes, also where the largest is absent; a larger one raises",
            _OUT_OF_RANGE,
        ),
        assumes=(f"there are {width} classes, as in each of the {seen.count} recorded calls",),
        consent=True,
    )


# -- repeat_interleave ---------------------------------------------------------------------------------------


def _repeated(site: Site, call: ast.Call, *, method: bool) -> Rewrite | None:
    """``output_size`` of repeats that are written as a list of numbers."""
    if any(keyword.arg not in ("repeats", "dim", "input") for keyword in call.keywords):
        return None
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    place = 0 if method else 1
    named = [keyword.value for keyword in call.keywords if keyword.arg == "repeats"]
    repeats = named[0] if named else call.args[place] if len(call.args) > place else None
    if method:
        assert isinstance(call.func, ast.Attribute)
        seen = site.seen(call.func.value)
        if seen is None or not seen.only("tensor"):
            return None
    total = _total(site, repeats)
    if total is None:
        repeated = None if method or not call.args else call.args[0]
        return _summed(site, call, repeated, repeats)
    return Rewrite(
        edits=(_argument(site, call, f"output_size={total}"),),
        summary="repeat_interleave with the size of its result",
    )


def _summed(
    site: Site, call: ast.Call, repeated: ast.expr | None, repeats: ast.expr | None
) -> Rewrite | None:
    """``output_size`` as the sum of a vector's repeats: a number that comes from data, and no shape.

    ``expand_as``, because repeats of one element stand for as many as there are to repeat.
    """
    if not isinstance(repeats, ast.Name) or not _is_tensor(site, repeats) or _dims(site, repeats) != 1:
        return None
    seen = None if repeated is None else site.seen(repeated)
    if repeated is None or seen is None or not seen.only("tensor"):
        return None
    if {len(shape) for shape in seen.shapes} != {1} or not _only_computes(site, repeated):
        return None
    text = f"{repeats.id}.expand_as({site.text(repeated)}).sum().item()"
    return Rewrite(
        edits=(_argument(site, call, f"output_size={text}"),),
        summary="repeat_interleave with the sum of its repeats",
        notes=(f"the setting {SCALARS} holds for everything that the program compiles",),
        config={SCALARS: True},
    )


def _only_computes(site: Site, node: ast.expr) -> bool:
    """Whether an expression may be evaluated twice: functions and methods of tensors that write nothing."""
    for one in ast.walk(node):
        if isinstance(
            one, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.comprehension
        ):
            return False
        if not isinstance(one, ast.Call):
            continue
        full = dotted(site, one.func)
        name = one.func.attr if isinstance(one.func, ast.Attribute) else ""
        of_tensor = isinstance(one.func, ast.Attribute) and site.is_tensor(one.func.value)
        of_torch = full is not None and full.startswith(("torch.", "torch._C."))
        if is_in_place(name) or name in RANDOM or not (of_tensor or of_torch):
            return False
        if any(keyword.arg in (None, "out", "inplace") for keyword in one.keywords):
            return False
    return True


def _total(site: Site, repeats: ast.expr | None) -> int | None:
    """The sum of ``torch.tensor([1, 2])``. A single number would be repeated for every row."""
    if not isinstance(repeats, ast.Call) or dotted(site, repeats.func) != "torch.tensor":
        return None
    if len(repeats.args) != 1 or any(keyword.arg not in ("device", "dtype") for keyword in repeats.keywords):
        return None
    numbers = repeats.args[0]
    if not isinstance(numbers, ast.List | ast.Tuple) or len(numbers.elts) < 2:
        return None
    found: list[int] = []
    for elt in numbers.elts:
        if not isinstance(elt, ast.Constant) or type(elt.value) is not int:
            return None
        found.append(elt.value)
    return sum(found)
