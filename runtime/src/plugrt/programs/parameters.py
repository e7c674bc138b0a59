"""`parameter_types`: an executable's parameter types, read without jaxlib.

PJRT states the types of an executable's results, not those of its parameters, and backends compare
sizes only: integers given for floats would be read as other numbers.
"""

from __future__ import annotations

from plugrt.errors import Unimplemented
from plugrt.interface import Executable, TensorType
from plugrt.wire import hlo_proto


def parameter_types(executable: Executable) -> tuple[TensorType, ...] | None:
    """Returns the types of the parameters, None where the backend does not show its program.

    Also None for a program in another format than HLO, one whose parameters are tuples, and one
    that runs partitioned, whose parameters are then parts.
    """
    return local_parameter_types(executable) if executable.num_partitions == 1 else None


def local_parameter_types(executable: Executable) -> tuple[TensorType, ...] | None:
    """Returns the types of the parameters on one device, as `parameter_types` reads them."""
    try:
        program = executable.optimized_program()
    except Unimplemented:
        return None
    try:
        return hlo_proto.parameter_types(hlo_proto.read_module(program))
    except (Unimplemented, ValueError, KeyError):
        return None  # not the messages that we know; the backend judges the arguments then
