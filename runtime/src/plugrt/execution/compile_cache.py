"""The persistent compilation cache: executables kept in a folder from run to run.

On where ``config.compilation_cache_dir`` names a folder, for every backend that declares
``executable_serialization``; the settings, their names and defaults are JAX's. An entry's name is
a hash of the program (without source lines), the options, the platform with its version, and what
else decides what a compiler makes. A fault of the cache is a warning, or raises under
``config.raise_persistent_cache_errors``; a program is compiled then as if there were no cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import tempfile
from importlib import metadata
from pathlib import Path

from plugrt import monitoring
from plugrt.config import config
from plugrt.errors import Internal, PjrtError
from plugrt.execution.frames import warn_user
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program

_SUFFIX = ".plugrt-executable"
_FLAGS = ("_flags", "_init_args")


def entry_for(client: Client, program: Program, options: CompileOptions) -> Path | None:
    """Returns where the program's executable is kept, None where nothing is to be kept."""
    folder = config.compilation_cache_dir
    if not folder or not config.enable_compilation_cache:
        return None
    if not client.capabilities.executable_serialization:
        return None
    name = re.sub(r"[^\w.-]", "_", program.name)[:60]
    return Path(folder) / f"{name}-{_key(client, program, options)}{_SUFFIX}"


def _key(client: Client, program: Program, options: CompileOptions) -> str:
    assignment = options.device_assignment
    facts = [
        program.format,
        metadata.version("plugrt"),
        client.platform,
        client.platform_version,
        sorted({device.kind for device in client.devices()}),
        # The flags that libraries read for themselves.
        [config.lookup(o)[0] for o in config.declared().values() if o.name.endswith(_FLAGS)],
        options.num_replicas,
        options.num_partitions,
        assignment and assignment.device_ids,
        options.use_spmd_partitioning,
        options.use_shardy_partitioner,
        options.parameter_is_tupled,
        sorted(options.env_overrides.items()),
        options.encoded,
    ]
    digest = hashlib.sha256(repr(facts).encode())
    digest.update(_without_lines(program))
    return digest.hexdigest()


def _without_lines(program: Program) -> bytes:
    """Returns the program without its source lines, so that moving a function keeps its entry."""
    if program.format != "mlir" or importlib.util.find_spec("jaxlib") is None:
        return program.code
    from plugrt.stablehlo.artifacts import bytecode, parse
    from plugrt.stablehlo.passes import run_passes

    module = parse(program.code, program.name)
    run_passes(module, "strip-debuginfo")
    return bytecode(module)


def load(entry: Path, client: Client, options: CompileOptions) -> LoadedExecutable | None:
    """Returns the executable that is kept there, None if there is none that can be used."""
    try:
        executable = client.deserialize_executable(entry.read_bytes(), options)
    except FileNotFoundError:
        monitoring.record_event(monitoring.CACHE_MISS, platform=client.platform)
        return None
    except (OSError, PjrtError, ValueError) as error:
        _fault(f"{entry} cannot be used, and its program is compiled again", error)
        monitoring.record_event(monitoring.CACHE_MISS, platform=client.platform)
        return None
    with contextlib.suppress(OSError):
        os.utime(entry)  # the least recently used entries go first
    monitoring.record_event(monitoring.CACHE_HIT, platform=client.platform)
    return executable


def store(entry: Path, executable: LoadedExecutable, seconds: float) -> None:
    """Keeps an executable that took ``seconds`` to compile, if the settings find it worth that."""
    if seconds < config.persistent_cache_min_compile_time_secs:
        return
    try:
        data = executable.executable.serialize()
        if len(data) < config.persistent_cache_min_entry_size_bytes:
            return
        entry.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and moved: another process reads all of it or nothing.
        with tempfile.NamedTemporaryFile(dir=entry.parent, suffix=".tmp", delete=False) as file:
            file.write(data)
        os.replace(file.name, entry)
        _make_room(entry.parent)
    except (OSError, PjrtError) as error:
        _fault(f"the executable cannot be kept as {entry}", error)


def _make_room(folder: Path) -> None:
    most = config.compilation_cache_max_size
    if most < 0:
        return
    entries = sorted(
        ((path.stat(), path) for path in folder.glob(f"*{_SUFFIX}")), key=lambda e: e[0].st_mtime_ns
    )
    size = sum(stat.st_size for stat, _ in entries)
    for stat, path in entries:
        if size <= most:
            return
        path.unlink(missing_ok=True)
        size -= stat.st_size


def _fault(what: str, error: Exception) -> None:
    message = f"persistent compilation cache: {what} ({type(error).__name__}: {error})"
    if config.raise_persistent_cache_errors:
        raise Internal(message) from error
    warn_user(message)
