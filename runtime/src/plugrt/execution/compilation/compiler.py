"""`compile_program`: compilation and loading, with logging, dumps, timing and the cache."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from plugrt import monitoring
from plugrt.errors import (
    ArgumentTypeError,
    InvalidArgument,
    PjrtError,
    PluginBroken,
    ProgramError,
    Unimplemented,
)
from plugrt.execution.compilation.ir_dumps import dump_executable, dump_program
from plugrt.execution.compilation.narrow_types import compute_narrow_types
from plugrt.execution.executables.bounded_executable import bound_launches
from plugrt.execution.executables.calling_launch import require_host_callbacks
from plugrt.execution.executables.custom_call_targets import add_handlers, explain_refusal
from plugrt.execution.executables.tracked_executable import track_launches
from plugrt.frames.argument_errors import after_checks
from plugrt.interface import (
    Client,
    CompileOptions,
    DeviceAssignment,
    LoadedExecutable,
    Program,
    TensorType,
)
from plugrt.monitoring.stage_events import compile_log, record_stage
from plugrt.native.finalizers import finish_pending
from plugrt.plugins.offers.offers import Kept
from plugrt.plugins.plugin_table import Table
from plugrt.plugins.record import Record
from plugrt.plugins.selection.backends import process_backends
from plugrt.settings.declarations import config

if TYPE_CHECKING:
    from plugrt.plugins.hookspecs import ProgramRewriter


def _read_rewriters(record: Record, answer: object) -> tuple[ProgramRewriter, ...]:
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise PluginBroken(
            f"plugrt_program_rewriters returned {answer!r:.60}; a list of functions is needed"
        )
    if wrong := [rewriter for rewriter in answer if not callable(rewriter)]:
        raise PluginBroken(f"plugrt_program_rewriters returned {wrong[0]!r:.60}, not a function")
    return tuple(answer)


_rewriters = Kept("plugrt.rewriters", "program rewriters", _read_rewriters)


def installed_rewriters(table: Table) -> tuple[ProgramRewriter, ...]:
    """Returns the functions that entry points of the group ``plugrt.rewriters`` offer.

    They are imported at the first call. A package that fails is skipped with a warning.
    """
    return tuple(chain.from_iterable(_rewriters.get(table)))


@after_checks
def compile_program(
    client: Client, program: Program, options: CompileOptions, inputs: Sequence[TensorType] = ()
) -> LoadedExecutable:
    """Compiles and loads a program on ``client``, or loads it from the persistent cache.

    Logs it at WARNING under ``config.log_compiles`` (else DEBUG), and reports the duration to
    `plugrt.monitoring`. Rewriters see the program first (`rewrite_program`). Raises the backend's
    `PjrtError`.
    """
    finish_pending()
    program = compute_narrow_types(rewrite_program(program, client), client, options)
    dumps = bool(config.dump_ir_to)
    if dumps:
        dump_program(program)
    with record_stage(monitoring.COMPILE, program.name):
        executable = _compile_or_load(client, program, options, inputs)
    if dumps:
        dump_executable(program.name, executable.executable)
    return executable


def compile_settings() -> tuple[object, ...]:
    """Returns this thread's settings that change compiled programs, as a part of cache keys."""
    return _compile_settings(config.token().settings)


def _compile_or_load(
    client: Client, program: Program, options: CompileOptions, inputs: Sequence[TensorType]
) -> LoadedExecutable:
    require_host_callbacks(client, program, options)
    add_handlers(client, program)
    quick = add_quick_options(client, program, options)
    entry = None
    # Callbacks are functions of this process, so such programs are not cached.
    if config.compilation_cache_dir and not program.callbacks:
        from plugrt.execution.compilation.compilation_cache import entry_for  # seldom used

        entry = entry_for(client, program, quick)
    kept = entry.load() if entry else None
    log = compile_log()
    if kept:
        log("Persistent compilation cache hit for %s", program.name)
        return track_launches(bound_launches(kept, program), program, options)
    types = ", ".join(map(str, inputs))
    log("Compiling %s for %s with (%s)", program.name, client.platform, types)
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
    log("Finished compiling %s in %.3f s", program.name, seconds)
    if entry:
        entry.store(executable, seconds)
    return track_launches(bound_launches(executable, program), program, options)


def require_open_sums(client: Client, name: str) -> None:
    """Raises `Unimplemented` if a compiler cannot turn a replicated value into terms of a sum.

    The older Shardy of xla-cpu-pjrt 0.0.1 leaves the whole value on each device, so that the sum is
    a multiple of it. A small program on two devices tests this once for each client.
    """
    # Workaround for xla-cpu-whole-terms
    if client not in _sums_terms:
        _sums_terms[client] = _try_sum(client)
    if not _sums_terms[client]:
        raise Unimplemented(
            f"{name!r} has values that are terms of a sum (unreduced= of a PartitionSpec), and the "
            f"compiler of {client.backend_name} computes multiples of them. Fix: state no "
            "unreduced axes, or use a library with a newer Shardy"
        )


# Process-wide: each client is tested once; its entry is removed with it.
_sums_terms: WeakKeyDictionary[Client, bool] = WeakKeyDictionary()
_SUM = b"""module @sum attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%0: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, [], unreduced={"x"}>})
      -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
    %1 = sdy.sharding_constraint %0 <@mesh, []> : tensor<f32>
    %2 = sdy.sharding_constraint %1 <@mesh, [], unreduced={"x"}> : tensor<f32>
    return %2 : tensor<f32>
  }
}
"""
"""Adds terms up, turns the sum into terms again, and adds these up."""


def _try_sum(client: Client) -> bool:
    """Whether two devices get terms of a sum; True for a client with one device."""
    devices = client.addressable_devices()[:2]
    if len(devices) < 2:
        return True
    options = CompileOptions(
        num_partitions=2,
        device_assignment=DeviceAssignment((tuple(device.id for device in devices),)),
        use_spmd_partitioning=True,
        use_shardy_partitioner=True,
    )
    try:
        loaded = client.compile(_translate(Program(_SUM, name="sum"), client), options)
    except PjrtError:
        return False
    terms = [client.buffer_from_host(np.ones((), np.float32), device) for device in devices]
    [result] = loaded.execute([client.shards(terms)])
    found: object = result[0].to_host()
    return found == 2


# Installed packages offer rewriters by the hook ``plugrt_program_rewriters``; these come before
# ``config.program_rewriters``.
def rewrite_program(program: Program, client: Client) -> Program:
    """Applies the rewriters to a program, one after the other, and returns the result.

    Each is called with the program and the client, and returns None for no change, a `Program`, or
    its code: StableHLO text or bytes. Raises `ProgramError`, which names the rewriter, for its
    exceptions and for a result of another type.
    """
    installed = installed_rewriters(process_backends().table)
    for rewriter in (*installed, *config.program_rewriters):
        try:
            returned = rewriter(program, client)
        except Exception as error:  # a rewriter may raise anything
            raise ProgramError(
                f"the program rewriter {_name(rewriter)} raised {type(error).__name__} for "
                f"{program.name!r}: {error}"
            ) from error
        if returned is not None:
            replaced = _read(returned, program, rewriter)
            _check_type(program, replaced, rewriter)
            program = _translate(replaced, client)
    return program


def _read(returned: object, program: Program, rewriter: object) -> Program:
    if isinstance(returned, Program):
        return replace(returned, callbacks={**program.callbacks, **returned.callbacks})
    if isinstance(returned, str | bytes):
        code = returned.encode() if isinstance(returned, str) else returned
        return replace(program, code=code, format="mlir")
    raise ArgumentTypeError(
        f"the program rewriter {_name(rewriter)} returned {returned!r:.60} for {program.name!r}; "
        "it returns a Program, StableHLO as text or bytes, or None for the program as it is"
    )


def _check_type(program: Program, replaced: Program, rewriter: object) -> None:
    """Raises `ProgramError` unless both have the same parameters and results.

    Checks nothing without jaxlib, or if a program is not StableHLO.
    """
    if {program.format, replaced.format} != {"mlir"} or not _can_parse():
        return
    before = _main_type(program)
    try:
        after = _main_type(replaced)
    except ProgramError as error:
        raise ProgramError(
            f"the program rewriter {_name(rewriter)} returned for {program.name!r} what is no "
            f"StableHLO: {error}"
        ) from error
    if before != after:
        raise ProgramError(
            f"the program rewriter {_name(rewriter)} made a program of the type {after} of "
            f"{program.name!r}, whose type is {before}; calls need the same parameters and results"
        )


def _main_type(program: Program) -> str:
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.regions import functions_by_name

    main = functions_by_name(parse(program.code, program.name)).get("main")
    return str(main.attributes["function_type"]) if main is not None else "no function main"


def _translate(program: Program, client: Client) -> Program:
    """Converts StableHLO text, or newer bytecode, to a version that the client reads."""
    if program.format != "mlir" or not _can_parse():
        return program
    from plugrt.stablehlo.modules import parse, portable_artifact
    from plugrt.stablehlo.passes import legalize_chlo

    module = parse(program.code, program.name)
    legalize_chlo(module)
    version = client.capabilities.stablehlo_current_version
    return replace(program, code=portable_artifact(module, version), format="mlir")


def _can_parse() -> bool:
    return importlib.util.find_spec("jaxlib") is not None


def _name(rewriter: object) -> str:
    module, name = getattr(rewriter, "__module__", ""), getattr(rewriter, "__qualname__", "")
    return f"{module}.{name}" if name else repr(rewriter)


_compile_settings: Callable[[Mapping[str, object]], tuple[object, ...]] = itemgetter(
    "program_rewriters", "quick_compile_bytes", "use_shardy_partitioner"
)

_OPTIONS: Mapping[str, Mapping[str, bool]] = {
    # A program of one fusion compiles in 12 ms instead of 19 (xla_cpu), or 17 instead of 25
    # (jaxlib). Results are equal bit by bit, but for the last digits of cbrt on jaxlib's client.
    "cpu": {"xla_cpu_use_fusion_emitters": False},
}
"""Options by platform name that make a compiler faster."""


def add_quick_options(client: Client, program: Program, options: CompileOptions) -> CompileOptions:
    """Adds the options for a quick compilation, if ``program`` is to be compiled quickly.

    ``config.quick_compile_bytes`` is the size limit. The user's options take precedence.
    """
    quick = _OPTIONS.get(client.platform, {})
    if len(program.code) > config.quick_compile_bytes or options.encoded is not None:
        return options
    return replace(options, env_overrides={**quick, **options.env_overrides})


def compile_or_drop(
    client: Client, program: Program, options: CompileOptions, added: CompileOptions
) -> LoadedExecutable:
    """Compiles a program with ``added``, or with ``options`` if the compiler rejects these."""
    if added is options:
        return client.compile(program, options)
    names = added.env_overrides.keys() - options.env_overrides.keys()
    try:
        return client.compile(program, added)
    except InvalidArgument as error:
        if not any(name in str(error) for name in names):
            raise
    return client.compile(program, options)
