"""The ways out that torch itself offers, by name and by the version that has them. Data only.

tests/catalog/test_ways.py holds every name and version against the installed torch, and compiles examples of
those that keep a graph whole.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Way:
    """One way out.

    Attributes:
        name: as it is written in code.
        since: the first torch that has it; "2.9" where every torch that is supported has it.
        does: what it does, and at which price. One or two sentences.
        codes: what it is shown for; empty for what is a question of how a program is compiled.
    """

    name: str
    since: str
    does: str
    codes: tuple[str, ...] = ()


WAYS: tuple[Way, ...] = (
    Way(
        "torch._dynamo.config.reorderable_logging_functions",
        "2.9",
        "A set of functions such as print and warnings.warn: calls of them run after the graph, in"
        " their order.",
        ("BS104",),
    ),
    Way(
        "torch._dynamo.config.ignore_logging_functions",
        "2.11",
        "A set of functions and methods such as logger.info: compiled code leaves calls of them out. Up to"
        " torch 2.10 it is called ignore_logger_methods.",
        ("BS104",),
    ),
    Way(
        "torch._higher_order_ops.print",
        "2.10",
        "Prints from inside of the graph, in the form of str.format; no break, and the order is kept.",
        ("BS104",),
    ),
    Way(
        "torch._dynamo.nonstrict_trace",
        "2.9",
        "On a function that Dynamo does not trace: the call goes into the graph whole, and AOTAutograd traces"
        " it. What the function changes besides its results, or reads besides its arguments, is not seen.",
        ("BS107", "BS126"),
    ),
    Way(
        "torch._dynamo.decorators.leaf_function",
        "2.11",
        "On a function that must run as Python at every call, with a second one that gives the shapes: the"
        " call is one operation of the graph.",
        ("BS102", "BS104", "BS126"),
    ),
    Way(
        "torch.compiler.allow_in_graph",
        "2.9",
        "On a function of tensors alone: Dynamo writes the call into the graph without looking into it."
        " Nothing checks that this is right.",
        ("BS107",),
    ),
    Way(
        "torch.compiler.substitute_in_graph",
        "2.9",
        "Gives Dynamo a Python version of a C function that it cannot trace.",
        ("BS107", "BS111"),
    ),
    Way(
        "torch._dynamo.dont_skip_tracing",
        "2.9",
        "Dynamo traces the functions of files that it would skip.",
        ("BS107",),
    ),
    Way(
        "torch._dynamo.mark_dynamic",
        "2.9",
        "Compiles one dimension for all sizes, and fails where the code allows only some.",
        ("BS201",),
    ),
    Way(
        "torch._dynamo.decorators.mark_unbacked",
        "2.9",
        "Compiles one dimension without any assumption on its size, 0 and 1 included; a branch on it breaks.",
        ("BS201", "BS214"),
    ),
    Way(
        "torch._dynamo.mark_static",
        "2.9",
        "Keeps one dimension out of dynamic shapes: each size is compiled for itself.",
        ("BS214",),
    ),
    Way(
        "torch._dynamo.config.force_parameter_static_shapes",
        "2.9",
        "Set to False, the sizes of parameters may become dynamic, as those of other tensors do.",
        ("BS201",),
    ),
    Way(
        "torch._dynamo.config.force_nn_module_property_static_shapes",
        "2.9",
        "Set to False, the sizes of tensors that are attributes of a module may become dynamic.",
        ("BS201",),
    ),
    Way(
        'torch.compiler.set_stance("eager_on_recompile")',
        "2.9",
        "What fits none of the compiled versions runs eagerly, and is not compiled.",
        ("BS303",),
    ),
    Way(
        "torch.compiler.nested_compile_region",
        "2.9",
        "On a block that repeats inside of a compiled model: it is compiled once for all of its calls.",
        ("BS402", "BS403", "BS404"),
    ),
    Way(
        "torch._dynamo.error_on_graph_break",
        "2.9",
        "Makes a break an error in one part of a program, and not in another.",
        ("BS305",),
    ),
)
