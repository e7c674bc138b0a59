"""`compile_for_device`: programs on a device that has kernels for some operations.

The values of a program stay on the device from one kernel to the next. An operation without a
kernel reads its operands from the device, runs on NumPy, and puts its results there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Handler, Program
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.passes import legalize_chlo
from plugrt_numpy.backend import check_names
from plugrt_numpy.chosen_shardings import choose_shardings
from plugrt_numpy.data_types import Array, Function
from plugrt_numpy.devices import Grid
from plugrt_numpy.failures import lower, refuse_depth, with_operations_named
from plugrt_numpy.functions import ModuleCompiler
from plugrt_numpy.launches import compile_launch
from plugrt_numpy.operation import Operation
from plugrt_numpy.operations import control_flow
from plugrt_sdk import Launch, read_module

Kernel = Callable[[Operation, int], Function | None]
"""Makes the function of an operation on arrays of the device of this id, or None where there is
none for these types; then NumPy runs it. The types of the operation have static shapes."""


@dataclass(frozen=True)
class DeviceOperations:
    """The operations of a device, whose arrays may be any objects but None.

    An array that decides a branch or a loop is converted by ``bool`` or ``int``.
    """

    kernels: Mapping[str, Kernel]
    """Operation name (``stablehlo.add``) to the kernel."""
    put: Callable[[Array, int], Any]
    """Copies a row-major array of the host to the device of this id."""
    get: Callable[[Any], Array]
    """Returns the contents of an array of the device."""
    uses_numpy: bool = True
    """Whether NumPy runs operations without a kernel; if not, programs with them are refused."""


def compile_for_device(
    program: Program,
    options: CompileOptions,
    device: DeviceOperations,
    handlers: Mapping[str, Handler] = MappingProxyType({}),
) -> Launch:
    """Returns a function from ``arguments[parameter][device]`` to ``results[result][device]``.

    NumPy runs all of a program over several devices. Raises `Unimplemented` for operations that
    neither has, with the operation's name and line.
    """
    check_names(options.env_overrides)
    assert options.device_assignment is not None
    ids = options.device_assignment.flat
    if len(ids) > 1:
        _require_numpy(device, f"{program.name!r}, which is for {len(ids)} devices")
        divided = choose_shardings(program, options)
        return _on_host(compile_launch(divided, options, handlers=handlers), device, ids)
    module = read_module(program)
    legalize_chlo(module)
    try:
        with module.context:
            main = _DeviceCompiler(module, device, ids[0], handlers).function("main")
    except RecursionError as error:
        refuse_depth(error)

    def launch(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [[result] for result in main(*[shard for [shard] in arguments])]

    return with_operations_named(launch)


class _DeviceCompiler(ModuleCompiler):
    """Makes functions of arrays of the device; its constants are put there once."""

    def __init__(
        self,
        module: ir.Module,
        device: DeviceOperations,
        device_id: int,
        handlers: Mapping[str, Handler],
    ) -> None:
        super().__init__(module, Grid(), handlers=handlers)
        self._host = ModuleCompiler(module, self.grid, handlers=handlers, constants=self._constants)
        """Compiles NumPy's operations, whose regions have arrays of the host."""
        self._device = device
        self._id = device_id
        self._placed: dict[ir.Value, Any] = {}
        self._hosts_of: dict[int, tuple[Any, Array]] = {}

    def add_constants(self, operation: ir.Operation) -> bool:
        return self._host.add_constants(operation)

    def constant(self, value: ir.Value) -> Any:
        found = super().constant(value)
        if found is None:
            return None
        if value not in self._placed:
            placed = self._placed[value] = self._device.put(_row_major(found), self._id)
            self._hosts_of[id(placed)] = placed, found
        return self._placed[value]

    def lower(self, op: Operation) -> Function:
        kernel = self._device.kernels.get(op.name)
        if kernel is not None and _is_static(op):
            function = lower(lambda op: kernel(op, self._id) or _no_kernel, op)
            if function is not _no_kernel:
                return function
        if op.name in control_flow.OPERATIONS:
            return super().lower(op)
        types = ", ".join(map(str, op.operand_types))
        _require_numpy(self._device, f"{op.name} of ({types}) ({op.where})")
        return self._through_host(op)

    def _through_host(self, op: Operation) -> Function:
        """Returns the function of an operation that NumPy runs."""
        function = self._host.lower(Operation(op.ir, self._host))
        single = len(op.ir.results) == 1
        get, put, device_id, hosts_of = self._device.get, self._device.put, self._id, self._hosts_of

        def read(value: Any) -> Any:
            known = hosts_of.get(id(value))
            return value if value is None else known[1] if known else get(value)

        def write(value: Any) -> Any:
            return None if value is None else put(_row_major(value), device_id)

        def run(*arguments: Any) -> Any:
            with np.errstate(all="ignore"):
                results = function(*map(read, arguments))
            return write(results) if single else [*map(write, results)]

        return run


def _no_kernel() -> None:
    """Stands for the function of an operation that the device has no kernel for."""


def _is_static(op: Operation) -> bool:
    kinds = [*op.operand_types, *op.result_types]
    return all(kind is not None and -1 not in kind.shape for kind in kinds)


def _row_major(value: Any) -> Array:
    return np.asarray(value, order="C")


def _on_host(launch: Launch, device: DeviceOperations, ids: Sequence[int]) -> Launch:
    """Converts a launch with host arrays to a launch with arrays of the devices."""

    def run(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
        results = launch([[*map(device.get, shards)] for shards in arguments])
        return [
            [device.put(_row_major(part), i) for part, i in zip(parts, ids, strict=True)]
            for parts in results
        ]

    return run


def _require_numpy(device: DeviceOperations, what: str) -> None:
    if not device.uses_numpy:
        raise Unimplemented(
            f"the device has no kernel for {what}, and NumPy's table, which has more operations, "
            "was turned off"
        )
