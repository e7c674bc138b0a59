"""`Precision` and the ``precision`` arguments of products."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

from plugrt.array_api.matrix_products import precision as stablehlo_precision
from plugrt.errors import ArgumentError
from plugrt.settings.declarations import config
from plugrt.stablehlo.bindings import ir


class Precision(enum.Enum):
    """The precision of products, on devices that trade precision for speed."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


PrecisionLike: TypeAlias = (
    Precision | str | tuple[Precision | str | None, Precision | str | None] | None
)
"""How exact a product is to be: a precision or its name for both operands, or for each."""


def precision_config(precision: PrecisionLike | Any) -> ir.ArrayAttr:
    """Returns the precision of both operands as StableHLO states it.

    ``precision`` is None (``config.default_matmul_precision``), a member of `Precision` (or of
    JAX's), its name, or a pair of them.
    """
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    if len(pair) != 2:
        raise ArgumentError(f"precision is one or a pair of precisions; got {precision!r}")
    found = []
    for one in pair:
        name = config.default_matmul_precision if one is None else getattr(one, "name", one)
        name = name.lower() if isinstance(name, str) else name
        try:
            found.append(stablehlo_precision(name)[0])
        except KeyError:
            raise ArgumentError(
                f"precision is None, 'default', 'high' or 'highest'; got {one!r}"
            ) from None
    return ir.ArrayAttr.get(found)
