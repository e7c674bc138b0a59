"""`conv_general_dilated_patches` and `conv_general_dilated_local`: the inputs of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plugrt.lax.contraction import dot_general
from plugrt.lax.convolution import (
    ConvDimensionNumbers,
    ConvDimensionsLike,
    conv_dimension_numbers,
    conv_general_dilated,
)
from plugrt.lax.precision import Precision, PrecisionLike
from plugrt.lax.windowed_reductions import Padding
from plugrt.tracing.emit import constant, convert, transpose
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike

_GEOMETRY = (
    "filter_shape",
    "window_strides",
    "padding",
    "lhs_dilation",
    "rhs_dilation",
    "dimension_numbers",
    "precision",
)


@operation(static=(*_GEOMETRY, "preferred_element_type"))
def conv_general_dilated_patches(
    lhs: Tracer,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionsLike | None = None,
    precision: Precision | str | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns the elements of ``lhs`` that each window of ``filter_shape`` covers, as features.

    The result has features × window's elements features, in that order, and the spatial dimensions
    of a convolution with kernels of that shape. Numeric dtypes. Raises as `conv_general_dilated`.
    As ``jax.lax.conv_general_dilated_patches``.

    >>> lax.conv_general_dilated_patches(xp.asarray([[[1.0, 2.0, 3.0]]]), (2,), (1,), "VALID")
    Array([[[1., 2.],
            [2., 3.]]], dtype=float32)
    """
    window = tuple(int(n) for n in filter_shape)
    numbers = _read_numbers(lhs, window, dimension_numbers)
    features, size = lhs.shape[numbers.lhs_spec[1]], math.prod(window)
    # One kernel for each position in the window: 1 there and 0 elsewhere.
    kernels = np.tile(np.eye(size), (features, 1)).reshape(features * size, 1, *window)
    order = np.argsort(numbers.rhs_spec)
    result: Tracer = conv_general_dilated(
        lhs,
        constant(kernels.transpose(order), lhs.dtype),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=None if precision is None else (precision, Precision.DEFAULT),
        preferred_element_type=preferred_element_type,
    )
    return result


@operation(static=_GEOMETRY)
def conv_general_dilated_local(
    lhs: Tracer,
    rhs: Tracer,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionsLike | None = None,
    precision: PrecisionLike = None,
) -> Tracer:
    """Returns a convolution with a different kernel for each position of the result.

    ``rhs`` has the spatial dimensions of the result; its input features are the features of ``lhs``
    times the elements of ``filter_shape``, in that order. Numeric dtypes. Raises the errors of
    `conv_general_dilated` and `dot_general`. As ``jax.lax.conv_general_dilated_local``.
    """
    window = tuple(int(n) for n in filter_shape)
    numbers = _read_numbers(lhs, window, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs,
        window,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        precision[0] if isinstance(precision, tuple | list) else precision,
    )
    out, kernel = numbers.out_spec, numbers.rhs_spec
    batch = (tuple(out[2:]), tuple(kernel[2:]))
    contract = ((out[1],), (kernel[1],))
    product: Tracer = dot_general(patches, rhs, (contract, batch), precision=precision)
    spatial = len(window)  # the product has these, then the batch, then the output features
    places = (*out[2:], out[0], out[1])
    order = [places.index(d) for d in range(spatial + 2)]
    return convert(transpose(product, order), product.dtype)


def _read_numbers(
    lhs: Tracer, window: tuple[int, ...], given: ConvDimensionsLike | None
) -> ConvDimensionNumbers:
    return conv_dimension_numbers(lhs.shape, (1, 1, *window), given)
