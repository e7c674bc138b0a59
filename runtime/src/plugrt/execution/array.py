"""`Array`: n-dimensional data on one or several devices."""

from __future__ import annotations

import copyreg
import math
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt import monitoring
from plugrt.argument_errors import with_argument_errors, with_checked_methods
from plugrt.compiled_core import core
from plugrt.errors import BufferUnavailable, DeletedBuffer, NotAnArray, Unimplemented
from plugrt.execution.array_base import ArrayBase
from plugrt.execution.array_conversions import Conversions
from plugrt.execution.array_repr import array_repr, array_str
from plugrt.execution.array_type import ArrayMeta
from plugrt.execution.buffer_copy import copy_in_place
from plugrt.execution.deletion import Deletion
from plugrt.execution.format import Format
from plugrt.execution.replica_sharding import ReplicaSharding
from plugrt.execution.sharding import Index, Sharding, SingleDeviceSharding
from plugrt.execution.signature import Signature, intern_signature
from plugrt.execution.transfer_guard import check_transfer
from plugrt.interface import Buffer, Device, Layout, Shards, TensorType
from plugrt.monitoring.listeners import listening, record_event_duration_secs
from plugrt.settings.declarations import config

_token = config.token


@dataclass(frozen=True, slots=True)
class Shard:
    """One device's part of an array: ``data``, and ``index``, its position in the whole array."""

    device: Device
    index: Index
    data: Array
    """The part, on its device; None where that is another process's (`Array.global_shards`)."""
    replica_id: int


@with_checked_methods
class Array(ArrayBase, Conversions, metaclass=ArrayMeta):
    """An immutable array on one or several devices; operations on it are launched there.

    Made by ``plugrt.device_put``, by the functions of ``plugrt.array_api`` and by jitted
    functions, not by calling the class. It implements the Python array API standard 2024.12 and
    the protocols of NumPy and DLPack. Results arrive asynchronously: reading one waits for it, and
    raises the error of the computation if that failed.
    """

    # `_sharers` refers to the arrays that hold the same buffers (see `share_buffers`), and is not
    # set where there are none.
    __slots__ = ("__weakref__", "_sharers")

    __array_priority__ = 100  # a NumPy array as the left operand defers to this class

    _signature: Signature
    __weakref__: Any  # None where nothing refers to it weakly
    _sharers: list[weakref.ref[Array]]

    # --- attributes ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of the whole array."""
        return self._signature.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an element, NumPy's or ml_dtypes'."""
        return self._signature.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._signature.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._signature.shape)

    @property
    def itemsize(self) -> int:
        """Bytes an element takes on the host."""
        return self._signature.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes that the whole array takes on the host."""
        return self.size * self._signature.dtype.itemsize

    @property
    def sharding(self) -> Sharding:
        """How the data are distributed over devices."""
        return self._signature.sharding

    @property
    def format(self) -> Format:
        """The sharding, and how the data lie in memory; as in JAX.

        The layout is None where the backend does not state it, once the array is deleted, and of
        one without a part in this process.
        """
        sharding = self._signature.sharding
        if self.is_deleted() or not self._live():
            return Format(None, sharding)
        try:
            return Format(self._live()[0].layout, sharding)
        except Unimplemented:
            return Format(None, sharding)

    @property
    def committed(self) -> bool:
        """Whether the array must stay where it is (`device_put` to a device was asked for)."""
        return self._signature.committed

    @property
    def device(self) -> Device | Sharding:
        """The device, or for an array on several devices its sharding (as in JAX)."""
        sharding = self._signature.sharding
        return sharding.device if isinstance(sharding, SingleDeviceSharding) else sharding

    def devices(self) -> set[Device]:
        """Returns the devices that hold a part."""
        return self._signature.sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of the data are in this process."""
        return self._signature.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds all of the data."""
        return self._signature.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that this process holds, each as an `Array` on its device, without a copy."""
        return [shard for shard in self.global_shards if shard.device.is_addressable]

    @property
    def global_shards(self) -> list[Shard]:
        """The parts on all devices; the ``data`` of those in other processes are None.

        ``replica_id`` numbers the devices that have the same part, in the order of the sharding.
        """
        sharding = self._signature.sharding
        shape = sharding.shard_shape(self.shape)
        where = sharding.devices_indices_map(self.shape)
        held = dict(zip(sharding.addressable_devices, self._live(), strict=True))
        seen: Counter[str] = Counter()
        result = []
        for device in sharding.devices:
            data: Any = None
            if device in held:
                here = SingleDeviceSharding(device, memory_kind=sharding.memory_kind)
                layout = self._signature.layout
                place = intern_signature(shape, self.dtype, here, True, False, layout)
                data = new_array((held[device],), place)
            index = where[device]
            result.append(Shard(device, index, data, seen[repr(index)]))
            seen[repr(index)] += 1
        return result

    @with_argument_errors
    def addressable_data(self, index: int) -> Array:
        """Returns the part on the ``index``-th device of this process."""
        return self.addressable_shards[index].data

    # --- reading it ---------------------------------------------------------------------------

    def _live(self) -> Shards:
        return self._open_shards(self._held())

    def _open_shards(self, held: Any) -> Shards:
        if _is_sequence(type(held)):  # type: ignore[arg-type]
            return held  # type: ignore[no-any-return]
        signature = self._signature
        opener = signature.opener or _keep_opener(signature)
        return opener(held)

    def _held(self) -> Any:
        held = self._shards  # read once: another thread may delete it
        if held is None:
            raise DeletedBuffer(self._deleted_message())
        return held

    def _deleted_message(self) -> str:
        loss = self._extra
        what = f"the array {self._signature.tensor_type} was"
        return (
            f"{what} {loss if isinstance(loss, Deletion) else 'deleted'}; it cannot be used again"
        )

    def _host(self) -> npt.NDArray[Any]:
        """The contents as a read-only NumPy array, kept for the next time."""
        held = self._held()
        host: npt.NDArray[Any] | None = self._extra
        if host is None:
            if _token().guarded:
                self._check_read(explicit=False)
            start = time.perf_counter() if listening else 0.0
            shards = self._open_shards(held)
            sharding = self._signature.sharding
            if type(sharding) is SingleDeviceSharding:
                read = getattr(shards, "to_host", None)  # a backend's shards may read at once
                host = read() if read else self._first(shards).to_host()
            elif sharding.is_fully_replicated and len(sharding.devices) == 1:
                host = self._first(shards).to_host().reshape(self.shape)
            else:
                host = self._assemble(shards)
            self._extra = host
            if start:
                record_event_duration_secs(
                    monitoring.READ, time.perf_counter() - start, bytes=host.nbytes
                )
        return host

    def _check_read(self, *, explicit: bool) -> None:
        """Has the transfer guard look at a read, unless that is a view, or was made before."""
        sharding = self._signature.sharding
        client = sharding.devices[0].client
        if self._extra is None and not client.capabilities.zero_copy_get:
            what = f"{self._signature.tensor_type}, from {sharding!r}"
            check_transfer("device_to_host", what, explicit=explicit)

    def _first(self, shards: Shards) -> Buffer:
        """The first part here; raises `NotAnArray` where other processes have all of them."""
        if not shards:
            having = sorted({d.process_index for d in self._signature.sharding.devices})
            raise NotAnArray(
                f"{self._signature} has no part in this process: process "
                f"{', '.join(map(str, having))} has it. Read it there; or device_put it, in all "
                "processes, to devices of this one too"
            )
        return shards[0]

    def _assemble(self, shards: Shards) -> npt.NDArray[Any]:
        sharding = self._signature.sharding
        if type(sharding) is ReplicaSharding:
            return sharding.read(shards)
        if sharding.is_fully_replicated:
            return self._first(shards).to_host().reshape(self.shape)
        if not sharding.is_fully_addressable:
            raise NotAnArray(
                f"{self._signature} has parts in other processes; read .addressable_shards, "
                "or call plugrt.process_allgather(x, tiled=True) in all processes"
            )
        for shard in shards:
            shard.copy_to_host_async()
        host = np.empty(self.shape, self.dtype)
        where = sharding.devices_indices_map(self.shape)
        for device, shard in zip(sharding.addressable_devices, shards, strict=True):
            host[where[device]] = shard.to_host()
        host.flags.writeable = False
        return host

    def _only_buffer(self, use: str) -> Buffer:
        shards = self._live()
        if len(shards) > 1:
            raise BufferUnavailable(
                f"{use} takes an array on one device; this one is on {len(shards)} "
                f"({self.sharding!r}). Take one of .addressable_shards, or device_put it first"
            )
        return self._first(shards)

    def copy_to_host_async(self) -> None:
        """Begins to copy the contents to the host, so that reading them need not wait."""
        for shard in self._live():
            shard.copy_to_host_async()

    def block_until_ready(self) -> Array:
        """Waits until the contents are there and returns the array; raises if making it failed."""
        start = time.perf_counter() if listening else 0.0
        shards = self._live()
        wait = getattr(shards, "block_until_ready", None)
        if wait is not None:
            wait()
        else:
            for shard in shards:
                shard.block_until_ready()
        if start:
            record_event_duration_secs(monitoring.AWAIT, time.perf_counter() - start)
        return self

    def is_ready(self) -> bool:
        """Whether the contents are there, so that reading them would not wait."""
        return all(shard.ready_event().is_ready() for shard in self._live())

    def on_device_size_in_bytes(self) -> int:
        """Bytes that the parts in this process take on their devices."""
        return sum(shard.on_device_size_in_bytes() for shard in self._live())

    def unsafe_buffer_pointer(self) -> int:
        """The address of the data of an array on one device; valid until it is deleted."""
        return self._only_buffer("unsafe_buffer_pointer").unsafe_pointer()

    # --- deletion -----------------------------------------------------------------------------

    def delete(self) -> None:
        """Gives the memory back now, unless another array holds the same buffers.

        A second call does nothing; use afterwards raises.
        """
        alone = not self._is_shared()
        held, self._shards = self._shards, None
        if held is not None:
            self._extra = Deletion()
            if alone:
                shards = self._open_shards(held)
                for shard in shards:
                    shard.delete()

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        held = self._shards
        return held is None or any(shard.is_deleted() for shard in self._open_shards(held))

    def _is_shared(self) -> bool:
        """Whether another array that is alive holds the same buffers."""
        sharers = None if self.__weakref__ is None else getattr(self, "_sharers", None)
        if sharers is None:  # those that share are referred to weakly, which is asked at less cost
            return False
        shards = self._shards
        return any(
            other is not None and other is not self and other._shards is shards
            for other in [sharer() for sharer in [*sharers]]
        )

    def _mark_lost(self, loss: Deletion) -> None:
        self._shards, self._extra = None, loss

    def __reduce__(self) -> Any:
        # Pickling is implemented in `transfer`, which can put the contents on a device again.
        return copyreg.dispatch_table[Array](self)

    def __copy__(self) -> Array:
        # A real copy: deleting or donating one array must not affect the other.
        return duplicate(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Array:
        return self.__copy__()

    def _printed(self) -> npt.NDArray[Any]:
        """What printing shows: the contents, or those of all replicas."""
        sharding = self._signature.sharding
        if type(sharding) is ReplicaSharding:
            return sharding.stack(self._live())
        return np.asarray(self)

    def __repr__(self) -> str:
        return array_repr(self)

    def __str__(self) -> str:
        return array_str(self)


if core is not None:
    core.set_array_class(Array)

blank: Callable[[], Array] = type.__call__.__get__(Array)
"""Makes an array whose slots are to be set; ``object.__new__`` takes a third longer."""

_sharers_lock = threading.Lock()


def new_array(shards: Shards, signature: Signature) -> Array:
    """Returns the array of these buffers. Not checked: they must fit the signature."""
    return array_holding(launch_form(shards), signature)


def launch_form(shards: Shards) -> Any:
    """Returns what arrays hold of `Shards`: these, or what launches take in their place."""
    return getattr(shards, "held", shards)


def array_holding(held: Any, signature: Signature) -> Array:
    """Returns the array of what a launch gave. Not checked: it must fit the signature."""
    array = blank()
    array._shards = held
    array._signature = signature
    array._extra = None
    return array


@cache  # an abstract class takes three times as long to say so
def _is_sequence(cls: type) -> bool:
    return issubclass(cls, Sequence)


def _keep_opener(signature: Signature) -> Callable[[Any], Shards]:
    sharding = signature.sharding
    device, memory_kind = sharding.addressable_devices[0], sharding.memory_kind
    memory = device.memory(memory_kind) if memory_kind else device.default_memory()
    shape = sharding.shard_shape(signature.shape)
    part = TensorType(shape, signature.dtype, signature.layout)
    signature.opener = device.client.opener(part, memory)
    return signature.opener


def share_buffers(array: Array, signature: Signature) -> Array:
    """Returns another array of the same buffers: deleting or donating one keeps the other.

    The memory is freed with the last of them.
    """
    made = array_holding(array._held(), signature)
    with _sharers_lock:
        sharers: list[weakref.ref[Array]] | None = getattr(array, "_sharers", None)
        if sharers is None:
            sharers = array._sharers = [weakref.ref(array)]
        if len(sharers) & (len(sharers) - 1) == 0:  # at each power of two: drop dead references
            sharers[:] = [sharer for sharer in sharers if sharer() is not None]
        sharers.append(weakref.ref(made))
    made._sharers = sharers
    return made


def duplicate(array: Array) -> Array:
    """Returns a copy of ``array`` where it is: deleting or donating one leaves the other alone."""
    layout = array._signature.layout
    copies = [copy_in_place(shard, layout) for shard in array._live()]
    return new_array(copies, array._signature)


def array_on(
    buffer: Buffer, committed: bool, weak: bool = False, layout: Layout | None = None
) -> Array:
    """Returns the array of one buffer on its device; ``layout`` is one other than the default."""
    device, memory = buffer.device, buffer.memory
    memory_kind = None if memory is device.default_memory() else memory.kind
    sharding = SingleDeviceSharding(device, memory_kind=memory_kind)
    signature = intern_signature(buffer.shape, buffer.dtype, sharding, committed, weak, layout)
    return new_array(device.client.shards((buffer,)), signature)


def array_of_shards(
    shape: Sequence[int], dtype: np.dtype[Any], sharding: Sharding, buffers: Shards
) -> Array:
    """Returns the committed array whose parts are ``buffers``, in the order of the sharding."""
    return new_array(buffers, intern_signature(tuple(shape), dtype, sharding, True))
