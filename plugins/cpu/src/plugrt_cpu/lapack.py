"""Registers the LAPACK of JAX's programs: jaxlib's handlers of the custom calls ``lapack_…``.

jaxlib has them in its library but registers them only for clients that it makes itself. They call
the LAPACK of SciPy, which jaxlib depends on.
"""

from __future__ import annotations

import functools

import numpy as np

from plugrt.lifetime.uninterrupted_imports import import_native
from plugrt_cpu import adapter

_PREFIX = b"lapack_"


def register_if_called(code: bytes) -> None:
    """Registers the handlers if a program or an executable may call any of them.

    The names of targets appear verbatim in text, in bytecode and in serialised executables.
    """
    if _PREFIX in code:
        _register()


def handler_addresses() -> dict[str, int]:
    """Returns the addresses of the handlers, by the targets of custom calls."""
    return {target: adapter.address_in(capsule) for target, capsule in _registrations()}


@functools.cache
def _registrations() -> list[tuple[str, object]]:
    [lapack] = import_native("jaxlib.lapack")
    lapack.prepare_lapack_call("potrf_ffi", np.dtype(np.float32))  # finds SciPy's functions
    return [(target, capsule) for target, capsule, _ in lapack.registrations()["cpu"]]


@functools.cache  # jaxlib keeps handlers until the process ends, and accepts repeated registrations
def _register() -> None:
    for target, capsule in _registrations():
        adapter.register_custom_call(target, capsule)
    [lapack] = import_native("jaxlib.lapack")
    for target in lapack.batch_partitionable_targets():
        adapter.divide_custom_call(target)
