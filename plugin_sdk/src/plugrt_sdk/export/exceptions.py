"""Exceptions as PJRT errors: a code, and a text with the traceback.

An interrupt, or what else is to end the process, is an error for the host, as any exception. Where
the host is plugrt in this process, it raises the exception itself
(`plugrt.lifetime.callback_exits`). Under another host, such as JAX, the core in C raises it again
where the main thread runs Python next.
"""

from __future__ import annotations

import traceback

from plugrt.errors import PjrtError
from plugrt.lifetime.callback_exits import keep_exit
from plugrt_sdk.error_codes import pjrt_class

_CALLS_HANDLERS = "plugrt.capi.extensions.ffi_frames"


def describe(function: str, error: BaseException) -> tuple[int, str, BaseException | None]:
    """Returns (code, text, exception to raise again) for an exception of ``PJRT_<function>``."""
    if isinstance(error, PjrtError):
        code, said = error.code, error.message
    else:
        code = pjrt_class(error).code
        said = "".join(traceback.format_exception_only(error)).strip()
    frames = "".join(traceback.format_tb(error.__traceback__))
    if frames and not _is_of_handler(error):
        said += f"\n\nin PJRT_{function}, traceback (most recent call last):\n{frames}"
    return code, said, error if keep_exit(said, error) else None


def _is_of_handler(error: BaseException) -> bool:
    """Returns whether a handler in C made the error: its traceback does not show the cause."""
    module = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
    return module == _CALLS_HANDLERS
