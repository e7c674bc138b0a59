"""`PartByPart`: a program's parts launched one device after the other, where that is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plugrt.capi.abi._abi import ffi
from plugrt.errors import PjrtError
from plugrt.wire import hlo_proto

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData

if TYPE_CHECKING:  # the cpu plugin imports this module without a library
    from plugrt.capi.devices.devices import ClientBase, Device
    from plugrt.capi.library.client_handle import ClientHandle
    from plugrt.capi.programs.executable import Executable
    from plugrt.capi.programs.launch_args import LaunchArgs

_PLATFORMS = frozenset({"cpu"})
"""Platforms that pass each part of a launch on several devices to a thread, which costs more than
computing a small part: XLA's CPU client, 100 to 300 µs instead of 30 to 50 for four devices."""


def is_launched_one_by_one(
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
        # A launch of one part by ``execute_device`` belongs to the compiled program, which assigns
        # a part to each device.
        return are_independent(module)
    except (PjrtError, ValueError):
        return False  # launching on all devices at once is correct, only slower


class PartByPart:
    """Launches one part after the other in Python, like `launch_one_by_one` of the core in C."""

    __slots__ = ("_handle", "_known", "_pointers")

    def __init__(self, handle: ClientHandle, devices: Sequence[Device]) -> None:
        self._handle = handle
        self._pointers = [device.pointer for device in devices]
        self._known = False  # whether the library has launched a single part

    def launch(
        self, launch: Callable[[CData], Any], launch_args: LaunchArgs, events: CData
    ) -> object:
        """Launches the parts, and returns the library's error, NULL for none.

        Returns None if the library cannot launch single parts: nothing was launched. After an
        error, the results of launched parts are deleted.
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

    def _drop(self, launch_args: LaunchArgs, events: CData, done: int) -> None:
        for i in range(done):
            for buffer in filter(None, launch_args.results(i)):
                self._handle.release("Buffer_Destroy", "buffer", buffer)
            if events and events[i]:
                self._handle.release("Event_Destroy", "event", events[i])


# Small parts that exchange nothing are launched in this thread; starting others costs more time.

_MAX_NANOSECONDS = 10_000
_COSTS = {"flops": 0.3, "transcendentals": 3.0, "bytes accessed": 0.1}
"""Approximate nanoseconds on one core for each unit that XLA's cost analysis counts."""

# HLO's operations whose result depends on the other replicas or partitions; a custom call may do
# anything. The analysis counts one iteration of a loop.
_EXCHANGES = (
    "all-reduce|all-gather|all-to-all|ragged-all-to-all|reduce-scatter|collective-permute|"
    "collective-broadcast|send|recv|infeed|outfeed|custom-call|"
    "rng|rng-get-and-update-state|async|while"
)
_IN_TEXT = re.compile(rf"\b(?:{_EXCHANGES})(?:-start)?\(")
_IN_PROTO = re.compile(rf"\x12[\x04-\x20](?:{_EXCHANGES})(?:-start)?[^a-z-]".encode())
"""Finds these in a module's bytes: an ``HloInstructionProto`` has its opcode in field 2, after its
length. Other bytes may look the same: such a program is launched on all devices at once, which is
right as well."""


def is_small(analysis: Mapping[str, Any]) -> bool:
    """Whether a program with this cost analysis runs faster than it could be passed to a thread."""
    if any(analysis.get(key, 0) < 0 for key in _COSTS):
        return False  # -1 means that the analysis cannot count it
    estimate: float = sum(analysis.get(key, 0) * cost for key, cost in _COSTS.items())
    return estimate <= _MAX_NANOSECONDS


def are_independent(hlo: str | bytes) -> bool:
    """Whether the parts of an optimised program can run at any time, in any order.

    It is HLO's text, or the bytes of an ``HloModuleProto``. A part may ask for its number, which it
    has also where it is launched separately.
    """
    return (_IN_TEXT.search(hlo) if isinstance(hlo, str) else _IN_PROTO.search(hlo)) is None
