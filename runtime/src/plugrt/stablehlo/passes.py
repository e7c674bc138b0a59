"""MLIR passes that modules go through before they are handed to a backend."""

from __future__ import annotations

from plugrt.stablehlo.bindings import ir, passmanager
from plugrt.stablehlo.compare_types import state_compare_types
from plugrt.stablehlo.modules import bytecode, parse
from plugrt.stablehlo.regions import operations_within
from plugrt.stablehlo.scans import lower_scans


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Runs a textual pass pipeline on a module, in place."""
    with module.context:
        passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)


def legalize_chlo(module: ir.Module) -> None:
    """Rewrites CHLO operations to StableHLO, which is all that crosses the plugin boundary.

    Backends need not support CHLO: https://github.com/jax-ml/jax/issues/15608.
    """
    found = [op for op in operations_within(module.operation) if op.name.startswith("chlo.")]
    # Functions of one float compare no integers; the walk costs 6 us an operation.
    compares = any(len(op.operands) != 1 or len(op.results) != 1 for op in found)
    lower_scans(module, [op for op in found if op.name == "chlo.scan"])
    run_passes(module, "func.func(chlo-legalize-to-stablehlo)")
    if compares:
        state_compare_types(module)


def drop_uncalled(module: ir.Module) -> None:
    """Removes the private functions that nothing in a module calls."""
    run_passes(module, "symbol-dce")


def strip_locations(code: bytes, name: str = "<program>") -> bytes:
    """Returns a module, in any form that `parse` reads, as bytecode without lines and names."""
    module = parse(code, name)
    run_passes(module, "strip-debuginfo")
    return bytecode(module)
