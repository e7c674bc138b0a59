"""`conv_general_dilated` and its dimension numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, ShapeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.dimension_arguments import per_dimension
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype
from plugrt.lax.precision import PrecisionLike, precision_config
from plugrt.lax.windowed_reductions import Padding, compute_padding
from plugrt.tracing.emit import emit, hlo
from plugrt.tracing.operation import operation
from plugrt.tracing.tracer import Tracer
from plugrt.typing import DTypeLike


class ConvDimensionNumbers(NamedTuple):
    """The order of dimensions: batch, feature (of rhs: output, input feature), then spatial."""

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvDimensionsLike: TypeAlias = (
    ConvDimensionNumbers | tuple[str, str, str] | list[str] | Sequence[Sequence[int]]
)
"""Dimension numbers, also as three strings such as ("NHWC", "HWIO", "NHWC")."""


@with_argument_errors
def conv_dimension_numbers(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    dimension_numbers: ConvDimensionsLike | None,
) -> ConvDimensionNumbers:
    """Returns dimension numbers given as such, as three strings, or as None for the usual order.

    Strings name dimensions: N and C of lhs and out, O and I of rhs, other characters for spatial
    ones, as in ("NHWC", "HWIO", "NHWC"). Raises `ShapeError` for shapes of other ranks and
    `ArgumentError` for numbers that do not name each dimension once. As
    ``jax.lax.conv_dimension_numbers``.
    """
    if len(lhs_shape) != len(rhs_shape) or len(lhs_shape) < 2:
        raise ShapeError(
            "a convolution takes lhs and rhs of one rank of at least 2; found shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    ndim = len(lhs_shape)
    if dimension_numbers is None:
        order = tuple(range(ndim))
        return ConvDimensionNumbers(order, order, order)
    numbers: tuple[Any, ...] = tuple(dimension_numbers)
    if len(numbers) != 3:
        raise ArgumentError(f"dimension_numbers are three, of lhs, rhs and out; got {numbers!r}")
    if not all(isinstance(spec, str) for spec in numbers):
        return ConvDimensionNumbers(*(tuple(int(d) for d in spec) for spec in numbers))
    spatial = set(numbers[1]) - set("OI")
    for spec, pair in zip(numbers, ("NC", "OI", "NC"), strict=True):
        if sorted(spec) != sorted((*pair, *spatial)) or len(spec) != ndim:
            raise ArgumentError(
                f"dimension_numbers name each of {ndim} dimensions once: N and C in lhs and out, O "
                f"and I in rhs, and the same others in each; got {numbers!r}"
            )
    rest = [c for c in numbers[1] if c not in "OI"]
    return ConvDimensionNumbers(
        *(
            tuple(spec.index(c) for c in (*pair, *rest))
            for spec, pair in zip(numbers, ("NC", "OI", "NC"), strict=True)
        )
    )


class _Geometry(NamedTuple):
    """The parameters of a convolution in each spatial dimension."""

    strides: list[int]
    padding: list[tuple[int, int]]
    windows: list[int]
    """The sizes of the dilated kernels."""
    lhs_dilation: list[int]
    rhs_dilation: list[int]


@operation(
    static=(
        "window_strides",
        "padding",
        "lhs_dilation",
        "rhs_dilation",
        "dimension_numbers",
        "feature_group_count",
        "batch_group_count",
        "precision",
        "preferred_element_type",
    )
)
def conv_general_dilated(
    lhs: Tracer,
    rhs: Tracer,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionsLike | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Tracer:
    """Returns the convolution (a cross-correlation: no flip) of ``lhs`` with the kernels ``rhs``.

    Without ``dimension_numbers`` lhs is (batch, feature, spatial…) and rhs (output feature, input
    feature, spatial…); see `conv_dimension_numbers` for others. ``lhs_dilation`` puts zeros between
    the elements of lhs (a transposed convolution), ``rhs_dilation`` between the elements of the
    kernels. Groups split features or the batch. Numeric dtypes, one for both. Raises `DtypeError`,
    `ShapeError` if features or batch do not match, and `ArgumentError` for wrong strides, padding,
    dilations or groups. As ``jax.lax.conv_general_dilated``.
    """
    function = "conv_general_dilated"
    lhs, rhs = same_dtype(function, ("lhs", "rhs"), [lhs, rhs])
    check_dtype_kind(function, "lhs", lhs.dtype, "iufc")
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    by_dimension = (window_strides, lhs_dilation, rhs_dilation)
    geometry = _read_geometry(lhs, rhs, numbers, padding, by_dimension)
    groups = (feature_group_count, batch_group_count)
    _check_features(lhs, rhs, numbers, groups)
    shape = _result_shape(lhs, rhs, numbers, groups, geometry)
    wanted = preferred_element_type
    dtype = lhs.dtype if wanted is None else as_dtype(wanted)
    result: Tracer = emit(
        hlo.convolution,
        lhs,
        rhs,
        result=TensorType(shape, dtype),
        dimension_numbers=_attribute(numbers),
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        window_strides=geometry.strides,
        padding=np.asarray(geometry.padding, np.int64).reshape(-1, 2),
        lhs_dilation=geometry.lhs_dilation,
        rhs_dilation=geometry.rhs_dilation,
        precision_config=precision_config(precision),
    )
    return result


def _read_geometry(
    lhs: Tracer,
    rhs: Tracer,
    numbers: ConvDimensionNumbers,
    padding: Padding,
    by_dimension: tuple[Sequence[int] | None, ...],
) -> _Geometry:
    """Returns padding, and strides, lhs_dilation and rhs_dilation, for each spatial dimension."""
    function, names = "conv_general_dilated", ("window_strides", "lhs_dilation", "rhs_dilation")
    strides, lhs_dilation, rhs_dilation = (
        per_dimension(function, name, given, lhs.ndim - 2)
        for name, given in zip(names, by_dimension, strict=True)
    )
    sizes = [rhs.shape[d] for d in numbers.rhs_spec[2:]]
    windows = [(size - 1) * k + 1 for size, k in zip(sizes, rhs_dilation, strict=True)]
    if isinstance(padding, str) and any(d != 1 for d in lhs_dilation):
        raise ArgumentError(
            f"lax.{function} with lhs_dilation cannot tell what padding {padding!r} means; "
            "give (low, high) for each dimension"
        )
    lengths = [lhs.shape[d] for d in numbers.lhs_spec[2:]]
    padded = compute_padding(function, padding, lengths, windows, strides)
    return _Geometry(strides, padded, windows, lhs_dilation, rhs_dilation)


def _result_shape(
    lhs: Tracer,
    rhs: Tracer,
    numbers: ConvDimensionNumbers,
    groups: tuple[int, int],
    geometry: _Geometry,
) -> tuple[int, ...]:
    shape = [0] * lhs.ndim
    shape[numbers.out_spec[0]] = lhs.shape[numbers.lhs_spec[0]] // groups[1]
    shape[numbers.out_spec[1]] = rhs.shape[numbers.rhs_spec[0]]
    lengths = [lhs.shape[d] for d in numbers.lhs_spec[2:]]
    for d, n, s, p, w, k in zip(numbers.out_spec[2:], lengths, *geometry[:4], strict=True):
        dilated = 0 if n == 0 else (n - 1) * k + 1
        shape[d] = max((dilated + sum(p) - w) // s + 1, 0)
    return tuple(shape)


def _attribute(numbers: ConvDimensionNumbers) -> object:
    lhs, rhs, out = numbers
    return hlo.ConvDimensionNumbers.get(
        lhs[0], lhs[1], list(lhs[2:]), rhs[1], rhs[0], list(rhs[2:]), out[0], out[1], list(out[2:])
    )


def _check_features(
    lhs: Tracer, rhs: Tracer, numbers: ConvDimensionNumbers, groups: tuple[int, int]
) -> None:
    feature, batch = groups
    found = lhs.shape[numbers.lhs_spec[1]]
    takes, gives = rhs.shape[numbers.rhs_spec[1]], rhs.shape[numbers.rhs_spec[0]]
    if feature < 1 or batch < 1 or (feature > 1 and batch > 1):
        raise ArgumentError(
            "feature_group_count and batch_group_count are positive, and one of them is 1; got "
            f"{feature} and {batch}"
        )
    if found != takes * feature or gives % feature or gives % batch:
        raise ShapeError(
            f"lhs {lhs.shape} has {found} features, and rhs {rhs.shape} has {takes} input features "
            f"in each of {feature} feature groups and {gives} output features, which must be a "
            f"multiple of the group counts {groups}"
        )
    if lhs.shape[numbers.lhs_spec[0]] % batch:
        raise ShapeError(f"the batch of lhs {lhs.shape} is not a multiple of {batch} batch groups")
