"""Runs control flow in Python, operation by operation (see `eager.launch`).

So, under ``disable_jit``, a debugger can step through the functions, and `debug_nans` finds the
faulty operation in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from plugrt.execution.transfers.host_values import as_array
from plugrt.execution.trees import pytrees
from plugrt.lax.shapes import concatenate, expand_dims
from plugrt.lax.slicing import index_in_dim

T = TypeVar("T")
Functions = Sequence[Callable[..., Any]]
"""The functions of the control flow, in the order of its parameters."""


def to_arrays(title: str, value: T) -> T:
    """Returns a pytree with its leaves as arrays."""
    found: T = pytrees.map(lambda x: as_array(x, f"a value in {title}"), value)
    return found


def run_while(functions: Functions, init: object) -> Any:
    """Runs a `while_loop` as a Python loop."""
    cond_fun, body_fun = functions
    value = to_arrays("while_loop", init)
    while bool(cond_fun(value)):
        value = body_fun(value)
    return to_arrays("while_loop", value)


def run_counted(
    functions: Functions, init: object, first: int, last: int, dtype: np.dtype[np.generic]
) -> Any:
    """Runs a `fori_loop` as a Python loop over indices of ``dtype``."""
    [body_fun] = functions
    value = to_arrays("fori_loop", init)
    for i in range(first, last):
        value = body_fun(as_array(np.asarray(i, dtype), "the index"), value)
    return to_arrays("fori_loop", value)


def run_scan(
    functions: Functions, init: object, xs: object, length: int, reverse: bool
) -> tuple[Any, Any]:
    """Runs a `scan` of at least one step."""
    [f] = functions
    carry, xs = to_arrays("scan", init), to_arrays("scan", xs)
    rows: list[tuple[int, object]] = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, pytrees.map(lambda x, i=i: index_in_dim(x, i, 0, False), xs))
        rows.append((i, to_arrays("scan", y)))
    ordered = [y for _, y in sorted(rows, key=lambda row: row[0])]
    return to_arrays("scan", carry), pytrees.map(_stack, *ordered)


def run_map(functions: Functions, xs: object, length: int) -> Any:
    """Runs a `map` of at least one step."""
    [f] = functions
    return run_scan([lambda _, x: ((), f(x))], (), xs, length, False)[1]


def _stack(*rows: object) -> object:
    return concatenate([expand_dims(row, (0,)) for row in rows], 0)


def run_condition(functions: Functions, pred: object, operands: object) -> Any:
    """Calls one function of a `cond`."""
    return run_branch(functions, int(not np.asarray(pred)), operands)


def run_branch(functions: Functions, index: object, operands: object) -> Any:
    """Calls one function of a `switch`; clamps the index."""
    chosen = functions[min(max(int(np.asarray(index)), 0), len(functions) - 1)]
    return run_chosen(chosen, operands)


def run_chosen(chosen: Callable[..., object], operands: Any) -> Any:
    """Calls one function with operands as arrays."""
    return to_arrays("a branch", chosen(*to_arrays("a branch", operands)))
