"""Which operation of a program made a NaN or an infinity, where only its module is at hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.distributed.agreement import tell_each_other
from plugrt.errors import PjrtError
from plugrt.execution.arrays.arguments import Aval
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.signature import intern_signature
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.sharding import PmapSharding, Sharding, SingleDeviceSharding
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program, TensorType

_PASSED_IN = "it was passed in, no operation made it"
_UNFUSED = {"xla_disable_hlo_passes": "fusion"}
"""XLA's CPU compiler fuses the check of each value with all that the value is made of: for some
hundred operations it would take minutes."""


def find_origin(
    program: LoadedProgram, avals: Sequence[Aval], values: Sequence[Any], nans: bool, infs: bool
) -> str:
    """Returns a sentence on the operation from which a result has its NaN; empty if unknown.

    The program is compiled once more, so that it also computes which operation each value has its
    NaN from, and run on the same arguments. One that is divided over devices is divided by Shardy,
    whatever the setting says: GSPMD (XLA of jaxlib 0.10) ends the process on what is added here.
    Of a program of several processes all have to ask.
    """
    if program.module is None or (module := program.module()) is None:
        return ""
    from plugrt.stablehlo.float_probes import add_probes
    from plugrt.stablehlo.modules import portable_artifact

    probes = add_probes(module, nans, infs)
    if not probes.width:
        return _PASSED_IN
    plan, launch = program.plan, program.launch
    where = _where_births_are(launch)
    launch = replace(launch, out_shardings=(where,), out_layouts=())
    client = launch.client
    version = client.capabilities.stablehlo_current_version
    code = Program(portable_artifact(probes.module, version), "mlir", plan.name)
    shape = where.whole_shape((probes.width,))
    births = intern_signature(shape, np.dtype(np.int64), where, True)
    inputs = [TensorType(*program.types[i][:2]) for i in plan.kept]
    try:
        options = replace(launch.compile_options(), use_shardy_partitioner=launch.partitions > 1)
        executable = _compile_unfused(client, code, options, inputs)
        plan = replace(plan, sources=(("result", 0),), literals=(), donated=())
        probed = LoadedProgram(plan, program.types, launch, executable, program.constants, [births])
        [found] = probed.make_runner(avals)(values)
        by_device = _read_all(found, f"the births of {plan.name}").reshape(-1, probes.width)
    except PjrtError as error:
        return f"which operation made it could not be found out: {error}"
    origin = probes.describe_origin(by_device)
    if not origin and any(source != "result" for source, _ in program.plan.sources):
        return _PASSED_IN
    return origin or (
        "value by value the program makes none, so that the compiler's fusion is the cause"
    )


def _read_all(found: Array, what: str) -> npt.NDArray[np.int64]:
    """Returns what each process has of it, in all of them that have some."""
    if found.is_fully_addressable:
        return np.asarray(found)
    here = [int(birth) for shard in found.addressable_shards for birth in np.ravel(shard.data)]
    processes = (device.process_index for device in found.sharding.devices)
    told = tell_each_other(what, json.dumps(here), processes, series=what)
    return np.array([birth for _, text in told for birth in json.loads(text)], np.int64)


def _where_births_are(launch: Launch) -> Sharding:
    if launch.partitions > 1:  # the same on every device
        return GSPMDSharding.get_replicated(launch.devices)
    if len(launch.devices) > 1:
        return PmapSharding(launch.devices, 0)
    return SingleDeviceSharding(launch.devices[0])


def _compile_unfused(
    client: Client, code: Program, options: CompileOptions, inputs: Sequence[TensorType]
) -> LoadedExecutable:
    try:
        return compile_program(client, code, replace(options, env_overrides=_UNFUSED), inputs)
    except PjrtError:  # a backend that is not XLA's need not know its options
        return compile_program(client, code, options, inputs)
