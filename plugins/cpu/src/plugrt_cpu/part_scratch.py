"""Copies small host arrays, in parts, to memory that is kept for launches on each device.

Like `plugrt_cpu.scratch` on one device: jaxlib needs more time to put two arrays in four parts each
than to launch a small program on each of the four devices. Such launches run on the caller's
thread, so that their results are ready when they return, and the memory was read. If they are not
ready, the memory is never written again; if that happens repeatedly, arguments are put for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.interface import TensorType
from plugrt_cpu.device import ClientBase, Place
from plugrt_cpu.scratch import Scratch, fits_scratch
from plugrt_cpu.shards import CpuShards

_MAX_KEPT = 4
"""The rows kept for one program: so many threads launch it at once at no more cost than one."""
_MAX_LOST = 8
"""Consecutive losses; a program whose results are rarely ready at once gains nothing."""
_FIRST_PAUSE, _LONGEST_PAUSE = 32, 4096
"""Launches without scratch memory after that, before the next try; doubled after each failed try.

The machine may have been busy for a moment. A try costs less than to put the arguments twice.
"""

Index = tuple[slice | int, ...]
HostLauncher = Callable[[list[Any]], tuple[Sequence[Any], Callable[[], None]]]


def do_nothing() -> None:
    """Waits for nothing."""


class PartScratch:
    """An argument of a launch, ``shards``, and for each part its memory and position."""

    __slots__ = ("is_aliased", "parts", "shards")

    def __init__(self, wanted_type: TensorType, place: Place, indices: Sequence[Index]) -> None:
        made = [Scratch(wanted_type, device) for device in place.devices]
        self.is_aliased = all(scratch.is_aliased for scratch in made)
        raws = [scratch.raw for scratch in made]
        self.shards = CpuShards.from_parts(raws, wanted_type, place)
        self.parts = [(s.view, index) for s, index in zip(made, indices, strict=True)]


class Rows:
    """Memory for some arguments of one program, by their numbers, one row per launch.

    ``kept`` are the rows that no launch uses, initially the first one: none if jaxlib copies the
    memory instead of aliasing it. ``lost`` is the number of consecutive launches that were not done
    when they returned.
    """

    __slots__ = ("_make", "_pause", "_waiting", "kept", "lost")

    def __init__(self, make: Callable[[], list[tuple[int, PartScratch]]]) -> None:
        self._make = make
        self.lost = 0
        self._waiting = 0  # launches to come before the next try
        self._pause = _FIRST_PAUSE
        first = self._new()
        self.kept: list[list[tuple[int, PartScratch]]] = [] if first is None else [first]

    def _new(self) -> list[tuple[int, PartScratch]] | None:
        row = self._make()
        return row if all(memory.is_aliased for _, memory in row) else None

    def keep(self, row: list[tuple[int, PartScratch]]) -> None:
        """Keeps a row whose launch is done, unless there are enough."""
        self.lost = 0
        if len(self.kept) < _MAX_KEPT:
            self.kept.append(row)

    def new_if_worth_it(self) -> list[tuple[int, PartScratch]] | None:
        """Returns a row for a launch that finds none kept; None if it should not use one."""
        if self._waiting > 0:
            self._waiting -= 1
            return None
        row = self._new()
        if row is None:
            self.lose()
        return row

    def lose(self) -> None:
        """Records that a row is left to its launch, which is not done."""
        if self.lost == 0:
            self._pause = _FIRST_PAUSE
        self.lost += 1
        if self.lost >= _MAX_LOST:
            self._waiting, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)


def make_host_launcher(
    client: ClientBase,
    place: Place,
    launch: Callable[[Sequence[Any]], Sequence[CpuShards]],
    wanted: Sequence[tuple[int, TensorType, Sequence[Index]]],
) -> HostLauncher | None:
    """Returns ``launch``, which launches on each device of ``place``, for some whole host arrays.

    Besides the results it returns a wait that does nothing: launches on each device need no shared
    threads that could run out.

    ``wanted`` maps their numbers among the arguments to the type of a part and the part of each
    device. They have the dtype of the parts. Returns None if they are too large, or if NumPy and
    XLA lay such arrays out differently.
    """
    if not fits_scratch([wanted_type for _, wanted_type, _ in wanted for _ in place.devices]):
        return None

    rows = Rows(lambda: [(i, PartScratch(of, place, indices)) for i, of, indices in wanted])
    kept = rows.kept
    if not kept:
        return None

    def launch_on_scratch(
        arguments: list[Any],
    ) -> tuple[Sequence[CpuShards], Callable[[], None]]:
        try:
            row = kept.pop()  # popping makes this thread its only user
        except IndexError:
            made = rows.new_if_worth_it()
            if made is None:
                for i, _, indices in wanted:
                    parts = [np.asarray(arguments[i][index]) for index in indices]
                    arguments[i] = client.buffers_from_host(parts, place.devices)
                return launch(arguments), do_nothing
            row = made
        for i, scratch in row:
            source = arguments[i]
            for view, index in scratch.parts:
                view[...] = source[index]
            arguments[i] = scratch.shards
        results = launch(arguments)
        for shards in results:
            for raw in shards._parts or (shards.raw,):
                if not raw.is_ready():
                    rows.lose()
                    return results, do_nothing
        rows.keep(row)
        return results, do_nothing

    return launch_on_scratch
