"""``jax.lax``'s operations: control flow, collectives and the StableHLO operations.

Names, argument order, defaults and meaning are ``jax.lax``'s. The operations are strict, as in JAX:
their arrays must have one dtype and one shape; Python scalars get the arrays' dtype.
``out_sharding`` and ``sharding`` state the sharding of a result.
"""

from plugrt.lifetime.uninterrupted_imports import homes_of, names_from

_HOMES = homes_of(
    {
        "plugrt.lax.binary": "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt "
        "le lt max min mul mulhi ne nextafter polygamma pow rem shift_left shift_right_arithmetic "
        "shift_right_logical sub zeta",
        "plugrt.lax.composites": "composite",
        "plugrt.lax.contraction": "batch_matmul dot dot_general",
        "plugrt.lax.control_flow.associative": "associative_scan",
        "plugrt.lax.control_flow.conditionals": "cond switch",
        "plugrt.lax.control_flow.implicit_solves": "custom_linear_solve custom_root",
        "plugrt.lax.control_flow.loops": "fori_loop while_loop",
        "plugrt.lax.control_flow.platforms": "platform_dependent",
        "plugrt.lax.control_flow.scans": "map scan",
        "plugrt.lax.conversion": "bitcast_convert_type convert_element_type reduce_precision",
        "plugrt.lax.convolution": "ConvDimensionNumbers conv_dimension_numbers "
        "conv_general_dilated",
        "plugrt.lax.convolution_forms": "conv conv_transpose conv_with_general_padding",
        "plugrt.lax.convolution_patches": "conv_general_dilated_local conv_general_dilated_patches",
        "plugrt.lax.custom_calls": "RandomAlgorithm custom_call optimization_barrier "
        "rng_bit_generator rng_uniform",
        "plugrt.lax.filled_arrays": "broadcasted_iota empty full full_like iota",
        "plugrt.lax.fourier": "FftType fft",
        "plugrt.lax.gathering": "GatherDimensionNumbers GatherScatterMode gather index_take",
        "plugrt.lax.identities": "dce_sink pcast stage stop_gradient",
        "plugrt.lax.parallel.all_reduce": "axis_index axis_size pmax pmean pmin psum",
        "plugrt.lax.parallel.exchanges": "all_gather all_to_all ppermute pshuffle psum_scatter "
        "pswapaxes",
        "plugrt.lax.parallel.routed": "pbroadcast ragged_all_to_all",
        "plugrt.lax.parallel.sends": "precv psend",
        "plugrt.lax.precision": "DotAlgorithm DotAlgorithmPreset Precision",
        "plugrt.lax.ragged_contraction": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general",
        "plugrt.lax.reductions": "argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce "
        "reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor",
        "plugrt.lax.result_shapes": "conv_general_permutations conv_general_shape_tuple "
        "conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads reduce_window_shape_tuple "
        "shape_as_value",
        "plugrt.lax.scaled_contraction": "scaled_dot",
        "plugrt.lax.scattering": "ScatterDimensionNumbers scatter scatter_add scatter_apply "
        "scatter_max scatter_min scatter_mul scatter_sub",
        "plugrt.lax.selection": "clamp select select_n",
        "plugrt.lax.shapes": "broadcast broadcast_in_dim broadcast_like collapse concatenate "
        "expand_dims pad reshape rev split squeeze transpose",
        "plugrt.lax.sharding_constraint": "with_sharding_constraint",
        "plugrt.lax.slicing": "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
        "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim "
        "index_in_dim slice slice_in_dim",
        "plugrt.lax.sorting": "approx_max_k approx_min_k sort sort_key_val top_k",
        "plugrt.lax.special_functions.bessel": "bessel_i0e",
        "plugrt.lax.special_functions.incomplete_beta": "betainc",
        "plugrt.lax.special_functions.incomplete_gamma": "igamma igammac",
        "plugrt.lax.special_functions.incomplete_gamma_derivative": "igamma_grad_a "
        "random_gamma_grad",
        "plugrt.lax.stacking": "broadcast_shapes broadcast_to_rank stack tile unstack",
        "plugrt.lax.tokens": "after_all create_token",
        "plugrt.lax.unary": "AccuracyMode RoundingMethod Tolerance abs acos acosh asin asinh atan "
        "atanh bessel_i1e bitwise_not cbrt ceil clz conj cos cosh digamma erf erf_inv erfc exp "
        "exp2 expm1 floor imag integer_pow is_finite lgamma log log1p logistic neg "
        "population_count real reciprocal round rsqrt sign sin sinh sqrt square tan tanh",
        "plugrt.lax.windowed_reductions": "reduce_window",
    }
)

__all__ = sorted(_HOMES)

_INSTEAD = {
    "ConvGeneralDilatedDimensionNumbers": "a type for annotations alone",
    "DotDimensionNumbers": "a type for annotations alone",
    "PrecisionLike": "a type for annotations alone",
    "dtype": "it is x.dtype",
    "linalg": "plugrt.array_api.linalg has cholesky, eigh, qr, svd, solve and others",
}
"""Messages for names that only ``jax.lax`` has."""


def _missing(name: str) -> str:
    text = f"module 'plugrt.lax' has no attribute {name!r}"
    return f"{text}: {_INSTEAD[name]}" if name in _INSTEAD else text


__getattr__ = names_from(__name__, _HOMES, _missing)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
