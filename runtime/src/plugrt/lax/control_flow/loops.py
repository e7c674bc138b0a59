"""`while_loop` and `fori_loop`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from plugrt.errors import ArgumentError, DtypeError, ShapeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.counted_loop import emit_loop, steps_per_round
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.control_flow.loop_carry import Carry, scalar_predicate
from plugrt.lax.control_flow.python_control_flow import run_counted, run_while
from plugrt.lax.control_flow.regions import region_holder
from plugrt.stablehlo.callback_order import has_ordered
from plugrt.tracing.emit import active_trace, compare, constant, convert, emit, hlo, strong, wrap
from plugrt.tracing.promotion import default_int, dtype_kind, result_dtype
from plugrt.tracing.tracer import Tracer
from plugrt.typing import ArrayLike

T = TypeVar("T")


@with_argument_errors
def while_loop(cond_fun: Callable[[T], object], body_fun: Callable[[T], T], init_val: T) -> T:
    """Returns the value after ``body_fun`` was applied for as long as ``cond_fun`` returned true.

    The value is a pytree whose structure, shapes and dtypes the body keeps; ``cond_fun`` returns a
    boolean scalar. Both functions are traced once, and may capture arrays. Raises `StructureError`,
    `ShapeError` or `DtypeError` where the body changes the value's type or ``cond_fun`` returns
    something else. As ``jax.lax.while_loop``.

    >>> lax.while_loop(lambda x: x < 50, lambda x: 2 * x, xp.asarray(3))
    Array(96, dtype=int32)
    """

    def body(init: object) -> Any:
        return emit_while("while_loop", cond_fun, body_fun, init, widens=False)

    operands = {"init": init_val}
    result: T = launch(
        "while_loop", (cond_fun, body_fun), (), operands, body, run_while, reads_once=True
    )
    return result


def emit_while(
    title: str,
    cond_fun: Callable[[Any], object],
    body_fun: Callable[[Any], object],
    init: object,
    *,
    widens: bool = True,
) -> Any:
    """Adds a ``stablehlo.while`` to the current trace and returns the value it ends with.

    ``widens`` is for `Carry`.
    """
    carry, trace = Carry(title, init, widens), active_trace()
    while True:
        with region_holder(2) as holder:
            body = holder.trace(
                carry.leaves, lambda *v: carry.check_returned(body_fun(carry.rebuild(v)))
            )
            if not carry.settle_types():
                continue
            cond = holder.trace(
                carry.leaves,
                lambda *v: [
                    scalar_predicate(
                        cond_fun(carry.rebuild(v)), f"the result of cond_fun of {title}"
                    )
                ],
            )
            if trace.callbacks and has_ordered(trace.module, cond.block):
                return _emit_while_asking_first(title, cond_fun, body_fun, init, widens)
            operation = hlo.WhileOp(
                [x.value.type for x in carry.leaves],
                [x.value for x in carry.leaves],
                loc=trace.location(),
            )
            cond.move(operation.regions[0])
            body.move(operation.regions[1])
            return carry.rebuild(carry.finish(wrap(operation)))


def _emit_while_asking_first(
    title: str,
    cond_fun: Callable[[Any], object],
    body_fun: Callable[[Any], object],
    init: Any,
    widens: bool,
) -> object:
    """Adds a loop with ordered calls in ``cond_fun``, which runs before it and in the body.

    The region of a condition returns only a boolean, and so no token.
    """

    def step(state: Any) -> Any:
        value = body_fun(state[1])
        return cond_fun(value), value

    start = cond_fun(init), init
    return emit_while(title, lambda state: state[0], step, start, widens=widens)[1]


@with_argument_errors
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, T], T],
    init_val: T,
    *,
    unroll: int | bool | None = None,
) -> T:
    """Returns the value after ``val = body_fun(i, val)`` for i from ``lower`` up to ``upper``.

    Bounds that are Python integers make a loop of known length, which is unrolled by ``unroll``
    steps (True: all); bounds that are integer arrays make a `while_loop`. The index is int32 unless
    the bounds are arrays or NumPy scalars of another integer dtype (JAX ignores NumPy's dtypes).
    Raises `DtypeError` or `ShapeError` for bounds that are no integer scalars, and if the body
    changes the type of the value; `ArgumentError` for ``unroll`` with traced bounds. As
    ``jax.lax.fori_loop``.

    >>> lax.fori_loop(0, 5, lambda i, x: x + i, xp.asarray(0))
    Array(10, dtype=int32)
    """
    if isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer):
        first, last = operator.index(lower), operator.index(upper)
        given = [x.dtype for x in (lower, upper) if isinstance(x, np.integer)]
        dtype, weak = _index_dtype(given), not given
        rounds = steps_per_round(1 if unroll is None else unroll, max(last - first, 0))

        def run(init: object) -> Any:
            return _emit_counted(first, last, dtype, weak, body_fun, init, rounds)

        in_python = partial(run_counted, dtype=dtype, first=first, last=last)
        static = (first, last, dtype, weak, rounds)
        operands = {"init": init_val}
        result: T = launch(
            "fori_loop", (body_fun,), static, operands, run, in_python, reads_once=True
        )
        return result
    if unroll is not None:
        raise ArgumentError(
            "fori_loop can unroll only if its bounds are Python integers; got "
            f"lower={lower!r}, upper={upper!r}"
        )

    def count(lower: Tracer, upper: Tracer, init: object) -> Any:
        return _emit_counting(lower, upper, body_fun, init)

    bounds = {"lower": lower, "upper": upper, "init": init_val}
    outcome: T = launch(
        "fori_loop", (body_fun,), (), bounds, count, _count_in_python, reads_once=True
    )
    return outcome


def _count_in_python(
    functions: Sequence[Callable[..., object]], lower: object, upper: object, init: object
) -> object:
    dtype = _index_dtype([np.asarray(x).dtype for x in (lower, upper) if type(x) is not int])
    first, last = int(np.asarray(lower)), int(np.asarray(upper))
    return run_counted(functions, init, first, last, dtype)


def _index_dtype(given: list[np.dtype[Any]]) -> np.dtype[np.generic]:
    return given[0] if given and all(d == given[0] for d in given) else default_int()


def _emit_counted(
    first: int,
    last: int,
    dtype: np.dtype[np.generic],
    weak: bool,
    body_fun: Callable[[Any, Any], object],
    init: object,
    unroll: int,
) -> object:
    def step(i: Tracer, value: object, _: object) -> tuple[Any, None]:
        index = convert(i, dtype)
        if first:
            index = emit(hlo.add, index, constant(first, dtype))
        return body_fun(Tracer(index.value, active_trace(), weak=weak), value), None

    length = max(last - first, 0)
    return emit_loop("fori_loop", step, init, None, length, reverse=False, unroll=unroll)[0]


def _emit_counting(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], object], init: Any
) -> object:
    for name, x in (("lower", lower), ("upper", upper)):
        if x.shape:
            raise ShapeError(f"{name} of fori_loop must be a scalar; found shape {x.shape}")
        if dtype_kind(x.dtype) not in "iu":
            raise DtypeError(f"{name} of fori_loop must be an integer; found {x.dtype.name}")
    if not lower.weak and not upper.weak and lower.dtype != upper.dtype:
        raise DtypeError(
            f"the bounds of fori_loop must have one dtype; found lower {lower.dtype.name} and "
            f"upper {upper.dtype.name}"
        )
    dtype = result_dtype([(lower.dtype, lower.weak), (upper.dtype, upper.weak)])
    end = convert(upper, dtype)

    def is_below(state: Any) -> Tracer:
        return compare(state[0], end, "LT")

    def step(state: Any) -> Any:
        i, value = state
        index = Tracer(i.value, active_trace(), weak=lower.weak and upper.weak)
        return emit(hlo.add, i, constant(1, dtype)), body_fun(index, value)

    start = strong(convert(lower, dtype)), init
    return emit_while("fori_loop", is_below, step, start, widens=False)[1]


__all__ = ["emit_while", "fori_loop", "while_loop"]
