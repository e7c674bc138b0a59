"""Names of recorded events; `record_stage`: a step from a function to a program, logged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from plugrt.base.logger import get_logger
from plugrt.monitoring.listeners import (
    of_all_kinds,
    record_event_duration_secs,
    record_event_time_span,
    record_scalar,
)
from plugrt.settings.declarations import config

TRACE: Final = "/plugrt/trace"
"""Duration: tracing one Python function into a StableHLO module."""
LOWER: Final = "/plugrt/lower"
"""Duration: passes over a module and its serialisation for a backend."""
COMPILE: Final = "/plugrt/compile"
"""Duration: a backend's compilation of one program."""
CACHE_HIT: Final = "/plugrt/cache/hit"
"""Event: a compiled program was found in the persistent compilation cache."""
CACHE_MISS: Final = "/plugrt/cache/miss"
"""Event: a program was looked for in the persistent compilation cache and not found."""
PLUGIN_LOAD: Final = "/plugrt/plugin/load"
"""Duration: importing one plugin (``plugin=`` its name)."""
CLIENT_CREATED: Final = "/plugrt/client/create"
"""Duration: starting one client (``platform=`` the requested name)."""
LAUNCH: Final = "/plugrt/launch"
"""Duration: one launch on the host, from its arguments to results that may not be ready yet.

Recorded if ``config.record_launches`` is set, as it is within `timeline`.
"""
DEVICE_PUT: Final = "/plugrt/device_put"
"""Duration: one call of `plugrt.device_put` (a copy may continue after it returns); ``bytes=`` the
number of bytes put on devices, copied, or moved between them."""
RESHARD: Final = "/plugrt/reshard"
"""Duration: resharding one array without the host, in `plugrt.device_put` or as an argument (copies
may continue); ``bytes=`` the number of bytes copied between devices."""
READ: Final = "/plugrt/read"
"""Duration: the first read of an array on the host, with the wait for its data (``bytes=`` their
number)."""
ANNOTATION: Final = "/plugrt/annotation"
"""Duration: a block of `plugrt.profiler.annotate` (``fun_name=`` its name)."""
AWAIT: Final = "/plugrt/await"
"""Duration: one array's `block_until_ready`."""

JAXPR_TRACE_EVENT: Final = "/jax/core/compile/jaxpr_trace_duration"
"""JAX's name of `TRACE`: a scalar with the time at its begin, a duration and a time span."""
JAXPR_TO_MLIR_MODULE_EVENT: Final = "/jax/core/compile/jaxpr_to_mlir_module_duration"
"""JAX's name of `LOWER`."""
BACKEND_COMPILE_EVENT: Final = "/jax/core/compile/backend_compile_duration"
"""JAX's name of compilation, or of finding the program in the persistent cache."""
JAX_CACHE_REQUEST: Final = "/jax/compilation_cache/compile_requests_use_cache"
"""Event: a lookup of a program in the persistent cache."""
JAX_CACHE_HIT: Final = "/jax/compilation_cache/cache_hits"
"""JAX's name of `CACHE_HIT`."""
JAX_CACHE_MISS: Final = "/jax/compilation_cache/cache_misses"
"""JAX's name of `CACHE_MISS`."""
JAX_CACHE_SAVED: Final = "/jax/compilation_cache/compile_time_saved_sec"
"""Duration: the compilation time of a cached program, minus the time to load it."""
JAX_CACHE_RETRIEVAL: Final = "/jax/compilation_cache/cache_retrieval_time_sec"
"""Duration: reading and loading a program of the persistent cache."""


_JAX_NAMES = {
    TRACE: JAXPR_TRACE_EVENT,
    LOWER: JAXPR_TO_MLIR_MODULE_EVENT,
    COMPILE: BACKEND_COMPILE_EVENT,
}
_SAYS = {TRACE: "tracing", LOWER: "lowering"}
"""Words for the log; `plugrt.execution.compilation.compiler` logs compilations."""
logger = get_logger("plugrt.compile")


def compile_log() -> Callable[..., None]:
    """Returns the logger's method for stages: ``warning`` under ``config.log_compiles``."""
    return logger.warning if config.log_compiles else logger.debug


@contextmanager
def record_stage(event: str, fun_name: str) -> Iterator[None]:
    """Records the block as a stage of ``fun_name``.

    As in JAX, it records a scalar with the start time, then a duration and a time span, under JAX's
    name of the stage, also if the block raises. For tracing and lowering it also records plugrt's
    own duration, if the block does not raise. (For a compilation, plugrt's duration is recorded
    only if the backend compiled, not for a program from the cache.)

    Raises what the block raises.
    """
    begin, start = time.time(), time.perf_counter()
    theirs, ours = _JAX_NAMES[event], _SAYS.get(event)
    # As in JAX, a function has its bare name until it is a program.
    name = fun_name if event == TRACE else f"jit({fun_name})"
    if any(of_all_kinds):
        record_scalar(theirs, begin, fun_name=name)
    failed = True
    try:
        yield
        failed = False
    finally:
        seconds = time.perf_counter() - start
        if ours is not None and not failed:
            compile_log()("Finished %s %s in %.3f s", ours, fun_name, seconds)
        if any(of_all_kinds):
            if ours is not None and not failed:
                record_event_duration_secs(event, seconds, fun_name=fun_name)
            record_event_duration_secs(theirs, seconds, fun_name=name)
            record_event_time_span(theirs, begin, begin + seconds, fun_name=name)
