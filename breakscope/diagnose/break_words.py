"""What is said of a graph break: one instruction for each code, shape, cause and function."""

from __future__ import annotations

from breakscope.diagnose.site_use import Shape

CONFIG = "torch._dynamo.config"
SCALARS = f"{CONFIG}.capture_scalar_outputs = True"
SHAPES = f"{CONFIG}.capture_dynamic_output_shape_ops = True"

GUARDED = (
    "The test asks for {test}, a size or a number that data decide: where it always holds, say so in front of"
    " it, torch._check({test}); else do without the branch, or take it in the caller."
)

PACKED = (
    f"The input is packed, so {CONFIG}.allow_rnn = True alone does not help: set it, give the RNN the padded"
    " batch and mask the padding in the loss (ignore_index; out[mask] breaks the graph itself), where it runs"
    " in one direction, with out[torch.arange(len(out)), lengths - 1] where its last state is used; it is"
    " unrolled then, a version for each length and the longer the more; or leave the packed RNN eager and"
    " compile what stands before and after it, which is better for long ones."
)
NUMBER_OF_DATA = (
    "Python needs a number here that only data tells: keep it a tensor up to this line and write the line"
    " with torch operations, say what holds of the number with torch._check, or make the line in the caller."
)
PACKED_BOTH_WAYS = (
    "The input is packed for an RNN of two directions, which would read padding first where it is not: leave"
    " the packed RNN eager, and compile what stands before and after it, each as a module of its own."
)
NAMESAKE = (
    "Torch takes {file} for the package `{name}`, or for a part of one, which Dynamo never traces: give the"
    " file another name."
)
RANGE_LISTED = (
    "Write list(range({given})) in its place: torch.arange makes a tensor of numbers that Python has, only"
    " for them to be read back, and what takes a list of ints (dim=, view) takes no tensor."
)
RNN_MADE = (
    "A recurrent module is made here, which no setting has traced: make it before the compiled call, and pass"
    f" it in. A whole RNN, LSTM or GRU asks for {CONFIG}.allow_rnn = True then, a cell does not."
)
UNPADDED = (
    "Packing only takes the elements out that lie within the lengths: keep them padded, with -100, the loss's"
    " ignore_index, where torch.arange(n) >= lengths[:, None]; or pack in the caller and pass that in."
)
RANGE_OF_NUMPY = (
    "A loop needs numbers of Python's, and one here is numpy's, which Dynamo traces as a tensor: make it an"
    " int where it is made, int(…) before the compiled call, or take it from a shape."
)
CTC = "Call ctc_loss outside of the compiled function: torch has no form of it for tracing, with any setting."
READ_AROUND = (
    "What is read of that in the same statement, `{read}`, breaks as well: return the tensor, and read it in"
    " the caller."
)
NMS = (
    "How many boxes NMS keeps depends on data: return boxes and scores (or the k best by topk, a fixed"
    " number) and suppress in the caller, after the compiled network."
)
INNER_FIRST = (
    "The comprehension is compiled on its own, because the function around it runs eagerly: repair the break"
    " for which that was given up, and Dynamo traces the comprehension as part of it."
)
BREAKS_INSIDE = (
    "Something in the comprehension breaks, and behind a break Dynamo cannot go on with what it runs over:"
    " repair that break, or put what breaks into a function with torch.compiler.disable, the loop with it."
)
COUNTED = (
    "A whole number decides, and Dynamo holds it as a tensor: compute it with plain Python ints from the"
    " shapes and settings, or read it before the compiled call and pass it in; the branch is then decided"
    " while tracing. torch.where serves where both sides have one shape."
)
DRAW = (
    "A random number decides: draw it before the compiled call and pass a Python bool, a graph for each of"
    " the two; or, where both sides are tensors of one shape, compute both and select with"
    " torch.where({drawn}, …, …){other}."
)
DRAW_EACH_TURN = (
    "A random number decides in each turn of the loop: where both sides are tensors of one shape, compute"
    " both and select with torch.where({drawn}, …, …){other}; or draw all turns' numbers before the compiled"
    " call and pass Python bools, a graph for each pattern that comes."
)
DRAWS = (
    "Numbers are drawn one by one, in `{turns}`: draw them in the caller, one for each turn, and pass them in"
    " as a list, where those that are sizes or positions make a graph for each that comes (where their bounds"
    " are known only here, draw between 0 and 1 there, and scale here); or draw them all at once as a tensor"
    " (torch.rand, torch.randint), and index with it, or mask by position in place of slices."
)
DRAWN_UNTIL = (
    "How often a number is drawn depends on data, in `{turns}`: do the whole loop in the caller, before the"
    " compiled call, and pass in what it draws, as a tensor where that serves."
)
FINITE = (
    "Where `{unsafe}` is infinite or nan on the side that is not taken, its gradient is nan all the same: put"
    " a harmless value under it there, with a torch.where of its own."
)
CAUGHT = (
    "What is raised here is caught in the same function (line {line}), and an assertion in a graph would"
    " raise out of it: return the condition, and do what the handler does in the caller; or select with"
    " torch.where where that is operations on tensors."
)
_CHECK = (
    "Assert it on the tensor, without .item(), with & for and, | for or, ~ for not, and with a constant text:"
    " assert (x >= 0).all(), 'negative'. What is a number or a flag of Python's stays in front, with and, or"
    " and not: assert not strict or (x >= 0).all(). Dynamo traces that as torch._assert_async, which raises"
    " RuntimeError; for sizes and Python numbers use torch._check."
)
ASSERTED = (
    "Assert it on the tensor{text}: assert {asserted}. Dynamo traces that as torch._assert_async, which"
    " raises RuntimeError."
)
LEAVES_ROWS_OUT = (
    "The branch leaves out of `{of}` what `{kept}` does not have, so its sides differ in size, and"
    " torch.where cannot select: select in the caller, before the compiled call, whether or not something"
    " is left out; or keep all, and leave out at the end what is not in `{kept}`, by torch.where or a"
    " weight of 0."
)
SELECTS_IN_SIDE = (
    "Select with torch.where({condition}, {sides}), and write the side without `{picked}`, which breaks by"
    " itself, as how many it selects depends on data: under the mask, {how}; where the branch does more than"
    " set tensors, test it in the caller."
)
UNDER_MASK = (
    "for a mean torch.where({mask}, {of}, 0).sum() / {Mask}.sum().clamp(min=1), for a median"
    " torch.nanmedian(torch.where({mask}, {of}, nan))"
)
OF_LABELS = "with targets that are .masked_fill({unmasked}, -100) there, which the loss leaves out"
LISTED_POSITIONS = (
    "Python needs the positions as a list, and how many there are depends on data: make the list {known} and"
    " pass it in."
)
OF_ARRAY = (
    "`{name}` comes out of numpy, which Dynamo traces as a tensor: where it is only calculated with, leave"
    " the {read}() out; else make a list of Python's numbers before the compiled call, .tolist(), and pass"
    " that."
)
LISTED_ARRAY = (
    "`{name}` comes out of numpy, which Dynamo traces as a tensor: return it, and call tolist() in the"
    " caller; or keep a list of Python's numbers from the start. Passed in, each list by which code slices,"
    " loops or picks is a graph: where many come, run a fixed number of turns and mask in its place."
)
SEARCHED = (
    "But values steer this loop all over, as in NMS, so that no graph holds it: leave its function out of"
    " what is compiled, and compile what comes before it."
)
MIXED_BOUNDS = (
    "`{bounds}` has a number for one bound and a tensor for the other, which torch reads then: bound it in"
    " two calls, clamp(min=…) and clamp(max=…), or take the bound from a shape, which is a number."
)
ARRAYED = (
    "`{name}` is an array that numpy makes of Python's numbers in line {line}, and Dynamo traces it as a"
    " tensor: leave numpy out there, and take the numbers as they are."
)
WRITTEN_CELLS = (
    "What the mask selects says where to write{in_it}, and how many places that are depends on data: return"
    " mask and indices and write in the caller, in front of what goes on, or set"
    f" {SHAPES}, where nothing branches on the size."
)
OVER_VALUES = (
    "How often the loop runs{in_it} depends on data: where the values that can come are known, run it over"
    " these, range(n), each under its mask x == i, or do all at once (one_hot, index_add, scatter_reduce);"
    " else keep the loop outside of the compiled function and compile its body."
)
_CLASS = (
    "A class is made while Dynamo traces: define it outside of the compiled function, and make only its"
    " objects there."
)
NUMBERS_OF_NUMPY = (
    "The value comes out of numpy, which Dynamo traces as a tensor: compute it with plain Python (math.lcm,"
    " math.prod, int arithmetic), and the branch is decided while tracing."
)
# The function of Python's own library that holds the line -> the advice.
BY_FUNCTION = {
    "Optimizer._patch_step_function": (
        "An optimizer is made here while Dynamo traces, and its class is changed for that: make it once,"
        " before the compiled call, and pass it in."
    ),
    "cached_property.__get__": (
        "Read the property{read_at} once of each object before the compiled call, or compute it in __init__:"
        " up to Python 3.11 functools.cached_property takes a lock while it makes its value."
    ),
}
# The module of Python's own library that holds the line -> the advice, where there is more to say of it.
BY_MODULE = {
    "beartype": (
        "beartype generated this code, which checks the arguments of what it decorates, and draws which item"
        " of a list it looks at: take @beartype off what is compiled; or give it"
        " conf=BeartypeConf(strategy=BeartypeStrategy.O0), with which nothing is checked."
    ),
    "contextlib": (
        "Enter the context manager with a with statement of its own, where it is torch's (torch.no_grad(),"
        " torch.autocast); else outside of the compiled function."
    ),
    "copy": (
        "Copy a tensor with clone(), a dict or a list with dict(d) or list(l), which Dynamo traces; copy"
        " other objects in the caller."
    ),
    "dataclasses": _CLASS,
    "enum": _CLASS,
}
# What holds wherever the line is: (codes, what the record says, the advice). First match wins.
BY_KIND: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("BS107",),
        r"\b_CachedForward\b",
        (
            "What is called is a torch.jit.ScriptModule, of whose script Dynamo sees nothing: make it an"
            " nn.Module, without torch.jit.trace or @jit.script_method, where it is to be in the graph (its"
            " code was not traced, and may break as well); else leave it, one break at each of its calls."
        ),
    ),
    (
        ("BS105", "BS119"),
        r"\b_ctc_loss\b",
        CTC,
    ),
    (
        ("BS190", "BS191"),
        r"SymIntArrayRef expected to contain only concrete integers",
        (
            "An operation here takes sizes as plain numbers, and one has become symbolic, as torch.randn has"
            " it with generator=, be that None: leave out generator= where it is None; or put"
            " torch.compiler.disable on the function that holds the line (in a library, on its name in the"
            " module that calls it); or pass dynamic=False to torch.compile, a graph for each size."
        ),
    ),
    (
        ("BS107", "BS190", "BS191"),
        # The second is how torch wraps nn.Module.__init__ while it traces.
        r"Uninitialized nn\.Module|`[\w.<>]*patched_init`",
        (
            "A module is made where a function runs eagerly, so that Dynamo compiles its __init__ by itself,"
            " which it cannot: make it before the compiled call, once, or for each call where what it is made"
            " of differs, and pass it in; or repair the break because of which what makes it runs eagerly."
        ),
    ),
    (
        ("BS107", "BS110", "BS111"),
        r"`?torch\._C\._is_tracing|<built-in method _is_tracing",
        (
            "Write torch.jit.is_tracing() in the place of torch._C._is_tracing(), which asks the same: Dynamo"
            " knows the one to be False, and sees nothing of the other."
        ),
    ),
    (
        ("BS107", "BS110", "BS111"),
        r"cython_function_or_method|\bpybind11_|\bnb_func\b|\bnanobind\b",
        (
            "What is called is compiled code of another language (Cython, pybind11), of which Dynamo sees"
            " nothing: make an operator of the function around it, torch.library.custom_op with a fake that"
            " says the sizes (register_fake), which stays in the graph; or put torch.compiler.disable on that"
            " function, which leaves one break."
        ),
    ),
    *(
        (
            ("BS190", "BS191"),
            rf"expected TensorOptions\(dtype={named},",
            (
                "The dtypes differ while Dynamo traces, which holds numpy's arrays and numbers as tensors of"
                f" their own dtype: say the one that is needed, torch.as_tensor(x, dtype={dtype}) or"
                f" x.{method}(), before the compiled call or in this line, in place of a constructor such as"
                f" torch.{kind}Tensor."
            ),
        )
        for named, dtype, method, kind in (
            ("long int", "torch.long", "long", "Long"),
            ("int", "torch.int32", "int", "Int"),
            ("bool", "torch.bool", "bool", "Bool"),
            ("float", "torch.float32", "float", "Float"),
            ("double", "torch.float64", "double", "Double"),
        )
    ),
    (
        ("BS190", "BS191"),
        r"expected TensorOptions\(dtype=|expected scalar type|same dtype, but got|legacy constructor",
        (
            "The dtypes differ while Dynamo traces, which holds numpy's arrays and numbers as tensors of"
            " their own dtype (float64): say the dtype, torch.as_tensor(x, dtype=torch.float32) (of a tensor"
            " x.float()), before the compiled call or in this line."
        ),
    ),
    (
        ("BS107",),
        r"\bOptimizer\.(profile_hook_)?step|profile_hook_step|_optimizer_step_",
        "Call the optimizer's step outside of the compiled function, as the backward pass.",
    ),
    (
        ("BS191",),
        r"its data is not allocated yet",
        (
            "Dynamo runs the code on stand-ins without data, and an operation here reads the data: write it"
            " with other operations, or make a function of the line with torch.compiler.disable on it (on the"
            " function that is compiled itself that does nothing)."
        ),
    ),
    (("BS122",), r"__build_class__", _CLASS),
    (
        ("BS122",),
        r"non-function __getattr__",
        (
            "Write the class's __getattr__ as a function, def __getattr__(self, name): return self[name], in"
            " the place of dict.__getitem__ or the like: Dynamo traces that."
        ),
    ),
    (
        ("BS114",),
        r"Generator reconstruction with mutations",
        (
            "A generator is at work where the graph breaks, and Dynamo cannot make it again behind the break:"
            " make a list of it where it is made (list(model.parameters()) in place of model.parameters(), in"
            " compiled code as well), or repair the break in the function that runs it."
        ),
    ),
    (
        ("BS121",),
        r"duplicate tensor input",
        (
            "One tensor is given twice to apply() of an autograd.Function, which Dynamo does not trace: give"
            " it a .clone() for the second one, or let the function take it once; where the line is a"
            " library's, leave it."
        ),
    ),
    (
        ("BS121",),
        r"torch\.autograd\.grad\b",
        (
            "Take the gradient with torch.func.grad, which Dynamo traces (an autograd.Function on the way"
            " needs a setup_context for it), or set torch._dynamo.config.trace_autograd_ops = True, where"
            " what is differentiated is computed in the compiled function too, of inputs that come with"
            " requires_grad; else call torch.autograd.grad outside of it."
        ),
    ),
    (
        ("BS133",),
        r"sourceless variable UserMethodVariable",
        (
            "A method of an object that was made in the compiled function is at work where the graph breaks,"
            " and cannot be made again behind the break: repair the break inside that method, or make the"
            " object in the caller and pass it in."
        ),
    ),
    (
        ("BS107",),
        r"vectorcall_maybe on C method descriptor",
        (
            "A method of Python's own objects (dates, texts, numbers of another kind) is called, which Dynamo"
            " does not trace and which makes no tensor: do that in the caller, and pass in what comes of it,"
            " as numbers or as a tensor."
        ),
    ),
    (
        ("BS114",),
        r"missing tp_iter",
        (
            "What the loop runs over is a generator that was made outside of this frame: give it list(…) of"
            " that, as list(model.parameters()), where it is passed in."
        ),
    ),
    (
        ("BS115",),
        r"Unsupported Tensor\.requires_grad_\(\) call",
        (
            "The tensor comes from outside of the graph, where Dynamo changes none. Let the caller hand it"
            " over with a gradient asked for, as x.detach().requires_grad_() gives it (x.requires_grad_()"
            " alone where it makes x itself): this line then changes nothing, and stays in the graph."
        ),
    ),
    (
        ("BS115",),
        r"intermediate leaked as output",
        (
            "What leaves the graph, at a return or at the next break, is this tensor or is computed from it,"
            " and it is given requires_grad_() inside: make it in the caller, requires_grad_() with it, and"
            " pass it in. Where torch.func.grad takes the gradient, leave requires_grad_() away; where values"
            " alone are needed, let them leave after .detach()."
        ),
    ),
    (
        ("BS190", "BS191"),
        r"call_function <built-in function \w+>\(\*\([^)]*\bz[fu]\d",
        (
            "A number of Python's that Dynamo has made symbolic fails here while it traces: do this"
            " arithmetic in the caller and pass in what it gives, or put torch.compiler.disable on the"
            " function that does it; torch._dynamo.config.specialize_float = True keeps floats plain, with a"
            " version for each value."
        ),
    ),
    (
        ("BS113",),
        r"divmod\(\)",
        (
            "Dynamo does not trace divmod of a number that has become symbolic: write n // k and n % k, which"
            " hold for a tensor too."
        ),
    ),
    (
        ("BS113",),
        r"unhashable type: '([\w.]+\.)?(ndarray|Tensor|list)'",
        (
            "What Dynamo holds as a tensor has no hash, numpy's numbers among them, so it is no key of a dict"
            " or set in compiled code: count with torch.bincount or torch.unique, or do this in the caller."
        ),
    ),
    (
        ("BS107",),
        r"\b(DataLoader|_BaseDataLoaderIter)\.",
        (
            "Iterate over the loader outside of the compiled function, and compile what is done with one"
            " batch."
        ),
    ),
    (
        ("BS122",),
        r"setattr\(\) is not supported on type function",
        (
            "An attribute of a function is set, which Dynamo does not trace: keep it in an object's"
            " attribute, in a dict or in a list, or count around the compiled call."
        ),
    ),
    (
        ("BS107",),
        r"`[^`]*\.(transpose|t|squeeze|unsqueeze|swap(axes|dims)|swapdims|as_strided)_`.*inplace view",
        (
            "A method changes the shape of a tensor in place that comes from outside of the graph: call the"
            " one without the underscore, x.transpose(…) for x.transpose_(…), and use what it gives."
        ),
    ),
    (
        ("BS121",),
        r"Tensor with grad_fn",
        (
            "A module on the way has a backward hook of the old kind: take it off, and do its work around the"
            " backward pass; or register it with register_full_backward_hook, which Dynamo traces under"
            " torch._dynamo.config.compiled_autograd = True."
        ),
    ),
    (
        ("BS131",),
        r"opaque object was created",
        "Make the object before the compiled call; draw what a torch.Generator draws in the caller.",
    ),
    (
        ("BS107",),
        r"\bGradScaler\.",
        (
            "Call the gradient scaler outside of the compiled function, with the backward pass and the"
            " optimizer's step: compile the forward pass and the loss."
        ),
    ),
    (
        ("BS107",),
        r"Optimizer\.zero_grad",
        "Call zero_grad() outside of the compiled function, as the backward pass and the optimizer's step.",
    ),
    (
        ("BS107",),
        r"`<unknown module>\.(Tensor|Parameter|Buffer)\.\w+\.?`",
        (
            "The method was taken off its tensor before the graph broke further on in the same expression:"
            " repair that break, or give its value a name in a line of its own."
        ),
    ),
    (
        ("BS107",),
        r"_LegacyVariableBase",
        (
            "Write x.detach() in place of Variable(x): that is what it has meant since torch 0.4. Where x"
            " needs no gradient, x itself will do."
        ),
    ),
    (
        ("BS107",),
        r"pack_padded_sequence|pad_packed_sequence|pack_sequence|pad_sequence",
        (
            "Give the RNN the padded batch and mask the padding in the loss (ignore_index; out[mask] breaks"
            " the graph itself), so that nothing is packed, where it runs in one direction (a bidirectional"
            " one would read the padding first); where its last state is used, that is"
            " out[torch.arange(len(out)), lengths - 1]. Or leave the packed RNN eager and compile what"
            " stands before and after it, each as a module of its own."
        ),
    ),
    (
        ("BS127", "BS107"),
        r"[gs]et_rng_state|fork_rng",
        (
            "It keeps the random state. Where a part runs again with the same numbers, torch.utils.checkpoint"
            " (use_reentrant=False), which Dynamo traces, does the same; where another call is to draw them"
            " too, keep the state in the caller, and compile the calls in between by themselves."
        ),
    ),
    (
        ("BS128",),
        r"argument types \['(int|float|bool)'\]",
        (
            "The number has become symbolic after its second value, and there is no text of it: pass the text"
            " instead of the number, or set torch._dynamo.config.specialize_int = True, with which each value"
            " of every int is a version of its own."
        ),
    ),
    (
        ("BS190", "BS191"),
        r"must be \w+, not Sym(Bool|Int|Float)",
        (
            "The operation takes a plain Python value, and this one has become symbolic with a size that"
            " changed. Where it is a comparison, make it a plain bool where it is made, True if n > 1 else"
            " False; else pass dynamic=False to torch.compile, or torch._dynamo.mark_static on the argument"
            " whose size it is made of."
        ),
    ),
    (
        ("BS190", "BS191"),
        r"__torch_function__ overrides",
        (
            "Dynamo traces the subclass's __torch_function__, and that raised here: pass plain tensors in"
            " (x.as_subclass(torch.Tensor)) and make the subclass again in the caller; or put"
            " torch.compiler.disable on the function that holds the line."
        ),
    ),
    (
        ("BS106",),
        r"Data-dependent assertion failed",
        (
            "The assert fails while Dynamo traces it, because its condition is false for these arguments or"
            " in this mode: make it true, or take the assert out of what is compiled."
        ),
    ),
    (
        ("BS101", "BS102", "BS106"),
        r"in \w+.{0,200}\b(np|numpy)\.(lcm|gcd|prod|ceil|floor|log2?|sqrt|round|max(imum)?|min(imum)?)\(",
        NUMBERS_OF_NUMPY,
    ),
)
LISTED_ATTRIBUTE = (
    "`{name}` is set in __init__ alone: make it a list of Python's there, with .tolist(), and what is read of"
    " it is known while tracing; where it is computed with as well, keep the tensor beside it."
)
COPIED = (
    "Move the copy{read_at} to the caller, and pass it in; of a tensor by itself x.clone() is a copy that"
    " Dynamo traces, of a list or dict list(x) or dict(x)."
)
LISTED_BEFORE = (
    "Dynamo traces tolist() for integers only: make the list {there}, do there what Python does with it, and"
    " pass in what comes of that"
)
PRODUCT_OF_SIZES = (
    "Write math.prod({sizes}), which traces and whose sizes may be symbolic: numpy's functions are traced as"
    " operations on tensors, which give no size."
)
FROM_NUMPY = (
    "The value comes out of numpy, which Dynamo traces as a tensor, and int(…) of it in compiled code breaks"
    " as well: make a constant of it before the compiled call, as in __init__, and what is made of Python's"
    " numbers or of sizes without numpy, itertools.accumulate(n) in place of np.cumsum(n), [n // 2 for n in"
    " x.shape] in place of np.array(x.shape) // 2; else leave this to the caller, on arrays (or put"
    " torch.compiler.disable on the function)."
)
READ_BY_NUMPY = (
    "`{name}` is made of a tensor's data, which line {line} reads by .numpy(), so no graph holds what Python"
    " does by it: keep that a tensor, and do with torch operations what needs it; or leave this function to"
    " Python, called outside of the compiled one, and compile what it calls where that computes."
)
BY_HAND = (
    "This is a checkpoint written by hand, which runs a part again in backward():"
    " torch.utils.checkpoint.checkpoint(function, *inputs, use_reentrant=False), which Dynamo traces, does"
    " the same in its place; or call what uses it outside of the compiled function."
)
NUMBER = (
    "`{name}` is a number of numpy's ({kind}), which Dynamo traces as a tensor: make it one of Python's where"
    " it is set, int(…) or float(…)."
)
KEPT_NUMBER = (
    "`{kept}` is a tensor of one number that the object keeps, and a Python number is needed here: keep a"
    " Python int beside it, set where the tensor is set and after load_state_dict, and use that one."
)
# By what a number picks an element of.
PICKED = {
    "tensor": (
        "The number picks an element of the tensor `{of}`: index without reading it, {of}.index_select(dim,"
        " i.reshape(1)).squeeze(dim), or {of}.gather(dim, index) for one of each row{read}."
    ),
    "numbers": (
        "The number picks from a Python list of numbers: make `{of}` a tensor once, torch.tensor({of}), and"
        " index that without reading the number, .index_select(0, i.reshape(1)).squeeze(0); or {back}look it"
        " up{where}."
    ),
    "python": (
        "The number picks from `{of}`, which is a list, dict or text of Python's: {back}look it up{where}."
    ),
}
ON_ARRAYS = (
    "The line works on numpy's arrays, which Dynamo traces as tensors: call the function that does it in the"
    " caller (before the compiled call where it makes constants), or put torch.compiler.disable on it; where"
    " it is to be in the graph, hold tensors and write it with torch operations."
)
SIDE_EFFECT = (
    "{line} writes to what outlives the function that is given to the operator: return the value from there,"
    " and write it behind the call. Under torch.utils.checkpoint you can also set"
    f" {CONFIG}.skip_fwd_side_effects_in_bwd_under_checkpoint = True, where it need not be written again"
    " while the backward pass computes the block once more."
)
ASSERTED_LESS = f"{ASSERTED} What the text tells of the values is for the caller."
# How a statement is written without its break -> the advice that holds it, as code.
REWRITTEN = {
    "branch": (
        "Write in place of the branch `{rewritten}`: both sides are computed, and the tensor's value selects,"
        " which holds where both are of one shape; or use torch.cond if a side is costly."
    ),
    "store": (
        "It is computed where the mask is set and stored there: compute it for all elements, and select,"
        " `{rewritten}`{rows}; where that would fail or give nan outside of the mask, put a harmless value"
        f" there first. Or set {SHAPES}, where nothing branches on the size."
    ),
    "tally": (
        "The loop adds one item after the other where a number says: add all at once, `{rewritten}` in place"
        " of the loop, where that runs over all of them; no number is read."
    ),
    "piece": (
        "{It} says where a piece begins: keep it a tensor, without the read, and write the piece with"
        " `{rewritten}`{wraps}; what else uses {it} then has a tensor."
    ),
}
SAVED_VARIABLES = (
    "Write ctx.saved_tensors in place of ctx.saved_variables, its old name, which is an empty list while"
    " Dynamo traces."
)
ZERO_GRAD_IN_LOOP = (
    "The optimizer's housekeeping runs eagerly by design, and in a loop it keeps more than itself out of"
    " graphs: {}. Make a function of what computes the loss in a turn and compile that; leave the loop with"
    " zero_grad(), backward() and step() to Python."
)
# What Dynamo reads otherwise than eager, and the line.
MISREAD = {
    "filled": (
        "`{0}` (line {1}) is a tensor of that size in eager, and one that holds the numbers of the size to"
        " Dynamo, which says nothing where that fits: write torch.empty(…, dtype=…) of the size in its place."
    ),
    "turned": (
        "`{0}` (line {1}) turns a tensor in place, behind which Dynamo still takes its old size from size()"
        " and shape, and says nothing where that fits: give the name a new tensor, as x = x.transpose(1, 2)"
        " does."
    ),
}
BY_SHAPE: dict[tuple[str, Shape], str] = {
    **dict.fromkeys(
        (("BS101", "loop"), ("BS102", "loop"), ("BS103", "loop"), ("BS105", "loop")),
        "How often the loop runs{in_it} depends on data: keep it outside of the compiled function and compile"
        " its body, run a fixed number of turns with torch.where, or use torch.while_loop. A number of turns"
        " that is known before the compiled call can be passed in, and each is a graph.{needed_too}{at_once}",
    ),
    (
        "BS101",
        "layerdrop",
    ): "Set the model's layerdrop to 0 where it is not wanted, and ask for it before the number is drawn (if"
    " layerdrop and …); else draw the numbers in the caller, or compile the layers one by one and leave this"
    " loop in Python.",
    ("BS127", "layerdrop"): (
        "A random number decides whether a part runs: draw the decisions in the caller and pass them in as"
        " Python bools (each pattern is a graph), or keep the part and weight it: x + keep * part(x), with"
        " keep = (torch.rand(()) >= rate) as a tensor; or set the rate to 0 where it is not wanted."
    ),
    ("BS102", "message"): (
        "Only a message needs the value{in_it}: {back}write the message {there}, or take it out of what is"
        " compiled."
    ),
    ("BS101", "books"): (
        "The loop {loop} takes single values one by one, as Python's own lists, dicts and numbers do: run it"
        " {apart}{whole}."
    ),
    ("BS101", "filter"): (
        "The comprehension keeps items by a tensor's values, so how many there are depends on data: make the"
        " list {there} (and pass positions in as a tensor), or keep all items, with the condition as a mask:"
        " torch.where(mask, f(x), 0), or weights of 0 and 1."
    ),
    ("BS101", "steered"): (
        "A value says how Python's own lists and objects change, in a loop that computes as well: {numbers},"
        " or leave this loop in Python and compile what it calls."
    ),
    ("BS101", "listed twice"): (
        "Each side of the branch appends to {it}: compute both, select what they set with torch.where({test},"
        " …, …), and append that once{adds}."
    ),
    **dict.fromkeys(
        (("BS101", "counted too"), ("BS102", "counted too")),
        "The branch sets a tensor and does Python's own work as well: select the tensor with"
        " torch.where({test}, new, old), return the condition, and do the rest in the caller.",
    ),
    **dict.fromkeys(
        (("BS101", "grown"), ("BS102", "grown")),
        "The branch joins more to a tensor, so its sides differ in shape: join it always, and take out what"
        " is not there by a mask (masked_fill with -inf before a softmax, a weight of 0 in a sum); or keep"
        " what the test asks for in the caller as a Python number, and pass a bool.",
    ),
    **dict.fromkeys(
        (("BS101", "found"), ("BS102", "found"), ("BS103", "found")),
        "The loop returns a constant at the first turn whose condition holds: take the conditions of all"
        " turns, torch.stack([…]).any(), and return that as a tensor, or where it is with .int().argmax().",
    ),
    ("BS101", "cells"): (
        "The loops fill {it} cell by cell, each from other cells, and single values decide: a graph would"
        " hold every cell. Do it on lists (tolist()) {there}, or put torch.compiler.disable on the function;"
        " where it is hot, compute a whole row or antidiagonal at a time."
    ),
    ("BS105", "group ranked"): (
        "The loop ranks one group after the other{in_it}: {counted}rank all at once, with a row for each,"
        " member = {group} == torch.arange({groups})[:, None], then torch.where(member, {of}, -inf).topk(k)"
        " with one k for all; what has -inf was not there."
    ),
    ("BS105", "group reduced"): (
        "The loop reduces one group after the other{in_it}: {counted}do all at once{made_whole},"
        " torch.zeros({groups}).index_add(0, {group}, {of}) for sums, divided by count ="
        " torch.nn.functional.one_hot({group}, {groups}).sum(0).clamp(min=1) for means, or scatter_reduce(0,"
        " {group}, {of}, 'amax') for maxima; for rows of d values with torch.zeros({groups}, d) and count[:,"
        " None]. A group of none has 0 then, and this loop goes."
    ),
    ("BS105", "crossed"): (
        "The same is selected along two dimensions{in_it}: keep all, and reduce under both masks, both ="
        " {mask}, torch.where(both, {of}, 0).sum(), divided by both.sum() for a mean; or set"
        f" {SHAPES}, where nothing branches on the size."
    ),
    ("BS123", "message"): (
        "Only a message needs the order: return the values and write the message in the caller."
    ),
    ("BS128", "message"): (
        "Only a message needs the text: return the value and write the message in the caller, or take it out"
        " of what is compiled."
    ),
    ("BS101", "message"): (
        "Only a message depends on it: return the value and write the message in the caller, or take the"
        " branch out of what is compiled."
    ),
    **{
        (
            code,
            "change",
        ): "The branch changes tensors in place{in_it}: where the change does nothing when the test is false"
        " (a clamp), drop the test; else {unread}select, x = torch.where({test}, new, x) of a tensor that is"
        " made here, x.copy_(torch.where({test}, new, x)) of one that others hold (no parameter that needs a"
        " gradient, unless gradients are off); do what is done once before the compiled call, or decide it"
        " there and pass a Python bool."
        for code in ("BS101", "BS102")
    },
    **dict.fromkeys(
        (("BS101", "left out"), ("BS102", "left out"), ("BS103", "left out")),
        "The turn puts nothing into a list where a tensor's value says so, and a list's length is fixed in a"
        " graph: put in an item at every turn, and the condition beside it; weigh the items with 0 and 1"
        " there, or take those out that do not count in the caller.",
    ),
    ("BS101", "pairs"): (
        "The loops hold single values against each other and count: compare all at once, as in a[:, None] >"
        " a[None, :], combine the conditions with & and |, and take .sum(); no loop is left, and no number is"
        " read."
    ),
    ("BS105", "items"): (
        "What the mask selects becomes items that Python sorts or searches{in_it}, and how many there are"
        " depends on data: return {both}, and do that in the caller."
    ),
    ("BS101", "neighbours"): (
        "The loops put the indices of pairs into lists, and how many pairs there are depends on data: make"
        " the list of pairs in the caller, for all at once with torch.where of one condition over a[:, None]"
        " and b[None, :], and pass it in as index tensors; or keep all pairs, with weights of 0 and 1."
    ),
    ("BS101", "tallies"): (
        "The loops add one after the other into cells that values say: compute the values of all turns as"
        " tensors, and add them with {table}.index_put_((i, j), weight, accumulate=True), an index for each"
        " dimension, with the weight 0 where the condition does not hold; no loop is left."
    ),
    ("BS101", "backtrace"): (
        "The function follows indices back one by one, each number picking the next, and gives Python's"
        " lists: compile what computes the scores, return the best last index and the indices of all steps as"
        " tensors, and follow them in the caller; or follow them for the whole batch, with at ="
        " back[t].gather(1, at[:, None]).squeeze(1) from the last step to the first, which reads no number (a"
        " shorter one begins at its own last step: torch.where(mask[t], new, at))."
    ),
    ("BS105", "first"): (
        "Only one position is taken: {Mask}.int().argmax(-1) gives it, 0 also where there is none, which"
        " {Mask}.any(-1) tells."
    ),
    ("BS101", "best"): (
        "Each turn of the loop is held against the best so far: put what it compares into a list, and take"
        " torch.stack([…]).min(0) or .max(0) after the loop, value and index; what is no tensor is picked by"
        " that index in the caller."
    ),
    ("BS101", "extreme"): (
        "The branch keeps the largest or least value so far: keep that as a tensor (a buffer, filled with"
        " -inf or inf at first), write torch.maximum(so_far, new) or torch.minimum at every call, and read it"
        " in the caller."
    ),
    ("BS101", "dropped"): (
        "The branch only takes out what a mask leaves out: drop it and keep all, and mask in what follows, by"
        " torch.where, by weights of 0 and 1, or by targets of -100 (ignore_index)."
    ),
    ("BS101", "whole"): (
        "The branch only spares a selection that keeps all: drop it, and what follows gives the same. What"
        " the mask selects there breaks by itself, and its finding says what to do."
    ),
    ("BS105", "distinct"): (
        "Only how many different values there are is asked: of whole numbers below a known n,"
        " torch.nn.functional.one_hot(x.flatten(), n).any(0).sum() tells that in the graph; or set"
        f" {SHAPES}, or count in the caller."
    ),
    **dict.fromkeys(
        (("BS101", "turn"), ("BS102", "turn"), ("BS103", "turn")),
        "The branch leaves the loop's turn by a tensor's value{in_it}: {unread}run every turn whole and keep"
        " what it changes with torch.where({test}, old, new); or compile the loop's body and leave the test"
        " in Python.",
    ),
    **dict.fromkeys(
        (("BS101", "stop"), ("BS102", "stop"), ("BS103", "stop")),
        "The branch leaves the loop by a tensor's value{in_it}: compile the loop's body and leave the test in"
        " Python; or {unread}run all turns with a flag that stays set, {done} = {done} | ({test}) where the"
        " test stands, and keep all that a turn sets, counts too, with torch.where({done}, old, new){grows}.",
    ),
    **dict.fromkeys(
        (("BS102", "python number"), ("BS103", "python number")),
        "The tensor that is read is made of {it}{at}: where that is a number of Python's, or a list of"
        " them, use it itself, and nothing is read.",
    ),
    ("BS102", "size"): (
        "A Python number is needed here{taken}: compute it {known} and pass it in{scalars}; or {fixed}."
    ),
    ("BS102", "slice"): (
        "A Python number is needed here{taken}: compute it {known} and pass it in, or set"
        f" {SCALARS}, with torch._check on its bounds where the code compares it{{asked_too}}; or keep the"
        " whole and mask by position, torch.arange(size) < n; a piece of fixed length is"
        " x.index_select(dim, start + torch.arange(length)), and index_copy writes it."
    ),
    ("BS102", "part"): (
        "{It} picks what is called{taken}: choose in the caller and pass that in, a graph for each choice; or"
        " run all of them and select with torch.where, or with weights of 0 and 1."
    ),
    ("BS102", "seed"): "Set the seed before the compiled call, and read {it} there.",
    ("BS102", "key"): (
        "{It} is a key of a Python dict or set{taken}: {back}do that {there}{table_of_counts}."
    ),
    ("BS102", "arithmetic"): (
        "{It} is {only}calculated with{in_it}: keep {tensor} a {kept}, .detach() in place of .item() or"
        " float() and .long() in place of int(){by_torch}, and it stays in the graph{read}; or set"
        f" {SCALARS}, where no branch of Python asks for it."
    ),
    ("BS102", "constant"): (
        "{It} has to be a number{taken}, which takes no tensor there: compute it {known} and pass it in"
        "{symbols}; or write with tensors what that call does{as_tensors}."
    ),
    ("BS102", "checked"): (
        "{It} is checked{taken}, where the run ends if that fails: return the tensor, read and check it in"
        " the caller, after the compiled call, with what else the number is for; or assert it on the tensor,"
        " as torch.isfinite(x).all(), which raises RuntimeError."
    ),
    ("BS102", "stacked"): (
        "The numbers become a tensor again{taken}: keep the tensors in the list, without .item(), and"
        " torch.stack(…) them there."
    ),
    ("BS102", "numpy"): (
        "{It} goes to numpy{taken}: write that with torch operations on {tensor}, or return the tensor and do"
        " it in the caller."
    ),
    **dict.fromkeys(
        (("BS101", "fast path"), ("BS102", "fast path")),
        "The branch leaves early or sets None{in_it}, so torch.where cannot select: where the caller can know"
        " it, decide it before the compiled call and pass a Python bool (or no mask at all where it is all"
        " ones); else return what the test asks for, test it in the caller, and compile what follows as a"
        " function of its own.",
    ),
    ("BS101", "optional"): (
        "What the branch makes is None without it, so torch.where cannot select: make it in every call, so"
        " that it changes nothing where the test is false (a mask that leaves nothing out); or test in the"
        " caller, and pass it or None."
    ),
    ("BS101", "early"): (
        "The branch returns early{in_it}: {unread}compute what follows as well and select at the end,"
        " torch.where({test}, early, rest), where both are tensors of one shape (each part of a tuple by"
        " itself; of a flag, True or False, that is the condition) and what follows does not fail then; else"
        " return the condition too, and let the caller test it."
    ),
    **dict.fromkeys(
        (("BS101", "choice"), ("BS102", "choice")),
        "What is selected{in_it} is no tensor, so torch.where cannot: {chosen}.",
    ),
    ("BS102", "count"): (
        "A count of steps decides: keep it in the caller as a Python int, and pass in a bool, a graph for"
        " each of the two; or make the call outside of the compiled function."
    ),
    (
        "BS101",
        "verdict",
    ): "The branch only decides what is returned last{in_it}: return its condition as a tensor, and let the"
    " caller test it.",
    (
        "BS101",
        "python",
    ): "What the branch does{in_it} is Python's own, so torch.where cannot select it: {back}test and do it"
    " {by_caller}.",
    (
        "BS101",
        "search",
    ): "Values steer this loop all over, as in NMS, so there is no one graph of it: put"
    " torch.compiler.disable on the function, and compile what it calls and what calls it.",
    ("BS102", "passed"): (
        "{It} is passed on{in_it}: where that needs a number of Python's, return {tensor} and make the call"
        " in the caller, after the compiled one; where it can do with a tensor, leave the read out; or set"
        f" {SCALARS}, where no branch of Python asks for it."
    ),
    ("BS102", "kept message"): (
        "The number is kept, and decides{in_it} if a message is written: keep {detached} in its place, and"
        " test it and write the message in the caller."
    ),
    ("BS102", "kept"): (
        "The number is {only}kept{in_it}: {return_it}keep {detached} in its place{shown}{read}."
    ),
    ("BS102", "returned"): (
        "The value is only returned: return the tensor{listed}{joined}, and read {them} in the caller, after"
        " the compiled call."
    ),
    (
        "BS101",
        "skip",
    ): "The branch leaves out changes of state{in_it}: select what is written, with torch.where({test}, old,"
    " new); or do all of it before or after the compiled call, where Python can test.",
    ("BS101", "undone"): (
        "The branch returns in front of calls that do something{in_it}, a step of an optimizer for instance,"
        " which torch.where cannot leave out: return what the test asks for, test it in the caller, and do"
        " what follows there, or in a function that is compiled by itself."
    ),
    (
        "BS101",
        "flag",
    ): "The object keeps its flag as a tensor: keep a Python bool beside it, set where the tensor is set and"
    " after load_state_dict, and test that one.",
    (
        "BS101",
        "spared",
    ): "The test{asks} only saves work: drop it. masked_fill and torch.where change nothing where the mask is"
    " empty; write other work so, torch.where({mask}, f(x), other){rows} over all elements, or give what is"
    " outside of the mask the weight 0.{draws}",
    (
        "BS101",
        "spared mean",
    ): "The test{asks} keeps a mean or maximum from an empty selection: drop it, and reduce under the mask,"
    " for a mean of x torch.where({mask}, x, 0).sum() / {Mask}.sum().clamp(min=1): 0 where the mask is"
    " empty.",
    (
        "BS102",
        "given",
    ): "The number goes to Python code for what that does with it: return the tensor, and make the call in"
    " the caller, after the compiled one.",
    (
        "BS102",
        "pick",
    ): "The number picks an element: of a tensor, index without reading it, x.index_select(dim,"
    " i.reshape(1)).squeeze(dim); of a Python list of numbers make a tensor once, torch.tensor(list), and"
    " index that; in other lists, dicts and texts {back}look it up {there}.",
    ("BS102", "bound"): (
        "Python's min or max compares the number: keep {tensor} a tensor, .detach() in place of .item() or"
        " float(), and bound it with clamp(min=…, max=…); where Python needs the result, read it in the"
        " caller."
    ),
    ("BS102", "placed"): (
        "{It} says where to write{in_it}: keep it a tensor and write with x.index_put((i, j), value), or"
        " x.scatter(dim, index, value); to add, with accumulate=True or scatter_add. A Python list or dict is"
        " written in the caller."
    ),
    ("BS102", "all picked"): (
        "A loop takes the numbers one by one and picks with each{in_it}: for a tensor do it for all at once,"
        " with the index as a tensor, x[index] or x.gather(dim, index) to read, x.scatter(dim, index, new) to"
        " write where no index comes twice, x.index_put((i, j), new, accumulate=True) to add; for a Python"
        " list or dict do it in the caller."
    ),
    ("BS102", "tested pick"): (
        "The number picks an element and decides a branch: keep it a tensor, index with x.index_select(dim,"
        " i.reshape(1)).squeeze(dim) after a clamp to what is there, and select with torch.where; or do all"
        " of it in the caller, after the compiled call."
    ),
    **dict.fromkeys(
        (("BS107", "with"), ("BS111", "with")),
        "Enter the context manager outside of the compiled function.",
    ),
    (
        "BS102",
        "order",
    ): "Python sorts or searches by the number: {back}do that {there}, or do it with torch.sort, torch.topk"
    " or torch.searchsorted, whose results stay tensors.",
    (
        "BS102",
        "list",
    ): "Keep the values in a tensor; where Python needs the list, call tolist() {there}{list_setting}.",
    (
        "BS102",
        "index",
    ): "A tensor of one number is an index here, and its value is read: take x.index_select(dim,"
    " i.reshape(1)).squeeze(dim) of a tensor, and write one with x.index_copy or x.scatter; of a Python list"
    " choose in the caller.",
    ("BS105", "reduced"): (
        "Reduce under the mask{in_it}{made_whole}: torch.where({mask}, {of}, 0).sum(), divided by"
        " {Mask}.sum() for a mean{asked}, or {Of}.masked_fill({unmasked}, -inf).max() for a maximum (inf for"
        " a minimum; of whole numbers the least or greatest of their dtype)"
        "{spread}{elsewhere}{besides}{by_row};"
        f" or set {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "across"): (
        "What the mask selects is the last dimension{in_it}: take all of it{made_whole}, and before that give"
        " what is outside of the mask {outside}{elsewhere};"
        f" or set {SHAPES}, where nothing branches on the"
        " size."
    ),
    ("BS105", "mixed"): (
        "Between the selection and what takes it{in_it} rows are moved, repeated, picked or multiplied with"
        " others, and the mask has to go with them: keep all, and leave out what it does not select where"
        " that is done (-inf before a softmax or a ranking, inf where the least come first, 0 before a sum),"
        " or select in the caller;"
        f" or set {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "looked up"): (
        "What {made_of}the mask selects is indexed by what a ranking gave{in_it}: rank all and put the rest"
        " last, scores.masked_fill({unmasked}, -inf) (inf where the least come first), {index_all}, or return"
        " both and the mask, and do it in the caller."
    ),
    ("BS105", "rows"): (
        "As many are selected of each row{in_it}: where that number is known, take positions in the place of"
        " the mask, i = {Mask}.int().argsort(dim=1, descending=True, stable=True)[:, :k], and {Of}.gather(1,"
        " i), for rows of d values with i[..., None].expand(-1, -1, d), which has one size; or set"
        f" {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "bound"): (
        "One position is the bound of a slice{in_it}, a number that data decide however it is found: keep the"
        " whole and mask by position, torch.arange(size) < {Mask}.int().argmax(-1) for what is in front of"
        " the first, or cut in the caller."
    ),
    ("BS105", "positions"): (
        "The positions are only reduced{in_it}: i = torch.arange(size) under the mask does that,"
        " torch.where({mask}, i, -1).max() for the last and torch.where({mask}, i, size).min() for the first,"
        " with {Mask}.any(dim) for one of several dimensions{tested}; or set"
        f" {SHAPES}, where nothing branches on how many there are."
    ),
    ("BS105", "edges"): (
        "How long the list of positions is depends on data: make it {there}, and pass it in, once where it"
        " holds the edges of a graph that stays; or set"
        f" {SHAPES}, where nothing branches on how many there are."
    ),
    ("BS105", "labels"): (
        "Take the loss over all elements and leave out the rest{in_it}: give it the targets with"
        " .masked_fill({unmasked}, -100), which is its ignore_index; where the mask has several dimensions,"
        " with scores.flatten(0, -2) and targets.flatten()."
    ),
    ("BS105", "packed"): (
        "ctc_loss takes padded targets as well, one row for each input, with their lengths{in_it}: give it"
        " those without the mask, outside of the compiled function, as torch cannot trace it."
    ),
    ("BS105", "loss"): (
        "Take the loss over all elements{in_it}, with reduction='none', and sum it under the mask:"
        " torch.where({mask}, loss, 0).sum(), divided by {Mask}.sum() for a mean; for rows of several values"
        " the mask is {Mask}[..., None], and their number counts as well."
    ),
    ("BS105", "stored"): (
        "It is computed where the mask is set and stored there{in_it}: compute it for all elements, and"
        " select, y = torch.where({mask}, f(x), y){rows}; where f would fail or give nan outside of the mask,"
        " give it torch.where({mask}, x, a harmless value){together}. Values of which there are only as many"
        " as"
        f" the mask selects go in with y.masked_scatter({{mask}}, values). Or set {SHAPES}, where nothing"
        " branches on the size."
    ),
    ("BS105", "scattered"): (
        "What the mask selects is added or written by an index{in_it}: keep all elements, and give those"
        " outside of the mask the weight 0, value * {Mask}{rows}{counts}, and the index 0 where theirs is"
        " none, torch.where({mask}, index, 0); or set"
        f" {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "written"): (  # by one index: WRITTEN_CELLS has several
        "What the mask selects says where to write{in_it}, and how many places that are depends on data: mark"
        " the places with all elements, hit = torch.zeros(n).index_add(0, index, {Mask}.float()) > 0, with n"
        " places, and write torch.where(hit, value, old){beyond}; or set"
        f" {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "selected"): (
        "Keep the shape: compute for all elements and select, torch.where({mask}, {f}({of}), other){rows}, or"
        " where sums take it weigh what is outside of the mask with 0; or set"
        f" {SHAPES}, where the rest of the graph can do with an unknown size."
    ),
    ("BS105", "ranked"): (
        "What the mask selects is ranked{in_it}: rank all and put the rest last,"
        " scores.masked_fill({unmasked}, {least}){flat}.{rank}, and what has {least} was not"
        " there{elsewhere}; or return scores and mask and do it in the caller."
    ),
    ("BS105", "suppressed"): (
        "How many boxes go to NMS, and how many it keeps, depends on data{in_it}: return boxes, scores and"
        " mask (or the k best by topk, a fixed number), and select and suppress in the caller, after the"
        " compiled network."
    ),
    ("BS105", "paired"): (
        "What the mask selects is held against another selection, each with each{in_it}: take all with all,"
        " and reduce under both masks, both = mask_a[:, None] & mask_b[None, :], as in torch.where(both,"
        f" f(a[:, None], b), 0).sum() / both.sum(); or set {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "joined"): (
        "What the mask selects is joined with more, or put into a list{in_it}, and how many there are depends"
        " on data: keep all elements with their masks, join those, and select in the caller; where the mask"
        " is known before the compiled call, take its positions there and pass them in; or set"
        f" {SHAPES}, where nothing branches on the size."
    ),
    ("BS105", "given"): (
        "What the mask selects goes to Python code for what that does with it{in_it}: return {both}, and make"
        " the call in the caller, after the compiled one."
    ),
    ("BS105", "counted"): (
        "How many the mask selects decides a branch{in_it}: {how_many} and {Mask}.any() tell that as"
        " tensors{firsts}, with & for each further mask that selects on the way; compute with torch.where"
        " over all elements, or return {both}, and select and test in the caller."
    ),
    ("BS105", "tallied"): (
        "Only how many the mask selects is asked{in_it}: {how_many} counts them as a tensor, and nothing is"
        " selected; where Python needs the number, read it in the caller."
    ),
    ("BS105", "returned"): (
        "Here what the mask selects is only returned or kept: return {both}, and select after the compiled"
        " call,"
        f" where no compiled caller goes on with it; or set {SHAPES}, where nothing branches on the size."
    ),
    (
        "BS105",
        "message",
    ): "Only a message needs it: return the mask and write the message in the caller, or take it out of what"
    " is compiled.",
    ("BS102", "branch"): (
        "It decides a branch{in_it}{also}: drop the .item(), int(), float() or bool(){signs}, compute both"
        " sides and select with torch.where, or use torch.cond if a side is costly; where a side is no tensor"
        " of the other's shape, or does more, test it in the caller."
    ),
    ("BS102", "told"): (
        "It decides a branch that writes a message as well: drop the .item(), int(), float() or"
        " bool(){signs}, select with torch.where what the branch sets or returns, and write the message in"
        " the caller."
    ),
    **{
        (code, "experts"): (
            "Run each expert on all tokens, weighted with 0 where it was not chosen (one that has none gets a"
            f" gradient of 0 in place of None), or set {setting}, where no branch asks how many tokens an"
            " expert has{asks_many}; else leave this block eager, with torch.compiler.disable on it, which is"
            " one break for each of its calls."
        )
        for code, setting in (("BS105", SHAPES), ("BS102", SCALARS))
    },
    ("BS106", "check"): _CHECK,
    ("BS105", "check"): (
        "The check asks for what a mask selects, and how many that are depends on data: ask all elements, and"
        " let those outside of the mask pass, as in assert (holds(x) | {unmasked}).all(), 'text', which"
        " Dynamo traces; for rows the mask is {Mask}[..., None]."
    ),
    ("BS111", "index"): (
        "A tensor is the index of a Python object, which has no value while Dynamo traces: return the tensor,"
        " and look it up in the caller."
    ),
    (
        "BS103",
        "check",
    ): "Assert it on the tensor, with an operation that gives one and a constant text: assert"
    " torch.isclose(a, b).all(), 'differs'. Dynamo traces that as torch._assert_async, which raises"
    " RuntimeError.",
}
_RNN = f"Set {CONFIG}.allow_rnn = True; where it raises, or is wrong or slower, take it back."
RNN_IN_LOOP = (
    _RNN + " {loop} is unrolled with it then, a version for each number of its turns: where that changes,"
    " compile what a turn does and leave the loop to Python."
)
# (codes, what the record says, the advice). First match wins.
BY_TEXT: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("BS116",),
        r"",
        (
            f"{_RNN} Each length that it runs over is a version then (one step at a time is one): where many"
            " come, pad to few, or leave it eager."
        ),
    ),
    (
        ("BS104",),
        r"`tqdm\.\w+`",
        (
            "A method of a progress bar is called, which torch cannot run behind the graph: return what it"
            " tells and call it in the caller, or call it with no bar (None) where it is compiled."
        ),
    ),
    (
        ("BS104",),
        r"\b\w*[lL]ogger\b|\blogging\b(?!_functions)",
        (
            f"Remove the call, or add the method to {CONFIG}.ignore_logging_functions (up to torch 2.10"
            " ignore_logger_methods), which then says nothing where it is compiled."
        ),
    ),
    (
        ("BS104",),
        r"_filters_mutated|simplefilter|filterwarnings|catch_warnings",
        (
            "The filter of warnings is changed here, which is no message: set it once, before the compiled"
            " call, or enter it only `if not torch.compiler.is_compiling()`."
        ),
    ),
    (
        ("BS104",),
        r"warn",
        (
            "Warn in the caller, outside of the compiled call, or add the function to"
            f" {CONFIG}.reorderable_logging_functions: it then runs after the graph."
        ),
    ),
    (
        ("BS104",),
        r"\bprint\b",
        (
            f"Remove the call, or say {CONFIG}.reorderable_logging_functions.add(print) once: the text then"
            " comes after the graph."
        ),
    ),
    (
        ("BS102",),
        r"\.tolist\(\)|Tensor\.tolist",
        (
            "Keep the values in a tensor; where Python needs the list, call tolist() in the caller, or set"
            f" {SCALARS} (integers only)."
        ),
    ),
    (
        ("BS102",),
        r"capture_scalar_outputs|\.item\(\)",
        (
            "Keep a 0-d tensor where that will do (arithmetic, torch.where): .detach() in place of .item(),"
            " int(), float() or bool(); where Python needs the number, read it in the caller, or set"
            f" {SCALARS}, where no branch of Python asks for it."
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
            " choose with torch.where where both sides are tensors of one shape; else take its bool in the"
            " caller, where each pattern of bools that is passed in is a graph."
        ),
    ),
    (
        ("BS105",),
        r"repeat_interleave",
        (
            "Give torch.repeat_interleave its output_size=, where the caller can know it, which then need"
            f" not be read from the data; or set {SHAPES}."
        ),
    ),
    (
        ("BS105",),
        r"one_hot",
        "Give torch.nn.functional.one_hot its num_classes=, which then need not be read from the data.",
    ),
    (
        ("BS105",),
        r"masked_select|nonzero|index|unique",
        (
            f"Keep the shape: torch.where(mask, f(x), other) over all elements; or set {SHAPES}, where the"
            " rest of the graph can do with an unknown size."
        ),
    ),
    (
        ("BS115",),
        r"tensor creation function with requires_grad=True",
        (
            "Leave requires_grad out: what is added to the tensor carries the gradient. Where its own"
            " gradient is needed, make it before the compiled call and pass it in."
        ),
    ),
    (
        ("BS115",),
        r"Parameter\(\)` constructor",
        (
            "Make the parameter, and modules that have one, in __init__ or before the compiled call: forward"
            " only reads it."
        ),
    ),
    (
        ("BS120",),
        r"Unsupported functorch tracing attempt",
        (
            "A transform of torch.func (grad, vmap) is applied in eager to this compiled function, which"
            " Dynamo does not trace: compile the function that applies the transform, and give it the plain"
            " function."
        ),
    ),
    (
        ("BS120",),
        r"",
        (
            "Take what breaks out of the functions given to the operator (prints, .item(), writes to outer"
            " values): they must be traced whole."
        ),
    ),
    (
        ("BS107",),
        r"intentionally marked that the function `[^`]+` in file",
        (
            "Move the call out of the compiled function; or, where the function only computes with Python's"
            " numbers and texts, have Dynamo trace it: put torch._dynamo.dont_skip_tracing on the compiled"
            " function, below torch.compile. Where it raises then, take that back."
        ),
    ),
    (
        ("BS107",),
        r"how to trace the builtin `(?!<unknown module>)",
        (
            "Move the call out of the compiled function; or, where it is a C function of Python's numbers and"
            " texts, give Dynamo a Python version of it (torch.compiler.substitute_in_graph); where it takes"
            " tensors, wrap it as a custom operator."
        ),
    ),
)
