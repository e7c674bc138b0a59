"""Mutants of the order of dimensions in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plugrt.interface import Layout, TensorType
from plugrt_sdk.conformance.mutants.faults import Faults
from plugrt_sdk.executable import BackendExecutable
from plugrt_sdk.loaded_executable import BackendLoadedExecutable


def _reversed(self: Any, tensor_type: TensorType) -> Layout:
    """States column-major for a row-major array."""
    return Layout(tuple(reversed(range(len(tensor_type.shape)))), ())


def _row_major(self: BackendExecutable) -> list[Layout]:
    return [Layout.row_major(len(kind.shape)) for kind in self.compiled.output_types]


def _chosen_otherwise(self: BackendExecutable) -> list[Layout]:
    """States another order than the one that it chose, if it was free to choose."""
    said = BackendExecutable.output_layouts(self)
    if b"auto" not in self.compiled.program.code:
        return [*said]
    return [Layout(layout.major_to_minor[::-1], ()) for layout in said]


def _row_major_parameters(self: BackendExecutable) -> list[Layout]:
    return [Layout.row_major(len(kind.shape)) for kind in self.compiled.input_types]


def _take_any(self: BackendLoadedExecutable, arguments: Any) -> Any:
    return [list(shards) for shards in arguments]


def _scrambled(self: Any, array: Any, device: int, layout: Layout) -> Any:
    """Copies bytes in the source's order, as xla-cpu-pjrt 0.0.1 does."""
    flat = np.ascontiguousarray(array).reshape(-1)
    order = layout.major_to_minor
    turned = flat.reshape([array.shape[i] for i in order])
    return turned.transpose(np.argsort(order))


MUTANTS: Mapping[str, Faults] = {
    "layouts.default": Faults(client={"default_layout": _reversed}),
    "layouts.results": Faults(executable={"output_layouts": _row_major}),
    "layouts.chosen": Faults(executable={"output_layouts": _chosen_otherwise}),
    "layouts.parameters": Faults(executable={"parameter_layouts": _row_major_parameters}),
    "layouts.parameters.refused": Faults(loaded={"_check": _take_any}),
    "layouts.put": Faults(backend={"put_in_layout": _scrambled}),
}
