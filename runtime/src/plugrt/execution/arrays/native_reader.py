"""`compile_reader`: the compiled core's reads of arrays by functions of their backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.interface import Client, Memory, TensorType
from plugrt.native.native_core import core


def compile_reader(client: Client, part: TensorType, memory: Memory) -> Any:
    """Returns what reads arrays of this type; None where Python does."""
    if core is None or not client.capabilities.zero_copy_get:
        return None
    steps = client.read_steps(part, memory)
    if steps is None:
        return None
    return core.FunctionReader(
        held_class=steps.held_class,
        is_ready=steps.is_ready,
        wait=steps.wait,
        lock=steps.lock,
        view=steps.view,
        shape=part.shape,
        dtype=part.dtype,
        unless=steps.unless,
        format=_format(part.dtype),
    )


def _format(dtype: np.dtype[Any]) -> str | None:
    """Returns the code of a dtype in Python's protocol of buffers; None for those without one."""
    try:
        return np.empty((), dtype).data.format
    except ValueError:
        return None
