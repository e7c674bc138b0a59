"""`LaunchErrors`: the exceptions of a program's launches that failed, in Python and in the core."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.structs import new_struct
from plugrt.capi.buffers.buffer_spec import BufferSpec
from plugrt.capi.buffers.donated_arguments import DonatedArguments
from plugrt.capi.library.client_handle import ClientHandle
from plugrt.capi.programs.executable import Executable
from plugrt.capi.programs.launch_args import LaunchArgs
from plugrt.capi.programs.launch_checks import LaunchChecks
from plugrt.errors import FailedPrecondition, InvalidArgument, InvalidReply
from plugrt.interface import Shards

_GONE = re.compile("delet|donat", re.IGNORECASE)
"""What the refusal of an argument says that has no data any more."""


class LaunchErrors:
    """What a program knows of its launches when one fails. The core calls its methods by name."""

    __slots__ = ("_arity", "_deleted", "_donation", "_executable", "_faults", "_handle", "_specs")

    _arity: int | None
    """The number of arguments; None before the first launch."""
    _deleted: bool
    _donation: DonatedArguments | None
    _executable: Executable
    _faults: LaunchChecks
    _handle: ClientHandle
    _specs: list[list[BufferSpec]]
    """Of the results, on each device."""

    def _end_without_results(
        self,
        launch_args: LaunchArgs,
        arguments: Sequence[Shards],
        kept: Collection[int] = (),
    ) -> Exception:
        """Returns the exception of a launch that gave NULL for a result.

        It was made all the same, and took what is donated.
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
            f"{self._handle.library.owner} launched {self._executable.name!r}, but gave no "
            "device_complete_events (NULL)"
        )

    def _launch_error(self, error: Any, arguments: Sequence[Shards]) -> Exception:
        """Returns the exception of a launch; a concurrent deletion takes precedence.

        Deleted arguments are refused with INVALID_ARGUMENT, and words that XLA's clients have for
        it. After another error, such as that of a function that the program calls, those that are
        gone were donated to this launch, which failed later.
        """
        reported = self._handle.library.error_of("LoadedExecutable_Execute", error)
        if self._deleted:
            return FailedPrecondition(f"the executable {self._executable.name!r} was deleted")
        is_refusal = isinstance(reported, InvalidArgument) and _GONE.search(reported.message)
        if self._donation and not is_refusal and self._donation.mark_taken(arguments):
            return reported
        return self._faults.find_deleted(arguments) or reported

    def _argument_error(self, arguments: Sequence[Shards]) -> Exception:
        fault = self._faults.find(arguments, self._arity)
        return fault or InvalidArgument("the arguments of the launch changed while it was made")
