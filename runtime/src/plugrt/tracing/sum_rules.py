"""Infers the axes along which results of StableHLO operations vary, or are unreduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.execution.shardings.abstract_mesh import AbstractMesh
from plugrt.execution.shardings.manual_types import NO_AXES, Axes, ManualAxisType
from plugrt.stablehlo.attributes import find_attribute, python_value
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.tracing.sharding_rules import Operation, axes_of


class Sums(NamedTuple):
    """The axes that a type names but that divide no dimension."""

    unreduced: Axes = NO_AXES
    """Devices along them have terms, and the value is their sum."""
    reduced: Axes = NO_AXES
    """Devices along them have the same value, and its gradient would be unreduced."""
    varying: Axes = NO_AXES
    """Devices along them, within shard_map, have values that may differ."""


NONE = Sums()


def join_varying(op: Any, mats: Sequence[ManualAxisType], mesh: AbstractMesh) -> Axes:
    """Returns the axes along which the result of an operation may vary."""
    if op.name == "stablehlo.rng":
        return frozenset(mesh.manual_axes)
    return NO_AXES.union(*[mat.varying for mat in mats])


def infer_sums(of: Operation) -> list[Sums]:
    """Returns the sums of an operation's results, by JAX's rules.

    If one operand varies along an axis, all are treated as varying. Raises `ShardingTypeError` if
    the operands' sums are incompatible, and `Unimplemented` for an operation without a rule for
    them.
    """
    varying = NO_AXES.union(*[sums.varying for sums in of.sums])
    given = [_let_vary(of, sums, varying) for sums in of.sums]
    if of.op.name == "stablehlo.optimization_barrier":
        return given
    if any(sums.unreduced or sums.reduced for sums in given):
        made: Sums = _RULES.get(of.op.name, _elementwise)(replace(of, sums=given))
    else:
        made = NONE
    return [made._replace(varying=varying)] * len(of.op.results)


def _let_vary(of: Operation, sums: Sums, varying: Axes) -> Sums:
    more = varying - sums.varying
    if more and more == sums.reduced:
        return Sums(sums.unreduced, NO_AXES, varying)
    for what in ("unreduced", "reduced"):
        if taken := more & getattr(sums, what):
            of.refuse(
                f"one operand differs along {sorted(taken)[0]!r}, where another is {what}",
                "pcast one",
            )
    return sums._replace(varying=varying)


def asked_sums(of: Operation, asked: Sums) -> Sums:
    """Returns the sums of a result with an ``out_sharding=``; raises the errors of `infer_sums`.

    Its terms must be divided over the requested axes.
    """
    rule = _ASKED.get(of.op.name)
    return asked if rule is None else rule(of, asked)


def _same_reduced(of: Operation) -> Axes:
    """Returns the reduced axes, which all operands but constants must share."""
    found = {sums.reduced for sums in of.sums if sums.reduced}
    if len(found) > 1:
        of.refuse("its operands are reduced over different axes", _RESHARD)
    reduced = next(iter(found), NO_AXES)
    for spec, sums, free in zip(of.specs, of.sums, of.free, strict=True):
        divided = {name for entry in spec for name in axes_of(entry)}
        if divided & reduced:
            of.refuse("an operand is divided over axes that another is reduced over", _RESHARD)
        if spec and not free and reduced - sums.reduced - sums.unreduced:
            of.refuse("an operand has copies along axes that another is reduced over", _RESHARD)
    return reduced


_RESHARD = "reshard one"
_REDUCE = "reshard it: the sum of the terms is communication, which is not done unasked"
_NO_PRODUCT = "a product of sums is no sum of the products of their terms"


def _elementwise(of: Operation) -> Sums:
    if any(len(spec) not in (0, len(of.result_shape())) for spec in of.specs):
        return _refuse(of)
    reduced = _same_reduced(of)
    if any(sums.unreduced for sums in of.sums):
        return _refuse(of)
    return Sums(reduced=reduced)


def _refuse(of: Operation) -> Sums:
    types = of.write_types()
    raise Unimplemented(f"{of.name} of {types}: it has no rule for unreduced operands; {_REDUCE}")


def _keep(of: Operation) -> Sums:
    kept: Sums = of.sums[0]
    return kept


def _pad(of: Operation) -> Sums:
    """The rule of `_keep`, if the terms are padded with zeros, whose sum is zero."""
    is_zero = _is_zero(of.op.operands[1])
    return _keep(of) if is_zero or not of.sums[0].unreduced else _refuse(of)


def _is_zero(value: ir.Value) -> bool:
    while not isinstance(value, ir.BlockArgument) and value.owner.name in _KEEPS_ZERO:
        value = value.owner.operands[0]
    if isinstance(value, ir.BlockArgument) or value.owner.name != "stablehlo.constant":
        return False
    found: Any = python_value(find_attribute(value.owner, "value"))
    return not np.any(found)


_KEEPS_ZERO = ("stablehlo.broadcast_in_dim", "stablehlo.convert", "stablehlo.reshape")


def _check_constants(of: Operation, operands: Sequence[int]) -> None:
    """Raises `ShardingTypeError` for constants beside terms, except 0: each device would add it."""
    if not any(of.sums[i].unreduced for i in operands):
        return
    for i in operands:
        if of.free[i] and not of.sums[i].unreduced and not _is_zero(of.op.operands[i]):
            of.refuse(
                "a constant beside an unreduced operand would be added once for each device",
                _REDUCE,
            )


def _add(of: Operation) -> Sums:
    reduced = _same_reduced(of)
    left, right = (sums.unreduced for sums in of.sums)
    if left != right:
        of.refuse("its operands are terms of sums over different axes", _REDUCE)
    return Sums(left, reduced)


def _multiply(of: Operation) -> Sums:
    reduced = _same_reduced(of)
    (left, right), factors = (sums.unreduced for sums in of.sums), of.sums
    if left and right:
        of.refuse(f"both operands are terms of sums; {_NO_PRODUCT}", _REDUCE)
    if (left and left != factors[1].reduced) or (right and right != factors[0].reduced):
        of.refuse("one is a term of a sum, and the other is not reduced over its axes", _REDUCE)
    unreduced = left or right
    return Sums(unreduced, NO_AXES if unreduced else reduced)


def _dot_general(of: Operation) -> Sums:
    if any(sums.unreduced for sums in of.sums):
        of.refuse(f"an operand is a term of a sum; {_NO_PRODUCT}", _REDUCE)
    return NONE


def _concatenate(of: Operation) -> Sums:
    for what in (0, 1):
        if len({sums[what] for sums in of.sums if sums[what]}) > 1:
            of.refuse(f"its operands are {Sums._fields[what]} over different axes", _RESHARD)
    given = {sums for sums, free in zip(of.sums, of.free, strict=True) if not free}
    if len(given) > 1:
        of.refuse("its operands are terms of different sums", _RESHARD)
    _check_constants(of, range(len(of.sums)))
    found: Sums = next(iter(given))
    return found


def _select(of: Operation) -> Sums:
    cases = {s for s, free in zip(of.sums[1:], of.free[1:], strict=True) if not free or any(s)}
    if len(cases) > 1:
        of.refuse("its cases are terms of different sums", _RESHARD)
    _check_constants(of, (1, 2))
    return next(iter(cases), NONE)


def _dynamic_update_slice(of: Operation) -> Sums:
    if of.sums[0] != of.sums[1]:
        of.refuse("the operand and the update are terms of different sums", _RESHARD)
    return _keep(of)


def _is_sum(of: Operation) -> bool:
    """Whether a reduction computes a sum."""
    [*inner, _] = of.op.regions[0].blocks[0].operations
    return [view.operation.name for view in inner] == ["stablehlo.add"]


def _reduce(of: Operation) -> Sums:
    return _keep(of) if _is_sum(of) else _refuse(of)


_RULES: Mapping[str, Callable[[Operation], Sums]] = {
    "stablehlo.add": _add,
    "stablehlo.all_gather": _keep,
    "stablehlo.all_reduce": _keep,
    "stablehlo.all_to_all": _keep,
    "stablehlo.broadcast_in_dim": _keep,
    "stablehlo.collective_permute": _keep,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convert": _keep,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_slice": _keep,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.fft": _keep,
    "stablehlo.multiply": _multiply,
    "stablehlo.pad": _pad,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _keep,
    "stablehlo.reduce_scatter": _keep,
    "stablehlo.reshape": _keep,
    "stablehlo.select": _select,
    "stablehlo.slice": _keep,
    "stablehlo.transpose": _keep,
    **dict.fromkeys(
        (
            *("stablehlo.bitcast_convert", "stablehlo.cholesky", "stablehlo.clamp"),
            *("stablehlo.convolution", "stablehlo.gather"),
            *("stablehlo.reduce_window", "stablehlo.reverse", "stablehlo.scatter"),
            *("stablehlo.sort", "stablehlo.triangular_solve"),
        ),
        _refuse,
    ),
}
"""The rules of operations that are not elementwise, or accept unreduced operands."""


def _ask_dot_general(of: Operation, asked: Sums) -> Sums:
    if not asked.unreduced:
        return NONE
    numbers = hlo.DotDimensionNumbers(of.op.attributes["dot_dimension_numbers"])
    left = [of.specs[0][i] for i in numbers.lhs_contracting_dimensions]
    right = [of.specs[1][i] for i in numbers.rhs_contracting_dimensions]
    if left != right:
        of.refuse(
            f"the summed dimensions are divided differently, and "
            f"unreduced={set(asked.unreduced)} is requested", _RESHARD,
        )  # fmt: skip
    if asked.unreduced != {name for entry in left for name in axes_of(entry)}:
        of.refuse(
            f"unreduced={set(asked.unreduced)} is requested, and the summed dimensions are "
            f"divided over {left}", "name these axes",
        )  # fmt: skip
    return Sums(asked.unreduced)


def _ask_reduce(of: Operation, asked: Sums) -> Sums:
    if not _is_sum(of):
        return asked
    if not asked.unreduced:
        return _keep(of)
    summed = of.numbers("dimensions")
    axes = {name for i in summed for name in axes_of(of.specs[0][i])} | of.sums[0].unreduced
    if left := asked.unreduced - axes:
        of.refuse(f"unreduced={set(left)} is requested, which it does not sum over", "leave it out")
    return Sums(asked.unreduced, of.sums[0].reduced)


def _ask_reshape(of: Operation, asked: Sums) -> Sums:
    for what, own, wanted in zip(Sums._fields, of.sums[0], asked, strict=True):
        if own != wanted:
            raise InvalidArgument(
                f"out_sharding of reshape cannot contain {what} axes that its operand has not, and "
                f"must be {what} over the same mesh axes as operand: got {set(wanted) or '{}'} for "
                f"{of.write_types()}"
            )
    return _keep(of)


_ASKED: Mapping[str, Callable[[Operation, Sums], Sums]] = {
    "stablehlo.dot_general": _ask_dot_general,
    "stablehlo.reduce": _ask_reduce,
    "stablehlo.reshape": _ask_reshape,
}
MAKE_TERMS = ("stablehlo.dot_general", "stablehlo.reduce")
"""Operations that sum: along divided dimensions each device computes a term."""
