"""XLA's environment variables: log level and thread count, set only while XLA reads them; MPI's.

XLA libraries read these only when they are loaded or started. They are set only during that time,
so that later processes do not inherit them, and only if the user has not set them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping

from plugrt.errors import FailedPrecondition
from plugrt.lifetime.interruptions import scope

MPI_VARIABLE = "MPITRAMPOLINE_LIB"
MPI_CURE = (
    f"{MPI_VARIABLE} is the path of the libmpiwrapper.so that MPIwrapper "
    "(https://github.com/eschnett/MPIwrapper) makes of an installed MPI, set before Python starts"
)
_MPI_SYMBOL = "mpiwrapper_version_major"


def require_mpi_wrapper() -> None:
    """Raises `FailedPrecondition` if MPITRAMPOLINE_LIB is set and names no MPIwrapper library.

    jaxlib calls MPI through MPItrampoline, which loads that library when jaxlib is imported, even
    if MPI is not used, and ends the process if that fails.
    """
    # Workaround for jaxlib-mpi-import
    path = os.environ.get(MPI_VARIABLE)
    if path is None:
        return
    try:
        found = hasattr(ctypes.CDLL(path or os.devnull), _MPI_SYMBOL)
    except OSError as error:
        raise FailedPrecondition(
            f"{MPI_VARIABLE}={path!r} cannot be loaded ({error}), and jaxlib would end the process "
            f"for it: correct it, or unset it. {MPI_CURE}"
        ) from error
    if not found:
        raise FailedPrecondition(
            f"{MPI_VARIABLE}={path!r} is not an MPIwrapper (it has no {_MPI_SYMBOL}), and jaxlib "
            f"would end the process for it: correct it, or unset it. {MPI_CURE}"
        )


@scope
def quiet_logging() -> Iterator[None]:
    """Disables INFO log lines, as JAX does, unless the user has set TF_CPP_MIN_LOG_LEVEL."""
    with set_variables({"TF_CPP_MIN_LOG_LEVEL": "1"}):
        yield


# Workaround for xla-rendezvous
@scope
def reserve_threads(devices: int, cores: int | None = None) -> Iterator[None]:
    """Starts XLA's CPU client with threads for two launches on each of its devices.

    It starts one for each core or each device, whichever is more. A launch on several devices
    blocks one thread for each device while it waits for one of the 32 places in a device's queue,
    and a running launch whose devices exchange data needs one thread for each device at once: with
    fewer than two a device they deadlock, and XLA ends the process after 40 s
    (``xla/pjrt/cpu/cpu_client.cc``: ``Execute``, ``max_inflight_computations_semaphore``). JAX
    hangs in the same way. A user's PJRT_NPROC or NPROC is not changed. ``cores`` replaces the
    number of cores.
    """
    enough = devices <= 1 or (cores or os.cpu_count() or 1) >= 2 * devices
    with set_variables({} if enough or "NPROC" in os.environ else {"PJRT_NPROC": str(2 * devices)}):
        yield


@scope
def set_variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Sets variables that are not set, and removes them after the ``with`` block."""
    ours = {name: value for name, value in wanted.items() if name not in os.environ}
    try:
        os.environ.update(ours)
        yield
    finally:
        for name, value in ours.items():
            if os.environ.get(name) == value:
                del os.environ[name]
