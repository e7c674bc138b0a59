"""An executable that shows a program made by a test."""

from __future__ import annotations

from plugrt.errors import Unimplemented
from plugrt.interface import Executable, Program


class Shown(Executable):
    """An executable that shows a given program, or none."""

    name = backend_name = "shown"
    num_replicas = num_partitions = 1
    output_types = ()

    def __init__(self, program: Program | None) -> None:
        self._program = program

    def optimized_program(self) -> Program:
        if self._program is None:
            raise Unimplemented("shown does not show its program")
        return self._program
