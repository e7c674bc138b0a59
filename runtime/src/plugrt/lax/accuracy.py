"""`AccuracyMode` and `Tolerance`: what ``accuracy`` of elementwise functions takes."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from plugrt.errors import ArgumentError, ArgumentTypeError
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.stablehlo.bindings import hlo, ir


class AccuracyMode(enum.Enum):
    """The most exact implementation that the compiler has, or the one it takes by itself."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be off: ``atol``, or ``rtol`` of it, or ``ulps`` of its last place.

    The compiler chooses an implementation within the largest of those that are not 0, and refuses
    where it has none. Raises `ArgumentError` for negative ones, for those that are no finite
    number or no number of ulps in 64 bits, and where all are 0. As
    ``jax.lax.Tolerance``.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    @with_argument_errors
    def __post_init__(self) -> None:
        whole = isinstance(self.ulps, int | np.integer) and not isinstance(self.ulps, bool)
        sizes = self.atol, self.rtol
        if not (whole and 0 <= self.ulps < 2**63 and all(0 <= n < math.inf for n in sizes)):
            raise ArgumentError(
                "tolerances are finite and not negative, and ulps a whole number of 64 bits; got "
                f"{self!r:.100}"
            )
        if not (self.atol or self.rtol or self.ulps):
            raise ArgumentError("Tolerance takes one of atol, rtol and ulps at least, above 0")


Accuracy: TypeAlias = AccuracyMode | Tolerance | None


def accuracy_attribute(function: str, accuracy: Any) -> dict[str, ir.Attribute]:
    """Returns the attribute of an operation that states how exact it is to be, by its name.

    JAX's own modes and tolerances are understood. Raises `ArgumentTypeError` for others.
    """
    mode = type(accuracy).__name__ == AccuracyMode.__name__  # JAX's has the same name
    name = accuracy.name if mode else None
    if accuracy is None or name == "DEFAULT":
        return {}
    if name == "HIGHEST":
        return {"result_accuracy": hlo.ResultAccuracyAttr.get(0.0, 0.0, 0, name)}
    try:
        numbers = float(accuracy.atol), float(accuracy.rtol), int(accuracy.ulps)
    except AttributeError:
        raise ArgumentTypeError(
            f"accuracy of lax.{function} is {accuracy!r:.60} of type {type(accuracy).__qualname__};"
            " it takes a lax.AccuracyMode, or a lax.Tolerance"
        ) from None
    return {"result_accuracy": hlo.ResultAccuracyAttr.get(*numbers, "TOLERANCE")}
