"""`cast`: conversion of host values to a dtype, with NumPy's warnings at the user's line."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import IntegerOverflow
from plugrt.frames.traceback_filter import warn_user

_SMALL = 6e4
"""Values up to this fit every IEEE format, so that no overflow warning is possible."""


@cache
def dtype_kind(dtype: np.dtype[np.generic]) -> str:
    """Returns ``b`` (boolean), ``i`` (signed), ``u`` (unsigned), ``f``, ``c``, or ``k`` (keys)."""
    if dtype.kind in "biufck":
        return dtype.kind
    name = dtype.name
    return "i" if name.startswith("int") else "u" if name.startswith("uint") else "f"


_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def kind_rank(dtype: np.dtype[np.generic]) -> int:
    """Returns the place of a dtype's kind among booleans, integers, floats and complex numbers."""
    return _RANKS[dtype_kind(dtype)]


def cast(x: Any, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
    """Returns ``np.asarray(x, dtype)``; the real part where a complex array becomes real.

    As in JAX a float beyond the range of ``dtype`` becomes an infinity, with NumPy's
    `RuntimeWarning` ("overflow encountered in cast"); `numpy.errstate` is respected. Raises
    `IntegerOverflow` for a Python integer beyond the range.
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
        try:
            return np.asarray(x, dtype)
        except OverflowError as error:
            raise IntegerOverflow(
                f"the Python integer {x!r:.40} does not fit {dtype.name}, as which it is taken"
            ) from error


def _error_actions() -> Any:
    """Returns NumPy's error settings with `_warn` in place of its own warnings."""
    found = np.geterr()
    return {k: "call" if found[k] == "warn" else found[k] for k in ("over", "invalid")}


def _warn(fault: str, _: int) -> None:
    warn_user(f"{fault} encountered in cast", RuntimeWarning)
