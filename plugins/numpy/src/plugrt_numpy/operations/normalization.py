"""Batch normalisation: training, inference and gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrt_numpy.data_types import Array, Dtype, Function, wide_dtype
from plugrt_numpy.operation import Lowering, Operation


class _Features:
    """Statistics of an operand over all dimensions except the features."""

    def __init__(self, op: Operation) -> None:
        shape = op.operand_types[0].shape
        feature = op.integer("feature_index")
        self.epsilon = float(op.attribute("epsilon").value)
        self._axes = tuple(d for d in range(len(shape)) if d != feature)
        self._along = [1] * len(shape)
        self._along[feature] = shape[feature]
        self.size = math.prod(shape[d] for d in self._axes)
        self.dtype: Dtype = op.operand_types[0].dtype
        self.wide = wide_dtype(self.dtype)

    def widen(self, *arrays: Any) -> list[Array]:
        return [np.asarray(a).astype(self.wide, copy=False) for a in arrays]

    def narrow(self, *arrays: Array) -> list[Array]:
        return [a.astype(self.dtype, copy=False) for a in arrays]

    def spread(self, values: Array) -> Array:
        """Returns a vector of one value a feature, to be broadcast with the operand."""
        return values.reshape(self._along)

    def mean(self, x: Array) -> Array:
        mean: Array = np.add.reduce(x, self._axes) / self.wide.type(self.size)
        return mean

    def total(self, x: Array) -> Array:
        total: Array = np.add.reduce(x, self._axes)
        return total

    def scale_and_shift(
        self, x: Array, scale: Array, offset: Array, mean: Array, variance: Array
    ) -> Array:
        deviation = np.sqrt(self.spread(variance) + self.wide.type(self.epsilon))
        centred = x - self.spread(mean)
        scaled: Array = self.spread(scale) * (centred / deviation) + self.spread(offset)
        return scaled


def _training(op: Operation) -> Function:
    features = _Features(op)

    def run(x: Array, scale: Array, offset: Array) -> list[Array]:
        x, scale, offset = features.widen(x, scale, offset)
        mean = features.mean(x)
        centred = x - features.spread(mean)
        variance = features.mean(centred * centred)
        return features.narrow(
            features.scale_and_shift(x, scale, offset, mean, variance), mean, variance
        )

    return run


def _inference(op: Operation) -> Function:
    features = _Features(op)
    return lambda *arrays: features.narrow(features.scale_and_shift(*features.widen(*arrays)))[0]


def _gradient(op: Operation) -> Function:
    features = _Features(op)

    def run(*arrays: Array) -> list[Array]:
        x, scale, mean, variance, grad = features.widen(*arrays)
        inverse = 1 / np.sqrt(variance + features.wide.type(features.epsilon))
        centred = x - features.spread(mean)
        of_scale = features.total(grad * centred) * inverse
        of_offset = features.total(grad)
        n = features.wide.type(features.size)
        inner = (
            n * grad - features.spread(of_offset) - centred * features.spread(of_scale * inverse)
        )
        of_operand = features.spread(scale * inverse / n) * inner
        return features.narrow(of_operand, of_scale, of_offset)

    return run


OPERATIONS: dict[str, Lowering] = {
    "stablehlo.batch_norm_grad": _gradient,
    "stablehlo.batch_norm_inference": _inference,
    "stablehlo.batch_norm_training": _training,
}
"""Operation name to lowering."""
