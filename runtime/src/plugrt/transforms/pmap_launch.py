"""`AxisSpec`: the options of `pmap` for its axis; `ReplicaMapping`: a call's `Launch`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.errors import DeviceMismatch, InvalidArgument, ShapeError, Unimplemented
from plugrt.execution.arrays.arguments import TracedType
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.replica_launch import require_replicas
from plugrt.execution.placement.placement import Launch, replica_launch
from plugrt.execution.shardings.pmap_sharding import divide_axis
from plugrt.execution.trees import pytrees
from plugrt.interface import Device, TensorType
from plugrt.plugins.selection import backends
from plugrt.stablehlo.bindings import hlo
from plugrt.tracing.emit import active_trace
from plugrt.tracing.operation_claims import is_marked
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace_function import flatten_outputs
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.pmap_axes import (
    Axis,
    AxisPrefix,
    call_axes,
    mapped_axis,
    mapped_size,
    output_axis,
    part_shape,
    replica_shape,
)


@dataclass(frozen=True, slots=True)
class AxisSpec:
    """The axis that `pmap` maps, as its caller described it; part of the key of its programs."""

    name: Hashable | None
    in_axes: AxisPrefix
    out_axes: AxisPrefix
    devices: tuple[Device, ...] | None
    backend: str | None
    size: int | None
    global_size: int | None

    def available(self) -> tuple[Device, ...]:
        """Returns the devices that replicas may run on, of all processes."""
        return self.devices or tuple(backends.get_backend(self.backend).devices())

    def sizes(
        self, title: str, bound: FlatCall, names: Sequence[str], types: Sequence[TensorType]
    ) -> tuple[tuple[Axis, ...], int]:
        """Returns the mapped axis of each flat argument, and the axis's size in this process."""
        axes: list[Axis] = [
            axis if axis is None else mapped_axis(axis, t.shape, f"argument {name} of {title!r}")
            for axis, t, name in zip(
                call_axes(self.in_axes, bound, title), types, names, strict=True
            )
        ]
        return tuple(axes), mapped_size(axes, types, names, title, self.size)

    def check_global_size(self, title: str, size: int, whole: int, where: str) -> None:
        """Raises `ShapeError` if ``global_axis_size`` is not ``whole``, the real size."""
        if self.global_size not in (None, whole):
            raise ShapeError(
                f"pmap of {title!r} was made with global_axis_size={self.global_size}; its "
                f"mapped axis has size {size}, {where}"
            )

    def mapping(
        self, title: str, bound: FlatCall, names: Sequence[str], types: Sequence[TensorType]
    ) -> ReplicaMapping:
        """Returns the mapping of a call to devices, from the types of its flat arguments."""
        axes, size = self.sizes(title, bound, names, types)
        available, chosen = self.available(), self.devices is not None
        local = sum(device.is_addressable for device in available)
        if local == len(available):
            self.check_global_size(title, size, size, "and this process is the only one")
            if size > local or (chosen and local % size):
                require_replicas(f"pmap of {title!r}", size, available, chosen, ())
            return ReplicaMapping(title, axes, size, size, available, chosen)
        whole, rest = divmod(len(available) * size, local)
        if local % size or rest:
            raise _other_local_size(title, size, local, available, 1)
        self.check_global_size(title, size, whole, f"{whole} in all processes")
        return ReplicaMapping(title, axes, whole, size, available, chosen)


@dataclass(frozen=True, slots=True)
class ReplicaMapping:
    """The mapping of one call to devices.

    ``axes`` has the mapped axis of each flat argument; ``size`` is the mapped axis's size,
    ``local_size`` the share of this process. ``available`` are the devices: the caller's choice
    (``chosen``), or all. Arguments and results are this process's slices of the whole.
    """

    title: str
    axes: tuple[Axis, ...]
    size: int
    local_size: int
    available: tuple[Device, ...]
    chosen: bool

    def parts(self, types: Sequence[TracedType]) -> list[TracedType]:
        """Returns the types of one device's parts of arguments with these types."""
        return [
            (part_shape(axis, shape), dtype, weak, None)
            for axis, (shape, dtype, weak, _) in zip(self.axes, types, strict=True)
        ]

    def of_parts(self, function: Callable[..., Any], out_axes: AxisPrefix) -> Callable[..., Any]:
        """Converts a function of a replica's slices to one of a device's parts, for tracing.

        Parts have the mapped axis, with size one, like the parts of a `NamedSharding`. The results
        are flat arrays in the structure of ``function``'s result. Raises `StructureError` if
        ``out_axes`` is no prefix, and `ShapeError` for an axis out of range.
        """
        title = self.title

        def call(*parts: Tracer) -> Any:
            replica = [
                _reshape(x, replica_shape(axis, x.shape))
                for x, axis in zip(parts, self.axes, strict=True)
            ]
            outputs, structure = flatten_outputs(function(*replica), title)
            axes = out_axes.broadcast(
                pytrees.unflatten(structure, outputs), f"the results of {title!r}"
            )
            many = len(outputs) > 1
            results = []
            for i, (x, axis) in enumerate(zip(outputs, axes, strict=True)):
                where = f"result {i} of {title!r}" if many else f"the result of {title!r}"
                at = output_axis(axis, TensorType(x.shape, x.dtype), where)
                shape = x.shape if at is None else (*x.shape[:at], 1, *x.shape[at:])
                results.append(_reshape(x, shape))
            return pytrees.unflatten(structure, results)

        return call

    def launch(self, staged: Staged, out_axes: AxisPrefix, name: Hashable | None) -> Launch:
        """Returns how a traced function is launched: its devices, and how arrays are divided.

        A pmap called within the function multiplies the number of replicas. ``staged`` is the trace
        of `of_parts`, and ``name`` the axis's name. Raises `InvalidArgument` if the numbers of
        replicas and devices differ, `ShapeError` if the local size is not the number of local
        devices, and `Unimplemented` if the program itself states a value's sharding.
        """
        title, types = self.title, staged.output_types
        for claim in staged.claims:
            raise Unimplemented(
                f"{claim.source()} within pmap of {title!r}, whose replicas have the devices "
                "already: call it on the arrays outside"
            )
        full = pytrees.unflatten(staged.out_tree, range(len(types)))
        ats = [
            axis if axis is None else axis % len(part.shape)
            for axis, part in zip(
                out_axes.broadcast(full, f"the results of {title!r}"), types, strict=True
            )
        ]
        devices = self._devices(staged)
        here = tuple(device for device in devices if device.is_addressable)
        each = len(devices) // self.size
        lies = {axis: divide_axis(here, axis, name, each) for axis in {*self.axes, *ats}}
        return replica_launch(devices, [lies[a] for a in self.axes], [lies[a] for a in ats])

    def _devices(self, staged: Staged) -> tuple[Device, ...]:
        available, replicas = self.available, staged.replicas
        local = sum(device.is_addressable for device in available)
        if local == len(available):
            what = f"pmap of {self.title!r}"
            require_replicas(what, replicas, available, self.chosen, staged.pmaps)
            return available[:replicas]
        each = replicas // self.size
        if replicas != len(available):
            raise _other_local_size(self.title, self.local_size, local, available, each)
        groups = [available[i : i + each] for i in range(0, replicas, each)]
        for i, group in enumerate(groups):
            if len({device.process_index for device in group}) > 1:
                raise DeviceMismatch(
                    f"pmap of {self.title!r} has {each} replicas for each slice, for "
                    f"{staged.pmaps[0].what}: those of slice {i} would run on {list(group)}, which "
                    "are of several processes. List the devices of a process one after the other"
                )
        return available


def _reshape(x: Tracer, shape: tuple[int, ...]) -> Tracer:
    """Returns a value in another shape; the value itself if it has that shape."""
    if x.shape == shape:
        return x
    trace, value = active_trace(), x.value
    kind, made_by = trace.mlir_type(shape, x.dtype), value.owner
    if isinstance(made_by, hlo.ReshapeOp) and not is_marked(made_by.operation):
        value = made_by.operand  # so that a returned argument is recognised
    if value.type != kind:
        value = hlo.reshape(kind, x.value, loc=trace.location())
    return Tracer(value, trace, weak=x.weak, origin=x.origin).in_memory(x.memory_kind)


def _other_local_size(
    title: str, size: int, local: int, devices: Sequence[Device], each: int
) -> ShapeError:
    """Returns the error for a number of slices that does not fit this process's devices."""
    within = f", with {each} replicas within for each slice," if each > 1 else ""
    must = f"must have size {local // each}" if local % each == 0 else f"cannot fill {local}"
    return ShapeError(
        f"pmap of {title!r}{within} runs on {len(devices)} devices of several processes, of which "
        f"{local} are this one's; the mapped axis, of which each process has its slices, "
        f"has size {size} here and {must}. devices=plugrt.local_devices() maps within this process"
    )


def check_devices(devices: Sequence[Device], backend: str | None) -> tuple[Device, ...]:
    """Returns the listed devices; raises `InvalidArgument` if they are wrong.

    That includes devices of another backend than ``backend``, if that is given.
    """
    chosen = tuple(devices)
    non_devices = [d for d in chosen if not isinstance(d, Device)]
    if non_devices or not chosen:
        raise InvalidArgument(
            f"pmap's devices must be some of plugrt.devices(); got {non_devices or 'none'}"
        )
    if len(set(chosen)) != len(chosen):
        raise InvalidArgument(f"pmap's devices name a device twice: {list(chosen)}")
    if len({d.client for d in chosen}) > 1:
        raise InvalidArgument(f"pmap's devices are of different backends: {list(chosen)}")
    if backend is not None and (asked := backends.get_backend(backend)) is not chosen[0].client:
        raise InvalidArgument(
            f"pmap's devices are of {chosen[0].client.backend_name}, and backend={backend!r} is "
            f"{asked.backend_name}: leave one of them out"
        )
    if not any(d.is_addressable for d in chosen):
        raise InvalidArgument(
            f"pmap's devices are all of other processes than this one, {list(chosen)}; each "
            "process runs replicas on devices of its own"
        )
    return chosen
