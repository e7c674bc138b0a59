"""jaxlib's MLIR bindings, imported only here: ``ir``, ``hlo``, ``chlo``, ``func``."""

from __future__ import annotations

import atexit
from typing import Any

from plugrt.base.xla_environment import quiet_logging, require_mpi_wrapper
from plugrt.errors import MissingTraceExtra
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.processes.address_space import address_limit

try:
    require_mpi_wrapper()
    with quiet_logging():  # the first import of jaxlib in a process sets its log level
        import_native(
            "jaxlib.mlir.ir",
            "jaxlib.mlir.passmanager",
            "jaxlib.mlir.dialects.builtin",  # jaxlib imports it at its first operation
            "jaxlib.mlir.dialects.chlo",
            "jaxlib.mlir.dialects.func",
            "jaxlib.mlir.dialects.stablehlo",
            "jaxlib.mlir._mlir_libs._jax_mlir_ext",
        )
        from jaxlib.mlir import ir, passmanager
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, func
        from jaxlib.mlir.dialects import stablehlo as hlo
except ImportError as error:
    limit = address_limit()
    raise MissingTraceExtra(
        f"tracing and reading StableHLO need jaxlib's MLIR bindings, and importing them failed "
        f'({error}); install them with: pip install "plugrt[trace]"'
        + (f"; the address space is limited to {limit / 1e9:.2f} GB (ulimit -v)" if limit else "")
    ) from error

__all__ = [
    "MLIRError", "chlo", "func", "hlo", "ir", "new_context", "passmanager", "register_shardy",
    "shardy",
]  # fmt: skip

MLIRError = ir.MLIRError

_registry = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(_registry)
hlo.register_stablehlo_passes()


def _leave_contexts() -> None:
    """Leaves all contexts and locations of the thread at exit, since jaxlib frees them too late.

    It needs Python for that, and the process would abort. The context may be a user's, or one that
    an interrupt left entered.
    """
    # Workaround for jaxlib-context-at-exit
    while (context := ir.Context.current) is not None:
        context.__exit__(None, None, None)


atexit.register(_leave_contexts)


def new_context() -> ir.Context:
    """Returns a new context with the dialects that programs use.

    Each trace makes one, in half a millisecond. A shared context would keep every traced constant
    alive and would need locks between threads.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    context.append_dialect_registry(_registry)
    hlo.register_dialect(context)
    chlo.register_dialect(context)
    for name in ("func", "stablehlo", "chlo"):
        context.get_dialect_descriptor(name)
    return context


def shardy() -> Any:
    """Returns the bindings of Shardy's dialect, which only programs with shardings need."""
    return import_native("jaxlib.mlir.dialects.sdy")[0]


def register_shardy(context: ir.Context) -> None:
    """Adds Shardy's dialect, in which JAX states shardings, to a context.

    A context without it cannot read such a program: "dialect 'sdy' is unknown".
    """
    shardy().register_dialect(context)
