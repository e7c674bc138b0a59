"""Registration of handlers for custom calls."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plugrt.errors import ArgumentError, ArgumentTypeError, MissingTraceExtra, Unimplemented
from plugrt.execution.executables.custom_call_targets import register_target as _register_target
from plugrt.execution.executables.custom_call_targets import register_type as _register_type
from plugrt.frames.argument_errors import with_argument_errors
from plugrt.interface import Handler, HandlerStages

_TYPED = 1
_STAGES = ("instantiate", "prepare", "initialize", "execute")
_TYPE_INFO_SIZE = 3 * ctypes.sizeof(ctypes.c_void_p)
# Process-wide: libraries call registered functions until the process ends.
_kept: list[object] = []
"""Capsules whose functions were registered; kept alive until the process ends."""


@with_argument_errors
def register_ffi_target(
    name: str,
    fn: Handler | Mapping[str, object] | object,
    platform: str = "cpu",
    api_version: int = 1,
    **kwargs: object,
) -> None:
    """Registers ``fn`` as the handler of custom calls to ``name`` on a platform, permanently.

    ``fn`` is a PyCapsule of a C function of type ``XLA_FFI_Handler`` (`pycapsule` makes one), a
    dict of them by stage (``"instantiate"``, ``"prepare"``, ``"initialize"`` and the required
    ``"execute"``), or (not in JAX) a Python function of (arguments, results, attributes): read-only
    NumPy arrays, arrays to fill in, and the attributes of the call. ``platform`` is a platform of
    clients (`plugrt.default_backend`): ``"cpu"`` is the cpu plugin and any PJRT library for CPUs. A
    client receives it with the first program that names it; that compilation raises `Unimplemented`
    if the backend supports no handlers (capability custom_calls), no Python functions
    (host_callbacks) or no stages, or has another version of XLA's FFI than the C function was
    compiled for. On devices with their own memory a Python function gets copies.

    ``"instantiate"`` runs once for each call in an executable, with only the attributes; the state
    that it sets, of a type registered by `register_ffi_type`, is passed to the other stages at each
    launch, and is deleted with the executable. XLA's CPU backends call neither ``"prepare"`` nor
    ``"initialize"``, under JAX as well.

    Raises `AlreadyExists` if another function has the name, `ArgumentTypeError` for an ``fn`` of
    another kind, `ArgumentError` for an unknown stage and a dict without ``"execute"``, and
    `Unimplemented` for ``api_version`` 0, XLA's older custom calls. As
    ``jax.ffi.register_ffi_target``.
    """
    _require_text("register_ffi_target", name, platform)
    if kwargs:
        raise ArgumentError(f"register_ffi_target has no option {sorted(kwargs)}")
    _register_target(name, read_handler(name, fn, api_version), platform)


def read_handler(name: str, fn: object, api_version: int) -> Handler | int | HandlerStages:
    """Returns the argument of `register_ffi_target` as a Python function or C addresses."""
    if api_version != _TYPED:
        raise Unimplemented(
            f"the custom call {name!r} of api_version {api_version!r}: handlers are those of XLA's "
            f"typed FFI, api_version {_TYPED}"
        )
    if isinstance(fn, Mapping):
        unknown = [stage for stage in fn if stage not in _STAGES]
        if unknown or "execute" not in fn:
            raise ArgumentError(
                f"the handler {name!r} is given for the stages {[*fn]}; the stages are "
                f"{', '.join(map(repr, _STAGES))}, and 'execute' is always there"
            )
        if len(fn) > 1:
            return HandlerStages(**{k: _stage_address(name, k, one) for k, one in fn.items()})
        fn = fn["execute"]
    if is_capsule(fn):
        return _address(fn)
    if callable(fn) and not hasattr(fn, "argtypes"):
        handler: Handler = fn
        return handler
    raise ArgumentTypeError(
        f"the handler {name!r} is {fn!r:.60} of type {type(fn).__qualname__}; it is a PyCapsule of "
        "a C function, which plugrt.ffi.pycapsule makes, or a Python function"
    )


def _stage_address(name: str, stage: str, fn: object) -> int:
    if not is_capsule(fn):
        raise ArgumentTypeError(
            f"the stage {stage!r} of the handler {name!r} is {fn!r:.60} of type "
            f"{type(fn).__qualname__}; of several stages each is a PyCapsule of a C function, "
            "which plugrt.ffi.pycapsule makes"
        )
    return _address(fn)


def is_capsule(given: object) -> bool:
    """Whether an object is a PyCapsule; Python 3.11 has no public name for that class."""
    return type(given).__name__ == "PyCapsule"


def _require_text(function: str, name: object, platform: object) -> None:
    if not isinstance(name, str) or not isinstance(platform, str):
        raise ArgumentTypeError(
            f"{function} takes names as text; got {name!r:.60} and {platform!r:.60}"
        )


def _address(capsule: object) -> int:
    _kept.append(capsule)
    name: Any = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


def pycapsule(funcptr: Any) -> object:
    """Returns a function of a library that ``ctypes`` loaded as a PyCapsule. As in ``jax.ffi``.

    A ``ctypes.c_void_p`` may be the address of another object, such as an ``XLA_FFI_TypeId``.
    Raises `ArgumentTypeError` for any other object, and `ArgumentError` for a null pointer. The
    function and its library stay loaded.
    """
    make: Any = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    if not hasattr(funcptr, "argtypes") and not isinstance(funcptr, ctypes.c_void_p):
        raise ArgumentTypeError(
            f"pycapsule takes a function of a library that ctypes loaded; got {funcptr!r:.60}"
        )
    address = ctypes.cast(funcptr, ctypes.c_void_p)
    if not address.value:
        raise ArgumentError(f"pycapsule takes a function; {funcptr!r:.60} is a null pointer")
    _kept.append(funcptr)
    found: object = make(address, None, None)
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


@with_argument_errors
def register_ffi_type(
    name: str, type_registration: Mapping[str, object], platform: str = "cpu"
) -> None:
    """Registers a type of handlers' states on a platform, permanently.

    ``type_registration`` has PyCapsules of pointers (`pycapsule` makes them): ``"type_id"`` of the
    handler's ``XLA_FFI_TypeId``, which is 0 and then written when the first program that names a
    registered handler is compiled; ``"type_info"`` of its ``XLA_FFI_TypeInfo``, whose function
    deletes a state together with the executable: a handler cannot set a state without it.

    Raises `AlreadyExists` if the name is registered with other pointers, `ArgumentTypeError` for an
    object that is no capsule, `ArgumentError` for other keys and for an ``XLA_FFI_TypeInfo`` that
    is too small to be one. As ``jax.ffi.register_ffi_type``.
    """
    _require_text("register_ffi_type", name, platform)
    _register_type(name, *read_type(name, type_registration), platform)


def read_type(name: str, type_registration: object) -> tuple[int, int | None]:
    """Returns the argument of `register_ffi_type` as the addresses of id and functions."""
    if not isinstance(type_registration, Mapping) or not all(
        map(is_capsule, type_registration.values())
    ):
        raise ArgumentTypeError(
            f"the FFI type {name!r} is registered by a dict of PyCapsules, which "
            f"plugrt.ffi.pycapsule makes; got {type_registration!r:.80}"
        )
    if not {"type_id"} <= {*type_registration} <= {"type_id", "type_info"}:
        raise ArgumentError(
            f"the FFI type {name!r} is registered by 'type_id' and, if states are to be deleted, "
            f"'type_info'; got {[*type_registration]}"
        )
    info = type_registration.get("type_info")
    at = None if info is None else _address(info)
    if at is not None:
        size = ctypes.c_size_t.from_address(at).value
        if size < _TYPE_INFO_SIZE:
            raise ArgumentError(
                f"the type_info of the FFI type {name!r} says that it has {size} bytes; an "
                f"XLA_FFI_TypeInfo has {_TYPE_INFO_SIZE}. Fix: set its struct_size to "
                "XLA_FFI_TypeInfo_STRUCT_SIZE"
            )
    return _address(type_registration["type_id"]), at


register_target = register_ffi_target
register_type = register_ffi_type
