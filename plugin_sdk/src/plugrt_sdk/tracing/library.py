"""The tracer, a shared library without Python, and the tables that it wraps in this process."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from plugrt.capi.abi._abi import ffi
from plugrt.capi.library.capsule import capsule_of, library_in
from plugrt.capi.loading.library import library_at
from plugrt.errors import MissingSdkCore
from plugrt_sdk.absent_core import explain_absence

FOLDER = "PLUGRT_TRACE_FOLDER"
"""The variable with the folder that the tracer writes to; without it nothing is traced."""


def library_path() -> Path:
    """Returns the file of the tracer: to be preloaded, or loaded as a PJRT library.

    Preloaded (``LD_PRELOAD``), it wraps every PJRT library that the process loads. Named as a
    plugin's library, it wraps the one that ``PLUGRT_TRACE_LIBRARY`` names. Raises `MissingSdkCore`
    if the installation lacks it.
    """
    for item in Path(__file__).parent.iterdir():
        if item.name.startswith("_tracer."):
            return item
    raise MissingSdkCore(explain_absence("the tracer's library"))


def wrap_capsule(capsule: object, name: str) -> object:
    """Returns a ``pjrt_c_api`` capsule that traces each call and forwards it to ``capsule``.

    ``name`` is the library's name in the trace. The environment sets the output folder and the
    checks (docs/trace.md); it is read once. Raises `MissingSdkCore` for an object that is no such
    capsule, and `PluginIncompatible` for a version that plugrt does not support.
    """
    library = library_in(capsule, name)
    address = _wrap()(int(ffi.cast("uintptr_t", library.api)), name.encode())
    return capsule_of(library_at(address, name))


def wrap_if_traced(capsule: object, name: str) -> object:
    """Returns the capsule, wrapped if `plugrt trace` runs this program.

    A host that has a capsule loads no library, so that the tracer would not see its calls.
    """
    return wrap_capsule(capsule, name) if os.environ.get(FOLDER) else capsule


@cache
def _wrap() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(str(library_path())).plugrt_trace_wrap
    function.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
    function.restype = ctypes.c_void_p
    return function
