"""`DonatedArguments`: which arguments a program's launches donate, and their invalidation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from plugrt.errors import InvalidArgument, PjrtError
from plugrt.interface import Shards
from plugrt.wire import hlo_proto

if TYPE_CHECKING:
    from plugrt.interface import Executable, Program


class _Donated(Protocol):
    """The part of `plugrt.capi.buffers.buffer.Buffer` that this module uses.

    That class cannot be imported here, not even for annotations: the import would be circular.
    """

    def is_deleted(self) -> bool: ...
    def is_gone(self) -> bool: ...
    def _note_donation(self, reason: str, known: bool) -> None: ...
    def _retire(self, reason: str) -> object: ...


_MARKS = (b"tf.aliasing_output", b"jax.buffer_donor")

_UNASKED = frozenset({-1})


class DonatedArguments:
    """Invalidates the arguments that launches of one program donate.

    A library copies a donated argument whose memory is in use elsewhere, and leaves the buffer
    valid; it is invalidated all the same.
    """

    __slots__ = ("_executable", "_taken")

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self._taken: frozenset[int] | None = _UNASKED

    def mark(self, arguments: Sequence[Shards], kept: Collection[int] = ()) -> None:
        """Invalidates the donated arguments of a launch, except the parameters ``kept``."""
        known = self._parameters()
        # If the parameters are unknown, the library is asked about each argument.
        taken = range(len(arguments)) if known is None else known.difference(kept)
        reason = self.reason
        for buffer in _buffers([arguments[i] for i in taken]):
            buffer._note_donation(reason, known is not None)

    def taken(self, arguments: Sequence[Shards], kept: Collection[int] = ()) -> Sequence[int]:
        """The numbers of the arguments that a launch consumes; none if that is unknown."""
        known = self._parameters() or frozenset()
        return sorted(i for i in known.difference(kept) if i < len(arguments))

    def mark_copied(self, arguments: Sequence[Shards]) -> None:
        """Invalidates donated arguments that a launch copied, as others needed them."""
        for buffer in _buffers(arguments):
            buffer._note_donation(self.reason, True)

    @property
    def reason(self) -> str:
        """Why a buffer that a launch consumed is unusable."""
        return f"was donated to a launch of {self._executable.name!r}"

    @property
    def known(self) -> tuple[tuple[int, ...], str] | None:
        """The parameters that launches consume, and the message for later uses of them.

        None if unknown, as before the first launch.
        """
        taken = None if self._taken is _UNASKED else self._taken
        return None if taken is None else (tuple(sorted(taken)), self.reason)

    def mark_taken(self, arguments: Sequence[Shards]) -> bool:
        """Invalidates the arguments that a launch consumed before it failed; returns whether any.

        Queries the library for each argument that is not deleted.
        """
        taken = [b for b in _buffers(arguments) if not b.is_deleted() and b.is_gone()]
        for buffer in taken:
            buffer._retire(f"{self.reason}, which failed")
        return bool(taken)

    def refuse_repeated(self, arguments: Sequence[Shards], kept: Collection[int] = ()) -> None:
        """Raises `InvalidArgument` where a donated argument is passed twice, on several devices.

        XLA's CPU client (xla-cpu-pjrt 0.0.1, jaxlib 0.10) refuses it on one device after it has
        launched on another, and the next launch on several devices hangs, under JAX as well.
        """
        # Workaround for jaxlib-donated-twice
        if has_repeated(arguments):  # only then are the parameters read
            donated = (self._parameters() or frozenset()).difference(kept)
            refuse_repeated(self._executable.name, arguments, donated)

    def _parameters(self) -> frozenset[int] | None:
        if self._taken is _UNASKED:
            self._taken = donated_parameters(self._executable)
        return self._taken


def _buffers(arguments: Sequence[Shards]) -> Sequence[_Donated]:
    """Returns the buffers of the arguments of a launch, which are all this library's."""
    return cast("Sequence[_Donated]", [buffer for shards in arguments for buffer in shards])


def has_repeated(arguments: Sequence[Shards]) -> bool:
    """Whether a buffer is passed twice."""
    buffers = [id(buffer) for shards in arguments for buffer in shards]
    return len(set(buffers)) != len(buffers)


def refuse_repeated(name: str, arguments: Sequence[Shards], donated: Collection[int]) -> None:
    """Raises `InvalidArgument` where a buffer of a donated argument is passed a second time."""
    for i in sorted(donated):
        own = {id(buffer) for buffer in arguments[i]}
        for j, shards in enumerate(arguments):
            if i != j and any(id(buffer) in own for buffer in shards):
                raise InvalidArgument(
                    f"argument {i} of {name!r} is donated, and is argument {j} as well; pass a "
                    "copy of one"
                )


def can_donate(program: Program) -> bool:
    """Whether a program may consume its arguments' memory, by its donation attributes.

    The attribute names appear verbatim in MLIR text and bytecode; other formats may donate.
    """
    return program.format != "mlir" or any(mark in program.code for mark in _MARKS)


def donated_parameters(executable: Executable) -> frozenset[int] | None:
    """Returns the numbers of the parameters that a launch consumes; None if unknown.

    They are read from the optimised program: PJRT does not state them.
    """
    try:
        return hlo_proto.donated_parameters(hlo_proto.read_module(executable.optimized_program()))
    except (PjrtError, ValueError):
        return None
