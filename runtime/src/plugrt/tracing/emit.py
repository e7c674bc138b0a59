"""Functions on tracers that add StableHLO operations to the current trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from plugrt.errors import DtypeError, InvalidOperation, TracingError
from plugrt.execution.arrays.casting import cast
from plugrt.execution.shardings.manual_types import ManualAxisType
from plugrt.interface import TensorType
from plugrt.native.known_dtypes import KeyDtype, buffer_type, is_key_dtype
from plugrt.stablehlo.bindings import MLIRError, chlo, hlo, ir
from plugrt.stablehlo.diagnostics import explain
from plugrt.stablehlo.types import KEY_CAST, compare_attributes
from plugrt.tracing.mlir_constants import can_splat, constant_value, splat_value
from plugrt.tracing.promotion import check_fits, dtype_kind, itemsize_bits
from plugrt.tracing.trace import Scope, Trace, current_trace
from plugrt.tracing.tracer import Tracer

_CHLO = chlo.erf.__module__
_OPERATIONS = (ir.OpView, ir.Operation)


def active_trace() -> Trace:
    """Returns the current trace; raises `TracingError` if there is none."""
    trace = current_trace()
    if trace is None:
        raise TracingError(
            "this function adds an operation to a trace, and no function is being traced; call it "
            "in one that plugrt.jit traces"
        )
    return trace


@overload
def emit(
    builder: Callable[..., object],
    *operands: Tracer,
    result: TensorType | None = None,
    **attributes: object,
) -> Tracer: ...


@overload
def emit(
    builder: Callable[..., object],
    *operands: Tracer,
    result: Sequence[TensorType],
    **attributes: object,
) -> tuple[Tracer, ...]: ...


def emit(
    builder: Callable[..., Any],
    *operands: Tracer,
    result: TensorType | Sequence[TensorType] | None = None,
    **attributes: object,
) -> object:
    """Adds one operation and returns its result as a `Tracer` (a tuple of them if it has several).

    ``builder`` is a function of jaxlib's StableHLO or CHLO bindings. ``result`` is needed by those
    whose first parameter is a result type, which MLIR does not infer.
    """
    trace = active_trace()
    values: list[object] = [*map(trace.mlir_value, operands)]
    if trace.has_keys:
        refuse_keys(builder.__name__, operands)
    if isinstance(result, TensorType):
        values.insert(0, trace.mlir_type(result.shape, result.dtype))
    elif result is not None:
        values.insert(0, [trace.mlir_type(r.shape, r.dtype) for r in result])
    try:
        made = builder(*values, loc=trace.location(), **attributes)
    except MLIRError as error:
        types = ", ".join(f"{x.dtype.name}{list(x.shape)}" for x in operands)
        raise InvalidOperation(
            f"{builder.__name__}({types}) is not valid StableHLO: {explain(error)}"
        ) from error
    if builder.__module__ == _CHLO:
        trace.uses_chlo = True
    if isinstance(made, ir.Value):
        return Tracer(made, trace)
    results = made.results if isinstance(made, _OPERATIONS) else made
    return tuple(Tracer(value, trace) for value in results)


def refuse_keys(what: str, operands: Sequence[object]) -> None:
    """Raises `DtypeError` where an operand is an array of random keys."""
    for x in operands:
        if type(x) is Tracer and is_key_dtype(x.dtype):
            raise DtypeError(
                f"{what} does not accept dtype {x.dtype.name}: it computes with numbers, and the "
                "argument holds random keys. random.key_data(keys) gives their words"
            )


def words_of(keys: Tracer) -> Tracer:
    """Returns keys as uint32 words, along an additional last dimension."""
    return _cast(keys, *buffer_type(keys.shape, keys.dtype))


def keys_of(words: Tracer, dtype: KeyDtype) -> Tracer:
    """Returns the keys of a dtype that have these words."""
    return _cast(words, words.shape[:-1], dtype)


def _cast(x: Tracer, shape: tuple[int, ...], dtype: Any) -> Tracer:
    trace = active_trace()
    made = ir.Operation.create(
        KEY_CAST, [trace.mlir_type(shape, dtype)], [x.value], loc=trace.location()
    )
    if trace.types is not None:
        trace.types.copy(made.results[0], x.value)
    return Tracer(made.results[0], trace)


def with_manual_type(x: Tracer, mat: ManualAxisType) -> Tracer:
    """Returns ``x`` as a new value with another type along Manual axes."""
    types = active_trace().types
    if types is None or not types.checks or types.mat(x._value) == mat:
        return x
    made = _cast(x, x.shape, x.dtype)
    types.set_mat(made.value, mat)
    made.trace.has_casts = True
    made.weak, made.origin = x.weak, x.origin
    return made


def wrap(operation: ir.OpView) -> tuple[Tracer, ...]:
    """Returns the results of an MLIR operation as tracers."""
    trace = active_trace()
    return tuple(Tracer(value, trace) for value in operation.operation.results)


def wrap_one(made: ir.Value | ir.OpView) -> Tracer:
    """Returns an MLIR value, or the only result of an operation, as a `Tracer`."""
    value = made if isinstance(made, ir.Value) else made.operation.result
    return Tracer(value, active_trace())


def constant(host: object, dtype: np.dtype[np.generic] | None = None) -> Tracer:
    """Returns a host array or scalar as a constant of the program, in the dtype given."""
    data = np.asarray(host) if dtype is None else cast(host, dtype)
    trace = active_trace()
    tracer = Tracer(constant_value(trace, data), trace)
    if not data.shape:
        tracer.scalar = data
    return tracer


def full(shape: Sequence[int], value: object, dtype: np.dtype[np.generic]) -> Tracer:
    """Returns an array of ``shape`` filled with a host scalar; for keys, it fills their words."""
    if is_key_dtype(dtype):
        return keys_of(full((*shape, dtype.words), value, np.dtype(np.uint32)), dtype)
    return broadcast_to(constant(_cast_literal(value, dtype)), shape)


def _cast_literal(value: object, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    # Integers wrap around, where NumPy would raise for a Python integer out of range.
    return cast(np.asarray(value) if dtype_kind(dtype) in "biu" else value, dtype)


def iota(shape: Sequence[int], dimension: int, dtype: np.dtype[np.generic]) -> Tracer:
    """Returns an array whose elements are their indices along one dimension."""
    tracer: Tracer = emit(
        hlo.iota, result=TensorType(tuple(shape), dtype), iota_dimension=dimension
    )
    return tracer


def convert(x: Tracer, dtype: np.dtype[np.generic] | type | str) -> Tracer:
    """Returns ``x`` in another dtype (itself if it has it); the result is not weak."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return strong(x)
    if x.scalar is not None:
        return constant(_convert_literal(x, dtype))
    if x.weak and x.dtype.kind in "iu" and dtype.kind in "iu":
        check_fits(x, dtype)
    if x.dtype.kind == "c" and dtype.kind != "c":
        if dtype == np.bool_:
            zero = full(x.shape, 0, x.dtype)
            return compare(x, zero, "NE")
        return convert(emit(hlo.real, x), dtype)
    tracer: Tracer = emit(hlo.convert, x, result=TensorType(x.shape, dtype))
    return tracer


def _convert_literal(x: Tracer, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """Returns the host value of ``x``, in another dtype or in its own."""
    if x.dtype == dtype:
        return cast(x.scalar, dtype)
    if x.weak and x.dtype.kind in "iu" and dtype.kind in "iu":
        check_fits(x, dtype)
    # From the Python literal itself, without a detour through float32; but one that is too small
    # for its own dtype is 0, and so False.
    literal = cast(x.scalar, x.dtype) if dtype == np.bool_ else x.scalar
    return _cast_literal(literal, dtype)


def strong(x: Tracer) -> Tracer:
    """Returns ``x`` strongly typed, even if it represents a Python scalar."""
    if not x.weak:
        return x
    if x.scalar is not None:
        return constant(cast(x.scalar, x.dtype))
    return Tracer(x.value, active_trace(), origin=x.origin)


def with_weakness(x: Tracer, weak: bool) -> Tracer:
    """Returns a computed ``x`` as weakly typed if ``weak``: its dtype yields to others'."""
    if not weak or x.weak or x.dtype == np.bool_:
        return x
    tracer = Tracer(x.value, active_trace(), weak=True, origin=x.origin)
    tracer.scalar = x.scalar
    return tracer


def reshape(x: Tracer, shape: Sequence[int]) -> Tracer:
    """Returns ``x`` in another shape with as many elements, in row-major order."""
    if x.shape == tuple(shape):
        return strong(x)
    tracer: Tracer = emit(hlo.reshape, x, result=TensorType(tuple(shape), x.dtype))
    return tracer


def broadcast_in_dim(x: Tracer, shape: Sequence[int], dimensions: Sequence[int]) -> Tracer:
    """Returns ``x`` with its dimension i as dimension ``dimensions[i]`` of ``shape``."""
    tracer: Tracer = emit(
        hlo.broadcast_in_dim,
        x,
        result=TensorType(tuple(shape), x.dtype),
        broadcast_dimensions=list(dimensions),
    )
    return tracer


def broadcast_to(x: Tracer, shape: Sequence[int]) -> Tracer:
    """Broadcasts ``x`` to ``shape`` by NumPy's rules; the caller has checked that it fits."""
    shape = tuple(shape)
    if x.shape == shape:
        return strong(x)
    if x.scalar is not None and can_splat(x.dtype, shape):
        trace = active_trace()
        return Tracer(splat_value(trace, cast(x.scalar, x.dtype), shape), trace)
    return broadcast_in_dim(x, shape, range(len(shape) - len(x.shape), len(shape)))


def convert_to(x: Tracer, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> Tracer:
    """Converts ``x`` to a dtype, as `convert`, then broadcasts it to ``shape``, as `broadcast_to`.

    For a literal, emits one constant of that dtype and shape instead of two operations.
    """
    if x.shape == shape:
        return x if x.dtype == dtype and not x.weak else convert(x, dtype)
    if x.scalar is not None and can_splat(dtype, shape):
        trace = active_trace()
        return Tracer(splat_value(trace, _convert_literal(x, dtype), shape), trace)
    return broadcast_to(convert(x, dtype), shape)


def transpose(x: Tracer, permutation: Sequence[int]) -> Tracer:
    """Returns ``x`` with its dimensions in another order."""
    if list(permutation) == list(range(x.ndim)):
        return strong(x)
    tracer: Tracer = emit(hlo.transpose, x, permutation=list(permutation))
    return tracer


def compare(x: Tracer, y: Tracer, direction: str) -> Tracer:
    """Returns booleans of ``x DIRECTION y``: EQ NE LT LE GT GE. Same shape and dtype."""
    tracer: Tracer = emit(hlo.compare, x, y, **compare_attributes(x.dtype, direction))
    return tracer


def select(condition: Tracer, x: Tracer, y: Tracer) -> Tracer:
    """Returns ``x`` where the booleans hold, else ``y``. All of one shape."""
    tracer: Tracer = emit(hlo.select, condition, x, y)
    return tracer


def region(
    parent: ir.Region, arguments: Sequence[ir.Type], body: Callable[..., Sequence[Tracer]]
) -> None:
    """Fills an operation's region with a block that returns the results of ``body``.

    ``body`` is called with a tracer for each argument; it may use tracers of the scopes around it.
    """
    trace = active_trace()
    block = ir.Block.create_at_start(parent, list(arguments), [trace.location()] * len(arguments))

    def build(_: Scope) -> None:
        outputs = body(*[Tracer(a, trace) for a in block.arguments])
        hlo.return_([o.value for o in outputs], loc=trace.location())

    trace.run_inside(block, build)


def reduce(
    operands: Sequence[Tracer],
    initial: Sequence[Tracer],
    dimensions: Sequence[int],
    body: Callable[..., Sequence[Tracer]],
) -> tuple[Tracer, ...]:
    """Reduces arrays of one shape over ``dimensions``.

    ``body`` is called with the accumulated 0-d values and then the next ones, and returns the new
    accumulated values; it must be associative and commutative. ``initial`` are 0-d identities.
    """
    op = reduce_op(operands, initial, dimensions)
    scalars = [active_trace().mlir_type((), x.dtype) for x in operands]
    region(op.regions[0], [*scalars, *scalars], body)
    return wrap(op)


def reduce_op(
    operands: Sequence[Tracer], initial: Sequence[Tracer], dimensions: Sequence[int]
) -> Any:
    """Returns the operation of `reduce` whose region is still to be filled."""
    trace = active_trace()
    kept = tuple(n for i, n in enumerate(operands[0].shape) if i not in set(dimensions))
    return hlo.ReduceOp(
        [trace.mlir_type(kept, x.dtype) for x in operands],
        [x.value for x in operands],
        [x.value for x in initial],
        list(dimensions),
        loc=trace.location(),
    )


def widen(x: Tracer) -> Tracer:
    """Returns floats of fewer than 32 bits as float32, for computations."""
    return convert(x, np.float32) if itemsize_bits(x.dtype) < 32 else x


def in_wide_floats(function: Callable[..., Tracer], *operands: Tracer) -> Tracer:
    """Returns ``function`` of operands of one float dtype, in that dtype; see `widen`."""
    return convert(function(*map(widen, operands)), operands[0].dtype)


def slice_(x: Tracer, start: Sequence[int], limit: Sequence[int], strides: Sequence[int]) -> Tracer:
    """Returns the elements ``start[i] : limit[i] : strides[i]`` of each dimension."""
    return emit(
        hlo.slice,
        x,
        start_indices=list(start),
        limit_indices=list(limit),
        strides=list(strides),
    )


def concatenate(operands: Sequence[Tracer], dimension: int) -> Tracer:
    """Returns arrays of one dtype joined along a dimension."""
    if len(operands) == 1:
        return strong(operands[0])
    trace = active_trace()
    return wrap_one(
        hlo.concatenate([x.value for x in operands], dimension=dimension, loc=trace.location())
    )


__all__ = [
    "active_trace",
    "broadcast_in_dim",
    "broadcast_to",
    "chlo",
    "compare",
    "concatenate",
    "constant",
    "convert",
    "convert_to",
    "emit",
    "full",
    "hlo",
    "in_wide_floats",
    "iota",
    "ir",
    "reduce",
    "reduce_op",
    "region",
    "reshape",
    "select",
    "slice_",
    "strong",
    "transpose",
    "widen",
    "with_manual_type",
    "with_weakness",
    "wrap",
]  # fmt: skip
