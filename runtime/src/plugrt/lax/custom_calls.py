"""`custom_call`, `optimization_barrier`, `rng_bit_generator` and `rng_uniform`."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from plugrt.array_api.dtypes import as_dtype
from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Layout, TensorType
from plugrt.lax.conversion import bitcast_convert_type
from plugrt.lax.operand_checks import check_dtype_kind, same_dtype
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.divided_stacks import divide_stacks
from plugrt.stablehlo.types import element_type, tensor_type
from plugrt.tracing.emit import (
    active_trace,
    constant,
    convert,
    emit,
    hlo,
    reshape,
    strong,
    with_weakness,
    wrap,
)
from plugrt.tracing.explicit_axes import read_sharding
from plugrt.tracing.mlir_constants import dense_attribute
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import dtype_kind
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike, DTypeLike, HasShapeAndDtype, OutSharding

T = TypeVar("T")


@with_argument_errors
def custom_call(
    call_target_name: str,
    operands: Sequence[ArrayLike],
    result_types: HasShapeAndDtype | Sequence[HasShapeAndDtype],
    *,
    has_side_effect: bool = False,
    backend_config: str | Mapping[str, object] | None = None,
    api_version: int = 4,
    operand_layouts: Sequence[Sequence[int]] | None = None,
    result_layouts: Sequence[Sequence[int]] | None = None,
    output_operand_aliases: Mapping[int, int] | None = None,
    batch_dims: int = 0,
) -> Any:
    """Returns the results of a function that is registered with the backend under a name.

    ``result_types`` is an object with shape and dtype, or a sequence of them (then the result is a
    list). ``api_version`` 4 is XLA's typed FFI, whose attributes are the mapping
    ``backend_config``; earlier versions require a string. Layouts order dimensions from the fastest
    to the slowest; ``output_operand_aliases`` maps results to the operands whose memory they reuse.
    With ``has_side_effect`` the call is kept even if its results are unused. ``batch_dims`` is the
    number of leading dimensions of all operands and results that form a stack, which may be split
    into several calls: so the call is divided over devices. Raises `ArgumentTypeError` for
    ``result_types`` without shape and dtype, `ArgumentError` for a configuration that does not fit
    ``api_version``, and the backend's error for an unknown name.
    """
    several = isinstance(result_types, tuple | list)
    listed: Any = result_types if several else [result_types]
    for t in listed:
        if not hasattr(t, "shape") or not hasattr(t, "dtype") or isinstance(t, type):
            raise ArgumentTypeError(
                f"result_types of custom_call have shape and dtype; got {t!r:.60}"
            )
    types = tuple(TensorType(tuple(t.shape), np.dtype(t.dtype)) for t in listed)
    _refuse_unsuited(call_target_name, operands, backend_config)
    results = _custom_call(
        tuple(operands),
        call_target_name,
        types,
        has_side_effect,
        dict(backend_config) if isinstance(backend_config, Mapping) else backend_config,
        api_version,
        operand_layouts,
        result_layouts,
        dict(output_operand_aliases or {}),
        batch_dims,
    )
    return results if several else results[0]


def _refuse_unsuited(target: str, operands: Sequence[object], config: object) -> None:
    """Raises for operands that are containers, and for arrays as attributes, a frequent mistake."""
    for i, operand in enumerate(operands):
        if operand is None or isinstance(operand, tuple | list | dict):
            raise NotAnArray(
                f"operand {i} of {target!r} is {operand!r:.60} of type {type(operand).__name__}, "
                "which is not an array (array_api.asarray makes one)"
            )
    for name, value in config.items() if isinstance(config, Mapping) else ():
        if isinstance(value, Array):
            raise ArgumentTypeError(
                f"attribute {name!r} of {target!r} is an array of plugrt; attributes are a part of "
                "the program: pass numpy.asarray(...) of it, or the array as an operand"
            )


@operation(
    static=(
        "target",
        "types",
        "effect",
        "config",
        "version",
        "layouts",
        "result_layouts",
        "aliases",
        "batch_dims",
    )
)
def _custom_call(
    operands: Sequence[Tracer],
    target: str,
    types: tuple[TensorType, ...],
    effect: bool,
    config: object,
    version: int,
    layouts: Sequence[Sequence[int]] | None,
    result_layouts: Sequence[Sequence[int]] | None,
    aliases: dict[int, int],
    batch_dims: int,
) -> list[Tracer]:
    trace = active_trace()
    values = [strong(x).value for x in operands]
    if (layouts is None) != (result_layouts is None):
        raise ArgumentError("custom_call takes operand_layouts and result_layouts together")
    i32 = ir.IntegerType.get_signless(32)
    made = hlo.CustomCallOp(
        [trace.mlir_type(t.shape, t.dtype) for t in types],
        values,
        call_target_name=target,
        has_side_effect=effect,
        backend_config=_config(config, version),
        api_version=ir.IntegerAttr.get(i32, version),
        called_computations=ir.ArrayAttr.get([]),
        operand_layouts=_layouts(layouts),
        result_layouts=_layouts(result_layouts),
        output_operand_aliases=_aliases(aliases, len(types)) if aliases else None,
        loc=trace.location(),
    )
    if batch_dims:
        divide_stacks(made.operation, batch_dims)
    return list(wrap(made))


def constrain_layout(x: Tracer, layout: Layout) -> Tracer:
    """Returns a value that the compiler must have in a layout at this point of the program."""
    order, kind = [layout.major_to_minor[::-1]], TensorType(x.shape, x.dtype)
    target = "LayoutConstraint"
    [made] = _custom_call((x,), target, (kind,), False, "", 1, order, order, {}, 0)
    return with_weakness(made, x.weak)


def _config(config: object, version: int) -> ir.Attribute | None:
    if version == 4:
        if config is not None and not isinstance(config, dict):
            raise ArgumentError(
                "backend_config of custom_call with api_version 4 is a mapping of attributes; got "
                f"{type(config).__qualname__}"
            )
        return ir.DictAttr.get({k: call_attribute(k, v) for k, v in (config or {}).items()})
    if isinstance(config, dict):
        raise ArgumentError("backend_config of custom_call is a mapping with api_version 4 only")
    return None if config is None else ir.StringAttr.get(config)


def call_attribute(name: str, value: object) -> ir.Attribute:
    """Returns an attribute of a custom call; raises `ArgumentError` for other values."""
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, bool | np.bool_):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, int | float | np.integer | np.floating):
        dtype = value.dtype if isinstance(value, np.generic) else np.dtype(type(value))
        element = element_type(dtype)
        if dtype_kind(dtype) == "f":
            return ir.FloatAttr.get(element, float(value))
        return ir.IntegerAttr.get(element, int(value))
    if isinstance(value, np.ndarray):
        return dense_attribute(value, tensor_type(value.shape, value.dtype))
    if isinstance(value, dict):
        return ir.DictAttr.get({k: call_attribute(k, v) for k, v in value.items()})
    raise ArgumentError(
        f"attribute {name!r} of a custom call is a {type(value).__qualname__}; strings, booleans, "
        "numbers (also NumPy's, which state their width), NumPy arrays and dicts of them are "
        "understood"
    )


def _layouts(layouts: Sequence[Sequence[int]] | None) -> ir.Attribute | None:
    if layouts is None:
        return None
    index = ir.IndexType.get()
    return ir.ArrayAttr.get(
        [
            ir.DenseIntElementsAttr.get(np.atleast_1d(np.array(layout, np.int64)), type=index)
            for layout in layouts
        ]
    )


def _aliases(aliases: dict[int, int], results: int) -> ir.Attribute:
    return ir.ArrayAttr.get(
        [
            hlo.OutputOperandAlias.get(
                output_tuple_indices=[result] if results > 1 else [],
                operand_index=operand,
                operand_tuple_indices=[],
            )
            for result, operand in aliases.items()
        ]
    )


@operation(weak_by="body", keys="body")
def optimization_barrier(operand: T, /) -> T:
    """Returns a pytree of arrays unchanged, across which compilers move nothing.

    Any shapes and dtypes. Raises `NotAnArray` for other leaves. As
    ``jax.lax.optimization_barrier``.
    """
    leaves, spec = pytrees.flatten(operand)
    if not leaves:
        return operand
    values = [strong(x).value for x in leaves]
    made = hlo.OptimizationBarrierOp(values, loc=active_trace().location())
    kept = [with_weakness(y, x.weak) for y, x in zip(wrap(made), leaves, strict=True)]
    result: T = pytrees.unflatten(spec, kept)
    return result


class RandomAlgorithm(enum.IntEnum):
    """The generators of ``rng_bit_generator``."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


@operation(static=("shape", "dtype", "algorithm", "out_sharding"))
def rng_bit_generator(
    key: Tracer,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm | int = 0,
    *,
    out_sharding: OutSharding = None,
) -> list[Tracer]:
    """Returns a new key and unsigned integers of random bits, by the backend's own generator.

    The key is uint32[4] or uint64[2]; the bits may differ between backends (see `plugrt.random` for
    numbers that do not), and have the sharding ``out_sharding``. Raises `DtypeError` for other
    keys, and for a ``dtype`` that is no integer. As ``jax.lax.rng_bit_generator``.
    """
    result_dtype = as_dtype(dtype)
    if dtype_kind(result_dtype) not in "iu" or result_dtype.kind == "V":
        raise DtypeError(
            f"lax.rng_bit_generator makes integers; dtype {result_dtype.name} was requested"
        )
    short = (key.shape, key.dtype.name) == ((4,), "uint32")
    if not short and (key.shape, key.dtype.name) != ((2,), "uint64"):
        raise DtypeError(
            "the key of lax.rng_bit_generator is uint32[4] or uint64[2]; found "
            f"{TensorType(key.shape, key.dtype)}"
        )
    state = key
    if short:  # also if 64-bit types are off
        of = TensorType((2,), np.dtype(np.uint64))
        state = emit(hlo.bitcast_convert, reshape(key, (2, 2)), result=of)
    number = RandomAlgorithm(int(algorithm))
    names = ("DEFAULT", "THREE_FRY", "PHILOX")
    drawn = np.dtype(f"uint{max(32, 8 * result_dtype.itemsize)}")
    new, bits = emit(
        _generator,
        state,
        result=[
            TensorType(state.shape, state.dtype),
            TensorType(tuple(int(n) for n in shape), drawn),
        ],
        algorithm=hlo.RngAlgorithmAttr.get(names[number]),
    )
    if short:
        new = reshape(bitcast_convert_type(new, np.uint32), (4,))
    made = convert(bits, result_dtype)
    if out_sharding is not None:
        what = "out_sharding of rng_bit_generator"
        made = made.constrained(read_sharding(out_sharding, what, current_trace()), what)
    return [new, made]


def _generator(types: list[ir.Type], state: ir.Value, *, algorithm: object, loc: object) -> object:
    return hlo.RngBitGeneratorOp(types[0], types[1], algorithm, state, loc=loc)


@operation(static=("shape",), weak_by=("a", "b"))
def rng_uniform(a: Tracer, b: Tracer, shape: Sequence[int]) -> Tracer:
    """Returns numbers drawn uniformly from ``a`` up to ``b``, excluded, in an array of ``shape``.

    The generator's state is the backend's: each call returns other numbers, which cannot be
    reproduced; see `plugrt.random` for numbers by keys. ``a`` and ``b`` are scalars of one dtype,
    floats, integers or booleans. Raises `ArgumentError` for arrays, `DtypeError` for different
    dtypes. As ``jax.lax.rng_uniform``.
    """
    a, b = same_dtype("rng_uniform", ("a", "b"), [a, b])
    check_dtype_kind("rng_uniform", "a", a.dtype, "biuf")
    if a.shape or b.shape:
        raise ArgumentError(
            f"lax.rng_uniform takes scalars for a and b; got the shapes {a.shape} and {b.shape}"
        )
    sizes = constant(np.array([int(n) for n in shape], np.int64))
    drawn: Tracer = emit(
        hlo.rng, a, b, sizes, rng_distribution=hlo.RngDistributionAttr.get("UNIFORM")
    )
    return drawn
