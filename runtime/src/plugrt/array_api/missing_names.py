"""Hints for NumPy names that the array API standard renames or lacks."""

from __future__ import annotations

import numpy as np

RENAMED = {
    "absolute": "abs", "amax": "max", "amin": "min", "arccos": "acos", "arccosh": "acosh",
    "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2",
    "arctanh": "atanh", "around": "round", "asanyarray": "asarray",
    "ascontiguousarray": "asarray", "bitwise_not": "bitwise_invert", "bool_": "bool",
    "conjugate": "conj", "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum", "fabs": "abs", "fix": "trunc",
    "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "mod": "remainder",
    "power": "pow", "right_shift": "bitwise_right_shift", "rint": "round",
    "true_divide": "divide", "unique": "unique_values",
}  # fmt: skip
"""NumPy's names to the standard's names of the same functions."""
WRITTEN = {
    "angle": "xp.atan2(xp.imag(x), xp.real(x))",
    "append": "xp.concat([x, y], axis=0)",
    "argwhere": "xp.stack(xp.nonzero(x), axis=-1)",
    "array_equal": "xp.all(x == y)",
    "atleast_1d": "xp.reshape(x, x.shape or (1,))",
    "average": "xp.sum(x * y) / xp.sum(y)",
    "cbrt": "lax.cbrt(x)",
    "copy": "xp.asarray(x, copy=True)",
    "cov": "(x - xp.mean(x, axis=-1, keepdims=True)) @ "
           "(x - xp.mean(x, axis=-1, keepdims=True)).T / (x.shape[-1] - 1)",
    "deg2rad": "x * (xp.pi / 180)",
    "degrees": "x * (180 / xp.pi)",
    "diagonal": "x[xp.arange(n), xp.arange(n)]",
    "divmod": "(x // y, x % y)",
    "exp2": "lax.exp2(x)",
    "flatnonzero": "xp.nonzero(xp.ravel(x))[0]",
    "fliplr": "xp.flip(x, axis=1)",
    "flipud": "xp.flip(x, axis=0)",
    "fmod": "lax.rem(x, y)",
    "identity": "xp.eye(n)",
    "inner": "xp.tensordot(x, y, axes=((-1,), (-1,)))",
    "isneginf": "x == -xp.inf",
    "isposinf": "x == xp.inf",
    "nan_to_num": "xp.where(xp.isnan(x), 0.0, x)",
    "nanmax": "xp.max(xp.where(xp.isnan(x), -xp.inf, x))",
    "nanmin": "xp.min(xp.where(xp.isnan(x), xp.inf, x))",
    "nansum": "xp.sum(xp.where(xp.isnan(x), 0.0, x))",
    "ptp": "xp.max(x) - xp.min(x)",
    "rad2deg": "x * (180 / xp.pi)",
    "radians": "x * (xp.pi / 180)",
    "shape": "x.shape",
    "sinc": "xp.where(x == 0, 1.0, xp.sin(xp.pi * x) / (xp.pi * x))",
    "size": "x.size",
    "ndim": "x.ndim",
    "trace": "xp.sum(x[xp.arange(n), xp.arange(n)])",
    "vdot": "xp.vecdot(xp.ravel(x), xp.ravel(y))",
    "vsplit": "lax.split(x, (1, 1))",
}  # fmt: skip
"""NumPy's names to expressions that compute them; ``x`` and ``y`` are n x n, ``v`` and ``w`` have n
elements."""


def standard_name(name: str) -> str:
    """Returns the standard's name of the function that NumPy calls ``name``."""
    return RENAMED.get(name, name)


def missing_name(name: str) -> str:
    """Returns the text of the AttributeError for a name that the namespace lacks."""
    text = f"module 'plugrt.array_api' has no attribute {name!r}"
    if name in WRITTEN:
        return f"{text}; the array API standard lacks it: write, for example, {WRITTEN[name]}"
    if name in RENAMED:
        return f"{text}; in the array API standard this is {RENAMED[name]!r}"
    if name == "nn":
        return f"{text}; write its functions with plugrt.lax, or use plugrt.from_jax(jax.nn.gelu)"
    if callable(getattr(np, name, None)):
        from plugrt.array_api.numpy_counterparts import COUNTERPARTS
        from plugrt.array_api.numpy_ufuncs import UFUNCS

        here = name in COUNTERPARTS["numpy"] or name in UFUNCS
        how = "(x), on the device" if here else "(numpy.asarray(x)), on the host"
        return f"{text}; the array API standard lacks it: write numpy.{name}{how}"
    return text
