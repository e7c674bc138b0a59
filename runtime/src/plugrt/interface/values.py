"""`TensorType`: the shape, dtype and layout of an array on one device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.interface.memory_layout import Layout


@dataclass(frozen=True, slots=True)
class TensorType:
    """The shape and dtype of one array on one device, and its layout in the device's memory.

    ``layout`` None is the device's default for that shape and dtype (`Client.default_layout`); a
    backend's types have a layout only if it is another one.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    layout: Layout | None = None

    @property
    def nbytes(self) -> int:
        """Bytes on the host; sub-byte types use one byte an element, as ml_dtypes stores them."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_token(self) -> bool:
        """Whether it is the type of a token (`TOKEN_TYPE`)."""
        return self.dtype.kind == "V" and not self.dtype.itemsize

    def __str__(self) -> str:
        if self.is_token:
            return "token"
        order = self.layout.text if self.layout else ""
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]{order}"


TOKEN_TYPE = TensorType((), np.dtype("V"))
"""The type of a token: a parameter or result that orders a program's effects and has no contents.

A buffer of it cannot be read. The first token of a chain is a buffer of the type ``bool[0]``, which
hosts can put on a device: backends with tokens accept it as one, as XLA's do.
"""
