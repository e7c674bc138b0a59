"""Names of recorded events; `record_stage`: a step from a function to a program, logged."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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
"""Duration: starting one client (``platform=`` the name it was asked for by)."""
LAUNCH: Final = "/plugrt/launch"
"""Duration: one launch on the host, from arguments to results that need not be there yet.

Recorded where ``config.record_launches`` is set, as it is within `timeline`.
"""
DEVICE_PUT: Final = "/plugrt/device_put"
"""Duration: one call of `plugrt.device_put` (a copy may go on when it returns); ``bytes=`` how many
were put on devices, copied, or moved between them."""
RESHARD: Final = "/plugrt/reshard"
"""Duration: one array brought to another sharding without the host, in `plugrt.device_put` or as an
argument (copies may go on); ``bytes=`` how many went from one device to another."""
READ: Final = "/plugrt/read"
"""Duration: the first read of an array on the host, and the wait for its data if they are not there
(``bytes=`` how many)."""
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
"""Event: a program was looked for in the persistent cache."""
JAX_CACHE_HIT: Final = "/jax/compilation_cache/cache_hits"
"""JAX's name of `CACHE_HIT`."""
JAX_CACHE_MISS: Final = "/jax/compilation_cache/cache_misses"
"""JAX's name of `CACHE_MISS`."""
JAX_CACHE_SAVED: Final = "/jax/compilation_cache/compile_time_saved_sec"
"""Duration: how long the program had taken to compile, less how long it took to load."""
JAX_CACHE_RETRIEVAL: Final = "/jax/compilation_cache/cache_retrieval_time_sec"
"""Duration: reading and loading a program of the persistent cache."""


_JAX_NAMES = {
    TRACE: JAXPR_TRACE_EVENT,
    LOWER: JAXPR_TO_MLIR_MODULE_EVENT,
    COMPILE: BACKEND_COMPILE_EVENT,
}
_SAYS = {TRACE: "tracing", LOWER: "lowering"}
"""What the log says of a stage; `plugrt.execution.compilation.compiler` says more of
compilations."""
logger = logging.getLogger("plugrt.compile")


def compile_log_level() -> int:
    """Returns the level at which stages are logged: WARNING under ``config.log_compiles``."""
    return logging.WARNING if config.log_compiles else logging.DEBUG


@contextmanager
def record_stage(event: str, fun_name: str) -> Iterator[None]:
    """Records what runs in the block as a stage of ``fun_name``.

    As JAX does: a scalar with the time at the begin, then a duration and a time span, under JAX's
    name of the stage, also where the block raises; with plugrt's own duration for tracing and
    lowering, if it does not. (What it records of a compilation, plugrt's does only where the
    backend compiled: not for what the cache had.)

    Raises what the block raises.
    """
    begin, start = time.time(), time.perf_counter()
    theirs, ours = _JAX_NAMES[event], _SAYS.get(event)
    # As in JAX, a function has its bare name as long as it is no program.
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
            logger.log(compile_log_level(), "Finished %s %s in %.3f s", ours, fun_name, seconds)
        if any(of_all_kinds):
            if ours is not None and not failed:
                record_event_duration_secs(event, seconds, fun_name=fun_name)
            record_event_duration_secs(theirs, seconds, fun_name=name)
            record_event_time_span(theirs, begin, begin + seconds, fun_name=name)
