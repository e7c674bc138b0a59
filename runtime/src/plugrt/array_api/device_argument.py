"""The ``device=`` argument of creation functions and conversions; copies of arrays."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from plugrt.errors import ArgumentError, InvalidArgument
from plugrt.execution.arrays.array import Array, duplicate
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.array_types import has_protocol
from plugrt.execution.arrays.aval import intern_aval
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part, is_abstract
from plugrt.execution.shardings.sharding_base import Sharding, SingleDeviceSharding
from plugrt.execution.transfers.transfer import device_put
from plugrt.interface import Device
from plugrt.settings.declarations import config
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace, hlo, with_weakness, wrap_one
from plugrt.tracing.explicit_axes import mesh_around, read_sharding
from plugrt.tracing.operation import Operation
from plugrt.tracing.trace import current_trace
from plugrt.typing import DeviceLike, OutSharding


def to_device(
    function: str, device: DeviceLike | None, out_sharding: OutSharding
) -> DeviceLike | None:
    """Returns the placement of a result: ``out_sharding`` if given, else ``device``."""
    if out_sharding is None:
        return device
    if device is not None:
        raise ArgumentError(f"{function} takes device or out_sharding, not both")
    return read_sharding(out_sharding, f"out_sharding of {function}", current_trace())


def place(x: Array, device: Any) -> Array:
    """Returns ``x`` committed to a device or sharding; unchanged for None.

    While a program is traced, it sets the program's device, as `with_sharding_constraint` does.
    """
    if device is None:
        return x
    if current_trace() is None:
        result: Array = device_put(x, name_each(device, x.ndim))
        return result
    sharding = SingleDeviceSharding(device) if isinstance(device, Device) else device
    if not isinstance(sharding, Sharding):
        raise _make_device_error(device)
    placed: Any = as_tracer(x).constrained(sharding, "device=")
    return cast(Array, placed.in_memory(sharding.memory_kind))


def name_each(device: Any, ndim: int) -> Any:
    """Returns a sharding over Explicit axes with an entry for each dimension, others unchanged.

    Results of operations have such shardings, as in JAX. Raises `ShapeError` for more entries.
    """
    if not (isinstance(device, NamedSharding) and device.mesh.explicit_axes):
        return device
    device.check_rank(ndim)
    spec = explicit_part(device.mesh, device.spec, ndim).spec
    return NamedSharding(device.mesh, spec, memory_kind=device.memory_kind)


def make_on_device(
    device: object, make: Operation[Any, Any], *args: object, **options: object
) -> Array:
    """Returns an operation's result for host data, computed on ``device``.

    The spec of a sharding may have more entries than the result has dimensions, if these divide
    nothing, as in JAX.
    """
    if isinstance(device, SingleDeviceSharding):
        device = device.device
    if isinstance(device, NamedSharding):
        return _place_made(make(*args, **options), device)
    if device is None or current_trace() is not None or isinstance(device, Sharding):
        return place(make(*args, **options), device)
    if not isinstance(device, Device):
        raise _make_device_error(device)
    with config.override(default_device=device):
        return place(make(*args, **options), device)


def _place_made(x: Array, sharding: NamedSharding) -> Array:
    """Returns ``x`` placed; its sharding keeps the whole spec, even one longer than its shape.

    JAX does the same.
    """
    ndim, spec = x.ndim, sharding.spec
    if len(spec) <= ndim:
        return place(x, sharding)
    sharding.tiling(ndim)  # raises if an additional entry divides
    short = spec.update(partitions=spec[:ndim])
    placed = place(x, NamedSharding(sharding.mesh, short, memory_kind=sharding.memory_kind))
    if current_trace() is not None or sharding.mesh.explicit_axes:
        return placed
    aval = placed._aval
    return share_buffers(
        placed, intern_aval(x.shape, x.dtype, sharding, True, aval.weak, aval.layout)
    )


def _make_device_error(device: object) -> InvalidArgument:
    return InvalidArgument(
        f"device is {device!r}; it takes a device (plugrt.devices() lists them) or a sharding"
    )


def is_struct(x: object) -> bool:
    """Whether ``x`` is no array but has a shape and a dtype, as a `ShapeDtypeStruct`."""
    if isinstance(x, Array | np.ndarray | np.generic) or has_protocol(x):
        return False
    return hasattr(x, "shape") and hasattr(x, "dtype")


def place_of_struct(x: Any) -> Sharding | None:
    """Returns the placement of an array like a struct: its sharding, over the context's mesh."""
    stated: Sharding | None = getattr(x, "sharding", None)
    if not is_abstract(stated):
        return stated
    trace = current_trace()
    around = mesh_around(trace)
    if around is None or around.abstract_mesh != stated.mesh:
        return None
    if trace is None and not isinstance(around, Mesh):
        return None
    return NamedSharding(around, stated.spec, memory_kind=stated.memory_kind)


def shard_like(x: Array, model: Array) -> Array:
    """Returns ``x``, of the shape of ``model``, with its sharding if that is over a mesh."""
    if current_trace() is not None or isinstance(model.sharding, SingleDeviceSharding):
        return x
    if isinstance(model.sharding, NamedSharding):
        return _place_made(x, model.sharding)
    return place(x, model.sharding)


def copy_array(x: Array) -> Array:
    """Returns a copy of ``x`` in memory of its own."""
    # A traced identity would be forwarded and return the argument itself, hence the barrier.
    if type(x) is Array and current_trace() is None:
        return duplicate(x)
    source = as_tracer(x)
    barrier = hlo.optimization_barrier([source.value], loc=active_trace().location())
    copy: Any = with_weakness(wrap_one(barrier), source.weak)
    result: Array = copy
    return result
