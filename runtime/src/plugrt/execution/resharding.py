"""`reshard`: an array in another sharding, from device to device where possible."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plugrt.bounded_cache import BoundedCache
from plugrt.errors import PjrtError, Unimplemented, UnsupportedDtype
from plugrt.execution.array import Array
from plugrt.execution.buffer_copy import copy_buffer
from plugrt.execution.host_assembly import HostAssembly, Pieces, assembles_on_host
from plugrt.execution.index_boxes import Box, box_shape, device_boxes, overlap
from plugrt.execution.part_programs import (
    LoadedPartProgram,
    PartProgram,
    concatenate_program,
    slice_program,
)
from plugrt.execution.sharded_transfer import holds_whole, join, put_sharded
from plugrt.execution.sharding import Sharding
from plugrt.interface import Buffer, Device
from plugrt.monitoring.stages import logger

_Key = tuple[tuple[int, ...], np.dtype[Any], Sharding, Sharding]
_exchanges: BoundedCache[_Key, tuple[Exchange | None]] = BoundedCache(512)


def reshard(x: Array, sharding: Sharding, *, share: bool = True) -> Array:
    """Returns ``x`` with its parts as ``sharding`` says; itself if it has that sharding.

    With ``share``, buffers that are where they are needed are shared. Goes from device to device
    where the backends can do that, else through the host. Raises `NotAnArray` where parts that
    are needed are in other processes.
    """
    if x.sharding == sharding:
        return x
    buffers = exchange(x, sharding, share=share)
    if buffers is None:
        return put_sharded(np.asarray(x), sharding)
    return join(x.shape, x.dtype, sharding, buffers)


def exchange(x: Array, sharding: Sharding, *, share: bool = True) -> list[Buffer] | None:
    """Returns the buffers of ``x`` as ``sharding`` wants them, one for each device of this process.

    With ``share``, those that are where they are needed are the same. Where parts have to be taken
    out of others or put together, that is done by programs on the devices, which are compiled once
    for a shape, a dtype and the two shardings; small arrays on devices that use the host's memory
    are put together there (see `HostAssembly`). None where it cannot be: for parts in other
    processes, between clients, on a backend that does not copy from device to device or does not
    compile such a program, and for an array without elements, which has nothing to move.
    """
    key = (x.shape, x.dtype, x.sharding, sharding)
    found = _exchanges.get_or_make(key, lambda: (_plan_exchange(*key),))[0]
    return None if found is None else found(x._live(), share)


@dataclass(frozen=True, slots=True)
class _Step:
    """A launch on several devices, and the numbers of the buffers that each of them takes."""

    program: LoadedPartProgram
    numbers: tuple[tuple[int, ...], ...]

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Returns the results of each device in turn, of buffers from wherever they are."""
        take = buffers.__getitem__
        return self.program(
            [
                [b if b.device is device else copy_buffer(b, device) for b in map(take, numbers)]
                for device, numbers in zip(self.program.devices, self.numbers, strict=True)
            ]
        )


class Exchange:
    """How arrays of one shape and dtype get from one sharding to another, without the host.

    Buffers are numbered: the source's, then the results of each step. ``parts`` are the devices
    of the result with the number of the buffer that each shall have, itself or a copy.
    """

    __slots__ = ("_from", "_parts", "_steps", "_to")

    def __init__(
        self,
        memory_kinds: tuple[str | None, str | None],
        steps: Sequence[Callable[[Sequence[Buffer]], list[Buffer]]],
        parts: Sequence[tuple[Device, int]],
    ) -> None:
        """``memory_kinds`` are those of the memories before and after."""
        self._from, self._to = memory_kinds
        self._steps, self._parts = steps, parts

    def __call__(self, shards: Sequence[Buffer], share: bool) -> list[Buffer]:
        """Returns the result's buffers; with ``share``, those in place are shared."""
        memory_kind = self._from
        if memory_kind and self._steps:  # programs take buffers in the default memory
            shards = [copy_buffer(s, s.device, s.device.default_memory()) for s in shards]
            share, memory_kind = True, None
        buffers = [*shards]
        for step in self._steps:
            buffers += step(buffers)
        made = []
        for device, number in self._parts:
            buffer, there = buffers[number], number < len(shards)
            stays = (memory_kind if there else None) == self._to and (share or not there)
            if not stays or buffer.device is not device:
                memory = device.memory(self._to) if self._to else None
                buffer = copy_buffer(buffer, device, memory)
            made.append(buffer)
        return made


def _plan_exchange(
    shape: tuple[int, ...], dtype: np.dtype[Any], source: Sharding, target: Sharding
) -> Exchange | None:
    """Returns how arrays are moved without the host; None where they cannot be."""
    if not source.is_fully_addressable and not holds_whole(source, shape):
        return None
    plan = _Plan(shape, source, target)
    if not plan.is_possible():
        return None
    memory_kinds = source.memory_kind, target.memory_kind
    clients = {device.client for device in target.addressable_devices}
    if all(assembles_on_host(client, math.prod(shape) * dtype.itemsize) for client in clients):
        return Exchange(memory_kinds, *plan.on_host(dtype))
    try:
        return Exchange(memory_kinds, *plan.load(dtype))
    except (PjrtError, UnsupportedDtype) as error:
        quiet = isinstance(error, Unimplemented | UnsupportedDtype)
        logger.log(
            logging.DEBUG if quiet else logging.WARNING,
            "Arrays %s[%s] go from %r to %r through the host: %s",
            dtype.name, ",".join(map(str, shape)), source, target, error,
        )  # fmt: skip
        return None


class _Plan:
    """Which pieces of which source buffers each device of the target needs."""

    def __init__(self, shape: tuple[int, ...], source: Sharding, target: Sharding) -> None:
        self._part_shape, self._held_shape = target.shard_shape(shape), source.shard_shape(shape)
        self._held = [*device_boxes(source, shape).items()]
        self._wanted = device_boxes(target, shape)
        self._pieces = {d: self._find_pieces(d, box) for d, box in self._wanted.items()}
        self._cuts: dict[int, list[Box]] = {}
        for pieces in self._pieces.values():
            for i, box in pieces:
                cuts = self._cuts.setdefault(i, [])
                if box != self._held[i][1] and box not in cuts:
                    cuts.append(box)

    def _find_pieces(self, device: Device, box: Box) -> list[tuple[int, Box]]:
        """Returns the pieces of ``box``, of the buffers on the device itself where it can be."""
        holders: dict[Box, int] = {}
        for i, (holder, held) in enumerate(self._held):
            if held not in holders or holder is device:
                holders[held] = i
        common = [(i, overlap(held, box)) for held, i in holders.items()]
        return [(i, piece) for i, piece in common if piece is not None]

    def _shape(self, i: int, piece: Box) -> tuple[int, ...]:
        """Returns the shape of the buffer that holds a piece of source buffer ``i``."""
        if piece == self._held[i][1]:
            return self._held_shape
        return self._part_shape if piece in self._wanted.values() else box_shape(piece)

    def _is_made(self, pieces: Sequence[tuple[int, Box]]) -> bool:
        """Whether a program has to make a part of these pieces."""
        return len(pieces) > 1 or self._shape(*pieces[0]) != self._part_shape

    def is_possible(self) -> bool:
        """Whether there is something to move, and the backends can move it."""
        if not all(self._pieces.values()):
            return False  # without elements
        if not any(self._cuts.values()) and not any(map(self._is_made, self._pieces.values())):
            return True  # `copy_buffer` knows a way between any two devices
        client, *others = {device.client for device in [*dict(self._held), *self._wanted]}
        moved = any(
            self._held[i][0] is not device for device, of in self._pieces.items() for i, _ in of
        )
        can = client.capabilities
        return (
            not others
            and "mlir" in can.program_formats
            and (can.device_to_device_copy or not moved)
        )

    def load(self, dtype: np.dtype[Any]) -> tuple[list[_Step], list[tuple[Device, int]]]:
        """Returns the steps, compiled, and the devices with the numbers of their buffers."""
        numbers = {(i, held): i for i, (_, held) in enumerate(self._held)}
        steps = []
        for program, group in _groups(self._slices(dtype), [device for device, _ in self._held]):
            steps.append(_Step(program, tuple((i,) for i in group)))
            for piece in [(i, box) for i in group for box in self._cuts[i]]:
                numbers[piece] = len(numbers)
        devices, pieces = [*self._pieces], [*self._pieces.values()]
        parts, made = [numbers[of[0]] for of in pieces], len(numbers)
        for program, group in _groups(self._joins(dtype), devices):
            taken = tuple(tuple(numbers[piece] for piece in pieces[part]) for part in group)
            steps.append(_Step(program, taken))
            for part in group:
                parts[part], made = made, made + 1
        return steps, [*zip(devices, parts, strict=True)]

    def on_host(self, dtype: np.dtype[Any]) -> tuple[list[HostAssembly], list[tuple[Device, int]]]:
        """Returns what `loaded` does, with a step that puts all parts together in main memory."""
        parts: list[tuple[Device, int]] = []
        made: list[tuple[Device, Box, Pieces]] = []
        for device, pieces in self._pieces.items():
            i, piece = pieces[0]
            if piece == self._held[i][1] and not self._is_made(pieces):
                parts.append((device, i))
                continue
            parts.append((device, len(self._held) + len(made)))
            of = [(i, self._held[i][1], piece) for i, piece in pieces]
            made.append((device, self._wanted[device], of))
        return [HostAssembly(self._part_shape, dtype, made)] if made else [], parts

    def _slices(self, dtype: np.dtype[Any]) -> dict[int, PartProgram]:
        """Returns the programs that slice source buffers, by the buffer's number."""
        return {
            i: slice_program(
                self._held[i][1], self._held_shape, dtype, [(r, self._shape(i, r)) for r in boxes]
            )
            for i, boxes in self._cuts.items()
            if boxes
        }

    def _joins(self, dtype: np.dtype[Any]) -> dict[int, PartProgram]:
        """Returns, by its number, what makes each part of the result that has to be made."""
        return {
            part: concatenate_program(
                [(box, self._shape(i, box)) for i, box in pieces], dtype, self._part_shape
            )
            for part, pieces in enumerate(self._pieces.values())
            if self._is_made(pieces)
        }


def _groups(
    programs: dict[int, PartProgram], devices: Sequence[Device]
) -> list[tuple[LoadedPartProgram, list[int]]]:
    """Returns each program once, loaded for all the devices that it is wanted on.

    ``programs`` are numbered as the ``devices``; the numbers come with each. Where one launch
    cannot run on several devices, each has its own.
    """
    groups: dict[tuple[PartProgram, int], list[int]] = {}
    for i, program in programs.items():
        together = devices[i].client.capabilities.multiple_devices
        groups.setdefault((program, -1 if together else i), []).append(i)
    return [
        (LoadedPartProgram(program, [devices[i] for i in group]), group)
        for (program, _), group in groups.items()
    ]
