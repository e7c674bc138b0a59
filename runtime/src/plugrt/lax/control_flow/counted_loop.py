"""`emit_loop`: adds the loop of a known number of steps that `scan` and `fori_loop` use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentError, StructureError
from plugrt.execution.trees import pytrees
from plugrt.lax.control_flow.loop_carry import Carry, describe
from plugrt.lax.control_flow.regions import Body, new_argument, region_holder
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import (
    active_trace,
    compare,
    concatenate,
    constant,
    emit,
    full,
    hlo,
    reshape,
    slice_,
    strong,
    with_weakness,
    wrap,
    wrap_one,
)
from plugrt.tracing.key_words import by_words
from plugrt.tracing.tracer import Tracer

Step = Callable[[Any, Any, Any], tuple[Any, Any]]
"""Maps the index of the step, the carry and the slices to the new carry and outputs."""

_INDEX = np.dtype(np.int32)


def emit_loop(
    title: str,
    step: Step,
    init: object,
    xs: object,
    length: int,
    *,
    reverse: bool = False,
    unroll: int = 1,
    widens: bool = False,
) -> tuple[Any, Any]:
    """Adds a loop of ``length`` steps to the trace; returns (last carry, stacked outputs).

    ``unroll`` steps make one iteration of a ``stablehlo.while``. The remaining steps, or all if
    there would be at most one iteration, are added one after another. ``widens`` is for `Carry`.
    """
    steps = _LoopSteps(title, step, init, xs, length, reverse, widens)
    rounds = length // unroll
    if rounds > 1:
        values, stacked = _emit_rounds(steps, rounds, unroll)
        values, stacked = steps.add_steps(rounds * unroll, length % unroll, values, stacked)
    else:
        values, stacked = _emit_unrolled(steps)
    assert steps.outputs is not None
    stacked = [with_weakness(y, weak) for y, weak in zip(stacked, steps.weak, strict=True)]
    ended = steps.carry.finish(values)
    return steps.carry.rebuild(ended), pytrees.unflatten(steps.outputs, stacked)


def steps_per_round(unroll: int | bool, length: int) -> int:
    """Returns the number of steps in one iteration; True and 0 mean all of them, as in JAX."""
    if unroll is False:
        return 1
    if not isinstance(unroll, int | np.integer) or unroll < 0:
        raise ArgumentError(
            f"unroll must be an integer that is not negative, or a boolean; got {unroll!r}"
        )
    return max(length, 1) if unroll is True or unroll == 0 else int(unroll)


class _LoopSteps:
    """One loop while it is traced: the carry, the inputs, and the results of a step."""

    def __init__(
        self,
        title: str,
        step: Step,
        init: object,
        xs: object,
        length: int,
        reverse: bool,
        widens: bool,
    ) -> None:
        self._title, self._step = title, step
        self.length, self._reverse = length, reverse
        self.carry = Carry(title, init, widens)
        flat, self._xs_spec = pytrees.flatten(xs)
        self._xs = [as_tracer(x) for x in flat]
        self.outputs: pytrees.PyTreeSpec | None = None
        self.weak: list[bool] = []
        """Whether each output of a step is weakly typed; so are the stacked outputs."""

    def add_step(
        self, i: Tracer | int, values: Sequence[Tracer], at: Tracer | int
    ) -> tuple[list[Tracer], list[Tracer]]:
        """Adds step ``i``, which reads at ``at``; returns leaves of the new carry and outputs."""
        rows = [
            with_weakness(by_words("each", _read_row, leaf, at), leaf.weak) for leaf in self._xs
        ]
        x = pytrees.unflatten(self._xs_spec, rows)
        index = constant(i, _INDEX) if isinstance(i, int) else i
        returned = self._step(index, self.carry.rebuild(values), x)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise StructureError(
                f"the body of {self._title} must return a pair (carry, y); found {returned!r:.80} "
                f"of type {type(returned).__qualname__}"
            )
        flat, spec = pytrees.flatten(returned[1])
        if self.outputs is not None and spec != self.outputs:
            raise StructureError(
                f"the body of {self._title} returned outputs of different structures: "
                f"{describe(self.outputs)} and {describe(spec)}"
            )
        self.outputs = spec
        found = [as_tracer(y, f"an output of the body of {self._title}") for y in flat]
        self.weak = [y.weak for y in found]
        return self.carry.check_returned(returned[0]), [strong(y) for y in found]

    def add_steps(
        self,
        start: Tracer | int,
        count: int,
        values: Sequence[Tracer],
        stacked: Sequence[Tracer] | None,
    ) -> tuple[list[Tracer], list[Tracer]]:
        """Adds ``count`` steps, whose outputs go into ``stacked`` (None: new block arguments)."""
        for k in range(count):
            i = start + k if isinstance(start, int) else _add_constant(start, k)
            at = self.row_index(i)
            values, ys = self.add_step(i, values, at)
            if stacked is None:
                stacked = [new_argument(self.length, y) for y in ys]
            pairs = zip(stacked, ys, strict=True)
            stacked = [by_words("each", _write_row, s, y, at) for s, y in pairs]
        return list(values), list(stacked or ())

    def depend_on_inputs(
        self, values: Sequence[Tracer], stacked: Sequence[Tracer]
    ) -> tuple[list[Tracer], list[Tracer]]:
        """Makes results without steps depend on the inputs, whose device they get, as in JAX."""
        if not self._xs:
            return [*values], [*stacked]
        given = [*values, *stacked, *map(strong, self._xs)]
        location = active_trace().location()
        kept = wrap(hlo.OptimizationBarrierOp([x.value for x in given], loc=location))
        return list(kept[: len(values)]), list(kept[len(values) : len(values) + len(stacked)])

    def row_index(self, i: Tracer | int) -> Tracer | int:
        """Returns the index of the row that step ``i`` reads and writes."""
        if not self._reverse:
            return i
        last = self.length - 1
        if isinstance(i, int):
            return last - i
        found: Tracer = emit(hlo.subtract, constant(last, _INDEX), i)
        return found


def _emit_rounds(steps: _LoopSteps, rounds: int, unroll: int) -> tuple[list[Tracer], list[Tracer]]:
    """Adds the while loop: its state is a counter, the carry, and the stacked outputs."""
    carry = steps.carry

    def body(i: Tracer, *values: Tracer) -> list[Tracer]:
        new, stacked = steps.add_steps(i, unroll, values, None)
        return [_add_constant(i, unroll), *new, *stacked]

    def is_below(i: Tracer, *_: Tracer) -> list[Tracer]:
        return [compare(i, constant(rounds * unroll, _INDEX), "LT")]

    while True:
        with region_holder(2) as holder:
            traced = holder.trace([constant(0, _INDEX), *carry.leaves], body)
            if not carry.settle_types():
                continue
            stacked = [full(y.shape, 0, y.dtype) for y in traced.outputs[1 + len(carry.leaves) :]]
            state = [strong(constant(0, _INDEX)), *carry.leaves, *stacked]
            ended = _emit_while(state, holder.trace(state, is_below), traced)
            last = 1 + len(carry.leaves)
            return list(ended[1:last]), list(ended[last:])


def _emit_while(state: Sequence[Tracer], cond: Body, body: Body) -> tuple[Tracer, ...]:
    values = [x.value for x in state]
    operation = hlo.WhileOp([v.type for v in values], values, loc=active_trace().location())
    cond.move(operation.regions[0])
    body.move(operation.regions[1])
    return wrap(operation)


def _emit_unrolled(steps: _LoopSteps) -> tuple[list[Tracer], list[Tracer]]:
    """Adds all steps without a loop."""
    if any(x.weak for x in steps.carry.leaves) or not steps.length or steps.carry.widens:
        samples = _trace_sample(steps)
    values: list[Tracer] = [strong(x) for x in steps.carry.leaves]
    if not steps.length:
        return steps.depend_on_inputs(values, [full((0, *y.shape), 0, y.dtype) for y in samples])
    rows: list[tuple[int, list[Tracer]]] = []
    for i in range(steps.length):
        at = steps.row_index(i)
        assert isinstance(at, int)
        values, ys = steps.add_step(i, values, at)
        rows.append((at, [by_words("each", _as_row, y) for y in ys]))
    columns = zip(*(ys for _, ys in sorted(rows, key=lambda row: row[0])), strict=True)
    return values, [by_words("each", concatenate, column, 0) for column in columns]


def _trace_sample(steps: _LoopSteps) -> Sequence[Tracer]:
    """Traces a step only for its types: settles the carry's dtypes, returns sample outputs."""
    samples: list[Tracer] = []

    def body(*values: Tracer) -> list[Tracer]:
        samples[:] = []
        zero = constant(0, _INDEX)
        # The inputs may be empty: this step is traced for its types and never run.
        new, ys = steps.add_step(zero, values, zero)
        samples.extend(ys)
        return new

    while True:
        with region_holder(1) as holder:
            holder.trace(steps.carry.leaves, body)
            if steps.carry.settle_types():
                return samples


def _add_constant(i: Tracer, k: int) -> Tracer:
    result: Tracer = emit(hlo.add, i, constant(k, _INDEX)) if k else i
    return result


def _read_row(x: Tracer, at: Tracer | int) -> Tracer:
    """Returns ``x[at]``."""
    row = (1, *x.shape[1:])
    if isinstance(at, int):
        taken = slice_(x, [at, *[0] * (x.ndim - 1)], [at + 1, *x.shape[1:]], [1] * x.ndim)
    elif x.shape[0] == 0:
        taken = full(row, 0, x.dtype)
    else:
        taken = wrap_one(
            hlo.dynamic_slice(
                x.value, _row_start(at, x.ndim), list(row), loc=active_trace().location()
            )
        )
    return reshape(taken, x.shape[1:])


def _as_row(y: Tracer) -> Tracer:
    return reshape(y, (1, *y.shape))


def _write_row(stacked: Tracer, y: Tracer, at: Tracer | int) -> Tracer:
    """Returns ``stacked`` with ``y`` at row ``at``."""
    index = constant(at, _INDEX) if isinstance(at, int) else at
    row = _as_row(y)
    return wrap_one(
        hlo.dynamic_update_slice(
            stacked.value, row.value, _row_start(index, stacked.ndim), loc=active_trace().location()
        )
    )


def _row_start(at: Tracer, ndim: int) -> list[object]:
    zero = constant(0, _INDEX)
    return [at.value, *[zero.value] * (ndim - 1)]
