"""`Compiled`: a traced function that is compiled and loaded, as `jit` and `pmap` give it ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from plugrt.errors import Unimplemented
from plugrt.execution.arrays.arguments import parameter_types
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.launches.compiled import SavableCall
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.launch_layouts import part_type, require_chosen
from plugrt.execution.placement.placement import AnyLayout, Launch
from plugrt.execution.shardings.format import Format
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import Executable, Layout, LoadedExecutable, OptionValue, Program, TensorType
from plugrt.plugins.selection.backends import process_backends
from plugrt.stablehlo.modules import portable_artifact
from plugrt.stablehlo.xla_computation import XlaComputation
from plugrt.tracing.passthrough import passthrough_module
from plugrt.tracing.staged import Staged
from plugrt.transforms.shape_dtype_struct import struct_of
from plugrt.transforms.stage_info import StageInfo, TracedFunction


@with_checked_methods
class Compiled(StageInfo, SavableCall):
    """A compiled program that takes arguments of exactly the types it was compiled for."""

    def __init__(self, traced: TracedFunction, program: LoadedProgram) -> None:
        staged = traced.staged
        types = parameter_types(traced.avals)
        title = f"compiled {staged.plan.name!r}"
        super().__init__(program, traced._in_tree, staged.out_tree, types, title)
        self._traced = traced
        self._rerun = traced._rerun

    def _check_places(self, avals: Sequence[Aval]) -> None:
        if self._traced.device is None:  # with the option it moves arguments, as `jit` does
            super()._check_places(avals)

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

    @property
    def out_info(self) -> Any:
        """The results as a pytree of `ShapeDtypeStruct`, with their shardings and layouts."""
        return pytrees.unflatten(self.out_tree, [*map(struct_of, self._program.outputs)])

    @property
    def input_shardings(self) -> Any:
        """Where each argument is taken, as the pytree ``(args, kwargs)`` of shardings."""
        return pytrees.unflatten(self.in_tree, self._program.launch.in_shardings)

    @property
    def input_formats(self) -> Any:
        """Where each argument must be and how it must lie, a `Format` each, as ``(args, kwargs)``.

        Layouts that were left to the compiler are those that it chose. An argument that the program
        does not need, and one on a backend without layouts, has none. As in JAX.
        """
        formats = argument_formats(self._program)
        return pytrees.unflatten(self.in_tree, formats)

    @property
    def output_formats(self) -> Any:
        """Where each result is and how it lies, a `Format` each, as the results. As in JAX."""
        return pytrees.unflatten(self.out_tree, result_formats(self._program))

    @property
    def output_shardings(self) -> Any:
        """Where each result lies, as a pytree of shardings."""
        return pytrees.unflatten(self.out_tree, self._program.launch.out_shardings)

    def __repr__(self) -> str:
        return f"<{self._title}>"


def estimate_costs(staged: Staged) -> Mapping[str, OptionValue]:
    """Returns ``flops``, ``bytes accessed`` and so on of a module, before it is optimised."""
    from plugrt.stablehlo.hlo import estimate_cost

    return estimate_cost(XlaComputation(staged.module).as_hlo_module())


def argument_formats(program: LoadedProgram) -> list[Format]:
    """Returns how each flat argument must lie; without a layout those that are not needed."""
    launch, needed = program.launch, set(program.plan.needed)
    kinds = [TensorType(*types[:2]) for types in program.types]
    if not launch.of_parts:
        kinds = [*map(part_type, launch.in_shardings, kinds)]
    return [
        Format(_spell_out(launch, launch.in_layout(i), kind) if i in needed else None, sharding)
        for i, (kind, sharding) in enumerate(zip(kinds, launch.in_shardings, strict=True))
    ]


def result_formats(program: LoadedProgram) -> list[Format]:
    """Returns how each flat result lies."""
    launch = program.launch
    return [
        Format(_spell_out(launch, s.layout, part_type(s.sharding, s.tensor_type)), s.sharding)
        for s in program.outputs
    ]


def _spell_out(launch: Launch, layout: AnyLayout, part: TensorType) -> Layout | None:
    """Returns a layout, also the default one; None where the backend has none to name."""
    if not launch.client.capabilities.layouts:
        return None
    return require_chosen(layout) or launch.client.default_layout(part)
