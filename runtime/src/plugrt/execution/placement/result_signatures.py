"""`result_signatures`: shape, dtype and sharding of the results of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from plugrt.execution.arrays.signature import Signature, intern_signature
from plugrt.execution.placement.launch_layouts import require_chosen
from plugrt.execution.placement.placement import Launch
from plugrt.interface import TensorType


class TracedResults(Protocol):
    """What a traced function says of its flat results."""

    @property
    def output_types(self) -> Sequence[TensorType]: ...
    @property
    def weak_outputs(self) -> Sequence[bool]: ...


def result_signatures(traced: TracedResults, launch: Launch) -> list[Signature]:
    """Returns the signature of each flat result: of all devices together, as callers get it."""
    return [
        intern_signature(
            sharding.whole_shape(t.shape) if launch.of_parts else t.shape,
            t.dtype,
            sharding,
            launch.committed,
            weak,
            require_chosen(launch.out_layout(i)),
        )
        for i, (t, sharding, weak) in enumerate(
            zip(traced.output_types, launch.out_shardings, traced.weak_outputs, strict=True)
        )
    ]
