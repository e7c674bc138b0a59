"""A backend for einops, which finds it among the subclasses of its own class.

einops has no hook for other packages: `plugrt` imports this module at once if einops was imported
earlier, else at the end of einops's import.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from einops._backends import NumpyBackend

from plugrt.execution.arrays.array import Array


class PlugrtBackend(NumpyBackend):  # type: ignore[misc]  # einops has no types
    """einops' operations by NumPy's functions, which run on the device of the array."""

    framework_name = "plugrt"

    def is_appropriate_type(self, tensor: object) -> bool:
        """Returns whether ``tensor`` is an array or a tracer."""
        from plugrt.tracing.tracer import Tracer  # loads jaxlib's bindings

        return isinstance(tensor, Array | Tracer)

    def from_numpy(self, x: Any) -> Array:
        """Returns NumPy's array on the default device."""
        from plugrt.array_api.array_conversion import asarray

        return asarray(x)

    def to_numpy(self, x: Any) -> np.ndarray[Any, Any]:
        """Returns the values on the host."""
        return np.asarray(x)

    def arange(self, start: int, stop: int) -> Array:
        """Returns the integers from ``start`` up to ``stop``."""
        return self.from_numpy(np.arange(start, stop))
