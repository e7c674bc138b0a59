"""Mutants that change one part of the process's state when they start."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping

from plugrt_sdk.conformance.mutants.faults import Faults

VARIABLE = "PLUGRT_MUTANT_SET_THIS"
_FE_UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}


def _block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])


def _round_up() -> None:
    ctypes.CDLL(None).fesetround(_FE_UPWARD[os.uname().machine])


def _set_variable() -> None:
    """Sets a variable as a C library does, so that Python's ``os.environ`` does not contain it."""
    ctypes.CDLL(None).setenv(VARIABLE.encode(), b"1", 1)


def _add_folder() -> None:
    sys.path.append("/nonexistent/plugrt_mutant")


def _lower_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))


MUTANTS: Mapping[str, Faults] = {
    "effects.signals": Faults(on_start=_block_signals),
    "effects.files": Faults(on_start=lambda: os.umask(0o157)),
    "effects.limits": Faults(on_start=_lower_limit),
    "effects.descriptors": Faults(on_start=lambda: os.closerange(3, 21)),
    "effects.environment": Faults(on_start=_set_variable),
    "effects.arithmetic": Faults(on_start=_round_up),
    "effects.path": Faults(on_start=_add_folder),
}
