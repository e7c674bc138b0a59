"""`PositionalSharding`: an array of sets of devices, each with the part at its position."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from plugrt.errors import AxisError, ShapeError
from plugrt.execution.shardings.device_array import find_devices, name_client, read_devices
from plugrt.execution.shardings.tiled_sharding import TiledSharding
from plugrt.execution.shardings.tiling import Tiling, whole
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device


class PositionalSharding(TiledSharding):
    """Divides each dimension into as many parts as an array of devices has elements along it.

    ``devices`` is that array, or nested sequences; ``memory_kind`` names a memory of the devices
    other than the default one. `reshape` and `transpose` work as on NumPy's arrays; `replicate`
    joins the devices along axes, which then hold copies. An array must have as many dimensions as
    the sharding, or any number if each device has the whole. Results computed from such arrays have
    such a sharding, too.

    As ``jax.sharding.PositionalSharding`` of jax 0.4.35, which JAX dropped in 2025 in favour of
    `NamedSharding`; unlike there, `with_memory_kind` keeps the shape, and the other methods keep
    the memory kind. It can be pickled, by the ids of its devices, as `Mesh` can. Raises
    `InvalidArgument` for no devices, a repeated device, and a memory kind that a device lacks;
    `DeviceMismatch` for devices of several backends.

    >>> from plugrt.sharding import PositionalSharding
    >>> grid = PositionalSharding(plugrt.devices("cpu")[:4]).reshape(2, 2)
    >>> grid.shard_shape((8, 6)), grid.replicate(0).shard_shape((8, 6))
    ((4, 3), (8, 3))
    """

    __slots__ = ("_hash", "_positions")

    @with_argument_errors
    def __init__(
        self, devices: npt.ArrayLike | Sequence[object] | Device, *, memory_kind: str | None = None
    ) -> None:
        array = read_devices(devices, "PositionalSharding")
        self._set(tuple(array.flat), np.arange(array.size).reshape(*array.shape, 1), memory_kind)

    def _set(
        self,
        devices: tuple[Device, ...],
        positions: npt.NDArray[np.int64],
        memory_kind: str | None,
    ) -> None:
        super().__init__(devices, memory_kind)
        positions.flags.writeable = False
        self._positions = positions
        self._hash = hash((devices, positions.shape, positions.tobytes(), self._memory_kind))

    @classmethod
    def from_positions(
        cls,
        devices: tuple[Device, ...],
        positions: npt.NDArray[np.int64],
        memory_kind: str | None = None,
    ) -> PositionalSharding:
        """Returns the sharding with these `positions` among the devices."""
        made = cls.__new__(cls)
        made._set(devices, np.sort(positions, axis=-1), memory_kind)
        return made

    @classmethod
    def from_tiling(
        cls, devices: tuple[Device, ...], tiling: Tiling, memory_kind: str | None = None
    ) -> PositionalSharding:
        """Returns the sharding that places the tiles of a tiling on ``devices``, in order."""
        by_tile = np.argsort(tiling.tiles, kind="stable").reshape(*tiling.parts, -1)
        return cls.from_positions(devices, by_tile, memory_kind)

    @property
    def positions(self) -> npt.NDArray[np.int64]:
        """The devices' numbers for each part, in an array of `shape` and the number of copies."""
        return self._positions

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of parts along each dimension."""
        return self._positions.shape[:-1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._positions.ndim - 1

    @property
    def is_fully_replicated(self) -> bool:
        return len(self._devices) == int(self._positions.shape[-1])

    @with_argument_errors
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> PositionalSharding:
        """Returns a sharding of another shape (sizes, or a tuple), with the parts in their order.

        One size may be -1. Raises `ShapeError` if the number of parts differs.
        """
        try:
            numbers = self._numbers().reshape(*shape)  # type: ignore[arg-type]
        except ValueError as error:
            raise ShapeError(f"{self!r} cannot be reshaped to {shape}: {error}") from error
        return self._take(numbers)

    @with_argument_errors
    def transpose(self, *axes: SupportsIndex | Sequence[SupportsIndex]) -> PositionalSharding:
        """Returns a sharding with the dimensions in the order of ``axes``, by default reversed.

        Raises `AxisError` unless ``axes`` has each dimension once.
        """
        try:
            numbers = self._numbers().transpose(*axes)
        except ValueError as error:
            raise AxisError(f"{self!r} cannot be transposed to {axes}: {error}") from error
        return self._take(numbers)

    @property
    def T(self) -> PositionalSharding:
        """The sharding with its dimensions in reverse order."""
        return self.transpose()

    @with_argument_errors
    def replicate(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = True
    ) -> PositionalSharding:
        """Returns a sharding in which the devices along one or several axes hold copies.

        ``axis`` is by default all of them. With ``keepdims`` their sizes become one; without, the
        axes are removed. Raises `AxisError` for a missing or repeated axis.
        """
        joined = self._read_axes(axis)
        rest = [d for d in range(self.ndim) if d not in joined]
        moved = self._positions.transpose(*rest, *joined, self.ndim)
        shape = [
            1 if d in joined else size
            for d, size in enumerate(self.shape)
            if keepdims or d not in joined
        ]
        return self.from_positions(self._devices, moved.reshape(*shape, -1), self._memory_kind)

    def _read_axes(self, axis: int | Sequence[int] | None) -> list[int]:
        if axis is None:
            return [*range(self.ndim)]
        given = [*map(operator.index, axis if isinstance(axis, Sequence) else (axis,))]
        found = [d + self.ndim if d < 0 else d for d in given]
        if len({*found}) < len(found) or not all(0 <= d < self.ndim for d in found):
            raise AxisError(
                f"replicate takes axes of {self!r}, each once: it has {self.ndim}; got {axis!r}"
            )
        return found

    def _numbers(self) -> npt.NDArray[np.int64]:
        """Returns the number of each part, in row-major order."""
        return np.arange(self._positions[..., 0].size).reshape(self.shape)

    def _take(self, numbers: npt.NDArray[np.int64]) -> PositionalSharding:
        """Returns the sharding with the parts of these numbers at each position."""
        parts = self._positions.reshape(-1, self._positions.shape[-1])
        return self.from_positions(self._devices, parts[numbers], self._memory_kind)

    def with_memory_kind(self, kind: str) -> PositionalSharding:
        return self.from_positions(self._devices, self._positions, kind)

    def _make_tiling(self, ndim: int) -> Tiling:
        if self.is_fully_replicated:
            return whole(ndim, len(self._devices))
        if ndim != self.ndim:
            raise ShapeError(
                f"{self!r} is for arrays of {self.ndim} dimensions, as it has; one has {ndim}: "
                "reshape it, with sizes of one where nothing is divided"
            )
        tiles = np.empty(len(self._devices), np.int64)
        tiles[self._positions] = self._numbers()[..., np.newaxis]
        return Tiling(self.shape, tuple(tiles.tolist()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PositionalSharding):
            return NotImplemented
        return self is other or (
            self._hash == other._hash
            and self._devices == other._devices
            and self._memory_kind == other._memory_kind
            and np.array_equal(self._positions, other._positions)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (
            name_client(self._devices[0].client),
            [device.id for device in self._devices],
            self._positions.tolist(),
            self._memory_kind,
        )

    def __repr__(self) -> str:
        platform = self._devices[0].platform.upper()
        names = np.empty(self.shape, object)
        for at in np.ndindex(self.shape):
            ids = sorted(self._devices[i].id for i in self._positions[at])
            names[at] = f"{{{platform} {', '.join(map(str, ids))}}}"
        where = f", memory_kind={self._memory_kind!r}" if self._memory_kind else ""
        drawn = " ".join(np.array2string(names, formatter={"all": str}).split())
        return f"PositionalSharding({drawn}{where})"


def _rebuild(
    backend: str, ids: list[int], positions: list[object], memory_kind: str | None
) -> PositionalSharding:
    devices = tuple(find_devices(backend, ids, "PositionalSharding"))
    return PositionalSharding.from_positions(devices, np.array(positions), memory_kind)
