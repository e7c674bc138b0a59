"""`Ledger`: counts the handles of each type that a library created and destroyed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.declarations import EXTENSIONS
from plugrt.capi.abi.ownership import CREATES, DESTROYS
from plugrt.capi.loading.function_table import Slot
from plugrt.capi.loading.library import Library
from plugrt.native.finalizers import finish_pending

if TYPE_CHECKING:
    from plugrt.capi.abi._abi import CData


def _handle_type(name: str, field: str) -> str:
    """Returns the type of the handle in a field of a function's argument struct, such as Buffer."""
    fields = dict(ffi.typeof(f"struct PJRT_{name}_Args").fields)
    return str(fields[field].type.item.cname).removeprefix("struct ").removeprefix("PJRT_")


class Ledger:
    """Counts in the function table itself, independently of plugrt's own bookkeeping.

    Without a ledger there is no cost; with one, two dictionary updates a call. Only clients created
    after the ledger are counted.
    """

    def __init__(self, library: Library) -> None:
        self.created: Counter[str] = Counter()
        self.destroyed: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._loaded: dict[object, object] = {}
        self._outputs: dict[object, int] = {}
        """The number of results on a device, by ``PJRT_LoadedExecutable*``."""
        extensions = [library.extension(n) for n in library.extensions if n in EXTENSIONS]
        for table in (library, *extensions):  # extensions make errors, which the library frees
            for name in filter(table.has, list(table.slots)):
                table.slots[name] = self._watch(name, table.slots[name])

    def open_handles(self) -> dict[str, int]:
        """Returns the number of live handles of each type; types without are left out."""
        finish_pending()
        with self._lock:
            handle_types = set(self.created) | set(self.destroyed)
            left = {
                handle_type: self.created[handle_type] - self.destroyed[handle_type]
                for handle_type in sorted(handle_types)
            }
        return {handle_type: count for handle_type, count in left.items() if count}

    def _watch(self, name: str, function: Slot) -> Slot:
        after = self._count_after(name)
        destroys = DESTROYS.get(name)
        destroyed_type = _handle_type(name, destroys) if destroys else ""

        def call_and_count(args: CData) -> object:
            if destroys and getattr(args, destroys) != ffi.NULL:
                with self._lock:
                    self.destroyed[destroyed_type] += 1
            error = function(args)
            if error is not None and error != ffi.NULL:
                with self._lock:
                    self.created["Error"] += 1
            elif after is not None:
                with self._lock:
                    after(args)
            return error

        return call_and_count

    def _count_after(self, name: str) -> Callable[[CData], None] | None:
        if name == "LoadedExecutable_Execute":
            return self._count_results
        if name == "Executable_OutputElementTypes":
            return self._learn_outputs
        if name not in CREATES:
            return None
        fields = [(field, _handle_type(name, field)) for field in CREATES[name]]

        def count(args: CData) -> None:
            for field, handle_type in fields:
                self.created[handle_type] += getattr(args, field) != ffi.NULL
            if name == "LoadedExecutable_GetExecutable":
                self._loaded[args.executable] = args.loaded_executable

        return count

    def _learn_outputs(self, args: CData) -> None:
        loaded = self._loaded.get(args.executable)
        if loaded is not None:
            self._outputs[loaded] = args.num_output_types

    def _count_results(self, args: CData) -> None:
        """Counts results and events; the number of results is known from the executable."""
        self.created["Buffer"] += args.num_devices * self._outputs[args.executable]
        if args.device_complete_events != ffi.NULL:
            self.created["Event"] += args.num_devices
