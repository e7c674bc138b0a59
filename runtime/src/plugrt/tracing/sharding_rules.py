"""Infers shardings over Explicit axes: of results of StableHLO operations, from the operands'."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from plugrt.errors import ShardingTypeError
from plugrt.execution.shardings.manual_types import write_type
from plugrt.stablehlo.attributes import find_attribute, python_value
from plugrt.stablehlo.bindings import hlo, ir

Entry = str | tuple[str, ...] | None
Spec = tuple[Entry, ...]
"""For each dimension the axes that divide it, the slowest first."""

_CURE = "give out_sharding=, or call it within auto_axes"


@dataclass(frozen=True)
class Operation:
    """An operation, with the types of its operands."""

    op: Any
    specs: Sequence[Spec]
    """The spec of each operand."""
    free: Sequence[bool]
    """Whether each operand is a constant, which fits any sharding."""
    sizes: Mapping[str, int]
    """The sizes of the mesh's axes."""
    sums: Sequence[Any] = ()
    """The `plugrt.tracing.sum_rules.Sums` of each operand."""

    @property
    def name(self) -> str:
        """The name without its dialect."""
        return str(self.op.name).partition(".")[2]

    def shape(self, i: int) -> list[int]:
        """The sizes of the dimensions of the i-th operand."""
        return list(ir.RankedTensorType(self.op.operands[i].type).shape)

    def result_shape(self, i: int = 0) -> list[int]:
        """The sizes of the dimensions of the i-th result."""
        return list(ir.RankedTensorType(self.op.results[i].type).shape)

    def numbers(self, name: str) -> list[int]:
        """The attribute of this name, a list of integers."""
        found = python_value(find_attribute(self.op, name))
        assert isinstance(found, list), (name, found)
        return found

    def parts(self, entry: Entry) -> int:
        """The number of parts that an entry of a spec makes."""
        return math.prod(self.sizes[name] for name in axes_of(entry))

    def write_types(self) -> str:
        """Returns the types of the operands."""
        sums = self.sums or [()] * len(self.specs)
        return ", ".join(
            write_type(self.shape(i), spec, *own)
            for i, (spec, own) in enumerate(zip(self.specs, sums, strict=True))
        )

    def refuse(self, why: str, cure: str = _CURE) -> NoReturn:
        """Raises `ShardingTypeError`."""
        raise ShardingTypeError(f"{self.name} of {self.write_types()}: {why}; {cure}")


def axes_of(entry: Entry) -> tuple[str, ...]:
    """Returns the axes of one dimension."""
    return () if entry is None else (entry,) if isinstance(entry, str) else entry


def entry_of(axes: Sequence[str]) -> Entry:
    """Returns the entry of a dimension that is divided over these axes."""
    return None if not axes else axes[0] if len(axes) == 1 else tuple(axes)


def _unite(of: Operation, entries: Sequence[Entry], what: str) -> Entry:
    """Returns the common entry, ignoring None; raises `ShardingTypeError` for different ones."""
    found = {entry for entry in entries if entry is not None}
    if len(found) > 1:
        of.refuse(f"{what} are divided differently, {entries}")
    return next(iter(found), None)


def _elementwise(of: Operation) -> list[Spec]:
    shape = of.result_shape()
    given = [s for i, s in enumerate(of.specs) if len(s) == len(shape) and not of.free[i]]
    spec = tuple(_unite(of, entries, "its operands") for entries in zip(*given, strict=True))
    return [spec or (None,) * len(shape)] * len(of.op.results)


def _positional(of: Operation) -> list[Spec]:
    return list(of.specs)


def _first(of: Operation) -> list[Spec]:
    return [of.specs[0]] * len(of.op.results)


def _drop(spec: Spec, dimensions: Sequence[int]) -> Spec:
    return tuple(entry for i, entry in enumerate(spec) if i not in dimensions)


def _reduce(of: Operation) -> list[Spec]:
    count = len(of.op.results)
    pairs = zip(of.specs[:count], of.free[:count], strict=True)
    given = [spec for spec, free in pairs if not free]
    spec = tuple(_unite(of, entries, "its operands") for entries in zip(*given, strict=True))
    return [_drop(spec, of.numbers("dimensions"))] * count


def _dot_general(of: Operation) -> list[Spec]:
    numbers = hlo.DotDimensionNumbers(of.op.attributes["dot_dimension_numbers"])
    left, right = of.specs
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(
        zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
    )
    for i, j in summed:
        if left[i] is not None and right[j] is not None:
            of.refuse(
                "a dimension that is summed over is divided in both, and the result's "
                "division is open"
            )
    kept = tuple(_unite(of, (left[i], right[j]), "its batch dimensions") for i, j in batch)
    taken = [*batch, *summed]
    free_left = _drop(left, [i for i, _ in taken])
    return [(*kept, *free_left, *_drop(right, [j for _, j in taken]))]


def _broadcast_in_dim(of: Operation) -> list[Spec]:
    spec: list[Entry] = [None] * len(of.result_shape())
    for i, dimension in enumerate(of.numbers("broadcast_dimensions")):
        spec[dimension] = of.specs[0][i]
    return [tuple(spec)]


def _transpose(of: Operation) -> list[Spec]:
    return [tuple(of.specs[0][i] for i in of.numbers("permutation"))]


def _concatenate(of: Operation) -> list[Spec]:
    given = {spec for spec, free in zip(of.specs, of.free, strict=True) if not free}
    if len(given) > 1:
        of.refuse("its operands are divided differently", "reshard one")
    return [next(iter(given))]


def _resized(of: Operation) -> list[Spec]:
    """The rule of operations that change sizes of dimensions but keep the spec."""
    made = []
    for i in range(len(of.op.results)):
        shapes = zip(of.shape(i), of.result_shape(i), of.specs[i], strict=True)
        for before, after, entry in shapes:
            if before != after and after % of.parts(entry):
                of.refuse(f"{after} of the result is not divisible by {of.parts(entry)} parts")
        made.append(of.specs[i])
    return made


def _reduce_window(of: Operation) -> list[Spec]:
    windows, count = of.numbers("window_dimensions"), len(of.op.results)
    for size, n, entry in zip(windows, of.shape(0), of.specs[0], strict=True):
        if size == n > 1 and entry is not None:
            of.refuse("it reduces along a dimension that is divided", "reshard the operand")
    return _resized(of)[:count]


def _dynamic_update_slice(of: Operation) -> list[Spec]:
    if of.specs[0] != of.specs[1] and not (of.free[0] or of.free[1]):
        of.refuse("the operand and the update are divided differently", "reshard one")
    return [of.specs[1] if of.free[0] else of.specs[0]]


def _reshape(of: Operation) -> list[Spec]:
    new = of.result_shape()
    pairs = zip(of.shape(0), of.specs[0], strict=True)
    kept = [(n, entry) for n, entry in pairs if n != 1]
    old, spec = [n for n, _ in kept], [entry for _, entry in kept]
    wanted = [n for n in new if n != 1]
    made: list[Entry] = []
    changed = 0
    for before, after in _groups(old, wanted):
        if len(before) == len(after) == 1:
            made.append(spec[before[0]])
            continue
        changed += 1
        if len(before) > 1 and len(after) > 1:
            of.refuse("dimensions are split and joined at once")
        made += _regroup(of, [wanted[i] for i in after], [spec[i] for i in before])
    if changed > 1:
        of.refuse("more than one dimension is split or joined")
    entries = iter(made)
    return [tuple(None if n == 1 else next(entries) for n in new)]


def _groups(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[range, range]]:
    """Yields the smallest ranges of old and new dimensions (none of size 1) of equal size."""
    i = j = 0
    while i < len(old) and j < len(new):
        first, start, left, right = i, j, old[i], new[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        yield range(first, i), range(start, j)


def _regroup(of: Operation, sizes: Sequence[int], entries: Sequence[Entry]) -> list[Entry]:
    """Returns the entries of new dimensions, with the axes of the old ones in their order."""
    while entries and entries[-1] is None:
        entries = entries[:-1]
    if None in entries:
        of.refuse("a dimension that is not divided is joined before one that is")
    axes = [name for entry in entries for name in axes_of(entry)]
    made: list[Entry] = []
    for size in sizes:
        own: list[str] = []
        while size > 1 and axes:
            if size % of.sizes[axes[0]]:
                of.refuse(f"{size} is not divisible by the {of.sizes[axes[0]]} of {axes[0]!r}")
            size //= of.sizes[axes[0]]
            own.append(axes.pop(0))
        made.append(entry_of(own))
    if axes:
        of.refuse(f"the axis {axes[0]!r} divides no dimension of the result")
    return made


def _gather(of: Operation) -> list[Spec]:
    numbers = hlo.GatherDimensionNumbers(of.op.attributes["dimension_numbers"])
    shape, slices = of.shape(0), of.numbers("slice_sizes")
    operand, indices = of.specs[0], list(of.specs[1])
    batch = list(
        zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    )
    collapsed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    partial = [
        i for i in numbers.start_index_map if slices[i] != shape[i] and operand[i] is not None
    ]
    if partial or any(
        entry is not None for i, entry in enumerate(indices) if i not in [d for _, d in batch]
    ):
        of.refuse("elements are taken along a dimension that is divided, or by divided indices")
    for i, j in batch:
        indices[j] = _unite(of, (operand[i], indices[j]), "the batch dimensions")
    vector = numbers.index_vector_dim
    own = iter([entry for i, entry in enumerate(indices) if i != vector])
    windows = iter([entry for i, entry in enumerate(operand) if i not in collapsed])
    rank = len(of.result_shape())
    return [tuple(next(windows) if i in numbers.offset_dims else next(own) for i in range(rank))]


def _scatter(of: Operation) -> list[Spec]:
    numbers = hlo.ScatterDimensionNumbers(of.op.attributes["scatter_dimension_numbers"])
    operand, indices, updates = list(of.specs[0]), of.specs[1], list(of.specs[-1])
    shape, given = of.shape(0), of.shape(len(of.specs) - 1)
    vector, windows = numbers.index_vector_dim, list(numbers.update_window_dims)
    order = [i for i in range(len(indices)) if i != vector]
    spread = [i for i in range(len(updates)) if i not in windows]
    batch = list(
        zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    )
    batched = {j: spread[order.index(j)] for _, j in batch}
    dropped = (*numbers.inserted_window_dims, *numbers.input_batching_dims)
    for i, j in batch:
        operand[i] = _unite(of, (operand[i], indices[j], updates[batched[j]]), "batch dimensions")
    for i, j in zip((i for i in range(len(operand)) if i not in dropped), windows, strict=True):
        whole = shape[i] == given[j]
        if of.free[-1] and whole:
            updates[j] = operand[i]
        elif of.free[0] and whole:
            operand[i] = updates[j]
        if operand[i] != updates[j] or (operand[i] is not None and not whole):
            of.refuse("the operand and the updates are divided differently")
    loose = [indices[i] for i in range(len(indices)) if i not in batched]
    loose += [updates[j] for j in spread if j not in batched.values()]
    loose += [operand[i] for i in numbers.inserted_window_dims]
    if any(loose):
        of.refuse("elements are put along a dimension that is divided, or by divided indices")
    return [tuple(operand)] * len(of.op.results)


def _sort(of: Operation) -> list[Spec]:
    dimension = int(ir.IntegerAttr(of.op.attributes["dimension"]).value)
    spec = _unite_all(of)
    if spec[dimension] is not None:
        of.refuse(f"it is along dimension {dimension}, which is divided", "reshard the operand")
    return [spec] * len(of.op.results)


def _unite_all(of: Operation) -> Spec:
    given = [spec for spec, free in zip(of.specs, of.free, strict=True) if not free]
    return tuple(_unite(of, entries, "its operands") for entries in zip(*given, strict=True))


def _convolution(of: Operation) -> list[Spec]:
    numbers = hlo.ConvDimensionNumbers(of.op.attributes["dimension_numbers"])
    left, right = of.specs
    if any(right) or left[numbers.input_feature_dimension]:
        of.refuse("the kernel or the features are divided")
    shape = of.result_shape()
    spec: list[Entry] = [None] * len(shape)
    spec[numbers.output_batch_dimension] = left[numbers.input_batch_dimension]
    pairs = zip(numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    for i, j in pairs:
        spec[j] = left[i]
    for n, entry in zip(shape, spec, strict=True):
        if n % of.parts(entry):
            of.refuse(f"{n} of the result is not divisible by {of.parts(entry)} parts")
    return [tuple(spec)]


def _batched(of: Operation) -> list[Spec]:
    """The rule of operations on the last two dimensions, for each of a batch."""
    batches = []
    for spec, free in zip(of.specs, of.free, strict=True):
        if not spec or free:
            continue
        if any(spec[-2:]):
            of.refuse("its last dimensions are divided", "reshard it, or call it within auto_axes")
        batches.append(spec[:-2])
    if len(set(batches)) > 1:
        of.refuse("its batch dimensions are divided differently", "reshard one")
    batch = batches[0]
    return [
        (*batch, *[None] * (len(of.result_shape(i)) - len(batch)))
        for i in range(len(of.op.results))
    ]


def _bitcast(of: Operation) -> list[Spec]:
    spec, rank = of.specs[0], len(of.result_shape())
    if rank < len(spec) and spec[-1] is not None:
        of.refuse("its last dimension is divided", "reshard it")
    return [(*spec, None) if rank > len(spec) else spec[:rank]]


def _custom_call(of: Operation) -> list[Spec]:
    shapes = [of.shape(i) for i in range(len(of.specs)) if of.specs[i]]
    if len(of.op.results) == 1 and all(shape == of.result_shape() for shape in shapes):
        return _elementwise(of)
    return _batched(of)


RULES: Mapping[str, Callable[[Operation], list[Spec]]] = {
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.cholesky": _batched,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_slice": _resized,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.fft": _resized,
    "stablehlo.gather": _gather,
    "stablehlo.optimization_barrier": _positional,
    "stablehlo.pad": _resized,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _first,
    "stablehlo.scatter": _scatter,
    "stablehlo.slice": _resized,
    "stablehlo.sort": _sort,
    "stablehlo.transpose": _transpose,
    "stablehlo.triangular_solve": _batched,
}
"""The rules of operations that are not elementwise."""


def infer(of: Operation) -> list[Spec]:
    """Returns the specs of an operation's results; raises `ShardingTypeError` if ambiguous.

    Operations without a rule of their own are elementwise.
    """
    rule = RULES.get(of.op.name)
    if not any(any(spec) for spec in of.specs):
        ranks = [len(of.result_shape(i)) for i in range(len(of.op.results))]
        return [(None,) * rank for rank in ranks]
    if rule is not None:
        return rule(of)
    result = of.result_shape()
    if all(of.shape(i) in ([], result) for i in range(len(of.specs))):
        return _elementwise(of)
    return of.refuse("it has no rule", "call it within auto_axes")
