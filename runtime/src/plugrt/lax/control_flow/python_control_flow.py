"""Control flow run by Python under ``disable_jit``: bodies run operation by operation.

A debugger can step through them, and `debug_nans` finds the operation in a loop that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from plugrt.execution import tree
from plugrt.execution.host_values import as_array
from plugrt.lax.shapes import concatenate, expand_dims
from plugrt.lax.slicing import index_in_dim
from plugrt.settings.declarations import config
from plugrt.tracing.trace import current_trace

T = TypeVar("T")


def runs_in_python() -> bool:
    """Whether control flow is to run in Python: ``config.disable_jit`` holds, nothing is traced."""
    return bool(config.disable_jit) and current_trace() is None


def to_arrays(title: str, value: T) -> T:
    """Returns a pytree with its leaves as arrays."""
    found: T = tree.map(lambda x: as_array(x, f"a value in {title}"), value)
    return found


def run_while(cond_fun: Callable[[Any], Any], body_fun: Callable[[T], T], value: T) -> T:
    """Runs `while_loop`."""
    value = to_arrays("while_loop", value)
    while bool(cond_fun(value)):
        value = body_fun(value)
    return to_arrays("while_loop", value)


def run_counted(
    first: int, last: int, dtype: np.dtype[Any], body_fun: Callable[[Any, T], T], value: T
) -> T:
    """Runs `fori_loop`."""
    value = to_arrays("fori_loop", value)
    for i in range(first, last):
        value = body_fun(as_array(np.asarray(i, dtype), "the index"), value)
    return to_arrays("fori_loop", value)


def run_scan(
    f: Callable[[Any, Any], Any], carry: Any, xs: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """Runs `scan` of at least one step."""
    carry, xs = to_arrays("scan", carry), to_arrays("scan", xs)
    rows: list[tuple[int, Any]] = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, tree.map(lambda x, i=i: index_in_dim(x, i, 0, False), xs))
        rows.append((i, to_arrays("scan", y)))
    ordered = [y for _, y in sorted(rows, key=lambda row: row[0])]
    return to_arrays("scan", carry), tree.map(_stack, *ordered)


def _stack(*rows: Any) -> Any:
    return concatenate([expand_dims(row, (0,)) for row in rows], 0)


def run_branch(index: int, branches: Sequence[Callable[..., Any]], operands: Any) -> Any:
    """Runs `cond` and `switch`."""
    chosen = branches[min(max(index, 0), len(branches) - 1)]
    return to_arrays("a branch", chosen(*to_arrays("a branch", operands)))
