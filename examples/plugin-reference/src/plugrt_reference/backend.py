"""`Reference`: devices on which StableHLO's reference interpreter runs programs.

It is slow and independent of XLA: its results are those that the StableHLO specification defines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.bindings import MLIRError, hlo, ir
from plugrt.stablehlo.types import element_type, ir_type_to_tensor_type
from plugrt_sdk import Backend, read_module

HostArray = npt.NDArray[Any]
Launch = Callable[[Sequence[Sequence[HostArray]]], list[list[HostArray]]]

DTYPES = frozenset(
    np.dtype(name)
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64")
)  # fmt: skip
"""The dtypes of the interpreter's Python bindings. A complex result crashes the process."""
_NAMES = """abs add and atan2 bitcast_convert broadcast_in_dim case cbrt ceil clamp compare complex
concatenate constant convert convolution cosine count_leading_zeros divide dot_general
dynamic_slice dynamic_update_slice exponential exponential_minus_one floor gather
get_tuple_element if imag iota is_finite log log_plus_one logistic maximum minimum multiply
negate not optimization_barrier or pad popcnt power real reduce reduce_precision reduce_window
remainder reshape return reverse round_nearest_afz round_nearest_even rsqrt scatter select
select_and_scatter shift_left shift_right_arithmetic shift_right_logical sign sine slice sort
sqrt subtract tan tanh transpose tuple while xor"""
OPERATIONS = frozenset(_NAMES.split())
"""The operations that the interpreter supports. Any other crashes the process."""


class Reference(Backend):
    """A client with any number of devices; a program runs on one. Handles are NumPy arrays.

    The keyword arguments are create options: ``PLUGRT_CLIENT_CREATE_OPTIONS=reference:devices:2``.
    """

    platform, version = "reference", "1"

    def __init__(self, devices: int = 1) -> None:
        self._count = devices
        self.live = 0
        """The number of arrays on the devices."""
        self.closed = False

    def devices(self) -> Sequence[str]:
        return ["StableHLO interpreter"] * self._count

    def put(self, array: HostArray, device: int) -> HostArray:
        _require(array.dtype, "an array")
        self.live += 1
        return array.copy()  # the caller may change its memory later

    def get(self, handle: HostArray) -> HostArray:
        return handle

    def delete(self, handle: HostArray) -> None:
        self.live -= 1

    def close(self) -> None:
        self.closed = True

    def compile(self, program: Program, options: CompileOptions) -> Launch:
        if options.num_replicas * options.num_partitions > 1:
            raise Unimplemented("the reference backend runs programs on one device")
        module = read_module(program)
        _require_types(module)
        _require_operations(module)

        def launch(arguments: Sequence[Sequence[HostArray]]) -> list[list[HostArray]]:
            results = _evaluate(module, [shards[0] for shards in arguments])
            self.live += len(results)
            return [[result] for result in results]

        return launch


def _require(dtype: np.dtype[Any], what: str) -> None:
    if dtype not in DTYPES:
        names = ", ".join(sorted(d.name for d in DTYPES))
        raise Unimplemented(f"{what} has the dtype {dtype}; the reference backend has {names}")


def _require_types(module: ir.Module) -> None:
    """Rejects a program with arguments or results of other dtypes, at compile time."""
    with module.context:
        [main] = [op for op in module.body.operations if op.name.value == "main"]
        for place, types in (("argument", main.type.inputs), ("result", main.type.results)):
            for i, kind in enumerate(types):
                _require(ir_type_to_tensor_type(kind).dtype, f"{place} {i} of the program")


def _require_operations(module: ir.Module) -> None:
    """Rejects a program with operations, at any depth, that the interpreter does not support."""
    lacking = set()

    def look(op: ir.Operation) -> ir.WalkResult:
        dialect, _, name = op.name.partition(".")
        if dialect == "stablehlo" and name not in OPERATIONS:
            lacking.add(op.name)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(look)
    if lacking:
        raise Unimplemented(f"the reference interpreter lacks {', '.join(sorted(lacking))}")


def _evaluate(module: ir.Module, arguments: Sequence[HostArray]) -> list[HostArray]:
    """Runs ``main``; the interpreter's arguments and results are MLIR attributes."""
    with module.context:
        constants = [
            ir.DenseElementsAttr.get(a, type=element_type(a.dtype), shape=list(a.shape))
            for a in arguments
        ]
        try:
            results = hlo.eval_module(module, constants)
        except (MLIRError, ValueError) as error:
            raise Unimplemented(f"the reference interpreter cannot run it: {error}") from error
        return [np.array(r).reshape(ir_type_to_tensor_type(r.type).shape) for r in results]
