"""What lint knows by name: torch's and numpy's functions and methods, and what they give.

Facts about torch 2.13, found by compiling one function for each (``tests/test_lint_truth.py`` does so again).
Words in a string are names; sets are made when this module is imported, once a process.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---- attributes and methods of tensors ----

VALUE_ATTRIBUTES = _names(
    "dtype device ndim is_cuda is_cpu is_mps is_sparse is_quantized is_leaf is_meta is_nested layout "
    "requires_grad itemsize nbytes names element_size output_nr grad_fn"
)
TENSOR_ATTRIBUTES = _names("T mT H mH data real imag")
VALUE_METHODS = _names(
    "dim ndimension numel nelement element_size storage_offset is_contiguous is_floating_point is_complex "
    "get_device is_signed is_pinned is_inference is_shared has_names"
)
# Only tensors have these, so the receiver is one.
TENSOR_ONLY = _names(
    "view view_as reshape_as expand expand_as unsqueeze unsqueeze_ squeeze_ permute contiguous detach "
    "detach_ masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select scatter scatter_ "
    "scatter_add scatter_add_ gather index_select index_add index_add_ index_copy index_copy_ index_fill "
    "index_put_ narrow flatten unflatten softmax log_softmax sigmoid sigmoid_ tanh tanh_ relu relu_ "
    "matmul bmm mm addmm baddbmm type_as new_zeros new_ones new_full new_empty new_tensor clamp clamp_ "
    "clamp_min clamp_max add_ sub_ mul_ div_ zero_ fill_ copy_ normal_ uniform_ logsumexp cumsum_ triu "
    "tril triu_ tril_ isnan isinf isfinite logical_not logical_and logical_or logical_xor eq ne lt le gt "
    "ge rsqrt rsqrt_ sqrt sqrt_ exp exp_ log log_ log2 log1p expm1 pow pow_ abs_ neg sin cos erf floor_ "
    "ceil_ round_ roll repeat_interleave unfold topk argmax_ cross bernoulli bernoulli_ multinomial lerp "
    "lerp_ addcmul addcdiv nan_to_num retain_grad backward requires_grad_ movedim swapdims amax amin "
    "unbind chunk tensor_split numel long int half bfloat16 double is_floating_point is_contiguous "
    "storage_offset element_size new_empty_strided cuda log_softmax_ index_add_ bitwise_and bitwise_or "
    "bitwise_xor bitwise_not nonzero unique_consecutive allclose data_ptr to_sparse to_dense resize_ "
    "resize_as_ untyped_storage norm renorm diagonal diag diag_embed fmod remainder reciprocal square "
    "trunc frac sign outer inner logcumsumexp"
)
# Tensors and arrays have these, and hardly anything else whose value could be used in a condition.
TENSOR_MOSTLY = _names(
    "sum mean std var max min abs argmax argmin argsort any all prod median cumsum cumprod transpose "
    "reshape squeeze clone cpu float bool item tolist numpy round floor ceil dot flip repeat sort clip"
)
MASK_METHODS = _names(
    "isnan isinf isfinite isposinf isneginf any all eq ne lt le gt ge logical_not logical_and logical_or "
    "logical_xor bool isclose signbit isin greater greater_equal less less_equal not_equal"
)
SEQUENCE_METHODS = _names("chunk split unbind tensor_split hsplit vsplit split_with_sizes dsplit")
# With an argument these give (values, indices), without one a tensor.
PAIR_METHODS = _names("max min sort topk median mode kthvalue cummax cummin nanmedian frexp aminmax")
ALWAYS_PAIR = _names("sort topk kthvalue cummax cummin frexp aminmax")
SAME_KIND_METHODS = _names("to float half cuda cpu clone copy contiguous detach")

TENSOR_METHODS = TENSOR_ONLY | TENSOR_MOSTLY | SEQUENCE_METHODS | PAIR_METHODS | SAME_KIND_METHODS

# ---- functions of torch ----

TORCH_VALUES = _names(
    "is_tensor is_floating_point is_complex is_grad_enabled is_inference_mode_enabled get_default_dtype "
    "numel finfo iinfo device Size dtype is_storage is_autocast_enabled get_autocast_dtype "
    "get_autocast_gpu_dtype get_autocast_cpu_dtype get_num_threads promote_types result_type can_cast "
    "broadcast_shapes sym_int sym_max sym_min sym_float typename memory_format Generator no_grad "
    "enable_grad inference_mode set_grad_enabled autocast set_default_dtype is_deterministic "
    "are_deterministic_algorithms_enabled"
)
TORCH_SEQUENCES = _names(
    "chunk split unbind tensor_split hsplit vsplit broadcast_tensors meshgrid topk sort kthvalue cummax "
    "cummin svd qr std_mean var_mean aminmax frexp split_with_sizes atleast_1d slogdet eigh eig lstsq "
    "inv_ex"
)
TORCH_MASKS = _names(
    "isnan isinf isfinite isposinf isneginf any all eq ne lt le gt ge logical_not logical_and logical_or "
    "logical_xor isclose signbit isin greater greater_equal less less_equal not_equal"
)
# Of Python numbers Dynamo makes a number of these while it traces.
TORCH_ARITHMETIC = _names("add sub mul div floor_divide true_divide remainder fmod pow")
# torch.NAME with a submodule below it that gives tensors; other submodules are not judged.
TENSOR_MODULES = ("torch.nn.functional.", "torch.fft.", "torch.special.", "torch.linalg.")
# Functions that want Python numbers as sizes or bounds: a tensor there is read out.
SIZED = _names("arange zeros ones empty rand randn randint eye full tril_indices triu_indices")
SIZED_METHODS = _names("view reshape expand repeat new_zeros new_ones new_empty new_full topk narrow unfold")
SIZED_FUNCTIONAL = frozenset({"torch.nn.functional.pad", "torch.nn.functional.interpolate"})

_NN_TENSOR = (
    "Linear Bilinear LazyLinear Identity Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
    "ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm GroupNorm LayerNorm RMSNorm "
    "InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm Dropout Dropout1d Dropout2d Dropout3d "
    "AlphaDropout Embedding EmbeddingBag ReLU ReLU6 GELU SiLU Mish ELU SELU CELU LeakyReLU PReLU RReLU "
    "Sigmoid Tanh Softmax LogSoftmax Softplus Softsign Hardtanh Hardswish Hardsigmoid Threshold GLU "
    "LogSigmoid Tanhshrink Softshrink MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d "
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
    "AdaptiveMaxPool3d Flatten Unflatten Upsample PixelShuffle PixelUnshuffle ZeroPad2d ConstantPad1d "
    "ConstantPad2d ReflectionPad1d ReflectionPad2d ReplicationPad2d CrossEntropyLoss MSELoss L1Loss "
    "SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss NLLLoss KLDivLoss CTCLoss CosineSimilarity "
    "CosineEmbeddingLoss TripletMarginLoss MarginRankingLoss TransformerEncoder TransformerDecoder "
    "TransformerEncoderLayer TransformerDecoderLayer Transformer Sequential Fold Unfold"
)
NN_TENSOR = frozenset(f"torch.nn.{name}" for name in _NN_TENSOR.split())
# Making one of these makes parameters.
NN_WITH_PARAMETERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        *("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "PReLU"),
        *("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "RMSNorm", "Embedding"),
        *("MultiheadAttention", "RNN", "LSTM", "GRU"),
    )
)
NN_RECURRENT = frozenset(f"torch.nn.{name}" for name in ("RNN", "LSTM", "GRU"))
LOCKS = frozenset(
    f"threading.{name}" for name in ("Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition")
)

# ---- calls that break whatever they are given: canonical name -> code ----

_BREAKING = {
    "BS102": "torch._assert torch.is_nonzero",
    "BS103": "torch.equal torch.allclose",
    "BS104": (
        "print pprint.pprint rich.print warnings.warn sys.stdout.write sys.stderr.write sys.stdout.flush "
        "sys.stderr.flush logging.getLogger tqdm.tqdm.write"
    ),
    "BS105": (
        "torch.nonzero torch.argwhere torch.unique torch.unique_consecutive torch.masked_select "
        "torch.bincount torch.flatnonzero"
    ),
    "BS107": (
        "os.path.exists os.path.isfile os.path.isdir os.listdir os.makedirs os.remove os.system os.mkdir "
        "subprocess.run subprocess.call subprocess.Popen subprocess.check_output json.dumps json.dump "
        "json.loads json.load torch.save torch.load gc.collect torch.set_num_threads shutil.copy "
        "shutil.rmtree torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pack_sequence"
    ),
    "BS109": "torch._dynamo.graph_break",
    "BS111": "open input torch.get_num_threads",
    "BS118": "pickle.dumps pickle.loads pickle.dump pickle.load weakref.ref",
    "BS126": (
        "time.time time.perf_counter time.monotonic time.process_time time.time_ns time.perf_counter_ns "
        "time.monotonic_ns time.sleep datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today "
        "datetime.date.today"
    ),
    "BS127": (
        "random.random random.choice random.choices random.shuffle random.sample random.seed random.gauss "
        "random.getrandbits random.normalvariate torch.manual_seed torch.seed torch.initial_seed "
        "torch.get_rng_state torch.set_rng_state torch.cuda.manual_seed torch.cuda.manual_seed_all "
        "torch.cuda.get_rng_state torch.cuda.set_rng_state torch.random.fork_rng"
    ),
}
BREAKING = {name: code for code, names in _BREAKING.items() for name in names.split()}
# What a breaking call gives, where it is no plain value.
TENSOR_RESULTS = frozenset(name for name, code in BREAKING.items() if code == "BS105")

# A context manager that Dynamo cannot enter.
BREAKING_CONTEXTS = frozenset({"torch.autograd.set_detect_anomaly", "torch.autograd.detect_anomaly", "open"})

# Methods that break on any tensor: name -> code.
BREAKING_METHODS = {
    "item": "BS102",
    "tolist": "BS102",
    "nonzero": "BS105",
    "argwhere": "BS105",
    "unique": "BS105",
    "unique_consecutive": "BS105",
    "masked_select": "BS105",
    "bincount": "BS105",
    "equal": "BS103",
    "allclose": "BS103",
    "is_nonzero": "BS102",
    "backward": "BS121",
    "retain_grad": "BS121",
    "requires_grad_": "BS115",
    "resize_": "BS115",
    "resize_as_": "BS115",
    "to_sparse": "BS117",
    "data_ptr": "BS129",
    "untyped_storage": "BS111",
    "storage": "BS111",
}
# A scan calls these meant to be so (diagnose/intended): they break, and nothing is to be done about it.
MEANT_METHODS = frozenset({"backward"})
# Of these, other objects have methods of the same name: without evidence of a tensor they say little.
AMBIGUOUS_METHODS = _names("unique equal storage bincount masked_select")

LOG_METHODS = _names(
    "debug info warning warn error exception critical fatal log warning_once warning_rank0 info_once "
    "debug_once isEnabledFor setLevel success trace"
)
LOGGER_NAMES = _names("logger log _logger LOGGER LOG _log LOGGER_ rank_zero_logger")
LOGGER_MAKERS = frozenset({"getLogger", "get_logger", "getChild"})

# ---- decorators and conditions ----

COMPILERS = frozenset({"torch.compile", "torch._dynamo.optimize", "torch._dynamo.optimize_assert"})
DISABLERS = frozenset(
    {
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch._dynamo.disallow_in_graph",
        "torch.compiler.disallow_in_graph",
        "torch._disable_dynamo",
    }
)
# Dynamo does not look into what these decorate, and does not break there either.
OPAQUE = frozenset(
    {
        "torch.jit.script",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.allow_in_graph",
        "torch.compiler.assume_constant_result",
        "torch._dynamo.assume_constant_result",
        "torch._dynamo.nonstrict_trace",
        "torch.compiler.nonstrict_trace",
        "torch.library.custom_op",
        "torch.library.register_fake",
        "triton.jit",
        "numba.njit",
        "numba.jit",
    }
)
COMPILING = frozenset({"is_compiling", "is_dynamo_compiling", "is_torchdynamo_compiling"})
NOT_COMPILING = _names(
    "is_scripting is_tracing is_in_onnx_export is_jit_tracing is_torch_fx_proxy _get_tracing_state "
    "is_exporting TYPE_CHECKING"
)

# ---- numpy ----

# Functions of numpy 1.26 and 2.x of which Dynamo has no counterpart: not in torch._numpy of torch 2.13.
_NUMPY_MISSING = (
    "acos acosh apply_along_axis apply_over_axes argpartition array2string array_repr array_str "
    "asanyarray asarray_chkfinite asfortranarray asin asinh asmatrix astype atan atan2 atanh base_repr "
    "binary_repr bitwise_count bitwise_invert bitwise_left_shift bitwise_right_shift block bmat compress "
    "concat cumulative_prod cumulative_sum delete digitize ediff1d einsum_path extract "
    "format_float_positional format_float_scientific frexp frombuffer fromfile fromfunction fromiter "
    "frompyfunc fromstring genfromtxt histogram_bin_edges insert interp intersect1d isin isnat ix_ "
    "lexsort load loadtxt mask_indices matrix_transpose matvec nanargmax nanargmin nancumprod nancumsum "
    "nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar packbits "
    "partition permute_dims piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub "
    "polyval putmask ravel_multi_index roots save savetxt savez savez_compressed select seterr setdiff1d "
    "setxor1d sort_complex spacing trapezoid trapz trim_zeros union1d unpackbits unravel_index unwrap "
    "vecdot vecmat in1d"
)
NUMPY_MISSING = frozenset(f"numpy.{name}" for name in _NUMPY_MISSING.split())
NUMPY_RANDOM = _names("choice normal rand randint randn random random_sample sample uniform")
NUMPY_RANDOM_CLEAN = frozenset({"seed", "shuffle"})
# Of a number these give a number; others give an array of no dimensions, which must be read out.
NUMPY_SCALAR = _names(
    "sqrt log log2 log10 exp floor ceil abs power sin cos tan arctan2 arctan sign round float32 float64 "
    "int32 int64 finfo iinfo dtype issubdtype isscalar"
)
