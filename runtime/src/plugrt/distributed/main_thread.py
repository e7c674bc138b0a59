"""`interrupt_main_thread`: raises an exception in the main thread, from another one."""

from __future__ import annotations

import ctypes
import dis
import importlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_LOOK_SECONDS = 0.05
_IMPORT_SECONDS = 60.0
"""How long an import of native code is waited for."""


def interrupt_main_thread(
    kind: type[BaseException], arguments: tuple[Any, ...], seconds: float, given_up: threading.Event
) -> bool:
    """Raises ``kind(*arguments)`` in the main thread, and waits until it was raised.

    Raises it again where CPython drops it: in a function that the garbage collector calls, in a
    ``__del__``, in the callback of a weak reference. Raises it later where native code imports a
    module, since it may drop the error: jaxlib does that tries to import JAX.

    Returns False if native code kept the main thread for ``seconds``, or was given up.
    """
    raised, dropped = threading.Event(), threading.Event()

    class Raised(kind):  # type: ignore[valid-type,misc]  # CPython raises a class in a thread
        def __init__(self) -> None:
            super().__init__(*arguments)
            raised.set()

    Raised.__name__, Raised.__qualname__ = kind.__name__, kind.__qualname__
    Raised.__module__ = kind.__module__
    main = threading.main_thread().ident or 0
    imported_until = time.monotonic() + _IMPORT_SECONDS
    while _native_code_imports(sys._current_frames().get(main)):
        if given_up.wait(_LOOK_SECONDS) or time.monotonic() > imported_until:
            break
    until = time.monotonic() + seconds
    with _set_where_dropped(Raised, dropped):
        while not given_up.is_set():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(main), ctypes.py_object(Raised)
            )
            if not raised.wait(until - time.monotonic()):
                return False
            if not dropped.wait(_LOOK_SECONDS):
                return True
            raised.clear()
            dropped.clear()
    return False


@contextmanager
def _set_where_dropped(kind: type[BaseException], dropped: threading.Event) -> Iterator[None]:
    """Sets the event where CPython drops such an exception; it is not printed then."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is kind:
            dropped.set()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        if sys.unraisablehook is hook:
            sys.unraisablehook = before


def _native_code_imports(frame: FrameType | None) -> bool:
    """Whether the frame, or one that it was called from, is of an import that native code makes."""
    while frame is not None:
        caller = frame.f_back
        if _is_of_importlib(frame) and caller is not None and not _is_of_importlib(caller):
            code = caller.f_code.co_code
            if dis.opname[code[caller.f_lasti]] not in ("IMPORT_NAME", "IMPORT_FROM"):
                return True
        frame = caller
    return False


def _is_of_importlib(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith("<frozen importlib") or name == importlib.__file__
