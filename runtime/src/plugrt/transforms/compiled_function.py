"""`Compiled`: a traced function that is compiled and loaded, as `jit` and `pmap` give it ahead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from plugrt.errors import Unimplemented
from plugrt.execution.arrays.arguments import parameter_types
from plugrt.execution.arrays.aval import ArrayAval
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.launches.compiled import SavableCall
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import Executable, LoadedExecutable, OptionValue, Program
from plugrt.plugins.selection.backends import process_backends
from plugrt.stablehlo.modules import portable_artifact
from plugrt.stablehlo.xla_computation import XlaComputation
from plugrt.tracing.passthrough import passthrough_module
from plugrt.tracing.staged import Staged
from plugrt.transforms.stage_info import CompiledInfo, StageInfo, TracedFunction


@with_checked_methods
class Compiled(CompiledInfo, StageInfo, SavableCall):
    """A compiled program that takes arguments of exactly the types it was compiled for."""

    def __init__(self, traced: TracedFunction, program: LoadedProgram) -> None:
        staged = traced.staged
        types = parameter_types(traced.avals)
        title = f"compiled {staged.plan.name!r}"
        super().__init__(program, traced._in_tree, staged.out_tree, types, title)
        self._traced = traced
        self._rerun = traced._rerun

    in_avals = StageInfo.in_avals  # with the shardings of committed arguments

    def _can_use(self, i: int, aval: ArrayAval) -> bool:
        if self._traced.device is not None:  # with the option it moves arguments, as `jit` does
            return True
        if super()._can_use(i, aval):
            return True
        # A program with a pmap within gathers what it was lowered for.
        return (
            aval is self._traced.avals[i] and aval.sharding.devices == self._program.launch.devices
        )

    @property
    def _stage(self) -> TracedFunction:
        return self._traced

    @cached_property
    def _runtime(self) -> LoadedExecutable:
        """What calls launch; where they need nothing, the same as a program, compiled now."""
        if self._program.executable is not None:
            return self._program.executable
        staged, launch = self._traced.staged, self._program.launch
        version = launch.client.capabilities.stablehlo_current_version
        code = portable_artifact(passthrough_module(staged), version)
        program = Program(code, "mlir", staged.plan.name)
        return compile_program(launch.client, program, launch.compile_options())

    @property
    def _executable(self) -> Executable:
        return self._runtime.executable

    def runtime_executable(self) -> LoadedExecutable:
        """Returns the backend's executable."""
        return self._runtime

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and what else the backend states.

        Where it states nothing, XLA counts in the program before it is optimised.
        """
        try:
            return super().cost_analysis()
        except Unimplemented:
            client, staged = self._program.launch.client, self._traced.staged
            return estimate_costs(staged.lowered_for(process_backends().platforms_of(client)))

    def __repr__(self) -> str:
        return f"<{self._title}>"


def estimate_costs(staged: Staged) -> Mapping[str, OptionValue]:
    """Returns ``flops``, ``bytes accessed`` and so on of a module, before it is optimised."""
    from plugrt.stablehlo.hlo import estimate_cost

    return estimate_cost(XlaComputation(staged.module).as_hlo_module())
