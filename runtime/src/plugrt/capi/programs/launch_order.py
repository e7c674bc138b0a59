"""`PartByPart`: a program's parts launched one device after the other, where that is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.devices.devices import ClientBase, Device
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.programs.executable import Executable
from plugrt.capi.programs.independent_parts import are_independent, is_small
from plugrt.capi.programs.launch_args import LaunchArgs
from plugrt.errors import PjrtError
from plugrt.wire import hlo_proto

_PLATFORMS = frozenset({"cpu"})
"""Whose launch on several devices passes each part to a thread, which takes longer than a small
part itself: XLA's CPU client, 100 to 300 µs instead of 30 to 50 for four devices."""


def launches_one_by_one(
    client: ClientBase, executable: Executable, devices: Sequence[Device]
) -> bool:
    """Whether that is right, and faster.

    It is where the parts, all of them in this process, exchange nothing and have little to do.
    """
    parts = executable.num_replicas * executable.num_partitions
    if client.platform not in _PLATFORMS or len(devices) != parts or parts == 1:
        return False
    try:
        if not is_small(executable.cost_analysis()):
            return False
        module = bytes(hlo_proto.read_module(executable.optimized_program()))
        # A launch of one part by ``execute_device`` is one of the program that was compiled, which
        # says which part each device has.
        return are_independent(module, numbered=True)
    except (PjrtError, ValueError):
        return False  # launching on all devices at once is correct, only slower


class PartByPart:
    """Launches in Python, as `run_one_by_one` of the compiled core makes them."""

    __slots__ = ("_handle", "_known", "_pointers")

    def __init__(self, handle: ClientHandle, devices: Sequence[Device]) -> None:
        self._handle = handle
        self._pointers = [device.pointer for device in devices]
        self._known = False  # whether the library has launched a single part

    def launch(
        self, launch: Callable[[Any], Any], launch_args: LaunchArgs, events: Any
    ) -> Any | None:
        """Launches the parts, and returns the library's error, NULL for none.

        None where the library launches no single part: nothing was launched. After an error
        nothing is left of the parts that were.
        """
        args = launch_args.args
        before = args.num_devices, args.argument_lists, args.output_lists
        _, arguments, outputs = before
        args.num_devices, error, done = 1, ffi.NULL, 0
        try:
            for pointer in self._pointers:
                args.argument_lists, args.output_lists = arguments + done, outputs + done
                args.execute_device = pointer
                if events:
                    args.device_complete_events = events + done
                error = launch(args)
                if error:
                    break
                done += 1
        except BaseException:  # an interrupt, or the client was closed
            self._drop(launch_args, events, done)
            raise
        if done:
            self._known = True
        if error and not self._known:
            self._handle.library.take_error(error)
            args.num_devices, args.argument_lists, args.output_lists = before
            args.execute_device, args.device_complete_events = ffi.NULL, events
            return None
        if error:
            self._drop(launch_args, events, done)
        return error

    def _drop(self, launch_args: LaunchArgs, events: Any, done: int) -> None:
        for i in range(done):
            for buffer in filter(None, launch_args.results(i)):
                self._handle.release("Buffer_Destroy", "buffer", buffer)
            if events and events[i]:
                self._handle.release("Event_Destroy", "event", events[i])
