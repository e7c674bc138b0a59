"""Functions of the host in programs, by XLA's foreign function interface. As ``jax.ffi``.

A handler is a C or C++ function of type ``XLA_FFI_Handler``, for which `include_dir` has the
headers, or a Python function. Registered under a name on a platform, it is called by the programs
of all clients of that platform which are compiled afterwards; `ffi_call` puts the call into one.
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
