"""The header of a saved function: consistent records, also for shardings and layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.execution.placement.placement import AnyLayout
from plugrt.execution.shardings.gspmd_sharding import GSPMDSharding
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.positional_sharding import PositionalSharding
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.interface import Device, Layout
from plugrt.native.known_dtypes import buffer_type, is_key_dtype, key_dtype
from plugrt.wire.checked_fields import (
    Count,
    Shape,
    Size,
    built,
    require,
    require_bytes,
    require_indices,
)

SavedSharding = (
    tuple[Literal["device"], str | None]
    | tuple[Literal["tiles"], str | None, bytes]
    | tuple[Literal["positions"], str | None, Shape, tuple[Count, ...]]
    | tuple[Literal["mesh"], str | None, tuple[tuple[str, Size], ...], tuple[tuple[str, ...], ...]]
)
"""The kind of sharding, the memory kind, and its fields other than the devices."""


@dataclass(frozen=True, slots=True)
class SavedLayout:
    """The fields of a `Layout`."""

    order: tuple[Count, ...]
    tiling: tuple[tuple[Count, ...], ...] | None
    bits: Count


def encode_sharding(sharding: Sharding, devices: tuple[Device, ...], name: str) -> SavedSharding:
    """Returns a sharding over these devices in the form for `decode_sharding`.

    Raises `Unimplemented` for a sharding over other devices, such as the sharding of an array that
    a program returns unchanged, and for an unknown class of shardings.
    """
    kind = sharding.memory_kind
    if isinstance(sharding, SingleDeviceSharding):
        return "device", kind
    if sharding.devices != devices:
        raise Unimplemented(
            f"{name!r} returns an argument on other devices than its own, as "
            f"{sharding!r}; it is not saved"
        )
    if isinstance(sharding, GSPMDSharding):
        return "tiles", kind, sharding.op_sharding
    if isinstance(sharding, PositionalSharding):
        positions = sharding.positions
        return "positions", kind, positions.shape, tuple(positions.ravel().tolist())
    if isinstance(sharding, NamedSharding) and not sharding.spec.unreduced:
        axes = tuple(map(sharding.spec.axes_of, range(len(sharding.spec))))
        return "mesh", kind, tuple(sharding.mesh.shape.items()), axes
    raise Unimplemented(f"{name!r} has arguments or results in {sharding!r}; it is not saved")


def decode_sharding(stated: SavedSharding, devices: tuple[Device, ...]) -> Sharding:
    """Returns a sharding over these devices, in their order; raises `DataLoss` if there is none."""
    with built("a sharding"):
        match stated:
            case "device", memory:
                require(len(devices) == 1, f"a sharding on one of {len(devices)} devices")
                return SingleDeviceSharding(devices[0], memory_kind=memory)
            case "tiles", memory, message:
                return GSPMDSharding(devices, message, memory_kind=memory)
            case "positions", memory, shape, flat:
                everyone = list(range(len(devices)))
                whole = sorted(flat) == everyone and math.prod(shape) == len(flat) and shape
                require(bool(whole), f"positions {shape} of {len(devices)} devices")
                positions = np.array(flat).reshape(shape)
                return PositionalSharding.from_positions(devices, positions, memory)
            case _, memory, axes, spec:
                sizes = tuple(size for _, size in axes)
                require(math.prod(sizes) == len(devices), f"a mesh of {sizes}")
                grid = np.empty(len(devices), object)
                grid[:] = devices
                mesh = Mesh(grid.reshape(sizes), tuple(name for name, _ in axes))
                return NamedSharding(mesh, PartitionSpec(*spec), memory_kind=memory)


def encode_layout(layout: AnyLayout) -> SavedLayout | None:
    """Returns the layout of a compiled program's array in the form for `decode_layout`."""
    if layout is None:
        return None
    assert isinstance(layout, Layout), f"{layout!r} was not read back"
    return SavedLayout(layout.major_to_minor, layout.tiling, layout.sub_byte_element_size_in_bits)


def decode_layout(stated: SavedLayout | None, shape: Sequence[int]) -> Layout | None:
    """Returns the layout of an array of a shape; None is the default of the device."""
    if stated is None:
        return None
    require(len(stated.order) == len(shape), f"a layout of {len(stated.order)} dimensions")
    with built("a layout"):
        return Layout(stated.order, stated.tiling, stated.bits)


@dataclass(frozen=True, slots=True)
class SavedType:
    """The type of an argument, a result, or an array; a dtype of random keys by its name."""

    shape: Shape
    dtype: np.dtype[Any] | Literal["key<fry>", "key<rbg>", "key<urbg>"]
    weak: bool = False

    def __post_init__(self) -> None:
        require_bytes(self.shape, self.element, "an array")

    @staticmethod
    def of(shape: Sequence[int], dtype: Any, weak: bool = False) -> SavedType:
        """Returns the type of an array of NumPy's dtype or a `KeyDtype`."""
        return SavedType(tuple(shape), dtype.name if is_key_dtype(dtype) else dtype, weak)  # type: ignore[arg-type]

    @property
    def element(self) -> Any:
        """The dtype of its elements: NumPy's, or a `KeyDtype`."""
        return key_dtype(self.dtype) if isinstance(self.dtype, str) else self.dtype

    @property
    def buffer(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of the array in a buffer."""
        return buffer_type(self.shape, self.element)

    @property
    def nbytes(self) -> int:
        """Its size on the host."""
        return math.prod(self.shape) * int(self.element.itemsize)


@dataclass(frozen=True, slots=True)
class SavedLaunch:
    """A `Launch`, with devices as ids."""

    replicas: Count
    partitions: Count
    devices: tuple[Count, ...]
    of_parts: bool
    committed: bool
    arguments: tuple[SavedSharding, ...]
    results: tuple[SavedSharding, ...]
    whole: SavedSharding | None
    in_layouts: tuple[SavedLayout | None, ...]
    out_layouts: tuple[SavedLayout | None, ...]

    def __post_init__(self) -> None:
        count = self.replicas * self.partitions
        require(
            count == len(set(self.devices)) == len(self.devices) > 0,
            f"a program on {count} devices, {self.devices[:8]}",
        )
        for layouts, shardings in (
            (self.in_layouts, self.arguments), (self.out_layouts, self.results),
        ):  # fmt: skip
            require(len(layouts) in (0, len(shardings)), f"{len(layouts)} layouts")


@dataclass(frozen=True, slots=True)
class SavedHeader:
    """A compiled function without its arrays and executable, whose backend is ``backend``."""

    name: str
    backend: str
    kept: tuple[Count, ...]
    sources: tuple[tuple[Literal["result", "argument", "constant", "literal"], Count], ...]
    fed: Count
    donated: tuple[Count, ...]
    argument_names: tuple[str, ...]
    acts: bool
    types: tuple[SavedType, ...]
    parameters: tuple[SavedType, ...]
    outputs: tuple[SavedType, ...]
    arrays: tuple[SavedType, ...]
    literals: Count
    launch: SavedLaunch
    executable: bool

    def __post_init__(self) -> None:
        count, launch = len(self.parameters), self.launch
        require(len(self.types) == count, f"{len(self.types)} arguments, {count} parameters")
        require(len(self.argument_names) <= count, f"{len(self.argument_names)} names of {count}")
        require_indices(self.kept, count, "kept")
        require_indices(self.donated, count, "donated")
        require({*self.donated} <= {*self.kept}, f"donated {self.donated[:8]} are not all kept")
        constants = len(self.arrays) - self.literals
        require(0 <= self.fed <= constants, f"{self.fed} arrays fed of {constants}")
        require(len(launch.arguments) == count, f"{len(launch.arguments)} shardings of {count}")
        for found in (launch.results, self.outputs):
            require(len(found) == len(self.sources), f"{len(found)} of {len(self.sources)} results")
        available = {
            "argument": count,
            "constant": constants,
            "literal": self.literals,
            "result": 2**31 * self.executable,
        }
        for origin, i in self.sources:
            require(i < available[origin], f"{origin} {i} of {available[origin]}")
        passed = {i for origin, i in self.sources if origin == "argument"}
        require(not passed & {*self.donated}, f"donated {self.donated[:8]} are results as well")
        require(self.executable or not self.acts, "effects of no executable")
