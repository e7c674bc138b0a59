"""The Python array API standard 2024.12 on any device that has a PJRT plugin.

Every function takes arrays (also NumPy's and Python scalars) and works eagerly, as one launch, and
while a function is traced, as a part of its program. Names, arguments and meaning are the
standard's; NumPy's and JAX's where it leaves a choice. `linalg` and `fft` are its extensions.
Beyond it there are `swapaxes`, `ravel`, dtypes of fewer bits, `einsum` and what else is most missed
of NumPy (`numpy_functions`). Importing this needs jaxlib's MLIR bindings (``pip install
"plugrt[trace]"``).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from plugrt.array_api import operators
from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.creation import (
    empty,
    empty_like,
    full,
    full_like,
    meshgrid,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from plugrt.array_api.data_types import astype, can_cast, finfo, iinfo, isdtype, result_type
from plugrt.array_api.diagonals import eye, tril, triu
from plugrt.array_api.dlpack import from_dlpack
from plugrt.array_api.dtypes import (
    bfloat16,
    bool,
    complex64,
    complex128,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from plugrt.array_api.einstein_summation import einsum
from plugrt.array_api.elementwise.arithmetic import (
    abs,
    add,
    divide,
    floor_divide,
    multiply,
    negative,
    positive,
    reciprocal,
    remainder,
    sign,
    square,
    subtract,
)
from plugrt.array_api.elementwise.bitwise import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)
from plugrt.array_api.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from plugrt.array_api.elementwise.complex import conj, imag, real
from plugrt.array_api.elementwise.exponential import (
    exp,
    expm1,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    sqrt,
)
from plugrt.array_api.elementwise.float_properties import (
    clip,
    copysign,
    isfinite,
    isinf,
    isnan,
    maximum,
    minimum,
    nextafter,
    signbit,
)
from plugrt.array_api.elementwise.power import pow
from plugrt.array_api.elementwise.rounding import ceil, floor, round, trunc
from plugrt.array_api.elementwise.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from plugrt.array_api.evenly_spaced import arange, linspace
from plugrt.array_api.indexing.functions import take, take_along_axis
from plugrt.array_api.info import __array_namespace_info__
from plugrt.array_api.manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    ravel,
    reshape,
    squeeze,
    stack,
    swapaxes,
    unstack,
)
from plugrt.array_api.math_constants import e, inf, nan, newaxis, pi
from plugrt.array_api.matrix_products import matmul, matrix_transpose, tensordot, vecdot
from plugrt.array_api.numpy_functions import (
    allclose,
    array,
    column_stack,
    concatenate,
    diag,
    dot,
    dstack,
    hstack,
    isclose,
    median,
    outer,
    pad,
    split,
    transpose,
    vstack,
)
from plugrt.array_api.repetition import repeat, roll, tile
from plugrt.array_api.searching import (
    argmax,
    argmin,
    count_nonzero,
    nonzero,
    searchsorted,
    where,
)
from plugrt.array_api.sets import unique_all, unique_counts, unique_inverse, unique_values
from plugrt.array_api.sorting import argsort, sort
from plugrt.array_api.statistics import (
    cumulative_prod,
    cumulative_sum,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from plugrt.array_api.utility import all, any, diff

__array_api_version__ = "2024.12"
_EXTENSIONS = {"fft": "plugrt.array_api.fft", "linalg": "plugrt.array_api.linalg"}
"""The standard's extensions, imported when first used."""

operators.install_operators(sys.modules[__name__], __array_api_version__)

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "array",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "column_stack",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diag",
    "diff",
    "divide",
    "dot",
    "dstack",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hstack",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "isclose",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "operators",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "ravel",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]  # fmt: skip


if not TYPE_CHECKING:  # to a type checker, a name that is not there is an error

    def __getattr__(name: str) -> ModuleType:
        if name in _EXTENSIONS:
            return import_module(_EXTENSIONS[name])
        from plugrt.array_api.missing_names import missing_name

        raise AttributeError(missing_name(name), name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    # Without the modules that the names come from.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
