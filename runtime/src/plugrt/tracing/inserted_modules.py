"""Modules that were made elsewhere, added to the one that is being traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.stablehlo.bindings import ir, register_shardy
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer


def add_functions(trace: Trace, code: bytes, name: str) -> Any:
    """Adds the functions of a module, in bytecode, to the traced one, and returns its ``main``.

    They are private there, under names that are free; ``main`` is called after ``name``.
    """
    # Each trace has a context of its own; bytecode goes from one to the other.
    if b"sdy" in code:  # names of dialects stand in bytecode as they are
        register_shardy(trace.context)
    module = ir.Module.parse(code, trace.context)
    symbols = ir.SymbolTable(module.operation)
    functions = [*module.body.operations]
    names = [*map(symbol_name, functions)]
    main = names.index("main")
    names[main] = _identifier(name)
    for i, function in enumerate(functions):  # first to names that no function here has
        _rename(module, symbols, function, f"{i}.renamed")
    for function, old in zip(functions, names, strict=True):
        trace.inner_count += 1
        _rename(module, symbols, function, f"{old.rstrip('_0123456789')}_{trace.inner_count}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for function in functions:
        # They are one for each argument and result, some of which dead code takes with it.
        for attributes in ("arg_attrs", "res_attrs"):
            if attributes in function.attributes:
                del function.attributes[attributes]
        trace.module.body.append(function)
    return functions[main]


def inline_main(
    trace: Trace, code: bytes, operands: Sequence[Tracer], name: str
) -> tuple[Tracer, ...]:
    """Adds what ``main`` of a module does where the trace is, and returns its results.

    ``code`` is bytecode. The module's other functions become functions of the traced one.
    """
    main = add_functions(trace, code, name)
    if b"chlo" in code:
        trace.uses_chlo = True
    [block] = main.regions[0].blocks
    for argument, operand in zip(block.arguments, operands, strict=True):
        argument.replace_all_uses_with(operand.value)
    here = ir.InsertionPoint.current
    *body, end = block.operations
    for operation in body:
        operation.operation.detach_from_parent()
        here.insert(operation)
    results = tuple(Tracer(value, trace) for value in end.operands)
    main.operation.erase()
    return results


def symbol_name(function: Any) -> str:
    """Returns the name of a function of a module."""
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _rename(module: ir.Module, symbols: ir.SymbolTable, function: Any, new: str) -> None:
    ir.SymbolTable.replace_all_symbol_uses(symbol_name(function), new, module.operation)
    symbols.set_symbol_name(function, new)


def _identifier(title: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in title)
