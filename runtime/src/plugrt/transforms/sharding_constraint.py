"""`with_sharding_constraint`: how a value within a program is divided over devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentTypeError, InvalidArgument, StructureError, Unimplemented
from plugrt.execution import tree
from plugrt.execution.partition_spec import PartitionSpec
from plugrt.execution.sharding import PmapSharding, Sharding
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.trace import current_trace
from plugrt.transforms.jit import jit
from plugrt.typing import Shardings

T = TypeVar("T")


@with_argument_errors
def with_sharding_constraint(x: T, shardings: Shardings) -> T:
    """Returns ``x`` divided over devices as ``shardings`` says, within `jit` as without.

    ``shardings`` is a sharding or a pytree prefix of ``x`` of them; None leaves a part as it is.
    Dimensions that a `NamedSharding` names as ``PartitionSpec.UNCONSTRAINED`` are left to the
    compiler. The program runs on the devices of the sharding, in that order. Outside of a traced
    function it is the same as a jitted function that does nothing else. As
    ``jax.lax.with_sharding_constraint``, which also takes a spec alone, of a mesh in the context.

    Raises `ShapeError` where a shape does not divide, `DeviceMismatch` for arguments on other
    devices, and `StructureError` for no prefix.

    >>> from plugrt.sharding import NamedSharding, PartitionSpec as P
    >>> rows = NamedSharding(plugrt.make_mesh((4,), ("x",)), P("x"))
    >>> f = plugrt.jit(lambda v: plugrt.with_sharding_constraint(2 * v, rows))
    >>> f(xp.ones((8, 2))).sharding.spec
    PartitionSpec('x')
    """
    leaves, spec = tree.flatten(x)
    found = _spread(shardings, x, len(leaves))
    if current_trace() is None:
        return _leave_as_it_is(tree.unflatten(spec, found))(x)
    results: list[Any] = [
        leaf
        if one is None
        else as_tracer(leaf, "x of with_sharding_constraint").constrained(
            one, "with_sharding_constraint"
        )
        for leaf, one in zip(leaves, found, strict=True)
    ]
    constrained: T = tree.unflatten(spec, results)
    return constrained


def _leave_as_it_is(shardings: Any) -> Callable[[T], T]:
    def same(v: T) -> T:
        return v

    return jit(same, out_shardings=shardings)


def _spread(shardings: Any, x: Any, count: int) -> list[Sharding | None]:
    given, prefix_spec = tree.flatten_with_none(shardings)
    for one in given:
        _check(one)
    if tree.is_leaf_spec(prefix_spec):
        return given * count
    try:
        return tree.broadcast_prefix(tree.unflatten(prefix_spec, given), x)
    except ValueError as error:
        raise StructureError(
            f"with_sharding_constraint's shardings={shardings!r:.200} is no pytree prefix of x: "
            f"{error}"
        ) from error


def _check(one: Any) -> None:
    if isinstance(one, PartitionSpec):
        raise Unimplemented(
            f"with_sharding_constraint with {one!r} alone: plugrt has no mesh in the context; give "
            f"NamedSharding(mesh, {one!r})"
        )
    if isinstance(one, PmapSharding):
        raise InvalidArgument(
            f"with_sharding_constraint takes no {one!r}: its parts have fewer dimensions than the "
            "array. NamedSharding divides an array"
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
