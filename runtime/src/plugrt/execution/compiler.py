"""`compile_program`: compilation and loading, with logging, dumps, timing and the cache."""

from __future__ import annotations

import itertools
import logging
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from plugrt import monitoring
from plugrt.execution.collective_launches import bound_launches
from plugrt.execution.compilation_cache import entry_for
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program, TensorType
from plugrt.settings.declarations import config

logger = logging.getLogger("plugrt.compile")
_dumped = itertools.count()


def compile_program(
    client: Client, program: Program, options: CompileOptions, inputs: Sequence[TensorType] = ()
) -> LoadedExecutable:
    """Returns the program compiled and loaded by ``client``, or loaded from the persistent cache.

    Says so in the log at WARNING under ``config.log_compiles`` (else DEBUG), and tells
    `plugrt.monitoring` how long it took. Raises the backend's `PjrtError`.
    """
    with monitoring.stage(monitoring.COMPILE, program.name):
        return _compile_or_load(client, program, options, inputs)


def _compile_or_load(
    client: Client, program: Program, options: CompileOptions, inputs: Sequence[TensorType]
) -> LoadedExecutable:
    entry = entry_for(client, program, options)
    kept = entry.load() if entry else None
    level = monitoring.compile_log_level()
    if kept:
        logger.log(level, "Persistent compilation cache hit for %s", program.name)
        return bound_launches(kept, program)
    types = ", ".join(map(str, inputs))
    logger.log(level, "Compiling %s for %s with %s", program.name, client.platform, f"({types})")
    start = time.perf_counter()
    executable = client.compile(program, options)
    seconds = time.perf_counter() - start
    monitoring.record_event_duration_secs(
        monitoring.COMPILE, seconds, fun_name=program.name, platform=client.platform
    )
    logger.log(level, "Finished compiling %s in %.3f s", program.name, seconds)
    if entry:
        entry.store(executable, seconds)
    return bound_launches(executable, program)


def dump(name: str, text: str) -> Path | None:
    """Writes a program's text into ``config.dump_ir_to`` if that is set; returns where."""
    if not config.dump_ir_to:
        return None
    folder = Path(config.dump_ir_to)
    folder.mkdir(parents=True, exist_ok=True)
    safe = re.sub(r"[^\w.-]", "_", name)[:100]
    path = folder / f"plugrt_{os.getpid()}_{next(_dumped):04d}_{safe}.mlir"
    path.write_text(text)
    return path
