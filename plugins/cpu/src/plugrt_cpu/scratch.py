"""Small arguments of a launch, copied to memory that is kept for the next one.

To put a small array costs jaxlib (0.10) about as much as to launch a program: it makes an array,
asks the sharding about it, and allocates. A copy to memory that an array of jaxlib's looks at
already costs a tenth of it. The memory may be written again when the launch has read it, which is
so once its results are ready: small programs run on the caller's thread, and theirs are at once.
Where they are not, the memory is left to the launch, and never written again.

The same goes for arrays on another of the client's devices, which lie in the same main memory:
jaxlib copies them in another thread, and the launch has to wait for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.interface import Client, TensorType
from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer, read
from plugrt_cpu.device import CpuDevice
from plugrt_cpu.shards import CpuShards
from plugrt_cpu.types import BUFFER_PROTOCOL_DTYPES, array_type

_ALIGNMENT = 64  # what XLA asks of memory that it takes without a copy
_MAX_BYTES = 1 << 16
"""Of one launch: little beside what a loaded program takes by itself."""
_MAX_KEPT = 4
"""Of one program: as many threads launch it at once at no more cost than one."""
_MAX_LOST = 8
"""In a row; a program whose results are never ready at once is no better off this way."""

Launcher = Callable[[list[Any]], Sequence[Any]]


class Scratch:
    """Arguments of a launch, ``shards``, and the ``view`` through which their memory is written."""

    __slots__ = ("shards", "view")

    def __init__(self, kind: TensorType, device: CpuDevice) -> None:
        self.view = _allocate_aligned(kind)
        tensor_type, aval = array_type(kind.shape, kind.dtype)
        place = device.place
        raw = adapter.put(self.view, aval, place.sharding, device.raw, adapter.ZERO_COPY)
        self.shards = CpuShards(raw, tensor_type, place)

    @property
    def is_aliased(self) -> bool:
        """Whether jaxlib's array looks at the memory of the view, and holds no copy of it."""
        address: int = self.view.__array_interface__["data"][0]
        return self.shards[0].unsafe_pointer() == address


def lending_launcher(
    client: Client,
    device: CpuDevice,
    launch: Callable[[Sequence[Any]], Sequence[Any]],
    wanted: Sequence[tuple[int, TensorType]],
) -> Launcher | None:
    """Returns ``launch``, which gives jaxlib's arrays, for arguments some of which are elsewhere.

    Those are NumPy arrays, or arrays on another device than ``device``; ``wanted`` are their
    numbers and types. Returns None where they are too large, or where NumPy and XLA lay their dtype
    out differently.
    """
    if not all(kind.dtype in BUFFER_PROTOCOL_DTYPES and 0 not in kind.shape for _, kind in wanted):
        return None
    if sum(_size(kind) for _, kind in wanted) > _MAX_BYTES:
        return None

    def new_row() -> list[tuple[int, Scratch]] | None:
        row = [(i, Scratch(kind, device)) for i, kind in wanted]
        return row if all(scratch.is_aliased for _, scratch in row) else None

    first = new_row()
    if first is None:
        return None
    kept = [first]
    lost = 0

    def launch_on_scratch(arguments: list[Any]) -> Sequence[Any]:
        nonlocal lost
        try:
            row = kept.pop()  # whoever has it, has it alone
        except IndexError:
            made = new_row() if lost < _MAX_LOST else None
            if made is None:
                return launch_on_new(arguments)
            row = made
        for i, scratch in row:
            source = arguments[i]
            if type(source) is not np.ndarray:
                if type(source) is not adapter.RawArray:  # a sequence of buffers
                    source = CpuShards.from_buffers(source, device.place).raw
                if not source.is_ready():  # this one is for jaxlib to wait for
                    arguments[i] = move(source, scratch.shards.type)
                    continue
                source = read(source, scratch.shards.type)
            scratch.view[...] = source
            arguments[i] = scratch.shards.raw
        results = launch(arguments)
        for raw in results:
            if not raw.is_ready():
                lost += 1
                break
        else:
            lost = 0
            if len(kept) < _MAX_KEPT:
                kept.append(row)
        return results

    def launch_on_new(arguments: list[Any]) -> Sequence[Any]:
        hosts = [i for i, _ in wanted if type(arguments[i]) is np.ndarray]
        put = client.shards_from_host([arguments[i] for i in hosts], device)
        for i, raw in zip(hosts, put, strict=True):
            arguments[i] = raw
        for i, kind in wanted:
            if i not in hosts:
                source = arguments[i]
                if type(source) is not adapter.RawArray:
                    source = CpuShards.from_buffers(source, device.place).raw
                arguments[i] = move(source, kind)
        return launch(arguments)

    def move(raw: Any, kind: TensorType) -> Any:
        return CpuBuffer(raw, kind, device.place).copy_to_device(device).raw

    return launch_on_scratch


def _size(kind: TensorType) -> int:
    return int(np.prod(kind.shape, dtype=np.int64)) * kind.dtype.itemsize


def _allocate_aligned(kind: TensorType) -> npt.NDArray[Any]:
    size = _size(kind)
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGNMENT
    view: npt.NDArray[Any] = memory[start : start + size].view(kind.dtype).reshape(kind.shape)
    return view
