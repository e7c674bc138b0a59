"""`cast`: conversion of host values to a dtype, with NumPy's warnings at the user's line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.execution.user_frames import warn_user

_SMALL = 6e4
"""Values up to this fit every IEEE format, so that no overflow warning is possible."""


def cast(x: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Returns ``np.asarray(x, dtype)``; the real part where a complex array becomes real.

    As in JAX a float beyond the range of ``dtype`` becomes an infinity, with NumPy's
    `RuntimeWarning` ("overflow encountered in cast"); `numpy.errstate` is respected.
    """
    if type(x) in (float, int) and -_SMALL <= x <= _SMALL and dtype.kind == "f":
        return np.asarray(x, dtype)
    if isinstance(x, np.ndarray | np.generic):
        if x.dtype == dtype:
            return np.asarray(x)
        if x.dtype.kind == "c" and dtype.kind in "iufV":
            x = x.real
    elif isinstance(x, complex) and dtype.kind in "iufV":
        x = x.real
    with np.errstate(call=_warn, **_error_actions()):
        return np.asarray(x, dtype)


def _error_actions() -> Any:
    """NumPy's error settings with `_warn` in the place of its own warnings."""
    found = np.geterr()
    return {k: "call" if found[k] == "warn" else found[k] for k in ("over", "invalid")}


def _warn(fault: str, _: int) -> None:
    warn_user(f"{fault} encountered in cast", RuntimeWarning)
