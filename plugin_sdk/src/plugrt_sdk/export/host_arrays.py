"""The host's memory as NumPy arrays, in the strides and order that the host requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt_sdk.export.native import HostMemory

Layout = tuple[Any, ...] | None
"""None (row-major), ``("tiled", minor_to_major, tiles)``, ``("strides", byte_strides)``, or
``("raw", offset)``: the bytes from there on."""


def view(
    host: HostMemory,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
) -> npt.NDArray[Any]:
    """Returns an array over the host's memory; its first element is at ``offset``."""
    memory: Any = host  # NumPy's stubs name the classes that have the buffer protocol
    return np.ndarray(shape, dtype, buffer=memory, offset=offset, strides=strides)


def write(
    array: npt.NDArray[Any],
    host: HostMemory,
    layout: Layout,
    major_to_minor: Sequence[int] | None = None,
) -> None:
    """Copies an array to the host's memory; raw bytes are in the order that it has on the device.

    ``major_to_minor`` is that order, None row-major.
    """
    if layout is not None and layout[0] == "raw":
        out = view(host, np.dtype(np.uint8), (memoryview(host).nbytes,))
        if major_to_minor is not None:
            array = array.transpose(major_to_minor)
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        out[...] = content[layout[1] : layout[1] + out.size]
        return
    _target(array, host, layout)[...] = array


def _target(array: npt.NDArray[Any], host: HostMemory, layout: Layout) -> npt.NDArray[Any]:
    shape, dtype = array.shape, array.dtype
    if layout is None or _is_row_major(layout, array.ndim):
        return view(host, dtype, shape)
    if layout[0] == "strides":
        return view(host, dtype, shape, layout[1])
    _, minor_to_major, tiles = layout
    if tiles:
        raise Unimplemented("arrays are read in tiled layouts by no host that plugrt knows")
    if sorted(minor_to_major) != list(range(array.ndim)):
        raise InvalidArgument(f"minor_to_major {minor_to_major} does not order {array.ndim} axes")
    order: Sequence[int] = minor_to_major[::-1]
    turned = view(host, dtype, tuple(shape[i] for i in order))
    return turned.transpose(np.argsort(order))


def _is_row_major(layout: tuple[Any, ...], rank: int) -> bool:
    return layout[0] == "tiled" and not layout[2] and layout[1] == tuple(reversed(range(rank)))
