"""Passes integers into an ``sdy.manual_computation``, and out of it: one from each device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import hlo, ir, shardy
from plugrt.stablehlo.regions import return_values, returned_values, retype
from plugrt.stablehlo.shardings import mesh_axes, read_manual_axes
from plugrt.stablehlo.types import tensor_type

_INTEGER = np.dtype(np.int64)


class ManualScalars:
    """Adds int64 scalars to one manual computation; every device receives the same ones.

    Scalars that the region returns differ by device: they become an array with an element for each
    device, reduced by the minimum.
    """

    def __init__(self, operation: Any, meshes: Mapping[str, object]) -> None:
        self._operation = operation
        [self.block] = operation.regions[0].blocks
        sdy = shardy()
        stated = [
            sdy.TensorShardingAttr(sharding)
            for side in ("in_shardings", "out_shardings")
            for sharding in sdy.TensorShardingPerValueAttr(operation.attributes[side]).shardings
        ]
        self._mesh = stated[0].mesh_or_ref
        sizes = mesh_axes(self._mesh, meshes)
        manual = read_manual_axes(operation.attributes["manual_axes"])
        self._axes = [name for name in sizes if name in manual]
        self._count = math.prod(sizes[name] for name in self._axes)

    def add_arguments(self, count: int) -> list[ir.Value]:
        """Adds ``count`` arguments to the region and returns them."""
        scalar = tensor_type([], _INTEGER)
        location = self._operation.location
        return [self.block.add_argument(scalar, location) for _ in range(count)]

    def finish(
        self, taken: Sequence[ir.Value], given: Sequence[ir.Value]
    ) -> tuple[Any, list[ir.Value]]:
        """Replaces the operation by one with these scalars as further operands and results.

        Returns it and its added results, as scalars. The caller erases the old one.
        """
        one, each = (tensor_type([n], _INTEGER) for n in (1, self._count))
        last = self.block.operations[len(self.block.operations) - 1]
        with ir.InsertionPoint(last):
            rows = [hlo.reshape(one, value) for value in given]
        return_values(self.block, [*returned_values(self.block), *rows])
        old = self._operation
        new = retype(
            old,
            [*old.operands, *taken],
            [*(result.type for result in old.results), *[each] * len(given)],
            in_shardings=self._extend_shardings("in_shardings", [[]] * len(taken)),
            out_shardings=self._extend_shardings("out_shardings", [[self._axes]] * len(given)),
        )
        vectors = list(new.results)[len(old.results) :]
        with ir.InsertionPoint(old):
            return new, [self._emit_least(vector) for vector in vectors]

    def _extend_shardings(
        self, side: str, added: Sequence[Sequence[Sequence[str]]]
    ) -> ir.Attribute:
        sdy = shardy()
        shardings = [*sdy.TensorShardingPerValueAttr(self._operation.attributes[side]).shardings]
        for dimensions in added:
            divided = [
                sdy.DimensionShardingAttr.get([*map(sdy.AxisRefAttr.get, axes)], is_closed=True)
                for axes in dimensions
            ]
            shardings.append(sdy.TensorShardingAttr.get(self._mesh, divided))
        return sdy.TensorShardingPerValueAttr.get(shardings)

    def _emit_least(self, vector: ir.Value) -> ir.Value:
        scalar = tensor_type([], _INTEGER)
        integer = ir.IntegerAttr.get(scalar.element_type, np.iinfo(np.int64).max)
        start = hlo.constant(ir.DenseElementsAttr.get_splat(scalar, integer))
        reduction = hlo.ReduceOp([scalar], [vector], [start], [0])
        block = ir.Block.create_at_start(reduction.regions[0], [scalar, scalar])
        with ir.InsertionPoint(block):
            hlo.return_([hlo.minimum(*block.arguments)])
        least: ir.Value = reduction.results[0]
        return least
