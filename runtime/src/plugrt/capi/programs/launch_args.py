"""`LaunchArgs`: the C structs of a launch, allocated once and refilled for each launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import Prepared, StructSizes
from plugrt.interface import ExecuteOptions

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

_POINTER: int = ffi.sizeof("void*")


class LaunchArgs:
    """Argument struct, options, and the arrays of arguments and results for each device.

    They are one block, in this order: the structs, the lists of the devices' arrays, the results,
    the arguments. All but the arguments, which each launch sets, is restored before a launch.
    """

    __slots__ = (
        "_keep", "_num_results", "_options", "_prepared", "all", "args", "arguments", "hot",
        "outputs", "produced",
    )  # fmt: skip

    def __init__(
        self,
        executable: object,
        devices: int,
        num_arguments: int,
        num_results: int,
        sizes: StructSizes,
    ) -> None:
        words = devices * (2 + num_results + num_arguments)
        self._prepared = prepared = Prepared(
            "struct PJRT_LoadedExecutable_Execute_Args",
            "PJRT_ExecuteOptions",
            extra_bytes=words * _POINTER,
            sizes=sizes,
        )
        self.args, self._options = args, options = prepared.structs
        self._keep: list[object] = [executable]
        self._num_results = num_results
        self.all = slice(0, num_arguments)
        start = ffi.sizeof(prepared.block) - words * _POINTER
        lists = ffi.cast("PJRT_Buffer***", prepared.block + start)
        rows = ffi.cast("PJRT_Buffer**", prepared.block + start + 2 * devices * _POINTER)
        self.outputs = [rows + i * num_results for i in range(devices)]
        rows += devices * num_results
        self.arguments = [rows + i * num_arguments for i in range(devices)]
        for i in range(devices):
            lists[i], lists[devices + i] = self.arguments[i], self.outputs[i]
        args.executable = executable
        args.options = options
        args.argument_lists = ffi.cast("PJRT_Buffer* const* const*", lists)
        args.num_devices = devices
        args.num_args = num_arguments
        args.output_lists = lists + devices
        prepared.fix(ffi.sizeof(prepared.block) - devices * num_arguments * _POINTER)
        first, results = (self.arguments[0], self.outputs[0]) if devices else (None, None)
        self.produced = (results, num_results)
        """The results of the first device, as arguments of ``ffi.unpack``."""
        self.hot: tuple[Any, ...] = (
            args, prepared.block, prepared.fixed, prepared.pristine, first, self.all, results
        )  # fmt: skip
        """The data for a launch on one device: ``block[fixed] = pristine`` restores the structs,
        ``first[all] = pointers`` sets the arguments, and ``results`` holds the results."""

    def restore(self) -> None:
        """Restores all but the arguments to the state before any launch."""
        self._prepared.restore()

    def fill(self, pointers: list[CData], device: int = 0) -> None:
        """Sets a device's arguments; `TypeError` or `ValueError` unless they are the right ones."""
        self.arguments[device][self.all] = pointers

    def results(self, device: int = 0) -> list[CData]:
        """Returns the ``PJRT_Buffer*`` of a device's results after the launch."""
        return list(ffi.unpack(self.outputs[device], self._num_results))

    def set_options(self, options: ExecuteOptions) -> None:
        """Sets the execute options."""
        keep = ffi.new("int64_t[]", list(options.non_donatable_input_indices))
        self._keep.append(keep)
        if options.launch_id:
            self._options.launch_id = options.launch_id
        self._options.non_donatable_input_indices = keep
        self._options.num_non_donatable_input_indices = len(options.non_donatable_input_indices)
