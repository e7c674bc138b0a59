"""`COLLECTIVES`: programs whose replicas exchange data, with NumPy's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from plugrt_sdk.conformance.expect import Array
from plugrt_sdk.testing.program_text import ProgramText, body, typed

Groups = Sequence[Sequence[int]]
Compute = Callable[[Sequence[Array]], Sequence[Array]]
"""Computes the results of a group's members from their arrays, in the group's order."""
NUMBERS = (
    "float32", "bfloat16", "float16", "float64", "int32", "int64", "uint8", "int8", "uint32",
)  # fmt: skip
MOVED = ("float32", "bfloat16", "int32", "bool", "complex64", "float64", "uint8", "int64")
SHAPE = (4, 8)
ALL, EACH, PAIRS, FOUR = ((0, 1),), ((0,), (1,)), ((0, 2), (3, 1)), ((2, 0, 3, 1),)
"""Groups: two replicas; two replicas, each alone; pairs of four in unusual order; four in one."""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective operation. ``shape`` returns the shape of its result for a number of members."""

    name: str
    variant: str
    dtypes: Sequence[str]
    compute: Compute
    shape: Callable[[int], tuple[int, ...]]
    attributes: str = ""
    combiner: str = ""
    """The operation of its region, if it has a region."""

    @property
    def id(self) -> str:
        """The part of a check's id that names the collective."""
        return f"{self.name}.{self.variant}" if self.variant else self.name

    def program(self, dtype: str, groups: Groups) -> ProgramText:
        """Returns the program; each replica passes its own argument."""
        text = ProgramText()
        x = text.argument(np.zeros(SHAPE, bool).astype(np.dtype(dtype)))
        text.apply(self.name, [x], *self.parts(dtype, groups))
        return text

    def parts(
        self, dtype: str, groups: Groups, more: str = "", members: int = 0
    ) -> tuple[list[str], str, list[str]]:
        """Returns the result types, attributes and regions.

        ``more`` are further attributes. ``members`` is the number of devices in a group, if that
        differs from the table's.
        """
        size, width = members or len(groups[0]), len(groups[0])
        rows = ", ".join(f"[{', '.join(map(str, group))}]" for group in groups)
        attributes = [f"replica_groups = dense<[{rows}]> : tensor<{len(groups)}x{width}xi64>"]
        attributes += [each.replace("COUNT", str(size)) for each in (self.attributes, more) if each]
        regions = [body(self.combiner, dtype)] if self.combiner else []
        return [typed(self.shape(size), dtype)], ", ".join(attributes), regions

    def expected(self, arrays: Sequence[Array], groups: Groups) -> list[Array]:
        """Returns the result of each replica."""
        found: dict[int, Array] = {}
        for group in groups:
            results = self.compute([arrays[i] for i in group])
            found.update(zip(group, results, strict=True))
        return [found[i] for i in range(len(arrays))]


def _reduction(function: Callable[[Any, Any], Any]) -> Compute:
    return lambda arrays: [np.asarray(reduce(function, arrays))] * len(arrays)


def _gather(arrays: Sequence[Array]) -> Sequence[Array]:
    return [np.concatenate(arrays, 0)] * len(arrays)


def _reduce_scatter(arrays: Sequence[Array]) -> Sequence[Array]:
    return np.split(reduce(np.add, arrays), len(arrays), 1)


def _all_to_all(arrays: Sequence[Array]) -> Sequence[Array]:
    parts = [np.split(array, len(arrays), 0) for array in arrays]
    return [np.concatenate([p[i] for p in parts], 1) for i in range(len(arrays))]


def _broadcast(arrays: Sequence[Array]) -> Sequence[Array]:
    return [arrays[0]] * len(arrays)


def _same(size: int) -> tuple[int, ...]:
    return SHAPE


_REDUCTIONS: dict[str, tuple[Callable[[Any, Any], Any], Sequence[str]]] = {
    "add": (np.add, (*NUMBERS, "complex64")),
    "maximum": (np.maximum, NUMBERS), "minimum": (np.minimum, NUMBERS),
    "multiply": (np.multiply, NUMBERS), "and": (np.bitwise_and, ("bool", "int32", "uint8")),
    "or": (np.bitwise_or, ("bool", "int32", "uint8")),
}  # fmt: skip
COLLECTIVES: tuple[Collective, ...] = (
    *(
        Collective("all_reduce", name, dtypes, _reduction(function), _same, combiner=name)
        for name, (function, dtypes) in _REDUCTIONS.items()
    ),
    Collective("all_gather", "", MOVED, _gather, lambda n: (4 * n, 8), "all_gather_dim = 0 : i64"),
    Collective(
        "reduce_scatter", "", NUMBERS, _reduce_scatter,
        lambda n: (4, 8 // n), "scatter_dimension = 1 : i64", "add",
    ),
    Collective(
        "all_to_all", "", MOVED, _all_to_all, lambda n: (4 // n, 8 * n),
        "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = COUNT : i64",
    ),
    Collective("collective_broadcast", "", MOVED, _broadcast, _same),
)  # fmt: skip
