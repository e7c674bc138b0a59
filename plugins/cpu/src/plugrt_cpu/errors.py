"""Translates jaxlib's exceptions to plugrt's: XLA prints a status as ``CODE_NAME: text``."""

from __future__ import annotations

import re

from plugrt.errors import PJRT_ERRORS, DeletedBuffer, Internal, PjrtError, PlugrtError
from plugrt.lifetime.callback_exits import keep_exit

_BY_NAME = {cls.code_name: cls for cls in PJRT_ERRORS.values()}
_STATUS = r"\s*([A-Z_]+): ?"
_DELETED = (
    r"has been deleted|deleted or donated|previously donated|on deleted array|Array is null|"
    r"Deleted buffer used"
)
_CALLBACK = (
    r"(?sm)CpuCallback error calling callback: (?:Traceback .*?^)?(?:plugrt\.errors\.)?"
    r"Internal: INTERNAL: "
)
"""The prefix of jaxlib before the error of a Python function that a program called."""

_INTERRUPTED = r"(?sm)CpuCallback error calling callback: Traceback .*^KeyboardInterrupt\b"
"""Without the core: Ctrl-C came at the entry of the function of
`plugrt.native.native_core.catching`."""

_EXCHANGE = "Gloo "
"""A part of programs' errors that shows jaxlib's exchange with other processes."""

JAXLIB_ERRORS = (RuntimeError, ValueError, TypeError, BufferError, MemoryError)
"""The exceptions of jaxlib's bindings; the buffer protocol wraps a status in a BufferError."""


def translate(error: BaseException, default: type[PjrtError] = Internal) -> PlugrtError:
    """Returns plugrt's exception for one of jaxlib's.

    A status gives the class of its code, the use of a deleted array `DeletedBuffer`, and a text
    without a status ``default``. A failed exchange with another process gives the `ProcessLost`
    that names it, once that is known. Raises one of plugrt's unchanged: ``raise … from error``
    would make it its own cause, and lose the cause that it has.
    """
    if isinstance(error, PlugrtError):
        raise error
    text = str(error)
    found = re.match(_STATUS, text)
    cls = _BY_NAME.get(found.group(1)) if found else None
    if found is None or cls is None:
        return default(text)
    message = text[found.end() :]
    if reported := re.match(_CALLBACK, message):
        return Internal(message[reported.end() :])
    if re.match(_INTERRUPTED, message):
        keep_exit(message, KeyboardInterrupt())
    if re.search(_DELETED, message):
        return DeletedBuffer(message)
    if _EXCHANGE in message:
        from plugrt.distributed import blame  # imported here: few programs span several processes

        return blame(cls(message))
    return cls(message)


def translate_use(error: BaseException, what: object) -> PlugrtError:
    """Like `translate`; ``what`` names the deleted object, which jaxlib's text does not."""
    found = translate(error)
    if isinstance(found, DeletedBuffer):
        return DeletedBuffer(f"{what} was deleted or donated")
    return found
