"""Copies small arguments of a launch to memory that is kept for the next launch.

Putting a small array takes jaxlib 0.10 about as long as launching a program: it makes an array,
calls methods of the sharding, and allocates. Copying into memory that an array of jaxlib's already
aliases takes a tenth of that. The memory may be overwritten once the launch has read it, that is,
once its results are ready. Small programs run on the caller's thread, so theirs are ready at once.
Where they are not, the memory is never written again; if that happens repeatedly, a program's
arguments are put for a while. The compiled core keeps small results instead, of as many launches as
XLA has under way, and asks them again at a later call.

The same is done for arrays on another of the client's devices, which share the main memory: jaxlib
would copy them in another thread, and the launch would wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from plugrt.base.aligned_arrays import allocate_aligned
from plugrt.interface import Client, Lender, TensorType
from plugrt_cpu import adapter
from plugrt_cpu.buffer import CpuBuffer, read
from plugrt_cpu.device import CpuDevice
from plugrt_cpu.shards import CpuShards
from plugrt_cpu.types import SUB_BYTE_DTYPES, array_type

_MAX_BYTES = 1 << 18
"""Of one launch: a program keeps four times that at most, 1 MB; in the core, of late ones, 2 MB."""
_MAX_KEPT = 4
"""Of one program: as many threads launch it at once at no more cost than one."""
_MAX_LOST = 8
"""In a row; a program whose results are hardly ever ready at once is no better off this way."""
_FIRST_PAUSE, _LONGEST_PAUSE = 32, 4096
"""Launches without lent memory after that, before it is tried again; doubled each time in vain.

The machine may have been busy for a moment. A try costs less than to put the arguments twice.
"""

Launcher = Callable[[list[Any]], Sequence[Any]]


class ScratchMemory(Protocol):
    """Memory for one argument of a launch."""

    @property
    def is_aliased(self) -> bool:
        """Whether jaxlib's array aliases it, and is no copy."""


Memory = TypeVar("Memory", bound=ScratchMemory)


class Scratch:
    """An argument of a launch, ``raw``, and the ``view`` through which its memory is written."""

    __slots__ = ("is_aliased", "raw", "type", "view")

    def __init__(self, wanted_type: TensorType, device: CpuDevice) -> None:
        self.view = allocate_aligned(wanted_type.shape, wanted_type.dtype)
        self.type, aval = array_type(wanted_type.shape, wanted_type.dtype)
        sharding = device.place.sharding
        self.raw = adapter.put(self.view, aval, sharding, device.raw, adapter.ZERO_COPY)
        self.is_aliased: bool = (
            adapter.address(self.raw) == self.view.__array_interface__["data"][0]
        )
        """Whether jaxlib's array aliases the memory of the view, and holds no copy of it."""


class Rows(Generic[Memory]):
    """Memory for some arguments of one program, by their numbers, a row a launch.

    ``kept`` are the rows that no launch has now, the first one to begin with: none where jaxlib
    copies the memory instead of aliasing it. ``lost`` is the number of launches in a row that were
    not done when they returned.
    """

    __slots__ = ("_make", "_pause", "_waiting", "kept", "lost")

    def __init__(self, make: Callable[[], list[tuple[int, Memory]]]) -> None:
        self._make = make
        self.lost = 0
        self._waiting = 0  # launches to come before the next try
        self._pause = _FIRST_PAUSE
        first = self._new()
        self.kept: list[list[tuple[int, Memory]]] = [] if first is None else [first]

    def _new(self) -> list[tuple[int, Memory]] | None:
        row = self._make()
        return row if all(memory.is_aliased for _, memory in row) else None

    def keep(self, row: list[tuple[int, Memory]]) -> None:
        """Keeps a row whose launch is done, unless there are enough."""
        self.lost = 0
        if len(self.kept) < _MAX_KEPT:
            self.kept.append(row)

    def new_if_worth_it(self) -> list[tuple[int, Memory]] | None:
        """Returns a row for a launch that finds none kept; None where it shall have none."""
        if self._waiting > 0:
            self._waiting -= 1
            return None
        row = self._new()
        if row is None:
            self.lose()
        return row

    def lose(self) -> None:
        """Notes that a row is left to its launch, which is not done."""
        if self.lost == 0:
            self._pause = _FIRST_PAUSE
        self.lost += 1
        if self.lost >= _MAX_LOST:
            self._waiting, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)


def lending_launcher(
    client: Client,
    device: CpuDevice,
    launch: Callable[[Sequence[Any]], Sequence[Any]],
    wanted: Sequence[tuple[int, TensorType]],
) -> Launcher | None:
    """Returns ``launch``, which gives jaxlib's arrays, for arguments some of which are elsewhere.

    Those are NumPy arrays, or arrays on another device than ``device``; ``wanted`` are their
    numbers and types. Returns None where they are too large, or where NumPy and XLA lay such arrays
    out differently.
    """
    if not are_lent([wanted_type for _, wanted_type in wanted]):
        return None

    rows = Rows(lambda: [(i, Scratch(wanted_type, device)) for i, wanted_type in wanted])
    kept = rows.kept
    if not kept:
        return None

    def launch_on_scratch(arguments: list[Any]) -> Sequence[Any]:
        try:
            row = kept.pop()  # popping makes this thread its only user
        except IndexError:
            made = rows.new_if_worth_it()
            if made is None:
                _put_or_move(client, device, wanted, arguments)
                return launch(arguments)
            row = made
        for i, scratch in row:
            source = arguments[i]
            if type(source) is not np.ndarray:
                if type(source) is not adapter.RawArray:  # tested here to save a call
                    source = _raw(source, device)
                if not source.is_ready():  # jaxlib waits for this one
                    arguments[i] = _move(source, scratch.type, device)
                    continue
                source = read(source, scratch.type)
            scratch.view[...] = source
            arguments[i] = scratch.raw
        results = launch(arguments)
        for raw in results:
            if not raw.is_ready():
                rows.lose()
                break
        else:
            rows.keep(row)
        return results

    return launch_on_scratch


def lenders(device: CpuDevice, wanted: Sequence[TensorType]) -> list[Lender] | None:
    """Returns what makes memory for each of these arguments of a launch; None as above."""
    if not are_lent(wanted):
        return None
    return [partial(_lend, wanted_type, device) for wanted_type in wanted]


def _lend(wanted_type: TensorType, device: CpuDevice) -> tuple[Any, Any] | None:
    scratch = Scratch(wanted_type, device)
    if not scratch.is_aliased:
        return None
    return scratch.raw, scratch.view.reshape(-1).view(np.uint8)


def are_lent(wanted: Sequence[TensorType]) -> bool:
    """Whether a launch is lent memory for arguments of these types."""
    plain = all(
        wanted_type.dtype not in SUB_BYTE_DTYPES
        and wanted_type.layout is None
        and 0 not in wanted_type.shape
        for wanted_type in wanted
    )
    return plain and sum(map(_size, wanted)) <= _MAX_BYTES


def _put_or_move(
    client: Client,
    device: CpuDevice,
    wanted: Sequence[tuple[int, TensorType]],
    arguments: list[Any],
) -> None:
    """Puts or moves the arguments ``wanted`` to the device, into memory of their own."""
    hosts = [i for i, _ in wanted if type(arguments[i]) is np.ndarray]
    put = client.shards_from_host([arguments[i] for i in hosts], device)
    for i, wanted_type in wanted:
        if i not in hosts:
            arguments[i] = _move(_raw(arguments[i], device), wanted_type, device)
    for i, raw in zip(hosts, put, strict=True):
        arguments[i] = raw


def _raw(source: Any, device: CpuDevice) -> Any:
    """Returns jaxlib's array of what an argument holds: itself, or a sequence of buffers."""
    return (
        source
        if type(source) is adapter.RawArray
        else CpuShards.from_buffers(source, device.place).raw
    )


def _move(raw: Any, wanted_type: TensorType, device: CpuDevice) -> Any:
    return CpuBuffer(raw, wanted_type, device.place).copy_to_device(device).raw


def _size(wanted_type: TensorType) -> int:
    return math.prod(wanted_type.shape) * wanted_type.dtype.itemsize
