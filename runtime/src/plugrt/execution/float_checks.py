"""`debug_nans` and `debug_infs`: checks of a launch's results for NaN and infinities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plugrt.errors import FloatingPointFault
from plugrt.execution.array import Array
from plugrt.execution.user_frames import called_at
from plugrt.settings.declarations import config

Run = Callable[[Sequence[Any]], Sequence[Array]]
Rerun = Callable[[Sequence[Any], FloatingPointFault], None]
"""Runs a call again operation by operation, so that the one at fault raises by its own name."""


def float_checks_enabled() -> bool:
    """Whether results are to be looked at under the settings of this thread."""
    return bool(config.debug_nans or config.debug_infs)


def add_float_checks(run: Run, what: str, rerun: Rerun | None) -> Run:
    """Returns ``run`` with a look at the floating-point results after each launch.

    Raises `FloatingPointFault` naming ``what`` was launched, the types and the user's line; before
    that, ``rerun`` gets the arguments, to find the operation.
    """
    nans, infs = bool(config.debug_nans), bool(config.debug_infs)

    def run_checked(values: Sequence[Any]) -> Sequence[Array]:
        outputs = run(values)
        found = next(filter(None, (_fault(a, nans, infs) for a in outputs)), None)
        if found:
            types = ", ".join(_type(v) for v in values)
            fault = FloatingPointFault(
                f"invalid value ({found}) encountered in {what} of ({types}){called_at()}"
            )
            if rerun:
                rerun(values, fault)
            raise fault
        return outputs

    return run_checked


def _fault(array: Array, nans: bool, infs: bool) -> str:
    host = np.asarray(array)
    if host.dtype.kind not in "fc":
        if not host.dtype.name.startswith(("bfloat", "float")):
            return ""
        host = host.astype(np.float32)
    if nans and np.isnan(host).any():
        return "nan"
    return "inf" if infs and np.isinf(host).any() else ""


def _type(value: Any) -> str:
    return str(value._signature.tensor_type) if type(value) is Array else repr(np.shape(value))
