"""Copies small arguments of a launch to memory that is kept for the next launch.

A put of a small array costs jaxlib 0.10 about as much as a launch: it makes an array, calls methods
of the sharding, and allocates. Copying into memory that an array of jaxlib's already aliases costs
a tenth of that. The memory may be overwritten once the launch has read it, that is, once its
results are ready. The compiled core does this for launches on one device, and
`plugrt_cpu.part_scratch` for launches on several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from plugrt.base.aligned_arrays import allocate_aligned
from plugrt.interface import MakeScratch, TensorType
from plugrt_cpu import adapter
from plugrt_cpu.buffer import read
from plugrt_cpu.device import CpuDevice
from plugrt_cpu.types import array_type, is_sub_byte

_MAX_BYTES = 1 << 18
"""For one launch: a program keeps four times that at most, 1 MB; the core's late ones 2 MB."""


class Scratch:
    """An argument of a launch, ``raw``, and the ``view`` through which its memory is written."""

    __slots__ = ("is_aliased", "raw", "view")

    def __init__(self, wanted_type: TensorType, device: CpuDevice) -> None:
        self.view = allocate_aligned(wanted_type.shape, wanted_type.dtype)
        tensor_type, aval = array_type(wanted_type.shape, wanted_type.dtype)
        sharding = device.place.sharding
        self.raw = adapter.put(self.view, aval, sharding, device.raw, adapter.ZERO_COPY)
        # Checked through a view: jaxlib imports JAX to return the address of an array's memory.
        seen = read(self.raw, tensor_type).__array_interface__["data"][0]
        self.is_aliased: bool = seen == self.view.__array_interface__["data"][0]
        """Whether jaxlib's array aliases the memory of the view, and is not a copy of it."""


def make_scratch(device: CpuDevice, wanted: Sequence[TensorType]) -> list[MakeScratch] | None:
    """Returns a function that makes memory for these arguments of a launch, or None."""
    if not fits_scratch(wanted):
        return None
    return [partial(_make_scratch, wanted_type, device) for wanted_type in wanted]


def _make_scratch(wanted_type: TensorType, device: CpuDevice) -> tuple[Any, Any] | None:
    scratch = Scratch(wanted_type, device)
    if not scratch.is_aliased:
        return None
    return scratch.raw, scratch.view.reshape(-1).view(np.uint8)


def fits_scratch(wanted: Sequence[TensorType]) -> bool:
    """Whether arguments of these types are small, and laid out alike by NumPy and XLA."""
    plain = all(
        not is_sub_byte(wanted_type.dtype)
        and wanted_type.layout is None
        and 0 not in wanted_type.shape
        for wanted_type in wanted
    )
    return plain and sum(map(_size, wanted)) <= _MAX_BYTES


def _size(wanted_type: TensorType) -> int:
    return math.prod(wanted_type.shape) * wanted_type.dtype.itemsize
