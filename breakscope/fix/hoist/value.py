"""What an expression of a function is, said in its parameters: names are followed to where they got a value.

Only what certainly computes the same wherever it stands is followed: operations of torch that draw nothing
and write nothing, comparisons, numbers. All else is a reason to leave the read where it is.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, field

from breakscope.fix.hoist.expression import BUILTINS, Name
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.dominance import block_of, enclosing_statement
from breakscope.source.names import builtin, dotted, parameters, rebound_elsewhere
from breakscope.source.syntax import shortened, shown
from breakscope.source.torch_facts import AUTOCAST, CASTS, FLOATING, OPS, RANDOM, is_in_place

# Besides those of the table: what depends on nothing but its operands, and leaves them alone.
_MORE = frozenset(
    {"item", "size", "dim", "numel", "ndimension", "is_floating_point", "cpu", "to", "contiguous", "type_as"}
    | {"nonzero", "unique", "cumsum", "diff", "sort", "argsort", "expand", "permute", "transpose", "t"}
    | {"select", "narrow", "index_select", "gather", "equal"}
)
_METHODS = frozenset({*OPS, *CASTS, *_MORE})
_ATTRIBUTES = ("shape", "ndim", "dtype", "device")
_MANY = ast.For | ast.AsyncFor | ast.While | ast.Try | ast.With | ast.AsyncWith


@dataclass(slots=True)
class Follower:
    """Follows the names of one function back to its parameters.

    Attributes:
        names: every name that was followed.
        floats: a tensor may be floating here, so that autocast would decide about it.
    """

    site: Site
    names: set[str] = field(default_factory=set)

    def __call__(self, node: ast.expr) -> ast.expr:
        """The expression in the function's parameters, as they are when it is called.

        Raises:
            Unsafe: it is not made of them alone, or not by what computes the same elsewhere.
        """
        return self._at(node, enclosing_statement(self.site, node))

    def _at(self, node: ast.expr, at: ast.stmt) -> ast.expr:
        match node:
            case ast.Constant(bool() | int() | float() | str() | None):
                return copy.deepcopy(node)
            case ast.Name():
                return self._name(node, at)
            case ast.Attribute():
                return self._attribute(node, at)
            case ast.Call():
                return self._call(node, at)
            case ast.Subscript(value, index):
                return ast.Subscript(self._at(value, at), self._index(index, at), ast.Load())
            case ast.Tuple(elements):
                return ast.Tuple([self._at(one, at) for one in elements], ast.Load())
            case ast.BinOp(left, op, right) if not isinstance(op, ast.MatMult):
                return ast.BinOp(self._at(left, at), op, self._at(right, at))
            case ast.UnaryOp(op, operand):
                return ast.UnaryOp(op, self._at(operand, at))
            case ast.BoolOp(op, values):
                return ast.BoolOp(op, [self._at(one, at) for one in values])
            case ast.Compare(left, ops, others):
                return ast.Compare(self._at(left, at), ops, [self._at(one, at) for one in others])
            case ast.IfExp(test, body, orelse):
                return ast.IfExp(self._at(test, at), self._at(body, at), self._at(orelse, at))
        raise Unsafe(f"what `{self._short(node)}` does is not known")

    def _index(self, index: ast.expr, at: ast.stmt) -> ast.expr:
        match index:
            case ast.Slice(lower, upper, step):
                return ast.Slice(
                    *(None if one is None else self._at(one, at) for one in (lower, upper, step))
                )
            case ast.Tuple(elements):
                return ast.Tuple([self._index(one, at) for one in elements], ast.Load())
            case ast.Constant(value) if value is Ellipsis:
                return copy.deepcopy(index)
        return self._at(index, at)

    # ---- operations ----

    def _attribute(self, node: ast.Attribute, at: ast.stmt) -> ast.expr:
        full = dotted(self.site, node)
        if full is not None and full.startswith("torch.") and full.count(".") == 1:
            return _torch(full)
        if node.attr in _ATTRIBUTES:
            return ast.Attribute(self._at(node.value, at), node.attr, ast.Load())
        raise Unsafe(f"`{self._short(node)}` is no argument, and may be another one before the call")

    def _call(self, node: ast.Call, at: ast.stmt) -> ast.expr:
        text = self._short(node)
        if any(keyword.arg in (None, "out", "inplace", "generator") for keyword in node.keywords):
            raise Unsafe(f"`{text}` may write into its arguments")
        if any(isinstance(one, ast.Starred) for one in node.args):
            raise Unsafe(f"what `{text}` does is not known")
        function = self._function(node, at)
        return ast.Call(
            function,
            [self._at(one, at) for one in node.args],
            [ast.keyword(keyword.arg, self._at(keyword.value, at)) for keyword in node.keywords],
        )

    def _function(self, node: ast.Call, at: ast.stmt) -> ast.expr:
        text, full = self._short(node), dotted(self.site, node.func)
        if full is not None:
            head, _, name = full.rpartition(".")
            if head == "torch" and name in RANDOM:
                raise Unsafe(f"`{text}` draws random numbers")
            if head == "torch" and name in _METHODS and not is_in_place(name):
                self._refuse_autocast(name, node)
                return _torch(full)
            raise Unsafe(f"what `{text}` does is not known")
        if (name := builtin(self.site, node.func) or "") in BUILTINS:
            return ast.Name(name, ast.Load())
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            self._refuse_autocast(node.func.attr, node)
            return ast.Attribute(self._at(node.func.value, at), node.func.attr, ast.Load())
        raise Unsafe(f"what `{text}` does is not known")

    def _refuse_autocast(self, name: str, node: ast.Call) -> None:
        """What autocast runs in another dtype is another number outside of it."""
        if name not in AUTOCAST or not self.site.evidence.autocast:
            return
        given = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
        seen = [self.site.seen(one) for one in given]
        if any(one is not None and not FLOATING.isdisjoint(one.dtypes) for one in seen):
            raise Unsafe(f"autocast decides the dtype of `{self._short(node)}`")

    # ---- names ----

    def _name(self, node: ast.Name, at: ast.stmt) -> ast.expr:
        name = node.id
        self.names.add(name)
        if rebound_elsewhere(self.site.function, name):
            raise Unsafe(f"other functions may give `{name}` another value")
        inside = [one.target.id for one in ast.walk(at) if isinstance(one, ast.NamedExpr)]
        if name in inside or (isinstance(at, ast.While) and name in _bound_in(at)):
            raise Unsafe(f"`{name}` gets another value in the same statement")
        return self._before(name, at)

    def _before(self, name: str, at: ast.AST) -> ast.expr:
        """What a name holds when a statement begins."""
        function = self.site.function
        while at is not function:
            if isinstance(at, ast.stmt):
                block, index = block_of(self.site, at)
                for number in range(index - 1, -1, -1):
                    if name in _bound_in(block[number]):
                        return self._given(name, block[number])
            above = self.site.parents[at]
            header = above.items if isinstance(above, ast.With | ast.AsyncWith) else [above]
            plain = isinstance(above, ast.If | ast.FunctionDef | ast.ExceptHandler | ast.AsyncFunctionDef)
            if not plain and not isinstance(above, _MANY):
                raise Unsafe(f"what `{name}` is there is not known")
            if not plain and name in _bound_in(*header):
                raise Unsafe(f"`{name}` has several values in the `{_word(above)}` around it")
            at = above
        if name in parameters(function):
            return ast.Name(name, ast.Load())
        return self._of_module(name)

    def _given(self, name: str, statement: ast.stmt) -> ast.expr:
        """What a statement gives to a name."""
        match statement:
            case ast.Assign([ast.Name()], value) | ast.AnnAssign(ast.Name(), _, ast.expr() as value):
                return self._at(value, statement)
            case ast.Assign([ast.Tuple(elements)], ast.Attribute(attr="shape") as value):
                for index, one in enumerate(elements):
                    if isinstance(one, ast.Name) and one.id == name:
                        shape = self._at(value, statement)
                        return ast.Subscript(shape, ast.Constant(index), ast.Load())
            case ast.If(test, body, orelse):
                ways = [self._behind(name, block, statement) for block in (body, orelse)]
                return ast.IfExp(self._at(test, statement), *ways)
        where = shown(self.site, statement)
        raise Unsafe(f"what `{where}` gives to `{name}` is not known before the call")

    def _behind(self, name: str, block: list[ast.stmt], around: ast.stmt) -> ast.expr:
        """What a name holds behind a block of an ``if``."""
        last = next((one for one in reversed(block) if name in _bound_in(one)), None)
        return self._before(name, around) if last is None else self._given(name, last)

    def _of_module(self, name: str) -> ast.expr:
        """A name of the module that is one constant, as it is written there."""
        tree = self.site.tree
        made = [one for one in ast.walk(tree) if isinstance(one, ast.stmt) and name in _bound_in(one)]
        match made:
            case [ast.Assign([ast.Name()], ast.Constant()) as only] if only in tree.body:
                return Name(name, self.site.module)
        raise Unsafe(f"`{name}` is no argument of the function")

    def _short(self, node: ast.expr) -> str:
        return shortened(self.site, node)


def _torch(full: str) -> ast.expr:
    return ast.Attribute(ast.Name("torch", ast.Load()), full.rpartition(".")[2], ast.Load())


def _word(node: ast.AST) -> str:
    return type(node).__name__.removeprefix("Async").lower()


def _bound_in(*nodes: ast.AST) -> set[str]:
    """Names that get a value, or lose theirs, somewhere in some nodes."""
    found: set[str] = set()
    for node in (one for top in nodes for one in ast.walk(top)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            found.update([node.name] if node.name else [])
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
    return found
