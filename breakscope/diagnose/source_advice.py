"""What to do about a break, by what its source calls: torch's record does not say what an operator is for."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass

from breakscope.diagnose import uses
from breakscope.diagnose.break_words import CONFIG, CTC, SHAPES
from breakscope.source.syntax import grouped

_UNBRANCHED = "as long as nothing branches on how many there are"

_SPARSE = (
    "Dynamo does not trace sparse tensors: put torch.compiler.disable on a function that makes and uses them"
    " (one that comes as an argument leaves the frame that takes it eager);"
    " or pass dense ones, or write the product a @ b as torch.zeros_like(b).index_add(0, row, value[:, None]"
    " * b[col]) of clones, row, col = a.indices().clone() and value = a.values().clone(), made in the caller."
)

_NO_FORM = (
    "The operator is torch's own and has no form for tracing: call it outside of the compiled function, or"
    " put torch.compiler.disable on the function that holds the line."
)

# numpy's name -> what torch has for it. What torch._numpy translates itself never breaks.
_OF_NUMPY = {
    "digitize": "torch.bucketize(x, edges, right=True)",
    "searchsorted": "torch.searchsorted",
    "convolve": "torch.nn.functional.conv1d, which does not turn the kernel round",
    "nanmean": "torch.nanmean",
    "nansum": "torch.nansum",
    "nanmedian": "torch.nanmedian",
    "isin": "torch.isin",
    "unique": "torch.unique",
    "gradient": "torch.gradient",
    "trapz": "torch.trapezoid",
    "trapezoid": "torch.trapezoid",
    "logaddexp": "torch.logaddexp",
    "cumprod": "torch.cumprod",
    "unravel_index": "torch.unravel_index",
    "lexsort": "torch.argsort(…, stable=True) for one key after the other, the last key last",
    "argpartition": "torch.topk",
    "partition": "torch.topk",
    "nanmax": "torch.nan_to_num(x, nan=-torch.inf).max()",
    "nanmin": "torch.nan_to_num(x, nan=torch.inf).min()",
    "setdiff1d": "a mask by torch.isin",
    "interp": "torch.searchsorted, and weigh the two neighbours",
}

OF_MATH = (
    "sqrt",
    "log",
    "log2",
    "log10",
    "log1p",
    "exp",
    "sin",
    "cos",
    "tan",
    "tanh",
    "floor",
    "ceil",
    "isnan",
    "isinf",
    "isfinite",
    *("acos", "asin", "atan", "atan2", "cosh", "sinh", "erf", "lgamma", "hypot"),
)


@dataclass(frozen=True, slots=True)
class _Row:
    """The codes, what the expression, the statement and the function's name say, and the advice."""

    codes: tuple[str, ...]
    expression: str
    advice: str
    statement: str = ""
    in_function: str = ""


_TABLE = (
    _Row(
        ("BS127",),
        r"\bgenerator=",
        "A torch.Generator draws, which Dynamo does not trace: leave generator= out (the numbers then follow"
        " torch.manual_seed), or draw in the caller and pass in what came out.",
    ),
    _Row(
        ("BS102", "BS110", "BS111"),
        r"\b(np|numpy)\.clip\(",
        "numpy gives an array, which Dynamo holds as a tensor: for Python numbers write min(max(x, low),"
        " high), for tensors torch.clamp.",
    ),
    _Row(
        ("BS105",),
        r"\bunique(_consecutive)?\(",
        f"How many values there are depends on data: set {SHAPES}, which puts it into the graph,"
        f" {_UNBRANCHED}; or take the unique values before the compiled call.",
    ),
    _Row(
        ("BS105",),
        r"\blstsq\(",
        "torch.linalg.lstsq gives residuals too, and how many depends on data: torch.linalg.pinv(a) @ b is"
        " the solution of torch.linalg.lstsq(a, b) alone.",
    ),
    _Row(
        ("BS105",),
        r"\bctc_loss\(",
        CTC,
    ),
    _Row(
        ("BS105",),
        r"\b(nonzero|argwhere|flatnonzero)\(|\bwhere\([^,]*\)$",
        "Work on the mask instead of its positions where that does: mask.sum() counts, torch.where(mask,"
        f" f(x), other) selects; or set {SHAPES}, {_UNBRANCHED}.",
    ),
    _Row(
        ("BS111",),
        r"\b(max|min)\(\[|\b(max|min)\(.*\bdefault=",
        "Of tensors take it of one, torch.stack([…]).max() or .min(), and leave an empty list to a branch of"
        " Python's on its length; of Python's numbers give it a list, max([… for …], default=0), which Dynamo"
        " traces.",
    ),
    _Row(
        ("BS107", "BS111", "BS121", "BS190", "BS191"),
        r"\bautograd\.functional\.",
        "Use torch.func in its place, which Dynamo traces: jacrev(f)(x) for jacobian(f, x), hessian(f)(x),"
        " vjp and jvp.",
    ),
    _Row(
        ("BS102",),
        r"",
        "The objects are pickled: gather them outside of the compiled function, or gather tensors with"
        " all_gather_into_tensor.",
        r"\b(all_gather|gather|broadcast|scatter)_object",
    ),
    _Row(
        ("BS104",),
        r"\b(trange|tqdm[\w.]*)\(",
        "A progress bar is what the loop runs over: loop over range(…), or over what the bar is given, in"
        " compiled code, and show the progress in the caller.",
        statement=r"^(enumerate\()?([\w.]+\.)?(trange|tqdm)\(",
    ),
    _Row(
        ("BS104",),
        r"\.(write|writelines|flush)\(|\btqdm\b",
        "Remove the call, or make it in the caller, after the compiled call: torch cannot run a method of a"
        " file or of a progress bar behind the graph.",
    ),
    _Row(
        ("BS104",),
        r"^p?print\(.*\bfile=",
        "Remove the call, or print in the caller: torch runs print after the graph only where it has no"
        " file=.",
    ),
    _Row(
        ("BS104",),
        r"^p?print\(.*\.(item|tolist)\(",
        "Remove the call; or give it the tensor itself, without .item(), and a number that changes as a text,"
        f" str(step), and say {CONFIG}.reorderable_logging_functions.add(print) once: the text then comes"
        " after the graph.",
    ),
    _Row(
        ("BS111",),
        r"\bprod\(\(.*\bfor\b",
        "Give prod a list, prod([… for …]): Dynamo traces that, and no generator as its argument.",
    ),
    _Row(
        ("BS110", "BS111"),
        r"\b(np|numpy)\.(ceil|floor|log2?|log10|sqrt|round|prod)\(.*\.(astype|item)\(",
        "numpy gives an array, which Dynamo holds as a tensor: compute a number of numbers with plain Python,"
        " math.ceil(math.log(n)), and it is known while tracing (of a size, for each that comes anew).",
    ),
    _Row(
        ("BS110", "BS111"),
        r"\b(np|numpy)\.isscalar\(",
        "Ask isinstance(x, (int, float)) in place of numpy.isscalar(x): Dynamo answers that while it traces.",
    ),
    _Row(
        ("BS107",),
        r"\btorch\.(save|load)\(",
        "It reads or writes a file: do that in the caller, before or after the compiled call.",
    ),
    _Row(
        ("BS107",),
        r"\.wait\(",
        "Leave out async_op=True: the synchronous form is part of the graph, and there is nothing to wait"
        " for.",
    ),
    _Row(
        ("BS107", "BS117"),
        r"sparse|coalesce\(",
        _SPARSE,
        r"sparse|coalesce\(",
    ),
    _Row(
        ("BS117", "BS119"),
        r"",
        "Give torch.nested.nested_tensor layout=torch.jagged, which Dynamo traces, or pad the parts with"
        " torch.nn.utils.rnn.pad_sequence.",
        r"\bnested\b",
    ),
    _Row(
        ("BS119",),
        r"^torch\.(?!ops\.)",
        _NO_FORM,
    ),
    _Row(
        ("BS123",),
        r"\b(sort|sorted)\(",
        "The keys are no constants while Dynamo traces: tensors, numbers read from them, what came out of a"
        " break, or numbers made of a size, which torch takes for any after its second value (one size, as"
        " with drop_last=True, or dynamic=False keeps these constant). Stack tensors and use torch.argsort or"
        " torch.topk; order Python objects in the caller.",
    ),
    _Row(
        ("BS127",),
        r"\bchoice\(.*\bp=",
        "Draw it with torch.multinomial(p, n, replacement=True), which is part of the graph, or choose in the"
        " caller.",
    ),
    _Row(
        ("BS127",),
        r"\b(shuffle|choices?|sample|permutation|randrange)\(",
        "Choose, or shuffle, in the caller, where it has what is chosen from, and pass in what came out,"
        " numbers as tensors (other numbers of Python's are other versions); for an index into a tensor use"
        " torch.randperm(n)[:k], or torch.randint where one may come twice.",
    ),
    _Row(
        ("BS120",),
        r"",
        "Dynamo traces the backward of an autograd.Function with its forward, and this line changes state"
        " there: put torch.compiler.disable on the function that calls apply(), or compute the gradient with"
        " operations alone.",
        in_function=r"\.backward$",
    ),
    _Row(
        ("BS115",),
        r"",
        "Freeze a parameter, and unfreeze it, outside of the compiled function; or leave both out, and take"
        " the gradients of the others alone, torch.autograd.grad(loss, parameters).",
        statement=r"(^|\bself\.|\W)(p|param|parameter|w|weight|bias|\w*_params?)\.requires_grad = False",
    ),
    _Row(
        ("BS115",),
        r"",
        "Data needs no gradients, and a tensor from a loader has none: delete the line, or use x.detach() in"
        " place of x further on.",
        statement=r"\.requires_grad = False",
    ),
    _Row(
        ("BS104",),
        r"\btqdm\(|\btrange\(",
        "Open the bar around the compiled call, and update it there; in what is compiled use none.",
        statement=r"^with ",
    ),
    _Row(
        ("BS115",),
        r"\.new\(\)\.resize_\(",
        "Make the tensor by x.new_empty(size) in place of x.new().resize_(size), which Dynamo traces.",
    ),
    _Row(
        ("BS115",),
        r"\.resize_\(.*\)\.(zero_|fill_)\(|\.resize_\(",
        "Make a new tensor in place of resize_(size), which Dynamo traces: torch.zeros(size) where it is"
        " filled with zeros, x.new_empty(size) where it is written whole.",
        statement=r"\.resize_\(.*\)\.(zero_|fill_|copy_)\(",
    ),
    _Row(
        ("BS107",),
        r"\.detach_\(",
        "Leave detach_() out, which Dynamo does not trace: x = x.detach() is another tensor; a gradient has"
        " no history of its own, but where create_graph=True made one, and .grad = None empties it.",
    ),
    _Row(
        ("BS127",),
        r"\.random_\(",
        "Draw it with torch.randint(low, high, size) in place of random_(low, high), which is part of the"
        " graph; where a slice begins or ends there, select by position, torch.where(torch.arange(n) >= cut,"
        " …, …).",
    ),
    _Row(("BS127",), r"\b(manual_)?seed(_all)?\(", "Set the seed before the compiled call."),
    _Row(
        ("BS127",),
        r"(?<!\.)\brandom\.random\(\)",
        "Draw the number in the caller and pass it in, or use random.uniform(0, 1): Dynamo traces that, where"
        " no branch asks for the number.",
    ),
)


_METHOD = re.compile(r"trace method `(?P<name>(?!__)\w+)` of class `(?P<of>\w+)`")


def advice(code: str, said: str, expression: str, statement: str, function: str) -> str | None:
    """What to do, in one or two sentences; None where the source says nothing that helps.

    Args:
        said: torch's record; expression: the source of what broke; statement: of the statement around it;
            function: the name of the function that holds it.
    """
    for row in _TABLE:
        if code not in row.codes or not re.search(row.expression, expression):
            continue
        if re.search(row.statement, statement) and re.search(row.in_function, function):
            return row.advice
    if code == "BS105" and "bincount(" in expression:
        return _of_bincount(expression)
    if code == "BS119" and re.search(r"\bcall_method \w+\(.*\baten\.", said):
        return _NO_FORM
    if code == "BS110":
        return _of_arrays(said, expression)
    if "sparse Tensor" in said and code == "BS117":
        return _SPARSE
    if code == "BS107" and (name := _of_python(said, expression)):
        return of_python(name, said)
    if code == "BS107" and (method := _METHOD.search(said)):
        return (
            f"{method['of']}.{method['name']} is a method that Dynamo does not know: call it before or after"
            " the compiled function, or put torch.compiler.disable on a function around it."
        )
    return None


def of_cells(statement: str, mask: str) -> str | None:
    """What to do about one cell of each row that a mask selects; None where a statement writes none.

    It is for ``onehot[mask, column[mask]] = value``: the rows of a mask differ, so no cell is written twice.
    """
    match _parsed(statement):
        case ast.Assign([ast.Subscript(ast.Name(of), ast.Tuple([rows, at]))], value):
            pass
        case _:
            return None
    column, cells = _unselected(at, mask), _unselected(value, mask)
    if ast.unparse(rows) != mask or column == ast.unparse(at):
        return None
    put = cells if cells == ast.unparse(value) else f"{_as_operand(cells)}[:, None]"
    if re.search(rf"\b{re.escape(mask)}\b", f"{column} {put}"):
        return None
    asked = f"{_as_operand(mask)}[:, None]"
    places = f"torch.arange({of}.shape[1], device={of}.device) == {_as_operand(column)}[:, None]"
    return (
        f"The mask says which rows get a value in one of their columns: write it in all rows,"
        f" {of} = torch.where({asked} & ({places}), {put}, {of}), where {of} has two dimensions ({column}"
        " made of all rows, of which an index that does not fit is 0 outside of the mask); or set"
        f" {SHAPES}, where nothing branches on the size."
    )


def writes_by_several(statement: str) -> bool:
    """Whether a statement writes by several indices: ``table[row, column] = 1``."""
    match _parsed(statement):
        case ast.Assign([ast.Subscript(slice=ast.Tuple())]) | ast.AugAssign(ast.Subscript(slice=ast.Tuple())):
            return True
    return False


def _as_operand(expression: str) -> str:
    return grouped(ast.parse(expression, mode="eval").body, expression)


def _parsed(statement: str) -> ast.stmt | None:
    try:
        body = ast.parse(statement).body
    except SyntaxError:
        return None
    return body[0] if len(body) == 1 else None


def _unselected(value: ast.expr, mask: str) -> str:
    """An expression as source, of all elements in place of those that a mask selects."""
    text = ast.unparse(value)
    for node in ast.walk(value):
        if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == mask:
            text = text.replace(ast.unparse(node), ast.unparse(node.value))
    return text


def _of_bincount(expression: str) -> str:
    """The same counts by ``index_add``, in the names of the source: one_hot would take n times the memory."""
    call = _call_of(expression, "bincount")
    of = [call.func.value] if call is not None and isinstance(call.func, ast.Attribute) else []
    # x.bincount() counts x; of torch.bincount the first argument is counted.
    given = [
        *(one for one in of if ast.unparse(one) not in ("torch", "np", "numpy")),
        *(call.args if call else ()),
    ]
    if call is None or not given:
        return f"Count with index_add into zeros; or set {SHAPES}."
    named = {one.arg: ast.unparse(one.value) for one in call.keywords}
    index, *others = map(ast.unparse, given)
    weights = named.get("weights") or (others[0] if others else None)
    number = named.get("minlength") or (others[1] if len(others) > 1 else None)
    i = grouped(given[0], index)
    n = number or "n"
    counts = (
        f"{i}.new_zeros({n}).index_add(0, {index}, torch.ones_like({index}))"
        if weights is None
        else f"torch.zeros({n}).index_add(0, {index}, {weights})"
    )
    known = "" if number else ", with n for how many classes there are"
    return f"Count with {counts}{known}, which has no more than {n} counts; or set {SHAPES}."


def _call_of(expression: str, name: str) -> ast.Call | None:
    """The call of a function in an expression; None where the source has only a part of it."""
    try:
        nodes = ast.walk(ast.parse(expression.strip(), mode="eval"))
    except SyntaxError:
        return None
    return next((node for node in nodes if isinstance(node, ast.Call) and uses.called(node) == name), None)


_DRAWN_BY = {
    "integers": "torch.randint(low, high, size)",
    "randint": "torch.randint(low, high, size)",
    "randn": "torch.randn(size)",
    "standard_normal": "torch.randn(size)",
    "multivariate_normal": "torch.randn(size) @ torch.linalg.cholesky(cov).T + mean",
    "normal": "mean + std * torch.randn(size)",
    "rand": "torch.rand(size)",
    "random": "torch.rand(size)",
    "random_sample": "torch.rand(size)",
    "uniform": "low + (high - low) * torch.rand(size)",
    "dirichlet": "torch.distributions.Dirichlet(alpha).sample()",
}


def of_draws(expression: str) -> str | None:
    """What to do about an array that numpy draws; None where torch has no like of it."""
    found = re.search(rf"\.({'|'.join(_DRAWN_BY)})\(", expression)
    if found is None or "generator=" in expression:
        return None
    return (
        f"An array is drawn: draw a tensor in its place, {_DRAWN_BY[found[1]]}, whose numbers follow"
        " torch.manual_seed; or draw the array in the caller and pass it in as a tensor."
    )


def of_math(call: str) -> str:
    """What to do about a function of Python's math that is given a tensor's number."""
    name = call.partition("(")[0].rpartition(".")[2]
    if name in OF_MATH:
        return (
            f"Use torch.{name} of the tensor in place of math.{name} of its number; what goes on with the"
            " result takes a tensor then: torch.where for a branch, clamp for min and max."
        )
    return f"math.{name} takes a Python number: write it with torch operations, or call it in the caller."


def of_python(name: str, said: str = "") -> str:
    """What to do about a call of Python's own library; said: torch's record of it."""
    text = f"{name} is Python's own and makes no tensor: call it before or after the compiled function"
    if name.startswith("bisect."):
        text += "; or search in a tensor, torch.searchsorted(sorted, x, right=True)"
    if "intentionally marked that the function" in said:
        traced = "put torch._dynamo.dont_skip_tracing on the compiled function, below torch.compile"
        return f"{text}; or have Dynamo trace it: {traced}. Where it raises then, take that back."
    if re.search(r"how to trace the builtin `(?!<unknown module>)", said):
        return f"{text}; or give Dynamo a Python version of it (torch.compiler.substitute_in_graph)."
    return f"{text}."


def _of_arrays(said: str, expression: str) -> str | None:
    """What numpy does has a form in torch, or none; pandas and the like work outside of compiled code."""
    other = re.search(r"\b(pandas|pyarrow|scipy|sklearn|polars|xarray|cupy|jax|cv2|PIL)\b", said)
    if other or re.search(r"\b(DataFrame|Series|Categorical)\b", f"{said} {expression}"):
        library = other[1] if other else "pandas"
        called = re.match(r"[\w.]+(?=\()", expression)
        what = f" (`{called[0]}`)" if called else ""
        return (
            f"Do the work of {library}{what} before the compiled call, and pass tensors in, or after it on"
            " what it returns; where it stands between, compile what is before it and what is behind it each"
            " by itself."
        )
    named = re.search(r"numpy function: <(?:function|built-in function|ufunc) '?(\w+)", said)
    named = named or re.search(r"\b(?:np|numpy)\.(\w+)\(", expression)
    if named and named[1] in _OF_NUMPY:
        return f"Use {_OF_NUMPY[named[1]]}, and keep the data in tensors."
    method = re.search(r"call_method NumpyNdarrayVariable\(\) (\w+)", said)
    if method:
        returned = "return the tensor, and do that in the caller"
        return f"An array's {method[1]}() is no operation on tensors: {returned}."
    return None


def _of_python(said: str, expression: str) -> str | None:
    """``hashlib.md5`` of a record that names a function of Python's own library."""
    made = re.match(r"(\w+)\.\w+\(", expression)
    if made and made[1] in sys.stdlib_module_names:
        return made[0].rstrip("(")
    found = re.search(r"module: (\w+)[\w.]*, qualname: ([\w.]+)", said)
    if found is None or found[1] not in sys.stdlib_module_names or found[1] == "builtins":
        return None
    return f"{found[1].lstrip('_')}.{found[2]}"
