"""Launches a jitted function's program on several devices with no code around the launch.

No host can be faster. On cpu jaxlib's functions are called from Python, on a PJRT library its
functions are called from C (floor.c). Prepare the environment before importing this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from floor import Floor

import plugrt
from harness import Timer, find_library, timed
from plugrt.base.xla_environment import reserve_threads
from plugrt.execution.launches.programs import compile_options
from plugrt_cpu import adapter


def launch_alone(platform: str, function: Any, *values: Any) -> Timer:
    """Returns the timer of launches including the wait for their results."""
    if platform == "cpu":
        return timed(launch_by_jaxlib(function, *values))
    return launch_from_c(function, *values)


def launch_by_jaxlib(function: Any, *values: Any) -> Callable[[], None]:
    """Returns launches by jaxlib on all devices at once, which wait for their results."""
    program = function.lower(*values).compile().runtime_executable()
    program = getattr(program, "_loaded", program)  # without the limit of launches in flight
    row = [value._shards.raw for value in values]

    def call() -> None:
        with program.client.launch_lock:
            adapter.prepare_several_devices()
            made = adapter.take_results(program._launch(row), program._handlers, False)
        adapter.wait_for_all(made)

    return call


def launch_from_c(function: Any, *values: Any, reserved: bool = True) -> Timer:
    """Returns launches on all devices from C, which wait for their results and free them.

    The client has two threads per device, like plugrt's; one, like JAX's, if ``reserved`` is false.
    Each part of an argument is a 1-d array: XLA's libraries compare sizes.
    """
    traced = function.trace(*values)
    (size,) = {part.data.size for value in values for part in value.addressable_shards}
    with reserve_threads(plugrt.device_count() if reserved else 1):
        floor = Floor(find_library())
    return floor.launch(
        traced.lower().as_text(),
        np.ones(size, np.float32),
        len(values),
        len(traced.staged.output_types),
        wait=True,
        options=compile_options(traced._launch(), traced.staged.plan),
    )
