"""Converts between a library's function table and the Python capsule that JAX uses."""

from __future__ import annotations

import ctypes
from typing import Any

from plugrt.capi.abi._abi import ffi
from plugrt.capi.loading.library import Library, library_at
from plugrt.errors import PluginBroken

NAME = b"pjrt_c_api"
"""The capsule's name, which jaxlib checks."""


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """Returns a function of CPython's capsule API.

    A separate prototype: argument types set on ``ctypes.pythonapi.X`` are global to the process.
    """
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                 ctypes.c_void_p)  # fmt: skip
_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


def library_in(capsule: object, name: str) -> Library:
    """Returns the library whose ``PJRT_Api`` a capsule named ``pjrt_c_api`` points to.

    Raises `PluginBroken` for any other object; ``name`` is the library's name in messages.
    """
    return library_at(address_in(capsule, name), name)


def address_in(capsule: object, name: str) -> int:
    """Returns the address of the ``PJRT_Api`` that a capsule points to; raises as `library_in`."""
    if not _is_valid(capsule, NAME):
        raise PluginBroken(
            f"{name}: c_api is {capsule!r:.80}, not a capsule named {NAME.decode()} with the "
            "address of a PJRT_Api"
        )
    address: int = _pointer(capsule, NAME)
    return address


def capsule_of(library: Library) -> object:
    """Returns a capsule with the address of a library's ``PJRT_Api``."""
    return capsule_at(int(ffi.cast("uintptr_t", library.api)))


def capsule_at(address: int) -> object:
    """Returns a capsule with an address, without any check."""
    return _new(address, NAME, None)
