"""`__array_namespace_info__`: the inspection API of the array API standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrt.array_api import dtypes
from plugrt.array_api.data_types import isdtype
from plugrt.execution.placement.default_device import default_device
from plugrt.interface import Device
from plugrt.plugins.selection import backends
from plugrt.tracing.promotion import default_complex, default_float, default_int

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class Info:
    """The inspection API: capabilities, devices, dtypes and defaults."""

    def capabilities(self) -> dict[str, Any]:
        """Returns support of boolean indexing and data-dependent shapes, and the most dimensions.

        Both work on arrays and are refused while tracing. Arrays are read through NumPy, which
        has at most 64 dimensions.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Returns the device of arrays created without ``device``."""
        return default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, np.dtype[Any]]:
        """Returns the default dtypes; ``config.enable_x64`` decides their width, not the device."""
        return {
            "real floating": default_float(),
            "complex floating": default_complex(),
            "integral": default_int(),
            "indexing": default_int(),
        }

    def dtypes(
        self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """Returns the standard's dtypes by name, those of ``kind`` (as in `isdtype`) if given.

        64-bit ones are left out where ``config.enable_x64`` is False.
        """
        found = {name: getattr(dtypes, name) for name in _NAMES}
        return {
            name: dtype
            for name, dtype in found.items()
            if dtypes.as_dtype(dtype) == dtype and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> list[Device]:
        """Returns the devices of the default backend that this process can use."""
        return list(backends.get_backend().addressable_devices())


def __array_namespace_info__() -> Info:
    """Returns the inspection API of the namespace."""
    return Info()
