"""What is known of torch's operations: enough to tell whether one may run although its branch is not taken.

Every operation here is pure, draws no random number and raises for no values of its inputs (shapes and
dtypes that do not fit raise alike in old and new code). What is not in the table is unknown, not bad; what
changes the order of strides is left out, because ``torch.where`` gives another memory layout then.

``slope`` says what a zero gradient becomes on its way back through the operation, which is what
``torch.where`` sends into the branch that was not taken:
  STEADY  zero, whatever the inputs are
  FINITE  zero for finite inputs; NaN where an input is inf or NaN
  DOMAIN  NaN also for some finite inputs: the derivative is infinite there (``log``, ``sqrt``, ``/``)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STEADY, FINITE, DOMAIN = 0, 1, 2

ShapeRule = Literal["broadcast", "first", "reduce", "unknown"]
DtypeRule = Literal["promote", "first", "bool", "float", "int64", "sum"]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation, as ``torch.NAME``, ``torch.nn.functional.NAME`` and ``Tensor.NAME``.

    Attributes:
        shape: "broadcast" of all tensors, that of the "first", a reduction (0-dim without ``dim``).
        dtype: "promote" of all operands, that of the "first", "float": like first if floating,
            "sum": as sums do (integers become int64).
        constants: gradients never flow through it.
        view: the result may share memory with the first argument.
    """

    shape: ShapeRule
    dtype: DtypeRule
    slope: int = STEADY
    constants: bool = False
    view: bool = False


def _table() -> dict[str, Op]:
    rows: list[tuple[str, Op]] = [
        ("add sub subtract maximum minimum fmax fmin", Op("broadcast", "promote")),
        ("clamp clip clamp_min clamp_max", Op("broadcast", "promote")),
        (
            "neg negative relu relu6 hardtanh leaky_relu threshold abs absolute nan_to_num",
            Op("first", "first"),
        ),
        ("clone", Op("first", "first")),
        ("positive", Op("first", "first", view=True)),
        ("detach", Op("first", "first", constants=True, view=True)),
        ("floor ceil round trunc sign sgn", Op("first", "first", constants=True)),
        ("zeros_like ones_like full_like", Op("first", "first", constants=True)),
        ("where masked_fill", Op("broadcast", "promote")),
        ("mul multiply", Op("broadcast", "promote", FINITE)),
        ("tanhshrink softmax log_softmax", Op("first", "float", FINITE)),
        ("tanh sigmoid sin cos erf", Op("first", "float", FINITE)),
        (
            "gelu silu elu selu celu mish softplus softsign hardswish hardsigmoid logsigmoid square",
            Op("first", "float", FINITE),
        ),
        (
            "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tan asin acos atan sinh cosh asinh acosh atanh",
            Op("first", "float", DOMAIN),
        ),
        ("reciprocal erfinv lgamma digamma logit", Op("first", "float", DOMAIN)),
        ("div divide true_divide atan2 hypot", Op("broadcast", "float", DOMAIN)),
        ("pow", Op("broadcast", "promote", DOMAIN)),
        ("isnan isinf isfinite isposinf isneginf logical_not signbit", Op("first", "bool", constants=True)),
        (
            "eq ne lt le gt ge less less_equal greater greater_equal not_equal logical_and logical_or",
            Op("broadcast", "bool", constants=True),
        ),
        ("logical_xor isclose", Op("broadcast", "bool", constants=True)),
        ("bitwise_and bitwise_or bitwise_xor", Op("broadcast", "promote", constants=True)),
        ("any all", Op("reduce", "bool", constants=True)),
        ("sum nansum", Op("reduce", "sum")),
        ("mean", Op("reduce", "first")),
        ("prod", Op("reduce", "sum", DOMAIN)),
        ("max min amax amin median", Op("reduce", "first", FINITE)),
        ("std var norm logsumexp", Op("reduce", "float", DOMAIN)),
        ("argmax argmin count_nonzero", Op("reduce", "int64", constants=True)),
        ("matmul mm bmm linear", Op("unknown", "promote", FINITE)),
        ("flip roll tril triu", Op("first", "first")),
        (
            "reshape view flatten unsqueeze squeeze view_as reshape_as",
            Op("unknown", "first", view=True),
        ),
    ]
    return {name: op for names, op in rows for name in names.split()}


OPS = _table()

# What torch.autocast of some device runs in another dtype, or is made of such operations (torch's
# ATen/autocast_mode.h). Integers and truth values it leaves alone.
_AUTOCAST = (
    "matmul mm bmm linear acos asin sinh cosh tan erfinv exp expm1 log log2 log10 log1p reciprocal rsqrt pow "
    "square softplus softmax log_softmax logsumexp norm sum nansum prod std var atan2"
)
AUTOCAST = frozenset(_AUTOCAST.split())

CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
}

# Named apart because "draws random numbers" is a better reason than "not known".
RANDOM = frozenset(
    [
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_dropout",
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "bernoulli",
        "multinomial",
        "normal",
        "poisson",
        "rrelu",
        "gumbel_softmax",
        "normal_",
        "uniform_",
        "bernoulli_",
        "exponential_",
        "random_",
    ]
)

FLOATING = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGRAL = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})


def category(dtype: str) -> int:
    """Bool < integers < floating point < complex, as type promotion sorts them."""
    if dtype == "bool":
        return 0
    if dtype in INTEGRAL:
        return 1
    return 2 if dtype in FLOATING or dtype.startswith("float8") else 3


def is_in_place(method: str) -> bool:
    """Whether a tensor's method writes into the tensor, going by its name: ``add_``."""
    return method.endswith("_") and not method.endswith("__")
