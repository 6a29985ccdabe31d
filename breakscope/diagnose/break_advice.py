"""What to do about one graph break: the code's instruction, made precise by what the site is for."""

from __future__ import annotations

import re

from breakscope import catalog
from breakscope.diagnose.records import Reason
from breakscope.diagnose.shapes import Shape

_CONFIG = "torch._dynamo.config"
_SCALARS = f"{_CONFIG}.capture_scalar_outputs = True"
_SHAPES = f"{_CONFIG}.capture_dynamic_output_shape_ops = True"

_CHECK = (
    "Assert it on the tensor, without .item() and with a constant text: assert (x >= 0).all(), 'negative'."
    " Dynamo"
    " traces that as torch._assert_async, which raises RuntimeError; for sizes and Python numbers use"
    " torch._check."
)
_BY_SHAPE: dict[tuple[str, Shape], str] = {
    (
        "BS101",
        "loop",
    ): "How often the loop runs depends on data: keep it outside of the compiled function and compile"
    " its body, run a fixed number of turns with torch.where, or use torch.while_loop.",
    (
        "BS101",
        "layerdrop",
    ): "Set the model's layerdrop to 0 where it is not wanted; else draw the numbers in the caller,"
    " or compile the layers one by one and leave this loop in Python.",
    (
        "BS102",
        "size",
    ): f"A Python number is needed here: compute it before the compiled call and pass it in, or set"
    f" {_SCALARS}, with torch._check on its bounds where the code compares it.",
    ("BS101", "fast path"): (
        "The branch leaves early or sets None, so torch.where cannot select: decide it before the compiled"
        " call and"
        " pass a Python bool (or no mask at all where it is all ones), or take the fast path out."
    ),
    ("BS102", "fast path"): (
        "The branch leaves early or sets None, so torch.where cannot select: decide it before the compiled"
        " call and"
        " pass a Python bool (or no mask at all where it is all ones), or take the fast path out."
    ),
    ("BS102", "branch"): (
        "It decides a branch: drop the .item(), compute both sides and select with torch.where, or use"
        " torch.cond"
        " if a side is costly."
    ),
    ("BS105", "experts"): (
        f"Run each expert on all tokens, weighted with 0 where it was not chosen, or set {_SHAPES}; else put"
        " torch.compiler.disable on this block, and the rest stays whole."
    ),
    ("BS102", "experts"): (
        f"Run each expert on all tokens, weighted with 0 where it was not chosen, or set {_SHAPES}; else put"
        " torch.compiler.disable on this block, and the rest stays whole."
    ),
    ("BS106", "check"): _CHECK,
}
# (codes, what the record says, the advice). First match wins.
_BY_TEXT: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("BS104",),
        r"\b\w*[lL]ogger\b|\blogging\b(?!_functions)",
        (
            f"Remove the call, or add the method to {_CONFIG}.ignore_logging_functions, which then says"
            " nothing where it is compiled."
        ),
    ),
    (
        ("BS104",),
        r"warn",
        (
            f"Warn before the compiled call, or add the function to {_CONFIG}.reorderable_logging_functions:"
            " it then runs after the graph."
        ),
    ),
    (
        ("BS104",),
        r"\bprint\b",
        (
            f"Remove the call, or say {_CONFIG}.reorderable_logging_functions.add(print) once: the text then"
            " comes after"
            " the graph."
        ),
    ),
    (
        ("BS102",),
        r"\.tolist\(\)|Tensor\.tolist",
        (
            f"Keep the values in a tensor; where Python needs the list, call tolist() in the caller, or set"
            f" {_SCALARS}"
            " (integers only)."
        ),
    ),
    (
        ("BS102",),
        r"capture_scalar_outputs|\.item\(\)",
        (
            "Drop the .item(), int() or float() where a 0-d tensor will do (arithmetic, torch.where); where"
            " Python needs"
            f" the number, set {_SCALARS}."
        ),
    ),
    (
        ("BS103",),
        r"tolist",
        "Return the tensor and call tolist() in the caller: Dynamo traces it for integers only.",
    ),
    (
        ("BS103",),
        r"aten\.(equal|allclose|is_nonzero)",
        (
            "Compare with operations that give a tensor, (a == b).all() or torch.isclose(a, b).all(), and"
            " take its bool in the caller."
        ),
    ),
    (
        ("BS105",),
        r"repeat_interleave",
        "Give torch.repeat_interleave its output_size=, which then need not be read from the data.",
    ),
    (
        ("BS105",),
        r"one_hot",
        "Give torch.nn.functional.one_hot its num_classes=, which then need not be read from the data.",
    ),
    (
        ("BS105",),
        r"masked_select|nonzero|index|unique|bincount",
        (
            f"Keep the shape: torch.where(mask, f(x), other) over all elements; or set {_SHAPES}, where the"
            " rest of the graph can do with an unknown size."
        ),
    ),
    (
        ("BS115",),
        r"Parameter\(\)` constructor",
        (
            "Make the parameter, and modules that have one, in __init__ or before the compiled call: forward"
            " only reads"
            " it."
        ),
    ),
    (
        ("BS120",),
        r"",
        (
            "Take what breaks out of the functions given to the operator (prints, .item(), writes to outer"
            " values): they"
            " must be traced whole."
        ),
    ),
)


def advice(
    code: str, inner: str, cause: Reason, shape: Shape, function: str | None, *, in_loop: bool = False
) -> str:
    """What to do, in one or two sentences.

    Args:
        code: of the finding; inner: of what broke, where the finding is that its frame was given up.
        function: what runs eagerly until then; in_loop: whether that is because the break is in a loop.
    """
    if code == "BS306" and inner == catalog.GENERIC:
        return catalog.entry(code).fix
    if code in ("BS301", "BS302", "BS305", "BS306") and not inner.startswith("BS3"):
        whole = _of_cause(inner, cause, shape).rstrip(".")
        way_out = "; or compile the loop's body instead of the loop" if in_loop else ""
        return f"{whole}. Until then {_until_then(code, function)}{way_out}."
    return _of_cause(code, cause, shape)


def _until_then(code: str, function: str | None) -> str:
    if code == "BS305":
        return "fullgraph=True raises"
    return f"all of {function or 'the function'} runs eagerly"


def _of_cause(code: str, cause: Reason, shape: Shape) -> str:
    if (code, shape) in _BY_SHAPE:
        return _BY_SHAPE[code, shape]
    # Hints name functions that have nothing to do with this break ("e.g. `print`").
    hints = cause.hints if code == "BS102" else ()
    said = "\n".join((cause.gb_type, cause.explanation, cause.context or "", *hints))
    for codes, pattern, text in _BY_TEXT:
        if code in codes and re.search(pattern, said):
            return text
    if code == catalog.GENERIC and cause.hints:
        return " ".join(cause.hints[0].split())
    return catalog.entry(code).fix
