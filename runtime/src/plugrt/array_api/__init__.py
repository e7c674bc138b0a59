"""The Python array API standard 2024.12 on any device that has a PJRT plugin.

Every function accepts arrays (also NumPy's and Python scalars) and works eagerly, as one launch,
and while a function is traced, as a part of its program. Names, arguments and semantics are the
standard's, or, if it leaves a choice, NumPy's and JAX's. `linalg` and `fft` are its extensions. The
namespace also has `swapaxes`, `ravel`, dtypes with fewer bits, `einsum` and other common NumPy
functions (`numpy_functions`). Its functions need jaxlib's MLIR bindings (``pip install
"plugrt[trace]"``).
"""

from plugrt.lifetime.uninterrupted_imports import homes_of, names_from

_HOMES = homes_of(
    {
        "plugrt.array_api.array_conversion": "asarray",
        "plugrt.array_api.creation": "empty empty_like full full_like meshgrid ones ones_like "
        "zeros zeros_like",
        "plugrt.array_api.data_types": "__array_namespace_info__ astype can_cast e finfo iinfo "
        "inf isdtype nan newaxis pi result_type",
        "plugrt.array_api.diagonals": "eye tril triu",
        "plugrt.array_api.dlpack": "from_dlpack",
        "plugrt.array_api.dtypes": "bfloat16 bool complex64 complex128 float8_e3m4 float8_e4m3 "
        "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float16 float32 float64 int4 int8 int16 int32 int64 uint4 uint8 uint16 "
        "uint32 uint64",
        "plugrt.array_api.einstein_summation": "einsum",
        "plugrt.array_api.elementwise.arithmetic": "abs add divide floor_divide multiply negative "
        "positive reciprocal remainder sign square subtract",
        "plugrt.array_api.elementwise.bitwise": "bitwise_and bitwise_invert bitwise_left_shift "
        "bitwise_or bitwise_right_shift bitwise_xor",
        "plugrt.array_api.elementwise.comparison": "equal greater greater_equal less less_equal "
        "logical_and logical_not logical_or logical_xor not_equal",
        "plugrt.array_api.elementwise.complex": "conj imag real",
        "plugrt.array_api.elementwise.exponential": "exp expm1 hypot log log1p log2 log10 "
        "logaddexp sqrt",
        "plugrt.array_api.elementwise.float_properties": "clip copysign isfinite isinf isnan "
        "maximum minimum nextafter signbit",
        "plugrt.array_api.elementwise.power": "pow",
        "plugrt.array_api.elementwise.rounding": "ceil floor round trunc",
        "plugrt.array_api.elementwise.trigonometry": "acos acosh asin asinh atan atan2 atanh cos "
        "cosh sin sinh tan tanh",
        "plugrt.array_api.evenly_spaced": "arange linspace",
        "plugrt.array_api.fft": "fft",
        "plugrt.array_api.indexing.functions": "take take_along_axis",
        "plugrt.array_api.linalg": "linalg",
        "plugrt.array_api.manipulation": "broadcast_arrays broadcast_to concat expand_dims flip "
        "moveaxis permute_dims ravel reshape squeeze stack swapaxes unstack",
        "plugrt.array_api.matrix_products": "matmul matrix_transpose tensordot vecdot",
        "plugrt.array_api.numpy_functions": "allclose array column_stack concatenate diag dot "
        "dstack hstack isclose median outer pad split transpose vstack",
        "plugrt.array_api.operators": "operators",
        "plugrt.array_api.repetition": "repeat roll tile",
        "plugrt.array_api.searching": "argmax argmin count_nonzero nonzero searchsorted where",
        "plugrt.array_api.sets": "unique_all unique_counts unique_inverse unique_values",
        "plugrt.array_api.sorting": "argsort sort",
        "plugrt.array_api.statistics": "cumulative_prod cumulative_sum max mean min prod std sum "
        "var",
        "plugrt.array_api.utility": "all any diff",
    }
)
__array_api_version__ = "2024.12"

__all__ = ["__array_api_version__", *sorted(_HOMES)]


def _missing(name: str) -> str:
    from plugrt.array_api.missing_names import missing_name

    return missing_name(name)


__getattr__ = names_from(__name__, _HOMES, _missing)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
