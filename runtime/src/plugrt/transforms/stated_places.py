"""`read_place`: reads sharding and layout of a struct, from plugrt's or JAX's classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from plugrt.errors import ArgumentTypeError, InvalidArgument
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import (
    Sharding,
    SingleDeviceSharding,
)
from plugrt.interface import Device, Layout
from plugrt.interface.memory_layout import AutoLayout
from plugrt.plugins.selection import backends


def stated_place(struct: object) -> Any:
    """Returns the ``format`` of an object, else its ``sharding``, or None.

    Raises `InvalidArgument` if they contradict.
    """
    stated: Any = getattr(struct, "format", None)
    sharding = getattr(struct, "sharding", None)
    if not _is_format(stated):
        return sharding
    if sharding is not None and stated.sharding not in (None, sharding):
        raise InvalidArgument(
            f"{struct!r:.60} has the sharding {sharding!r} and the format {stated!r}, which is for "
            "another sharding: state one of them"
        )
    return stated


def stated_layout(x: object) -> object:
    """Returns the layout of an array or a struct, or None."""
    stated: Any = getattr(x, "format", None)
    return stated.layout if _is_format(stated) else None


def read_place(stated: Any, what: str) -> tuple[Sharding | None, Layout | None]:
    """Returns sharding and layout of a sharding or a Format; None for the default.

    JAX's classes are recognised by their attributes, and converted to plugrt's devices of the same
    platform and ids: of the default backend, else of the backend of that name. Raises
    `ArgumentTypeError` for other objects and for ``Layout.AUTO``, and `InvalidArgument` for devices
    that plugrt does not have. ``what`` begins the messages.
    """
    layout = None
    if _is_format(stated):
        layout, stated = _read_layout(stated.layout, what), stated.sharding
    return _read_sharding(stated, what), layout


def _is_format(stated: object) -> bool:
    return hasattr(stated, "layout") and hasattr(stated, "sharding")


def _read_layout(layout: Any, what: str) -> Layout | None:
    if layout is None or isinstance(layout, Layout):
        return layout
    if isinstance(layout, AutoLayout) or not hasattr(layout, "major_to_minor"):
        raise ArgumentTypeError(
            f"{what} has the layout {layout!r:.60}; it takes a plugrt.layout.Layout, or None for "
            "the default one. Only jit's in_shardings and out_shardings take Layout.AUTO"
        )
    size = getattr(layout, "sub_byte_element_size_in_bits", 0)
    return Layout(tuple(layout.major_to_minor), layout.tiling, size)


def _read_sharding(stated: object, what: str) -> Sharding | None:
    if stated is None or isinstance(stated, Sharding):
        return stated
    mesh, spec = getattr(stated, "mesh", None), getattr(stated, "spec", None)
    kind = getattr(stated, "memory_kind", None)
    if getattr(mesh, "empty", False):  # the sharding of JAX's types without a stated one
        return None
    if hasattr(mesh, "axis_names") and isinstance(spec, Iterable):
        over = _read_mesh(mesh, what)
        return NamedSharding(over, _read_spec(spec, what), memory_kind=kind)
    devices = getattr(stated, "device_set", ())
    if len(devices) == 1 and getattr(stated, "num_devices", 0) == 1:
        device = _find_device(next(iter(devices)), what)
        return SingleDeviceSharding(device, memory_kind=kind)
    raise ArgumentTypeError(
        f"{what} has the sharding {stated!r:.100} of type {type(stated).__name__}; it takes a "
        "sharding of plugrt.sharding, a plugrt.layout.Format, or JAX's NamedSharding and "
        "SingleDeviceSharding"
    )


def _read_mesh(mesh: Any, what: str) -> AbstractMesh:
    if mesh == getattr(mesh, "abstract_mesh", None):
        return AbstractMesh(mesh.axis_sizes, mesh.axis_names)
    devices = mesh.devices
    found = np.empty(devices.shape, dtype=object)
    for place, device in enumerate(devices.flat):
        found.flat[place] = _find_device(device, what)
    return Mesh(found, mesh.axis_names)


def _read_spec(spec: Any, what: str) -> PartitionSpec:
    for entry in spec:
        names = entry if isinstance(entry, tuple) else (entry,)
        if not all(name is None or isinstance(name, str) for name in names):
            raise ArgumentTypeError(
                f"{what} has the spec {spec!r:.100}: {entry!r:.60} is not the name of an axis"
            )
    return PartitionSpec(*spec)


def _find_device(device: Any, what: str) -> Device:
    platform, number = device.platform, device.id
    own = [d for d in backends.get_backend().devices() if d.platform == platform]
    for found in own or backends.get_backend(platform).devices():
        if found.id == number:
            return found
    raise InvalidArgument(
        f"{what} is on {device!r}; plugrt's {platform} has no device of the id {number}"
    )
