"""Converts programs for jaxlib: to StableHLO, and without shardings that it cannot describe."""

from __future__ import annotations

from plugrt.errors import InvalidArgument, Unimplemented
from plugrt.interface import DeviceAssignment, Program
from plugrt_cpu import adapter


def read_stablehlo(program: Program) -> bytes:
    """Returns a program of the format ``mlir`` or ``hlo`` as StableHLO."""
    if program.format == "mlir":
        return program.code
    if program.format == "hlo":
        return adapter.hlo_to_stablehlo(program.code)
    raise InvalidArgument(
        f"the cpu plugin compiles the formats ('mlir', 'hlo'); got {program.format!r}"
    )


def require_one_dimension(program: Program, assignment: DeviceAssignment) -> None:
    """Refuses programs that abort jaxlib 0.10 while it describes the results' shardings.

    The attribute names appear verbatim in MLIR's text and in its bytecode.
    """
    # Workaround for jaxlib-replicas-and-partitions
    rows = assignment.device_ids
    both = len(rows) > 1 and len(rows[0]) > 1
    if both and (b"mhlo.sharding" in program.code or b"sdy.sharding" in program.code):
        raise Unimplemented(
            f"a program with shardings on {len(rows)} replicas x "
            f"{len(rows[0])} partitions: jaxlib's CPU client divides a program over "
            "replicas or over partitions, not both. Fix: use partitions only"
        )
