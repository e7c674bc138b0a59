"""Types for annotations of functions that take arrays: `ArrayLike`, `DTypeLike`, `Shape`…

As ``jax.typing``: annotate arguments with `ArrayLike` and results with `plugrt.Array`. Nested lists
are not array-like: ``array_api.asarray`` makes an array of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plugrt.execution.array import Array
from plugrt.execution.sharding import Sharding
from plugrt.interface import Device

__all__ = ["ArrayLike", "Axes", "DTypeLike", "DeviceLike", "Shape"]

ArrayLike: TypeAlias = (
    Array | np.ndarray[Any, np.dtype[Any]] | np.generic | bool | int | float | complex
)
"""One array, or a scalar that serves as one: plugrt's, NumPy's, Python's."""

DTypeLike: TypeAlias = npt.DTypeLike
"""What names a dtype: ``array_api.float32``, ``np.float32``, ``"float32"``, ``float``."""

Shape: TypeAlias = int | Sequence[int]
"""The sizes of dimensions; an integer alone is one dimension."""

Axes: TypeAlias = int | Sequence[int] | None
"""One axis or several, negative ones counted from the last; None is all of them."""

DeviceLike: TypeAlias = Device | Sharding
"""Where an array is to be: a device, or a sharding over several."""


def __dir__() -> list[str]:
    # Without the modules that are imported here.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
