"""`GSPMDSharding`: devices, and an ``xla.OpSharding`` of an array over them; `replicate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.op_sharding import (
    is_stated_whole,
    read_op_sharding,
    show_op_sharding,
    write_op_sharding,
)
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.positional_sharding import PositionalSharding
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.shardings.tiling import Tiling
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device
from plugrt.native.known_dtypes import KeyDtype, is_key_dtype


class GSPMDSharding(TiledSharding):
    """An array divided into equal parts as an ``xla.OpSharding`` says, without names of axes.

    What programs that were compiled without a mesh state of their results. ``op_sharding`` is that
    message, or its bytes; ``b""`` is the whole on each device. As ``jax.sharding.GSPMDSharding``,
    which JAX has dropped. Raises `InvalidArgument` for no devices or one that is named twice, and,
    once there is an array, `InvalidReply` for a message of other devices.

    >>> sharding = plugrt.sharding.GSPMDSharding.get_replicated(plugrt.devices("cpu")[:2])
    >>> sharding.shard_shape((8, 4))
    (8, 4)
    """

    __slots__ = ("_hash", "_message")

    @with_argument_errors
    def __init__(
        self, devices: Sequence[Device], op_sharding: object, *, memory_kind: str | None = None
    ) -> None:
        found = tuple(devices)
        if not found or not all(isinstance(device, Device) for device in found):
            raise InvalidArgument(
                f"GSPMDSharding takes devices, at least one; got {devices!r:.100}"
            )
        if len(set(found)) != len(found):
            raise InvalidArgument(f"GSPMDSharding names a device twice: {list(found)}")
        if callable(serialize := getattr(op_sharding, "SerializeToString", None)):
            op_sharding = serialize()
        if not isinstance(op_sharding, bytes):
            raise ArgumentTypeError(
                "GSPMDSharding takes an xla.OpSharding, as a message or serialised; got "
                f"{type(op_sharding).__name__} {op_sharding!r:.100}"
            )
        super().__init__(found, memory_kind)
        self._message = op_sharding
        self._hash = hash((found, op_sharding, self._memory_kind))

    @classmethod
    def get_replicated(
        cls, devices: Sequence[Device], *, memory_kind: str | None = None
    ) -> GSPMDSharding:
        """Returns the sharding of an array that each device has whole."""
        return cls(devices, b"", memory_kind=memory_kind)

    @classmethod
    def from_tiling(
        cls, devices: Sequence[Device], tiling: Tiling, memory_kind: str | None = None
    ) -> GSPMDSharding:
        """Returns the sharding with a tiling."""
        return cls(devices, write_op_sharding(tiling), memory_kind=memory_kind)

    @property
    def op_sharding(self) -> bytes:
        """The ``xla.OpSharding``, serialised."""
        return self._message

    @property
    def is_fully_replicated(self) -> bool:
        return not self._message or is_stated_whole(self._message)

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        return GSPMDSharding(self._devices, self._message, memory_kind=kind)

    def _make_tiling(self, ndim: int) -> Tiling:
        return read_op_sharding(self._message, ndim, len(self._devices))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GSPMDSharding):
            return NotImplemented
        return (self._devices, self._message, self._memory_kind) == (
            other._devices, other._message, other._memory_kind,
        )  # fmt: skip

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        where = f", memory_kind={self._memory_kind!r}" if self._memory_kind else ""
        return f"GSPMDSharding({show_op_sharding(self._message)}{where})"


def replicate(sharding: Sharding) -> Sharding:
    """Returns the replicated sharding over the same devices."""
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec())
    if isinstance(sharding, PositionalSharding):
        return sharding.replicate()
    if sharding.num_devices == 1:
        return SingleDeviceSharding(sharding.devices[0])
    return GSPMDSharding.get_replicated(sharding.devices)


def buffer_sharding(
    sharding: Sharding, shape: Sequence[int], dtype: np.dtype[Any] | KeyDtype
) -> tuple[Sharding, int]:
    """Returns the sharding and the number of dimensions of an array's buffers.

    Buffers of random keys are divided as the array, with an additional last dimension of words.
    """
    if not is_key_dtype(dtype):
        return sharding, len(shape)
    if isinstance(sharding, PositionalSharding | GSPMDSharding):
        tiling = sharding.tiling(len(shape))
        widened = Tiling((*tiling.parts, 1), tiling.tiles)
        sharding = GSPMDSharding.from_tiling(sharding.devices, widened, sharding.memory_kind)
    return sharding, len(shape) + 1
