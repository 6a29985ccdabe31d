"""Evaluates expressions of a function to :class:`~breakscope.rewrite.values.Value`, or says why not.

``Unsafe`` means: this expression must not run where it did not run before. Everything that has an effect,
draws random numbers, may raise for some values, or is simply not known, is unsafe.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace

from breakscope.rewrite.ops import CASTS, DOMAIN, FINITE, FLOATING, OPS, RANDOM, STEADY, Op, category
from breakscope.rewrite.rule import Site
from breakscope.rewrite.scope import builtin, dotted
from breakscope.rewrite.values import Unsafe, Value, broadcast, from_seen, promote, scalar

_DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32",
    "float64": "float64", "double": "float64", "int8": "int8", "uint8": "uint8", "int16": "int16",
    "int32": "int32", "int": "int32", "int64": "int64", "long": "int64", "bool": "bool",
}  # fmt: skip
_NUMBER_FUNCTIONS = {"float", "int", "bool", "abs", "len", "min", "max", "round"}


class Evaluator:
    """Evaluates expressions of one site.

    Attributes:
        names: what is known of names that were bound since ``statement`` began; all others are as the
            recording run saw them there.
        not_none: names and attributes that are not None here, because a condition says so.
    """

    def __init__(self, site: Site, statement: ast.stmt) -> None:
        self.site = site
        self.names: dict[str, Value] = {}
        self.not_none: set[str] = set()
        self._entry = site.evidence.entry.get(site.span(statement), {})

    def __call__(self, node: ast.expr) -> Value:
        """The value of an expression.

        Raises:
            Unsafe: it must not run where it did not run before.
        """
        handler: Callable[[ast.expr], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        return handler(node)

    def _constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, int | float | bool | str) or node.value is None:
            return scalar(node.value)
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.names:
            return self.names[node.id]
        return self._stored(node.id)

    def _stored(self, path: str) -> Value:
        seen = self._entry.get(path)
        if seen is not None and path in self.not_none:
            seen = replace(
                seen, kinds=seen.kinds - {"None"}, values=tuple(v for v in seen.values if v is not None)
            )
        if seen is None:
            raise Unsafe(f"`{path}` was not seen in the recorded run")
        value = from_seen(seen, path, self.site.evidence.grad)
        if value is None:
            raise Unsafe(f"`{path}` was not always of one kind in the recorded run")
        return value

    def _attribute(self, node: ast.Attribute) -> Value:
        full = dotted(self.site, node)
        if full is not None:
            return self._imported(full, node)
        if isinstance(node.value, ast.Call) and dotted(self.site, node.value.func) in (
            "torch.finfo", "torch.iinfo",
        ):  # fmt: skip
            for argument in node.value.args:
                self(argument)
            return Value("scalar", "int" if str(dotted(self.site, node.value.func)).endswith("iinfo") else "float",
                         frozenset(), frozenset({()}))  # fmt: skip
        if ast.unparse(node) in self.names:
            return self.names[ast.unparse(node)]
        root = _root(node)
        if root is None or root in self.names or ast.unparse(node) not in self._entry:
            return self._tensor_attribute(self(node.value), node)
        return self._stored(ast.unparse(node))

    def _tensor_attribute(self, base: Value, node: ast.Attribute) -> Value:
        if base.kind != "tensor":
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        if node.attr == "dtype":
            known = base.dtype is not None
            return Value("static", literal=base.dtype, known=known, dtype_of=base.dtype_of)
        if node.attr in ("device", "shape", "is_cuda", "layout"):
            return Value("static")
        if node.attr == "ndim":
            return Value("scalar", "int", frozenset(), frozenset({()}))
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _imported(self, full: str, node: ast.Attribute) -> Value:
        head, _, last = full.rpartition(".")
        if head == "torch" and last in _DTYPES:
            return Value("static", literal=_DTYPES[last], known=True)
        if (head == "math" and last in ("pi", "e", "inf", "nan", "tau")) or (head == "torch" and last in (
            "pi", "inf", "nan", "e",
        )):  # fmt: skip
            return scalar(float(getattr(math, last)))
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _subscript(self, node: ast.Subscript) -> Value:
        # Only sizes: indexing a tensor may raise for some values of the index.
        if (
            isinstance(node.value, ast.Attribute)
            and node.value.attr == "shape"
            and isinstance(node.slice, ast.Constant | ast.UnaryOp)
        ):
            base, index = self(node.value.value), self(node.slice)
            ranks = {len(shape) for shape in base.shapes or ()}
            if base.kind == "tensor" and isinstance(index.literal, int) and ranks:
                if all(-rank <= index.literal < rank for rank in ranks):
                    return Value("scalar", "int", frozenset(), frozenset({()}))
        raise Unsafe(f"`{self._short(node)}` may raise for some inputs")

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self(node.operand)
        if value.kind == "scalar":
            return self._fold(node, value)
        if value.kind != "tensor" or isinstance(node.op, ast.Not):
            raise Unsafe(f"`{self._short(node)}` is decided in Python")
        if isinstance(node.op, ast.Invert) and value.dtype in FLOATING | {None}:
            raise Unsafe(f"`{self._short(node)}` raises for floating-point tensors")
        if isinstance(node.op, ast.USub) and value.dtype in ("bool", None):
            raise Unsafe(f"`{self._short(node)}` raises for bool tensors")
        return replace(value, fresh=not isinstance(node.op, ast.UAdd))

    def _fold(self, node: ast.UnaryOp, value: Value) -> Value:
        number = value.literal
        if isinstance(node.op, ast.Not):
            return scalar(not number) if value.known else replace(value, dtype="bool", literal=None)
        if value.known and isinstance(number, int | float) and not isinstance(number, bool):
            if isinstance(node.op, ast.USub):
                return scalar(-number)
        if isinstance(node.op, ast.Invert) and value.dtype != "int":
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        return replace(value, literal=None, known=False)

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self(node.left), self(node.right)
        if "static" in (left.kind, right.kind):
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        if left.kind == right.kind == "scalar":
            return self._scalar_binop(node, left, right)
        return binary(node.op, left, right, self._short(node))

    def _scalar_binop(self, node: ast.BinOp, left: Value, right: Value) -> Value:
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            if not (right.written and right.literal):
                raise Unsafe(f"`{self._short(node)}` raises if the divisor is zero")
        elif not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            raise Unsafe(f"`{self._short(node)}` may raise for some values")
        floats = isinstance(node.op, ast.Div) or "float" in (left.dtype, right.dtype)
        return Value("scalar", "float" if floats else "int", frozenset(), frozenset({()}))

    def _compare(self, node: ast.Compare) -> Value:
        operands = [self(one) for one in [node.left, *node.comparators]]
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
                return Value("scalar", "bool", frozenset(), frozenset({()}))
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        if not any(value.kind == "tensor" for value in operands):
            if any(value.kind == "static" for value in operands) and not all(
                isinstance(op, ast.Eq | ast.NotEq) for op in node.ops
            ):
                raise Unsafe(f"`{self._short(node)}` may raise for some values")
            return Value("scalar", "bool", frozenset(), frozenset({()}))
        if len(node.ops) > 1:
            raise Unsafe(f"`{self._short(node)}` is decided in Python")
        if any(value.kind == "static" for value in operands):
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        sources, shapes = broadcast(operands)
        return Value("tensor", "bool", sources, shapes)  # whatever the operands are

    def _call(self, node: ast.Call) -> Value:
        if any(
            keyword.arg is None or keyword.arg in ("out", "inplace", "generator") for keyword in node.keywords
        ):
            raise Unsafe(f"`{self._short(node)}` may write into its arguments")
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        full = dotted(self.site, node.func)
        if full is not None:
            return self._function(full, node)
        name = builtin(self.site, node.func)
        if name is not None:
            return self._builtin(name, node)
        if isinstance(node.func, ast.Attribute):
            receiver = self._receiver(node)
            return self._operation(node.func.attr, node, [receiver, *(self(one) for one in node.args)])
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _receiver(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr in RANDOM:
            raise Unsafe(f"`{self._short(node)}` draws random numbers")
        try:
            receiver = self(node.func.value)
        except Unsafe as error:
            raise Unsafe(f"what `{self._short(node)}` does is not known: {error}") from error
        if receiver.kind != "tensor":
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        return receiver

    def _function(self, full: str, node: ast.Call) -> Value:
        head, _, name = full.rpartition(".")
        if name in RANDOM and head.startswith("torch"):
            raise Unsafe(f"`{self._short(node)}` draws random numbers")
        if full in ("torch.finfo", "torch.iinfo"):
            return Value("static")
        if head == "math" and name in ("sqrt", "exp", "log", "floor", "ceil"):
            if all(value.written for value in map(self, node.args)):
                return Value(
                    "scalar", "int" if name in ("floor", "ceil") else "float", frozenset(), frozenset({()})
                )
            raise Unsafe(f"`{self._short(node)}` may raise for some values")
        if head in ("torch", "torch.nn.functional", "torch.special"):
            if name in ("tensor", "zeros", "ones", "full", "arange", "scalar_tensor"):
                raise Unsafe(f"`{self._short(node)}` makes a tensor whose dtype and device are settings")
            return self._operation(name, node, [self(one) for one in node.args])
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _builtin(self, name: str, node: ast.Call) -> Value:
        values = [self(one) for one in node.args]
        if name in _NUMBER_FUNCTIONS and values and all(value.kind == "scalar" for value in values):
            kinds = {"float": "float", "int": "int", "len": "int", "bool": "bool"}
            if name == "int" and values[0].dtype == "float":
                raise Unsafe(f"`{self._short(node)}` may raise for some values")
            return Value("scalar", kinds.get(name, values[0].dtype), frozenset(), frozenset({()}))
        if name == "abs" and values and values[0].kind == "tensor":
            return replace(values[0], fresh=True)
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _operation(self, name: str, node: ast.Call, values: list[Value]) -> Value:
        keywords = {str(one.arg): self(one.value) for one in node.keywords}
        text = self._short(node)
        if name.endswith("_") and not name.endswith("__"):
            raise Unsafe(f"`{text}` writes into a tensor")
        if name in ("size", "dim", "numel", "ndimension", "is_floating_point"):
            return Value("scalar", "int", frozenset(), frozenset({()})) if values[1:] or name != "size" else (
                Value("static")
            )  # fmt: skip
        if not values or values[0].kind != "tensor":
            raise Unsafe(f"what `{text}` does is not known")
        if name in CASTS:
            return cast(values[0], CASTS[name], frozenset())
        if name in ("to", "type", "type_as"):
            return _to(values, keywords, text)
        op = OPS.get(name)
        if op is None:
            raise Unsafe(f"what `{text}` does is not known")
        result = apply(op, name, values, keywords, text)
        if self.site.evidence.autocast and (op.slope > STEADY or op.shape != "broadcast"):
            result = replace(result, dtype=None)  # autocast may run it in another dtype
        if result.shapes is None and result.sources is None:
            seen = self.site.seen(node)
            result = replace(result, shapes=seen.shapes if seen and seen.only("tensor") else None)
        return result

    def _ifexp(self, node: ast.IfExp) -> Value:
        raise Unsafe(f"`{self._short(node)}` is decided in Python")

    def _short(self, node: ast.expr) -> str:
        text = " ".join(self.site.text(node).split())
        return text if len(text) <= 60 else text[:57] + "..."


def binary(op: ast.operator, left: Value, right: Value, text: str) -> Value:
    """An operator between a tensor and something."""
    tensors = [value for value in (left, right) if value.kind == "tensor"]
    dtype = promote([left, right])
    if isinstance(op, ast.MatMult):
        slope = FINITE
    elif isinstance(op, ast.Add | ast.Sub):
        if isinstance(op, ast.Sub) and any(value.dtype in ("bool", None) for value in tensors):
            raise Unsafe(f"`{text}` raises for bool tensors")
        slope = STEADY
    elif isinstance(op, ast.Mult):
        slope = STEADY if _finite_constant(left) or _finite_constant(right) else FINITE
    elif isinstance(op, ast.Div):
        slope = STEADY if _finite_constant(right) and right.literal else DOMAIN
        if dtype not in FLOATING:
            dtype = None
    elif isinstance(op, ast.Pow):
        if dtype not in FLOATING or right.kind != "scalar" or not right.known:
            raise Unsafe(f"`{text}` may raise for some values")
        slope = FINITE if isinstance(right.literal, int) and right.literal >= 1 else DOMAIN
    elif isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
        if any(value.dtype in FLOATING | {None, "float"} for value in (left, right)):
            raise Unsafe(f"`{text}` raises for floating-point tensors")
        slope = STEADY
    else:
        raise Unsafe(f"what `{text}` does is not known")
    sources, shapes = (None, None) if isinstance(op, ast.MatMult) else broadcast([left, right])
    return _result(tensors, dtype, sources, shapes, slope)


def apply(op: Op, name: str, values: list[Value], keywords: dict[str, Value], text: str) -> Value:
    """One operation of the table.

    Raises:
        Unsafe: it is called in a way that the table does not describe.
    """
    everything = [*values, *keywords.values()]
    tensors = [value for value in everything if value.kind == "tensor"]
    if op.shape == "reduce" and len(tensors) == 2 and name in ("max", "min") and not keywords:
        op = Op("broadcast", "promote")
    sources: frozenset[str] | None
    shapes: frozenset[tuple[int, ...]] | None
    if op.shape == "reduce" and len(everything) == 1:
        sources, shapes = frozenset(), frozenset({()})
    elif op.shape == "reduce":
        if name in ("max", "min", "median"):
            raise Unsafe(f"what `{text}` does is not known")
        sources, shapes = None, None
    elif op.shape == "broadcast":
        sources, shapes = broadcast(everything)
    elif op.shape == "first":
        sources, shapes = values[0].sources, values[0].shapes
    else:
        sources, shapes = None, None
    if "dtype" in keywords:
        literal = keywords["dtype"].literal
        dtype = literal if isinstance(literal, str) else None
    else:
        dtype = _dtype(op, name, values, everything)
    slope = op.slope
    if name in ("mul", "multiply") and any(map(_finite_constant, everything)):
        slope = STEADY
    if name in ("div", "true_divide", "divide") and len(values) == 2:
        slope = STEADY if _finite_constant(values[1]) and values[1].literal else DOMAIN
        if keywords:
            raise Unsafe(f"what `{text}` does is not known")
    result = _result(tensors, dtype, sources, shapes, slope)
    if op.constants:
        result = replace(result, grad=False, slope=STEADY, deps=frozenset())
    return replace(result, fresh=not op.view)


def _dtype(op: Op, name: str, values: list[Value], everything: list[Value]) -> str | None:
    first = values[0].dtype
    if op.dtype == "bool":
        # any and all keep uint8.
        return first if name in ("any", "all") and first == "uint8" else "bool"
    if op.dtype == "promote":
        if name == "where":
            return promote(everything[1:])
        if name == "masked_fill":
            return first
        return promote(everything)
    if op.dtype == "int64":
        return "int64"
    if op.dtype == "first":
        return first
    if op.dtype == "sum":
        return None if first is None else first if category(first) >= 2 else "int64"
    result = promote(everything) if op.shape == "broadcast" else first
    return result if result in FLOATING else None


def _to(values: list[Value], keywords: dict[str, Value], text: str) -> Value:
    targets = [*values[1:], *(keywords[key] for key in ("dtype", "other") if key in keywords)]
    dtype, dtype_of = values[0].dtype, values[0].dtype_of
    for target in targets:
        if target.kind == "tensor":
            dtype, dtype_of = target.dtype, target.dtype_of
        elif (
            target.kind == "static" and isinstance(target.literal, str) and target.literal in _DTYPES.values()
        ):
            dtype, dtype_of = target.literal, target.dtype_of
        elif target.kind != "static":
            raise Unsafe(f"what `{text}` does is not known")
        else:
            dtype = dtype if target.known else None
    return cast(values[0], dtype, dtype_of)


def cast(value: Value, dtype: str | None, dtype_of: frozenset[str]) -> Value:
    """A tensor in another dtype."""
    if dtype is None or dtype in FLOATING:
        return replace(value, dtype=dtype, dtype_of=dtype_of, fresh=False)
    deps = frozenset[str]()
    return replace(value, dtype=dtype, dtype_of=dtype_of, grad=False, slope=STEADY, deps=deps, fresh=False)


def _finite_constant(value: Value) -> bool:
    number = value.literal
    return (
        value.kind == "scalar" and value.known and isinstance(number, int | float) and math.isfinite(number)
    )


def _result(
    tensors: list[Value],
    dtype: str | None,
    sources: frozenset[str] | None,
    shapes: frozenset[tuple[int, ...]] | None,
    slope: int,
) -> Value:
    wide = [value for value in tensors if not value.zero_dim] or tensors
    dtype_of = frozenset[str]().union(*(value.dtype_of for value in wide))
    if dtype is not None and dtype not in FLOATING:
        return Value("tensor", dtype, sources, shapes, dtype_of=dtype_of)
    carrying = [value for value in tensors if value.deps]
    return Value(
        "tensor",
        dtype,
        sources,
        shapes,
        max([slope, *(value.slope for value in carrying)]) if carrying else STEADY,
        frozenset().union(*(value.deps for value in carrying)),
        any(value.grad for value in carrying),
        dtype_of=dtype_of,
    )


def _root(node: ast.Attribute) -> str | None:
    """``self`` of ``self.a.b``; None where it does not begin with a name."""
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else None
