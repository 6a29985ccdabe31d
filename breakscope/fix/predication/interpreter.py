"""Evaluates expressions of a function to :class:`~breakscope.fix.predication.values.Value`, or says why not.

``Unsafe`` means: this expression must not run where it did not run before. Everything that has an effect,
draws random numbers, may raise for some values, or is simply not known, is unsafe.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace

from breakscope.fix.predication.transfer import DTYPES, apply, binary, cast, convert
from breakscope.fix.predication.values import Value, broadcast, from_seen, scalar
from breakscope.fix.rule import Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.names import builtin, dotted, name_parts, parameters
from breakscope.source.syntax import shortened
from breakscope.source.torch_facts import AUTOCAST, CASTS, FLOATING, OPS, RANDOM, is_in_place

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
        self._entry = site.seen_before(statement)

    def __call__(self, node: ast.expr) -> Value:
        """The value of an expression.

        Raises:
            Unsafe: it must not run where it did not run before.
        """
        handler: Callable[[ast.expr], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        return handler(node)

    def seen_at_entry(self, path: str) -> Seen | None:
        """What a name or an attribute was when the statement began; None if nobody looked."""
        return self._entry.get(path)

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
            raise Unsafe(_why_unseen(self.site, path))
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
            integer = dotted(self.site, node.value.func) == "torch.iinfo"
            return Value("scalar", "int" if integer else "float", frozenset(), frozenset({()}))
        if ast.unparse(node) in self.names:
            return self.names[ast.unparse(node)]
        root = next(iter(name_parts(node)), None)
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
        if head == "torch" and last in DTYPES:
            return Value("static", literal=DTYPES[last], known=True)
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
            number = index.literal
            in_range = isinstance(number, int) and all(-rank <= number < rank for rank in ranks)
            if base.kind == "tensor" and ranks and in_range:
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
            return replace(value, dtype="bool", literal=not number if value.known else None)
        if isinstance(node.op, ast.USub) and value.known and not isinstance(number, str | bool | None):
            return replace(value, literal=-number)
        if isinstance(node.op, ast.Invert) and value.dtype != "int":
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        return replace(value, literal=None, known=False, written=False)

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self(node.left), self(node.right)
        if "static" in (left.kind, right.kind):
            raise Unsafe(f"what `{self._short(node)}` does is not known")
        if left.kind == right.kind == "scalar":
            return self._scalar_binop(node, left, right)
        result = binary(node.op, left, right, self._short(node))
        # A number divided by a tensor multiplies the tensor's reciprocal.
        reciprocal = isinstance(node.op, ast.Div) and left.kind == "scalar"
        recast = isinstance(node.op, ast.MatMult | ast.Pow) or reciprocal
        return self._under_autocast(result) if recast else result

    def _under_autocast(self, result: Value) -> Value:
        """What an operation that autocast runs in another dtype gives: of which, is not known."""
        if self.site.evidence.autocast and result.dtype in FLOATING:
            return replace(result, dtype=None)
        return result

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
            return self._operation(node.func.attr, node, [receiver, *(self(arg) for arg in node.args)])
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
            return self._operation(name, node, [self(arg) for arg in node.args])
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _builtin(self, name: str, node: ast.Call) -> Value:
        values = [self(arg) for arg in node.args]
        if name in _NUMBER_FUNCTIONS and values and all(value.kind == "scalar" for value in values):
            kinds = {"float": "float", "int": "int", "len": "int", "bool": "bool"}
            if name == "int" and values[0].dtype == "float":
                raise Unsafe(f"`{self._short(node)}` may raise for some values")
            return Value("scalar", kinds.get(name, values[0].dtype), frozenset(), frozenset({()}))
        if name == "abs" and values and values[0].kind == "tensor":
            return replace(values[0], fresh=True)
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _operation(self, name: str, node: ast.Call, values: list[Value]) -> Value:
        keywords = {str(keyword.arg): self(keyword.value) for keyword in node.keywords}
        text = self._short(node)
        if is_in_place(name):
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
            return convert(values, keywords, text)
        op = OPS.get(name)
        if op is None:
            raise Unsafe(f"what `{text}` does is not known")
        result = apply(op, name, values, keywords, text)
        if name in AUTOCAST:
            result = self._under_autocast(result)
        if result.shapes is None and result.sources is None:
            seen = self.site.seen(node)
            result = replace(result, shapes=seen.shapes if seen and seen.only("tensor") else None)
        return result

    def _ifexp(self, node: ast.IfExp) -> Value:
        raise Unsafe(f"`{self._short(node)}` is decided in Python")

    def _short(self, node: ast.expr) -> str:
        return shortened(self.site, node)


def _why_unseen(site: Site, path: str) -> str:
    """Why nothing was recorded of a name."""
    binders = [
        node
        for node in ast.walk(site.function)
        if isinstance(node, ast.NamedExpr | ast.comprehension | ast.arg)
    ]
    for node in binders:
        target = node.target if isinstance(node, ast.NamedExpr | ast.comprehension) else node
        bound = {getattr(one, "id", getattr(one, "arg", None)) for one in ast.walk(target)}
        if path not in bound or path in parameters(site.function):
            continue
        if isinstance(node, ast.NamedExpr):
            return f"`{path}` gets its value inside an expression (`:=`)"
        kind = "comprehension" if isinstance(node, ast.comprehension) else "lambda"
        return f"`{path}` belongs to a {kind}, whose values are not recorded"
    return f"`{path}` was not seen in the recorded run"
