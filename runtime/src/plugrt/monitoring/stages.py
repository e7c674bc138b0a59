"""`record_stage`: a step from a function to a program, logged, and recorded as JAX does."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from plugrt.monitoring.listeners import (
    is_anyone_listening,
    record_event_duration_secs,
    record_event_time_span,
    record_scalar,
)
from plugrt.monitoring.names import (
    BACKEND_COMPILE_EVENT,
    COMPILE,
    JAXPR_TO_MLIR_MODULE_EVENT,
    JAXPR_TRACE_EVENT,
    LOWER,
    TRACE,
)
from plugrt.settings.declarations import config

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
    record_scalar(theirs, begin, fun_name=name)
    failed = True
    try:
        yield
        failed = False
    finally:
        seconds = time.perf_counter() - start
        if ours is not None and not failed:
            logger.log(compile_log_level(), "Finished %s %s in %.3f s", ours, fun_name, seconds)
        if is_anyone_listening():
            if ours is not None and not failed:
                record_event_duration_secs(event, seconds, fun_name=fun_name)
            record_event_duration_secs(theirs, seconds, fun_name=name)
            record_event_time_span(theirs, begin, begin + seconds, fun_name=name)
