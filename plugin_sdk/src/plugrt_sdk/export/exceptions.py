"""Exceptions as PJRT errors: a code, and a text with the traceback."""

from __future__ import annotations

import traceback

from plugrt.errors import PjrtError
from plugrt_sdk.error_codes import pjrt_class

_CALLS_HANDLERS = "plugrt.capi.extensions.ffi_frames"


def describe(function: str, error: BaseException) -> tuple[int, str]:
    """Returns (code, text) for an exception that ``PJRT_<function>`` ended with."""
    if isinstance(error, PjrtError):
        code, said = error.code, error.message
    else:
        code = pjrt_class(error).code
        said = "".join(traceback.format_exception_only(error)).strip()
    frames = "".join(traceback.format_tb(error.__traceback__))
    if not frames or _is_of_handler(error):
        return code, said
    return code, f"{said}\n\nin PJRT_{function}, traceback (most recent call last):\n{frames}"


def _is_of_handler(error: BaseException) -> bool:
    """Whether a handler in C made the error: the way to it is not where the fault is."""
    module = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
    return module == _CALLS_HANDLERS
