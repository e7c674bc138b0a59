"""`Ledger`: counts the handles of each type that a library created and destroyed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.function_table import Slot
from plugrt.capi.loading.library import Library

_CREATES: dict[str, tuple[tuple[str, str], ...]] = {
    "Client_Create": (("client", "Client"),),
    "Client_Compile": (("executable", "LoadedExecutable"),),
    "Client_Load": (("loaded_executable", "LoadedExecutable"),),
    "Executable_DeserializeAndLoad": (("loaded_executable", "LoadedExecutable"),),
    "LoadedExecutable_GetExecutable": (("executable", "Executable"),),
    "Compile": (("executable", "Executable"),),
    "TopologyDescription_Create": (("topology", "TopologyDescription"),),
    "TopologyDescription_Deserialize": (("topology", "TopologyDescription"),),
    "Client_BufferFromHostBuffer": (("buffer", "Buffer"), ("done_with_host_buffer", "Event")),
    "Client_CreateViewOfDeviceBuffer": (("buffer", "Buffer"),),
    "Client_CreateUninitializedBuffer": (("buffer", "Buffer"),),
    "Client_CreateErrorBuffer": (("buffer", "Buffer"),),
    "Client_CreateBuffersForAsyncHostToDevice": (("transfer_manager", "TransferManager"),),
    "AsyncHostToDeviceTransferManager_RetrieveBuffer": (("buffer_out", "Buffer"),),
    "AsyncHostToDeviceTransferManager_TransferData": (("done_with_h2d_transfer", "Event"),),
    "AsyncHostToDeviceTransferManager_TransferLiteral": (("done_with_h2d_transfer", "Event"),),
    "Buffer_CopyToDevice": (("dst_buffer", "Buffer"),),
    "Buffer_CopyToMemory": (("dst_buffer", "Buffer"),),
    "Buffer_ToHostBuffer": (("event", "Event"),),
    "Buffer_CopyRawToHost": (("event", "Event"),),
    "Buffer_ReadyEvent": (("event", "Event"),),
}
"""Function to the fields in which it returns a handle that the caller owns."""

_DESTROYS: dict[str, tuple[str, str]] = {
    "Error_Destroy": ("error", "Error"),
    "Client_Destroy": ("client", "Client"),
    "Executable_Destroy": ("executable", "Executable"),
    "LoadedExecutable_Destroy": ("executable", "LoadedExecutable"),
    "TopologyDescription_Destroy": ("topology", "TopologyDescription"),
    "Buffer_Destroy": ("buffer", "Buffer"),
    "Event_Destroy": ("event", "Event"),
    "AsyncHostToDeviceTransferManager_Destroy": ("transfer_manager", "TransferManager"),
}


class Ledger:
    """Counts in the function table itself, independently of plugrt's own bookkeeping.

    Without a ledger there is no cost; with one, two dictionary updates a call. Only clients created
    after the ledger are counted.
    """

    def __init__(self, library: Library) -> None:
        self.created: Counter[str] = Counter()
        self.destroyed: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._loaded: dict[Any, Any] = {}
        self._outputs: dict[Any, int] = {}
        """The number of results on a device, by ``PJRT_LoadedExecutable*``."""
        for name in list(library.slots):
            if library.has(name):
                library.slots[name] = self._watch(name, library.slots[name])

    def open_handles(self) -> dict[str, int]:
        """Returns the number of live handles of each type; types without are left out."""
        with self._lock:
            handle_types = set(self.created) | set(self.destroyed)
            left = {
                handle_type: self.created[handle_type] - self.destroyed[handle_type]
                for handle_type in sorted(handle_types)
            }
        return {handle_type: count for handle_type, count in left.items() if count}

    def _watch(self, name: str, function: Slot) -> Slot:
        after = self._after(name)

        def call_and_count(args: Any) -> Any:
            destroyed = _DESTROYS.get(name)
            if destroyed is not None and getattr(args, destroyed[0]) != ffi.NULL:
                with self._lock:
                    self.destroyed[destroyed[1]] += 1
            error = function(args)
            if error is not None and error != ffi.NULL:
                with self._lock:
                    self.created["Error"] += 1
            elif after is not None:
                with self._lock:
                    after(args)
            return error

        return call_and_count

    def _after(self, name: str) -> Callable[[Any], None] | None:
        if name == "LoadedExecutable_Execute":
            return self._count_results
        if name == "Executable_OutputElementTypes":
            return self._learn_outputs
        fields = _CREATES.get(name)
        if fields is None:
            return None

        def count(args: Any) -> None:
            for field, handle_type in fields:
                self.created[handle_type] += getattr(args, field) != ffi.NULL
            if name == "LoadedExecutable_GetExecutable":
                self._loaded[args.executable] = args.loaded_executable

        return count

    def _learn_outputs(self, args: Any) -> None:
        loaded = self._loaded.get(args.executable)
        if loaded is not None:
            self._outputs[loaded] = args.num_output_types

    def _count_results(self, args: Any) -> None:
        """Counts results and events; the number of results is known from the executable."""
        self.created["Buffer"] += args.num_devices * self._outputs[args.executable]
        if args.device_complete_events != ffi.NULL:
            self.created["Event"] += args.num_devices
