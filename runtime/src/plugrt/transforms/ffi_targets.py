"""Registration of handlers for custom calls."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from plugrt.argument_errors import with_argument_errors
from plugrt.errors import ArgumentError, ArgumentTypeError, MissingTraceExtra, Unimplemented
from plugrt.execution.custom_call_targets import register_target as _register
from plugrt.interface import Handler

_TYPED = 1
_kept: list[object] = []
"""Capsules whose functions were registered, which stay as long as the process."""


@with_argument_errors
def register_ffi_target(
    name: str,
    fn: Handler | Mapping[str, object] | object,
    platform: str = "cpu",
    api_version: int = _TYPED,
    **kwargs: Any,
) -> None:
    """Makes ``fn`` the function that custom calls to ``name`` call on a platform, for good.

    ``fn`` is a PyCapsule of a C function of type ``XLA_FFI_Handler`` (`pycapsule` makes one), a
    dict of it for the stage ``"execute"``, or (not in JAX) a Python function of (arguments,
    results, attributes): read-only NumPy arrays, arrays to be filled in, and the attributes of the
    call. ``platform`` is that of clients (`plugrt.default_backend`): ``"cpu"`` is the cpu plugin
    and any PJRT library for CPUs. A client is given it with the first program that names it, whose
    compilation is `Unimplemented` where the backend takes no handlers (capability custom_calls) or
    has another version of XLA's FFI than the C function was compiled for.

    Raises `AlreadyExists` where another function has the name, `ArgumentTypeError` for an ``fn`` of
    another kind, and `Unimplemented` for other stages than ``"execute"`` and for ``api_version`` 0,
    XLA's older custom calls. As ``jax.ffi.register_ffi_target``.
    """
    if not isinstance(name, str) or not isinstance(platform, str):
        raise ArgumentTypeError(
            f"register_ffi_target takes names as text; got {name!r:.60} and {platform!r:.60}"
        )
    if kwargs:
        raise ArgumentError(f"register_ffi_target has no option {sorted(kwargs)}")
    _register(name, read_handler(name, fn, api_version), platform)


def read_handler(name: str, fn: Any, api_version: int) -> Handler | int:
    """Returns what `register_ffi_target` takes as a Python function or the address of one in C."""
    if api_version != _TYPED:
        raise Unimplemented(
            f"the custom call {name!r} of api_version {api_version!r}: handlers are those of XLA's "
            f"typed FFI, api_version {_TYPED}"
        )
    if isinstance(fn, Mapping):
        if set(fn) != {"execute"}:
            raise Unimplemented(
                f"the handler {name!r} is given for the stages {sorted(map(str, fn))}; plugrt "
                "registers functions for the stage 'execute' alone"
            )
        fn = fn["execute"]
    if type(fn).__name__ == "PyCapsule":
        _kept.append(fn)
        return _address(fn)
    if callable(fn) and not hasattr(fn, "argtypes"):
        handler: Handler = fn
        return handler
    raise ArgumentTypeError(
        f"the handler {name!r} is {fn!r:.60} of type {type(fn).__qualname__}; it is a PyCapsule of "
        "a C function, which plugrt.ffi.pycapsule makes, or a Python function"
    )


def _address(capsule: Any) -> int:
    name: Any = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


def pycapsule(funcptr: Any) -> object:
    """Returns a function of a library that ``ctypes`` loaded as a PyCapsule. As in ``jax.ffi``.

    Raises `ArgumentTypeError` for anything else. The function and its library stay loaded.
    """
    make: Any = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    if not hasattr(funcptr, "argtypes") and not isinstance(funcptr, ctypes.c_void_p):
        raise ArgumentTypeError(
            f"pycapsule takes a function of a library that ctypes loaded; got {funcptr!r:.60}"
        )
    _kept.append(funcptr)
    found: object = make(ctypes.cast(funcptr, ctypes.c_void_p), None, None)
    return found


def include_dir() -> str:
    """Returns the folder of XLA's FFI headers, ``xla/ffi/api/c_api.h`` and ``ffi.h``, in jaxlib.

    Raises `MissingTraceExtra` where jaxlib is not installed. As ``jax.ffi.include_dir``.
    """
    found = importlib.util.find_spec("jaxlib")
    if found is None or not found.submodule_search_locations:
        raise MissingTraceExtra(
            "XLA's FFI headers are in jaxlib, which is not installed; install it with: "
            'pip install "plugrt[trace]"'
        )
    return str(Path(next(iter(found.submodule_search_locations))) / "include")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> NoReturn:
    """Raises `Unimplemented`: types are for the state of handlers, which plugrt gives them none of.

    As ``jax.ffi.register_ffi_type`` by its arguments.
    """
    raise Unimplemented(
        f"the FFI type {name!r} on {platform!r}: types are for state that a handler makes in its "
        "stage 'instantiate', and plugrt registers handlers for the stage 'execute' alone"
    )


register_target = register_ffi_target
register_type = register_ffi_type
