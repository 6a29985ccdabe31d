"""Who else may hold a tensor or see it change, and whether gradients are recorded: facts from the source."""

from __future__ import annotations

import ast

from breakscope.fix.rule import Site
from breakscope.fix.scope import dotted, enclosing_statement, loads, names_in, own_nodes

# What can stand on the right of ``+=`` only where the left is no tensor.
_NO_OPERAND = (ast.Tuple, ast.List, ast.ListComp, ast.JoinedStr)


def lexically_off(site: Site, node: ast.AST) -> bool:
    """Whether the function itself switches the recording of gradients around a node."""
    modes = {"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"}
    while node is not site.function:
        node = site.parents[node]
        around: list[ast.expr] = []
        if isinstance(node, ast.With):
            around = [item.context_expr for item in node.items]
        elif node is site.function:
            around = site.function.decorator_list
        names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for top in around
                 for one in ast.walk(top)}  # fmt: skip
        if names & modes:
            return True
    return False


def unshared(site: Site, name: str) -> bool:
    """Whether a local tensor is reachable by this name only, so that rebinding is as good as writing."""
    function = site.function
    if name in {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}:
        return False
    for node in own_nodes(function):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not any(name in names_in([target]) for target in targets):
            continue
        if len(targets) > 1 or not isinstance(targets[0], ast.Name) or not _makes_new(site, node.value):
            return False
    return all(_only_computes(site, one) for one in loads([function], name))


def changed_in_place(site: Site, outside: ast.AST) -> str | None:
    """The name of a tensor that a function writes into after one statement, and that others may hold.

    What is written before it cannot matter: whoever holds the tensor then sees the same in old and new code.
    """
    inside = {id(node) for node in ast.walk(outside)}
    for node in ast.walk(site.function):
        if id(node) in inside or certainly_before(site, node, outside):
            continue
        written: ast.expr | None = None
        if isinstance(node, ast.AugAssign):
            # ``outputs += (weights,)``: a tensor would raise.
            written = None if isinstance(node.value, _NO_OPERAND) else node.target
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            written = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            attribute = node.func.attr
            writes = attribute.endswith("_") and not attribute.endswith("__")
            written = node.func.value if writes else None
        if written is None or _is_no_tensor(site, node, written):
            continue
        root = next((one.id for one in ast.walk(written) if isinstance(one, ast.Name)), None)
        if root is None or not (isinstance(written, ast.Name) and unshared(site, root)):
            return root or ast.unparse(written)
    return None


def certainly_before(site: Site, node: ast.AST, statement: ast.AST) -> bool:
    """Whether a node stands above a statement, and neither a loop nor a later call of it leads back to it."""
    line = getattr(node, "end_lineno", None)
    if line is None or line >= getattr(statement, "lineno", 0):
        return False
    repeats = (ast.For, ast.AsyncFor, ast.While)
    around = [one for one in _above(site, statement) if isinstance(one, repeats)]
    own = _above(site, node)
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
    return not any(one in own for one in around) and not any(isinstance(one, nested) for one in own)


def _above(site: Site, node: ast.AST) -> list[ast.AST]:
    """The nodes around a node, up to the function's body."""
    found: list[ast.AST] = []
    while node is not site.function:
        found.append(node)
        node = site.parents[node]
    return found


def _is_no_tensor(site: Site, node: ast.AST, written: ast.expr) -> bool:
    """Whether what is written was seen, and never was a tensor: a counter, a list."""
    seen = site.seen(written)
    if seen is None:
        entry = site.evidence.entry.get(site.span(enclosing_statement(site, node)), {})
        seen = entry.get(ast.unparse(written))
    return seen is not None and "tensor" not in seen.kinds


def _makes_new(site: Site, value: ast.expr) -> bool:
    """Whether an expression certainly gives a tensor of its own: arithmetic, or an explicit copy."""
    if isinstance(value, ast.BinOp | ast.UnaryOp):
        return not isinstance(getattr(value, "op", None), ast.UAdd)
    makers = ("clone", "relu", "exp", "tanh", "sigmoid", "zeros_like", "ones_like", "abs")
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.keywords:
        return False
    receiver = site.seen(value.func.value)
    is_method = receiver is not None and receiver.only("tensor")
    return value.func.attr in makers and (is_method or str(dotted(site, value.func)).startswith("torch."))


def _only_computes(site: Site, node: ast.Name) -> bool:
    parent = site.parents[node]
    if isinstance(parent, ast.BinOp | ast.Compare | ast.Return):
        return True
    if isinstance(parent, ast.AugAssign):
        return True
    if isinstance(parent, ast.Attribute):
        call = site.parents[parent]
        reductions = ("sum", "mean", "max", "min", "any", "all", "abs", "isnan", "isinf", "norm", "clone")
        return isinstance(call, ast.Call) and call.func is parent and parent.attr in reductions
    return False
