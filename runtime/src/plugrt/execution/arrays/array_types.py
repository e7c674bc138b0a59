"""Values of users' own types as arrays: registered converters, and protocols of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from plugrt.errors import ArgumentTypeError, NotAnArray
from plugrt.frames.argument_errors import with_argument_errors

C = TypeVar("C")
_TAKEN = (bool, int, float, complex, np.ndarray, np.generic, tuple, list, dict, type(None))
# Process-wide: packages register types for all arrays of the process.
_converters: dict[type, Callable[[Any], object]] = {}


@with_argument_errors
def register_array_type(cls: type[C], to_array: Callable[[C], object]) -> None:
    """Makes `device_put`, `jit`, `pmap`, operators and array functions accept objects of a class.

    ``to_array(x)`` returns the array for ``x``: NumPy's, plugrt's, or a scalar. It is called for
    each use, on the host. It applies to subclasses of ``cls``, too; a second registration replaces
    the first. JAX has private tables of such functions.

    Raises `ArgumentTypeError` for an object that is no class or no function, and for a class whose
    objects are already arrays, scalars or containers: its function would never be called.

    >>> class Celsius:
    ...     degrees = [20.5, 21.0]
    >>> plugrt.register_array_type(Celsius, lambda x: np.float32(x.degrees))
    >>> plugrt.device_put(Celsius()) + 1
    Array([21.5, 22. ], dtype=float32)
    """
    if not isinstance(cls, type) or not callable(to_array):
        raise ArgumentTypeError(
            f"register_array_type takes a class and a function; got {cls!r:.60} and "
            f"{to_array!r:.60}"
        )
    if cls is object or issubclass(cls, _TAKEN):
        raise ArgumentTypeError(
            f"register_array_type takes a class of your own; {cls.__qualname__} is taken as it is: "
            "its objects are arrays, scalars or containers already"
        )
    _converters[cls] = to_array


def is_registered(x: object) -> bool:
    """Whether an object converts to an array: its class is registered, or has ``__jax_array__``.

    Operators and functions of arrays accept these; objects with other protocols may have their own
    operators.
    """
    cls = type(x)
    return hasattr(cls, "__jax_array__") or any(base in _converters for base in cls.__mro__)


def has_protocol(x: object) -> bool:
    """Whether an object has NumPy's array protocol, or DLPack's."""
    return hasattr(type(x), "__array__") or hasattr(type(x), "__dlpack__")


def represent(x: Any, name: str) -> Any:
    """Converts an object of such a class to an array or a number, also a traced one.

    Raises `NotAnArray` with ``name`` if the converter returns any other object.
    """
    cls = type(x)
    to_array = next((_converters[base] for base in cls.__mro__ if base in _converters), None)
    found = x.__jax_array__() if to_array is None else to_array(x)
    if hasattr(type(found), "__array__") or isinstance(found, bool | int | float | complex):
        return found
    converter = "__jax_array__" if to_array is None else "converter (register_array_type)"
    raise NotAnArray(
        f"{name} is of type {cls.__module__}.{cls.__qualname__}, whose {converter} returned "
        f"{found!r:.60}; it must return an array or a number"
    )


def convert(x: Any, name: str) -> npt.NDArray[Any] | None:
    """Converts an object to a host array; returns None if it is no array.

    Uses the function registered for its class, else ``__jax_array__``, ``__array__`` or
    ``__dlpack__``.
    Raises `NotAnArray` with ``name`` if the converter returns any other object.
    """
    if is_registered(x):
        return np.asarray(represent(x, name))
    if hasattr(type(x), "__array__"):
        return np.asarray(x)
    if hasattr(type(x), "__dlpack__"):
        return np.from_dlpack(x)
    return None
