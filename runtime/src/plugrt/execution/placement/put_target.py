"""Targets of `device_put`: devices, shardings, formats, spaces, and pytrees of them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from plugrt import interface
from plugrt.errors import ArgumentTypeError, InvalidArgument, Unimplemented
from plugrt.execution.compilation.buffer_copy import other_layout
from plugrt.execution.placement.default_device import require_addressable
from plugrt.execution.placement.specs_in_context import name_in_context
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.named_sharding import is_abstract
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.interface import Device, Layout, TensorType
from plugrt.interface.memory_layout import AutoLayout


class Space(enum.Enum):
    """The device's default memory, or the host's memory that the device reaches.

    ``Host`` is the memory of the kind ``pinned_host``. As a target of `device_put` it leaves an
    array on its device. As ``jax.memory.Space``.
    """

    Device = enum.auto()
    Host = enum.auto()

    def on(self, device: interface.Device) -> SingleDeviceSharding:
        """Returns that memory of a device; `InvalidArgument` if the device has none."""
        kind = None if self is Space.Device else "pinned_host"
        return SingleDeviceSharding(device, memory_kind=kind)


Target = Device | Sharding | Format | Space | None
_TARGETS = (Device, Sharding, Format, Space, PartitionSpec)


def is_target(value: object) -> TypeGuard[Target]:
    """Whether it is a single target, not a pytree of targets."""
    return value is None or isinstance(value, _TARGETS)


def read_target(target: object) -> Target:
    """Returns a target in its shortest form: a device, not its sharding; a Format with a layout.

    A spec is over the mesh in the context. Raises `InvalidArgument` for an object that is no
    target, and for a layout left to a compiler.
    """
    target = name_in_context(target, "device_put")
    if isinstance(target, SingleDeviceSharding) and target.memory_kind is None:
        return target.device
    if isinstance(target, Format):
        if isinstance(target.layout, AutoLayout):
            raise InvalidArgument(
                "device_put takes a Format with a layout; AUTO leaves it to a compiler, and "
                "device_put compiles nothing: give it to jit's in_shardings or out_shardings"
            )
        if target.layout is None:
            return read_target(target.sharding)
        return target
    if is_target(target):
        return target
    raise InvalidArgument(
        "device_put takes a device, a sharding, a Format, a memory Space or None, or a pytree of "
        f"them; got {type(target).__name__} {target!r}. plugrt.devices() lists the devices"
    )


def require_concrete(to: Format, what: str) -> tuple[Sharding, Layout | None]:
    """Returns the sharding and the layout that a format states.

    Raises `ArgumentTypeError`, which begins with ``what``, where the format has no sharding or
    leaves the layout to a compiler.
    """
    if to.sharding is None or isinstance(to.layout, AutoLayout):
        raise ArgumentTypeError(
            f"{what} has {to}; it takes a Format with a sharding, and with a plugrt.layout.Layout "
            "or None for the default one. Layout.AUTO is for jit's in_shardings and out_shardings"
        )
    return to.sharding, to.layout


def read_format(
    to: Format, shape: tuple[int, ...], dtype: np.dtype[np.generic], what: str = "device_put"
) -> tuple[Sharding, Layout | None]:
    """Returns the sharding of an array in a format, and the layout of its parts.

    The layout is None for the devices' default. Raises `ShapeError` if the sharding does not divide
    the shape, `InvalidArgument` for a layout of another rank, and `Unimplemented` for a layout that
    the devices lack, in another memory than the default, or over a mesh without devices; otherwise
    as `require_concrete`.
    """
    sharding, layout = require_concrete(to, what)
    if layout is None:
        return sharding, None
    if is_abstract(sharding):
        raise Unimplemented(f"{what} has {to}: layouts belong to devices, and this mesh has none")
    if sharding.memory_kind is not None:
        raise Unimplemented(f"{what} has {to}: arrays with a layout are in the default memory")
    part = TensorType(sharding.shard_shape(shape), dtype)
    return sharding, other_layout(sharding.devices[0], part, layout)


def require_here(target: Target) -> None:
    """Raises `InvalidArgument` for a device of another process, where no host data can be put."""
    if isinstance(target, Format):
        target = target.sharding
    if isinstance(target, SingleDeviceSharding):
        target = target.device
    if isinstance(target, Device):
        require_addressable(target, "device_put")


def spread(
    prefix: object, x: object, count: int, name: str, is_leaf: Callable[[object], bool]
) -> list[Any]:
    """Returns the part of an argument of `device_put` that belongs to each leaf of ``x``.

    Raises `StructureError` if the argument is no pytree prefix of ``x``.
    """
    if is_leaf(prefix):
        return [prefix] * count
    return spread_prefix(prefix, x, f"device_put's {name}", "what is put", is_leaf)
