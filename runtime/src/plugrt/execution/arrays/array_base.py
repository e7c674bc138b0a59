"""The bases of `Array`: `ArrayBase`, slots in Python or the core; the metaclass `ArrayMeta`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, NoReturn

from plugrt.errors import NotAnArray
from plugrt.native.native_core import core


class PythonArray:
    """The slots of an `Array`."""

    # `_extra` holds the host copy, after deletion a `Deletion`. It is None at first, since to ask
    # for a slot that is not set takes as long as to set forty.
    __slots__ = ("_extra", "_shards", "_signature")

    # What launches take and return: `Shards`, or a backend's own object in their place (see
    # `LoadedExecutable.launcher`); `Array._live` returns the `Shards` in either case.
    _shards: Any
    _signature: Any
    _extra: Any


ArrayBase = PythonArray
if core is not None and not TYPE_CHECKING:
    ArrayBase = core.Array
"""The first base of `plugrt.execution.arrays.array.Array`; the core's has the same attributes."""


class ArrayMeta(type):
    """Lets ``isinstance(x, Array)`` hold for traced arrays as well, as in JAX.

    It also refuses ``Array()``, so that the class itself has no ``__init__``: `blank` in
    `plugrt.execution.arrays.array` is faster without.
    """

    tracer_class: type | None = None

    def __instancecheck__(cls, instance: object) -> bool:
        found = type(instance)
        return (
            found is cls
            or issubclass(found, cls)
            or (cls.tracer_class is not None and issubclass(found, cls.tracer_class))
        )

    def __call__(cls, *_: Never, **__: Never) -> NoReturn:  # to type checkers, an error
        raise_not_made_so("plugrt.Array is not called directly")


def raise_not_made_so(what: str) -> NoReturn:
    """Raises what says how arrays are made."""
    raise NotAnArray(f"{what}; use plugrt.array_api.asarray(...) or plugrt.device_put(...)")
