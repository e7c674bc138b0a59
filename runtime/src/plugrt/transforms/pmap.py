"""`pmap`: a function run on several devices at once, each with its part of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

from plugrt.config import config
from plugrt.errors import ArgumentError, LeakedTracer, NotAnArray, Unimplemented
from plugrt.execution.array import Array
from plugrt.execution.sharding import SingleDeviceSharding
from plugrt.execution.signature import Signature, signature_of
from plugrt.execution.transfer import host_array
from plugrt.interface import Client, Device
from plugrt.plugins import backends
from plugrt.tracing.dispatch import Runner
from plugrt.tracing.staging import Parameter, Staged, stage
from plugrt.tracing.trace import _state, leak_message
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.arguments import ArgumentRules, Bound, check_function
from plugrt.transforms.calls import CachedFunction, cache_for
from plugrt.transforms.described import parameter_of
from plugrt.transforms.pmap_axes import (
    Axis,
    AxisPrefix,
    axes_of_call,
    checked_devices,
    choose_devices,
    mapped_axis,
    mapped_size,
)
from plugrt.transforms.pmap_program import (
    Mapping,
    ReplicatedProgram,
    finishing,
    load_replicated,
    putting,
)
from plugrt.transforms.pmap_stages import PmapTraced
from plugrt.transforms.stages import Lowered

_Kind = Signature | tuple[tuple[int, ...], Any, bool]
"""What a program is chosen by: an array's signature, or a host value's shape, dtype, weakness."""


class PmapFunction(CachedFunction):
    """A pmapped function: calls trace, compile and launch on all devices; `lower` stops earlier."""

    def __init__(
        self,
        function: Callable[..., Any],
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
        self._programs = cache_for(function, ("programs", *options))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Returns one replica traced for these arguments, ready to be compiled.

        Arrays may be stood in for by anything with ``shape`` and ``dtype``, as for `jit`.
        """
        return self.trace(*args, **kwargs).lower()

    def trace(self, *args: Any, **kwargs: Any) -> PmapTraced:
        """Returns one replica traced for these arguments (see `lower`)."""
        bound = self._rules.bind(args, kwargs)
        names = self._rules.names(bound)
        signatures = tuple(
            parameter_of(leaf, name, donated=False)[1]
            for leaf, name in zip(bound.leaves, names, strict=True)
        )
        mapping = self._mapping(bound, signatures, names)
        staged = self._stage(bound, signatures, names, mapping)
        return PmapTraced(staged, bound.spec, signatures, None, mapping, self._out_axes)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the pytree of results as shapes, dtypes and shardings, computing nothing."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forgets the programs compiled for this function."""
        super().clear_cache()
        self._programs.clear()

    def __repr__(self) -> str:
        return f"<pmapped {self._rules.title}>"

    # --- the general way ----------------------------------------------------------------------

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _state.trace is not None:
            self._refuse_within(_state.trace.name, bool(_state.trace.axes))
        bound = self._rules.bind(args, kwargs)
        leaves, kinds = self._leaves(bound)
        where = self._devices or self._client()
        key = (config.token(), where, bound.spec, bound.static_key, *kinds)
        run = self._cache.get(key)
        if run is None:
            run = self._cache.made(key, lambda: self._compile(bound, kinds))
        if args and not kwargs and not bound.statics and all(type(a) is Array for a in args):
            self._cache.keep((key[0], *kinds), run)
        return run(leaves)

    def _refuse_within(self, outer: str, mapped: bool) -> NoReturn:
        cure = (
            "map once, over as many devices as both axes have together"
            if mapped
            else "call it outside of the jitted function, or jit what it maps: pmap compiles anyway"
        )
        raise Unimplemented(
            f"{self!r} was called while {outer!r} is traced; "
            f"pmap within {'pmap' if mapped else 'jit'} is not implemented: {cure}"
        )

    def _leaves(self, bound: Bound) -> tuple[list[Any], list[_Kind]]:
        """Returns the flat arguments, host values as NumPy arrays, and what each one is."""
        leaves: list[Any] = []
        kinds: list[_Kind] = []
        for leaf in bound.leaves:
            if type(leaf) is Array:
                leaf._live()
                kinds.append(leaf._signature)
                leaves.append(leaf)
                continue
            if type(leaf) is Tracer:
                raise LeakedTracer(leak_message(leaf))
            try:
                host = host_array(leaf)
            except NotAnArray:
                name = self._rules.names(bound)[len(leaves)]
                host_array(leaf, f"argument {name} of {self._rules.title!r}")  # says which
                raise
            weak = type(leaf) in (bool, int, float, complex)
            kinds.append((host.shape, host.dtype, weak))
            leaves.append(host)
        return leaves, kinds

    def _client(self) -> Client:
        return backends.get_backend(self._backend)

    def _mapping(
        self, bound: Bound, signatures: Sequence[Signature], names: Sequence[str]
    ) -> Mapping:
        title = self._rules.title
        axes: list[Axis] = [
            axis if axis is None else mapped_axis(axis, s.shape, f"argument {name} of {title!r}")
            for axis, s, name in zip(
                axes_of_call(self._in_axes, bound, title), signatures, names, strict=True
            )
        ]
        size = mapped_size(axes, signatures, names, title, self._axis_size)
        available = self._devices or self._client().addressable_devices()
        if available[0].client.process_count > 1:
            raise Unimplemented(
                f"pmap of {title!r} over the devices of several processes is not implemented"
            )
        return Mapping(
            tuple(axes), choose_devices(size, available, self._devices is not None, title)
        )

    def _stage(
        self,
        bound: Bound,
        signatures: Sequence[Signature],
        names: Sequence[str],
        mapping: Mapping,
    ) -> Staged:
        parameters: list[Parameter] = mapping.parameters(
            signatures, names, self._rules.donated(bound)
        )
        axes: Any = {} if self._axis_name is None else {self._axis_name: mapping.size}
        return stage(self._flat(bound), parameters, name=self._rules.title, axes=axes)

    def _compile(self, bound: Bound, kinds: Sequence[_Kind]) -> Runner:
        names = self._rules.names(bound)
        nowhere = SingleDeviceSharding((self._devices or self._client().devices())[0])
        signatures = [
            k if isinstance(k, Signature) else signature_of(k[0], k[1], nowhere, False, k[2])
            for k in kinds
        ]
        mapping = self._mapping(bound, signatures, names)
        program, finish = self._program(bound, signatures, names, mapping)
        targets = mapping.targets
        hosts = [
            (i, targets[i])
            for i, k in enumerate(kinds)
            if not isinstance(k, Signature) and i in program.needed
        ]
        for i, target in hosts:
            s = signatures[i]
            signatures[i] = signature_of(s.shape, s.dtype, target, True)
        run = finish(program.taking(signatures, mapping).runner(len(kinds)))
        return putting(hosts, run) if hosts else run

    def _program(
        self,
        bound: Bound,
        signatures: Sequence[Signature],
        names: Sequence[str],
        mapping: Mapping,
    ) -> tuple[ReplicatedProgram, Callable[[Runner], Runner]]:
        """Returns the program for these parts of arguments, wherever they come from."""
        parts = [(p.type, p.weak) for p in mapping.parameters(signatures, names, frozenset())]
        key = (config.token(), bound.spec, bound.static_key, mapping, *parts)
        found = self._programs.get(key)
        if found is None:
            staged = self._stage(bound, signatures, names, mapping)
            program = load_replicated(staged, mapping, self._out_axes)
            found = (program, finishing(staged, bool(config.debug_nans), bool(config.debug_infs)))
            self._programs.keep(key, found)
        return found


def pmap(
    fun: Callable[..., Any],
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> PmapFunction:
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
    them as they are; other arguments (host data, arrays elsewhere) are spread first.

    Deviations from JAX: ``axis_size`` suffices where no argument is mapped; negative axes count
    from the end; under ``config.disable_jit`` the function is compiled all the same, since
    collectives cannot run one device after another; pmap within pmap or jit is refused for now,
    and so are several processes. Raises `ShapeError` where mapped sizes differ, and
    `InvalidArgument` where there are fewer devices than replicas.
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
        devices=None if devices is None else checked_devices(devices),
        backend=backend,
        axis_size=axis_size,
    )
