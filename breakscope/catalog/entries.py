"""The texts of the catalog, and how a record's text refines a code. Data only; read by ``catalog``.

Order of an entry: code, title, why, fix, more, severity, remedy.
"""

from __future__ import annotations

from breakscope.catalog.entry import Entry

# The kinds of break that torch reports without an id, or with one newer than our table. First match wins.
GUESSES: tuple[tuple[str, str], ...] = (
    (r"data.dependent (branching|jump)|generic_jump", "BS101"),  # the second and third up to torch 2.6
    (r"data.dependent assert|tensor.valued assert", "BS106"),
    (r"could not guard on data-dependent expression", "BS101"),
    (r"torch\._check", "BS106"),
    (r"Tensor\.item\b", "BS102"),
    (r"data.dependent operator", "BS103"),
    (r"dynamic shape operator|data.dependent output shape", "BS105"),
    (r"\blogger\b|logging|builtin: print\b", "BS104"),
    (r"recompile.? limit|cache.?size.?limit", "BS303"),
    (r"backend compiler|BackendCompilerFailed", "BS306"),
    (r"graph break in (a |an )?(for/while )?loop|graph break under", "BS301"),
    (r"compiler\.disable|_dynamo\.disable", "BS108"),
    (r"_dynamo\.graph_break\b|skip function graph_break", "BS109"),
    (r"skip function|in skip_?files", "BS107"),
    (r"triton", "BS130"),
    (r"\bHOP\b|higher.?order|torch\.(cond|while_loop|map|scan|associative_scan|switch)\b", "BS120"),
    (r"autograd|backward|grad_fn|\bhook\b", "BS121"),
    (r"numpy|ndarray", "BS110"),
    (r"sparse|nested.?tensor|tensor subclass", "BS117"),
    (r"torch\.nn\.Parameter|requires_grad|Tensor\.data\b|resize_|STORE_ATTR", "BS115"),
    (r"context manager", "BS112"),
    (r"generator|comprehension|itertools", "BS114"),
    (r"deepcopy|weakref|pickle", "BS118"),
    (r"fake (tensor|impl)|meta kernel", "BS119"),
    (r"repr\(\)|str\(\)|__repr__|__str__", "BS128"),
    (r"reconstruct", "BS133"),
    (r"marked as skipped", "BS107"),
    (r"observed exception|except", "BS113"),
    (r"builtin", "BS111"),
)

_CALL = ("BS107", "BS111", "BS198")
_DATA = ("BS103", "BS105")

# (codes that are too coarse, what the record's text must say, the code that fits). First match wins.
REFINEMENTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("BS102", "BS103", "BS107", "BS110", "BS111"),
        r"\bn(um)?p(y)?\.random\b|<built-in method \w+ of numpy\.random",
        "BS127",
    ),
    (_CALL, r"UserDefinedObjectVariable\((Generator|RandomState)\)", "BS127"),
    (_DATA, r"_local_scalar_dense|\baten\.item\b", "BS102"),
    (("BS101",), r"\brandom_value_\d", "BS127"),
    (_CALL, r"\bprint\b|LoggingLogger|\bLogger\b|warning_once", "BS104"),
    (_CALL, r"<class 'decimal\.", "BS107"),
    (_CALL, r"module: tqdm\b|`tqdm\.", "BS104"),
    (_CALL, r"_VariableFunctionsClass\.sparse_", "BS117"),
    (_CALL, r"module: (\w+\.)*(logging|_?warnings)\b|`(logging|_?warnings)\.|_warnings\.warn\b", "BS104"),
    (_CALL, r"\b(write|flush|writelines)\W.*\b(TextIOWrapper|BufferedWriter|StringIO|OutStream)\b", "BS104"),
    (_CALL, r"(TextIOWrapper|StringIO|OutStream)\)? (write|flush|writelines)\b", "BS104"),
    (_CALL, r"module: (numpy|cupy|pandas|scipy|sklearn|jax|polars|pyarrow|xarray)\b", "BS110"),
    (_CALL, r"site-packages/(numpy|cupy|pandas|scipy|sklearn|jax|polars|pyarrow|xarray)/", "BS110"),
    (_CALL, r"`(numpy|np|cupy|pandas|scipy)\.|\b(NumpyNdarray|NumpyVariable)|\bndarray\b", "BS110"),
    (_CALL, r"module: (time|datetime)\b|`(time|datetime)\.|<class 'datetime\.|\bdatetime\.now\b", "BS126"),
    (_CALL, r"module: (_?random|secrets|torch\.random|torch\.\w+\.random)\b", "BS127"),
    (_CALL, r"\bRandom\.\w+|\bmanual_seed(_all)?\b|`random\.", "BS127"),
    (
        _CALL,
        r"module: (_?pickle|copy|copyreg|_?weakref)\b|`_?pickle\.|\bdeepcopy\b|<class 'weakref\.",
        "BS118",
    ),
    (_CALL, r"`(bool|int|float|complex)` with argument types \[[^\]]*Tensor", "BS102"),
    (_CALL, r"builtin (bool|int|float|complex) \[[^\]]*TensorVariable", "BS102"),
    (_CALL, r"builtin operator `(str|repr|format|ascii)`|\bbuiltin (str|repr|format|ascii) \[", "BS128"),
    (_CALL, r"builtin operator `(id|hash)`|\bbuiltin (id|hash) \[", "BS129"),
    (_CALL, r"module: torch\.(distributed|cuda|xpu|mps|accelerator)\b", "BS125"),
    (_CALL, r"module: torch\.(autograd|utils\.hooks)\b", "BS121"),
    (("BS107",), r"\b(RNN|LSTM|GRU)\b.*allow_rnn", "BS116"),
    (("BS107",), r"\b(resize_|resize_as_|requires_grad_|set_)\(", "BS115"),
)

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "BS101",
        "branch on a tensor's value",
        "Python must know which way the branch goes, and the value exists only when the graph has run. So"
        " the graph ends before the branch and another one starts after it.",
        "Compute both sides and select with torch.where, or use torch.cond if a side is costly.",
        """\
# before
if x.abs().max() > 1e4:
    x = x.clamp(-1e4, 1e4)
# after
x = torch.where(x.abs().max() > 1e4, x.clamp(-1e4, 1e4), x)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS102",
        "Python scalar read out of a tensor",
        "item(), tolist(), int(), float(), bool() and a tensor used as a slice bound need the numbers "
        "themselves, which exist only when the graph has run. On a GPU the read also waits for the "
        "device.",
        "Keep the value a tensor and write the expression with tensor operations.",
        """\
# before
scale = x.abs().max().item()
# after: a 0-d tensor takes part in arithmetic as a number does
scale = x.abs().max()
y = x / scale""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS103",
        "operator whose Python result depends on data",
        "The operator returns a Python value that it computes from the tensors' content, such as "
        "torch.equal, torch.allclose or tolist() of floats. A graph can only hand on tensors.",
        "Use a form that returns a tensor, and keep the Python value out of the compiled function.",
        """\
# before
same = torch.equal(a, b)
# after: a 0-d bool tensor, for torch.where or an assert
same = (a == b).all()""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS104",
        "print, logging or warnings call",
        "Text output is a side effect that has to happen at this point of the program, so Dynamo ends the"
        " graph, lets Python write the text and starts another graph.",
        "Remove the call, or let torch run it after the graph with reorderable_logging_functions.",
        """\
# before
print("loss", loss)
# after: said once, before the first call; the text may come later than it did
torch._dynamo.config.reorderable_logging_functions.add(print)""",
        "warning",
        "reorder",
    ),
    Entry(
        "BS105",
        "output shape depends on data",
        "How large the result is depends on the content of the input: nonzero, unique, x[mask], one_hot "
        "without num_classes, repeat_interleave with a tensor. By default Dynamo does not trace unknown "
        "sizes.",
        "Keep the shape fixed: select with torch.where, or give the size (num_classes=, output_size=).",
        """\
# before
y[mask] = f(x[mask])
# after: f now sees every element, and must be defined for them
y = torch.where(mask, f(x), y)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS106",
        "assert or check that depends on data",
        "The check reads a tensor's value to decide whether to raise, or its message needs values that "
        "exist only at run time.",
        "Check the tensor itself, without item(), and make the message a constant string.",
        """\
# before
torch._check(x.shape[0] > 0, lambda: f"no rows in {x}")
# after
torch._check(x.shape[0] > 0, lambda: "no rows")""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS107",
        "call of a function that Dynamo does not trace",
        "The function is written in C, or is one that torch has marked not to be traced. Dynamo ends the "
        "graph, calls it in Python and goes on in another graph.",
        "Move the call out of the compiled function, or wrap it as a custom operator.",
        """\
@torch.library.custom_op("mylib::smooth", mutates_args=())
def smooth(x: torch.Tensor) -> torch.Tensor:
    return c_extension.smooth(x)
@smooth.register_fake
def _(x):
    return torch.empty_like(x)""",
        "warning",
        "annotation",
    ),
    Entry(
        "BS108",
        "call of a disabled function",
        "Somebody has put torch.compiler.disable on the function (or calls it here), which tells Dynamo "
        "to run it eagerly. Each call ends a graph and starts another.",
        "Leave it where it spares more breaks or an error; else remove torch.compiler.disable, or call it "
        "before.",
        """\
# before
@torch.compiler.disable
def make_mask(x): return x > 0
# after
def make_mask(x): return x > 0""",
        "info",
        "remove",
    ),
    Entry(
        "BS109",
        "explicit graph break",
        "The program asks for the break itself, with torch._dynamo.graph_break() or a debugging setting "
        "of Dynamo.",
        "Remove the call or the setting if it is no longer needed.",
        """\
# before
y = first(x); torch._dynamo.graph_break(); y = second(y)
# after
y = second(first(x))""",
        "info",
        "remove",
    ),
    Entry(
        "BS110",
        "numpy or another array library",
        "Dynamo translates many numpy calls to torch, but not this one; calls of pandas, scipy and the "
        "like run in their own C code, which it cannot see.",
        "Use the torch function that does the same, and keep the data in tensors.",
        """\
# before
bins = np.digitize(x.numpy(), edges)
# after
bins = torch.bucketize(x, edges, right=True)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS111",
        "builtin or operator on unsupported arguments",
        "Dynamo knows this builtin, operator or method, but not for arguments of these types.",
        "Write the line with operations on tensors and plain Python values, or move it to the caller.",
        """\
# before, inside the compiled function
names = open("labels.txt").read().split()
# after: the caller reads them once and passes them in
names = read_labels("labels.txt")
y = compiled(x, names)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS112",
        "context manager that cannot be traced",
        "Dynamo cannot enter this context manager, or cannot leave a graph while it is active. A lock or "
        "an open file cannot be part of a graph.",
        "Enter the context manager outside the compiled function.",
        """\
# before, inside the compiled function
with lock:
    y = net(x)
# after, in the caller
with lock:
    y = compiled_net(x)""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS113",
        "exception raised or handled",
        "An exception that leaves the compiled function, or one that is built or caught in a way Dynamo "
        "does not model, cannot be part of a graph.",
        "Check the condition before the compiled part, or return a flag instead of raising.",
        """\
# before, inside the compiled function
if depth > limit:
    raise TooDeep(depth)
# after: the caller checks, then calls the compiled function
if depth <= limit:
    y = compiled(x, depth)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS114",
        "generator, iterator or comprehension",
        "A function with yield stops in the middle and keeps its state, which a graph cannot do; some "
        "iterators and comprehensions are kept in C objects that Dynamo cannot step through.",
        "Build a list or a tuple, and compile the function that uses it.",
        """\
# before: a generator given to torch.compile
def parts(x):
    yield x.sin()
# after
def parts(x):
    return [x.sin()]""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS115",
        "change of a tensor's state",
        "Changing requires_grad, .data or the storage of a tensor, or making a Parameter, changes what "
        "the rest of the graph was built on.",
        "Create parameters and change tensor state outside the compiled function.",
        """\
# before, in forward
self.scale = torch.nn.Parameter(torch.ones(n))
# after, in __init__: forward only reads it
self.scale = torch.nn.Parameter(torch.ones(n))""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS116",
        "RNN, LSTM or GRU module",
        "Dynamo runs torch's recurrent modules eagerly by default. Packed input breaks with any setting, and"
        " flatten_parameters(), train() and eval() of such a module belong before the compiled call.",
        "Set torch._dynamo.config.allow_rnn = True; where it raises, or is wrong or slower, take it back.",
        """\
# said once, before the first call; torch calls it experimental
torch._dynamo.config.allow_rnn = True
y = compiled_lstm(x)""",
        "warning",
        "config",
    ),
    Entry(
        "BS117",
        "sparse, nested, quantised or subclass tensor",
        "Dynamo has no description of this kind of tensor that it could trace with, or its methods are "
        "overridden in a way that cannot be traced.",
        "Convert to an ordinary dense tensor before the compiled function.",
        """\
# before
y = compiled(adjacency.to_sparse(), x)
# after
y = compiled(adjacency, x)""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS118",
        "deepcopy, pickle or weak reference",
        "Copying or pickling walks over objects in C code, and a weak reference depends on when an object"
        " dies; neither can be put into a graph.",
        "Use clone() for a tensor; copy, save or refer to other objects outside the compiled function.",
        """\
# before
kept = copy.deepcopy(h)
# after
kept = h.clone()""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS119",
        "operator without a fake implementation",
        "To trace an operator, Dynamo must learn the shape and dtype of its result without running it; "
        "this operator or kernel does not say.",
        "Register a fake implementation for the operator with torch.library.register_fake.",
        """\
@torch.library.register_fake("mylib::smooth")
def _(x):
    return torch.empty_like(x)""",
        "warning",
        "annotation",
    ),
    Entry(
        "BS120",
        "higher-order operator used in an unsupported way",
        "Operators that take functions (torch.cond, while_loop, scan, map, checkpoint, vmap) trace them "
        "into graphs of their own, and these must take and return tensors of one form and change nothing "
        "outside.",
        "Let the inner functions take and return the same structure of tensors, without side effects.",
        """\
# before: the branches return different things
y = torch.cond(p, lambda x: x * 2, lambda x: (x, x), (x,))
# after
y = torch.cond(p, lambda x: x * 2, lambda x: x.clone(), (x,))""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS121",
        "autograd function, hook or backward in the graph",
        "Dynamo traces the forward pass; torch derives the backward pass from that graph. Code that works"
        " on autograd itself inside the compiled function gets in the way.",
        "Compile the forward pass and the loss, and call backward and register hooks outside.",
        """\
# before, inside the compiled function
loss = criterion(net(x), y); loss.backward()
# after
loss = compiled_loss(x, y)
loss.backward()""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS122",
        "unsupported Python object, attribute or class",
        "The line uses a feature of an object or a class that Dynamo does not model, such as a custom "
        "__getattribute__, a descriptor in C, or a class defined in the function.",
        "Use plain attributes and methods here, or move the object's work out of the compiled function.",
        """\
# before: called for every attribute
def __getattribute__(self, name): return lookup(self, name)
# after: called only for names that are not found otherwise
def __getattr__(self, name): return lookup(self, name)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS123",
        "key that is not a constant",
        "Looking up, hashing or sorting by a key needs its value while tracing; a tensor or a symbolic "
        "size has none then.",
        "Use constant keys, or sort and look up with tensor operations.",
        """\
# before
best = sorted(losses)[0]
# after
best = torch.stack(losses).min()""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS124",
        "async function or coroutine",
        "A coroutine stops and is resumed by an event loop, which cannot happen inside a graph.",
        "Compile the synchronous function, and await outside it.",
        """\
# before
answer = torch.compile(fetch_and_run)  # an async function
# after
batch = fetch()
answer = torch.compile(run)(batch)""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS125",
        "distributed, stream or device call",
        "The call talks to other processes or controls the device, and Dynamo traces only some forms of "
        "such calls.",
        "Use the synchronous form that Dynamo traces, or move the call out of the compiled function.",
        """\
# before
work = dist.all_reduce(x, async_op=True); work.wait()
# after
dist.all_reduce(x)""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS126",
        "use of the clock",
        "A time that is read while tracing would be the same for ever, and a graph cannot wait, so it ends"
        " here. The time would also be wrong on a GPU, which works asynchronously.",
        "Take the time around the compiled call; a loop that ends by the clock is left to Python.",
        """\
# before, inside the compiled function
start = time.perf_counter(); y = net(x); took = time.perf_counter() - start
# after, in the caller
start = time.perf_counter(); y = compiled_net(x); took = time.perf_counter() - start""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS127",
        "random number, seed or generator outside the graph",
        "The next number and the state of the generator belong to the running program, not to the graph. "
        "A branch on such a number breaks as a branch on a tensor does.",
        "Draw in the caller and pass it in; or torch.rand(()) and the like, where Python asks for no number.",
        """\
# before, inside the compiled function
if random.random() < p: x = x + noise
# after: torch's own generator is part of the graph
x = torch.where(torch.rand(()) < p, x + noise, x)""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS128",
        "text made from an object or a tensor",
        "str, repr or a format string needs the object's content, or its method is in C and cannot be "
        "traced.",
        "Make the text outside the compiled function.",
        """\
# before, inside the compiled function
self.last = repr(y)
# after: keep the tensor, make the text when it is shown
self.last = y""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS129",
        "id, hash, address or identity of an object",
        "While tracing, objects and tensors are stand-ins; their id, hash or address is not that of the "
        "running program.",
        "Use a name, an index or a constant as the key instead of the object's identity.",
        """\
# before, where parts is a list made in the compiled function
seen[id(parts)] = parts
# after
seen["encoder.0"] = parts""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS130",
        "Triton kernel used in an unsupported way",
        "Dynamo traces the launch of a Triton kernel, but not this feature, argument or setting of one.",
        "Launch the kernel with plain tensors and constants, and set Triton up outside.",
        """\
# before, inside the compiled function
triton.set_allocator(allocate)
# after: once, before the first call of the compiled function
triton.set_allocator(allocate)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS131",
        "TorchScript or opaque object",
        "TorchScript modules run in a runtime of their own, and an opaque object hides its content; "
        "Dynamo sees only what was registered.",
        "Pass the plain nn.Module instead of a scripted one, or register the members that are used.",
        """\
# before
net = torch.compile(torch.jit.script(Net()))
# after
net = torch.compile(Net())""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS132",
        "marked function with unsupported arguments",
        "nonstrict_trace, leaf_function and assume_constant_result put a function into the graph unseen, "
        "so what goes in and comes out must be of types that Dynamo can describe.",
        "Pass and return only tensors, numbers and containers of them, or register the type with pytree.",
        """\
# before: State is unknown to pytree
y = marked(x, State(scale))
# after
y = marked(x, scale)""",
        "warning",
        "annotation",
    ),
    Entry(
        "BS133",
        "object that cannot leave compiled code",
        "An object made inside the compiled function is needed after the break or by the caller, and "
        "Dynamo does not know how to build it again.",
        "Return tensors and plain containers, and make other objects in the caller.",
        """\
# before, where scaled() makes a context manager
return y, scaled(y)
# after: the caller makes it
return y""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS134",
        "out= tensor of another shape or layout",
        "The graph is built for an out= tensor of the right shape that is contiguous; this one is not.",
        "Assign the result instead of passing out=, or pass a contiguous tensor of the right shape.",
        """\
# before
torch.add(a, b, out=buffer[:, ::2])
# after
buffer[:, ::2] = a + b""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS135",
        "symbolic size used in an unsupported way",
        "The size is a symbol while tracing, and this operation needs a number or a tensor.",
        "Take sizes from the shapes of tensors, and compute with them in plain Python.",
        """\
# before: a size that comes out of the data
n = int(lengths.max()); y = x[:, :n]
# after: the shape is known, the rest is masked
y = x * (torch.arange(x.shape[1]) < lengths.max())""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS136",
        "query of a tensor's internal state",
        "Whether a tensor is an inference tensor or shares its storage copy-on-write is known only when "
        "the program runs.",
        "Remove the query from the compiled function; use no_grad where it asks for inference mode.",
        """\
# before
if torch.is_inference_mode_enabled(): x = x.clone()
# after: the caller decides
x = x.clone()""",
        "warning",
        "remove",
    ),
    Entry(
        "BS137",
        "container that cannot be modelled",
        "Dynamo models lists, tuples, dicts and sets of ordinary values; this container (a bounded deque,"
        " a set of tensors, a TypedDict) or what is put into it is not one of them.",
        "Use a plain list, tuple or dict here.",
        """\
# before
y = compiled({a, b})  # a set of tensors
# after
y = compiled([a, b])""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS140",
        "hook of FSDP2 between compiled regions",
        "fully_shard gathers and frees parameters in hooks around each sharded module, and keeps Dynamo out "
        "of them. This is how FSDP2 works, not a fault of the line; what matters is where the graphs end "
        "because of it.",
        "Compile each sharded block by itself (block.compile()), so that hooks stand between graphs.",
        """\
# before: hooks inside one graph make the loop over blocks run eagerly
for block in net.blocks: fully_shard(block)
net = torch.compile(net)
# after: the hooks run between the blocks' graphs
for block in net.blocks: block.compile(); fully_shard(block)""",
        "warning",
        "upstream",
    ),
    Entry(
        "BS141",
        "code of DDP itself, around the model",
        "DistributedDataParallel.forward keeps its books (buckets, statistics, flags) around the model's "
        "call, and Dynamo does not trace that. It is passed once a step and is no fault of the model.",
        "Leave it, or compile the model inside DDP(torch.compile(net)) so that no graph reaches DDP's code.",
        """\
# before: DDP's own code is part of what Dynamo looks at
net = torch.compile(DDP(net))
# after: only the model is
net = DDP(torch.compile(net))""",
        "info",
        "upstream",
    ),
    Entry(
        "BS190",
        "error that eager raises too",
        "Dynamo met an error of the program itself: a missing name, wrong arguments, shapes or devices "
        "that do not fit. The call was made again in eager on the same inputs, and raised as well.",
        "Repair the error in eager first: the explanation has its text.",
        """\
# everything runs eagerly: the same error should show
torch.compiler.set_stance("force_eager")""",
        "error",
        "user_error",
    ),
    Entry(
        "BS191",
        "error under torch.compile that eager was not seen to raise",
        "Running the code on stand-ins without data (fake tensors) raised an error. Eager "
        "passes, or catches it, or was not tried: the explanation says which. Such an error ends the"
        " compiled "
        "call even where the code itself would catch it.",
        "Write the line so that stand-ins without data pass it, or use torch.compiler.disable.",
        """\
# before: the error comes while Dynamo traces, and this `except` is not asked
try: y = x @ w
except RuntimeError: y = x @ w.T
# after
y = x @ w if x.shape[-1] == w.shape[0] else x @ w.T""",
        "error",
        "rewrite",
    ),
    Entry(
        "BS198",
        "limitation inside Dynamo",
        "Dynamo cannot go on for a reason that lies in Dynamo, not in the line.",
        "Try a newer torch, or write the line in another way; a report to PyTorch helps.",
        """\
# keeps the part out of the graphs on purpose, so that the rest stays whole
@torch.compiler.disable
def odd_part(x): return x""",
        "warning",
        "upstream",
    ),
    Entry(
        "BS199",
        "other graph break",
        "Dynamo stopped here for a reason that breakscope has no text for. The reason and the hints are "
        "torch's own.",
        "Follow the hints of torch in the report, or move the line out of the compiled function.",
        """\
# the whole text of torch for every break
torch._logging.set_logs(graph_breaks=True)""",
        "warning",
        "upstream",
    ),
    Entry(
        "BS201",
        "size of a dimension changed",
        "The compiled code was made for one size of this dimension, and another one came. After the "
        "second size torch usually makes the dimension dynamic by itself: one recompile, or a smaller last "
        "batch, is expected.",
        "Mark the dimension as dynamic before the first call, or pad to a few fixed sizes.",
        """\
# before the first call
torch._dynamo.mark_dynamic(x, 0)
y = compiled(x)""",
        "warning",
        "annotation",
    ),
    Entry(
        "BS202",
        "stride changed",
        "The tensor has the same shape but lies differently in memory: a transposed view, a slice, "
        "channels-last.",
        "Give the compiled function tensors of one layout, for example with contiguous().",
        """\
# before
y = compiled(x.transpose(1, 2))
# after
y = compiled(x.transpose(1, 2).contiguous())""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS203",
        "dtype changed",
        "Code is compiled for one dtype of each input; another dtype needs another compilation.",
        "Convert the input to one dtype before the compiled function.",
        """\
# before
y = compiled(x)
# after
y = compiled(x.to(torch.float32))""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS204",
        "device changed",
        "Code is compiled for the device of each input; a tensor on another device needs another "
        "compilation.",
        "Move inputs and module to one device before the first call.",
        """\
# before the first call
net.to(device)
y = compiled_net(x.to(device))""",
        "warning",
        "hoist",
    ),
    Entry(
        "BS205",
        "requires_grad changed",
        "With and without gradients are two graphs. Parameters frozen between calls, or an input with "
        "requires_grad once and without it later, cause a second compilation: that one is expected.",
        "Keep requires_grad of inputs and parameters the same on every call.",
        """\
# before: x sometimes requires gradients
y = compiled(x)
# after, where its gradient is not needed
y = compiled(x.detach())""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS206",
        "number of dimensions changed",
        "Code is compiled for the number of dimensions of each input; it is never made dynamic.",
        "Give the compiled function inputs of one rank: add the missing dimension in the caller.",
        """\
# before
y = compiled(sample)
# after
y = compiled(sample.unsqueeze(0)).squeeze(0)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS207",
        "Python int or float changed",
        "The number was compiled in as a constant. Some numbers become dynamic after the second value, "
        "others are compiled again for each value.",
        "Pass the number as a 0-d tensor, or keep it the same on every call.",
        """\
# before
y = compiled(x, step / total)
# after
y = compiled(x, torch.tensor(step / total))""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS208",
        "other Python constant changed",
        "A bool, a string or None decides which way the code goes, so each value has a compilation of its"
        " own. That is right for a few values and costly for many.",
        "Keep the number of different values small, or decide outside the compiled function.",
        """\
# before: a new string at every call
y = compiled(x, name=f"step {step}")
# after
y = compiled(x, name="step")""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS209",
        "attribute or counter of a module changed",
        "The value of a module's plain attribute was compiled in. A counter that grows with every call "
        "makes a guard fail on every call.",
        "Keep the counter in a buffer, or count in the caller.",
        """\
# before, in __init__
self.steps = 0
# after: forward does self.steps += 1 on a tensor
self.register_buffer("steps", torch.zeros((), dtype=torch.long))""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS210",
        "other object or type",
        "The compiled code belongs to one object or type (a function, a module, a config), and another "
        "one was passed.",
        "Create the object once and pass the same one on every call.",
        """\
# before: a new function object at every call
y = compiled(x, lambda z: z * 2)
# after
y = compiled(x, double)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS211",
        "keys or length of a container changed",
        "Lists, tuples and dicts are compiled element by element, so another length or other keys need "
        "another compilation.",
        "Pass containers of one length and one set of keys, or one stacked tensor.",
        """\
# before: the list grows
y = compiled(history)
# after
y = compiled(torch.stack(history[-8:]))""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS212",
        "grad mode, autocast or other global state changed",
        "Grad mode, autocast, the default dtype, deterministic mode and the like are part of what code "
        "was compiled for. One graph each for training and evaluation is expected, however often the mode "
        "changes.",
        "Call the compiled function under the same settings each time, but for evaluation.",
        """\
# training and evaluation are two compilations, and that is all
with torch.no_grad():
    y = compiled(x)""",
        "info",
        "rewrite",
    ),
    Entry(
        "BS213",
        "value read from a tensor entered a resumed function",
        "A number that was read out of a tensor at a graph break is an argument of the function that "
        "resumes after it, and was compiled in. Another value compiles it again.",
        "Repair the break that reads the number: keep it a tensor.",
        """\
# before
n = x.max().item(); y = x / n
# after
n = x.max(); y = x / n""",
        "warning",
        "consequence",
    ),
    Entry(
        "BS214",
        "assumption on a symbolic size failed",
        "The size was dynamic, but the code was compiled under an assumption on it: not 0 or 1, "
        "divisible, below a limit. A call did not keep to it.",
        "Avoid calls with size 0 or 1, and branches on sizes, or state the range with mark_dynamic.",
        """\
# before the first call
torch._dynamo.mark_dynamic(x, 0, min=2, max=512)
y = compiled(x)""",
        "warning",
        "annotation",
    ),
    Entry(
        "BS215",
        "aliasing of tensors changed",
        "Two inputs were the same tensor when the code was compiled and are not now, or the other way round.",
        "Pass different tensors on every call, or the same one on every call.",
        """\
# before: sometimes the same tensor twice
y = compiled(q, q)
# after
y = compiled(q, q.clone())""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS216",
        "dispatch keys changed",
        "A tensor came in another mode than before: made under inference_mode, wrapped by a subclass, or "
        "inside vmap or grad.",
        "Use no_grad instead of inference_mode, and call the compiled function in one mode.",
        """\
# before
with torch.inference_mode(): y = compiled(x)
# after
with torch.no_grad(): y = compiled(x)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS299",
        "other guard",
        "A guard failed that breakscope has no text for; the report shows it as torch wrote it.",
        "Keep what the guard names the same on every call.",
        """\
# every failing guard, as torch writes it
torch._logging.set_logs(recompiles=True)""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS301",
        "frame skipped: break in a loop, try or with",
        "Dynamo cannot resume in the middle of a loop, a try block or a with block. So it gives up on the"
        " function, and what it could have compiled there runs eagerly.",
        "Repair the break inside, or leave the loop outside and compile its body as a function.",
        """\
# before: the loop and its break are compiled together
run = torch.compile(run_all)
# after: the loop stays in Python
step = torch.compile(one_step)
for batch in batches: step(batch)""",
        "error",
        "consequence",
    ),
    Entry(
        "BS302",
        "frame skipped",
        "Dynamo gave up on the function for a reason other than a loop, try or with; the whole function runs "
        "eagerly.",
        "Repair the cause that the report names, or compile the functions that it calls instead.",
        """\
# before: compiled from a function that is skipped
main = torch.compile(main)
# after
net = torch.compile(net)""",
        "error",
        "consequence",
    ),
    Entry(
        "BS303",
        "recompile limit reached",
        "The function was compiled as often as torch allows. Calls that fit none of the compiled versions"
        " now run eagerly.",
        "Repair the recompiles that the report names; a higher limit only moves the end.",
        """\
# only where many versions are really wanted
torch._dynamo.config.recompile_limit = 16""",
        "error",
        "consequence",
    ),
    Entry(
        "BS304",
        "nothing was compiled",
        "In the whole run no graph was compiled, so a report without findings says nothing about the "
        "program.",
        "Name what to compile with --compile, and let the run reach it.",
        """\
# the compiled function must be the one that is called
net = torch.compile(net)
y = net(x)""",
        "error",
        "config",
    ),
    Entry(
        "BS305",
        "fullgraph=True failed",
        "fullgraph=True, as error_on_graph_break(True), makes the first graph break an error, so nothing "
        "behind it was looked at.",
        "Repair the break, or scan without --keep-fullgraph to see every break.",
        """\
# before
net = torch.compile(net, fullgraph=True)
# after: breaks are allowed, and reported
net = torch.compile(net)""",
        "error",
        "consequence",
    ),
    Entry(
        "BS306",
        "backend or Dynamo failed while compiling",
        "The graph was traced, but the backend raised an error, or Dynamo itself failed. The function "
        "runs eagerly or the script stops.",
        "Scan with --backend eager to see whether the backend is at fault, and report it there.",
        """\
# tells the two apart: no backend, only Dynamo
net = torch.compile(net, backend="eager")""",
        "error",
        "upstream",
    ),
    Entry(
        "BS307",
        "region without CUDA graphs",
        "The mode asks for CUDA graphs, but a graph replays fixed memory: inputs that are written to, "
        "tensors on the CPU and changing shapes rule it out. Each kernel is launched on its own.",
        "Repair what the reason names: return a new value instead of writing to an input, keep tensors on"
        " one device.",
        """\
# before: an input is written to
cache.add_(x)
# after
cache = cache + x""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS308",
        "op without a kernel of Inductor's",
        "Inductor has no kernel of its own for this op and calls torch's: nothing is fused over it, and its "
        "inputs and outputs pass through memory.",
        "Look whether a cheaper formulation exists; otherwise it costs what it costs in eager mode.",
        """\
# before: the whole decomposition, for its largest value
top = torch.linalg.eigvalsh(x).amax()
# after: a bound that is made of ordinary ops, where a bound will do
top = x.abs().sum(-1).amax()""",
        "info",
        "upstream",
    ),
    Entry(
        "BS309",
        "size marked as dynamic that the code fixes",
        "mark_dynamic asks for one graph for all sizes of a dimension, or all within min and max. But the"
        " code fixes that size, or takes fewer sizes, or the argument is outside; torch raises"
        " ConstraintViolationError.",
        "Take the mark off that dimension or use maybe_mark_dynamic; leave out min and max where given.",
        """\
# before: the weight of the layer fixes the size of dimension 1
torch._dynamo.mark_dynamic(x, 1)
y = torch.compile(layer)(x)
# after
torch._dynamo.maybe_mark_dynamic(x, 1)
y = torch.compile(layer)(x)""",
        "error",
        "config",
    ),
    Entry(
        "BS310",
        "gradient of a gradient through compiled code",
        "AOTAutograd, which inductor and aot_eager are built on, compiles a backward that has no backward of"
        " its own. A gradient that is taken with create_graph=True through compiled code, as for a penalty on"
        " it, raises where it is differentiated again.",
        "Take the inner gradient in the compiled function, with torch.func.grad, or leave that call eager.",
        """\
# before: a penalty on the gradient of what a compiled model computes
y = model(x)
slope = torch.autograd.grad(y.sum(), x, create_graph=True)[0]
# after: the compiled function returns both
slope, y = torch.func.grad(lambda v: with_sum(net(v)), has_aux=True)(x)""",
        "error",
        "rewrite",
    ),
    Entry(
        "BS401",
        "loop unrolled into the graph",
        "Dynamo runs a Python loop while it traces, so that the ops of every round come into the graph. "
        "Tracing and the backend take longer with each round, and another number of rounds is a new compile.",
        "Compile the loop's body and leave the loop to Python, or write it as scan or while_loop.",
        """\
# before: x.shape[0] copies of the cell in one graph
@torch.compile
def run(x, h): return [h := cell(step, h) for step in x]
# after: one small graph, called in a loop (or torch._higher_order_ops.scan over x)
cell = torch.compile(cell)
def run(x, h): return [h := cell(step, h) for step in x]""",
        "warning",
        "rewrite",
    ),
    Entry(
        "BS402",
        "compile time out of proportion to the run",
        "Compiling took most of the run, and the steps that the run makes are too few to win that back.",
        "Compile one repeated block instead of the whole, keep the compile cache, or leave short runs eager.",
        """\
# before
model = torch.compile(model)
# after: the layers are alike, so that one compile serves all of them
for layer in model.layers:
    layer.compile()""",
        "warning",
        "config",
    ),
    Entry(
        "BS403",
        "one function compiled for most of the time",
        "Most of the run went into compiling this one function: its graph is large, or it is compiled often.",
        "Compile the blocks that repeat in it each on its own; if none do, only what takes its steps' time.",
        """\
# before
model = torch.compile(model)
# after
for layer in model.layers:
    layer.compile()""",
        "warning",
        "config",
    ),
    Entry(
        "BS404",
        "compile that did not finish",
        "The run ended while this function was being compiled. What it does compiled is not known.",
        "Give the run more time, or compile smaller parts of the function each on its own.",
        """\
# before
model = torch.compile(model)
# after
for layer in model.layers:
    layer.compile()""",
        "error",
        "config",
    ),
)
