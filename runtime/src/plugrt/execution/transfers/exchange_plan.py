"""`ExchangePlan`: the pieces of buffers that each device needs, and the steps that join them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plugrt.execution.compilation.buffer_copy import copy_buffer
from plugrt.execution.compilation.part_programs import (
    LoadedPartProgram,
    PartProgram,
    concatenate_program,
    slice_program,
)
from plugrt.execution.shardings.index_boxes import Box, box_shape, device_boxes, overlap
from plugrt.execution.shardings.sharding_base import Sharding
from plugrt.execution.transfers.host_assembly import HostAssembly, Pieces
from plugrt.interface import Buffer, Device


@dataclass(frozen=True, slots=True)
class Step:
    """A launch on several devices, and the numbers of each device's input buffers."""

    program: LoadedPartProgram
    numbers: tuple[tuple[int, ...], ...]

    def __call__(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Returns the results, ordered by device; copies inputs from other devices first."""
        take = buffers.__getitem__
        return self.program(
            [
                [b if b.device is device else copy_buffer(b, device) for b in map(take, numbers)]
                for device, numbers in zip(self.program.devices, self.numbers, strict=True)
            ]
        )


_Pieces = list[tuple[int, Box]]
"""The numbers of buffers, and the box that is read from each."""


class ExchangePlan:
    """Which pieces of which source buffers each device of the target needs."""

    def __init__(self, shape: tuple[int, ...], source: Sharding, target: Sharding) -> None:
        self._part_shape, self._held_shape = target.shard_shape(shape), source.shard_shape(shape)
        self._held = [*device_boxes(source, shape).items()]
        self._wanted = device_boxes(target, shape)
        self._wanted_boxes = frozenset(self._wanted.values())
        self._pieces = self._find_pieces()
        cuts: dict[int, dict[Box, None]] = {}
        for pieces in {id(pieces): pieces for pieces in self._pieces.values()}.values():
            for i, box in pieces:
                own = cuts.setdefault(i, {})
                if box != self._held[i][1]:
                    own[box] = None
        self._cuts = {i: [*own] for i, own in cuts.items()}

    def _find_pieces(self) -> dict[Device, _Pieces]:
        """Returns the pieces of each wanted part, from its own device if they are there.

        Parts of the same pieces have the same list. The time grows with the number of different
        parts, not with the square of the devices, unless each wanted part needs all others.
        """
        holders: dict[Box, dict[Device, int]] = {}
        for i, (device, held) in enumerate(self._held):
            holders.setdefault(held, {})[device] = i
        common = {
            box: {box: box}
            if box in holders
            else {h: p for h in holders if (p := overlap(h, box)) is not None}
            for box in self._wanted_boxes
        }
        shared = {
            box: [(next(iter(holders[held].values())), piece) for held, piece in of.items()]
            for box, of in common.items()
        }
        copied = {box for box, of in common.items() if any(len(holders[held]) > 1 for held in of)}
        return {
            device: [
                (holders[held].get(device, i), piece)
                for (i, _), (held, piece) in zip(shared[box], common[box].items(), strict=True)
            ]
            if box in copied
            else shared[box]
            for device, box in self._wanted.items()
        }

    def _shape(self, i: int, piece: Box) -> tuple[int, ...]:
        """Returns the shape of the buffer that holds a piece of source buffer ``i``."""
        if piece == self._held[i][1]:
            return self._held_shape
        return self._part_shape if piece in self._wanted_boxes else box_shape(piece)

    def _is_made(self, pieces: Sequence[tuple[int, Box]]) -> bool:
        """Whether a program must compute a part of these pieces."""
        return len(pieces) > 1 or self._shape(*pieces[0]) != self._part_shape

    def is_possible(self) -> bool:
        """Whether there are data to move, and the backends can move them."""
        if not all(self._pieces.values()):
            return False  # it has no elements
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

    def moved_bytes(self, dtype: np.dtype[np.generic]) -> int:
        """Returns the number of bytes that are copied from one device to another."""
        held = [device for device, _ in self._held]
        return dtype.itemsize * sum(
            math.prod(box_shape(box))
            for device, of in self._pieces.items()
            for i, box in of
            if held[i] is not device
        )

    def load(self, dtype: np.dtype[np.generic]) -> tuple[list[Step], list[tuple[Device, int]]]:
        """Returns the compiled steps, and the devices with the numbers of their buffers."""
        numbers = {(i, held): i for i, (_, held) in enumerate(self._held)}
        steps = []
        for program, group in _groups(self._slices(dtype), [device for device, _ in self._held]):
            steps.append(Step(program, tuple((i,) for i in group)))
            for piece in [(i, box) for i in group for box in self._cuts[i]]:
                numbers[piece] = len(numbers)
        devices, pieces = [*self._pieces], [*self._pieces.values()]
        parts, made = [numbers[of[0]] for of in pieces], len(numbers)
        for program, group in _groups(self._joins(dtype), devices):
            taken = tuple(tuple(numbers[piece] for piece in pieces[part]) for part in group)
            steps.append(Step(program, taken))
            for part in group:
                parts[part], made = made, made + 1
        return steps, [*zip(devices, parts, strict=True)]

    def on_host(
        self, dtype: np.dtype[np.generic]
    ) -> tuple[list[HostAssembly], list[tuple[Device, int]]]:
        """As `load`, but with a single step that joins all parts in main memory."""
        parts: list[tuple[Device, int]] = []
        made: list[tuple[Device, Box, Pieces]] = []
        known: dict[int, Pieces] = {}
        for device, pieces in self._pieces.items():
            i, piece = pieces[0]
            if piece == self._held[i][1] and not self._is_made(pieces):
                parts.append((device, i))
                continue
            parts.append((device, len(self._held) + len(made)))
            of = known.get(id(pieces))
            if of is None:
                of = known[id(pieces)] = [(i, self._held[i][1], piece) for i, piece in pieces]
            made.append((device, self._wanted[device], of))
        return [HostAssembly(self._part_shape, dtype, made)] if made else [], parts

    def _slices(self, dtype: np.dtype[np.generic]) -> dict[int, PartProgram]:
        """Returns the programs that slice source buffers, by the buffer's number."""
        return {
            i: slice_program(
                self._held[i][1], self._held_shape, dtype, [(r, self._shape(i, r)) for r in boxes]
            )
            for i, boxes in self._cuts.items()
            if boxes
        }

    def _joins(self, dtype: np.dtype[np.generic]) -> dict[int, PartProgram]:
        """Returns, by number, the program for each part of the result that must be computed."""
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
    """Returns each program once, loaded for all devices that need it, with the devices' numbers.

    ``programs`` has a program for each of ``devices``. If one launch cannot run on several devices,
    it is loaded for each separately.
    """
    groups: dict[tuple[PartProgram, int], list[int]] = {}
    for i, program in programs.items():
        together = devices[i].client.capabilities.multiple_devices
        groups.setdefault((program, -1 if together else i), []).append(i)
    return [
        (LoadedPartProgram(program, [devices[i] for i in group]), group)
        for (program, _), group in groups.items()
    ]
