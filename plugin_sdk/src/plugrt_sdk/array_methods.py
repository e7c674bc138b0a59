"""`ArrayMethods`: the optional methods of a backend for arrays and devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from plugrt.interface import Event, Layout
from plugrt_sdk.compiled import Handle
from plugrt_sdk.optional import refuse_left_out


class ArrayMethods:
    """Optional methods of `Backend`: overriding one declares a capability, which hosts then use.

    A method that is not overridden is never called, except `delete` and `close`, which do nothing
    by default.
    """

    def delete(self, handle: Handle) -> None:
        """Frees an array's memory.

        Called once for each handle that `put` or a launch returned, when nothing uses it any more:
        no unfinished launch, and no array that `view` returned. Not called for a handle that a
        launch consumed (`donated`). By default the SDK only drops its reference to the handle.
        """

    def close(self) -> None:
        """Frees the resources of the backend. Called when every array has been deleted."""

    def event(self, handle: Handle) -> Event | None:
        """Returns the event of an array's contents, or None if they are complete.

        Overriding it declares ``asynchronous_dispatch``. It is called once for each handle that
        `put`, `copy` or a launch returns. Return the `PendingEvent` that you made with the handle,
        and complete it from a thread of yours. Until then the handle may be passed to launches and
        copies: your backend runs them after the work that they depend on. If that work fails, they
        must fail, too. `get` is called after the event is complete. Without this method, hosts
        regard the results of `put` and of launches as complete. Hosts regard a launch as complete
        when its results are: a launch without results whose program calls Python must be complete
        when its call returns.
        """
        refuse_left_out(self, "event")

    def copy(self, handle: Handle, device: int) -> Handle:
        """Returns a copy in the default memory of a device (``device_to_device_copy``).

        Without it hosts copy by `get` and `put`.
        """
        refuse_left_out(self, "copy")

    def memories(self, device: int) -> Sequence[str]:
        """Returns the kinds of memory that a device addresses, the default first.

        Overriding it declares ``memory_kinds``; `put_in_memory` must then be overridden, too. Hosts
        know the kinds ``device``, ``pinned_host`` and ``unpinned_host``. Called once for each
        device, when the client is created. Results are in the memory that the program states
        (``mhlo.memory_kind``), else in the default one. Without this method a device has one
        memory, ``device``, and the client refuses other kinds.
        """
        return ("device",)

    def put_in_memory(self, array: npt.NDArray[Any], device: int, kind: str) -> Handle:
        """Copies a host array to a memory of a device that is not the default, as `put` does."""
        refuse_left_out(self, "put_in_memory")

    def copy_to_memory(self, handle: Handle, device: int, kind: str) -> Handle:
        """Returns a copy in a memory of a device, also in the default one.

        Without it such copies are made by `get` and `put` or `put_in_memory`.
        """
        refuse_left_out(self, "copy_to_memory")

    def put_in_layout(self, array: npt.NDArray[Any], device: int, layout: Layout) -> Handle:
        """Copies a host array to a device in the layout ``layout``; otherwise as `put`.

        Overriding it declares ``layouts`` and ``layout_put``: arrays are row-major unless a put or
        a program states another layout. ``layout`` is never row-major and has no tiles. Programs
        then state layouts of their parameters and results (`read_layouts`): compiled programs
        accept and return arrays in them, and `copy` keeps the layout. A layout that the program
        leaves to the compiler is row-major, and for a result that is a transposed parameter the
        parameter's order in memory. Without this method other layouts are refused, in programs
        too.
        """
        refuse_left_out(self, "put_in_layout")

    def view(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns an array over the handle's own memory, which must be host memory.

        Overriding it declares ``zero_copy_get``, ``dlpack`` and ``unsafe_pointer``. It is called
        instead of `get`. The handle is neither deleted nor consumed while an array lives that users
        made of the result. Return the same address each time; DLPack and pointers need row-major
        memory. Without this method `get` copies, and DLPack is not supported.
        """
        refuse_left_out(self, "view")

    def alias(self, array: npt.NDArray[Any], device: int) -> Handle | None:
        """Returns a handle that refers to the array's memory, or None: the array is then `put`.

        The handle must keep the array alive. Called if the host promises not to change the array
        while the handle lives (``zero_copy_put``). Write to the memory only if
        ``array.flags.writeable``. Results must not share it: they may live longer. Without this
        method arrays are always `put`.
        """
        refuse_left_out(self, "alias")

    def pointer(self, handle: Handle) -> int:
        """Returns the address of an array's memory on its device (``unsafe_pointer``).

        Without it that is the address of the `view`, and without that `Unimplemented`.
        """
        refuse_left_out(self, "pointer")

    def memory_stats(self, device: int) -> Mapping[str, int]:
        """Returns ``bytes_in_use``, and if known ``peak_bytes_in_use``, ``bytes_limit``,
        ``num_allocs``, ``largest_alloc_size`` and the other keys of ``PJRT_Device_MemoryStats``.

        Called by ``Device.memory_stats()`` of plugrt and of JAX, which without it have none.
        """
        refuse_left_out(self, "memory_stats")

    def dtypes(self) -> Collection[str]:
        """Returns the names of the dtypes that `put` accepts, such as ``{"float32", "bfloat16"}``.

        Called once, when the client is made; others are refused as `UnsupportedDtype`, before `put`
        sees them. Without this method, `put` receives arrays of every dtype.
        """
        refuse_left_out(self, "dtypes")

    def process_index(self) -> int:
        """Returns the index of this process among those that share the devices.

        Called once, when the client is made. Devices with another process index are listed, but not
        used from here. Without this method there is one process, 0.
        """
        return 0
