"""A few operations of our own, so that tests of the core do not need `plugrt.array_api`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.tracing import emit as e
from plugrt.tracing.operation import operation
from plugrt.tracing.promotion import result_dtype


def _together(x: Any, y: Any) -> tuple[Any, Any]:
    dtype = result_dtype([(x.dtype, x.weak), (y.dtype, y.weak)])
    shape = np.broadcast_shapes(x.shape, y.shape)
    return tuple(e.broadcast_to(e.convert(z, dtype), shape) for z in (x, y))


@operation
def add(x: Any, y: Any) -> Any:
    return e.emit(e.hlo.add, *_together(x, y))


@operation
def mul(x: Any, y: Any) -> Any:
    return e.emit(e.hlo.multiply, *_together(x, y))


@operation
def div(x: Any, y: Any) -> Any:
    return e.emit(e.hlo.divide, *_together(x, y))


@operation
def sin(x: Any) -> Any:
    return e.emit(e.hlo.sine, x)


@operation
def log(x: Any) -> Any:
    return e.emit(e.hlo.log, x)


@operation
def total(x: Any) -> Any:
    zero = e.constant(np.zeros((), x.dtype))
    (result,) = e.reduce([x], [zero], range(x.ndim), lambda a, b: [e.emit(e.hlo.add, a, b)])
    return result
