"""A program's shardings of arguments and results, for hosts that assemble arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plugrt.errors import Unimplemented
from plugrt.interface import Executable, Program
from plugrt.programs.parsing import has_bindings

Shardings = tuple[bytes, ...]


def shardings_of(
    executable: Executable, program: Program | None
) -> tuple[Shardings | None, Shardings | None]:
    """Returns a serialised ``xla.OpSharding`` for each parameter and for each result.

    Uses the shardings that the backend states, else those in a partitioned program, where a result
    without one is replicated. Returns None if neither states any.
    """
    parameters, outputs = _ask(executable.parameter_shardings), _ask(executable.output_shardings)
    if outputs is None and program is not None and executable.num_partitions > 1:
        return _read(program) or (parameters, None)
    return parameters, outputs


def _ask(question: Callable[[], Sequence[bytes]]) -> Shardings | None:
    try:
        return tuple(question())
    except Unimplemented:
        return None


def _read(program: Program) -> tuple[Shardings, Shardings] | None:
    if program.format != "mlir" or not has_bindings():
        return None
    from plugrt.stablehlo.entry_shardings import main_shardings
    from plugrt.stablehlo.modules import parse

    try:
        stated = main_shardings(parse(program.code, program.name))
    except Unimplemented:  # partial sums, which hosts name themselves
        return None
    return stated and (tuple(stated[0]), tuple(stated[1]))
