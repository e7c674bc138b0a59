"""Copies small host arrays, in parts, to memory that is kept for launches on each device.

As `plugrt_cpu.scratch` on one device: jaxlib takes longer to put two arrays in four parts each than
to launch a small program on each of the four devices. Such launches run on the caller's thread, so
that their results are there when they return, and the memory was read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.interface import TensorType
from plugrt_cpu.device import ClientBase, Place
from plugrt_cpu.scratch import Rows, Scratch, are_lent
from plugrt_cpu.shards import CpuShards

Index = tuple[slice | int, ...]
PartLauncher = Callable[[list[Any]], tuple[Sequence[Any], Callable[[], None]]]


def do_nothing() -> None:
    """Waits for nothing."""


class PartScratch:
    """An argument of a launch, ``shards``, and of its parts the memory and where in the whole."""

    __slots__ = ("is_aliased", "parts", "shards")

    def __init__(self, wanted_type: TensorType, place: Place, indices: Sequence[Index]) -> None:
        made = [Scratch(wanted_type, device) for device in place.devices]
        self.is_aliased = all(scratch.is_aliased for scratch in made)
        raws = [scratch.raw for scratch in made]
        self.shards = CpuShards.from_parts(raws, wanted_type, place)
        self.parts = [(s.view, index) for s, index in zip(made, indices, strict=True)]


def part_lending_launcher(
    client: ClientBase,
    place: Place,
    launch: Callable[[Sequence[Any]], Sequence[CpuShards]],
    wanted: Sequence[tuple[int, TensorType, Sequence[Index]]],
) -> PartLauncher | None:
    """Returns ``launch``, which launches on each device of ``place``, for some whole host arrays.

    Beside the results it gives a wait that does nothing: launches on each device need no shared
    threads that could run out.

    ``wanted`` are their numbers among the arguments, and of each the type of a part and which part
    a device has. They are of the dtype of the parts. Returns None where they are too large, or
    where NumPy and XLA lay such arrays out differently.
    """
    if not are_lent([wanted_type for _, wanted_type, _ in wanted for _ in place.devices]):
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
