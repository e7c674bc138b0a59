"""`compare_attributes`: the attributes of ``stablehlo.compare``, with an explicit compare type."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.stablehlo.bindings import hlo
from plugrt.stablehlo.element_names import element_name

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
