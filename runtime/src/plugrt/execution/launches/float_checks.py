"""`debug_nans` and `debug_infs`: finds NaN and infinities in results, and their origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from plugrt.distributed.agreement import tell_each_other
from plugrt.errors import FloatingPointFault, PjrtError
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import Aval, intern_aval
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.pmap_sharding import divide_axis
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.transfers.transfer import device_put
from plugrt.frames.traceback_filter import describe_call_site
from plugrt.interface import Client, CompileOptions, LoadedExecutable, Program, TensorType
from plugrt.settings.declarations import config

Run = Callable[[Sequence[object]], Sequence[Array]]
Rerun = Callable[[Sequence[object]], None]
"""Repeats a call operation by operation, so that the faulty operation raises with its name."""


def put_host_arrays(values: Sequence[object]) -> list[object]:
    """Puts host arrays among a `Rerun`'s arguments: NumPy's own operations are not checked."""
    return [device_put(x) if isinstance(x, np.ndarray) else x for x in values]


def add_float_checks(
    program: LoadedProgram,
    avals: Sequence[Aval],
    what: str,
    rerun: Rerun | None,
    is_operation: bool,
) -> Run:
    """Returns a runner that checks the floating-point results after each launch of a program.

    The runner raises `FloatingPointFault` that names the launched function (``what``), the types,
    the user's line, and the arguments and captured arrays that already contain such a value.
    ``rerun`` is called with the arguments to find the operation; if it finds none, the operation is
    searched in the module, unless the program ``is_operation``, a single operation.
    """
    # The arguments must survive, so that the call can be made again.
    run = program.make_runner(avals, keep_donated=True)
    checks = _Checks(
        program, avals, what, rerun, is_operation, bool(config.debug_nans), bool(config.debug_infs)
    )

    def run_checked(values: Sequence[object]) -> Sequence[Array]:
        outputs = run(values)
        checks.check(outputs, values)
        return outputs

    return run_checked


@dataclass(frozen=True)
class _Checks:
    """The checks of a program's results, and the facts about its calls."""

    program: LoadedProgram
    avals: Sequence[Aval]
    what: str
    rerun: Rerun | None
    is_operation: bool
    nans: bool
    infs: bool

    def check(self, outputs: Sequence[Array], values: Sequence[object]) -> None:
        """Raises `FloatingPointFault` if a result of the call with ``values`` has a fault."""
        faults = ((i, _fault(output, self.nans, self.infs)) for i, output in enumerate(outputs))
        i, found = next(((i, found) for i, found in faults if found), (0, ""))
        where = ""
        if not self.is_alone:
            i, found, where = self._find_in_processes(i, found)
        if found:
            result = self._describe_result(i, found) + where
            self._raise(result, self._describe_inputs(values), values)

    @property
    def is_alone(self) -> bool:
        """Whether the program runs in this process alone."""
        return all(device.is_addressable for device in self.program.launch.devices)

    def _find_in_processes(self, i: int, found: str) -> tuple[int, str, str]:
        """Returns the result and the fault that all processes raise; "" if there is none.

        All processes of the launch call this. So all of them search for the operation, by the same
        launches, and none continues alone.
        """
        settings = " and ".join(
            name for name, on in (("debug_nans", self.nans), ("debug_infs", self.infs)) if on
        )
        said = tell_each_other(
            f"the check of {self.what} by {settings}, which all processes set or none",
            f"{i} {found}" if found else "",
            (device.process_index for device in self.program.launch.devices),
            series=f"floats {self.program.plan.name}",
        )
        faulty = [(text, who) for who, text in said if text]
        if not faulty:
            return i, "", ""
        index, found = min((text.split() for text, _ in faulty), key=lambda words: int(words[0]))
        here = sorted(index for text, who in faulty for index in who)
        others = f"; found by process {', '.join(map(str, here))}"
        return int(index), found, others

    def _describe_result(self, i: int, found: str) -> str:
        types = ", ".join(str(aval.tensor_type) for aval in self.avals)
        outputs = self.program.outputs
        result = f"; it is in result {i}, {outputs[i].tensor_type}" if len(outputs) > 1 else ""
        where = describe_call_site()
        return f"invalid value ({found}) encountered in {self.what} of ({types}){where}{result}"

    def _describe_inputs(self, values: Sequence[object]) -> str:
        """Returns a sentence about inputs that contained a NaN or an infinity before the call."""
        plan = self.program.plan
        holding = [
            f"{plan.describe(i)} of {plan.name!r} ({self.avals[i].tensor_type})"
            for i in plan.needed
            if _fault(values[i], self.nans, self.infs)
        ] + [
            f"an array in the closure of {plan.name!r} ({constant._aval.tensor_type})"
            for constant in self.program.constants
            if _fault(constant, self.nans, self.infs)
        ]
        if not holding:
            return ""
        return f"; before the call it was in {' and in '.join(holding)}"

    def _raise(self, result: str, inputs: str, values: Sequence[object]) -> NoReturn:
        if self.is_operation:
            raise FloatingPointFault(result + inputs)
        # With several processes, each process would put host data and captured values itself.
        if self.rerun is not None and self.is_alone:
            try:
                self.rerun(values)
            except FloatingPointFault as inner:
                if not inputs:
                    raise
                raise FloatingPointFault(f"{inner}{inputs}") from inner
        origin = find_origin(self.program, self.avals, values, self.nans, self.infs)
        raise FloatingPointFault(f"{result}; {origin}{inputs}" if origin else result + inputs)


def _fault(value: Any, nans: bool, infs: bool) -> str:
    """Returns the fault in an array or host data; checks only this process's parts of it."""
    if type(value) is Array and not value.is_fully_addressable:
        parts = (_host_fault(buffer.to_host(), nans, infs) for buffer in value._live())
        return next(filter(None, parts), "")
    return _host_fault(value._printed() if type(value) is Array else np.asarray(value), nans, infs)


def _host_fault(host: npt.NDArray[np.generic], nans: bool, infs: bool) -> str:
    if host.dtype.kind not in "fc":
        if not host.dtype.name.startswith(("bfloat", "float")):
            return ""
        host = host.astype(np.float32)
    if nans and np.isnan(host).any():
        return "nan"
    return "inf" if infs and np.isinf(host).any() else ""


_PASSED_IN = "it was passed in, no operation made it"
_UNFUSED = {"xla_disable_hlo_passes": "fusion"}
"""XLA's CPU compiler fuses the check of each value with all operations before it: for some hundred
operations it would run for minutes."""


def find_origin(
    program: LoadedProgram, avals: Sequence[Aval], values: Sequence[object], nans: bool, infs: bool
) -> str:
    """Returns a sentence on the operation from which a result has its NaN; empty if unknown.

    The program is compiled again, so that it also computes the operation from which each value has
    its NaN, and runs on the same arguments. A program over several devices is partitioned by Shardy
    regardless of the setting, since the module has Shardy's operations.
    For a program over several processes, all must call this.
    """
    if program.module is None or (module := program.module()) is None:
        return ""
    from plugrt.stablehlo.float_probes import add_probes
    from plugrt.stablehlo.modules import portable_artifact

    probes = add_probes(module, nans, infs)
    if not probes.width:
        return _PASSED_IN
    plan, launch = program.plan, program.launch
    where = _find_birth_sharding(launch)
    launch = replace(launch, out_shardings=(where,), out_layouts=())
    client = launch.client
    version = client.capabilities.stablehlo_current_version
    code = Program(portable_artifact(probes.module, version), "mlir", plan.name)
    shape = where.whole_shape((probes.width,))
    births = intern_aval(shape, np.dtype(np.int64), where, True)
    inputs = [TensorType(*program.types[i][:2]) for i in plan.kept]
    try:
        # The probed module has Shardy's operations, which GSPMD refuses.
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
    """Returns the contents in all processes that have parts of it."""
    if found.is_fully_addressable:
        return np.asarray(found)
    here = [int(birth) for shard in found.addressable_shards for birth in np.ravel(shard.data)]
    processes = (device.process_index for device in found.sharding.devices)
    told = tell_each_other(what, json.dumps(here), processes, series=what)
    return np.array([birth for _, text in told for birth in json.loads(text)], np.int64)


def _find_birth_sharding(launch: Launch) -> Sharding:
    if launch.partitions > 1:  # equal on all devices
        return GSPMDSharding.get_replicated(launch.devices)
    if len(launch.devices) > 1:
        return divide_axis(launch.devices, 0)
    return SingleDeviceSharding(launch.devices[0])


def _compile_unfused(
    client: Client, code: Program, options: CompileOptions, inputs: Sequence[TensorType]
) -> LoadedExecutable:
    try:
        return compile_program(client, code, replace(options, env_overrides=_UNFUSED), inputs)
    except PjrtError:  # other backends need not have XLA's options
        return compile_program(client, code, options, inputs)
