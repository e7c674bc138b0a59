"""`start_mpi`: jaxlib's collectives over MPI, and their requirements."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from functools import cache
from typing import Any

from plugrt.base.xla_environment import MPI_CURE, MPI_VARIABLE
from plugrt.errors import FailedPrecondition, InvalidArgument
from plugrt_cpu import adapter

_SETTING = "the setting JAX_CPU_COLLECTIVES_IMPLEMENTATION=mpi"


def require_mpi(num_devices: int) -> None:
    """Raises `FailedPrecondition`, naming the variable, if jaxlib has no MPI library.

    jaxlib would end the process. Raises `InvalidArgument` for several devices: its collectives over
    MPI support one device per process.
    """
    if num_devices != 1:
        raise InvalidArgument(
            f"{_SETTING}: jaxlib's collectives over MPI support one device per process, and this "
            "one "
            f"has {num_devices}: set JAX_NUM_CPU_DEVICES=1 and start more processes"
        )
    # Workaround for jaxlib-mpi
    path = os.environ.get(MPI_VARIABLE)
    if path is None or not _is_loaded(path):
        why = "is not set" if path is None else "was not set when jaxlib was imported"
        raise FailedPrecondition(
            f"{_SETTING} needs {MPI_VARIABLE}, which {why}. {MPI_CURE}; or leave it to Gloo, "
            "JAX_CPU_COLLECTIVES_IMPLEMENTATION=gloo"
        )


def _is_loaded(path: str) -> bool:
    """Whether jaxlib loaded the library during its import."""
    if os.environ.get("MPITRAMPOLINE_DLOPEN_MODE", "dlopen") != "dlopen":
        return True  # among libraries of its own, not visible here
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


@cache
def start_mpi() -> Any:
    """Initialises MPI in this process, once, and returns jaxlib's collectives.

    All launches that exchange data must be made by the thread that called this, which jaxlib
    checks. MPI is finalised at exit, except after an exception that ends the program: finalising
    waits for the other processes, which ``mpirun`` ends instead.
    """
    collectives = adapter.make_mpi_collectives()
    collectives.Init()
    atexit.register(_finalize, collectives)
    return collectives


def _finalize(collectives: Any) -> None:
    if getattr(sys, "last_value", None) is None:
        collectives.Finalize()
