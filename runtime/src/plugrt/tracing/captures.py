"""`as_tracer`: converts arrays and host data to values of a trace, which captures them.

`embed_captured` makes them constants of a module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.array_making import snapshot
from plugrt.execution.arrays.array_types import is_registered, represent
from plugrt.execution.arrays.aval import sharding_type
from plugrt.execution.arrays.host_data import host_array, python_scalar, scalar_dtype
from plugrt.execution.transfers.host_values import HostConstant
from plugrt.execution.transfers.tree_puts import set_lift
from plugrt.stablehlo.bindings import hlo, ir
from plugrt.stablehlo.dead_code import erase_arguments
from plugrt.stablehlo.regions import functions_by_name
from plugrt.stablehlo.types import tensor_type
from plugrt.tracing.emit import active_trace, constant
from plugrt.tracing.entry import set_type
from plugrt.tracing.mlir_constants import dense_attribute
from plugrt.tracing.trace import Captured, current_trace
from plugrt.tracing.tracer import Tracer

_EMBED = 4096
"""Host constants up to this size in bytes are embedded; larger ones become parameters."""


def as_tracer(x: Any, name: str = "the value") -> Tracer:
    """Returns an array-like as a tracer of the current trace.

    Arrays and large host data become parameters of the program, small host data constants, Python
    scalars weak constants. Raises `NotAnArray` with ``name``.
    """
    if type(x) is Tracer:
        return x
    if type(x) is Array:
        return _capture(x)
    if type(x) is HostConstant:
        return _capture_constant(x)
    if type(x) in (bool, int, float, complex):
        return Tracer.from_literal(active_trace(), x, scalar_dtype(x))
    if isinstance(x, np.ndarray | np.generic):
        host = host_array(x, name)
        if host.nbytes <= _EMBED:
            return constant(host)
        return _capture_host(x, host)
    if (plain := python_scalar(x)) is not None:
        return as_tracer(plain)
    if is_registered(x):
        return as_tracer(represent(x, name), name)
    raise NotAnArray(
        f"{name} is of type {type(x).__module__}.{type(x).__qualname__}, which is not an array"
    )


def _lift(x: object) -> Tracer | None:
    return None if current_trace() is None else as_tracer(x)


set_lift(_lift)


def _capture(array: Array) -> Tracer:
    held = array._held()
    key = (id(held), id(array._aval))
    found = active_trace().captured.get(key)
    if found is None:
        return _add_parameter(held, snapshot(array), key)
    tracer: Tracer = found.tracer
    return tracer


def _capture_host(x: object, host: npt.NDArray[np.generic]) -> Tracer:
    trace = active_trace()
    found = trace.captured.get(id(x)) or trace.aliases.get(id(x))
    if found is not None:
        tracer: Tracer = found.tracer
        return tracer
    for inner in trace.captured.values():  # captured earlier by an inner function
        same = inner.data
        if type(same) is HostConstant and same.source is x and same.has_value(host):
            trace.aliases[id(x)] = inner._replace(source=x)
            known: Tracer = inner.tracer
            return known
    return _add_parameter(x, HostConstant(x, host))


def _capture_constant(constant: HostConstant) -> Tracer:
    """Returns a constant that an inner function captured; this trace captures equal ones once."""
    captured, source = active_trace().captured, constant.source
    found = captured.get(id(constant)) or (captured.get(id(source)) if source is not None else None)
    if found is None or not (found.data is constant or constant.has_value(found.data.data)):
        return _add_parameter(constant, constant)
    tracer: Tracer = found.tracer
    return tracer


def _add_parameter(source: object, data: Array | HostConstant, key: object = None) -> Tracer:
    trace = active_trace()
    root = trace.root
    value = root.block.add_argument(trace.mlir_type(data.shape, data.dtype), trace.location())
    if type(data) is Array and (sharding := sharding_type(data._aval)) is not None:
        trace.typed_over(sharding.mesh).set(value, sharding)
    tracer = Tracer(value, trace, weak=type(data) is Array and data._aval.weak)
    tracer.scope = root
    trace.captured[key or id(source)] = Captured(source, data, value, tracer)
    return tracer


def captured_value(source: object) -> ir.Value:
    """Returns a captured array or host constant as a constant at the current place; reads it."""
    return host_value(source.data if isinstance(source, HostConstant) else np.asarray(source))


def host_value(data: npt.NDArray[np.generic]) -> ir.Value:
    """Returns a host array as a constant at the current place."""
    value: ir.Value = hlo.constant(dense_attribute(data, tensor_type(data.shape, data.dtype)))
    return value


def embed_captured(module: ir.Module, kept: int, captured: Sequence[object]) -> None:
    """Replaces all parameters but the first ``kept``, the captured values, by constants.

    Reads ``captured``, arrays and host constants, to the host.
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
