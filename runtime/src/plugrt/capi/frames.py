"""`Frame`: the C structs of one launch, prepared once and filled again for each launch."""

from __future__ import annotations

from typing import Any

from plugrt.capi._abi import ffi
from plugrt.capi.tables import new_struct
from plugrt.interface import ExecuteOptions


class Frame:
    """Argument struct, options, and the arrays of arguments and results for each device."""

    __slots__ = (
        "_keep", "_num_results", "_options", "all", "args", "arguments", "hot", "outputs",
        "produced",
    )  # fmt: skip

    def __init__(self, executable: Any, devices: int, num_arguments: int, num_results: int) -> None:
        self.args = args = new_struct("struct PJRT_LoadedExecutable_Execute_Args")
        self._options = new_struct("PJRT_ExecuteOptions")
        self.arguments = [ffi.new("PJRT_Buffer*[]", num_arguments) for _ in range(devices)]
        self.outputs = [ffi.new("PJRT_Buffer*[]", num_results) for _ in range(devices)]
        self._num_results = num_results
        self.all = slice(0, num_arguments)
        first, results = (self.arguments[0], self.outputs[0]) if devices else (None, None)
        self.produced = (results, num_results)
        """The results of the first device, as ``ffi.unpack`` takes them."""
        self.hot: tuple[Any, ...] = (args, first, self.all, results)
        """What a launch on one device needs: ``first[all] = pointers``, and its results."""
        argument_lists = ffi.new("PJRT_Buffer**[]", self.arguments)
        output_lists = ffi.new("PJRT_Buffer**[]", self.outputs)
        self._keep = [argument_lists, output_lists]
        args.executable = executable
        args.options = self._options
        args.argument_lists = argument_lists
        args.num_devices = devices
        args.num_args = num_arguments
        args.output_lists = output_lists

    def fill(self, pointers: list[Any], device: int = 0) -> None:
        """Sets a device's arguments; `TypeError` or `ValueError` unless they are the right ones."""
        self.arguments[device][self.all] = pointers

    def results(self, device: int = 0) -> list[Any]:
        """Returns the ``PJRT_Buffer*`` of a device's results after the launch."""
        return list(ffi.unpack(self.outputs[device], self._num_results))

    def set_options(self, options: ExecuteOptions) -> None:
        """Sets what a launch says beyond its arguments."""
        keep = ffi.new("int64_t[]", list(options.non_donatable_input_indices))
        self._keep.append(keep)
        self._options.launch_id = options.launch_id
        self._options.non_donatable_input_indices = keep
        self._options.num_non_donatable_input_indices = len(options.non_donatable_input_indices)
