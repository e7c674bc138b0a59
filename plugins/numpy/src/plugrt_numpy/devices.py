"""`Grid`: the replicas and partitions of a launch, and the groups of a collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Active = tuple[int, ...]
"""The devices that run a part of a program: positions in the launch, replica-major."""


@dataclass(frozen=True)
class Grid:
    """How many replicas and partitions a launch has; device ``r * partitions + p`` is (r, p)."""

    replicas: int = 1
    partitions: int = 1

    @property
    def everyone(self) -> Active:
        """All devices."""
        return tuple(range(self.replicas * self.partitions))

    def replica(self, device: int) -> int:
        """The replica id of a device."""
        return device // self.partitions

    def partition(self, device: int) -> int:
        """The partition id of a device."""
        return device % self.partitions

    def groups(
        self, rows: Sequence[Sequence[int]], *, channel: bool, flattened: bool
    ) -> list[list[int]]:
        """Returns the devices of each process group, in the group's order.

        The four strategies of the StableHLO specification: ``cross_replica`` without a channel,
        ``cross_replica_and_partition`` with one, ``flattened_ids`` if these are asked for.
        A row may be padded with -1; no rows at all are one group of everyone.
        """
        rows = [[i for i in row if i >= 0] for row in rows]
        if flattened:
            return [list(row) for row in rows] or [list(self.everyone)]
        rows = rows or [list(range(self.replicas))]
        if channel:
            return [
                [r * self.partitions + p for p in range(self.partitions) for r in row]
                for row in rows
            ]
        return [
            [r * self.partitions + p for r in row] for p in range(self.partitions) for row in rows
        ]

    def partition_groups(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Returns the devices of each group of partition ids (``cross_partition``)."""
        rows = rows or [list(range(self.partitions))]
        return [
            [r * self.partitions + p for p in row] for r in range(self.replicas) for row in rows
        ]
