"""`conv`, `conv_with_general_padding`, `conv_transpose`: forms of `conv_general_dilated`."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.errors import ArgumentError
from plugrt.execution.arrays.array import Array
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.convolution import (
    ConvDimensionsLike,
    conv_dimension_numbers,
    conv_general_dilated,
)
from plugrt.lax.dimension_arguments import per_dimension
from plugrt.lax.precision import PrecisionLike
from plugrt.lax.shapes import rev, transpose
from plugrt.lax.windowed_reductions import Padding
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DTypeLike


@with_argument_errors
def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Returns a plain convolution, (batch, feature, spatial…).

    Raises as `conv_general_dilated`. As ``jax.lax.conv``.

    >>> lax.conv(xp.ones((1, 1, 5)), xp.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 3., 2.]]], dtype=float32)
    """
    result: Array = conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return result


@with_argument_errors
def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Returns a convolution with paddings and dilations, (batch, feature, spatial…).

    Raises as `conv_general_dilated`. As ``jax.lax.conv_with_general_padding``.
    """
    result: Array = conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return result


@operation(
    static=(
        "strides",
        "padding",
        "rhs_dilation",
        "dimension_numbers",
        "transpose_kernel",
        "precision",
        "preferred_element_type",
        "use_consistent_padding",
    )
)
def conv_transpose(
    lhs: Tracer,
    rhs: Tracer,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionsLike | None = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Tracer:
    """Returns the transposed convolution of lhs, with zeros inserted by ``strides``, and rhs.

    Without ``dimension_numbers`` the features come last: ("NHWC", "HWIO", "NHWC") for two spatial
    dimensions. 'SAME' and 'VALID' are the padding of the forward convolution, whose transpose this
    is; pairs are the padding of the transposed one, or, with ``use_consistent_padding``, of the
    forward one. The kernel is not flipped unless ``transpose_kernel``, which also swaps its
    features, as a gradient does. Numeric dtypes, one for both. Raises as `conv_general_dilated`. As
    ``jax.lax.conv_transpose``.

    >>> x, kernel = xp.ones((1, 2, 1)), xp.ones((3, 1, 1))
    >>> lax.conv_transpose(x, kernel, (2,), "VALID")[0, :, 0]
    Array([1., 1., 2., 1., 1.], dtype=float32)
    """
    function, n = "conv_transpose", lhs.ndim - 2
    if dimension_numbers is None:
        if not 0 <= n < len(_FEATURES_LAST):
            raise ArgumentError(
                f"lax.{function} takes lhs of 2 to 5 dimensions without dimension_numbers; found "
                f"shape {lhs.shape}"
            )
        dimension_numbers = _FEATURES_LAST[n]
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    steps = per_dimension(function, "strides", strides, n)
    dilation = per_dimension(function, "rhs_dilation", rhs_dilation, n)
    if use_consistent_padding or isinstance(padding, str):
        sizes = [rhs.shape[d] for d in numbers.rhs_spec[2:]]
        windows = [0 if k == 0 else (k - 1) * d + 1 for k, d in zip(sizes, dilation, strict=True)]
        padding = transpose_padding(padding, windows, steps)
    if transpose_kernel:
        outputs, inputs, *spatial = numbers.rhs_spec
        order = list(range(rhs.ndim))
        order[outputs], order[inputs] = inputs, outputs
        rhs = transpose(rev(rhs, tuple(spatial)), order)
    result: Tracer = conv_general_dilated(
        lhs,
        rhs,
        (1,) * n,
        padding,
        steps,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return result


_FEATURES_LAST = (
    ("NC", "IO", "NC"), ("NHC", "HIO", "NHC"), ("NHWC", "HWIO", "NHWC"), ("NHWDC", "HWDIO", "NHWDC")
)  # fmt: skip


def transpose_padding(
    padding: Padding, windows: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Returns the padding of the transpose of a convolution that has ``padding``."""
    if not isinstance(padding, str):
        pairs = [(int(low), int(high)) for low, high in padding]
        if len(pairs) != len(windows):
            raise ArgumentError(
                f"padding of lax.conv_transpose needs (low, high) for each of {len(windows)} "
                f"dimensions; got {pairs}"
            )
        return [(k - low - 1, k - high - 1) for k, (low, high) in zip(windows, pairs, strict=True)]
    name, found = padding.upper(), []
    if name not in ("SAME", "VALID"):
        raise ArgumentError(
            f"padding of lax.conv_transpose is 'SAME', 'VALID' or pairs; got {padding!r}"
        )
    for k, s in zip(windows, strides, strict=True):
        total = k + s - 2
        if name == "VALID":
            total += max(k - s, 0)
        low = k - 1 if name == "VALID" or s > k - 1 else -(-total // 2)
        found.append((low, total - low))
    return found
