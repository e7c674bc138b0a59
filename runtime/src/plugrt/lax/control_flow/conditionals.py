"""`cond` and `switch`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError, StructureError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import TensorType
from plugrt.lax.control_flow.eager import launch, require_array
from plugrt.lax.control_flow.loop_carry import describe
from plugrt.lax.control_flow.python_control_flow import run_branch, run_condition
from plugrt.lax.control_flow.regions import Body, region_holder
from plugrt.lax.operand_checks import scalar_kind
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    active_trace,
    compare,
    constant,
    convert,
    emit,
    full,
    hlo,
    with_weakness,
    wrap,
)
from plugrt.tracing.promotion import dtype_kind, result_dtype, scalar_result
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike

_ABSENT = object()


@with_argument_errors
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., object],
    false_fun: Callable[..., object],
    *operands: object,
    operand: object = _ABSENT,
) -> Any:
    """Returns ``true_fun(*operands)`` if ``pred`` is true, else ``false_fun(*operands)``.

    ``pred`` is a scalar; a nonzero number is true. Both functions are traced, one runs; they return
    the same structure, shapes and dtypes. Raises `ShapeError` for a ``pred`` that is no scalar, and
    `StructureError`, `ShapeError` or `DtypeError` where the results of the functions differ. As
    ``jax.lax.cond``, except that a result is weakly typed if both functions return a weak one (JAX:
    if ``false_fun`` does).

    >>> lax.cond(True, lambda x: x + 1, lambda x: x - 1, xp.asarray(1.0))
    Array(2., dtype=float32)
    """
    _check_functions("cond", [true_fun, false_fun])
    require_array("cond", "pred", pred)
    operands = _collect_operands("cond", operands, operand)

    def run(pred: Tracer, operands: object) -> Any:
        if pred.shape:
            raise ShapeError(f"pred of cond must be a scalar; found shape {pred.shape}")
        # A case of two branches, as in JAX: Shardy propagates no shardings through stablehlo.if.
        fails = compare(pred, full((), 0, pred.dtype), "EQ")
        make = partial(_make_case, convert(fails, np.int32), 2)
        return trace_branches(
            "cond", ["true_fun", "false_fun"], [true_fun, false_fun], operands, make
        )

    given, functions = {"pred": pred, "operands": operands}, (true_fun, false_fun)
    return launch("cond", functions, (), given, run, run_condition, reads_once=True)


@with_argument_errors
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., object]],
    *operands: object,
    operand: object = _ABSENT,
) -> Any:
    """Returns ``branches[index](*operands)``, with the index clamped to the valid range.

    All branches are traced, one runs; they return the same structure, shapes and dtypes. Raises
    `ShapeError` or `DtypeError` for an ``index`` that is no integer scalar, and `StructureError`,
    `ShapeError` or `DtypeError` where the results of the branches differ. As ``jax.lax.switch``,
    except that a result is weakly typed if all branches return a weak one (JAX: if the first does).

    >>> lax.switch(1, [lambda x: x, lambda x: -x], xp.asarray(2.0))
    Array(-2., dtype=float32)
    """
    if not isinstance(branches, Iterable):
        raise ArgumentTypeError(f"switch takes a sequence of functions; got {branches!r:.60}")
    branches = tuple(branches)
    _check_functions("switch", branches)
    require_array("switch", "index", index)
    if not branches:
        raise ArgumentError("switch needs at least one branch")
    operands = _collect_operands("switch", operands, operand)

    def run(index: Tracer, operands: object) -> Any:
        if index.shape:
            raise ShapeError(f"index of switch must be a scalar; found shape {index.shape}")
        if dtype_kind(index.dtype) not in "iu":
            raise DtypeError(f"index of switch must be an integer; found {index.dtype.name}")
        make = partial(_make_case, _clamp_index(index, len(branches)), len(branches))
        names = [f"branches[{i}]" for i in range(len(branches))]
        return trace_branches("switch", names, branches, operands, make)

    given = {"index": index, "operands": operands}
    return launch("switch", branches, (), given, run, run_branch, reads_once=True)


def _make_case(which: Tracer, count: int, types: Sequence[object]) -> object:
    return hlo.CaseOp(types, which.value, count, loc=active_trace().location())


def _collect_operands(
    title: str, operands: tuple[object, ...], operand: object
) -> tuple[object, ...]:
    """Returns the operands given by position, or the one given by name."""
    if operand is _ABSENT:
        return operands
    if operands:
        raise ArgumentError(f"{title} takes operands by position or one as operand=, not both")
    return (operand,)


def _check_functions(title: str, functions: Sequence[object]) -> None:
    for function in functions:
        if not callable(function):
            raise ArgumentTypeError(
                f"{title} takes functions as its branches; found {function!r:.60} of type "
                f"{type(function).__qualname__}"
            )


def _clamp_index(index: Tracer, count: int) -> Tracer:
    # Clamped in its own dtype: a large int64 or uint32 must not wrap around into the range.
    info = np.iinfo(index.dtype)
    low = constant(0, index.dtype)
    high = constant(min(count - 1, int(info.max)), index.dtype)
    return convert(emit(hlo.clamp, low, index, high), np.int32)


def trace_branches(
    title: str,
    names: Sequence[str],
    functions: Sequence[Callable[..., object]],
    operands: Any,
    make: Callable[[Sequence[Any]], Any],
) -> Any:
    """Traces each function into a region of the operation that ``make`` returns for the types."""
    specs: list[pytrees.PyTreeSpec] = []
    paths: list[str] = []

    def call(name: str, function: Callable[..., object]) -> list[Tracer]:
        returned = function(*pytrees.map(_own, operands))
        named = pytrees.flatten_with_paths(returned)
        specs.append(pytrees.flatten(returned)[1])
        paths[:] = [path for path, _ in named]
        return [as_tracer(x, f"output{path} of {name} of {title}") for path, x in named]

    trace = active_trace()
    with region_holder(len(functions)) as holder:
        bodies = []
        for name, function in zip(names, functions, strict=True):
            bodies.append(holder.trace((), lambda n=name, f=function: call(n, f)))
            if specs[-1] != specs[0]:
                raise StructureError(
                    f"the branches of {title} must return one structure: {names[0]} returns "
                    f"{describe(specs[0])}, {name} returns {describe(specs[-1])}"
                )
        types = [_join_types(title, names, bodies, i, path) for i, path in enumerate(paths)]
        operation = make([trace.mlir_type(t.shape, t.dtype) for t in types])
        for i, body in enumerate(bodies):
            body.move(operation.regions[i])
        outputs = [
            with_weakness(output, all(body.outputs[i].weak for body in bodies))
            for i, output in enumerate(wrap(operation))
        ]
        return pytrees.unflatten(specs[0], outputs)


def _own(x: Any) -> Any:
    """Returns a copy of an operand's tracer in the traced branch, which may assign to it."""
    if type(x) is not Tracer:
        return x
    scope = x.trace.scope
    assert scope is not None
    made = x.duplicate()
    made._value, made.scope = x.value, scope
    return made


def _join_types(
    title: str, names: Sequence[str], bodies: Sequence[Body], i: int, path: str
) -> TensorType:
    """Returns the type of output ``i``; Python scalars get the dtype of the other branches."""
    found = [body.outputs[i] for body in bodies]
    first = found[0]
    arrays = [x.dtype for x in found if not x.weak]
    dtype = arrays[0] if arrays else result_dtype([(x.dtype, True) for x in found])
    for name, x in zip(names, found, strict=True):
        fits = scalar_result(dtype, scalar_kind(x)) == dtype if x.weak else x.dtype == dtype
        if x.shape != first.shape or not fits:
            error = ShapeError if x.shape != first.shape else DtypeError
            listed = ", ".join(
                f"{n} returns {TensorType(y.shape, y.dtype)}"
                for n, y in zip(names, found, strict=True)
            )
            raise error(
                f"the branches of {title} must return equal types, and output{path} of {name} "
                f"differs: {listed}"
            )
    joined = TensorType(first.shape, dtype)
    for body, x in zip(bodies, found, strict=True):
        if x.dtype != dtype:
            body.convert(i, joined)
    return joined
