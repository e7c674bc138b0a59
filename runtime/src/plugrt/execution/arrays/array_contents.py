"""`Contents`: the methods of arrays that read the buffers, wait for them, or locate them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from plugrt import monitoring
from plugrt.errors import ArgumentTypeError, BufferUnavailable, DeletedBuffer, Internal, NotAnArray
from plugrt.execution.arrays import sharers
from plugrt.execution.arrays.array_conversions import Conversions
from plugrt.execution.arrays.aval import ArrayAval, is_of_keys
from plugrt.execution.arrays.transfer_guard import check_transfer
from plugrt.execution.shardings.replica_sharding import ReplicaSharding
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.frames.argument_errors import with_checked_methods
from plugrt.interface import Buffer, Client, HeldForm, Shards, TensorType
from plugrt.lifetime.callback_exits import raise_exit
from plugrt.monitoring.listeners import listening, record_event_duration_secs
from plugrt.native.known_dtypes import KeyDtype, buffer_type
from plugrt.native.native_core import core
from plugrt.settings.declarations import config

_token = config.token
_traces = sharers.trace_state
_KEYS: str = KeyDtype.char


@with_checked_methods
class Contents(Conversions):
    """The methods of `Array` that use its buffers."""

    __slots__ = ()

    if TYPE_CHECKING:
        _shards: Any
        _extra: Any
        _is_there: Any  # a bool, in the core's arrays
        _is_alone: Any  # a bool, where it is set
        _assignment: Any  # the `Assignment` that is writing to the buffers, if any
        _aval: ArrayAval

        @property
        def sharding(self) -> Sharding: ...
        def _await_held(self) -> Any: ...
        def _raise_deleted(self, error: DeletedBuffer) -> NoReturn: ...

    def _live(self) -> Shards:
        return self._open_shards(self._held())

    def _open_shards(self, held: Any) -> Shards:
        if _is_sequence(type(held)):
            shards: Shards = held
            return shards
        aval = self._aval
        opener = aval.opener or _keep_opener(aval)
        return opener(held)

    def _held(self) -> Any:
        """Returns the buffers. The caller may pass them on, so they are no longer `_is_alone`."""
        self._is_alone = False
        if _traces.trace is not None:
            sharers.note_read(self)
        held = self._shards  # read once: another thread may delete it
        # An assignment by another thread has set `_is_alone` again.
        return self._await_held() if held is None or self._is_alone else held

    def _host(self) -> npt.NDArray[np.generic]:
        """Returns the contents as a read-only NumPy array, which is kept for later reads."""
        if _traces.trace is not None:
            sharers.note_read(self)
        held = self._shards  # read once: another thread may delete it
        if held is None:
            held = self._await_held()
        host: npt.NDArray[Any] | None = self._extra
        if host is None:
            if _token().guarded:
                self._check_read(explicit=False)
            start = time.perf_counter() if listening else 0.0
            shards, aval = held, self._aval  # inline: function calls need twice the time
            if aval.dtype.char == _KEYS:
                self._refuse_keys()
            if not _is_sequence(type(held)):
                shards = (aval.opener or _keep_opener(aval))(held)
            try:
                read = None
                where = aval.sharding
                if type(where) is SingleDeviceSharding or where.plain_device is not None:
                    # The shards may have a method that reads all at once, or small arrays faster.
                    read = getattr(shards, "read_to_host", None) or getattr(shards, "to_host", None)
                host = read() if read else self._read(shards)
            except Internal as error:
                raise_exit(error)
                raise
            except DeletedBuffer as error:
                self._raise_deleted(error)
            with sharers.lock:
                if self._shards is held:  # another thread may have assigned to it, or deleted it
                    self._extra = host
            if start:
                record_event_duration_secs(
                    monitoring.READ, time.perf_counter() - start, bytes=host.nbytes
                )
        return host

    def _refuse_keys(self) -> None:
        """Raises `ArgumentTypeError` for random keys, since their buffers hold only words."""
        if is_of_keys(self._aval):
            raise ArgumentTypeError(
                f"an array of dtype {self._aval.dtype.name} holds random keys, which are no NumPy "
                "data; random.key_data(keys) gives their words"
            )

    def _read(self, shards: Shards) -> npt.NDArray[np.generic]:
        sharding = self._aval.sharding
        if sharding.is_fully_replicated and len(sharding.devices) == 1:
            return self._first(shards).to_host()
        return self._assemble(shards)

    def _check_read(self, *, explicit: bool) -> None:
        """Passes a read to the transfer guard, unless it is a view or a host copy exists."""
        sharding = self._aval.sharding
        client = sharding.devices[0].client
        if self._extra is None and not client.capabilities.zero_copy_get:
            what = f"{self._aval.tensor_type}, from {sharding!r}"
            check_transfer("device_to_host", what, explicit=explicit)

    def _first(self, shards: Shards) -> Buffer:
        """Returns the first part in this process; raises `NotAnArray` if there is none."""
        if not shards:
            having = sorted({d.process_index for d in self._aval.sharding.devices})
            raise NotAnArray(
                f"{self._aval} has no part in this process: process "
                f"{', '.join(map(str, having))} has it. Read it there; or device_put it, in all "
                "processes, to devices of this one too"
            )
        return shards[0]

    def _assemble(self, shards: Shards) -> npt.NDArray[np.generic]:
        sharding = self._aval.sharding
        if type(sharding) is ReplicaSharding:
            return sharding.read(shards)
        if sharding.is_fully_replicated:
            return self._first(shards).to_host()
        if not sharding.is_fully_addressable:
            raise NotAnArray(
                f"{self._aval} has parts in other processes; read .addressable_shards, "
                "or call plugrt.process_allgather(x, tiled=True) in all processes"
            )
        parts = sharding.distinct_parts(self.shape)
        for i, _ in parts:
            shards[i].copy_to_host_async()
        host = np.empty(self.shape, self.dtype)
        for i, index in parts:
            host[index] = shards[i].to_host()
        host.flags.writeable = False
        return host

    def _only_buffer(self, use: str) -> Buffer:
        if use == "DLPack":
            self._refuse_keys()
        shards = self._live()
        if len(shards) > 1:
            raise BufferUnavailable(
                f"{use} takes an array on one device; this one is on {len(shards)} "
                f"({self.sharding!r}). Take one of .addressable_shards, or device_put it first"
            )
        return self._first(shards)

    def copy_to_host_async(self) -> None:
        """Starts copying the contents to the host, so that a later read need not wait."""
        for shard in self._live():
            shard.copy_to_host_async()

    def block_until_ready(self) -> Self:
        """Waits until the contents are ready and returns the array; raises if computing failed."""
        start = time.perf_counter() if listening else 0.0
        held = shards = self._shards  # inline: after a launch each call costs 1 us
        if not _is_sequence(type(shards)):
            shards = self._open_shards(held) if held is not None else self._live()
        wait = getattr(shards, "block_until_ready", None)
        try:
            if wait is not None:
                wait()
            elif not await_together(((self._aval, shards),)):
                for shard in shards:
                    shard.block_until_ready()
        except Internal as error:
            raise_exit(error)
            raise
        except DeletedBuffer as error:
            self._raise_deleted(error)
        if core is not None:
            with sharers.lock:
                self._is_there = self._shards is held
            _keep_waiter(self._aval)
        if start:
            record_event_duration_secs(monitoring.AWAIT, time.perf_counter() - start)
        return self

    def is_ready(self) -> bool:
        """Whether the contents are ready, so that reading them would not wait."""
        ready = all(shard.ready_event().is_ready() for shard in self._live())
        if core is not None:
            _keep_waiter(self._aval)
        return ready

    def on_device_size_in_bytes(self) -> int:
        """The size in bytes, on the devices, of the parts in this process."""
        return sum(shard.on_device_size_in_bytes() for shard in self._live())

    def unsafe_buffer_pointer(self) -> int:
        """The address of the data of an array on one device; valid until it is deleted."""
        return self._only_buffer("unsafe_buffer_pointer").unsafe_pointer()


# Cached: `isinstance` with an abstract class needs three times as long.
_is_sequence: Callable[[type], bool] = cache(lambda cls: issubclass(cls, Sequence))


def _keep_waiter(aval: ArrayAval) -> None:
    """Stores the client's ``waiter``, if any: the core uses it to wait for arrays of the aval."""
    aval.waiter = getattr(aval.sharding.devices[0].client, "waiter", None)


def _keep_opener(aval: ArrayAval) -> Callable[[Any], Shards]:
    sharding = aval.sharding
    device, memory_kind = sharding.addressable_devices[0], sharding.memory_kind
    memory = device.memory(memory_kind) if memory_kind else device.default_memory()
    shape = sharding.shard_shape(aval.shape)
    part = TensorType(*buffer_type(shape, aval.dtype), aval.layout)
    form = device.client.held_form(part, memory)
    aval.opener = form.open
    if type(sharding) is SingleDeviceSharding or sharding.plain_device is not None:
        aval.reader = compile_reader(device.client, part, form)
    return form.open


def compile_reader(client: Client, part: TensorType, form: HeldForm) -> Any:
    """Returns a reader of the core for arrays of this type; None if Python code reads them."""
    if core is None or form.view is None or not client.capabilities.zero_copy_get:
        return None
    return core.FunctionReader(
        held_class=form.held_class,
        is_ready=form.is_ready,
        wait=form.wait,
        lock=form.lock,
        view=form.view,
        shape=part.shape,
        dtype=part.dtype,
        unless=form.unless,
        format=_format(part.dtype),
    )


def _format(dtype: np.dtype[np.generic]) -> str | None:
    """Returns the format code of a dtype in Python's buffer protocol, or None."""
    try:
        return np.empty((), dtype).data.format
    except ValueError:
        return None


def await_together(held: Iterable[tuple[ArrayAval, object]]) -> bool:
    """Waits for arrays, given as avals and shards; returns whether all are ready.

    If False, the caller must wait for each in turn: a backend cannot wait for several, one was
    deleted, or computing one failed, which the wait for that array raises.
    """
    by_aval: dict[ArrayAval, list[object]] = {}
    for aval, shards in held:
        by_aval.setdefault(aval, []).append(shards)
    of_clients: dict[Client, list[object]] = {}
    for aval, shards in by_aval.items():
        client = aval.sharding.devices[0].client
        of_clients.setdefault(client, []).extend(shards)
    for client, shards in of_clients.items():
        await_shards = getattr(client, "await_shards", None)
        if await_shards is None or not await_shards(shards):
            return False
    return True


def await_held(held: list[object], avals: list[ArrayAval]) -> bool:
    """As `await_together`, for arrays of one client; ``avals`` are the different avals of all."""
    clients = [aval.sharding.devices[0].client for aval in avals]
    if not clients or clients.count(clients[0]) != len(clients):
        return False
    await_shards = getattr(clients[0], "await_shards", None)
    return await_shards is not None and bool(await_shards(held))
