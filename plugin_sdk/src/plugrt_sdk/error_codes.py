"""PJRT's code for any exception that an author's code raises."""

from __future__ import annotations

from plugrt.errors import (
    Cancelled,
    Internal,
    InvalidArgument,
    PjrtError,
    PlugrtError,
    ResourceExhausted,
    Unimplemented,
    UnsupportedDtype,
    describe,
)

_CLASSES: tuple[tuple[type[BaseException], type[PjrtError]], ...] = (
    (UnsupportedDtype, Unimplemented),  # another backend may support the dtype
    (PlugrtError, InvalidArgument),
    (NotImplementedError, Unimplemented),
    (MemoryError, ResourceExhausted),
    (KeyboardInterrupt, Cancelled),
    (BaseException, Internal),
)
"""The classes for exceptions without a code of their own; the first that fits counts."""


def pjrt_class(error: BaseException) -> type[PjrtError]:
    """Returns the class with the code that fits an exception."""
    if isinstance(error, PjrtError):
        return type(error)
    return next(cls for kind, cls in _CLASSES if isinstance(error, kind))


def as_pjrt_error(error: BaseException) -> PjrtError:
    """Returns an exception as one with a PJRT code; a new one has it as its cause."""
    if isinstance(error, PjrtError):
        return error
    found = pjrt_class(error)(describe(error))
    found.__cause__ = error
    return found.with_traceback(error.__traceback__)
