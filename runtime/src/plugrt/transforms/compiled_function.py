"""`Compiled`: a function of `jit` or `pmap` that is compiled and loaded ahead of time."""

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
from plugrt.interface import Executable, LoadedExecutable, OptionValue, Program, TensorType
from plugrt.plugins.selection.backends import process_backends
from plugrt.stablehlo.bindings import func, ir, new_context
from plugrt.stablehlo.modules import portable_artifact, rename
from plugrt.stablehlo.types import tensor_type
from plugrt.stablehlo.xla_computation import XlaComputation
from plugrt.tracing.captures import captured_value, host_value
from plugrt.tracing.staged import Staged
from plugrt.transforms.stage_info import CompiledInfo, StageInfo, TracedFunction


@with_checked_methods
class Compiled(CompiledInfo, StageInfo, SavableCall):
    """A compiled program, for arguments of exactly the types for which it was compiled."""

    def __init__(self, traced: TracedFunction, program: LoadedProgram) -> None:
        staged = traced.staged
        types = parameter_types(traced.avals)
        title = f"compiled {staged.plan.name!r}"
        super().__init__(program, traced._in_tree, staged.out_tree, types, title)
        self._traced = traced
        self._rerun = traced._rerun

    in_avals = StageInfo.in_avals  # with the shardings of committed arguments

    def _can_use(self, i: int, aval: ArrayAval) -> bool:
        if self._traced.device is not None:  # this option moves arguments, as in `jit`
            return True
        if super()._can_use(i, aval):
            return True
        # A program with an inner pmap gathers an argument of the type that it was lowered for.
        return (
            aval is self._traced.avals[i] and aval.sharding.devices == self._program.launch.devices
        )

    @property
    def _stage(self) -> TracedFunction:
        return self._traced

    @cached_property
    def _runtime(self) -> LoadedExecutable:
        """The executable of calls; if they need none, `passthrough_module` is compiled."""
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
        """Returns ``flops``, ``bytes accessed`` and the backend's other figures.

        If it states nothing, XLA counts in the program before optimisation.
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


def passthrough_module(staged: Staged) -> ir.Module:
    """Returns a module whose results are its parameters and constants.

    Calls of such a function need no program; it is made when it is inspected or saved. Its
    parameters are the arguments that are results, its constants the known results and the data of
    the closure, which are read from their devices.
    """
    plan = staged.plan
    with new_context(), ir.Location.unknown():
        module = ir.Module.create()
        rename(module, f"jit_{plan.name}")
        types = [_type_of(staged.parameters[i].type) for i in plan.passed]
        results = [_type_of(t) for t in staged.output_types]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ir.FunctionType.get(types, results))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            known: dict[tuple[str, int], object] = {
                ("argument", i): value
                for i, value in zip(plan.passed, block.arguments, strict=True)
            }
            for i, data in enumerate(plan.literals):
                known["literal", i] = host_value(data)
            for i, source in enumerate(plan.constants):
                known["constant", i] = captured_value(source)
            func.ReturnOp([known[source] for source in plan.sources])
    return module


def _type_of(tensor: TensorType) -> ir.Type:
    return tensor_type(tensor.shape, tensor.dtype)
