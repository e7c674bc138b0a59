"""`LoweringContext`: what a lowering is told of the operation that it replaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plugrt.interface import TensorType

LoweringRule = Callable[..., Any]
"""Takes a `LoweringContext` and the operands, and returns the results, which it computes with
plugrt's functions; None leaves the operation as it is."""


@dataclass(frozen=True, slots=True)
class LoweringContext:
    """An operation of a program that is lowered for a platform. JAX's ``LoweringRuleContext``."""

    operation: str
    """Its name: ``stablehlo.cosine``, ``chlo.erf``, or that of a composite."""
    platform: str
    """The platform, as the lowering names it."""
    result_types: tuple[TensorType, ...]
    """Shape and dtype of each result that is to be returned."""
    attributes: Mapping[str, Any]
    """Its attributes, or those of the composite, as Python values; MLIR's text where there is no
    such value."""
    version: int = 0
    """That of a composite."""
