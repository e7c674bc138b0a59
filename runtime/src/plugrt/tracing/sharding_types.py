"""`ShardingTypes`: the shardings of a trace's values, and how devices' values differ."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

from plugrt.errors import ShardingTypeError, Unimplemented
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.manual_types import (
    NO_AXES,
    Axes,
    ManualAxisType,
    PartSharding,
    mat_of,
    with_mat,
    write_states,
)
from plugrt.execution.shardings.named_sharding import NamedSharding, explicit_part
from plugrt.execution.shardings.partition_spec import PartitionSpec
from plugrt.execution.shardings.shardy_text import sharding_body
from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.regions import operations_within
from plugrt.stablehlo.shardings import constrain
from plugrt.stablehlo.types import KEY_CAST
from plugrt.tracing.sharding_rules import Operation, Spec, axes_of, infer
from plugrt.tracing.sum_rules import (
    MAKE_TERMS,
    NONE,
    Sums,
    asked_sums,
    infer_sums,
    join_varying,
)

_STATED = (
    KEY_CAST,
    "func.call",
    "sdy.manual_computation",
    "sdy.sharding_constraint",
    "stablehlo.composite",
)
"""Operations whose results get their types when they are created, not by a rule."""
_FORMS = (
    "sdy.sharding_constraint",
    "stablehlo.convert",
    "stablehlo.reshape",
    "stablehlo.transpose",
)
"""Operations that keep the elements, and so whether the operand is unreduced."""
_BRANCHES = ("stablehlo.case", "stablehlo.if")
_WITH_RULES = (*_BRANCHES, "stablehlo.rng", "stablehlo.while")
"""Operations whose results may vary along axes along which no operand varies."""


class ShardingTypes:
    """The shardings in the types of a trace's values, kept only for divided or varying values.

    Each is over the Explicit axes of a mesh, and has a `ManualAxisType` over the Manual ones.
    """

    def __init__(self, mesh: AbstractMesh, checks: bool = False) -> None:
        self.mesh = mesh
        """The current mesh of the trace."""
        self.checks = checks
        """Whether types record how values vary along Manual axes (``check_vma``)."""
        self._known: dict[ir.Value, NamedSharding] = {}
        self._settled: set[ir.Value] = set()
        self._open: set[ir.Value] | None = None
        """In `leaving_open`, the values without a type by the rules."""

    def of(self, value: ir.Value | None, ndim: int) -> NamedSharding:
        """Returns the sharding in the type of a value."""
        found = None if value is None else self._known.get(value)
        if found is None:
            return explicit_part(self.mesh, PartitionSpec(), ndim)
        if not _says_more(found.spec):  # also of a value from outside a shard_map
            return with_mat(explicit_part(self.mesh, PartitionSpec(), ndim), mat_of(found))
        if len(found.spec) > ndim:  # keys: their words' sharding without the last entry
            cut = explicit_part(found.mesh, PartitionSpec(*found.spec[:ndim]), ndim)
            return with_mat(cut, mat_of(found))
        return found

    def mat(self, value: ir.Value | None) -> ManualAxisType:
        """Returns how a value differs between devices along Manual axes."""
        return mat_of(None if value is None else self._known.get(value))

    def set_mat(self, value: ir.Value, mat: ManualAxisType) -> None:
        """Sets how a value differs between devices along Manual axes."""
        if self.checks:
            self.set(value, with_mat(self.of(value, _rank(value)), mat))

    def set(self, value: ir.Value, sharding: NamedSharding | None) -> None:
        """Sets the sharding in the type of a value; None: replicated."""
        if sharding is None or not (_says_more(sharding.spec) or mat_of(sharding).named):
            self._known.pop(value, None)
        else:
            self._known[value] = sharding

    def forget(self, operation: ir.Operation) -> None:
        """Forgets the values within an operation that is erased; their addresses are reused."""
        for each in operations_within(operation):
            blocks = [block for region in each.regions for block in region.blocks]
            for value in (*each.results, *(a for block in blocks for a in block.arguments)):
                self._known.pop(value, None)
                self._settled.discard(value)

    def copy(self, value: ir.Value, source: ir.Value, other: ShardingTypes | None = None) -> None:
        """Gives a value the type of another one."""
        self.set(value, (other or self)._known.get(source))

    @contextmanager
    def within(self, mesh: AbstractMesh, checks: bool | None = None) -> Iterator[None]:
        """Sets ``mesh`` and ``checks`` for as long as the context lasts."""
        before = self.mesh, self.checks
        self.mesh, self.checks = mesh, self.checks if checks is None else checks
        try:
            yield
        finally:
            self.mesh, self.checks = before

    @contextmanager
    def leaving_open(self) -> Iterator[None]:
        """Accepts values whose type is ambiguous, for as long as the context lasts."""
        before, self._open = self._open, set()
        try:
            yield
        finally:
            self._open = before

    def asked(
        self,
        value: ir.Value,
        sharding: NamedSharding,
        given: Container[ir.Value],
        location: ir.Location,
    ) -> tuple[ir.Value, NamedSharding]:
        """Returns the value to use for a result with ``out_sharding``, and its sharding.

        ``value`` was computed from the values ``given``, in `leaving_open`. Raises the
        errors of `asked_sums` for the operation that computes it.
        """
        assert self._open is not None, "in leaving_open"
        op, made = None, value
        while value not in given and not isinstance(value, ir.BlockArgument):
            last = value.owner
            if last.name not in _FORMS:
                op = last
                break
            op = last if last.name == "stablehlo.reshape" else op
            value = last.operands[0]
        spec = sharding.spec
        if op is not None:
            for operand in op.operands:
                self._catch_up(operand)
            if self._open.isdisjoint(op.operands):
                sums = asked_sums(self._operation(op), Sums(spec.unreduced, spec.reduced))
                own = spec.update(unreduced=sums.unreduced, reduced=sums.reduced)
                sharding = NamedSharding(sharding.mesh, own)
                if op.name in MAKE_TERMS:
                    return self._make_terms(made, sharding, location), sharding
        if sharding.spec.unreduced - self.of(made, _rank(made)).spec.unreduced:
            self.set(made, None)  # it is not unreduced, whatever its rule says
        return made, sharding

    def _make_terms(
        self, value: ir.Value, sharding: NamedSharding, location: ir.Location
    ) -> ir.Value:
        """Returns a sum, with a term on each device, with the type ``sharding``.

        First constrains it to the sharding of its rule, if that differs: the compiler does not sum
        and reshard at once.
        """
        assert self._open is not None, "in leaving_open"
        own = sharding.spec
        if value not in self._open:
            found = self.of(value, _rank(value)).spec
            if found.unreduced:  # constrained already
                return value
            step = found.update(unreduced=own.unreduced, reduced=own.reduced)
            if step != own:
                by_rule = NamedSharding(sharding.mesh, step)
                self.set(value, by_rule)
                return self.constrained(value, by_rule, by_rule, location)
        self.set(value, sharding)
        return value

    def settle(self, value: ir.Value, location: Callable[[], ir.Location]) -> ir.Value:
        """Returns the result of an operation, constrained to the type that it has.

        Raises `ShardingTypeError` if the operands' types leave it ambiguous.
        """
        if isinstance(value, ir.BlockArgument):
            return value
        op = value.owner
        if op.name in _STATED:
            return value
        self._settled.update(op.results)
        if self._vary_alike(op):
            return value
        self._bring_in(op, location)
        if not self._infer(op):
            return value
        sharding = self.of(value, _rank(value))
        if self._open is not None and not sharding.spec.unreduced:
            return value
        if op.name == "stablehlo.while" and sharding.spec.unreduced:
            self.set(value, None)  # the compiler sums terms within loops
        return self.constrained(value, sharding, sharding, location())

    def _vary_alike(self, op: Any) -> bool:
        """Copies the operands' type to the results, if it has only varying axes, or none.

        Returns whether it did. It is the fast path of most operations in a shard_map.
        """
        if self._open is not None or op.name in _WITH_RULES:
            return False
        known, settled, results = self._known, self._settled, op.results
        given: NamedSharding | None = None
        for operand in op.operands:
            found = known.get(operand)
            if found is None and operand not in settled:
                self._catch_up(operand)
                found = known.get(operand)
            if found is not None and found is not given:
                if given is not None or type(found) is not PartSharding or not found.only_varies:
                    return False
                given = found
        for result in results:
            if given is None or not self.checks:
                known.pop(result, None)
            else:
                known[result] = given
        return True

    def _bring_in(self, op: Any, location: Callable[[], ir.Location]) -> None:
        """Constrains unreduced operands from outside a region, such as a loop, inside of it.

        Otherwise the compiler sums their terms where the region begins.
        """
        for i, operand in enumerate(op.operands):
            found = self._known.get(operand)
            if found is None or not found.spec.unreduced:
                continue
            owner = operand.owner
            around = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
            if around.operation != op.operation.parent.operation:
                with ir.InsertionPoint(op):
                    op.operands[i] = self.constrained(operand, found, found, location())

    def constrained(
        self, value: ir.Value, sharding: NamedSharding, asked: NamedSharding, location: ir.Location
    ) -> ir.Value:
        """Returns ``value`` constrained to ``asked``, with the type ``sharding``.

        ``asked`` may name non-Explicit axes, too. For axes that it omits, the compiler chooses.
        """
        before, wanted = self._known.get(value), sharding.spec.unreduced
        own = before.spec.unreduced if before else NO_AXES
        if wanted - own and (before is None or own - wanted):
            # Workaround for shardy-unreduced: without a constraint each device uses the whole value
            # as its term; if some axes become unreduced and others no longer are, the process ends.
            without, asked_without = (
                NamedSharding(one.mesh, one.spec.update(unreduced=own & wanted))
                for one in (sharding, asked)
            )
            value = self.constrained(value, without, asked_without, location)
        is_open = bool(sharding.mesh.auto_axes)
        body = sharding_body(asked, _rank(value), is_open)
        made = constrain(value, f"#sdy.sharding<{body}>", location)
        self.set(made, with_mat(sharding, self.mat(value)))
        return made

    def _infer(self, op: Any) -> bool:
        """Sets the types of an operation's results; returns whether it has any divided value."""
        if self._open is None:
            return self._apply_rule(op)
        try:
            if self._open.isdisjoint(op.operands):
                return self._apply_rule(op)
        except (ShardingTypeError, Unimplemented):
            found = [self._known.get(operand) for operand in op.operands]
            if any(one.spec.unreduced for one in found if one):
                raise  # whether the compiler sums the terms is unspecified
        self._open.update(op.results)
        return False

    def _apply_rule(self, op: Any) -> bool:
        if op.name in _BRANCHES:
            return self._infer_branches(op)
        if op.name == "stablehlo.while":
            return self._infer_loop(op)
        operands = list(op.operands)
        for operand in operands:
            self._catch_up(operand)
        found = [self._known.get(operand) for operand in operands]
        meshes = {one.mesh for one in found if one is not None and _says_more(one.spec)}
        mats = [mat_of(one) for one in found]
        if not meshes and not any(mat.unreduced or mat.reduced for mat in mats):
            self._vary(op, join_varying(op, mats, self.mesh))
            return False
        if meshes - {self.mesh}:
            raise ShardingTypeError(
                f"{op.name} is over {self.mesh.brief}, and has operands over "
                f"{', '.join(map(repr, meshes - {self.mesh}))}: reshard them first"
            )
        of = self._operation(op)
        for result, spec, own in zip(op.results, infer(of), infer_sums(of), strict=True):
            self._state(result, spec, own, of)
        return bool(meshes)

    def _operation(self, op: Any) -> Operation:
        operands = list(op.operands)
        found = [self._known.get(operand) for operand in operands]
        specs = [_spec(one, _rank(operand)) for one, operand in zip(found, operands, strict=True)]
        free = [_is_constant(operand) for operand in operands]
        sums = [_sums(one) if one else NONE for one in found]
        return Operation(op, specs, free, self.mesh.shape, sums)

    def _state(self, value: ir.Value, spec: Spec, sums: Sums, of: Operation) -> None:
        names = [
            *(name for entry in spec for name in axes_of(entry)),
            *sums.unreduced,
            *sums.reduced,
        ]
        if len(names) != len(set(names)):
            of.refuse(f"an axis would divide two dimensions of the result, {spec}")
        explicit = frozenset(self.mesh.explicit_axes)
        own = PartitionSpec(
            *spec, unreduced=sums.unreduced & explicit, reduced=sums.reduced & explicit
        )
        mat = ManualAxisType(
            varying=sums.varying,
            unreduced=sums.unreduced - explicit,
            reduced=sums.reduced - explicit,
        )
        self.set(value, with_mat(NamedSharding(self.mesh, own), mat))

    def _vary(self, op: Any, varying: Axes) -> None:
        """Sets the types of results that are not divided, and vary along some axes."""
        for result in op.results:
            self._known.pop(result, None)
            if varying and isinstance(result.type, ir.RankedTensorType):
                self.set_mat(result, ManualAxisType(varying=varying))

    def _infer_branches(self, op: Any) -> bool:
        returned = [[*[*region.blocks[0].operations][-1].operands] for region in op.regions]
        divided = False
        for result, *values in zip(op.results, *returned, strict=True):
            found = {self.of(value, _rank(value)) for value in values}
            if len(found) > 1:
                types = ", ".join(sorted(map(write_sharding, found)))
                raise ShardingTypeError(
                    f"the branches of a condition return arrays of different types: {types}; "
                    "reshard one, or pcast it"
                )
            self.set(result, found.pop())
            self._depend_on(result, op.operands[0])
            divided |= result in self._known
        return divided

    def _infer_loop(self, op: Any) -> bool:
        """Gives results the types of the body's arguments, which `Carry` has checked."""
        condition, body = (region.blocks[0] for region in op.regions)
        [goes_on] = [*condition.operations][-1].operands
        for argument, result in zip(body.arguments, op.results, strict=True):
            self.copy(result, argument)
            self._depend_on(result, goes_on)
        return any(result in self._known for result in op.results)

    def _depend_on(self, result: ir.Value, choice: ir.Value) -> None:
        """Makes a result vary along the axes along which a condition varies."""
        if more := self.mat(choice).varying - self.mat(result).varying:
            self.set_mat(result, self.mat(result).moved(more, "varying"))

    def _catch_up(self, value: ir.Value) -> None:
        """Sets the type of a value that never became a tracer."""
        if isinstance(value, ir.BlockArgument) or value in self._settled:
            return
        op = value.owner
        self._settled.update(op.results)
        if op.name not in _STATED:
            self._infer(op)


def write_sharding(sharding: NamedSharding) -> str:
    """Returns the text of a type without shape and dtype, such as ``P('x',){V:y}``."""
    return repr(sharding.spec) + write_states(*_sums(sharding))


def _sums(sharding: NamedSharding) -> Sums:
    """Returns the unreduced, reduced and varying axes of a type, Explicit and Manual ones."""
    spec, mat = sharding.spec, mat_of(sharding)
    return Sums(spec.unreduced | mat.unreduced, spec.reduced | mat.reduced, mat.varying)


def _spec(sharding: NamedSharding | None, ndim: int) -> Spec:
    spec: Any = () if sharding is None else tuple(sharding.spec)
    return (*spec, *(None,) * (ndim - len(spec)))  # a key's words are not divided


def _says_more(spec: PartitionSpec) -> bool:
    return bool(spec.axis_names or spec.unreduced or spec.reduced)


def _rank(value: ir.Value) -> int:
    return int(ir.RankedTensorType(value.type).rank)


def _is_constant(value: ir.Value, depth: int = 8) -> bool:
    """Whether a value is computed from constants alone, which fit any sharding."""
    if not depth or isinstance(value, ir.BlockArgument):
        return False
    op = value.owner
    if op.name in _STATED or op.regions:
        return False
    if op.name == "stablehlo.broadcast_in_dim" and not _rank(op.operands[0]):
        return True
    return all(_is_constant(operand, depth - 1) for operand in op.operands)
