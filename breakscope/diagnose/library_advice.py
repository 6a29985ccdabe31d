"""What a person can do about a break in code that is not theirs: an argument, a setting, another call."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from breakscope.diagnose.site_use import Shape
from breakscope.report.model import Frame
from breakscope.report.owners import path_in_package

_CONFIG = "torch._dynamo.config"
# The value decides a branch: what a setting captures breaks at that branch then.
_ASKED = (
    *(
        ("BS102", shape)
        for shape in ("branch", "check", "python", "early", "fast path", "turn", "stop", "found")
    ),
    *(("BS102", shape) for shape in ("told", "choice", "verdict", "tested pick", "loop", "best", "extreme")),
    *(("BS102", shape) for shape in ("steered", "listed twice", "search", "undone", "skip")),
    *(("BS105", shape) for shape in ("counted", "loop", "books", "python")),
)
_SCALARS = ("BS102", "BS103")
# What rules of fix are for, and what is advised alike wherever it stands.
_REWRITTEN = ("BS101", "BS103", "BS106", "BS110", "BS115", "BS127")
_SAME = ("BS116", "BS117", "BS119", "BS120", "BS140", "BS141", "BS190", "BS191")
# Libraries whose own code runs in C, on arrays: nobody rewrites a line of theirs.
_ARRAYS = ("numpy", "pandas", "pyarrow", "scipy", "sklearn", "polars", "xarray", "cv2", "PIL")

# Selections that become Python's list, whose length no setting makes known.
_LISTED = re.compile(r"\b(where|nonzero|unique|masked_select)\(.*\.tolist\(", re.DOTALL)
_COMPREHENSION = re.compile(r"\.<locals>\.<\w+>.*$")
_OF_NUMPY = re.compile(
    r"\b(?:np|numpy)\.(?P<outer>ceil|floor)\((?:np|numpy)\.(?P<inner>log|log2|log10|log1p|sqrt|exp)\("
)

# What is kept from token to token, which use_cache=False in the call leaves out.
_OF_CACHE = re.compile(r"\b(cache_params|use_cache|past_key_values?)\b(?! is None)")

# What measures a model is no part of it.
_MEASURES = ("torchmetrics", "torcheval", "ignite")

# (the function that breaks, what to do at the line that calls it)
_BY_FUNCTION = {
    "_dispatch_kl": (
        "Call kl_divergence{at} once in eager for the same types of distributions, before the first compiled"
        " call: torch keeps then which function computes it, and Dynamo reads that"
    ),
    "_get_abs_string_index": "A tensor picks a module of a list{at}, which is no operation on tensors: choose"
    " in the caller and pass an int, a graph for each choice; or run all of them and select with torch.where,"
    " or with weights of 0 and 1",
    "_detect_is_causal_mask": "Say is_causal=False in the call{at} (tgt_is_causal= of a decoder,"
    " src_is_causal= and tgt_is_causal= of nn.Transformer): the mask is applied as it is, and torch need not"
    " read it to find out whether it is causal. Where a causal mask is passed at every call, say True",
    "decorate_context": "Write `with torch.no_grad():`, or what the decorator enters, in the body of what is"
    " called{at}: a function that was decorated inside of compiled code cannot be made again behind a break",
    "CompileableContextVar.get": (
        "transformers reads a ContextVar here only where the forward around the layers runs eagerly, because"
        " of another break (compiled, it sets a plain variable): repair that one, and this goes with it"
    ),
    # transformers 5: tried on GPT-2, which then is one graph.
    "maybe_install_capturing_hooks": "Make the call{at} once before torch.compile: transformers installs its"
    " hooks for hidden states and attentions at the first call that asks for them, and never again",
}


def package_of(file: str) -> str:
    """Whose code a file is: the package that it is installed with, else its own name."""
    module = _module_of(file)
    return module.partition(".")[0] if module else file.replace("\\", "/").rpartition("/")[2]


def _module_of(file: str) -> str | None:
    path = path_in_package(file)
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") if path else None


@dataclass(frozen=True, slots=True)
class Theirs:
    """A site in a library's or in torch's own code.

    Attributes:
        file: where it is; function: qualified name of its function.
        caller: the innermost line of the project on the way, ``model.py:142``; None if there is none.
        line: its source.
        settings: the settings under which the line is reached; message: the text that a logging call writes.
        drop: what the source calls the rate of skipped layers; sites: how many its function has.
        compiled: whether the caller's line is compiled itself, so that the call can be taken out of that.
        under: how many sites of its package that line leads to; runs_model: whether it calls a module, and
            no function of the library. source: the statement that the site is in.
        given: whether the settings ask for what the library's own call gives it, which no caller decides.
        through: the library's line that calls torch, where the site is in torch. standard: of a site in
            Python's own library the line that comes there, with its source.
        setter: the object's method that sets what the settings ask to be None.
        number: what the caller passes of which alone a test is calculated.
        precomputed: options that its function returns as they are, in place of computing them.
        loss: the model's loss, ``model.loss_function``, in which the site is; in_loss: how many that has.
        of_model: the model's class.
        is_alike: whether all sites of its function are of one kind, so that one setting may be for all.
        choice: what to choose in its configuration, so that the site is not reached.
        imported: the file that imports its function and calls it by its bare name; empty for its own file.
        switch: the method of the model that turns off what the settings ask for.
        disabled: what the project itself gives torch.compiler.disable there, `` `net.loss` (train.py:7)``.
        held: whether its function is called by another name than its own, as from a table of such.
    """

    file: str
    function: str
    caller: str | None
    settings: str | None = None
    message: str | None = None
    drop: str | None = None
    sites: int = 1
    compiled: bool = False
    under: int = 1
    runs_model: bool = True
    line: str = ""
    source: str = ""
    given: bool = False
    through: str = ""
    setter: str = ""
    number: str = ""
    imported: str = ""
    held: bool = False
    precomputed: tuple[str, ...] = ()
    standard: str = ""
    loss: str = ""
    of_model: str = ""
    choice: str = ""
    is_alike: bool = True
    in_loss: int = 1
    disabled: str = ""
    switch: str = ""

    @property
    def module(self) -> str | None:
        """The name under which the file is imported; None for a file that is not installed."""
        return _module_of(self.file)

    @property
    def package(self) -> str:
        """Whose code it is."""
        return package_of(self.file)

    @property
    def at(self) -> str:
        """``at model.py:142``, with a blank in front; empty where no line is known."""
        return f" at {self.caller}" if self.caller else ""


# What of_call says of a call that is to be made elsewhere.
CALL_MOVED = re.compile(r"breaks the graph at \d+ places under the call at")
LOSS_LEFT = re.compile(r"breaks the graph at \d+ places in the loss of")
_CALLED = re.compile(r"(?<![\w.)\]])((?:self\.)?[a-z_]\w*)\(")
_LOSS = re.compile(r"\bself\.(\w*loss\w*|\w*criterion)\(")
_FEW = 2  # sites, which may be rewritten one by one
_MANY = 4  # sites under one call: it works with values all over, and no setting makes one graph of it


def loss_call(stack: Sequence[Frame]) -> tuple[Frame, str] | None:
    """The line on which a library's model calls its loss, and that as an attribute of the model.

    It is called what the project's line calls it, and ``model`` where that is not plain.
    """
    model = "model"
    for at, frame in enumerate(stack[:-1]):
        if frame.owner == "project":
            names = _CALLED.findall(frame.source or "")
            model = names[0] if len(names) == 1 else "model"
        called = _LOSS.search(frame.source or "")
        if called is None or frame.owner != "library" or frame.function.rpartition(".")[2] != "forward":
            continue
        following = next((one for one in stack[at + 1 :] if one.owner != "torch"), None)
        is_module = following is not None and following.function.rpartition(".")[2] == "forward"
        return frame, f"{model}.{called[1]}" + ".forward" * is_module
    return None


def of_loss(code: str, theirs: Theirs) -> str | None:
    """What to do where a model's loss, which a library computes, breaks in many places."""
    if code in ("BS108", "BS109") or not theirs.loss or theirs.in_loss <= _FEW:
        return None
    return (
        f"{theirs.package} breaks the graph at {theirs.in_loss} places in the loss of {theirs.of_model}:"
        f" leave all of it eager, which is one break in place of these: {theirs.loss} ="
        f" torch.compiler.disable({theirs.loss}) before the first call."
    )


def of_call(code: str, theirs: Theirs) -> str | None:
    """What to do about a library's function that breaks in many places: its call is to be elsewhere.

    None for a model of a library, which is what is to be compiled.
    """
    if code in ("BS108", "BS109") or theirs.caller is None:
        return None
    if theirs.package in _MEASURES and theirs.compiled:
        return (
            f"{theirs.package} measures, and works with values and lists of its own: make the call{theirs.at}"
            " outside of the compiled function, on what that returns."
        )
    if theirs.package == "loguru":
        return (
            "loguru asks for the frame that logs, which Dynamo does not trace: call loguru.logger.remove()"
            " before the compiled call, with which a logging call returns at once; or make the"
            f" call{theirs.at} so that nothing is logged."
        )
    if theirs.runs_model or not theirs.compiled or theirs.under < _MANY:
        return None
    if theirs.package in ("torch", *sys.stdlib_module_names):
        return None
    return (
        f"{theirs.package} breaks the graph at {theirs.under} places under the call{theirs.at}: make that"
        " call outside of the compiled function, and compile what it is given, a function or a model, by"
        " itself; or put torch.compiler.disable on a function around the call, which is one break in place"
        " of all."
    )


def advice(
    code: str, shape: Shape, theirs: Theirs, turns: str = "", also: Sequence[int | str] = ()
) -> str | None:
    """What to do, in one or two sentences; None where what holds for one's own code holds here too.

    Args:
        turns: the loop around the site, without its body. also: lines of branches on how many are selected.
    """
    if special := _BY_FUNCTION.get(theirs.function, _BY_FUNCTION.get(theirs.function.rpartition(".")[2])):
        return special.format(at=theirs.at) + "."
    if shape == "layerdrop":
        return _dropped(theirs)
    if code in _SAME or (code == "BS115" and theirs.package == "torch"):
        return None
    if code in ("BS108", "BS109"):
        return _intended(code, theirs)
    if shape == "experts":
        return _experts(code, theirs, turns, also)
    if (by_use := _of_use(code, shape, theirs)) is not None:
        return by_use
    if code == "BS101" and shape == "fast path":
        return (
            f"{_whose(theirs)}: a short cut that a tensor's value decides, so torch.where cannot select."
            " Where the same is computed without it, breakscope fix --unsafe tries that for a mask that it"
            " sets to None, and breakscope fix --with COMMAND asks a command for others, proves it and keeps"
            " it as an overlay; else leave it."
        )
    if (why := _of_no_setting(code, theirs)) is not None:
        return f"{_whose(theirs)}, {why}, so no setting helps: {_ways(theirs)}."
    asked = code == "BS105" or (code == "BS102" and shape in ("slice", "size"))
    if (code, shape) in _ASKED or (asked and also):
        what = "how many there are" if code == "BS105" else "the number"
        at = f" (line {also[0]})" if also else ""
        return f"{_whose(theirs)}, where a branch{at} asks for {what}, so no setting helps: {_ways(theirs)}."
    if code in ("BS102", "BS105") or (code == "BS106" and ".item()" in theirs.source):
        return _captured(code, theirs)
    if code in _REWRITTEN:
        return f"{_whose(theirs)}: {_ways(theirs, needs_consent=code == 'BS115')}."
    return f"{_whose(theirs)}: {_eagerly(theirs) or _around(theirs)}."


def _captured(code: str, theirs: Theirs) -> str:
    """What to do about a value or a selection that a setting takes into the graph."""
    if not theirs.is_alike and (eagerly := _eagerly(theirs)) is not None:
        return f"{_whose(theirs)}, in a function that breaks for other reasons as well: {eagerly}."
    setting = "capture_dynamic_output_shape_ops" if code == "BS105" else "capture_scalar_outputs"
    # An argument that is None makes the library find it out from data.
    given = f", or make the call{theirs.at} so that `{theirs.settings}` does not hold" * (
        " is None" in (theirs.settings or "")
    )
    given += f", with {theirs.setter}() before it" * bool(theirs.setter)
    first = f"Try {_CONFIG}.{setting} = True before the first call{given}"
    unless = "Where it then raises, breaks further on or saves no compile, take that back"
    return f"{first}. {unless}: {_ways(theirs)}."


def _of_no_setting(code: str, theirs: Theirs) -> str | None:
    """Why a selection by data breaks with what captures it too; None where that may be of use."""
    if code not in ("BS102", "BS105"):
        return None
    if _LISTED.search(theirs.source):
        return "where what data selects becomes a list of Python's"
    if _COMPREHENSION.search(theirs.function) and code == "BS105":
        return "in a comprehension that selects another number of things in each of its turns"
    return None


def _of_use(code: str, shape: Shape, theirs: Theirs) -> str | None:
    """What the value is for, where that leaves nothing to rewrite."""
    if theirs.choice:
        return f"{_whose(theirs)}: choose {theirs.choice} before the first call, and it is not reached."
    if theirs.precomputed and theirs.caller is not None:
        options = " and ".join(f"{name}=" for name in theirs.precomputed)
        return (
            f"{_whose(theirs)}, which {theirs.function}() needs for what it returns: where the"
            f" call{theirs.at} hands options on, pass {options} in it, made by that function outside of the"
            f" compiled code; or {_ways(theirs)}."
        )
    if theirs.package in _ARRAYS:
        works = f"{theirs.package} works here, which Dynamo cannot trace"
        return f"{works}: {_outside(theirs)}, and pass in what it gives."
    if code == "BS104":
        return _logging(theirs)
    if code == "BS123" and re.search(r"\bsort(ed)?\(", theirs.source):
        return (
            f"{_whose(theirs)}: numbers made of a size are constants for its keys until a second size comes,"
            f" so one size, as with drop_last=True, or dynamic=False keeps it in the graph; or"
            f" {_ways(theirs)}."
        )
    if code == "BS111" and (found := _OF_NUMPY.search(theirs.source)):
        form = f"math.{found['outer']}(math.{found['inner']}(n))"
        return f"{_whose(theirs)}, and {form} of Python's traces in place of numpy's: {_ways(theirs)}."
    if code == "BS101" and theirs.number:
        how = f"pass a number of Python's in the call{theirs.at}, {theirs.number}.item()"
        if theirs.compiled:
            how = (
                f"hand a number of Python's to the call{theirs.at}, int({theirs.number}) made outside of the"
                " compiled function and passed in, beside the tensor where that is used too"
            )
        return (
            f"{_whose(theirs)}, and what it tests is calculated of {theirs.number} alone: {how} (after its"
            f" second value torch takes any, where the code needs no constant of it); or {_ways(theirs)}."
        )
    if shape == "message":
        return f"{_whose(theirs)}, and only a message needs it: {_ways(theirs)}."
    if shape in ("index", "pick") and code == "BS102" and _OF_TENSOR.search(theirs.source):
        return (
            f"A tensor of one number is an index in {theirs.package}, and its value is read, also under"
            f" capture_scalar_outputs: {_ways(theirs)}."
        )
    if shape in ("index", "pick") and code == "BS102":
        return (
            f"A tensor's number picks an element in {theirs.package}, which no setting puts into a graph"
            f" where that is a Python list: {_ways(theirs)}."
        )
    return None


_OF_TENSOR = re.compile(r"\[\s*(:|\.\.\.)\s*,")  # an index that no list takes


def drawn(theirs: Theirs) -> str:
    """Code of a library that draws a number and tests it, as a random transform does."""
    if theirs.caller is None:
        return f"A random number that {theirs.package} draws decides here: leave it."
    return (
        f"A random number that {theirs.package} draws decides here: make the call{theirs.at} outside of the"
        " compiled function, or leave it."
    )


_ASKS_RATE = re.compile(r"(layer_?drop|drop_path)\w* (>|!=) 0")


def _dropped(theirs: Theirs) -> str:
    """Layers that are skipped at random cannot be in one graph; most models draw even where the rate is 0."""
    rate = f"{theirs.drop.removeprefix('self.')}{_of_class(theirs)}" if theirs.drop else "the rate"
    one_by_one = (
        f"compile the layers one by one (layer.compile(), with {_CONFIG}.recompile_limit raised, as they"
        " share one code) and leave the loop in Python"
    )
    asked = str(theirs.settings)
    if theirs.drop and (theirs.drop.rpartition(".")[2] in asked or _ASKS_RATE.search(asked)):
        when = "the model is made" if theirs.drop.startswith("config.") else "the first call"
        return f"Set {rate} to 0 before {when}, or {one_by_one}."
    training = "" if "training" not in asked else " eval() does not come here."
    return (
        f"Layers are skipped at random, and the number is drawn even where {rate} is 0: there breakscope fix"
        " proves that none is skipped, as an overlay; else breakscope fix --unsafe tries torch.where (later"
        " random numbers differ; not where a layer gives another shape, or hands on a cache that is no"
        f" tensor), or {one_by_one}.{training}"
    )


def _intended(code: str, theirs: Theirs) -> str:
    """A break that a library asks for is no fault; what the project calls itself can be called elsewhere."""
    if code == "BS108" and theirs.disabled:
        return (
            f"{theirs.disabled} is given torch.compiler.disable there: one break at each call, on purpose,"
            " and nothing to do as long as that is meant."
        )
    if code == "BS109" and theirs.caller:
        elsewhere = f", or make the call{theirs.at} outside of the compiled function"
    else:
        elsewhere = f", or make the call so that `{theirs.settings}` does not hold" if theirs.settings else ""
    asked = "torch.compiler.disable" if code == "BS108" else "torch._dynamo.graph_break()"
    return f"The graph breaks here on purpose ({asked}, in {theirs.package}): leave it{elsewhere}."


def _experts(code: str, theirs: Theirs, turns: str, also: Sequence[int | str]) -> str:
    """Which tokens go to which expert depends on data: what breaks is the whole block.

    A loop over the experts that data chose is in no graph, with any setting; one over all of them can be.
    """
    name = "capture_scalar_outputs" if code in _SCALARS else "capture_dynamic_output_shape_ops"
    if not also and "range(" in turns:
        first = f"Try {_CONFIG}.{name} = True before the first call; where it raises, or still breaks, "
    else:
        asks = (
            f"line {also[0]} asks how many tokens an expert has"
            if also
            else "the loop is over what data chose"
        )
        first = (
            f"No setting helps, as {asks}: breakscope fix tries a rewrite as an overlay (with --unsafe in"
            " training, where an expert without tokens has gradients of 0 then), or "
        )
    if theirs.module is None or "<" in theirs.function:
        said = f"{first}leave the block of experts eager."
        return said[:1].upper() + said[1:]
    target = f"{theirs.module.rpartition('.')[2]}.{theirs.function}"
    said = (
        f"{first}leave this block of experts eager, which is one break for each of its calls:"
        f" {target} = torch.compiler.disable({target}) before the first call."
    )
    return said[:1].upper() + said[1:]


def _of_class(theirs: Theirs) -> str:
    """Whose attribute it is, where that is not the configuration's."""
    owner, _, _ = theirs.function.rpartition(".")
    is_attribute = theirs.drop is not None and theirs.drop.startswith("self.")
    return f" of {owner}" if owner and is_attribute and "config." not in str(theirs.drop) else ""


def _whose(theirs: Theirs) -> str:
    where = f", called by {theirs.through}" * bool(theirs.through)
    where += f", reached from {theirs.caller}" if theirs.caller else ""
    only = f" and only where `{theirs.settings}`" if theirs.settings else ""
    only += f" ({theirs.setter}() before the call sets that)" * bool(theirs.setter)
    only += f" ({theirs.switch}() turns that off, where it is meant)" * bool(theirs.switch)
    what = (
        theirs.standard and f"The line is Python's own, and {theirs.standard} of {theirs.package} comes here"
    )
    return f"{what or f'The line is in {theirs.package}'}{where}{only}"


def _outside(theirs: Theirs) -> str:
    return f"make the call{theirs.at} outside of the compiled function"


def _ways(theirs: Theirs, *, needs_consent: bool = False) -> str:
    """A rewrite of code that is not to be edited, what is not reached, or one break instead of several."""
    consent = " --unsafe" * needs_consent
    overlay = f"breakscope fix{consent} tries a rewrite as an overlay, and the installed file stays as it is"
    cached = (
        "; where nothing is generated, use_cache=False in the call does not come here"
        if _OF_CACHE.search(theirs.settings or "")
        else ""
    )
    return f"{overlay}{cached}; or {_eagerly(theirs) or 'leave it'}"


def _eagerly(theirs: Theirs) -> str | None:
    """One break for a helper with several; a ``forward`` is too much to leave eager."""
    function = _COMPREHENSION.sub("", theirs.function)
    name = function.rpartition(".")[2]
    sites = max(theirs.sites, 2 * (function != theirs.function))  # those that its function itself has, too
    if sites < 2 or theirs.module is None or "<" in function:
        return None
    if "forward" in name or name in ("__call__", "__init__"):
        return None
    several = f"in place of {sites}" if function == theirs.function else "for all that it has"
    disabled = _disabled(theirs, function)
    return f"leave all of {name} eager, which is one break {several}: {disabled}" if disabled else None


def _disabled(theirs: Theirs, function: str) -> str | None:
    """The statement that leaves a library's function eager; None where it has no name that all use."""
    if theirs.module is None or "<" in function:
        return None
    if theirs.held and "." not in function:
        return None  # its name may be given to something else, and the table has it all the same
    # A name that another module has imported is replaced there.
    held = (_module_of(theirs.imported) or theirs.module).rpartition(".")[2]
    return f"{held}.{function} = torch.compiler.disable({held}.{function})"


def of_error(theirs: Theirs) -> str | None:
    """What to do where a library's function fails in compiled code alone."""
    function = _COMPREHENSION.sub("", theirs.function)
    disabled, name = _disabled(theirs, function), function.rpartition(".")[2]
    if disabled is None:
        return None
    return (
        f"{_whose(theirs)}: leave {name} eager, where it does not fail, {disabled} before the first call."
        " Where it fails so too, compiled code made what it is given otherwise than eager code does: compile"
        " what is below that alone, as with model.encoder.compile()."
    )


def _around(theirs: Theirs) -> str:
    if theirs.compiled and theirs.package in ("torch", *sys.stdlib_module_names):
        return f"{_outside(theirs)}, or put torch.compiler.disable on the function that makes it"
    own = "breakscope fix --with COMMAND asks a command for it, proves it and keeps it as an overlay"
    own = f"{own}; or leave it"
    if theirs.through:
        return f"write the line that calls it another way: {own}"
    if theirs.settings and " is None" not in theirs.settings:
        return f"make the call without what leads there; or write the line another way: {own}"
    return f"write the line another way: {own}"


def _logging(theirs: Theirs) -> str:
    said = f"“{theirs.message}…”" if theirs.message else "a message"
    where = f" where `{theirs.settings}`" if theirs.settings else ""
    called = re.match(r"\s*([A-Za-z_][\w.]*)\(", theirs.source)
    function = f"{theirs.module}.{called[1]}" if theirs.module and called else "the logging function"
    silent = (
        f", which its own code gives whatever the call{theirs.at} says:"
        if theirs.given
        else f": make the call{theirs.at}{_or_model(theirs)} so that it has nothing to say; or"
    )
    return (
        f"{theirs.package} writes {said}{where}{silent} add {function} to {_CONFIG}.ignore_logging_functions"
        " (up to torch 2.10 ignore_logger_methods), which leaves it out of compiled code."
    )


def _or_model(theirs: Theirs) -> str:
    """What a message depends on that is no argument of the call: an attribute of the model."""
    return ", or set up the model," * bool(re.search(r"\bself\.(?!training\b)", theirs.settings or ""))
