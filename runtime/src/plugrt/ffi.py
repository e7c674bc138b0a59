"""Functions of the host in programs, by XLA's foreign function interface. As ``jax.ffi``.

A handler is a Python function, or a C or C++ function of type ``XLA_FFI_Handler``, whose headers
are in `include_dir`. It is registered under a name on a platform; programs of all clients of that
platform that are compiled afterwards can call it. `ffi_call` adds a call to a program.
"""

from __future__ import annotations

from plugrt.transforms.ffi_call import ffi_call
from plugrt.transforms.ffi_targets import (
    include_dir,
    pycapsule,
    register_ffi_target,
    register_ffi_type,
    register_target,
    register_type,
)

__all__ = [
    "ffi_call",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_type",
    "register_target",
    "register_type",
]
