"""`ArrayMethods`: the optional methods of a backend for arrays and devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from plugrt.interface import Event, Layout
from plugrt_sdk.compiled import Handle
from plugrt_sdk.optional import refuse_left_out


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
        is taken to be complete. Hosts know a launch to have ended when its results are there: one
        without results, of a program that calls Python, must have ended when its call returns.
        """
        refuse_left_out(self, "event")

    def copy(self, handle: Handle, device: int) -> Handle:
        """Returns a copy in the default memory of a device (``device_to_device_copy``).

        Without it hosts copy by `get` and `put`.
        """
        refuse_left_out(self, "copy")

    def memories(self, device: int) -> Sequence[str]:
        """Returns the kinds of memory that a device addresses, the default first.

        It declares ``memory_kinds``. Kinds that hosts know are ``device``, ``pinned_host`` and
        ``unpinned_host``. Called once for each device, when the client is made; `put_in_memory`
        goes with it. Results are in the memory that the program states (``mhlo.memory_kind``), else
        in the default one. Without it a device has one memory, ``device``, and other kinds are
        refused.
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
        leaves to the compiler is row-major. Without this method other layouts are refused, in
        programs too.
        """
        refuse_left_out(self, "put_in_layout")

    def view(self, handle: Handle) -> npt.NDArray[Any]:
        """Returns an array over the handle's own memory, which is the host's.

        It declares ``zero_copy_get``, ``dlpack`` and ``unsafe_pointer``. Called instead of `get`.
        As long as an array that users made of it lives, the handle is neither deleted nor consumed.
        The address must be the same each time; DLPack and pointers are for row-major memory.
        Without it `get` copies, and there is no DLPack.
        """
        refuse_left_out(self, "view")

    def alias(self, array: npt.NDArray[Any], device: int) -> Handle | None:
        """Returns a handle that keeps the array and looks at its memory; None to have it `put`.

        Called where the host promises not to change the array while the handle lives
        (``zero_copy_put``). Write to it only where ``array.flags.writeable``. Results must not
        share its memory: they may live longer. Without it arrays are always `put`.
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
