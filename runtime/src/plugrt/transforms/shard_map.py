"""`shard_map`: functions that are written for one device's part, mapped over axes of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Any, TypeVar, overload

from plugrt.base.bounded_cache import BoundedCache
from plugrt.errors import (
    ArgumentError,
    ArgumentTypeError,
    InvalidArgument,
    ShapeError,
    Unimplemented,
)
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.flat_calls import FlatCall
from plugrt.execution.launches.float_checks import Rerun
from plugrt.execution.launches.pipeline import Runner
from plugrt.execution.placement.device_claims import Claim
from plugrt.execution.placement.launch_shardings import AskedShardings
from plugrt.execution.placement.specs_in_context import require_mesh
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.mesh import Mesh
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.execution.shardings.partition_spec import AxisName, PartitionSpec
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import require_flag, with_argument_errors
from plugrt.frames.traceback_filter import describe_call_site
from plugrt.lax.identities import pcast
from plugrt.lax.parallel.replica_groups import as_varying
from plugrt.settings.declarations import config
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import active_trace
from plugrt.tracing.manual_regions import manual_region
from plugrt.tracing.mapped_axes import UnnamedAxis
from plugrt.tracing.trace import Trace, current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.transforms.call_arguments import (
    ArgumentRules,
    check_function,
    function_name,
)
from plugrt.transforms.jit_function import JitFunction

F = TypeVar("F", bound=Callable[..., Any])


class _Omitted(Enum):
    """The default of ``f``, for ``@shard_map(mesh=…)``."""

    OMITTED = auto()

    def __repr__(self) -> str:
        return self.name


@overload
def shard_map(
    f: F,
    /,
    *,
    mesh: AbstractMesh | None = ...,
    in_specs: object = ...,
    out_specs: object,
    axis_names: Iterable[AxisName] = ...,
    check_vma: bool = ...,
) -> F: ...
@overload
def shard_map(
    *,
    mesh: AbstractMesh | None = ...,
    in_specs: object = ...,
    out_specs: object,
    axis_names: Iterable[AxisName] = ...,
    check_vma: bool = ...,
) -> Callable[[F], F]: ...
@with_argument_errors
def shard_map(
    f: Any = _Omitted.OMITTED,
    /,
    *,
    mesh: AbstractMesh | None = None,
    in_specs: object = _Omitted.OMITTED,
    out_specs: object,
    axis_names: Iterable[AxisName] = (),
    check_vma: bool = True,
) -> Any:
    """Maps ``f``, a function of one device's parts, to a function of whole arrays.

    ``in_specs`` has a `PartitionSpec` for each positional argument, or a pytree prefix of them;
    ``out_specs`` the same for the result. For None in ``in_specs``, ``f`` receives the argument
    unchanged, which need not be an array; in ``out_specs`` it means no array. Along an axis that an
    argument's spec does not name, each device gets the same part; an axis that a result's spec does
    not name states that all devices along it return the same. Within ``f`` the axes are bound:
    `plugrt.lax.psum` and the other collectives join devices along them. With ``axis_names`` only
    those axes are bound; over the others the compiler divides ``f``, and specs do not name them.

    With ``check_vma`` the types of values, ``typeof(x).mat``, record along which axes they differ:
    arguments along the axes in their specs, and results of operations along the operands' axes.
    `plugrt.lax.pcast` and collectives change that. Results' specs are checked against these types,
    and carries of loops keep their types. Specs with ``unreduced`` and ``reduced`` are for
    arguments and results of such types, over Explicit axes. The call is a part of a traced
    function, or is compiled by itself, also under `disable_jit`. The default ``mesh`` is the mesh
    in the context of the call; an `AbstractMesh` uses the devices of the arguments, or else the
    first ones. Within another shard_map it uses the same mesh, and binds further axes of it: those
    in ``axis_names``, or all that are not bound yet. As ``jax.shard_map``; shapes must divide
    evenly.

    Raises `InvalidArgument` for axes that the mesh lacks, `StructureError` for specs that are no
    prefix, and, when it is called, `ShapeError` if a shape does not divide evenly and
    `ArgumentError` if a result differs along an axis that its spec omits, or if the types of
    operands are not compatible.

    >>> from plugrt.sharding import PartitionSpec as P
    >>> mesh = plugrt.make_mesh((2,), ("x",))
    >>> total = lambda v: lax.psum(xp.sum(v), "x")
    >>> plugrt.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())(xp.arange(4.0))
    Array(6., dtype=float32)
    """
    if f is _Omitted.OMITTED:
        return functools.partial(
            shard_map,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    check_function("shard_map", f)
    require_flag("shard_map", "check_vma", check_vma)
    named = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if mesh is not None:
        mapped = _map_over(f, mesh, in_specs, out_specs, named, check_vma)
        return functools.wraps(f)(lambda *args: mapped(*args))
    by_mesh: BoundedCache[Any, _Mapped] = BoundedCache(16)
    name = function_name(f)

    def call(*args: object) -> Any:
        trace = current_trace()
        found = None if trace is None else trace.mesh
        if found is None:  # not within another shard_map
            found = require_mesh(f"shard_map of {name!r} is given no mesh", "shard_map(mesh=…)")
        make = functools.partial(_map_over, f, found, in_specs, out_specs, named, check_vma)
        bound = () if trace is None else tuple(trace.axes)
        return by_mesh.get_or_make((found, bound), make)(*args)

    return functools.wraps(f)(call)


@overload
def smap(f: F, /, *, in_axes: object = ..., out_axes: object, axis_name: AxisName) -> F: ...
@overload
def smap(*, in_axes: object = ..., out_axes: object, axis_name: AxisName) -> Callable[[F], F]: ...
@with_argument_errors
def smap(
    f: Any = _Omitted.OMITTED,
    /,
    *,
    in_axes: object = _Omitted.OMITTED,
    out_axes: object,
    axis_name: AxisName,
) -> Any:
    """Returns `shard_map` of ``f`` over one axis of the mesh in the context.

    ``in_axes`` has for each positional argument the dimension that is divided over the axis, or
    None for one that each device has whole; ``out_axes`` the same for the result. Both may be
    pytree prefixes. Without ``in_axes``, which an Explicit axis allows, the types of the arguments
    determine them. As ``jax.smap``. Raises `ArgumentTypeError` for other values than dimensions
    and None, and as `shard_map`.

    >>> with plugrt.set_mesh(plugrt.make_mesh((2,), ("x",))):
    ...     plugrt.smap(lambda v: v + lax.axis_index("x"), in_axes=0, out_axes=0, axis_name="x")(
    ...         xp.zeros(4, xp.int32)
    ...     )
    Array([0, 0, 1, 1], dtype=int32)
    """
    if f is _Omitted.OMITTED:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    check_function("smap", f)
    if not isinstance(axis_name, str):
        raise ArgumentTypeError(f"smap is over one axis, named by a string; got {axis_name!r:.60}")
    infers = in_axes is _Omitted.OMITTED
    if not infers and not isinstance(in_axes, int | tuple | None):
        raise ArgumentTypeError(
            f"in_axes of smap is a dimension, None, or a tuple for the arguments; got {in_axes!r}"
        )
    in_specs = in_axes if infers else _specs_of_axes("in_axes", in_axes, axis_name)
    out_specs = _specs_of_axes("out_axes", out_axes, axis_name)
    mapped = shard_map(f, in_specs=in_specs, out_specs=out_specs, axis_names=(axis_name,))

    def call(*args: object) -> Any:
        if infers:
            trace = current_trace()
            around = None if trace is None else trace.mesh
            mesh = around or require_mesh("smap is over the mesh in the context", "set_mesh")
            if axis_name in mesh.axis_names and axis_name not in mesh.explicit_axes:
                raise ArgumentTypeError(
                    f"smap without in_axes reads them from the types of arguments, which do not "
                    f"state the axis {axis_name!r}, as it is Auto: give in_axes"
                )
        return mapped(*args)

    return functools.wraps(f)(call)


def _specs_of_axes(what: str, axes: object, name: AxisName) -> object:
    leaves, structure = pytrees.flatten_with_none(axes)
    for axis in leaves:
        if axis is not None and (type(axis) is not int or axis < 0):
            raise ArgumentTypeError(
                f"{what} of smap are dimensions from 0 on, or None; got {axis!r:.60}"
            )
    specs = [PartitionSpec(*([] if at is None else [*[None] * at, name])) for at in leaves]
    return pytrees.unflatten(structure, specs)


def _map_over(
    f: Any,
    mesh: AbstractMesh,
    in_specs: object,
    out_specs: object,
    named: tuple[AxisName, ...],
    check: bool,
) -> _Mapped:
    if not isinstance(mesh, AbstractMesh):
        raise ArgumentTypeError(f"shard_map takes a Mesh; got {mesh!r:.100}")
    if mesh.empty:
        raise InvalidArgument("shard_map takes a mesh with axes or devices; got an empty one")
    if isinstance(mesh, Mesh):
        mesh.require_no_manual_axes()
    mesh = mesh.as_auto()  # the trace knows which axes are bound
    unknown = [name for name in named if name not in mesh.axis_names]
    if unknown:
        raise InvalidArgument(
            f"axis_names of shard_map has {unknown[0]!r}; the mesh is {mesh.brief}"
        )
    if not named and (trace := current_trace()) is not None and trace.mesh is not None:
        named = tuple(name for name in mesh.axis_names if name not in trace.axes)
    manual = tuple(name for name in mesh.axis_names if not named or name in named)
    return _Mapped(f, mesh, manual, in_specs, out_specs, check)


class _WholeCall(JitFunction[..., Any]):
    """A call outside of any trace, as a function that is not run operation by operation."""

    def _make_runner(self, key: Any, call: FlatCall, avals: Sequence[Aval]) -> Runner:
        # Not cached: the function's closure may have changed at the next call, as in JAX.
        trace, rerun = self._make_stager(call), self._make_rerun(call)
        place = functools.partial(self._launch, call)
        return self._pipeline.trace_anew(avals, trace, place, self._what, rerun)

    def _make_rerun(self, bound: FlatCall, keep: object = None) -> Rerun | None:
        return None  # finds the operation that made a NaN in the module


class _Mapped:
    """A function over a mesh: part of an outer trace, or compiled separately."""

    def __init__(
        self,
        function: Callable[..., Any],
        mesh: AbstractMesh,
        names: tuple[AxisName, ...],
        in_specs: Any,
        out_specs: Any,
        check: bool,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._mesh, self._names, self._check = function, mesh, names, check
        self._alone = _WholeCall(
            functools.wraps(function)(lambda *args: self._add_alone(*args)),
            ArgumentRules(self, None, None),
            kind=("shard_map",), keep_unused=True, device=None, backend=None, inline=False,
        )  # fmt: skip
        self._has_others = False
        self._ins = in_specs
        if in_specs is not _Omitted.OMITTED:
            self._ins = self._read_specs("in_specs", in_specs)
        self._outs = self._read_specs("out_specs", out_specs)

    @property
    def _title(self) -> str:
        return repr(getattr(self._function, "__name__", self._function))

    def _read_specs(self, what: str, specs: object) -> Any:
        """Checks and returns a pytree of specs; `InvalidArgument` for axes that are not mapped."""
        leaves, structure = pytrees.flatten_with_none(specs)
        for spec in leaves:
            if spec is None:
                self._has_others |= what == "in_specs"
                continue
            if not isinstance(spec, PartitionSpec):
                raise ArgumentTypeError(
                    f"shard_map's {what} are PartitionSpecs; got {type(spec).__name__} {spec!r:.80}"
                )
            if axes := [*spec.unreduced, *spec.reduced]:
                self._check_sums(what, spec, axes)
            for name in spec.axis_names:
                if name not in self._names:
                    raise InvalidArgument(
                        f"shard_map's {what} has {spec!r}; the axes that it maps over are "
                        f"{self._names}, of {self._mesh.brief}"
                    )
            if any(map(spec.is_unconstrained, range(len(spec)))):
                raise InvalidArgument(f"shard_map's {what} has {spec!r}; it takes no UNCONSTRAINED")
        return pytrees.unflatten(structure, leaves)

    def _check_sums(self, what: str, spec: PartitionSpec, axes: Sequence[AxisName]) -> None:
        """Raises unless unreduced and reduced axes are Explicit, and all of the mesh is mapped."""
        if len(self._names) < len(self._mesh.axis_names):
            raise Unimplemented(
                f"shard_map's {what} has {spec!r}, over {self._names} alone of {self._mesh.brief}: "
                "map over all axes"
            )
        if others := [name for name in axes if name not in self._mesh.explicit_axes]:
            raise InvalidArgument(
                f"shard_map's {what} has {spec!r}; the axis {others[0]!r} is not Explicit: add "
                "up within the function, with plugrt.lax.psum"
            )

    def __call__(self, *args: Any) -> Any:
        if self._has_others:
            return self._call_with_others(args)
        if current_trace() is not None:
            return self._add(*args)
        if not config.disable_jit:
            return self._alone(*args)
        # Arrays have no parts in an operation-by-operation run, so the whole call is one operation.
        with config.override(disable_jit=False):
            return self._alone(*args)

    def _call_with_others(self, args: tuple[Any, ...]) -> Any:
        """Maps over the arguments that have a spec; the function gets the others unchanged."""
        leaves, structure = pytrees.flatten(args)
        specs = self._spread("in_specs", self._ins, args)
        mapped = [i for i, spec in enumerate(specs) if spec is not None]

        @functools.wraps(self._function)
        def function(*parts: Tracer) -> Any:
            filled = dict(enumerate(leaves)) | dict(zip(mapped, parts, strict=True))
            return self._function(*pytrees.unflatten(structure, filled.values()))

        ins = tuple(specs[i] for i in mapped)
        inner = _Mapped(function, self._mesh, self._names, ins, self._outs, self._check)
        return inner(*(leaves[i] for i in mapped))

    def _add_alone(self, *args: object) -> Any:
        """Traces the call as a whole program; the results have the shardings of ``out_specs``."""
        returned = self._add(*args)
        if len(self._names) == len(self._mesh.axis_names):
            specs = self._spread("out_specs", self._outs, returned)
            active_trace().asked = AskedShardings(
                (None,) * len(pytrees.flatten(args)[0]),
                tuple(NamedSharding(self._mesh, spec) for spec in specs),
                from_program=True,
            )
        return returned

    def _add(self, *args: object) -> Any:
        trace = active_trace()
        self._check_surroundings(trace)
        leaves, structure = pytrees.flatten(args)
        operands = [as_tracer(x, f"an argument of shard_map of {self._title}") for x in leaves]
        if self._ins is _Omitted.OMITTED:
            specs = [self._spec_of(x) for x in operands]
        else:
            specs = self._spread("in_specs", self._ins, args)
        for i, (x, spec) in enumerate(zip(operands, specs, strict=True)):
            self._check_shape(f"argument {i}", spec, x.shape)
            self._check_type(i, spec, x)
        site = describe_call_site()
        source = f"shard_map of {self._title}{site}"
        if isinstance(self._mesh, Mesh):
            whole = NamedSharding(self._mesh, PartitionSpec())
            claim = Claim(self._mesh.flat_devices, lambda: source, whole)
        else:
            claim = Claim((), lambda: source, mesh=self._mesh)

        def body(*parts: Tracer) -> tuple[Any, list[PartitionSpec]]:
            with trace.mapped(self._mesh, self._names):
                return self._result_parts(self._function(*pytrees.unflatten(structure, parts)))

        return manual_region(
            trace, self._mesh, self._names, operands, specs, body, claim, self._check
        )

    def _check_type(self, i: int, spec: PartitionSpec, x: Tracer) -> None:
        """Raises `InvalidArgument` if a spec's unreduced or reduced axes are not the type's."""
        found = PartitionSpec() if x.sharding_type is None else x.sharding_type.spec
        if (found.unreduced, found.reduced) != (spec.unreduced, spec.reduced):
            raise InvalidArgument(
                f"argument {i} of shard_map of {self._title} has the type {found!r}, and in_specs "
                f"has {spec!r}: both name the same axes as unreduced and reduced; reshard it before"
            )

    def _spec_of(self, x: Tracer) -> PartitionSpec:
        """Returns the spec in the type of an argument, limited to the mapped axes."""
        found = PartitionSpec() if x.sharding_type is None else x.sharding_type.spec
        if axes := [*found.unreduced, *found.reduced]:
            self._check_sums("in_specs", found, axes)
        own = [tuple(n for n in found.axes_of(i) if n in self._names) for i in range(x.ndim)]
        return found.update(partitions=own)

    def _result_parts(self, returned: object) -> tuple[Any, list[PartitionSpec]]:
        """Returns the function's results, as tracers, and the spec of each leaf."""
        outputs, structure = pytrees.flatten(returned)
        specs = self._spread("out_specs", self._outs, returned)
        made = [as_tracer(x, f"a result of shard_map of {self._title}") for x in outputs]
        for i, (x, spec) in enumerate(zip(made, specs, strict=True)):
            if spec is None:
                raise ArgumentTypeError(
                    f"result {i} of shard_map of {self._title} is an array, and out_specs has None "
                    "for it: P() is what each device has whole"
                )
            if len(spec) > x.ndim:
                raise ShapeError(
                    f"result {i} of shard_map of {self._title} has {x.ndim} dimensions on each "
                    f"device; its spec {spec!r} names {len(spec)}"
                )
            if self._check:
                made[i] = self._check_variance(i, x, spec)
        return pytrees.unflatten(structure, made), specs

    def _check_variance(self, i: int, x: Tracer, spec: PartitionSpec) -> Tracer:
        """Returns a result with a type that varies along the axes in its spec.

        Raises `ArgumentError` if it varies along an axis that the spec omits, or is unreduced or
        reduced over other axes than the spec's.
        """
        what = f"result {i} of shard_map of {self._title}"
        x = as_varying(what, x, spec.axis_names)
        if terms := spec.unreduced - x.mat.unreduced:
            x = pcast(x, tuple(sorted(terms)), to="unreduced")
        mat = x.mat
        named = {*spec.axis_names, *spec.unreduced, *spec.reduced}
        left = [name for name in self._names if name in mat.named and name not in named]
        if left and left[0] in mat.varying:
            raise ArgumentError(
                f"{what} differs along the axis {left[0]!r}, "
                f"and its spec {spec!r} says that it is the same there: name the axis in "
                f"out_specs, sum or gather over it (lax.psum(x, {left[0]!r})), or take "
                "check_vma=False, which leaves it to you"
            )
        for state in ("unreduced", "reduced"):
            found, said = getattr(mat, state).intersection(self._names), getattr(spec, state)
            if found != said:
                raise ArgumentError(
                    f"{what} is {state} over {sorted(found)}, and its spec {spec!r} says over "
                    f"{sorted(said)}"
                )
        return x

    def _check_surroundings(self, trace: Trace) -> None:
        """Raises if the call is within a pmap, or a shard_map of another mesh or the same axes."""
        if not trace.axes:
            return
        around, what = list(trace.axes), f"shard_map of {self._title}{describe_call_site()}"
        if trace.mesh is None:
            axes = [axis for axis in around if type(axis) is not UnnamedAxis]
            raise Unimplemented(
                f"{what} within pmap of {trace.name!r}{f' over {axes}' if axes else ''}: pmap has "
                "the devices already. Map once, with shard_map over all the axes"
            )
        if trace.mesh.abstract_mesh != self._mesh.abstract_mesh:
            raise InvalidArgument(
                f"{what} is over {self._mesh.brief}, within shard_map over {around} of "
                f"{trace.mesh.brief}: one within another is over the same mesh"
            )
        if taken := [name for name in self._names if name in trace.axes]:
            rest = {name for name in self._mesh.axis_names if name not in trace.axes}
            cure = f"take axis_names={rest}" if rest else "no axis is left"
            raise InvalidArgument(
                f"{what} is over {list(self._names)}, within shard_map over {around}, which has "
                f"{taken[0]!r} already: {cure}"
            )

    def _check_shape(self, what: str, spec: PartitionSpec, shape: tuple[int, ...]) -> None:
        try:
            NamedSharding(self._mesh, spec).check_shape(shape)
        except ShapeError as error:
            raise ShapeError(f"{what} of shard_map of {self._title}: {error}") from None

    def _spread(self, what: str, specs: object, full: object) -> list[PartitionSpec]:
        of = "arguments" if what == "in_specs" else "results"
        return spread_prefix(specs, full, f"shard_map's {what}", f"the {of} of {self._title}")
