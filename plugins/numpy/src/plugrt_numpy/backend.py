"""`NumpyBackend`: StableHLO programs on NumPy, on any number of virtual devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from plugrt.errors import InvalidArgument, NotFound
from plugrt.interface import (
    CompileOptions,
    DeviceDescription,
    Handler,
    Layout,
    MemoryAnalysis,
    OptionValue,
    Program,
    TensorType,
)
from plugrt.interface.checks import EFFORTS
from plugrt.stablehlo.entry_shardings import main_shardings
from plugrt.stablehlo.modules import current_version
from plugrt.stablehlo.passes import legalize_chlo
from plugrt.wire.hlo_proto import WHOLE
from plugrt_numpy.chosen_shardings import choose_shardings
from plugrt_numpy.costs import program_costs
from plugrt_numpy.data_types import Array
from plugrt_numpy.devices import Grid
from plugrt_numpy.functions import ModuleCompiler
from plugrt_numpy.held_memory import HeldMemory
from plugrt_numpy.launches import compile_launch, local_types
from plugrt_numpy.operations.collectives import JOINT
from plugrt_numpy.part_programs import write_for_parts
from plugrt_numpy.partitions import drop_constraints
from plugrt_sdk import Compiled, Launch, SavesPrograms, read_aliases, read_layouts, read_module

_KIND = "NumPy"
_MOST_DEVICES = 1 << 16


class NumpyBackend(SavesPrograms):
    """Any number of devices in the memory of the process; handles are read-only NumPy arrays.

    The keyword arguments are create options: ``num_devices``, also as digits, since JAX passes the
    text of JAX_PJRT_CLIENT_CREATE_OPTIONS, and ``check_types``, which compares the result of each
    operation with the type that MLIR inferred (for tests; it is slow).
    """

    platform = "numpy"
    version = f"NumPy {np.__version__}"

    def __init__(self, num_devices: int | str = 1, check_types: bool = False) -> None:
        self._count = _read_count(num_devices)
        self._check = check_types
        self._memory = HeldMemory()
        self._handlers: dict[str, Handler] = {}
        self.stablehlo_version = current_version()

    def devices(self) -> Sequence[str]:
        return [_KIND] * self._count

    def replicas(self) -> int:
        return self._count

    def partitions(self) -> int:
        return self._count

    def collectives(self) -> Collection[str]:
        return [name.removeprefix("stablehlo.") for name in JOINT]

    def put(self, array: Array, device: int) -> Array:
        return self._memory.add(array.copy(), device)

    def delete(self, handle: Array) -> None:
        self._memory.remove(handle)

    def memory_stats(self, device: int) -> Mapping[str, int]:
        return self._memory.of(device)

    def put_in_layout(self, array: Array, device: int, layout: Layout) -> Array:
        return self._memory.add(in_layout(array, layout), device)

    def get(self, handle: Array) -> Array:
        return handle

    def view(self, handle: Array) -> Array:
        return handle

    def alias(self, array: Array, device: int) -> Array:
        return self._memory.add(array, device)

    def copy(self, handle: Array, device: int) -> Array:
        return self._memory.add(handle.copy("K"), device)

    def donated(self, program: Program, options: CompileOptions) -> Collection[int]:
        aliases = read_aliases(program)
        if None not in aliases.values():
            return aliases
        return usable_donations(aliases, *self.device_types(program, options))

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        check_names(options.env_overrides)
        program = choose_shardings(program, options)
        launch = compile_launch(program, options, check=self._check, handlers=dict(self._handlers))
        memory = self._memory
        assert options.device_assignment is not None
        devices = options.device_assignment.flat
        layouts = read_layouts(program)[1] if program.may_name_layouts else ()

        def launch_owned(
            arguments: Sequence[Sequence[Array]], consumed: Collection[int] = ()
        ) -> list[list[Array]]:
            """Launches, and then frees donated arrays for NumPy's next arrays."""
            taken = {id(owner) for shards in arguments for a in shards for owner in (a, a.base)}
            results = [[_own(a, taken) for a in shards] for shards in launch(arguments)]
            for i, layout in enumerate(layouts):
                if isinstance(layout, Layout):
                    results[i] = [in_layout(a, layout) for a in results[i]]
            for shards in results:
                for a, device in zip(shards, devices, strict=True):
                    memory.add(a, device)
            for i in consumed:
                for a in arguments[i]:
                    memory.remove(a)
            return results

        return launch_owned

    def cost_analysis(self, compiled: Compiled) -> Mapping[str, OptionValue]:
        module = read_module(compiled.program)
        legalize_chlo(module)
        grid = Grid(compiled.options.num_replicas, compiled.options.num_partitions)
        with module.context:
            return dict(
                program_costs(
                    ModuleCompiler(module, grid, handlers=self._handlers), grid.partitions
                )
            )

    def register_handler(self, target: str, handler: Handler) -> None:
        self._handlers[target] = handler

    def unregister_handler(self, target: str) -> None:
        if self._handlers.pop(target, None) is None:
            raise NotFound(f"the NumPy backend has no handler of {target!r:.60}")

    def memory_analysis(self, compiled: Compiled) -> MemoryAnalysis:
        return MemoryAnalysis(
            argument_size_in_bytes=sum(kind.nbytes for kind in compiled.input_types),
            output_size_in_bytes=sum(kind.nbytes for kind in compiled.output_types),
        )

    def optimized_program(self, compiled: Compiled) -> Program:
        """Returns the program of each device, as text without CHLO and shardings."""
        options = compiled.options
        module = read_module(choose_shardings(compiled.program, options))
        legalize_chlo(module)
        drop_constraints(module)  # which cannot be written as HLO
        compiler = ModuleCompiler(module, Grid(options.num_replicas, options.num_partitions))
        if options.num_partitions > 1 and not compiler.is_written_for_parts:
            write_for_parts(module, compiler)
        return Program(str(module).encode(), "mlir", compiled.program.name)

    def topologies(
        self, name: str, options: Mapping[str, OptionValue]
    ) -> Sequence[DeviceDescription]:
        """Returns as many devices as the digits of the name; for an empty one, the backend's."""
        if options:
            raise InvalidArgument(
                f"topologies of the NumPy backend have no options; found {sorted(options)}"
            )
        count = _read_count(name, "the name of a topology") if name else self._count
        return [DeviceDescription(i, 0, _KIND) for i in range(count)]

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]]:
        return local_types(choose_shardings(program, options), options)

    def chosen_shardings(self, compiled: Compiled) -> tuple[Sequence[bytes], Sequence[bytes]]:
        module = read_module(choose_shardings(compiled.program, compiled.options))
        stated = main_shardings(module)
        if stated is None:
            return [WHOLE] * len(compiled.input_types), [WHOLE] * len(compiled.output_types)
        return stated


def check_names(overrides: Iterable[str]) -> None:
    """Refuses unknown compile options.

    XLA's options, which programs for any platform may have, control its optimisations and are
    ignored.
    """
    for name in overrides:
        if not name.startswith("xla_") and name not in EFFORTS:
            raise InvalidArgument(
                f"No such compile option: {name!r}; the NumPy backend has none, and ignores "
                "those of XLA, whose names begin with xla_"
            )


def usable_donations(
    aliases: Mapping[int, int | None], inputs: Sequence[TensorType], results: Sequence[TensorType]
) -> list[int]:
    """Returns the donated parameters whose memory a result can use, paired as XLA does.

    A parameter without a result in ``aliases`` (see `read_aliases`) gets one with parts of the same
    size. The types are one device's.
    """
    free = Counter(kind.nbytes for i, kind in enumerate(results) if i not in set(aliases.values()))
    usable = []
    for number, result in aliases.items():
        size = inputs[number].nbytes
        if result is None:
            if not free[size]:
                continue
            free[size] -= 1
        usable.append(number)
    return usable


def in_layout(array: Array, layout: Layout) -> Array:
    """Returns a copy of an array with its elements in the memory order of a layout."""
    order = layout.major_to_minor
    return array.transpose(order).copy().transpose(np.argsort(order))


def _read_count(given: int | str, what: str = "num_devices") -> int:
    number = isinstance(given, int) or (isinstance(given, str) and given.isdecimal())
    count = int(given) if number else 0
    if not 1 <= count <= _MOST_DEVICES:
        raise InvalidArgument(
            f"{what} must be a number from 1 to {_MOST_DEVICES}; {given!r:.60} was given"
        )
    return count


def _own(result: Array, taken: set[int]) -> Array:
    """Returns a result as a row-major array with memory of its own, like XLA's.

    Hosts pass it on through DLPack, to be written to. It may be an argument or a constant, another
    result, or a part of a larger array, which it would keep in memory. ``taken`` are the ids of the
    arrays whose memory has another use.
    """
    flags, base = result.flags, result.base
    shared = id(result if base is None else base) in taken or (
        base is not None and getattr(base, "nbytes", 0) != result.nbytes
    )
    if shared or not (flags.c_contiguous and flags.writeable):
        result = result.copy()
    taken.add(id(result if result.base is None else result.base))
    return result
