"""Mutants of programs' statements about themselves, and of ways to launch them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Lock
from typing import Any

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import (
    CompileOptions,
    HeldForm,
    LaunchSteps,
    Layout,
    Memory,
    Program,
    TensorType,
)
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.buffer import BackendBuffer
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient, execute, recast
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def _no_tuples(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
    """Refuses programs with one tuple, which a bound requests."""
    if options.parameter_is_tupled:
        raise Unimplemented("a program that takes one tuple")
    return NumpyBackend.compile(self, program, options)


def _no_empty_tuples(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Reads the first element of an empty tuple."""
    if options.parameter_is_tupled and b"@main()" in program.code:
        raise InvalidArgument("a tuple has an element")
    return MutantClient.compile(self, program, options)


_REPLICATED = b"\x08\x00"
"""An ``xla.OpSharding`` whose type is REPLICATED."""
_sizes: Iterator[int] = count(1000)


def _whole_inputs(self: BackendExecutable) -> Sequence[TensorType]:
    """States the types of whole arrays instead of their parts."""
    kinds = self.compiled.input_types
    return [
        replace(kind, shape=tuple(n * self.num_partitions for n in kind.shape)) for kind in kinds
    ]


def _holds_results(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    """Returns a wait that raises if the results were deleted, as if it used them."""
    results = execute(self, arguments, options)

    def wait() -> None:
        for shards in results:
            for buffer in shards:
                buffer.block_until_ready()

    return results, wait


def _refuse(self: BackendLoadedExecutable, arguments: Any, options: Any = None) -> Any:
    raise Unimplemented("launches that can be waited for")


def _turned(self: BackendLoadedExecutable) -> Callable[[Sequence[Any]], Any]:
    """Returns a launcher that exchanges its arguments."""
    return lambda arguments: execute(self, [arguments[0], arguments[0]])


def _lending_one_memory(self: BackendLoadedExecutable, lent: Mapping[int, Any]) -> Any:
    """Returns a launcher with one memory for all launches, which is read when a result is read."""
    memory: list[Any] = []

    def compute(result: int, device: int) -> Any:
        return execute(self, memory)[result][device].to_host()

    def launch(arguments: list[Any]) -> Any:
        memory[:] = arguments
        for i, indices in lent.items():
            parts = [arguments[i][index] for index in indices]
            memory[i] = self.client.buffers_from_host(parts, self.addressable_devices)
        results = execute(self, memory)
        for i, shards in enumerate(results):
            for j, buffer in enumerate(shards):
                late = partial(compute, i, j)
                recast(buffer, BackendBuffer, {"to_host": lambda buffer, late=late: late()})
        return results, int

    return launch


def _turned_steps(self: BackendLoadedExecutable) -> LaunchSteps:
    """Returns steps, the first of which exchanges its arguments."""
    return LaunchSteps(
        launch=_turned(self),
        take=list,
        take_arguments=(),
        argument_class=tuple,
        unless=([],),
        explain=lambda error, arguments: error,
    )


def _steps_that_take_another(self: BackendLoadedExecutable) -> LaunchSteps:
    """Returns steps that state that a launch takes the second argument."""
    return LaunchSteps(
        launch=partial(execute, self),
        take=list,
        take_arguments=(),
        argument_class=tuple,
        unless=([],),
        explain=lambda error, arguments: error,
        donated=(1,),
        is_deleted=lambda shards: shards[0].is_deleted(),
        delete=lambda shards: shards[0].delete(),
    )


def _steps_of_others(self: MutantClient, type: TensorType, memory: Memory) -> HeldForm:
    """Returns steps that read the negated contents."""
    return HeldForm(
        open=lambda shards: shards,
        held_class=tuple,
        is_ready=lambda shards: True,
        wait=lambda shards: shards[0].block_until_ready(),
        view=lambda shards: -shards[0].to_host(),
        lock=Lock(),
        unless=([],),
    )


def _divide_nothing(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
    """Compiles for whole arrays, and states that it has chosen parts."""
    options = replace(options, use_auto_spmd_partitioning=False)
    return NumpyBackend.compile(self, program, options)


MUTANTS: Mapping[str, Faults] = {
    "executables.text": Faults(executable={"as_text": lambda self: ""}),
    "executables.code_size": Faults(
        executable={"generated_code_size_in_bytes": lambda self: next(_sizes)}
    ),
    "executables.memory_kinds.results": Faults(executable={"output_memory_kinds": ()}),
    "executables.memory_kinds.arguments": Faults(
        executable={"parameter_memory_kinds": ("no such kind",) * 2}
    ),
    "executables.shardings.arguments": Faults(
        executable={"parameter_shardings": lambda self: [_REPLICATED]}, devices=2
    ),
    "executables.shardings.results": Faults(
        executable={"output_shardings": lambda self: [_REPLICATED]}, devices=2
    ),
    "executables.shardings.chosen": Faults(backend={"compile": _divide_nothing}, devices=2),
    "executables.wait": Faults(loaded={"execute_with_wait": _holds_results}),
    "executables.cancel": Faults(loaded={"cancel": lambda self: 1}),
    "executables.wait.collectives": Faults(
        capabilities={"max_blocking_launches": 8},
        loaded={"execute_with_wait": _refuse},
        devices=2,
    ),
    "executables.tuple_arguments": Faults(
        capabilities={"tuple_arguments_above": 7}, backend={"compile": _no_tuples}
    ),
    "executables.no_results": Faults(
        executable={"output_layouts": lambda self: [Layout.row_major(1)]}
    ),
    "executables.input_types.partitioned": Faults(
        executable={"input_types": property(_whole_inputs)}, devices=2
    ),
    "executables.no_results.partitioned": Faults(
        executable={"output_shardings": lambda self: [_REPLICATED]}, devices=2
    ),
    "executables.no_arguments": Faults(
        executable={"parameter_layouts": lambda self: [Layout.row_major(1)]}
    ),
    "executables.no_arguments.partitioned": Faults(
        executable={"parameter_shardings": lambda self: [_REPLICATED]}, devices=2
    ),
    "executables.tuple_arguments.none": Faults(client={"compile": _no_empty_tuples}),
    "executables.launcher": Faults(loaded={"launcher": property(_turned)}),
    "executables.launcher.lent.parts": Faults(
        loaded={"host_launcher": _lending_one_memory}, devices=2
    ),
    "executables.launcher.steps": Faults(loaded={"launch_steps": property(_turned_steps)}),
    "executables.launcher.steps.donation": Faults(
        loaded={"launch_steps": property(_steps_that_take_another)}
    ),
    "executables.read_steps": Faults(
        capabilities={"zero_copy_get": True}, client={"held_form": _steps_of_others}
    ),
}
