"""How a program's arguments and results lie on its devices, for hosts that put arrays together."""

from __future__ import annotations

from collections.abc import Sequence

from plugrt.errors import Unimplemented
from plugrt.interface import Executable, Program
from plugrt.programs.loading import has_bindings

Shardings = tuple[bytes, ...]


def shardings_of(
    executable: Executable, program: Program | None
) -> tuple[Shardings | None, Shardings | None]:
    """Returns a serialised ``xla.OpSharding`` for each parameter and for each result.

    Those that the backend states; else those that a partitioned program states, in which a result
    without one is whole on every device. None where there is nothing to say.
    """
    try:
        return tuple(executable.parameter_shardings()), tuple(executable.output_shardings())
    except Unimplemented:
        stated = _read(program) if program and executable.num_partitions > 1 else None
    return (None, None) if stated is None else (tuple(stated[0]), tuple(stated[1]))


def _read(program: Program) -> tuple[Sequence[bytes], Sequence[bytes]] | None:
    if program.format != "mlir" or not has_bindings():
        return None
    from plugrt.stablehlo.modules import parse
    from plugrt.stablehlo.op_shardings import main_shardings

    return main_shardings(parse(program.code, program.name))
