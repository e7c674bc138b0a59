"""`ArrayMethods`: the optional methods of a backend for arrays and devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from plugrt.interface import Event
from plugrt_sdk.compiled import Handle
from plugrt_sdk.optional import left_out


class ArrayMethods:
    """Optional methods of `Backend`: overriding one declares the capability, else hosts do without.

    A method that is not overridden is never called (but `delete` and `close`, which do nothing).
    """

    def delete(self, handle: Handle) -> None:
        """Frees an array's memory. Called once for each handle of `put` or a launch, when nothing
        uses it any more: no launch that is not complete, no array that `view` gave. A handle that a
        launch consumed (`donated`) is the launch's. By default the handle is just dropped."""

    def close(self) -> None:
        """Frees what the backend holds, once every array is gone."""

    def event(self, handle: Handle) -> Event | None:
        """Returns the event of an array's contents, or None if they are there.

        Overriding it declares ``asynchronous_dispatch``. It is asked once for each handle that
        `put`, `copy` or a launch returns, and returns the `PendingEvent` that you made with the
        handle and complete from a thread of yours. Until then the handle may be passed to launches
        and copies, which wait for it in your order; where it fails, so must what is computed with
        it. `get` is called when it is complete. Without this method, what `put` and launches return
        is taken to be complete.
        """
        left_out(self, "event")

    def copy(self, handle: Handle, device: int) -> Handle:
        """Returns a copy in the default memory of a device (``device_to_device_copy``).

        Without it hosts copy by `get` and `put`.
        """
        left_out(self, "copy")

    def memory_stats(self, device: int) -> Mapping[str, int]:
        """Returns ``bytes_in_use``, and if known ``peak_bytes_in_use``, ``bytes_limit``,
        ``num_allocs``, ``largest_alloc_size`` and the other keys of ``PJRT_Device_MemoryStats``.

        Called by ``Device.memory_stats()`` of plugrt and of JAX, which without it have none.
        """
        left_out(self, "memory_stats")

    def dtypes(self) -> Collection[str]:
        """Returns the names of the dtypes that `put` takes, such as ``{"float32", "bfloat16"}``.

        Called once, when the client is made; others are refused as `UnsupportedDtype`, before `put`
        sees them. Without it `put` is given whatever users put there.
        """
        left_out(self, "dtypes")

    def process_index(self) -> int:
        """Returns the index of this process among those that share the devices.

        Called once, when the client is made. Devices with another process index are listed, and
        not used from here. Without it there is one process, 0.
        """
        return 0
