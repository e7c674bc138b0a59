"""Modules that were made elsewhere, added to the one that is being traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plugrt.stablehlo.bindings import ir
from plugrt.stablehlo.functions import insert_functions
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer


def add_functions(trace: Trace, code: bytes, name: str) -> Any:
    """Adds the functions of a module, in bytecode, to the traced one, and returns its ``main``.

    They are private there, under names that are free; ``main`` is called after ``name``.
    """
    main, trace.inner_count = insert_functions(trace.module, code, name, trace.inner_count)
    return main


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
