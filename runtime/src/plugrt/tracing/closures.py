"""`embed_captured`: what a traced function closed over, as constants of its module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.execution.transfers.host_constants import HostConstant
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.dead_code import erase_arguments
from plugrt.stablehlo.regions import functions_by_name
from plugrt.stablehlo.types import tensor_type
from plugrt.tracing.entry import set_type
from plugrt.tracing.mlir_constants import dense_attribute


def captured_value(source: Any) -> ir.Value:
    """Returns a captured array or host constant as a constant at the current place; reads it."""
    return host_value(source.data if isinstance(source, HostConstant) else np.asarray(source))


def host_value(data: npt.NDArray[Any]) -> ir.Value:
    """Returns a host array as a constant at the current place."""
    value: ir.Value = hlo.constant(dense_attribute(data, tensor_type(data.shape, data.dtype)))
    return value


def embed_captured(module: ir.Module, kept: int, captured: Sequence[Any]) -> None:
    """Makes constants of all parameters but the first ``kept``: those are what was captured.

    Reads ``captured``, which are arrays and host constants, from where they are.
    """
    main = functions_by_name(module)["main"]
    block = main.entry_block
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        for argument, source in zip([*block.arguments][kept:], captured, strict=True):
            argument.replace_all_uses_with(captured_value(source))
        erase_arguments(block, [True] * kept + [False] * len(captured))
        set_type(main, block)
        if captured and "arg_attrs" in main.attributes:
            attributes = [*ir.ArrayAttr(main.attributes["arg_attrs"])]
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes[:kept])
