"""`exchange`: the buffers of an array on other devices, in other parts, without the host."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from plugrt import monitoring
from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import PjrtError, Unimplemented, UnsupportedDtype
from plugrt.execution.arrays.array import Array
from plugrt.execution.compilation.buffer_copy import copy_buffer
from plugrt.execution.shardings.replica_sharding import ReplicaSharding
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.transfers.exchange_plan import ExchangePlan
from plugrt.execution.transfers.host_assembly import is_assembled_on_host
from plugrt.interface import Buffer, Device
from plugrt.monitoring.listeners import listening
from plugrt.monitoring.stage_events import logger

_Key = tuple[tuple[int, ...], np.dtype[np.generic], Sharding, Sharding]
_exchanges: BoundedCache[_Key, tuple[Exchange | None]] = BoundedCache(512)


def exchange(x: Array, sharding: Sharding, *, share: bool = True) -> list[Buffer] | None:
    """Returns the buffers of ``x`` for ``sharding``, one for each device of this process.

    With ``share``, buffers that are already in place are shared. Parts are sliced and concatenated
    by programs on the devices, which are compiled once for a shape, a dtype and the two shardings;
    small arrays on devices that use the host's memory are assembled there (see `HostAssembly`).
    Returns None if that is impossible: for parts in other processes, between clients, on a backend
    that cannot copy from device to device or compile such a program, and for arrays without
    elements.
    """
    found = _find_exchange(x, sharding)
    if found is None:
        return None
    if not listening:
        return found(x._live(), share)
    start = time.perf_counter()
    made = found(x._live(), share)
    monitoring.record_event_duration_secs(
        monitoring.RESHARD, time.perf_counter() - start, bytes=found.moved_bytes
    )
    return made


def has_own_buffers(x: Array, sharding: Sharding) -> bool:
    """Whether the exchange of an array makes only new buffers, even if parts may be shared."""
    found = _find_exchange(x, sharding)
    return found is not None and found.keeps_parts


def moved_bytes(x: Array, sharding: Sharding) -> int | None:
    """Returns the bytes that an exchange moves between devices; None if there is no exchange."""
    found = _find_exchange(x, sharding)
    return None if found is None else found.moved_bytes


def _find_exchange(x: Array, sharding: Sharding) -> Exchange | None:
    key = (x.shape, x.dtype, x.sharding, sharding)
    return _exchanges.get_or_make(key, lambda: (_plan_exchange(*key),))[0]


class Exchange:
    """Moves arrays of one shape and dtype from one sharding to another, without the host.

    Buffers are numbered: the source's, then the results of each step. ``parts`` has each device of
    the result with the number of the buffer that it gets, or a copy of that.
    """

    __slots__ = ("_from", "_parts", "_steps", "_to", "keeps_parts", "moved_bytes")

    def __init__(
        self,
        memory_kinds: tuple[str | None, str | None],
        steps: Sequence[Callable[[Sequence[Buffer]], list[Buffer]]],
        parts: Sequence[tuple[Device, int]],
        moved_bytes: int,
        sources: Sequence[Device],
    ) -> None:
        """``memory_kinds`` are the memory kinds before and after.

        ``moved_bytes`` is the number of bytes that go from one device to another. ``sources`` are
        the devices of the source in this process.
        """
        self.moved_bytes = moved_bytes
        self._from, self._to = memory_kinds
        self._steps, self._parts = steps, parts
        self.keeps_parts = self._from == self._to and any(
            number < len(sources) and sources[number] is device for device, number in parts
        )

    def __call__(self, shards: Sequence[Buffer], share: bool) -> list[Buffer]:
        """Returns the result's buffers; with ``share``, those in place are shared."""
        memory_kind = self._from
        if memory_kind and self._steps:  # programs expect buffers in the default memory
            shards = [copy_buffer(s, s.device, s.device.default_memory()) for s in shards]
            share, memory_kind = True, None
        buffers = list(shards[:])  # together: single buffers need ten more calls
        for step in self._steps:
            buffers += step(buffers)
        made = []
        for device, number in self._parts:
            buffer, there = buffers[number], number < len(shards)
            stays = (memory_kind if there else None) == self._to and (share or not there)
            if not stays or buffer.device is not device:
                memory = device.memory(self._to) if self._to else None
                buffer = copy_buffer(buffer, device, memory)
            made.append(buffer)
        return made


def _plan_exchange(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], source: Sharding, target: Sharding
) -> Exchange | None:
    """Returns the `Exchange` between two shardings; None if there is none."""
    if type(source) is ReplicaSharding:
        return None  # it is read to the host, which checks that replicas are equal
    if not source.is_fully_addressable and not source.is_fully_replicated:
        return None
    plan = ExchangePlan(shape, source, target)
    if not plan.is_possible():
        return None
    memory_kinds = source.memory_kind, target.memory_kind
    known = plan.moved_bytes(dtype), source.addressable_devices
    clients = {device.client for device in target.addressable_devices}
    if all(is_assembled_on_host(client, math.prod(shape) * dtype.itemsize) for client in clients):
        return Exchange(memory_kinds, *plan.on_host(dtype), *known)
    try:
        return Exchange(memory_kinds, *plan.load(dtype), *known)
    except (PjrtError, UnsupportedDtype) as error:
        quiet = isinstance(error, Unimplemented | UnsupportedDtype)
        log = logger.debug if quiet else logger.warning
        log(
            "Arrays %s[%s] go from %r to %r through the host: %s",
            dtype.name, ",".join(map(str, shape)), source, target, error,
        )  # fmt: skip
        return None
