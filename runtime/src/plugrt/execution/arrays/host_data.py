"""Converts NumPy data and Python scalars to the dtypes that backends accept."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from plugrt.errors import IntegerOverflow, NotAnArray, UnsupportedDtype
from plugrt.execution.arrays.array_types import convert
from plugrt.execution.arrays.casting import cast
from plugrt.frames.traceback_filter import warn_user
from plugrt.native.known_dtypes import KNOWN_DTYPES, is_key_dtype
from plugrt.settings.declarations import config
from plugrt.settings.options import Token

_KINDS = frozenset("biufc")
_NARROW = {
    "int64": np.dtype(np.int32),
    "uint64": np.dtype(np.uint32),
    "float64": np.dtype(np.float32),
    "complex128": np.dtype(np.complex64),
}


_FLOAT0 = np.dtype([("float0", np.void)])


def host_array(x: Any, name: str = "the value") -> npt.NDArray[np.generic]:
    """Returns NumPy data in a form that a backend accepts: native byte order, a numeric dtype.

    Python scalars get the default dtype of their kind. JAX's ``float0``, which has no data, becomes
    False, as in JAX. Converts objects with a registered function (`register_array_type`),
    ``__jax_array__``, ``__array__`` or ``__dlpack__``; JAX no longer accepts these. Raises
    `NotAnArray` or `UnsupportedDtype` with ``name`` in the message.
    """
    cls = type(x)
    if cls is np.ndarray and x.dtype in accepted_dtypes(config.token()):
        array: npt.NDArray[np.generic] = x
        return array
    if cls in (bool, int, float, complex):
        return cast(x, scalar_dtype(x))
    # Plain arrays first: NumPy imports `ma`, which defines masked arrays, at its first use.
    if isinstance(x, np.ndarray) and cls is not np.ndarray and isinstance(x, np.ma.MaskedArray):
        raise NotAnArray(
            f"{name} is a masked array, and a mask cannot be kept on a device; pass .filled(value) "
            "or the data and the mask as two arrays"
        )
    if (plain := python_scalar(x)) is not None:
        return cast(plain, scalar_dtype(plain))
    if not isinstance(x, np.ndarray | np.generic):
        if (found := convert(x, name)) is not None:
            return host_array(found, name)
        raise NotAnArray(
            f"{name} is {_describe(x)}, which is not an array; pass NumPy arrays, plugrt arrays, "
            "Python or NumPy scalars, or pytrees of them"
        )
    host = np.asarray(x)
    if host.dtype == _FLOAT0:
        return np.zeros(host.shape, np.bool_)
    check_dtype(host.dtype, name)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    dtype = narrow_dtype(host.dtype)
    if dtype is not host.dtype:
        _warn_narrowed()
        host = cast(host, dtype)
    return host


@cache
def accepted_dtypes(settings: Token) -> frozenset[np.dtype[np.generic]]:
    """The dtypes accepted without a check under these settings: native, and not narrowed."""
    narrow = settings.settings["enable_x64"] is False
    return frozenset(d for d in KNOWN_DTYPES if not (narrow and d.name in _NARROW))


def python_scalar(x: object) -> bool | int | float | complex | None:
    """Returns a Python scalar; converts members of enumerations and subclasses to the plain number.

    None for everything else, including NumPy's scalars.
    """
    if isinstance(x, np.generic):
        return None
    if isinstance(x, int):  # bool has no subclasses
        return x if type(x) is bool else int(x)
    if isinstance(x, float):
        return float(x)
    return complex(x) if isinstance(x, complex) else None


def narrow_dtype(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """Returns the dtype of data on a device: of 32 bits if 64-bit dtypes are disabled."""
    return _NARROW.get(dtype.name, dtype) if config.enable_x64 is False else dtype


def check_dtype(dtype: np.dtype[np.generic], name: str) -> None:
    """Raises `UnsupportedDtype` unless devices can hold arrays of this dtype."""
    widest = 16 if dtype.kind == "c" else 8  # wider ones are C's long doubles
    if dtype.kind in _KINDS and dtype.itemsize <= widest:
        return
    if is_key_dtype(dtype) or (dtype.kind == "V" and dtype.names is None and dtype.isbuiltin == 2):
        return
    what = "structured dtype" if dtype.names else "dtype"
    raise UnsupportedDtype(
        f"{name} has the {what} {dtype}, which devices do not have; arrays hold booleans, "
        f"integers, floats (also ml_dtypes') and complex numbers; pass {_cure(dtype)}"
    )


_CURES = {
    "O": "x.astype(np.float32), or another of these",
    "f": "x.astype(np.float64)",
    "c": "x.astype(np.complex128)",
    "M": "x.astype(np.int64), the time since 1970 in its unit",
    "m": "x.astype(np.int64), the time in its unit",
    "U": "numbers that stand for its texts, such as np.unique(x, return_inverse=True)[1]",
    "S": "x.view(np.uint8), its bytes",
}
"""Advice what to pass instead of a NumPy array, by the kind of its dtype."""


def _cure(dtype: np.dtype[np.generic]) -> str:
    if dtype.names:
        return f"its fields one by one, x[{dtype.names[0]!r}]"
    return _CURES.get(dtype.kind, "x.view(np.uint8), its bytes")


def scalar_dtype(
    x: bool | int | float | complex, token: Token | None = None
) -> np.dtype[np.generic]:
    """Returns the dtype of a Python scalar without an array beside it.

    Raises `IntegerOverflow`, as JAX raises `OverflowError`, for an integer that no signed dtype
    of these settings holds.
    """
    defaults, integers = scalar_dtypes(token or config.token())
    found = defaults.get(type(x))
    if found is not None:
        return found
    if isinstance(x, int) and not isinstance(x, bool):
        for dtype in integers:
            if _LEAST[dtype] <= x <= _MOST[dtype]:
                return dtype
        raise _too_large(x)
    base = next(k for k in (bool, float, complex) if isinstance(x, k))  # a subclass
    return defaults[base]


def _too_large(x: int) -> IntegerOverflow:
    narrow = config.enable_x64 is False
    why = "int32, and JAX_ENABLE_X64 is 0" if narrow else "int64 (64 bits)"
    unsigned = np.uint32 if narrow else np.uint64
    cure = (
        f"pass numpy.{unsigned.__name__}({x}), or give asarray that dtype"
        if 0 <= x <= np.iinfo(unsigned).max
        else "pass it as a float"
    )
    return IntegerOverflow(f"the Python integer {x} does not fit {why}; {cure}")


def needs_unsigned(x: object) -> bool:
    """Whether ``x`` is a Python integer that uint32 holds and int32 does not.

    False where these settings have no integers beyond int32.
    """
    return type(x) is int and 1 << 31 <= x < 1 << 32 and config.enable_x64 is not False


def as_unsigned(x: Any, dtype: Any) -> Any:
    """Returns a Python integer beyond int32 in an unsigned dtype that holds it, else ``x``."""
    if type(x) is not int or x >> 31 <= 0 or np.dtype(dtype).kind != "u":
        return x
    return np.dtype(dtype).type(x) if x <= np.iinfo(dtype).max else x


_INT32, _INT64 = (np.dtype(n) for n in ("int32", "int64"))


_LEAST = {d: int(np.iinfo(d).min) for d in (_INT32, _INT64)}


_MOST = {d: int(np.iinfo(d).max) for d in (_INT32, _INT64)}


@cache
def scalar_dtypes(
    settings: Token,
) -> tuple[dict[type, np.dtype[np.generic]], tuple[np.dtype[Any], ...]]:
    """The dtype of each kind of scalar under these settings, and those tried for an integer."""
    wide, narrow = (settings.settings["enable_x64"] is on for on in (True, False))
    integers = (_INT32,) if narrow else (_INT64,) if wide else (_INT32, _INT64)
    defaults = {
        bool: np.dtype(np.bool_),
        float: np.dtype(np.float64 if wide else np.float32),
        complex: np.dtype(np.complex128 if wide else np.complex64),
    }
    return defaults, integers


def _describe(x: object) -> str:
    text = repr(x)
    if len(text) > 60:
        text = text[:57] + "..."
    return f"{text} of type {type(x).__module__}.{type(x).__qualname__}".replace("builtins.", "")


@cache
def _warn_narrowed() -> None:
    warn_user(
        "64-bit data are narrowed to 32 bits because JAX_ENABLE_X64 is 0; unset it to keep them"
    )
