"""`CompiledExport`: an export of JAX as a callable, for the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import (
    ArgumentError,
    ArgumentMismatch,
    InvalidReply,
    ShapeError,
)
from plugrt.execution.arrays.arguments import ParameterType
from plugrt.execution.arrays.aval import Aval, intern_aval, is_placed
from plugrt.execution.compilation.compiler import compile_program
from plugrt.execution.launches.compiled import FollowingCall, SavableCall, refuse
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.loaded_program import LoadedProgram
from plugrt.execution.placement.chosen_shardings import settle_shardings
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.plan import Plan
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import (
    Device,
    Executable,
    LoadedExecutable,
    Program,
    TensorType,
)
from plugrt.programs.export_conversion import (
    ConvertedExport,
    choose_platform,
    convert_export,
    is_for,
    require_bindings,
)
from plugrt.programs.export_placement import make_launch
from plugrt.programs.exported import (
    Exported,
    ExportedProgram,
    dimensions,
    explain_sizes,
    is_static,
)
from plugrt.programs.parsing import has_bindings, parse_program
from plugrt.programs.saved_function import SavedFunction, save
from plugrt.transforms.stage_info import CompiledInfo

_MOST_SHAPES = 128
"""The number of programs kept for one export, one for each combination of shapes and device."""


@with_checked_methods
class CompiledExport(FollowingCall, CompiledInfo, SavableCall):
    """A function that JAX exported, compiled for devices; called as it was in JAX.

    Call it with the arguments of the function (positional and by keyword, with its containers); it
    returns the function's results. Host data and uncommitted arrays are put on the devices, arrays
    with another sharding are resharded, and a Python scalar is converted to the parameter's dtype.
    An export for one device runs on the device that its arguments are committed to, as in JAX, and
    refuses arrays on several devices, over which JAX divides the program; if it was compiled for a
    named device, it copies the arguments there. An export for several devices refuses arrays that
    are committed elsewhere. An export with symbolic shapes is compiled for each combination of
    shapes in its calls; the last programs are kept. Arguments that the function donates are
    deleted, as by `jit`; JAX, which calls an export within another program, copies them.

    Raises `ArgumentMismatch` naming each argument that differs, and how.
    """

    _most_runners = _MOST_SHAPES  # each runner keeps its program

    def __init__(
        self,
        program: ExportedProgram,
        devices: Sequence[Device],
        env_overrides: Mapping[str, str | bool | int | float],
        *,
        follows: Callable[[Device], bool] | None = None,
    ) -> None:
        """``follows(device)``: whether an export for one device may run on that device."""
        exported = program.exported
        self.program = program
        """The loaded program; ``program.exported`` is the parsed file."""
        self.devices = tuple(devices)
        """The devices that it runs on."""
        self.device = self.devices[0]
        """The first of `devices`."""
        if follows and len(self.devices) == 1:
            self._follows = lambda device: follows(device) and is_for(exported, device.client)
        self._overrides = tuple(sorted(env_overrides.items()))
        in_tree = exported.in_tree.build()
        paths = [path for path, _ in pytrees.flatten_with_paths(in_tree)]
        self._names = tuple(map(_name_argument, paths))
        self._shapes: BoundedCache[Any, LoadedProgram] = BoundedCache(_MOST_SHAPES)
        types: list[ParameterType] | None = None
        loaded: Any = None
        if not exported.is_symbolic:
            types = [(t.shape, t.dtype, t.weak) for t in exported.in_avals]
            loaded = self._compile(exported.static_types(), self.devices)
        else:
            choose_platform(exported, self.devices[0].client)
            require_bindings(exported)
        super().__init__(
            loaded,
            pytrees.flatten(in_tree)[1],
            pytrees.flatten(exported.out_tree.build())[1],
            types,
            f"export {exported.fun_name!r}",
        )

    @property
    def exported(self) -> Exported:
        """The parsed file."""
        return self.program.exported

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        """The types of all arguments, flat. Raises `ArgumentError` if they are symbolic."""
        self._require_one()
        return tuple(self.exported.static_types())

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        """The types of all results, flat and whole. Raises `ArgumentError` as `input_types`."""
        self._require_one()
        return tuple(TensorType(s.shape, s.dtype) for s in self._program.outputs)

    def runtime_executable(self) -> LoadedExecutable:
        """Returns the backend's executable. Raises `ArgumentError` if the export is symbolic."""
        self._require_one()
        executable = self._program.executable
        assert executable is not None  # a `Plan` without results and side effects has none
        return executable

    def serialize(self) -> bytes:
        """Returns bytes for `plugrt.compile`; raises `ArgumentError` if the export is symbolic.

        An executable does not state the shardings of its arguments. For several devices the bytes
        are therefore in the format of `plugrt.serialize_executable.serialize`, which includes the
        shardings and which `plugrt.compile` also loads.
        """
        self._require_one()
        return save(SavedFunction.of(self)) if len(self.devices) > 1 else super().serialize()

    def call_flat(self, arrays: Sequence[object]) -> tuple[Any, ...]:
        """Calls it with its arguments in the order of its leaves; returns flat results."""
        if len(arrays) != len(self._names):
            raise ArgumentMismatch(
                f"{self._title} takes {len(self._names)} arguments ({self._describe_types()}); "
                f"called with {len(arrays)}"
            )
        args, kwargs = pytrees.unflatten(self.in_tree, arrays)
        return tuple(pytrees.leaves(self(*args, **kwargs)))

    @property
    def _executable(self) -> Executable:
        self._require_one()
        return super()._executable

    def _require_one(self) -> None:
        if self.exported.is_symbolic:
            raise ArgumentError(
                f"{self._title} has symbolic shapes ({self._describe_types()}): there is a program "
                "for each combination of shapes, and none without arguments. Fix: export it for "
                "the shapes that it is wanted for"
            )

    def _program_for(self, avals: Sequence[Aval]) -> LoadedProgram:
        devices = self.devices
        if len(devices) == 1:
            devices = (self._find_place(avals, self.exported.module_kept_var_idx),)
        if not self.exported.is_symbolic and devices == self.devices:
            return self._program
        avals_in = zip(avals, self.exported.in_avals, strict=True)
        types = tuple(TensorType(aval.shape, expected.dtype) for aval, expected in avals_in)
        return self._shapes.get_or_make((devices, types), lambda: self._compile(types, devices))

    def _check(self, avals: Sequence[Aval]) -> None:
        super()._check(avals)
        if self._types is None:
            expected = self.exported.in_avals
            wrong = [
                f"  {name}: takes {takes.tensor_type}, called with {aval.tensor_type}"
                for name, takes, aval in zip(self._names, expected, avals, strict=True)
                if not self._can_accept_symbolic(takes, aval)
            ]
            refuse(f"{self._title} was called with arguments of other types", wrong)
            wrong = explain_sizes(self._names, expected, [aval.shape for aval in avals])
            refuse(f"{self._title} was called with sizes that do not fit", wrong)
        if len(self.devices) > 1:
            self._check_devices(avals)

    def _check_devices(self, avals: Sequence[Aval]) -> None:
        """Raises `ArgumentMismatch` for arrays that are committed to another set of devices.

        Arrays on the same devices in any order are resharded, as in JAX.
        """
        wrong = [
            f"  {self._names[i]}: on {aval.sharding!r}, the devices "
            f"{[device.id for device in aval.sharding.devices]}"
            for i in self.exported.module_kept_var_idx
            if is_placed(aval := avals[i])
            and aval.committed
            and aval.sharding.device_set != {*self.devices}
        ]
        ids = [device.id for device in self.devices]
        refuse(
            f"{self._title} runs on the devices {ids} of {self.device.client.backend_name!r}; "
            "these arguments are committed to others, and have to be device_put to a sharding over "
            "those, or given as host data",
            wrong,
        )

    def _can_accept_symbolic(self, expected: Aval, aval: Aval) -> bool:
        if len(expected.shape) != len(aval.shape):
            return False
        shape = tuple(
            n if isinstance(n, int) else found
            for n, found in zip(dimensions(expected), aval.shape, strict=True)
        )
        return self._can_accept((shape, expected.dtype, False), aval)

    def _name(self, i: int) -> str:
        return self._names[i]

    def _describe_types(self) -> str:
        named = zip(self._names, self.exported.in_avals, strict=True)
        return ", ".join(f"{name}: {aval.tensor_type}" for name, aval in named)

    def _check_structure(self, call: FlatCall) -> None:
        if call.spec != self._in_tree:
            raise ArgumentMismatch(
                f"{self._title} takes {self._describe_types()}, in the structure (args, kwargs) = "
                f"{self._in_tree}; called with {call.spec}"
            )

    def _compile(self, types: Sequence[TensorType], devices: tuple[Device, ...]) -> LoadedProgram:
        client = devices[0].client
        try:
            converted = convert_export(self.program, client, types)
        except ShapeError as error:
            called = ", ".join(map(str, types))
            raise ArgumentMismatch(
                f"{error}; it takes {self._describe_types()}, and was called with {called}"
            ) from error
        program = converted.program
        launch = make_launch(self.exported, devices, self._overrides)
        options = launch.compile_options()
        if len(devices) > 1:
            shardy = b"sdy" in program.code
            options = replace(options, use_spmd_partitioning=True, use_shardy_partitioner=shardy)
        executable = compile_program(client, program, options, converted.inputs)
        return self._load(executable, launch, types, converted)

    def _load(
        self,
        executable: LoadedExecutable,
        launch: Launch,
        types: Sequence[TensorType],
        converted: ConvertedExport,
    ) -> LoadedProgram:
        kept, results = self.exported.module_kept_var_idx, executable.executable.output_types
        plan = Plan(
            name=self.exported.fun_name,
            kept=kept,
            sources=tuple(("result", i) for i in range(len(results))),
            donated=tuple(kept[i] for i in converted.donated),
            argument_names=self._names,
            acts=not results,
        )
        weak = [aval.weak for aval in self.exported.in_avals]
        parameters = [(t.shape, t.dtype, w) for t, w in zip(types, weak, strict=True)]
        launch = settle_shardings(launch, plan, parameters, results, executable.executable)
        outputs = [
            intern_aval(sharding.whole_shape(t.shape), t.dtype, sharding, True, aval.weak)
            for t, sharding, aval in zip(
                results, launch.out_shardings, self.exported.out_avals, strict=True
            )
        ]
        self._check_results([s.shape for s in outputs])
        return LoadedProgram(
            plan,
            parameters,
            launch,
            executable,
            (),
            outputs,
            partial(_read_module, converted.program),
        )

    def _check_results(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Raises `InvalidReply` if the compiler returned shards of results that are to be
        replicated.
        """
        for i, (aval, shape) in enumerate(zip(self.exported.out_avals, shapes, strict=True)):
            if is_static(aval) and aval.shape != shape:
                raise InvalidReply(
                    f"{self.devices[0].client.backend_name} compiled result {i} of "
                    f"{self.exported.fun_name!r} as {shape}; {aval.tensor_type} was requested"
                )

    def __repr__(self) -> str:
        gives = ", ".join(str(aval.tensor_type) for aval in self.exported.out_avals)
        where = ", ".join(map(repr, self.devices))
        return f"<{self._title} on {where}: ({self._describe_types()}) -> ({gives})>"


def _read_module(program: Program) -> Any:
    """Returns the module for the debug checks; None if it cannot be read."""
    if program.format != "mlir" or not has_bindings():
        return None
    return parse_program(program)[0]


def _name_argument(path: str) -> str:
    """Returns JAX's name of an argument: ``[0][1]['w']`` is ``args[1]['w']``."""
    return f"args{path[3:]}" if path.startswith("[0]") else f"kwargs{path[3:]}"
