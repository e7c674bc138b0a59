"""Compare types of ``stablehlo.compare``, which XLA may get wrong where they are left out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.element_names import element_name
from plugrt.stablehlo.regions import operations_within

_KINDS = {"i1": "UNSIGNED", "ui": "UNSIGNED", "i": "SIGNED"}


def compare_attributes(
    dtype: np.dtype[Any], direction: str, *, total: bool = False
) -> dict[str, Any]:
    """Returns the attributes of ``stablehlo.compare`` for operands of a dtype.

    ``direction`` is one of EQ NE LT LE GT GE; ``total`` orders all floats, NaNs included.
    """
    # Workaround for xla-unsigned-constants: the compare type is optional in StableHLO, but without
    # it XLA may fold signed constants as unsigned, so that ``-1 < 0`` is false.
    name = element_name(dtype)
    letters = name if name == "i1" else name.rstrip("0123456789")
    compare_type = "TOTALORDER" if total else _KINDS.get(letters, "FLOAT")
    return {
        "comparison_direction": hlo.ComparisonDirectionAttr.get(direction),
        "compare_type": hlo.ComparisonTypeAttr.get(compare_type),
    }


def state_compare_types(module: ir.Module) -> None:
    """States the compare type of each comparison of signed integers that lacks it, in place.

    jaxlib's pass that lowers CHLO leaves it out, as in ``chlo.mulhi``.
    """
    # Workaround for xla-unsigned-constants.
    with module.context:
        signed = hlo.ComparisonTypeAttr.get("SIGNED")
        for op in operations_within(module.operation):
            if op.name != "stablehlo.compare" or "compare_type" in op.attributes:
                continue
            if re.fullmatch(r"i\d{1,2}(?<!i1)", str(op.operands[0].type.element_type)):
                op.attributes["compare_type"] = signed
