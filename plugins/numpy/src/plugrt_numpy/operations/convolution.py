"""``convolution`` and ``dynamic_conv``: windows of the input, multiplied as matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plugrt.stablehlo.bindings import hlo
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.operation import Lowering, Operation
from plugrt_numpy.operations.contraction import from_products, product_dtype
from plugrt_numpy.operations.windows import Windows


class _Convolution:
    """The attributes of a convolution."""

    def __init__(self, op: Operation) -> None:
        numbers = hlo.ConvDimensionNumbers(op.attribute("dimension_numbers"))
        spatial = list(numbers.input_spatial_dimensions)
        ones = [1] * len(spatial)
        self.input_order = [
            numbers.input_batch_dimension,
            numbers.input_feature_dimension,
            *spatial,
        ]
        self.kernel_order = [
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ]
        output = [
            numbers.output_batch_dimension,
            numbers.output_feature_dimension,
            *numbers.output_spatial_dimensions,
        ]
        self.output_order = [output.index(d) for d in range(len(output))]
        kernel = op.operand_types[1].shape
        self.windows = Windows(
            tuple(kernel[d] for d in numbers.kernel_spatial_dimensions),
            op.ints("window_strides", ones),
            op.ints("lhs_dilation", ones),
            op.ints("rhs_dilation", ones),
            op.table("padding") or [[0, 0]] * len(spatial),
        )
        self.reversal = op.ints("window_reversal", [0] * len(spatial))
        self.feature_groups = op.integer("feature_group_count", 1)
        self.batch_groups = op.integer("batch_group_count", 1)
        left, right = (kind.dtype for kind in op.operand_types[:2])
        self.dtype = op.dtype
        terms = math.prod(kernel[d] for d in self.kernel_order[1:])
        self.wide = product_dtype(left, right, op.dtype, terms)

    def run(self, x: Array, kernel: Array, windows: Windows) -> Array:
        """Returns the convolution with some windows, which may have a padding of their own."""
        x = x.transpose(self.input_order).astype(self.wide, copy=False)
        kernel = kernel.transpose(self.kernel_order).astype(self.wide, copy=False)
        kernel = np.flip(kernel, tuple(d + 2 for d, r in enumerate(self.reversal) if r))
        batch, features = x.shape[:2]
        outputs, terms = kernel.shape[0], math.prod(kernel.shape[1:])
        groups = self.feature_groups * self.batch_groups
        patches = _patches(windows, x)
        places = patches.shape[2 : 2 + len(windows.sizes)]
        # Groups of the batch or of features are matrix products of their own.
        if self.batch_groups > 1:
            grouped = patches.reshape(groups, batch // groups, features, *patches.shape[2:])
            batch //= groups
        else:
            grouped = patches.reshape(batch, groups, features // groups, *patches.shape[2:])
            grouped = np.moveaxis(grouped, 1, 0)
        rank = len(windows.sizes)
        order = [0, 1, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank)]
        rows = grouped.transpose(order).reshape(groups, batch * math.prod(places), terms)
        columns = kernel.reshape(groups, outputs // groups, terms).transpose(0, 2, 1)
        products = np.matmul(rows, columns)  # groups, batch and places, outputs of a group
        shaped = products.reshape(groups, batch, *places, outputs // groups)
        joined = np.moveaxis(shaped, 0, 1 + rank).reshape(batch, *places, outputs)
        result = np.moveaxis(joined, -1, 1).transpose(self.output_order)
        return from_products(result, self.dtype)


def multiplications(op: Operation) -> int:
    """Returns how many products a ``convolution`` adds; those with padding and holes do not count.

    As XLA counts them.
    """
    convolution = _Convolution(op)
    windows, (x, kernel) = convolution.windows, (kind.shape for kind in op.operand_types)
    batch, features, *sizes = [x[d] for d in convolution.input_order]
    places = [op.shape[convolution.output_order.index(d)] for d in range(2, 2 + len(sizes))]
    count: int = kernel[convolution.kernel_order[0]] * (features // convolution.feature_groups)
    count *= batch // convolution.batch_groups
    for axis, (size, outputs) in enumerate(zip(sizes, places, strict=True)):
        at = np.arange(outputs)[:, None] * windows.strides[axis] - windows.padding[axis][0]
        at = at + np.arange(windows.sizes[axis]) * windows.dilations[axis]
        element, hole = np.divmod(at, windows.base_dilations[axis])
        count *= int(np.count_nonzero((hole == 0) & (element >= 0) & (element < size)))
    return count


def _patches(windows: Windows, x: Array) -> Array:
    """Returns a view: batch, feature, places of windows, places within a window."""
    edges = replace(
        windows,
        sizes=(1, 1, *windows.sizes),
        strides=(1, 1, *windows.strides),
        base_dilations=(1, 1, *windows.base_dilations),
        dilations=(1, 1, *windows.dilations),
        padding=[[0, 0], [0, 0], *windows.padding],
    )
    view = edges.view(edges.pad_with(x, x.dtype.type(0)))
    rank = len(windows.sizes)
    # The windows of batch and feature are single elements.
    return view.reshape(*view.shape[: 2 + rank], *view.shape[4 + rank :])


def _convolution(op: Operation) -> Function:
    convolution = _Convolution(op)
    return lambda x, kernel: convolution.run(np.asarray(x), np.asarray(kernel), convolution.windows)


def _dynamic_conv(op: Operation) -> Function:
    convolution = _Convolution(op)

    def run(x: Array, kernel: Array, padding: Array) -> Array:
        windows = replace(convolution.windows, padding=_rows(padding.tolist()))
        return convolution.run(np.asarray(x), np.asarray(kernel), windows)

    return run


def _rows(padding: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(row) for row in padding]


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _dynamic_conv,
}
"""Operation name to lowering."""
