"""`NumpyBackend`: StableHLO programs on NumPy, on any number of virtual devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import CompileOptions, MemoryAnalysis, Program, TensorType
from plugrt.stablehlo.modules import current_version
from plugrt.stablehlo.passes import legalize_chlo
from plugrt_sdk.compiled import Compiled, Launch
from plugrt_sdk.numpy_backend.collectives import JOINT
from plugrt_sdk.numpy_backend.data_types import Array
from plugrt_sdk.numpy_backend.launches import compile_launch, local_types
from plugrt_sdk.reading import read_aliases, read_module
from plugrt_sdk.saved_programs import SavesPrograms

_MOST_DEVICES = 1 << 16


class NumpyBackend(SavesPrograms):
    """Any number of devices in the memory of the process; handles are read-only NumPy arrays.

    The keyword arguments are create options: ``num_devices``, also in digits, as JAX hands over
    what JAX_PJRT_CLIENT_CREATE_OPTIONS says, and ``check_types``, which compares the result of each
    operation with the type that MLIR inferred (for tests; it takes time).
    """

    platform = "numpy"
    version = f"NumPy {np.__version__}"

    def __init__(self, num_devices: int | str = 1, check_types: bool = False) -> None:
        self._count = _read_count(num_devices)
        self._check = check_types
        self.stablehlo_version = current_version()

    def devices(self) -> Sequence[str]:
        return ["NumPy"] * self._count

    def replicas(self) -> int:
        return self._count

    def partitions(self) -> int:
        return self._count

    def collectives(self) -> Collection[str]:
        return [name.removeprefix("stablehlo.") for name in JOINT]

    def put(self, array: Array, device: int) -> Array:
        return array.copy()

    def get(self, handle: Array) -> Array:
        return handle

    def view(self, handle: Array) -> Array:
        return handle

    def alias(self, array: Array, device: int) -> Array:
        return array

    def copy(self, handle: Array, device: int) -> Array:
        return handle.copy()

    def donated(self, program: Program, options: CompileOptions) -> Collection[int]:
        return read_aliases(program)

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        _check_names(options.env_overrides)
        launch = compile_launch(program, options, check=self._check)

        def launch_owned(
            arguments: Sequence[Sequence[Array]], consumed: Collection[int] = ()
        ) -> list[list[Array]]:
            """Launches. What is donated is freed afterwards, for NumPy's next arrays."""
            taken = {id(owner) for shards in arguments for a in shards for owner in (a, a.base)}
            return [[_own(a, taken) for a in shards] for shards in launch(arguments)]

        return launch_owned

    def memory_analysis(self, compiled: Compiled) -> MemoryAnalysis:
        return MemoryAnalysis(
            argument_size_in_bytes=sum(kind.nbytes for kind in compiled.input_types),
            output_size_in_bytes=sum(kind.nbytes for kind in compiled.output_types),
        )

    def optimized_program(self, compiled: Compiled) -> Program:
        """Returns the program without CHLO, as text."""
        module = read_module(compiled.program)
        legalize_chlo(module)
        text = str(module)
        if "sdy.manual_computation" in text:  # an error for hosts that make HLO of it, as JAX does
            raise Unimplemented("a program with an sdy.manual_computation has no form as HLO")
        return Program(text.encode(), "mlir", compiled.program.name)

    def device_types(
        self, program: Program, options: CompileOptions
    ) -> tuple[Sequence[TensorType], Sequence[TensorType]]:
        return local_types(program, options)


def _check_names(overrides: Iterable[str]) -> None:
    """Refuses compile options that nobody has; XLA's, which programs are run with anywhere, say
    how it optimises and are of no account here."""
    for name in overrides:
        if not name.startswith("xla_"):
            raise InvalidArgument(
                f"No such compile option: {name!r}; the NumPy backend has none, and passes over "
                "those of XLA, whose names begin with xla_"
            )


def _read_count(given: int | str) -> int:
    number = isinstance(given, int) or (isinstance(given, str) and given.isdecimal())
    count = int(given) if number else 0
    if not 1 <= count <= _MOST_DEVICES:
        raise InvalidArgument(
            f"num_devices must be a number from 1 to {_MOST_DEVICES}; {given!r:.60} was given"
        )
    return count


def _own(result: Array, taken: set[int]) -> Array:
    """Returns a result as a row-major array with memory of its own, as XLA's are: hosts hand it on
    through DLPack, to be written to. It may be an argument or a constant, another result, or a
    piece of a larger array, which it would keep in memory. ``taken`` are the ids of the arrays
    whose memory has another use."""
    flags, base = result.flags, result.base
    shared = id(result if base is None else base) in taken or (
        base is not None and getattr(base, "nbytes", 0) != result.nbytes
    )
    if shared or not (flags.c_contiguous and flags.writeable):
        result = result.copy()
    taken.add(id(result if result.base is None else result.base))
    return result
