"""`pmap`: functions that run on several devices at once, one slice of the arguments each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from plugrt.errors import ArgumentError, ArgumentMismatch, InvalidArgument, Unimplemented
from plugrt.execution.arrays.arguments import TracedType
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import share_buffers
from plugrt.execution.arrays.aval import Aval, intern_aval, is_placed
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.launches.pipeline import Pipeline
from plugrt.execution.launches.replica_launch import InnerPmap
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.placement.placement import Launch
from plugrt.execution.shardings.pmap_sharding import divide_axis
from plugrt.execution.shardings.replica_sharding import (
    ReplicaSharding,
    current_replicas,
    run_replicas,
)
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.transfers.host_values import as_array
from plugrt.execution.transfers.transfer import device_put
from plugrt.execution.trees import pytrees
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.frames.traceback_filter import describe_call_site, with_user_frames
from plugrt.interface import Device, TensorType
from plugrt.lax.parallel.all_reduce import axis_index
from plugrt.lax.parallel.exchanges import all_gather
from plugrt.lax.parallel.replica_calls import call_on_replicas
from plugrt.settings.declarations import config
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import constant, hlo, reshape, with_weakness
from plugrt.tracing.key_words import by_words
from plugrt.tracing.mapped_axes import bind_axis
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace
from plugrt.tracing.traceable import P, R
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.call_arguments import ArgumentRules, check_function
from plugrt.transforms.pmap_axes import (
    Axis,
    AxisPrefix,
    AxisTree,
    drop_axis,
    insert_axis,
    output_axis,
    part_shape,
    replica_shape,
)
from plugrt.transforms.pmap_launch import AxisSpec, ReplicaMapping, check_devices
from plugrt.transforms.shape_dtype_struct import describe_avals
from plugrt.transforms.staged_function import StagedFunction
from plugrt.transforms.stages import Traced


class PmapFunction(StagedFunction[P, R]):
    """A pmapped function: one replica is traced and compiled, and launched on all devices."""

    def __init__(self, function: Callable[P, R], rules: ArgumentRules, spec: AxisSpec) -> None:
        self._spec = spec
        options = ("pmap", rules.static_nums, rules.donate_nums, spec)
        super().__init__(function, rules, options, kind="pmapped")

    @with_user_frames
    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Returns one replica traced for these arguments (see `lower`).

        Raises `ArgumentMismatch` for a committed argument with another division than pmap's: a call
        would redistribute it, which a compiled function does not do.
        """
        traced = self._trace(args, kwargs)
        asked = AskedShardings(traced._launch().in_shardings, ())
        for i, aval in enumerate(traced.avals):
            if is_placed(aval) and aval.committed and not asked.is_moved(i, aval):
                raise ArgumentMismatch(
                    f"{traced.staged.plan.describe(i)} of pmap of {self._rules.title!r} is "
                    f"sharded as {aval.sharding!r}; its replicas have it as "
                    f"{asked.arguments[i]!r}. device_put it to that first"
                )
        return traced

    def _mapping(self, bound: FlatCall, types: Sequence[TensorType]) -> ReplicaMapping:
        return self._spec.mapping(self._rules.title, bound, self._rules.names(bound), types)

    def _make_stager(self, bound: FlatCall) -> Callable[[Sequence[TracedType]], Staged]:
        spec = self._spec

        def trace(types: Sequence[TracedType]) -> Staged:
            mapping = self._mapping(bound, [TensorType(*t[:2]) for t in types])
            function = mapping.of_parts(self._make_flat(bound), spec.out_axes)
            axes, donated = bind_axis({}, spec.name, mapping.size), self._donated(bound, types)
            return self._stage(function, bound, mapping.parts(types), axes, donated=donated)

        return trace

    def _launch(self, bound: FlatCall, staged: Staged, avals: Sequence[Aval]) -> Launch:
        mapping = self._mapping(bound, [aval.tensor_type for aval in avals])
        return mapping.launch(staged, self._spec.out_axes, self._spec.name)

    def _is_placed(self) -> bool:
        return True

    def _call_in_trace(self, trace: Trace, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        spec, title = self._spec, self._rules.title
        bound = self._flatten(args, kwargs)
        operands = self._tracers(bound)
        types = [TensorType(x.shape, x.dtype) for x in operands]
        axes, size = spec.sizes(title, bound, self._rules.names(bound), types)
        what = f"pmap of {title!r}{describe_call_site()}"
        spec.check_global_size(title, size, size, f"within {trace.name!r}")
        inner = InnerPmap(size, what, spec.devices, spec.backend)
        return map_within(
            trace, self._make_flat(bound), operands, axes, spec.out_axes, inner, spec.name
        )

    def _run_disabled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (around := current_replicas()) is not None:
            return call_on_replicas(self, around, args, kwargs, Pipeline())
        if self._rules.donate_nums or self._spec.global_size:  # as JAX 0.4.20
            with config.override(disable_jit=False):
                return self(*args, **kwargs)
        return self._run_operations(self._flatten(args, kwargs))

    def _run_operations(self, bound: FlatCall) -> Any:
        avals = describe_avals(bound.leaves, lambda i: self._rules.names(bound)[i])
        mapping = self._mapping(bound, [aval.tensor_type for aval in avals])
        function, spec = self._make_flat(bound), self._spec
        return run_by_operation(function, bound.leaves, mapping, spec.out_axes, spec.name)

    def _make_rerun(self, bound: FlatCall, keep: object = None) -> Rerun | None:
        if not all(device.is_addressable for device in self._spec.available()):
            return None  # a rerun in one process would wait for the others
        return super()._make_rerun(bound, keep)


@with_argument_errors
def pmap(
    fun: Callable[P, R],
    axis_name: Hashable | None = None,
    *,
    in_axes: AxisTree = 0,
    out_axes: AxisTree = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    global_axis_size: int | None = None,
) -> PmapFunction[P, R]:
    """Returns ``fun`` as a function that runs on several devices at once, on a slice each.

    The parameters are ``jax.pmap``'s. ``in_axes`` is a pytree prefix of the positional arguments
    (keywords are mapped over axis 0): an integer names the axis that is split, which the replica
    does not have, and None gives every replica the whole. ``out_axes`` is a prefix of the results:
    the axis along which the replicas' results are stacked; None states that they are all equal, and
    gives one replicated array (reading it reads the first). Within ``fun``, the collectives of
    `plugrt.lax` refer to ``axis_name``. Static arguments are values that a program is specialised
    for; results may reuse the memory of donated ones. ``global_axis_size`` is the size of the
    mapped axis over all processes.

    Replicas run on the first devices of ``backend``, or on ``devices``, of that backend if both are
    given, whose number must then be the size of the mapped axis. Results have a `NamedSharding`
    over a mesh of these devices with one axis, ``axis_name``, and calls on the same devices use
    them directly; other arguments (host data, arrays elsewhere) are distributed first. Its compiled
    functions refuse committed arrays on other devices, as ``jax.pmap``'s do.

    Deviations from JAX: ``axis_size`` suffices where no argument is mapped; negative axes count
    from the end. In several processes it runs on all devices of the backend; the size of the mapped
    axis is the number of this process's devices; arguments and results are this process's slices,
    collectives span all processes, and ``devices=plugrt.local_devices()`` stays within this
    process. Raises `ShapeError` if mapped sizes differ, and `InvalidArgument` if there are fewer
    devices than replicas.

    Within another pmap it maps over both axes, on a device for each pair; within jit, the whole
    program runs as replicas, gathers its arguments and results, and warns about it. Under
    ``config.disable_jit`` the function runs once, on arrays that have a value for each replica, and
    each operation is a launch on all; with ``donate_argnums`` or ``global_axis_size`` it is
    compiled nevertheless.

    >>> total = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    >>> total(xp.asarray([1.0, 2.0]))
    Array([3., 3.], dtype=float32)
    """
    check_function("pmap", fun)
    rules = ArgumentRules(
        fun, static_broadcasted_argnums, None, donate_argnums, None, static="static_broadcasted"
    )
    rules.donate_names = frozenset()  # as in JAX, arguments passed by keyword are not donated
    for name, size in (("axis_size", axis_size), ("global_axis_size", global_axis_size)):
        if size is not None and (type(size) is not int or size < 1):
            raise ArgumentError(f"pmap {name} must be an integer from 1; got {size!r}")
    spec = AxisSpec(
        axis_name,
        AxisPrefix(tuple(in_axes) if type(in_axes) is list else in_axes, "in_axes"),
        AxisPrefix(out_axes, "out_axes"),
        None if devices is None else check_devices(devices, backend),
        backend,
        axis_size,
        global_axis_size,
    )
    return PmapFunction(fun, rules, spec)


def run_by_operation(
    function: Callable[..., Any],
    leaves: Sequence[object],
    mapping: ReplicaMapping,
    out_axes: AxisPrefix,
    axis_name: object,
) -> Any:
    """Returns the results of a function of flat arguments; each replica has its slice of them.

    This is pmap under ``disable_jit``. The function runs once, on arrays that have a value for each
    replica. Each operation is one launch over the replicas, so collectives work, a debugger can
    stop between operations, and printing shows each replica's value. As JAX 0.4.20
    (``pxla._emap_impl``).
    Raises `Unimplemented` on the devices of several processes.
    """
    if mapping.size > mapping.local_size:
        raise Unimplemented(
            f"pmap of {mapping.title!r} under disable_jit on devices of several processes: "
            "run operation by operation, it uses this process alone. "
            "devices=plugrt.local_devices() maps within it; or leave disable_jit out"
        )
    here = ReplicaSharding(mapping.available[: mapping.size], axis_name)
    parts = [_take(x, axis, here) for x, axis in zip(leaves, mapping.axes, strict=True)]
    returned = run_replicas(here, lambda: function(*parts))
    outputs, structure = pytrees.flatten(returned)
    axes = out_axes.broadcast(returned, f"the results of {mapping.title!r}, {structure}")
    made = [
        _give(as_array(x, f"result {i} of {mapping.title!r}"), axis, here, f"result {i}")
        for i, (x, axis) in enumerate(zip(outputs, axes, strict=True))
    ]
    return pytrees.unflatten(structure, made)


def _take(x: object, axis: Axis, here: ReplicaSharding) -> Array:
    if axis is None:
        return as_array(x, "an argument")
    spread = device_put(x, divide_axis(here.devices, axis))
    return drop_axis(_relabel(spread, part_shape(axis, spread.shape), here), axis)


def _give(x: Array, axis: Axis, here: ReplicaSharding, what: str) -> Array:
    """Returns a result of the replicas as an array that is divided over their devices."""
    at = output_axis(axis, TensorType(x.shape, x.dtype), what)
    lies = x.sharding
    if not isinstance(lies, ReplicaSharding):  # equal in all replicas: from no mapped argument
        lies = here
        x = device_put(x, divide_axis(here.devices, None))
    sharding = divide_axis(lies.devices, at, here.name, lies.copies)
    x = x if at is None else insert_axis(x, at)
    return _relabel(x, sharding.whole_shape(x.shape), sharding)


def _relabel(x: Array, shape: tuple[int, ...], sharding: Sharding) -> Array:
    aval = intern_aval(shape, x.dtype, sharding, True, x._aval.weak)
    return share_buffers(x, aval)


# pmap while another function is traced: each replica computes on its slice of the arguments, and
# the results are gathered from all of them, as in JAX 0.4.20 (``pxla._pmap_lowering``).


def map_within(
    trace: Trace,
    function: Callable[..., Any],
    operands: Sequence[Tracer],
    axes: Sequence[Axis],
    out_axes: AxisPrefix,
    inner: InnerPmap,
    axis_name: object,
) -> Any:
    """Returns the results of a function of slices, mapped over a new axis of replicas.

    ``axes`` has for each operand the axis that is sliced, None if replicas use it whole. A result
    whose axis in ``out_axes`` is None has a value for each replica.
    """
    _check_surroundings(trace, inner)
    assert trace.scope is not None
    block = trace.scope.block
    before = [*block.operations][-1:]
    with trace.replicated(axis_name, inner.size) as (key, replicas):
        inner = replace(inner, replicas=replicas)
        parts = [_slice(x, axis, key) for x, axis in zip(operands, axes, strict=True)]
        returned = function(*parts)
        leaves, structure = pytrees.flatten(returned)
        ats = out_axes.broadcast(returned, f"the results of {inner.what}")
        gathered = [
            _gather(as_tracer(x, f"result {i} of {inner.what}"), at, inner, i, key)
            for i, (x, at) in enumerate(zip(leaves, ats, strict=True))
        ]
    operations = [*block.operations]
    first = operations.index(before[0]) + 1 if before else 0
    trace.claims.add_to_all(operations[first:], inner)
    return pytrees.unflatten(structure, gathered)


def _check_surroundings(trace: Trace, inner: InnerPmap) -> None:
    if trace.mesh is not None:
        raise Unimplemented(
            f"{inner.what} within shard_map over {list(trace.axes)}: shard_map has the devices of "
            "its mesh already. Map over another axis of the mesh instead"
        )
    if trace.axes and (inner.devices is not None or inner.backend is not None):
        asked = "backend" if inner.devices is None else "devices"
        raise InvalidArgument(
            f"{inner.what} with {asked}= within pmap of {trace.name!r}: the outermost pmap chooses "
            f"the devices of all within it; give {asked}= to that"
        )


def _slice(x: Tracer, axis: Axis, key: object) -> Tracer:
    """Returns a replica's slice of an operand."""
    return x if axis is None else by_words("each", _slice_array, x, axis, key)


def _slice_array(x: Tracer, axis: int, key: object) -> Tracer:
    index = axis_index((key,))
    start: list[Any] = [index if i == axis else constant(0, index.dtype) for i in range(x.ndim)]
    sizes = [1 if i == axis else n for i, n in enumerate(x.shape)]
    part = hlo.dynamic_slice(x.value, [s.value for s in start], sizes, loc=x.trace.location())
    sliced = Tracer(part, x.trace)
    return with_weakness(reshape(sliced, replica_shape(axis, x.shape)), x.weak)


def _gather(x: Tracer, axis: Axis, inner: InnerPmap, i: int, key: object) -> Tracer:
    part = TensorType(x.shape, x.dtype)
    at = output_axis(axis, part, f"result {i} of {inner.what}")
    if at is not None:
        return all_gather(x, (key,), axis=at)
    trace = x.trace  # adds an operation of the pmap, also if the result is an operand
    same = hlo.reshape(x.value.type, x.value, loc=trace.location())
    return Tracer(same, trace, weak=x.weak, origin=x.origin).in_memory(x.memory_kind)
