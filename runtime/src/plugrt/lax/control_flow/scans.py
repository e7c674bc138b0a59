"""`scan` and `map`: loops over the leading axis of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from plugrt.errors import ArgumentError, ShapeError
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.lax.control_flow.counted_loop import emit_loop, steps_per_round
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.control_flow.python_control_flow import run_map, run_scan


@with_argument_errors
def scan(
    f: Callable[[Any, Any], tuple[object, object]],
    init: object,
    xs: object = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Returns (the last carry, the stacked outputs) of ``carry, y = f(carry, x)`` along axis 0.

    ``xs`` is a pytree of arrays with one leading length (None: ``length`` steps without input);
    carries keep their structure, shapes and dtypes. ``reverse`` goes from the last to the first,
    with outputs at their inputs' indices; ``unroll`` steps (True: all) make one iteration of the
    loop. Raises `ShapeError` where leading lengths differ or a leaf is 0-d, `ArgumentError` without
    both ``xs`` and ``length``, and `StructureError`, `ShapeError` or `DtypeError` where ``f``
    changes the carry's type. As ``jax.lax.scan``, except that outputs computed from a carry that
    loses its weak type in a step are not weakly typed, either.

    >>> lax.scan(lambda c, x: (c + x, c), xp.asarray(0), xp.asarray([1, 2, 3]))
    (Array(6, dtype=int32), Array([0, 1, 3], dtype=int32))
    """
    steps = _length(xs, length)
    rounds = steps_per_round(unroll, steps)

    def run(init: object, xs: object) -> Any:
        return emit_loop(
            "scan", lambda _, c, x: f(c, x), init, xs, steps, reverse=reverse, unroll=rounds
        )

    static = (steps, bool(reverse), rounds)
    in_python = partial(run_scan, length=steps, reverse=bool(reverse)) if steps else None
    operands = {"init": init, "xs": xs}
    result: tuple[object, object] = launch(
        "scan", (f,), static, operands, run, in_python, reads_once=True
    )
    return result


@with_argument_errors
def map(f: Callable[[Any], object], xs: object, *, batch_size: int | None = None) -> Any:
    """Returns the stacked results of ``f(x)`` for each x along the leading axis of ``xs``.

    Each iteration of the loop computes ``batch_size`` elements. Raises as `scan`. As
    ``jax.lax.map``, which vectorises them instead.

    >>> lax.map(lambda x: x * x, xp.asarray([1, 2, 3]))
    Array([1, 4, 9], dtype=int32)
    """
    steps = _length(xs, None)
    rounds = steps_per_round(batch_size or 1, steps)

    def run(xs: object) -> Any:
        return emit_loop(
            "map", lambda _, c, x: (c, f(x)), (), xs, steps, reverse=False, unroll=rounds
        )[1]

    in_python = partial(run_map, length=steps) if steps else None
    return launch("map", (f,), (steps, rounds), {"xs": xs}, run, in_python, reads_once=False)


def _length(xs: object, length: int | None) -> int:
    """Returns the number of steps; raises unless all leaves have that length."""
    found = [(f"xs{path}", getattr(x, "shape", None)) for path, x in pytrees.flatten_with_paths(xs)]
    for name, shape in found:
        if not shape:
            what = "is a scalar" if shape == () else "has no shape"
            raise ShapeError(f"scan takes xs with a leading axis, and {name} {what}")
    lengths = {shape[0] for _, shape in found if shape}
    if length is not None:
        lengths.add(int(length))
    if len(lengths) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in found)
        asked = "" if length is None else f"length={length}, and "
        raise ShapeError(
            f"scan needs one length for all of xs; found {asked}leaves of these shapes: {listed}"
        )
    if not lengths:
        raise ArgumentError("scan without xs needs to be told its length")
    return int(lengths.pop())
