"""`compile_launch`: the function that launches a program on its replicas and partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Handler, Program, TensorType
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.passes import legalize_chlo
from plugrt_numpy.devices import Grid
from plugrt_numpy.failures import refuse_depth, with_operations_named
from plugrt_numpy.functions import ModuleCompiler
from plugrt_numpy.partitions import Signature, as_handle, assemble, divide
from plugrt_sdk import Launch, read_module


def compile_launch(
    program: Program,
    options: CompileOptions,
    *,
    check: bool = False,
    handlers: Mapping[str, Handler] = MappingProxyType({}),
) -> Launch:
    """Returns a function from ``arguments[parameter][device]`` to ``results[result][device]``."""
    module = read_module(program)
    legalize_chlo(module)
    grid = Grid(options.num_replicas, options.num_partitions)
    try:
        with module.context:
            launch = _launch(module, ModuleCompiler(module, grid, check=check, handlers=handlers))
    except RecursionError as error:
        refuse_depth(error)
    return with_operations_named(launch)


def _launch(module: ir.Module, compiler: ModuleCompiler) -> Launch:
    grid = compiler.grid
    if compiler.is_written_for_parts:
        return _joint_launch(compiler.joint_function("main"), grid)
    if grid.partitions > 1:
        run = _replicas_together if compiler.function_is_joint("main") else _replicas_in_turn
        return _partitioned_launch(run(compiler, grid), grid, Signature(module, grid.partitions))
    return _separate_launch(compiler.function("main"), grid.replicas)


def local_types(
    program: Program, options: CompileOptions
) -> tuple[list[TensorType], list[TensorType]]:
    """Returns the types of a program's parameters and results on one device.

    Raises `Unimplemented` for parts of it that are written for one device in GSPMD's way.
    """
    if options.num_partitions > 1 and b"SPMDFullToShardShape" in program.code:
        raise Unimplemented(
            f"{program.name!r} is written for one device in part, by custom calls of GSPMD's: the "
            "NumPy backend computes Shardy's sdy.manual_computation"
        )
    module = read_module(program)
    with module.context:
        compiler = ModuleCompiler(module, Grid(options.num_replicas, options.num_partitions))
        # A program with explicit collectives has the types of the parts.
        written_out = compiler.is_written_for_parts
        return Signature(module, 1 if written_out else options.num_partitions).local_types


def _joint_launch(main: Any, grid: Grid) -> Launch:
    everyone = grid.everyone

    def launch(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        with np.errstate(all="ignore"):
            results = main(everyone, *arguments)
        return [list(map(as_handle, values)) for values in results]

    return launch


Run = Callable[[Sequence[Sequence[Any]]], Sequence[Sequence[Any]]]
"""A function from the whole arrays of each parameter, one per replica, to those of each result."""


def _replicas_in_turn(compiler: ModuleCompiler, grid: Grid) -> Run:
    main = compiler.function("main")
    return lambda whole: list(
        zip(*(main(*[values[r] for values in whole]) for r in range(grid.replicas)), strict=True)
    )


def _replicas_together(compiler: ModuleCompiler, grid: Grid) -> Run:
    """Runs the replicas in step, each as its first device; collectives are in the parts."""
    main = compiler.joint_function("main")
    firsts = tuple(range(0, grid.replicas * grid.partitions, grid.partitions))
    return lambda whole: main(firsts, *whole)


def _partitioned_launch(run: Run, grid: Grid, signature: Signature) -> Launch:
    """Returns the launch of a program that is written for whole arrays, for each replica."""
    count = grid.partitions
    firsts = range(0, count * grid.replicas, count)

    def launch(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        whole = [
            [assemble(shards[first : first + count], parts, kind) for first in firsts]
            for shards, parts, kind in zip(
                arguments, signature.input_parts, signature.inputs, strict=True
            )
        ]
        with np.errstate(all="ignore"):
            computed = run(whole)
        return [
            [part for value in values for part in divide(value, parts)]
            for values, parts in zip(computed, signature.result_parts, strict=True)
        ]

    return launch


def _separate_launch(main: Any, devices: int) -> Launch:
    def launch(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        with np.errstate(all="ignore"):
            runs = [main(*[shards[i] for shards in arguments]) for i in range(devices)]
        return [list(map(as_handle, values)) for values in zip(*runs, strict=True)]

    def launch_one(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        with np.errstate(all="ignore"):
            results = main(*[shard for [shard] in arguments])
        return [[as_handle(result)] for result in results]

    return launch_one if devices == 1 else launch
