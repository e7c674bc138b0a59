"""`Session`: a started backend, shared by its client, buffers and programs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from operator import methodcaller

import ml_dtypes
import numpy as np

from plugrt.errors import (
    FailedPrecondition,
    InvalidArgument,
    ResourceExhausted,
    Unimplemented,
    UnsupportedDtype,
)
from plugrt.interface import Client, CompileOptions, Device, DeviceDescription, Event, Memory
from plugrt.interface.checks import require_auto_partitioning
from plugrt_sdk.backend import Backend
from plugrt_sdk.compiled import Handle
from plugrt_sdk.declaration import declared_methods
from plugrt_sdk.device import BackendDevice, BackendMemory
from plugrt_sdk.returns import require_count, require_sequence, wrong_return


class Session:
    """A backend and its devices. The backend is closed when its client and all buffers are."""

    __slots__ = (
        "_closed",
        "_closing",
        "_live",
        "asynchronous",
        "backend",
        "client",
        "counts_buffers",
        "counts_uses",
        "devices",
        "dtypes",
        "has_handlers",
        "has_memories",
        "methods",
        "partitions",
        "process_index",
        "replicas",
    )

    def __init__(self, backend: Backend, client: Client) -> None:
        self.backend = backend
        self.client = client
        self.methods = declared_methods(backend)
        """The optional methods that the backend overrides."""
        self.devices = _make_devices(backend, client)
        self.process_index = backend.process_index()
        self.replicas = require_count(backend, "replicas", backend.replicas())
        self.partitions = require_count(backend, "partitions", backend.partitions())
        self.dtypes = _read_dtypes(backend) if "dtypes" in self.methods else None
        """The dtypes that `Backend.put` accepts; None if the backend does not declare them."""
        self.has_memories = "memories" in self.methods
        if self.has_memories and "put_in_memory" not in self.methods:
            raise InvalidArgument(
                f"{type(backend).__qualname__} names memories; it needs put_in_memory as well"
            )
        self.counts_uses = not self.methods.isdisjoint(("delete", "event", "donated"))
        """Whether the backend must know when handles are released (`plugrt_sdk.uses`)."""
        self.has_handlers = False
        """Whether a custom call may ask which launch calls it."""
        self.counts_buffers = self.counts_uses or "close" in self.methods
        """Whether the backend must know when the last buffer ends."""
        self.asynchronous = "event" in self.methods
        self._live: list[None] = []
        self._closed = False
        self._closing = map(methodcaller("close"), (backend,))

    @property
    def backend_name(self) -> str:
        """The client's name for messages."""
        return self.client.backend_name

    def explain_exhaustion(self, what: str, error: MemoryError) -> ResourceExhausted:
        """Returns `ResourceExhausted` for a failed allocation.

        An error of that class is returned unchanged. The error has the traceback of the author's
        method.
        """
        if isinstance(error, ResourceExhausted):
            return error
        found = ResourceExhausted(f"{self.backend_name} has no memory for {what}: {error}")
        return found.with_traceback(error.__traceback__)

    def require_open(self) -> None:
        """Raises `FailedPrecondition` after `close`."""
        if self._closed:
            raise FailedPrecondition(f"the client of {self.backend_name} was closed")

    def require_device(self, device: Device) -> BackendDevice:
        """Returns a device if this process can use it; raises `InvalidArgument` if not."""
        self.require_open()
        if not isinstance(device, BackendDevice) or device.client is not self.client:
            raise InvalidArgument(f"{device!r} is not a device of {self.backend_name}")
        if device.process_index != self.process_index:
            raise InvalidArgument(
                f"{device!r} is used from the process {device.process_index}; this is the process "
                f"{self.process_index}"
            )
        return device

    def require_memory(self, memory: Memory) -> BackendMemory:
        """Returns a memory if it is one of the client's; raises `InvalidArgument` if not."""
        self.require_open()
        if not isinstance(memory, BackendMemory) or memory.client is not self.client:
            raise InvalidArgument(f"{memory!r} is not a memory of {self.backend_name}")
        return memory

    def require_counts(self, options: CompileOptions) -> None:
        """Raises `Unimplemented` for options that the backend does not declare.

        These are more replicas or partitions, and shardings that the compiler chooses.
        """
        require_auto_partitioning(
            options.use_auto_spmd_partitioning,
            "chosen_shardings" in self.methods,
            self.backend_name,
        )
        asked = {"replicas": options.num_replicas, "partitions": options.num_partitions}
        for what, most in (("replicas", self.replicas), ("partitions", self.partitions)):
            if asked[what] > most:
                raise Unimplemented(
                    f"{self.backend_name} runs programs of at most {most} {what} (its method "
                    f"{what}() declares more); {asked[what]} were requested"
                )

    def event_of(self, handle: Handle) -> Event | None:
        """Returns the author's event of a handle; None if the contents are complete."""
        if handle is None:  # the handle of a token
            return None
        event = self.backend.event(handle)
        if event is not None and not isinstance(event, Event):
            raise wrong_return(self.backend, "event", "an event (PendingEvent) or None", event)
        return event

    def require_dtype(self, dtype: np.dtype[np.generic]) -> None:
        """Raises `UnsupportedDtype` for a dtype that the backend does not declare."""
        if self.dtypes is not None and dtype not in self.dtypes:
            names = ", ".join(sorted(known.name for known in self.dtypes))
            raise UnsupportedDtype(f"{self.backend_name} has no arrays of {dtype}; it has {names}")

    def count_buffer(self) -> Iterator[None]:
        """Counts a new buffer until the returned iterator, a function in C, is advanced."""
        self._live.append(None)
        return map(list.pop, (self._live,))

    def close(self) -> None:
        """Closes the backend, now or with the last buffer."""
        if not self._closed:
            self._closed = True
            self.close_if_idle()

    def close_if_idle(self) -> None:
        """Closes the backend, once, if its client is closed and all buffers are deleted."""
        if self._closed and not self._live:
            next(self._closing, None)


def _make_devices(backend: Backend, client: Client) -> list[BackendDevice]:
    numbers = itertools.count()
    return [
        BackendDevice(client, backend, found, [(next(numbers), kind) for kind in kinds])
        for found in _describe_devices(backend)
        for kinds in [memory_kinds(backend, found.id)]
    ]


def memory_kinds(backend: Backend, device: int) -> Sequence[str]:
    """Returns the kinds of memory that a backend names for a device, the default first."""
    expected = "different kinds of memory (text), one at least"
    kinds = require_sequence(backend, "memories", backend.memories(device), expected)
    if not kinds or not all(isinstance(k, str) for k in kinds) or len(set(kinds)) < len(kinds):
        raise wrong_return(backend, "memories", expected, kinds)
    return kinds


def _describe_devices(backend: Backend) -> list[DeviceDescription]:
    expected = "a sequence of device kinds (text) or of DeviceDescription"
    found = require_sequence(backend, "devices", backend.devices(), expected)
    if not all(isinstance(device, str | DeviceDescription) for device in found):
        raise wrong_return(backend, "devices", expected, found)
    described = [
        DeviceDescription(i, 0, device) if isinstance(device, str) else device
        for i, device in enumerate(found)
    ]
    ids = [device.id for device in described]
    if sorted(set(ids)) != ids:
        raise wrong_return(backend, "devices", "devices in the order of their ids, each once", ids)
    return described


def _read_dtypes(backend: Backend) -> frozenset[np.dtype[np.generic]]:
    names = backend.dtypes()
    try:
        return frozenset(np.dtype(getattr(ml_dtypes, name, name)) for name in names)
    except TypeError:
        raise wrong_return(backend, "dtypes", "names of dtypes", names) from None
