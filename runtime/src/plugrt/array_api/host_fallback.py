"""Helpers for functions with data-dependent result shapes: compute in NumPy, put back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import DataDependentShape
from plugrt.execution.arrays.array import Array
from plugrt.execution.transfers.host_values import as_array
from plugrt.execution.transfers.whole_arrays import put_beside
from plugrt.tracing.tracer import Tracer


def require_concrete(function: str, x: Any, cure: str, name: str = "x") -> Array:
    """Returns an argument as a concrete array.

    Raises `DataDependentShape` with the ``cure`` for a traced array, `NotAnArray` for others.
    """
    if type(x) is Tracer:
        where = f" ({x.origin})" if x.origin else ""
        raise DataDependentShape(
            f"{name} of {function} is the traced array {x!r}{where}, and the shape of what "
            f"{function} returns depends on its data, which are not known while "
            f"{x.trace.name!r} is traced. {cure}; or leave this part outside of the traced function"
        )
    return as_array(x, f"argument {name!r} of {function}")


def put_like(x: Array, host: npt.NDArray[Any]) -> Array:
    """Returns host data as an array where ``x`` is, whole on each device; committed if ``x`` is."""
    host = np.ascontiguousarray(host).reshape(host.shape)
    return put_beside(host, x.sharding, x.committed)
