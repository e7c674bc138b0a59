"""`KNOWN_DTYPES`: the dtypes of NumPy values that the compiled core reads."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from plugrt.native.native_core import core

KNOWN_DTYPES = (
    *map(np.dtype, "fildILqQ?hHbBeFD"),
    *(
        dtype
        for name, cls in vars(ml_dtypes).items()
        if isinstance(cls, type) and issubclass(cls, np.generic)
        if (dtype := np.dtype(cls)).kind in "Vf" and "complex" not in name
    ),
)
"""The usual ones first."""

if core is not None:
    core.set_dtypes(np.ndarray, KNOWN_DTYPES)
