"""`finish_module`: converts a traced module to the form that backends accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from plugrt.errors import InvalidOperation
from plugrt.interface import HostCallback
from plugrt.stablehlo.bindings import MLIRError, ir
from plugrt.stablehlo.callback_order import (
    callback_number,
    has_ordered,
    host_callbacks,
    order_callbacks,
)
from plugrt.stablehlo.diagnostics import explain
from plugrt.stablehlo.modules import bytecode
from plugrt.stablehlo.passes import legalize_chlo
from plugrt.stablehlo.regions import functions_by_name
from plugrt.stablehlo.replica_groups import number_replicas
from plugrt.stablehlo.types import drop_key_types
from plugrt.tracing.lowering import lower_operations
from plugrt.tracing.lowering_rules import Rules
from plugrt.tracing.operation_claims import remove_marks


class Finished(TypedDict):
    """The fields of a `Staged` that depend on the finished module."""

    callbacks: Mapping[int, HostCallback]
    source: bytes | None
    ordered: bool


def finish_module(
    module: ir.Module,
    name: str,
    callbacks: Mapping[int, HostCallback],
    uses_chlo: bool,
    replicas: int = 0,
    marked: bool = False,
    rules: Rules | None = None,
    has_keys: bool = False,
) -> Finished:
    """Converts a traced module, in place, to the form that backends accept, and verifies it.

    Replaces CHLO's operations by StableHLO's, gives ordered calls of Python functions their tokens,
    and numbers ``replicas``, if any. With ``marked``, removes the marks of claims; with
    ``has_keys``, replaces keys by their words. With ``rules``, a platform's, replaces operations
    that have any by the rules' results, and plugrt's own operations by their definitions.
    """
    source = bytecode(module) if uses_chlo or replicas or marked or has_keys else None
    if has_keys:
        drop_key_types(module)
    if marked:
        remove_marks(module)
    if replicas:
        number_replicas(module, replicas)
    called = dict(callbacks)
    if rules is not None:
        called |= lower_operations(module, name, rules, uses_chlo)
    elif uses_chlo:
        legalize_chlo(module)
    numbers = {callback_number(call) for call in host_callbacks(module)} if called else set()
    ordered = False
    if numbers:
        block = functions_by_name(module)["main"].entry_block
        ordered = has_ordered(module, block)
        if ordered:
            source = source or bytecode(module)
            order_callbacks(module, block)
    _verify(module, name)
    used = {n: called[n] for n in sorted(numbers)}
    return {"callbacks": used, "source": source, "ordered": ordered}


def _verify(module: ir.Module, name: str) -> None:
    """Raises `InvalidOperation` for errors that MLIR finds only in the whole module."""
    try:
        module.operation.verify()
    except MLIRError as error:
        raise InvalidOperation(
            f"the trace of {name!r} is not valid StableHLO: {explain(error)}"
        ) from error
