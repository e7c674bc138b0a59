"""`with_sharding_constraint`: how a value within a program is divided over devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from plugrt.errors import ArgumentTypeError, InvalidArgument, ShapeError, Unimplemented
from plugrt.execution.arrays.aval import Aval
from plugrt.execution.launches.programs import resolve_launch
from plugrt.execution.placement.placement import Launch
from plugrt.execution.placement.specs_in_context import name_in_context
from plugrt.execution.shardings.auto_sharding import AUTO
from plugrt.execution.shardings.format import Format
from plugrt.execution.shardings.named_sharding import NamedSharding, over_devices
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.trees import pytrees
from plugrt.execution.trees.tree_prefixes import spread_prefix
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Device
from plugrt.lax.control_flow.eager import launch
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.staged import Staged
from plugrt.tracing.tracer import Tracer
from plugrt.typing import Shardings

T = TypeVar("T")


@with_argument_errors
def with_sharding_constraint(x: T, shardings: Shardings) -> T:
    """Returns ``x`` divided over devices as ``shardings`` says, within `jit` as without.

    ``shardings`` is a sharding or a pytree prefix of ``x`` of them; None in it leaves a part as it
    is, and is refused by itself.
    Dimensions that a `NamedSharding` names as ``PartitionSpec.UNCONSTRAINED`` are left to the
    compiler. The program runs on the devices of the sharding, in that order. Outside of a traced
    function it is the same as a jitted function that does nothing else. A `PartitionSpec` by itself
    is over the mesh in the context, of `plugrt.set_mesh` or ``with mesh:``. As
    ``jax.lax.with_sharding_constraint``.

    Raises `ShapeError` where a shape does not divide, `DeviceMismatch` for arguments on other
    devices, `StructureError` for no prefix, `InvalidArgument` for None alone, and `Unimplemented`
    for a memory kind or a `Format`, which JAX takes.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((4,), ("x",)), P("x"))
    >>> f = plugrt.jit(lambda v: plugrt.with_sharding_constraint(2 * v, rows))
    >>> f(xp.ones((8, 2))).sharding.spec
    PartitionSpec('x')
    """
    if shardings is None:
        raise InvalidArgument("with_sharding_constraint takes a sharding; got None")
    spec = pytrees.structure(x)
    given, structure = pytrees.flatten_with_none(shardings)
    named = pytrees.unflatten(structure, map(_read, given))
    found: list[Sharding | None] = spread_prefix(
        named, x, "with_sharding_constraint's shardings", "x"
    )

    def constrain(x: T) -> T:
        results: list[object] = [
            leaf if one is None else _constrain(leaf, one, path)
            for (path, leaf), one in zip(pytrees.flatten_with_paths(x), found, strict=True)
        ]
        constrained: T = pytrees.unflatten(spec, results)
        return constrained

    def place(staged: Staged, avals: Sequence[Aval]) -> Launch:
        """States the results' shardings: not each backend derives them from the constraints."""
        made = resolve_launch(staged, avals)
        if len(made.devices) == 1:
            return made
        stated = [
            chosen if one is None or _has_open_dimensions(one) else _over(one, made.devices)
            for one, chosen in zip(found, made.out_shardings, strict=True)
        ]
        return replace(made, out_shardings=tuple(stated))

    made: T = launch(
        "with_sharding_constraint", (_read,), (*found,), {"x": x}, constrain,
        reads_once=True, place=place,
    )  # fmt: skip
    return made


def _constrain(leaf: object, sharding: Sharding, path: str) -> Tracer:
    try:
        x = as_tracer(leaf, "x of with_sharding_constraint")
        return x.constrained(sharding, "with_sharding_constraint")
    except ShapeError as error:
        raise ShapeError(f"x{path} of with_sharding_constraint: {error}") from None


def _over(sharding: Sharding, devices: tuple[Device, ...]) -> Sharding:
    return over_devices(sharding, devices) if devices else sharding


def _has_open_dimensions(sharding: Sharding) -> bool:
    return isinstance(sharding, NamedSharding) and PartitionSpec.UNCONSTRAINED in sharding.spec


def _read(given: object) -> Sharding | None:
    one: Sharding | None = name_in_context(given, "with_sharding_constraint")
    if isinstance(one, AUTO):
        raise InvalidArgument(
            f"with_sharding_constraint takes no {one!r}, which is for arguments and results of "
            "jit; PartitionSpec.UNCONSTRAINED leaves a dimension to the compiler"
        )
    if isinstance(one, Format):
        raise Unimplemented(
            f"with_sharding_constraint with {one!r}: out_shardings of jit says in which layout a "
            "result lies; within a program the compiler chooses layouts"
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
    return one
