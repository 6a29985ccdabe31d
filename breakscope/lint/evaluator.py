"""What is known while a function is read: its variables, and what came of it so far."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from breakscope.lint import known
from breakscope.lint.facts import Call, Candidate
from breakscope.lint.kinds import (
    ARRAY,
    MASK,
    MAYBE,
    NONE,
    OBJECT,
    SHAPE,
    TENSOR,
    TENSORS,
    UNKNOWN,
    VALUE,
    Kind,
)
from breakscope.lint.names import ClassNames, Names
from breakscope.source.names import name_parts

CONFIGS = frozenset(
    {"config", "cfg", "conf", "args", "hparams", "opts", "opt", "options", "configuration", "kwargs"}
)


@dataclass(slots=True)
class Found:
    """What came of reading one function."""

    candidates: list[Candidate] = field(default_factory=list)
    calls: dict[tuple[str, bool], Call] = field(default_factory=dict)
    compiled: list[str] = field(default_factory=list)


class Evaluator:
    """The state in which expressions of one function are read; ``Expressions`` reads them.

    Attributes:
        env: local variable -> kind.
        types: parameter -> name of the class that its annotation names.
        locals: function defined inside, here or around -> its qualified name.
        sure: whether what is read now runs whenever the function does.
        muted: whether what is read now can only run on the way to an error.
    """

    def __init__(self, names: Names, owner: ClassNames | None, found: Found) -> None:
        self.names = names
        self.owner = owner
        self.found = found
        self.env: dict[str, Kind] = {}
        self.types: dict[str, str] = {}
        self.parameters: frozenset[str] = frozenset()
        self.locals: dict[str, str] = {}
        self.sure = True
        self.muted = False

    # ---- what comes out ----

    def report(self, code: str, node: ast.expr | ast.stmt, *, likely: bool, about: str = "") -> None:
        """A place that breaks; at most possible where it need not run."""
        if self.muted:
            return
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset or node.col_offset
        self.found.candidates.append(
            Candidate(code, node.lineno, node.col_offset, end_line, end_column, likely and self.sure, about)
        )

    def call(self, target: str, node: ast.expr, *, sure: bool = True) -> None:
        """Something that this function calls or hands on."""
        key = (target, sure)
        if key not in self.found.calls and not self.muted:
            place = (
                node.lineno,
                node.col_offset,
                node.end_lineno or node.lineno,
                node.end_col_offset or node.col_offset,
            )
            self.found.calls[key] = Call(target, sure, place)

    # ---- what names stand for ----

    def is_local(self, node: ast.expr) -> bool:
        """Whether the first name of a dotted name is a local variable."""
        parts = name_parts(node)
        return bool(parts) and parts[0] in self.env

    def dotted(self, node: ast.expr) -> str | None:
        """The full name of something that is not a local variable."""
        return None if self.is_local(node) else self.names.dotted(node)

    def reference(self, node: ast.expr) -> None:
        """A name of the module: what it stands for may be called here, or by whom it is handed to."""
        target = self.names.dotted(node)
        if target and not target.startswith(("torch.", "numpy.", "typing.", "math.")):
            self.call(f"name:{target}", node)

    # ---- values ----

    def kind(self, node: ast.expr | None) -> Kind:
        """Evaluate an expression, and report what breaks in it."""
        if node is None:
            return NONE
        evaluate = EVALUATE.get(type(node))
        if evaluate is None:
            return UNKNOWN
        kind: Kind = getattr(self, evaluate)(node)
        return kind

    def peek(self, node: ast.expr) -> Kind:
        """The kind of an expression without reporting anything."""
        muted, self.muted = self.muted, True
        try:
            return self.kind(node)
        finally:
            self.muted = muted

    def elements(self, node: ast.expr) -> Kind | list[Kind]:
        """The kind of what iterating over an expression gives; a list for tuples."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "enumerate" and node.args:
                inner = self.elements(node.args[0])
                return [VALUE, inner if isinstance(inner, Kind) else UNKNOWN]
            if node.func.id == "zip":
                inners = [self.elements(arg) for arg in node.args]
                return [inner if isinstance(inner, Kind) else UNKNOWN for inner in inners]
        kind = self.kind(node)
        if kind in (TENSOR, TENSORS, MASK, MAYBE, ARRAY):
            return TENSOR if kind is TENSORS else kind
        return VALUE if kind in (SHAPE, VALUE) else UNKNOWN

    def bind(self, target: ast.expr, kind: Kind | list[Kind]) -> None:
        """Give a target of an assignment its kind."""
        if isinstance(target, ast.Name):
            self.env[target.id] = kind if isinstance(kind, Kind) else OBJECT
        elif isinstance(target, ast.Tuple | ast.List):
            for index, element in enumerate(target.elts):
                self.bind(element, _part(kind, index, len(target.elts)))
        elif isinstance(target, ast.Starred):
            self.bind(target.value, UNKNOWN)
        elif isinstance(target, ast.Subscript | ast.Attribute):
            self.kind(target)

    def static(self, test: ast.expr) -> bool | None:
        """Which way a condition goes while Dynamo traces, where the source tells; else None."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.static(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            sides = [self.static(operand) for operand in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
        called = test.func if isinstance(test, ast.Call) else test
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in known.COMPILING:
            return True
        return False if name in known.NOT_COMPILING else None


def _part(kind: Kind | list[Kind], index: int, count: int) -> Kind:
    if isinstance(kind, list):
        return kind[index] if len(kind) == count else UNKNOWN
    if kind in (TENSORS, TENSOR, MAYBE, ARRAY, MASK):
        return TENSOR if kind is TENSORS else kind
    return VALUE if kind in (SHAPE, VALUE) else UNKNOWN


# By name, so that a subclass can read some of them in its own way.
EVALUATE: dict[type, str] = {
    ast.Name: "_name",
    ast.Constant: "_constant",
    ast.Attribute: "_attribute",
    ast.Call: "_call",
    ast.BinOp: "_bin_op",
    ast.UnaryOp: "_unary_op",
    ast.BoolOp: "_bool_op",
    ast.Compare: "_compare",
    ast.IfExp: "_if_exp",
    ast.Subscript: "_subscript",
    ast.Tuple: "_sequence",
    ast.List: "_sequence",
    ast.Set: "_sequence",
    ast.Dict: "_dict",
    ast.JoinedStr: "_joined_str",
    ast.Lambda: "_lambda",
    ast.ListComp: "_comprehension",
    ast.SetComp: "_comprehension",
    ast.GeneratorExp: "_comprehension",
    ast.DictComp: "_comprehension",
    ast.Starred: "_starred",
    ast.NamedExpr: "_named",
    ast.Await: "_inside",
    ast.Yield: "_inside",
    ast.YieldFrom: "_inside",
}
