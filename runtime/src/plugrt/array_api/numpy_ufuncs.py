"""NumPy's ufuncs that the standard lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from plugrt.array_api.array_conversion import asarray
from plugrt.array_api.data_types import astype
from plugrt.array_api.elementwise.arithmetic import abs
from plugrt.array_api.elementwise.complex import conj
from plugrt.array_api.elementwise.exponential import logaddexp
from plugrt.array_api.elementwise.float_properties import (
    copysign,
    isfinite,
    isnan,
    maximum,
    minimum,
    nextafter,
)
from plugrt.array_api.elementwise.power import pow
from plugrt.array_api.elementwise.rounding import trunc
from plugrt.array_api.numpy_options import as_floats, promote
from plugrt.array_api.searching import where
from plugrt.array_api.utility import any
from plugrt.lax.binary import rem
from plugrt.lax.control_flow.loops import emit_while
from plugrt.lax.unary import cbrt, exp2, population_count
from plugrt.tracing.operation import operation


def _scale(factor: float) -> Callable[[Any], object]:
    return lambda x: as_floats(x)[0] * factor


def _choose_number(choice: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """Returns a function that applies ``choice`` but returns the other number if one is NaN."""
    return lambda x, y: where(isnan(x), y, where(isnan(y), x, choice(x, y)))


def _split_parts(x: Any) -> tuple[Any, Any]:
    (x,) = as_floats(x)
    whole = trunc(x)
    return copysign(where(isfinite(x), x - whole, where(isnan(x), x, 0)), x), whole


def _gcd(x: Any, y: Any) -> Any:
    x, y = map(abs, promote(x, y))
    found, _ = emit_while(
        "gcd",
        lambda pair: any(pair[1] != 0),
        lambda pair: (where(pair[1] != 0, pair[1], pair[0]),
                      where(pair[1] != 0, pair[0] % where(pair[1] != 0, pair[1], 1), 0)),
        (x, y),
    )  # fmt: skip
    return found


def _lcm(x: Any, y: Any) -> object:
    divisor = _gcd(x, y)
    return where(divisor == 0, 0, abs(x // where(divisor == 0, 1, divisor) * y))


def _ldexp(x: Any, y: Any) -> object:
    (x,) = as_floats(x)
    half = y // 2
    two = asarray(2, dtype=x.dtype)
    return x * pow(two, astype(half, x.dtype)) * pow(two, astype(y - half, x.dtype))


def _heaviside(x: Any, y: Any) -> object:
    x, y = as_floats(x, y)
    return where(x == 0, y, where(isnan(x), x, where(x < 0, 0, 1)))


def _spacing(x: Any) -> object:
    (x,) = as_floats(x)
    size = abs(x)
    return copysign(nextafter(size, asarray(math.inf, dtype=x.dtype)) - size, x)


_LN2 = math.log(2)
_BODIES: dict[str, Callable[..., Any]] = {
    "bitwise_count": lambda x: astype(population_count(abs(x)), np.uint8),
    "cbrt": lambda x: cbrt(*as_floats(x)),
    "deg2rad": _scale(math.pi / 180),
    "degrees": _scale(180 / math.pi),
    "exp2": lambda x: exp2(*as_floats(x)),
    "float_power": lambda x, y: pow(*as_floats(x, y)),
    "fmax": _choose_number(maximum),
    "fmin": _choose_number(minimum),
    "fmod": lambda x, y: rem(*promote(x, y)),
    "gcd": _gcd,
    "heaviside": _heaviside,
    "lcm": _lcm,
    "ldexp": _ldexp,
    "logaddexp2": lambda x, y: logaddexp(*(v * _LN2 for v in as_floats(x, y))) / _LN2,
    "matvec": lambda x, y: (x @ y[..., None])[..., 0],
    "modf": _split_parts,
    "rad2deg": _scale(180 / math.pi),
    "radians": _scale(math.pi / 180),
    "spacing": _spacing,
    "vecmat": lambda x, y: (conj(x)[..., None, :] @ y)[..., 0, :],
}
UFUNCS = {name: operation(title=name)(body) for name, body in _BODIES.items()}
"""The ufuncs by NumPy's names; others are functions of the standard."""
