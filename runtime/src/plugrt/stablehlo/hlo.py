"""HLO through jaxlib: text is parsed; an optimised program has text, costs and a graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plugrt.base.xla_environment import quiet_logging
from plugrt.errors import MissingTraceExtra, ProgramError, Unimplemented
from plugrt.interface import Executable, OptionValue, Program
from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt.wire.hlo_proto import read_module

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
    modules: list[Any] = import_native("jaxlib.xla_client", "jaxlib._jax")
    xla_client, private = modules
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


def parse_hlo_text(text: bytes, title: str) -> bytes:
    """Returns the serialised ``HloModuleProto`` of HLO text.

    Raises `ProgramError` with XLA's line and column.
    """
    try:
        module = _hlo_bindings().hlo_module_from_text(text.decode())
    except (RuntimeError, ValueError) as error:
        found = re.findall(r"(\d+):(\d+): error: ([^\n]*)", str(error))
        line, column = map(int, found[0][:2]) if found else (None, None)
        said = "; ".join(dict.fromkeys(words for *_, words in found))
        words = f"{line}:{column}: {said}" if found else str(error)
        raise ProgramError(f"{title} is no valid HLO text: {words}", line, column) from error
    code: bytes = module.as_serialized_hlo_module_proto()
    return code


def _module(program: Program) -> Any:
    """Returns jaxlib's ``HloModule`` of a program in a format that `read_module` takes."""
    content = bytes(read_module(program))
    return _hlo_bindings().HloModule.from_serialized_hlo_module_proto(content)


def _hlo_bindings() -> Any:
    # jaxlib 0.10.2 has the classes in jaxlib._hlo and no longer in jaxlib._jax.
    for name in ("jaxlib._hlo", "jaxlib._jax"):
        try:
            with quiet_logging():
                [module] = import_native(name)
        except ImportError:
            continue
        if hasattr(module, "HloModule"):
            return module
    raise MissingTraceExtra('reading an HLO program needs jaxlib: pip install "plugrt[trace]"')
