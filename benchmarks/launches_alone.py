"""A jitted function's program over several devices, launched with nothing around the launch.

What no host can save: on cpu jaxlib's functions called from Python, on a PJRT library its functions
called from C (floor.c). To be imported when the environment is prepared.
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
    """Returns the timer of launches that wait for their results."""
    if platform == "cpu":
        return timed(launch_by_jaxlib(function, *values))
    return launch_from_c(function, *values)


def launch_by_jaxlib(function: Any, *values: Any, wait: bool = True) -> Callable[[], None]:
    """Returns launches by jaxlib, which where ``wait`` is true wait for their results.

    Where plugrt launches on each device by itself they do, too.
    """
    program = function.lower(*values).compile().runtime_executable()
    program = getattr(program, "_loaded", program)  # without the bound on launches in flight
    program.execute([value._shards for value in values])  # which finds out how it is launched
    if program._replicas:
        steps = [(launch, handlers) for launch, _, handlers in program._replicas.launches]
        rows = [list(row) for row in zip(*(v._shards.parts() for v in values), strict=True)]
    else:
        steps, rows = [(program._launch, program._handlers)], [[v._shards.raw for v in values]]

    def call() -> None:
        with program._client.launch_lock:
            adapter.prepare_several_devices()
            made: list[Any] = []
            for (launch, handlers), row in zip(steps, rows, strict=True):
                made += adapter.take_results(launch(row), handlers, False)
        if wait:
            adapter.wait_for_all(made)

    return call


def launch_from_c(function: Any, *values: Any, reserved: bool = True) -> Timer:
    """Returns launches on all devices from C, which wait for their results and free them.

    Their client has two threads a device, as plugrt's has; where ``reserved`` is false one, as
    JAX's. Each part of an argument is given as an array of one dimension: libraries of XLA compare
    sizes.
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
