"""`Donation`: which arguments a program's launches take for good, and what becomes of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from plugrt import hlo_proto
from plugrt.errors import PjrtError
from plugrt.interface import Executable, Program, Shards

_MARKS = (b"tf.aliasing_output", b"jax.buffer_donor")

_UNASKED = frozenset({-1})


class Donation:
    """Makes the arguments unusable that launches of one program take, or were to take.

    A library copies instead where somebody looks at the memory, and leaves the buffer as it is; to
    the caller that makes no difference.
    """

    __slots__ = ("_executable", "_taken")

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self._taken: frozenset[int] | None = _UNASKED

    def mark(self, arguments: Sequence[Shards], kept: Collection[int] = ()) -> None:
        """Notes what a launch took; ``kept`` are parameters that it was told not to take."""
        if self._taken is _UNASKED:
            self._taken = donated_parameters(self._executable)
        # Where nobody can tell, the library is asked of each argument.
        certain = self._taken is not None
        taken = range(len(arguments)) if self._taken is None else self._taken.difference(kept)
        for i in taken:
            for buffer in arguments[i]:
                buffer._note_donation(self._executable, certain)  # type: ignore[attr-defined]


def may_donate(program: Program) -> bool:
    """Whether a program may take its arguments' memory, by the attributes that ask for it.

    The attributes' names stand in MLIR text and in bytecode alike; other formats may do anything.
    """
    return program.format != "mlir" or any(mark in program.code for mark in _MARKS)


def donated_parameters(executable: Executable) -> frozenset[int] | None:
    """Returns the numbers of the parameters that a launch takes; None where nobody can tell.

    They are read from the optimised program: PJRT itself does not state them.
    """
    try:
        return hlo_proto.donated_parameters(hlo_proto.read_module(executable.optimized_program()))
    except (PjrtError, ValueError):
        return None
