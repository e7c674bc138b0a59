"""`compile_program`: compilation and loading, with logging, dumps, timing and the cache."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from plugrt import monitoring
from plugrt.errors import PjrtError
from plugrt.execution.compilation.compilation_cache import entry_for
from plugrt.execution.compilation.ir_dumps import dump_executable, dump_program
from plugrt.execution.compilation.narrow_types import compute_narrow_types
from plugrt.execution.compilation.program_rewriters import rewrite_program
from plugrt.execution.compilation.quick_compile import add_quick_options, compile_or_drop
from plugrt.execution.executables.bounded_executable import bound_launches
from plugrt.execution.executables.callback_refusals import require_host_callbacks
from plugrt.execution.executables.custom_call_targets import add_handlers, explain_refusal
from plugrt.execution.executables.tracked_executable import track_launches
from plugrt.frames.argument_errors import after_checks
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program, TensorType
from plugrt.monitoring.stages import compile_log_level, logger, record_stage
from plugrt.settings.declarations import config


@after_checks
def compile_program(
    client: Client, program: Program, options: CompileOptions, inputs: Sequence[TensorType] = ()
) -> LoadedExecutable:
    """Returns the program compiled and loaded by ``client``, or loaded from the persistent cache.

    Says so in the log at WARNING under ``config.log_compiles`` (else DEBUG), and tells
    `plugrt.monitoring` how long it took. Rewriters see the program first (`rewrite_program`).
    Raises the backend's `PjrtError`.
    """
    program = compute_narrow_types(rewrite_program(program, client), client, options)
    dump_program(program)
    with record_stage(monitoring.COMPILE, program.name):
        executable = _compile_or_load(client, program, options, inputs)
    dump_executable(program.name, executable.executable)
    return executable


def compile_settings() -> tuple[Any, ...]:
    """Returns what settings of this thread change of compiled programs, for the keys of caches."""
    return config.program_rewriters, config.quick_compile_bytes, config.use_shardy_partitioner


def _compile_or_load(
    client: Client, program: Program, options: CompileOptions, inputs: Sequence[TensorType]
) -> LoadedExecutable:
    require_host_callbacks(client, program, options)
    add_handlers(client, program)
    quick = add_quick_options(client, program, options)
    # The functions that a program calls are this process's.
    entry = None if program.callbacks else entry_for(client, program, quick)
    kept = entry.load() if entry else None
    level = compile_log_level()
    if kept:
        logger.log(level, "Persistent compilation cache hit for %s", program.name)
        return track_launches(bound_launches(kept, program), program)
    types = ", ".join(map(str, inputs))
    logger.log(level, "Compiling %s for %s with %s", program.name, client.platform, f"({types})")
    start = time.perf_counter()
    try:
        executable = compile_or_drop(client, program, options, quick)
    except PjrtError as error:
        explained = explain_refusal(error)
        if explained is error:
            raise
        raise explained from error
    seconds = time.perf_counter() - start
    monitoring.record_event_duration_secs(
        monitoring.COMPILE, seconds, fun_name=program.name, platform=client.platform
    )
    logger.log(level, "Finished compiling %s in %.3f s", program.name, seconds)
    if entry:
        entry.store(executable, seconds)
    return track_launches(bound_launches(executable, program), program)
