"""`pmap`: functions that run on several devices at once, one slice of the arguments each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentError, Unimplemented
from plugrt.execution.arguments import Aval, ParameterType
from plugrt.execution.placement import Launch
from plugrt.interface import Client, Device, TensorType
from plugrt.plugins import backends
from plugrt.traceback_filter import with_user_frames
from plugrt.tracing.trace import Trace
from plugrt.tracing.trace_function import Staged, make_parameters, stage
from plugrt.transforms.cached_function import CachedFunction, P, R
from plugrt.transforms.call_arguments import ArgumentRules, Bound, check_function
from plugrt.transforms.pmap_axes import (
    Axis,
    AxisPrefix,
    AxisTree,
    ReplicaMapping,
    call_axes,
    check_devices,
    choose_devices,
    mapped_axis,
    mapped_size,
)
from plugrt.transforms.pmap_stages import PmapTraced
from plugrt.transforms.shape_dtype_struct import describe_avals
from plugrt.transforms.stages import Lowered


class PmapFunction(CachedFunction[P, R]):
    """A pmapped function: calls trace, compile and launch on all devices; `lower` stops earlier."""

    def __init__(
        self,
        function: Callable[P, R],
        rules: ArgumentRules,
        *,
        axis_name: Hashable | None,
        in_axes: AxisPrefix,
        out_axes: AxisPrefix,
        devices: tuple[Device, ...] | None,
        backend: str | None,
        axis_size: int | None,
    ) -> None:
        self._axis_name = axis_name
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._devices = devices
        self._backend = backend
        self._axis_size = axis_size
        options = (
            "pmap",
            rules.static_nums,
            rules.donate_nums,
            axis_name,
            in_axes.key,
            out_axes.key,
            devices,
            backend,
            axis_size,
        )
        super().__init__(function, rules, options)

    @with_user_frames
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Returns one replica traced for these arguments, ready to be compiled.

        Arrays may be stood in for by anything with ``shape`` and ``dtype``, as for `jit`.
        """
        return self.trace(*args, **kwargs).lower()

    @with_user_frames
    def trace(self, *args: Any, **kwargs: Any) -> PmapTraced:
        """Returns one replica traced for these arguments (see `lower`)."""
        bound = self._rules.bind(args, kwargs)
        avals = describe_avals(bound.leaves, lambda i: self._rules.names(bound)[i])
        mapping = self._mapping(bound, [aval.tensor_type for aval in avals])
        head = (bound.spec, bound.static_key)
        staged = self._pipeline.get_traced(head, avals, self._stager(bound))
        return PmapTraced(staged, bound.spec, tuple(avals), None, mapping, self._out_axes)

    @with_user_frames
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the pytree of results as shapes, dtypes and shardings, computing nothing."""
        return self.trace(*args, **kwargs).out_info

    def __repr__(self) -> str:
        return f"<pmapped {self._rules.title}>"

    # --- hooks of CachedFunction ----------------------------------------------------------

    @property
    def _what(self) -> str:  # type: ignore[override]
        return f"the output of pmapped {self._rules.title!r}"

    def _call_in_trace(
        self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> NoReturn:
        mapped = bool(trace.axes)
        cure = (
            "map once, over as many devices as both axes have together"
            if mapped
            else "call it outside of the jitted function, or jit what it maps: pmap compiles anyway"
        )
        raise Unimplemented(
            f"{self!r} was called while {trace.name!r} is traced; "
            f"pmap within {'pmap' if mapped else 'jit'} is not implemented: {cure}"
        )

    def _make_stager(self, bound: Bound) -> Callable[[Sequence[ParameterType]], Staged]:
        def trace(types: Sequence[ParameterType]) -> Staged:
            mapping = self._mapping(bound, [TensorType(*t[:2]) for t in types])
            names, donated = self._rules.names(bound), self._rules.donated(bound)
            parameters = make_parameters(mapping.types(types), names, donated)
            axes: Any = {} if self._axis_name is None else {self._axis_name: mapping.size}
            staged = stage(self._make_flat(bound), parameters, name=self._rules.title, axes=axes)
            for claim in staged.claims:
                raise Unimplemented(
                    f"{claim.source()} within pmap of {self._rules.title!r}, whose replicas have "
                    "the devices already: call it on the arrays outside"
                )
            return staged

        return trace

    def _launch(self, bound: Bound, staged: Staged, avals: Sequence[Aval]) -> Launch:
        mapping = self._mapping(bound, [aval.tensor_type for aval in avals])
        return mapping.launch(staged, self._out_axes)

    def _client(self) -> Client:
        return backends.get_backend(self._backend)

    def _mapping(self, bound: Bound, types: Sequence[TensorType]) -> ReplicaMapping:
        title, names = self._rules.title, self._rules.names(bound)
        axes: list[Axis] = [
            axis if axis is None else mapped_axis(axis, t.shape, f"argument {name} of {title!r}")
            for axis, t, name in zip(
                call_axes(self._in_axes, bound, title), types, names, strict=True
            )
        ]
        size = mapped_size(axes, types, names, title, self._axis_size)
        available = self._devices or self._client().addressable_devices()
        if available[0].client.process_count > 1:
            raise Unimplemented(
                f"pmap of {title!r} over the devices of several processes is not implemented"
            )
        return ReplicaMapping(
            tuple(axes), choose_devices(size, available, self._devices is not None, title)
        )


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
) -> PmapFunction[P, R]:
    """Returns ``fun`` as a function that runs on several devices at once, on a slice each.

    The parameters are ``jax.pmap``'s. ``in_axes`` is a pytree prefix of the positional arguments
    (keywords are mapped over axis 0): an integer names the axis that is split, which the replica
    does not see, and None gives every replica the whole. ``out_axes`` is a prefix of the results:
    where the results of the replicas are stacked; None states that they are all equal, and gives
    one, held by each device (reading it reads the first). Within ``fun``, the collectives of
    `plugrt.lax` go by ``axis_name``. Static arguments are values that a program is specialised
    for; donated ones give their memory to the results.

    Replicas run on the first devices of ``backend``, or on ``devices``, whose number must then be
    the size of the mapped axis. Results have `PmapSharding`, and calls on the same devices take
    them as they are; other arguments (host data, arrays elsewhere) are distributed first.

    Deviations from JAX: ``axis_size`` suffices where no argument is mapped; negative axes count
    from the end; under ``config.disable_jit`` the function is compiled all the same, since
    collectives cannot run one device after another; pmap within pmap or jit is refused for now,
    and so are several processes. Raises `ShapeError` where mapped sizes differ, and
    `InvalidArgument` where there are fewer devices than replicas.

    >>> total = plugrt.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    >>> total(xp.asarray([1.0, 2.0]))
    Array([3., 3.], dtype=float32)
    """
    check_function("pmap", fun)
    rules = ArgumentRules(fun, static_broadcasted_argnums, None, donate_argnums, None)
    rules.donate_names = frozenset()  # as in JAX, arguments passed by keyword are not donated
    if axis_size is not None and (type(axis_size) is not int or axis_size < 1):
        raise ArgumentError(f"pmap axis_size must be an integer from 1; got {axis_size!r}")
    if devices is not None and backend is not None:
        raise ArgumentError("pmap takes devices or a backend, not both")
    return PmapFunction(
        fun,
        rules,
        axis_name=axis_name,
        in_axes=AxisPrefix(tuple(in_axes) if type(in_axes) is list else in_axes, "in_axes"),
        out_axes=AxisPrefix(out_axes, "out_axes"),
        devices=None if devices is None else check_devices(devices),
        backend=backend,
        axis_size=axis_size,
    )
