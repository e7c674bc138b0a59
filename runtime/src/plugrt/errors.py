"""Every exception that plugrt raises, in one tree.

``PlugrtError`` is the root. ``PjrtError`` and its sixteen subclasses mirror the error codes of the
PJRT C API (``PJRT_Error_Code``, which are absl's canonical status codes); the other branches name
the party at fault: a plugin, the caller's arguments, the traced function, or a program.

Where Python or JAX users would expect a built-in class (``TypeError`` for a wrong type,
``RuntimeError`` for a failing backend), the class also inherits from it.
"""

from __future__ import annotations

import re
from typing import ClassVar


class PlugrtError(Exception):
    """The root: every exception that plugrt raises on purpose."""


class PjrtError(PlugrtError, RuntimeError):
    """A backend reported an error; ``code`` is its PJRT code and ``message`` its own text.

    ``str(error)`` is ``"NAME: message"``, as XLA prints a status. Catch a subclass to handle one
    code; make an instance from a code with `error_from_code`.
    """

    code: ClassVar[int] = 2
    code_name: ClassVar[str] = "UNKNOWN"

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return f"{self.code_name}: {self.message}"


class Cancelled(PjrtError):
    """PJRT code 1: the operation was cancelled, usually by its caller."""

    code, code_name = 1, "CANCELLED"


class Unknown(PjrtError):
    """PJRT code 2: an error with no better code; parsers of programs often report this one."""

    code, code_name = 2, "UNKNOWN"


class InvalidArgument(PjrtError, ValueError):
    """PJRT code 3: the caller passed something that is wrong whatever the backend's state."""

    code, code_name = 3, "INVALID_ARGUMENT"


class DeadlineExceeded(PjrtError, TimeoutError):
    """PJRT code 4: the deadline passed before the operation ended."""

    code, code_name = 4, "DEADLINE_EXCEEDED"


class NotFound(PjrtError):
    """PJRT code 5: a named item does not exist; libtpu reports absent hardware with it."""

    code, code_name = 5, "NOT_FOUND"


class AlreadyExists(PjrtError):
    """PJRT code 6: something that was to be created exists."""

    code, code_name = 6, "ALREADY_EXISTS"


class PermissionDenied(PjrtError):
    """PJRT code 7: the caller may not do that."""

    code, code_name = 7, "PERMISSION_DENIED"


class ResourceExhausted(PjrtError, MemoryError):
    """PJRT code 8: out of memory, on the device or on the host, or another quota is spent."""

    code, code_name = 8, "RESOURCE_EXHAUSTED"


class FailedPrecondition(PjrtError):
    """PJRT code 9: the system is not in the state that the operation needs."""

    code, code_name = 9, "FAILED_PRECONDITION"


class Aborted(PjrtError):
    """PJRT code 10: the operation was given up, usually over a concurrency conflict."""

    code, code_name = 10, "ABORTED"


class OutOfRange(PjrtError):
    """PJRT code 11: an index or an offset is past the end."""

    code, code_name = 11, "OUT_OF_RANGE"


class Unimplemented(PjrtError, NotImplementedError):
    """PJRT code 12: the backend cannot do that; its name is in the message."""

    code, code_name = 12, "UNIMPLEMENTED"


class Internal(PjrtError):
    """PJRT code 13: an invariant of the backend is broken."""

    code, code_name = 13, "INTERNAL"


class Unavailable(PjrtError):
    """PJRT code 14: the service is not available now; trying again may help."""

    code, code_name = 14, "UNAVAILABLE"


class DataLoss(PjrtError):
    """PJRT code 15: data were lost or corrupted beyond repair."""

    code, code_name = 15, "DATA_LOSS"


class Unauthenticated(PjrtError):
    """PJRT code 16: the caller has no valid credentials."""

    code, code_name = 16, "UNAUTHENTICATED"


PJRT_ERRORS: dict[int, type[PjrtError]] = {
    cls.code: cls
    for cls in (
        Cancelled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists,
        PermissionDenied, ResourceExhausted, FailedPrecondition, Aborted, OutOfRange,
        Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated,
    )
}  # fmt: skip
"""PJRT error code (1 to 16) to exception class."""


HARDWARE_ABSENT = (FailedPrecondition, NotFound, Unavailable)
"""The errors with which libraries report absent hardware, such as "No visible GPU devices"."""


def error_from_code(code: int, message: str) -> PjrtError:
    """Returns the exception for a PJRT code; a code that PJRT does not define gives `Unknown`."""
    cls = PJRT_ERRORS.get(code) if isinstance(code, int) else None
    if cls is None:
        return Unknown(f"{message} (the backend used the undefined PJRT error code {code})")
    return cls(message)


def read_message(error: BaseException) -> str:
    """Returns the message of any exception.

    An exception whose ``__str__`` raises loses only its message. Characters that cannot be encoded
    or that control a terminal are escaped. A native stack trace, which jax-tt-plugin writes into
    its messages, and the middle of a text of megabytes are left out.
    """
    try:
        text = str(error).encode("utf-8", "backslashreplace").decode()
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # noqa: BLE001 a foreign exception's __str__ may raise anything
        return f"(its message cannot be read: __str__ raises {type(fault).__name__})"
    text = re.sub(_NATIVE_FRAMES, "", text)
    if len(text) > 2 * _HALF_MESSAGE:
        left_out = len(text) - 2 * _HALF_MESSAGE
        text = f"{text[:_HALF_MESSAGE]} ... ({left_out} characters) ... {text[-_HALF_MESSAGE:]}"
    return escape_controls(text)


_HALF_MESSAGE = 10_000
_NATIVE_FRAMES = (
    r"(?i)(\n[^\n]*\b(back|stack ?)trace:?[ \t]*)?(\n[^\n(]*\([^\n()]*\+0x[0-9a-f]+(\)[^\n]*)?)+"
)
"""Lines of glibc's backtrace_symbols, and their heading: ``lib.so(name+0x1a) [0x7f]``."""


def escape_controls(text: str) -> str:
    """Returns the text with each unprintable character escaped as by Python's ``repr``.

    Such characters control a terminal, or change the direction of text (U+202E). Line breaks and
    tabs stay. Used for terminals, pages and messages alike.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def describe(error: BaseException) -> str:
    """Returns the class and the message of any exception: ``ValueError: the message``."""
    return f"{type(error).__name__}: {read_message(error)}".removesuffix(": ")


class PluginError(PlugrtError, RuntimeError):
    """Something about a plugin: finding, choosing, loading or starting it failed."""


class MissingSdkCore(PluginError, ImportError):
    """plugrt-sdk lacks a part in C that exporting or tracing a plugin needs, or has a stale one."""


class UnknownPlatform(PluginError):
    """No installed plugin provides the requested platform."""


class PluginUnavailable(PluginError):
    """The plugin is healthy but cannot work here, usually because its hardware is absent."""


class PluginBroken(PluginError):
    """The plugin failed to import, to load or to start; its own exception is the cause."""


class PluginIncompatible(PluginError):
    """The plugin and plugrt (or a library below them) are of incompatible versions."""


class DuplicatePlugin(PluginError):
    """Two distributions provide the requested name."""


class RegistrationError(PluginError, ValueError):
    """A call that registers a plugin was wrong: its arguments, its time, or a name twice."""


class ConfigError(PlugrtError, ValueError):
    """An environment variable or an option has an invalid value."""


class UnknownSetting(ConfigError, AttributeError):
    """There is no setting of that name."""


class ReadOnlySetting(ConfigError, AttributeError):
    """An attribute of `config` was assigned or deleted; the message says how to change it."""


class SettingInUse(ConfigError, RuntimeError):
    """A setting that backends read when they start was changed after they had started."""


class FileRefused(PlugrtError, OSError):
    """A file or folder that may not be used: not a regular file, too large, or not this user's.

    ``filename``, ``strerror`` (the reason and the cure) and ``errno`` are `OSError`'s.
    """

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class Incompatible(FailedPrecondition):
    """A file is whole, and for another program, version or platform than it is used with."""


class InvalidReply(Internal, PluginBroken):
    """A library reported success but returned a value that the PJRT C API does not allow.

    For example a NULL handle, a size beyond its memory, or a device that it does not list: the
    message names the library, the function and the field. It is an error of the backend (code 13)
    and of the plugin that brought it.
    """


class ArgumentError(PlugrtError, ValueError, TypeError):
    """An argument of a call is wrong; the message names it.

    JAX raises ValueError for some wrong arguments and TypeError for others; for shapes that differ,
    ``jax.numpy`` raises one and ``jax.lax`` the other. This class derives from both, so that code
    written for JAX catches it.
    """


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has a type that the function does not accept, or an unknown name."""


class WrongType(ArgumentError, TypeError):
    """An argument has a type that the call does not accept."""


class NotAnArray(ArgumentError, TypeError):
    """A value that has no meaning as an array was passed or returned where one must be."""


class UnsupportedDtype(NotAnArray):
    """The dtype has no StableHLO element type (object, structured, strings, dates…)."""


class ShapeError(ArgumentError, ValueError):
    """Shapes do not fit together; the message shows both."""


class ShardingTypeError(ArgumentError, TypeError):
    """How arrays are divided over Explicit axes does not fit together, or leaves a result open."""


class AxisError(ShapeError, IndexError):
    """An axis is no integer, is out of range, or is named twice."""


class InvalidIndex(ArgumentError, IndexError):
    """A key in ``x[key]`` is out of bounds, does not fit the shape, or is of a wrong type."""


class DtypeError(ArgumentError, TypeError):
    """An operation does not admit this dtype, or two dtypes do not promote."""


class IntegerOverflow(ArgumentError, OverflowError):
    """A Python integer does not fit the dtype that it would have among arrays."""


class ZeroWeights(ArgumentError, ZeroDivisionError):
    """The weights of an average sum to 0."""


class BufferUnavailable(ArgumentError, BufferError):
    """An array's memory cannot be shared: through DLPack, or as host memory."""


class StructureError(ArgumentError, TypeError):
    """Pytrees that must have one structure differ; the message shows both."""


class ArgumentMismatch(ArgumentError, TypeError):
    """A compiled object was called with arguments other than it was compiled for."""


class UnhashableStaticArgument(ArgumentError, ValueError):
    """A static argument cannot be hashed, so it cannot be part of a cache key."""


class DeviceMismatch(ArgumentError, ValueError):
    """Arrays committed to different devices met in one computation."""


class DeletedBuffer(PlugrtError, RuntimeError):
    """An array was used after `delete` or after a call that donated it."""


class TracingError(PlugrtError):
    """A function cannot be traced."""


class InvalidOperation(TracingError, ArgumentError):
    """MLIR's verifier refuses an operation: its arguments do not fit each other."""


class ConcretizationError(TracingError, TypeError, ValueError):
    """Python code needed the value of a traced array (``if x:``, ``int(x)``, ``np.asarray(x)``).

    JAX raises TypeError, and ValueError for the truth value of several elements.
    """


class LeakedTracer(TracingError, TypeError):
    """A traced array was used after, or outside, the call that it belongs to."""


class DataDependentShape(TracingError, TypeError, IndexError):
    """The result's shape depends on the data, which a traced function cannot express.

    JAX raises a `TypeError`, and for ``x[mask]`` an `IndexError`.
    """


class UnboundAxis(TracingError, NameError):
    """A collective names an axis that no surrounding pmap has bound."""


class MissingTraceExtra(TracingError, ImportError):
    """Tracing needs jaxlib's MLIR bindings, and they are not installed."""


class MissingJaxExtra(TracingError, ImportError):
    """`plugrt.from_jax` needs jax, and it is not installed."""


class NeedsJaxBackend(TracingError, AttributeError):
    """A function given to `plugrt.from_jax` needs a device of JAX's while JAX traces it."""


class FloatingPointFault(PlugrtError, FloatingPointError):
    """`debug_nans` or `debug_infs` found a NaN or an infinity in a result."""


class DistributedError(PlugrtError, RuntimeError):
    """The processes of a run cannot work together, or `plugrt.distributed` was used wrongly."""


class ValuesDiffer(DistributedError, AssertionError):
    """`plugrt.assert_equal` found different values in the processes of a run."""


class ProcessLost(DistributedError):
    """Another process of the run ended, or sends no heartbeats; ``processes`` are their indices."""

    def __init__(self, message: str, processes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.processes = processes


class ProgramError(PlugrtError, ValueError):
    """A program cannot be read; ``line`` and ``column`` are 1-based where the parser gave them."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
