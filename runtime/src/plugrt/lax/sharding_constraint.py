"""`with_sharding_constraint`: the sharding of a value within a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from plugrt.errors import (
    ArgumentTypeError,
    InvalidArgument,
    ShapeError,
    ShardingTypeError,
    Unimplemented,
)
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.programs import resolve_launch
from plugrt.execution.placement.launch_layouts import lay_out_results
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.specs_in_context import name_in_context
from plugrt.execution.shardings.auto_sharding import AUTO
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.named_sharding import (
    NamedSharding,
    explicit_part,
    is_abstract,
    over_devices,
)
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device, Layout
from plugrt.interface.checks import require_rank
from plugrt.interface.memory_layout import AutoLayout
from plugrt.lax.control_flow.eager import launch
from plugrt.lax.custom_calls import constrain_layout
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import current_trace
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Shardings

T = TypeVar("T")
_Place = Sharding | Format


@with_argument_errors
def with_sharding_constraint(x: T, shardings: Shardings) -> T:
    """Returns ``x`` with these ``shardings``, inside and outside of `jit`.

    ``shardings`` is a sharding, a `plugrt.layout.Format` with a layout as well, or a pytree prefix
    of ``x`` of them; None in it leaves a part unchanged; None alone is refused. Dimensions that a
    `NamedSharding` names as ``PartitionSpec.UNCONSTRAINED`` are left to the compiler. The program
    runs on the devices of the sharding, in that order. Outside of a traced function it runs as a
    jitted function of its own. A `PartitionSpec` by itself is over the mesh in the context, of
    `plugrt.set_mesh` or ``with mesh:``. Outside of a traced function the result has the layout;
    within one the value has it at that point of the program, and ``out_shardings`` decides for
    results. As ``jax.lax.with_sharding_constraint``.

    Raises `ShapeError` where a shape does not divide, `DeviceMismatch` for arguments on other
    devices, `StructureError` for no prefix, `InvalidArgument` for None alone, a Format without a
    sharding, and a layout of another rank or left to the compiler, and `Unimplemented` for tiles
    and for a memory kind.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((4,), ("x",)), P("x"))
    >>> f = plugrt.jit(lambda v: plugrt.with_sharding_constraint(2 * v, rows))
    >>> f(xp.ones((8, 2))).sharding.spec
    P('x',)
    """
    if shardings is None:
        raise InvalidArgument("with_sharding_constraint takes a sharding; got None")
    spec = pytrees.structure(x)
    given, structure = pytrees.flatten_with_none(shardings)
    named = pytrees.unflatten(structure, map(_read, given))
    found: list[_Place | None] = spread_prefix(
        named, x, "with_sharding_constraint's shardings", "x"
    )

    stated = [one for one in map(_sharding_of, found) if one and not is_abstract(one)]
    if current_trace() is None and len({one.devices for one in stated}) > 1:
        return _constrain_leaves(x, found)

    def constrain(x: T) -> T:
        results: list[object] = [
            leaf if one is None else _constrain(leaf, one, path)
            for (path, leaf), one in zip(pytrees.flatten_with_paths(x), found, strict=True)
        ]
        constrained: T = pytrees.unflatten(spec, results)
        return constrained

    def place(staged: Staged, avals: Sequence[Aval]) -> Launch:
        """States the results' shardings, since not every backend derives them from constraints."""
        made = resolve_launch(staged, avals)
        stated = [
            chosen if one is None or _has_open_dimensions(one) else _over(one, made.devices)
            for one, chosen in zip(map(_sharding_of, found), made.out_shardings, strict=True)
        ]
        made = replace(made, out_shardings=tuple(stated))
        if not any(isinstance(one, Format) for one in found):
            return made
        asked = [one.layout if isinstance(one, Format) else None for one in found]
        return lay_out_results(made, asked, staged.output_types)

    made: T = launch(
        "with_sharding_constraint", (_read,), (*found,), {"x": x}, constrain,
        reads_once=True, place=place,
    )  # fmt: skip
    return made


def _constrain_leaves(x: T, places: Sequence[_Place | None]) -> T:
    """Constrains each leaf by its own program, which has one list of devices, as in JAX."""
    leaves: list[object] = [
        leaf if one is None else with_sharding_constraint(leaf, one)
        for leaf, one in zip(pytrees.leaves(x), places, strict=True)
    ]
    made: T = pytrees.unflatten(pytrees.structure(x), leaves)
    return made


def _constrain(leaf: object, place: _Place, path: str) -> Tracer:
    sharding = _sharding_of(place)
    assert sharding is not None
    try:
        x = as_tracer(leaf, "x of with_sharding_constraint")
        x = x.constrained(_with_type(x, sharding), "with_sharding_constraint")
    except ShapeError as error:
        raise ShapeError(f"x{path} of with_sharding_constraint: {error}") from None
    if not isinstance(place, Format) or not isinstance(place.layout, Layout):
        return x
    require_rank(place.layout, x.shape)
    return constrain_layout(x, place.layout) if x.ndim else x


def _with_type(x: Tracer, sharding: Sharding) -> Sharding:
    """Returns a sharding over Auto axes with the Explicit axes of the value's type added.

    Raises `ShardingTypeError` if it names other Explicit axes than the type.
    """
    found = x.sharding_type
    if found is None or not isinstance(sharding, NamedSharding):
        return sharding
    mesh, spec = sharding.mesh, sharding.spec
    asked = explicit_part(mesh, spec, x.ndim)
    if asked == found or not mesh.explicit_axes:
        return sharding
    if mesh.are_all_axes_explicit or asked.spec.axis_names or asked.mesh != found.mesh:
        raise ShardingTypeError(
            f"with_sharding_constraint to {sharding!r} of a value whose type is {found!r}: over "
            "Explicit axes it changes nothing; reshard does"
        )
    both = [(*found.spec.axes_of(i), *spec.axes_of(i)) for i in range(x.ndim)]
    return NamedSharding(mesh, found.spec.update(partitions=both))


def _sharding_of(place: _Place | None) -> Sharding | None:
    return place.sharding if isinstance(place, Format) else place


def _over(sharding: Sharding, devices: tuple[Device, ...]) -> Sharding:
    return over_devices(sharding, devices) if devices else sharding


def _has_open_dimensions(sharding: Sharding) -> bool:
    return isinstance(sharding, NamedSharding) and PartitionSpec.UNCONSTRAINED in sharding.spec


def _read(given: object) -> _Place | None:
    trace = current_trace()
    if isinstance(given, PartitionSpec) and trace is not None and trace.mesh is not None:
        given = NamedSharding(trace.mesh, given)  # the mesh of the surrounding shard_map
    named = name_in_context(given, "with_sharding_constraint")
    if isinstance(named, Format):
        _require_concrete(named)
    one: Sharding | None = _sharding_of(named)
    if isinstance(one, AUTO):
        raise InvalidArgument(
            f"with_sharding_constraint takes no {one!r}, which is for arguments and results of "
            "jit; PartitionSpec.UNCONSTRAINED leaves a dimension to the compiler"
        )
    if one is not None and not isinstance(one, Sharding):
        raise ArgumentTypeError(
            f"with_sharding_constraint takes shardings; got {type(one).__name__} {one!r:.100}"
        )
    if one is not None and one.memory_kind is not None:
        raise Unimplemented(
            f"with_sharding_constraint with {one!r}: device_put within the function places a value "
            "in a memory"
        )
    return one if isinstance(named, Format) and named.layout is None else named


def _require_concrete(named: Format) -> None:
    """Raises for a Format without a sharding, with a layout left to the compiler, or in tiles."""
    if named.sharding is None or isinstance(named.layout, AutoLayout):
        raise InvalidArgument(
            f"with_sharding_constraint takes a Format with a sharding and a layout; got {named}. "
            "Only in_shardings and out_shardings of jit leave them to the compiler"
        )
    if named.layout is not None and named.layout.tiling:
        raise Unimplemented(
            f"with_sharding_constraint to {named}: programs state no tiles for their values. "
            "out_shardings of jit takes them for results"
        )
