"""Remedies for Python numbers: an argument, an optimizer's learning rate, an attribute of a module."""

from __future__ import annotations

import ast
import re

from breakscope.fix.patch import Edit, Refusal
from breakscope.fix.remedies.buffers import buffer
from breakscope.fix.remedies.calls import hidden, sites
from breakscope.fix.remedies.operands import only_computed_with
from breakscope.fix.remedies.shapes import PARAMETER, dynamic
from breakscope.fix.remedies.source import File, Files
from breakscope.fix.remedies.subject import Proposal, Subject

_GROUP = re.compile(r"param_groups\[\d+\]\['(?P<name>\w+)'\]$")
_OPTIMIZER = re.compile(r"(?:^|\.)optim\.\w+$|(?:^|\.)(?:SGD|Adam\w*|RMSprop|Ada\w+|NAdam|RAdam|Muon)$")
_INT = re.compile(r"-?\d+$")
_FLOAT = re.compile(r"-?(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?$|-?\d+e[+-]?\d+$")
# A double keeps every digit of the Python float; having no dimension, it does not change a result's dtype.
_TENSOR = "torch.tensor({}, dtype=torch.float64)"
_OPTIONS = {
    "allow_unspec_int_on_nn_module": "ints of all modules become symbolic after their second value",
    "force_parameter_static_shapes": "sizes of all parameters become symbolic after their second value",
    "recompile_limit": "every function may be compiled that many times",
}


def int_value(subject: Subject, files: Files) -> list[Proposal]:
    """For an int argument: ``dynamic=True`` makes it symbolic from the start."""
    guard = subject.guard
    proposals = dynamic(subject, files)
    if {"0", "1"} & set(guard.values):
        proposals.append(Refusal(f"0 and 1 are always compiled apart, and {guard.source} was one of them"))
    return proposals


def float_value(subject: Subject, files: Files) -> list[Proposal]:
    """For a float argument: a tensor; for an optimizer's hyperparameter: a tensor where it is made."""
    guard = subject.guard
    source = guard.source or ""
    if found := _GROUP.search(source):
        return [_hyperparameter(subject, files, found["name"])]
    edits: list[Edit] = []
    typed = source
    for site in sites(subject.signatures, files):
        # A number has no identity: it is followed by the parameter's name alone.
        path = next(
            (p for signature in site.signatures if (p := _parameter(signature.parameters, source))), None
        )
        argument = site.argument(path) if path else None
        if argument is None:
            named = next((k.value for k in site.call.keywords if k.arg == source), None)
            if named is None:
                return [
                    hidden(subject, source),
                    *dynamic(subject, files),
                ]
            node = named
        else:
            node = argument.node
        typed = site.file.source(node)
        edits += [site.file.replace(node, _TENSOR.format(typed)), *site.file.torch_import()]
    if not edits:
        return [Refusal("no call in your own files is known to have caused these compiles")]
    summary = f"pass {source} as a tensor: {_TENSOR.format(typed)}"
    computed = only_computed_with(subject, files, source)
    limit = (
        f"{source} must be a float in every call, and what it is computed with floating-point tensors: "
        "integers give float64 then"
    )
    caveat = (
        f"{source} is a tensor of float64 in the function, and in its hooks: isinstance, format and math see "
        "one, what it is stored in keeps one, and integer tensors give float64 with it"
    )
    patch = subject.patch(
        "scalar-to-tensor",
        summary,
        edits,
        caveat=None if computed else caveat,
        limits=(limit,) if computed else (),
    )
    return [patch, *dynamic(subject, files)]


def _parameter(parameters: tuple[str, ...], source: str) -> str | None:
    return f"args[{parameters.index(source)}]" if source in parameters else None


def _hyperparameter(subject: Subject, files: Files, name: str) -> Proposal:
    """``lr=0.1`` -> ``lr=torch.tensor(0.1, dtype=torch.float64)`` where the optimizer is made."""
    paths = [
        subject.main,
        *(signature.call.file for signature in subject.signatures if signature.call is not None),
    ]
    for path in dict.fromkeys(paths):
        file = files.open(path)
        calls = (node for node in ast.walk(file.tree) if isinstance(node, ast.Call)) if file else ()
        for call in calls:
            value = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
            if file is None or value is None or not _OPTIMIZER.search(ast.unparse(call.func)):
                continue
            text = _TENSOR.format(file.source(value))
            edits = (file.replace(value, text), *file.torch_import())
            caveat = (
                f"param_groups and state_dict() of the optimizer hold a tensor as {name} from then on: "
                f"checkpoints, json and print show it, groups without a {name} of their own share it, and "
                "what changes it in place changes it wherever it was noted"
            )
            return subject.patch(
                "scalar-to-tensor", f"give the optimizer {name}={text}", edits, caveat=caveat
            )
    return Refusal(f"the optimizer is not made with {name}= in your own files")


def module_attribute(subject: Subject, files: Files) -> list[Proposal]:
    """For an attribute of a module: Dynamo's own option for ints; else a buffer, which is no constant."""
    guard = subject.guard
    source = guard.source or "the attribute"
    if source.endswith(".training"):
        return [
            Refusal(
                "training and evaluation are two programs, compiled once each; the warm-up plan compiles "
                "both at start-up (breakscope report --format warmup)"
            )
        ]
    values = guard.values
    if values and all(_INT.match(value) for value in values):
        return [*unspecialised(subject, files), *buffer(subject, files, "torch.tensor({})")]
    if values and all(_INT.match(value) or _FLOAT.match(value) for value in values):
        made = buffer(subject, files, _TENSOR)
        return made or [
            Refusal(
                f"no module's __init__ sets {source} in an assignment of its own: hold it in a tensor, which "
                "is a buffer where a module holds it"
            )
        ]
    shown = ", ".join(values) or "several values"
    return [Refusal(f"{source} decides which code runs ({shown}): each of its values has to be compiled")]


def unspecialised(subject: Subject, files: Files) -> list[Proposal]:
    """``allow_unspec_int_on_nn_module``: ints of modules become symbolic after their second value."""
    return config(subject, files, "allow_unspec_int_on_nn_module", "True", "unspecialised-int")


def parameter_size(subject: Subject, files: Files) -> list[Proposal]:
    """``force_parameter_static_shapes = False``, where the size that differed is one of a parameter."""
    if PARAMETER not in subject.guard.expression:
        return []
    return config(subject, files, "force_parameter_static_shapes", "False", "dynamic-parameters")


def config(subject: Subject, files: Files, name: str, value: str, rule: str) -> list[Proposal]:
    """An option of Dynamo, set in the script behind its imports."""
    file = files.open(subject.main)
    if file is None:
        return [Refusal("the script is not a Python file that can be read")]
    line = f"torch._dynamo.config.{name} = {value}"
    if (own := _sets_option(file, name)) is not None:
        return [Refusal(f"the script sets torch._dynamo.config.{name} itself, in line {own}")]
    imports = file.torch_import()
    if imports:
        line = f"import torch\n\n{line}"
    caveat = f"the option holds for everything that the process compiles: {_OPTIONS[name]}"
    edits = (file.at_top(line),)
    return [subject.patch(rule, f"set torch._dynamo.config.{name} = {value}", edits, caveat=caveat)]


def _sets_option(file: File, name: str) -> int | None:
    """The line in which a file sets an option of Dynamo; None if it does not."""
    return next(
        (
            part.lineno
            for part in ast.walk(file.tree)
            if isinstance(part, ast.Attribute) and part.attr == name and isinstance(part.ctx, ast.Store)
        ),
        None,
    )
