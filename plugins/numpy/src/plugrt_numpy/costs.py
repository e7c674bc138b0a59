"""`program_costs`: the computation and bytes of a launch, as XLA's cost analysis counts them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plugrt.interface import TensorType
from plugrt.stablehlo.bindings import ir
from plugrt_numpy.functions import ModuleCompiler, called_symbol
from plugrt_numpy.operation import Operation
from plugrt_numpy.operations import contraction, convolution
from plugrt_numpy.operations.windows import Windows
from plugrt_numpy.table import TERMINATORS

Costs = Counter[str]
"""``flops``, ``transcendentals``, ``bytes accessed``, and those bytes by operand and result."""

FLOPS, TRANSCENDENTALS, BYTES = "flops", "transcendentals", "bytes accessed"
_WORK = (FLOPS, TRANSCENDENTALS)
_TRANSCENDENTAL = frozenset(
    f"stablehlo.{name}"
    for name in (
        "atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one",
        "logistic", "power", "rng", "rng_bit_generator", "rsqrt", "sine", "sqrt", "tan", "tanh",
    )
)  # fmt: skip
_ARITHMETIC = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs", "add", "all_reduce", "and", "bitcast_convert", "ceil", "clamp", "compare", "complex",
        "convert", "count_leading_zeros", "divide", "floor", "imag", "is_finite", "maximum",
        "minimum", "multiply", "negate", "not", "or", "popcnt", "real", "reduce_precision",
        "remainder", "round_nearest_afz", "round_nearest_even", "select", "shift_left",
        "shift_right_arithmetic", "shift_right_logical", "sign", "subtract", "xor",
    )
)  # fmt: skip
_FREE = TERMINATORS | {
    "stablehlo.constant", "stablehlo.create_token", "stablehlo.after_all", "stablehlo.tuple",
    "stablehlo.get_tuple_element", "stablehlo.custom_call", "stablehlo.optimization_barrier",
}  # fmt: skip
_FMA = 2
"""A multiply-add: two operations per element of the product."""


def program_costs(compiler: ModuleCompiler, partitions: int) -> Mapping[str, float]:
    """Returns the costs of a launch on each device, before any optimisation.

    By the rules of XLA's ``HloCostAnalysis``: an operation on elements is one ``flop`` for each, or
    one of the ``transcendentals``; loops are run once; of branches the most expensive counts. The
    figures of a program that is written for whole arrays are divided by its ``partitions``.
    """
    parts = 1 if compiler.is_written_for_parts else partitions
    found = _Counter(compiler, parts).function("main")
    return {name: number / parts for name, number in sorted(found.items())}


class _Counter:
    """Adds up the costs of a module's operations."""

    def __init__(self, compiler: ModuleCompiler, parts: int) -> None:
        self._compiler = compiler
        self._parts = parts

    def function(self, name: str) -> Costs:
        return self.region(self._compiler.symbols[name].regions[0])

    def region(self, region: ir.Region) -> Costs:
        found: Costs = Counter()
        for view in region.blocks[0].operations:
            found.update(self.operation(view.operation))
        return found

    def operation(self, operation: ir.Operation) -> Costs:
        name = operation.name
        if name in _FREE:
            return Counter()
        called = called_symbol(operation)
        if called is not None:
            return self.function(called)
        regions = [self.region(region) for region in operation.regions]
        if name == "stablehlo.while":
            return regions[0] + regions[1]
        if name in ("stablehlo.case", "stablehlo.if"):
            return _dearest(regions)
        if name == "sdy.manual_computation":  # written for one part
            return _times(regions[0], self._parts)
        op = Operation(operation, self._compiler)
        moved = _MOVED.get(name, _everything)(op)
        return _work(op, regions) + _bytes(*moved)


def _dearest(branches: Sequence[Costs]) -> Costs:
    names = {name for branch in branches for name in branch}
    return Counter({name: max(branch[name] for branch in branches) for name in names})


def _times(costs: Costs, count: float, names: Sequence[str] = ()) -> Costs:
    return Counter({name: costs[name] * count for name in names or costs})


def _work(op: Operation, regions: Sequence[Costs]) -> Costs:
    """Returns the number of element operations of an operation."""
    if op.name in _TRANSCENDENTAL:
        return Counter({TRANSCENDENTALS: sum(map(_size, op.result_types))})
    if op.name in _ARITHMETIC:
        return Counter({FLOPS: sum(map(_size, op.result_types))})
    if op.name in _COUNTED:
        return Counter({FLOPS: _COUNTED[op.name](op)})
    applied = zip(regions, _APPLICATIONS.get(op.name, _never)(op), strict=False)
    found: Costs = Counter()
    for region, times in applied:
        found.update(_times(region, times, _WORK))
    return found


def _size(kind: TensorType | None) -> int:
    return 0 if kind is None else math.prod(kind.shape)


def _sort(op: Operation) -> int:
    elements = _size(op.operand_types[0])
    return elements * max(elements - 1, 0).bit_length()


def _fft(op: Operation) -> int:
    steps = math.prod(n.bit_length() - 1 for n in op.ints("fft_length") if n)
    return _FMA * 4 * steps * _size(op.operand_types[0])


def _triangular_solve(op: Operation) -> int:
    return _FMA * int(op.operand_types[0].shape[-1]) * _size(op.operand_types[1])


def _cholesky(op: Operation) -> int:
    kind = op.operand_types[0]
    return int(kind.shape[-1]) * _size(kind) // 3


_COUNTED: Mapping[str, Callable[[Operation], int]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.convolution": lambda op: _FMA * convolution.multiplications(op),
    "stablehlo.dot": lambda op: _FMA * _size(op.result_types[0]) * op.operand_types[0].shape[-1],
    "stablehlo.dot_general": lambda op: (
        _FMA * _size(op.result_types[0]) * contraction.summed_terms(op)
    ),
    "stablehlo.fft": _fft,
    "stablehlo.sort": _sort,
    "stablehlo.triangular_solve": _triangular_solve,
}
"""The flops of operations that are no sum over regions or elements."""


def _never(op: Operation) -> Sequence[int]:
    return ()


def _reduce(op: Operation) -> Sequence[int]:
    return [_size(op.operand_types[0]) - _size(op.result_types[0])]


def _reduce_window(op: Operation) -> Sequence[int]:
    return [(math.prod(Windows.of(op).sizes) - 1) * _size(op.result_types[0])]


def _select_and_scatter(op: Operation) -> Sequence[int]:
    sources = _size(op.operand_types[1])
    return [sources * (math.prod(Windows.of(op).sizes) - 1), sources]


_APPLICATIONS: Mapping[str, Callable[[Operation], Sequence[int]]] = {
    "stablehlo.map": lambda op: [_size(op.result_types[0])],
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.scatter": lambda op: [_size(op.operand_types[-1])],
    "stablehlo.select_and_scatter": _select_and_scatter,
}
"""How many times each region is applied to elements."""


def _bytes(operands: Sequence[int], results: int) -> Costs:
    found: Costs = Counter({BYTES: sum(operands) + results, f"{BYTES}out{{}}": results})
    for i, number in enumerate(operands):
        found[f"{BYTES}{i}{{}}"] = number
    return found


def _everything(op: Operation) -> tuple[list[int], int]:
    """Returns the bytes of each operand and of the results."""
    return list(map(_nbytes, op.operand_types)), sum(map(_nbytes, op.result_types))


def _nbytes(kind: Any) -> int:
    return 0 if kind is None else _size(kind) * int(kind.dtype.itemsize)


def _part(op: Operation) -> tuple[list[int], int]:
    """Returns the bytes of an operation that reads as much of its first operand as its result has.

    Of several indices the first counts.
    """
    result = _nbytes(op.result_types[0])
    return [result, *map(_nbytes, op.operand_types[1:2])], result


def _update(op: Operation) -> tuple[list[int], int]:
    """Returns the bytes of an update in place: it reads the update and writes as much."""
    _, update, *indices = map(_nbytes, op.operand_types)
    return [0, update, *indices[:1]], update


def _triangle(op: Operation) -> tuple[list[int], int]:
    """Returns the bytes of an operation that uses one triangle of the first operand."""
    (matrix, *others), result = _everything(op)
    return [matrix // 2, *others], result if others else result // 2


def _scatter(op: Operation) -> tuple[list[int], int]:
    count = len(op.result_types)
    sizes = list(map(_nbytes, op.operand_types))
    updates = sizes[count + 1 :]
    return [*updates, sizes[count], *updates], sum(updates)


_MOVED: Mapping[str, Callable[[Operation], tuple[list[int], int]]] = {
    "stablehlo.cholesky": _triangle,
    "stablehlo.dynamic_slice": _part,
    "stablehlo.dynamic_update_slice": _update,
    "stablehlo.gather": _part,
    "stablehlo.scatter": _scatter,
    "stablehlo.slice": _part,
    "stablehlo.triangular_solve": _triangle,
}
"""The accessed bytes of operations that do not read their operands whole."""
