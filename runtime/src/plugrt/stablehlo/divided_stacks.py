"""`divide_stacks`: declares that a custom call may be partitioned along its leading dimensions.

As in JAX, Shardy gets a sharding rule whose factors are dimensions of operands and results that are
divided together, and XLA's partitioner gets the number of dimensions. The target must be registered
as partitionable in the backend.
"""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.stablehlo.bindings import ir, register_shardy

_FIRST, _LETTERS = ord("i"), 18
"""Shardy names factors i to z, then z_1 and so on."""


def divide_stacks(call: ir.Operation, batch_dims: int) -> None:
    """Marks a custom call whose operands and results all begin with the same dimensions."""
    register_shardy(call.context)
    operands, results = (
        [list(ir.RankedTensorType(value.type).shape) for value in values]
        for values in (call.operands, call.results)
    )
    rule = _sharding_rule(operands, results, batch_dims)
    call.attributes["sdy.sharding_rule"] = ir.Attribute.parse(rule, call.context)
    call.attributes["mhlo.frontend_attributes"] = ir.DictAttr.get(
        {"num_batch_dims": ir.StringAttr.get(str(batch_dims))}
    )


def _sharding_rule(
    operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]], batch_dims: int
) -> str:
    """Returns the attribute's text: the first dimensions share factors, the others share none."""
    sizes: list[int] = [*operands[0][:batch_dims]]

    def name(shape: Sequence[int]) -> str:
        first = len(sizes)
        sizes.extend(shape[batch_dims:])
        return f"[{', '.join(map(_factor, (*range(batch_dims), *range(first, len(sizes)))))}]"

    left, right = ([name(shape) for shape in shapes] for shapes in (operands, results))
    factors = ", ".join(f"{_factor(i)}={size}" for i, size in enumerate(sizes))
    return f"#sdy.op_sharding_rule<({', '.join(left)})->({', '.join(right)}) {{{factors}}}, custom>"


def _factor(number: int) -> str:
    return chr(_FIRST + number) if number < _LETTERS else f"z_{number - _LETTERS + 1}"
