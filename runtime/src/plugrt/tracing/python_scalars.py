"""`check_fits`: the range check of Python integers that meet integer arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrt.errors import IntegerOverflow
from plugrt.settings.declarations import config
from plugrt.tracing.promotion import default_int

if TYPE_CHECKING:
    from plugrt.tracing.tracer import Tracer


def check_fits(x: Tracer, dtype: np.dtype[Any]) -> None:
    """Raises `IntegerOverflow` where a Python integer loses digits in an integer dtype.

    As in JAX those within the default integer dtype wrap around (``uint8(1) - 1 - 1``); larger
    ones are refused, unless the dtype holds them.
    """
    if config.enable_x64 is True or x.dtype.itemsize < 8 or dtype.itemsize == 8:
        return
    limits = np.iinfo(dtype)
    if x.scalar is None:  # a parameter: all that is known is that it needs 64 bits
        fits = limits.max > np.iinfo(default_int()).max
    else:
        fits = limits.min <= int(x.scalar) <= limits.max
    if not fits:
        what = "an integer" if x.scalar is None else f"the Python integer {int(x.scalar)}"
        raise IntegerOverflow(
            f"{what} that does not fit {default_int().name} meets an array of dtype {dtype.name}; "
            "convert the array (array_api.astype) or pass the integer as an array of its dtype"
        )
