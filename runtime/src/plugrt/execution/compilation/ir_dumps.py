"""Dumps of programs into ``config.dump_ir_to``: a numbered file for each stage of each program."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

from plugrt.errors import PlugrtError
from plugrt.frames.traceback_filter import warn_user
from plugrt.interface import Executable, Program
from plugrt.settings.declarations import config

# Process-wide: the files of a process are numbered in one sequence.
_numbers = itertools.count()


def dump_program(program: Program) -> None:
    """Writes the program for a backend: StableHLO text, and HLO if requested.

    Without jaxlib the program cannot be read and is written unchanged. A file that cannot be
    written is a warning, not an error.
    """
    if not config.dump_ir_to:
        return
    if program.format != "mlir":
        _write(program.name, "stablehlo", f".{program.format}", lambda: program.code)
        return
    _write(program.name, "stablehlo", ".mlir", lambda: _text(program))
    _write(program.name, "hlo", ".hlo", lambda: _hlo_text(program))


def dump_executable(name: str, executable: Executable) -> None:
    """Writes the program that a backend compiled, if requested, like `dump_program`."""
    from plugrt.stablehlo.hlo import optimized_text

    _write(name, "optimized", ".txt", lambda: optimized_text(executable).encode())


def _text(program: Program) -> bytes:
    from plugrt.stablehlo.modules import parse

    return str(parse(program.code, program.name)).encode()


def _hlo_text(program: Program) -> bytes:
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.xla_computation import XlaComputation

    return XlaComputation(parse(program.code, program.name)).as_hlo_text().encode()


def _write(name: str, stage: str, suffix: str, content: Callable[[], bytes]) -> None:
    folder = config.dump_ir_to
    if not folder or stage not in config.dump_ir_modes:
        return
    safe = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[:100]
    path = Path(folder, f"plugrt_{os.getpid()}_{next(_numbers):04d}_{safe}_{stage}{suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content())
    except (OSError, PlugrtError) as error:
        warn_user(
            f"dump_ir_to (JAX_DUMP_IR_TO): {path} was not written "
            f"({type(error).__name__}: {error}); the program runs all the same"
        )
