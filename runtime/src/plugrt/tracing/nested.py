"""Calling a jitted function while another is traced: one function of the module a signature."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from plugrt.execution import tree
from plugrt.stablehlo.bindings import func, ir
from plugrt.tracing.emit import as_tracer
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer


@dataclass(frozen=True, slots=True)
class _Inner:
    """A function of the module: its symbol, what it closed over, and the form of its results."""

    symbol: str
    captured: tuple[Tracer, ...]
    results: tuple[ir.Type, ...]
    weak: tuple[bool, ...]
    out_tree: tree.PyTreeSpec


def call_in_trace(
    trace: Trace,
    function: Callable[..., Any],
    leaves: Sequence[Any],
    names: Sequence[str],
    title: str,
    key: Any,
    inline: bool,
) -> Any:
    """Returns what ``function`` (of flat leaves) gives, as a call to a function of the module.

    Calls with the same ``key`` and argument types share one function, unless it closes over
    values of the function around it. With ``inline`` the body is put in place.
    """
    tracers = [
        as_tracer(leaf, f"argument {name} of {title!r}")
        for leaf, name in zip(leaves, names, strict=True)
    ]
    if inline:
        return function(*tracers)
    types = tuple((t.shape, t.dtype, t.weak) for t in tracers)
    inner = trace.functions.get((key, types))
    if inner is None:
        inner = _define(trace, function, tracers, names, title)
        if not inner.captured:
            trace.functions[key, types] = inner
    operands = [*tracers, *inner.captured]
    call = func.CallOp(
        list(inner.results),
        ir.FlatSymbolRefAttr.get(inner.symbol),
        [o.value for o in operands],
        loc=trace.location(),
    )
    outputs = [
        Tracer(value, trace, weak=weak)
        for value, weak in zip(call.operation.results, inner.weak, strict=True)
    ]
    return tree.unflatten(inner.out_tree, outputs)


def _define(
    trace: Trace,
    function: Callable[..., Any],
    arguments: Sequence[Tracer],
    names: Sequence[str],
    title: str,
) -> _Inner:
    types = [trace.mlir_type(a.shape, a.dtype) for a in arguments]
    trace.inner_count += 1
    symbol = "".join(c if c.isalnum() or c == "_" else "_" for c in title)
    symbol = f"{symbol}_{trace.inner_count}"
    made = func.FuncOp(
        symbol, ir.FunctionType.get(types, []), ip=ir.InsertionPoint(trace.module.body)
    )
    made.attributes["sym_visibility"] = ir.StringAttr.get("private")
    try:
        block = made.add_entry_block([ir.Location.name(name) for name in names])
        with trace.inside(block, isolated=True) as scope:
            tracers = [
                Tracer(value, trace, weak=a.weak, origin=f"argument {name} of {title!r}")
                for value, a, name in zip(block.arguments, arguments, names, strict=True)
            ]
            flat, out_tree = tree.flatten(function(*tracers))
            outputs = [as_tracer(leaf, f"an output of {title!r}") for leaf in flat]
            values = [o.value for o in outputs]
            func.ReturnOp(values, loc=trace.location())
    except BaseException:
        made.erase()  # a caller that catches the exception goes on with a sound module
        raise
    results = tuple(v.type for v in values)
    kind = ir.FunctionType.get([a.type for a in block.arguments], list(results))
    made.attributes["function_type"] = ir.TypeAttr.get(kind)
    captured = tuple(tracer for tracer, _ in scope.captured.values())
    return _Inner(symbol, captured, results, tuple(o.weak for o in outputs), out_tree)
