"""MLIR passes that modules go through before they are handed to a backend."""

from __future__ import annotations

from plugrt.stablehlo.bindings import ir, passmanager


def run_passes(module: ir.Module, pipeline: str) -> None:
    """Runs a textual pass pipeline on a module, in place."""
    with module.context:
        passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)


def legalize_chlo(module: ir.Module) -> None:
    """Rewrites CHLO operations to StableHLO, which is all that crosses the plugin boundary.

    Backends need not support CHLO: https://github.com/jax-ml/jax/issues/15608.
    """
    run_passes(module, "func.func(chlo-legalize-to-stablehlo)")


def drop_uncalled(module: ir.Module) -> None:
    """Removes the private functions that nothing in a module calls."""
    run_passes(module, "symbol-dce")
