"""Text, costs and graph of an optimised program: the backend's own, or through jaxlib."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from plugrt.errors import MissingTraceExtra, Unimplemented
from plugrt.hlo_proto import read_module
from plugrt.interface import Executable, OptionValue, Program
from plugrt.xla_environment import quiet_logging

ESTIMATE = "XLA's HloCostAnalysis of the optimised program, in jaxlib; custom calls count as 0"


def optimized_text(executable: Executable) -> str:
    """Returns the optimised program as text: the backend's own, or its HLO as jaxlib prints it.

    Raises `Unimplemented` when the backend gives neither, and `MissingTraceExtra` without jaxlib.
    """
    try:
        return executable.as_text()
    except Unimplemented:
        text: str = _module(executable.optimized_program()).to_string()
        return text


def cost_analysis(executable: Executable) -> tuple[Mapping[str, OptionValue], str]:
    """Returns ``flops``, ``bytes accessed`` and so on, and whose figures they are.

    They are the backend's, or, where it states none, what jaxlib counts in the optimised program
    (`ESTIMATE`). Raises `Unimplemented` and `MissingTraceExtra` as `optimized_text` does.
    """
    try:
        return executable.cost_analysis(), "the backend"
    except Unimplemented:
        return estimate_cost(_module(executable.optimized_program())), ESTIMATE


def estimate_cost(module: Any) -> dict[str, OptionValue]:
    """Returns ``flops``, ``bytes accessed`` and so on, as XLA counts them in an ``HloModule``."""
    xla_client = importlib.import_module("jaxlib.xla_client")
    private = importlib.import_module("jaxlib._jax")
    # The count is the same on every client; this one starts in a millisecond.
    return dict(private.hlo_module_cost_analysis(xla_client.make_cpu_client(), module))


def optimized_graph(executable: Executable) -> str:
    """Returns the optimised program as a Graphviz graph: `hlo_graph`, `module_graph` for MLIR.

    Raises `Unimplemented` when the backend gives no program, or one in another format.
    """
    program = executable.optimized_program()
    if program.format == "mlir":
        from plugrt.stablehlo.module_graph import module_graph
        from plugrt.stablehlo.modules import parse

        return module_graph(parse(program.code, program.name), program.name)
    from plugrt.stablehlo.hlo_graph import hlo_graph

    return hlo_graph(program)


def _module(program: Program) -> Any:
    """Returns jaxlib's ``HloModule`` of a program in a format that `read_module` takes."""
    content = bytes(read_module(program))
    return _hlo_module_class().from_serialized_hlo_module_proto(content)


def _hlo_module_class() -> Any:
    # jaxlib 0.10.2 has the class in jaxlib._hlo and no longer in jaxlib._jax.
    for name in ("jaxlib._hlo", "jaxlib._jax"):
        try:
            with quiet_logging():
                module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, "HloModule"):
            return module.HloModule
    raise MissingTraceExtra(
        'reading an optimised HLO program needs jaxlib: pip install "plugrt[trace]"'
    )
