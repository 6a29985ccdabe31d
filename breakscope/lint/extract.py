"""Reads one file: what it defines, what its functions call, and what would break in them if compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from breakscope.lint import known
from breakscope.lint.expressions import Found
from breakscope.lint.facts import Class, Facts, Function, failed
from breakscope.lint.flow import Flow, FunctionNode
from breakscope.lint.kinds import (
    MAYBE,
    NONE,
    TENSOR,
    UNKNOWN,
    VALUE,
    Kind,
    is_lazy,
    join,
    last_name,
    of_annotation,
)
from breakscope.lint.names import ClassNames, Names

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = (ast.If, ast.Try, ast.With)
# A module that says so may compile any of its functions; in others only `forward` can be compiled.
_COMPILES = re.compile(rb"(?<!\bre)\.compile\b|(?<![\w.])compile\s*\(|import\s[^\n]*\bcompile\b|_dynamo\b")
# torch.compile on a LightningModule compiles these too.
_ENTRIES = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
_MOST_BYTES = 20_000_000


def may_matter(source: bytes) -> bool:
    """Whether a file can hold code that is compiled, without another file's help."""
    return b"def forward" in source or (b"torch" in source and _COMPILES.search(source) is not None)


def read(source: bytes, *, everything: bool = False) -> Facts:
    """The facts of one file.

    Args:
        source: the file's content.
        everything: look into every function; else only where something in this file is compiled.
    """
    if len(source) > _MOST_BYTES:
        return failed(f"it has {len(source):,} bytes, more than lint reads ({_MOST_BYTES:,})")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        return failed(f"it is not Python that this version reads: {place}{error.msg}")
    except ValueError as error:
        return failed(f"it is not Python source: {error}")
    except (RecursionError, MemoryError):
        return failed("its expressions are nested too deeply")
    try:
        return _Module(tree, everything=everything or _COMPILES.search(source) is not None).facts()
    except RecursionError:
        return failed("its expressions are nested too deeply")


class _Module:
    """Reads the functions of one module, from those that may be compiled to what these call."""

    def __init__(self, tree: ast.Module, *, everything: bool) -> None:
        self.names = Names()
        self.everything = everything
        self.found: dict[str, Function] = {}
        self.compiled: list[str] = []
        # qualified name -> (node, its class, variables around it)
        self.pending: dict[str, tuple[FunctionNode, ClassNames | None, dict[str, Kind]]] = {}
        self.by_name: dict[str, list[str]] = {}
        self.ready: set[str] = set()
        self.classes: list[ClassNames] = []
        self.queue: list[str] = []
        self.top = Flow(self.names, None, Found())
        self.tree = tree
        self._take_in(tree.body, "")

    # ---- what is defined ----

    def _take_in(self, body: Sequence[ast.stmt], prefix: str) -> None:
        statements = list(_flat(body))
        for node in statements:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.names.add_import(node)
            elif isinstance(node, _FUNCTIONS):
                self.names.add_function(node)
            elif isinstance(node, ast.ClassDef):
                self.names.classes[node.name] = ClassNames(node.name)
        for node in statements:
            if isinstance(node, _FUNCTIONS):
                self._add_function(node, node.name, None, {})
            elif isinstance(node, ast.ClassDef):
                self._add_class(node, prefix, {})
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._variable(node)
            elif isinstance(node, ast.Expr) and self.everything:
                self.top.kind(node.value)

    def _variable(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        if value is None:
            return
        kind = UNKNOWN
        if isinstance(value, ast.Constant):
            kind = VALUE
        elif isinstance(value, ast.Call):
            maker = last_name(value.func)
            if maker in known.LOGGER_MAKERS:
                self.names.loggers |= {target.id for target in targets if isinstance(target, ast.Name)}
            kind = self.top.kind(value)
        members = _members(value)
        for target in targets:
            if isinstance(target, ast.Name):
                if members:
                    self.names.tables[target.id] = members
                elif kind is not UNKNOWN:
                    self.names.kinds[target.id] = kind
                if isinstance(value, ast.Name):  # an alias: new_name = old_name
                    self.names.tables[target.id] = (value.id,)

    def _add_function(
        self, node: FunctionNode, name: str, owner: ClassNames | None, env: dict[str, Kind]
    ) -> None:
        self.pending[name] = (node, owner, env)
        self.by_name.setdefault(node.name, []).append(name)
        compiled = any(target in known.COMPILERS for target in self._decorators(node))
        if self.everything or compiled or (owner is not None and node.name in _ENTRIES):
            self.queue.append(name)

    def _add_class(self, node: ast.ClassDef, prefix: str, env: dict[str, Kind]) -> None:
        own = ClassNames(prefix + node.name)
        own.bases = tuple(filter(None, (self.names.dotted(_unsubscripted(base)) for base in node.bases)))
        if not prefix:
            self.names.classes[node.name] = own
        self.classes.append(own)
        for statement in _flat(node.body):
            if isinstance(statement, _FUNCTIONS):
                own.methods[statement.name] = statement
                returns = of_annotation(statement.returns)
                if returns is not UNKNOWN:
                    own.returns[statement.name] = returns
                self._add_function(statement, f"{own.name}.{statement.name}", own, env)
            elif isinstance(statement, ast.ClassDef):
                self._add_class(statement, f"{own.name}.", env)
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                kind = of_annotation(statement.annotation)
                if kind is not UNKNOWN:
                    own.kinds[statement.target.id] = kind
                if _is_number(statement.value):
                    own.numbers.add(statement.target.id)
            elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        own.kinds[target.id] = VALUE
                        if _is_number(statement.value):
                            own.numbers.add(target.id)

    def _decorators(self, node: FunctionNode) -> tuple[str, ...]:
        found = []
        for decorator in node.decorator_list:
            name = self.names.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if (
                name in ("functools.partial", "partial")
                and isinstance(decorator, ast.Call)
                and decorator.args
            ):
                name = self.names.dotted(decorator.args[0])
            if name:
                found.append(name)
        return tuple(found)

    # ---- what they do ----

    def facts(self) -> Facts:
        """Read what may be compiled, and what that calls in this file."""
        while self.queue:
            name = self.queue.pop()
            if name not in self.found and name in self.pending:
                self._read(name)
        classes = tuple(
            Class(one.name, one.bases, tuple(one.methods), dict(one.made_by)) for one in self.classes
        )
        others = tuple(name for name in self.pending if name not in self.found)
        return Facts(
            self.names.imports,
            tuple(self.found.values()),
            classes,
            self.names.tables,
            (*dict.fromkeys([*self.top.found.compiled, *self.compiled]),),
            others,
        )

    def _read(self, name: str) -> None:
        node, owner, env = self.pending[name]
        if owner is not None:
            self._make_ready(owner)
        found = Found()
        flow = Flow(self.names, owner, found)
        flow.env = dict(env)
        floats = _parameters(flow, node, owner)
        flow.run(node.body)
        decorators = self._decorators(node)
        self.found[name] = Function(
            name,
            owner.name if owner else "",
            node.lineno,
            decorators,
            any(target in known.COMPILERS for target in decorators),
            tuple(found.calls.values()),
            tuple(dict.fromkeys(found.candidates)),
            floats,
        )
        self.compiled += found.compiled
        for inner, around in flow.nested:
            prefix = f"{name}.<locals>."
            if isinstance(inner, ast.ClassDef):
                self._add_class(inner, prefix, around)
            else:
                self._add_function(inner, prefix + inner.name, owner, around)
                self.queue.append(prefix + inner.name)
        for call in found.calls.values():
            self.queue += self.by_name.get(re.split(r"[.:]", call.target)[-1], ())
        for decorator in decorators:
            self.queue += self.by_name.get(decorator.rpartition(".")[2], ())
        for target in found.compiled:
            self.queue += self.by_name.get(re.split(r"[.:]", target)[-1], ())

    def _make_ready(self, owner: ClassNames) -> None:
        """Find out what the constructor puts where; bases of this file first."""
        if owner.name in self.ready:
            return
        self.ready.add(owner.name)
        for base in owner.bases:
            parent = self.names.classes.get(base)
            if parent is not None and parent is not owner:
                self._make_ready(parent)
                owner.kinds = {**parent.kinds, **owner.kinds}
                owner.made_by = {**parent.made_by, **owner.made_by}
                owner.numbers |= parent.numbers
        for method in ("__init__", "setup", "build", "__post_init__"):
            node = owner.methods.get(method)
            if node is not None:
                constructor = _Constructor(self.names, owner, Found())
                constructor.muted = True
                constructor.env = {arg.arg: _of_argument(arg) for arg in _arguments(node)}
                constructor.run(node.body)


class _Constructor(Flow):
    """Reads a constructor for what it puts into ``self``."""

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if _own_attribute(target):
                self._keep(target.attr, node.value)  # type: ignore[attr-defined]
        super()._assign(node)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        if _own_attribute(node.target) and node.value is not None:
            self._keep(node.target.attr, node.value)  # type: ignore[union-attr]
        super()._ann_assign(node)

    def _expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and last_name(call.func) in ("register_buffer", "register_parameter"):
            name = call.args[0] if call.args else None
            if self.owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
                self.owner.kinds[name.value] = TENSOR
        super()._expr(node)

    def _keep(self, name: str, value: ast.expr) -> None:
        owner = self.owner
        if owner is None:
            return
        kind = self.kind(value)
        if isinstance(value, ast.Call):
            maker = self.dotted(value.func)
            if maker:
                owner.made_by[name] = maker
                kind = TENSOR if maker.endswith("nn.Parameter") or maker.endswith(".Buffer") else kind
                if maker.startswith("torch.nn.") and kind is VALUE:
                    return  # a module, of which calls matter
        if _is_number(value):
            owner.numbers.add(name)
        if kind is not UNKNOWN:
            owner.kinds[name] = join(owner.kinds.get(name, kind), kind)


# ---- parameters ----


def _parameters(
    flow: Flow, node: FunctionNode, owner: ClassNames | None
) -> tuple[tuple[str, tuple[int, int, int, int]], ...]:
    """Give the parameters their kinds. Those annotated as a float without a default, with their places."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr] = dict(
        zip([arg.arg for arg in positional[::-1]], arguments.defaults[::-1], strict=False)
    )
    defaults |= {
        arg.arg: default
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    }
    open_: list[str] = []
    floats = []
    for index, arg in enumerate((*positional, *arguments.kwonlyargs)):
        name = arg.arg
        if index == 0 and name in ("self", "cls"):
            flow.env[name] = UNKNOWN
            continue
        kind = of_annotation(arg.annotation)
        if arg.annotation is not None:
            _remember_type(flow, name, arg.annotation)
            if last_name(arg.annotation) == "float" and name not in defaults:
                place = (arg.lineno, arg.col_offset, arg.end_lineno or arg.lineno, arg.end_col_offset or 0)
                floats.append((name, place))
        elif name in defaults and _is_plain(defaults[name]):
            kind = VALUE
        else:
            open_.append(name)
        flow.env[name] = kind
        if is_lazy(arg.annotation):
            _lazy_parameter(flow, node, name)
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            flow.env[rest.arg] = UNKNOWN
    flow.parameters = frozenset(flow.env)
    if open_:
        evidence = _used_as_tensors(flow, node, frozenset(open_))
        forward = node.name == "forward" and owner is not None
        for name in open_:
            if name in evidence:
                flow.env[name] = TENSOR
            elif forward and name not in defaults:
                flow.env[name] = MAYBE
    return tuple(floats)


def _lazy_parameter(flow: Flow, node: FunctionNode, name: str) -> None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.For) and isinstance(inner.iter, ast.Name) and inner.iter.id == name:
            flow.report("BS114", inner.iter, likely=False, about="an iterator made outside")


def _remember_type(flow: Flow, name: str, annotation: ast.expr) -> None:
    """Which class a parameter is of, where its annotation names just one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Optional":
        annotation = annotation.slice
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        annotation = annotation.left
    if isinstance(annotation, ast.Name | ast.Attribute) and of_annotation(annotation) is UNKNOWN:
        dotted = flow.names.dotted(annotation)
        if dotted:
            flow.types[name] = dotted


def _used_as_tensors(flow: Flow, node: FunctionNode, names: frozenset[str]) -> set[str]:
    """Parameters that the function treats as only a tensor can be treated."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            if (
                inner.attr in known.TENSOR_ONLY
                and isinstance(inner.value, ast.Name)
                and inner.value.id in names
            ):
                found.add(inner.value.id)
        elif isinstance(inner, ast.Call) and inner.args:
            first = inner.args[0]
            if isinstance(first, ast.Name) and first.id in names and _takes_tensor(flow, inner.func):
                found.add(first.id)
    return found


def _takes_tensor(flow: Flow, func: ast.expr) -> bool:
    if not isinstance(func, ast.Attribute):
        return False
    owner = flow.owner
    if isinstance(func.value, ast.Name) and func.value.id == "self" and owner is not None:
        return owner.made_by.get(func.attr) in known.NN_TENSOR
    dotted = flow.names.dotted(func) or ""
    if dotted.startswith("torch.nn.functional."):
        return True
    name = dotted.rpartition(".")[2]
    plain = (
        known.TORCH_VALUES
        | known.SIZED
        | {"tensor", "as_tensor", "from_numpy", "full", "stack", "cat", "where"}
    )
    return dotted == f"torch.{name}" and name not in plain and name[:1].islower()


# ---- small things ----


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a block and of the conditionals in it, in order."""
    for node in body:
        if isinstance(node, _BLOCKS):
            yield from _flat(node.body)
            if isinstance(node, ast.If | ast.Try):
                yield from _flat(node.orelse)
            if isinstance(node, ast.Try):
                for handler in node.handlers:
                    yield from _flat(handler.body)
                yield from _flat(node.finalbody)
            if isinstance(node, ast.If):
                continue
        else:
            yield node


def _members(value: ast.expr) -> tuple[str, ...]:
    """Names of the functions and classes in a table of them."""
    if isinstance(value, ast.Dict):
        return tuple(one.id for one in value.values if isinstance(one, ast.Name))
    if isinstance(value, ast.List | ast.Tuple):
        return tuple(one.id for one in value.elts if isinstance(one, ast.Name))
    if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Dict):
        return _members(value.args[0])
    return ()


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _arguments(node: FunctionNode) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _of_argument(arg: ast.arg) -> Kind:
    """Arguments of constructors are sizes and settings, unless they say otherwise."""
    kind = of_annotation(arg.annotation)
    return VALUE if kind is UNKNOWN and arg.annotation is None else kind


def _own_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_number(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is not None
