"""`kernels`: which kernels of the runtime run an operation of StableHLO.

A function of the table returns, for an operation, a function of arrays of the device that launches
its kernels, or None where the runtime has none for these types. It reads the operation at once: a
program is compiled once and launched often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from plugrt_numpy.bodies import single_operation
from plugrt_numpy.device_launches import Kernel
from plugrt_numpy.operation import Operation
from plugrt_numpy.operations.contraction import dot_dimensions

from my_chip.runtime import DeviceArray, Runtime

Run = Callable[..., DeviceArray]


@dataclass(frozen=True)
class Device:
    """The device that a program is compiled for."""

    runtime: Runtime
    id: int

    def kernel(
        self, name: str, shape: Sequence[int], dtype: Any, numbers: Sequence[int]
    ) -> Run | None:
        """Returns a function that launches a kernel; None where there is none."""
        return self.runtime.kernel(name, tuple(shape), dtype, numbers, self.id)


_ELEMENTWISE = (
    "abs", "add", "and", "cosine", "divide", "exponential", "log", "logistic", "maximum", "minimum",
    "multiply", "negate", "not", "or", "rsqrt", "sine", "sqrt", "subtract", "tanh", "xor",
)  # fmt: skip


def kernels(runtime: Runtime) -> Mapping[str, Kernel]:
    """Returns the table: operation name to the function that reads the operation."""
    others = {
        "broadcast_in_dim": _broadcast,
        "compare": _compare,
        "convert": _convert,
        "dot_general": _dot,
        "iota": _iota,
        "reduce": _reduce,
        "reshape": _reshape,
        "select": _select,
        "transpose": _transpose,
    }
    table = {**dict.fromkeys(_ELEMENTWISE, _elementwise), **others}
    return {f"stablehlo.{name}": partial(_make, make, runtime) for name, make in table.items()}


def _make(
    make: Callable[[Device, Operation], Run | None], runtime: Runtime, op: Operation, device: int
) -> Run | None:
    return make(Device(runtime, device), op)


def _name(op: Operation) -> str:
    return op.name.removeprefix("stablehlo.")


def _elementwise(device: Device, op: Operation) -> Run | None:
    name = f"{_name(op)}.{op.operand_types[0].dtype}"
    return device.kernel(name, op.shape, op.dtype, [prod(op.shape)])


def _compare(device: Device, op: Operation) -> Run | None:
    if op.word("compare_type") == "TOTALORDER":
        return None
    how = op.word("comparison_direction").lower()
    name = f"compare_{how}.{op.operand_types[0].dtype}"
    return device.kernel(name, op.shape, op.dtype, [prod(op.shape)])


def _convert(device: Device, op: Operation) -> Run | None:
    if op.operand_types[0].dtype == op.dtype:
        return _same
    name = f"convert.{op.operand_types[0].dtype}.{op.dtype}"
    return device.kernel(name, op.shape, op.dtype, [prod(op.shape)])


def _same(x: DeviceArray) -> DeviceArray:
    return x


def _select(device: Device, op: Operation) -> Run | None:
    each = int(op.operand_types[0].shape == op.shape)
    numbers = [prod(op.shape), each]
    return device.kernel(f"select.{op.dtype.itemsize}", op.shape, op.dtype, numbers)


def _iota(device: Device, op: Operation) -> Run | None:
    shape, dimension = op.shape, op.integer("iota_dimension")
    numbers = [prod(shape), shape[dimension], prod(shape[dimension + 1 :])]
    return device.kernel(f"iota.{op.dtype}", shape, op.dtype, numbers)


def _reshape(device: Device, op: Operation) -> Run:
    shape = op.shape
    return lambda x: DeviceArray(x.memory, shape, x.dtype, x.device)


def _strides(shape: Sequence[int]) -> list[int]:
    """Returns how many elements apart the neighbours of each dimension are."""
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _move(device: Device, shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Run | None:
    numbers = [len(shape), *shape, *strides]
    return device.kernel(f"move.{dtype.itemsize}", shape, dtype, numbers)


def _broadcast(device: Device, op: Operation) -> Run | None:
    given = op.operand_types[0].shape
    strides = [0] * len(op.shape)
    places = op.ints("broadcast_dimensions")
    for size, place, stride in zip(given, places, _strides(given), strict=True):
        strides[place] = stride if size > 1 else 0
    return _move(device, op.shape, strides, op.dtype)


def _transposed(
    device: Device, shape: Sequence[int], order: Sequence[int], dtype: Any
) -> Run | None:
    if list(order) == sorted(order):
        return _same
    strides = _strides(shape)
    return _move(device, [shape[d] for d in order], [strides[d] for d in order], dtype)


def _transpose(device: Device, op: Operation) -> Run | None:
    return _transposed(device, op.operand_types[0].shape, op.ints("permutation"), op.dtype)


def _reduce(device: Device, op: Operation) -> Run | None:
    if len(op.ir.operands) != 2:
        return None
    body = single_operation(op.ir.regions[0].blocks[0]).removeprefix("stablehlo.")
    shape, reduced = op.operand_types[0].shape, op.ints("dimensions")
    strides = _strides(shape)
    numbers = [len(shape) - len(reduced), len(reduced)]
    for dimensions in ([d for d in range(len(shape)) if d not in reduced], reduced):
        numbers += [shape[d] for d in dimensions] + [strides[d] for d in dimensions]
    return device.kernel(f"reduce_{body}.{op.dtype}", op.shape, op.dtype, numbers)


def _dot(device: Device, op: Operation) -> Run | None:
    left, right = op.operand_types
    if not left.dtype == right.dtype == op.dtype or op.has("algorithm"):
        return None
    found = dot_dimensions(op)
    products, terms = (prod(left.shape[d] for d in dims[0]) for dims in (found.batch, found.summed))
    rows = prod(left.shape[d] for d in found.free[0])
    columns = prod(right.shape[d] for d in found.free[1])
    numbers = [products, rows, terms, columns]
    multiply = device.kernel(f"dot.{op.dtype}", op.shape, op.dtype, numbers)
    orders = (
        [*found.batch[0], *found.free[0], *found.summed[0]],
        [*found.batch[1], *found.summed[1], *found.free[1]],
    )
    x_moved = _transposed(device, left.shape, orders[0], left.dtype)
    y_moved = _transposed(device, right.shape, orders[1], right.dtype)
    if multiply is None or x_moved is None or y_moved is None:
        return None
    return lambda x, y: multiply(x_moved(x), y_moved(y))
