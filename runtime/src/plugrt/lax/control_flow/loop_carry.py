"""`Carry`: the carried values of a loop, with checks that the body keeps their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.errors import DtypeError, NotAnArray, ShapeError, ShardingTypeError, StructureError
from plugrt.execution.shardings.manual_types import ManualAxisType
from plugrt.execution.trees import pytrees
from plugrt.interface import TensorType
from plugrt.lax.operand_checks import scalar_kind
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import convert, strong, with_manual_type, with_weakness
from plugrt.tracing.promotion import result_dtype, scalar_result
from plugrt.tracing.sharding_types import write_sharding
from plugrt.tracing.tracer import Tracer


class Carry:
    """The leaves of a loop's carried value, and the types that the body must return.

    A Python scalar among the initial values has no settled dtype: it gets the dtype that the body
    returns for it, as in JAX. A Python scalar among the body's results gets the carried dtype. In
    shard_map, a value that varies along more axes after a step is refused, or, if ``widens``,
    treated as varying from the start.
    """

    def __init__(self, title: str, initial: object, widens: bool) -> None:
        self.title, self.widens = title, widens
        self.spec = pytrees.flatten(initial)[1]
        named = pytrees.flatten_with_paths(initial)
        self.paths = [f"carry{path}" for path, _ in named]
        self.leaves = [
            as_tracer(x, f"{p} of {title}") for p, (_, x) in zip(self.paths, named, strict=True)
        ]
        self._wanted: dict[int, Any] = {}
        self._varying: dict[int, ManualAxisType] = {}

    def rebuild(self, leaves: Sequence[Tracer]) -> Any:
        """Returns the carried value with these leaves."""
        return pytrees.unflatten(self.spec, leaves)

    def finish(self, leaves: Sequence[Tracer]) -> list[Tracer]:
        """Returns the loop's final values, weak if the settled initial ones are."""
        pairs = zip(leaves, self.leaves, strict=True)
        return [with_weakness(leaf, first.weak) for leaf, first in pairs]

    def check_returned(self, returned: object) -> list[Tracer]:
        """Returns the leaves of the body's result, checked against its arguments."""
        flat, spec = pytrees.flatten(returned)
        if spec != self.spec:
            raise StructureError(
                f"the body of {self.title} must return the carry in the structure in which it got "
                f"it: expected {describe(self.spec)}, found {describe(spec)}"
            )
        leaves = [
            as_tracer(x, f"{p} that the body of {self.title} returned")
            for p, x in zip(self.paths, flat, strict=True)
        ]
        return [self._check_leaf(i, x) for i, x in enumerate(leaves)]

    def _check_leaf(self, i: int, found: Tracer) -> Tracer:
        expected = self.leaves[i]
        if found.mat != expected.mat and self.widens:
            more = found.mat.varying - expected.mat.varying
            found = with_manual_type(found, expected.mat)
            if more:
                self._varying[i] = expected.mat.moved(more, "varying")
        if found.shape == expected.shape and found.sharding_type != expected.sharding_type:
            raise ShardingTypeError(self._type_change_message(i, found))
        if found.shape == expected.shape and found.dtype == expected.dtype:
            if expected.weak and not found.weak:  # from now on strongly typed
                self._wanted[i] = expected.dtype
            return strong(found)
        if found.shape != expected.shape:
            raise ShapeError(self._type_change_message(i, found))
        if found.weak and scalar_result(expected.dtype, scalar_kind(found)) == expected.dtype:
            return convert(found, expected.dtype)
        if expected.weak:
            wanted = result_dtype([(expected.dtype, True), (found.dtype, found.weak)])
            if wanted != expected.dtype:
                self._wanted[i] = wanted
                return found
        raise DtypeError(self._type_change_message(i, found))

    def _type_change_message(self, i: int, found: Tracer) -> str:
        went_in, came_out = map(_describe_type, (self.leaves[i], found))
        return (
            f"the body of {self.title} changes the type of {self.paths[i]}: it is passed in as "
            f"{went_in} and returned as {came_out}; convert one (lax.convert_element_type, "
            f"reshape, reshard{self._pcast(i, found)}) so that both are equal"
        )

    def _pcast(self, i: int, found: Tracer) -> str:
        more = sorted(found.mat.varying - self.leaves[i].mat.varying)
        return f", lax.pcast(…, {tuple(more)}, to='varying') of the initial one" if more else ""

    def settle_types(self) -> bool:
        """Converts initial Python scalars to the dtypes that the body returned.

        Also makes initial values vary along the axes that a step adds. Returns whether nothing
        changed; otherwise the body must be traced again.
        """
        for i, dtype in self._wanted.items():
            self.leaves[i] = convert(self.leaves[i], dtype)
        for i, mat in self._varying.items():
            self.leaves[i] = with_manual_type(self.leaves[i], mat)
        is_settled = not self._wanted and not self._varying
        self._wanted, self._varying = {}, {}
        return is_settled


def _describe_type(x: Tracer) -> str:
    sharding = x.sharding_type
    if sharding is None or not (sharding.spec.axis_names or x.mat.named):
        return str(TensorType(x.shape, x.dtype))
    return f"{TensorType(x.shape, x.dtype)} divided as {write_sharding(sharding)}"


def describe(spec: pytrees.PyTreeSpec) -> str:
    """Returns a structure as text, without the library's name."""
    return (
        str(spec)
        .removeprefix("PyTreeSpec(")
        .removesuffix(", namespace='plugrt')")
        .removesuffix(")")
    )


def scalar_predicate(returned: object, what: str) -> Tracer:
    """Returns the 0-d boolean that a predicate function returned; else raises, naming ``what``."""
    leaves, spec = pytrees.flatten(returned)
    if not pytrees.is_leaf_spec(spec):
        raise StructureError(f"{what} must be one boolean; found {describe(spec)}")
    try:
        found = as_tracer(leaves[0], what)
    except NotAnArray as error:
        raise NotAnArray(f"{error}; return a boolean scalar") from None
    if found.shape:
        raise ShapeError(f"{what} must be a scalar, of shape (); found shape {found.shape}")
    if found.dtype != bool:
        raise DtypeError(f"{what} must be a boolean; found {found.dtype.name}")
    return found
