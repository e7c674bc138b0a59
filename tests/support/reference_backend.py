"""A backend that runs the StableHLO reference interpreter: slow, and independent of XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plugrt.errors import Unimplemented
from plugrt.interface import CompileOptions, Program
from plugrt.stablehlo.artifacts import parse
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.types import element_type, tensor_type_of
from plugrt_sdk import Backend


class Reference(Backend):
    """N devices, one program at a time, 32- and 64-bit dtypes only."""

    platform, version = "reference", "1"

    def __init__(self, devices: int = 1) -> None:
        self._count = devices
        self.live = 0
        self.closed = False

    def devices(self) -> Sequence[str]:
        return ["StableHLO interpreter"] * self._count

    def put(self, array: np.ndarray[Any, Any], device: int) -> Any:
        self.live += 1
        return array.copy()

    def get(self, handle: Any) -> np.ndarray[Any, Any]:
        result: np.ndarray[Any, Any] = handle
        return result

    def delete(self, handle: Any) -> None:
        self.live -= 1

    def close(self) -> None:
        self.closed = True

    def compile(self, program: Program, options: CompileOptions) -> Any:
        if options.num_replicas * options.num_partitions > 1:
            raise Unimplemented("the reference backend runs programs on one device")
        module = parse(program.code)

        def launch(arguments: Sequence[Sequence[Any]]) -> list[list[Any]]:
            with module.context:
                values = [
                    ir.DenseElementsAttr.get(a, type=element_type(a.dtype), shape=list(a.shape))
                    for (a,) in arguments
                ]
                results = hlo.eval_module(module, values)
                outputs = [[np.array(r).reshape(tensor_type_of(r.type).shape)] for r in results]
            self.live += len(outputs)
            return outputs

        return launch
