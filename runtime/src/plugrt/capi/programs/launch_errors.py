"""`LaunchChecks`, `LaunchErrors`: faults of a launch, found before it is made or when it failed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import new_struct
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.donated_arguments import DonatedArguments
from plugrt.capi.devices.devices import Device
from plugrt.capi.extensions.layouts import default_layout
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.programs.executable import Executable
from plugrt.capi.programs.launch_args import LaunchArgs
from plugrt.errors import (
    DeletedBuffer,
    FailedPrecondition,
    InvalidArgument,
    InvalidReply,
    Unimplemented,
)
from plugrt.interface import Shards, TensorType

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


class LaunchChecks:
    """Finds faults in the arguments and results of one program's launches."""

    __slots__ = ("_devices", "_executable", "_handle")

    def __init__(
        self, handle: ClientHandle, executable: Executable, devices: Sequence[Device]
    ) -> None:
        self._handle, self._executable, self._devices = handle, executable, devices

    def find(self, arguments: Sequence[Shards], arity: int | None) -> Exception | None:
        """Returns the exception for invalid arguments, None if they are valid.

        ``arity`` is the program's number of arguments, None if it is not known yet.
        """
        name = self._executable.name
        if not self._devices:
            return InvalidReply(
                f"{self._handle.library.owner} says that the program {name!r} is loaded on no "
                "device of this process (PJRT_LoadedExecutable_AddressableDevices gave none), so "
                "that it cannot be launched here; the processes of its devices launch a program"
            )
        if arity is not None and len(arguments) != arity:
            return InvalidArgument(
                f"the program {name!r} takes {arity} arguments; {len(arguments)} were given"
            )
        for i, shards in enumerate(arguments):
            if len(shards) != len(self._devices):
                return InvalidArgument(
                    f"argument {i} of {name!r} has {len(shards)} shards; the program runs on the "
                    f"{len(self._devices)} devices {list(self._devices)}"
                )
            for buffer in shards:
                if not isinstance(buffer, Buffer) or buffer._spec.handle is not self._handle:
                    return InvalidArgument(
                        f"argument {i} of {name!r} is {buffer!r}, not a buffer of the client "
                        "that the program is loaded on"
                    )
                if buffer._pointer is None:
                    return self._make_deleted_error(i, buffer)
        return self._find_misplaced_argument(arguments)

    def _find_misplaced_argument(self, arguments: Sequence[Shards]) -> Exception | None:
        """Returns the exception for an argument in another layout than the program expects.

        Libraries compare only sizes, and would read the elements in the wrong order.
        """
        found = [shards[0]._spec.tensor_type for shards in arguments]  # type: ignore[attr-defined]
        executable = self._executable
        if not executable.names_layouts and all(t.layout is None for t in found):
            return None
        try:
            needed = executable.parameter_layouts()
        except Unimplemented:
            return None
        for i, (t, layout) in enumerate(zip(found, needed, strict=False)):
            lies = t.layout or default_layout(self._handle, t)
            if not lies.is_met_by(layout):
                return InvalidArgument(
                    f"argument {i} of {executable.name!r} must be in memory as {layout.text}; the "
                    f"{TensorType(t.shape, t.dtype)} that was given is {lies.text}"
                )
        return None

    def find_deleted(self, arguments: Sequence[Shards]) -> DeletedBuffer | None:
        """Returns the exception for an argument that another thread deleted or donated."""
        for i, shards in enumerate(arguments):
            for buffer in shards:
                if isinstance(buffer, Buffer) and buffer.is_gone():
                    return self._make_deleted_error(i, buffer)
        return None

    def _make_deleted_error(self, i: int, buffer: Buffer) -> DeletedBuffer:
        tensor_type = buffer._spec.tensor_type
        return DeletedBuffer(
            f"argument {i} of {self._executable.name!r} ({tensor_type}) {buffer.deletion_reason}"
        )

    def missing_result(
        self, launch_args: LaunchArgs, specs: Sequence[Sequence[BufferSpec]]
    ) -> InvalidReply:
        """Returns the exception of a launch that lacks results, and frees the others."""
        made = [launch_args.results(device) for device in range(len(specs))]
        return self.missing_among(launch_args.args, made, specs)

    def missing_among(
        self, args: CData, made: Sequence[Sequence[CData]], specs: Sequence[Sequence[BufferSpec]]
    ) -> InvalidReply:
        """As `missing_result`, of the pointers ``made`` on each device; ``args`` is the struct."""
        missing = ""
        for device, (pointers, of_device) in enumerate(zip(made, specs, strict=True)):
            for i, (pointer, spec) in enumerate(zip(pointers, of_device, strict=True)):
                if pointer:
                    Buffer(pointer, spec)
                else:
                    missing = missing or f"output_lists[{device}][{i}]"
        return self._handle.library.invalid(
            args, f"it gave no {missing} (NULL) for {self._executable.name!r}"
        )


_GONE = re.compile("delet|donat", re.IGNORECASE)
"""Matches the error message for an argument that has no data any more."""


class LaunchErrors:
    """The facts that explain a failed launch of a program. The core calls its methods by name."""

    __slots__ = ("_arity", "_deleted", "_donation", "_faults", "_handle", "_specs", "executable")

    _arity: int | None
    """The number of arguments; None before the first launch."""
    _deleted: bool
    _donation: DonatedArguments | None
    _faults: LaunchChecks
    _handle: ClientHandle
    _specs: list[list[BufferSpec]]
    """The specs of the results, on each device."""
    executable: Executable

    def _end_without_results(
        self,
        launch_args: LaunchArgs,
        arguments: Sequence[Shards],
        kept: Collection[int] = (),
    ) -> Exception:
        """Returns the exception of a launch that returned NULL for a result.

        The launch took place nevertheless, and consumed the donated arguments.
        """
        found = self._faults.missing_result(launch_args, self._specs)
        if self._donation:
            self._donation.mark(arguments, kept)
        return found

    def _missing_result(self, addresses: Sequence[int]) -> Exception:
        """Returns the exception of a launch of the core that gave NULL for a result."""
        made = iter([ffi.cast("PJRT_Buffer*", address) for address in addresses])
        rows = [[next(made) for _ in of_device] for of_device in self._specs]
        args = new_struct("struct PJRT_LoadedExecutable_Execute_Args")
        return self._faults.missing_among(args, rows, self._specs)

    def _missing_event(self) -> Exception:
        """Returns the exception of a launch that gave NULL for an event."""
        return InvalidReply(
            f"{self._handle.library.owner} launched {self.executable.name!r}, but gave no "
            "device_complete_events (NULL)"
        )

    def _launch_error(self, error: object, arguments: Sequence[Shards]) -> Exception:
        """Returns the exception of a launch; a concurrent deletion takes precedence.

        Libraries refuse deleted arguments with INVALID_ARGUMENT and XLA's words for it. After
        another error, such as an error of a function that the program calls, deleted arguments were
        donated to this launch, which failed later.
        """
        reported = self._handle.library.error_of("LoadedExecutable_Execute", error)
        if self._deleted:
            return FailedPrecondition(f"the executable {self.executable.name!r} was deleted")
        is_refusal = isinstance(reported, InvalidArgument) and _GONE.search(reported.message)
        if self._donation and not is_refusal and self._donation.mark_taken(arguments):
            return reported
        return self._faults.find_deleted(arguments) or reported

    def _argument_error(self, arguments: Sequence[Shards]) -> Exception:
        fault = self._faults.find(arguments, self._arity)
        return fault or InvalidArgument("the arguments of the launch changed while it was made")
