"""`AheadOfTime`: a program compiled for a topology whose devices need not be present."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from plugrt import monitoring
from plugrt.errors import FailedPrecondition, PjrtError
from plugrt.execution.compilation.ir_dumps import dump_executable, dump_program
from plugrt.execution.compilation.narrow_types import compute_narrow_types
from plugrt.execution.executables.calling_launch import refuse_callbacks
from plugrt.execution.launches.compiled import CompiledBase
from plugrt.execution.launches.donation import warn_of_donations
from plugrt.execution.placement.chosen_shardings import settle_shardings
from plugrt.execution.placement.placement import Launch
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import (
    CompileOptions,
    Executable,
    OptionValue,
    Program,
    TensorType,
    Topology,
)
from plugrt.monitoring.stage_events import logger
from plugrt.plugins.selection.backends import process_backends
from plugrt.transforms.topology import resolve_topology

if TYPE_CHECKING:
    from plugrt.stablehlo.entry_attributes import EntryAttributes
    from plugrt.transforms.stage_info import TracedFunction


def compile_ahead(
    traced: TracedFunction,
    target: Topology | str,
    options: CompileOptions,
    launch: Launch | None,
    attributes: EntryAttributes | None = None,
) -> AheadOfTime:
    """Returns a traced function compiled for a topology; ``attributes`` are layouts and memories.

    The program's parameters are the arguments that it uses, then the arrays of its closure.
    ``launch`` has the shardings and layouts, if options or arguments over a mesh state them.
    """
    target = resolve_topology(target)
    staged = traced.staged.lowered_for(process_backends().platforms_of(target))
    plan = staged.plan
    version = target.stablehlo_current_version
    if plan.is_trivial:
        # Imported here: StableHLO text is compiled ahead of time without jaxlib too.
        from plugrt.stablehlo.modules import portable_artifact
        from plugrt.transforms.compiled_function import passthrough_module

        inputs = [staged.parameters[i].type for i in plan.passed]
        code = portable_artifact(passthrough_module(staged), version)
        program = Program(code, "mlir", plan.name)
    else:
        inputs = [staged.parameters[i].type for i in plan.kept]
        inputs += [TensorType(c.shape, c.dtype) for c in plan.constants[: plan.fed]]
        program = staged.program_at(version, attributes)
    if program.callbacks:
        raise refuse_callbacks(
            program, "what is compiled for a topology runs elsewhere, without this process's Python"
        )
    executable = compile_for(program, target, options)
    if launch is None or launch.partitions == 1:
        warn_of_donations(plan, staged.types)
    shardings = None
    if launch is not None:
        compiled = None if plan.is_trivial else executable
        launch = settle_shardings(
            launch, plan, staged.types, staged.output_types, compiled, runs=False
        )
        shardings = (
            pytrees.unflatten(traced._in_tree, launch.in_shardings),
            pytrees.unflatten(staged.out_tree, launch.out_shardings),
        )
    return AheadOfTime(program, target, executable, inputs, traced._out_info(launch), shardings)


def compile_for(program: Program, target: Topology, options: CompileOptions) -> Executable:
    """Compiles the program for a topology; logs and times it, like each compilation."""
    program = compute_narrow_types(program, target, options)
    dump_program(program)
    logger.debug("Compiling %s for %s, ahead of time", program.name, target.platform)
    start = time.perf_counter()
    try:
        executable = target.compile(program, options)
    except PjrtError as error:
        raise type(error)(
            f"compiling {program.name!r} for {target.platform!r} ({describe_devices(target)}) "
            f"failed: {error.message}"
        ) from error
    monitoring.record_event_duration_secs(
        monitoring.COMPILE,
        time.perf_counter() - start,
        fun_name=program.name,
        platform=target.platform,
    )
    dump_executable(program.name, executable)
    return executable


def describe_devices(target: Topology) -> str:
    """Returns the number and kinds of a topology's devices: ``4 x TPU v5 lite``."""
    counts = Counter(device.kind for device in target.devices)
    return ", ".join(f"{count} x {kind}" for kind, count in counts.items()) or "no devices"


@with_checked_methods
class AheadOfTime(CompiledBase):
    """A program compiled for a topology: inspected and serialised here, run elsewhere."""

    def __init__(
        self,
        program: Program,
        target: Topology,
        executable: Executable,
        input_types: Sequence[TensorType] | None,
        out_info: Any = None,
        shardings: tuple[Any, object] | None = None,
    ) -> None:
        self.program = program
        """The program that was passed to the compiler."""
        self.topology = target
        """The devices that it was compiled for."""
        self.input_types = None if input_types is None else tuple(input_types)
        """The parameters' types; None without jaxlib, which reads them from the program."""
        self.out_info = out_info
        """The results of a traced function as a pytree of `ShapeDtypeStruct`; else None."""
        self._compiled = executable
        self._shardings = shardings

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument over the function's mesh, as ``(args, kwargs)``.

        Includes the compiler's choices for the topology. Raises `FailedPrecondition` for a program
        without a mesh.
        """
        return (self._shardings or self._refuse_shardings())[0]

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, as a pytree; see `input_shardings`."""
        return (self._shardings or self._refuse_shardings())[1]

    def _refuse_shardings(self) -> NoReturn:
        raise FailedPrecondition(
            f"{self!r} has no shardings to state: they name devices, and those of a topology need "
            "not be here. Functions whose in_shardings or arguments are over a mesh state how it "
            "divides them; runtime_executable().parameter_shardings() is what the compiler wrote"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises `FailedPrecondition`: the devices need not be here."""
        raise FailedPrecondition(
            f"{self!r} cannot be called: those devices need not be here. Save serialize() and load "
            "that where they are, with plugrt.get_backend(...).deserialize_executable(saved); or "
            "compile without topology= to run it here"
        )

    @property
    def _executable(self) -> Executable:
        return self._compiled

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of the results on one device."""
        return tuple(self._compiled.output_types)

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and the backend's other figures.

        If the backend states nothing, jaxlib counts in the optimised program.
        """
        return self.cost_and_source()[0]

    def cost_and_source(self) -> tuple[Mapping[str, OptionValue], str]:
        """Returns `cost_analysis`, and whether its figures are the backend's or jaxlib's."""
        from plugrt.stablehlo.hlo import cost_analysis

        return cost_analysis(self._compiled)

    def runtime_executable(self) -> Executable:
        """Returns the backend's executable."""
        return self._compiled

    def __repr__(self) -> str:
        return f"<{self.program.name!r} compiled for {describe_devices(self.topology)}>"
