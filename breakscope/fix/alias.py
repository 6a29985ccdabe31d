"""Who else may hold a tensor or see it change, and whether gradients are recorded: facts from the source."""

from __future__ import annotations

import ast

from breakscope.fix.rule import Site
from breakscope.source.dominance import certainly_before, enclosing_statement
from breakscope.source.names import dotted, loads, names_in, own_nodes
from breakscope.source.torch_facts import OPS, is_in_place

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
        if len(targets) > 1 or not isinstance(targets[0], ast.Name) or not gives_own(site, node.value):
            return False
    return all(_only_computes(site, load) for load in loads([function], name))


def written_by(node: ast.AST) -> ast.expr | None:
    """What a node writes into, if that is a tensor: ``x`` of ``x += 1``, ``x[0] = 1`` and ``x.add_(1)``."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_in_place(node.func.attr):
        return node.func.value
    return None


def changed_in_place(site: Site, outside: ast.AST) -> str | None:
    """The name of a tensor that a function writes into after one statement, and that others may hold.

    What is written before it cannot matter: whoever holds the tensor then sees the same in old and new code.
    """
    inside = {id(node) for node in ast.walk(outside)}
    for node in ast.walk(site.function):
        if id(node) in inside or certainly_before(site, node, outside):
            continue
        written = written_by(node)
        if isinstance(node, ast.AugAssign) and isinstance(node.value, _NO_OPERAND):
            continue  # ``outputs += (weights,)``: a tensor would raise
        if written is None or _is_no_tensor(site, node, written):
            continue
        root = next((one.id for one in ast.walk(written) if isinstance(one, ast.Name)), None)
        if root is None or not (isinstance(written, ast.Name) and unshared(site, root)):
            return root or ast.unparse(written)
    return None


def _is_no_tensor(site: Site, node: ast.AST, written: ast.expr) -> bool:
    """Whether what is written was seen, and never was a tensor: a counter, a list."""
    seen = site.seen(written)
    if seen is None:
        entry = site.seen_before(enclosing_statement(site, node))
        seen = entry.get(ast.unparse(written))
    return seen is not None and "tensor" not in seen.kinds


def gives_own(site: Site, node: ast.expr) -> bool:
    """Whether an expression certainly gives a tensor that nobody else holds: a result, or a copy."""
    if isinstance(node, ast.BinOp | ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.UAdd)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    function = str(dotted(site, node.func)).startswith("torch.")
    if not (function or site.is_tensor(node.func.value)):
        return False
    # The third place of relu and its like is `inplace` too.
    flags = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
    options = {keyword.arg for keyword in node.keywords} & {None, "out", "inplace"}
    op = OPS.get(node.func.attr)
    return op is not None and not op.view and not options and True not in flags


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
