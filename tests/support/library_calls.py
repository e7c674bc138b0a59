"""`LibraryCalls`: a library for the compiled core, made here: it counts, and fails on request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from types import SimpleNamespace
from typing import Any

import numpy as np

from plugrt.capi.abi._abi import ffi
from plugrt.capi.abi.declarations import API_MINOR
from plugrt.capi.abi.structs import StructSizes, struct_type
from plugrt.capi.buffers.buffer import Buffer
from plugrt.capi.buffers.native_read import _FUNCTIONS, _REFERENCES
from plugrt.capi.library.client_handle import _OF_CORE
from plugrt.native.native_core import core

BYTES = bytes(range(16))
"""The bytes at the address of each buffer."""

_FUNCTIONS_FOR_EVER: list[Any] = []
"""A library stays loaded: the garbage collector must not find these before the buffers."""


class LibraryCalls:
    """A client of the core whose buffers and events are numbers; a launch returns `results`.

    A function in `failing` returns an error, and a name in `silent` belongs to a handle that is not
    returned; `during` is called with the name of each function, before it returns. `alive` counts
    handles that are not destroyed, `calls` the calls. A launch on one device alone is refused if
    its address is in `refusing`. Functions in `lacking` are missing; events are ready if
    `is_ready`.
    """

    def __init__(self, results: int = 1, lacking: Set[str] = frozenset()) -> None:
        self.results, self.is_ready = results, True
        self.alive, self.calls = Counter[str](), Counter[str]()
        self.failing: set[str] = set()
        self.refusing: set[int] = set()
        self.launch_ids: list[int] = []
        self.silent: set[str] = set()
        self.during: Callable[[str], None] = lambda _: None
        self.is_deleted, self.size = True, len(BYTES)
        self.logged: list[tuple[str, int]] = []
        self._memory = ffi.new("char[]", BYTES)
        self._next = 0x1000
        change = self.alive.update
        drop = self.alive.subtract
        acts: dict[str, Callable[[Any], Any]] = {
            "LoadedExecutable_Execute": self._execute,
            "Client_BufferFromHostBuffer": self._put,
            "Buffer_IsDeleted": lambda args: setattr(args, "is_deleted", self.is_deleted),
            "Buffer_ReadyEvent": lambda args: setattr(args, "event", self._new("event")),
            "Buffer_UnsafePointer": self._find,
            "Buffer_OnDeviceSizeInBytes": self._measure,
            "Buffer_IncreaseExternalReferenceCount": lambda _: change(["reference"]),
            "Buffer_DecreaseExternalReferenceCount": lambda _: drop(["reference"]),
            "Buffer_Destroy": lambda _: drop(["buffer"]),
            "Event_Destroy": lambda _: drop(["event"]),
            "Error_Destroy": lambda _: drop(["error"]),
            "Event_Await": lambda _: None,
            "Event_IsReady": lambda args: setattr(args, "is_ready", self.is_ready),
        }
        self._functions = {name: self._function(name, act) for name, act in acts.items()}
        _FUNCTIONS_FOR_EVER.append(self._functions)
        self.core = core.Client(
            *(0 if name in lacking else self.address_of(name) for name in _OF_CORE),
            free_buffer=lambda address: None,
            log_failure=lambda name, error: self.logged.append((name, error)),
            pointer=self._functions,
            size_of_options=struct_type("PJRT_ExecuteOptions", StructSizes(API_MINOR))[1],
        )
        self.spec = SimpleNamespace(handle=SimpleNamespace(core=self.core))

    def address_of(self, name: str) -> int:
        return int(ffi.cast("uintptr_t", self._functions[name]))

    def reader(
        self,
        lock: Any,
        is_memory: Callable[[int, int], bool],
        *,
        views: bool = False,
        asks_system: bool = False,
    ) -> Any:
        """Returns a reader of 16 bytes."""
        references = core.References(self.core, *map(self.address_of, _REFERENCES), lock)
        functions = tuple(map(self.address_of, _FUNCTIONS))
        form = ((16,), np.dtype("u1"))
        return core.Reader(references, functions, is_memory, *form, views, asks_system)

    def buffer(self) -> Any:
        """Returns a buffer of the client, which it owns."""
        made: Any = Buffer.__new__(Buffer)
        made._spec = self.spec
        made._pointer = self._new("buffer")
        return made

    def _function(self, name: str, act: Callable[[Any], Any]) -> Any:
        def call(args: Any) -> Any:
            self.calls[name] += 1
            if name in self.failing or self._is_refused(name, args):
                return self._new("error")
            act(args)
            self.during(name)
            return ffi.NULL

        if name == "Error_Destroy":
            return ffi.callback("void(struct PJRT_Error_Destroy_Args*)", act)
        return ffi.callback(f"PJRT_Error*(struct PJRT_{name}_Args*)", call)

    def _is_refused(self, name: str, args: Any) -> bool:
        if name != "LoadedExecutable_Execute":
            return False
        self.launch_ids.append(args.options.launch_id)
        return int(ffi.cast("uintptr_t", args.execute_device)) in self.refusing

    def _new(self, kind: str) -> Any:
        if kind in self.silent:
            return ffi.NULL
        self.alive[kind] += 1
        self._next += 64
        return ffi.cast(f"PJRT_{kind.capitalize()}*", self._next)

    def _execute(self, args: Any) -> None:
        for part in range(args.num_devices):
            for i in range(self.results):
                if i or "first result" not in self.silent:
                    args.output_lists[part][i] = self._new("buffer")
            if args.device_complete_events:
                args.device_complete_events[part] = self._new("event")

    def _put(self, args: Any) -> None:
        args.buffer = self._new("buffer")
        args.done_with_host_buffer = self._new("event")

    def _find(self, args: Any) -> None:
        args.buffer_pointer = int(ffi.cast("uintptr_t", self._memory))

    def _measure(self, args: Any) -> None:
        args.on_device_size_in_bytes = self.size
