"""What the parameters of a function are: by annotation, by default, or by how they are used."""

from __future__ import annotations

import ast

from breakscope.lint import known
from breakscope.lint.flow import Flow, FunctionNode
from breakscope.lint.kinds import MAYBE, TENSOR, UNKNOWN, VALUE, is_lazy, last_name, of_annotation
from breakscope.lint.names import ClassNames

Place = tuple[int, int, int, int]


def read_parameters(
    flow: Flow, node: FunctionNode, owner: ClassNames | None
) -> tuple[tuple[str, Place], ...]:
    """Give the parameters their kinds. Those annotated as a float without a default, with their places."""
    defaults = _defaults(node.args)
    open_: list[str] = []
    floats = []
    for index, arg in enumerate((*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)):
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
    for rest in (node.args.vararg, node.args.kwarg):
        if rest is not None:
            flow.env[rest.arg] = UNKNOWN
    flow.parameters = frozenset(flow.env)
    _by_use(flow, node, owner, [(name, name in defaults) for name in open_])
    return tuple(floats)


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = [*arguments.posonlyargs, *arguments.args]
    found = dict(zip([arg.arg for arg in positional[::-1]], arguments.defaults[::-1], strict=False))
    for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found


def _by_use(flow: Flow, node: FunctionNode, owner: ClassNames | None, open_: list[tuple[str, bool]]) -> None:
    """Decide on parameters that nothing in the signature speaks about; the flags say which have a default."""
    if not open_:
        return
    evidence = _used_as_tensors(flow, node, frozenset(name for name, _ in open_))
    forward = node.name == "forward" and owner is not None
    for name, has_default in open_:
        if name in evidence:
            flow.env[name] = TENSOR
        elif forward and not has_default:
            flow.env[name] = MAYBE


def _lazy_parameter(flow: Flow, node: FunctionNode, name: str) -> None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.For) and isinstance(inner.iter, ast.Name) and inner.iter.id == name:
            flow.report("BS114", inner.iter, likely=False, about="an iterator made outside")


def _remember_type(flow: Flow, name: str, annotation: ast.expr) -> None:
    """Which class a parameter is of, where its annotation names just one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
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


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is not None
