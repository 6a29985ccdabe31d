"""A function in which numpy fills an array: compiled code calls it as an operator of the array's shape."""

from __future__ import annotations

import ast
import zlib
from dataclasses import dataclass

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin, dotted, names_in, new_name, own_nodes, parameters, stores
from breakscope.source.syntax import shown

_FILLED = {"numpy.zeros": 1, "numpy.ones": 1, "numpy.empty": 1, "numpy.full": 2}
_DTYPES = {
    "bool": "bool", "numpy.bool_": "bool", "numpy.bool": "bool", "numpy.int64": "int64",
    "numpy.int32": "int32", "numpy.int16": "int16", "numpy.int8": "int8", "numpy.uint8": "uint8",
}  # fmt: skip
_SCHEMA = {"int": "SymInt", "float": "float", "bool": "bool", "str": "str"}
_PURE = {
    "int", "float", "bool", "len", "range", "max", "min", "sum", "abs", "round", "enumerate", "zip", "list",
    "tuple", "sorted", "reversed", "all", "any", "isinstance", "set", "dict",
}  # fmt: skip
_METHODS = {
    "detach", "cpu", "numpy", "sum", "tolist", "item", "size", "dim", "max", "min", "any", "all", "astype",
    "copy", "reshape", "mean", "long", "bool", "nonzero", "cumsum", "argmax", "argmin", "flatten",
}  # fmt: skip
_COPIES = {"tolist", "item", "sum", "mean", "any", "all", "copy", "cumsum", "argmax", "argmin", "size", "dim"}
_NUMBERS = {"int", "float", "bool", "len", "range"}
_MORE = (
    ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.With, ast.Import, ast.ImportFrom,
    ast.Delete, ast.Try, ast.NamedExpr, ast.Lambda, ast.ClassDef, ast.Match,
)  # fmt: skip
_TUPLES = {"builtins.tuple", "torch.Size"}
_OUTSIDE = {"seed", "set_state", "seterr", "save", "savez", "savetxt", "load", "fromfile", "set_printoptions"}
_INTO = {"put", "place", "putmask", "put_along_axis", "copyto", "fill_diagonal", "shuffle"}


class NumpyOperator(Rule):
    """``def spans(shape): …`` -> the same, called by compiled code through an operator of its own."""

    name = "numpy-operator"
    codes = ("BS127", "BS110", "BS102")
    title = "a function that numpy computes is an operator in compiled code"
    does = "a function that fills an array of `np.zeros(shape)` is called as an operator in compiled code"
    before = ("custom-op",)
    needs = (
        "The function stands at the top of its module, and gives one array of np.zeros, ones, full or empty.",
        "The array is of integers or bools, and its sizes are parameters, or parts of one.",
        "The parameters are numbers, texts, tuples of integers, and tensors.",
        "It calls numpy, builtins, its own inner functions, and methods that only read.",
    )
    hazards = (
        "The operator runs the function itself, in every call, in order: numpy draws the same numbers.",
        "In a compiled graph the array is a tensor, as it is after a break.",
    )
    rewritten = Example(
        '''\
import numpy as np
import torch


def spans(shape, lengths):
    """Where there is something."""
    rows, length = shape
    mask = np.zeros((rows, length), dtype=bool)
    for row, kept in enumerate(lengths.tolist()):
        mask[row, :kept] = True
    return mask


def f(x, lengths):
    mask = torch.tensor(spans((x.shape[0], x.shape[1]), lengths), device=x.device)
    return x.masked_fill(~mask, 0.0)
''',
        '''\
import numpy as np
import torch


def spans(shape, lengths):
    """Where there is something."""
    if torch.compiler.is_compiling():
        return _spans_compiled(shape, lengths)
    rows, length = shape
    mask = np.zeros((rows, length), dtype=bool)
    for row, kept in enumerate(lengths.tolist()):
        mask[row, :kept] = True
    return mask


@torch.library.custom_op(
    "numpy_functions::spans_de6263fb",
    mutates_args=("order",),
    schema="(Tensor(a!) order, SymInt[] shape, Tensor? lengths) -> Tensor",
)
def _spans_operator(order, shape, lengths):
    # Written into order, so that no compiler merges, moves or leaves out a call.
    return torch.from_numpy(spans(tuple(shape), lengths))


@_spans_operator.register_fake
def _spans_fake(order, shape, lengths):
    rows, length = shape
    return torch.empty((rows, length), dtype=torch.bool)


def _spans_compiled(shape, lengths, order=torch.zeros((), device="cpu")):
    return _spans_operator(order, shape, lengths).numpy()


def f(x, lengths):
    mask = torch.tensor(spans((x.shape[0], x.shape[1]), lengths), device=x.device)
    return x.masked_fill(~mask, 0.0)
''',
        calls=("torch.randn(2, 4), T([1, 3])", "torch.randn(3, 5), T([5, 0, 2])"),
    )
    left_alone = Example(
        '''\
import numpy as np
import torch


def spans(shape, lengths):
    """Where there is something."""
    rows, length = shape
    mask = np.zeros((rows, max(lengths.tolist())), dtype=bool)
    for row, kept in enumerate(lengths.tolist()):
        mask[row, :kept] = True
    return mask


def f(x, lengths):
    mask = torch.tensor(spans((x.shape[0], x.shape[1]), lengths), device=x.device)
    return mask
''',
        why="the size `max(lengths.tolist())` is no parameter",
        calls=("torch.randn(2, 4), T([1, 3])", "torch.randn(3, 5), T([5, 0, 2])"),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Give the function at the site an operator."""
        made = _made(site)
        if made is None:
            return None
        if site.parents[site.function] is not site.tree:
            raise Unsafe("the function stands inside of a class or of another function")
        if site.function.decorator_list or isinstance(site.function, ast.AsyncFunctionDef):
            raise Unsafe("the function is decorated")
        dtype = _dtype(site, made)
        unpacked = _sizes(site, made)
        _without_effects(site)
        given = [_parameter(site, name, unpacked) for name in _plain_parameters(site)]
        return _rewrite(site, made, dtype, unpacked, given)


@dataclass(frozen=True, slots=True)
class _Given:
    """A parameter as the operator has it."""

    name: str
    kind: str
    passed: str


def _made(site: Site) -> ast.Call | None:
    """The ``np.zeros(…)`` that gives what the function returns; None if it returns something else."""
    returns = [node for node in own_nodes(site.function) if isinstance(node, ast.Return)]
    names = {node.value.id for node in returns if isinstance(node.value, ast.Name)}
    if not returns or len(names) != 1 or not all(isinstance(node.value, ast.Name) for node in returns):
        return None
    if not isinstance(site.function.body[-1], ast.Return):
        return None
    name = next(iter(names))
    values = stores(site, name)
    if len(values) != 1 or not isinstance(values[0], ast.Call) or _bindings(site, name) != 1:
        return None
    return values[0] if dotted(site, values[0].func) in _FILLED else None


def _bindings(site: Site, name: str) -> int:
    """How often anything gives a name a value, in the function and in functions inside of it."""
    found = 0
    for node in ast.walk(site.function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            found += 2 * (name in node.names)
        elif isinstance(node, ast.Name):
            found += node.id == name and not isinstance(node.ctx, ast.Load)
        elif not isinstance(node, ast.keyword):  # a parameter, a function, what `except` catches
            found += name in (getattr(node, "arg", None), getattr(node, "name", None))
    return found


def _dtype(site: Site, made: ast.Call) -> str:
    given = [keyword.value for keyword in made.keywords if keyword.arg == "dtype"]
    if len(made.keywords) != 1 or len(given) != 1 or len(made.args) != _FILLED[dotted(site, made.func) or ""]:
        raise Unsafe(f"the dtype of `{shown(site, made)}` does not stand there alone")
    name = builtin(site, given[0]) or dotted(site, given[0]) or ""
    if name not in _DTYPES:
        raise Unsafe(f"an array of `{site.text(given[0])}` may carry gradients")
    return _DTYPES[name]


def _sizes(site: Site, made: ast.Call) -> dict[str, ast.Assign]:
    """How the sizes of the array come from parameters: the statements that take one apart, by its name.

    Raises:
        Unsafe: a size is something else.
    """
    shape = made.args[0]
    parts = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape]
    unpacked: dict[str, ast.Assign] = {}
    for part in parts:
        if isinstance(part, ast.Constant) and type(part.value) is int:
            continue
        if not isinstance(part, ast.Name):
            raise Unsafe(f"the size `{shown(site, part)}` is no parameter")
        if part.id in parameters(site.function):
            if _bindings(site, part.id) != 1:
                raise Unsafe(f"`{part.id}` is given other values too")
            continue
        sources = [
            one for one in site.function.body if isinstance(one, ast.Assign) and _unpacks(one, part.id)
        ]
        if len(sources) != 1 or _bindings(site, part.id) != 1:
            raise Unsafe(f"the size `{part.id}` does not follow from the parameters")
        whole = site.text(sources[0].value)
        if whole not in parameters(site.function) or _bindings(site, whole) != 1:
            raise Unsafe(f"the size `{part.id}` does not follow from the parameters")
        unpacked[whole] = sources[0]
    return unpacked


def _unpacks(statement: ast.Assign, name: str) -> bool:
    """Whether a statement is ``rows, length = shape`` with that name in it."""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Tuple):
        return False
    names = [elt.id for elt in target.elts if isinstance(elt, ast.Name)]
    return len(names) == len(target.elts) and name in names and isinstance(statement.value, ast.Name)


def _plain_parameters(site: Site) -> list[str]:
    arguments = site.function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
        raise Unsafe("the function takes any number of arguments, or some by place or by name only")
    return [arg.arg for arg in arguments.args]


def _parameter(site: Site, name: str, unpacked: dict[str, ast.Assign]) -> _Given:
    """A parameter in the operator's schema.

    Raises:
        Unsafe: what it was has no place there.
    """
    seen = site.evidence.parameters.get(name)
    if seen is None:
        raise Unsafe(f"what `{name}` is was not seen in the recorded run")
    for kind, schema in _SCHEMA.items():
        if seen.kinds == {kind}:
            return _Given(name, schema, name)
    if name in unpacked and seen.only("other") and set(seen.types) <= _TUPLES:
        return _Given(name, "SymInt[]", f"tuple({name})")
    annotation = next(arg.annotation for arg in site.function.args.args if arg.arg == name)
    optional = annotation is not None and "Tensor" in ast.unparse(annotation)
    if seen.only("tensor", "None") and ("tensor" in seen.kinds or optional):
        return _Given(name, "Tensor?", name)
    raise Unsafe(f"`{name}` is neither a number, a tuple of sizes nor a tensor")


def _without_effects(site: Site) -> None:
    """Whether the function does nothing but compute its result, and draw numbers.

    Raises:
        Unsafe: it may do more.
    """
    own = _own_values(site)
    inner = {node.name for node in ast.walk(site.function) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(site.function):
        if isinstance(node, _MORE):
            line = enclosing_statement(site, node)
            raise Unsafe(f"the function does more than compute an array: `{shown(site, line)}`")
        written: ast.AST | None = None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            written = node.value if isinstance(node, ast.Subscript) else node
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            written = node.target
        if written is not None and not (isinstance(written, ast.Name) and written.id in own):
            line = enclosing_statement(site, node)
            raise Unsafe(f"the function may write into what it was given: `{shown(site, line)}`")
        if isinstance(node, ast.Call):
            _harmless(site, node, own, inner - {site.function.name})


def _own_values(site: Site) -> set[str]:
    """Names of the function whose values share no memory with a parameter, whatever is written into them."""
    given = {name for name in parameters(site.function) if _may_be_written(site, name)}
    names = {
        node.id
        for node in ast.walk(site.function)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    while True:
        more: set[str] = set()
        for node in ast.walk(site.function):
            for targets, value in _bound(node):
                more |= names_in(targets) if _shares(value, given) else set()
        if more <= given:
            return names - given
        given |= more


def _bound(node: ast.AST) -> list[tuple[list[ast.expr], ast.expr]]:
    """What a node gives to what."""
    if isinstance(node, ast.Assign):
        return [(node.targets, node.value)]
    if isinstance(node, ast.For | ast.comprehension):
        return [([node.target], node.iter)]
    return [([node.target], node.value)] if isinstance(node, ast.AnnAssign) and node.value else []


def _may_be_written(site: Site, name: str) -> bool:
    seen = site.evidence.parameters.get(name)
    if seen is None:
        return True
    # The operator takes no other tuples than those of integers.
    sizes = seen.only("other") and set(seen.types) <= _TUPLES
    return not sizes and not seen.only("int", "float", "bool", "str")


def _shares(node: ast.AST, given: set[str]) -> bool:
    """Whether an expression may be, hold or look into the memory of something under these names."""
    if isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp):
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
        return False
    if isinstance(node, ast.Name):
        return node.id in given
    return any(_shares(child, given) for child in ast.iter_child_nodes(node))


def _harmless(site: Site, call: ast.Call, own: set[str], inner: set[str]) -> None:
    """Raises Unsafe where a call may do more than give a value, or write into what is the function's own."""
    function = call.func
    name = dotted(site, function)
    first = call.args[0] if call.args else None
    if name is not None and name.startswith("numpy."):
        last = name.rpartition(".")[2]
        elsewhere = last in _INTO and not (isinstance(first, ast.Name) and first.id in own)
        if (
            last not in _OUTSIDE
            and not elsewhere
            and not any(keyword.arg == "out" for keyword in call.keywords)
        ):
            return
    elif isinstance(function, ast.Name):
        known = builtin(site, function) or ""
        if known in _PURE or known.endswith("Error") or function.id in inner:
            return
    elif isinstance(function, ast.Attribute) and name is None:
        grows = isinstance(function.value, ast.Name) and function.value.id in own
        if function.attr in _METHODS or (function.attr in ("append", "extend") and grows):
            return
    raise Unsafe(f"what `{shown(site, function)}` does besides giving a value is not known")


def _rewrite(
    site: Site, made: ast.Call, dtype: str, unpacked: dict[str, ast.Assign], given: list[_Given]
) -> Rewrite:
    torch, function = site.torch, site.function
    name = function.name.strip("_")
    operator, fake, compiled = (new_name(site, f"_{name}_{one}") for one in ("operator", "fake", "compiled"))
    order = new_name(site, "order")
    # Each file has operators of its own, also where files hold copies of one function.
    unique = f"{name}_{zlib.crc32(site.source.encode()):08x}"
    names = ", ".join(one.name for one in given)
    schema = ", ".join([f"Tensor(a!) {order}", *(f"{one.kind} {one.name}" for one in given)])
    taken_apart = "".join(f"    {site.text(candidate)}\n" for candidate in dict.fromkeys(unpacked.values()))
    shape = shown(site, made.args[0], None)
    definitions = (
        f"\n\n\n@{torch}.library.custom_op(\n"
        f'    "numpy_functions::{unique}",\n'
        f'    mutates_args=("{order}",),\n'
        f'    schema="({schema}) -> Tensor",\n'
        f")\ndef {operator}({order}, {names}):\n"
        f"    # Written into {order}, so that no compiler merges, moves or leaves out a call.\n"
        f"    return {torch}.from_numpy({function.name}({', '.join(one.passed for one in given)}))\n\n\n"
        f"@{operator}.register_fake\ndef {fake}({order}, {names}):\n{taken_apart}"
        f"    return {torch}.empty({shape}, dtype={torch}.{dtype})\n\n\n"
        f'def {compiled}({names}, {order}={torch}.zeros((), device="cpu")):\n'
        f"    return {operator}({order}, {names}).numpy()"
    )
    first = function.body[0]
    docstring = ast.get_docstring(function, clean=False) is not None
    where = function.body[1] if docstring and len(function.body) > 1 else first
    begins = site.starts[where.lineno - 1]
    if site.source[begins : site.offsets(where)[0]].strip():
        raise Unsafe("the function begins on the line of its signature")
    pad = " " * where.col_offset
    ask = f"{pad}if {torch}.compiler.is_compiling():\n{pad}    return {compiled}({names})\n"
    _, end = site.offsets(function)
    if site.source[end:].partition("\n")[0].strip():
        raise Unsafe("something stands behind the function on its last line")
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(function))
    return Rewrite(
        edits=(Edit(begins, begins, ask), Edit(end, end, definitions)),
        summary="compiled code calls the function as an operator",
        notes=("graphs do not fuse across the operator, which computes on the host as before",),
        compiled_only=True,
        raises=raises,
    )
