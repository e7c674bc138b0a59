"""``jax.lax``'s operations: control flow, collectives and the StableHLO operations.

Names, argument order, defaults and meaning are ``jax.lax``'s. The operations are strict, as there:
arrays that meet must have one dtype and one shape; Python scalars take the dtype of the arrays.
What ``out_sharding`` and ``sharding`` ask for there is not offered.
"""

import sys
from typing import TYPE_CHECKING

from plugrt.lax.binary import (
    add,
    atan2,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    complex,
    div,
    eq,
    ge,
    gt,
    le,
    lt,
    max,
    min,
    mul,
    mulhi,
    ne,
    nextafter,
    polygamma,
    pow,
    rem,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    sub,
    zeta,
)
from plugrt.lax.composites import composite
from plugrt.lax.contraction import batch_matmul, dot, dot_general
from plugrt.lax.control_flow.associative import associative_scan
from plugrt.lax.control_flow.conditionals import cond, switch
from plugrt.lax.control_flow.implicit_solves import custom_linear_solve, custom_root
from plugrt.lax.control_flow.loops import fori_loop, while_loop
from plugrt.lax.control_flow.platforms import platform_dependent
from plugrt.lax.control_flow.scans import map, scan
from plugrt.lax.conversion import bitcast_convert_type, convert_element_type, reduce_precision
from plugrt.lax.convolution import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    conv_general_dilated,
)
from plugrt.lax.convolution_forms import conv, conv_transpose, conv_with_general_padding
from plugrt.lax.convolution_patches import conv_general_dilated_local, conv_general_dilated_patches
from plugrt.lax.custom_calls import (
    RandomAlgorithm,
    custom_call,
    optimization_barrier,
    rng_bit_generator,
)
from plugrt.lax.filled_arrays import broadcasted_iota, empty, full, full_like, iota
from plugrt.lax.fourier import FftType, fft
from plugrt.lax.gathering import GatherDimensionNumbers, GatherScatterMode, gather, index_take
from plugrt.lax.identities import dce_sink, pcast, stage, stop_gradient
from plugrt.lax.parallel.all_reduce import axis_index, axis_size, pmax, pmean, pmin, psum
from plugrt.lax.parallel.exchanges import (
    all_gather,
    all_to_all,
    ppermute,
    pshuffle,
    psum_scatter,
    pswapaxes,
)
from plugrt.lax.parallel.routed import pbroadcast, ragged_all_to_all
from plugrt.lax.parallel.sends import precv, psend
from plugrt.lax.precision import DotAlgorithm, DotAlgorithmPreset, Precision
from plugrt.lax.ragged_contraction import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from plugrt.lax.reductions import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from plugrt.lax.result_shapes import (
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
    padtype_to_pads,
    reduce_window_shape_tuple,
    shape_as_value,
)
from plugrt.lax.scaled_contraction import scaled_dot
from plugrt.lax.scattering import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from plugrt.lax.selection import clamp, select, select_n
from plugrt.lax.shapes import (
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    collapse,
    concatenate,
    expand_dims,
    pad,
    reshape,
    rev,
    split,
    squeeze,
    transpose,
)
from plugrt.lax.sharding_constraint import with_sharding_constraint
from plugrt.lax.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
    slice,
    slice_in_dim,
)
from plugrt.lax.sorting import approx_max_k, approx_min_k, sort, sort_key_val, top_k
from plugrt.lax.special_functions.bessel import bessel_i0e
from plugrt.lax.special_functions.incomplete_beta import betainc
from plugrt.lax.special_functions.incomplete_gamma import igamma, igammac
from plugrt.lax.special_functions.incomplete_gamma_derivative import (
    igamma_grad_a,
    random_gamma_grad,
)
from plugrt.lax.stacking import broadcast_shapes, broadcast_to_rank, stack, tile, unstack
from plugrt.lax.tokens import after_all, create_token
from plugrt.lax.unary import (
    AccuracyMode,
    RoundingMethod,
    Tolerance,
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bessel_i1e,
    bitwise_not,
    cbrt,
    ceil,
    clz,
    conj,
    cos,
    cosh,
    digamma,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    imag,
    integer_pow,
    is_finite,
    lgamma,
    log,
    log1p,
    logistic,
    neg,
    population_count,
    real,
    reciprocal,
    round,
    rsqrt,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)
from plugrt.lax.uniform_numbers import rng_uniform
from plugrt.lax.windowed_reductions import reduce_window

__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset", "FftType",
    "GatherDimensionNumbers", "GatherScatterMode", "Precision", "RaggedDotDimensionNumbers",
    "RandomAlgorithm", "RoundingMethod", "ScatterDimensionNumbers", "Tolerance", "abs", "acos",
    "acosh", "add", "after_all", "all_gather", "all_to_all", "approx_max_k", "approx_min_k",
    "argmax", "argmin", "asin", "asinh", "associative_scan", "atan", "atan2", "atanh", "axis_index",
    "axis_size", "batch_matmul", "bessel_i0e", "bessel_i1e", "betainc", "bitcast_convert_type",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim",
    "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "cbrt", "ceil",
    "clamp", "clz", "collapse", "complex", "composite", "concatenate", "cond", "conj", "conv",
    "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_patches", "conv_general_permutations", "conv_general_shape_tuple",
    "conv_shape_tuple", "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "convert_element_type", "cos", "cosh", "create_token", "cumlogsumexp", "cummax", "cummin",
    "cumprod", "cumsum", "custom_call", "custom_linear_solve", "custom_root", "dce_sink", "digamma",
    "div", "dot", "dot_general", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "empty",
    "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expand_dims", "expm1", "fft", "floor",
    "fori_loop", "full", "full_like", "gather", "ge", "gt", "igamma", "igamma_grad_a", "igammac",
    "imag", "index_in_dim", "index_take", "integer_pow", "iota", "is_finite", "le", "lgamma", "log",
    "log1p", "logistic", "lt", "map", "max", "min", "mul", "mulhi", "ne", "neg", "nextafter",
    "optimization_barrier", "pad", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent",
    "pmax", "pmean", "pmin", "polygamma", "population_count", "pow", "ppermute", "precv", "psend",
    "pshuffle", "psum", "psum_scatter", "pswapaxes", "ragged_all_to_all", "ragged_dot",
    "ragged_dot_general", "random_gamma_grad", "real", "reciprocal", "reduce", "reduce_and",
    "reduce_max", "reduce_min", "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum",
    "reduce_window", "reduce_window_shape_tuple", "reduce_xor", "rem", "reshape", "rev",
    "rng_bit_generator", "rng_uniform", "round", "rsqrt", "scaled_dot", "scan", "scatter",
    "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub",
    "select", "select_n", "shape_as_value", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort", "sort_key_val",
    "split", "sqrt", "square", "squeeze", "stack", "stage", "stop_gradient", "sub", "switch", "tan",
    "tanh", "tile", "top_k", "transpose", "unstack", "while_loop", "with_sharding_constraint",
    "zeta",
]  # fmt: skip

_INSTEAD = {
    "ConvGeneralDilatedDimensionNumbers": "a type for annotations alone",
    "DotDimensionNumbers": "a type for annotations alone",
    "PrecisionLike": "a type for annotations alone",
    "dtype": "it is x.dtype",
    "linalg": "plugrt.array_api.linalg has cholesky, eigh, qr, svd, solve and others",
}
"""What is said of names that ``jax.lax`` has besides."""


if not TYPE_CHECKING:  # to a type checker, a name that is not there is an error

    def __getattr__(name: str) -> object:
        text = f"module 'plugrt.lax' has no attribute {name!r}"
        if name in _INSTEAD:
            text = f"{text}: {_INSTEAD[name]}"
        raise AttributeError(text, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    # Without the modules that the names come from.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
