"""Calls of jitted functions while tracing: each becomes a function of the outer module.

Modules that were made elsewhere are inserted likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.execution.arrays.arguments import TracedType, widen_numbers
from plugrt.execution.trees import pytrees
from plugrt.stablehlo.attributes import symbol_of
from plugrt.stablehlo.bindings import func, ir
from plugrt.stablehlo.dead_code import remove_dead_code
from plugrt.stablehlo.modules import insert_functions
from plugrt.stablehlo.regions import inline_block, operations_within
from plugrt.tracing.captures import as_tracer
from plugrt.tracing.emit import constant, strong
from plugrt.tracing.operation_claims import AnyClaim
from plugrt.tracing.staged import Staged
from plugrt.tracing.trace import Trace
from plugrt.tracing.tracer import Tracer, with_own_tracers


def types_in_trace(tracers: Sequence[Tracer]) -> tuple[TracedType, ...]:
    """Returns the argument types of a nested call; Python numbers remain numbers."""
    types = [(tracer.shape, tracer.dtype, tracer.weak) for tracer in tracers]
    kinds = widen_numbers(types, [_is_number(tracer) for tracer in tracers])
    return tuple([(*kind, x.sharding_type) for kind, x in zip(kinds, tracers, strict=True)])


def _is_number(tracer: Tracer) -> bool:
    return type(tracer.scalar) is bool or (tracer.weak and tracer.scalar is not None)


def call_in_trace(trace: Trace, staged: Staged, arguments: Sequence[Tracer]) -> object:
    """Returns the results of an already traced function, called within another trace.

    The module gets the function once. Unused arguments are not passed; captured arrays become
    operands of the outer program.
    """
    plan = staged.plan
    trace.reads.update(plan.reads)
    closed_over = [as_tracer(data) for data in plan.constants]
    taken = [arguments[i] for i in plan.kept]
    typed = [
        _retype_scalar(tracer, staged.parameters[i].type.dtype)
        for tracer, i in zip(taken, plan.kept, strict=True)
    ]
    results: list[Tracer] = []
    if plan.is_trivial:
        for claim in staged.marks:
            trace.claims.add(claim)
    else:
        symbol, claims = find_symbol(trace, staged)
        call = func.CallOp(
            [trace.mlir_type(t.shape, t.dtype) for t in staged.result_types],
            ir.FlatSymbolRefAttr.get(symbol),
            [operand.value for operand in (*typed, *closed_over[: plan.fed])],
            loc=trace.location(),
        )
        trace.claims.add_to(call.operation, claims)
        if trace.types is not None:
            for (origin, i), sharding in zip(plan.sources, staged.out_shardings, strict=False):
                if origin == "result":
                    trace.types.set(call.operation.results[i], sharding)
        results = [Tracer(value, trace) for value in call.operation.results]
    literals = [constant(data) for data in plan.literals]
    sources = {
        "result": results,
        "argument": arguments,
        "constant": closed_over,
        "literal": literals,
    }
    given = [*arguments, *closed_over]
    outputs = [
        with_own_tracers(_restore_weakness(sources[origin][i], t.dtype, weak), given)
        for (origin, i), t, weak in zip(
            plan.sources, staged.output_types, staged.weak_outputs, strict=True
        )
    ]
    if staged.out_memory_kinds:
        placed = zip(outputs, staged.out_memory_kinds, strict=True)
        outputs = [output.in_memory(kind) for output, kind in placed]
    return pytrees.unflatten(staged.out_tree, outputs)


def _restore_weakness(tracer: Tracer, dtype: np.dtype[np.generic], weak: bool) -> Tracer:
    """Returns an output with the dtype and weakness that the function alone would return."""
    tracer = _retype_scalar(tracer, dtype)
    if tracer.weak == weak:
        return tracer
    if weak:
        return Tracer(tracer.value, tracer.trace, weak=True)
    return strong(tracer)


def _retype_scalar(tracer: Tracer, dtype: np.dtype[np.generic]) -> Tracer:
    # A Python scalar gets 64 bits beside 64-bit floats.
    if tracer.dtype == dtype:
        return tracer
    return Tracer.from_literal(tracer.trace, tracer.scalar, dtype)


def find_symbol(trace: Trace, staged: Staged) -> tuple[str, Sequence[AnyClaim]]:
    """Returns the function's name in the module, and adds the function if it is missing.

    The second result are the function's claims that belong to none of its operations; the caller
    adds them to each call.
    """
    found = trace.functions.get(id(staged))
    if found is None:
        trace.uses_chlo |= staged.uses_chlo
        trace.asks_platform |= staged.asks_platform
        trace.numbers_replicas |= staged.numbers_replicas
        trace.callbacks.update(staged.callbacks)
        functions, main = add_functions(trace, staged.bytecode, staged.plan.name)
        claims = trace.claims.adopt(functions, staged.marks)
        found = trace.functions[id(staged)] = (staged, str(symbol_of(main)), claims)
    return found[1:]


def add_functions(trace: Trace, code: bytes, name: str) -> tuple[list[Any], Any]:
    """Adds the functions of a module, in bytecode, to the traced one; the second is its ``main``.

    They are private there, under names that are free; ``main`` is called after ``name``.
    """
    functions, main = insert_functions(trace.module, code, name, trace.inner_count)
    trace.inner_count += len(functions)
    return functions, main


def inline_main(
    trace: Trace,
    code: bytes,
    operands: Sequence[Tracer],
    name: str,
    claim_of: Callable[[ir.Operation], AnyClaim | None],
) -> tuple[Tracer, ...]:
    """Adds the operations of a module's ``main`` to the current block, and returns its results.

    ``code`` is bytecode. The module's other functions become functions of the traced one.
    ``claim_of`` returns the claim of an operation.
    """
    functions, main = add_functions(trace, code, name)
    for function in functions:
        for operation in operations_within(function.operation):
            if claim := claim_of(operation):
                trace.claims.add_to(operation, [claim])
    if b"chlo" in code:
        trace.uses_chlo = True
    [block] = main.regions[0].blocks
    remove_dead_code(trace.module, block, unswept=True)
    values = inline_block(block, [operand.value for operand in operands])
    results = tuple(Tracer(value, trace) for value in values)
    main.operation.erase()
    return results
