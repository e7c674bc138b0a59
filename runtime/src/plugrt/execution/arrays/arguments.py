"""Avals (abstract values) of call arguments: programs are cached by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from plugrt.errors import DeletedBuffer, NotAnArray
from plugrt.execution.arrays.array import Array
from plugrt.execution.arrays.aval import Aval, intern_host_aval, sharding_type
from plugrt.execution.arrays.host_data import (
    accepted_dtypes,
    host_array,
    python_scalar,
    scalar_dtype,
    scalar_dtypes,
)
from plugrt.execution.shardings.named_sharding import NamedSharding
from plugrt.native.known_dtypes import KNOWN_DTYPES
from plugrt.native.native_core import core
from plugrt.settings.declarations import config
from plugrt.settings.options import Token

ParameterType = tuple[tuple[int, ...], np.dtype[np.generic], bool]
"""Shape, dtype and weakness of a parameter of a program."""
TracedType = tuple[tuple[int, ...], np.dtype[np.generic], bool, NamedSharding | None]
"""The type for which a function is traced, with the sharding over Explicit axes, if any."""


def quick_avals(leaves: Sequence[Any], token: Token | None = None) -> list[Any] | None:
    """Returns the avals of arrays, NumPy's arrays and scalars, and Python's scalars.

    None if one is anything else. Runners accept these leaves unconverted; launches accept all but
    NumPy's scalars (`as_arrays`). Deleted arrays are not detected here.
    """
    avals: list[Any] = []
    keep = avals.append
    settings = None
    for x in leaves:
        cls = type(x)
        if cls is Array:
            keep(x._aval)
            continue
        if settings is None:
            token = token or config.token()
            plain, scalars = settings = _collect_plain_avals(token)
        if cls is np.ndarray:
            if x.dtype not in plain:
                return None
            keep(intern_host_aval(x.shape, x.dtype))
        elif cls in scalars:
            keep(scalars[cls])
        elif cls is int:
            keep(intern_host_aval((), scalar_dtype(x, token), True))
        else:
            return None
    return avals


if core is not None:
    core.set_host_hooks(quick_avals)
    core.set_settings_hooks(vars(config), config.token)


def as_arrays(leaves: Sequence[object]) -> Sequence[object]:
    """Returns the leaves with NumPy's scalars converted to arrays."""
    for x in leaves:
        if isinstance(x, np.generic):
            return [np.asarray(x) if isinstance(x, np.generic) else x for x in leaves]
    return leaves


def read_arguments(
    leaves: Sequence[object], explain: Callable[[int], str], token: Token | None = None
) -> tuple[Sequence[object], list[Aval]]:
    """Returns flat arguments in the form that launches accept, and the aval of each.

    Host data that are not NumPy arrays of a supported dtype are converted to one; Python scalars
    stay scalars. Raises `NotAnArray`, `UnsupportedDtype`, `DeletedBuffer` or `LeakedTracer`;
    ``explain(i)`` describes the i-th argument. ``token`` has the settings that the call read.
    """
    quick = quick_avals(leaves, token)
    if quick is not None:
        return as_arrays(leaves), quick
    values: list[object] = []
    avals: list[Aval] = []
    for i, x in enumerate(leaves):
        value, aval = _read(x, explain, i)
        values.append(value)
        avals.append(aval)
    return values, avals


def _read(x: object, explain: Callable[[int], str], i: int) -> tuple[object, Aval]:
    if type(x) is Array:
        if x._shards is None and x.is_deleted():
            raise DeletedBuffer(f"{explain(i)}: {x._deleted_message()}")
        return x, x._aval
    if isinstance(x, Array):  # a tracer: `host_array` would try to read its values
        x._live()
        raise NotAnArray(f"{explain(i)} is traced, and has no values yet: {x!r:.80}")
    if (plain := python_scalar(x)) is not None:
        return plain, intern_host_aval((), scalar_dtype(plain), True)
    host = host_array(x, explain(i))
    weak = is_weak(x, host.dtype)
    if weak and not host.shape and scalar_dtype(plain := host.item()) == host.dtype:
        return plain, intern_host_aval((), host.dtype, True)
    return host, intern_host_aval(host.shape, host.dtype, weak)


def is_weak(x: object, dtype: np.dtype[Any]) -> bool:
    """Whether an array or a struct of another library, such as JAX's, states a weak type."""
    return getattr(x, "weak_type", False) is True and dtype.char != "?"


@cache
def _collect_plain_avals(
    settings: Token,
) -> tuple[frozenset[np.dtype[np.generic]], dict[type, Aval]]:
    """The dtypes accepted without a check under these settings, and the avals of scalars.

    Those are Python's and NumPy's, by class.
    """
    dtypes, (pythons, _) = accepted_dtypes(settings), scalar_dtypes(settings)
    numpys = (d for d in KNOWN_DTYPES if d in dtypes)
    scalars: dict[type, Aval] = {d.type: intern_host_aval((), d) for d in numpys}
    return dtypes, scalars | {k: intern_host_aval((), d, True) for k, d in pythons.items()}


def traced_types(avals: Sequence[Aval]) -> tuple[TracedType, ...]:
    """Returns the types that a function is traced for, if called with arguments of these avals."""
    pairs = zip(parameter_types(avals), avals, strict=True)
    return tuple([(*kind, sharding_type(k) if k.sharding else None) for kind, k in pairs])


def parameter_types(avals: Sequence[Aval]) -> tuple[ParameterType, ...]:
    """Returns the types of parameters for arguments of these avals.

    Booleans, also Python's, are never weak.
    """
    types = [(k.shape, k.dtype, k.weak and k.dtype.char != "?") for k in avals]
    return widen_numbers(types, (k.is_number for k in avals))


def widen_numbers(
    types: Sequence[ParameterType], are_numbers: Iterable[bool]
) -> tuple[ParameterType, ...]:
    """Returns types of arguments with Python numbers widened, so that they lose no digits.

    A Python float or complex number beside 64-bit floats gets 64 bits. Elsewhere it has the default
    width, for devices without such floats.
    """
    if not any(dtype.char in "dD" for _, dtype, _ in types):
        return tuple(types)
    return tuple(
        (shape, widen_scalar(dtype), weak) if number else (shape, dtype, weak)
        for (shape, dtype, weak), number in zip(types, are_numbers, strict=True)
    )


def widen_scalar(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the dtype of a Python scalar beside 64-bit floats."""
    return _WIDE.get(dtype, dtype)


_WIDE = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}
