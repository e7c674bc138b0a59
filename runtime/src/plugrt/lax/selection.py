"""`select`, `select_n` and `clamp`."""

from __future__ import annotations

from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype
from plugrt.tracing.emit import (
    broadcast_to,
    compare,
    constant,
    convert,
    emit,
    hlo,
)
from plugrt.tracing.emit import (
    select as emit_select,
)
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.tracer import Tracer


@operation(weak_by=("on_true", "on_false"), keys="each")
def select(pred: Tracer, on_true: Tracer, on_false: Tracer) -> Tracer:
    """Returns ``on_true`` where ``pred`` holds, else ``on_false``.

    The two have one shape and dtype; ``pred`` is a boolean array of that shape, or a scalar. Raises
    `DtypeError` or `ShapeError` otherwise. As ``jax.lax.select``.

    >>> lax.select(xp.asarray([True, False]), xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([1, 4], dtype=int32)
    """
    if pred.dtype != bool:
        raise DtypeError(f"pred of lax.select must be boolean; found {pred.dtype.name}")
    return _choose("select", pred, ("on_false", "on_true"), (on_false, on_true))


@operation(weak_by=("cases",), keys="each")
def select_n(which: Tracer, *cases: Tracer) -> Tracer:
    """Returns the element of ``cases[which]``; ``which`` is boolean (two cases) or int32.

    Cases have one shape and dtype; ``which`` has that shape, or is a scalar. Raises `DtypeError` or
    `ShapeError` otherwise, and `ArgumentError` without cases. As ``jax.lax.select_n``.

    >>> lax.select_n(xp.asarray([1, 0]), xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([3, 2], dtype=int32)
    """
    if not cases:
        raise ArgumentError("lax.select_n needs at least one case")
    if which.dtype == bool:
        if len(cases) > 2:
            raise ArgumentError(
                f"a boolean `which` of lax.select_n chooses between two cases; found {len(cases)}"
            )
    elif which.dtype != "int32":
        raise DtypeError(f"which of lax.select_n is boolean or int32; found {which.dtype.name}")
    return _choose("select_n", which, tuple(f"cases[{i}]" for i in range(len(cases))), cases)


def _choose(
    function: str, which: Tracer, names: tuple[str, ...], cases: tuple[Tracer, ...]
) -> Tracer:
    values = same_dtype(function, names, cases)
    shape = values[0].shape
    if any(x.shape != shape for x in values) or which.shape not in ((), shape):
        listed = ", ".join(f"{n} {x.shape}" for n, x in zip(names, values, strict=True))
        raise ShapeError(
            f"lax.{function} takes cases of one shape, chosen by an array of that shape or a "
            f"scalar; found {listed}, chosen by shape {which.shape}"
        )
    if len(values) == 1:
        return values[0]
    if which.dtype == bool:
        return emit_select(which, values[1], values[0])
    # Binary selection: log2(cases) nested selects for each element.
    return _select_by_halving(which, values, 0)


def _select_by_halving(which: Tracer, values: list[Tracer], first: int) -> Tracer:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    split = broadcast_to(constant(first + middle, which.dtype), which.shape)
    lower, upper = (
        _select_by_halving(which, values[:middle], first),
        _select_by_halving(which, values[middle:], first + middle),
    )
    return emit_select(compare(which, split, "LT"), lower, upper)


@operation
def clamp(min: Tracer, x: Tracer, max: Tracer) -> Tracer:
    """Returns x limited to the range from ``min`` to ``max``; NaN stays.

    All have one dtype; the limits have the shape of x or are scalars. Real dtypes and bool. Raises
    `DtypeError` or `ShapeError` otherwise. As ``jax.lax.clamp``.

    >>> lax.clamp(0.0, xp.asarray([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    low, value, high = same_dtype("clamp", ("min", "x", "max"), [min, x, max])
    check_dtype_kind("clamp", "x", value.dtype, "biuf")
    for name, limit in (("min", low), ("max", high)):
        if limit.shape not in ((), value.shape):
            raise ShapeError(
                f"{name} of lax.clamp must be a scalar or have the shape of x; found {limit.shape} "
                f"and {value.shape}"
            )
    if dtype_kind(value.dtype) == "b":
        low, high = broadcast_to(low, value.shape), broadcast_to(high, value.shape)
        return convert(emit(hlo.minimum, emit(hlo.maximum, value, low), high), value.dtype)
    result: Tracer = emit(hlo.clamp, low, value, high)
    return result
