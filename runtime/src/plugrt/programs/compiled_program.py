"""`compile` and `CompiledProgram`: a program as a callable on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, overload

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import (
    ArgumentMismatch,
    ArgumentTypeError,
    InvalidArgument,
    PjrtError,
    ProgramError,
)
from plugrt.execution.arrays.arguments import ParameterType, parameter_types
from plugrt.execution.arrays.aval import Aval, intern_aval
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.compilation.ir_dumps import dump_executable
from plugrt.execution.launches.compiled import FollowingCall
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.default_device import default_device
from plugrt.execution.placement.launch_layouts import read_layouts
from plugrt.execution.placement.placement import single_device_launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors, with_checked_methods
from plugrt.interface import (
    CompileOptions,
    Device,
    DeviceAssignment,
    LoadedExecutable,
    Program,
    TensorType,
    Topology,
)
from plugrt.plugins.selection import backends
from plugrt.programs.compiled_export import CompiledExport
from plugrt.programs.executables import (
    EXECUTABLE,
    leave_tokens_out,
    load_executable,
    refuse_topology,
)
from plugrt.programs.executables import parameter_types as read_parameter_types
from plugrt.programs.export_conversion import convert_export, find_devices
from plugrt.programs.exported import ExportedProgram
from plugrt.programs.hlo_programs import read_parameters, require_format
from plugrt.programs.loaded_function import LoadedFunction
from plugrt.programs.loading import ProgramSource, load_program
from plugrt.programs.parsing import (
    convert_for_client,
    convert_to_version,
    has_bindings,
    parse_program,
)
from plugrt.programs.saved_function import FUNCTION, load
from plugrt.transforms.aot import AheadOfTime, compile_for
from plugrt.transforms.topology import resolve_topology

_MOST_DEVICES = 64
"""The number of other devices for which a program keeps compiled versions."""
_PARSER_WORDS = ("parse", "deserialize", "module with `main` function")
"""Words in backends' messages for parser errors; their error codes differ."""


@overload
def compile(
    program: ProgramSource,
    *,
    topology: Topology | str,
    env_overrides: Mapping[str, str | bool | int | float] | None = None,
) -> AheadOfTime: ...
@overload
def compile(
    program: ProgramSource,
    *,
    device: Device | None = None,
    backend: str | None = None,
    env_overrides: Mapping[str, str | bool | int | float] | None = None,
) -> CompiledProgram | CompiledExport | LoadedFunction: ...
@with_argument_errors
def compile(  # shadows the builtin, as the public name does
    program: ProgramSource,
    *,
    device: Device | None = None,
    backend: str | None = None,
    topology: Topology | str | None = None,
    env_overrides: Mapping[str, str | bool | int | float] | None = None,
) -> CompiledProgram | CompiledExport | LoadedFunction | AheadOfTime:
    """Returns a program (or any argument of `load_program`) compiled for one device.

    The device is ``device``, else the first of ``backend``, else the default device; an export of
    JAX for several devices gets the first ones of the backend. If no device is named, a call runs
    on the device that its arguments are committed to (of ``backend``, if that is named); an
    executable refuses arguments that are elsewhere. If a device is named, arguments are copied to
    it. With ``topology`` (or its name, such as ``"tpu:v5e:2x2"``) the program is compiled for
    devices that this machine need not have, and cannot be called. ``env_overrides`` are XLA debug
    options by name. A saved executable is loaded. The result is a `CompiledProgram`; for an export
    a `CompiledExport`, which is called as the function was; for bytes of
    `plugrt.serialize_executable.serialize` a `LoadedFunction`, whose arguments are the leaves of
    the function's arguments, on the devices that it was compiled for. Raises `ProgramError` for a
    program that cannot be read, `ArgumentError` for an export for other platforms or more devices,
    and the backend's `PjrtError` if it refuses the program.

    >>> text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    >>> plugrt.compile(text)(xp.asarray([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    loaded = load_program(program)
    if topology is not None:
        if device is not None or backend is not None:
            raise InvalidArgument("compile takes a topology, a device or a backend, not several")
        return _compile_ahead(loaded, resolve_topology(topology), dict(env_overrides or {}))
    if device is not None and backend is not None:
        raise InvalidArgument("compile takes a device or a backend, not both")
    if env_overrides and loaded.format in (EXECUTABLE, FUNCTION):
        raise InvalidArgument(
            f"env_overrides are for the compiler; {loaded.name!r} is an executable already"
        )
    explicit = device is not None
    if device is None:
        device = (
            default_device()
            if backend is None
            else backends.get_backend(backend).addressable_devices()[0]
        )
    client = device.client
    follows = None if explicit else lambda other: backend is None or other.client is client
    try:
        if loaded.format == FUNCTION:
            here = [device] if explicit else device.client.addressable_devices()
            return LoadedFunction(load(loaded.code, here))
        if isinstance(loaded, ExportedProgram):
            devices = find_devices(loaded, device, explicit)
            overrides = dict(env_overrides or {})
            return CompiledExport(loaded, devices, overrides, follows=follows)
        return _compile_here(loaded, device, dict(env_overrides or {}), follows)
    except PjrtError as error:
        if loaded.format == FUNCTION:
            raise type(error)(
                f"{loaded.name!r} is a compiled function that plugrt saved; "
                f"{device.client.backend_name} cannot load it: {error.message}"
            ) from error
        if loaded.format == EXECUTABLE:
            raise  # the error names the file
        raise _blame(loaded, device.client.backend_name, error) from error


def _compile_here(
    program: Program,
    device: Device,
    overrides: Mapping[str, str | bool | int | float],
    follows: Callable[[Device], bool] | None,
) -> CompiledProgram:
    if program.format == EXECUTABLE:
        executable = load_executable(program, device)
        dump_executable(program.name, executable.executable)
        types = read_parameter_types(executable.executable)
        stays = follows and (lambda other: other == device)
        return CompiledProgram(program, executable, device, types, stays)
    client = device.client
    require_format(program, client)
    inputs, tupled = _read_parameters(program)
    options = CompileOptions(
        device_assignment=DeviceAssignment(((device.id,),)), env_overrides=overrides,
        parameter_is_tupled=tupled,
    )  # fmt: skip
    executable = compile_program(client, convert_for_client(program, client), options, inputs or ())
    if inputs is None:
        inputs = read_parameter_types(executable.executable)
    return CompiledProgram(
        program,
        executable,
        device,
        inputs,
        follows,
        lambda other: _compile_here(program, other, overrides, None),
    )


def _compile_ahead(
    loaded: Program, target: Topology, overrides: Mapping[str, str | bool | int | float]
) -> AheadOfTime:
    if loaded.format in (EXECUTABLE, FUNCTION):
        raise refuse_topology(loaded)
    options = CompileOptions(env_overrides=overrides)
    if isinstance(loaded, ExportedProgram):
        converted = convert_export(loaded, target)
        executable = compile_for(converted.program, target, options)
        return AheadOfTime(loaded, target, executable, converted.inputs)
    inputs, tupled = _read_parameters(loaded)
    options = CompileOptions(env_overrides=overrides, parameter_is_tupled=tupled)
    program = convert_to_version(loaded, target.stablehlo_current_version)
    return AheadOfTime(loaded, target, compile_for(program, target, options), inputs)


def _read_parameters(program: Program) -> tuple[Sequence[TensorType] | None, bool]:
    """Returns the types of the parameters if known, and whether the parameters are one tuple."""
    if program.format == "hlo":
        return read_parameters(program)
    known = program.format == "mlir" and has_bindings()
    return parse_program(program)[1] if known else None, False


def _remove_tokens(types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    return tuple(kind for kind in types if not kind.is_token)


def _blame(program: Program, backend: str, error: PjrtError) -> Exception:
    """Adds the program's name to the backend's error; a parser error becomes `ProgramError`."""
    text = f"{backend} refused the program {program.name!r}: {error.message}"
    if any(word in error.message.lower() for word in _PARSER_WORDS):
        return ProgramError(text)
    return type(error)(text)


@with_checked_methods
class CompiledProgram(FollowingCall):
    """A program that is compiled and loaded; call it with one array for each parameter.

    A call returns the result, or a tuple of results if there are several or none. Host data are put
    on the device, and a Python scalar is converted to the parameter's dtype. If the device was
    named, arrays elsewhere are copied to it; else a call runs on the device that they are committed
    to. Tokens, which order effects, are not among its arguments and results. Raises
    `ArgumentMismatch` naming each parameter that differs, and how.
    """

    def __init__(
        self,
        program: Program,
        executable: LoadedExecutable,
        device: Device,
        input_types: Sequence[TensorType] | None,
        follows: Callable[[Device], bool] | None = None,
        make: Callable[[Device], CompiledProgram] | None = None,
    ) -> None:
        """``make(device)`` compiles it for another device, which ``follows(device)`` allows."""
        self._follows, self._make = follows, make
        self._elsewhere: BoundedCache[Device, CompiledProgram] = BoundedCache(_MOST_DEVICES)
        self.program = program
        """The program as it was loaded."""
        self.device = device
        """The device that it runs on."""
        arrays = None if input_types is None else _remove_tokens(input_types)
        self.input_types = arrays
        """The parameters' types; None if neither jaxlib nor the backend states them."""
        self._runtime = executable
        self._launched = leave_tokens_out(executable, input_types or ())
        types = None if arrays is None else [(t.shape, t.dtype, False) for t in arrays]
        count = len(self.output_types)
        spec = pytrees.flatten(0 if count == 1 else (0,) * count)[1]
        loaded = self._load(types or ())
        super().__init__(loaded, None, spec, types, f"program {program.name!r}")

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The results' types."""
        return _remove_tokens(self._runtime.executable.output_types)

    def runtime_executable(self) -> LoadedExecutable:
        """Returns the backend's executable."""
        return self._runtime

    def serialize(self) -> bytes:
        """Returns bytes for `plugrt.compile`; of a loaded executable, the bytes it was loaded from.

        XLA's CPU clients (jaxlib 0.10, xla-cpu-pjrt 0.0.1) serialise an executable that was itself
        deserialised without its functions. No public report of it was found.
        """
        # Workaround for xla-serialized-twice
        return self.program.code if self.program.format == EXECUTABLE else super().serialize()

    def call_flat(self, arrays: Sequence[object]) -> tuple[Any, ...]:
        """Calls it with an argument for each parameter; returns all results, as a tuple."""
        found = self(*arrays)
        return found if isinstance(found, tuple) else (found,)

    def _load(self, types: Sequence[ParameterType]) -> LoadedProgram:
        outputs = self.output_types
        plan = Plan(
            name=self.program.name,
            kept=tuple(range(len(types))),
            sources=tuple(("result", i) for i in range(len(outputs))),
        )
        launch = single_device_launch(
            self.device, len(types), [None] * len(outputs), committed=True
        )
        named = self.program.may_name_layouts and self._launched is self._runtime
        if named and self.device.client.capabilities.layouts:
            launch = read_layouts(launch, plan, types, outputs, self._runtime)
        results = [
            intern_aval(t.shape, t.dtype, here, True, layout=t.layout)
            for t, here in zip(outputs, launch.out_shardings, strict=True)
        ]
        return LoadedProgram(plan, types, launch, self._launched, (), results, self._read_module)

    def _read_module(self) -> Any:
        if self.program.format != "mlir" or not has_bindings():
            return None
        return parse_program(self.program)[0]

    def _program_for(self, avals: Sequence[Aval]) -> LoadedProgram:
        place = self._find_place(avals, range(len(avals)))
        if place != self.device:
            assert self._make is not None  # an executable is never compiled for another device
            make = partial(self._make, place)
            return self._elsewhere.get_or_make(place, make)._program_for(avals)
        return self._load(parameter_types(avals)) if self._types is None else self._program

    def _name(self, i: int) -> str:
        return f"parameter {i}"

    def _flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], read: Sequence[Any] = ()
    ) -> FlatCall:
        if kwargs:
            raise ArgumentTypeError(
                f"{self._title} takes no keyword arguments; got {sorted(kwargs)}"
            )
        if self.input_types is not None and len(args) != len(self.input_types):
            takes = ", ".join(map(str, self.input_types))
            raise ArgumentMismatch(
                f"{self._title} takes {len(self.input_types)} arguments ({takes}); called with "
                f"{len(args)}"
            )
        return FlatCall(args, None)

    def __repr__(self) -> str:
        takes = "…" if self.input_types is None else ", ".join(map(str, self.input_types))
        gives = ", ".join(map(str, self.output_types))
        return f"<program {self.program.name!r} on {self.device!r}: ({takes}) -> ({gives})>"
