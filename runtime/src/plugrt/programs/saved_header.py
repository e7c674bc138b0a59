"""The header of a saved function: records whose fields agree with each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from plugrt.programs.saved_shardings import SavedLayout, SavedSharding
from plugrt.wire.checked_fields import Count, Shape, require, require_bytes, require_indices


@dataclass(frozen=True, slots=True)
class SavedType:
    """The type of an argument, a result, or an array."""

    shape: Shape
    dtype: np.dtype[Any]
    weak: bool = False

    def __post_init__(self) -> None:
        require_bytes(self.shape, self.dtype, "an array")

    @property
    def nbytes(self) -> int:
        """Its size on the host."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class SavedLaunch:
    """A `Launch`, with devices as ids."""

    replicas: Count
    partitions: Count
    devices: tuple[Count, ...]
    of_parts: bool
    committed: bool
    arguments: tuple[SavedSharding, ...]
    results: tuple[SavedSharding, ...]
    whole: SavedSharding | None
    in_layouts: tuple[SavedLayout | None, ...]
    out_layouts: tuple[SavedLayout | None, ...]

    def __post_init__(self) -> None:
        count = self.replicas * self.partitions
        require(
            count == len(set(self.devices)) == len(self.devices) > 0,
            f"a program on {count} devices, {self.devices[:8]}",
        )
        for layouts, shardings in (
            (self.in_layouts, self.arguments), (self.out_layouts, self.results),
        ):  # fmt: skip
            require(len(layouts) in (0, len(shardings)), f"{len(layouts)} layouts")


@dataclass(frozen=True, slots=True)
class SavedHeader:
    """A compiled function without its arrays and its executable; ``backend`` is whose that is."""

    name: str
    backend: str
    kept: tuple[Count, ...]
    sources: tuple[tuple[Literal["result", "argument", "constant", "literal"], Count], ...]
    fed: Count
    donated: tuple[Count, ...]
    argument_names: tuple[str, ...]
    acts: bool
    types: tuple[SavedType, ...]
    parameters: tuple[SavedType, ...]
    outputs: tuple[SavedType, ...]
    arrays: tuple[SavedType, ...]
    literals: Count
    launch: SavedLaunch
    executable: bool

    def __post_init__(self) -> None:
        count, launch = len(self.parameters), self.launch
        require(len(self.types) == count, f"{len(self.types)} arguments, {count} parameters")
        require(len(self.argument_names) <= count, f"{len(self.argument_names)} names of {count}")
        require_indices(self.kept, count, "kept")
        require_indices(self.donated, count, "donated")
        require({*self.donated} <= {*self.kept}, f"donated {self.donated[:8]} are not all kept")
        constants = len(self.arrays) - self.literals
        require(0 <= self.fed <= constants, f"{self.fed} arrays fed of {constants}")
        require(len(launch.arguments) == count, f"{len(launch.arguments)} shardings of {count}")
        for found in (launch.results, self.outputs):
            require(len(found) == len(self.sources), f"{len(found)} of {len(self.sources)} results")
        available = {
            "argument": count,
            "constant": constants,
            "literal": self.literals,
            "result": 2**31 * self.executable,
        }
        for origin, i in self.sources:
            require(i < available[origin], f"{origin} {i} of {available[origin]}")
        passed = {i for origin, i in self.sources if origin == "argument"}
        require(not passed & {*self.donated}, f"donated {self.donated[:8]} are results as well")
        require(self.executable or not self.acts, "effects of no executable")
