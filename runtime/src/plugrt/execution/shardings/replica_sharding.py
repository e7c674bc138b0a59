"""`ReplicaSharding`: values that differ by replica, for pmap under ``disable_jit``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from plugrt.errors import ConcretizationError
from plugrt.execution.shardings.sharding_base import Index, Sharding
from plugrt.interface import Buffer, Device

R = TypeVar("R")


class ReplicaSharding(Sharding):
    """One value for each replica of a pmap; the array has one value's shape.

    Only pmap under ``disable_jit`` makes such arrays, and operations on them: each is launched once
    for all replicas. ``name`` is the mapped axis's name, None without one. ``copies`` consecutive
    devices have the same value.
    """

    __slots__ = ("_copies", "_devices", "_name")

    def __init__(self, devices: Sequence[Device], name: object, copies: int = 1) -> None:
        self._devices, self._name, self._copies = tuple(devices), name, copies

    @property
    def devices(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def name(self) -> object:
        """The name of the mapped axis."""
        return self._name

    @property
    def copies(self) -> int:
        """The number of consecutive devices with the same value."""
        return self._copies

    @property
    def size(self) -> int:
        """The number of replicas."""
        return len(self._devices) // self._copies

    @property
    def is_fully_replicated(self) -> bool:
        return self.size == 1

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)

    def whole_shape(self, shard_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(shard_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        index = (slice(None),) * len(global_shape)
        return dict.fromkeys(self._devices, index)

    def tiling(self, ndim: int) -> None:
        return None

    @staticmethod
    def is_like(sharding: Sharding) -> bool:
        """Whether arrays with another sharding also have a value for each of these replicas."""
        return type(sharding) is ReplicaSharding

    def widen(self, devices: Sequence[Device]) -> ReplicaSharding:
        """Returns the sharding of the same replicas on more devices."""
        return ReplicaSharding(devices, self._name, len(devices) // self.size)

    def stack(self, shards: Sequence[Buffer]) -> npt.NDArray[np.generic]:
        """Returns the values of all replicas along a new first dimension."""
        return np.stack([shard.to_host() for shard in shards[:: self._copies]])

    def read(self, shards: Sequence[Buffer]) -> npt.NDArray[np.generic]:
        """Returns the value if all replicas have the same; else raises `ConcretizationError`."""
        first, *others = (shard.to_host() for shard in shards[:: self._copies])
        if any(other.tobytes() != first.tobytes() for other in others):
            raise ConcretizationError(
                f"one value was requested (if, float(), np.asarray) of {first.dtype.name}"
                f"{list(first.shape)}, which differs between the {self.size} replicas of "
                f"{self._describe()}: keep it an array (array_api.where and lax.cond choose for "
                "each replica), or print it, which shows all"
            )
        return first

    def _describe(self) -> str:
        return f"pmap over {self._name!r}" if self._name is not None else "pmap"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReplicaSharding):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self._devices, self._name, self._copies

    def __repr__(self) -> str:
        copies = f", copies={self._copies}" if self._copies > 1 else ""
        return f"ReplicaSharding({list(self._devices)}, {self._name!r}{copies})"


class _State(threading.local):
    here: ReplicaSharding | None = None


_state = _State()


def current_replicas() -> ReplicaSharding | None:
    """Returns the replicas that this thread runs operation by operation, or None."""
    return _state.here


def run_replicas(here: ReplicaSharding, function: Callable[[], R]) -> R:
    """Returns ``function()``; meanwhile this thread runs replicas operation by operation.

    This is no context manager: an interrupt at its exit would leave the thread in this state.
    """
    outer, _state.here = _state.here, here
    try:
        return function()
    finally:
        _state.here = outer
