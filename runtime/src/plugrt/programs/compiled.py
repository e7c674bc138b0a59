"""`compile` and `CompiledProgram`: a program as a callable on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from plugrt.errors import ArgumentMismatch, InvalidArgument, PjrtError, ProgramError
from plugrt.execution.array import Array
from plugrt.execution.compile import compile_program
from plugrt.execution.placement import default_device
from plugrt.execution.program import LoadedProgram, Plan
from plugrt.execution.sharding import SingleDeviceSharding
from plugrt.execution.signature import signature_of
from plugrt.execution.transfer import host_array, move, put
from plugrt.interface import (
    CompileOptions,
    Device,
    DeviceAssignment,
    LoadedExecutable,
    MemoryAnalysis,
    OptionValue,
    Program,
    TensorType,
    Topology,
)
from plugrt.plugins import backends
from plugrt.programs.loading import at_version, for_client, has_bindings, load_program, parsed
from plugrt.programs.parameters import parameter_types
from plugrt.transforms.ahead import AheadOfTime, compile_for
from plugrt.transforms.topologies import resolve_topology

_PARSER_WORDS = ("parse", "deserialize", "module with `main` function")
"""What stands in the message of a backend that could not read a program: codes differ."""


@overload
def compile(
    program: Any,
    *,
    topology: Topology | str,
    env_overrides: Mapping[str, str | bool | int | float] | None = None,
) -> AheadOfTime: ...
@overload
def compile(
    program: Any,
    *,
    device: Device | None = None,
    backend: str | None = None,
    env_overrides: Mapping[str, str | bool | int | float] | None = None,
) -> CompiledProgram: ...
def compile(  # the public name is the field's word for it
    program: Any,
    *,
    device: Device | None = None,
    backend: str | None = None,
    topology: Topology | str | None = None,
    env_overrides: Mapping[str, str | bool | int | float] | None = None,
) -> CompiledProgram | AheadOfTime:
    """Returns a program (or anything that `load_program` takes) compiled for one device.

    The device is ``device``, else the first of ``backend``, else the default device. With
    ``topology`` (or its name, such as ``"tpu:v5e:2x2"``) it is compiled for devices that need not
    be here, and cannot be called. ``env_overrides`` are XLA debug options by name. Raises
    `ProgramError` for a program that cannot be read and the backend's `PjrtError` for one that it
    refuses.
    """
    loaded = load_program(program)
    if topology is not None:
        if device is not None or backend is not None:
            raise InvalidArgument("compile takes a topology, a device or a backend, not several")
        return _compile_ahead(loaded, resolve_topology(topology), dict(env_overrides or {}))
    if device is not None and backend is not None:
        raise InvalidArgument("compile takes a device or a backend, not both")
    if device is None:
        device = (
            default_device()
            if backend is None
            else backends.get_backend(backend).addressable_devices()[0]
        )
    inputs: Sequence[TensorType] | None = None
    if loaded.format == "mlir" and has_bindings():
        inputs = parsed(loaded)[1]
    options = CompileOptions(
        device_assignment=DeviceAssignment(((device.id,),)),
        env_overrides=dict(env_overrides or {}),
    )
    client = device.client
    try:
        executable = compile_program(client, for_client(loaded, client), options, inputs or ())
    except PjrtError as error:
        raise _blame(loaded, client.backend_name, error) from error
    if inputs is None:
        inputs = parameter_types(executable.executable)
    return CompiledProgram(loaded, executable, device, inputs)


def _compile_ahead(
    loaded: Program, target: Topology, overrides: Mapping[str, str | bool | int | float]
) -> AheadOfTime:
    known = loaded.format == "mlir" and has_bindings()
    inputs = parsed(loaded)[1] if known else None
    program = at_version(loaded, target.stablehlo_current_version)
    options = CompileOptions(env_overrides=overrides)
    return AheadOfTime(loaded, target, compile_for(program, target, options), inputs)


def _blame(program: Program, backend: str, error: PjrtError) -> Exception:
    """Returns the backend's refusal with the program named; a parser's is a `ProgramError`."""
    text = f"{backend} refused the program {program.name!r}: {error.message}"
    if any(word in error.message.lower() for word in _PARSER_WORDS):
        return ProgramError(text)
    return type(error)(text)


class CompiledProgram:
    """A program that is compiled and loaded; call it with one array for each parameter."""

    def __init__(
        self,
        program: Program,
        executable: LoadedExecutable,
        device: Device,
        input_types: Sequence[TensorType] | None,
    ) -> None:
        self.program = program
        """The program as it was loaded."""
        self.device = device
        """The device that it runs on."""
        self.input_types = None if input_types is None else tuple(input_types)
        """The parameters' types; None where neither jaxlib nor the backend can tell."""
        self._executable = executable
        here = SingleDeviceSharding(device)
        self._results = [
            signature_of(t.shape, t.dtype, here, True) for t in executable.executable.output_types
        ]
        self._loaded: dict[int, LoadedProgram] = {}

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The results' types."""
        return tuple(self._executable.executable.output_types)

    def __call__(self, *arguments: Any) -> Array | tuple[Array, ...]:
        """Launches it and returns its result, or a tuple of them where it has several or none.

        Host data are put on the device; arrays elsewhere are copied to it. Raises
        `ArgumentMismatch` naming each parameter that differs, and how.
        """
        arrays = [self._argument(i, x) for i, x in enumerate(arguments)]
        self._check(arrays)
        outputs = self._runner(len(arrays)).run(arrays)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _runner(self, count: int) -> LoadedProgram:
        found = self._loaded.get(count)
        if found is None:
            plan = Plan(
                name=self.program.name,
                kept=tuple(range(count)),
                sources=tuple(("result", i) for i in range(len(self._results))),
                argument_names=tuple(f"parameter {i}" for i in range(count)),
            )
            found = self._loaded[count] = LoadedProgram(plan, self._executable, self._results)
        return found

    def _argument(self, i: int, x: Any) -> Array:
        if isinstance(x, Array):
            return move(x, self.device, True)
        host = host_array(x, f"parameter {i} of {self.program.name!r}")
        types = self.input_types
        if types and i < len(types) and type(x) in (bool, int, float, complex):
            host = np.asarray(x, types[i].dtype)  # a Python scalar takes the parameter's dtype
        return put(host, self.device, True)

    def _check(self, arrays: Sequence[Array]) -> None:
        if self.input_types is None:
            return
        found = [TensorType(a.shape, a.dtype) for a in arrays]
        if len(found) != len(self.input_types):
            takes = ", ".join(map(str, self.input_types))
            raise ArgumentMismatch(
                f"program {self.program.name!r} takes {len(self.input_types)} arguments ({takes}); "
                f"called with {len(found)}"
            )
        wrong = [
            f"  parameter {i}: takes {expected}, called with {given}"
            for i, (expected, given) in enumerate(zip(self.input_types, found, strict=True))
            if expected != given
        ]
        if wrong:
            raise ArgumentMismatch(
                f"program {self.program.name!r} was called with arguments of other types:\n"
                + "\n".join(wrong)
            )

    def as_text(self) -> str:
        """Returns the optimised program as text; `MissingTraceExtra` where that needs jaxlib."""
        from plugrt.stablehlo.hlo import optimized_text

        return optimized_text(self._executable.executable)

    def cost_analysis(self) -> Mapping[str, OptionValue]:
        """Returns ``flops``, ``bytes accessed`` and what else the backend states."""
        return self._executable.executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Returns the memory that a launch needs, in bytes."""
        return self._executable.executable.memory_analysis()

    def serialize(self) -> bytes:
        """Returns the executable as bytes, for ``client.deserialize_executable``."""
        return self._executable.executable.serialize()

    def runtime_executable(self) -> LoadedExecutable:
        """Returns the backend's executable."""
        return self._executable

    def __repr__(self) -> str:
        takes = "…" if self.input_types is None else ", ".join(map(str, self.input_types))
        gives = ", ".join(map(str, self.output_types))
        return f"<program {self.program.name!r} on {self.device!r}: ({takes}) -> ({gives})>"
