"""The custom call by which a program's results are moved to a memory, such as the host's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.regions import terminator

PLACE = "annotate_device_placement"
_PLACEMENT = "_xla_buffer_placement"


def place_results(main: Any, kinds: Sequence[str | None]) -> None:
    """Has each result of ``main`` of a kind of memory go through the call; as in JAX's programs.

    The attribute ``mhlo.memory_kind`` says where a caller expects the result, and moves nothing:
    with it alone XLA for GPUs computes the result in the device's memory.
    """
    end = terminator(main.regions[0].blocks[0])
    for i, kind in enumerate(kinds):
        if kind is not None:
            end.operands[i] = _place(end.operands[i], kind, ir.InsertionPoint(end))


def _place(value: Any, kind: str, where: Any) -> Any:
    placement = ir.DictAttr.get({_PLACEMENT: ir.StringAttr.get(kind)})
    call = ir.Operation.create(
        "stablehlo.custom_call",
        results=[value.type],
        operands=[value],
        attributes={
            "call_target_name": ir.StringAttr.get(PLACE),
            "has_side_effect": ir.BoolAttr.get(True),
            "mhlo.frontend_attributes": placement,
        },
        ip=where,
    )
    return call.results[0]
