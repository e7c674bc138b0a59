"""Mutants of launches on several devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plugrt.interface import CompileOptions, Program
from plugrt_numpy.backend import NumpyBackend
from plugrt_sdk.conformance.mutants.faults import Faults, MutantClient
from plugrt_sdk.reading import read_module


def _on_first(self: MutantClient, program: Program, options: CompileOptions) -> Any:
    """Compiles programs of one replica for the first device, whatever was requested."""
    if options.num_replicas == options.num_partitions == 1:
        options = CompileOptions()
    return MutantClient.compile(self, program, options)


def _rotate_results(applies: str) -> Faults:
    """Returns a mutant that exchanges the devices' results, in programs with a word."""

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        if options.num_replicas * options.num_partitions == 1 or applies not in str(
            read_module(program)
        ):
            return launch

        def run(*given: Any) -> Sequence[Any]:
            return [[*shards[1:], shards[0]] for shards in launch(*given)]

        return run

    return Faults(backend={"compile": compile}, devices=2)


def _first_sum_again(once: bool) -> Faults:
    """Returns a mutant whose sums over devices are its own part, or those of the first launch."""
    first: list[Any] = []

    def compile(self: NumpyBackend, program: Program, options: CompileOptions) -> Any:
        launch = NumpyBackend.compile(self, program, options)
        if "stablehlo.all_reduce" not in str(read_module(program)):
            return launch

        def run(arguments: Any, *rest: Any) -> Any:
            if once:
                first.append(launch(arguments, *rest))
                return first[0]
            return [list(shards) for shards in arguments]

        return run

    return Faults(backend={"compile": compile}, devices=2)


MUTANTS: Mapping[str, Faults] = {
    "scales.each_device": Faults(client={"compile": _on_first}, devices=2),
    "scales.replicas": _rotate_results("stablehlo.add"),
    "scales.all_reduce": _first_sum_again(once=False),
    "scales.all_reduce.repeated": _first_sum_again(once=True),
    "scales.partitions": _rotate_results("sdy.mesh"),
    "scales.devices_of_program": Faults(
        loaded={"addressable_devices": property(lambda self: self.client.devices())}, devices=2
    ),
}
