"""Floats of fewer than 32 bits as float32, for functions that need its digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plugrt.tracing.emit import convert
from plugrt.tracing.promotion import itemsize_bits
from plugrt.tracing.tracer import Tracer


def widen(x: Tracer) -> Tracer:
    """Returns floats of fewer than 32 bits as float32, in which they are computed with."""
    return convert(x, np.float32) if itemsize_bits(x.dtype) < 32 else x


def in_wide_floats(function: Callable[..., Tracer], *operands: Tracer) -> Tracer:
    """Returns ``function`` of operands of one float dtype, in that dtype; see `widen`."""
    return convert(function(*map(widen, operands)), operands[0].dtype)
